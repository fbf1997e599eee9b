//! Passing requests on to the server that writes the chain.

use crate::command::health::without_credentials;
use crate::error::CommandError;
use node_http::{Writer, WriterRequest, WriterResponse};
use std::sync::Arc;
use std::time::Duration;
use ureq::http::{Request, Response, Uri};
use ureq::{Agent, AsSendBody, Body, RequestExt};

/// Time limit for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Headers of a request that are written by the client itself.
const OWN: [&str; 3] = ["host", "content-length", "connection"];

/// The server that writes the chain.
#[derive(Debug)]
struct HttpWriter {
    agent: Agent,
    /// Its URL without the slash at the end.
    url: String,
    max_response: u64,
}

/// Returns the server at `url`, whose responses may have `max_response` bytes.
///
/// # Errors
/// If the URL needs TLS, with which this program was not built.
pub(crate) fn at(url: &Uri, max_response: usize) -> Result<Arc<dyn Writer>, CommandError> {
    #[cfg(not(feature = "tls"))]
    if url.scheme_str() == Some("https") {
        return Err(CommandError::NoTls(node_http::InvalidTls::NotBuilt));
    }
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .timeout_connect(Some(CONNECT_TIMEOUT));
    let url = url.to_string().trim_end_matches('/').to_owned();
    Ok(Arc::new(HttpWriter { agent: config.build().new_agent(), url, max_response: max_response as u64 }))
}

impl HttpWriter {
    fn run(&self, request: Request<impl AsSendBody>, timeout: Duration) -> Result<Response<Body>, ureq::Error> {
        request.with_agent(&self.agent).configure().timeout_global(Some(timeout)).run()
    }
}

impl Writer for HttpWriter {
    fn send(&self, request: WriterRequest) -> Result<WriterResponse, String> {
        let WriterRequest { method, target, headers, body, timeout } = request;
        let describe = |error: ureq::Error| format!("{}: {error}", without_credentials(&self.url));
        let mut builder = Request::builder().method(method.as_str()).uri(format!("{}{target}", self.url));
        for (name, value) in headers.iter().filter(|(name, _)| !OWN.contains(&name.as_str())) {
            builder = builder.header(name.as_str(), value.as_bytes());
        }
        let response = if body.is_empty() {
            builder.body(()).map_err(ureq::Error::from).and_then(|request| self.run(request, timeout))
        } else {
            builder.body(body.to_vec()).map_err(ureq::Error::from).and_then(|request| self.run(request, timeout))
        };
        let (parts, mut body) = response.map_err(describe)?.into_parts();
        let body = body.with_config().limit(self.max_response).read_to_vec().map_err(describe)?;
        let headers = parts.headers.iter().map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()));
        Ok(WriterResponse { status: parts.status.as_u16(), headers: headers.collect(), body })
    }
}
