//! Prometheus' older text format, version 0.0.4.

/// Media type of the OpenMetrics text format.
pub(super) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Media type of the older format, for clients that do not accept OpenMetrics.
pub(super) const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Converts from OpenMetrics. In the older format, the family of a counter has the same name as its samples, and
/// there are neither units nor an end marker.
pub(super) fn from_open_metrics(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut help = "";
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest;
        } else if let Some(family) = line.strip_prefix("# TYPE ") {
            let (name, kind) = family.split_once(' ').unwrap_or((family, "untyped"));
            let suffix = if kind == "counter" { "_total" } else { "" };
            let meaning = help.strip_prefix(name).unwrap_or_default();
            out += &format!("# HELP {name}{suffix}{meaning}\n# TYPE {name}{suffix} {kind}\n");
        } else if !line.starts_with('#') {
            out += line;
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_named_like_their_samples() {
        let open = "# HELP a_seconds Time.\n# TYPE a_seconds counter\n# UNIT a_seconds seconds\na_seconds_total{b=\"c\"} 1\n\
                    # HELP d Now.\n# TYPE d gauge\nd 2\n# EOF\n";
        let plain = "# HELP a_seconds_total Time.\n# TYPE a_seconds_total counter\na_seconds_total{b=\"c\"} 1\n\
                     # HELP d Now.\n# TYPE d gauge\nd 2\n";
        assert_eq!(from_open_metrics(open), plain);
    }
}
