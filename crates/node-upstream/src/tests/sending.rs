//! Failures of endpoints, their limits, and requests that are sent together.

use super::server::{Script, Server, respond};
use super::{context, forward, options, upstream};
use crate::{Upstream, UpstreamError, UpstreamOptions};
use flate2::Compression;
use flate2::write::GzEncoder;
use node_core::context::{Context, Interrupted};
use node_core::waiting;
use node_types::BlockId;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Returns the method of each request as its result.
fn echo(request: &Value) -> Result<Value, Value> {
    Ok(request["method"].clone())
}

fn no_params() -> Box<RawValue> {
    RawValue::from_string("[]".to_owned()).unwrap()
}

/// Asks for headers, most of which do not exist, and returns how many are of the kind `NotFound`.
fn ask_for_many(upstream: &Upstream, count: u64) -> usize {
    let questions = (0..count).map(|number| {
        let needed = crate::Needed::Header(BlockId::number(number));
        crate::upstream::Question::new(needed, "eth_x", format!("[{number}]"))
    });
    let results = upstream.ask(&context(), questions.collect(), |index, result| {
        let expected = index.to_string();
        assert_eq!(result.get(), expected, "responses are matched with their requests");
        Ok(())
    });
    results.iter().filter(|result| result.is_ok()).count()
}

/// Returns the parameter of each request as its result.
fn parameter(request: &Value) -> Result<Value, Value> {
    Ok(request["params"][0].clone())
}

fn length(message: &Value) -> usize {
    message.as_array().map_or(1, Vec::len)
}

#[test]
fn what_is_read_together_is_one_message() {
    let server = Server::of(parameter);
    assert_eq!(ask_for_many(&upstream(&[&server], options()), 90), 90);
    assert_eq!(server.messages().iter().map(length).collect::<Vec<_>>(), [90]);
    // More requests than a batch may have, and more bytes.
    assert_eq!(ask_for_many(&upstream(&[&server], options()), 250), 250);
    assert_eq!(server.messages().len(), 1 + 3);
    let narrow = UpstreamOptions { batch_bytes: 800, ..options() };
    assert_eq!(ask_for_many(&upstream(&[&server], narrow), 30), 30);
    assert!(server.messages()[4..].iter().all(|message| length(message) <= 12));
}

#[test]
fn failures_are_repeated() {
    let failures: [fn() -> Script; 7] = [
        || Script::Status(500, "", b"oops".to_vec()),
        || Script::Status(503, "", br#"{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"busy"}}"#.to_vec()),
        || Script::Status(200, "", b"<html>".to_vec()),
        || Script::Raw(""),
        || Script::Raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"id\":0,\"re"),
        || Script::Raw("SSH-2.0-OpenSSH\r\n"),
        || Script::Status(200, "", br#"{"id":0,"error":{"code":-32005,"message":"limit exceeded"}}"#.to_vec()),
    ];
    for (index, failure) in failures.into_iter().enumerate() {
        let server = Server::start(move |count, message| if count < 2 { failure() } else { respond(message, echo) });
        assert_eq!(forward(&upstream(&[&server], options()), "eth_a").as_deref(), Ok("\"eth_a\""), "failure {index}");
        assert_eq!(server.messages().len(), 3);
        // One more than is repeated.
        let server = Server::start(move |_, _| failure());
        let error = forward(&upstream(&[&server], options()), "eth_a").unwrap_err();
        assert!(error.starts_with("the upstream is unavailable: 127.0.0.1:"), "{error}");
        assert!(error.ends_with("; needed: the result of eth_a"), "{error}");
        assert!(!error.contains("secret"), "{error}");
        assert_eq!(server.messages().len(), 3);
    }
}

#[test]
fn use_is_counted() {
    let server = Server::start(|count, message| match count {
        1 | 2 => Script::Raw(""),
        _ => respond(message, parameter),
    });
    let upstream = upstream(&[&server], options());
    assert_eq!(ask_for_many(&upstream, 7), 7);
    let usage = upstream.usage().remove(0);
    assert_eq!((usage.requests, usage.failures, usage.last_failure.as_deref(), upstream.retries()), (7, 0, None, 0));
    assert!(server.url().contains(&usage.name) && usage.bytes > 7 * 10, "{usage:?}");
    assert_eq!(ask_for_many(&upstream, 1), 1);
    let usage = upstream.usage().remove(0);
    assert_eq!((usage.requests, usage.failures, usage.last_failure.as_deref(), upstream.retries()), (10, 2, None, 2));
    let nobody = Upstream::new(&["http://127.0.0.1:1"], UpstreamOptions { retries: 0, ..options() }).unwrap();
    let error = forward(&nobody, "eth_a").unwrap_err();
    let failure = nobody.usage().remove(0).last_failure.unwrap();
    assert!(error.contains(&failure), "{error}, {failure}");
}

#[test]
fn retry_after_is_honoured() {
    let server = Server::start(|count, message| match count {
        0 => Script::Status(429, "Retry-After: 1\r\n", Vec::new()),
        1 => Script::Status(503, "Retry-After: 1\r\n", Vec::new()),
        _ => respond(message, echo),
    });
    let begun = Instant::now();
    assert!(forward(&upstream(&[&server], options()), "eth_a").is_ok());
    assert!(begun.elapsed() >= Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[test]
fn other_endpoints_replace_one_that_fails() {
    for silent in [false, true] {
        let broken = Server::start(move |_, _| if silent { Script::Silence } else { Script::Raw("") });
        let whole = Server::of(echo);
        let options = UpstreamOptions { retries: 0, timeout: Duration::from_millis(200), ..options() };
        let upstream = upstream(&[&broken, &whole], options);
        for _ in 0..4 {
            assert_eq!(forward(&upstream, "eth_a").as_deref(), Ok("\"eth_a\""));
        }
        assert_eq!(whole.messages().len(), 4);
    }
}

#[test]
fn an_endpoint_that_failed_is_asked_after_the_others() {
    let (silent, whole) = (Server::start(|_, _| Script::Silence), Server::of(echo));
    let timeout = Duration::from_millis(300);
    let options = UpstreamOptions { timeout, retry_backoff: Duration::from_secs(60), ..options() };
    let upstream = upstream(&[&silent, &whole], options);
    for _ in 0..20 {
        assert!(forward(&upstream, "eth_a").is_ok());
    }
    assert_eq!(silent.messages().len(), 1);
}

#[test]
fn endpoints_are_asked_in_turn() {
    let servers = [Server::of(echo), Server::of(echo), Server::of(echo)];
    let upstream = upstream(&servers.each_ref(), options());
    for _ in 0..9 {
        forward(&upstream, "eth_a").unwrap();
    }
    assert_eq!(servers.map(|server| server.messages().len()), [3; 3]);
}

#[test]
fn callers_leave_when_they_are_interrupted() {
    let server = Server::start(|_, _| Script::Silence);
    let upstream = upstream(&[&server], options());
    let begun = Instant::now();
    let short = Context::unbounded().with_timeout(Duration::from_millis(50));
    let result = upstream.forward(&short, "eth_a", &no_params());
    let error = result.unwrap_err().to_string();
    let expected = format!("no response from {}; needed: the result of eth_a", upstream.endpoints().next().unwrap());
    assert!(error.ends_with(&expected), "{error}");
    let over = Context::unbounded().with_timeout(Duration::ZERO);
    let result = upstream.forward(&over, "eth_a", &no_params());
    assert!(matches!(result, Err(UpstreamError::Interrupted(Interrupted::DeadlineExceeded))), "{result:?}");
    let cancelled = Context::unbounded();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| upstream.forward(&cancelled, "eth_a", &no_params()));
        thread::sleep(Duration::from_millis(50));
        cancelled.cancel();
        let result = waiting.join().unwrap();
        assert!(matches!(result, Err(UpstreamError::Interrupted(Interrupted::Cancelled))), "{result:?}");
    });
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_deadline_tells_what_failed() {
    let nobody = Upstream::new(&["http://127.0.0.1:1"], options_of_hours()).unwrap();
    let short = Context::unbounded().with_timeout(Duration::from_millis(200));
    let error = nobody.forward(&short, "eth_a", &no_params()).unwrap_err();
    assert!(matches!(error, UpstreamError::TimedOut { .. }), "{error}");
    assert!(error.to_string().starts_with("the upstream did not respond in time: 127.0.0.1:1: "), "{error}");
}

/// Options that repeat requests after an hour.
fn options_of_hours() -> UpstreamOptions {
    UpstreamOptions { retry_backoff: Duration::from_secs(3_600), ..options() }
}

#[test]
fn what_came_too_late_is_there_for_the_next_request() {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let server = Server::start(move |count, message| {
        if count == 0 {
            let _ = released.lock().unwrap().recv();
        }
        respond(message, echo)
    });
    let (upstream, method) = (upstream(&[&server], options()), "eth_getBlockByHash");
    let short = Context::unbounded().with_timeout(Duration::from_millis(200));
    let result = upstream.forward(&short, method, &no_params());
    assert!(matches!(result, Err(UpstreamError::TimedOut { .. })), "{result:?}");
    release.send(()).unwrap();
    for sent in [1, 2] {
        assert!(forward(&upstream, method).is_ok());
        assert_eq!(server.messages().len(), sent);
    }
}

#[test]
fn threads_that_may_not_wait_do_not() {
    let server = Server::of(echo);
    let upstream = upstream(&[&server], options());
    assert!(waiting::without_waiting(|| forward(&upstream, "eth_a")).is_none());
    assert!(server.messages().is_empty());
}

#[test]
fn identical_requests_under_way_are_joined() {
    let server = Server::start(|_, message| {
        thread::sleep(Duration::from_millis(300));
        respond(message, echo)
    });
    let upstream = upstream(&[&server], options());
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert!(forward(&upstream, "eth_a").is_ok()));
        }
    });
    assert_eq!(server.messages().len(), 1);
    // The next one is a request of its own.
    forward(&upstream, "eth_a").unwrap();
    assert_eq!(server.messages().len(), 2);
}

#[test]
fn endpoints_without_batches_get_single_requests() {
    let refusals: [fn() -> Script; 4] = [
        || Script::Reply(json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "no batches"}})),
        || Script::Reply(json!([{"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "no batches"}}])),
        || Script::Status(400, "", b"expected an object".to_vec()),
        || Script::Status(405, "", Vec::new()),
    ];
    for refusal in refusals {
        let server =
            Server::start(move |_, message| if message.is_array() { refusal() } else { respond(message, parameter) });
        let upstream = upstream(&[&server], options());
        assert_eq!(ask_for_many(&upstream, 20), 20);
        assert_eq!(server.messages().len(), 1 + 20);
        // It is remembered.
        assert_eq!(ask_for_many(&upstream, 20), 20);
        assert_eq!(server.messages().len(), 1 + 20 + 20);
    }
}

#[test]
fn batches_are_as_long_as_the_endpoint_accepts() {
    let too_long = json!({"code": -32600, "message": "batch too large"});
    let refusals: [fn(&Value, Value) -> Script; 3] = [
        |_, error| Script::Reply(json!({"jsonrpc": "2.0", "id": null, "error": error})),
        // As geth does.
        |message, error| Script::Reply(json!([{"jsonrpc": "2.0", "id": message[0]["id"], "error": error}])),
        |_, _| Script::Status(413, "", Vec::new()),
    ];
    for refusal in refusals {
        let too_long = too_long.clone();
        let server = Server::start(move |_, message| match length(message) {
            0..=10 => respond(message, parameter),
            _ => refusal(message, too_long.clone()),
        });
        assert_eq!(ask_for_many(&upstream(&[&server], options()), 64), 64);
        let messages = server.messages();
        let accepted: Vec<_> = messages.iter().map(length).filter(|length| *length <= 10).collect();
        assert_eq!((accepted.iter().sum::<usize>(), accepted.len()), (64, 8), "{accepted:?}");
    }
}

#[test]
fn large_responses_are_split() {
    // As geth does if the responses to a batch are too large together.
    let server = Server::start(|_, message| {
        let large = length(message) > 5;
        let place = |request: &Value| request["id"].as_u64().unwrap();
        respond(message, move |request| match place(request) {
            2.. if large => Err(json!({"code": -32003, "message": "response too large"})),
            _ => parameter(request),
        })
    });
    assert_eq!(ask_for_many(&upstream(&[&server], options()), 40), 40);

    // Here the limit is ours.
    let server =
        Server::of(
            |request| if request["method"] == "eth_x" { parameter(request) } else { Ok("x".repeat(9_000).into()) },
        );
    let limited = upstream(&[&server], UpstreamOptions { response_bytes: 600, ..options() });
    assert_eq!(ask_for_many(&limited, 40), 40);
    assert!(server.messages().len() > 2);
    assert_eq!(forward(&limited, "eth_large").unwrap_err(), "the response with the result of eth_large is too large");
}

#[test]
fn compressed_responses_are_limited_by_what_they_contain() {
    let zip = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let small = zip(br#"{"jsonrpc":"2.0","id":0,"result":7}"#);
    let bomb = zip(format!(r#"{{"id":0,"result":"{}"}}"#, " ".repeat(8 << 20)).as_bytes());
    assert!(bomb.len() < 100_000);
    let server = Server::start(move |_, message| {
        let body = if message["method"] == "eth_small" { &small } else { &bomb };
        Script::Status(200, "Content-Encoding: gzip\r\n", body.clone())
    });
    let upstream = upstream(&[&server], UpstreamOptions { response_bytes: 1 << 20, ..options() });
    assert_eq!(forward(&upstream, "eth_small").as_deref(), Ok("7"));
    assert!(forward(&upstream, "eth_large").unwrap_err().ends_with("is too large"));
}

#[test]
fn refusals_are_asked_elsewhere_unless_the_call_failed() {
    let refusing =
        |code: i64, message: &'static str| Server::of(move |_| Err(json!({"code": code, "message": message})));
    for (code, message) in [(-32601, "no such method"), (-32000, "missing trie node"), (-1, "unable to load")] {
        let servers = [refusing(code, message), Server::of(echo)];
        let upstream = upstream(&servers.each_ref(), options());
        assert_eq!(forward(&upstream, "eth_a").as_deref(), Ok("\"eth_a\""));
        assert_eq!(forward(&upstream, "eth_b").as_deref(), Ok("\"eth_b\""));
    }
    let servers = [refusing(3, "execution reverted: 7"), refusing(3, "execution reverted: 7")];
    let error = forward(&upstream(&servers.each_ref(), options()), "eth_call").unwrap_err();
    assert!(error.ends_with("refuses the result of eth_call: execution reverted: 7 (code 3)"), "{error}");
    assert_eq!(servers.each_ref().map(|server| server.messages().len()).iter().sum::<usize>(), 1);
    // A wrong key of a provider is not tried again and again.
    let server = Server::start(|_, _| Script::Status(401, "", b"who are you?".to_vec()));
    let upstream = upstream(&[&server], options());
    let error = forward(&upstream, "eth_a").unwrap_err();
    assert!(error.contains("refuses the result of eth_a: HTTP status 401; it may need a key"), "{error}");
    let failure = upstream.usage().remove(0).last_failure.unwrap();
    assert!(failure.contains("HTTP status 401; it may need a key"), "{failure}");
    assert_eq!(server.messages().len(), 1);
}

#[test]
fn redirects_are_not_followed() {
    let target = Server::of(echo);
    let location: &'static str = format!("Location: {}\r\n", target.url()).leak();
    let server = Server::start(move |_, _| Script::Status(307, location, Vec::new()));
    let error = forward(&upstream(&[&server], options()), "eth_a").unwrap_err();
    assert!(error.contains("HTTP status 307, and redirects are not followed"), "{error}");
    assert!(target.messages().is_empty());
}

#[test]
fn rates_are_limited() {
    let server = Server::of(echo);
    let run = |options: UpstreamOptions| {
        let upstream = upstream(&[&server], options);
        let begun = Instant::now();
        // 20 compute units each.
        (0..60).for_each(|index| assert!(forward(&upstream, &format!("eth_{index}")).is_ok()));
        begun.elapsed()
    };
    // A second of units at once, and the rest in another 0.5 s.
    let limited = run(UpstreamOptions { compute_units_per_second: Some(800), ..options() });
    assert!(limited >= Duration::from_millis(450), "{limited:?}");
    run(UpstreamOptions { no_rate_limit: true, ..options() });
}

#[test]
fn headers_are_sent() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://user:pass@{}/key", listener.local_addr().unwrap());
    let reading = thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut head = vec![0; 4096];
        let read = std::io::Read::read(&mut stream, &mut head).unwrap();
        String::from_utf8_lossy(&head[..read]).to_ascii_lowercase()
    });
    let headers = vec!["X-Token: S3".parse().unwrap()];
    let upstream = Upstream::new(&[url], UpstreamOptions { headers, retries: 0, ..options() }).unwrap();
    forward(&upstream, "eth_a").unwrap_err();
    let head = reading.join().unwrap();
    for line in
        ["post /key http/1.1\r\n", "\r\nx-token: s3\r\n", "\r\nauthorization: basic ", "\r\naccept-encoding: gzip"]
    {
        assert!(head.contains(line), "{line} in {head}");
    }
}
