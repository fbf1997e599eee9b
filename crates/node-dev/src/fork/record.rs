//! What a data folder remembers about its fork: the block that it begins with, the rules, and whether states are proven.

use super::OpenForkError;
use super::point::{Before, Start};
use node_chain::Genesis;
use node_core::protocol::ChainSpec;
use node_types::consensus::Header;
use node_types::wire::{Data, HashData};
use node_upstream::HashedHeader;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// The name of the file.
const FILE: &str = "fork.json";

/// The name of the file while it is being written.
const NEW_FILE: &str = "fork.json.new";

/// The first block of a fork, and the rules of its chain.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    /// The chain id of the other chain.
    pub(super) network: u64,
    pub(super) start: Start,
    pub(super) spec: ChainSpec,
    /// Whether states are read without proofs.
    pub(super) trusts: bool,
}

#[derive(Deserialize, Serialize)]
struct Json {
    network: u64,
    /// RLP of the header, as hex.
    block: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<BeforeJson>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    trusts: bool,
    /// A genesis file with the rules and without accounts.
    rules: Box<RawValue>,
}

/// The transaction before which the fork begins.
#[derive(Deserialize, Serialize)]
struct BeforeJson {
    transaction: HashData,
    /// RLP of the header of its block, as hex.
    block: String,
}

impl Record {
    /// Returns whether there is a record in `folder`.
    pub(super) fn exists(folder: &Path) -> bool {
        folder.join(FILE).exists()
    }

    /// Reads the record of `folder`, or returns `None` if there is none.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>, OpenForkError> {
        let path = folder.join(FILE);
        let unreadable = |source| OpenForkError::Record { path: path.clone(), source };
        let json = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            json => json.map_err(unreadable)?,
        };
        let damaged = |reason: String| unreadable(io::Error::new(io::ErrorKind::InvalidData, reason));
        let Json { network, block, before, trusts, rules } =
            serde_json::from_slice(&json).map_err(|error| damaged(error.to_string()))?;
        let header = |hex: &str| {
            let bytes = const_hex::decode(hex).map_err(|error| damaged(error.to_string()))?;
            let header: Header = rlp::decode(&bytes).map_err(|error| damaged(error.to_string()))?;
            Ok::<_, OpenForkError>(HashedHeader::new(header))
        };
        let before = before.map(|BeforeJson { transaction, block }| {
            Ok::<_, OpenForkError>(Before { transaction: transaction.0, block: header(&block)? })
        });
        let start = Start { block: header(&block)?, before: before.transpose()? };
        let genesis = Genesis::parse(rules.get().as_bytes()).map_err(|error| damaged(error.to_string()))?;
        Ok(Some(Self { network, start, spec: genesis.spec, trusts }))
    }

    /// Writes the record durably. A crash leaves the previous one or this one.
    pub(super) fn write(&self, folder: &Path) -> Result<(), OpenForkError> {
        let write = || -> io::Result<()> {
            let genesis = Genesis {
                spec: self.spec.clone(),
                header: Header::default(),
                alloc: BTreeMap::new(),
                state_root: None,
            };
            let rules = RawValue::from_string(String::from_utf8_lossy(&genesis.to_json()).into_owned())?;
            let hex = |block: &HashedHeader| const_hex::encode_prefixed(rlp::encode(block.header()));
            let before =
                |before: &Before| BeforeJson { transaction: Data(before.transaction), block: hex(&before.block) };
            let Start { block, before: transaction } = &self.start;
            let json = Json {
                network: self.network,
                block: hex(block),
                before: transaction.as_ref().map(before),
                trusts: self.trusts,
                rules,
            };
            let new = folder.join(NEW_FILE);
            let mut file = fs::File::create(&new)?;
            file.write_all(&serde_json::to_vec(&json)?)?;
            file.sync_all()?;
            fs::rename(&new, folder.join(FILE))?;
            fs::File::open(folder)?.sync_all()
        };
        write().map_err(|source| OpenForkError::Record { path: folder.join(FILE), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_chain::genesis::public_network;
    use node_types::H256;

    #[test]
    fn records_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Record::read(folder.path()).unwrap(), None);
        let (_, spec) = public_network(1).unwrap();
        let block = |number| HashedHeader::new(Header { number, base_fee_per_gas: Some(7), ..Header::default() });
        let before = Before { transaction: H256::repeat_byte(7), block: block(18) };
        for (before, trusts) in [(None, true), (Some(before), false)] {
            let record = Record { network: 1, start: Start { block: block(17), before }, spec: spec.clone(), trusts };
            record.write(folder.path()).unwrap();
            assert_eq!(Record::read(folder.path()).unwrap(), Some(record));
        }
        fs::write(folder.path().join(FILE), "{}").unwrap();
        assert!(Record::read(folder.path()).unwrap_err().to_string().contains(FILE));
    }
}
