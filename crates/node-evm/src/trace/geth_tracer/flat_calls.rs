//! The calls as a list: flatCallTracer, and the format of OpenEthereum, which `trace_transaction` and `trace_block` return.

use super::budget::Budget;
use super::calls::{CallFrame, CallTree};
use super::json::{self, Data, Hex};
use super::recorder::{Entry, Exit, Failure, FrameKind, Recorder};
use crate::convert::ToEvm;
use crate::machine::halt::{OUT_OF_GAS, REVERTED};
use crate::trace::tracer::Finished;
use node_core::executor::TraceError;
use node_types::buffer::JsonBuffer;
use node_types::wire::JsonArray;
use revm::primitives::{Address, B256, U256};
use serde::{Deserialize, Serialize};

/// The options of flatCallTracer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FlatOptions {
    convert_parity_errors: bool,
    include_precompiles: bool,
}

/// Whose conventions a list follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// geth's: the outermost call has all gas of the transaction.
    Geth(FlatOptions),
    /// OpenEthereum's: the outermost call has only its own gas, a call without a result has `null`, and calls of
    /// precompiles are listed if they transfer value.
    OpenEthereum,
}

impl Style {
    fn shows(self, call: &CallFrame) -> bool {
        let plain = call.is_precompile && matches!(call.kind, FrameKind::Call | FrameKind::StaticCall);
        match self {
            Self::Geth(options) => !plain || options.include_precompiles,
            Self::OpenEthereum => !plain || call.value.is_some_and(|value| !value.0.is_zero()),
        }
    }

    fn error(self, call: &CallFrame) -> Option<&str> {
        let text = call.error.as_deref()?;
        Some(match self {
            Self::Geth(FlatOptions { convert_parity_errors: false, .. }) => text,
            Self::Geth(_) => of_parity(text).unwrap_or(text),
            Self::OpenEthereum if call.failure.as_ref().is_some_and(Failure::is_of_precompile) => "Built-in failed",
            Self::OpenEthereum => of_parity(text).or_else(|| of_openethereum(text)).unwrap_or(text),
        })
    }
}

/// Records the tree of calls and writes it as a list.
pub(super) struct FlatCalls {
    tree: CallTree,
    style: Style,
}

impl FlatCalls {
    pub(super) fn new(style: Style) -> Self {
        Self { tree: CallTree::default(), style }
    }
}

impl Recorder for FlatCalls {
    fn enter(&mut self, entry: &Entry<'_>, budget: &mut Budget) {
        self.tree.enter(entry, budget);
    }

    fn exit(&mut self, exit: &Exit<'_>, budget: &mut Budget) {
        self.tree.exit(exit, budget);
    }

    fn finish(
        &mut self,
        run: &mut Finished<'_, '_>,
        budget: &mut Budget,
        out: &mut JsonBuffer,
    ) -> Result<(), TraceError> {
        let outermost = match self.style {
            Style::Geth(_) => self.tree.take_whole(run),
            Style::OpenEthereum => self.tree.take(run),
        };
        let place = Place {
            block_hash: run.place.block_hash.map(|hash| Hex(hash.to_evm())),
            block_number: run.block.number.saturating_to(),
            transaction_hash: run.place.hash.map(|hash| Hex(hash.to_evm())),
            transaction_position: run.place.index,
        };
        let mut list = JsonArray::begin(out);
        // In depth-first order: the calls that follow are on the stack, the next one last.
        let mut next = vec![(&outermost, Vec::new())];
        while let Some((call, address)) = next.pop() {
            let shown: Vec<_> = call.calls.iter().filter(|call| self.style.shows(call)).collect();
            for (position, inner) in shown.iter().enumerate().rev() {
                if !budget.spend(size_of_val(&*address)) {
                    return Err(TraceError::TooLarge);
                }
                next.push((inner, [&*address, &[position]].concat()));
            }
            json::write(list.element(), &FlatCall::new(call, address, shown.len(), self.style, &place))?;
        }
        list.end();
        Ok(())
    }
}

/// The place of a transaction.
#[derive(Clone, Copy)]
struct Place {
    block_hash: Option<Hex<B256>>,
    block_number: u64,
    transaction_hash: Option<Hex<B256>>,
    transaction_position: Option<usize>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FlatCall<'c> {
    action: Action<'c>,
    block_hash: Option<Hex<B256>>,
    block_number: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'c str>,
    /// Omitted if `None`, and null if that is in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Option<Outcome<'c>>>,
    subtraces: usize,
    trace_address: Vec<usize>,
    transaction_hash: Option<Hex<B256>>,
    transaction_position: Option<usize>,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum Action<'c> {
    Call {
        from: Hex<Address>,
        call_type: &'static str,
        gas: Hex<u64>,
        input: &'c Data,
        to: Option<Hex<Address>>,
        value: Hex<U256>,
    },
    Create {
        from: Hex<Address>,
        creation_method: &'static str,
        gas: Hex<u64>,
        init: &'c Data,
        value: Hex<U256>,
    },
    SelfDestruct {
        address: Hex<Address>,
        balance: Hex<U256>,
        refund_address: Option<Hex<Address>>,
    },
}

#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum Outcome<'c> {
    Call {
        gas_used: Hex<u64>,
        output: &'c Data,
    },
    Create {
        #[serde(skip_serializing_if = "Option::is_none")]
        address: Option<Hex<Address>>,
        code: &'c Data,
        gas_used: Hex<u64>,
    },
}

impl<'c> FlatCall<'c> {
    fn new(call: &'c CallFrame, trace_address: Vec<usize>, subtraces: usize, style: Style, place: &Place) -> Self {
        let CallFrame { from, gas, gas_used, to, input, output, .. } = call;
        let (from, gas, gas_used, to, value) = (*from, *gas, *gas_used, *to, call.value.unwrap_or_default());
        let call_type = match call.kind {
            FrameKind::CallCode => "callcode",
            FrameKind::DelegateCall => "delegatecall",
            FrameKind::StaticCall => "staticcall",
            _ => "call",
        };
        let method = if call.kind == FrameKind::Create2 { "create2" } else { "create" };
        let reverted = call.failure.as_ref().is_some_and(Failure::is_revert);
        let outcome = match call.kind {
            // No contract exists whose code it could be.
            FrameKind::Create | FrameKind::Create2 if !(reverted && style == Style::OpenEthereum) => {
                Outcome::Create { address: to, code: output, gas_used }
            }
            _ => Outcome::Call { gas_used, output },
        };
        let (kind, action) = match call.kind {
            FrameKind::Create | FrameKind::Create2 => {
                ("create", Action::Create { from, creation_method: method, gas, init: input, value })
            }
            FrameKind::SelfDestruct => {
                ("suicide", Action::SelfDestruct { address: from, balance: value, refund_address: to })
            }
            _ => ("call", Action::Call { from, call_type, gas, input, to, value }),
        };
        let has_result = call.kind != FrameKind::SelfDestruct && (call.failure.is_none() || reverted);
        let result = has_result.then_some(Some(outcome));
        Self {
            action,
            block_hash: place.block_hash,
            block_number: place.block_number,
            error: style.error(call),
            result: result.or((style == Style::OpenEthereum).then_some(None)),
            subtraces,
            trace_address,
            transaction_hash: place.transaction_hash,
            transaction_position: place.transaction_position,
            kind,
        }
    }
}

/// Returns OpenEthereum's text for an error, if geth converts it.
fn of_parity(text: &str) -> Option<&'static str> {
    const TEXTS: [(&str, &str); 10] = [
        ("contract creation code storage out of gas", "Out of gas"),
        (OUT_OF_GAS, "Out of gas"),
        ("gas uint64 overflow", "Out of gas"),
        ("max code size exceeded", "Out of gas"),
        ("invalid jump destination", "Bad jump destination"),
        (REVERTED, "Reverted"),
        ("return data out of bounds", "Out of bounds"),
        ("stack limit reached 1024 (1023)", "Out of stack"),
        ("invalid opcode", "Bad instruction"),
        ("stack underflow", "Stack underflow"),
    ];
    TEXTS.iter().find(|(start, _)| text.starts_with(start)).map(|(_, parity)| *parity)
}

/// Returns the text for an error that geth leaves as it is.
fn of_openethereum(text: &str) -> Option<&'static str> {
    Some(match text {
        "insufficient balance for transfer" => "Insufficient balance for transfer",
        "contract address collision" => "Contract address collision",
        "max call depth exceeded" => "Max call depth exceeded",
        "write protection" => "Mutable Call In Static Context",
        "nonce uint64 overflow" => "Nonce overflow",
        other if other.starts_with("invalid code") => "Invalid code",
        _ => return None,
    })
}
