//! The lines about a transaction.

use super::Traces;
use super::call_frame::CallFrame;
use crate::dev::banner::Ether;
use node_core::block::SealedHeader;
use node_core::node::ReceiptInBlock;
use node_dev::Checksummed;
use node_types::U256;
use node_types::consensus::ReceiptOutcome;
use std::fmt;

/// Escape sequences that start and end red text.
const RED: (&str, &str) = ("\x1b[31m", "\x1b[0m");

/// Returns the text of a failure, in red if there are colors.
pub(super) fn in_red(failure: &str, colors: bool) -> String {
    let (red, plain) = if colors { RED } else { ("", "") };
    format!("{red}{failure}{plain}")
}

/// The lines about a mined transaction.
pub(super) struct TransactionLines<'a> {
    pub(super) header: &'a SealedHeader,
    pub(super) receipt: ReceiptInBlock<'a>,
    /// Its calls; `None` if it could not be traced.
    pub(super) frame: Option<&'a CallFrame>,
    pub(super) traces: Traces,
    /// Whether to show lines of `console.log`.
    pub(super) console: bool,
    /// Whether failures are red.
    pub(super) colors: bool,
}

impl TransactionLines<'_> {
    /// Returns why the transaction failed, or `None` if it succeeded.
    fn failure(&self) -> Option<String> {
        let failed = self.receipt.receipt.outcome == ReceiptOutcome::Success(false);
        let reason = || self.frame.and_then(CallFrame::failure);
        failed.then(|| reason().unwrap_or_else(|| "failed".to_owned()))
    }
}

/// Indents all lines of a text of `console.log` but the first as far as that is indented by its label.
pub(super) fn indented(text: &str) -> String {
    text.replace('\n', "\n          ")
}

impl fmt::Display for TransactionLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReceiptInBlock { transaction, gas_used, .. } = self.receipt;
        let (body, header) = (&transaction.transaction.body, &self.header.header);
        writeln!(f, "\ntransaction {:#x}", transaction.hash)?;
        writeln!(f, "  from    {}", Checksummed(transaction.sender))?;
        match body.to() {
            Some(to) => writeln!(f, "  to      {}", Checksummed(to))?,
            None => writeln!(f, "  creates {}", Checksummed(transaction.created_address()))?,
        }
        if let Some(function) = self.frame.and_then(CallFrame::function) {
            writeln!(f, "  calls   {function}")?;
        }
        if !body.value().is_zero() {
            writeln!(f, "  value   {}", Ether(body.value()))?;
        }
        let failure = self.failure();
        match &failure {
            Some(failure) => {
                writeln!(f, "  status  {}", in_red(failure, self.colors))?;
            }
            None => writeln!(f, "  status  success")?,
        }
        let price = body.effective_gas_price(header.base_fee_per_gas).unwrap_or_default();
        writeln!(f, "  gas     {gas_used} of {}", body.gas_limit())?;
        writeln!(f, "  fee     {}, {price} wei per gas", Ether(price.saturating_mul(U256::from(gas_used))))?;
        write!(f, "  block   {}, {:#x}", header.number, self.header.hash)?;
        for line in self.frame.filter(|_| self.console).map(CallFrame::console_lines).unwrap_or_default() {
            write!(f, "\n  console {}", indented(&line))?;
        }
        match self.frame.filter(|_| self.traces.includes(failure.is_some())) {
            Some(frame) => write!(f, "\n  trace\n{}", frame.to_string().trim_end()),
            None => Ok(()),
        }
    }
}
