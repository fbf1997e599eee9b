//! Tests of the server as a service: systemd notifications, the log, and `health`.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

fn start(command: &mut Command) -> (Child, String) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.as_mut().expect("stdout is piped")).lines();
    let url = lines.find_map(|line| line.ok()?.split_once("listening on ")?.1.split('"').next().map(ToOwned::to_owned));
    drop(lines);
    (child, url.expect("it listens"))
}

fn stop(child: Child) -> Output {
    let kill = Command::new("kill").arg(child.id().to_string()).status().expect("kill runs");
    assert!(kill.success());
    child.wait_with_output().expect("it ends")
}

/// The socket on which systemd would receive notifications.
struct Notifications(UnixDatagram);

impl Notifications {
    fn at(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("not zero");
        Self(socket)
    }

    fn expect(&self, start: &str) -> String {
        let mut buffer = [0; 1024];
        let length = self.0.recv(&mut buffer).expect("a message");
        let message = String::from_utf8_lossy(&buffer[..length]).into_owned();
        assert!(message.starts_with(start), "{message}");
        message
    }
}

fn run() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ethnode"));
    command.args(["run", "--data-dir", ":memory:", "--port", "0"]);
    command
}

#[test]
fn notifies_systemd_of_the_start_and_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notify");
    let notifications = Notifications::at(&path);
    let (child, url) = start(run().env("NOTIFY_SOCKET", &path));
    let ready = notifications.expect("READY=1\n");
    assert!(ready.contains(&format!("STATUS=listening on {}", url.trim_start_matches("http://"))), "{ready}");
    assert!(stop(child).status.success());
    notifications.expect("STOPPING=1\n");
}

#[test]
fn systemd_allows_more_time_for_a_large_genesis() {
    let folder = tempfile::tempdir().expect("a folder");
    let [path, genesis] = ["notify", "genesis.json"].map(|name| folder.path().join(name));
    let alloc: String = (0..20_000).map(|index| format!(r#","{index:040x}":{{"balance":"1"}}"#)).collect();
    let json = format!(r#"{{"config":{{}},"difficulty":1,"gasLimit":5000,"alloc":{{{}}}}}"#, &alloc[1..]);
    std::fs::write(&genesis, json).expect("it can be written");
    let notifications = Notifications::at(&path);
    let (child, _) = start(run().arg("--genesis").arg(&genesis).env("NOTIFY_SOCKET", &path));
    for status in ["sorting the accounts of ", "writing the accounts of "] {
        notifications.expect(&format!("EXTEND_TIMEOUT_USEC=120000000\nSTATUS={status}"));
    }
    // The server writes that it listens before it notifies systemd, so it must not be stopped earlier.
    notifications.expect("READY=1\n");
    stop(child);
}

#[test]
fn the_log_is_text_or_json_and_whole_at_the_end() {
    for format in ["text", "json"] {
        let (child, _) = start(run().args(["--log-format", format, "--log", "info"]));
        let output = stop(child);
        let log = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(output.status.success() && log.contains("the chain is kept in memory"), "{log}");
        for line in log.lines() {
            let json: Result<serde_json::Value, _> = serde_json::from_str(line);
            assert_eq!(json.is_ok(), format == "json", "{line}");
            if let Ok(json) = json {
                assert!(
                    json["timestamp"].is_string() && json["level"].is_string() && json["message"].is_string(),
                    "{line}"
                );
            }
        }
    }
}

/// Standard error is the file that systemd announces, so lines begin with priorities, also those before the log starts.
#[test]
fn lines_for_the_journal_have_priorities() {
    use std::os::unix::fs::MetadataExt;
    let file = tempfile::NamedTempFile::new().expect("a file");
    let found = file.as_file().metadata().expect("it exists");
    let journal = format!("{}:{}", found.dev(), found.ino());
    let write = || std::fs::OpenOptions::new().append(true).open(file.path()).expect("it can be written");
    let mut server = run();
    server.env("JOURNAL_STREAM", &journal).stdout(Stdio::piped()).stderr(write());
    let mut child = server.spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.as_mut().expect("stdout is piped")).lines().map_while(Result::ok);
    let url = lines.find_map(|line| Some(line.split_once("listening on ")?.1.to_owned())).expect("it listens");
    assert!(
        Command::new(env!("CARGO_BIN_EXE_ethnode")).args(["health", &url]).output().expect("it runs").status.success()
    );
    assert!(stop(child).status.success());
    for arguments in [&["--port", "70000"][..], &["--genesis", "/nowhere"]] {
        let mut server = run();
        server.args(arguments).env("JOURNAL_STREAM", &journal).stderr(write());
        assert_eq!(server.status().expect("it runs").code(), Some(2), "{arguments:?}");
    }
    let text = std::fs::read_to_string(file.path()).expect("UTF-8");
    let of = |word: &str| text.lines().filter(|line| line.contains(word)).map(|line| &line[..3]).collect::<Vec<_>>();
    assert!(text.lines().all(|line| line.starts_with('<')), "{text}");
    assert_eq!(of("the chain is kept in memory"), ["<6>"], "{text}");
    assert_eq!(of(" request:"), ["<7>"], "{text}");
    assert_eq!(of("error: "), ["<3>"; 2], "{text}");
    // The variable is inherited by programs whose standard error is something else.
    let other = run().args(["--port", "70000"]).env("JOURNAL_STREAM", &journal).output().expect("it runs");
    assert!(other.stderr.starts_with(b"error: "), "{other:?}");
}

#[test]
fn the_log_precedes_the_error_of_a_failed_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let chain = folder.path().join("chain.rlp");
    std::fs::write(&chain, [0xff; 100]).expect("it can be written");
    let output = run().args(["--strict", "--import"]).arg(&chain).output().expect("it runs");
    let log = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(2), "the file stays invalid");
    let importing = log.find("importing ").unwrap_or_else(|| panic!("{log}"));
    assert!(importing < log.find("error: ").unwrap_or_else(|| panic!("{log}")), "{log}");
}

#[test]
fn health_reports_the_status_of_a_server() {
    let (child, url) = start(&mut run());
    let ask = |path: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ethnode"));
        command.args(["health", &format!("{url}{path}")]).output().expect("it runs")
    };
    let healthy = ask("/health");
    assert!(healthy.status.success(), "{}", String::from_utf8_lossy(&healthy.stderr));
    assert!(String::from_utf8_lossy(&healthy.stdout).contains("\"Status\":\"ok\""));
    let missing = ask("/nowhere");
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("returned status 404"));
    stop(child);
    let gone = ask("/health");
    assert!(String::from_utf8_lossy(&gone.stderr).contains("does not respond"));
}
