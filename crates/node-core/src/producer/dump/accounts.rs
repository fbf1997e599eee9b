//! Reading all accounts of a chain in bounded memory.

use super::WholeChain;
use crate::backend::{BackendError, StateView, View};
use crate::context::Context;
use crate::producer::ProducerError;
use crate::state::{AccountState, StateChanges};
use node_types::buffer::BufferFull;
use node_types::{Address, Bytes, H256, U256};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// An account, or a slot of it. An account comes before its slots.
type Name = (Address, Option<H256>);

/// Maximum number of names in memory.
const MAX_NAMES: usize = 1 << 18;

/// Estimated memory of a name in bytes.
const NAME: usize = 96;

/// Number of bytes that are granted at first.
const GRANT: usize = 64 << 10;

/// The accounts of a chain with their storage, in the order of their addresses.
///
/// States have no list of addresses, so these are collected from the changes of all blocks: as many as memory is for, then
/// the next ones, in a further pass over all blocks.
///
/// In a chain that continues another one, those that were read are added, and what a block deleted is there as well, as an
/// empty account or a slot with the value zero: it may exist in the other chain.
///
/// # Errors
/// All methods fail with failures of the backend, with an interruption of the context, and with
/// [`ProducerError::StateTooLarge`] if memory is refused.
pub struct WholeAccounts<'a> {
    chain: &'a WholeChain,
    state: Box<dyn StateView + 'a>,
    context: &'a Context,
    grant: Box<dyn FnMut(usize) -> Result<(), BufferFull> + 'a>,
    granted: usize,
    max_names: usize,
    /// The next names.
    names: BTreeSet<Name>,
    /// The last of the names that were collected so far.
    last: Option<Name>,
    is_last_pass: bool,
    /// The account whose slots are read.
    current: Option<Address>,
}

impl WholeChain {
    /// Returns the blocks.
    pub fn view(&self) -> &Arc<dyn View> {
        &self.view
    }

    /// Reads all accounts. Before the names of accounts and slots take more memory, `grant` is asked whether they may take
    /// that many bytes, which are estimated; they take at most 32 MiB.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn accounts<'a>(
        &'a self,
        context: &'a Context,
        grant: impl FnMut(usize) -> Result<(), BufferFull> + 'a,
    ) -> Result<WholeAccounts<'a>, ProducerError> {
        Ok(WholeAccounts {
            chain: self,
            state: self.view.state(self.view.head().number)?,
            context,
            grant: Box::new(grant),
            granted: 0,
            max_names: MAX_NAMES,
            names: BTreeSet::new(),
            last: None,
            is_last_pass: false,
            current: None,
        })
    }
}

#[expect(clippy::missing_errors_doc, reason = "stated once for all methods")]
impl WholeAccounts<'_> {
    /// Returns the next account, or `None` after the last one.
    pub fn next_account(&mut self) -> Result<Option<(Address, AccountState)>, ProducerError> {
        loop {
            let Some((address, slot)) = self.next_name(|_| true)? else { return Ok(None) };
            // Others are slots that were not asked for, or those of an account that does not exist.
            if slot.is_none()
                && let Some(account) = self.state.account(address)?.or(self.deleted())
            {
                self.current = Some(address);
                return Ok(Some((address, account)));
            }
        }
    }

    /// Returns what stands for an account that does not exist, or `None` if nothing does.
    fn deleted(&self) -> Option<AccountState> {
        self.chain.view.is_partial().then(AccountState::default)
    }

    /// Returns the next slot of the last account with its value, or `None` after the last one.
    pub fn next_slot(&mut self) -> Result<Option<(H256, U256)>, ProducerError> {
        let Some(current) = self.current else { return Ok(None) };
        while let Some((_, slot)) = self.next_name(|(address, slot)| *address == current && slot.is_some())? {
            let slot = slot.unwrap_or_default();
            let value = self.state.storage(current, slot)?;
            if !value.is_zero() || self.chain.view.is_partial() {
                return Ok(Some((slot, value)));
            }
        }
        Ok(None)
    }

    /// Returns the code of an account, by its hash.
    pub fn code(&self, hash: H256) -> Result<Bytes, ProducerError> {
        Ok(self.state.code_of_account(hash)?)
    }

    /// Removes the next name if it is `wanted`.
    fn next_name(&mut self, wanted: impl FnOnce(&Name) -> bool) -> Result<Option<Name>, ProducerError> {
        self.context.check().map_err(BackendError::from)?;
        if self.names.is_empty() && !self.is_last_pass {
            self.collect()?;
        }
        let is_wanted = self.names.first().is_some_and(wanted);
        Ok(if is_wanted { self.names.pop_first() } else { None })
    }

    /// Collects the names that follow the last ones.
    fn collect(&mut self) -> Result<(), ProducerError> {
        let (chain, context) = (self.chain, self.context);
        let mut is_whole = true;
        let mut add = |name: Name| {
            if self.last.is_some_and(|last| name <= last) || self.names.contains(&name) {
                return Ok(());
            }
            if self.names.len() >= self.max_names {
                is_whole = false;
                if self.names.last().is_some_and(|last| name > *last) {
                    return Ok(());
                }
                self.names.pop_last();
            }
            self.names.insert(name);
            let needed = self.names.len() * NAME;
            if needed > self.granted {
                let more = (needed + needed / 4).max(GRANT);
                self.granted = match (self.grant)(more) {
                    Ok(()) => more,
                    Err(_) => (self.grant)(needed).map(|()| needed)?,
                };
            }
            Ok::<_, ProducerError>(())
        };
        let mut add_all = |changes: &StateChanges| {
            for (address, change) in &changes.accounts {
                context.check().map_err(BackendError::from)?;
                add((*address, None))?;
                change.storage.keys().try_for_each(|slot| add((*address, Some(*slot))))?;
            }
            Ok::<_, ProducerError>(())
        };
        let view = &chain.view;
        // The first block of a chain that continues another one has no changes.
        for number in view.first() + u64::from(view.is_partial())..=view.head().number {
            context.check().map_err(BackendError::from)?;
            let pruned = BackendError::StatePruned { block: number, earliest: view.earliest_state() };
            add_all(&*view.changes(number)?.ok_or(pruned)?)?;
        }
        add_all(&chain.edits)?;
        let mut added = Ok(());
        view.read_names(&mut |address, slot| {
            added = add((address, None)).and_then(|()| slot.map_or(Ok(()), |slot| add((address, Some(slot)))));
            if added.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        added?;
        self.is_last_pass = is_whole;
        self.last = self.names.last().copied().or(self.last);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::suite::Random;
    use crate::backend::{LayeredView, MemoryBackend, StateBackend};
    use crate::state::AccountChange;
    use crate::test_chain::address;
    use std::collections::BTreeMap;

    type Accounts = BTreeMap<Address, (AccountState, BTreeMap<H256, U256>)>;

    /// Reads all accounts with at most `max_names` names in memory, and without the slots of every account of which
    /// `skips` is true.
    fn read(chain: &WholeChain, max_names: usize, skips: impl Fn(Address) -> bool) -> Accounts {
        let context = Context::unbounded();
        let mut accounts = WholeAccounts { max_names, ..chain.accounts(&context, |_| Ok(())).unwrap() };
        let mut all = Accounts::new();
        while let Some((address, account)) = accounts.next_account().unwrap() {
            assert!(all.last_key_value().is_none_or(|(last, _)| *last < address));
            let mut slots = BTreeMap::new();
            while !skips(address)
                && let Some((slot, value)) = accounts.next_slot().unwrap()
            {
                slots.insert(slot, value);
            }
            assert!(accounts.names.len() <= max_names);
            all.insert(address, (account, slots));
        }
        assert!(accounts.next_account().unwrap().is_none() && accounts.next_slot().unwrap().is_none());
        all
    }

    #[test]
    fn accounts_are_the_same_in_any_number_of_passes() {
        let chain = Random(5).chain(60);
        let backend = MemoryBackend::new(chain.blocks()[0].clone()).unwrap();
        chain.above(0).into_iter().for_each(|block| backend.append(block).unwrap());
        // One account is edited, and another one is deleted.
        let head = backend.view().unwrap();
        let mut edits = StateChanges::default();
        let edited =
            AccountChange { account: Some(AccountState { nonce: 7, ..Default::default() }), ..Default::default() };
        edits.accounts.insert(address(1), AccountChange { storage: [(H256::zero(), 5.into())].into(), ..edited });
        edits.accounts.insert(Random::addresses()[0], AccountChange::default());

        let mut merged = StateChanges::default();
        chain.blocks().iter().for_each(|block| merged.merge(&block.changes));
        merged.merge(&edits);
        let expected: Accounts = (merged.accounts.into_iter())
            .filter_map(|(address, change)| {
                let slots = change.storage.into_iter().filter(|(_, value)| !value.is_zero()).collect();
                Some((address, (change.account?, slots)))
            })
            .collect();
        assert!(expected.values().any(|(_, slots)| slots.len() > 2) && expected.len() > 3);

        let edits = Arc::new(edits);
        let view = Arc::new(LayeredView::with_edits(head.clone(), head.head().number, Arc::clone(&edits)));
        let chain = WholeChain { view, edits };
        for max_names in [1, 2, 3, 7, 1_000] {
            assert_eq!(read(&chain, max_names, |_| false), expected, "{max_names} names");
            let without = read(&chain, max_names, |skipped| skipped != address(1));
            assert!(without.keys().eq(expected.keys()));
            assert_eq!(without[&address(1)], expected[&address(1)]);
        }
    }
}
