#!/usr/bin/env python3
"""Have clients work on a fork as they do on one of anvil: reset, act as a rich account, deal tokens, swap, read across the fork, travel in time.

    scripts/fork_clients.py [--bin FOLDER] [--work FOLDER] [--upstream ethnode|anvil] [CLIENT…]

--list lists the clients. Their programs are in `clients/fork`; packages go to a temporary folder (or to --work, which is kept). The chain that is
forked has three tokens, two pools and a router. It is one of this program, then one of anvil, unless --upstream names one. Every client runs on a fork
by this program, then on one by anvil. A step that fails here is a failure; what differs from anvil is printed. Needs anvil 1.7.1 in PATH.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import anvil
import clients
import nodes
from nodes import ALICE, ROOT, Anvil, Failure, Server, run

CLIENTS = ROOT / "clients/fork"
SOLC = "solc@0.8.37"
ETHER = 10**18
# Has ether and tokens on the chain that is forked; nobody has its key.
WHALE = "0x00000000000000000000000000000000000a11ce"
# The second account of the mnemonic.
TRADER = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
# Blocks above the last transaction, more than the 256 whose hashes the EVM shows.
QUIET = 300


def word(value):
    return f"{int(value, 16) if isinstance(value, str) else value:064x}"


class Contract:
    """A contract as solc returns it."""

    def __init__(self, output):
        self.abi, self.code, self.methods = output["abi"], output["evm"]["bytecode"]["object"], output["evm"]["methodIdentifiers"]

    def create(self, *arguments):
        return "0x" + self.code + "".join(map(word, arguments))

    def call(self, name, *arguments):
        [selector] = [selector for signature, selector in self.methods.items() if signature.split("(")[0] == name]
        return "0x" + selector + "".join(map(word, arguments))


def compile_contracts(folder):
    """Returns the contracts by name."""
    source = {"Swap.sol": {"content": (CLIENTS / "Swap.sol").read_text()}}
    outputs = {"*": {"*": ["abi", "evm.bytecode.object", "evm.methodIdentifiers"]}}
    settings = {"optimizer": {"enabled": True}, "evmVersion": "cancun", "outputSelection": outputs}
    request = json.dumps({"language": "Solidity", "sources": source, "settings": settings})
    output = json.loads(run("node", "solc.mjs", "--standard-json", cwd=folder, input=request))
    if faults := [error["formattedMessage"] for error in output.get("errors", []) if error["severity"] == "error"]:
        raise Failure("\n".join(faults))
    return {name: Contract(contract) for name, contract in output["contracts"]["Swap.sol"].items()}


def send(server, account, data, to=None, value=0):
    transaction = {"from": account, "data": data, "value": hex(value), "gas": hex(3_000_000), **({"to": to} if to else {})}
    receipt = nodes.wait_for("a receipt", lambda hash=server.rpc("eth_sendTransaction", transaction): server.rpc("eth_getTransactionReceipt", hash))
    nodes.expect(f"status of {transaction}", receipt["status"], "0x1")
    return receipt


def make(server, contracts):
    """Makes tokens, pools, a router and three swaps on a chain. Returns what clients need to know of it."""
    token, pool, router = (contracts[name] for name in ("Token", "Pool", "Router"))
    tokens = [send(server, ALICE, token.create(10**9 * ETHER))["contractAddress"] for _ in range(3)]
    pools = [send(server, ALICE, pool.create(*pair))["contractAddress"] for pair in zip(tokens, tokens[1:])]
    at = send(server, ALICE, router.create())["contractAddress"]
    for place, pair in zip(pools, zip(tokens, tokens[1:])):
        for size, paid in zip((1_000_000, 3_000_000), pair):
            send(server, ALICE, token.call("transfer", place, size * ETHER), paid)
        send(server, ALICE, pool.call("fill"), place)
    for account in (WHALE, TRADER):
        send(server, ALICE, token.call("transfer", account, 1_000_000 * ETHER), tokens[0])
    send(server, ALICE, "0x", WHALE, 5_000 * ETHER)
    send(server, TRADER, token.call("approve", at, 10**9 * ETHER), tokens[0])
    # The path is the last argument but one, and dynamic: its offset, and at the end its length and items.
    swaps = [send(server, TRADER, router.call("swap", amount * ETHER, 1, tokens[0], 5 * 32, 2**64, 2, *pools), at) for amount in (10, 20, 30)]
    server.rpc("anvil_mine", hex(QUIET))
    early = swaps[1]
    return {
        "url": server.url, "tokens": tokens, "pools": pools, "router": at, "whale": WHALE, "trader": TRADER, "swaps": len(swaps),
        "block": int(server.rpc("eth_blockNumber"), 16), "early": int(early["blockNumber"], 16), "earlyHash": early["blockHash"],
        "transaction": early["transactionHash"], "abi": {name: contract.abi for name, contract in contracts.items()},
    }


def packages(options, name, *wanted):
    """Returns a folder with packages of npm and the programs of clients/fork."""
    folder = options.work / name
    shutil.copytree(CLIENTS, folder, dirs_exist_ok=True)
    shutil.copy(anvil.CHECKS / "report.mjs", folder)
    anvil.npm_install(folder, wanted)
    return folder


def results(folder, command, url, facts, **more):
    """Runs a client on a fork. Returns the results of its steps."""
    environment = {**os.environ, "NODE_RPC_URL": url, "NODE_FACTS": str(facts), **{name: str(value) for name, value in more.items()}}
    lines = [json.loads(line) for line in run(*command, cwd=folder, env=environment, timeout=300).splitlines() if line.startswith('{"tool"')]
    if not lines:
        raise Failure("the client has tried nothing")
    return {(line["tool"], line["call"]): line["result"] for line in lines}


# Each of these prepares a client. It returns a function that runs it, with the URL of a fork and the file of facts, and returns the results of its steps.


def viem(options):
    """viem"""
    folder = packages(options, "viem", "viem@2.57.0")
    return lambda *fork: results(folder, ["node", "viem.mjs"], *fork)


def ethers(options):
    """ethers"""
    folder = packages(options, "ethers", "ethers@6.17.0")
    return lambda *fork: results(folder, ["node", "ethers.mjs"], *fork)


def web3py(options):
    """web3.py"""
    python = clients.venv(options.work / "web3py", "-r", ROOT / "clients/rpc/web3py/requirements.txt") / "python"
    return lambda *fork: results(CLIENTS, [python, "web3py.py"], *fork, PYTHONDONTWRITEBYTECODE=1)


def cast(options):
    """cast"""
    folder = packages(options, "cast", "@foundry-rs/cast@1.7.1")
    [program] = (folder / "node_modules/@foundry-rs").glob("cast-*/bin/cast")
    return lambda *fork: results(folder, [sys.executable, "cast.py"], *fork, NODE_CAST=program)


def hardhat3(options):
    """Hardhat 3 on a fork over HTTP, and with its own network as a fork of the fork"""
    folder = packages(options, "hardhat3", "node@22", "hardhat@3", "@nomicfoundation/hardhat-network-helpers@3", "viem@2.57.0")
    command = ["node_modules/.bin/node", "hardhat3.mjs"]

    def play(*fork):
        # Its own network comes first: the other changes the fork.
        return {**results(folder, command, *fork, NODE_NETWORK="simulated"), **results(folder, command, *fork)}
    return play


def forge(options):
    """forge: tests with --fork-url, and a script with --broadcast"""
    folder = packages(options, "forge", "@foundry-rs/forge@1.7.1", SOLC) / "forge"
    [program] = (folder.parent / "node_modules/@foundry-rs").glob("forge-*/bin/forge")
    shutil.copy(CLIENTS / "Swap.sol", folder / "src")
    # forge's settings and caches of the user must not affect the result.
    environment = {"PATH": os.environ["PATH"], "HOME": str(options.work / "forge")}

    def play(url, facts):
        shutil.copy(facts, folder / "facts.json")
        common = ["--fork-url", url, "--no-storage-caching", "--json"]
        done = subprocess.run([program, "test", *common], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
        try:
            [suite] = json.loads(done.stdout).values()
        except ValueError as error:
            raise Failure(f"forge test: {done.stdout[-2000:]} {done.stderr[-2000:]}") from error
        found = {("forge test", name.removesuffix("()")): "works" if result["status"] == "Success" else f"fails: {result['reason']}"
                 for name, result in suite["test_results"].items()}
        nodes.rpc(url, "anvil_impersonateAccount", WHALE)
        before = int(nodes.rpc(url, "eth_getTransactionCount", WHALE, "latest"), 16)
        script = ["script", "script/Swap.s.sol", "--fork-url", url, "--broadcast", "--unlocked", "--sender", WHALE, "--slow"]
        done = subprocess.run([program, *script], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
        sent = int(nodes.rpc(url, "eth_getTransactionCount", WHALE, "latest"), 16) - before
        right = done.returncode == 0 and sent == 7
        text = f"{sent} transactions" if right else f"fails: {sent} transactions, {(done.stderr or done.stdout).strip()[-300:]}"
        return {**found, ("forge script", "--broadcast"): text}
    return play


CLIENT = {client.__name__: client for client in (viem, ethers, web3py, cast, hardhat3, forge)}


def upstreams(options):
    """Yields the name and the server of each chain that is forked."""
    here = lambda: Server(options.server, "dev", "--data-dir", ":memory:")
    for name, start in ("ethnode", here), ("anvil", Anvil):
        if options.upstream in (None, name):
            with start() as server:
                yield name, server


def play(options):
    """Runs the clients with a folder for packages."""
    given = options.work
    with tempfile.TemporaryDirectory() as temporary:
        options.work = (given or Path(temporary)).resolve()
        contracts = compile_contracts(packages(options, "solc", SOLC))
        runs = {name: CLIENT[name](options) for name in options.parts}
        for of, upstream in upstreams(options):
            facts = options.work / f"facts-{of}.json"
            facts.write_text(json.dumps(make(upstream, contracts)))
            print(f"forks of {of}:", flush=True)
            for name, client in runs.items():
                print(f" {name}:", flush=True)
                with Server(options.server, "dev", "--data-dir", ":memory:", "--fork-url", upstream.url) as here:
                    ours = client(here.url, facts)
                    here.stop()
                with Anvil("--fork-url", upstream.url, "--no-storage-caching") as there:
                    theirs = client(there.url, facts)
                anvil.compare_results(ours, theirs)


def arguments(parser):
    parser.add_argument("--work", type=Path, help="where to install the clients; it is kept")
    parser.add_argument("--upstream", choices=["ethnode", "anvil"], help="whose chain is forked [default: both]")


if __name__ == "__main__":
    nodes.main(__doc__, CLIENT, arguments=arguments, together=play)
