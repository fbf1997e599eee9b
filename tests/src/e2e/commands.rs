//! The commands that work on a data folder, run as processes.

use crate::generator::{CONTRACT, Generator, Shape, slot_key};
use crate::server::{Server, node_server, run_to_end};
use crate::wallet::{ALICE, hex};
use node_chain::BlockStream;
use node_chain::genesis::DEV_GENESIS;
use node_types::consensus::Block;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use tempfile::TempDir;

const BLOCKS: u64 = 60;

/// A temporary folder for chain files and data.
struct Fixture(TempDir);

impl Fixture {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Creates a folder with the chain file `chain.rlp`. Returns its blocks.
    fn with_chain(blocks: u64, transactions_per_block: usize) -> (Self, Vec<Vec<u8>>) {
        let fixture = Self::new();
        let mut file = Vec::new();
        Generator::new(Shape { transactions_per_block, ..Shape::default() }).write(blocks, &mut file).unwrap();
        fs::write(fixture.path("chain.rlp"), &file).unwrap();
        (fixture, BlockStream::new(&file[..]).map(|block| block.unwrap().bytes).collect())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// A command on the folder `data`. Arguments with a dot are files in the temporary folder.
    fn command(&self, words: &str) -> Command {
        let mut command = node_server();
        for word in words.split(' ') {
            if word.contains('.') {
                command.arg(self.path(word))
            } else {
                command.arg(word)
            };
        }
        command.args(["--data-dir", &self.text("data")]);
        command
    }

    /// Runs a command that must succeed. Returns its result.
    fn result(&self, words: &str) -> Value {
        let (status, lines, log) = run(self.command(words).arg("--json"));
        assert!(status.success(), "{words}: {log}");
        let result = lines.last().unwrap().clone();
        assert_eq!(result["event"], "result", "{words}: {result}");
        assert_eq!(result["command"], words.split(' ').next().unwrap());
        result
    }

    /// Runs a command that must fail with status 1 and one line `error: …`. Returns the message.
    fn refusal(&self, words: &str) -> String {
        refusal(&mut self.command(words))
    }

    fn server(&self, arguments: &[&str]) -> Server {
        let data = self.text("data");
        Server::start(["--data-dir", &data].iter().chain(arguments))
    }
}

/// Runs a command. Returns its status, the JSON lines that it wrote, and its log.
fn run(command: &mut Command) -> (ExitStatus, Vec<Value>, String) {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (output.status, lines, String::from_utf8(output.stderr).unwrap())
}

fn refusal(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{command:?}: {text}");
    assert_eq!(output.stdout, b"", "{command:?}");
    let lines: Vec<_> = text.lines().collect();
    let [line] = lines[..] else { panic!("{command:?}: {text}") };
    line.strip_prefix("error: ").unwrap_or_else(|| panic!("{command:?}: {text}")).to_owned()
}

#[test]
fn continues_an_interrupted_import() {
    let (fixture, blocks) = Fixture::with_chain(BLOCKS, 4);
    fs::write(fixture.path("half.rlp"), blocks[..30].concat()).unwrap();
    for (file, imported, known, head) in [("half", 30, 0, 30), ("chain", 30, 30, 60), ("chain", 0, 60, 60)] {
        let result = fixture.result(&format!("import {file}.rlp"));
        let [got_imported, got_known, durable] = ["imported", "known", "durable"].map(|name| &result[name]);
        assert_eq!((got_imported, got_known, durable), (&json!(imported), &json!(known), &json!(head)), "{file}");
        assert_eq!(result["head"]["number"], head);
    }
    let head = Block::decode(blocks.last().unwrap()).unwrap().header.hash();
    assert_eq!(fixture.result("verify")["head"], json!({"number": BLOCKS, "hash": hex(head.as_bytes())}));

    // An invalid block ends the import with an error; the blocks before it stay.
    let fixture = Fixture::new();
    fs::write(fixture.path("cut.rlp"), &blocks[..10].concat()[..blocks[..9].concat().len() + 5]).unwrap();
    let refusal = fixture.refusal("import cut.rlp");
    assert!(refusal.contains("cut.rlp was not imported completely; the head is block 9: "), "{refusal}");
    assert_eq!(fixture.result("stats")["head"]["number"], 9);
}

#[test]
fn exports_the_imported_bytes() {
    let (fixture, blocks) = Fixture::with_chain(BLOCKS, 4);
    fixture.result("import chain.rlp");
    let bytes = |name: &str| fs::read(fixture.path(name)).unwrap();
    let result = fixture.result("export all.rlp");
    assert_eq!(
        (&result["from"], &result["to"], &result["bytes"]),
        (&json!(1), &json!(60), &json!(bytes("all.rlp").len()))
    );
    assert!(bytes("all.rlp") == bytes("chain.rlp"));
    fixture.result("export --from 10 --to 20 part.rlp");
    assert!(bytes("part.rlp") == blocks[9..20].concat());
    let piped = fixture.command("export --from 60 -").output().unwrap();
    assert!(piped.status.success() && piped.stdout == blocks[59], "{}", String::from_utf8_lossy(&piped.stderr));

    let refusals = [
        ("export part.rlp", "exists; --force overwrites it"),
        ("export --from 61 new.rlp", "--from 61 is above the head, block 60"),
        ("export --to 61 new.rlp", "--to 61 is above the head, block 60"),
        ("export --from 5 --to 4 new.rlp", "--from 5 is above --to 4"),
        ("export nowhere/new.rlp", "cannot write "),
    ];
    for (words, reason) in refusals {
        let refusal = fixture.refusal(words);
        assert!(refusal.contains(reason), "{words}: {refusal}");
    }
    assert!(bytes("part.rlp") == blocks[9..20].concat());
    assert!(!fixture.path("new.rlp").exists() && !fixture.path("new.rlp.part").exists());
    fixture.result("export --force part.rlp");
    assert!(bytes("part.rlp") == bytes("chain.rlp"));

    // From block 0: an import skips the genesis block.
    fixture.result("export --from 0 whole.rlp");
    let result = fixture.result("import whole.rlp");
    assert_eq!((&result["imported"], &result["known"]), (&json!(0), &json!(61)));
}

#[test]
fn an_export_does_not_replace_files_of_its_folder() {
    let (fixture, _) = Fixture::with_chain(3, 1);
    fixture.result("import chain.rlp");
    std::os::unix::fs::symlink(fixture.path("data"), fixture.path("linked.folder")).unwrap();
    let names: Vec<_> = fs::read_dir(fixture.path("data")).unwrap().map(|file| file.unwrap().file_name()).collect();
    let manifest = names.iter().find_map(|name| name.to_str().filter(|name| name.starts_with("manifest"))).unwrap();
    for folder in ["data", "linked.folder"] {
        for name in [manifest, "new.rlp"] {
            let file = fixture.path(folder).join(name);
            let refusal = refusal(fixture.command("export --force").arg(&file));
            assert!(refusal.contains("is inside the folder"), "{refusal}");
        }
    }
    assert_eq!(fixture.result("verify")["head"]["number"], 3);
    assert!(!fixture.path("data").join("new.rlp").exists());
    // Standard output is none of its files, whatever the current folder is.
    let piped = fixture.command("export -").current_dir(fixture.path("data")).output().unwrap();
    assert!(piped.stdout == fs::read(fixture.path("chain.rlp")).unwrap());
}

#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let (fixture, _) = Fixture::with_chain(3, 1);
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    for words in ["import chain.rlp", "verify", "stats", "export out.rlp", "backup the.copy", "prune --before 1"] {
        for json in [&[][..], &["--json"]] {
            // The destinations must not exist.
            let _ = (fs::remove_file(fixture.path("out.rlp")), fs::remove_dir_all(fixture.path("the.copy")));
            let output = fixture.command(words).args(json).stdout(full()).stderr(Stdio::piped()).spawn().unwrap();
            let output = output.wait_with_output().unwrap();
            let text = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{words} {json:?}: {text}");
            assert!(text.contains("error: cannot write to standard output: No space left"), "{words} {json:?}: {text}");
        }
    }
    // Nobody has to read the result.
    for json in [&[][..], &["--json"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = fixture.command("verify").args(json).stdout(writer).status().unwrap();
        assert!(status.success(), "{json:?}: {status}");
    }
}

/// Runs the program with a limit of `blocks` for the size of each file, of 512 or 1024 bytes each. Returns its error.
fn with_small_files(blocks: usize, words: &[&str]) -> String {
    let mut limited = Command::new("sh");
    limited
        .args(["-c", &format!("ulimit -f {blocks}; exec \"$0\" \"$@\"")])
        .arg(node_server().get_program())
        .args(words);
    let output = limited.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{words:?}: {text}");
    text.lines().find_map(|line| line.strip_prefix("error: ")).unwrap().to_owned()
}

#[test]
fn a_limit_of_file_sizes_is_an_error() {
    let (fixture, _) = Fixture::with_chain(3, 1);
    let [ready, fresh, out] = ["ready", "fresh", "out.rlp"].map(|name| fixture.text(name));
    let chain = fixture.text("chain.rlp");
    let imported = node_server().args(["import", &chain, "--data-dir", &ready]).status().unwrap();
    assert!(imported.success());
    for words in [["import", &chain, "--data-dir", &fresh], ["export", &out, "--data-dir", &ready]] {
        let error = with_small_files(1, &words);
        assert!(error.contains("File too large"), "{words:?}: {error}");
    }
}

#[test]
fn a_failed_import_reports_what_is_durable() {
    // More than fits into the buffer of the log, 4 MiB.
    let (fixture, _) = Fixture::with_chain(150, 100);
    let (chain, data) = (fixture.text("chain.rlp"), fixture.text("data"));
    let error = with_small_files(64, &["import", &chain, "--data-dir", &data, "--sync-every", "100000"]);
    assert!(error.contains("chain.rlp: blocks up to 0 are durable, later ones may be lost: "), "{error}");
}

#[test]
fn stats_count_the_imported_rows() {
    let (fixture, blocks) = Fixture::with_chain(BLOCKS, 4);
    fixture.result("import chain.rlp");
    let stats = fixture.result("stats");
    let rows = |name: &str| {
        let tables = stats["tables"].as_array().unwrap();
        tables.iter().find(|table| table["name"] == name).unwrap()["rows"].as_u64().unwrap()
    };
    let transactions: usize = blocks.iter().map(|block| Block::decode(block).unwrap().transactions.len()).sum();
    for (table, expected) in [("headers", BLOCKS + 1), ("fees", BLOCKS + 1), ("transactions", transactions as u64)] {
        assert_eq!(rows(table), expected, "{table}");
    }
    assert_eq!(stats["changed_leaves"], rows("accounts") + rows("storage"));
    assert!(rows("storage") > 0);
    let number = |name: &str| stats[name].as_f64().unwrap();
    let table = |name: &str, of: &str| {
        stats["tables"].as_array().unwrap().iter().find(|table| table["name"] == name).unwrap()[of].as_f64().unwrap()
    };
    assert_eq!(number("trie_bytes_per_leaf"), table("trie", "disk_bytes") / number("changed_leaves"));
    assert_eq!(number("bytes_per_block"), number("run_bytes") / (BLOCKS + 1) as f64);
    let on_disk: f64 =
        stats["tables"].as_array().unwrap().iter().map(|table| table["disk_bytes"].as_f64().unwrap()).sum();
    assert!(on_disk < number("run_bytes"), "{stats}");
    assert!(number("runs") >= 2.0 && number("run_bytes") < number("bytes"), "{stats}");

    let shown = fixture.command("stats").output().unwrap();
    let text = String::from_utf8(shown.stdout).unwrap();
    let headers = text.lines().find(|line| line.starts_with("headers ")).unwrap();
    assert_eq!(headers.split_whitespace().nth(1), Some("61"), "{text}");
}

/// A slot of the contract as of a block.
fn slot(server: &Server, block: u64) -> crate::server::Response {
    let body = json!({
        "Address": hex(CONTRACT.as_bytes()), "Position": hex(slot_key(1).as_bytes()), "BlockNumber": block.to_string(),
    });
    server.post("/getStorageAt/", body.to_string())
}

/// Checks that states from block `floor` on equal those of `reference`, and that earlier ones are refused.
fn check_pruned(server: &Server, reference: &Server, floor: u64) {
    for block in 0..=BLOCKS {
        let proof = json!({"Address": ALICE, "BlockNumber": block.to_string()}).to_string();
        let call =
            json!({"Transaction": {"To": hex(CONTRACT.as_bytes())}, "BlockNumber": block.to_string()}).to_string();
        let balance = format!("/getBalance/{ALICE}/?BlockNumber={block}");
        let responses = |server: &Server| {
            [slot(server, block), server.post("/getProof/", &proof), server.post("/call/", &call), server.get(&balance)]
        };
        for (got, mut expected) in responses(server).into_iter().zip(responses(reference)) {
            if block < floor {
                assert_eq!(got.problem_faults(404), [""; 0], "as of {block}: {}", got.text);
                let kind = got.field("type").as_str().unwrap();
                assert!(kind.ends_with("/problems/state-pruned"), "as of {block}: {kind}");
            } else {
                // It occupies the port.
                expected.body["$schema"] = got.body["$schema"].clone();
                assert_eq!((got.status, &got.body), (200, &expected.body), "as of {block}");
            }
        }
        let path = format!("/getBlockByNumber/{block}/true/");
        assert_eq!(server.get(&path).field("Block"), reference.get(&path).field("Block"), "{block}");
    }
}

#[test]
fn imports_from_a_named_pipe_and_ends() {
    let (fixture, blocks) = Fixture::with_chain(20, 1);
    assert!(Command::new("mkfifo").arg(fixture.path("pipe.rlp")).status().unwrap().success());
    let (chain, pipe) = (fixture.path("chain.rlp"), fixture.path("pipe.rlp"));
    let writer = thread::spawn(move || fs::write(pipe, fs::read(chain).unwrap()).unwrap());
    assert_eq!(fixture.result("import pipe.rlp")["imported"], blocks.len());
    writer.join().unwrap();
}

#[test]
fn refuses_pruned_states() {
    let (fixture, _) = Fixture::with_chain(BLOCKS, 4);
    let chain = fixture.text("chain.rlp");
    let reference = Server::start(["--strict", "--import", &chain]);
    fixture.result("import chain.rlp");
    let rows = fixture.result("stats")["rows"].as_u64().unwrap();
    let result = fixture.result("prune --before 40");
    assert_eq!(result["earliest_state"], 40);
    assert_eq!(fixture.result("stats")["rows"], rows - result["rows_dropped"].as_u64().unwrap());
    assert!(result["rows_dropped"].as_u64().unwrap() > 0);
    check_pruned(&fixture.server(&[]), &reference, 40);
    // A lower floor does not restore anything.
    let result = fixture.result("prune --before 10");
    assert_eq!((&result["earliest_state"], &result["rows_dropped"]), (&json!(40), &json!(0)));
    // `run` prunes, too; the floor remains without the option.
    check_pruned(&fixture.server(&["--prune-before", "50"]), &reference, 50);
    check_pruned(&fixture.server(&[]), &reference, 50);
    assert_eq!(fixture.result("verify")["earliest_state"], 50);

    // Import with a floor.
    let other = Fixture::new();
    fs::copy(fixture.path("chain.rlp"), other.path("chain.rlp")).unwrap();
    assert_eq!(other.result("import --prune-before 60 chain.rlp")["earliest_state"], 60);
    check_pruned(&other.server(&[]), &reference, 60);

    let above = "--prune-before 61 is above the head, block 60";
    assert_eq!(fixture.refusal("import --prune-before 61 chain.rlp"), above);
    assert_eq!(fixture.refusal("prune --before 61"), above.replace("--prune-before", "--before"));
    let data = fixture.text("data");
    let output = run_to_end(["--data-dir", &data, "--prune-before", "61"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains(above));

    // In memory.
    check_pruned(&Server::start(["--strict", "--import", &chain, "--prune-before", "40"]), &reference, 40);
    let output = run_to_end(["--prune-before", "1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--prune-before 1 is above the head, block 0"));
}

#[test]
fn refuses_unusable_folders() {
    let (fixture, _) = Fixture::with_chain(3, 1);
    let all = ["import chain.rlp", "export out.rlp", "verify", "stats", "prune --before 1"];
    for words in &all[1..] {
        assert!(fixture.refusal(words).ends_with(": the folder does not exist"), "{words}");
    }
    assert!(!fixture.path("data").exists());

    drop(fixture.server(&[]));
    assert_eq!(fixture.refusal("export out.rlp"), "the chain has no block after its first one");
    fixture.result(all[0]);
    let server = fixture.server(&[]);
    for words in ["import chain.rlp", "prune --before 1"] {
        assert!(fixture.refusal(words).ends_with("is in use by another process"), "{words}");
    }
    drop(server);

    let mut other: Value = serde_json::from_str(DEV_GENESIS).unwrap();
    other["extraData"] = json!("0x01");
    fs::write(fixture.path("other.json"), other.to_string()).unwrap();
    for words in all {
        let refusal = fixture.refusal(&format!("{words} --genesis other.json"));
        assert!(refusal.contains(": the folder holds a chain with genesis 0x"), "{words}: {refusal}");
    }

    let mut command = node_server();
    let refusal = refusal(command.args(["verify", "--data-dir", ":memory:"]));
    assert!(refusal.starts_with("verify needs a folder"), "{refusal}");
    let (status, lines, _) = run(fixture.command("verify --genesis missing.json").arg("--json"));
    assert_eq!((status.code(), lines.len()), (Some(1), 1));
    assert_eq!(lines[0]["event"], "error");
    assert!(lines[0]["message"].as_str().unwrap().contains("missing.json"), "{lines:?}");
}

#[test]
fn stores_the_chain_in_the_users_data_folder_by_default() {
    let (fixture, _) = Fixture::with_chain(3, 1);
    let chain = fixture.text("chain.rlp");
    let at_home = |words: &[&str]| {
        let mut command = node_server();
        command.args(words).env("XDG_DATA_HOME", fixture.path("share"));
        command
    };
    let (status, lines, log) = run(at_home(&["import", &chain]).arg("--json"));
    assert!(status.success(), "{log}");
    let genesis = node_chain::dev_genesis().block().header.hash;
    let folder = fixture.path("share").join("ethnode").join(hex(genesis.as_bytes()));
    assert!(node_store::Store::exists(folder));
    let (status, verified, log) = run(at_home(&["verify"]).arg("--json"));
    assert!(status.success(), "{log}");
    assert_eq!(verified.last().unwrap()["head"], lines.last().unwrap()["head"]);

    let refusal = refusal(node_server().args(["import", &chain]));
    assert!(refusal.starts_with("no folder for the chain: neither XDG_DATA_HOME nor HOME "), "{refusal}");
}

#[test]
fn blocks_reported_as_durable_survive_a_kill() {
    let (fixture, blocks) = Fixture::with_chain(4_000, 0);
    for (signal, already) in [("KILL", 0), ("TERM", 1_000)] {
        let mut import = fixture.command("import chain.rlp");
        let mut import = import.arg("--json").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(import.stdout.take().unwrap()).lines();
        let durable = loop {
            let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            assert_eq!(line["event"], "progress", "{line}");
            let durable = line["durable"].as_u64().unwrap();
            if durable > already {
                break durable;
            }
        };
        let kill = Command::new("kill").args(["-s", signal, &import.id().to_string()]).status().unwrap();
        assert!(kill.success());
        let rest: Vec<_> = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap()).collect();
        let status = import.wait().unwrap();
        let head = fixture.result("verify")["head"]["number"].as_u64().unwrap();
        let last = rest.iter().filter_map(|line| line["durable"].as_u64()).next_back().unwrap_or(durable);
        assert!(head >= last, "{signal}: head {head}, durable {last}");
        // The import may have finished before the signal.
        if signal == "TERM" && head < blocks.len() as u64 {
            assert_eq!(status.code(), Some(1), "{signal}");
            let expected = json!({"event": "error", "message": format!("a signal ended the import at block {head}")});
            assert_eq!(rest.last(), Some(&expected));
        }
    }
    let result = fixture.result("import chain.rlp");
    assert_eq!(result["head"]["number"], blocks.len());
    assert!(result["known"].as_u64().unwrap() >= 1_000, "{result}");
}

#[test]
fn verify_reports_damaged_rows() {
    let (fixture, blocks) = Fixture::with_chain(BLOCKS, 4);
    fixture.result("import chain.rlp");
    // A hash is not compressed.
    let transaction = Block::decode(&blocks[29]).unwrap().transactions[1].hash();
    let mut damaged = Vec::new();
    for file in fs::read_dir(fixture.path("data")).unwrap().map(|file| file.unwrap()) {
        let mut bytes = fs::read(file.path()).unwrap();
        let found = bytes.windows(32).position(|window| window == transaction.as_bytes());
        let name = file.file_name().into_string().unwrap();
        if let Some(at) = found.filter(|_| name.starts_with("run-")) {
            bytes[at] ^= 1;
            fs::write(file.path(), bytes).unwrap();
            damaged.push(name);
        }
    }
    assert!(!damaged.is_empty());

    let (status, lines, log) = run(fixture.command("verify").arg("--json"));
    assert_eq!(status.code(), Some(1), "{log}");
    let error = lines.last().unwrap();
    assert_eq!(error["event"], "error");
    let refusal = fixture.refusal("verify");
    for message in [error["message"].as_str().unwrap(), &refusal] {
        let is_named = |name: &String| message.contains(&format!("{name} is damaged: the "));
        assert!(damaged.iter().any(is_named), "{message}");
    }
}

#[test]
fn a_large_genesis_is_imported_and_served_without_its_file() {
    let fixture = Fixture::new();
    let shape = Shape { genesis_accounts: 3_000, transactions_per_block: 5, ..Shape::default() };
    let mut genesis = Vec::new();
    shape.write_genesis(&mut genesis).unwrap();
    let mut chain = Vec::new();
    Generator::on_genesis(shape, &genesis[..]).unwrap().write(20, &mut chain).unwrap();
    fs::write(fixture.path("chain.rlp"), &chain).unwrap();
    fs::write(fixture.path("small.json"), &genesis).unwrap();
    // Accounts of files of this size are not held in memory.
    genesis.resize(17 << 20, b' ');
    fs::write(fixture.path("large.json"), &genesis).unwrap();

    let refused = fixture.refusal("import --genesis missing.json chain.rlp");
    assert!(refused.contains("missing.json"), "{refused}");
    let imported = fixture.result("import --genesis large.json chain.rlp");
    assert_eq!(imported["imported"], 20);
    // It is the chain of the same file without spaces.
    let again = fixture.result("import --genesis small.json chain.rlp");
    assert_eq!((&again["known"], &again["head"]), (&json!(20), &imported["head"]));
    assert_eq!(fixture.result("verify")["difference"], Value::Null);

    let holder = hex(shape.genesis_holders(1).next().unwrap().as_bytes());
    let slot = json!({"Address": holder, "Position": format!("{:#066x}", 3), "BlockNumber": "0"});
    let stored = fixture.server(&[]).post("/getStorageAt/", slot.to_string());
    assert_eq!(stored.field("Value"), &json!(format!("{:#066x}", 4)));
}
