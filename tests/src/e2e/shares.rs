//! One client takes all that it can get; another one is served.

use crate::events::Events;
use crate::server::{Response, Server, Transport};
use crate::wallet::{BOB, hex, sign, transfer};
use crate::websocket::Socket;
use node_http::{ClientLimits, HttpConfig, RequestLimits};
use node_types::consensus::{LegacyTransaction, TransactionBody};
use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::iter;
use std::net::IpAddr;
use std::num::NonZero;
use std::time::{Duration, Instant};

const NONE: [&str; 0] = [];
const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];
const GREEDY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 1));
const MODEST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));

/// A message whose response has more than a megabyte.
fn long_request() -> String {
    blocks_request(900)
}

/// A message whose response has `count` blocks of some 1,300 bytes each.
fn blocks_request(count: usize) -> String {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_getBlockByNumber", "params": ["earliest", false]});
    json!(vec![request; count]).to_string()
}

#[test]
fn streams_and_websockets() {
    for transport in Transport::ALL {
        let server = Server::over(transport, NONE);
        let begin = |source| server.begin(source, "GET", "/events/", &[], 0, "").responding();
        let streams: Vec<_> = iter::repeat_with(|| begin(GREEDY)).take_while(|stream| stream.status() == 200).collect();
        assert_eq!(streams.len(), 128, "half of 256");
        if transport == Transport::Plain {
            assert!(Socket::connect(server.address(), &[]).is_err(), "WebSockets are streams, too");
        }
        let more: Vec<_> = (0..64).map(|_| begin(MODEST).status()).collect();
        assert_eq!(more, [200; 64]);
        drop(streams);
        let deadline = Instant::now() + Duration::from_secs(60);
        while begin(GREEDY).status() != 200 {
            assert!(Instant::now() < deadline, "{transport:?}: ended streams still count");
        }
    }
}

#[test]
fn filters() {
    for transport in Transport::ALL {
        let server = Server::over(transport, NONE);
        let create = |source| server.send_from(source, "GET", "/newBlockFilter/", &[], "").status;
        let created = (0..1_100).take_while(|_| create(GREEDY) == 200).count();
        assert_eq!(created, 512, "half of 1,024");
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_newBlockFilter"}).to_string();
        let over_rpc = |source| server.send_from(source, "POST", "/", &JSON, &body).field("error").is_null();
        assert_eq!((create(GREEDY), over_rpc(GREEDY)), (429, false));
        assert_eq!((create(MODEST), over_rpc(MODEST)), (200, true));
    }
}

#[test]
fn calls_without_end() {
    for transport in Transport::ALL {
        let server = Server::over(transport, ["--gas-cap", "18446744073709551615", "--call-timeout", "10m"]);
        let call = |code: &str| json!({"Transaction": {"Data": code, "Gas": u64::MAX.to_string()}}).to_string();
        // JUMPDEST, PUSH1 0, JUMP.
        let endless = call("0x5b600056");
        let begin = || server.begin(GREEDY, "POST", "/call/", &JSON, endless.len(), &endless);
        let _endless: Vec<_> = (0..24).map(|_| begin()).collect();
        assert_eq!(server.get("/chainId/").status, 200);
        for _ in 0..20 {
            let response = server.send_from(MODEST, "POST", "/call/", &JSON, &call("0x"));
            assert_eq!(response.status, 200, "{}", response.text);
        }
    }
}

#[test]
fn responses_that_nobody_reads() {
    for transport in Transport::ALL {
        let server = Server::over(transport, ["--transfer-memory", "16000000", "--rate-limit", "off"]);
        let request = long_request();
        let begin = || server.begin(GREEDY, "POST", "/", &JSON, request.len(), &request).responding();
        let unread: Vec<_> = (0..16).map(|_| begin()).collect();
        let served = unread.iter().filter(|response| response.status() == 200).count();
        assert!((2..9).contains(&served), "{transport:?}: {served} of 16 responses may wait to be read");
        assert!(unread.iter().all(|response| [200, 503].contains(&response.status())));
        let refused = server.send("POST", "/", &JSON, &request);
        assert_eq!(refused.problem_faults(503), NONE, "{}", refused.text);
        assert!(refused.text.contains("`transfer-memory`") && refused.header("retry-after").is_some());
        assert_eq!(server.get("/chainId/").status, 200, "{transport:?}: short responses are not counted");
        let whole = server.send_from(MODEST, "POST", "/", &JSON, &request);
        assert_eq!((whole.status, whole.body.as_array().map(Vec::len)), (200, Some(900)), "{transport:?}");
        drop(unread);
        let deadline = Instant::now() + Duration::from_secs(60);
        while server.send("POST", "/", &JSON, &request).status != 200 {
            assert!(Instant::now() < deadline, "{transport:?}: responses of clients that are gone still count");
        }
    }
}

/// Changes of a filter that cannot be sent because the client has not read other responses are reported later.
#[test]
fn a_refused_poll_loses_nothing() {
    for transport in Transport::ALL {
        let server =
            Server::dev_over(transport, ["--transfer-memory", "16000000", "--rate-limit", "off", "--no-mining"]);
        let filters: Vec<_> = ["newBlockFilter", "newBlockFilter"]
            .map(|create| server.get(&format!("/{create}/")).field("FilterId").as_str().unwrap().to_owned())
            .into();
        assert_eq!(server.post("/dev/mine/", json!({"Blocks": "8000"}).to_string()).status, 200);
        // Long responses, then shorter ones, until nothing as long as that of a poll fits.
        let begin = |request: String| server.begin(GREEDY, "POST", "/", &JSON, request.len(), &request).responding();
        let fill =
            |count| iter::repeat_with(move || begin(blocks_request(count))).take_while(|begun| begun.status() == 200);
        let unread: Vec<_> = fill(900).chain(fill(300)).take(64).collect();
        let poll = |id: &str| server.get(&format!("/getFilterChanges/{id}/"));
        let rpc = |id: &str| json!({"jsonrpc": "2.0", "id": 1, "method": "eth_getFilterChanges", "params": [id]});
        let over_rpc = |id: &str| server.post("/", rpc(id).to_string());
        assert_eq!(poll(&filters[0]).problem_faults(503), NONE, "{transport:?}");
        let refused = over_rpc(&filters[1]);
        assert_eq!(
            (refused.status, &refused.body["error"]["code"]),
            (200, &json!(-32005)),
            "{transport:?}: {}",
            refused.text
        );
        drop(unread);
        let deadline = Instant::now() + Duration::from_secs(60);
        let retry = |ask: &dyn Fn() -> Response| loop {
            let response = ask();
            if response.status == 200 && response.body["error"].is_null() {
                break response;
            }
            assert!(Instant::now() < deadline, "{transport:?}: {}", response.text);
        };
        let hashes = |response: &Response, field| response.field(field).as_array().map(Vec::len);
        assert_eq!(hashes(&retry(&|| poll(&filters[0])), "Result"), Some(8_000), "{transport:?}");
        assert_eq!(hashes(&retry(&|| over_rpc(&filters[1])), "result"), Some(8_000), "{transport:?}");
    }
}

/// A response that can never be sent is not worth a retry.
#[test]
fn a_response_larger_than_the_transfer_memory() {
    let server = Server::dev(["--transfer-memory", "1000000", "--no-mining"]);
    // PUSH3 1 MiB, PUSH1 0, then RETURN or LOG0 and STOP.
    let [long_result, long_log] = ["0x621000006000f3", "0x621000006000a000"];
    assert_eq!(server.post("/dev/setCode/", json!({"Address": BOB, "Code": long_result}).to_string()).status, 200);
    let refused = server.post("/call/", json!({"Transaction": {"To": BOB}}).to_string());
    assert_eq!(refused.problem_faults(422), NONE, "{}", refused.text);
    assert!(refused.text.contains("`transfer-memory`") && refused.header("retry-after").is_none(), "{}", refused.text);

    let mut events = Events::listen(&format!("{}/events/", server.url()), None);
    let raw = hex(&sign(TransactionBody::Legacy(LegacyTransaction {
        to: None,
        value: 0.into(),
        gas_limit: 16_000_000,
        input: const_hex::decode(long_log).unwrap().into(),
        ..transfer(0)
    }))
    .encode());
    assert_eq!(server.post("/sendRawTransaction/", json!({"Data": raw}).to_string()).status, 200);
    assert_eq!(server.post("/dev/mine/", "{}").status, 200);
    let last = std::iter::from_fn(|| events.next_event()).last().unwrap();
    assert_eq!((last.name.as_str(), &last.data["status"]), ("problem", &json!(422)));
}

/// Responses that are too short to be counted must be read as well, and a client that does not read them cannot have
/// any number of requests read.
#[test]
fn short_responses_must_be_read_at_the_least_rate() {
    let config = HttpConfig {
        requests: RequestLimits { write_timeout: Duration::from_millis(500), ..Default::default() },
        clients: ClientLimits { least_read_rate: NonZero::<u32>::MAX, ..Default::default() },
        ..HttpConfig::default()
    };
    let (_chain, server) = super::in_process::serve_dev(config);
    let mut stream = server.connect();
    let mut writing = stream.try_clone().unwrap();
    writing.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
    let requests = "GET /getBlockByNumber/latest/true/ HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1_000);
    let writer = std::thread::spawn(move || {
        let mut sent = 0;
        loop {
            match writing.write_all(requests.as_bytes()) {
                Ok(()) => sent += 1,
                Err(error) => return (sent, error),
            }
        }
    });
    // A byte now and then is not enough.
    while !writer.is_finished() {
        let _ = stream.read(&mut [0]);
        std::thread::sleep(Duration::from_millis(10));
    }
    let (sent, error) = writer.join().unwrap();
    assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
    assert!(sent < 1_000, "{sent} thousand requests were read");
}

#[test]
fn a_response_must_be_read_at_the_least_rate() {
    let config = HttpConfig {
        requests: RequestLimits { write_timeout: Duration::from_millis(500), ..Default::default() },
        clients: ClientLimits { least_read_rate: NonZero::<u32>::MAX, ..Default::default() },
        ..HttpConfig::default()
    };
    let body = long_request();
    let (_chain, server) = super::in_process::serve_dev(config);
    let mut stream = server.connect();
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length:";
    write!(stream, "{head} {}\r\n\r\n{body}", body.len()).unwrap();
    // A byte now and then is not enough.
    let mut start = [0; 200];
    for byte in &mut start {
        stream.read_exact(std::slice::from_mut(byte)).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    let start = String::from_utf8_lossy(&start).into_owned();
    let length = start.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a whole response");
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(read) => assert!(read < length.parse::<usize>().unwrap(), "the response was sent completely"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}
