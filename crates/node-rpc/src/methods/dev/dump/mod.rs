//! State dumps in anvil's format: JSON, which the JSON-RPC methods exchange gzipped in hex. Chains can be exchanged with
//! anvil in both directions.

mod read;
mod write;

pub use read::{Dump, InvalidDump, read_dump};
pub use write::write_dump;

use super::named;
use crate::error::RpcError;
use crate::method::Method;
use crate::scope::Scope;
use flate2::Compression;
use flate2::write::GzEncoder;
use node_core::context::Context;
use node_core::node::NodeError;
use node_core::producer::{Producer, ProducerError};
use node_types::wire::{BytesData, JsonBuffer, append_digits};
use std::io::{self, BufWriter, Write};

pub(super) fn methods() -> Vec<Method> {
    [
        ["anvil_dumpState", "hardhat_dumpState"].map(dumping).into(),
        named(
            &["anvil_loadState", "hardhat_loadState"],
            &["dump"],
            "Loads the accounts of a dump, and its blocks into a chain without blocks; other accounts are unchanged.",
            |scope, (dump,): (BytesData,)| load(scope, &dump),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn dumping(name: &'static str) -> Method {
    let about = "All blocks, and all accounts with code and storage, as gzipped JSON.";
    Method::writing(name, &["preserveHistory?"], about, |scope, (_history,): (Option<bool>,), out| dump(scope, out))
        .controlling()
}

/// Writes the chain while it is encoded and compressed. The memory of the accounts counts as that of the response.
fn dump(scope: Scope<'_>, out: &mut JsonBuffer) -> Result<(), RpcError> {
    let chain = scope.control()?.dump_chain(scope.context, |bytes| out.set_aside(bytes))?;
    out.extend_from_slice(b"\"0x");
    let encoder = GzEncoder::new(Digits { out: &mut *out, context: scope.context }, Compression::fast());
    let mut pieces = BufWriter::with_capacity(PIECE, encoder);
    let written = write_dump(&mut pieces, &chain).and_then(|()| pieces.into_inner()?.finish().map(drop));
    drop(chain);
    written.map_err(|error| match (scope.context.check(), out.full()) {
        (Err(over), _) => NodeError::from(over).into(),
        (_, Some(full)) => NodeError::ResponseTooLarge(full).into(),
        _ => RpcError::internal(&error),
    })?;
    out.return_aside();
    out.push(b'"');
    Ok(())
}

/// Number of bytes that are compressed at a time.
const PIECE: usize = 64 << 10;

/// Writes bytes as hex digits, until the request has to end.
struct Digits<'a> {
    out: &'a mut JsonBuffer,
    context: &'a Context,
}

impl Write for Digits<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.context.check().map_err(io::Error::other)?;
        append_digits(self.out, bytes);
        self.out.full().map_or(Ok(bytes.len()), |full| Err(io::Error::other(full)))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn load(scope: Scope<'_>, dump: &[u8]) -> Result<bool, RpcError> {
    let dump = read_dump(dump).map_err(|error| RpcError::argument(0, error))?;
    dump.load(scope.control()?)?;
    Ok(true)
}

impl Dump {
    /// Loads the accounts, and the blocks if the chain has none of its own. Logs what is not loaded.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn load(self, producer: &Producer) -> Result<(), ProducerError> {
        let Self { accounts, blocks, not_loaded, .. } = self;
        if !not_loaded.is_empty() {
            tracing::warn!("not loaded from the dump: {}", not_loaded.join("; "));
        }
        if producer.is_untouched()? {
            return producer.load_chain(accounts, blocks);
        }
        if !blocks.is_empty() {
            tracing::warn!("the chain has blocks of its own, so only the accounts of the dump are loaded");
        }
        producer.load(accounts)
    }
}
