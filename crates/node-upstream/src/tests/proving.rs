//! Proofs of states, and roots of blocks, from honest and dishonest endpoints.

use super::server::{Script, Server, respond};
use super::{context, options, upstream};
use crate::{
    AccountRead, Claimed, ClaimedState, HashedHeader, Needed, ProvenState, Upstream, UpstreamError, UpstreamOptions,
    Wrong,
};
use node_core::trie::{Trie, ordered_root};
use node_types::consensus::{
    Account, EMPTY_OMMERS_HASH, EMPTY_ROOT, Header, LegacyTransaction, Log, Receipt, ReceiptOutcome, Signature,
    Transaction, TransactionBody, TransactionType,
};
use node_types::wire::{Data, StorageKey};
use node_types::{Address, BlockId, Bytes, H256, KECCAK_EMPTY, U256, keccak256};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The contract in the state, its code, and the number of its slots, which have the values 1, 2, …
const CONTRACT: Address = Address::repeat_byte(0xcc);
const CODE: &[u8] = &[0x60, 0x00];
const SLOTS: u64 = 300;

/// A state with some accounts and a contract, and a block with it.
struct World {
    accounts: Trie,
    storage: Trie,
    contract: Account,
    header: HashedHeader,
    transactions: Vec<Transaction>,
    receipts: Vec<Receipt>,
}

fn world() -> Arc<World> {
    let slots = (0..SLOTS).map(|slot| (keccak256(StorageKey::from(slot)), rlp::encode(&(slot + 1)).to_vec()));
    let storage: Trie = slots.collect();
    let contract = Account { nonce: 1, storage_root: storage.root(), code_hash: keccak256(CODE), ..Account::default() };
    let user = |index: u64| Account { balance: index.into(), nonce: index, ..Account::default() };
    let users = (1..50).map(|index| (keccak256(Address::from_low_u64_be(index)), user(index).encode()));
    let accounts: Trie = users.chain([(keccak256(CONTRACT), contract.encode())]).collect();
    let transaction = |nonce| Transaction {
        body: TransactionBody::Legacy(LegacyTransaction { nonce, chain_id: Some(7), ..LegacyTransaction::default() }),
        signature: Signature { r: 1.into(), s: 2.into(), y_parity: true },
    };
    let transactions: Vec<_> = (0..3).map(transaction).collect();
    let receipt = |index: u64| {
        let logs = vec![Log { address: CONTRACT, topics: vec![H256::repeat_byte(7)], data: Bytes::from([1, 2]) }];
        Receipt {
            transaction_type: TransactionType::Legacy,
            outcome: ReceiptOutcome::Success(index != 1),
            cumulative_gas_used: 21_000 * (index + 1),
            logs_bloom: logs.iter().collect(),
            logs,
        }
    };
    let receipts: Vec<_> = (0..3).map(receipt).collect();
    let header = HashedHeader::new(Header {
        number: 9,
        state_root: accounts.root(),
        transactions_root: ordered_root(&transactions.iter().map(Transaction::encode).collect::<Vec<_>>()),
        receipts_root: ordered_root(&receipts.iter().map(Receipt::encode).collect::<Vec<_>>()),
        ommers_hash: EMPTY_OMMERS_HASH,
        ..Header::default()
    });
    Arc::new(World { accounts, storage, contract, header, transactions, receipts })
}

fn texts(nodes: &[Bytes]) -> Value {
    nodes.iter().map(|node| json!(node.to_string())).collect()
}

impl World {
    fn proof(&self, params: &Value) -> Value {
        let address: Address = params[0].as_str().unwrap().parse().unwrap();
        let trie = if address == CONTRACT { &self.storage } else { &Trie::new() };
        let slots = params[1].as_array().unwrap().iter().map(|key| {
            let key: StorageKey = key.as_str().unwrap().parse().unwrap();
            json!({"key": key, "value": "0x0", "proof": texts(&trie.prove(keccak256(key).as_bytes()))})
        });
        let account_proof = texts(&self.accounts.prove(keccak256(address).as_bytes()));
        json!({"accountProof": account_proof, "storageProof": slots.collect::<Vec<_>>()})
    }

    fn respond(&self, request: &Value) -> Result<Value, Value> {
        let params = &request["params"];
        match request["method"].as_str().unwrap() {
            "eth_getProof" => Ok(self.proof(params)),
            "eth_getCode" => Ok(json!(Bytes::from(CODE).to_string())),
            "eth_getBlockByHash" => Ok(self.block()),
            "eth_getBlockReceipts" => Ok(self.receipts()),
            "eth_getBalance" | "eth_getTransactionCount" | "eth_getStorageAt" => Ok(json!("0x7")),
            method => Err(json!({"code": -32601, "message": format!("the method {method} does not exist")})),
        }
    }

    fn block(&self) -> Value {
        let transaction = |transaction: &Transaction| {
            json!({"type": "0x0", "nonce": format!("{:#x}", transaction.nonce()), "gas": "0x0", "gasPrice": "0x0",
                "to": null, "value": "0x0", "input": "0x", "v": "0x32", "r": "0x1", "s": "0x2"})
        };
        let transactions = self.transactions.iter().map(transaction);
        json!({"transactions": transactions.collect::<Vec<_>>(), "uncles": []})
    }

    fn receipts(&self) -> Value {
        self.receipts.iter().map(receipt).collect()
    }
}

fn receipt(receipt: &Receipt) -> Value {
    let status = if receipt.outcome == ReceiptOutcome::Success(true) { "0x1" } else { "0x0" };
    json!({"type": "0x0", "status": status, "cumulativeGasUsed": format!("{:#x}", receipt.cumulative_gas_used),
        "logs": [{"address": Data(CONTRACT), "topics": [Data(H256::repeat_byte(7))], "data": "0x0102"}]})
}

fn honest(world: &Arc<World>) -> Server {
    let world = Arc::clone(world);
    Server::of(move |request| world.respond(request))
}

/// An endpoint whose results `change` changes.
fn dishonest(world: &Arc<World>, change: impl Fn(&mut Value) + Send + Sync + 'static) -> Server {
    let world = Arc::clone(world);
    Server::of(move |request| {
        let mut result = world.respond(request);
        result.as_mut().map(&change).ok();
        result
    })
}

fn state(upstream: &Upstream, world: &World) -> ProvenState {
    ProvenState::new(upstream.clone(), world.header.clone())
}

fn read(address: Address, slots: impl IntoIterator<Item = u64>) -> AccountRead {
    AccountRead { address, slots: slots.into_iter().map(|slot| StorageKey::from(slot).0).collect() }
}

#[test]
fn accounts_and_slots_are_proven_in_few_messages() {
    let world = world();
    let server = honest(&world);
    let state = state(&upstream(&[&server], options()), &world);
    let reads = [
        read(Address::from_low_u64_be(5), []),
        read(CONTRACT, (0..SLOTS).chain([7, 1_000_000])),
        // No such account: its slots are zero.
        read(Address::zero(), [1]),
    ];
    let proofs = state.accounts(&context(), &reads).unwrap();
    assert_eq!(proofs.len(), 3);
    assert_eq!(proofs[0].account.map(|account| (account.balance, account.nonce)), Some((5.into(), 5)));
    assert_eq!(proofs[0].proof, world.accounts.prove(keccak256(reads[0].address).as_bytes()));
    assert_eq!(proofs[1].account, Some(world.contract));
    let values: Vec<_> = proofs[1].storage.iter().map(|slot| slot.value.as_u64()).collect();
    assert_eq!(values, (1..=SLOTS).chain([8, 0]).collect::<Vec<_>>());
    assert_eq!(proofs[1].storage.iter().map(|slot| slot.slot).collect::<Vec<_>>(), reads[1].slots);
    let last = proofs[1].storage.last().unwrap();
    assert_eq!(last.proof, world.storage.prove(keccak256(last.slot).as_bytes()));
    assert_eq!((proofs[2].account, proofs[2].storage[0].value), (None, U256::zero()));
    // One message with a part of 256 slots, one of 46, and two accounts.
    let messages = server.messages();
    assert_eq!(messages.iter().map(|message| message.as_array().unwrap().len()).collect::<Vec<_>>(), [4]);
    assert_eq!(messages[0][0]["params"][2], json!({"blockHash": Data(world.header.hash())}));
    assert!(state.accounts(&context(), &[]).unwrap().is_empty());
}

#[test]
fn slots_are_read_in_parts_that_the_endpoint_accepts() {
    let world = world();
    let world_of_server = Arc::clone(&world);
    let server = Server::of(move |request| match request["params"][1].as_array().map(Vec::len) {
        Some(11..) => Err(json!({"code": -32602, "message": "too many keys"})),
        _ => world_of_server.respond(request),
    });
    let state = state(&upstream(&[&server], options()), &world);
    let proofs = state.accounts(&context(), &[read(CONTRACT, 0..100)]).unwrap();
    let values: Vec<_> = proofs[0].storage.iter().map(|slot| slot.value.as_u64()).collect();
    assert_eq!(values, (1..=100).collect::<Vec<_>>());
}

#[test]
fn several_accounts_are_proven_in_one_request_where_batches_are_refused() {
    let world = world();
    let reads: Vec<_> = (1..4)
        .map(|index| AccountRead { address: Address::from_low_u64_be(index), slots: Vec::new() })
        .chain([AccountRead { address: CONTRACT, slots: vec![StorageKey::from(3).0, StorageKey::from(4).0] }])
        .collect();
    for (multi, expected) in [(Some(0), 1), (Some(1), 5), (None, 6)] {
        let of_world = Arc::clone(&world);
        let server = Server::of(move |request| match (request["method"].as_str().unwrap(), multi) {
            ("eth_getMultiProof", Some(missing)) => {
                let targets = request["params"][0].as_array().unwrap();
                Ok(targets[missing..].iter().map(|target| of_world.proof(target)).collect())
            }
            _ => of_world.respond(request),
        });
        let upstream = upstream(&[&server], UpstreamOptions { batch: 1, ..options() });
        let state = ProvenState::new(upstream, world.header.clone());
        let (proofs, codes) = state.accounts_and_codes(&context(), &reads, &[CONTRACT]).unwrap();
        let balances: Vec<_> = proofs.iter().map(|proof| proof.account.unwrap().balance.as_u64()).collect();
        assert_eq!(balances, [1, 2, 3, 0]);
        let slots: Vec<_> = proofs[3].storage.iter().map(|slot| slot.value.as_u64()).collect();
        assert_eq!((slots, codes), (vec![4, 5], vec![Bytes::from(CODE)]));
        let proving = |server: &Server| {
            server.messages().iter().filter(|message| message["method"].as_str().unwrap().ends_with("Proof")).count()
        };
        assert_eq!(proving(&server), expected);
        // An endpoint that refuses the method, with the hash and with the number of the block, is not asked for it again.
        state.accounts(&context(), &reads[..2]).unwrap();
        assert_eq!(
            proving(&server) - expected,
            [1, 3, 2][usize::from(multi != Some(0)) + usize::from(multi.is_none())]
        );
    }
}

#[test]
fn nodes_that_proofs_do_not_need_are_left_out() {
    let world = world();
    // What other clients return for accounts without storage, and after embedded nodes.
    let server = dishonest(&world, |proof| {
        proof["accountProof"].as_array_mut().unwrap().push(json!("0xc20102"));
        for slot in proof["storageProof"].as_array_mut().unwrap() {
            slot["proof"].as_array_mut().unwrap().push(json!("0x80"));
        }
    });
    let state = state(&upstream(&[&server], options()), &world);
    let reads = [read(CONTRACT, [3]), read(Address::from_low_u64_be(5), [3])];
    let proofs = state.accounts(&context(), &reads).unwrap();
    assert_eq!(proofs[0].proof, world.accounts.prove(keccak256(CONTRACT).as_bytes()));
    assert_eq!(proofs[0].storage[0].value, 4.into());
    assert_eq!((proofs[1].storage[0].value, proofs[1].storage[0].proof.len()), (U256::zero(), 0));
}

#[test]
fn wrong_proofs_are_named_and_asked_elsewhere() {
    let world = world();
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 8] = [
        ("slot", |proof| proof["storageProof"][0]["proof"] = proof["storageProof"][1]["proof"].clone()),
        ("slot", |proof| _ = proof["storageProof"][0]["proof"].as_array_mut().unwrap().pop()),
        ("account", |proof| proof["accountProof"][0] = json!("0x80")),
        ("account", |proof| proof["accountProof"] = json!([])),
        ("account", |proof| _ = proof["storageProof"].as_array_mut().unwrap().pop()),
        ("malformed", |proof| proof["accountProof"][0] = json!("0x8")),
        ("malformed", |proof| proof["accountProof"] = vec![json!("0x"); 1_000].into()),
        ("malformed", |proof| *proof = json!("0x00")),
    ];
    for (named, change) in changes {
        let servers = [dishonest(&world, change), honest(&world)];
        let upstream_of_two = upstream(&servers.each_ref(), options());
        for _ in 0..4 {
            let proofs = state(&upstream_of_two, &world).accounts(&context(), &[read(CONTRACT, [3, 9])]).unwrap();
            assert_eq!(proofs[0].storage[0].value, 4.into());
        }
        // Others are preferred to an endpoint that lied.
        assert_eq!(servers.each_ref().map(|server| server.messages().len()), [1, 4]);
        let alone = state(&upstream(&[&servers[0]], options()), &world);
        let error = alone.accounts(&context(), &[read(CONTRACT, [3, 9])]).unwrap_err();
        let UpstreamError::Wrong { needed, source, .. } = &error else { panic!("{named}: {error}") };
        assert_eq!(*needed, Needed::Account { address: CONTRACT, slots: 2, block: world.header.hash() });
        let text = source.to_string();
        assert!(text.starts_with(named), "{named}: {text}");
        assert!(named != "slot" || text.contains(&format!("{:#x}", world.contract.storage_root)), "{text}");
    }
}

#[test]
fn damaged_responses_are_never_accepted() {
    let world = world();
    let damaged = Arc::clone(&world);
    // Each response has another wrong byte.
    let server = Server::start(move |count, message| {
        let result = damaged.respond(message).unwrap();
        let mut body = json!({"jsonrpc": "2.0", "id": 0, "result": result}).to_string().into_bytes();
        let place = 11 * count % body.len();
        body[place] = if count % 2 == 0 { b'1' } else { body[place] ^ 0x81 };
        Script::Status(200, "", body)
    });
    let upstream = upstream(&[&server], UpstreamOptions { retries: 0, ..options() });
    let state = state(&upstream, &world);
    let mut refused = 0;
    let mut check = |right: Option<bool>| match right {
        Some(right) => assert!(right),
        None => refused += 1,
    };
    for _ in 0..300 {
        let proofs = state.accounts(&context(), &[read(CONTRACT, [3])]);
        check(proofs.ok().map(|proofs| proofs[0].storage[0].value == 4.into()));
        let block = upstream.block(&context(), &world.header);
        check(block.ok().map(|block| block.transactions == world.transactions));
        let receipts = upstream.receipts(&context(), &world.header, &[]);
        check(receipts.ok().map(|receipts| receipts == world.receipts));
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn codes_have_their_hashes() {
    let world = world();
    let server = honest(&world);
    let reads =
        [(Address::zero(), KECCAK_EMPTY), (CONTRACT, world.contract.code_hash), (Address::zero(), KECCAK_EMPTY)];
    let codes = state(&upstream(&[&server], options()), &world).codes(&context(), &reads).unwrap();
    assert_eq!(codes, [&[][..], CODE, &[]].map(Bytes::from));
    assert_eq!(server.messages().len(), 1);
    let lying = dishonest(&world, |code| *code = json!("0x600001"));
    let error = state(&upstream(&[&lying], options()), &world).codes(&context(), &reads).unwrap_err();
    let UpstreamError::Wrong { source, .. } = error else { panic!("{error}") };
    assert!(matches!(*source, Wrong::Code { address, .. } if address == CONTRACT), "{source}");
}

#[test]
fn codes_are_read_together_with_their_accounts() {
    let world = world();
    let reads = [read(CONTRACT, [3]), read(Address::from_low_u64_be(1), []), read(Address::zero(), [0])];
    let addresses: Vec<_> = reads.iter().map(|read| read.address).collect();
    let expected = [CODE, &[], &[]].map(Bytes::from).to_vec();
    let read = |servers: &[&Server]| {
        state(&upstream(servers, options()), &world).accounts_and_codes(&context(), &reads, &addresses)
    };
    let server = honest(&world);
    let (proofs, codes) = read(&[&server]).unwrap();
    assert_eq!((proofs[0].storage[0].value, proofs[2].account, codes), (4.into(), None, expected.clone()));
    assert_eq!(server.messages().len(), 1);
    // A code that does not have the hash is asked of all, and so is one that is missing.
    type Change = fn(&mut Value);
    let lies: [Change; 2] = [
        |result| {
            if result.is_string() {
                *result = json!("0x600001");
            }
        },
        |result| {
            if result.is_string() {
                *result = Value::Null;
            }
        },
    ];
    for lie in lies {
        let lying = dishonest(&world, lie);
        for _ in 0..3 {
            assert_eq!(read(&[&lying, &server]).unwrap().1, expected);
        }
        assert!(matches!(read(&[&lying]), Err(UpstreamError::Wrong { .. } | UpstreamError::NotFound { .. })));
    }
}

#[test]
fn endpoints_that_refuse_hashes_are_asked_by_number() {
    let world = world();
    let (world_of_server, reorganized) = (Arc::clone(&world), Arc::new(AtomicBool::new(false)));
    let is_reorganized = Arc::clone(&reorganized);
    let server = Server::of(move |request| {
        if request["params"][2].is_object() {
            return Err(json!({"code": -32602, "message": "invalid parameters"}));
        }
        assert_eq!(request["params"][2], "0x9");
        match is_reorganized.load(Ordering::Relaxed) {
            false => world_of_server.respond(request),
            true => Ok(json!({"accountProof": ["0xc0"], "storageProof": []})),
        }
    });
    let state = state(&upstream(&[&server], options()), &world);
    let read_three = || {
        let reads = [1, 2, 3].map(|index| read(Address::from_low_u64_be(index), []));
        state.accounts(&context(), &reads)
    };
    read_three().unwrap();
    assert_eq!(server.messages().len(), 2);
    // It is remembered.
    read_three().unwrap();
    assert_eq!(server.messages().len(), 3);
    // Another block with this number has another root.
    reorganized.store(true, Ordering::Relaxed);
    assert!(matches!(read_three(), Err(UpstreamError::Wrong { .. })));
}

#[test]
fn hashes_may_be_refused_in_several_requests_at_once() {
    let world = world();
    let world_of_server = Arc::clone(&world);
    let server = Server::start(move |count, message| {
        let by_hash = message["params"][2].is_object();
        if by_hash && count > 0 {
            // Until it is known that hashes are refused.
            thread::sleep(Duration::from_millis(300));
        }
        respond(message, |request| match by_hash {
            true => Err(json!({"code": -32602, "message": "invalid parameters"})),
            false => world_of_server.respond(request),
        })
    });
    let state = state(&upstream(&[&server], UpstreamOptions { batch: 1, ..options() }), &world);
    let reads = [1, 2, 3].map(|index| read(Address::from_low_u64_be(index), []));
    assert_eq!(state.accounts(&context(), &reads).unwrap().len(), 3);
}

#[test]
fn blocks_and_receipts_have_their_roots() {
    let world = world();
    let server = honest(&world);
    let upstream_of_one = upstream(&[&server], options());
    let block = upstream_of_one.block(&context(), &world.header).unwrap();
    assert_eq!((&block.header, &block.transactions), (world.header.header(), &world.transactions));
    let read = upstream_of_one.receipts(&context(), &world.header, &block.transactions);
    assert_eq!(read.unwrap(), world.receipts);
    // Nothing is asked about an empty block.
    let empty = Header {
        transactions_root: EMPTY_ROOT,
        receipts_root: EMPTY_ROOT,
        base_fee_per_gas: Some(7),
        withdrawals_root: Some(EMPTY_ROOT),
        ..world.header.header().clone()
    };
    let empty = HashedHeader::new(empty);
    assert_eq!(upstream_of_one.block(&context(), &empty).unwrap().withdrawals, Some(Vec::new()));
    assert!(upstream_of_one.receipts(&context(), &empty, &[]).unwrap().is_empty());
    assert_eq!(server.messages().len(), 2);

    let lying = dishonest(&world, |result| match result {
        Value::Array(receipts) => receipts[1]["status"] = json!("0x1"),
        block => _ = block["transactions"].as_array_mut().unwrap().pop(),
    });
    let alone = upstream(&[&lying], options());
    let wrong = |error: UpstreamError| match error {
        UpstreamError::Wrong { source, .. } => source.to_string(),
        error => panic!("{error}"),
    };
    assert!(wrong(alone.block(&context(), &world.header).unwrap_err()).starts_with("the transactions have the root"));
    let receipts = alone.receipts(&context(), &world.header, &block.transactions);
    assert!(wrong(receipts.unwrap_err()).starts_with("the receipts have the root"));
}

#[test]
fn receipts_are_read_one_by_one_if_need_be() {
    let world = world();
    let serve = |lies: bool| {
        let world = Arc::clone(&world);
        Server::start(move |_, message| {
            respond(message, |request| {
                let hash = request["params"][0].as_str().unwrap();
                let position = |transaction: &Transaction| Data(transaction.hash()).to_string() == hash;
                match request["method"].as_str().unwrap() {
                    "eth_getTransactionReceipt" => {
                        let index = world.transactions.iter().position(position).unwrap();
                        Ok(receipt(&world.receipts[if lies { 0 } else { index }]))
                    }
                    _ => Err(json!({"code": -32601, "message": "the method does not exist"})),
                }
            })
        })
    };
    let servers = [serve(true), serve(false)];
    let read =
        |servers: &[&Server]| upstream(servers, options()).receipts(&context(), &world.header, &world.transactions);
    assert_eq!(read(&servers.each_ref()).unwrap(), world.receipts);
    assert!(matches!(read(&[&servers[0]]), Err(UpstreamError::Wrong { .. })));
    // Those of several blocks at once. Without transactions, there is nothing with this root.
    let wanted = [(&world.header, world.transactions.clone()), (&world.header, Vec::new())];
    for servers in [&[&servers[1]][..], &[&servers[0], &servers[1]]] {
        let receipts = upstream(servers, options()).receipts_of_transactions(&context(), &wanted);
        assert_eq!(receipts[0].as_ref().unwrap(), &world.receipts);
        assert!(receipts[1].is_err());
    }
}

#[test]
fn unknown_types_of_transactions_are_named() {
    let world = world();
    let server = dishonest(&world, |block| block["transactions"][1] = json!({"type": "0x7e", "mint": "0x1"}));
    let error = upstream(&[&server], options()).block(&context(), &world.header).unwrap_err();
    assert!(error.to_string().ends_with("cannot be read: transaction type 0x7e is not supported"), "{error}");
}

#[test]
fn blocks_that_do_not_exist_are_not_found() {
    let servers = [Server::of(|_| Ok(Value::Null)), Server::of(|_| Ok(Value::Null))];
    let error = upstream(&servers.each_ref(), options()).header(&context(), BlockId::number(7)).unwrap_err();
    assert_eq!(error.to_string(), "the upstream does not have the header of block 7");
    assert_eq!(servers.each_ref().map(|server| server.messages().len()), [1, 1]);
}

#[test]
fn claimed_states_are_read_without_proofs() {
    let world = world();
    let server = honest(&world);
    let upstream = upstream(&[&server], UpstreamOptions { batch: 4, ..options() });
    let state = ClaimedState::new(upstream, world.header.clone());
    let slots = [(CONTRACT, H256::zero()), (CONTRACT, H256::repeat_byte(1))];
    let Claimed { accounts, values } =
        state.accounts_and_slots(&context(), &[CONTRACT, Address::zero()], &slots).unwrap();
    assert_eq!(accounts.iter().map(|claimed| claimed.nonce).collect::<Vec<_>>(), [7, 7]);
    assert_eq!((accounts[1].balance, &*accounts[1].code), (7.into(), CODE));
    assert_eq!(values, [7.into(), 7.into()]);
}

#[test]
fn what_has_long_responses_is_not_requested_in_one_message() {
    let block = |number| {
        let roots = [1, 2].map(H256::repeat_byte);
        HashedHeader::new(Header {
            number,
            gas_used: 32 << 20,
            transactions_root: roots[0],
            receipts_root: roots[1],
            ommers_hash: EMPTY_OMMERS_HASH,
            ..Header::default()
        })
    };
    let blocks = [1, 2, 3].map(block);
    let server = Server::of(|_| Err(json!({"code": -32000, "message": "not found"})));
    // The responses to a message may take a quarter of it, as those about three blocks do.
    let options = UpstreamOptions { response_bytes: 16 << 20, ..options() };
    let all: Vec<_> = blocks.iter().collect();
    let (read, receipts) = upstream(&[&server], options).blocks_and_receipts(&context(), &all, &all);
    assert!(read.iter().all(Result::is_err) && receipts.iter().all(Result::is_err));
    assert_eq!((read.len(), receipts.len()), (3, 3));
    let lengths: Vec<_> = server.messages().iter().map(|message| message.as_array().unwrap().len()).collect();
    assert_eq!(lengths, [3, 3]);
}

#[test]
fn blocks_and_receipts_are_read_together() {
    let world = world();
    for has_receipts in [true, false] {
        let of_world = Arc::clone(&world);
        let server = Server::of(move |request| match request["method"].as_str() {
            Some("eth_getBlockReceipts") if !has_receipts => Err(json!({"code": -32601, "message": "no such method"})),
            _ => of_world.respond(request),
        });
        let upstream = upstream(&[&server], options());
        let headers = [&world.header, &world.header];
        let (blocks, receipts) = upstream.blocks_and_receipts(&context(), &headers, &headers[..1]);
        for block in blocks {
            assert_eq!(block.unwrap().transactions, world.transactions);
        }
        // What is refused is asked for again by the number of the block.
        assert_eq!(server.messages().len(), if has_receipts { 1 } else { 2 });
        let [receipts]: [_; 1] = receipts.try_into().unwrap();
        match receipts {
            Ok(receipts) => assert!(has_receipts && receipts == world.receipts),
            Err(error) => assert!(!has_receipts && matches!(error, UpstreamError::Refused { .. }), "{error:?}"),
        }
    }
}
