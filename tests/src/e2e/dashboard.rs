//! Compares the Grafana dashboard with the table of metrics.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A row of the table in docs/metrics.md.
struct Metric {
    kind: String,
    labels: Vec<String>,
}

fn documented() -> BTreeMap<String, Metric> {
    let text = include_str!("../../../docs/metrics.md");
    let code = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let rows = text.lines().filter(|line| line.starts_with("| `ethnode_") || line.starts_with("| `process_"));
    rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let metric = Metric { kind: cells[2].to_owned(), labels: code(cells[3]) };
        (code(cells[1]).remove(0), metric)
    })
    .collect()
}

fn dashboard() -> Value {
    serde_json::from_str(include_str!("../../../deploy/grafana.json")).unwrap()
}

/// All expressions of the dashboard.
fn expressions(dashboard: &Value) -> Vec<&str> {
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    targets.map(|target| target["expr"].as_str().unwrap()).collect()
}

/// The metrics in an expression, each with the text before it.
fn named(expression: &str) -> Vec<(&str, &str)> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut found = Vec::new();
    let starts = ["ethnode_", "process_"].iter().flat_map(|prefix| expression.match_indices(prefix));
    for (start, _) in starts {
        let (before, rest) = expression.split_at(start);
        if !before.ends_with(is_part) {
            found.push((before, &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())]));
        }
    }
    found
}

/// The metric's name in the table: a histogram has several series.
fn family<'a>(name: &'a str, metrics: &BTreeMap<String, Metric>) -> &'a str {
    let of_histogram = |base: &&str| metrics.get(*base).is_some_and(|metric| metric.kind == "histogram");
    ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end).filter(of_histogram)).unwrap_or(name)
}

#[test]
fn the_dashboard_shows_exactly_the_documented_metrics() {
    let metrics = documented();
    assert!(metrics.len() > 20, "{} metrics are documented", metrics.len());
    let dashboard = dashboard();
    let shown: BTreeSet<_> =
        expressions(&dashboard).into_iter().flat_map(named).map(|(_, name)| family(name, &metrics)).collect();
    let known: BTreeSet<_> = metrics.keys().map(String::as_str).collect();
    assert_eq!(shown, known);
}

#[test]
fn expressions_fit_the_types_of_the_metrics() {
    let metrics = documented();
    for expression in expressions(&dashboard()) {
        for (before, name) in named(expression) {
            let metric = &metrics[family(name, &metrics)];
            let counts = metric.kind != "gauge";
            assert_eq!(before.ends_with("rate("), counts, "{name} in {expression}");
            assert_eq!(name.ends_with("_total"), metric.kind == "counter", "{name}");
            let selector = &expression[before.len() + name.len()..];
            assert!(selector.starts_with("{job=~\"$job\",instance=~\"$instance\""), "{name} in {expression}");
        }
        // Labels used in `sum by` must be labels of every summed metric.
        for grouped in expression.split(" by (").skip(1) {
            let (labels, rest) = grouped.split_once(')').unwrap();
            let (_, summed) = named(rest)[0];
            for label in labels.split(", ").filter(|label| *label != "le") {
                let known = &metrics[family(summed, &metrics)].labels;
                assert!(known.iter().any(|known| known == label), "{label} of {summed} in {expression}");
            }
        }
    }
}

#[test]
fn the_dashboard_can_be_imported() {
    let dashboard = dashboard();
    assert_eq!(dashboard["uid"], "ethnode");
    assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 39);
    assert_eq!(dashboard["templating"]["list"][0]["type"], "datasource");
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
    }
}
