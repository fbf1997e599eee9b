//! The state as of a block.

use crate::chain::HashedHeader;
use crate::error::{Needed, UpstreamError, Wrong};
use crate::format::AccountProofJson;
use crate::upstream::{Question, Rejection, Upstream, read};
use node_core::backend::{AccountProof, StorageProof};
use node_core::context::Context;
use node_core::trie::ProofError;
use node_types::proof::{InvalidProof, prove_account, prove_slot};
use node_types::wire::{BytesData, Data, Quantity64, Quantity256};
use node_types::{Address, Bytes, H256, KECCAK_EMPTY, U256, keccak256};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::ops::Range;

/// Maximum number of slots in a request for a proof, which is what other nodes allow.
const MAX_SLOTS: usize = 1_024;

/// Maximum number of accounts in a request for several proofs.
const MAX_ACCOUNTS: usize = 64;

/// An account to read, and slots of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountRead {
    pub address: Address,
    pub slots: Vec<H256>,
}

/// The state as of a block that is trusted: everything is proven by its header before it is returned.
#[derive(Clone, Debug)]
pub struct ProvenState {
    upstream: Upstream,
    block: HashedHeader,
}

impl ProvenState {
    /// Creates a reader of the state as of `block`, whose hash the caller trusts.
    pub fn new(upstream: Upstream, block: HashedHeader) -> Self {
        Self { upstream, block }
    }

    /// Returns the block.
    pub fn block(&self) -> &HashedHeader {
        &self.block
    }

    /// Returns whether the endpoints have no proofs of this state any longer, as nodes have that keep only the newest states:
    /// each says so of this one several times, and proves its newest one.
    pub fn is_gone(&self, context: &Context) -> bool {
        self.upstream.has_lost_state(context, &self.block, "eth_getProof", &proof_params(Address::zero(), &[]))
    }

    /// Returns accounts and slots with the trie nodes that prove them, in the order of the request. The slots of an
    /// account are read in one request, unless they are many, and all accounts in as few messages as possible. Where no
    /// endpoint accepts batches, eth_getMultiProof is tried, which reth has.
    ///
    /// Endpoints are asked by the hash of the block, or by its number if they refuse hashes, which is as good because
    /// the proof leads to the state root.
    ///
    /// # Errors
    /// [`UpstreamError::Wrong`] if a proof is invalid, and [`UpstreamError::Refused`] if the endpoints have no proofs, or
    /// no longer those as of this block.
    pub fn accounts(&self, context: &Context, reads: &[AccountRead]) -> Result<Vec<AccountProof>, UpstreamError> {
        self.accounts_and_claims(context, reads, &[]).map(|(proofs, _)| proofs)
    }

    /// Returns accounts and slots, and what endpoints return as codes of the accounts in `codes_of`, which is requested
    /// in the same messages and not checked.
    fn accounts_and_claims(
        &self,
        context: &Context,
        reads: &[AccountRead],
        codes_of: &[Address],
    ) -> Result<(Vec<AccountProof>, Vec<Option<Bytes>>), UpstreamError> {
        let mut codes_of = codes_of;
        let mut claims = Vec::new();
        let root = self.block.header().state_root;
        let most = self.upstream.options().slots.clamp(1, MAX_SLOTS);
        let mut parts: Vec<Part> =
            reads.iter().enumerate().flat_map(|(index, read)| Part::all(index, read, most)).collect();
        let mut read: Vec<ReadPart> = Vec::new();
        if parts.len() > 1 && self.upstream.prefers_multi_proofs() {
            (read, claims) = self.multi_proofs(context, reads, &mut parts, codes_of)?;
            codes_of = &[];
        }
        while !parts.is_empty() {
            let proofs = parts.iter().map(|part| self.proof_question(part.address, part.slots(reads)));
            let codes = codes_of.iter().map(|address| code_question(&self.block, *address));
            let questions = proofs.chain(codes).collect();
            let mut results = self.upstream.ask(context, questions, |index, result| match parts.get(index) {
                Some(part) => check_proof(result, root, part.address, part.slots(reads)).map(Read::Proof),
                None => Ok(Read::Code(self::read::<BytesData>(result)?.0)),
            });
            let codes = results.split_off(parts.len());
            claims.extend(codes.into_iter().map(claim));
            // What was too large is asked for again, the codes are not.
            codes_of = &[];
            let mut smaller = Vec::new();
            for (part, result) in parts.into_iter().zip(results) {
                match result {
                    Ok(Read::Proof(proof)) => read.push((part, proof)),
                    // Parts are asked for proofs.
                    Ok(Read::Code(_) | Read::Proofs(_)) => {}
                    Err(UpstreamError::TooLarge { .. }) if part.range.len() > 1 => smaller.extend(part.halves()),
                    Err(error) => return Err(error),
                }
            }
            parts = smaller;
        }
        read.sort_by_key(|(part, _)| (part.read, part.range.start));
        let mut proofs: Vec<AccountProof> = Vec::new();
        for (part, mut proof) in read {
            match proofs.last_mut().filter(|_| part.range.start > 0) {
                Some(whole) => whole.storage.append(&mut proof.storage),
                None => proofs.push(proof),
            }
        }
        Ok((proofs, claims))
    }

    /// Reads parts with eth_getMultiProof, which proves several accounts in one request, and removes them from `parts`.
    /// Those that endpoints do not return in this way are left. Codes are requested at the same time, and not checked.
    fn multi_proofs(
        &self,
        context: &Context,
        reads: &[AccountRead],
        parts: &mut Vec<Part>,
        codes_of: &[Address],
    ) -> Result<(Vec<ReadPart>, Vec<Option<Bytes>>), UpstreamError> {
        let root = self.block.header().state_root;
        let groups: Vec<&[Part]> = parts.chunks(MAX_ACCOUNTS).collect();
        let question = |group: &&[Part]| {
            let targets: Vec<_> =
                group.iter().map(|part| format!("[{}]", proof_params(part.address, part.slots(reads)))).collect();
            let slots = group.iter().map(|part| part.range.len()).sum();
            let needed = Needed::Account { address: group[0].address, slots, block: self.block.hash() };
            state_question(needed, "eth_getMultiProof", &format!("[{}]", targets.join(",")), &self.block)
        };
        let codes = codes_of.iter().map(|address| code_question(&self.block, *address));
        let questions = groups.iter().map(question).chain(codes).collect();
        let mut results = self.upstream.ask(context, questions, |index, result| {
            let Some(group) = groups.get(index) else { return Ok(Read::Code(read::<BytesData>(result)?.0)) };
            let proofs = read::<Vec<Box<RawValue>>>(result)?;
            if proofs.len() != group.len() {
                let count = format!("{} proofs instead of {}", proofs.len(), group.len());
                return Err(Wrong::Malformed(count).into());
            }
            let both = group.iter().zip(proofs);
            let check =
                |(part, proof): (&Part, Box<RawValue>)| check_proof(&proof, root, part.address, part.slots(reads));
            both.map(check).collect::<Result<_, _>>().map(Read::Proofs)
        });
        let claims = results.split_off(groups.len()).into_iter().map(claim).collect();
        let mut all = std::mem::take(parts).into_iter();
        let mut done = Vec::new();
        for result in results {
            let group = all.by_ref().take(MAX_ACCOUNTS);
            match result {
                Ok(Read::Proofs(proofs)) => done.extend(group.zip(proofs)),
                // Groups are asked for proofs.
                Ok(Read::Proof(_) | Read::Code(_)) => {}
                Err(error) if error.is_end() => return Err(error),
                Err(error) => {
                    if matches!(error, UpstreamError::Refused { .. }) {
                        self.upstream.record_that_it_lacks_multi_proofs();
                    }
                    parts.extend(group);
                }
            }
        }
        Ok((done, claims))
    }

    /// Returns the codes of accounts, whose hashes are known from [`Self::accounts`]. Empty code is not requested.
    ///
    /// # Errors
    /// [`UpstreamError::Wrong`] if a code has another hash.
    pub fn codes(&self, context: &Context, reads: &[(Address, H256)]) -> Result<Vec<Bytes>, UpstreamError> {
        let wanted: Vec<_> = reads.iter().filter(|(_, hash)| *hash != KECCAK_EMPTY).collect();
        let questions = wanted.iter().map(|(address, _)| code_question(&self.block, *address)).collect();
        let codes = self.upstream.ask(context, questions, |index, result| {
            let (address, expected) = *wanted[index];
            let code = read::<BytesData>(result)?.0;
            let computed = keccak256(&code);
            if computed == expected { Ok(code) } else { Err(Wrong::Code { address, computed, expected }.into()) }
        });
        let mut codes = codes.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter();
        let mut code = |(_, hash): &(Address, H256)| if *hash == KECCAK_EMPTY { None } else { codes.next() };
        Ok(reads.iter().map(|read| code(read).unwrap_or_default()).collect())
    }

    /// Returns what [`Self::accounts`] returns, and the codes of the accounts in `codes_of`, each of which is also in
    /// `reads`. The codes are requested together with the proofs, before their hashes are known.
    ///
    /// # Errors
    /// Those of [`Self::accounts`] and [`Self::codes`].
    pub fn accounts_and_codes(
        &self,
        context: &Context,
        reads: &[AccountRead],
        codes_of: &[Address],
    ) -> Result<(Vec<AccountProof>, Vec<Bytes>), UpstreamError> {
        let (proofs, claims) = self.accounts_and_claims(context, reads, codes_of)?;
        let hashes: HashMap<Address, H256> = reads
            .iter()
            .zip(&proofs)
            .map(|(read, proof)| (read.address, proof.account.unwrap_or_default().code_hash))
            .collect();
        let wanted: Vec<_> =
            codes_of.iter().map(|address| (*address, hashes.get(address).copied().unwrap_or(KECCAK_EMPTY))).collect();
        let mut codes: Vec<_> = wanted
            .iter()
            .zip(claims)
            .map(|((_, hash), claim)| match claim {
                _ if *hash == KECCAK_EMPTY => Some(Bytes::new()),
                claim => claim.filter(|code| keccak256(code) == *hash),
            })
            .collect();
        // What is wrong or missing is asked of all endpoints, which are now held to the hashes.
        let missing: Vec<_> =
            wanted.iter().zip(&codes).filter(|(_, code)| code.is_none()).map(|(wanted, _)| *wanted).collect();
        let mut asked = self.codes(context, &missing)?.into_iter();
        codes.iter_mut().filter(|code| code.is_none()).for_each(|code| *code = asked.next());
        Ok((proofs, codes.into_iter().map(Option::unwrap_or_default).collect()))
    }

    fn proof_question(&self, address: Address, slots: &[H256]) -> Question {
        let needed = Needed::Account { address, slots: slots.len(), block: self.block.hash() };
        state_question(needed, "eth_getProof", &proof_params(address, slots), &self.block)
    }
}

/// Returns an account and its slots as JSON.
fn proof_params(address: Address, slots: &[H256]) -> String {
    let keys: Vec<_> = slots.iter().map(|slot| format!("\"{}\"", Data(*slot))).collect();
    format!("\"{}\",[{}]", Data(address), keys.join(","))
}

/// What is read in the same messages.
enum Read {
    Proof(AccountProof),
    Proofs(Vec<AccountProof>),
    Code(Bytes),
}

/// Returns the code that an endpoint claims an account to have, if it returned one.
fn claim(read: Result<Read, UpstreamError>) -> Option<Bytes> {
    match read {
        Ok(Read::Code(code)) => Some(code),
        _ => None,
    }
}

/// A part with its proof.
type ReadPart = (Part, AccountProof);

/// Some of the slots of an account, which are read at once.
struct Part {
    /// The index of the read that it belongs to.
    read: usize,
    address: Address,
    range: Range<usize>,
}

impl Part {
    /// Splits a read into parts of at most `most` slots; without slots it is one part.
    fn all(read: usize, account: &AccountRead, most: usize) -> impl Iterator<Item = Self> {
        let (address, count) = (account.address, account.slots.len());
        let starts = (0..count.max(1)).step_by(most);
        starts.map(move |start| Self { read, address, range: start..count.min(start + most) })
    }

    fn slots<'a>(&self, reads: &'a [AccountRead]) -> &'a [H256] {
        &reads[self.read].slots[self.range.clone()]
    }

    fn halves(self) -> [Self; 2] {
        let Self { read, address, range } = self;
        let middle = range.start + range.len() / 2;
        [range.start..middle, middle..range.end].map(|range| Self { read, address, range })
    }
}

/// The state as of a block, as the endpoints claim it to be, for endpoints without proofs.
#[derive(Clone, Debug)]
pub struct ClaimedState {
    upstream: Upstream,
    block: HashedHeader,
}

/// A part of a claimed account, or the value of a slot.
enum Member {
    Nonce(u64),
    /// A balance, or the value of a slot.
    Word(U256),
    Code(Bytes),
}

/// What endpoints returned without proofs, in the order of the request. Nothing says that it is right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claimed {
    pub accounts: Vec<ClaimedAccount>,
    /// The values of slots.
    pub values: Vec<U256>,
}

/// An account without the root of its storage, which the methods other than eth_getProof do not return.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimedAccount {
    pub nonce: u64,
    /// Balance in wei.
    pub balance: U256,
    pub code: Bytes,
}

impl ClaimedState {
    /// Creates a reader of the state as of `block`.
    pub fn new(upstream: Upstream, block: HashedHeader) -> Self {
        Self { upstream, block }
    }

    /// Returns the block.
    pub fn block(&self) -> &HashedHeader {
        &self.block
    }

    /// Returns whether the endpoints do not have this state any longer: each says so of this one several times, and has its
    /// newest one.
    pub fn is_gone(&self, context: &Context) -> bool {
        self.upstream.has_lost_state(context, &self.block, "eth_getBalance", &format!("\"{}\"", Data(Address::zero())))
    }

    /// Returns accounts and the values of slots in the order of the request, in as few messages as possible.
    ///
    /// # Errors
    /// [`UpstreamError::Refused`] if the endpoints do not have the state.
    pub fn accounts_and_slots(
        &self,
        context: &Context,
        addresses: &[Address],
        slots: &[(Address, H256)],
    ) -> Result<Claimed, UpstreamError> {
        let of_accounts = addresses.iter().flat_map(|address| {
            let needed = || Needed::Account { address: *address, slots: 0, block: self.block.hash() };
            let question = |method| state_question(needed(), method, &format!("\"{}\"", Data(*address)), &self.block);
            [question("eth_getTransactionCount"), question("eth_getBalance"), code_question(&self.block, *address)]
        });
        let of_slots = slots.iter().map(|(address, slot)| {
            let needed = Needed::Account { address: *address, slots: 1, block: self.block.hash() };
            let params = format!("\"{}\",\"{}\"", Data(*address), Data(*slot));
            state_question(needed, "eth_getStorageAt", &params, &self.block)
        });
        let members = 3 * addresses.len();
        let read = self.upstream.ask(context, of_accounts.chain(of_slots).collect(), |index, result| {
            Ok(match index % 3 {
                _ if index >= members => Member::Word(*read::<Quantity256>(result)?),
                0 => Member::Nonce(*read::<Quantity64>(result)?),
                1 => Member::Word(*read::<Quantity256>(result)?),
                _ => Member::Code(read::<BytesData>(result)?.0),
            })
        });
        let (mut accounts, mut values) = (vec![ClaimedAccount::default(); addresses.len()], Vec::new());
        for (index, member) in read.into_iter().enumerate() {
            match (member?, accounts.get_mut(index / 3)) {
                (Member::Nonce(nonce), Some(account)) => account.nonce = nonce,
                (Member::Word(balance), Some(account)) => account.balance = balance,
                (Member::Code(code), Some(account)) => account.code = code,
                (Member::Word(value), None) => values.push(value),
                (Member::Nonce(_) | Member::Code(_), None) => {}
            }
        }
        Ok(Claimed { accounts, values })
    }
}

fn code_question(block: &HashedHeader, address: Address) -> Question {
    let needed = Needed::Code { address, block: block.hash() };
    state_question(needed, "eth_getCode", &format!("\"{}\"", Data(address)), block)
}

/// Returns a question with the block after other parameters: by its hash (EIP-1898), or by its number.
pub(crate) fn state_question(needed: Needed, method: &str, params: &str, block: &HashedHeader) -> Question {
    let mut question =
        Question::new(needed, method, format!("[{params},{{\"blockHash\":\"{}\"}}]", Data(block.hash())));
    question.call.by_number = Some(format!("[{params},\"{:#x}\"]", block.header().number));
    question
}

/// Checks the proof of an account and of its slots.
fn check_proof(result: &RawValue, root: H256, address: Address, slots: &[H256]) -> Result<AccountProof, Rejection> {
    let json: AccountProofJson = read(result)?;
    let (account, proof) = proven(json.account_proof, |nodes| prove_account(root, address, nodes))
        .map_err(|source| Wrong::Account { address, root, source })?;
    let root = account.unwrap_or_default().storage_root;
    if json.storage_proof.len() != slots.len() {
        let source = InvalidProof::SlotCount { got: json.storage_proof.len(), expected: slots.len() };
        return Err(Wrong::Account { address, root, source }.into());
    }
    let storage = slots.iter().zip(json.storage_proof).map(|(slot, json)| {
        let (value, proof) = proven(json.proof, |nodes| prove_slot(root, *slot, nodes))
            .map_err(|source| Wrong::Slot { address, slot: *slot, root, source })?;
        Ok(StorageProof { slot: *slot, value, proof })
    });
    Ok(AccountProof { account, proof, storage: storage.collect::<Result<_, Rejection>>()? })
}

/// Returns what `nodes` prove, and the nodes without those that the proof does not need: some clients add nodes that are
/// embedded in their parents, or the node of an empty trie.
fn proven<T>(
    nodes: Vec<BytesData>,
    prove: impl Fn(&[Bytes]) -> Result<T, InvalidProof>,
) -> Result<(T, Vec<Bytes>), InvalidProof> {
    let mut nodes: Vec<Bytes> = nodes.into_iter().map(|node| node.0).collect();
    let proven = match prove(&nodes) {
        Err(
            InvalidProof::Account(ProofError::Surplus { index })
            | InvalidProof::Slot { source: ProofError::Surplus { index }, .. },
        ) => {
            nodes.truncate(index);
            prove(&nodes)
        }
        proven => proven,
    };
    Ok((proven?, nodes))
}
