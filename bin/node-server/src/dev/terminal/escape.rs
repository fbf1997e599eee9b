//! Escaping of text from contracts and clients for output in a terminal.

/// Escapes characters that a terminal would not show, or that would change the order of text: control characters,
/// characters that set the text direction (Unicode Standard Annex 9), and invisible ones.
pub(super) fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => {
                shown.extend(c.escape_unicode());
            }
            c if c.is_control() && c != '\t' => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_would_not_be_seen() {
        let cases = [
            ("a\tb ü", "a\tb ü"),
            ("a\nb\x1b[2J", r"a\nb\u{1b}[2J"),
            ("a\u{202e}b\u{2066}\u{200b}\u{9b}", r"a\u{202e}b\u{2066}\u{200b}\u{9b}"),
        ];
        for (text, expected) in cases {
            assert_eq!(escaped(text), expected);
        }
    }
}
