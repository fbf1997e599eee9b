//! Blocks as rows.

use node_core::block::{Body, ExecutedBlock, RecoveredTransaction, SealedHeader};
use node_core::state::{AccountChange, AccountState, StateChanges};
use node_types::consensus::{Account, Block, Receipt};
use node_types::{Address, H256, U256, keccak256};
use rusqlite::types::FromSqlError;
use rusqlite::{Connection, Transaction, params};
use std::sync::Arc;

/// Inserts a block with the results of its execution. One that is there already only changes its place.
pub(crate) fn insert(transaction: &Transaction<'_>, block: &ExecutedBlock, canonical: bool) -> rusqlite::Result<()> {
    let SealedHeader { hash, header, total_difficulty, .. } = &*block.header;
    let hash = hash.as_bytes();
    if transaction.execute("UPDATE block SET canonical = ? WHERE hash = ?", params![canonical, hash])? > 0 {
        return Ok(());
    }
    let Body { transactions, ommers, withdrawals } = &*block.body;
    let whole = Block {
        header: header.clone(),
        transactions: transactions.iter().map(|sent| sent.transaction.clone()).collect(),
        ommers: ommers.clone(),
        withdrawals: withdrawals.clone(),
    };
    let senders: Vec<u8> = transactions.iter().flat_map(|sent| sent.sender.0).collect();
    let receipts: Vec<Vec<u8>> = block.receipts.iter().map(Receipt::encode).collect();
    let receipts = rlp::encode_list::<Vec<u8>, _>(&receipts).to_vec();
    transaction.execute(
        "INSERT INTO block VALUES (?, ?, ?, ?, ?, ?, ?)",
        params![
            hash,
            header.number as i64,
            canonical,
            whole.encode(),
            senders,
            receipts,
            total_difficulty.to_big_endian()
        ],
    )?;
    for (address, change) in &block.changes.accounts {
        let address = address.as_bytes();
        let leaf = change.account.map(|AccountState { nonce, balance, code_hash }| {
            Account { nonce, balance, code_hash, ..Account::default() }.encode()
        });
        transaction
            .execute("INSERT INTO account VALUES (?, ?, ?, ?)", params![hash, address, leaf, change.storage_cleared])?;
        for (slot, value) in &change.storage {
            let row = params![hash, address, slot.as_bytes(), value.to_big_endian()];
            transaction.execute("INSERT INTO slot VALUES (?, ?, ?, ?)", row)?;
        }
    }
    for (code_hash, code) in &block.changes.code {
        transaction.execute("INSERT INTO code VALUES (?, ?, ?)", params![hash, code_hash.as_bytes(), &code[..]])?;
    }
    Ok(())
}

/// The columns of a block: its RLP, senders, receipts and total difficulty.
type BlockRow = (Vec<u8>, Vec<u8>, Vec<u8>, [u8; 32]);

/// Returns the blocks on the chain or beside it, by ascending number.
pub(crate) fn blocks(database: &Connection, canonical: bool) -> rusqlite::Result<Vec<ExecutedBlock>> {
    let mut select = database
        .prepare("SELECT rlp, senders, receipts, total_difficulty FROM block WHERE canonical = ? ORDER BY number")?;
    let row = |row: &rusqlite::Row<'_>| -> rusqlite::Result<BlockRow> {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
    };
    let rows: Vec<BlockRow> = select.query_map([canonical], row)?.collect::<rusqlite::Result<_>>()?;
    rows.into_iter().map(|row| executed(database, row)).collect()
}

fn executed(
    database: &Connection,
    (rlp, senders, receipts, total_difficulty): BlockRow,
) -> rusqlite::Result<ExecutedBlock> {
    let Block { header, transactions, ommers, withdrawals } = Block::decode(&rlp).map_err(malformed)?;
    let recovered = transactions.into_iter().zip(senders.chunks_exact(20)).map(|(transaction, sender)| {
        RecoveredTransaction { hash: transaction.hash(), transaction, sender: Address::from_slice(sender) }
    });
    let transactions = recovered.collect();
    let receipts: Vec<Vec<u8>> = rlp::decode_list(&receipts);
    let receipts: Result<Vec<_>, _> = receipts.iter().map(|receipt| Receipt::decode(receipt)).collect();
    let hash = keccak256(header.encode());
    let sealed = SealedHeader {
        hash,
        header,
        total_difficulty: U256::from_big_endian(&total_difficulty),
        size: rlp.len() as u64,
    };
    Ok(ExecutedBlock {
        header: Arc::new(sealed),
        body: Arc::new(Body { transactions, ommers, withdrawals }),
        receipts: Arc::new(receipts.map_err(malformed)?),
        changes: Arc::new(changes(database, hash)?),
    })
}

fn changes(database: &Connection, block: H256) -> rusqlite::Result<StateChanges> {
    let mut changes = StateChanges::default();
    let mut select = database.prepare("SELECT address, leaf, cleared FROM account WHERE block = ?")?;
    let mut rows = select.query([block.as_bytes()])?;
    while let Some(row) = rows.next()? {
        let leaf: Option<Vec<u8>> = row.get(1)?;
        let account = leaf.map(|leaf| Account::decode(&leaf)).transpose().map_err(malformed)?;
        let account =
            account.map(|Account { nonce, balance, code_hash, .. }| AccountState { nonce, balance, code_hash });
        let change = AccountChange { account, storage_cleared: row.get(2)?, ..AccountChange::default() };
        changes.accounts.insert(Address::from(row.get::<_, [u8; 20]>(0)?), change);
    }
    let mut select = database.prepare("SELECT address, slot, value FROM slot WHERE block = ?")?;
    let mut rows = select.query([block.as_bytes()])?;
    while let Some(row) = rows.next()? {
        let storage = &mut changes.accounts.entry(Address::from(row.get::<_, [u8; 20]>(0)?)).or_default().storage;
        storage.insert(H256(row.get(1)?), U256::from_big_endian(&row.get::<_, [u8; 32]>(2)?));
    }
    let mut select = database.prepare("SELECT hash, code FROM code WHERE block = ?")?;
    let mut rows = select.query([block.as_bytes()])?;
    while let Some(row) = rows.next()? {
        changes.code.insert(H256(row.get(0)?), row.get::<_, Vec<u8>>(1)?.into());
    }
    Ok(changes)
}

fn malformed(error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    FromSqlError::Other(Box::new(error)).into()
}
