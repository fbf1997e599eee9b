//! JSON-RPC over WebSocket: subscriptions report everything once and in order, and the limits apply.

use crate::server::Server;
use crate::wallet::{BOB, hex, log_writer, sign};
use crate::websocket::Socket;
use node_http::{HttpConfig, RequestLimits};
use node_types::consensus::TransactionBody;
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::time::{Duration, Instant};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::frame::coding::{Data, OpCode};
use tungstenite::protocol::frame::{Frame, FrameHeader};
use tungstenite::{Bytes, Error, Message};

const NONE: [&str; 0] = [];

fn connect(server: &Server) -> Socket {
    Socket::connect(server.address(), &[]).unwrap()
}

fn control(server: &Server, operation: &str, body: Value) -> Value {
    let response = server.post(&format!("/dev/{operation}/"), body.to_string());
    assert_eq!(response.status, 200, "{}", response.body);
    response.body
}

/// Sends a transaction that writes `count` logs.
fn write_logs(socket: &mut Socket, nonce: u64, count: u8) -> Value {
    let raw = hex(&sign(TransactionBody::Legacy(log_writer(nonce, count))).encode());
    socket.call("eth_sendRawTransaction", json!([raw]))
}

#[test]
fn reports_heads_logs_and_transactions_in_order() {
    let server = Server::dev(["--no-mining"]);
    let mut socket = connect(&server);
    let heads = socket.call("eth_subscribe", json!(["newHeads"]));
    let mut logs = connect(&server);
    let of_logs = logs.call("eth_subscribe", json!(["logs", {}]));
    let mut pool = connect(&server);
    let hashes = pool.call("eth_subscribe", json!(["newPendingTransactions"]));
    let whole = pool.call("eth_subscribe", json!(["newPendingTransactions", true]));
    assert_ne!(hashes, whole);

    let mut sender = connect(&server);
    let hash = write_logs(&mut sender, 0, 3);
    let mut reported = [pool.receive(), pool.receive()].map(|message| message["params"].clone());
    reported.sort_by_key(|params| params["result"].is_object());
    assert_eq!(reported[0], json!({"subscription": hashes, "result": hash}));
    assert_eq!((&reported[1]["subscription"], &reported[1]["result"]["hash"]), (&whole, &hash));

    control(&server, "mine", json!({"Blocks": "3"}));
    for number in 1..=3 {
        let head = socket.notification(&heads);
        assert_eq!(head["number"], format!("{number:#x}"));
        let block = sender.call("eth_getBlockByNumber", json!([head["number"], false]));
        assert_eq!(head["hash"], block["hash"]);
        assert!(head.get("transactions").is_none(), "{head}");
    }
    for index in 0..3 {
        let log = logs.notification(&of_logs);
        assert_eq!((&log["logIndex"], &log["removed"]), (&json!(format!("{index:#x}")), &json!(false)));
        assert_eq!(log["transactionHash"], hash);
        assert!(log["blockTimestamp"].is_string());
    }

    // The block of the logs leaves the chain, and another replaces it.
    control(&server, "reorganize", json!({"Blocks": "3"}));
    for index in 0..3 {
        let log = logs.notification(&of_logs);
        assert_eq!((&log["logIndex"], &log["removed"]), (&json!(format!("{index:#x}")), &json!(true)), "{log}");
    }
    for number in 1..=3 {
        assert_eq!(socket.notification(&heads)["number"], format!("{number:#x}"));
    }

    assert_eq!(socket.call("eth_unsubscribe", json!([heads])), true);
    control(&server, "mine", json!({}));
    // No notification was sent meanwhile: the next message is the response.
    assert_eq!(socket.call("eth_blockNumber", json!([])), "0x4");
    socket.send(json!({"jsonrpc": "2.0", "id": 7, "method": "eth_unsubscribe", "params": [heads]}));
    assert_eq!(socket.receive()["error"]["code"], -32000);
}

#[test]
fn upgrades_at_the_root_as_well() {
    let server = Server::dev(NONE);
    for path in ["/", "/ws", "/ws/"] {
        let mut socket = Socket::connect_to(server.address(), path, &[]).unwrap();
        assert_eq!(socket.call("eth_chainId", json!([])), "0x7a69", "{path}");
    }
    let page = server.get("/");
    assert_eq!(page.status, 200);
}

#[test]
fn messages_of_every_kind() {
    let server = Server::dev(NONE);
    let mut socket = connect(&server);
    socket.send("{");
    assert_eq!(socket.receive()["error"]["code"], -32700);
    socket.send(json!([
        {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId"},
        {"jsonrpc": "2.0", "method": "eth_chainId"},
        {"jsonrpc": "2.0", "id": "two", "method": "eth_subscribe", "params": ["newHeads"]},
        {"jsonrpc": "2.0", "id": 3, "method": "eth_subscribe", "params": ["weather"]},
    ]));
    let batch = socket.receive();
    let ids: Vec<_> = batch.as_array().unwrap().iter().map(|response| response["id"].clone()).collect();
    assert_eq!(ids, [json!(1), json!("two"), json!(3)]);
    assert_eq!(batch[2]["error"]["code"], -32602);

    // Binary and fragmented messages are read like any other.
    let request = br#"{"jsonrpc":"2.0","id":9,"method":"net_version"}"#;
    socket.inner().send(Message::binary(&request[..])).unwrap();
    assert_eq!(socket.receive()["result"], "31337");
    let (first, last) = request.split_at(20);
    for (opcode, bytes, is_last) in [(Data::Text, first, false), (Data::Continue, last, true)] {
        let frame = Frame::message(Bytes::copy_from_slice(bytes), OpCode::Data(opcode), is_last);
        socket.inner().send(Message::Frame(frame)).unwrap();
    }
    assert_eq!(socket.receive()["result"], "31337");

    socket.inner().send(Message::Ping(Bytes::from_static(b"alive"))).unwrap();
    assert_eq!(socket.inner().read().unwrap(), Message::Pong(Bytes::from_static(b"alive")));

    socket.inner().close(None).unwrap();
    assert!(matches!(socket.inner().read(), Ok(Message::Close(_))));
}

/// Returns the status with which a handshake is refused.
fn refused(server: &Server, headers: &[(&str, &str)]) -> Option<u16> {
    match Socket::connect(server.address(), headers).map_err(|error| *error) {
        Ok(_) => None,
        Err(Error::Http(response)) => Some(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn refuses_handshakes_without_a_token_or_of_other_origins() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens").display().to_string();
    fs::write(&tokens, "a-token-of-the-tests\n").unwrap();
    let guarded = Server::dev(["--token-file", &tokens]);
    assert_eq!(refused(&guarded, &[]), Some(401));
    assert_eq!(refused(&guarded, &[("Authorization", "Bearer a-token-of-the-tests")]), None);

    let server = Server::dev(["--cors-origins", "https://friend.example"]);
    assert_eq!(refused(&server, &[("Origin", "https://foe.example")]), Some(403));
    assert_eq!(refused(&server, &[("Origin", "https://friend.example")]), None);
    assert_eq!(refused(&server, &[("Origin", server.url())]), None);
    let foreign = server.send("GET", "/ws", &[("host", "foe.example"), ("upgrade", "websocket")], "");
    assert_eq!(foreign.status, 403);
    let plain = server.get("/ws");
    assert_eq!((plain.status, plain.header("upgrade")), (426, Some("websocket")));
    assert_eq!(plain.problem_faults(426), NONE);
    assert_eq!(server.send("POST", "/ws", &[], "").status, 405);

    let few = Server::dev(["--max-streams", "1"]);
    let first = connect(&few);
    assert_eq!(refused(&few, &[]), Some(503));
    drop(first);
}

#[test]
fn limits_of_a_connection() {
    let limits = HttpConfig {
        requests: RequestLimits { max_body: 2_000, max_subscriptions: 2, max_batch: 3, ..Default::default() },
        ..HttpConfig::default()
    };
    let (_chain, server) = super::in_process::serve_dev(limits);
    let mut socket = connect(&server);
    for _ in 0..2 {
        socket.call("eth_subscribe", json!(["newHeads"]));
    }
    socket.send(json!({"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": ["logs"]}));
    let response = socket.receive();
    assert_eq!(response["error"]["code"], -32005);
    assert!(response["error"]["message"].as_str().unwrap().contains("2 subscriptions"), "{response}");
    socket.send(format!("{}1{}", "[".repeat(900), "]".repeat(900)));
    assert_eq!(socket.receive()[0]["error"]["code"], -32600, "nested arrays");
    socket.send(json!([1, 2, 3, 4]));
    let response = socket.receive();
    assert!(response["error"]["message"].as_str().unwrap().contains("`max-batch`"), "{response}");

    let closed = |socket: &mut Socket| match socket.inner().read() {
        Ok(Message::Close(Some(frame))) => frame.code,
        other => panic!("{other:?}"),
    };
    socket.send("x".repeat(2_001));
    assert_eq!(closed(&mut socket), CloseCode::Size);
    let mut socket = connect(&server);
    for (opcode, is_last) in [(Data::Text, false), (Data::Continue, false), (Data::Continue, true)] {
        let frame = Frame::message(Bytes::from(vec![b'x'; 900]), OpCode::Data(opcode), is_last);
        socket.inner().send(Message::Frame(frame)).unwrap();
    }
    assert_eq!(closed(&mut socket), CloseCode::Size);
    // Client frames must be masked.
    let mut socket = connect(&server);
    let mut bytes = Vec::new();
    FrameHeader::default().format(2, &mut bytes).unwrap();
    bytes.extend_from_slice(b"{}");
    socket.inner().get_mut().write_all(&bytes).unwrap();
    assert_eq!(closed(&mut socket), CloseCode::Protocol);
}

#[test]
fn a_text_message_that_is_not_utf_8_ends_the_connection() {
    let server = Server::dev(NONE);
    let whole = [(Data::Text, &b"{\"id\":\"\xff\"}"[..], true)];
    // The character is valid only together with its second byte, which is missing.
    let fragments = [(Data::Text, &b"\xc3"[..], false), (Data::Continue, b"", false), (Data::Continue, b"x", true)];
    for frames in [&whole[..], &fragments] {
        let mut socket = connect(&server);
        for (opcode, bytes, is_last) in frames {
            let frame = Frame::message(Bytes::from_static(bytes), OpCode::Data(*opcode), *is_last);
            socket.inner().send(Message::Frame(frame)).unwrap();
        }
        match socket.inner().read() {
            Ok(Message::Close(Some(frame))) => assert_eq!(frame.code, CloseCode::Invalid),
            other => panic!("{other:?}"),
        }
    }
    // A character may be split between fragments, and a binary message may have any bytes.
    let mut socket = connect(&server);
    let request = r#"{"jsonrpc":"2.0","id":"é","method":"net_version"}"#.as_bytes();
    let (first, last) = request.split_at(request.iter().position(|byte| !byte.is_ascii()).unwrap() + 1);
    for (opcode, bytes, is_last) in [(Data::Text, first, false), (Data::Continue, last, true)] {
        let frame = Frame::message(Bytes::copy_from_slice(bytes), OpCode::Data(opcode), is_last);
        socket.inner().send(Message::Frame(frame)).unwrap();
    }
    assert_eq!(socket.receive()["id"], "é");
    socket.inner().send(Message::binary(&b"\xff"[..])).unwrap();
    assert_eq!(socket.receive()["error"]["code"], -32700);
}

/// Each subscription reports each block, even if several are mined at once, and regardless of other subscribers.
#[test]
fn no_subscription_misses_a_block() {
    let server = Server::dev(["--log", "error"]);
    let mut socket = connect(&server);
    let subscriptions: Vec<_> = (0..3).map(|_| socket.call("eth_subscribe", json!(["newHeads"]))).collect();
    let server = &server;
    let blocks = 1_500;
    std::thread::scope(|scope| {
        scope.spawn(move || (0..15).for_each(|_| drop(control(server, "mine", json!({"Blocks": "100"})))));
        let mut next = vec![1; subscriptions.len()];
        while next.iter().any(|number| *number <= blocks) {
            let message = socket.receive();
            let index = subscriptions.iter().position(|id| *id == message["params"]["subscription"]).unwrap();
            assert_eq!(message["params"]["result"]["number"], format!("{:#x}", next[index]), "subscription {index}");
            next[index] += 1;
        }
    });
}

#[test]
fn an_idle_subscriber_gets_pings() {
    let stream_keep_alive = Duration::from_millis(100);
    let (_chain, server) = super::in_process::serve_dev(HttpConfig {
        requests: RequestLimits { stream_keep_alive, ..Default::default() },
        ..HttpConfig::default()
    });
    let mut socket = connect(&server);
    socket.call("eth_subscribe", json!(["logs", {"address": format!("0x{}", "07".repeat(20))}]));
    assert!(matches!(socket.inner().read(), Ok(Message::Ping(_))));
}

#[test]
fn refuses_a_frame_by_its_declared_length() {
    let server = Server::dev(NONE);
    let mut socket = connect(&server);
    let head = [&[0x81, 0xff][..], &(1_u64 << 50).to_be_bytes(), &[1, 2, 3, 4], b"the beginning"].concat();
    socket.inner().get_mut().write_all(&head).unwrap();
    match socket.inner().read() {
        Ok(Message::Close(Some(frame))) => assert_eq!(frame.code, CloseCode::Size),
        other => panic!("{other:?}"),
    }
}

#[test]
fn refused_requests_of_a_batch_keep_their_ids() {
    let server = Server::dev(["--rate-limit", "5"]);
    let mut socket = connect(&server);
    let request = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "eth_chainId"});
    let notification = json!({"jsonrpc": "2.0", "method": "eth_chainId"});
    socket.send(Value::from_iter((1..=6).map(request).chain([notification])));
    let refused = socket.receive();
    let ids: Vec<_> = refused.as_array().unwrap().iter().map(|response| response["id"].as_u64()).collect();
    assert_eq!(ids, (1..=6).map(Some).collect::<Vec<_>>());
    for response in refused.as_array().unwrap() {
        assert_eq!(response["error"]["code"], -32005);
        assert!(response["error"]["message"].as_str().unwrap().contains("`rate-limit`"), "{response}");
    }
}

#[test]
fn messages_above_the_rate_keep_their_ids() {
    let server = Server::dev(["--rate-limit", "1"]);
    let mut socket = connect(&server);
    let request = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "eth_chainId"});
    // Only a pause allows a further request.
    for id in 1..20 {
        socket.send(request(id));
        let response = socket.receive();
        assert_eq!(response["id"], id, "{response}");
        if response["error"]["code"] == -32005 {
            socket.send(json!([request(30), request(31)]));
            let refused = socket.receive();
            assert_eq!((&refused[0]["id"], &refused[1]["id"]), (&json!(30), &json!(31)), "{refused}");
            // Long messages are refused unread.
            socket.send(json!({"id": 32, "method": "eth_chainId", "params": ["x".repeat(65 * 1024)]}));
            let refused = socket.receive();
            assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32005)), "{refused}");
            return;
        }
    }
    panic!("no message was refused");
}

#[test]
fn a_response_that_is_too_large_is_refused_with_its_id() {
    let server = Server::dev(["--transfer-memory", "1000000"]);
    let mut socket = connect(&server);
    // PUSH3 1 MiB, PUSH1 0, RETURN.
    let code = json!({BOB: {"code": "0x621000006000f3"}});
    socket.send(json!({"jsonrpc": "2.0", "id": 7, "method": "eth_call", "params": [{"to": BOB}, "latest", code]}));
    let refused = socket.receive();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(7), &json!(-32005)), "{refused}");
}

#[test]
fn requests_do_not_wait_for_the_end_of_the_notifications() {
    const BLOCKS: usize = 15_000;
    const AT_ONCE: usize = 1_000;
    let server = Server::dev(["--no-mining"]);
    let mut socket = connect(&server);
    let heads = socket.call("eth_subscribe", json!(["newHeads"]));
    // Notifications fill the buffers of the connection, which is not read in the meantime.
    for _ in 0..BLOCKS / AT_ONCE {
        control(&server, "mine", json!({"Blocks": AT_ONCE.to_string()}));
    }
    socket.send(json!({"jsonrpc": "2.0", "id": 7, "method": "eth_chainId"}));
    let before = std::iter::from_fn(|| Some(socket.receive())).take_while(|message| message["id"] != 7).count();
    assert!(before < BLOCKS, "the response came after all notifications");
    for number in before + 1..=BLOCKS {
        assert_eq!(socket.notification(&heads)["number"], format!("{number:#x}"));
    }
}

#[test]
fn a_stopping_server_closes_the_connection() {
    let server = Server::dev(NONE);
    let mut socket = connect(&server);
    socket.call("eth_subscribe", json!(["newHeads"]));
    assert!(server.end("TERM").success());
    match socket.inner().read() {
        Ok(Message::Close(Some(frame))) => assert_eq!(frame.code, CloseCode::Away),
        other => panic!("{other:?}"),
    }
}

/// The server does not read from a client that sends requests and does not read: its memory is bounded.
#[test]
fn does_not_read_from_a_client_that_does_not_read() {
    let server = Server::dev(NONE);
    let mut silent = connect(&server);
    silent.call("eth_subscribe", json!(["newHeads"]));
    let stream = silent.inner().get_mut();
    stream.set_write_timeout(Some(std::time::Duration::from_secs(2))).unwrap();
    // 60,000 bytes of responses for 100 bytes of requests: the receiving direction fills up long before the sending
    // one.
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_getBlockByNumber", "params": ["latest", false]});
    let batch = Message::text(Value::from(vec![request; 60]).to_string());
    let stuck = (0..20_000).any(|_| silent.inner().send(batch.clone()).is_err());
    assert!(stuck, "the server kept reading although the client did not");
    let mut other = connect(&server);
    assert_eq!(other.call("eth_chainId", json!([])), "0x7a69");
    // The requests are processed once the client reads, starting with the first.
    let stream = silent.inner().get_mut();
    let mut bytes = [0; 4_096];
    assert!(stream.read(&mut bytes).unwrap() > 0);
}

#[test]
fn a_subscription_that_reports_nothing_can_be_ended() {
    let server = Server::dev(NONE);
    let mut socket = connect(&server);
    let syncing = socket.call("eth_subscribe", json!(["syncing"]));
    assert_eq!(socket.call("eth_unsubscribe", json!([syncing])), true);
    socket.send(json!({"jsonrpc": "2.0", "id": 9, "method": "eth_unsubscribe", "params": [syncing]}));
    assert_eq!(socket.receive()["error"]["message"], "subscription not found");
}

#[test]
fn a_client_that_does_not_close_hardly_delays_the_end() {
    // The least of several times, because other tests run at the same time.
    let times = (0..3).map(|_| {
        let server = Server::dev(NONE);
        let _silent = connect(&server);
        let begun = Instant::now();
        assert!(server.end("TERM").success());
        begun.elapsed()
    });
    let least = times.min().unwrap();
    assert!(least < Duration::from_millis(800), "{least:?}");
}
