#!/usr/bin/env python3
"""Forks of a chain behind a proxy: what is promised in docs/forking.md, checked and measured.

    scripts/fork.py [--bin FOLDER] [--rounds N] [--seed SEED] [PART…]

The other chain is one of this program. Between both is a proxy that delays responses, fails, or lies. `trips` runs anvil beside it.
"""

import contextlib
import http.client
import http.server
import itertools
import json
import random
import re
import shutil
import socket
import socketserver
import statistics
import tempfile
import threading
import time
from pathlib import Path

import nodes
from nodes import Anvil, Failure, Server, check, expect, message, run

# Keys of the mnemonic that both chains use: the fork has the first five.
ACCOUNTS = [
    "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", "0x70997970c51812dc3a010c7d01b50e0d17dc79c8", "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc",
    "0x90f79bf6eb2c4f870365e785982e1f101e93b906", "0x15d34aaf54267db7d7c367839aaf71a00a2c6a65", "0x9965507d1a55bcc2695c58ba16fb37d819b0a4dc",
    "0x976ea74026e726554db657fa54763abd0c3a0aa9", "0x14dc79964da2c08b23698b3d3cc7ca32193d9955", "0x23618e81e3f5cdf7f54c3d65f7fbc0abf5b21e8f",
    "0xa0ee7a142d267c1f36714e4a8f75612f20a79720",
]
# Number of slots that contracts use.
SLOTS = 24
# Stores the pairs of a slot and a value in the input, and logs the input with the first slot as topic.
STORES = "5f5b3681101560175780602001358135556040016001565b365f5f375f35365fa100"
# Init code of it that first stores 1 in slot 1.
CREATES_STORES = "0x60016001556022600f5f3960225ff3" + STORES
# Creation of a contract that is gone by the end of the transaction.
CREATES_NOTHING = "0x5fff"
# Returns the sum of the slots from the first word of the input up to the second:
# for (i = CALLDATALOAD(0); i < CALLDATALOAD(32); i++) sum += SLOAD(i)
SUMS = "0x5f5f355b602035811015601957805482019150600101600356" + "5b505f5260205ff3"
TIMESTAMP = 1_700_000_000


def word(value):
    return f"{value:064x}"


def stores(pairs):
    return "0x" + "".join(word(slot) + word(value) for slot, value in pairs)


def number(text):
    return int(text, 16)


class Proxy:
    """Forwards HTTP requests to a server, after a delay, and records when they were under way."""

    def __init__(self, url, latency=0.0, fault=None):
        """`fault` gets the parsed message and a function that forwards it. It returns status, headers and body, or `None` for a cut connection."""
        proxy = self
        self.host, self.latency, self.fault = url.split("//", 1)[1], latency, fault
        self.intervals, self.requests, self.lock = [], 0, threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                began = time.monotonic()
                answered = proxy.answer(self, body)
                with proxy.lock:
                    proxy.intervals.append((began, time.monotonic()))
                    proxy.requests += 1
                if answered is None:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                status, headers, response = answered
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", "Content-Length": len(response), **headers}.items():
                    self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(response)

            def log_message(self, *arguments):
                pass

        class Listener(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *arguments):
                pass

        self.server = Listener(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, handler, body):
        time.sleep(self.latency)
        forward = lambda body: self.forward(handler, body)
        if self.fault:
            return self.fault(json.loads(body), lambda message: json.loads(forward(json.dumps(message).encode())))
        return 200, {}, forward(body)

    def forward(self, handler, body):
        if not hasattr(handler, "upstream"):
            handler.upstream = http.client.HTTPConnection(self.host, timeout=60)
        handler.upstream.request("POST", "/", body, {"Content-Type": "application/json"})
        return handler.upstream.getresponse().read()

    def reset(self):
        with self.lock:
            self.intervals, self.requests = [], 0

    def trips(self):
        """Returns how many of the requests had to wait for one another, and how many there were."""
        with self.lock:
            dependent, end = 0, 0.0
            for began, ended in sorted(self.intervals, key=lambda interval: interval[1]):
                if began >= end:
                    dependent, end = dependent + 1, ended
            return dependent, self.requests


def each(message, change):
    """Applies a function to each request of a message, and returns the message of the responses."""
    return [change(request) for request in message] if isinstance(message, list) else change(message)


def ok(response):
    return 200, {}, json.dumps(response).encode()


class World:
    """Contracts of a chain, and who sends transactions to them."""

    def __init__(self, chance, senders):
        self.chance, self.senders, self.contracts = chance, senders, []

    def send(self, connection, **transaction):
        transaction["from"] = self.chance.choice(self.senders)
        receipt = connection.rpc("eth_getTransactionReceipt", connection.rpc("eth_sendTransaction", transaction))
        expect(f"the status of {transaction}", receipt["status"], "0x1")
        return receipt

    def create(self, connection, slots):
        contract = self.send(connection, data=CREATES_STORES, gas="0x4c4b40")["contractAddress"]
        self.send(connection, to=contract, data=stores([(slot, slot + 1) for slot in range(slots)]), gas="0x4c4b40")
        self.contracts.append(contract)

    def step(self, connection):
        """Sends a transaction of any kind."""
        chance, kind = self.chance, self.chance.randrange(20)
        if kind == 0:
            self.create(connection, chance.randrange(SLOTS))
        elif kind == 1:
            self.send(connection, data=CREATES_NOTHING, value="0x5")
        elif kind < 5:
            self.send(connection, to=f"0x{0x1000 + chance.randrange(1 << 30):040x}", value="0x1")
        elif kind == 5:
            self.send(connection, to=chance.choice(self.senders), value="0x7")
        else:
            # Some transactions mostly delete.
            deletions = 0.9 if kind < 12 else 0.4
            value = lambda: 0 if chance.random() < deletions else chance.randrange(1 << 40)
            pairs = [(chance.randrange(SLOTS), value()) for _ in range(chance.randrange(1, 7))]
            self.send(connection, to=chance.choice(self.contracts), data=stores(pairs), gas="0x4c4b40")


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix="ethnode-fork-") as path:
        yield Path(path)


def dev(options, *arguments):
    return Server(options.server, "dev", "--bare", *arguments)


# Contracts that blocks need (EIP-4788, EIP-2935, EIP-7002, EIP-7251).
SYSTEM = [
    "0x000f3df6d732807ef1319fb7b8bb8522d0beac02", "0x0000f90827f1c53a10cb7a02335b175320002935", "0x00000961ef480eb55e80d19ad83579a64c007002",
    "0x0000bbddc7ce488642fb579f8b00f3a590007251",
]
# The newest rules, which forks of unknown networks have as well.
RULES = {
    "chainId": 31337, "terminalTotalDifficulty": 0,
    **{f"{name}Block": 0 for name in ("homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople", "petersburg", "istanbul", "berlin", "london")},
    **{f"{name}Time": 0 for name in ("shanghai", "cancun", "prague", "osaka", "bpo1", "bpo2")},
    "blobSchedule": {
        "cancun": {"target": 3, "max": 6, "baseFeeUpdateFraction": 3338477}, "prague": {"target": 6, "max": 9, "baseFeeUpdateFraction": 5007716},
        "osaka": {"target": 6, "max": 9, "baseFeeUpdateFraction": 5007716}, "bpo1": {"target": 10, "max": 15, "baseFeeUpdateFraction": 8346193},
        "bpo2": {"target": 14, "max": 21, "baseFeeUpdateFraction": 11684671},
    },
}


def begin(options, work, alloc=None):
    """Starts a chain with accounts, from a genesis file that this writes. Returns its server and the file."""
    with dev(options) as plain:
        contracts = {address: {"code": plain.rpc("eth_getCode", address, "latest"), "balance": "0x0", "nonce": "0x1"} for address in SYSTEM}
    accounts = {address: {"balance": hex(10_000 * 10**18)} for address in ACCOUNTS}
    genesis = work / "genesis.json"
    header = {"timestamp": hex(TIMESTAMP), "gasLimit": hex(30_000_000), "difficulty": "0x0", "baseFeePerGas": hex(10**9), "nonce": "0x0"}
    genesis.write_text(json.dumps({"config": RULES, **header, "alloc": {**contracts, **accounts, **(alloc or {})}}))
    return dev(options, "--genesis", genesis), genesis


def with_history(server, chance, steps):
    """Gives a chain contracts with storage, and transactions that change it. Accounts 0 to 4 do nothing."""
    world, connection = World(chance, ACCOUNTS[5:]), server.connect()
    for slots in (1, 2, 3, 5, 9, 16, SLOTS):
        world.create(connection, slots)
    for _ in range(steps):
        world.step(connection)
    return world


def proof(server, address, block):
    return server.rpc("eth_getProof", address, [hex(slot) for slot in range(SLOTS)], hex(block))


def equal(options):
    """1,000 random transactions on a fork: roots, proofs, logs and receipts are those of a full import of the blocks."""
    chance, transactions = chance_of(options), options.rounds or 1_000
    with folder() as work:
        upstream, genesis = begin(options, work)
        with upstream, Proxy(upstream.url) as proxy:
            world = with_history(upstream, chance, 200)
            first = head(upstream)
            with dev(options, "--fork-url", proxy.url, "--accounts", 5, "--data-dir", work / "fork") as fork:
                world.senders, connection = ACCOUNTS[:5], fork.connect()
                for _ in range(transactions):
                    world.step(connection)
                # At last, all slots of some contracts, one after the other.
                for contract in world.contracts[:7]:
                    for slot in chance.sample(range(SLOTS), SLOTS):
                        world.send(connection, to=contract, data=stores([(slot, 0)]), gas="0x4c4b40")
                last = head(fork)
                raw = [server.rpc("debug_getRawBlock", hex(block)) for server, blocks in (
                    (upstream, range(1, first + 1)), (fork, range(first + 1, last + 1))) for block in blocks]
                (work / "chain.rlp").write_bytes(b"".join(bytes.fromhex(block[2:]) for block in raw))
                with Server(options.server, "run", "--data-dir", ":memory:", "--genesis", genesis, "--import", work / "chain.rlp") as whole:
                    expect("the head of the import", head(whole), last)
                    for address in [*world.contracts, *ACCOUNTS, f"0x{1234:040x}"]:
                        for block in sorted({first, (first + last) // 2, last, *chance.sample(range(first, last), 3)}):
                            expect(f"the proof of {address} as of {block}", proof(fork, address, block), proof(whole, address, block))
                    for block in range(first + 1, last + 1):
                        expect(f"the receipts of {block}", *(server.rpc("eth_getBlockReceipts", hex(block)) for server in (fork, whole)))
                    for topics in [], [word(0)], [word(3)]:
                        search = {"fromBlock": "0x0", "toBlock": "latest", "topics": ["0x" + topic for topic in topics]}
                        expect(f"the logs with {topics}", *(server.rpc("eth_getLogs", search) for server in (fork, whole)))
                check(True, f"{last - first} blocks with {len(world.contracts)} contracts agree; the fork sent {proxy.requests} requests")
                fork.stop()
            run(options.server, "verify", "--data-dir", work / "fork")
            check(True, "verify holds")


def reader_contracts():
    """Accounts of a genesis: five contracts that read ten slots each, of which the first also calls the others."""
    addresses = [f"0x{0xc0de0000 + index:040x}" for index in range(5)]
    storage = {"0x" + word(slot): "0x" + word(slot + 1) for slot in range(10)}
    # sum += SLOAD(slot) for ten slots
    reads = "5f" + "".join(f"60{slot:02x}5401" for slot in range(10))
    returns = "5f5260205ff3"
    # PUSH1 32, PUSH0, PUSH0, PUSH0, PUSH20 address, GAS, STATICCALL, POP, PUSH0, MLOAD, ADD
    calls = "".join(f"60205f5f5f73{address[2:]}5afa505f5101" for address in addresses[1:])
    # Each has another code.
    codes = [reads + calls + returns, *(reads + returns + f"{index:02x}" for index in range(1, 5))]
    contract = lambda code: {"balance": "0x0", "nonce": "0x1", "code": "0x" + code, "storage": storage}
    return addresses[0], {address: contract(code) for address, code in zip(addresses, codes)}


def rate(connection, request, seconds):
    """Returns how many requests are answered in a second."""
    sent, end = 0, time.monotonic() + seconds
    data = connection.post_bytes("/", json.dumps(request))
    began = time.monotonic()
    while time.monotonic() < end:
        connection.send(data)
        sent += 1
    return sent / (time.monotonic() - began)


def trips(options):
    """50 ms away: how often a cold call waits, beside anvil; the first answer; the rate of warm calls beside a chain that is no fork."""
    latency, (target, alloc) = 0.05, reader_contracts()
    call = message("eth_call", {"to": target}, "latest")
    expected = "0x" + word(5 * 55)
    with folder() as work:
        upstream, _ = begin(options, work, alloc)
        with upstream, Proxy(upstream.url, latency) as proxy:
            upstream.rpc("anvil_mine", "0x5")
            began = time.monotonic()
            fork = dev(options, "--fork-url", proxy.url, "--data-dir", work / "fork")
            with fork:
                expect("the balance", fork.rpc("eth_getBalance", ACCOUNTS[0], "latest"), hex(10_000 * 10**18))
                seconds, (dependent, requests) = time.monotonic() - began, proxy.trips()
                check(dependent <= 3, f"first answer after {seconds:.2f} s, {dependent} dependent round trips (goal 3), {requests} requests")
                proxy.reset()
                began = time.monotonic()
                expect("the sum", fork.rpc(call["method"], *call["params"]), expected)
                seconds, (dependent, requests) = time.monotonic() - began, proxy.trips()
                check(dependent <= 4, f"cold call: {seconds:.2f} s, {dependent} dependent round trips (goal 4), {requests} requests")
                proxy.reset()
                expect("the sum", fork.rpc(call["method"], *call["params"]), expected)
                check(proxy.trips() == (0, 0), f"warm call: {proxy.trips()[1]} requests (goal 0)")
                fork.rpc("eth_sendTransaction", {"from": ACCOUNTS[0], "to": target, "gas": "0x4c4b40"})
                measured = [[rate(server.connect(), call, options.seconds) for server in (fork, upstream)] for _ in range(5)]
                ratio = statistics.median(of_fork / of_chain for of_fork, of_chain in measured)
                fastest = [max(column) for column in zip(*measured)]
                check(ratio >= 0.9, f"warm calls: {ratio:.2f} of the rate of the chain itself (goal 0.9); {fastest[0]:.0f} and {fastest[1]:.0f}/s")
                fork.stop()
            times = []
            for _ in range(5):
                began = time.monotonic()
                with dev(options, "--data-dir", work / "fork", "--offline") as offline:
                    expect("the sum", offline.rpc(call["method"], *call["params"]), expected)
                    times.append(time.monotonic() - began)
            check(statistics.median(times) <= 0.3, f"offline, from the folder: first call after {statistics.median(times):.2f} s (goal 0.3)")
            proxy.reset()
            began = time.monotonic()
            with Anvil("--fork-url", proxy.url, "--no-storage-caching", "--no-rate-limit") as anvil:
                expect("the balance", anvil.rpc("eth_getBalance", ACCOUNTS[0], "latest"), hex(10_000 * 10**18))
                seconds, (dependent, requests) = time.monotonic() - began, proxy.trips()
                print(f"       anvil: first answer after {seconds:.2f} s, {dependent} dependent round trips, {requests} requests")
                proxy.reset()
                began = time.monotonic()
                expect("anvil's sum", anvil.rpc(call["method"], *call["params"]), expected)
                seconds, (dependent, requests) = time.monotonic() - began, proxy.trips()
                print(f"       anvil: cold call: {seconds:.2f} s, {dependent} dependent round trips, {requests} requests")
                proxy.reset()
                anvil.rpc(call["method"], *call["params"])
                print(f"       anvil: warm call: {proxy.trips()[1]} requests; {rate(anvil.connect(), call, options.seconds):.0f} calls/s")


def memory(options):
    """100,000 slots are read: memory, what a start without the other chain finds of them, and a dump of them that is loaded elsewhere."""
    slots, step, target = options.rounds or 100_000, 500, f"0x{0x50a1:040x}"
    storage = {"0x" + word(slot): "0x" + word(slot * 3 + 1) for slot in range(slots)}
    with folder() as work:
        upstream, _ = begin(options, work, {target: {"balance": "0x0", "nonce": "0x1", "code": SUMS, "storage": storage}})
        dump = work / "dump"

        def read_all(server):
            connection = server.connect()
            for start in range(0, slots, step):
                got = connection.rpc("eth_call", {"to": target, "data": "0x" + word(start) + word(start + step)}, "latest")
                expect(f"the sum from {start} on", number(got), sum(slot * 3 + 1 for slot in range(start, start + step)))

        with upstream:
            with dev(options, "--fork-url", upstream.url, "--data-dir", work / "fork") as fork:
                before, began = fork.memory(), time.monotonic()
                read_all(fork)
                seconds, after, peak = time.monotonic() - began, fork.memory() >> 20, fork.memory("VmHWM") >> 20
                text = f"{slots} slots in {seconds:.1f} s: memory {before >> 20} MiB before, {after} MiB after, at most {peak} MiB (goal 300)"
                check(peak < 300, text)
                dump.write_text(fork.rpc("anvil_dumpState"))
                check(True, f"a dump of them: {dump.stat().st_size >> 20} MiB, memory at most {fork.memory('VmHWM') >> 20} MiB")
                fork.stop()
        with dev(options) as loaded:
            expect("the load of the dump", loaded.rpc("anvil_loadState", dump.read_text()), True)
            read_all(loaded)
            check(True, f"a chain that loads it finds all of them (memory at most {loaded.memory('VmHWM') >> 20} MiB)")
        size = sum(path.stat().st_size for path in (work / "fork").rglob("*") if path.is_file()) >> 20
        with dev(options, "--data-dir", work / "fork", "--offline") as offline:
            seconds = offline.seconds
            read_all(offline)
            check(True, f"a start without the other chain finds all of them ({size} MiB; start {seconds:.2f} s, memory {offline.memory() >> 20} MiB)")


# Returns the last of seven slots, each of which has the number of the next one.
CHASER, CHASES = f"0x{0xc4a5e:040x}", "5f" + "54" * 7 + "5f5260205ff3"
CHASED = {"0x" + word(slot): "0x" + word(value) for slot, value in zip((0, 7, 9, 11, 13, 15, 17), (7, 9, 11, 13, 15, 17, 99))}


def questions(world, first):
    """What is asked of forks whose server fails or lies."""
    contract, last, at = world.contracts[2], world.contracts[-1], hex(first)
    call = {"to": contract, "data": stores([(1, 0), (20, 5)])}
    return [
        ("eth_getBalance", ACCOUNTS[7], at), ("eth_getCode", contract, at), ("eth_getStorageAt", contract, "0x1", at),
        ("eth_getProof", contract, ["0x1", "0x9"], at), ("eth_getProof", last, ["0x2"], hex(first - 3)),
        ("eth_call", call, at), ("eth_estimateGas", call, at), ("eth_call", {"to": CHASER}, at), ("eth_getBlockByNumber", hex(first - 5), True),
        ("eth_getBlockByNumber", at, True), ("eth_getBlockReceipts", hex(first - 6)), ("eth_getLogs", {"fromBlock": hex(first - 4), "toBlock": hex(first - 4)}),
        ("eth_getStorageAt", contract, "0x2", hex(first - 2)), ("eth_getTransactionCount", ACCOUNTS[6], hex(first - 7)),
        ("eth_feeHistory", "0x3", hex(first - 1), [50]),
    ]


def truth_of(server, asked):
    return {json.dumps(request): server.rpc(*request) for request in asked}


def ask(server, asked, truth, may=lambda request, result, expected: False):
    """Asks, and returns how many results are right or may be wrong, and which requests failed. Another result ends the script."""
    right, problems = 0, []
    for request in asked:
        response = json.loads(nodes.fetch(server.url, body=json.dumps(message(*request)).encode())[1])
        # What eth_getTransactionByHash says with null.
        if response.get("error", {}).get("message") == "transaction not found":
            response = {"result": None}
        expected = truth[json.dumps(request)]
        if "result" in response and response["result"] == expected or may(request, response.get("result", response), expected):
            right += 1
        elif "error" in response:
            problems.append((request, response["error"]))
        else:
            raise Failure(f"{request}: {response['result']} instead of {expected}")
    return right, problems


# What a problem must identify.
IDENTIFIED = re.compile(r"account 0x|code of|slot 0x|block 0x|block \d|blocks \d|receipts|transaction 0x|trie node|logs|eth_\w+")


def only_unavailable(name, problems):
    for request, error in problems:
        if error["code"] != -32002 or not IDENTIFIED.search(error["message"]):
            raise Failure(f"{name}: {request}: {error}")


class Every:
    """Is true at each n-th request."""

    def __init__(self, n):
        self.n, self.count, self.lock = n, 0, threading.Lock()

    def __call__(self):
        with self.lock:
            self.count += 1
            return self.count % self.n == 0


def failing(how, n=3):
    """A fault: each n-th message fails in this way."""
    is_next = Every(n)
    return lambda message, forward: how() if is_next() else ok(forward(message))


def failing_in_turn(n):
    """A fault: each n-th message fails, each time in another way."""
    turn = itertools.cycle([
        lambda: (429, {"Retry-After": 1}, b"slow down"), lambda: (503, {}, b"overloaded"), lambda: None, lambda: (200, {}, b'{"jsonrpc":"2.0","id":')])
    lock = threading.Lock()

    def fail():
        with lock:
            how = next(turn)
        return how()
    return failing(fail, n)


def altering(method, change, refused=()):
    """A fault that changes the results of a method, and refuses others, so that it is used."""
    def one(request, response):
        if request["method"] in refused:
            return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "the method does not exist"}}
        if request["method"] == method and "result" in response:
            response["result"] = change(response["result"])
        return response

    def fault(message, forward):
        response = forward(message)
        if not isinstance(message, list):
            return ok(one(message, response))
        by_id = {entry["id"]: entry for entry in response}
        return ok([one(request, by_id[request["id"]]) for request in message])
    return fault


def refusing(refuses, error):
    """A fault that refuses requests."""
    one = lambda request, forward: {"jsonrpc": "2.0", "id": request["id"], "error": error} if refuses(request) else forward(request)
    return lambda message, forward: ok(each(message, lambda request: one(request, forward)))


def paths(value, path=()):
    """Yields the paths of all parts of a result. Entries of a list have the same path."""
    yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from paths(inner, (*path, name))
    elif isinstance(value, list):
        for inner in value:
            yield from paths(inner, (*path, "*"))


def at(value, path, change):
    """Returns a result with the parts at a path changed; `change` returns a list of what replaces a part."""
    if not path:
        return change(value)
    if isinstance(value, dict) and path[0] in value:
        changed = at(value[path[0]], path[1:], change)
        return [{**{name: inner for name, inner in value.items() if name != path[0]}, **({path[0]: changed[0]} if changed else {})}]
    if isinstance(value, list) and path[0] == "*":
        return [[changed for inner in value for changed in at(inner, path[1:], change)]]
    return [value]


def other(value):
    """Returns another value of the same kind."""
    if isinstance(value, bool) or value is None:
        return not value if isinstance(value, bool) else "0x1"
    if isinstance(value, str):
        return value + "01" if len(value) < 3 else value[:-1] + ("0" if value[-1] != "0" else "1")
    return [*value, *value] if isinstance(value, list) else {"a": 1}


# How a part of a result is changed.
LIES = {
    "another": lambda value: [other(value)], "null": lambda value: [None], "none": lambda value: [], "empty": lambda value: [type(value)() if value else value],
    "of another kind": lambda value: [{"a": []} if not isinstance(value, dict) else [7]],
}

# Without a server, what was never read does not exist.
UNREAD = {"eth_getBlockByHash", "eth_getTransactionByHash", "eth_getTransactionReceipt", "debug_traceTransaction"}
# The lies that nothing shows (docs/forking.md, "Not verified"), by the method of the other chain: which results they may change, and how.
ABSENT = {((), "null"), ((), "none")}
is_missing = lambda request, result, expected: result is None
lacks_logs = lambda request, result, expected: isinstance(result, list) and all(log in expected for log in result)
UNSHOWN = {
    # The chain id, with which the fork also signs and executes.
    "eth_chainId": (
        {((), name) for name in LIES}, {"eth_chainId", "net_version", "debug_traceTransaction", "mined"}, lambda request, result, expected: True),
    # The rules with which the fork executes. `None` stands for all lies.
    "eth_config": (None, {"eth_call", "eth_estimateGas", "debug_traceTransaction", "mined"}, lambda request, result, expected: True),
    # That there is no block or transaction with a hash.
    "eth_getBlockByHash": (ABSENT, {"eth_getBlockByHash"}, is_missing),
    "eth_getTransactionByHash": (ABSENT, {"eth_getTransactionByHash", "eth_getTransactionReceipt", "debug_traceTransaction"}, is_missing),
    # That a search for logs found all blocks with some.
    "eth_getLogs": ({((), "empty"), (("*",), "none")}, {"eth_getLogs"}, lacks_logs),
}


class Faults:
    """Forks of a chain whose server has faults, and what they must return."""

    def __init__(self, options, work, upstream, world):
        self.options, self.work, self.upstream, self.count = options, work, upstream, 0
        self.first, self.contract, deep = head(upstream), world.contracts[3], 20
        first = self.first
        block = lambda number: upstream.rpc("eth_getBlockByNumber", hex(number), True)
        transactions = [block(first - back)["transactions"][0]["hash"] for back in (1, 8, 9)]
        logs = {"fromBlock": hex(first - 30), "toBlock": hex(first)}
        self.asked = [
            *questions(world, first), ("eth_chainId",), ("net_version",), ("eth_getBlockByNumber", hex(deep), True),
            ("eth_getBalance", ACCOUNTS[6], hex(deep)), ("eth_getBlockReceipts", hex(deep)), ("eth_getBlockByHash", block(first - 8)["hash"], True),
            ("eth_getTransactionByHash", transactions[0]), ("eth_getTransactionReceipt", transactions[1]),
            ("debug_traceTransaction", transactions[2], {"tracer": "callTracer"}), ("eth_getLogs", logs),
            ("eth_getLogs", {**logs, "address": world.contracts[2]}), ("eth_getLogs", {**logs, "topics": ["0x" + word(3)]}),
        ]
        self.truth = truth_of(upstream, self.asked)
        # The paths of the results of the methods that a fork uses.
        self.used = {}

        def record(message, forward):
            response = forward(message)
            by_id = {entry["id"]: entry for entry in (response if isinstance(response, list) else [response])}
            for request in message if isinstance(message, list) else [message]:
                self.used.setdefault(request["method"], set()).update(paths(by_id[request["id"]].get("result")))
            return ok(response)

        with Proxy(upstream.url, fault=record) as proxy, self.fork([proxy]) as fork:
            self.block = None
            expect("answers of an honest server", self.ask(fork, "honest")[0], len(self.asked))
            self.mine(fork)
            self.block = fork.rpc("eth_getBlockByNumber", hex(first + 1), True)
            expect("transactions that were mined", len(self.block["transactions"]), 1)

    def fork(self, servers, data=None, arguments=()):
        urls = [argument for server in servers for argument in ("--fork-url", server.url)]
        place = ("--data-dir", data) if data else ()
        return dev(
            self.options, *urls, "--fork-block-number", self.first, "--accounts", 5, "--fork-retry-backoff", 20, "--timeout", 2000,
            "--call-timeout", "60s", *place, *arguments)

    def mine(self, fork):
        """Has a fork mine a transaction. Returns the error if it does not."""
        timestamp = number(self.truth[json.dumps(("eth_getBlockByNumber", hex(self.first), True))]["timestamp"]) + 100
        fork.rpc("evm_setNextBlockTimestamp", hex(timestamp))
        pairs = stores([(1, 0), (2, 0), (3, 0), (20, 7)])
        send = message("eth_sendTransaction", {"from": ACCOUNTS[0], "to": self.contract, "data": pairs, "gas": "0x4c4b40"})
        return json.loads(nodes.fetch(fork.url, body=json.dumps(send).encode())[1]).get("error")

    def ask(self, fork, name, may=lambda *_: False, mines=True):
        """Asks everything, after a block was mined. Returns how many results are right, or not shown to be wrong, and the problems."""
        problems, right = [], 0
        if self.block and mines and head(fork) == self.first and (error := self.mine(fork)):
            problems.append((("eth_sendTransaction",), error))
        if self.block and head(fork) > self.first:
            mined = fork.rpc("eth_getBlockByNumber", hex(self.first + 1), True)
            if mined != self.block and not may(("mined",), mined, self.block):
                raise Failure(f"{name}: the fork mined {mined} instead of {self.block}")
            right = 1
        answered, refused = ask(fork, self.asked, self.truth, may)
        only_unavailable(name, [*problems, *refused])
        return right + answered, [*problems, *refused]

    def attempt(self, name, fault, *arguments, whole=False, others=(), later=None, recovers=False, may=lambda *_: False, upstream=None):
        """Asks a fork through a proxy with a fault, which begins after the start if `later` is given; then what was kept, without a server; and then
        the fork of an honest server in the same folder. With `whole`, all answers must be right in spite of the fault, with `recovers` once it
        ends. Returns how many answers were right, and the text of a problem."""
        self.count += 1
        data, everything = self.work / f"fork-{self.count}", len(self.asked) + 1
        with Proxy((upstream or self.upstream).url, fault=None if later else fault) as proxy:
            try:
                fork = self.fork([proxy, *others], data, arguments)
            except Failure as failure:
                if whole or later or not IDENTIFIED.search(str(failure)):
                    raise Failure(f"{name}: {failure}") from failure
                return 0, str(failure).strip().splitlines()[-1]
            with fork:
                if later:
                    later(fork)
                    proxy.fault = fault
                right, problems = self.ask(fork, name, may)
                if whole and right != everything:
                    raise Failure(f"{name}: {problems[:1]}")
                if recovers:
                    proxy.fault = None
                    expect(f"{name}: right answers once the fault is over", self.ask(fork, name)[0], everything)
                fork.stop()
        run(self.options.server, "verify", "--data-dir", data)
        # A transaction or a block that was never read does not exist.
        unread = lambda request, result, expected: result is None and request[0] in UNREAD or may(request, result, expected)
        with dev(self.options, "--data-dir", data, "--offline") as offline:
            self.ask(offline, f"{name}, offline", unread, mines=False)
        with self.fork([self.upstream], data, arguments) as honest:
            expect(f"{name}: right answers of an honest server", self.ask(honest, name, may)[0], everything)
        shutil.rmtree(data)
        return right, problems[0][1]["message"] if problems else ""


def faults(options):
    """A server that limits, fails, is late, forgets or lies: every answer is right or a clear problem, and no lie is kept."""
    with folder() as work:
        upstream, genesis = begin(options, work, {CHASER: {"balance": "0x0", "nonce": "0x1", "code": "0x" + CHASES, "storage": CHASED}})
        with upstream:
            world = with_history(upstream, chance_of(options), 15)
            # So many that nothing proves the hashes of earlier blocks.
            upstream.rpc("anvil_mine", hex(8_200))
            for _ in range(35):
                world.step(upstream.connect())
            all_faults = Faults(options, work, upstream, world)
            for part in passing, stale, forgotten, reorganized, lying:
                part(all_faults, genesis)


def passing(forks, _genesis):
    """Failures of some messages."""
    limited = {"code": -32005, "message": "rate limit exceeded"}
    late = lambda: time.sleep(2.5) or (200, {}, b"{}")
    for name, n, how in (
        ("429 with Retry-After", 10, lambda: (429, {"Retry-After": 1}, b"slow down")), ("503", 3, lambda: (503, {}, b"overloaded")),
        ("502 with a page", 3, lambda: (502, {"Content-Type": "text/html"}, b"<html>bad gateway</html>")), ("cut connections", 3, lambda: None),
        ("half a response", 3, lambda: (200, {}, b'{"jsonrpc":"2.0","id":')), ("responses after the time limit", 10, late),
    ):
        forks.attempt(name, failing(how, n), whole=True)
        check(True, f"{name}, each {n}th time: all answers are right")
    turn = Every(3)
    forks.attempt("an error of JSON-RPC", refusing(lambda request: turn(), limited), whole=True)
    check(True, "the error -32005, each third time: all answers are right")


def stale(forks, _genesis):
    """A server that now and then has not seen the fork's block yet."""
    def fault_of(turn):
        def one(request, forward):
            if request["method"] in ("eth_chainId", "eth_createAccessList") or not turn():
                return forward(request)
            if request["method"].startswith("eth_getBlockBy"):
                return {"jsonrpc": "2.0", "id": request["id"], "result": None}
            return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32000, "message": "header not found"}}
        return lambda message, forward: ok(each(message, lambda request: one(request, forward)))
    may = lambda request, result, expected: request[0] == "eth_getBlockByHash" and result is None
    everything = len(forks.asked) + 1
    _, text = forks.attempt("a stale head at the start", fault_of(lambda: True))
    check("does not have" in text, f"a stale head at the start: {text[-160:]}")
    right, text = forks.attempt("a stale head later", fault_of(Every(2)), later=lambda fork: None, may=may)
    check(right < everything, f"a stale head later, each second time: {right} of {everything} answers are right; {text[:160]}")
    forks.attempt("a stale head of one of two servers", fault_of(lambda: True), whole=True, others=[forks.upstream])
    check(True, "a stale head of one of two servers: all answers are right")


def forgotten(forks, _genesis):
    """A server that keeps the states of 128 blocks, and makes 200."""
    state, everything = ("eth_getProof", "eth_getCode", "eth_getBalance", "eth_getStorageAt", "eth_call", "eth_createAccessList"), len(forks.asked) + 1
    of = lambda block: forks.upstream.rpc("eth_getBlockByNumber", hex(block), False)["hash"]
    numbers = {of(block): block for block in (20, *range(forks.first - 10, forks.first + 1))}

    def forgets(request):
        block = request["params"][-1] if request["params"] else None
        if request["method"] not in state or block == "latest":
            return False
        asked = numbers[block["blockHash"]] if isinstance(block, dict) else number(block)
        return asked <= head(forks.upstream) - 128
    fault = refusing(forgets, {"code": -32000, "message": "missing trie node (path ) state is not available"})
    right, text = forks.attempt("old states are gone", fault)
    check(right < everything, f"old states are gone: {right} of {everything} answers are right; {text[:160]}")
    touched = []

    def later(fork):
        touched.append(ask(fork, forks.asked[:4], forks.truth)[0])
        forks.upstream.rpc("anvil_mine", "0xc8")
    # Of what it has read, it makes a block without a state root.
    may = lambda request, result, expected: request[0] == "mined" and number(result["stateRoot"]) == 0
    right, text = forks.attempt("states of 128 blocks", fault, later=later, may=may)
    check(4 <= right < everything, f"the fork's state is gone after the start: {right} of {everything} answers are right; {text[:200]}")
    forks.attempt("states of 128 blocks of one of two servers", fault, whole=True, others=[forks.upstream])
    check(True, "the fork's state is gone from one of two servers: all answers are right")


def reorganized(forks, genesis):
    """The fork's block leaves the other chain."""
    raw = [forks.upstream.rpc("debug_getRawBlock", hex(block)) for block in range(1, forks.first + 1)]
    chain, data = forks.work / "chain.rlp", forks.work / "reorganized"
    chain.write_bytes(b"".join(bytes.fromhex(block[2:]) for block in raw))
    run(forks.options.server, "import", "--data-dir", data, "--genesis", genesis, chain)
    with dev(forks.options, "--data-dir", data) as other:
        def later(fork):
            expect("what is known", ask(fork, forks.asked[:4], forks.truth)[0], 4)
            other.rpc("anvil_rollback", 20)
            other.rpc("anvil_setBalance", ACCOUNTS[7], "0x1")
            other.rpc("anvil_mine", "0x40")
        # What was in the blocks that left the chain is not found any more.
        may = lambda request, result, expected: request[0] in UNREAD and result is None or request[0] == "eth_getLogs" and lacks_logs(request, result, expected)
        everything = len(forks.asked) + 1
        right, text = forks.attempt("a reorganized block", lambda message, forward: ok(forward(message)), later=later, may=may, upstream=other)
        check(4 <= right < everything, f"the fork's block is reorganized: {right} of {everything} answers are right; {text[:200]}")


def lying(forks, _genesis):
    """Lies in each field of each response."""
    everything = len(forks.asked) + 1
    # Without eth_getBlockReceipts, each receipt is requested. debug_storageRangeAt and debug_accountRange only matter in tries too deep for a script.
    receipt = forks.upstream.rpc("eth_getTransactionReceipt", next(request[1] for request in forks.asked if request[0] == "eth_getTransactionReceipt"))
    forks.used["eth_getTransactionReceipt"] = set(paths(receipt))
    expect("the methods that are used", set(forks.used), {
        "eth_chainId", "eth_getBlockByNumber", "eth_getBlockByHash", "eth_getProof", "eth_getCode", "eth_getBlockReceipts", "eth_getTransactionReceipt",
        "eth_getTransactionByHash", "eth_getLogs", "eth_createAccessList", "eth_config",
    })
    for method, all_paths in sorted(forks.used.items()):
        # Most lies begin after the start, which would end with a problem.
        whens = {"another": (True, False), **dict.fromkeys(LIES.keys() - {"another"}, (False,))}
        lies = [(path, name, first) for path in sorted(all_paths) for name in LIES for first in ((True,) if method == "eth_chainId" else whens[name])]
        refused, texts = 0, {}
        if forks.options.rounds:
            lies = random.Random(forks.options.seed).sample(lies, min(forks.options.rounds, len(lies)))
        unshown, changed, how = UNSHOWN.get(method, (set(), set(), None))
        replaced = ("eth_getBlockReceipts",) if method == "eth_getTransactionReceipt" else ()
        for path, name, first in lies:
            later = None if first else lambda fork: None
            is_unshown = unshown is None or (path, name) in unshown
            may = lambda request, result, expected: is_unshown and request[0] in changed and how(request, result, expected)
            fault = altering(method, lambda result: (at(result, path, LIES[name]) or [None])[0], replaced)
            right, text = forks.attempt(f"a lie in {method}: {'.'.join(path)}: {name}", fault, "--retries", 0, later=later, may=may)
            refused += right != everything
            texts.setdefault(re.sub(r"0x[0-9a-f]+|\d+", "…", text), text)
        # What a call reads is only a guess, and rules may stay the same.
        check(
            refused > 0 or method in ("eth_createAccessList", "eth_config") or forks.options.rounds,
            f"{method}: {len(lies)} lies, of which {refused} had a problem, the others no effect; {max(texts.values(), key=len)[:240]}")
        fault = altering(method, lambda result: at(result, (), LIES["of another kind"])[0], replaced)
        forks.attempt(f"lies in {method} by one of two servers", fault, "--retries", 0, whole=True, others=[forks.upstream])
    check(True, "each of them by one of two servers: all answers are right")


def kills(options):
    """Kills while state is fetched: the folder opens, has what it had, and nothing else."""
    chance, rounds = chance_of(options), options.rounds or 50
    with folder() as work:
        upstream, _ = begin(options, work)
        with upstream, Proxy(upstream.url, 0.002) as proxy:
            world = with_history(upstream, chance, 60)
            first = head(upstream)
            asked = [
                *questions(world, first), *(("eth_getStorageAt", contract, hex(slot), hex(first)) for contract in world.contracts for slot in range(SLOTS)),
                *(("eth_getBlockByNumber", hex(block), True) for block in range(1, first)),
            ]
            truth = truth_of(upstream, asked)
            answered, found = {}, 0
            for count in range(rounds):
                # A new folder from time to time, so that something is left to fetch.
                if count % 10 == 0:
                    data, answered = work / f"fork-{count}", {}
                with dev(options, "--fork-url", proxy.url, "--fork-block-number", first, "--accounts", 5, "--data-dir", data) as fork:
                    def read(some):
                        with contextlib.suppress(OSError, Failure, ValueError, http.client.HTTPException):
                            connection = fork.connect()
                            for request in some:
                                expect("truth", connection.rpc(*request), truth[json.dumps(request)])
                                answered[json.dumps(request)] = True

                    threads = [threading.Thread(target=read, args=(chance.sample(asked, len(asked)),)) for _ in range(4)]
                    for thread in threads:
                        thread.start()
                    time.sleep(chance.uniform(0.005, 0.4))
                    fork.kill()
                    for thread in threads:
                        thread.join()
                with dev(options, "--data-dir", data, "--offline") as offline:
                    right, problems = ask(offline, asked, truth)
                    only_unavailable("offline", problems)
                    found += right
                    gone = [request for request, _ in problems if json.dumps(request) in answered]
                    if gone:
                        raise Failure(f"{gone[0]} was answered before the kill, and is not there: {dict(map(lambda p: (str(p[0]), p[1]), problems))[str(gone[0])]}")
                run(options.server, "verify", "--data-dir", data)
            check(True, f"{rounds} kills: every folder opens, and {found} answers without the other chain are right")


def chance_of(options):
    print(f"  --seed {options.seed}", flush=True)
    return random.Random(options.seed)


def head(server):
    return number(server.rpc("eth_blockNumber"))


PARTS = {part.__name__: part for part in (equal, trips, memory, faults, kills)}


def arguments(parser):
    parser.add_argument("--rounds", type=int, default=0, help="transactions, slots, lies in a method, or kills [default: what a part needs]")
    parser.add_argument("--seconds", type=float, default=2, help="seconds of each measurement of a rate [default: 2]")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="of everything random [default: random]")


if __name__ == "__main__":
    nodes.main(__doc__, PARTS, arguments=arguments)
