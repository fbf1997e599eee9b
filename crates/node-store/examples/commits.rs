//! Measures the cost of a block on disk: as a commit of a database, and as an append to a synced log.
//!
//! ```text
//! cargo run -p node-store --example commits -- FOLDER
//! ```
//!
//! Fills a database with a million rows of random keys, and then writes the rows of 100 blocks in both ways. Bytes
//! are those that the process caused the system to write (`/proc/self/io`).

use redb::{Database, TableDefinition};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

const ROWS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("rows");
const FILLED: usize = 1_000_000;
const BLOCKS: usize = 100;

/// Rows of 40 bytes of key and 60 of value, with random keys.
struct Rows(u64);

impl Rows {
    fn next(&mut self) -> [u8; 100] {
        let mut row = [7; 100];
        for bytes in row.as_chunks_mut::<8>().0.iter_mut().take(5) {
            // xorshift64
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            *bytes = self.0.to_le_bytes();
        }
        row
    }
}

fn commit(database: &Database, rows: &mut Rows, count: usize) -> Result<(), redb::Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_quick_repair(true);
    let mut table = transaction.open_table(ROWS)?;
    for _ in 0..count {
        let row = rows.next();
        table.insert(&row[..40], &row[40..])?;
    }
    drop(table);
    Ok(transaction.commit()?)
}

fn append(log: &mut File, rows: &mut Rows, count: usize) -> io::Result<()> {
    let entry: Vec<u8> = (0..count).flat_map(|_| rows.next()).collect();
    log.write_all(&entry)?;
    log.sync_data()
}

fn written() -> u64 {
    let counters = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let bytes = counters.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    bytes.and_then(|bytes| bytes.parse().ok()).unwrap_or_default()
}

/// Runs `block` for each block. Prints the median time and the mean of written bytes.
fn measure<E>(name: &str, mut block: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    let before = written();
    let mut times = Vec::<Duration>::with_capacity(BLOCKS);
    for _ in 0..BLOCKS {
        let start = Instant::now();
        block()?;
        times.push(start.elapsed());
    }
    times.sort();
    println!("{name}: {:.2?}, {} KB", times[BLOCKS / 2], (written() - before) / BLOCKS as u64 / 1_000);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: commits FOLDER")?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    let database = Database::create(folder.join("rows.redb"))?;
    let mut log = File::create(folder.join("rows.log"))?;
    let mut rows = Rows(1);
    for _ in 0..FILLED / 100_000 {
        commit(&database, &mut rows, 100_000)?;
    }
    for count in [20, 200, 2_000] {
        measure(&format!("commit of {count} rows"), || commit(&database, &mut rows, count))?;
        measure(&format!("log entry of {count} rows"), || append(&mut log, &mut rows, count))?;
    }
    Ok(())
}
