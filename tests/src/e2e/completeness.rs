//! An archive that is not there, or not complete, does not look healthy.

use crate::generator::{Generator, Shape};
use crate::server::{Server, node_server, run_to_end};
use std::fs;
use std::path::Path;

/// The blocks of a generated chain, as a chain file.
fn chain_file(folder: &Path, blocks: u64) -> String {
    let path = folder.join("chain.rlp");
    let mut file = Vec::new();
    Generator::new(Shape::default()).write(blocks, &mut file).unwrap();
    fs::write(&path, file).unwrap();
    path.display().to_string()
}

/// Runs a command that must fail. Returns what it says.
fn refusal(arguments: &[&str]) -> String {
    let output = run_to_end(arguments);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{arguments:?}: {text}");
    assert_eq!(output.stdout, b"", "{arguments:?}");
    text
}

#[test]
fn a_chain_is_not_created_where_there_must_be_one() {
    let root = tempfile::tempdir().unwrap();
    let chain = chain_file(root.path(), 3);
    let [missing, empty] = ["missing", "empty"].map(|name| root.path().join(name).display().to_string());
    fs::create_dir(&empty).unwrap();
    for (folder, reason) in [(&missing, "the folder does not exist"), (&empty, "there is no chain in the folder")] {
        let refused = refusal(&["--data-dir", folder, "--existing", "--import", &chain]);
        let expected = format!("data folder {folder} must have a chain (--existing): {reason}");
        assert!(refused.contains(&expected), "{refused}");
    }
    assert!(!Path::new(&missing).exists());
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
    assert!(refusal(&["--existing"]).contains("--existing needs a folder"));

    let created = Server::start(["--data-dir", &empty, "--import", &chain]);
    assert_eq!(created.logged(&format!("{empty} had no chain, so one was created there")), 1);
    created.end("TERM");
    let existing = Server::start(["--data-dir", &empty, "--existing"]);
    assert_eq!(existing.get("/blockNumber/").field("BlockNumber"), "3");
    assert!(!existing.log().contains("had no chain"));
}

#[test]
fn a_chain_is_not_created_among_other_files() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("documents");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("letter.txt"), "").unwrap();
    let path = folder.display().to_string();
    let refused = refusal(&["--data-dir", &path]);
    assert!(refused.contains(&path) && refused.contains("letter.txt"), "{refused}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn a_chain_file_without_blocks_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let [file, data] = ["chain.rlp", "data"].map(|name| root.path().join(name).display().to_string());
    fs::write(&file, b"").unwrap();
    let failed = run_to_end(["--import", &file]);
    let text = String::from_utf8_lossy(&failed.stderr);
    assert_eq!(failed.status.code(), Some(2), "{text}");
    assert!(text.contains(&format!("chain file {file} has no blocks")), "{text}");
    let imported = node_server().args(["import", "--data-dir", &data, &file]).output().unwrap();
    assert!(!imported.status.success());
    assert!(String::from_utf8_lossy(&imported.stderr).contains("has no blocks"));
    let ready = Server::start(["--import", &file, "--strict=false"]).get("/ready");
    assert_eq!(ready.status, 503);
    assert!(ready.text.contains("has no blocks"), "{}", ready.text);
}

#[test]
fn a_server_is_ready_only_with_the_expected_head() {
    let root = tempfile::tempdir().unwrap();
    let chain = chain_file(root.path(), 5);
    let reference = Server::start(["--import", &chain]);
    let hash = |number: u64| {
        let block = reference.post(
            "/",
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["{number:#x}",false]}}"#),
        );
        block.body["result"]["hash"].as_str().unwrap().to_owned()
    };
    assert_eq!(reference.get("/ready").status, 200);
    let unknown = format!("0x{:064x}", 7);
    let cases = [
        (vec!["--min-head", "5"], 200),
        (vec!["--min-head", "6"], 503),
        (vec!["--expect-head", &*hash(5)], 200),
        // The chain has grown since the setting was made.
        (vec!["--expect-head", &*hash(2), "--min-head", "2"], 200),
        (vec!["--expect-head", &*unknown], 503),
    ]
    .map(|(options, status)| (options.into_iter().map(str::to_owned).collect::<Vec<_>>(), status));
    for (options, status) in cases {
        let server = Server::start(["--import".to_owned(), chain.clone()].into_iter().chain(options.clone()));
        let ready = server.get("/ready");
        assert_eq!(ready.status, status, "{options:?}: {}", ready.text);
        if status == 503 {
            assert!(ready.text.contains(options[0].trim_start_matches('-')), "{options:?}: {}", ready.text);
            assert!(ready.text.contains(&options[1].to_lowercase()), "{options:?}: {}", ready.text);
        }
        // Whoever asks for what there is gets it.
        assert_eq!(server.get("/blockNumber/").field("BlockNumber"), "5");
    }
}
