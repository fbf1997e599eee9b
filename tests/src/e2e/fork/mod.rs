//! Chains that continue the chain of another server.

mod before;
mod commands;
mod control;
mod dumps;
mod exact;
mod history;
mod offline;
mod options;
mod pruned;
mod trust;

use crate::model::Random;
use crate::server::{Response, Server};
use crate::wallet::accounts;
use node_chain::genesis::GenesisAccount;
use node_dev::{AccountOptions, Accounts, DevGenesis};
use node_types::{Address, H256, keccak256};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Number of slots that contracts use.
const SLOTS: u64 = 24;

/// A contract that stores the pairs of a slot and a value in its input, and logs the input with the first slot as topic:
/// `for (i = 0; i < CALLDATASIZE; i += 64) SSTORE(CALLDATALOAD(i), CALLDATALOAD(i + 32))`.
const STORES: &str = "5f5b3681101560175780602001358135556040016001565b365f5f375f35365fa100";

/// Init code of [`STORES`] that first stores 1 in slot 1.
const CREATES_STORES: &str = "0x60016001556022600f5f3960225ff3";

/// Creation of a contract that is gone by the end of the transaction.
const CREATES_NOTHING: &str = "0x5fff";

/// Sends a JSON-RPC request.
fn rpc(server: &Server, method: &str, parameters: Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters});
    server.post("/", request.to_string()).body
}

/// The result of a request that succeeds.
fn result(server: &Server, method: &str, parameters: Value) -> Value {
    let mut response = rpc(server, method, parameters);
    assert!(response.get("error").is_none(), "{method}: {response}");
    response["result"].take()
}

/// The code and the message of a request that fails.
fn failure(server: &Server, method: &str, parameters: Value) -> (i64, String) {
    let response = rpc(server, method, parameters);
    let error = &response["error"];
    let failed = || panic!("{method}: {response}");
    (error["code"].as_i64().unwrap_or_else(failed), error["message"].as_str().unwrap().to_owned())
}

fn number(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

fn word(value: u64) -> String {
    format!("0x{value:064x}")
}

fn head(server: &Server) -> u64 {
    number(&result(server, "eth_blockNumber", json!([])))
}

fn account(index: usize) -> String {
    format!("{:#x}", accounts()[index].address())
}

/// Writes a genesis that funds the accounts, and returns the arguments that specify it.
fn genesis(folder: &Path) -> [String; 2] {
    let funded = Accounts::derive(&AccountOptions::default()).unwrap();
    let mut genesis = DevGenesis::default().build(funded.addresses()).unwrap();
    // So many that a proof does not show the others.
    let others = (0..1_000u32).map(|n| Address::from(keccak256(n.to_be_bytes())));
    genesis.alloc.extend(others.map(|address| (address, GenesisAccount { nonce: 1, ..Default::default() })));
    let path = folder.join("genesis.json");
    fs::write(&path, genesis.to_json()).unwrap();
    ["--genesis".to_owned(), path.display().to_string()]
}

/// Contracts of a chain, and who sends transactions to them.
struct World {
    random: Random,
    senders: Vec<String>,
    contracts: Vec<String>,
}

impl World {
    fn new(seed: u64, senders: &[usize]) -> Self {
        let senders = senders.iter().map(|index| account(*index)).collect();
        Self { random: Random::new(seed), senders, contracts: Vec::new() }
    }

    /// Sends a transaction that succeeds.
    fn send(&mut self, server: &Server, mut transaction: Value) -> Value {
        transaction["from"] = self.random.pick(&self.senders).as_str().into();
        let hash = result(server, "eth_sendTransaction", json!([transaction]));
        let receipt = result(server, "eth_getTransactionReceipt", json!([hash]));
        assert_eq!(receipt["status"], "0x1", "{transaction}");
        receipt
    }

    /// Creates a contract, and stores values in `slots` of its slots.
    fn create(&mut self, server: &Server, slots: u64) -> String {
        let receipt = self.send(server, json!({"data": format!("{CREATES_STORES}{STORES}"), "gas": "0x4c4b40"}));
        let contract = receipt["contractAddress"].as_str().unwrap().to_owned();
        let pairs: Vec<_> = (0..slots).map(|slot| (slot, slot + 1)).collect();
        self.send(server, json!({"to": contract, "data": input(&pairs), "gas": "0x4c4b40"}));
        self.contracts.push(contract.clone());
        contract
    }

    /// Sends a transaction of any kind.
    fn step(&mut self, server: &Server) {
        match self.random.below(20) {
            0 => {
                let slots = self.random.below(SLOTS);
                self.create(server, slots);
            }
            1 => drop(self.send(server, json!({"data": CREATES_NOTHING, "value": "0x5"}))),
            2..5 => {
                let to = format!("0x{:040x}", 0x1000 + self.random.below(1 << 30));
                self.send(server, json!({"to": to, "value": "0x1"}));
            }
            5 => {
                let to = self.random.pick(&self.senders).clone();
                self.send(server, json!({"to": to, "value": "0x7"}));
            }
            kind => {
                let count = 1 + self.random.below(6);
                // Some transactions mostly delete.
                let deletions = if kind < 12 { 90 } else { 40 };
                let pairs: Vec<_> = (0..count)
                    .map(|_| {
                        let value = if self.random.chance(deletions) { 0 } else { self.random.below(1 << 40) };
                        (self.random.below(SLOTS), value)
                    })
                    .collect();
                let contract = self.random.pick(&self.contracts).clone();
                self.send(server, json!({"to": contract, "data": input(&pairs), "gas": "0x4c4b40"}));
            }
        }
    }

    /// Starts a chain that has a history of contracts with storage, whose accounts 0 to 4 did nothing.
    fn upstream(folder: &Path) -> (Server, Self) {
        let server = Server::dev(genesis(folder));
        let world = Self::begin(&server);
        (server, world)
    }

    /// Gives a chain a history.
    fn begin(server: &Server) -> Self {
        let mut world = Self::new(7, &[5, 6, 7, 8, 9]);
        for slots in [1, 2, 3, 5, 9, 16, SLOTS] {
            world.create(server, slots);
        }
        for _ in 0..20 {
            world.step(server);
        }
        world
    }
}

/// The input of [`STORES`] that sets slots to values.
fn input(pairs: &[(u64, u64)]) -> String {
    let words = pairs.iter().map(|(slot, value)| format!("{slot:064x}{value:064x}"));
    format!("0x{}", words.collect::<String>())
}

/// Starts a fork of the chain of `upstream`.
fn fork<'a>(upstream: &'a Server, arguments: impl IntoIterator<Item = &'a str>) -> Server {
    Server::dev(["--fork-url", upstream.url()].into_iter().chain(arguments))
}

/// Everything that a contract has as of a block, with proofs.
fn proof(server: &Server, address: &str, block: u64) -> Value {
    let slots: Vec<_> = (0..SLOTS).map(|slot| format!("{slot:#x}")).collect();
    result(server, "eth_getProof", json!([address, slots, format!("{block:#x}")]))
}

/// The status and the type of a problem.
fn problem(response: &Response) -> (u16, &str) {
    let kind = response.body["type"].as_str().unwrap_or_default();
    (response.status, kind.rsplit('/').next().unwrap_or_default())
}
