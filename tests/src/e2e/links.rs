//! Every link in responses resolves, for every combination of base path, public URL and proxy.

use crate::generator::{Generator, Shape};
use crate::server::{Response, Server};
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};
use std::fs;

/// Makes `link`, which is in the document at `at`, absolute (RFC 3986, section 5.2, as far as it is needed).
fn resolve(at: &str, link: &str) -> String {
    let origin_end = at.find("://").unwrap() + 3;
    let origin_end = at[origin_end..].find('/').map_or(at.len(), |slash| origin_end + slash);
    if link.contains("://") {
        link.to_owned()
    } else if link.starts_with('/') {
        [&at[..origin_end], link].concat()
    } else {
        let mut folder = at[..=at.rfind('/').unwrap()].to_owned();
        let mut rest = link;
        while let Some(up) = rest.strip_prefix("../") {
            folder.truncate(folder[..folder.len() - 1].rfind('/').unwrap() + 1);
            rest = up;
        }
        folder + rest.trim_start_matches("./")
    }
}

/// The links in a response.
fn links(response: &Response) -> Vec<String> {
    let mut found = Vec::new();
    for (name, value) in &response.headers {
        match name.as_str() {
            "link" => {
                found.extend(value.split('<').skip(1).filter_map(|link| Some(link.split_once('>')?.0.to_owned())))
            }
            "location" => found.push(value.clone()),
            _ => {}
        }
    }
    if response.media_type == "text/html" {
        for attribute in ["href=\"", "src=\""] {
            let values = response.text.split(attribute).skip(1).filter_map(|rest| rest.split('"').next());
            let pages = values.map(|link| link.split('#').next().unwrap_or_default());
            found.extend(pages.filter(|link| !link.starts_with("data:") && !link.is_empty()).map(str::to_owned));
        }
    }
    collect(&response.body, &mut found);
    found
}

/// Adds the links of a JSON document: addresses of schemas, kinds of problems, and of the servers of an OpenAPI
/// document.
fn collect(value: &Value, found: &mut Vec<String>) {
    for key in ["$schema", "$id", "type"] {
        found.extend(
            value[key]
                .as_str()
                .filter(|link| link.starts_with("http") && !link.contains("json-schema.org"))
                .map(str::to_owned),
        );
    }
    if let Some(url) = value["servers"][0]["url"].as_str() {
        found.push(format!("{}/health", url.trim_end_matches('/')));
    }
}

/// Follows all links from a few responses. `base` is the path of the server itself, `outside` the URL at which clients
/// reach it.
fn follow(server: &Server, base: &str, outside: &str, headers: &[(&str, &str)]) -> BTreeSet<String> {
    let get = |path: &str| server.send("GET", &[base, path].concat(), headers, "");
    let mut seen = BTreeSet::new();
    let mut open: VecDeque<_> =
        ["/", "/docs", "/chainId/", "/nothing", "/getBlockReceipts/999/", "/openapi.json", "/health"]
            .map(|path| ([outside, path].concat(), get(path)))
            .into();
    let paged = server.send(
        "POST",
        &[base, "/getLogs/"].concat(),
        &[headers, &[("Content-Type", "application/json"), ("Prefer", "page")]].concat(),
        &json!({"FromBlock": "0"}).to_string(),
    );
    open.push_back(([outside, "/getLogs/"].concat(), paged));
    while let Some((at, response)) = open.pop_front() {
        for link in links(&response) {
            let url = resolve(&at, &link);
            let url = url.split('#').next().unwrap().to_owned();
            if !seen.insert(url.clone()) {
                continue;
            }
            let path = url.strip_prefix(outside).unwrap_or_else(|| panic!("{url} in {at} is not below {outside}"));
            let target = if path.contains("Cursor=") {
                server.send(
                    "POST",
                    &[base, path].concat(),
                    &[headers, &[("Content-Type", "application/json")]].concat(),
                    &json!({"FromBlock": "0"}).to_string(),
                )
            } else {
                get(path)
            };
            assert_eq!(target.status, 200, "{url} in {at}: {}", target.text);
            open.push_back((url, target));
        }
    }
    seen
}

#[test]
fn every_link_leads_somewhere() {
    /// Options, base path, the URL at which clients reach the server, and headers of a proxy.
    type Case = (&'static [&'static str], &'static str, &'static str, &'static [(&'static str, &'static str)]);
    let folder = tempfile::tempdir().unwrap();
    let chain = folder.path().join("chain.rlp");
    let mut blocks = Vec::new();
    Generator::new(Shape::default()).write(8, &mut blocks).unwrap();
    fs::write(&chain, blocks).unwrap();
    let import = ["--import", chain.to_str().unwrap(), "--max-logs", "2"];
    const PUBLIC: &[(&str, &str)] = &[("Host", "node.example")];
    let cases: [Case; 8] = [
        (&["--allowed-hosts", "node.example"], "", "http://node.example", PUBLIC),
        (&["--allowed-hosts", "node.example", "--base-path", "/v1"], "/v1", "http://node.example/v1", PUBLIC),
        (&["--public-url", "https://node.example"], "", "https://node.example", &[]),
        (&["--public-url", "https://node.example/v1", "--base-path", "/v1"], "/v1", "https://node.example/v1", &[]),
        (
            &["--public-url", "https://node.example/proxy", "--base-path", "/v1"],
            "/v1",
            "https://node.example/proxy/v1",
            &[],
        ),
        (&["--public-url", "https://node.example/proxy"], "", "https://node.example/proxy", &[]),
        (
            &["--trusted-proxies", "127.0.0.1", "--base-path", "/v1"],
            "/v1",
            "https://node.example:444/proxy/v1",
            &[
                ("X-Forwarded-For", "203.0.113.1"),
                ("X-Forwarded-Proto", "https"),
                ("X-Forwarded-Host", "node.example:444"),
                ("X-Forwarded-Prefix", "/proxy"),
                ("Forwarded", "for=198.51.100.1;host=evil.example;proto=http"),
            ],
        ),
        (
            &["--trusted-proxies", "127.0.0.1", "--proxy-headers", "forwarded"],
            "",
            "https://node.example",
            &[
                ("Forwarded", "for=203.0.113.1;host=node.example;proto=https"),
                ("X-Forwarded-Host", "evil.example"),
                ("X-Forwarded-Proto", "http"),
            ],
        ),
    ];
    for (options, base, outside, headers) in cases {
        let server = Server::start(import.iter().chain(options));
        let seen = follow(&server, base, outside, headers);
        for path in ["/schemas/Output_chainId.json", "/problems/block-not-found", "/assets/home.js", "/health"] {
            assert!(seen.contains(&[outside, path].concat()), "{path} {options:?}: {seen:?}");
        }
        assert!(seen.iter().any(|url| url.contains("/getLogs/?Cursor=")), "{options:?}: {seen:?}");
    }
}
