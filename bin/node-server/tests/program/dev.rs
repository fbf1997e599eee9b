//! Tests of `ethnode dev` through the program.

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// A running server, killed when dropped.
struct Server {
    child: Child,
    /// Its output up to the line that it listens.
    banner: String,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let mut child = command(arguments).spawn().expect("the server starts");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let mut banner = String::new();
        while !banner.contains("istening on ") {
            let line = lines.next().unwrap_or_else(|| panic!("it ended after:\n{banner}"));
            banner += &line.expect("stdout can be read");
            banner.push('\n');
        }
        Self { child, banner }
    }

    /// Returns the URL of the request in the banner, and the response to it.
    fn follow_curl(&self) -> (String, String) {
        let url = self.banner.lines().find_map(|line| line.strip_prefix("curl -s http://")).expect("a line with curl");
        let (host, path) = url.split_once('/').expect("a path");
        let mut stream = TcpStream::connect(host).expect("it listens");
        write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("it reads");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("it responds");
        (host.to_owned(), response)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ethnode"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("the file is there")).expect("it is JSON")
}

#[test]
fn the_request_in_the_banner_works_and_the_file_matches_the_banner() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config.json");
    // One that others could read.
    fs::write(&path, "x".repeat(10_000)).expect("it can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("chmod works");
    let server = Server::start(&["--port", "0", "--accounts", "3", "--config-out", path.to_str().expect("UTF-8")]);
    let (host, answer) = server.follow_curl();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(server.banner.ends_with(&format!("listening on http://{host}\n")), "{}", server.banner);

    let config = read(&path);
    assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
    assert_eq!(config["url"], format!("http://{host}"));
    let hash = config["genesis_hash"].as_str().expect("a hash");
    assert!(answer.contains(hash) && server.banner.contains(hash), "{hash}\n{answer}\n{}", server.banner);
    let (addresses, keys) = (&config["available_accounts"], &config["private_keys"]);
    assert_eq!(addresses[0], "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
    assert_eq!(keys[0], "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
    for list in [addresses, keys] {
        let list = list.as_array().expect("an array");
        assert_eq!(list.len(), 3);
        for value in list {
            assert!(server.banner.contains(value.as_str().expect("a string")), "{value}");
        }
    }
    let expected = [
        ("base_fee", "1000000000"),
        ("gas_limit", "30000000"),
        // The next base fee, an eighth below the first, and a tip of 1 gwei.
        ("gas_price", "1875000000"),
        ("chain_id", "31337"),
    ];
    for (name, value) in expected {
        assert_eq!(config[name], value, "{name}");
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let timestamp = config["genesis_timestamp"].as_str().and_then(|text| text.parse::<u64>().ok());
    assert!(timestamp.is_some_and(|time| (now - 600..=now).contains(&time)), "{timestamp:?}");
    assert_eq!(config["wallet"]["mnemonic"], "test test test test test test test test test test test junk");
    assert_eq!(config["wallet"]["derivation_path"], "m/44'/60'/0'/0/");
}

#[test]
fn an_unwritable_config_out_file_ends_the_start() {
    let output = command(&["dev", "--port", "0", "--config-out", "/nowhere/config.json"]).output().expect("it runs");
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("cannot write /nowhere/config.json: No such file"), "{text}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("listening"));
}

#[test]
fn silent_prints_only_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config.json");
    let mut server = command(&["--silent", "--port", "0", "--config-out", path.to_str().expect("UTF-8")])
        .spawn()
        .expect("it starts");
    // The file is written once it listens.
    while fs::read(&path).map_or(true, |bytes| !bytes.ends_with(b"}\n")) {
        assert!(server.try_wait().expect("the status can be read").is_none(), "it ended");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let stop = Command::new("kill").arg(server.id().to_string()).status().expect("kill runs");
    assert!(stop.success());
    let output = server.wait_with_output().expect("it ends");
    assert!(output.status.success());
    // Nobody could know the address otherwise.
    let address = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(address.starts_with("listening on http://127.0.0.1:") && address.lines().count() == 1, "{address}");
    assert!(output.stderr.is_empty(), "{:?}", output.stderr);
}

#[test]
fn a_folder_is_reopened_only_with_its_genesis() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let data = data.to_str().expect("UTF-8");
    for _ in 0..2 {
        let server = Server::start(&["dev", "--port", "0", "--data-dir", data]);
        assert!(server.banner.contains(&format!("data folder      {data}\n")), "{}", server.banner);
    }
    let output = command(&["dev", "--port", "0", "--data-dir", data, "--balance", "7"]).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("genesis"), "{text}");
}

#[test]
fn the_environment_sets_options() {
    let output = command(&["dev"]).env("ETHNODE_HARDFORK", "amsterdam").output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("unknown hardfork \"amsterdam\""), "{text}");
    // Options of `dev` have no say in other commands.
    let output =
        command(&["stats", "--data-dir", "/nowhere"]).env("ETHNODE_HARDFORK", "amsterdam").output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("/nowhere") && !text.contains("hardfork"), "{text}");
}

/// Programs that start anvil take the port from the last line of the banner, and anything on standard error for a
/// failure.
#[test]
fn a_program_named_anvil_prints_what_anvil_prints() {
    let folder = tempfile::tempdir().expect("a folder");
    let anvil = folder.path().join("anvil");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ethnode"), &anvil).expect("links work");
    let version = Command::new(&anvil).arg("--version").output().expect("it runs");
    assert!(version.status.success() && version.stdout.starts_with(b"anvil Version: "), "{version:?}");
    let help = Command::new(&anvil).arg("--help").output().expect("it runs");
    assert!(String::from_utf8_lossy(&help.stdout).contains("Usage: ethnode anvil [OPTIONS]"), "{help:?}");
    let arguments = ["-p", "0", "--host", "127.0.0.1", "-a", "2", "-b", "12"];
    let mut child =
        Command::new(&anvil).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
    let mut banner = Vec::new();
    let address = loop {
        let line = lines.next().unwrap_or_else(|| panic!("it ended after {banner:?}")).expect("stdout can be read");
        if let Some(address) = line.strip_prefix("Listening on ") {
            break address.to_owned();
        }
        banner.push(line);
    };
    let _client = TcpStream::connect(&*address).expect("it listens");
    let section =
        |name: &str| banner.iter().skip_while(|line| *line != name).skip(3).take(2).cloned().collect::<Vec<_>>();
    assert!(section("Available Accounts")[0].starts_with("(0) 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266 ("));
    assert!(section("Private Keys")[0].ends_with("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"));
    assert!(Command::new("kill").arg(child.id().to_string()).status().expect("kill runs").success());
    let mut errors = String::new();
    child.stderr.take().expect("stderr is piped").read_to_string(&mut errors).expect("it can be read");
    assert!(child.wait().expect("it ends").success() && errors.is_empty(), "{errors}");
}
