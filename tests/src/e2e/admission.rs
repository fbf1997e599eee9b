//! Admission of requests: hosts, tokens, rates, counts, sizes. Each refusal mentions the option of its limit.

use crate::server::{Duplex, Response, Server, Transport, free_port, node_server, run_to_end};
use crate::wallet::{hex, sign, transfer};
use crate::websocket::Socket;
use node_http::{ClientLimits, HttpConfig, RequestLimits};
use node_types::consensus::TransactionBody;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

const NONE: [&str; 0] = [];
const JSON: (&str, &str) = ("Content-Type", "application/json");

/// Checks a refusal: its status, its structure, and that it mentions the option.
#[track_caller]
fn assert_refused(response: &Response, status: u16, option: &str) {
    assert_eq!(response.problem_faults(status), NONE, "{}", response.text);
    let detail = response.field("detail").as_str().unwrap();
    assert!(detail.contains(&format!("`{option}`")) || option.is_empty(), "{option}: {detail}");
}

#[test]
fn refuses_requests_that_proxies_may_understand_differently() {
    for transport in Transport::ALL {
        let server = Server::over(transport, NONE);
        let status = |path: &str, headers: &[(&str, &str)]| server.send("GET", path, headers, "").status;
        assert_eq!(status("/chainId/", &[("Host", "localhost"), ("Host", "a"), ("Host", "a")]), 400, "{transport:?}");
        assert_eq!(status("/chainId/", &[("Content-Length", "0"), ("Content-Length", "1")]), 400, "{transport:?}");
        for (scheme, expected) in [("http", 200), ("https", 200), ("ftp", 400)] {
            assert_eq!(status(&format!("{scheme}://localhost/chainId/"), &[]), expected, "{transport:?} {scheme}");
        }
    }
}

#[test]
fn refuses_unknown_host_names() {
    let as_host = |server: &Server, host: &str| server.send("GET", "/chainId/", &[("Host", host)], "");
    for transport in Transport::ALL {
        let server = Server::over(transport, NONE);
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1", "[::1]:8545", "192.0.2.1"] {
            assert_eq!(as_host(&server, host).status, 200, "{transport:?} {host}");
        }
        for host in ["evil.example", "localhost.evil.example:8545"] {
            assert_refused(&as_host(&server, host), 403, "allowed-hosts");
            assert_refused(&server.send("GET", "/health", &[("Host", host)], ""), 403, "allowed-hosts");
            assert_refused(&server.send("POST", "/getLogs/", &[("Host", host), JSON], "{}"), 403, "allowed-hosts");
            assert_refused(&server.send("GET", "/nothing", &[("Host", host)], ""), 403, "allowed-hosts");
        }
        // As the option takes it.
        for host in ["evil.example", "localhost.evil.example"] {
            assert_eq!(server.logged(&format!("host=\"{host}\"")), 1, "once for each host: {}", server.log());
        }
        assert!(server.log().contains("--allowed-hosts"), "{}", server.log());
        let options = ["--allowed-hosts", "node.internal,other", "--public-url", "https://public.example/x"];
        let server = Server::over(transport, options);
        let cases = [("node.internal:1", 200), ("OTHER", 200), ("public.example", 200), ("evil.example", 403)];
        for (host, status) in cases {
            assert_eq!(as_host(&server, host).status, status, "{transport:?} {host}");
        }
        assert_eq!(as_host(&Server::over(transport, ["--allowed-hosts", "*"]), "evil.example").status, 200);
    }
}

#[test]
fn requires_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    let file = path.to_str().unwrap();
    for transport in Transport::ALL {
        fs::write(&path, "# of the tests\nfirst-token-of-two\nsecond-token-of-two\n").unwrap();
        let server = Server::over(transport, ["--token-file", file]);
        let get = |path: &str, shown: Option<&str>| {
            let header = shown.map(|shown| ("Authorization", shown));
            server.send("GET", path, header.as_slice(), "")
        };
        for shown in
            [None, Some("Bearer wrong-token-of-none"), Some("Basic first-token-of-two"), Some("first-token-of-two")]
        {
            let refused = get("/chainId/", shown);
            assert_refused(&refused, 401, "token-file");
            assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
        }
        for shown in ["Bearer first-token-of-two", "bearer second-token-of-two"] {
            assert_eq!(get("/chainId/", Some(shown)).status, 200, "{transport:?} {shown}");
        }
        assert_eq!(server.post("/getLogs/", "{}").status, 401);
        assert_eq!(get("/events/", None).status, 401);
        for path in ["/health", "/ready", "/schemas/ErrorModel.json", "/problems/state-pruned"] {
            assert_eq!(get(path, None).status, 200, "{transport:?} {path}");
        }
    }
    for (text, complaint) in
        [("", "no token"), ("short\n", "line 1"), ("0123456789abcdef\nwith blank in the middle", "line 2")]
    {
        fs::write(&path, text).unwrap();
        let output = run_to_end(["--token-file", file]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && stderr.contains(complaint) && !stderr.contains("0123456789"), "{stderr}");
    }
    let output = run_to_end(["--token-file", "/nonexistent/tokens"]);
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("/nonexistent/tokens"));
}

#[test]
fn a_flood_is_refused_without_affecting_others() {
    for transport in Transport::ALL {
        let server = Server::over(transport, ["--rate-limit", "2", "--trusted-proxies", "127.0.0.0/8"]);
        let from = |client: &str| server.send("GET", "/chainId/", &[("X-Forwarded-For", client)], "");
        let responses: Vec<_> = (0..30).map(|_| from("203.0.113.1")).collect();
        let served = responses.iter().filter(|response| response.status == 200).count();
        assert!((2..30).contains(&served), "{transport:?}: {served} of 30");
        let refused = responses.iter().find(|response| response.status != 200).unwrap();
        assert_refused(refused, 429, "rate-limit");
        assert!(refused.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
        assert_eq!(from("203.0.113.2").status, 200);
        let pretending: Vec<_> = (0..30).map(|n| from(&format!("198.51.100.{n}, 203.0.113.1")).status).collect();
        assert!(pretending.contains(&429), "entries that the client adds are ignored: {pretending:?}");
        let forged = (0..30).map(|n| {
            let element = format!("for=198.51.100.{n}");
            let headers = [("X-Forwarded-For", "203.0.113.1"), ("Forwarded", &element)];
            server.send("GET", "/chainId/", &headers, "").status
        });
        let forged: Vec<_> = forged.collect();
        assert!(forged.contains(&429), "`Forwarded` is ignored: {forged:?}");
        let hidden: Vec<_> = (0..30).map(|n| from(&format!("[::{n}, hidden-{n}")).status).collect();
        assert!(hidden.contains(&429), "all that are unknown are one client: {hidden:?}");
        let checks: Vec<_> = (0..30).map(|_| server.get("/health").status + server.get("/ready").status).collect();
        assert_eq!(checks, [400; 30], "{transport:?}: health checks are not limited");
    }
}

#[test]
fn messages_that_are_no_json_count_towards_the_rate() {
    for transport in Transport::ALL {
        let server = Server::over(transport, ["--rate-limit", "5"]);
        let statuses: Vec<_> = (0..30).map(|_| server.post("/", "no JSON").status).collect();
        assert!(statuses.contains(&200) && statuses.contains(&429), "{transport:?}: {statuses:?}");
    }
    // WebSockets begin with a request of HTTP/1.1.
    let server = Server::start(["--rate-limit", "5"]);
    let mut socket = Socket::connect(server.address(), &[]).unwrap();
    let refused = (0..30).filter(|_| {
        socket.send("no JSON");
        socket.receive()["error"]["message"].as_str().unwrap().contains("`rate-limit`")
    });
    assert!(refused.count() > 0);
}

#[test]
fn clients_on_this_machine_have_no_limit_unless_a_proxy_forwards_them() {
    for transport in Transport::ALL {
        let server = Server::over(transport, ["--rate-limit", "auto"]);
        // The burst is of 1,000 requests, which a batch uses up at once.
        let batch = |headers: &[(&str, &str)]| {
            let request = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId"});
            let body = json!(vec![request; 900]).to_string();
            server.send("POST", "/", &[&[JSON], headers].concat(), &body).status
        };
        assert_eq!([(); 3].map(|()| batch(&[])), [200; 3], "{transport:?}");
        let forwarded = [("X-Forwarded-For", "203.0.113.1")];
        assert!([(); 3].map(|()| batch(&forwarded)).contains(&429), "{transport:?}");
    }
}

#[test]
fn only_programs_on_this_machine_control_the_chain() {
    let mine = |server: &Server, headers: &[(&str, &str)]| {
        server.send("POST", "/dev/mine/", &[&[JSON], headers].concat(), "{}")
    };
    let call = |server: &Server, headers: &[(&str, &str)], method: &str| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method}).to_string();
        let response = server.send("POST", "/", &[&[JSON], headers].concat(), &body);
        assert_eq!(response.status, 200, "{}", response.text);
        response.field("error").is_null()
    };
    let forwarded = [
        ("X-Forwarded-For", "203.0.113.1"),
        ("X-Forwarded-For", "127.0.0.1"),
        ("Forwarded", "for=127.0.0.1"),
        ("X-Real-IP", "127.0.0.1"),
        ("CF-Connecting-IP", "127.0.0.1"),
        ("X-Cluster-Client-IP", "127.0.0.1"),
        ("X-Envoy-External-Address", "127.0.0.1"),
        ("X-Azure-ClientIP", "127.0.0.1"),
        ("X-Forwarded", "for=127.0.0.1"),
        ("X-Original-Host", "localhost"),
        ("CDN-Loop", "example"),
        ("X-Forwarded-Proto", "https"),
    ];
    for transport in Transport::ALL {
        let server = Server::dev_over(transport, NONE);
        assert_eq!(mine(&server, &[]).status, 200, "{transport:?}");
        assert!(call(&server, &[], "evm_mine"));
        for header in forwarded {
            assert_refused(&mine(&server, &[header]), 403, "trusted-proxies");
            assert!(!call(&server, &[header], "evm_mine"), "{transport:?} {header:?}");
            assert!(call(&server, &[header], "eth_blockNumber"), "methods that only read are allowed");
        }
        let warnings = server.logged("--trusted-proxies makes its clients known");
        assert_eq!(warnings, 1, "{}", server.log());

        let server = Server::dev_over(transport, ["--trusted-proxies", "127.0.0.1"]);
        assert_refused(&mine(&server, &[]), 403, "force-control");
        for header in forwarded {
            assert_refused(&mine(&server, &[header]), 403, "force-control");
            assert!(!call(&server, &[header], "evm_mine"), "{transport:?} {header:?}");
        }
        let server = Server::dev_over(transport, ["--public-url", "https://node.example"]);
        assert_refused(&mine(&server, &[]), 403, "force-control");
        let server = Server::dev_over(transport, ["--public-url", "https://node.example", "--force-control"]);
        assert_eq!(mine(&server, &[forwarded[0]]).status, 200);
    }
}

#[test]
fn pages_read_and_control_as_their_origin_allows() {
    /// What a page of an origin may do: use an event stream, read responses, and control the chain.
    type Rights = [bool; 3];
    let rights = |server: &Server, headers: &[(&str, &str)]| -> Rights {
        let mined = server.send("POST", "/dev/mine/", &[&[JSON], headers].concat(), "{}");
        let made = server.send("GET", "/newBlockFilter/", headers, "");
        for response in [&mined, &made] {
            assert!([200, 403].contains(&response.status), "{headers:?}: {}", response.text);
        }
        let read = server.send("GET", "/chainId/", headers, "");
        assert_eq!(read.status, 200, "{headers:?}: {}", read.text);
        [made.status == 200, read.header("access-control-allow-origin").is_some(), mined.status == 200]
    };
    let (all, none) = ([true; 3], [false; 3]);
    for transport in Transport::ALL {
        let server = Server::dev_over(
            transport,
            ["--cors-origins", "loopback,extensions,https://wallet.example,https://shop.example=read"],
        );
        let own = server.url().to_owned();
        let (scheme, authority) = own.split_once("://").unwrap();
        let other_scheme = format!("{}://{authority}", if scheme == "http" { "https" } else { "http" });
        assert_eq!(scheme == "https", transport == Transport::Tls);
        let reads = [true, true, false];
        let cases: [(&[(&str, &str)], Rights); 16] = [
            (&[], [true, false, true]),
            (&[("Origin", &own)], [true, true, true]),
            // Pages on this machine may control, see `--cors-origins`.
            (&[("Origin", &other_scheme)], all),
            (&[("Origin", "https://wallet.example")], all),
            (&[("Origin", "https://shop.example")], reads),
            (&[("Origin", "http://localhost:3000")], all),
            (&[("Origin", "http://127.0.0.1:3000")], all),
            (&[("Origin", "chrome-extension://abcdef")], reads),
            (&[("Origin", "null")], none),
            (&[("Origin", "https://evil.example")], none),
            (&[("Origin", "http://localhost.evil.example")], none),
            (&[("Origin", "")], none),
            (&[("Origin", &own), ("Origin", "https://wallet.example")], [false, true, false]),
            (&[("Sec-Fetch-Site", "same-origin")], [true, false, true]),
            (&[("Sec-Fetch-Site", "none")], [true, false, true]),
            (&[("Sec-Fetch-Site", "cross-site")], none),
        ];
        for (headers, expected) in cases {
            assert_eq!(rights(&server, headers), expected, "{transport:?} {headers:?}");
        }
        // The log may lag behind, but its lines are in order.
        server.get("/last/");
        server.logged("/last/");
        let log = server.log();
        // One line for reading and one for control, however often it tries.
        assert_eq!(log.matches("origin=\"https://evil.example\"").count(), 2, "{log}");
        assert!(
            log.contains("add the origin to --cors-origins to allow it") && !log.contains("origin=\"https://wallet"),
            "{log}"
        );

        let server = Server::dev_over(transport, ["--cors-origins", "*"]);
        assert_eq!(rights(&server, &[("Origin", "null")]), reads, "reading is allowed");
        let server = Server::dev_over(transport, ["--cors-origins", "*=control"]);
        assert_eq!(rights(&server, &[("Origin", "null")]), all);
        let server = Server::dev_over(transport, ["--cors-origins", "loopback=read"]);
        assert_eq!(rights(&server, &[("Origin", "http://localhost:3000")]), reads);
        let server = Server::dev_over(transport, NONE);
        for (origin, expected) in [
            ("http://localhost:3000", all),
            ("http://[::1]:5173", all),
            ("https://app.localhost", all),
            ("chrome-extension://abcdef", reads),
            ("https://wallet.example", none),
            ("http://localhost.evil.example", none),
            ("null", none),
        ] {
            assert_eq!(rights(&server, &[("Origin", origin)]), expected, "{transport:?} {origin}");
        }
        let server = Server::dev_over(transport, ["--host", "0.0.0.0"]);
        assert_eq!(rights(&server, &[("Origin", "http://localhost:3000")]), reads, "the chain is public");
        let server = Server::dev_over(transport, ["--cors-origins", "*"]);
        let own = ("Host", "localhost:1");
        assert_eq!(rights(&server, &[own, ("Origin", &format!("{scheme}://localhost:1"))]), all, "{transport:?}");
    }
}

/// Browsers send such requests without a preflight.
#[test]
fn a_post_that_is_not_declared_as_json_is_refused_to_pages_of_other_origins() {
    let pages: [&[(&str, &str)]; 3] = [
        &[("Origin", "http://evil.example"), ("Sec-Fetch-Site", "cross-site")],
        &[("Origin", "null")],
        &[("Sec-Fetch-Site", "cross-site")],
    ];
    let types = [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("multipart/form-data")];
    for transport in Transport::ALL {
        let server = Server::dev_over(transport, NONE);
        let document = server.get("/openapi.json").body;
        let operations = document["paths"].as_object().unwrap().iter().filter(|(_, item)| item.get("post").is_some());
        let paths: Vec<_> = operations.map(|(path, _)| path.as_str()).chain(["/", "/rpc", "/newBlockFilter"]).collect();
        assert!(paths.contains(&"/newPendingTransactionFilter/") && paths.contains(&"/dev/mine/"), "{paths:?}");
        for (path, page) in paths.iter().flat_map(|path| pages.map(|page| (path, page))) {
            for media_type in types {
                let media_type = media_type.map(|media_type| ("Content-Type", media_type));
                let headers = [page, &[("Content-Length", "0")], media_type.as_slice()].concat();
                assert_refused(&server.send("POST", path, &headers, ""), 403, "");
            }
        }
        let make = |headers: &[(&str, &str)]| server.send("POST", "/newBlockFilter/", headers, "").status;
        assert_eq!(make(&[("Content-Length", "0")]), 200, "{transport:?}: a program");
        assert_eq!(make(&[("Content-Length", "0"), ("Origin", server.url())]), 200, "{transport:?}: the own page");
        assert_eq!(make(&[("Content-Length", "0"), ("Origin", "http://localhost:3000")]), 200, "{transport:?}");
        // After a preflight, a page that may not read responses may still send JSON.
        assert_eq!(make(&[JSON, ("Content-Length", "0"), pages[0][0]]), 200, "{transport:?}");
    }
}

#[test]
fn the_own_origin_includes_the_scheme() {
    /// Options, headers, and whether pages with this host are the server's own if their scheme is http, and if it is
    /// https.
    type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], [bool; 2]);
    for transport in Transport::ALL {
        let own = |options: &[&str], headers: &[(&str, &str)], origin: &str| {
            let server =
                Server::dev_over(transport, [&["--force-control", "--cors-origins", "none"], options].concat());
            let headers = [&[JSON, ("Host", "node.example"), ("Origin", origin)], headers].concat();
            let controls = server.send("POST", "/dev/mine/", &headers, "{}").status;
            assert_eq!(server.send("GET", "/newBlockFilter/", &headers, "").status, controls, "reading is equal");
            assert!([200, 403].contains(&controls), "{controls}");
            controls == 200
        };
        let (http, https) = ("http://node.example", "https://node.example");
        let is_tls = transport == Transport::Tls;
        let hosts = ["--allowed-hosts", "node.example"];
        let proxied = ["--allowed-hosts", "node.example", "--trusted-proxies", "127.0.0.1"];
        let forwarded = |scheme| [("X-Forwarded-For", "203.0.113.1"), ("X-Forwarded-Proto", scheme)];
        let cases: [Case<'_>; 8] = [
            // The scheme of the connection.
            (&hosts, &[], [!is_tls, is_tls]),
            // A proxy that is not trusted may have added TLS.
            (&hosts, &forwarded("https"), [true, true]),
            (&proxied, &forwarded("https"), [false, true]),
            (&proxied, &forwarded("http"), [true, false]),
            // A trusted proxy that does not report the scheme.
            (&proxied, &[("X-Forwarded-For", "203.0.113.1")], [true, true]),
            (&proxied, &[], [true, true]),
            // A proxy that adds no header may have added TLS.
            (&["--public-url", https], &[], [false, true]),
            (
                &["--public-url", https, "--trusted-proxies", "127.0.0.1"],
                &[("X-Forwarded-For", "203.0.113.1")],
                [false, true],
            ),
        ];
        for (options, headers, expected) in cases {
            let got = [http, https].map(|origin| own(options, headers, origin));
            assert_eq!(got, expected, "{transport:?} {options:?} {headers:?}");
        }
    }
}

#[test]
fn limits_connections() {
    for transport in Transport::ALL {
        let server = Server::over(transport, ["--max-connections", "3"]);
        let mut silent = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(60);
        // Connections may be accepted in any order, so that more are opened until one is refused.
        let refused = loop {
            assert!(Instant::now() < deadline, "all of {} connections were accepted", silent.len());
            silent.push(server.connect());
            let response = server.send("GET", "/health", &[], "");
            if response.status != 200 {
                break response;
            }
            thread::sleep(Duration::from_millis(10));
        };
        if transport == Transport::Plain {
            assert_refused(&refused, 503, "max-connections");
            assert_eq!(refused.header("retry-after"), Some("1"));
        }
        let other = IpAddr::from([127, 0, 0, 2]);
        let response = server.send_from(other, "GET", "/health", &[], "");
        assert_eq!(response.status, 200, "{transport:?}: another client is served");
        drop(silent);
        while server.send("GET", "/health", &[], "").status != 200 {
            assert!(Instant::now() < deadline, "closed connections still count");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Reads until the server closes the connection. Otherwise reading times out after a minute, and the test fails.
fn until_closed(stream: &mut dyn Duplex) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Err(error) = stream.read_to_end(&mut bytes) {
        assert!([ErrorKind::ConnectionReset, ErrorKind::UnexpectedEof].contains(&error.kind()), "{error:?}");
    }
    bytes
}

#[test]
fn disconnects_silent_clients() {
    let (header_timeout, keep_alive) = (Duration::from_secs(2), Duration::from_secs(2));
    for transport in Transport::ALL {
        let config = HttpConfig {
            requests: RequestLimits { header_timeout, ..Default::default() },
            clients: ClientLimits { keep_alive, ..Default::default() },
            ..HttpConfig::default()
        };
        let (_chain, server) = super::in_process::serve_dev_over(transport, config);
        let silent: Box<dyn Duplex> = Box::new(server.connect());
        let mut slow = server.connect_securely();
        slow.write_all(b"GET /chainId/ HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").unwrap();
        for mut stream in [silent, slow] {
            // With or without a response.
            let rest = until_closed(&mut *stream);
            let ends = rest.is_empty() || rest.starts_with(b"HTTP/1.1 408");
            assert!(ends, "{transport:?}: {}", String::from_utf8_lossy(&rest));
        }
        assert_eq!(server.send("GET", "/chainId/", &[], "").status, 200, "{transport:?}");
    }
}

#[test]
fn limits_requests() {
    for transport in Transport::ALL {
        let server = Server::over(transport, ["--max-requests", "4"]);
        let begin = || server.begin(IpAddr::from([127, 0, 0, 1]), "POST", "/getLogs/", &[JSON], 2, "{");
        let mut waiting = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(60);
        let refused = loop {
            assert!(Instant::now() < deadline, "all of {} requests were accepted", waiting.len());
            waiting.push(begin());
            let response = server.get("/chainId/");
            if response.status != 200 {
                break response;
            }
            thread::sleep(Duration::from_millis(10));
        };
        assert_refused(&refused, 503, "max-requests");
        let other = IpAddr::from([127, 0, 0, 2]);
        let response = server.send_from(other, "GET", "/chainId/", &[], "");
        assert_eq!(response.status, 200, "{transport:?}: another client is served");
        let statuses: Vec<_> = waiting.into_iter().map(|begun| begun.finish("}")).collect();
        assert!(statuses.contains(&200), "{transport:?}: {statuses:?}");
        while server.get("/chainId/").status != 200 {
            assert!(Instant::now() < deadline, "finished requests still count");
        }
    }
}

#[test]
fn limits_sizes() {
    for transport in Transport::ALL {
        let server = Server::over(transport, ["--max-body", "1000"]);
        let long = "x".repeat(15_000);
        let header = |value: &str| server.send("GET", "/chainId/", &[("X-Long", value), ("X-Longer", value)], "");
        assert_refused(&header(&long), 431, "");
        assert_eq!(header("x").status, 200);
        // With Host and Connection, there are two more.
        let headers = |count: usize| server.send("GET", "/chainId/", &vec![("X-Short", "x"); count], "");
        assert_eq!(headers(94).status, 200, "{transport:?}");
        let many = headers(95);
        assert_refused(&many, 431, "");
        assert!(many.field("detail").as_str().unwrap().ends_with("more than 96 headers"), "{}", many.text);
        assert_refused(&server.post("/getLogs/", " ".repeat(1_001)), 413, "max-body");
        for media_type in [None, Some("text/plain"), Some("application/x-www-form-urlencoded")] {
            let headers = media_type.map(|media_type| ("Content-Type", media_type));
            assert_refused(&server.send("POST", "/getLogs/", headers.as_slice(), "{}"), 415, "");
        }
        let empty = server.send("POST", "/getLogs/", &[("Content-Length", "0")], "");
        assert_eq!(empty.problem_faults(400), NONE, "an empty body needs no media type");
    }
}

#[test]
fn refusals_arrive_although_the_body_is_not_read() {
    for transport in Transport::ALL {
        let server = Server::over(transport, ["--max-body", "300000"]);
        let long = "[".repeat(290_000);
        let longer = "[".repeat(500_000);
        let cases = [
            ("POST", "/getLogs/", vec![], &long, 415),
            ("POST", "/getLogs/", vec![JSON], &longer, 413),
            ("POST", "/getLogs/", vec![("Host", "evil.example"), JSON], &long, 403),
            ("POST", "/nothing/", vec![JSON], &long, 404),
            ("PUT", "/getLogs/", vec![JSON], &long, 405),
        ];
        for (method, path, headers, body, status) in cases {
            let statuses: Vec<_> = (0..20).map(|_| server.send(method, path, &headers, body).status).collect();
            assert_eq!(statuses, [status; 20], "{transport:?} {method} {path} {headers:?}");
        }
    }
}

#[test]
fn limits_queries() {
    for transport in Transport::ALL {
        let options = ["--max-block-range", "3", "--max-addresses", "1", "--max-topics", "1"];
        let more = ["--max-storage-keys", "1", "--max-filters", "1"];
        let server = Server::dev_over(transport, options.into_iter().chain(more));
        assert_eq!(server.post("/dev/mine/", json!({"Blocks": 9}).to_string()).status, 200);
        let logs = |from: u64, to: u64| {
            server.post("/getLogs/", json!({"FromBlock": from.to_string(), "ToBlock": to.to_string()}).to_string())
        };
        assert_eq!(logs(2, 4).status, 200);
        let refused = logs(2, 5);
        assert_refused(&refused, 422, "max-block-range");
        let [error] = &refused.field("errors").as_array().unwrap()[..] else { panic!("{}", refused.text) };
        assert_eq!((&error["location"], &error["value"]), (&json!("body.ToBlock"), &json!("5")));
        assert_eq!(error["message"], "the blocks up to ToBlock 4 would fit");
        assert!(refused.field("type").as_str().unwrap().ends_with("/problems/limit-exceeded"));

        let word = format!("0x{}", "01".repeat(32));
        let address = format!("0x{}", "01".repeat(20));
        let cases = [
            ("getLogs", json!({"Address": [address, address]}), "max-addresses"),
            ("getLogs", json!({"Topics": [[word, word]]}), "max-topics"),
            ("getProof", json!({"Address": address, "StorageKeys": ["1", "2"]}), "max-storage-keys"),
            ("feeHistory", json!({"RewardPercentiles": vec![1; 101]}), ""),
        ];
        for (operation, body, option) in cases {
            assert_refused(&server.post(&format!("/{operation}/"), body.to_string()), 422, option);
        }
        assert_eq!(server.get("/newBlockFilter/").status, 200);
        let refused = server.get("/newBlockFilter/");
        assert_refused(&refused, 429, "max-filters");
        assert!(refused.header("retry-after").is_some());
    }
}

fn error(response: &Response) -> String {
    response.body["error"]["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn control_can_be_switched_off_or_moved() {
    let mine = r#"{"jsonrpc":"2.0","id":1,"method":"evm_mine","params":[]}"#;
    for transport in Transport::ALL {
        let server = Server::dev_over(transport, ["--no-control"]);
        let refused = server.post("/dev/mine/", "{}");
        assert_eq!(refused.problem_faults(403), NONE, "{}", refused.text);
        assert!(refused.text.contains("`no-control`"), "{}", refused.text);
        let refused = error(&server.post("/", mine));
        assert!(refused.starts_with("evm_mine is refused: ") && refused.ends_with("(`no-control`)"), "{refused}");
    }

    let address = format!("127.0.0.1:{}", free_port());
    let server = Server::dev(["--control-listen", &address]);
    let refused = server.post("/dev/mine/", "{}");
    assert!(refused.status == 403 && refused.text.contains("`control-listen`"), "{}", refused.text);
    assert!(error(&server.post("/", mine)).ends_with("(`control-listen`)"));
    let control = Server::at(address.parse().unwrap());
    assert_eq!(control.post("/dev/mine/", "{}").status, 200);
    // A proxy in front of this address is the operator's.
    let headers = [("X-Forwarded-For", "203.0.113.5"), ("Content-Type", "application/json")];
    assert_eq!(error(&control.send("POST", "/", &headers, mine)), "");
    // Pages of other origins are refused here, too.
    let headers = [("Origin", "https://evil.example"), ("Content-Type", "application/json")];
    assert_eq!(control.send("POST", "/dev/mine/", &headers, "{}").status, 403);
    assert_eq!(server.get("/blockNumber/").field("BlockNumber"), "2");
}

#[test]
fn refused_control_over_json_rpc_names_the_option_and_is_logged() {
    for transport in Transport::ALL {
        let server = Server::dev_over(transport, NONE);
        let headers = [("Origin", "chrome-extension://abcdef"), ("Content-Type", "application/json")];
        let body = |method: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":[]}}"#);
        assert_eq!(error(&server.send("POST", "/", &headers, &body("eth_blockNumber"))), "");
        assert_eq!(server.logged("operation=\"eth_blockNumber\""), 1);
        assert!(!server.log().contains("refused a page"), "{}", server.log());
        let refused = error(&server.send("POST", "/", &headers, &body("evm_mine")));
        let reason = "a page of this origin may control the chain only if `cors-origins` allows it, with =control after the \
                      origin";
        assert_eq!(refused, format!("evm_mine is refused: {reason}"));
        assert_eq!(server.logged("add its origin with =control to --cors-origins to allow it"), 1);
    }
}

#[test]
fn tokens_have_roles() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    let names = ["metrics", "read", "send", "control"];
    let token = |role: &str| format!("token-with-role-{role}");
    let lines: Vec<_> = names.iter().map(|role| format!("{} {role}\n", token(role))).collect();
    fs::write(&file, lines.concat()).unwrap();
    let metrics = format!("127.0.0.1:{}", free_port());
    for transport in Transport::ALL {
        let server = Server::dev_over(
            transport,
            ["--token-file".as_ref(), file.as_os_str(), "--metrics-addr".as_ref(), metrics.as_ref()],
        );
        let send = |server: &Server, role: &str, method: &str, path: &str, body: &str| {
            let bearer = format!("Bearer {}", token(role));
            let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
            server.send(method, path, &headers, body)
        };
        // What each of the tokens gets from a read, an attempt to send, control, and the metrics.
        let raw = r#"{"Data":"0x00"}"#;
        let expected = [[403, 403, 403, 200], [200, 403, 403, 401], [200, 422, 403, 401], [200, 422, 200, 401]];
        let scraped = Server::at(metrics.parse().unwrap());
        for (role, expected) in names.into_iter().zip(expected) {
            let statuses = [
                send(&server, role, "GET", "/chainId/", "").status,
                send(&server, role, "POST", "/sendRawTransaction/", raw).status,
                send(&server, role, "POST", "/dev/mine/", "{}").status,
                send(&scraped, role, "GET", "/metrics", "").status,
            ];
            assert_eq!(statuses, expected, "{role}");
        }
        assert_eq!(send(&server, "other", "GET", "/chainId/", "").status, 401);
        let call = |role: &str, method: &str, parameters: &str| {
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{parameters}}}"#);
            error(&send(&server, role, "POST", "/", &body))
        };
        assert_eq!(call("read", "eth_chainId", "[]"), "");
        assert!(call("read", "eth_sendRawTransaction", "[\"0x00\"]").contains("role send"));
        assert!(!call("send", "eth_sendRawTransaction", "[\"0x00\"]").contains("role send"));
        assert!(call("send", "evm_mine", "[]").contains("refused"));
        assert_eq!(call("control", "evm_mine", "[]"), "");
    }
}

#[test]
fn namespaces_can_be_switched_off() {
    for transport in Transport::ALL {
        let server = Server::dev_over(transport, ["--api", "net,debug_traceCall,getLogs"]);
        let call = |method: &str| {
            let response = server.post("/", format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#));
            (response.body["error"]["code"].as_i64().unwrap_or_default(), error(&response))
        };
        assert_eq!(call("net_version").0, 0);
        assert_eq!(call("debug_traceCall").0, -32602, "its parameters are missing");
        for method in ["eth_chainId", "debug_traceTransaction", "evm_mine"] {
            assert_eq!(call(method), (-32601, format!("the method {method} is switched off (`api`)")));
        }
        let modules = server.post("/", r#"{"jsonrpc":"2.0","id":1,"method":"rpc_modules"}"#);
        assert_eq!(modules.body["result"], json!({"debug": "1.0", "net": "1.0", "rpc": "1.0"}));
        let off = server.get("/chainId/");
        assert_eq!(off.problem_faults(404), NONE, "{}", off.text);
        assert!(off.text.contains("chainId is switched off (`api`)"), "{}", off.text);
        assert_eq!(server.post("/dev/mine/", "{}").status, 404);
        let statuses =
            [server.post("/getLogs/", "{}").status, server.get("/ready").status, server.get("/openapi.json").status];
        assert_eq!(statuses, [200; 3]);
    }
}

#[test]
fn a_start_that_must_fail_creates_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let used = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = used.local_addr().unwrap().to_string();
    let (_, port) = address.split_once(':').unwrap();
    let unknown = "\"nonsense\" is neither one of the namespaces anvil, debug, dev, erigon, eth";
    // With status 2, starting the server again would not help.
    let cases: [(&[&str], &str, i32); 9] = [
        (&["dev", "--api", "eth,nonsense"], unknown, 2),
        (&["run", "--api", "eth,nonsense"], unknown, 2),
        (&["dev", "--port", port], "cannot listen on", 1),
        (&["run", "--port", port], "cannot listen on", 1),
        (&["dev", "--control-listen", &address], "cannot listen on", 1),
        (&["dev", "--metrics-addr", &address], "cannot listen on", 1),
        (&["dev", "--load-state", "/nonexistent"], "cannot read /nonexistent", 2),
        (&["run", "--import", "/nonexistent"], "cannot read /nonexistent", 2),
        (&["import", "/nonexistent"], "cannot read /nonexistent", 1),
    ];
    for (arguments, reason, status) in cases {
        let mut server = node_server();
        let output = server.args(arguments).arg("--data-dir").arg(&data).env("ETHNODE_PORT", "0").output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(status) && text.contains(reason), "{arguments:?}: {text}");
        assert!(!data.exists(), "{arguments:?}");
    }
}

#[test]
fn run_serves_the_namespaces_that_geth_does() {
    let modules = |server: &Server| {
        let response = server.post("/", r#"{"jsonrpc":"2.0","id":1,"method":"rpc_modules"}"#);
        response.body["result"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    let server = Server::start(NONE);
    assert_eq!(modules(&server), ["eth", "net", "rpc", "web3"]);
    assert_eq!(server.get("/chainId/").status, 200);
    assert_eq!(modules(&Server::start(["--api", "debug,txpool"])), ["debug", "rpc", "txpool"]);
}

#[test]
fn serves_the_documented_metrics() {
    let address = format!("127.0.0.1:{}", free_port());
    let server = Server::dev(["--metrics-addr", &address]);
    for _ in 0..3 {
        assert_eq!(server.get("/chainId/").status, 200);
    }
    assert_eq!(server.post("/getLogs/", "[").status, 400);
    assert_eq!(server.send("GET", "/chainId/", &[("Host", "evil.example")], "").status, 403);
    assert_eq!(server.post("/dev/mine/", json!({"Blocks": 5}).to_string()).status, 200);
    let call = |method: &str| json!({"jsonrpc": "2.0", "id": 1, "method": method});
    let batch = json!([call("eth_chainId"), call("eth_chainId"), call("eth_nonsense")]);
    assert_eq!(server.post("/", batch.to_string()).status, 200);
    let foreign = Server::at(address.parse().unwrap()).send("GET", "/metrics", &[("Host", "evil.example")], "");
    assert_eq!(foreign.status, 403, "a page whose name was bound to this address");
    let plain = scrape(&address, "*/*");
    assert!(plain.contains("content-type: text/plain; version=0.0.4"), "{plain}");
    assert!(plain.contains("# TYPE ethnode_http_requests_total counter"), "{plain}");
    assert!(!plain.contains("# EOF"), "{plain}");
    let text = scrape(&address, "application/openmetrics-text; version=1.0.0");
    assert!(text.contains("content-type: application/openmetrics-text"), "{text}");
    for line in [
        r#"ethnode_rpc_calls_total{method="eth_chainId",code="0"} 2"#,
        r#"ethnode_rpc_calls_total{method="rpc",code="-32601"} 1"#,
        r#"ethnode_http_requests_total{operation="batch",status="200"} 1"#,
        r#"ethnode_http_requests_total{operation="chainId",status="200"} 3"#,
        r#"ethnode_http_requests_total{operation="chainId",status="403"} 1"#,
        r#"ethnode_http_requests_total{operation="getLogs",status="400"} 1"#,
        r#"ethnode_http_request_duration_seconds_count{operation="chainId"} 4"#,
        r#"ethnode_http_refused_total{limit="allowed-hosts"} 1"#,
        "ethnode_head_number 5",
        "ethnode_blocks_added_total 5",
        "ethnode_blocks_removed_total 0",
        r#"ethnode_executor_queue{pool="call"} 0"#,
        r#"ethnode_txpool_transactions{state="pending"} 0"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    for name in [
        "ethnode_cache_hits_total{cache=\"block_bodies\"}",
        "ethnode_build_info{version=",
        "ethnode_filters 0",
        "ethnode_import_gas_total 0",
    ] {
        assert!(text.contains(name), "{name} is not in\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
    // docs/metrics.md lists exactly the metrics that are served.
    let reported = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let reported: BTreeSet<_> = reported
        .map(|line| match line.split_once(' ').unwrap() {
            (name, "counter") => format!("{name}_total"),
            (name, _) => name.to_owned(),
        })
        .collect();
    // Only forks have endpoints.
    let rows = include_str!("../../../docs/metrics.md").lines().filter(|row| !row.contains("| `endpoint` |"));
    let documented = rows.filter_map(|row| Some(row.strip_prefix("| `")?.split_once('`')?.0.to_owned()));
    assert_eq!(reported, documented.collect());
    // If the metrics port is in use, the start fails.
    let output = run_to_end(["--metrics-addr", &address]);
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains(&address));
    assert_eq!(server.get("/metrics").status, 404, "clients do not see them");
}

/// The response with the metrics in a format that the client accepts.
fn scrape(address: &str, accept: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    text
}

#[test]
fn limits_streams() {
    for transport in Transport::ALL {
        let server = Server::over(transport, ["--max-streams", "2"]);
        let begin = |last| server.begin(IpAddr::from([127, 0, 0, last]), "GET", "/events/", &[], 0, "").responding();
        let first = begin(1);
        assert_refused(&server.get("/events/"), 503, "max-streams");
        let other = begin(2);
        assert_eq!([first.status(), other.status()], [200, 200], "{transport:?}: another client is served");
    }
}

#[test]
fn closes_idle_connections() {
    let keep_alive = Duration::from_millis(300);
    for transport in Transport::ALL {
        let (_chain, server) = super::in_process::serve_dev_over(
            transport,
            HttpConfig { clients: ClientLimits { keep_alive, ..Default::default() }, ..HttpConfig::default() },
        );
        let mut idle = server.connect_securely();
        idle.write_all(b"GET /chainId/ HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let bytes = until_closed(&mut *idle);
        assert!(bytes.starts_with(b"HTTP/1.1 200"), "{transport:?}: {}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn keeps_streams_alive() {
    let stream_keep_alive = Duration::from_millis(50);
    let (_chain, server) = super::in_process::serve_dev(HttpConfig {
        requests: RequestLimits { stream_keep_alive, ..Default::default() },
        ..HttpConfig::default()
    });
    let mut stream = server.connect();
    write!(stream, "GET /events/ HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut reported = Vec::new();
    while reported.windows(12).filter(|window| *window == b": keep-alive").count() < 3 {
        let mut piece = [0; 1_024];
        let length = stream.read(&mut piece).unwrap();
        assert!(length > 0, "{}", String::from_utf8_lossy(&reported));
        reported.extend_from_slice(&piece[..length]);
    }
}

#[test]
fn limits_the_pool() {
    for transport in Transport::ALL {
        let transfer = |nonce| hex(&sign(TransactionBody::Legacy(transfer(nonce))).encode());
        for option in [["--pool-transactions", "1"], ["--pool-bytes", "150"]] {
            let server = Server::dev_over(transport, option.into_iter().chain(["--no-mining"]));
            let send = |nonce| server.post("/sendRawTransaction/", json!({"Data": transfer(nonce)}).to_string());
            assert_eq!(send(0).status, 200, "{option:?}");
            let refused = send(1);
            assert_eq!(refused.problem_faults(422), NONE, "{option:?}: {}", refused.text);
            assert!(refused.field("type").as_str().unwrap().ends_with("/transaction-rejected"), "{}", refused.text);
            assert!(refused.text.contains(&option[0][2..]), "{}", refused.text);
        }
        for (limit, option) in [("1", "`pool-queued`"), ("1000", "64")] {
            let server = Server::dev_over(transport, ["--pool-queued", limit, "--no-mining"]);
            let send = |nonce| server.post("/sendRawTransaction/", json!({"Data": transfer(nonce)}).to_string());
            // The limit of an account is not an option.
            let accepted = if limit == "1" { 1 } else { 64 };
            for nonce in 0..accepted {
                assert_eq!(send(5 + nonce).status, 200, "{nonce} of {limit}");
            }
            let refused = send(5 + accepted);
            assert!(refused.status == 422 && refused.text.contains(option), "{}", refused.text);
        }
    }
}

#[test]
fn refuses_invalid_settings() {
    let cases = [
        (["--rate-limit", "0"], "rate-limit"),
        (["--allowed-hosts", "http://a"], "allowed-hosts"),
        (["--cors-origins", "wallet.example"], "cors-origins"),
        (["--tls-cert", "cert.pem"], "tls-key"),
        (["--metrics-addr", "9100"], "metrics-addr"),
    ];
    for (arguments, option) in cases {
        let output = run_to_end(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && stderr.contains(option), "{arguments:?}: {stderr}");
    }
}
