//! The scheduling priority of threads.

/// Niceness of threads that run code. Under contention, each gets about a tenth of the time of a thread of normal
/// priority.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Lowers the scheduling priority of the current thread. Does nothing on systems other than Linux.
pub fn lower() {
    // Other systems would change the priority of the whole process.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::warn!(%error, "cannot lower the priority of a thread");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;
    use std::thread;

    #[test]
    fn lowers_only_the_current_thread() {
        let before = getpriority_process(None).unwrap();
        let lowered = thread::spawn(|| {
            lower();
            getpriority_process(None).unwrap()
        });
        assert_eq!(lowered.join().unwrap(), (before + NICENESS).min(19));
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
