//! The scheduling priority of threads.

/// How much nicer than others threads are that run code: each gets a tenth of the time of one that does not.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Lowers the priority of this thread, where the system has one for each thread.
pub fn lower() {
    // Elsewhere it would be that of the whole process.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::warn!(%error, "some work runs at the same priority as everything else");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;
    use std::thread;

    #[test]
    fn only_the_thread_that_asks_is_lowered() {
        let before = getpriority_process(None).unwrap();
        let lowered = thread::spawn(|| {
            lower();
            getpriority_process(None).unwrap()
        });
        assert_eq!(lowered.join().unwrap(), (before + NICENESS).min(19));
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
