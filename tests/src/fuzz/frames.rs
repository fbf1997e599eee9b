//! Bytes on connections of a server process: REST requests, HTTP/1.1 and WebSocket frames.
//!
//! Whatever arrives, the server continues to serve others, responds to no request with an internal error, and its
//! threads, files and memory do not grow without bound.

use super::requests::rest_requests;
use super::{Check, Format, Target};
use crate::server::Server;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// How long a response of a connection that is only half open is awaited.
const SILENCE: Duration = Duration::from_millis(20);

/// How long a response to a complete request may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// After this many connections, the server is examined.
const EXAMINED: u32 = 256;

/// Most threads, open files and MiB of memory of the server.
const BOUNDS: [(&str, u64); 3] = [("threads", 64), ("files", 200), ("MiB", 600)];

pub(super) fn targets() -> Vec<Target> {
    let target = |name, format, seeds, check| Target { name, format, seeds, check };
    vec![
        target("rest", Format::Request, rest_requests, rest),
        target("http1", Format::Bytes, http1, || connections(b"")),
        target("websocket-frames", Format::Bytes, websocket, || connections(UPGRADE)),
    ]
}

fn start() -> Server {
    Server::dev(["--log", "error,actix_http=off", "--call-timeout", "2s", "--rate-limit", "off"])
}

/// Sends requests over one connection.
fn rest() -> Check {
    let server = start();
    let mut connection = None;
    let mut count = 0u32;
    Box::new(move |input| {
        let request = request(input);
        let mut stream = match connection.take() {
            Some(stream) => stream,
            None => connect(&server, PATIENCE)?,
        };
        let mut sent = stream.write_all(&request);
        let mut response = Response::read(&mut stream);
        if response.is_err() || sent.is_err() {
            // The server may have closed the connection after the response before.
            stream = connect(&server, PATIENCE)?;
            sent = stream.write_all(&request);
            response = Response::read(&mut stream);
        }
        let response = response.map_err(|error| format!("no response: {error} (sent: {sent:?})"))?;
        if response.may_continue {
            connection = Some(stream);
        }
        count += 1;
        if count.is_multiple_of(EXAMINED) {
            examine(&server)?;
        }
        match response.status {
            500.. => Err(format!("status {}: {}", response.status, response.body)),
            status => Ok(status < 400),
        }
    })
}

/// Returns the bytes of a request. Bytes that cannot be in a path are percent-encoded.
fn request(input: &[u8]) -> Vec<u8> {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (line, body) = input.split_at(end);
    let body = body.strip_prefix(b"\n").unwrap_or(body);
    let (method, path) = match line.strip_prefix(b"GET ") {
        Some(path) => ("GET", path),
        None => ("POST", line.strip_prefix(b"POST ").unwrap_or(line)),
    };
    let mut target = String::from("/");
    for byte in path.strip_prefix(b"/").unwrap_or(path) {
        match byte {
            b'!'..=b'~' if !b"#\"<>\\^`{|}".contains(byte) => target.push(char::from(*byte)),
            _ => target += &format!("%{byte:02X}"),
        }
    }
    let body = if method == "GET" { &[][..] } else { body };
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// The head of a response, and its body if the length is known.
struct Response {
    status: u16,
    body: String,
    /// Whether the connection can be used for another request.
    may_continue: bool,
}

impl Response {
    fn read(stream: &mut TcpStream) -> std::io::Result<Self> {
        let mut received = Vec::new();
        let end = loop {
            if let Some(end) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end + 4;
            }
            read_more(stream, &mut received)?;
        };
        let head = String::from_utf8_lossy(&received[..end]).to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        // Streams have no length, and do not end.
        let length = if matches!(status, 204 | 304) { Some(0) } else { length };
        while length.is_some_and(|length| received.len() < end + length) {
            read_more(stream, &mut received)?;
        }
        let body = String::from_utf8_lossy(&received[end..]).into_owned();
        let may_continue = length.is_some() && !head.contains("connection: close");
        Ok(Self { status, body, may_continue })
    }
}

fn read_more(stream: &mut TcpStream, received: &mut Vec<u8>) -> std::io::Result<()> {
    let mut piece = [0; 16 * 1024];
    match stream.read(&mut piece)? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        length => {
            received.extend_from_slice(&piece[..length]);
            Ok(())
        }
    }
}

/// Sends each input over a separate connection, after `start`. Whether the server accepts it is not known, except that
/// it responded.
fn connections(start: &'static [u8]) -> Check {
    let server = self::start();
    let mut count = 0u32;
    Box::new(move |input| {
        let mut stream = connect(&server, SILENCE)?;
        // The server may close the connection at any byte.
        let _ = stream.write_all(&[start, input].concat());
        let _ = stream.shutdown(Shutdown::Write);
        let mut received = Vec::new();
        while received.len() < 1 << 16 && read_more(&mut stream, &mut received).is_ok() {}
        count += 1;
        if count.is_multiple_of(EXAMINED) {
            examine(&server)?;
        }
        let status = received.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.get(..3));
        if status == Some(b"500") {
            return Err(String::from_utf8_lossy(&received).into_owned());
        }
        Ok(!received.is_empty())
    })
}

fn connect(server: &Server, patience: Duration) -> Result<TcpStream, String> {
    let stream = TcpStream::connect(server.address()).map_err(|error| format!("no connection: {error}"))?;
    let set = stream.set_read_timeout(Some(patience)).and_then(|()| stream.set_nodelay(true));
    set.map_err(|error| error.to_string())?;
    Ok(stream)
}

/// Checks that the server serves, has not panicked, and stays within its bounds. Connections may take a moment to
/// close.
fn examine(server: &Server) -> Result<(), String> {
    let response = server.get("/blockNumber/");
    if response.status != 200 {
        return Err(format!("status {} of blockNumber: {}", response.status, response.body));
    }
    if let Some(line) = server.log().lines().find(|line| line.contains("panicked")) {
        return Err(line.to_owned());
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let uses = server.resources();
        let exceeded = BOUNDS.iter().zip(uses).find(|((_, bound), used)| used > bound);
        match exceeded {
            None => return Ok(()),
            Some(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(50)),
            Some(((name, bound), used)) => return Err(format!("{used} {name}, more than {bound}")),
        }
    }
}

fn http1() -> Vec<Vec<u8>> {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}"#;
    let length = body.len();
    let requests = [
        "GET /blockNumber/ HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        "GET /health HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\nAccept-Encoding: gzip, br;q=0.5\r\n\
         If-None-Match: \"1\"\r\nRange: bytes=0-1\r\nOrigin: null\r\nForwarded: for=1.2.3.4\r\n\r\n"
            .to_owned(),
        format!(
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
             Expect: 100-continue\r\nConnection: keep-alive\r\n\r\n{body}GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
        ),
        format!(
            "POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n\
             {length:x}\r\n{body}\r\n0\r\nTrailer: 1\r\n\r\n"
        ),
        "OPTIONS /call/ HTTP/1.1\r\nHost: localhost\r\nOrigin: http://example.org\r\nAccess-Control-Request-Method: POST\r\n\r\n"
            .to_owned(),
        "GET /events/?Types=blocks HTTP/1.0\r\nHost: localhost\r\nLast-Event-ID: 0x00:1\r\n\r\n".to_owned(),
    ];
    requests.map(String::into_bytes).into()
}

const UPGRADE: &[u8] = b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Masked frames (RFC 6455, section 5.2), after the handshake. The mask is zero, so that texts stay readable.
fn websocket() -> Vec<Vec<u8>> {
    let frame = |head: u8, payload: &[u8]| {
        let length = match payload.len() {
            short @ 0..126 => vec![0x80 | short as u8],
            long => [&[0xfe][..], &(long as u16).to_be_bytes()].concat(),
        };
        [&[head][..], &length, &[0; 4], payload].concat()
    };
    let ask = br#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#;
    let subscribe = br#"{"jsonrpc":"2.0","id":2,"method":"eth_subscribe","params":["newHeads"]}"#;
    let long = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"eth_chainId"}}"#, "x".repeat(200));
    vec![
        frame(0x81, ask),
        [frame(0x81, subscribe), frame(0x81, ask), frame(0x88, &[3, 0xe8])].concat(),
        [frame(0x01, &ask[..10]), frame(0x89, b"ping"), frame(0x00, &ask[10..20]), frame(0x80, &ask[20..])].concat(),
        [frame(0x82, ask), frame(0x8a, b""), frame(0x81, long.as_bytes())].concat(),
    ]
}
