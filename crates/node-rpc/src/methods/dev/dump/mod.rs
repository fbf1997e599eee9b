//! State dumps in anvil's format: JSON, which the JSON-RPC methods exchange gzipped in hex. Chains can be exchanged with
//! anvil in both directions.

mod read;
mod write;

pub use read::{Dump, InvalidDump, read_dump};
pub use write::{WriteDumpError, write_dump};

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
use std::cell::RefCell;
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

/// Writes the chain while it is read, encoded and compressed.
fn dump(scope: Scope<'_>, out: &mut JsonBuffer) -> Result<(), RpcError> {
    let chain = scope.control()?.dump_chain()?;
    out.extend_from_slice(b"\"0x");
    let shared = RefCell::new(&mut *out);
    let encoder = GzEncoder::new(Digits { out: &shared, context: scope.context }, Compression::fast());
    let mut pieces = BufWriter::with_capacity(PIECE, encoder);
    let written = write_dump(&mut pieces, &chain, scope.context, |bytes| shared.borrow_mut().set_aside(bytes));
    let written = written.and_then(|()| {
        let encoder = pieces.into_inner().map_err(|error| WriteDumpError::Output(error.into_error()))?;
        encoder.finish().map(drop).map_err(WriteDumpError::Output)
    });
    written.map_err(|error| match (error, scope.context.check(), out.full()) {
        (_, Err(over), _) => NodeError::from(over).into(),
        (_, _, Some(full)) => NodeError::ResponseTooLarge(full).into(),
        (WriteDumpError::Chain(error), ..) => error.into(),
        (WriteDumpError::Output(error), ..) => RpcError::internal(&error),
    })?;
    out.return_aside();
    out.push(b'"');
    Ok(())
}

/// Number of bytes that are compressed at a time.
const PIECE: usize = 64 << 10;

/// Writes bytes as hex digits, until the request has to end.
struct Digits<'a> {
    out: &'a RefCell<&'a mut JsonBuffer>,
    context: &'a Context,
}

impl Write for Digits<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.context.check().map_err(io::Error::other)?;
        let mut out = self.out.borrow_mut();
        append_digits(&mut out, bytes);
        out.full().map_or(Ok(bytes.len()), |full| Err(io::Error::other(full)))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Maximum number of bytes of decompressed JSON that a request may contain.
const MAX_DUMP: u64 = 256 << 20;

fn load(scope: Scope<'_>, dump: &[u8]) -> Result<bool, RpcError> {
    let dump = read_dump(dump, MAX_DUMP).map_err(|error| RpcError::argument(0, error))?;
    dump.load(scope.control()?)?;
    Ok(true)
}

impl Dump {
    /// Loads the accounts, and the blocks if the chain has none of its own and continues no other one. Logs what is not
    /// loaded.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn load(self, producer: &Producer) -> Result<(), ProducerError> {
        let Self { accounts, blocks, not_loaded, .. } = self;
        if !not_loaded.is_empty() {
            tracing::warn!("not loaded from the dump: {}", not_loaded.join("; "));
        }
        let is_fork = producer.continues_another()?;
        if !is_fork && producer.is_untouched()? {
            return producer.load_chain(accounts, blocks);
        }
        if !blocks.is_empty() {
            let has = if is_fork { "continues another one" } else { "has blocks of its own" };
            tracing::warn!("the chain {has}, so only the accounts of the dump are loaded");
        }
        producer.load(accounts)
    }
}
