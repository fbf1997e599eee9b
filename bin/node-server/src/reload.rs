//! What can be replaced while a server runs: certificate, tokens and the filter of the log.

use crate::error::{CommandError, Sources};
use crate::logs;
use crate::options::ServerOptions;
use node_http::{HttpConfig, Tls, Tokens};
use std::sync::OnceLock;

/// What the running server uses. A process has one server.
static USED: OnceLock<Used> = OnceLock::new();

struct Used {
    tls: Option<Tls>,
    tokens: Option<Tokens>,
}

/// Makes certificate and tokens of `http` replaceable.
pub(crate) fn register(http: &HttpConfig) {
    let _ = USED.set(Used { tls: http.tls.clone(), tokens: http.tokens.clone() });
}

/// Applies the filter `log`, and reads the files of `options`. What cannot be used is logged, and stays as it was.
pub(crate) fn reload(options: &ServerOptions, log: &str) {
    // A valid filter: the options were parsed.
    let _ = logs::set_filter(log);
    match USED.get().map_or(Ok(()), |used| used.replace(options)) {
        Ok(()) => tracing::info!("SIGHUP: reloaded the certificate, the tokens and the filter of the log"),
        Err(error) => tracing::error!("SIGHUP: a file was not reloaded: {}", Sources(&error)),
    }
}

impl Used {
    fn replace(&self, options: &ServerOptions) -> Result<(), CommandError> {
        let (tls, tokens) = (options.tls(), options.tokens());
        if let (Some(old), Ok(Some(new))) = (&self.tokens, &tokens) {
            old.replace(new);
        }
        if let (Some(old), Ok(Some(new))) = (&self.tls, &tls) {
            old.replace(new);
        }
        let (tls, tokens) = (tls?, tokens?);
        for (option, old, new) in [
            ("--tls-cert", self.tls.is_some(), tls.is_some()),
            ("--token-file", self.tokens.is_some(), tokens.is_some()),
        ] {
            if old != new {
                tracing::warn!("SIGHUP: {option} was added or removed, which takes effect at the next start");
            }
        }
        Ok(())
    }
}
