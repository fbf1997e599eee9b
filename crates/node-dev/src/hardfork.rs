//! Names of forks.

use node_core::forks::Fork;
use std::fmt;
use std::str::FromStr;

/// The newest rules that a development chain follows, by name. Changes of blob parameters alone have names, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hardfork(usize);

/// Each name with its fork, and how many entries of the blob schedule of the development genesis are in force.
const NAMES: [(&str, Fork, usize); 23] = [
    ("frontier", Fork::Frontier, 0),
    ("homestead", Fork::Homestead, 0),
    ("tangerine", Fork::TangerineWhistle, 0),
    ("tangerinewhistle", Fork::TangerineWhistle, 0),
    ("spuriousdragon", Fork::SpuriousDragon, 0),
    ("byzantium", Fork::Byzantium, 0),
    ("constantinople", Fork::Constantinople, 0),
    ("petersburg", Fork::Petersburg, 0),
    ("istanbul", Fork::Istanbul, 0),
    ("muirglacier", Fork::MuirGlacier, 0),
    ("berlin", Fork::Berlin, 0),
    ("london", Fork::London, 0),
    ("arrowglacier", Fork::ArrowGlacier, 0),
    ("grayglacier", Fork::GrayGlacier, 0),
    ("paris", Fork::Paris, 0),
    ("merge", Fork::Paris, 0),
    ("shanghai", Fork::Shanghai, 0),
    ("cancun", Fork::Cancun, 1),
    ("prague", Fork::Prague, 2),
    ("osaka", Fork::Osaka, 3),
    ("bpo1", Fork::Osaka, 4),
    ("bpo2", Fork::Osaka, 5),
    ("latest", Fork::Osaka, 5),
];

impl Hardfork {
    /// The newest that the node knows.
    pub const LATEST: Self = Self(NAMES.len() - 1);

    /// Every name.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, ..)| *name)
    }

    /// The fork in force from block 0 on.
    pub fn fork(self) -> Fork {
        NAMES[self.0].1
    }

    /// How many entries of the development genesis's blob schedule are in force.
    pub(crate) fn blob_changes(self) -> usize {
        NAMES[self.0].2
    }
}

impl Default for Hardfork {
    fn default() -> Self {
        Self::LATEST
    }
}

impl fmt::Display for Hardfork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAMES[self.0].0)
    }
}

impl FromStr for Hardfork {
    type Err = UnknownHardfork;

    fn from_str(text: &str) -> Result<Self, UnknownHardfork> {
        let found = NAMES.iter().position(|(name, ..)| name.eq_ignore_ascii_case(text));
        found.map(Self).ok_or_else(|| UnknownHardfork { name: text.to_owned() })
    }
}

/// A name that is no fork's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown hardfork {name:?}, expected one of {}", Hardfork::names().collect::<Vec<_>>().join(", "))]
pub struct UnknownHardfork {
    /// As it was given.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_any_case() {
        for name in Hardfork::names() {
            assert_eq!(name.to_uppercase().parse::<Hardfork>().unwrap().to_string(), name);
        }
        assert_eq!(Hardfork::default().to_string(), "latest");
        assert_eq!("SpuriousDragon".parse::<Hardfork>().unwrap().fork(), Fork::SpuriousDragon);
        let (merge, paris): (Hardfork, Hardfork) = ("merge".parse().unwrap(), "paris".parse().unwrap());
        assert_eq!(merge.fork(), paris.fork());
    }

    #[test]
    fn other_names_are_refused_with_the_names_there_are() {
        for name in ["", "amsterdam", "osaka ", "0"] {
            let error = name.parse::<Hardfork>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("unknown hardfork {name:?}")), "{error}");
            assert!(error.contains("frontier, homestead,") && error.ends_with("latest"), "{error}");
        }
    }
}
