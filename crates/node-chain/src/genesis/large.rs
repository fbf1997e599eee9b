//! Genesis files whose accounts need not fit into memory.

use super::{Genesis, GenesisAccount, GenesisError, file};
use node_core::context::Context;
use node_core::state::StateChanges;
use node_core::trie::sorted_root;
use node_types::{Address, Bytes, H256, U256, keccak256, keccak256_all};
use rlp::{DecoderError, Rlp, RlpStream};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

/// Number of temporary files. Each has the accounts whose address hashes begin with a given byte.
const FILES: usize = 256;

/// Size of the buffers for reading the genesis file, in bytes.
const READ_BUFFER: usize = 1 << 20;

/// Number of accounts and slots after which a part of the state ends.
const PART: usize = 100_000;

/// A genesis whose accounts are sorted in temporary files. Only a small part of them is in memory at a time.
///
/// The files take about as much disk space as the genesis file.
#[derive(Debug)]
pub struct LargeGenesis {
    genesis: Genesis,
    files: Vec<File>,
}

impl LargeGenesis {
    /// Reads a genesis file in geth's JSON format; [`Genesis::parse`] would produce the same chain from it.
    /// `new_file` is called 256 times and must return a new, empty file opened for reading and writing, such as
    /// `tempfile::tempfile` of the crate tempfile does.
    ///
    /// # Errors
    /// Those of [`Genesis::parse`], [`GenesisError::Scratch`] if a temporary file cannot be used, and
    /// [`GenesisError::Interrupted`].
    pub fn read(
        file: impl Read,
        context: &Context,
        mut new_file: impl FnMut() -> io::Result<File>,
    ) -> Result<Self, GenesisError> {
        let files = (0..FILES).map(|_| new_file().map(BufWriter::new)).collect::<io::Result<Vec<_>>>();
        let mut files = files.map_err(GenesisError::Scratch)?;
        let (genesis, stated) =
            file::read_large(BufReader::with_capacity(READ_BUFFER, file), &mut |address, account| {
                context.check()?;
                let file = &mut files[usize::from(keccak256(address).as_bytes()[0])];
                write(file, address, &account).map_err(GenesisError::Scratch)
            })?;
        let files = files.into_iter().map(|file| file.into_inner().map_err(|error| error.into_error()));
        let files = files.collect::<io::Result<_>>().map_err(GenesisError::Scratch)?;
        let mut large = Self { genesis, files };
        if large.genesis.state_root.is_none() {
            let root = large.root(context)?;
            stated.map_or(Ok(()), |stated| file::check_root(root, stated))?;
            large.genesis.state_root = Some(root);
        }
        Ok(large)
    }

    /// Returns the genesis without its accounts, but with their root.
    pub fn genesis(&self) -> &Genesis {
        &self.genesis
    }

    /// Returns the initial state in parts. Together they contain all accounts, in ascending order of the hashes of
    /// their addresses.
    ///
    /// # Errors
    /// Items are [`GenesisError::Scratch`] if a temporary file cannot be read.
    pub fn state(&self) -> impl Iterator<Item = Result<StateChanges, GenesisError>> + '_ {
        let mut files = self.files.iter();
        std::iter::from_fn(move || {
            let (mut part, mut size) = (StateChanges::default(), 0);
            while size < PART
                && let Some(file) = files.next()
            {
                match read_sorted(file) {
                    Ok(accounts) => accounts.into_iter().for_each(|(_, address, account)| {
                        size += 1 + account.storage.len();
                        account.add_to(&mut part, address);
                    }),
                    Err(error) => return Some(Err(error)),
                }
            }
            (size > 0).then_some(Ok(part))
        })
    }

    fn root(&self, context: &Context) -> Result<H256, GenesisError> {
        let mut last = None;
        let files = self.files.iter().map(|file| {
            context.check()?;
            read_sorted(file)
        });
        let accounts = files.flat_map(|accounts| match accounts {
            Ok(accounts) => accounts.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        });
        sorted_root(accounts.map(|account| {
            let (hash, address, account) = account?;
            match last.replace(hash) {
                Some(before) if before == hash => Err(GenesisError::DuplicateAccount { address }),
                _ => Ok((hash, account.leaf())),
            }
        }))
    }
}

/// Appends an account to a temporary file: the length of its RLP in 4 bytes, and the RLP.
fn write(file: &mut BufWriter<File>, address: Address, account: &GenesisAccount) -> io::Result<()> {
    let mut rlp = RlpStream::new_list(5);
    rlp.append(&address).append(&account.nonce).append(&account.balance).append(&&*account.code);
    rlp.begin_list(2 * account.storage.len());
    for (slot, value) in &account.storage {
        rlp.append(slot).append(value);
    }
    let rlp = rlp.out();
    let length = u32::try_from(rlp.len()).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    file.write_all(&length.to_be_bytes())?;
    file.write_all(&rlp)
}

/// Returns the accounts in a temporary file with the hashes of their addresses, sorted by these hashes.
fn read_sorted(mut file: &File) -> Result<Vec<(H256, Address, GenesisAccount)>, GenesisError> {
    let mut bytes = Vec::new();
    let mut read = || file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut bytes));
    read().map_err(GenesisError::Scratch)?;
    let damaged = || GenesisError::Scratch(io::ErrorKind::InvalidData.into());
    let (mut rest, mut addresses, mut accounts) = (&bytes[..], Vec::new(), Vec::new());
    while let Some((length, after)) = rest.split_first_chunk() {
        let (record, after) = after.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(damaged)?;
        let (address, account) = decode(&Rlp::new(record)).map_err(|_| damaged())?;
        addresses.push(address);
        accounts.push(account);
        rest = after;
    }
    let hashes = keccak256_all(&addresses).into_iter();
    let mut sorted: Vec<_> =
        hashes.zip(addresses).zip(accounts).map(|((hash, address), account)| (hash, address, account)).collect();
    sorted.sort_unstable_by_key(|(hash, _, _)| *hash);
    Ok(sorted)
}

fn decode(rlp: &Rlp<'_>) -> Result<(Address, GenesisAccount), DecoderError> {
    let slots: Vec<Rlp<'_>> = rlp.at(4)?.iter().collect();
    let slots = slots.chunks_exact(2).map(|pair| Ok((pair[0].as_val::<H256>()?, pair[1].as_val::<U256>()?)));
    let account = GenesisAccount {
        nonce: rlp.val_at(1)?,
        balance: rlp.val_at(2)?,
        code: Bytes::from(rlp.at(3)?.data()?),
        storage: slots.collect::<Result<_, DecoderError>>()?,
    };
    Ok((rlp.val_at(0)?, account))
}
