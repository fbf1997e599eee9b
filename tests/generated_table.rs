//! Tables in the documentation that are made from the program, between two comments. A module of the tests of several
//! crates.

use std::path::Path;
use std::{env, fs};

const END: &str = "<!-- The end of the table. -->\n";

/// Checks that the table of a page is `expected`. If the environment variable `update` is set, as in the comment above
/// the table, writes it instead.
///
/// # Panics
/// If the page has no such table, or another one.
pub(crate) fn check(page: &Path, update: &str, command: &str, expected: &str) {
    let begin = format!("<!-- The table is made from the program: {update}=1 {command} -->\n");
    let text = fs::read_to_string(page).expect("the page");
    let (before, rest) = text.split_once(&begin).expect("where the table begins");
    let (found, after) = rest.split_once(END).expect("where the table ends");
    if env::var_os(update).is_some() {
        return fs::write(page, [before, &begin, expected, END, after].concat()).expect("the page");
    }
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "{update}=1 writes it");
    }
    assert_eq!(found.len(), expected.len(), "{update}=1 writes it");
}
