//! Checks the rows that a block adds to the state, by computing them from the previous state.

use super::base::{Base, blame, stored};
use super::counts::{Counted, Counts};
use super::difference::{RowFault, Stop};
use crate::keys::{Key, Table};
use crate::rows::{Rows, Tables};
use crate::state::{self, Before, NewState, StateParts};
use crate::values::{self, ChangesRow};
use node_core::state::StateChanges;
use node_types::consensus::Header;
use node_types::{BlockNumber, H256};

/// Checks the rows of the state and of the changes that block `number` wrote. `parts` caches those of its parent's
/// state, and afterwards those of the block's own state.
pub(super) fn check(
    base: &Base<'_>,
    number: BlockNumber,
    parts: &mut StateParts,
    counts: &mut Counts,
) -> Result<(), Stop> {
    let key = Key::of_block(Table::Changes, number);
    let at = |fault: RowFault| fault.of(number, &key, number);
    let row = stored(base.tables(), &key, number)?.ok_or_else(|| at(RowFault::Missing))?;
    let changes = values::decode_changes_row(&row).map_err(|error| at(RowFault::malformed(error)))?;
    let header = header_of(base.tables(), number)?;
    let new = make(base, &header, &changes, Some(parts))?;
    let edited = base.edits(header.hash()).into_iter().flat_map(|edits| edits.state.accounts.keys());
    for address in edited {
        if !changes.accounts.contains_key(address) {
            return Err(at(RowFault::malformed(format!(
                "account {address:#x} was edited, and is not among the changes"
            ))));
        }
    }
    RowFault::unless_equal("state root", header.state_root, new.root).map_err(at)?;
    let mut is_equal = true;
    for (key, value) in &new.rows {
        is_equal &= base.expect_of_state(number, key, value, &new.changed)?;
        counts.add(number, Counted::of(key.table()), 1);
    }
    let accounts = values::encode_accounts(&changes.accounts);
    let expected = values::encode_changes_row(&accounts, changes.code.iter());
    RowFault::unless_equal("value", expected, &row).map_err(at)?;
    let deployed = changes.code.iter().copied();
    let used = changes.accounts.values().filter_map(|change| change.account);
    for hash in deployed.chain(used.filter(|account| account.has_code()).map(|account| account.code_hash)) {
        expect_code(&base.chain.rows, number, hash)?;
    }
    if is_equal {
        parts.advance(new.changed);
    } else {
        parts.clear();
    }
    Ok(())
}

/// Computes the rows of the state of the block with this header.
pub(super) fn make(
    base: &Base<'_>,
    header: &Header,
    changes: &ChangesRow,
    parts: Option<&mut StateParts>,
) -> Result<NewState, Stop> {
    let number = header.number;
    let changes = StateChanges { accounts: changes.accounts.clone(), ..StateChanges::default() };
    let rows = &base.chain.rows;
    let made = match number.checked_sub(1).filter(|_| base.has_base() && !header.has_state_root()) {
        Some(parent) => state::apply_flat(rows, parent, &changes),
        None => state::apply(rows, parts, Before::block(number), number, &changes),
    };
    made.map_err(|error| blame(error, number, &Key::of_block(Table::Changes, number)))
}

/// Returns the header of canonical block `number`.
pub(super) fn header_of(tables: &Tables, number: BlockNumber) -> Result<Header, Stop> {
    let key = Key::of_block(Table::Headers, number);
    let at = |fault: RowFault| fault.of(number, &key, number);
    let row = stored(tables, &key, number)?.ok_or_else(|| at(RowFault::Missing))?;
    Ok(values::decode_header(&row).map_err(|error| at(RowFault::malformed(error)))?.header)
}

/// Checks that code with this hash exists, unless the base may have it. The bytes of all code are checked separately.
pub(super) fn expect_code(rows: &Rows, number: BlockNumber, hash: H256) -> Result<(), Stop> {
    let key = Key::of_hash(Table::Code, hash);
    match rows.tables.get(&key)? {
        Some(_) => Ok(()),
        None if rows.base.is_some() => Ok(()),
        None => Err(RowFault::Missing.of(number, &key, number)),
    }
}
