//! The committed inputs, which libFuzzer found: together they reach more code than the seeds.
//!
//! Each target has a file in `fuzz/corpus`, with the hex digits of an input on each line, short inputs first.

use super::Target;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The folder of the files.
pub const CORPORA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus");

impl Target {
    /// Returns the file of its inputs.
    pub fn corpus_file(&self) -> PathBuf {
        Path::new(CORPORA).join(self.name).with_extension("hex")
    }

    /// Reads its inputs.
    pub fn corpus(&self) -> io::Result<Vec<Vec<u8>>> {
        let text = fs::read_to_string(self.corpus_file())?;
        text.lines().map(|line| const_hex::decode(line).map_err(io::Error::other)).collect()
    }

    /// Writes its inputs into `folder`, a file for each, as libFuzzer needs them.
    pub fn unpack(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        for (index, input) in self.corpus()?.iter().enumerate() {
            fs::write(folder.join(format!("{index:04}")), input)?;
        }
        Ok(())
    }
}

/// Returns the text of the file for the inputs that are the files in `folder`.
pub fn pack(folder: &Path) -> io::Result<String> {
    let mut inputs = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let input = fs::read(entry?.path())?;
        inputs.insert((input.len(), input));
    }
    Ok(inputs.iter().map(|(_, input)| const_hex::encode(input) + "\n").collect())
}
