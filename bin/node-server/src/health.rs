//! `node-server health`: checks whether a server is ready, for supervisors without an HTTP client.

use crate::error::CommandError;
use crate::values::reachable;
use clap::Args;
use node_http::{BasePath, values};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Options of `health`.
#[derive(Args, Debug)]
pub(crate) struct HealthOptions {
    /// URL to request, without TLS [default: /ready on this machine, with the host, port and base path of the other options]
    #[arg(value_name = "URL")]
    pub(crate) url: Option<PlainUrl>,
    /// Address that the server listens on, if no URL is given
    #[arg(long, env = "NODE_HOST", default_value = "127.0.0.1", value_parser = values::host)]
    pub(crate) host: IpAddr,
    /// Port of the server, if no URL is given
    #[arg(long, env = "NODE_PORT", default_value_t = 8545)]
    pub(crate) port: u16,
    /// Path prefix of every route of the server, if no URL is given
    #[arg(long, env = "NODE_BASE_PATH", value_name = "PATH", default_value = "/")]
    pub(crate) base_path: BasePath,
    /// Time limit for the response
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::time)]
    pub(crate) timeout: Duration,
}

/// Maximum length of the response that is read, in bytes.
const MAX_RESPONSE: usize = 64 << 10;

/// An `http://` URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlainUrl {
    /// Host name or address, with or without a port.
    authority: String,
    path: String,
}

impl FromStr for PlainUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rest = text.strip_prefix("http://").ok_or("expected a URL that starts with http://")?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) || text.contains('@') {
            return Err("expected http://, a host and a path");
        }
        Ok(Self { authority: authority.to_owned(), path: format!("/{path}") })
    }
}

impl fmt::Display for PlainUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.path)
    }
}

/// Sends the request and prints the response body. Any status other than 200 is an error.
pub(crate) fn run(options: &HealthOptions) -> Result<(), CommandError> {
    let url = &options.url.clone().unwrap_or_else(|| default_url(options));
    let response =
        request(url, options.timeout).map_err(|source| CommandError::NoResponse { url: url.to_string(), source })?;
    let response = String::from_utf8_lossy(&response);
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    match status {
        Some(200) => {
            // The reader may have closed the pipe.
            let _ = writeln!(io::stdout(), "{}", body.trim());
            Ok(())
        }
        Some(status) => Err(CommandError::NotReady { url: url.to_string(), status, body: body.trim().to_owned() }),
        None => {
            let source = io::Error::new(io::ErrorKind::InvalidData, "the response is not HTTP");
            Err(CommandError::NoResponse { url: url.to_string(), source })
        }
    }
}

/// The readiness URL of a server on this machine with these options.
fn default_url(options: &HealthOptions) -> PlainUrl {
    let address = reachable(SocketAddr::new(options.host, options.port));
    PlainUrl {
        authority: address.to_string(),
        path: format!("{}/ready", options.base_path.as_str().trim_end_matches('/')),
    }
}

/// Sends a GET request and returns the raw response. `timeout` limits the whole exchange.
fn request(url: &PlainUrl, timeout: Duration) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + timeout;
    let left = || {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::Error::from(io::ErrorKind::TimedOut)) } else { Ok(left) }
    };
    let has_port = url.authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let host = if has_port { url.authority.clone() } else { format!("{}:80", url.authority) };
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
    for address in host.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left()?) {
            Ok(mut stream) => {
                stream.set_write_timeout(Some(left()?))?;
                let PlainUrl { authority, path } = url;
                let head = format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
                stream.write_all(head.as_bytes())?;
                let (mut response, mut buffer) = (Vec::new(), [0; 4096]);
                while response.len() < MAX_RESPONSE {
                    stream.set_read_timeout(Some(left()?))?;
                    match stream.read(&mut buffer)? {
                        0 => break,
                        length => response.extend_from_slice(&buffer[..length]),
                    }
                }
                return Ok(response);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, FromArgMatches};
    use std::net::TcpListener;
    use std::thread;

    fn options(arguments: &[&str]) -> HealthOptions {
        let arguments = ["health"].iter().chain(arguments);
        let matches = HealthOptions::augment_args(Command::new("health")).get_matches_from(arguments);
        HealthOptions::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn the_default_url_follows_from_the_options() {
        let url = |arguments: &[&str]| default_url(&options(arguments)).to_string();
        assert_eq!(url(&[]), "http://127.0.0.1:8545/ready");
        assert_eq!(url(&["--host", "0.0.0.0", "--port", "9", "--base-path", "/node"]), "http://127.0.0.1:9/node/ready");
        assert_eq!(url(&["--host", "::", "--base-path", "/"]), "http://[::1]:8545/ready");
    }

    #[test]
    fn parses_http_urls() {
        let url = |text: &str| text.parse::<PlainUrl>().map(|url| url.to_string());
        assert_eq!(url("http://node:80/a/ready").as_deref(), Ok("http://node:80/a/ready"));
        assert_eq!(url("http://[::1]:80").as_deref(), Ok("http://[::1]:80/"));
        for text in [
            "https://node/",
            "node",
            "http://",
            "http:///ready",
            "http://a b/",
            "http://u:p@node/",
            "http://a/\r\nX: y",
        ] {
            assert!(url(text).is_err(), "{text}");
        }
    }

    /// Runs the command against a server that sends `response`.
    fn run_against(response: &'static str) -> Result<(), CommandError> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/ready", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.extend(byte);
            }
            stream.write_all(response.as_bytes()).unwrap();
            String::from_utf8(request).unwrap()
        });
        let result = run(&options(&["--timeout", "1m", &url]));
        let request = server.join().unwrap();
        assert!(request.starts_with("GET /ready HTTP/1.1\r\nHost: 127.0.0.1:"), "{request}");
        result
    }

    #[test]
    fn only_200_is_ready() {
        run_against("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
        let not_ready = run_against("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy").unwrap_err();
        assert!(
            matches!(&not_ready, CommandError::NotReady { status: 503, body, .. } if body == "busy"),
            "{not_ready}"
        );
        for response in ["", "SSH-2.0-OpenSSH\r\n"] {
            assert!(matches!(run_against(response), Err(CommandError::NoResponse { .. })), "{response}");
        }
    }

    #[test]
    fn a_server_that_does_not_respond_in_time_is_not_ready() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/ready", listener.local_addr().unwrap());
        let result = run(&options(&["--timeout", "20ms", &url]));
        assert!(matches!(result, Err(CommandError::NoResponse { .. })), "{result:?}");
    }
}
