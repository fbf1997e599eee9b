#!/usr/bin/env python3
"""Fork chains of different servers and compare the forks with them.

    scripts/fork_servers.py [--bin FOLDER] [--reth PROGRAM] [--seed SEED] [UPSTREAM…]

--list lists the chains. At the fork's first block, 200 random accounts, slots and codes must be those of the other chain, and 40 as of earlier blocks.
Then the fork executes 50 random transactions, among them calls that the chain itself had, and the proofs of its new head must verify. At last it starts
without the other chain, and everything that was touched must be there. `answers` sends recorded requests to a fork. Needs ../shared, rlp and eth-utils,
anvil 1.7.1 for `anvil`, and reth for `reth`.
"""

import contextlib
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import fork as forks
import nodes
from nodes import ROOT, Anvil, Failure, Missing, Server, expect, free_port, run, wait_for

sys.path.append(str(ROOT / "clients/rpc"))
try:
    import rlp
    from proofs import prove
except ImportError:
    prove = None

SHARED = Path(os.environ.get("NODE_SHARED", ROOT.parent / "shared"))
SAMPLES, TRANSACTIONS, TRACED = 200, 50, 100
# Reads as of blocks before the fork.
EARLIER = 40
# Accounts of `generated`.
ACCOUNTS = 100_000
# Recorded requests that a development chain answers otherwise: what is about the pool or makes blocks, the tags, and a range beyond the head.
OTHERWISE = {
    "eth_sendRawTransaction", "testing_buildBlockV1", "txpool_content", "txpool_contentFrom", "txpool_status", "eth_getBlockByNumber/get-safe",
    "eth_getBlockByNumber/get-finalized", "eth_getLogs/filter-error-future-block-range",
}
TRACER = {"tracer": "prestateTracer"}
GAS = 2_000_000


class Chain(NamedTuple):
    """A chain that is forked: its server, its genesis file, if it has one, and the options with which it is forked."""
    server: Server
    genesis: Path | None
    options: list


def with_genesis(server, genesis):
    return Chain(server, genesis, ["--genesis", genesis])


def run_chain(options, genesis, chain):
    """Serves a chain from memory."""
    return Server(options.server, "run", "--data-dir", ":memory:", "--genesis", genesis, "--import", chain, "--api", "debug,eth,net,web3")


@contextlib.contextmanager
def recorded(options, work):
    """this program with the recorded chain"""
    chain = SHARED / "conformance/chain"
    with run_chain(options, chain / "genesis.json", chain / "chain.rlp") as server:
        yield with_genesis(server, chain / "genesis.json")


@contextlib.contextmanager
def dev20k(options, work):
    """this program with 14,328 blocks and 20,000 transactions"""
    genesis = SHARED / "bench/dev20k.genesis.json"
    with run_chain(options, genesis, genesis.with_name("dev20k.rlp")) as server:
        yield with_genesis(server, genesis)


@contextlib.contextmanager
def generated(options, work):
    """this program with 100,000 accounts, a tenth of them with a code of its own and four slots"""
    chance, alloc = random.Random(options.seed), {}
    for index in range(ACCOUNTS):
        account = {"balance": hex(chance.randrange(10**20))}
        if index % 10 == 0:
            storage = {"0x" + forks.word(slot): "0x" + forks.word(chance.randrange(1, 1 << 64)) for slot in range(4)}
            account |= {"nonce": "0x1", "code": forks.SUMS + f"{index:08x}", "storage": storage}
        alloc[f"0x{chance.randrange(1 << 160):040x}"] = account
    server, genesis = forks.begin(options, work, alloc)
    with server:
        forks.with_history(server, chance, 200)
        yield with_genesis(server, genesis)


class Reth(Server):
    """A reth process that serves a folder."""

    def __init__(self, program, genesis, data):
        port, more = free_port(), ["--port", free_port(), "--authrpc.port", free_port(), "--log.file.directory", data / "logs"]
        command = [
            program, "node", "--chain", genesis, "--datadir", data, "--http", "--http.port", port, "--http.api", "all", "--disable-discovery",
            "--no-persist-peers", "--ipcdisable", "--rpc.eth-proof-window", "1000000", "--quiet", *more,
        ]
        self.errors = open("/dev/null")
        self.process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.url = f"http://127.0.0.1:{port}"
        try:
            wait_for("the start of reth", lambda: self.rpc("eth_chainId"), 60)
        except Failure:
            self.kill()
            raise


@contextlib.contextmanager
def reth(options, work):
    """reth with the chain of dev20k"""
    if not options.reth:
        yield None
        return
    genesis = SHARED / "bench/dev20k.genesis.json"
    run(options.reth, "import", "--chain", genesis, "--datadir", work / "reth", "--log.file.directory", work / "reth/logs", genesis.with_name("dev20k.rlp"))
    with Reth(options.reth, genesis, work / "reth") as server:
        yield with_genesis(server, genesis)


class Waiting(forks.World):
    """Waits for receipts: anvil returns a hash before its block is there."""

    def send(self, connection, **transaction):
        hash = connection.rpc("eth_sendTransaction", {"from": self.chance.choice(self.senders), **transaction})
        receipt = wait_for("a receipt", lambda: connection.rpc("eth_getTransactionReceipt", hash))
        expect(f"the status of {transaction}", receipt["status"], "0x1")
        return receipt


@contextlib.contextmanager
def anvil(options, work):
    """anvil with contracts and storage of random transactions"""
    with Anvil() as server:
        world, connection = Waiting(random.Random(options.seed), forks.ACCOUNTS), server.connect()
        for slots in (1, 5, forks.SLOTS):
            world.create(connection, slots)
        for _ in range(100):
            world.step(connection)
        yield Chain(server, None, [])


class Names:
    """Accounts, slots and calls of a chain: those of its genesis, and those that random transactions touched."""

    def __init__(self, chain, chance):
        self.accounts, self.slots, self.calls = set(), set(), []
        for address, account in json.loads(chain.genesis.read_text())["alloc"].items() if chain.genesis else []:
            self.accounts.add("0x" + address.removeprefix("0x").lower())
            self.add_slots("0x" + address.removeprefix("0x").lower(), account.get("storage", {}))
        head = forks.head(chain.server)
        while len(self.calls) < TRACED:
            block = chain.server.rpc("eth_getBlockByNumber", hex(chance.randrange(1, head + 1)), True)
            for transaction in block["transactions"][:3]:
                self.calls.append(transaction)
                for address, account in chain.server.rpc("debug_traceTransaction", transaction["hash"], TRACER).items():
                    self.accounts.add(address.lower())
                    self.add_slots(address.lower(), account.get("storage", {}))
        self.accounts, self.slots = sorted(self.accounts), sorted(self.slots)

    def add_slots(self, address, storage):
        self.slots.update((address, f"0x{int(slot, 16):064x}") for slot in storage)

    def account(self, chance):
        """Returns an account, of which one in five does not exist."""
        return chance.choice(self.accounts) if chance.randrange(5) else f"0x{chance.randrange(1 << 160):040x}"

    def slot(self, chance):
        if not self.slots or not chance.randrange(5):
            return self.account(chance), f"0x{chance.randrange(1 << 256):064x}"
        return chance.choice(self.slots)


def reads(names, chance, block):
    """Returns requests about random accounts, slots and codes."""
    requests = []
    for _ in range(SAMPLES):
        account = names.account(chance)
        requests += [("eth_getBalance", account, block), ("eth_getTransactionCount", account, block), ("eth_getCode", names.account(chance), block)]
        requests.append(("eth_getStorageAt", *names.slot(chance), block))
    return requests


def transact(server, names, chance):
    """Has a fork execute a random transaction. Returns its hash."""
    sender = chance.choice(forks.ACCOUNTS)
    if chance.randrange(3):
        past = chance.choice(names.calls)
        transaction = {"from": sender, "value": past["value"], "data": past["input"], "gas": hex(GAS), **({"to": past["to"]} if past["to"] else {})}
    elif chance.randrange(2):
        transaction = {"from": sender, "to": names.account(chance), "value": hex(chance.randrange(10**18)), "gas": hex(GAS)}
    else:
        # Someone else's ether. An account with code may send as well.
        sender = names.account(chance)
        server.rpc("anvil_setBalance", sender, hex(10**20))
        server.rpc("anvil_impersonateAccount", sender)
        transaction = {"from": sender, "to": names.account(chance), "value": hex(chance.randrange(10**18)), "gas": hex(GAS)}
    server.rpc("anvil_setBalance", sender, hex(10**20))
    return server.rpc("eth_sendTransaction", transaction)


def touched(server, hashes):
    """Returns accounts and slots that transactions touched, as traced by the fork."""
    accounts = {}
    for hash in hashes:
        for address, account in server.rpc("debug_traceTransaction", hash, TRACER).items():
            accounts.setdefault(address.lower(), set()).update(f"0x{int(slot, 16):064x}" for slot in account.get("storage", {}))
    return {address: sorted(slots) for address, slots in accounts.items()}


def bytes_of(text):
    return bytes.fromhex(text.removeprefix("0x"))


def quantity(text):
    value = int(text, 16)
    return value.to_bytes((value.bit_length() + 7) // 8)


def verify(server, accounts, block):
    """Verifies the proofs of accounts with slots against the state root of a block, and returns how many values they prove."""
    root, count = bytes_of(server.rpc("eth_getBlockByNumber", block, False)["stateRoot"]), 0
    for address, slots in accounts.items():
        proof = server.rpc("eth_getProof", address, slots, block)
        proved = prove(root, bytes_of(address), map(bytes_of, proof["accountProof"]))
        shown = [quantity(proof["nonce"]), quantity(proof["balance"]), bytes_of(proof["storageHash"]), bytes_of(proof["codeHash"])]
        absent = not any(shown[:2])
        expect(f"the account {address}", proved and rlp.decode(proved), None if proved is None and absent else shown)
        expect(f"the balance of {address}", proof["balance"], server.rpc("eth_getBalance", address, block))
        for slot, entry in zip(slots, proof["storageProof"]):
            # An empty trie needs no proof.
            proved = prove(bytes_of(proof["storageHash"]), bytes_of(slot), map(bytes_of, entry["proof"])) if entry["proof"] else None
            expect(f"slot {slot} of {address}", rlp.decode(proved) if proved else b"", quantity(entry["value"]))
            expect(f"slot {slot} of {address}", int(server.rpc("eth_getStorageAt", address, slot, block), 16), int(entry["value"], 16))
        count += 1 + len(slots)
    return count


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def compare(options, chain, work):
    """Forks a chain and compares."""
    chance, data = forks.chance_of(options), work / "fork"
    names, head = Names(chain, chance), forks.head(chain.server)
    block = hex(head)
    with forks.Proxy(chain.server.url, fault=forks.failing_in_turn(5) if options.faults else None) as proxy:
        with forks.dev(options, "--fork-url", proxy.url, "--fork-block-number", head, "--data-dir", data, *chain.options) as fork:
            started = fork.seconds
            # Their balances are edits of the fork.
            funded = set(forks.ACCOUNTS)
            asked = [request for request in reads(names, chance, block) if request[1] not in funded]
            truth = [chain.server.rpc(*request) for request in asked]
            proxy.reset()
            # A connection that sends nothing at first is closed after a while.
            began, connection = time.monotonic(), fork.connect()
            for request, value in zip(asked, truth):
                expect(f"{request}", connection.rpc(*request), value)
            read, requests = time.monotonic() - began, proxy.requests
            earlier = chance.sample(reads(names, chance, None), EARLIER)
            for request in [(*request[:-1], hex(chance.randrange(1, head))) for request in earlier]:
                expect(f"{request}", connection.rpc(*request), chain.server.rpc(*request))
            began = time.monotonic()
            hashes = [transact(fork, names, chance) for _ in range(TRANSACTIONS)]
            receipts = [fork.rpc("eth_getTransactionReceipt", hash) for hash in hashes]
            sent = time.monotonic() - began
            expect("transactions without a receipt", receipts.count(None), 0)
            succeeded = sum(receipt["status"] == "0x1" for receipt in receipts)
            accounts, newest = touched(fork, hashes), hex(forks.head(fork))
            for _ in range(TRANSACTIONS):
                account, slot = names.slot(chance)
                accounts[account] = sorted({slot, *accounts.get(account, [])})
            proved = verify(fork, accounts, newest)
            latest = [fork.rpc(*request[:-1], "latest") for request in asked]
            memory = fork.memory("VmHWM")
            fork.stop()
        total = proxy.requests
    run(options.server, "verify", "--data-dir", data)
    chain.server.kill()
    with forks.dev(options, "--data-dir", data, "--offline") as offline:
        connection = offline.connect()
        for request, value, later in zip(asked, truth, latest):
            expect(f"{request} offline", connection.rpc(*request), value)
            expect(f"{request} offline, at the head", connection.rpc(*request[:-1], "latest"), later)
        for hash, receipt in zip(hashes, receipts):
            expect(f"the receipt of {hash} offline", connection.rpc("eth_getTransactionReceipt", hash), receipt)
        expect("values that proofs prove offline", verify(offline, accounts, newest), proved)
        seconds = offline.seconds
        offline.stop()
    nodes.check(True, f"forked at {head} in {started:.2f} s; {len(asked)} reads as the chain has them in {read:.2f} s ({requests} requests); {TRANSACTIONS} "
                      f"transactions, {succeeded} of them successful, in {sent:.2f} s; proofs of {proved} values verify; {total} requests in all, at most "
                      f"{memory >> 20} MiB of memory, {size(data) >> 10} KiB on disk; offline after {seconds:.2f} s, everything is there")


def part(begin):
    def play(options):
        if prove is None:
            raise Missing("rlp or eth-utils is not installed: pip install rlp eth-utils pycryptodome")
        with forks.folder() as work, begin(options, work) as chain:
            if chain is None:
                print("  skipped: --reth names no program", flush=True)
                return
            compare(options, chain, work)
    play.__doc__ = begin.__wrapped__.__doc__
    return play


def answers(options):
    """all recorded requests to a fork of the recorded chain, and to the chain itself"""
    # The state of a simulation must be that of the chain, so the fork's accounts get their balances back.
    with forks.folder() as work, recorded(options, work) as chain, forks.dev(options, "--fork-url", chain.server.url, *chain.options) as fork:
        for account in fork.rpc("eth_accounts"):
            fork.rpc("anvil_setBalance", account, chain.server.rpc("eth_getBalance", account, "latest"))
        asked, different = 0, []
        for file in sorted((SHARED / "conformance/rpc").glob("*/*.io")):
            if f"{file.parent.name}/{file.stem}" in OTHERWISE or file.parent.name in OTHERWISE:
                continue
            for request in (line[2:].strip() for line in file.read_text().splitlines() if line.startswith(">>")):
                results = [json.loads(nodes.fetch(server.url, body=request.encode())[1]) for server in (fork, chain.server)]
                asked += 1
                if results[0] != results[1]:
                    different.append(file)
                    print(f"       {file.parent.name}/{file.stem}: {request[:120]}\n         fork {json.dumps(results[0])[:300]}\n"
                          f"         chain {json.dumps(results[1])[:300]}", flush=True)
        nodes.check(not different, f"{asked} requests, {len(different)} responses differ")


PARTS = {"answers": answers} | {begin.__name__: part(begin) for begin in (recorded, dev20k, generated, reth, anvil)}


def arguments(parser):
    parser.add_argument("--reth", type=Path, help="the program of reth, for `reth`")
    parser.add_argument("--faults", action="store_true", help="each fifth message to the other chain fails: 429, 503, a cut connection, half a response")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="of everything random [default: random]")


if __name__ == "__main__":
    nodes.main(__doc__, PARTS, arguments=arguments)
