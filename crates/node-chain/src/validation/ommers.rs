//! Validation of ommers (Yellow Paper, section 11.1).

use super::{BlockError, validate_header};
use node_core::block::SealedHeader;
use node_core::protocol::ChainSpec;
use node_types::H256;
use node_types::consensus::Header;
use std::sync::Arc;

/// Maximum distance in generations between a block and the sibling of its ommer.
pub const MAX_OMMER_DEPTH: usize = 6;

/// Maximum number of ommers of a block (Yellow Paper, section 11.1).
const MAX_OMMERS: usize = 2;

/// An ancestor of the checked block.
#[derive(Clone, Debug)]
pub struct Ancestor {
    pub header: Arc<SealedHeader>,
    /// Hashes of the ancestor's ommers.
    pub ommers: Vec<H256>,
}

/// Checks the ommers of a block.
///
/// `ancestors` are the last [`MAX_OMMER_DEPTH`] + 1 ancestors of the block, or all if there are fewer, parent first.
///
/// # Errors
/// Returns a [`BlockError`] for the first rule that the ommers violate.
pub fn validate_ommers(spec: &ChainSpec, ommers: &[Header], ancestors: &[Ancestor]) -> Result<(), BlockError> {
    if ommers.len() > MAX_OMMERS {
        return Err(BlockError::TooManyOmmers { count: ommers.len() });
    }
    let hashes: Vec<H256> = ommers.iter().map(Header::hash).collect();
    for (index, (ommer, &hash)) in ommers.iter().zip(&hashes).enumerate() {
        if hashes[..index].contains(&hash) {
            return Err(BlockError::RepeatedOmmer { hash });
        }
        if ancestors.iter().any(|ancestor| ancestor.header.hash == hash) {
            return Err(BlockError::OmmerIsAncestor { hash });
        }
        if ancestors.iter().take(MAX_OMMER_DEPTH).any(|ancestor| ancestor.ommers.contains(&hash)) {
            return Err(BlockError::OmmerIncludedBefore { hash });
        }
        // The first ancestor is skipped: its children are siblings of the block.
        let parent = ancestors.iter().skip(1).find(|ancestor| ancestor.header.hash == ommer.parent_hash);
        let Some(parent) = parent else {
            return Err(BlockError::OmmerParent { hash, parent: ommer.parent_hash });
        };
        validate_header(spec, ommer, &parent.header)
            .map_err(|source| BlockError::OmmerHeader { hash, source: Box::new(source) })?;
    }
    Ok(())
}
