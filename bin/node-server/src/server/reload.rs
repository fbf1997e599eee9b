//! Replacement of settings while a server runs: certificate, tokens and log filter.

use crate::error::{CommandError, Sources};
use crate::logging;
use crate::options::ServerOptions;
use crate::settings::UsageError;
use node_http::{HttpConfig, Metrics, Tls, Tokens};
use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};
use tracing_subscriber::filter::Targets;

/// Units of time, each in seconds, with their names.
const UNITS: [(u64, &str); 3] = [(86_400, "days"), (3_600, "hours"), (60, "minutes")];

/// The settings at startup that are not defaults.
static SETTINGS: OnceLock<Vec<String>> = OnceLock::new();

/// The options that [`reload`] applies.
const APPLIED: [&str; 4] = ["log", "tls-cert", "tls-key", "token-file"];

/// The replaceable objects that the running server uses. A process has only one server.
static USED: OnceLock<Used> = OnceLock::new();

struct Used {
    tls: Option<Tls>,
    tokens: Option<Tokens>,
    metrics: Metrics,
}

/// Makes certificate and tokens of `http` replaceable. Warns if the certificate is not valid now.
pub(crate) fn register(http: &HttpConfig) {
    let (tls, tokens, metrics) = (http.listen.tls.clone(), http.access.tokens.clone(), http.metrics.clone());
    metrics.set_reloaded(true);
    tls.iter().for_each(warn_if_not_valid);
    let _ = USED.set(Used { tls, tokens, metrics });
}

/// Warns if the certificate has expired or is not valid yet. Clients that check it refuse the connection.
fn warn_if_not_valid(tls: &Tls) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let (begin, expiry) = tls.validity().into_inner();
    if now > expiry {
        let since = approximate(now.abs_diff(expiry), |seconds, unit| seconds / unit);
        tracing::warn!(expiry, "the certificate (--tls-cert) expired {since} ago: clients refuse it");
    } else if now < begin {
        let until = approximate(begin.abs_diff(now), u64::div_ceil);
        tracing::warn!(
            begin,
            "the certificate (--tls-cert) is not valid yet, but in {until}: until then, clients refuse it"
        );
    }
}

/// Returns a duration in the greatest unit of which it has two or more, converted by `divide`.
fn approximate(seconds: u64, divide: fn(u64, u64) -> u64) -> String {
    let fitting = UNITS.into_iter().find(|(unit, _)| seconds >= 2 * unit);
    let (unit, name) = fitting.unwrap_or((1, "seconds"));
    format!("{} {name}", divide(seconds, unit))
}

/// Records that the settings could not be read again.
pub(crate) fn failed(error: &UsageError) {
    tracing::error!("SIGHUP: nothing was reloaded: {}", error.message());
    USED.get().iter().for_each(|used| used.metrics.set_reloaded(false));
}

/// Records the settings, for comparison with those that are read later.
pub(crate) fn remember(settings: Vec<String>) {
    let _ = SETTINGS.set(settings);
}

/// Returns the options that differ from `before` and need a restart to take effect.
fn needing_a_restart(before: &[String], now: &[String]) -> Vec<String> {
    let differing =
        before.iter().filter(|one| !now.contains(one)).chain(now.iter().filter(|one| !before.contains(one)));
    let names = differing.filter_map(|setting| setting.split('=').next()).filter(|name| !APPLIED.contains(name));
    let names: BTreeSet<_> = names.map(|name| format!("--{name}")).collect();
    names.into_iter().collect()
}

/// Applies the filter `log`, and reads the files of `options`. If a file cannot be used, this is logged, and the old one
/// stays in use.
pub(crate) fn reload(options: &ServerOptions, log: Targets, settings: &[String]) {
    let changed = needing_a_restart(SETTINGS.get().map_or(&[], Vec::as_slice), settings);
    if !changed.is_empty() {
        tracing::warn!("SIGHUP: {} changed, which takes effect at the next start", changed.join(", "));
    }
    logging::set_filter(log);
    let failures = USED.get().map_or_else(Vec::new, |used| used.replace(options));
    USED.get().iter().for_each(|used| used.metrics.set_reloaded(failures.is_empty()));
    for error in &failures {
        tracing::error!("SIGHUP: a file was not reloaded: {}", Sources(error));
    }
    if failures.is_empty() {
        tracing::info!("SIGHUP: reloaded the certificate, the tokens and the filter of the log");
    }
}

impl Used {
    /// Returns why files cannot be used.
    fn replace(&self, options: &ServerOptions) -> Vec<CommandError> {
        let (tls, tokens) = (options.tls(), options.tokens());
        if let (Some(old), Ok(Some(new))) = (&self.tokens, &tokens) {
            old.replace(new);
            for role in old.orphaned_roles() {
                tracing::warn!(
                    "SIGHUP: no token has the role {role} any more, so what requires it is refused until one has it again, or \
                     the next start"
                );
            }
        }
        if let (Some(old), Ok(Some(new))) = (&self.tls, &tls) {
            old.replace(new);
            warn_if_not_valid(old);
        }
        for (option, old, new) in [
            ("--tls-cert", self.tls.is_some(), tls.as_ref().map(Option::is_some)),
            ("--token-file", self.tokens.is_some(), tokens.as_ref().map(Option::is_some)),
        ] {
            if new.is_ok_and(|new| old != new) {
                tracing::warn!("SIGHUP: {option} was added or removed, which takes effect at the next start");
            }
        }
        tls.err().into_iter().chain(tokens.err()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_only_a_restart_applies_are_named() {
        let settings = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let before = settings(&["log=info", "max-logs=5", "port=1"]);
        let now = settings(&["log=debug", "max-logs=6", "host=\"::\"", "port=1"]);
        assert_eq!(needing_a_restart(&before, &now), ["--host", "--max-logs"]);
        assert!(needing_a_restart(&before, &before).is_empty());
    }

    #[test]
    fn durations_have_two_or_more_of_their_unit() {
        let texts =
            |seconds| (approximate(seconds, |seconds, unit| seconds / unit), approximate(seconds, u64::div_ceil));
        for (seconds, since, until) in [
            (1, "1 seconds", "1 seconds"),
            (119, "119 seconds", "119 seconds"),
            (3_601, "60 minutes", "61 minutes"),
            (7_201, "2 hours", "3 hours"),
            (172_799, "47 hours", "48 hours"),
            (172_801, "2 days", "3 days"),
        ] {
            assert_eq!(texts(seconds), (since.to_owned(), until.to_owned()), "{seconds}");
        }
    }
}
