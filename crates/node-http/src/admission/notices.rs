//! Warnings about requests, each of which is logged once.

use parking_lot::Mutex;
use std::collections::HashSet;

/// Maximum number of subjects that are remembered. Clients choose subjects, so further ones are not logged.
const CAPACITY: usize = 256;

/// The subjects of logged warnings.
#[derive(Debug, Default)]
pub(crate) struct Notices(Mutex<HashSet<String>>);

impl Notices {
    /// Calls `log` if nothing has been logged about `subject` yet.
    pub(crate) fn warn(&self, subject: &str, log: impl FnOnce()) {
        let mut seen = self.0.lock();
        if seen.len() < CAPACITY && seen.insert(subject.to_owned()) {
            drop(seen);
            log();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warns_once_of_each_subject_and_remembers_few() {
        let notices = Notices::default();
        let mut logged = 0;
        for number in 0..2 * CAPACITY {
            for _ in 0..2 {
                notices.warn(&number.to_string(), || logged += 1);
            }
        }
        assert_eq!(logged, CAPACITY);
    }
}
