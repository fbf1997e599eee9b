//! Starts the server as a process, and sends requests to it.

use crate::tls::Identity;
use serde_json::Value;
use socket2::{Domain, Socket, Type};
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use ureq::{Agent, Body};

/// A server on a free port. If it is a process, it is killed when dropped.
pub struct Server {
    /// `None` for a server in this process.
    child: Option<Child>,
    url: String,
    agent: Agent,
    transport: Transport,
    identity: Option<Identity>,
    log: Arc<Mutex<String>>,
}

/// How requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Over TCP.
    Plain,
    /// Over TLS.
    Tls,
}

impl Transport {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Plain, Self::Tls];
}

/// The address that requests are sent from unless the test chooses another one of this machine.
const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A connection, with or without TLS.
pub trait Duplex: Read + Write {}

impl<T: Read + Write> Duplex for T {}

/// A request whose body is not complete.
pub struct Begun(Box<dyn Duplex>);

/// A response of which only the status was read.
pub struct Responding {
    status: u16,
    _connection: Box<dyn Duplex>,
}

impl Responding {
    /// The status.
    pub fn status(&self) -> u16 {
        self.status
    }
}

impl Begun {
    /// Waits for the response.
    ///
    /// # Panics
    /// If there is none.
    pub fn responding(mut self) -> Responding {
        let mut start = [0; 12];
        self.0.read_exact(&mut start).expect("there is a response");
        let status = str::from_utf8(&start[9..]).ok().and_then(|status| status.parse().ok());
        Responding { status: status.expect("a status"), _connection: self.0 }
    }

    /// Sends the rest of the body and returns the status; 0 if there is no response.
    pub fn finish(mut self, rest: &str) -> u16 {
        // Connections of refused requests may be closed.
        let _ = self.0.write_all(rest.as_bytes());
        read_response(&mut *self.0, true).status
    }
}

impl Server {
    /// Starts `ethnode run --port 0` with more arguments, and waits until it listens. Unless `arguments` specify a
    /// folder, the chain is stored in memory.
    ///
    /// # Panics
    /// If the server ends before it listens.
    pub fn start<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Self {
        Self::listening(&mut command(arguments), Transport::Plain, None)
    }

    /// Like [`start`](Self::start), with `folder` as the working folder and that of the user, of temporary files and of
    /// data.
    ///
    /// # Panics
    /// If the server ends before it listens.
    pub fn start_in<A: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = A>) -> Self {
        let mut command = command(arguments);
        command.current_dir(folder);
        command.envs(["HOME", "TMPDIR", "XDG_DATA_HOME"].map(|name| (name, folder)));
        Self::listening(&mut command, Transport::Plain, None)
    }

    /// Like [`start`](Self::start), for requests over `transport`.
    pub fn over<A: AsRef<OsStr>>(transport: Transport, arguments: impl IntoIterator<Item = A>) -> Self {
        Self::listening_over(transport, command(arguments))
    }

    /// Like [`dev`](Self::dev), for requests over `transport`.
    pub fn dev_over<A: AsRef<OsStr>>(transport: Transport, arguments: impl IntoIterator<Item = A>) -> Self {
        let mut command = dev();
        command.args(["--bare"]).args(arguments);
        Self::listening_over(transport, command)
    }

    fn listening_over(transport: Transport, mut command: Command) -> Self {
        let identity = (transport == Transport::Tls).then(Identity::new);
        command.args(identity.iter().flat_map(Identity::options));
        Self::listening(&mut command, transport, identity)
    }

    /// Starts `ethnode dev --bare --port 0` with more arguments, and waits until it listens.
    ///
    /// # Panics
    /// If the server ends before it listens.
    pub fn dev<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Self {
        Self::listening(dev().arg("--bare").args(arguments), Transport::Plain, None)
    }

    /// Starts `ethnode dev --port 0`, with the contracts that tools expect, as users do.
    ///
    /// # Panics
    /// If the server ends before it listens.
    pub fn dev_with_contracts() -> Self {
        Self::listening(&mut dev(), Transport::Plain, None)
    }

    /// Starts `ethnode serve --port 0` with more arguments, and waits until it listens.
    ///
    /// # Panics
    /// If the server ends before it listens.
    pub fn serve<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Self {
        Self::listening(node_server().args(["serve", "--port", "0"]).args(arguments), Transport::Plain, None)
    }

    /// Starts `ethnode anvil --port 0` with more arguments, and waits until it listens.
    ///
    /// # Panics
    /// If the server ends before it listens.
    pub fn anvil<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Self {
        Self::listening(node_server().args(["anvil", "--port", "0"]).args(arguments), Transport::Plain, None)
    }

    fn listening(command: &mut Command, transport: Transport, identity: Option<Identity>) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        let (log, stderr) = (Arc::new(Mutex::new(String::new())), child.stderr.take().expect("stderr is piped"));
        let kept = log.clone();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                eprintln!("{line}");
                *kept.lock().unwrap_or_else(PoisonError::into_inner) += &(line + "\n");
            }
        });
        let stdout = child.stdout.take().expect("stdout is piped");
        let mut lines = BufReader::new(stdout).lines().map(|line| line.expect("stdout can be read"));
        let url = lines.find_map(|line| listening_on(&line));
        let url = url.expect("it says where it listens");
        let mut server = Self::new(Some(child), url);
        (server.transport, server.identity, server.log) = (transport, identity, log);
        server
    }

    /// The server that listens on `address` in this process.
    pub fn at(address: SocketAddr) -> Self {
        Self::at_over(address, Transport::Plain, None)
    }

    /// Like [`at`](Self::at), for requests over `transport`. With TLS, the server has this identity.
    pub fn at_over(address: SocketAddr, transport: Transport, identity: Option<Identity>) -> Self {
        let scheme = if identity.is_some() { "https" } else { "http" };
        let mut server = Self::new(None, format!("{scheme}://{address}"));
        (server.transport, server.identity) = (transport, identity);
        server
    }

    fn new(child: Option<Child>, url: String) -> Self {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(60)))
            // node-upstream enables compression in ureq, which would change the headers of responses.
            .accept_encoding("")
            .build()
            .new_agent();
        Self { url, child, agent, transport: Transport::Plain, identity: None, log: Arc::default() }
    }

    /// `http://HOST:PORT`, or `https://HOST:PORT` with TLS.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// `HOST:PORT`.
    pub fn address(&self) -> &str {
        self.url.split_once("://").map(|(_, address)| address).expect("the server says where it listens")
    }

    /// The certificate of a server with TLS.
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often the log contains `text`. Waits for the first time, because lines are written after responses.
    pub fn logged(&self, text: &str) -> usize {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            match self.log().matches(text).count() {
                0 if Instant::now() < deadline => thread::sleep(Duration::from_millis(10)),
                count => return count,
            }
        }
    }

    /// The files outside `/dev` that the process has open. None for a server in this process.
    ///
    /// # Panics
    /// If the process has ended.
    pub fn open_files(&self) -> Vec<PathBuf> {
        let Some(child) = &self.child else { return Vec::new() };
        let opened = std::fs::read_dir(format!("/proc/{}/fd", child.id())).expect("the process runs");
        let targets = opened.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        // Sockets, pipes and the like have no absolute path.
        targets.filter(|path| path.is_absolute() && !path.starts_with("/dev")).collect()
    }

    /// The number of threads and of open files of the process, and its memory in MiB; zeros if it is not known.
    pub fn resources(&self) -> [u64; 3] {
        let folder = |pid: u32| format!("/proc/{pid}");
        let Some(folder) = self.child.as_ref().map(|child| folder(child.id())) else { return [0; 3] };
        let status = std::fs::read_to_string(format!("{folder}/status")).unwrap_or_default();
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default()
        };
        let files = std::fs::read_dir(format!("{folder}/fd")).map_or(0, |files| files.count() as u64);
        [value("Threads:"), files, value("VmRSS:") / 1024]
    }

    /// Sends a GET request.
    pub fn get(&self, path: &str) -> Response {
        if self.transport != Transport::Plain {
            return self.send("GET", path, &[], "");
        }
        Response::read(self.agent.get(format!("{}{path}", self.url)).call())
    }

    /// Sends a POST request with `body` as JSON, well formed or not.
    pub fn post(&self, path: &str, body: impl AsRef<[u8]>) -> Response {
        if self.transport != Transport::Plain {
            let body = String::from_utf8_lossy(body.as_ref());
            return self.send("POST", path, &[("Content-Type", "application/json")], &body);
        }
        let request = self.agent.post(format!("{}{path}", self.url)).header("Content-Type", "application/json");
        Response::read(request.send(body.as_ref()))
    }

    /// Sends a request with any method and header lines, valid or not. Adds a `Host` header if there is none, and
    /// `Content-Length` if there is a body.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
        self.send_from(SOURCE, method, path, headers, body)
    }

    /// Like [`send`](Self::send), from another address of this machine.
    pub fn send_from(
        &self,
        source: IpAddr,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response {
        let Begun(mut stream) = self.begin(source, method, path, headers, body.len(), body);
        read_response(&mut *stream, method != "HEAD")
    }

    /// Sends a request of which only the `start` of a body of `length` bytes is sent.
    pub fn begin(
        &self,
        source: IpAddr,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        length: usize,
        start: &str,
    ) -> Begun {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        let has = |name: &str| headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        if !has("host") {
            head += &format!("Host: {}\r\n", self.address());
        }
        if length > 0 && !has("content-length") && !has("transfer-encoding") {
            head += &format!("Content-Length: {length}\r\n");
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        let mut stream = self.secured(self.connect_from(source));
        // A server that refuses a long body does not have to read all of it.
        let _ = stream.write_all(format!("{head}\r\n{start}").as_bytes());
        Begun(stream)
    }

    /// The peak memory of the process, in bytes.
    ///
    /// # Panics
    /// If the system does not report it.
    pub fn peak_memory(&self) -> u64 {
        let id = self.child.as_ref().map_or_else(std::process::id, Child::id);
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("/proc/PID/status is readable");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM is present");
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kilobytes * 1024
    }

    /// Opens a connection whose reads time out.
    pub fn connect(&self) -> TcpStream {
        self.connect_from(SOURCE)
    }

    /// Like [`connect`](Self::connect), with TLS if the server has it.
    pub fn connect_securely(&self) -> Box<dyn Duplex> {
        self.secured(self.connect())
    }

    fn secured(&self, stream: TcpStream) -> Box<dyn Duplex> {
        match &self.identity {
            Some(identity) => Box::new(identity.connect(stream, b"http/1.1")),
            None => Box::new(stream),
        }
    }

    /// Like [`connect`](Self::connect), from another address of this machine.
    pub fn connect_from(&self, source: IpAddr) -> TcpStream {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.bind(&SocketAddr::new(source, 0).into()).expect("an address of this machine");
        let address: SocketAddr = self.address().parse().expect("an address");
        socket.connect(&address.into()).expect("the server listens");
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("the time is not zero");
        stream
    }

    /// Sends `signal` (a name that `kill` accepts).
    ///
    /// # Panics
    /// If the server is not a process.
    pub fn signal(&self, signal: &str) {
        let child = self.child.as_ref().expect("the server is a process");
        let kill = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
        assert!(kill.expect("kill runs").success(), "kill -s {signal}");
    }

    /// Sends `signal` (a name that `kill` accepts) and waits for the process to end.
    ///
    /// # Panics
    /// If the server is not a process, or does not end within 20 seconds.
    pub fn end(self, signal: &str) -> ExitStatus {
        self.signal(signal);
        self.ended()
    }

    /// Waits for the process to end.
    ///
    /// # Panics
    /// If the server is not a process, or does not end within 20 seconds.
    pub fn ended(mut self) -> ExitStatus {
        let child = self.child.as_mut().expect("the server is a process");
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            if let Some(status) = child.try_wait().expect("the child can be waited for") {
                return status;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("the server did not end within 20 seconds");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // The process has already ended if `end` was called.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// `ethnode dev --port 0`, with a log of all requests instead of the lines for a terminal.
fn dev() -> Command {
    let mut command = node_server();
    command.env("ETHNODE_LOG", "info").args(["dev", "--port", "0"]);
    command
}

/// Returns the scheme and the address in the line with which a server says where it listens, as text, as JSON or as
/// anvil does.
pub fn listening_on(line: &str) -> Option<String> {
    if let Some(address) = line.strip_prefix("Listening on ") {
        return Some(format!("http://{address}"));
    }
    let (scheme, rest) = line.split_once("listening on ")?.1.split_once("://")?;
    let address = rest.split(['"', '/']).next()?;
    Some(format!("{scheme}://{address}"))
}

/// Reads a response as far as the server sends it.
fn read_response(stream: &mut dyn Duplex, has_body: bool) -> Response {
    let mut response = Response::parse("");
    let mut bytes = Vec::new();
    let mut piece = [0; 64 * 1024];
    // The server may wait for the rest of a body that it has refused, so the response's length decides.
    while !(response.status > 0 && has_body && response.is_whole()) {
        match stream.read(&mut piece) {
            Ok(length) if length > 0 => bytes.extend_from_slice(&piece[..length]),
            _ => break,
        }
        response = Response::parse(&String::from_utf8_lossy(&bytes));
    }
    response
}

/// Runs `ethnode run --port 0` with more arguments, sends `signal` (a name that `kill` accepts) when a log line
/// contains `mark`, and waits for the process to end. Returns its status, and the log after that line.
///
/// # Panics
/// If no line contains `mark`.
pub fn end_while_starting<A: AsRef<OsStr>>(
    arguments: impl IntoIterator<Item = A>,
    mark: &str,
    signal: &str,
) -> (ExitStatus, String) {
    let mut child = command(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("starts");
    let mut log = BufReader::new(child.stderr.take().expect("stderr is piped"));
    let mut line = String::new();
    while !line.contains(mark) {
        line.clear();
        assert!(log.read_line(&mut line).expect("stderr can be read") > 0, "no line with {mark:?}");
    }
    let kill = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
    assert!(kill.expect("kill runs").success(), "kill -s {signal}");
    let mut rest = String::new();
    log.read_to_string(&mut rest).expect("stderr can be read");
    (child.wait().expect("the child can be waited for"), rest)
}

/// Starts `ethnode run --port 0` with more arguments, without waiting, for tests that interrupt the start.
///
/// # Panics
/// If the process cannot be started.
pub fn spawn<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Child {
    command(arguments).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().expect("starts")
}

/// Runs `ethnode run --port 0` with more arguments until it ends, for starts that fail.
pub fn run_to_end<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Output {
    command(arguments).output().expect("the server starts")
}

fn command<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let arguments: Vec<OsString> = arguments.into_iter().map(|argument| argument.as_ref().to_owned()).collect();
    let mut command = node_server();
    command.args(["run", "--port", "0"]);
    if arguments.iter().all(|argument| argument != "--data-dir") {
        command.args(["--data-dir", ":memory:"]);
    }
    command.args(arguments);
    command
}

/// The program without arguments, with no user data folder.
pub fn node_server() -> Command {
    let mut command = Command::new(binary());
    command.stdin(Stdio::null());
    command.env_remove("HOME").env_remove("XDG_DATA_HOME").env_remove("ETHNODE_DATA_DIR");
    command
}

/// A response of the server.
#[derive(Debug)]
pub struct Response {
    /// HTTP status; 0 if the connection was closed without a response.
    pub status: u16,
    /// Media type without parameters.
    pub media_type: String,
    /// Headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body as received.
    pub text: String,
    /// Body as JSON; null if it is not JSON.
    pub body: Value,
}

impl Response {
    fn read(result: Result<ureq::http::Response<Body>, ureq::Error>) -> Self {
        let (parts, body) = result.expect("the server responds").into_parts();
        let mut bytes = Vec::new();
        body.into_reader().read_to_end(&mut bytes).expect("the body can be read");
        let text = |value: &ureq::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers: Vec<_> = parts.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
        Self::new(parts.status.as_u16(), headers, String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Parses a response whose body is not chunked.
    fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or(0);
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        Self::new(status, lines.filter_map(header).collect(), body.to_owned())
    }

    pub(crate) fn new(status: u16, headers: Vec<(String, String)>, text: String) -> Self {
        let media_type = headers.iter().find(|(name, _)| name == "content-type").map_or("", |(_, value)| value);
        let media_type = media_type.split(';').next().unwrap_or_default().to_owned();
        Self { status, media_type, body: serde_json::from_str(&text).unwrap_or(Value::Null), headers, text }
    }

    /// Returns the first header with this name, in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether the body is as long as its headers say.
    fn is_whole(&self) -> bool {
        self.header("content-length").and_then(|length| length.parse().ok()) == Some(self.text.len())
    }

    /// The URL of the next page in the header `Link`.
    pub fn next_page(&self) -> Option<&str> {
        let links = self.headers.iter().filter(|(name, _)| name == "link");
        links.filter_map(|(_, link)| link.strip_prefix('<')?.strip_suffix(">; rel=\"next\"")).next()
    }

    /// Returns a property of the body; null if it is missing.
    pub fn field(&self, name: &str) -> &Value {
        &self.body[name]
    }

    /// Returns the `location` of each error of a problem.
    pub fn locations(&self) -> Vec<&str> {
        let errors = self.body["errors"].as_array().map_or(&[][..], Vec::as_slice);
        errors.iter().filter_map(|error| error["location"].as_str()).collect()
    }

    /// Returns the faults in the structure of a problem with this status; empty if it is valid.
    pub fn problem_faults(&self, status: u16) -> Vec<String> {
        let mut faults = Vec::new();
        let mut expect = |what: &str, holds: bool| {
            if !holds {
                faults.push(what.to_owned());
            }
        };
        let absolute = |value: &Value| value.as_str().is_some_and(|uri| uri.starts_with("http"));
        expect("status line", self.status == status);
        expect("media type", self.media_type == "application/problem+json");
        expect("$schema", absolute(&self.body["$schema"]));
        expect("status", self.body["status"] == status);
        expect("title", self.body["title"].as_str().is_some_and(|title| !title.is_empty()));
        expect("detail", self.body["detail"].as_str().is_some_and(|detail| !detail.is_empty()));
        expect("type", self.body["type"] == "about:blank" || absolute(&self.body["type"]));
        let id = self.header("x-request-id").unwrap_or_default();
        expect("instance", self.body["instance"] == format!("urn:uuid:{id}"));
        let keys = ["$schema", "detail", "errors", "instance", "status", "title", "type"];
        let known = |body: &serde_json::Map<String, Value>| body.keys().all(|key| keys.contains(&key.as_str()));
        expect("keys", self.body.as_object().is_some_and(known));
        faults
    }
}

/// Returns a port on which nothing listens, another one with each call.
///
/// It is below the ports that the system chooses for connections and for port 0, so no other test gets it before it is
/// used.
///
/// # Panics
/// If there is none.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Processes that run at the same time begin at different ports.
    let first = 10_000 + 200 * u16::try_from(std::process::id() % 100).expect("it is small");
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let ports = std::iter::repeat_with(|| first + NEXT.fetch_add(1, Ordering::Relaxed) % 200);
    ports.take(200).find(is_free).expect("there is a free port")
}

/// Server arguments that import the recorded chain, from `../shared` beside the workspace or the folder in
/// `NODE_SHARED`.
///
/// # Panics
/// If the chain is not there. Tests that call this are ignored by default.
pub fn conformance_chain() -> [String; 4] {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    let folder = std::env::var_os("NODE_SHARED").map_or_else(beside, PathBuf::from).join("conformance/chain");
    assert!(folder.exists(), "{} does not exist", folder.display());
    let file = |name: &str| folder.join(name).display().to_string();
    ["--genesis".to_owned(), file("genesis.json"), "--import".to_owned(), file("chain.rlp")]
}

/// The server's executable: the one that the variable NODE_SERVER specifies, to test another version, or the one in
/// the test's folder.
/// `cargo test --workspace` has just built it; otherwise it is built here if it is missing or older than the sources.
fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(path) = std::env::var_os("NODE_SERVER") {
            return path.into();
        }
        let test = std::env::current_exe().expect("a test knows its path");
        // target/PROFILE/deps/test, or target/PROFILE/program
        let in_profile = |folder: &&Path| !folder.ends_with("deps");
        let profile = test.ancestors().skip(1).find(in_profile).expect("a program lies in its profile's folder");
        let binary = profile.join(format!("ethnode{}", std::env::consts::EXE_SUFFIX));
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate lies below the workspace");
        let built = binary.metadata().and_then(|file| file.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        if built < newest_source(workspace) {
            let mut cargo = Command::new(env!("CARGO"));
            let arguments = "build --quiet --package node-server --all-features --target-dir";
            cargo.current_dir(workspace).args(arguments.split(' '));
            cargo.arg(profile.parent().expect("the profile's folder lies below the target folder"));
            if profile.ends_with("release") {
                cargo.arg("--release");
            }
            assert!(cargo.status().expect("cargo runs").success(), "the server does not build");
        }
        binary
    })
}

/// The time of the last change to a source file of the workspace.
fn newest_source(workspace: &Path) -> SystemTime {
    let mut newest = SystemTime::UNIX_EPOCH;
    let mut folders = vec![workspace.join("crates"), workspace.join("bin")];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().expect("sources can be listed").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.components().any(|part| part.as_os_str() == "src") {
                newest = newest.max(entry.metadata().and_then(|file| file.modified()).unwrap_or(newest));
            }
        }
    }
    newest
}
