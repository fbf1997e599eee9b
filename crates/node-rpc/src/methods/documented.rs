//! Checks that the list of methods in docs/json-rpc.md matches the table.

use super::table;
use std::path::Path;

#[path = "../../../../tests/generated_table.rs"]
mod generated_table;

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
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json-rpc.md");
    generated_table::check(&page, "UPDATE_DOCS", "cargo test --workspace --lib documented", &rows());
}
