//! Reading input files, and writing output files.

use crate::error::CommandError;
use flate2::read::MultiGzDecoder;
use node_core::context::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Cursor, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Maximum length of a file of keys, certificates or tokens, in bytes.
const MAX_SMALL_FILE: u64 = 1 << 20;

/// How often a reader that waits for a pipe checks whether it should stop.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A file that is read until a context is cancelled, even if it is a pipe to which nothing is written.
pub(crate) struct Input {
    file: File,
    context: Context,
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.context.check().map_err(io::Error::other)?;
            // Regular files are always ready.
            match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&WAIT)).map_err(io::Error::from) {
                Ok(0) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(_) => match self.file.read(buffer) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    read => return read,
                },
            }
        }
    }
}

/// The first bytes of a file that gzip has compressed (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads a file, and decompresses it if gzip has compressed it, as its first bytes show.
pub(crate) struct Unpacked<'r> {
    /// Before the first bytes are read.
    packed: Option<Box<dyn Read + Send + 'r>>,
    unpacked: Box<dyn Read + Send + 'r>,
}

impl<'r> Unpacked<'r> {
    pub(crate) fn new(file: impl Read + Send + 'r) -> Self {
        Self { packed: Some(Box::new(file)), unpacked: Box::new(io::empty()) }
    }
}

impl Read for Unpacked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(mut file) = self.packed.take() {
            let mut start = Vec::new();
            file.by_ref().take(GZIP.len() as u64).read_to_end(&mut start)?;
            let is_compressed = start == GZIP;
            let whole = Cursor::new(start).chain(file);
            self.unpacked = if is_compressed { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) };
        }
        self.unpacked.read(buffer)
    }
}

/// Reads a file. The command is interrupted if `context` is cancelled.
pub(crate) fn read(path: &Path, context: &Context) -> Result<Vec<u8>, CommandError> {
    let (mut file, _) = open(path, context)?;
    let mut bytes = Vec::new();
    match file.read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(_) if context.check().is_err() => Err(CommandError::Interrupted),
        Err(source) => Err(CommandError::Read { path: path.to_owned(), source }),
    }
}

/// Fails if a file cannot be read. Called before anything is created. A pipe is not opened, because its writer would
/// notice.
pub(crate) fn check(path: &Path) -> Result<(), CommandError> {
    let metadata = path.metadata();
    let checked = metadata.and_then(|found| if found.is_file() { File::open(path).map(drop) } else { Ok(()) });
    checked.map_err(|source| CommandError::Read { path: path.to_owned(), source })
}

/// Reads a file of at most `limit` bytes. Returns `None` if it is longer.
pub(crate) fn read_at_most(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= limit))
}

/// Reads a small text file: keys, certificates or tokens.
pub(crate) fn read_small_text(path: &Path) -> Result<String, CommandError> {
    let unreadable = |source| CommandError::Read { path: path.to_owned(), source };
    let refused = |kind, message: String| unreadable(io::Error::new(kind, message));
    let bytes = read_at_most(path, MAX_SMALL_FILE).map_err(unreadable)?;
    let bytes = bytes
        .ok_or_else(|| refused(io::ErrorKind::FileTooLarge, format!("it is longer than {MAX_SMALL_FILE} bytes")))?;
    String::from_utf8(bytes).map_err(|_| refused(io::ErrorKind::InvalidData, "it is not valid UTF-8".to_owned()))
}

/// Opens a file, to be read until `context` is cancelled. Returns it with its length in bytes.
pub(crate) fn open(path: &Path, context: &Context) -> Result<(Input, u64), CommandError> {
    let unreadable = |source| CommandError::Read { path: path.to_owned(), source };
    // Opening a pipe would otherwise wait for a writer.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    Ok((Input { file, context: context.clone() }, length))
}

/// Opens standard input, to be read until `context` is cancelled.
pub(crate) fn standard_input(context: &Context) -> io::Result<Input> {
    let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    Ok(Input { file, context: context.clone() })
}

/// Like [`open`], to be read from the byte `offset` on.
pub(crate) fn open_at(path: &Path, offset: u64, context: &Context) -> Result<(Input, u64), CommandError> {
    let (mut input, length) = open(path, context)?;
    if offset > 0 {
        let sought = input.file.seek(SeekFrom::Start(offset));
        sought.map_err(|source| CommandError::Read { path: path.to_owned(), source })?;
    }
    Ok((input, length))
}

/// Who may read and write a new file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Access {
    /// Everyone whom the process's umask allows; an existing file keeps its permissions.
    Default,
    /// The owner.
    Private,
}

/// Writes a file as a whole and durably: either its old content remains, or it has all of the new one. Until then, the
/// content is in a temporary file in the same folder, whose name nobody else uses. A pipe or a device is written
/// directly. Returns the length in bytes.
///
/// All files that the server writes, apart from those of data folders and logs, are written by this function.
pub(crate) fn replace(
    path: &Path,
    access: Access,
    write: impl FnOnce(&mut dyn Write) -> Result<(), CommandError>,
) -> Result<u64, CommandError> {
    let failed = |source| CommandError::Write { path: path.to_owned(), source };
    if is_special(path) {
        let mut writer = BufWriter::new(OpenOptions::new().write(true).open(path).map_err(failed)?);
        write(&mut writer)?;
        let file = writer.into_inner().map_err(|error| failed(error.into_error()))?;
        return Ok(file.metadata().map_err(failed)?.len());
    }
    let (target, mut file) = temporary(path, access).map_err(failed)?;
    let mut writer = BufWriter::new(file.as_file_mut());
    write(&mut writer)?;
    writer.flush().map_err(failed)?;
    drop(writer);
    let commit = || {
        file.as_file().sync_all()?;
        let length = file.as_file().metadata()?.len();
        // Opened first, so that what can be refused is refused while the old content remains.
        let folder = File::open(folder(&target))?;
        file.persist(&target)?;
        folder.sync_all()?;
        Ok(length)
    };
    commit().map_err(failed)
}

/// Returns whether `path` exists and is not a regular file.
pub(crate) fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file())
}

/// Fails if [`replace`] could not create its temporary file.
pub(crate) fn check_replaceable(path: &Path) -> io::Result<()> {
    if is_special(path) {
        return OpenOptions::new().write(true).open(path).map(drop);
    }
    temporary(path, Access::Default).map(drop)
}

/// Creates the temporary file for `path`, which is removed when it is dropped. Returns it with the path that it will
/// have in the end: if `path` is a symbolic link, the file to which it refers is replaced.
fn temporary(path: &Path, access: Access) -> io::Result<(PathBuf, NamedTempFile)> {
    let target = match path.canonicalize() {
        Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
        found => found?,
    };
    let permissions = match (access, fs::metadata(&target)) {
        (Access::Private, _) => Permissions::from_mode(0o600),
        (Access::Default, Ok(existing)) => existing.permissions(),
        (Access::Default, Err(_)) => Permissions::from_mode(0o666),
    };
    let exists = target.exists();
    let mut builder = tempfile::Builder::new();
    let file = builder.prefix(".").suffix(".part").permissions(permissions.clone()).tempfile_in(folder(&target))?;
    if exists {
        // The umask applies to new files only.
        file.as_file().set_permissions(permissions)?;
    }
    Ok((target, file))
}

/// Returns the folder that contains the file `path`.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn unpacks_what_gzip_has_compressed() {
        let pack = |bytes: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        let read = |file: &[u8]| {
            let mut bytes = Vec::new();
            Unpacked::new(file).read_to_end(&mut bytes).map(|_| bytes)
        };
        let long = vec![7; 100_000];
        for plain in [&b""[..], &GZIP[..1], b"plain", &long] {
            assert_eq!(read(plain).unwrap(), plain);
            assert_eq!(read(&pack(plain)).unwrap(), plain);
        }
        let members = [pack(&long), pack(b"more")].concat();
        assert_eq!(read(&members).unwrap(), [&long[..], b"more"].concat());
        read(&members[..members.len() - 1]).unwrap_err();
    }

    #[test]
    fn replaces_a_file_as_a_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        let neighbors = ["state.unfinished", "state.json.part"];
        neighbors.iter().for_each(|name| fs::write(folder.path().join(name), "theirs").unwrap());
        let put = |content: &'static str| {
            replace(&path, Access::Default, |file| {
                file.write_all(content.as_bytes()).map_err(|source| CommandError::Write { path: path.clone(), source })
            })
        };
        assert_eq!(put("old").unwrap(), 3);
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        replace(&path, Access::Default, |file| {
            file.write_all(b"half").unwrap();
            Err(CommandError::Interrupted)
        })
        .unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        // Another one is being written at the same time.
        let other = temporary(&path, Access::Default).unwrap();
        put("newer").unwrap();
        drop(other);
        assert_eq!(fs::read_to_string(&path).unwrap(), "newer");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(names(folder.path()), ["state.json", "state.json.part", "state.unfinished"]);
        for name in neighbors {
            assert_eq!(fs::read_to_string(folder.path().join(name)).unwrap(), "theirs");
        }
    }

    #[test]
    fn a_failure_leaves_the_old_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        fs::write(&path, "old").unwrap();
        let of_folder = fs::metadata(folder.path()).unwrap().permissions();
        // A folder that can be changed but not read, so it cannot be synced, except by root.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o300)).unwrap();
        let written = replace(&path, Access::Default, |file| {
            file.write_all(b"new").unwrap();
            Ok(())
        });
        fs::set_permissions(folder.path(), of_folder).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), if written.is_ok() { "new" } else { "old" });
        assert_eq!(names(folder.path()), ["state.json"]);
    }

    #[test]
    fn follows_links_and_hides_private_files() {
        let folder = tempfile::tempdir().unwrap();
        let [real, link] = ["real", "link"].map(|name| folder.path().join(name));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        replace(&link, Access::Private, |_| Ok(())).unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
        check_replaceable(folder.path()).unwrap_err();
        check_replaceable(&folder.path().join("missing/file")).unwrap_err();
    }
}
