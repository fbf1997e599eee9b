//! HTTP: paths, methods, headers and framing.

use crate::server::Server;
use crate::wallet::{ALICE, hex, sign, transfer};
use node_http::{HttpConfig, RequestLimits};
use node_types::consensus::TransactionBody;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const NONE: [&str; 0] = [];

const JSON: (&str, &str) = ("Content-Type", "application/json");

/// The end of a body is found at once, however its length is written, and an upgrade of a POST request is ignored (RFC
/// 9110, section 7.8).
#[test]
fn padded_lengths_and_ignored_upgrades_do_not_delay_a_response() {
    let server = Server::dev(NONE);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId"}).to_string();
    let length = body.len();
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    let heads = [
        (format!("Content-Length:{}{length}", " \t".repeat(100)), &body[..], "200"),
        (format!("Content-Length: {}{length}", "0".repeat(300)), &body, "200"),
        (format!("{upgrade}Content-Length: {length}"), &body, "200"),
        (format!("{upgrade}Content-Length: 0"), "", "200"),
        (format!("{upgrade}X-Nothing: 0"), "", "200"),
    ];
    for (head, body, status) in heads {
        let mut stream = server.connect();
        let started = Instant::now();
        write!(stream, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{head}\r\n\r\n{body}")
            .unwrap();
        let mut start = [0; 12];
        stream.read_exact(&mut start).unwrap();
        assert_eq!(str::from_utf8(&start[9..]), Ok(status), "{head}");
        assert!(started.elapsed() < Duration::from_secs(5), "{head}: {:?}", started.elapsed());
    }
}

#[test]
fn accepts_prefixes_slashes_and_defaults() {
    let server = Server::start(NONE);
    let block = server.get("/getBlockByNumber/latest/false/").body["Block"].take();
    for path in [
        "/getBlockByNumber",
        "/getBlockByNumber/",
        "/getBlockByNumber/0",
        "/getBlockByNumber/0x00/",
        "/getBlockByNumber/earliest/false",
        "/node_getBlockByNumber",
        "/node_getBlockByNumber/latest/",
        "/node_getBlockByNumber/%6Catest/false/",
    ] {
        let response = server.get(path);
        assert_eq!((response.status, response.field("Block")), (200, &block), "{path}");
    }
    for path in ["/chainId", "/chainId/", "/node_chainId", "/node_chainId/"] {
        assert_eq!(server.get(path).field("ChainId"), &json!("31337"), "{path}");
    }
    for path in ["/getLogs", "/getLogs/", "/node_getLogs", "/node_getLogs/"] {
        assert_eq!(server.post(path, "{}").field("Logs"), &json!([]), "{path}");
    }
    for path in ["/chainId//", "//chainId/", "/node_/chainId/", "/chainid/", "/node_node_chainId/", "/./chainId/"] {
        let response = server.send("GET", path, &[], "");
        assert_eq!(response.problem_faults(404), NONE, "{path}: {}", response.text);
    }
}

#[test]
fn methods_of_each_path() {
    let server = Server::start(NONE);
    let cases = [
        ("HEAD", "/chainId/", 200, None),
        ("HEAD", "/getBlockByNumber/", 200, None),
        ("HEAD", "/health", 200, None),
        ("OPTIONS", "/health", 204, Some("GET, HEAD, OPTIONS")),
        ("POST", "/health", 405, Some("GET, HEAD, OPTIONS")),
        ("DELETE", "/health/", 405, Some("GET, HEAD, OPTIONS")),
        ("HEAD", "/getLogs/", 405, Some("POST, OPTIONS")),
        ("HEAD", "/getFilterChanges/1/", 405, Some("GET, OPTIONS")),
        ("HEAD", "/newBlockFilter/", 405, Some("GET, POST, OPTIONS")),
        ("OPTIONS", "/getLogs/", 204, Some("POST, OPTIONS")),
        ("OPTIONS", "/chainId", 204, Some("GET, HEAD, OPTIONS")),
        ("OPTIONS", "/nothing/", 404, None),
        ("GET", "/node_getLogs", 405, Some("POST, OPTIONS")),
        ("POST", "/chainId/", 405, Some("GET, HEAD, OPTIONS")),
        ("PUT", "/getLogs/", 405, Some("POST, OPTIONS")),
        ("DELETE", "/uninstallFilter/1/", 405, Some("GET, OPTIONS")),
        ("BREW", "/newBlockFilter", 405, Some("GET, POST, OPTIONS")),
        ("POST", "/schemas/ErrorModel.json", 405, Some("GET, HEAD, OPTIONS")),
    ];
    for (method, path, status, allow) in cases {
        let response = server.send(method, path, &[], "");
        assert_eq!((response.status, response.header("allow")), (status, allow), "{method} {path}: {}", response.text);
        if ["HEAD", "OPTIONS"].contains(&method) && status < 300 {
            assert_eq!(response.text, "", "{method} {path}");
        } else if method != "HEAD" {
            assert_eq!(response.problem_faults(status), NONE, "{method} {path}: {}", response.text);
        }
    }
    let (head, get) = (server.send("HEAD", "/chainId/", &[], ""), server.get("/chainId/"));
    assert_eq!(head.header("content-length"), Some(get.text.len().to_string().as_str()));
}

#[test]
fn no_store_only_where_something_changes() {
    let server = Server::start(NONE);
    let raw = hex(&sign(TransactionBody::Legacy(transfer(0))).encode());
    let filter = json!({"FilterObject": {"Address": "", "FromBlock": "", "ToBlock": "", "Topics": []}});
    let cases = [
        ("GET", "/newBlockFilter/", Value::Null, true),
        ("POST", "/newBlockFilter/", Value::Null, true),
        ("GET", "/newPendingTransactionFilter/", Value::Null, true),
        ("POST", "/newPendingTransactionFilter/", Value::Null, true),
        ("POST", "/newFilter/", filter, true),
        ("POST", "/newFilter/", json!({}), true),
        ("GET", "/getFilterChanges/7/", Value::Null, true),
        ("GET", "/getFilterLogs/7/", Value::Null, true),
        ("GET", "/uninstallFilter/7/", Value::Null, true),
        ("POST", "/sendRawTransaction/", json!({"Data": raw}), true),
        ("POST", "/getLogs/", json!({}), false),
    ];
    for (method, path, body, forbidden) in cases {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let response = server.send(method, path, &[JSON], &body);
        assert_eq!(
            response.header("cache-control"),
            forbidden.then_some("no-store"),
            "{method} {path}: {}",
            response.text
        );
    }
}

#[test]
fn urls_in_responses() {
    let plain = Server::start(["--allowed-hosts", "*"]);
    let public = Server::start(["--public-url", "https://node.example/proxy/", "--base-path", "/v1"]);
    let cases = [
        (&plain, "/chainId/", "node.local", "http://node.local"),
        (&plain, "/chainId/", "[::1]:80", "http://[::1]:80"),
        (&plain, "/chainId/", "", plain.url()),
        (&public, "/v1/chainId/", "127.0.0.1", "https://node.example/proxy/v1"),
    ];
    for (server, path, host, base) in cases {
        let response = server.send("GET", path, &[("Host", host)], "");
        let schema = format!("{base}/schemas/Output_chainId.json");
        assert_eq!(response.field("$schema"), &json!(schema), "{host}");
        assert_eq!(response.header("link"), Some(format!("<{schema}>; rel=\"describedBy\"").as_str()), "{host}");
        assert!(response.text.starts_with("{\"$schema\":"), "{host}: {}", response.text);
    }
    for host in ["a\"b", "a/b", "<script>", "user@host", "[::1", "host:99999", ":"] {
        let refused = plain.send("GET", "/chainId/", &[("Host", host)], "");
        assert_eq!(refused.problem_faults(400), NONE, "{host}");
        assert_eq!(refused.field("type"), "about:blank", "{host}");
    }
    let problem = public.get("/v1/getFilterChanges/7/");
    assert_eq!(problem.field("type"), "https://node.example/proxy/v1/problems/filter-not-found");
}

#[test]
fn every_response_has_a_unique_id() {
    let server = Server::start(NONE);
    let responses =
        [server.get("/chainId/"), server.get("/chainId/"), server.get("/none/"), server.post("/getLogs/", "x")];
    let ids: Vec<_> = responses.iter().map(|response| response.header("x-request-id").unwrap_or_default()).collect();
    for (index, id) in ids.iter().enumerate() {
        assert_eq!(id.len(), 36, "{id}");
        assert!(!ids[..index].contains(id), "{ids:?}");
    }
    for response in &responses[2..] {
        assert_eq!(response.problem_faults(response.status), NONE, "{}", response.text);
    }
}

#[test]
fn ids_of_requests_are_taken_over() {
    let server = Server::start(NONE);
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("00-{trace}-00f067aa0ba902b7-01");
    let cases = [
        ("/none/", "5d9c3f6e-9f0c-4a53-8a53-0f3f6f0c2a11", "urn:uuid:5d9c3f6e-9f0c-4a53-8a53-0f3f6f0c2a11"),
        ("/none/", "proxy-1:7", "urn:request-id:proxy-1:7"),
    ];
    for (path, id, instance) in cases {
        let response = server.send("GET", path, &[("X-Request-Id", id), ("traceparent", &parent)], "");
        assert_eq!(response.header("x-request-id"), Some(id));
        assert_eq!(response.header("traceparent"), Some(&*parent));
        assert_eq!(response.field("instance"), instance);
        assert!(server.logged(&format!(" id={id} ")) == 1 && server.log().contains(&format!("trace_id=\"{trace}\"")));
    }
    let response = server.send("GET", "/none/", &[("X-Request-Id", "two words"), ("traceparent", "00-1-2-3")], "");
    assert_eq!(response.header("x-request-id").map(str::len), Some(36));
    assert_eq!(response.header("traceparent"), None);
    // Each call of a batch has the id, the method and the path of its message.
    let headers = [("X-Request-Id", "batch-1"), ("Content-Type", "application/json")];
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#;
    assert_eq!(server.send("POST", "/", &headers, &format!("[{call},{call}]")).status, 200);
    while server.logged(" id=batch-1 ") < 3 {
        std::thread::yield_now();
    }
    let line = " id=batch-1 client=127.0.0.1 method=\"POST\" path=\"/\" operation=\"eth_chainId\" micros=";
    assert_eq!(server.logged(line), 2, "{}", server.log());
}

#[test]
fn framing_and_media_types_of_bodies() {
    let limits = HttpConfig {
        requests: RequestLimits { max_body: 1_000, body_timeout: Duration::from_secs(1), ..Default::default() },
        ..HttpConfig::default()
    };
    let (_chain, server) = super::in_process::serve_dev(limits);
    let long = format!("3e9\r\n{}\r\n0\r\n\r\n", " ".repeat(1001));
    let chunked = ("Transfer-Encoding", "chunked");
    let cases = [
        ("chunks", chunked, "1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", 200),
        ("many bytes", chunked, long.as_str(), 413),
        ("a chunk that is none", chunked, "x\r\n{}\r\n0\r\n\r\n", 400),
        ("a chunk of 2^64 bytes", chunked, "ffffffffffffffff1\r\n{}", 400),
        ("a chunk that ends early", chunked, "5\r\n{}\r\n0\r\n\r\n", 400),
        ("chunks that do not end", chunked, "2\r\n{}\r\n", 408),
        ("a length beyond the limit", ("Content-Length", "1001"), "{}", 413),
        ("a length that is not reached", ("Content-Length", "3"), "{}", 408),
        ("no media type", ("X-None", ""), "{}", 415),
        ("a type of another kind", ("Content-Type", "text/plain"), "{}", 415),
    ];
    for (name, header, body, status) in cases {
        let typed = header.0 == "Content-Type" || name == "no media type";
        let headers = if typed { vec![header] } else { vec![header, JSON] };
        let response = server.send("POST", "/getLogs/", &headers, body);
        assert_eq!(response.status, status, "{name}: {}", response.text);
        if status != 200 {
            assert_eq!(response.problem_faults(status), NONE, "{name}: {}", response.text);
        }
    }
    let with_body = server.send("GET", "/chainId/", &[], "not wanted");
    assert_eq!(with_body.field("ChainId"), &json!("31337"));
}

/// A request after a response that announces the end of the connection must not be processed (RFC 9112, section 9.6).
#[test]
fn requests_after_the_end_of_a_connection_are_not_processed() {
    let server = Server::dev(NONE);
    let mut stream = server.connect();
    let post = |origin: &str| {
        let head = "POST /dev/mine/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2";
        format!("{head}{origin}\r\n\r\n{{}}")
    };
    let requests = post("\r\nOrigin: null") + &post("").repeat(3);
    stream.write_all(requests.as_bytes()).unwrap();
    let mut responses = String::new();
    stream.read_to_string(&mut responses).unwrap();
    assert!(responses.starts_with("HTTP/1.1 403") && responses.contains("connection: close"), "{responses}");
    assert_eq!(responses.matches("HTTP/1.1 200").count(), 0, "{responses}");
    assert_eq!(server.get("/blockNumber/").field("BlockNumber"), &json!("0"));
}

/// The end may be announced by the client, by its version, or by the server, which does not read a refused body.
#[test]
fn nothing_is_processed_after_the_end_of_a_connection() {
    let server = Server::dev(NONE);
    let json = "Content-Type: application/json\r\nContent-Length: 2";
    let mine = format!("POST /dev/mine/ HTTP/1.1\r\nHost: localhost\r\n{json}\r\n\r\n{{}}");
    for last in [
        "GET /chainId/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".to_owned(),
        format!("POST /getLogs/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{json}\r\n\r\n{{}}"),
        "GET /chainId/ HTTP/1.0\r\nHost: localhost\r\n\r\n".to_owned(),
        "GET /chainId/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc".to_owned(),
    ] {
        let mut stream = server.connect();
        stream.write_all(format!("{last}{mine}{mine}").as_bytes()).unwrap();
        let started = Instant::now();
        let mut responses = String::new();
        stream.read_to_string(&mut responses).unwrap();
        assert_eq!(responses.matches("HTTP/1.").count(), 1, "{last:?}: {responses}");
        assert!(started.elapsed() < Duration::from_secs(30), "{last:?}: the connection remained open");
    }
    assert_eq!(server.get("/blockNumber/").field("BlockNumber"), &json!("0"));
}

/// Each response is written for its own request, whatever was sent ahead in the meantime.
#[test]
fn each_of_pipelined_responses_belongs_to_its_request() {
    let server = Server::dev(NONE);
    let chunked = "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1;x=y\r\n}\r\n0\r\n\r\n";
    let kinds = [
        "GET /chainId/ HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        "HEAD /chainId/ HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        "POST /getLogs/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
            .to_owned(),
        format!("POST /getLogs/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{chunked}"),
        "GET /chainId/ HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n".to_owned(),
    ];
    let read = |stream: &mut TcpStream, has_body: bool| {
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
        let mut body = vec![0; if has_body { length } else { 0 }];
        stream.read_exact(&mut body).unwrap();
        let version = head.split(' ').next().unwrap().to_owned();
        (version, String::from_utf8(body).unwrap())
    };
    let mut stream = server.connect();
    for first in &kinds {
        for second in &kinds {
            for third in &kinds {
                let requests = [first, second, third];
                stream.write_all(requests.map(String::as_str).concat().as_bytes()).unwrap();
                for request in requests {
                    let (version, body) = read(&mut stream, !request.starts_with("HEAD"));
                    let expected = if request.contains("HTTP/1.0") { "http/1.0" } else { "http/1.1" };
                    assert_eq!(version, expected, "{requests:?}");
                    let schema = if request.contains("getLogs") { "Output_getLogs" } else { "Output_chainId" };
                    assert!(request.starts_with("HEAD") || body.contains(schema), "{requests:?}: {body}");
                }
            }
        }
    }
}

/// The time for the headers is that of each request, not only of the first one.
#[test]
fn half_of_a_head_ends_the_connection() {
    let config = HttpConfig {
        requests: RequestLimits { header_timeout: Duration::from_millis(500), ..Default::default() },
        ..HttpConfig::default()
    };
    let (_chain, server) = super::in_process::serve_dev(config);
    for half in ["G", "GET /chainId/ HTTP/1.1\r\n", "\r\n"] {
        let mut stream = server.connect();
        stream.write_all(format!("GET /chainId/ HTTP/1.1\r\nHost: localhost\r\n\r\n{half}").as_bytes()).unwrap();
        let mut responses = String::new();
        stream.read_to_string(&mut responses).unwrap();
        let statuses: Vec<_> = responses.split("HTTP/1.1 ").skip(1).map(|response| &response[..3]).collect();
        assert_eq!(statuses, ["200", "408"], "{half:?}: {responses}");
    }
}

#[test]
fn pipelined_responses_are_in_order() {
    let server = Server::start(NONE);
    let mut stream = server.connect();
    let paths = ["/chainId/", "/none/", "/getBlockByNumber/", "/blockNumber/"];
    for (index, path) in paths.iter().enumerate() {
        let connection = if index + 1 == paths.len() { "close" } else { "keep-alive" };
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: {connection}\r\n\r\n").unwrap();
    }
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let schemas: Vec<_> =
        text.split("/schemas/").filter_map(|rest| rest.split(".json\",").nth(1).and(rest.split('.').next())).collect();
    assert_eq!(schemas, ["Output_chainId", "ErrorModel", "Output_getBlockByNumber", "Output_blockNumber"], "{text}");
}

#[test]
fn long_values_are_not_echoed() {
    let (_chain, server) = super::in_process::serve_dev(HttpConfig {
        requests: RequestLimits { max_headers: 100_000, ..Default::default() },
        ..HttpConfig::default()
    });
    let long = "x".repeat(20_000);
    let pairs: Vec<_> = (0..5_000).map(|number| format!("x{number}=")).collect();
    let cases = [
        format!("/getBlockByNumber/{long}/"),
        format!("/getFilterChanges/{long}/"),
        format!("/getFilterLogs/{}/", "%22".repeat(7_000)),
        format!("/getBalance/{ALICE}/?{long}"),
        format!("/getBalance/{ALICE}/?x={long}"),
        format!("/getBalance/{ALICE}/?BlockNumber={long}"),
        format!("/getBalance/{ALICE}/?{}", pairs.join("&")),
        format!("/{long}/"),
    ];
    for path in cases {
        let response = server.get(&path);
        assert!([404, 422].contains(&response.status), "{}", response.status);
        assert!(response.text.len() < 12_000, "{} bytes for {}", response.text.len(), &path[..60]);
    }
    for body in [
        format!("{{\"{long}\":1}}"),
        format!("{{\"Address\":\"{long}\"}}"),
        format!("{{\"Topics\":[[{{\"{long}\":1}}]]}}"),
    ] {
        let response = server.post("/getLogs/", &body);
        assert_eq!(response.problem_faults(422), NONE, "{}", &body[..20]);
        assert!(response.text.len() < 3_000, "{} bytes for {}", response.text.len(), &body[..20]);
    }
    let cursor = server.post(&format!("/getLogs/?cursor={long}"), "{}");
    assert!(cursor.status == 422 && cursor.text.len() < 3_000, "{}", cursor.text.len());
}

#[test]
fn compressed_bodies_are_read_within_the_limit() {
    let server = Server::start(["--max-body", "1000000"]);
    // {"FromBlock":"0"}
    let gzip = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 171, 86, 114, 43, 202, 207, 117, 202, 201, 79, 206, 86, 178, 82, 50, 80, 170,
        5, 0, 92, 183, 99, 227, 17, 0, 0, 0,
    ];
    let deflate =
        [120, 156, 171, 86, 114, 43, 202, 207, 117, 202, 201, 79, 206, 86, 178, 82, 50, 80, 170, 5, 0, 52, 50, 5, 106];
    let send = |encoding: &str, body: &[u8]| {
        let mut stream = server.connect();
        let length = body.len();
        write!(
            stream,
            "POST /getLogs/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Connection: close\r\nContent-Encoding: {encoding}\r\nContent-Length: {length}\r\n\r\n"
        )
        .unwrap();
        stream.write_all(body).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    for (encoding, body, status) in [
        ("gzip", &gzip[..], "200"),
        ("deflate", &deflate, "200"),
        ("identity", b"{}", "200"),
        ("br", b"nonsense", "400"),
        ("zstd", b"nonsense", "400"),
        ("gzip", &deflate, "400"),
        ("gzip", &gzip[..20], "400"),
        ("compress", b"{}", "415"),
        ("gzip, gzip", &gzip, "415"),
    ] {
        let response = send(encoding, body);
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{encoding}: {response}");
    }
    assert!(send("compress", b"{}").contains("accept-encoding: gzip, deflate, br, zstd"));
}

#[test]
fn parameters_without_a_meaning_for_servers_are_ignored() {
    let server = Server::start(NONE);
    for (path, status) in [
        ("/chainId/?_=1700000000", 200),
        ("/chainId/?utm_source=x&utm_medium=%", 200),
        (&*format!("/getBalance/{ALICE}/?_=1&BlockNumber=0&utm_id="), 200),
        ("/chainId/?__=1", 422),
        ("/chainId/?utm=1", 422),
    ] {
        assert_eq!(server.get(path).status, status, "{path}");
    }
}

#[test]
fn booleans_in_paths_may_be_written_as_languages_print_them() {
    let server = Server::start(NONE);
    let block = |flag: &str| server.get(&format!("/getBlockByNumber/0/{flag}/"));
    for flag in ["true", "True", "TRUE", "t", "T", "1", "false", "False", "FALSE", "f", "F", "0"] {
        assert_eq!(block(flag).status, 200, "{flag}");
    }
    for flag in ["yes", "tRUE", "2", "%20true"] {
        let refused = block(flag);
        assert_eq!(refused.problem_faults(422), NONE, "{flag}");
        assert_eq!(refused.locations(), ["path.TransactionDetailFlag"], "{flag}");
    }
}

#[test]
fn what_is_not_a_request_gets_a_problem() {
    let server = Server::start(NONE);
    let long = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(100_000));
    for (request, status, detail) in [
        ("garbage\r\n\r\n", 400, "must begin with a method"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "must begin with a method"),
        ("GET /chainId/ HTTP/9.9\r\nHost: localhost\r\n\r\n", 400, "must begin with a method"),
        ("GET /chainId/ HTTP/1.1\r\n\r\n", 400, "no header Host"),
        ("GET /chainId/ HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n", 400, "more than one header Host"),
        (
            "GET /chainId/ HTTP/1.1\r\nHost: evil.example/.localhost\r\nConnection: close\r\n\r\n",
            400,
            "header Host is not a host name",
        ),
        ("GET /chainId/ HTTP/1.1\r\nHost: localhost\r\nBad Header: x\r\n\r\n", 400, "not allowed"),
        ("POST /getLogs/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", 400, "ambiguous"),
        ("GET /chainId/ HTTP/1.1\r\nHost: localhost\r\n\r\ngarbage\r\n\r\n", 400, "must begin with a method"),
        ("\x16\x03\x01\x02\0", 400, "TLS"),
        (&long, 431, "headers together are longer than 16384 bytes"),
    ] {
        let mut stream = server.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (_, last) = text.rsplit_once("HTTP/1.1 ").unwrap_or_else(|| panic!("{request:?}: {text:?}"));
        assert!(
            last.starts_with(&status.to_string()) && last.contains("application/problem+json"),
            "{request:?}: {text}"
        );
        let body: Value = serde_json::from_str(last.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(body["status"], status, "{request:?}");
        assert!(body["detail"].as_str().unwrap().contains(detail), "{request:?}: {body}");
    }
}

#[test]
fn the_log_has_the_length_of_a_body_before_compression() {
    let server = Server::start(NONE);
    for (id, path) in [("document", "/openapi.json"), ("block", "/getBlockByNumber/latest/false/")] {
        let get = |headers: &str| {
            let mut stream = server.connect();
            write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n").unwrap();
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).unwrap();
            bytes
        };
        let plain = get("");
        let head = plain.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        let compressed = get(&format!("X-Request-Id: {id}\r\nAccept-Encoding: gzip\r\n"));
        assert!(compressed.len() < plain.len(), "{path}");
        let length = format!(" bytes={} ", plain.len() - head);
        assert_eq!(server.logged(&format!(" id={id} ")), 1, "{}", server.log());
        assert_eq!(server.logged(&length), 2, "{path} {length}: {}", server.log());
    }
}

/// A block and the head that the headers show are of the same view, also while blocks are added and removed.
#[test]
fn the_head_of_a_response_is_that_of_its_block() {
    let (chain, server) = super::in_process::serve_dev(HttpConfig::default());
    let producer = chain.producer().unwrap();
    let is_over = AtomicBool::new(false);
    let mismatch = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                producer.mine(20, None, Vec::new()).unwrap();
                producer.rollback(20).unwrap();
            }
        });
        let read = |_| {
            let response = server.get("/getBlockByNumber/latest/false/");
            let head = response.header("x-head-hash").unwrap();
            (response.field("Block")["Hash"] != head).then(|| response.text.clone())
        };
        let mismatch = (0..3_000).find_map(read);
        is_over.store(true, Ordering::Relaxed);
        mismatch
    });
    assert_eq!(mismatch, None);
}

/// RFC 9112, section 6.1, and RFC 9110, section 7.8.
#[test]
fn http_1_0_gets_neither_chunks_nor_an_upgrade() {
    let server = Server::dev(NONE);
    let begin = |path: &str, headers: &str| {
        let mut stream = server.connect();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n{headers}\r\n").unwrap();
        stream
    };
    let rest = |mut stream: TcpStream| {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.to_lowercase(), body.to_owned())
    };
    for path in ["/openapi.json", "/getBlockByNumber/latest/true/", "/docs/"] {
        let (head, body) = rest(begin(path, ""));
        assert!(head.starts_with("http/1.0 200") && !head.contains("transfer-encoding"), "{path}: {head}");
        assert!(!head.contains("content-encoding"), "{path}: {head}");
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{path}: {head}");
    }
    let handshake = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    assert!(rest(begin("/ws", handshake)).0.starts_with("http/1.0 426"));
    assert!(rest(begin("/", handshake)).0.starts_with("http/1.0 200"), "the page at this path");
    let events = begin("/events/?Stream=blocks", "Connection: keep-alive\r\n");
    // The stream is open once it has sent something.
    events.peek(&mut [0]).unwrap();
    assert!(server.end("TERM").success());
    let (head, body) = rest(events);
    assert!(head.starts_with("http/1.0 200") && !head.contains("transfer-encoding"), "{head}");
    assert!(!head.contains("keep-alive"), "{head}");
    assert!(body.starts_with("id: ") && body.contains("event: problem\ndata: {") && body.ends_with("}\n\n"), "{body}");
}
