//! `node-server health`: asks a server whether it is ready, for supervisors that have no client of their own.

use crate::error::CommandError;
use crate::values::{self, reachable};
use clap::Args;
use node_http::BasePath;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Settings of `health`.
#[derive(Args, Debug)]
pub(crate) struct HealthOptions {
    /// What to ask, without TLS [default: /ready of a server on this machine with the same settings]
    #[arg(value_name = "URL")]
    pub(crate) url: Option<PlainUrl>,
    /// Address that the server listens on, where no URL is given
    #[arg(long, env = "NODE_HOST", default_value = "127.0.0.1", value_parser = values::host)]
    pub(crate) host: IpAddr,
    /// Port of the server, where no URL is given
    #[arg(long, env = "NODE_PORT", default_value_t = 8545)]
    pub(crate) port: u16,
    /// Path in front of every route of the server, where no URL is given
    #[arg(long, env = "NODE_BASE_PATH", value_name = "PATH", default_value = "/")]
    pub(crate) base_path: BasePath,
    /// Time for the answer
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::time)]
    pub(crate) timeout: Duration,
}

/// No answer is read further.
const MAX_ANSWER: usize = 64 << 10;

/// An address of plain HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlainUrl {
    /// Name or address, and the port where one is given.
    authority: String,
    path: String,
}

impl FromStr for PlainUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rest = text.strip_prefix("http://").ok_or("expected an address that begins with http://")?;
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

/// Asks, and writes what was answered. Any other status than 200 is an error.
pub(crate) fn run(options: &HealthOptions) -> Result<(), CommandError> {
    let url = &options.url.clone().unwrap_or_else(|| here(options));
    let answer = ask(url, options.timeout).map_err(|source| CommandError::NoAnswer { url: url.to_string(), source })?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    match status {
        Some(200) => {
            // Nobody may be there to read it.
            let _ = writeln!(io::stdout(), "{}", body.trim());
            Ok(())
        }
        Some(status) => Err(CommandError::NotReady { url: url.to_string(), status, body: body.trim().to_owned() }),
        None => {
            let source = io::Error::new(io::ErrorKind::InvalidData, "the answer is not HTTP");
            Err(CommandError::NoAnswer { url: url.to_string(), source })
        }
    }
}

/// Where a server on this machine is that has these settings.
fn here(options: &HealthOptions) -> PlainUrl {
    let address = reachable(SocketAddr::new(options.host, options.port));
    PlainUrl {
        authority: address.to_string(),
        path: format!("{}/ready", options.base_path.as_str().trim_end_matches('/')),
    }
}

/// One request, with a bound on the time for all of it.
fn ask(url: &PlainUrl, timeout: Duration) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + timeout;
    let left = || {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::Error::from(io::ErrorKind::TimedOut)) } else { Ok(left) }
    };
    let has_port = url.authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let host = if has_port { url.authority.clone() } else { format!("{}:80", url.authority) };
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in host.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left()?) {
            Ok(mut stream) => {
                stream.set_write_timeout(Some(left()?))?;
                let PlainUrl { authority, path } = url;
                let request = format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
                stream.write_all(request.as_bytes())?;
                let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
                while answer.len() < MAX_ANSWER {
                    stream.set_read_timeout(Some(left()?))?;
                    match stream.read(&mut buffer)? {
                        0 => break,
                        length => answer.extend_from_slice(&buffer[..length]),
                    }
                }
                return Ok(answer);
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
    fn without_an_address_it_is_the_server_with_the_same_settings() {
        let url = |arguments: &[&str]| here(&options(arguments)).to_string();
        assert_eq!(url(&[]), "http://127.0.0.1:8545/ready");
        assert_eq!(url(&["--host", "0.0.0.0", "--port", "9", "--base-path", "/node"]), "http://127.0.0.1:9/node/ready");
        assert_eq!(url(&["--host", "::", "--base-path", "/"]), "http://[::1]:8545/ready");
    }

    #[test]
    fn addresses_are_plain_http() {
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

    /// What the command says of a server that answers so.
    fn asked(answer: &'static str) -> Result<(), CommandError> {
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
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(request).unwrap()
        });
        let result = run(&options(&["--timeout", "1m", &url]));
        let request = server.join().unwrap();
        assert!(request.starts_with("GET /ready HTTP/1.1\r\nHost: 127.0.0.1:"), "{request}");
        result
    }

    #[test]
    fn only_200_is_ready() {
        asked("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
        let not_ready = asked("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy").unwrap_err();
        assert!(
            matches!(&not_ready, CommandError::NotReady { status: 503, body, .. } if body == "busy"),
            "{not_ready}"
        );
        for answer in ["", "SSH-2.0-OpenSSH\r\n"] {
            assert!(matches!(asked(answer), Err(CommandError::NoAnswer { .. })), "{answer}");
        }
    }

    #[test]
    fn who_does_not_answer_in_time_is_not_ready() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/ready", listener.local_addr().unwrap());
        let result = run(&options(&["--timeout", "20ms", &url]));
        assert!(matches!(result, Err(CommandError::NoAnswer { .. })), "{result:?}");
    }
}
