//! The HTML pages over HTTP. `scripts/pages.py` opens them in a browser.

use crate::server::{Response, Server};

const NONE: [&str; 0] = [];

/// The URLs that a page loads, relative to it.
fn loaded(page: &Response) -> Vec<&str> {
    let values = page.text.split(['"']).collect::<Vec<_>>();
    let attributes = values.windows(2).filter(|pair| pair[0].ends_with("src=") || pair[0].ends_with("href="));
    attributes.map(|pair| pair[1]).collect()
}

#[test]
fn pages_and_what_they_load() {
    let plain = Server::start(NONE);
    let based = Server::start(["--base-path", "/v1/node"]);
    for (server, base) in [(&plain, ""), (&based, "/v1/node")] {
        for (page, expected) in [("/", "assets/home.js"), ("/docs/", "swagger-ui-bundle.js")] {
            let response = server.get(&format!("{base}{page}"));
            assert_eq!((response.status, response.media_type.as_str()), (200, "text/html"), "{page}");
            let policy = response.header("content-security-policy").unwrap();
            for rule in ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"] {
                assert!(policy.split("; ").any(|known| known == rule), "{page}: {policy}");
            }
            assert_eq!(policy.contains("unsafe-inline"), page == "/docs/", "{policy}");
            let addresses = loaded(&response);
            assert!(addresses.contains(&expected), "{addresses:?}");
            for address in addresses {
                assert!(!address.starts_with('/') && !address.contains(':'), "{address}");
                let (path, media_type) = match address {
                    "../" | "docs/" => continue,
                    "openapi.json" | "../openapi.json" => (format!("{base}/openapi.json"), "application/json"),
                    "health" => (format!("{base}/health"), "application/json"),
                    _ => {
                        let media_type = match address.rsplit('.').next().unwrap() {
                            "js" => "text/javascript",
                            "css" => "text/css",
                            _ => "image/svg+xml",
                        };
                        let folder = if page == "/docs/" { "/docs/" } else { "/" };
                        (format!("{base}{folder}{address}").replace("/docs/../", "/"), media_type)
                    }
                };
                let file = server.get(&path);
                assert_eq!((file.status, file.media_type.as_str()), (200, media_type), "{path}");
                let of_page = media_type != "application/json";
                assert_eq!(file.header("x-content-type-options"), of_page.then_some("nosniff"), "{path}");
                assert_eq!(file.header("x-request-id").map(str::len), Some(36), "{path}");
            }
        }
    }
}

#[test]
fn methods_and_redirects_of_pages() {
    let plain = Server::start(NONE);
    let based = Server::start(["--base-path", "/v1"]);
    let get = Some("GET, HEAD, OPTIONS");
    // JSON-RPC is posted to the same path.
    let both = Some("GET, HEAD, POST, OPTIONS");
    let cases = [
        (&plain, "GET", "/", 200, None, None),
        (&plain, "GET", "/?utm=1", 200, None, None),
        (&plain, "HEAD", "/", 200, None, None),
        (&plain, "OPTIONS", "/", 204, both, None),
        (&plain, "PUT", "/", 405, both, None),
        (&plain, "POST", "/", 400, None, None),
        (&plain, "HEAD", "/docs/", 200, None, None),
        (&plain, "PUT", "/docs/", 405, get, None),
        (&plain, "GET", "/docs", 308, None, Some("docs/")),
        (&plain, "GET", "/docs/index.html", 404, None, None),
        (&plain, "GET", "/docs/swagger-initializer.js", 404, None, None),
        (&plain, "GET", "/docs/..%2Fassets/home.js", 404, None, None),
        (&plain, "HEAD", "/assets/home.css", 200, None, None),
        (&plain, "DELETE", "/assets/home.css", 405, get, None),
        (&plain, "GET", "/assets/", 404, None, None),
        (&plain, "GET", "/assets/home.html", 404, None, None),
        (&plain, "GET", "/assets/%2e%2e%2fCargo.toml", 404, None, None),
        (&based, "GET", "/", 404, None, None),
        (&based, "GET", "/docs/", 404, None, None),
        (&based, "GET", "/v1", 308, None, Some("v1/")),
        (&based, "GET", "/v1/", 200, None, None),
        (&based, "POST", "/v1", 400, None, None),
        (&based, "PUT", "/v1", 405, both, None),
        (&based, "GET", "/v1/docs", 308, None, Some("docs/")),
        (&based, "GET", "/v1/docs/", 200, None, None),
    ];
    for (server, method, path, status, allow, location) in cases {
        let response = server.send(method, path, &[], "");
        let got = (response.status, response.header("allow"), response.header("location"));
        assert_eq!(got, (status, allow, location), "{method} {path}: {}", response.text);
        if status >= 400 {
            assert_eq!(response.problem_faults(status), NONE, "{method} {path}: {}", response.text);
        }
    }
    let (head, get) = (plain.send("HEAD", "/", &[], ""), plain.get("/"));
    assert_eq!(head.header("content-length"), Some(get.text.len().to_string().as_str()));
    assert_eq!(get.header("cache-control"), Some("no-cache"));
    assert_eq!(get.header("referrer-policy"), Some("no-referrer"));
}
