#!/usr/bin/env python3
"""Compare what an operation costs over JSON-RPC and over REST, for every operation that reads and has both.

Imports a generated chain into a folder, restarts the server so that all blocks are in runs, and sends the same reads to both interfaces in
turn, with wrk over 16 connections: random heights from 50 to 60% of the chain, accounts, blocks and transactions. The ratio of an operation is the median of the
rounds' ratios of rates; the processor time is the server's, in microseconds per request. The exit status is 1 if an interface has less than
nine tenths of the other's rate.

--work FOLDER stores the chain and the data folder for the next run. Needs wrk.
"""

import argparse
import random
import statistics
import sys
import tempfile
from pathlib import Path

from bench_archive import CONTRACT, Case, Chain, DISTINCT
from nodes import Server, build

ZERO = "0x" + "00" * 32
# Least rate of an interface, as a share of the other's.
BAR = 0.9


def operations(chain, server):
    """Yields the name of each operation with its two kinds of requests."""
    pick = random.Random(3)
    holders = [pick.choice(chain.holders) for _ in range(DISTINCT)]
    heights = [pick.choice(chain.old_blocks()) for _ in range(DISTINCT)]
    places = list(zip(holders, heights, strict=True))
    # Hashes of some blocks and of their first transactions.
    blocks = [server.get(f"/getBlockByNumber/{height}/False/")["Block"] for height in heights[:500]]
    hashes = [block["Hash"] for block in blocks]
    sent = [block["Transactions"][0]["Hash"] for block in blocks]
    ranges = [(pick.randrange(2, chain.blocks - 99), length) for length in (10, 100) for _ in range(DISTINCT)]

    def pair(name, method, path, rest, params):
        calls = [{"jsonrpc": "2.0", "id": 1, "method": method, "params": list(items)} for items in params]
        return name, Case(name, path, list(rest)), Case(name, "/", calls, lambda response: "result" in response)

    def post(name, method, path, bodies, params):
        return pair(name, method, path, bodies, params)

    def get(name, method, paths, params):
        return pair(name, method, "/", paths, params)

    def logs(length):
        chosen = [first for first, of in ranges if of == length]
        rest = [{"Address": CONTRACT, "FromBlock": str(first), "ToBlock": str(first + length - 1)} for first in chosen]
        rpc = [[{"address": CONTRACT, "fromBlock": hex(first), "toBlock": hex(first + length - 1)}] for first in chosen]
        return post(f"getLogs of {length} blocks", "eth_getLogs", "/getLogs/", rest, rpc)

    for name in ("chainId", "blockNumber", "gasPrice", "maxPriorityFeePerGas", "blobBaseFee", "syncing"):
        yield get(name, f"eth_{name}", [f"/{name}/"], [[]])
    yield get("clientVersion", "web3_clientVersion", ["/clientVersion/"], [[]])
    for name in ("getBalance", "getCode"):
        paths = [f"/{name}/{holder}/?BlockNumber={height}" for holder, height in places]
        yield get(name, f"eth_{name}", paths, [[holder, hex(height)] for holder, height in places])
    for name in ("getTransactionCount", "getAccount"):
        paths = [f"/{name}/{holder}/{height}/" for holder, height in places]
        yield get(name, f"eth_{name}", paths, [[holder, hex(height)] for holder, height in places])
    yield post(
        "getStorageAt", "eth_getStorageAt", "/getStorageAt/",
        [{"Address": holder, "Position": ZERO, "BlockNumber": str(height)} for holder, height in places],
        [[holder, ZERO, hex(height)] for holder, height in places],
    )
    yield post(
        "getProof", "eth_getProof", "/getProof/",
        [{"Address": holder, "StorageKeys": [ZERO], "BlockNumber": str(height)} for holder, height in places],
        [[holder, [ZERO], hex(height)] for holder, height in places],
    )
    yield post(
        "call", "eth_call", "/call/",
        [{"Transaction": {"To": holder, "Data": ZERO}, "BlockNumber": str(height)} for holder, height in places],
        [[{"to": holder, "input": ZERO}, hex(height)] for holder, height in places],
    )
    yield post(
        "estimateGas", "eth_estimateGas", "/estimateGas/",
        [{"Transaction": {"To": holder, "Data": ZERO}, "BlockNumber": str(height)} for holder, height in places],
        [[{"to": holder, "input": ZERO}, hex(height)] for holder, height in places],
    )
    yield logs(10)
    yield logs(100)
    yield post(
        "getLogs of a rare topic", "eth_getLogs", "/getLogs/",
        [{"FromBlock": "0", "ToBlock": "latest", "Topics": [None, None, tag]} for tag in chain.tags],
        [[{"fromBlock": "0x0", "toBlock": "latest", "topics": [None, None, tag]}] for tag in chain.tags],
    )
    yield post(
        "feeHistory", "eth_feeHistory", "/feeHistory/",
        [{"BlockCount": "8", "NewestBlock": str(height), "RewardPercentiles": [25, 75]} for height in heights],
        [["0x8", hex(height), [25, 75]] for height in heights],
    )
    for detail, flag in (("full", True), ("hashes", False)):
        paths = [f"/getBlockByNumber/{height}/{flag}/" for height in heights]
        yield get(f"getBlockByNumber, {detail}", "eth_getBlockByNumber", paths, [[hex(height), flag] for height in heights])
    yield get("getBlockByHash, full", "eth_getBlockByHash", [f"/getBlockByHash/{hash}/True/" for hash in hashes], [[hash, True] for hash in hashes])
    by_number = {
        "getHeader": "eth_getHeaderByNumber", "getBlockReceipts": "eth_getBlockReceipts", "getRawHeader": "debug_getRawHeader",
        "getRawBlock": "debug_getRawBlock", "getRawReceipts": "debug_getRawReceipts",
        "getBlockTransactionCountByNumber": "eth_getBlockTransactionCountByNumber", "getUncleCountByBlockNumber": "eth_getUncleCountByBlockNumber",
    }
    for name, method in by_number.items():
        yield get(name, method, [f"/{name}/{height}/" for height in heights], [[hex(height)] for height in heights])
    for name in ("getBlockTransactionCountByHash", "getUncleCountByBlockHash"):
        yield get(name, f"eth_{name}", [f"/{name}/{hash}/" for hash in hashes], [[hash] for hash in hashes])
    by_hash = {name: f"eth_{name}" for name in ("getTransactionByHash", "getTransactionReceipt")} | {"getRawTransaction": "eth_getRawTransactionByHash"}
    for name, method in by_hash.items():
        yield get(name, method, [f"/{name}/{hash}/" for hash in sent], [[hash] for hash in sent])
    name = "getTransactionByBlockNumberAndIndex"
    yield get(name, f"eth_{name}", [f"/{name}/{height}/0/" for height in heights], [[hex(height), "0x0"] for height in heights])
    name = "getTransactionByBlockHashAndIndex"
    yield get(name, f"eth_{name}", [f"/{name}/{hash}/0/" for hash in hashes], [[hash, "0x0"] for hash in hashes])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, help="folder of the built programs")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--blocks", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("only", nargs="*", help="measure only operations whose names begin so")
    options = parser.parse_args()
    programs = options.bin or build("node-tests:generate", profile="dist")
    slow = []
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        chain = Chain(programs, work, options.blocks, DISTINCT)
        folder = ["--genesis", chain.genesis, "--data-dir", work / f"interfaces-{options.blocks}"]
        with Server(programs / "ethnode", "run", *folder, "--import", chain.file):
            pass
        with Server(programs / "ethnode", "run", *folder, "--api", "eth,debug,web3") as server:
            print("| Operation | JSON-RPC, requests/s | us | REST, requests/s | us | JSON-RPC to REST |\n|---|---:|---:|---:|---:|---:|")
            for name, rest, rpc in operations(chain, server):
                if options.only and not name.startswith(tuple(options.only)):
                    continue
                rounds = []
                for seed in range(options.rounds):
                    rounds.append([case.measure(server, Path(temporary), options.seconds, seed) for case in (rpc, rest)])
                ratio = statistics.median(ours.rate / theirs.rate for ours, theirs in rounds)
                (rpc_rate, rpc_cpu, _), (rest_rate, rest_cpu, _) = ([statistics.median(column) for column in zip(*face, strict=True)] for face in zip(*rounds, strict=True))
                print(f"| {name} | {rpc_rate:,.0f} | {rpc_cpu:.1f} | {rest_rate:,.0f} | {rest_cpu:.1f} | {ratio:.2f} |", flush=True)
                if not BAR <= ratio <= 1 / BAR:
                    slow.append(f"{name} ({ratio:.2f})")
    if slow:
        sys.exit("beyond the bar: " + ", ".join(slow))


if __name__ == "__main__":
    main()
