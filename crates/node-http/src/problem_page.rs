//! The pages that problems name: cause and cure of each kind.

use crate::openapi;

/// Problems with a page of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProblemPage {
    BlockNotFound,
    FilterNotFound,
    StatePruned,
    ExecutionReverted,
    ExecutionFailed,
    TransactionRejected,
    LimitExceeded,
}

impl ProblemPage {
    pub(crate) const ALL: [Self; 7] = [
        Self::BlockNotFound,
        Self::FilterNotFound,
        Self::StatePruned,
        Self::ExecutionReverted,
        Self::ExecutionFailed,
        Self::TransactionRejected,
        Self::LimitExceeded,
    ];

    /// The last segment of the page's address, which is stable.
    pub(crate) fn slug(self) -> &'static str {
        match self {
            Self::BlockNotFound => "block-not-found",
            Self::FilterNotFound => "filter-not-found",
            Self::StatePruned => "state-pruned",
            Self::ExecutionReverted => "execution-reverted",
            Self::ExecutionFailed => "execution-failed",
            Self::TransactionRejected => "transaction-rejected",
            Self::LimitExceeded => "limit-exceeded",
        }
    }

    pub(crate) fn url(self, base_url: &str) -> String {
        [base_url, "/problems/", self.slug()].concat()
    }

    /// The page as plain text: cause and cure.
    pub(crate) fn text(self) -> String {
        let (cause, cure) = self.explanation();
        let example = self.example();
        format!("{}\n\nCause\n{cause}\n\nCure\n{cure}\n\nExample\n{example}\n", self.slug())
    }

    /// The page for browsers.
    pub(crate) fn html(self) -> String {
        let (cause, cure) = self.explanation();
        let [cause, cure, example] = [cause, cure, &self.example()].map(escape);
        let slug = self.slug();
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{slug}</title>\n\
             <style>body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 42rem; margin: 2rem auto; padding: 0 1rem; \
             color-scheme: light dark }} pre {{ overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere }}</style>\n\
             <h1>{slug}</h1>\n<h2>Cause</h2>\n<p>{cause}</p>\n<h2>Cure</h2>\n<p>{cure}</p>\n\
             <h2>Example</h2>\n<pre>{example}</pre>\n</html>\n"
        )
    }

    /// A problem of this kind, as JSON.
    fn example(self) -> String {
        openapi::problems::of_page(self).map_or_else(String::new, |problem| format!("{problem:#}"))
    }

    /// Cause and cure.
    fn explanation(self) -> (&'static str, &'static str) {
        match self {
            Self::BlockNotFound => (
                "The canonical chain has no block of this number or hash. It lies beyond the head, was never \
                 imported, or left the chain in a reorganization; a cursor dies with the block it points behind.",
                "Ask /blockNumber/ for the head, or name the block by a tag: latest, safe, finalized, earliest. \
                 A block that left the chain is still answered by /getBlockByHash/.",
            ),
            Self::FilterNotFound => (
                "No filter has this id. It was uninstalled, or nobody polled it for longer than it lives.",
                "Create the filter anew, fetch what was missed with /getLogs/, and poll more often.",
            ),
            Self::StatePruned => (
                "The block is known, but the state after it is no longer kept.",
                "Ask as of a later block; `errors` names the earliest one.",
            ),
            Self::ExecutionReverted => (
                "The contract reverted. `errors` holds the decoded reason, if it is Error(string) or Panic(uint256), \
                 and what the contract returned as `value`.",
                "Decode `value` with the contract's interface, and mend the call.",
            ),
            Self::ExecutionFailed => (
                "The call could not be run, or not to its end: it ran out of gas, executed an invalid instruction, \
                 took longer than the server allows, or its sender cannot pay. Or it asks for the pending block, and \
                 none can be made because a system contract of the fork in force is missing.",
                "Read `detail`. Allow more gas up to the server's cap, leave the price out to turn checks of fees \
                 off, or give the sender a balance. A missing contract belongs into the genesis file; until then ask for \
                 latest.",
            ),
            Self::TransactionRejected => (
                "The pool does not take the transaction. `errors` lists every reason with its numbers.",
                "Mend what `errors` names, sign again, and send again.",
            ),
            Self::LimitExceeded => (
                "The answer would be larger, or take longer, than the server allows.",
                "Ask for fewer blocks: `errors` may name a ToBlock that fits. Logs can also be read in pages: send \
                 the header `Prefer: page` and follow the header `Link`.",
            ),
        }
    }
}

/// Text as it may stand in HTML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_distinct() {
        let mut slugs = ProblemPage::ALL.map(ProblemPage::slug);
        slugs.sort_unstable();
        assert!(slugs.windows(2).all(|pair| pair[0] != pair[1]), "{slugs:?}");
    }

    #[test]
    fn pages_tell_cause_and_cure_and_show_an_example() {
        for page in ProblemPage::ALL {
            let (text, html) = (page.text(), page.html());
            for part in ["Cause", "Cure", "Example", page.slug(), "urn:uuid:"] {
                assert!(text.contains(part) && html.contains(part), "{page:?}: {part}");
            }
            assert!(text.contains(&format!("/problems/{}", page.slug())), "the example is of this kind: {text}");
        }
        assert_eq!(escape("<a> & b"), "&lt;a&gt; &amp; b");
    }
}
