//! Following a folder to which files with blocks are added.

use super::{CHUNK, Follower, POLL};
use crate::error::CommandError;
use node_chain::{BlockSplitter, FileError, ImportError};
use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

/// Number of the last files, in the order of their names, that may still grow.
const GROWING: usize = 16;

/// How long after its last change a folder is listed again each time: time stamps are not exact.
const SETTLED: Duration = Duration::from_secs(2);

/// The suffix of files with blocks. Another file, such as a note, must not end following.
const SUFFIX: &str = ".rlp";

/// Suffixes of files that are not complete.
const TEMPORARY: [&str; 3] = [".part", ".tmp", ".swp"];

/// A folder whose files are imported in the order of their names, in which numbers count by their value.
pub(super) struct FollowedFolder<'a> {
    follower: &'a Follower,
    /// The names of all files that were found.
    found: HashSet<OsString>,
    /// The files that may have more blocks.
    files: BTreeMap<NaturalName, Progress>,
    /// When the folder was changed last, as of the last listing.
    listed: Option<SystemTime>,
}

/// How far a file was imported.
#[derive(Default)]
struct Progress {
    /// Offset of the first byte that was not imported.
    offset: u64,
    /// Whether everything in it was imported, and it is not empty.
    is_read: bool,
    /// Whether it had a block whose parent was not known, which was logged.
    is_apart: bool,
}

/// Where the import of a file has stopped.
enum Stop {
    /// At the end of the file.
    End,
    /// Within a block, which is not complete.
    Within,
    /// Before a block whose parent may be in another file.
    Parent,
}

impl<'a> FollowedFolder<'a> {
    pub(super) fn new(follower: &'a Follower) -> Self {
        Self { follower, found: HashSet::new(), files: BTreeMap::new(), listed: None }
    }

    /// Imports the files and waits for more, until following ends.
    pub(super) fn follow(mut self) -> Result<(), CommandError> {
        loop {
            self.follower.context.check().map_err(|_| CommandError::Interrupted)?;
            self.list().map_err(|source| self.follower.unreadable(source))?;
            if !self.read()? {
                thread::sleep(POLL);
            }
        }
    }

    /// Finds new files, if the folder has changed.
    fn list(&mut self) -> io::Result<()> {
        let path = &self.follower.path;
        let changed = fs::metadata(path)?.modified()?;
        let is_settled = changed.elapsed().is_ok_and(|age| age > SETTLED);
        if is_settled && self.listed == Some(changed) {
            return Ok(());
        }
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let name = entry.file_name();
            let text = name.to_string_lossy();
            let is_temporary = text.starts_with('.') || TEMPORARY.iter().any(|suffix| text.ends_with(suffix));
            let is_file = || fs::metadata(entry.path()).is_ok_and(|found| found.is_file());
            if is_temporary || self.found.contains(&name) || !is_file() {
                continue;
            }
            if text.ends_with(SUFFIX) {
                self.files.insert(NaturalName::of(&name), Progress::default());
            } else {
                tracing::warn!("{} is ignored: its name does not end in {SUFFIX}", entry.path().display());
            }
            self.found.insert(name);
        }
        self.listed = Some(changed);
        Ok(())
    }

    /// Imports what is new in the files. Returns whether there was something.
    fn read(&mut self) -> Result<bool, CommandError> {
        let mut has_new = false;
        for (name, progress) in &mut self.files {
            let path = self.follower.path.join(&name.name);
            let before = progress.offset;
            let stop = import(self.follower, &path, &mut progress.offset)?;
            has_new |= progress.offset > before;
            progress.is_read = matches!(stop, Stop::End) && progress.offset > 0;
            match stop {
                Stop::End => {}
                // What follows may need this block.
                Stop::Within => return Ok(has_new),
                Stop::Parent if !progress.is_apart => {
                    progress.is_apart = true;
                    tracing::warn!("{} has a block whose parent is not known yet; waiting for it", path.display());
                }
                Stop::Parent => {}
            }
        }
        let mut before_last = self.files.len().saturating_sub(GROWING);
        self.files.retain(|_, progress| {
            let is_old = before_last > 0;
            before_last = before_last.saturating_sub(1);
            !(is_old && progress.is_read)
        });
        Ok(has_new)
    }
}

/// Imports the blocks of a file from `offset` on, which is moved to the end of the last one.
fn import(follower: &Follower, path: &Path, offset: &mut u64) -> Result<Stop, CommandError> {
    let unreadable = |source| CommandError::Read { path: path.to_owned(), source };
    let mut file = match File::open(path) {
        // Files that were imported may be removed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Stop::End),
        file => file.map_err(unreadable)?,
    };
    if file.metadata().map_err(unreadable)?.len() <= *offset {
        return Ok(Stop::End);
    }
    file.seek(SeekFrom::Start(*offset)).map_err(unreadable)?;
    let mut splitter = BlockSplitter::starting_at(*offset);
    let mut bytes = vec![0; CHUNK];
    loop {
        let count = file.read(&mut bytes).map_err(unreadable)?;
        if count == 0 {
            return Ok(if splitter.incomplete() > 0 { Stop::Within } else { Stop::End });
        }
        splitter.push(&bytes[..count]);
        while let Some(block) = splitter.next_block().map_err(|error| follower.damaged(path, error))? {
            match follower.take(&block) {
                Ok(()) => *offset = block.end(),
                Err(FileError::Import { source, .. }) if matches!(*source, ImportError::UnknownParent { .. }) => {
                    return Ok(Stop::Parent);
                }
                Err(error) => return Err(follower.ended(path, error)),
            }
        }
    }
}

/// A name of a file, ordered so that `block-9` is before `block-10`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NaturalName {
    /// Texts, each followed by a number without leading zeros; numbers are ordered by their length first.
    parts: Vec<(String, usize, String)>,
    name: OsString,
}

impl NaturalName {
    fn of(name: &OsStr) -> Self {
        let text = name.to_string_lossy();
        let mut parts = Vec::new();
        let mut rest = &*text;
        while !rest.is_empty() {
            let (text, after) = rest.split_at(rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len()));
            let (digits, after) = after.split_at(after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len()));
            let number = digits.trim_start_matches('0');
            parts.push((text.to_owned(), number.len(), number.to_owned()));
            rest = after;
        }
        Self { parts, name: name.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count_by_their_value() {
        let sorted = ["1.rlp", "2.rlp", "10.rlp", "a-09", "a-9", "a-10", "a-10-b", "b"];
        for (index, name) in sorted.iter().enumerate() {
            for other in &sorted[index + 1..] {
                assert!(NaturalName::of(name.as_ref()) < NaturalName::of(other.as_ref()), "{name} {other}");
            }
        }
    }
}
