//! The limit of open files of the process.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Files that the server opens besides connections: runs of the chain, the log, listeners and pipes.
const OTHERS: u64 = 256;

/// Raises the limit of open files as far as the system permits. Warns if it is still too low for `connections`
/// connections: a server without free descriptors accepts nobody, and so cannot report its health either.
pub(crate) fn raise(connections: usize) {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // The limit in force is read again below.
    let _ = setrlimit(Resource::Nofile, limit);
    let needed = connections as u64 + OTHERS;
    if let Some(files) = getrlimit(Resource::Nofile).current.filter(|files| *files < needed) {
        tracing::warn!(
            "the process may open {files} files, and --max-connections {connections} needs {needed}: raise the limit (ulimit -n, \
             LimitNOFILE), or lower the option"
        );
    }
}
