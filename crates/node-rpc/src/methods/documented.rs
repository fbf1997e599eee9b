//! Checks that the list of methods in docs/json-rpc.md matches the table.

use super::table;
use std::fs;
use std::path::Path;

const BEGIN: &str =
    "<!-- The table is made from the program: UPDATE_DOCS=1 cargo test --workspace --lib documented -->\n";
const END: &str = "<!-- The end of the table. -->\n";

/// Returns the methods as rows of a table in Markdown, family by family.
fn rows() -> String {
    let mut methods = table();
    methods.sort_by_key(|method| method.name().split_once('_').map(|(family, _)| family.to_owned()));
    let mut text = "| Method | Parameters | What it does | Where |\n|---|---|---|---|\n".to_owned();
    for method in methods {
        let place = if method.controls() { "development chains" } else { "everywhere" };
        let parameters = method.parameters().join(", ");
        text += &format!("| `{}` | {parameters} | {} | {place} |\n", method.name(), method.about().replace('|', "\\|"));
    }
    text
}

#[test]
fn every_method_is_documented() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json-rpc.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    let expected = rows();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, [before, BEGIN, &expected, END, after].concat()).unwrap();
        return;
    }
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "UPDATE_DOCS=1 writes it");
    }
    assert_eq!(found.lines().count(), expected.lines().count(), "UPDATE_DOCS=1 writes it");
}
