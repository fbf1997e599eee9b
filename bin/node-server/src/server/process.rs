//! Memory and open files of the process.

use crate::error::CommandError;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::hint::black_box;
use std::thread;
use std::time::Duration;

// The node allocates a lot, and threads free memory that other threads have allocated. With this allocator, imports
// and requests took about a tenth less time than with glibc's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Interval at which freed memory is returned. The allocator keeps it for a second.
const INTERVAL: Duration = Duration::from_secs(1);

/// Size in bytes of an allocation that the allocator does not keep for the thread when it is freed.
const LARGE: usize = 16 << 20;

/// Makes the process return memory that it no longer uses, as a server should that runs for months.
///
/// The system gives it small pages only: a huge page is kept as long as any byte of it is used, so under a mixed load
/// the memory of a server grew to four times what it used. Requests are as fast with small pages.
///
/// A thread starts returning memory when it has been free for a while. The allocator does so only when some thread
/// frees many bytes, so without this, a server would keep the memory of its last large request.
pub(crate) fn return_freed_memory() -> Result<(), CommandError> {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!(%error, "huge pages stay enabled");
    }
    let free = || loop {
        thread::sleep(INTERVAL);
        // The allocation is not written to, so it takes no memory.
        drop(black_box(Vec::<u8>::with_capacity(LARGE)));
    };
    thread::Builder::new().name("memory".to_owned()).spawn(free).map(drop).map_err(CommandError::Thread)
}

/// Files that the server opens besides connections: runs of the chain, the log, listeners and pipes.
const OTHER_FILES: u64 = 256;

/// Raises the limit of open files as far as the system permits. Warns if it is still too low for `connections`
/// connections: a server without free descriptors accepts nobody, and so cannot report its health either.
pub(crate) fn raise_open_files(connections: usize) {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // The limit in force is read again below.
    let _ = setrlimit(Resource::Nofile, limit);
    let needed = connections as u64 + OTHER_FILES;
    if let Some(files) = getrlimit(Resource::Nofile).current.filter(|files| *files < needed) {
        tracing::warn!(
            "the process may open {files} files, and --max-connections {connections} needs {needed}: raise the limit (ulimit -n, \
             LimitNOFILE), or lower the option"
        );
    }
}
