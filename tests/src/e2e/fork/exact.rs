//! Blocks after the fork are exactly those that the whole chain would have.

use super::*;

/// The blocks of a chain from `first` on, as RLP.
fn raw_blocks(server: &Server, first: u64) -> Vec<u8> {
    let blocks =
        (first..=head(server)).map(|block| result(server, "debug_getRawBlock", json!([format!("{block:#x}")])));
    blocks.flat_map(|block| const_hex::decode(block.as_str().unwrap()).unwrap()).collect()
}

#[test]
fn a_full_import_of_the_blocks_agrees() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, world) = World::upstream(folder.path());
    let first = head(&upstream);
    let fork = fork(&upstream, ["--accounts", "5"]);
    assert_eq!(head(&fork), first);
    let mut world = World { senders: (0..5).map(account).collect(), ..world };
    for _ in 0..120 {
        world.step(&fork);
    }
    // At last, all slots of the contracts of the upstream are deleted, one block each.
    for contract in world.contracts.clone().iter().take(4) {
        for slot in 0..SLOTS {
            world.send(&fork, json!({"to": contract, "data": input(&[(slot, 0)]), "gas": "0x4c4b40"}));
        }
    }
    let chain = folder.path().join("chain.rlp");
    fs::write(&chain, [raw_blocks(&upstream, 1), raw_blocks(&fork, first + 1)].concat()).unwrap();
    let [option, genesis] = genesis(folder.path());
    let whole = Server::start([option.as_str(), &genesis, "--import", &chain.display().to_string()]);
    let last = head(&fork);
    assert_eq!(head(&whole), last);
    let same = |method: &str, parameters: Value| {
        let of_fork = result(&fork, method, parameters.clone());
        assert_eq!(of_fork, result(&whole, method, parameters.clone()), "{method} {parameters}");
    };
    let everyone = world.contracts.iter().cloned().chain((0..10).map(account));
    for address in everyone.chain([format!("0x{:040x}", 1_234)]) {
        for block in [first, (first + last) / 2, last] {
            assert_eq!(proof(&fork, &address, block), proof(&whole, &address, block), "{address} {block}");
        }
    }
    for block in first + 1..=last {
        same("eth_getBlockReceipts", json!([format!("{block:#x}")]));
    }
    same("eth_getLogs", json!([{"fromBlock": "0x0", "toBlock": "latest"}]));
    let topic = format!("0x{:064x}", 3);
    same("eth_getLogs", json!([{"fromBlock": "0x0", "toBlock": "latest", "topics": [topic]}]));
}
