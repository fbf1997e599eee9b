#!/usr/bin/env python3
"""Compare the JSON-RPC requests per second of this node with anvil's, on the same chain.

    scripts/bench_rpc.py [--anvil PROGRAM] [--bin FOLDER] [--rounds N] [--seconds S] [METHOD...]

Both servers run all the time, with the chain of compare_anvil.py. In each round every request is measured on one and then on the
other, so that a machine that slows down slows both; the reported ratio is the median of the rounds' ratios. wrk sends with one thread
over 16 connections. If wrk competes with the servers for cores, the servers' processor time per message is the better
measure. The exit status is 1 if a method is slower here. Needs wrk, and anvil as in compare_anvil.py.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from compare_anvil import CHAIN_ID, GENESIS_TIME, MNEMONIC, Chain, Rpc, with_tools
from nodes import Anvil, Failure, Server, build, machine

BATCH = 100

# Seconds that wrk may take in addition to the measured time.
PATIENCE = 5


def requests(chain, hashes):
    """Yields the name and message of each measurement."""
    alice = chain.signers[0].address
    slot = "0x" + "00" * 32
    everything = {"fromBlock": "0x0", "toBlock": "latest", "address": chain.counter}
    single = [
        ("eth_chainId",), ("eth_blockNumber",), ("eth_gasPrice",), ("eth_getBalance", alice, "latest"),
        ("eth_getTransactionCount", alice, "latest"), ("eth_getCode", chain.counter, "latest"),
        ("eth_getStorageAt", chain.counter, slot, "latest"), ("eth_getBlockByNumber", "latest", False),
        ("eth_getBlockByNumber", "0x6", True), ("eth_getTransactionByHash", hashes[5]),
        ("eth_getTransactionReceipt", hashes[5]), ("eth_getBlockReceipts", "0x6"), ("eth_getLogs", everything),
        ("eth_feeHistory", "0x8", "latest", [25, 75]), ("eth_getProof", chain.counter, [slot], "latest"),
        ("eth_call", {"to": chain.counter}, "latest"), ("eth_estimateGas", {"to": chain.counter}),
        ("eth_createAccessList", {"to": chain.counter}, "latest"),
        ("debug_traceTransaction", hashes[8], {"tracer": "callTracer"}),
        ("debug_traceCall", {"to": chain.counter}, "latest", {"tracer": "callTracer"}),
    ]
    measured = [(method, message(1, method, *parameters)) for method, *parameters in single]
    # Two messages of one method are distinguished by their parameters.
    names = [name for name, _ in measured]
    measured = [(f"{name} {text['params'][-1]}" if names.count(name) > 1 else name, text) for name, text in measured]
    reads = [message(id, "eth_getBalance", f"0x{id:040x}", "latest") for id in range(BATCH)]
    calls = [message(id, "eth_call", {"to": chain.counter}, "latest") for id in range(BATCH)]
    return [*measured, (f"{BATCH} eth_getBalance", reads), (f"{BATCH} eth_call", calls)]


def message(id, method, *parameters):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": list(parameters)}


def check(url, name, text):
    """Fails unless the message gets a result."""
    response = json.loads(Rpc(url).post(json.dumps(text).encode()))
    responses = response if isinstance(response, list) else [response]
    expected = len(text) if isinstance(text, list) else 1
    if len(responses) != expected or any(response.get("result") is None for response in responses):
        raise Failure(f"{url}: {name}: {str(response)[:300]}")


def rate(server, url, script, seconds):
    """Returns messages per second, and processor time per message in microseconds."""
    begun = server.cpu()
    command = ["wrk", "-t1", "-c16", f"-d{seconds}s", "-s", str(script), url]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=seconds + PATIENCE)
    except subprocess.TimeoutExpired:
        # Try again if the server did not accept connections for a while.
        ran = subprocess.run(command, capture_output=True, text=True)
    output = ran.stdout
    if ran.returncode != 0 or re.search(r"Non-2xx|Socket errors", output):
        raise Failure(f"{url}: {script.read_text()[-300:]}\n{output}{ran.stderr}")
    messages = int(re.search(r"(\d+) requests in", output).group(1))
    if messages == 0:
        raise Failure(f"{url}: no responses: the machine is too busy, or the time too short")
    return float(re.search(r"Requests/sec:\s+([0-9.]+)", output).group(1)), (server.cpu() - begun) / messages * 1e6


def measure(options):
    folder = options.bin or build(profile="dist")
    common = ["--mnemonic", MNEMONIC, "--chain-id", str(CHAIN_ID), "--hardfork", "osaka", "--gas-limit", "30000000",
              "--timestamp", str(GENESIS_TIME)]
    print(machine(), flush=True)
    with (
        Server(folder / "ethnode", "dev", "--log", "error", *common) as node,
        Anvil(options.anvil, *common) as anvil,
    ):
        servers = {node.url + "/": node, anvil.url + "/": anvil}
        chain = Chain()
        hashes = [chain.grow(Rpc(url)) for url in servers][0]
        measured = [(name, text) for name, text in requests(chain, hashes)
                    if not options.methods or any(method in name for method in options.methods)]
        rates = {name: ([], []) for name, _ in measured}
        with tempfile.TemporaryDirectory() as work:
            for index, (name, text) in enumerate(measured):
                script = Path(work) / f"{index}.lua"
                script.write_text(f"wrk.method = 'POST'\nwrk.headers['Content-Type'] = 'application/json'\n"
                                  f"wrk.body = [==[{json.dumps(text)}]==]\n")
                for url in servers:
                    check(url, name, text)
            for _ in range(options.rounds):
                for index, (name, _) in enumerate(measured):
                    for (url, server), of_server in zip(servers.items(), rates[name]):
                        of_server.append(rate(server, url, Path(work) / f"{index}.lua", options.seconds))
    print("\n| Message | requests/s here | anvil | ratio | µs of processor time here | anvil |\n|---|---:|---:|---:|---:|---:|")
    slower = []
    for name, of_servers in rates.items():
        here, there = [[statistics.median(column) for column in zip(*of_server)] for of_server in of_servers]
        ratio = statistics.median(ours / theirs for (ours, _), (theirs, _) in zip(*of_servers))
        print(f"| {name} | {here[0]:,.0f} | {there[0]:,.0f} | {ratio:.2f} | {here[1]:,.1f} | {there[1]:,.1f} |")
        if ratio < 1:
            slower.append(name)
    if slower:
        print(f"slower here: {', '.join(slower)}")
    return 1 if slower else 0


def main():
    options = argparse.ArgumentParser(description="measures JSON-RPC of this node and of anvil")
    options.add_argument("methods", nargs="*", help="substrings of the measurements' names [default: all]")
    options.add_argument("--anvil", help="path of anvil [default: install it]")
    options.add_argument("--bin", type=Path, help="folder with ethnode [default: build it]")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=int, default=2)
    options = options.parse_args()
    sys.exit(measure(options) if options.anvil else with_tools(__file__))


if __name__ == "__main__":
    main()
