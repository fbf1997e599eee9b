//! Pages that explain the types of problems: cause and remedy.

node_types::listed_enum! {
    /// Types of problems that have a page.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum ProblemPage {
        BlockNotFound,
        RangeAboveHead,
        FilterNotFound,
        StatePruned,
        ExecutionReverted,
        ExecutionFailed,
        TransactionRejected,
        LimitExceeded,
    }
}

impl ProblemPage {
    /// Returns the last segment of the page's address, which never changes.
    pub(crate) fn slug(self) -> &'static str {
        match self {
            Self::BlockNotFound => "block-not-found",
            Self::RangeAboveHead => "range-above-head",
            Self::FilterNotFound => "filter-not-found",
            Self::StatePruned => "state-pruned",
            Self::ExecutionReverted => "execution-reverted",
            Self::ExecutionFailed => "execution-failed",
            Self::TransactionRejected => "transaction-rejected",
            Self::LimitExceeded => "limit-exceeded",
        }
    }

    /// Returns the title of its problems, which never changes.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::BlockNotFound => "Block not found",
            Self::RangeAboveHead => "Range above the head",
            Self::FilterNotFound => "Filter not found",
            Self::StatePruned => "State pruned",
            Self::ExecutionReverted => "Execution reverted",
            Self::ExecutionFailed => "Execution failed",
            Self::TransactionRejected => "Transaction rejected",
            Self::LimitExceeded => "Limit exceeded",
        }
    }

    pub(crate) fn url(self, base_url: &str) -> String {
        [base_url, "/problems/", self.slug()].concat()
    }

    /// Returns the page as plain text. `example` is a problem of this type as JSON.
    pub(crate) fn text(self, example: &str) -> String {
        let (cause, cure) = self.explanation();
        format!("{}\n\nCause\n{cause}\n\nRemedy\n{cure}\n\nExample\n{example}\n", self.slug())
    }

    /// Returns the text of the page as HTML.
    pub(crate) fn html(self, example: &str) -> String {
        let title = self.slug();
        let text = self.text(example).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
             <style>body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 42rem; margin: 2rem auto; padding: 0 1rem; \
             color-scheme: light dark; white-space: pre-wrap; overflow-wrap: anywhere }}</style>\n{text}</html>\n"
        )
    }

    /// Returns the cause and the remedy.
    fn explanation(self) -> (&'static str, &'static str) {
        match self {
            Self::BlockNotFound => (
                "The canonical chain has no block with this number or hash: it is above the head, was never imported, or \
                 left the chain in a reorganization. A cursor becomes invalid when its block leaves the chain.",
                "Read the number of the head with /blockNumber/, or use a tag: latest, safe, finalized, earliest. \
                 /getBlockByHash/ also returns blocks that left the chain.",
            ),
            Self::RangeAboveHead => (
                "The range of getLogs ends above the head. The one range above it that is served is that from the block after the \
                 head to the latest: it has no logs.",
                "Leave out ToBlock, or set it to latest. `detail` contains the number of the head, and so does /blockNumber/. \
                 To receive logs of later blocks as they arrive, use /newFilter/ or /events/.",
            ),
            Self::FilterNotFound => (
                "No filter has this id: it was uninstalled, or expired because it was not polled.",
                "Create the filter again, read the missed logs with /getLogs/, and poll more often.",
            ),
            Self::StatePruned => (
                "The block is known, but the state after it is no longer kept.",
                "Use a later block; `detail` contains the earliest one.",
            ),
            Self::ExecutionReverted => (
                "The contract reverted. `errors` contains the decoded reason, if it is Error(string) or Panic(uint256), \
                 and the output of the contract as `value`.",
                "Decode `value` with the contract's ABI, and correct the call.",
            ),
            Self::ExecutionFailed => (
                "The call could not be completed: it ran out of gas, executed an invalid instruction, took longer than the \
                 server allows, or its sender cannot pay. Or the pending block was requested and cannot be built, because a \
                 system contract of the active fork is missing.",
                "Read `detail`. Set a higher gas limit, up to the server's cap; omit the gas price, which turns fee checks \
                 off; or use a sender with a balance. Add a missing system contract to the genesis file; until then use \
                 latest.",
            ),
            Self::TransactionRejected => (
                "The pool rejected the transaction. `errors` lists every reason.",
                "Correct what `errors` lists, then sign and send the transaction again.",
            ),
            Self::LimitExceeded => (
                "The response would be larger, or take longer, than the server allows.",
                "Request fewer blocks: `errors` may contain a ToBlock that fits. Logs can also be read in pages: send the \
                 header `Prefer: page` and follow the header `Link`.",
            ),
        }
    }
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
    fn pages_have_cause_remedy_and_example() {
        for page in ProblemPage::ALL {
            let (text, html) = (page.text("an example"), page.html("an example"));
            for part in ["Cause", "Remedy", "Example", page.slug(), "an example"] {
                assert!(text.contains(part) && html.contains(part), "{page:?}: {part}");
            }
        }
        assert!(ProblemPage::StatePruned.html("<a> & b").contains("&lt;a&gt; &amp; b"));
    }
}
