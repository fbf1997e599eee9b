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
        UpstreamUnavailable,
        NoStateRoot,
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
            Self::UpstreamUnavailable => "upstream-unavailable",
            Self::NoStateRoot => "no-state-root",
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
            Self::UpstreamUnavailable => "Upstream unavailable",
            Self::NoStateRoot => "No state root",
        }
    }

    pub(crate) fn url(self, base_url: &str) -> String {
        [base_url, "/problems/", self.slug()].concat()
    }

    /// Returns the page about this type of problem. `example` is a problem of this type as JSON.
    pub(crate) fn article(self, example: String) -> Article {
        let (cause, remedy) = self.explanation();
        Article { slug: self.slug(), title: self.title(), cause, remedy, example }
    }

    /// Returns the cause and the remedy.
    fn explanation(self) -> (&'static str, &'static str) {
        match self {
            Self::BlockNotFound => (
                "The canonical chain has no block with this number or hash: it is above the head, was never imported, or \
                 left the chain in a reorganization. A cursor becomes invalid when its block leaves the chain.",
                "Read the number of the head with `/blockNumber/`, or use a tag: `latest`, `safe`, `finalized`, `earliest`. \
                 `/getBlockByHash/` also returns blocks that left the chain.",
            ),
            Self::RangeAboveHead => (
                "The range of `getLogs` ends above the head, or begins above it. The one such range that is served is that from the \
                 block after the head to the latest: it has no logs.",
                "Leave out `ToBlock`, or set it to `latest`; lower `FromBlock` if it is above the block after the head. `detail` contains the number of the head, and so does `/blockNumber/`. \
                 To receive logs of later blocks as they arrive, use `/newFilter/` or `/events/`.",
            ),
            Self::FilterNotFound => (
                "No filter has this id: it was uninstalled, or expired because it was not polled.",
                "Create the filter again, read the missed logs with `/getLogs/`, and poll more often.",
            ),
            Self::StatePruned => (
                "The block is known, but the state after it is no longer kept.",
                "Use a later block; `detail` contains the earliest one.",
            ),
            Self::ExecutionReverted => (
                "The contract reverted. `errors` contains the decoded reason, if it is `Error(string)` or `Panic(uint256)`, \
                 and the output of the contract as `value`.",
                "Decode `value` with the contract's ABI, and correct the call.",
            ),
            Self::ExecutionFailed => (
                "The call could not be completed: it ran out of gas, executed an invalid instruction, took longer than the \
                 server allows, or its sender cannot pay. Or the pending block was requested and cannot be built, because a \
                 system contract of the active fork is missing.",
                "Read `detail`. Set a higher gas limit, up to the server's cap; omit the gas price, which turns fee checks \
                 off; or use a sender with a balance. Add a missing system contract to the genesis file; until then use \
                 `latest`.",
            ),
            Self::TransactionRejected => (
                "The pool rejected the transaction. `errors` lists every reason.",
                "Correct what `errors` lists, then sign and send the transaction again.",
            ),
            Self::LimitExceeded => (
                "The response would be larger, or take longer, than the server allows.",
                "Request fewer blocks: `errors` may contain a `ToBlock` that fits. Logs can also be read in pages: send the \
                 header `Prefer: page` and follow the header `Link`.",
            ),
            Self::UpstreamUnavailable => (
                "The chain of this server is a fork: it continues the chain of other servers, from which it reads what it does not have \
                 yet. They cannot be reached, no longer have it, or returned something that is wrong. `detail` says what was needed.",
                "Send the request again; add another server with `--fork-url`; or fork a newer block. What was read before needs no server.",
            ),
            Self::NoStateRoot => (
                "The chain of this server is a fork, and nothing can be proven about the state of this block. Either the states of the \
                 other chain are read without proofs (`fork-trust`); or the header of the block has no state root (it is zero): a trie \
                 node of the other chain was needed to compute it, and could not be had, because the fork was offline, no server had \
                 the state any longer, or no key leads to the node. The same is then true of all later blocks, and `detail` has the \
                 first of them, and what was missing. Accounts and slots can be read as of these blocks, but not proven.",
                "Ask for a proof as of an earlier block; or revert the chain to one, and make the blocks again with a server \
                 (`fork-url`).",
            ),
        }
    }
}

/// The page about problems whose `type` is `about:blank` because a request is invalid.
pub(crate) const INVALID_REQUEST: &str = "invalid-request";

/// A page about a type of problem, as HTML for browsers and as text for other clients.
pub(crate) struct Article {
    slug: &'static str,
    title: &'static str,
    cause: &'static str,
    remedy: &'static str,
    /// A problem of this type as JSON.
    example: String,
}

impl Article {
    /// Returns the page about invalid requests.
    pub(crate) fn invalid_request(example: String) -> Self {
        Self {
            slug: INVALID_REQUEST,
            title: "Invalid request",
            cause: "The request is well-formed, but a property has the wrong type, range or name, is missing, or contradicts \
                    another one. The status is 422 and the type `about:blank`.",
            remedy: "Correct everything that `errors` lists: `location` is where a fault is in the request, `value` what was sent \
                     there (cut, as text, if it is longer than 1 KiB), and `message` what is expected. The schemas at `/schemas/` describe every request.",
            example,
        }
    }

    /// Returns the page as plain text.
    pub(crate) fn text(&self) -> String {
        let Self { slug, title, cause, remedy, example } = self;
        format!("{title} ({slug})\n\nCause\n{cause}\n\nRemedy\n{remedy}\n\nExample\n{example}\n")
    }

    /// Returns the page as HTML. `base` is the prefix of relative links to this server, and `base_url` that of absolute
    /// ones in the example.
    pub(crate) fn html(&self, base: &str, base_url: &str) -> String {
        let Self { slug, title, .. } = self;
        let [cause, remedy] = [self.cause, self.remedy].map(|text| marked_up(text, base));
        let example = linked(&self.example, base_url);
        let content = format!(
            "{}<h1>{title}</h1>\n<p><code>{slug}</code></p>\n<h2>Cause</h2>\n<p>{cause}</p>\n\
             <h2>Remedy</h2>\n<p>{remedy}</p>\n<h2>Example</h2>\n<pre>{example}</pre>\n",
            to_index(base)
        );
        document(title, &content)
    }
}

/// Returns the page for browsers that there is no page about a type of problem with this name.
pub(crate) fn unknown_type(base: &str) -> String {
    document("Not found", &format!("{}<h1>Not found</h1>\n<p>No type of problem has this name.</p>\n", to_index(base)))
}

/// Returns the page for browsers that there is no schema with this name.
pub(crate) fn unknown_schema(base: &str) -> String {
    let index = format!("<p><a href=\"{base}schemas/\">All schemas</a></p>\n");
    document("Not found", &format!("{index}<h1>Not found</h1>\n<p>No schema has this name.</p>\n"))
}

fn to_index(base: &str) -> String {
    format!("<p><a href=\"{base}problems/\">All types of problems</a></p>\n")
}

/// Where the paths in explanations lead: to what they return, or to their documentation if they need parameters.
const LINKS: [(&str, &str); 6] = [
    ("/blockNumber/", "blockNumber/"),
    ("/events/", "docs/#/Logs/events"),
    ("/getBlockByHash/", "docs/#/Blocks/getBlockByHash"),
    ("/getLogs/", "docs/#/Interface/getLogs"),
    ("/newFilter/", "docs/#/Interface/newFilter"),
    ("/schemas/", "schemas/"),
];

/// Returns a text as HTML: what is in backquotes is code, and paths are links.
fn marked_up(text: &str, base: &str) -> String {
    let part = |(index, part): (usize, &str)| {
        let html = escaped(part);
        if index.is_multiple_of(2) {
            return html;
        }
        match LINKS.iter().find(|(path, _)| *path == part) {
            Some((_, target)) => format!("<a href=\"{base}{target}\"><code>{html}</code></a>"),
            None => format!("<code>{html}</code>"),
        }
    };
    text.split('`').enumerate().map(part).collect()
}

/// Returns JSON as HTML with links where a string is an address of this server.
fn linked(json: &str, base_url: &str) -> String {
    let part = |part: &str| match escaped(part) {
        html if part.starts_with(base_url) => format!("<a href=\"{html}\">{html}</a>"),
        html => html,
    };
    json.split('"').map(part).collect::<Vec<_>>().join("\"")
}

/// An index of documents: for each the address relative to the index, and a title.
pub(crate) struct Index<'a> {
    pub(crate) title: &'a str,
    pub(crate) entries: Vec<(String, String)>,
}

impl Index<'_> {
    /// Returns the index as plain text, with one document a line.
    pub(crate) fn text(&self) -> String {
        let lines = self.entries.iter().map(|(address, title)| match title {
            title if address.starts_with(title.as_str()) => format!("{address}\n"),
            title => format!("{address}: {title}\n"),
        });
        format!("{}\n\n{}", self.title, lines.collect::<String>())
    }

    /// Returns the index as HTML.
    pub(crate) fn html(&self) -> String {
        let entry =
            |(address, title): &(String, String)| format!("<li><a href=\"{address}\">{}</a></li>\n", escaped(title));
        let entries: String = self.entries.iter().map(entry).collect();
        document(self.title, &format!("<h1>{}</h1>\n<ul>\n{entries}</ul>\n", self.title))
    }
}

fn document(title: &str, content: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 42rem; margin: 2rem auto; padding: 0 1rem; \
         color-scheme: light dark; overflow-wrap: anywhere }} pre {{ white-space: pre-wrap }}</style>\n{content}</html>\n"
    )
}

fn escaped(text: &str) -> String {
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
    fn pages_have_cause_remedy_and_example() {
        let articles = ProblemPage::ALL.map(|page| page.article("an <example>".to_owned()));
        for article in articles.into_iter().chain([Article::invalid_request("an <example>".to_owned())]) {
            let (text, html) = (article.text(), article.html("../", "http://node"));
            for part in ["Cause", "Remedy", "Example", article.slug, article.title] {
                assert!(text.contains(part) && html.contains(part), "{part}: {text} {html}");
            }
            assert!(text.contains("an <example>") && html.contains("an &lt;example&gt;"), "{text} {html}");
            assert!(!html.contains('`'), "{html}");
            let paths = text.split('`').skip(1).step_by(2).filter(|code| code.starts_with('/'));
            for path in paths {
                assert!(LINKS.iter().any(|(known, _)| *known == path), "{path} is not a link");
            }
        }
    }

    #[test]
    fn explanations_have_code_and_links() {
        assert_eq!(
            marked_up("Use `A<B>` or `/getLogs/`.", "../../"),
            "Use <code>A&lt;B&gt;</code> or <a href=\"../../docs/#/Interface/getLogs\"><code>/getLogs/</code></a>."
        );
        assert_eq!(
            linked(r#"{"type": "http://node/a&b"}"#, "http://node/"),
            "{\"type\": \"<a href=\"http://node/a&amp;b\">http://node/a&amp;b</a>\"}"
        );
    }

    #[test]
    fn links_to_the_documentation_are_those_of_operations() {
        let operations = crate::routes::operations(true);
        for (path, target) in LINKS {
            let Some(target) = target.strip_prefix("docs/#/") else { continue };
            let found = operations.iter().find(|operation| operation.path.starts_with(path));
            let found = found.map(|operation| format!("{}/{}", operation.tag, operation.name()));
            assert_eq!(found.as_deref(), Some(target), "{path}");
        }
    }

    #[test]
    fn indexes_list_their_documents() {
        let entries = [("a-b", "A & b"), ("C.json", "C")].map(|(address, title)| (address.into(), title.into()));
        let index = Index { title: "All", entries: entries.into() };
        assert_eq!(index.text(), "All\n\na-b: A & b\nC.json\n");
        assert!(index.html().contains("<li><a href=\"a-b\">A &amp; b</a></li>"), "{}", index.html());
    }
}
