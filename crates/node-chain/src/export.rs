//! Export of the canonical chain as a chain file.

use node_core::backend::{BackendError, View};
use node_core::block::BlockHashOrNumber;
use node_types::BlockNumber;
use std::io::{self, Write};
use std::ops::RangeInclusive;

/// Why [`export_blocks`] failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    #[error(transparent)]
    Backend(#[from] BackendError),
    #[error("the chain file cannot be written")]
    Io(#[from] io::Error),
}

/// Writes the canonical blocks of `range`, RLP-encoded and concatenated. The range may extend beyond the head, where
/// the export ends.
///
/// # Errors
/// Returns an [`ExportError`] if the chain cannot be read or `writer` fails.
pub fn export_blocks(
    view: &dyn View,
    range: RangeInclusive<BlockNumber>,
    writer: &mut impl Write,
) -> Result<(), ExportError> {
    let end = view.head().number.min(*range.end());
    for number in *range.start()..=end {
        let id = BlockHashOrNumber::Number(number);
        let (Some(header), Some(body)) = (view.header(id)?, view.body(id)?) else {
            return Err(BackendError::UnknownBlock(number).into());
        };
        writer.write_all(&rlp::encode(&body.with_header(&header.header)))?;
    }
    Ok(())
}
