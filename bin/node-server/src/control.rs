//! The control socket: requests to the process that uses a data folder, over a Unix socket in the folder that only its owner
//! may use.
//!
//! A request is one line of JSON. The response consists of lines of JSON: progress, then a result or an error. The only
//! request is `{"command":"backup","dest":"/absolute/path"}`. Requests are handled one after the other.

use crate::error::{CommandError, Sources};
use crate::report;
use node_core::context::Context;
use node_http::lower_priority;
use node_store::{BackupProgress, Store};
use serde_json::{Value, json};
use std::fs::{self, File, Permissions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// File name of the socket.
const NAME: &str = "control.sock";

/// File name of the socket until its permissions are set.
const TEMPORARY_NAME: &str = "control.sock.new";

/// Maximum length of a socket path in bytes that all systems support.
const MAX_PATH: usize = 100;

/// Time limit for reading from the client and for writing to it.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum length of a request in bytes.
const MAX_REQUEST: u64 = 64 << 10;

/// Minimum time between two progress lines.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Serves requests until it is dropped.
pub(crate) struct Control {
    folder: PathBuf,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Opens the socket in the folder of `store`. The server works without it, so errors are only logged.
    pub(crate) fn open(folder: &Path, store: &Arc<Store>) -> Option<Self> {
        let stopping = Arc::new(AtomicBool::new(false));
        // Weak, so that requests do not delay closing the store.
        let (store, stop) = (Arc::downgrade(store), Arc::clone(&stopping));
        let started = listen(folder).and_then(|listener| {
            thread::Builder::new().name("control".to_owned()).spawn(move || run(&listener, &store, &stop))
        });
        match started {
            Ok(thread) => Some(Self { folder: folder.to_owned(), stopping, thread: Some(thread) }),
            Err(error) => {
                tracing::warn!(
                    "cannot create the control socket in {}, so backups are impossible while the server runs: {error}",
                    folder.display()
                );
                None
            }
        }
    }
}

impl Drop for Control {
    /// Cancels a backup in progress and waits until its partial copy is removed.
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Connecting wakes the thread. If that fails, the thread ends with the process.
        if connect(&self.folder).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
        // A stale socket does no harm.
        let _ = fs::remove_file(self.folder.join(NAME));
    }
}

fn run(listener: &UnixListener, store: &Weak<Store>, stopping: &AtomicBool) {
    lower_priority();
    loop {
        let accepted = listener.accept();
        if stopping.load(Ordering::SeqCst) {
            return;
        }
        match accepted {
            // Fails if the client has disconnected.
            Ok((stream, _)) => drop(respond(stream, store, stopping)),
            // Perhaps too many files are open; try again later.
            Err(_) => thread::sleep(PROGRESS_INTERVAL),
        }
    }
}

fn respond(mut stream: UnixStream, store: &Weak<Store>, stopping: &AtomicBool) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut line = Vec::new();
    BufReader::new((&stream).take(MAX_REQUEST)).read_until(b'\n', &mut line)?;
    let response = match serde_json::from_slice(&line) {
        Ok(request) => execute(&request, &mut stream, store, stopping),
        Err(_) if line.len() as u64 == MAX_REQUEST => Err("the request is too long".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    let response = response.unwrap_or_else(|message| json!({"event": "error", "message": message}));
    writeln!(stream, "{response}")
}

fn execute(
    request: &Value,
    stream: &mut UnixStream,
    store: &Weak<Store>,
    stopping: &AtomicBool,
) -> Result<Value, String> {
    let dest = match (request["command"].as_str(), request["dest"].as_str().map(Path::new)) {
        (Some("backup"), Some(dest)) if dest.is_absolute() => dest,
        _ => return Err("invalid request".to_owned()),
    };
    let store = store.upgrade().ok_or("the server is shutting down")?;
    let context = Context::unbounded();
    tracing::info!("backup to {} started", dest.display());
    let started = Instant::now();
    let mut last = started;
    let done = store.backup(dest, &context, |BackupProgress { rows, of }| {
        let mut gone = stopping.load(Ordering::SeqCst);
        if last.elapsed() >= PROGRESS_INTERVAL {
            last = Instant::now();
            // Fails if the client has disconnected.
            gone |= writeln!(stream, "{}", json!({"event": "progress", "rows": rows, "of": of})).is_err();
        }
        if gone {
            context.cancel();
        }
    });
    match done {
        Ok(backup) => {
            tracing::info!("backup to {} completed: head {}, {:?}", dest.display(), backup.head, started.elapsed());
            Ok(json!({"event": "result", "head": report::block(backup.head), "rows": backup.rows}))
        }
        Err(error) => {
            let message = Sources(&error).to_string();
            tracing::warn!("backup to {} failed: {message}", dest.display());
            Err(message)
        }
    }
}

/// Creates the socket. Replaces one that a killed process left.
fn listen(folder: &Path) -> io::Result<UnixListener> {
    let (place, _held) = short_path(folder)?;
    let (new, path) = (place.join(TEMPORARY_NAME), place.join(NAME));
    match fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&new)?;
    fs::set_permissions(&new, Permissions::from_mode(0o600))?;
    fs::rename(new, path)?;
    Ok(listener)
}

fn connect(folder: &Path) -> io::Result<UnixStream> {
    let (place, _held) = short_path(folder)?;
    UnixStream::connect(place.join(NAME))
}

/// A path of the folder that is short enough for a socket in it, and a file that must stay open while the path is used.
fn short_path(folder: &Path) -> io::Result<(PathBuf, Option<File>)> {
    if folder.as_os_str().len() + 1 + TEMPORARY_NAME.len() <= MAX_PATH {
        return Ok((folder.to_owned(), None));
    }
    let file = File::open(folder)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    if !path.is_dir() {
        let message = format!("its path is longer than {MAX_PATH} bytes, the limit for sockets");
        return Err(io::Error::new(ErrorKind::InvalidInput, message));
    }
    Ok((path, Some(file)))
}

/// Asks the process that uses the folder for a backup to `dest` and waits for it. Returns the result.
pub(crate) fn request_backup(
    folder: &Path,
    dest: &Path,
    context: &Context,
    mut progress: impl FnMut(BackupProgress),
) -> Result<Value, CommandError> {
    let unreachable = |source| CommandError::NoControl { path: folder.to_owned(), source };
    let dest = std::path::absolute(dest).map_err(|source| CommandError::Write { path: dest.to_owned(), source })?;
    let text = dest.to_str().ok_or_else(|| CommandError::NotText { path: dest.clone() })?;
    let mut stream = connect(folder).map_err(unreachable)?;
    writeln!(stream, "{}", json!({"command": "backup", "dest": text})).map_err(unreachable)?;
    stream.set_read_timeout(Some(PROGRESS_INTERVAL)).map_err(unreachable)?;
    let mut lines = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        // A timeout keeps the part of the line that has arrived.
        match lines.read_until(b'\n', &mut line) {
            Ok(_) if line.ends_with(b"\n") => {}
            Ok(_) => return Err(CommandError::ServerGone),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                context.check().map_err(|_| CommandError::Interrupted)?;
                continue;
            }
            Err(_) => return Err(CommandError::ServerGone),
        }
        let response: Value = serde_json::from_slice(&line).map_err(|error| unreachable(error.into()))?;
        line.clear();
        match (response["event"].as_str(), response["rows"].as_u64(), response["of"].as_u64()) {
            (Some("progress"), Some(rows), Some(of)) => progress(BackupProgress { rows, of }),
            (Some("result"), ..) => return Ok(response),
            _ => {
                let message = response["message"].as_str().unwrap_or("invalid response").to_owned();
                return Err(CommandError::Refused { message });
            }
        }
        context.check().map_err(|_| CommandError::Interrupted)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_chain::dev_genesis;
    use node_store::Options;

    /// A folder whose path is of about this length, with a store and its socket.
    fn served(length: usize) -> (tempfile::TempDir, PathBuf, Arc<Store>, Control) {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("d".repeat(length));
        let store = Arc::new(Store::open(&folder, dev_genesis().block(), Options::default()).unwrap());
        let control = Control::open(&folder, &store).unwrap();
        (outer, folder, store, control)
    }

    fn backup(folder: &Path, dest: &Path) -> Result<Value, CommandError> {
        request_backup(folder, dest, &Context::unbounded(), |_| {})
    }

    fn lines_of(mut stream: UnixStream, request: &[u8]) -> String {
        let _ = stream.write_all(request);
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn works_with_a_long_path_and_a_stale_socket() {
        for length in [8, 200] {
            let (outer, folder, store, control) = served(length);
            let mode = fs::metadata(folder.join(NAME)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            let dest = outer.path().join("copy");
            assert_eq!(backup(&folder, &dest).unwrap()["head"]["number"], 0);
            drop(control);
            assert!(!folder.join(NAME).exists());
            // A stale socket, as left by a killed process.
            drop(UnixListener::bind(short_path(&folder).unwrap().0.join(NAME)).ok());
            let refused = backup(&folder, &outer.path().join("second")).unwrap_err();
            assert!(matches!(refused, CommandError::NoControl { .. }), "{refused:?}");
            let _control = Control::open(&folder, &store).unwrap();
            backup(&folder, &outer.path().join("second")).unwrap();
            Store::open_existing(dest, Options::default()).unwrap();
        }
    }

    #[test]
    fn returns_errors_to_the_client() {
        let (outer, folder, _store, _control) = served(8);
        fs::write(outer.path().join("file"), "x").unwrap();
        let refused = backup(&folder, &outer.path().join("file")).unwrap_err();
        assert!(matches!(&refused, CommandError::Refused { message } if message.contains("exists")), "{refused:?}");
        for request in [&b"{}\n"[..], b"\n", b"[1]\n", b"\xff\n", b"{\"command\":\"backup\",\"dest\":\"relative\"}\n"] {
            let answer = lines_of(connect(&folder).unwrap(), request);
            assert!(answer.starts_with("{\"event\":\"error\""), "{request:?}: {answer}");
        }
        let long = lines_of(connect(&folder).unwrap(), &[b'x'; 100_000]);
        assert!(long.is_empty() || long.contains("too long"), "{long}");
    }

    #[test]
    fn silent_clients_time_out() {
        let (outer, folder, _store, control) = served(8);
        let silent: Vec<_> = (0..2).map(|_| connect(&folder).unwrap()).collect();
        for mut stream in silent {
            let mut byte = [0];
            assert!(matches!(stream.read(&mut byte), Ok(0) | Err(_)));
        }
        backup(&folder, &outer.path().join("copy")).unwrap();
        let _silent = connect(&folder).unwrap();
        drop(control);
    }
}
