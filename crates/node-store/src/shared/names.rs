//! Names of the objects in a store.

use std::fmt;

/// The folders of a store.
pub(super) const LOG: &str = "log";
pub(super) const MANIFESTS: &str = "manifests";
pub(super) const RUNS: &str = "runs";
const CLAIMS: &str = "claims";

/// The number of a writer. Every writer has a higher one than all writers before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// Returns the name of the object by which another server asks the writer of this epoch for a pause.
    pub(super) fn claim(self) -> String {
        format!("{CLAIMS}/{:016x}", self.0)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The number of an object of the log. The first one has the number 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogNumber(pub u64);

impl LogNumber {
    pub(super) fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    pub(super) fn object(self) -> String {
        format!("{LOG}/{:020}", self.0)
    }

    pub(super) fn of_object(object: &str) -> Option<Self> {
        let number = Self(object.strip_prefix(LOG)?.strip_prefix('/')?.parse().ok()?);
        (number.object() == object).then_some(number)
    }
}

impl fmt::Display for LogNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Identifies a manifest. Later manifests have higher ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ManifestName {
    /// The last object of the log when the manifest was written.
    pub position: LogNumber,
    /// The epoch of its writer.
    pub epoch: Epoch,
}

impl ManifestName {
    pub(super) fn object(self) -> String {
        format!("{MANIFESTS}/{:020}-{:016x}", self.position.0, self.epoch.0)
    }

    pub(super) fn of_object(object: &str) -> Option<Self> {
        let (position, epoch) = object.strip_prefix(MANIFESTS)?.strip_prefix('/')?.split_once('-')?;
        let name =
            Self { position: LogNumber(position.parse().ok()?), epoch: Epoch(u64::from_str_radix(epoch, 16).ok()?) };
        (name.object() == object).then_some(name)
    }
}

/// Identifies a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunName {
    /// The epoch of the writer that uploaded it.
    pub epoch: Epoch,
    /// Its id, which the seeds of its checksums contain.
    pub id: u64,
}

impl RunName {
    /// Returns the name of the object that contains the run.
    pub fn object(self) -> String {
        format!("{RUNS}/{:016x}-run-{:012}.rows", self.epoch.0, self.id)
    }

    pub(super) fn of_object(object: &str) -> Option<Self> {
        let (epoch, file) = object.strip_prefix(RUNS)?.strip_prefix('/')?.split_once('-')?;
        let id = file.strip_prefix("run-")?.strip_suffix(".rows")?.parse().ok()?;
        let name = Self { epoch: Epoch(u64::from_str_radix(epoch, 16).ok()?), id };
        (name.object() == object).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_fixed_and_parsed_only_in_that_form() {
        let run = RunName { epoch: Epoch(0x2a), id: 7 };
        assert_eq!(run.object(), "runs/000000000000002a-run-000000000007.rows");
        let manifest = ManifestName { position: LogNumber(19), epoch: Epoch(u64::MAX) };
        assert_eq!(manifest.object(), "manifests/00000000000000000019-ffffffffffffffff");
        assert_eq!(LogNumber(3).object(), "log/00000000000000000003");
        assert_eq!(LogNumber::of_object(&LogNumber(3).object()), Some(LogNumber(3)));
        assert_eq!(LogNumber::of_object("log/3"), None);
        assert_eq!(Epoch(0x2a).claim(), "claims/000000000000002a");
        assert_eq!(RunName::of_object(&run.object()), Some(run));
        assert_eq!(ManifestName::of_object(&manifest.object()), Some(manifest));
        for other in ["", "runs/", "runs/2a-run-7.rows", "manifests/19-1", "manifests/00000000000000000019", "log/1"] {
            assert_eq!((RunName::of_object(other), ManifestName::of_object(other)), (None, None), "{other}");
        }
    }
}
