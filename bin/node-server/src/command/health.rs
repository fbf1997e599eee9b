//! `ethnode health`: checks whether a server is ready, for supervisors without an HTTP client.

use crate::error::CommandError;
use crate::server::reachable;
use clap::Args;
#[cfg(not(feature = "tls"))]
use node_http::InvalidTls;
use node_http::{BasePath, values};
use std::borrow::Cow;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::{Agent, Body};

/// Options of `health`.
#[derive(Args, Debug)]
pub(crate) struct HealthOptions {
    /// URL to request [default: /ready on this machine, with the host, port and base path of the other options]
    #[arg(value_name = "URL", value_parser = http_url)]
    pub(crate) url: Option<Uri>,
    /// Address that the server listens on, if no URL is given
    #[arg(long, default_value = "127.0.0.1", value_parser = values::host)]
    pub(crate) host: IpAddr,
    /// Port of the server, if no URL is given
    #[arg(long, default_value_t = 8545)]
    pub(crate) port: u16,
    /// Path prefix of every route of the server, if no URL is given
    #[arg(long, value_name = "PATH", default_value = "/")]
    pub(crate) base_path: BasePath,
    /// PEM file of the server's certificate, if no URL is given; the request then uses https and trusts this
    /// certificate
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// PEM file of CA or server certificates to trust for https [default: Mozilla's list of authorities]
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Time limit for the response
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::time)]
    pub(crate) timeout: Duration,
}

/// Maximum length of the response that is read, in bytes.
const MAX_RESPONSE: u64 = 64 << 10;

/// Sends the request and prints the response body. Any status other than 200 is an error.
pub(crate) fn run(options: &HealthOptions) -> Result<(), CommandError> {
    let url = match &options.url {
        Some(url) => url.to_string(),
        None if options.port == 0 => return Err(CommandError::UnknownPort),
        None => default_url(options),
    };
    let shown = without_credentials(&url).into_owned();
    let failed = |source| CommandError::NoResponse { url: shown.clone(), source: Box::new(source) };
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .timeout_global(Some(options.timeout));
    let agent = agent(config.build(), options, &url)?;
    let mut response = agent.get(&url).call().map_err(failed)?;
    let read = |body: &mut Body| body.with_config().limit(MAX_RESPONSE).lossy_utf8(true).read_to_string();
    let body = read(response.body_mut()).map_err(failed)?.trim().to_owned();
    match response.status().as_u16() {
        200 => {
            // The reader may have closed the pipe.
            let _ = writeln!(io::stdout(), "{body}");
            Ok(())
        }
        status => Err(CommandError::NotReady { url: shown, status, body }),
    }
}

/// Parses an http or https URL.
pub(crate) fn http_url(text: &str) -> Result<Uri, String> {
    let uri: Uri = text.parse().map_err(|error| format!("{error}"))?;
    match uri.scheme_str() {
        Some("http" | "https") => Ok(uri),
        _ => Err("expected a URL that starts with http:// or https://".to_owned()),
    }
}

/// Returns a URL without its user name and password.
pub(crate) fn without_credentials(url: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = url.split_once("://") else { return url.into() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]).into(),
        None => url.into(),
    }
}

/// Returns the readiness URL of a server on this machine with these options.
fn default_url(options: &HealthOptions) -> String {
    let scheme = if options.ca_file.is_some() || options.tls_cert.is_some() { "https" } else { "http" };
    let address = reachable(SocketAddr::new(options.host, options.port));
    format!("{scheme}://{address}{}/ready", options.base_path.as_str())
}

/// Returns the client that sends the request.
#[cfg(feature = "tls")]
fn agent(config: Config, options: &HealthOptions, _url: &str) -> Result<Agent, CommandError> {
    use ureq::tls::{PemItem, parse_pem};

    let files: Vec<_> = options.ca_file.iter().chain(server_certificate(options)).collect();
    if files.is_empty() {
        return Ok(config.new_agent());
    }
    let mut certificates = Vec::new();
    let failed = |path: &PathBuf, source| CommandError::Certificates { path: path.clone(), source: Box::new(source) };
    for path in &files {
        for item in parse_pem(crate::files::read_small_text(path)?.as_bytes()) {
            if let PemItem::Certificate(certificate) = item.map_err(|source| failed(path, source))? {
                certificates.push(certificate.der().to_vec());
            }
        }
    }
    super::pinned_tls::agent(config, &certificates).map_err(|source| failed(files[0], source))
}

#[cfg(not(feature = "tls"))]
fn agent(config: Config, _options: &HealthOptions, url: &str) -> Result<Agent, CommandError> {
    if url.starts_with("https:") { Err(CommandError::NoTls(InvalidTls::NotBuilt)) } else { Ok(config.new_agent()) }
}

/// Returns the certificate of the server on this machine, if the request goes to it.
#[cfg(feature = "tls")]
fn server_certificate(options: &HealthOptions) -> Option<&PathBuf> {
    options.tls_cert.as_ref().filter(|_| options.url.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, FromArgMatches};
    use std::io::Read;
    use std::net::TcpListener;
    use std::thread;

    fn options(arguments: &[&str]) -> HealthOptions {
        let arguments = ["health"].iter().chain(arguments);
        let matches = HealthOptions::augment_args(Command::new("health")).get_matches_from(arguments);
        HealthOptions::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn the_default_url_follows_from_the_options() {
        let url = |arguments: &[&str]| default_url(&options(arguments));
        assert_eq!(url(&[]), "http://127.0.0.1:8545/ready");
        assert_eq!(url(&["--host", "0.0.0.0", "--port", "9", "--base-path", "/node"]), "http://127.0.0.1:9/node/ready");
        assert_eq!(url(&["--tls-cert", "crt"]), "https://127.0.0.1:8545/ready");
        assert_eq!(url(&["--host", "::", "--base-path", "/"]), "http://[::1]:8545/ready");
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn https_needs_the_feature() {
        for arguments in [["--ca-file", "crt"], ["--timeout=1s", "https://127.0.0.1:9/ready"]] {
            let error = run(&options(&arguments)).unwrap_err();
            assert!(error.to_string().contains("--features tls"), "{error}");
        }
    }

    #[test]
    fn a_port_that_the_system_chose_is_unknown() {
        assert!(matches!(run(&options(&["--port", "0"])), Err(CommandError::UnknownPort)));
    }

    #[test]
    fn urls_are_of_http_or_https() {
        for text in ["http://node:80/a/ready", "http://[::1]:80", "https://node"] {
            assert!(http_url(text).is_ok(), "{text}");
        }
        for text in ["ftp://node/", "node", "/ready", "http://", "http:///ready", "http://a b/", "http://a/\r\nX: y"] {
            assert!(http_url(text).is_err(), "{text}");
        }
    }

    #[test]
    fn credentials_are_removed_from_urls() {
        for (url, expected) in [
            ("http://user:p@ss@host:1/a@b", "http://host:1/a@b"),
            ("https://user@host?a", "https://host?a"),
            ("http://host/user@host", "http://host/user@host"),
            ("some@text", "some@text"),
        ] {
            assert_eq!(without_credentials(url), expected);
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
        assert!(request.starts_with("GET /ready HTTP/1.1\r\n"), "{request}");
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
