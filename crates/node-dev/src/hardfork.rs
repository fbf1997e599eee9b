//! The forks that a development chain can start with, by name.

use node_chain::dev_genesis;
use node_core::protocol::{Activation, ChainSpec, Fork, UPGRADES, Upgrade};
use std::fmt;
use std::str::FromStr;

/// The newest active upgrade of a development chain. It is parsed from its name, ignoring case.
///
/// The names are those of [`UPGRADES`] and their aliases, including upgrades that only change blob parameters if
/// mainnet has set them, and `latest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hardfork {
    name: &'static str,
    /// Position in [`UPGRADES`].
    position: usize,
}

/// The name of the newest upgrade.
const LATEST: &str = "latest";

/// Returns every hardfork that a development chain can start with. Those whose blob parameters mainnet has not set
/// are left out.
fn hardforks() -> impl Iterator<Item = Hardfork> + Clone {
    let is_known =
        |upgrade: &Upgrade| upgrade.blob_params.is_some() || !matches!(upgrade.activation, Activation::BlobTime { .. });
    let known = UPGRADES.iter().enumerate().filter(move |(_, upgrade)| is_known(upgrade));
    known.flat_map(|(position, upgrade)| {
        [Some(upgrade.name), upgrade.alias].into_iter().flatten().map(move |name| Hardfork { name, position })
    })
}

impl Hardfork {
    /// Returns every name that can be parsed.
    pub fn names() -> impl Iterator<Item = &'static str> {
        hardforks().map(|hardfork| hardfork.name).chain([LATEST])
    }

    /// Returns every hardfork by its first name, in the order of activation.
    pub(crate) fn all() -> impl Iterator<Item = Self> + Clone {
        hardforks().filter(|hardfork| UPGRADES[hardfork.position].name == hardfork.name)
    }

    /// Returns the fork in force from block 0 on.
    pub fn fork(self) -> Fork {
        UPGRADES[self.position].fork
    }

    /// Returns the rules of a development chain on which this is the newest upgrade, active from block 0 on.
    pub(crate) fn spec(self) -> ChainSpec {
        let (mut spec, fork) = (dev_genesis().spec, self.fork());
        spec.block_forks.retain(|(known, _)| *known <= fork);
        spec.time_forks.retain(|(known, _)| *known <= fork);
        // The built-in genesis has blob parameters for each upgrade since Cancun.
        let active = &UPGRADES[..=self.position];
        spec.blob_schedule.truncate(active.iter().filter(|upgrade| upgrade.fork >= Fork::Cancun).count());
        spec.terminal_total_difficulty = spec.terminal_total_difficulty.filter(|_| fork >= Fork::Paris);
        spec
    }
}

/// The default is `latest`, the newest hardfork.
impl Default for Hardfork {
    fn default() -> Self {
        let position = hardforks().map(|hardfork| hardfork.position).max().unwrap_or_default();
        Self { name: LATEST, position }
    }
}

impl fmt::Display for Hardfork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl FromStr for Hardfork {
    type Err = UnknownHardfork;

    fn from_str(text: &str) -> Result<Self, UnknownHardfork> {
        hardforks()
            .chain([Self::default()])
            .find(|hardfork| hardfork.name.eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownHardfork { name: text.to_owned() })
    }
}

/// The error of parsing a [`Hardfork`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown hardfork {name:?}, expected one of {}", Hardfork::names().collect::<Vec<_>>().join(", "))]
pub struct UnknownHardfork {
    /// The text that was parsed.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_names_in_any_case() {
        for name in Hardfork::names() {
            assert_eq!(name.to_uppercase().parse::<Hardfork>().unwrap().to_string(), name);
        }
        assert_eq!(Hardfork::default().to_string(), "latest");
        let newest = hardforks().last().unwrap().name;
        assert_eq!(Hardfork::default().position, newest.parse::<Hardfork>().unwrap().position);
        assert_eq!("SpuriousDragon".parse::<Hardfork>().unwrap().fork(), Fork::SpuriousDragon);
        let (merge, paris): (Hardfork, Hardfork) = ("merge".parse().unwrap(), "paris".parse().unwrap());
        assert_eq!(merge.fork(), paris.fork());
    }

    #[test]
    fn rejects_unknown_names_and_lists_the_known_ones() {
        for name in ["", "homestead2", "osaka ", "bpo0", "0"] {
            let error = name.parse::<Hardfork>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("unknown hardfork {name:?}")), "{error}");
            assert!(error.contains("frontier, homestead,") && error.ends_with("latest"), "{error}");
        }
    }
}
