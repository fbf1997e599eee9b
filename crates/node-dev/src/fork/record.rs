//! What a data folder remembers about its fork: the block that it begins with, and the rules.

use super::OpenForkError;
use node_chain::Genesis;
use node_core::protocol::ChainSpec;
use node_types::consensus::Header;
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
    pub(super) block: HashedHeader,
    pub(super) spec: ChainSpec,
}

#[derive(Deserialize, Serialize)]
struct Json {
    network: u64,
    /// RLP of the header, as hex.
    block: String,
    /// A genesis file with the rules and without accounts.
    rules: Box<RawValue>,
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
        let Json { network, block, rules } =
            serde_json::from_slice(&json).map_err(|error| damaged(error.to_string()))?;
        let bytes = const_hex::decode(block).map_err(|error| damaged(error.to_string()))?;
        let header: Header = rlp::decode(&bytes).map_err(|error| damaged(error.to_string()))?;
        let genesis = Genesis::parse(rules.get().as_bytes()).map_err(|error| damaged(error.to_string()))?;
        Ok(Some(Self { network, block: HashedHeader::new(header), spec: genesis.spec }))
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
            let json = Json {
                network: self.network,
                block: const_hex::encode_prefixed(rlp::encode(self.block.header())),
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

    #[test]
    fn records_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Record::read(folder.path()).unwrap(), None);
        let (_, spec) = public_network(1).unwrap();
        let header = Header { number: 17, base_fee_per_gas: Some(7), ..Header::default() };
        let record = Record { network: 1, block: HashedHeader::new(header), spec };
        record.write(folder.path()).unwrap();
        assert_eq!(Record::read(folder.path()).unwrap(), Some(record));
        fs::write(folder.path().join(FILE), "{}").unwrap();
        assert!(Record::read(folder.path()).unwrap_err().to_string().contains(FILE));
    }
}
