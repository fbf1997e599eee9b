//! Reads of accounts, slots and code.

use super::server::{self, Server, upstream};
use crate::state::ReadOnlyState;
use crate::{Base, ForkError, ForkOptions, Needed};
use node_core::backend::suite::Random;
use node_core::backend::{BackendError, BaseRead, BaseState, MemoryBackend, StateBackend, StateView};
use node_core::executor::Call;
use node_core::{collecting, remote, waiting};
use node_store::files::{Folder, MemoryFolder};
use node_types::consensus::EMPTY_ROOT;
use node_types::{Address, H256, KECCAK_EMPTY, U256};
use node_upstream::{HashedHeader, Upstream, UpstreamError};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A generated chain, and the accounts and slots that occur in it, with some that do not.
pub(super) struct World {
    pub(super) chain: Arc<MemoryBackend>,
    pub(super) reads: Vec<BaseRead>,
}

pub(super) fn world(seed: u64) -> World {
    let blocks = Random(seed).chain(30);
    let mut blocks = blocks.blocks().iter().cloned();
    let chain = MemoryBackend::new(blocks.next().unwrap()).unwrap();
    blocks.for_each(|block| chain.append(block).unwrap());
    let view = chain.view().unwrap();
    let mut addresses: BTreeSet<_> = (0..4).map(|n| Address::repeat_byte(0xe0 + n)).collect();
    let mut slots: BTreeSet<_> = (0..4).map(|n| H256::repeat_byte(0xe0 + n)).collect();
    for number in 0..=view.head().number {
        let changes = view.changes(number).unwrap().unwrap();
        addresses.extend(changes.accounts.keys());
        slots.extend(changes.accounts.values().flat_map(|change| change.storage.keys()));
    }
    let slots: Vec<_> = slots.into_iter().collect();
    let reads = addresses.into_iter().map(|address| BaseRead { address, slots: slots.clone() }).collect();
    World { chain: Arc::new(chain), reads }
}

impl World {
    pub(super) fn header(&self, number: u64) -> HashedHeader {
        let header = self.chain.view().unwrap().header(number.into()).unwrap().unwrap();
        HashedHeader::new(header.header.clone())
    }

    fn base(&self, number: u64, folder: &Arc<dyn Folder>, upstream: Option<Upstream>) -> Base {
        Base::open(Arc::clone(folder), upstream, self.header(number), ForkOptions::default()).unwrap()
    }

    /// Compares a state with that of the chain.
    fn compare(&self, number: u64, base: &Base) {
        let view = self.chain.view().unwrap();
        let state = view.state(number).unwrap();
        assert_eq!(base.root(), view.header(number.into()).unwrap().unwrap().header.state_root);
        for BaseRead { address, slots } in &self.reads {
            let expected = state.proof(*address, slots).unwrap();
            let account = base.account(*address).unwrap();
            assert_eq!(account, expected.account, "{address:#x} as of block {number}");
            for slot in &expected.storage {
                assert_eq!(base.storage(*address, slot.slot).unwrap(), slot.value);
            }
            let hash = account.map_or(KECCAK_EMPTY, |account| account.code_hash);
            if hash != KECCAK_EMPTY {
                assert_eq!(base.code(hash).unwrap(), state.code(hash).unwrap());
            }
        }
    }
}

pub(super) fn memory() -> Arc<dyn Folder> {
    Arc::new(MemoryFolder::default())
}

fn error(result: Result<impl Sized, BackendError>) -> ForkError {
    match result.map(drop).unwrap_err() {
        BackendError::Upstream(source) | BackendError::Unobtainable(source) => *source.downcast().unwrap(),
        error => panic!("{error:?}"),
    }
}

fn honest(world: &World) -> Server {
    Server::of(&world.chain, |_, _| {})
}

#[test]
fn states_are_those_of_the_chain_and_known_afterwards() {
    for seed in 0..3 {
        let world = world(seed);
        let (server, folder) = (honest(&world), memory());
        for number in [0, 7, 15, 30] {
            let base = world.base(number, &folder, Some(server.upstream()));
            // One by one.
            world.compare(number, &base);
            let count = server.messages().len();
            world.compare(number, &base);
            world.compare(number, &base.at(world.header(number)));
            assert_eq!(server.messages().len(), count, "everything is known");
        }
        for number in [0, 7, 15, 30] {
            world.compare(number, &world.base(number, &folder, None));
        }
        let (checked, stats) = {
            let base = world.base(0, &folder, None);
            (base.contents().check().unwrap(), base.contents().stats())
        };
        assert_eq!((checked.entries, checked.damaged), (stats.entries, 0));
    }
}

/// Simulations on blocks before the fork and receipts from before Byzantium have such roots.
#[test]
fn the_root_after_changes_to_a_state_before_the_fork_is_that_of_the_chain() {
    for seed in 0..3 {
        let world = world(seed);
        let base = world.base(30, &memory(), Some(honest(&world).upstream()));
        for number in [0, 7, 15, 29] {
            let changes = world.chain.view().unwrap().changes(number + 1).unwrap().unwrap();
            let root = ReadOnlyState(base.at(world.header(number))).root_after(&changes).unwrap();
            assert_eq!(root, world.header(number + 1).header().state_root);
        }
    }
}

#[test]
fn everything_is_fetched_in_one_message() {
    let world = world(4);
    let server = honest(&world);
    let base = world.base(20, &memory(), Some(server.upstream()));
    let (fetched, reads) = remote::reads_of(|| base.fetch(&world.reads));
    fetched.unwrap();
    assert_eq!((server.messages().len(), reads.steps), (1, 1));
    base.fetch(&world.reads).unwrap();
    world.compare(20, &base);
    assert_eq!(server.messages().len(), 1);
    // Absent accounts and slots are known as well, and only what is unknown is asked for.
    let more = BaseRead { address: world.reads[0].address, slots: vec![H256::repeat_byte(0xee)] };
    base.fetch(&[world.reads[1].clone(), more.clone(), more]).unwrap();
    assert!(server.messages().len() <= 2);
}

#[test]
fn collected_work_fetches_what_it_lacks_together() {
    let world = world(5);
    let server = honest(&world);
    let base = world.base(20, &memory(), Some(server.upstream()));
    let work = || -> Result<_, BackendError> {
        let mut sum = U256::zero();
        for BaseRead { address, slots } in &world.reads {
            let account = base.account(*address)?.unwrap_or_default();
            sum += account.balance.min(U256::from(1_000));
            if account.code_hash != KECCAK_EMPTY {
                sum += base.code(account.code_hash)?.unwrap_or_default().len().into();
            }
            for slot in slots {
                sum += base.storage(*address, *slot)?.min(U256::from(1_000));
            }
        }
        Ok(sum)
    };
    let (sum, reads) = remote::reads_of(|| collecting::gather(work));
    let sum = sum.unwrap();
    assert_eq!((reads.steps, server.messages().len()), (1, 1));
    let one_by_one = world.base(20, &memory(), Some(server.upstream()));
    let offline = {
        let base = one_by_one;
        world.compare(20, &base);
        base
    };
    assert_eq!(offline.root(), base.root());
    assert_eq!(collecting::gather(work).unwrap(), sum);
}

#[test]
fn a_code_that_was_not_fetched_with_its_account_is_fetched_when_it_is_read() {
    let world = world(6);
    let server = honest(&world);
    let folder = memory();
    world.compare(30, &world.base(30, &folder, Some(server.upstream())));
    // A folder with the nodes, but without the codes.
    let (with_code, without) = (world.base(30, &folder, None), memory());
    let view = world.chain.view().unwrap();
    let state = view.state(30).unwrap();
    let mut nodes = Vec::new();
    for BaseRead { address, slots } in &world.reads {
        nodes.extend(state.proof(*address, slots).unwrap().proof);
    }
    let base = world.base(30, &without, Some(server.upstream()));
    let keep = |node: node_types::Bytes| (crate::contents::Kind::Node, node_types::keccak256(&node), node);
    base.contents().add(nodes.into_iter().map(keep).collect());
    let count = server.messages().len();
    let mut codes = 0;
    for BaseRead { address, .. } in &world.reads {
        let account = base.account(*address).unwrap();
        let hash = account.map_or(KECCAK_EMPTY, |account| account.code_hash);
        if hash != KECCAK_EMPTY && !base.contents().has(crate::contents::Kind::Code, hash) {
            codes += 1;
            let read = collecting::gather(|| base.code(hash)).unwrap();
            assert_eq!(read, with_code.code(hash).unwrap());
        }
    }
    assert!(codes > 0);
    assert_eq!(server.messages().len(), count + codes);
    assert_eq!(base.code(H256::repeat_byte(9)).unwrap(), None);
}

#[test]
fn an_offline_fork_says_what_it_needs() {
    let world = world(7);
    let base = world.base(3, &memory(), None);
    let (address, slot) = (Address::repeat_byte(1), H256::repeat_byte(2));
    let needed = |slot| Needed::State { address, slot, others: 0, block: 3 };
    assert!(matches!(error(base.account(address)), ForkError::Offline { needed: found } if found == needed(None)));
    let read = error(base.storage(address, slot));
    assert_eq!(
        read.to_string(),
        format!("the fork is offline; needed: slot {slot:#x} of account {address:#x} as of block 3")
    );
}

#[test]
fn threads_that_must_not_wait_read_only_what_is_known() {
    let world = world(8);
    let server = honest(&world);
    let base = world.base(20, &memory(), Some(server.upstream()));
    let address = world.reads[0].address;
    assert!(waiting::without_waiting(|| base.account(address)).is_none());
    assert!(waiting::without_waiting(|| collecting::gather(|| base.account(address))).is_none());
    assert!(waiting::without_waiting(|| base.fetch(&world.reads)).is_none());
    assert!(server.messages().is_empty());
    let account = base.account(address).unwrap();
    assert_eq!(waiting::without_waiting(|| base.account(address).unwrap()), Some(account));
}

#[test]
fn nothing_wrong_is_accepted_or_kept() {
    let world = world(9);
    let honest = honest(&world);
    // Every string of a result in turn, or all of it.
    for lie in 0..40 {
        let lying = Server::of(&world.chain, move |_, result| {
            let mut count = 0;
            change(result, &mut |text| {
                count += 1;
                if (count + lie) % 7 == 0 && text.len() > 4 {
                    let last = if text.ends_with('1') { "2" } else { "1" };
                    text.replace_range(text.len() - 1.., last);
                }
            });
        });
        let folder = memory();
        let base = world.base(20, &folder, Some(lying.upstream()));
        for read in &world.reads {
            if let Err(error) = base.fetch(std::slice::from_ref(read)) {
                assert!(matches!(error, BackendError::Upstream(_)), "{error:?}");
            }
        }
        let checked = base.contents().check().unwrap();
        assert_eq!(checked.damaged, 0);
        // What is known is right, and the rest is there from another endpoint.
        world.compare(20, &world.base(20, &folder, Some(honest.upstream())));
        world.compare(20, &world.base(20, &memory(), Some(upstream(&[&lying, &honest]))));
    }
}

fn change(value: &mut Value, change_text: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => change_text(text),
        Value::Array(items) => items.iter_mut().for_each(|item| change(item, change_text)),
        Value::Object(members) => members.values_mut().for_each(|member| change(member, change_text)),
        _ => {}
    }
}

#[test]
fn states_that_the_upstream_no_longer_has_are_clear_errors() {
    let world = world(10);
    let pruned = Server::start(|_| {
        Err(
            serde_json::json!({"code": -32000, "message": "missing trie node 00ab (path ) state 0x00ab is not available"}),
        )
    });
    let base = world.base(20, &memory(), Some(pruned.upstream()));
    let error = error(base.account(Address::repeat_byte(1)));
    assert!(matches!(error, ForkError::Upstream(UpstreamError::Refused { .. })));
    assert!(error.to_string().contains("account 0x0101010101010101010101010101010101010101 as of block 0x"), "{error}");
    assert!(error.to_string().contains("missing trie node"), "{error}");
}

#[test]
fn a_state_that_no_endpoint_has_any_longer_is_unobtainable_until_another_is_asked() {
    let world = world(10);
    let refusals = ["missing trie node 00ab (path )", "header not found", "state at block #20 is pruned"];
    for trusts in [false, true] {
        // How the endpoint responds: as usual, or with one of the refusals, of which the second is passing.
        let (chain, response) = (Arc::clone(&world.chain), Arc::new(AtomicUsize::new(3)));
        let responses = Arc::clone(&response);
        let server = Server::start(move |request| {
            let is_newest = request["params"].as_array().unwrap().contains(&json!("latest"));
            match (refusals.get(responses.load(Ordering::SeqCst)), request["method"].as_str().unwrap()) {
                (Some(_), _) if is_newest => Ok(json!("0x0")),
                (Some(message), _) => Err(json!({"code": -32000, "message": message})),
                (None, "eth_getBalance" | "eth_getTransactionCount" | "eth_getStorageAt") => Ok(json!("0x9")),
                (None, method) => server::state(&*chain.view().unwrap(), method, &request["params"]),
            }
        });
        let options = ForkOptions { trusts, ..ForkOptions::default() };
        let base = Base::open(memory(), Some(server.upstream()), world.header(20), options).unwrap();
        let known = world.reads[0].address;
        let account = base.account(known).unwrap();
        let unknown = Address::repeat_byte(0x77);
        response.store(1, Ordering::SeqCst);
        let passing = base.account(unknown).unwrap_err();
        assert!(matches!(passing, BackendError::Upstream(_)), "{passing:?}");
        let is_gone = |result: Result<_, BackendError>| match result {
            Err(BackendError::Unobtainable(error)) => error.to_string(),
            result => panic!("{result:?}"),
        };
        for refusal in [0, 2] {
            response.store(refusal, Ordering::SeqCst);
            let count = server.messages().len();
            let text = is_gone(base.account(unknown));
            let (needed, reason) = (format!("; needed: account {unknown:#x} as of block 20"), refusals[refusal]);
            assert!(text.contains(&needed) && text.contains(reason), "{text}");
            assert_eq!(server.messages().len(), count + 4, "the read, and three questions about the state");
            // For a while, nothing is asked.
            let slot = is_gone(base.storage(unknown, H256::repeat_byte(1)).map(|_| None));
            assert!(slot.contains("slot 0x0101"), "{slot}");
            let position = node_types::trie::NibblePath::ROOT.child(3);
            let node = base.resolve(None, &position, H256::repeat_byte(7)).unwrap_err();
            assert!(matches!(node, BackendError::Unobtainable(_)), "{node:?}");
            assert_eq!(server.messages().len(), count + 4);
            assert_eq!(base.account(known).unwrap(), account);
            // About the states of other blocks, this says nothing.
            let other = base.at(world.header(19)).account(unknown).unwrap_err();
            assert!(matches!(other, BackendError::Upstream(_)), "{other:?}");
            response.store(3, Ordering::SeqCst);
            is_gone(base.account(unknown));
            base.set_upstream(server.upstream());
        }
        base.account(unknown).unwrap();
    }
}

#[test]
fn a_small_memory_is_enough() {
    let world = world(11);
    let server = honest(&world);
    let options = ForkOptions { contents_bytes: 0, cache_bytes: 8_192, state_bytes: 4_096, ..ForkOptions::default() };
    let base = Base::open(memory(), Some(server.upstream()), world.header(20), options).unwrap();
    world.compare(20, &base);
    world.compare(20, &base);
}

#[test]
fn the_empty_state_needs_nothing() {
    let header = node_types::consensus::Header { state_root: EMPTY_ROOT, ..Default::default() };
    let base = Base::open(memory(), None, HashedHeader::new(header), ForkOptions::default()).unwrap();
    assert_eq!(base.account(Address::repeat_byte(1)).unwrap(), None);
    assert_eq!(base.storage(Address::repeat_byte(1), H256::zero()).unwrap(), U256::zero());
}

#[test]
fn an_upstream_says_what_a_call_reads_or_is_not_asked_again() {
    let world = world(5);
    let [first, second] =
        [1, 2].map(|n| BaseRead { address: Address::repeat_byte(n), slots: vec![H256::repeat_byte(n)] });
    let item = |read: &BaseRead| json!({"address": format!("{:#x}", read.address), "storageKeys": [format!("{:#x}", read.slots[0])]});
    let list = json!({"accessList": [item(&first), item(&second)], "gasUsed": "0x1", "error": "reverted"});
    let listing = Server::start(move |request| {
        assert_eq!(request["method"], "eth_createAccessList");
        assert_eq!(request["params"][0]["input"], "0x07");
        assert_eq!(request["params"][1], "0x14");
        Ok(list.clone())
    });
    let call = Call { to: Some(Address::repeat_byte(1)), input: vec![7].into(), ..Call::default() };
    let base = world.base(20, &memory(), Some(listing.upstream()));
    let both = [first, second];
    assert_eq!(base.reads_of(&call), both);
    // One does not have the method, and what the other returns is no list. The reason may be this call.
    for server in [Server::of(&world.chain, |_, _| {}), Server::start(|_| Ok(json!({"accessList": 7})))] {
        let base = world.base(20, &memory(), Some(server.upstream()));
        for _ in 0..5 {
            assert_eq!(base.reads_of(&call), []);
        }
        assert_eq!(server.messages().len(), 3);
        // Another one is asked.
        base.set_upstream(listing.upstream());
        assert_eq!(base.reads_of(&call), both);
    }
    assert_eq!(world.base(20, &memory(), None).reads_of(&call), []);
}

/// An endpoint without proofs, which claims the same of everything.
fn claiming() -> Server {
    Server::start(|request| match request["method"].as_str().unwrap() {
        "eth_getBalance" | "eth_getTransactionCount" => Ok(json!("0x9")),
        "eth_getStorageAt" => Ok(json!(format!("0x{:064x}", 5))),
        "eth_getCode" => Ok(json!("0x5f5f")),
        _ => Err(json!({"code": -32601, "message": "the method does not exist"})),
    })
}

#[test]
fn claims_are_believed_by_those_who_trust_and_kept_apart() {
    let world = world(13);
    let (proving, claiming, folder) = (honest(&world), claiming(), memory());
    let open = |upstream, trusts| {
        let options = ForkOptions { trusts, ..ForkOptions::default() };
        Base::open(Arc::clone(&folder), upstream, world.header(20), options).unwrap()
    };
    world.compare(20, &open(Some(proving.upstream()), false));
    let check = |base: &Base| {
        let position = node_types::trie::NibblePath::ROOT;
        for BaseRead { address, slots } in &world.reads {
            let account = base.account(*address).unwrap().unwrap();
            assert_eq!((account.nonce, account.balance), (9, 9.into()));
            assert_ne!(account.storage_root, EMPTY_ROOT);
            assert_eq!(base.code(account.code_hash).unwrap().as_deref(), Some(&[0x5f, 0x5f][..]));
            for slot in slots {
                assert_eq!(base.storage(*address, *slot).unwrap(), 5.into());
            }
            // With the nodes that were proven, a wrong root could be computed.
            assert_eq!(base.node(base.root()).unwrap(), None);
            assert!(matches!(error(base.resolve(None, &position, base.root())), ForkError::Unproven));
            let state = ReadOnlyState(base.clone());
            assert!(matches!(state.proof(*address, slots), Err(BackendError::Unproven(20))));
        }
    };
    let base = open(Some(claiming.upstream()), true);
    base.fetch(&world.reads).unwrap();
    let count = claiming.messages().len();
    check(&base);
    check(&base.at(world.header(20)));
    assert_eq!(claiming.messages().len(), count, "everything is known");
    drop(base);
    check(&open(None, true));
    world.compare(20, &open(None, false));
    // Claims are about one block.
    let other = open(None, true).at(world.header(21));
    assert!(matches!(error(other.account(world.reads[0].address)), ForkError::Offline { .. }));
    // Nothing is lost if nothing can be kept.
    let options =
        ForkOptions { contents_bytes: 0, cache_bytes: 0, state_bytes: 0, trusts: true, ..ForkOptions::default() };
    let base = Base::open(memory(), Some(claiming.upstream()), world.header(20), options).unwrap();
    assert_eq!(base.account(world.reads[0].address).unwrap().unwrap().nonce, 9);
    assert_eq!(base.storage(world.reads[0].address, H256::zero()).unwrap(), 5.into());
}

#[test]
fn an_upstream_that_was_unavailable_is_asked_again_what_calls_read() {
    let world = world(5);
    let call = Call::default();
    let passing = Server::start(|_| Err(json!({"code": -32005, "message": "rate limit exceeded"})));
    let base = world.base(20, &memory(), Some(passing.upstream()));
    for asked in 1..10 {
        assert_eq!(base.reads_of(&call), []);
        assert_eq!(passing.messages().len(), asked);
    }
}
