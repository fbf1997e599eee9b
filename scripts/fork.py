#!/usr/bin/env python3
"""Forks of a chain behind a proxy: what is promised in docs/forking.md, checked and measured.

    scripts/fork.py [--bin FOLDER] [--rounds N] [--seed SEED] [PART…]

The other chain is one of this program. Between both is a proxy that delays responses, fails, or lies. `trips` runs anvil beside it.
"""

import contextlib
import http.client
import http.server
import json
import random
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
# What a fork of anvil's chain needs: it has no contracts of EIP-7002 and EIP-7251, which blocks need from Prague on.
OF_ANVIL = ["--hardfork", "cancun"]
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
    """100,000 slots are read: memory, and what a start without the other chain finds of them."""
    slots, step, target = options.rounds or 100_000, 500, f"0x{0x50a1:040x}"
    storage = {"0x" + word(slot): "0x" + word(slot * 3 + 1) for slot in range(slots)}
    with folder() as work:
        upstream, _ = begin(options, work, {target: {"balance": "0x0", "nonce": "0x1", "code": SUMS, "storage": storage}})

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
                fork.stop()
        size = sum(path.stat().st_size for path in (work / "fork").rglob("*") if path.is_file()) >> 20
        with dev(options, "--data-dir", work / "fork", "--offline") as offline:
            seconds = offline.seconds
            read_all(offline)
            check(True, f"a start without the other chain finds all of them ({size} MiB; start {seconds:.2f} s, memory {offline.memory() >> 20} MiB)")


def questions(world, first):
    """What is asked of forks whose server fails or lies."""
    contract, last = world.contracts[2], world.contracts[-1]
    transaction = lambda block: {"fromBlock": block, "toBlock": block}
    return [
        ("eth_getBalance", ACCOUNTS[7], "latest"), ("eth_getCode", contract, "latest"), ("eth_getStorageAt", contract, "0x1", "latest"),
        ("eth_getProof", contract, ["0x1", "0x9"], hex(first)), ("eth_getProof", last, ["0x2"], hex(first - 3)),
        ("eth_call", {"to": contract, "data": stores([(1, 0), (20, 5)])}, "latest"), ("eth_getBlockByNumber", hex(first - 5), True),
        ("eth_getBlockByNumber", hex(first), True), ("eth_getBlockReceipts", hex(first - 6)), ("eth_getLogs", transaction(hex(first - 4))),
        ("eth_getStorageAt", contract, "0x2", hex(first - 2)), ("eth_getTransactionCount", ACCOUNTS[6], hex(first - 7)),
        ("eth_feeHistory", "0x3", hex(first - 1), [50]),
    ]


def without_claims(value):
    """Returns a result without what nothing proves."""
    if isinstance(value, dict):
        return {name: without_claims(inner) for name, inner in value.items() if name != "totalDifficulty"}
    return [without_claims(inner) for inner in value] if isinstance(value, list) else value


def ask(server, asked, truth):
    """Asks, and returns how many results are right and which requests failed. A wrong result ends the script."""
    right, problems = 0, []
    for request in asked:
        response = json.loads(nodes.fetch(server.url, body=json.dumps(message(*request)).encode())[1])
        if "error" not in response:
            expect(f"{request}", without_claims(response["result"]), truth[json.dumps(request)])
            right += 1
        elif response["error"]["code"] in (-32002, -32000, -32603):
            problems.append((request, response["error"]))
        else:
            raise Failure(f"{request}: {response['error']}")
    return right, problems


def only_unavailable(name, problems):
    for request, error in problems:
        if error["code"] != -32002 or len(error["message"]) < 20:
            raise Failure(f"{name}: {request}: {error}")


class Every:
    """Is true at each n-th request."""

    def __init__(self, n):
        self.n, self.count, self.lock = n, 0, threading.Lock()

    def __call__(self):
        with self.lock:
            self.count += 1
            return self.count % self.n == 0


def failing(how):
    """A fault: each third message fails in this way."""
    is_next = Every(3)
    return lambda message, forward: how() if is_next() else ok(forward(message))


def altering(method, change):
    """A fault that changes the results of a method."""
    def one(request, response):
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


def refusing(method, error, only=lambda request: True):
    """A fault that refuses requests."""
    def one(request, forward):
        if method(request["method"]) and only(request):
            return {"jsonrpc": "2.0", "id": request["id"], "error": error}
        return forward(request)
    return lambda message, forward: ok(each(message, lambda request: one(request, forward)))


def leaves(value, path=()):
    """Yields the paths of the leaves of a result."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))
    else:
        yield path


def altered(value, path):
    """Returns a result in which the leaf at a path is another one."""
    if not path:
        if not isinstance(value, str) or len(value) < 3:
            return "0x1" if value is None else None
        return value[:-1] + ("0" if value[-1] != "0" else "1")
    copy = dict(value) if isinstance(value, dict) else list(value)
    try:
        copy[path[0]] = altered(copy[path[0]], path[1:])
    except (KeyError, IndexError, TypeError):
        pass
    return copy


def faults(options):
    """A server that limits, fails, is late, forgets or lies: every answer is right or a clear problem, and no lie is kept."""
    chance = chance_of(options)
    quick = ("--fork-retry-backoff", 20, "--timeout", 5000)
    with folder() as work:
        upstream, _ = begin(options, work)
        with upstream:
            world = with_history(upstream, chance, 30)
            first = head(upstream)
            asked = questions(world, first)
            as_of = lambda request: tuple(hex(first) if part == "latest" else part for part in request)
            truth = {json.dumps(request): without_claims(upstream.rpc(*as_of(request))) for request in asked}
            # The accounts of the fork have a balance of their own.
            upstream.rpc("anvil_mine", "0xc8")

            def attempt(name, fault, *arguments, all_right=False, urls=()):
                """Asks through a proxy with a fault, and then without it what failed."""
                with Proxy(upstream.url, fault=fault) as proxy:
                    servers = [argument for url in (proxy.url, *urls) for argument in ("--fork-url", url)]
                    try:
                        fork = dev(options, *servers, "--fork-block-number", first, "--accounts", 5, *quick, *arguments)
                    except Failure as failure:
                        if all_right:
                            raise
                        return None, str(failure)
                    with fork:
                        right, problems = ask(fork, asked, truth)
                        only_unavailable(name, problems)
                        if all_right and problems:
                            raise Failure(f"{name}: {problems[0]}")
                        proxy.fault = None
                        expect(f"{name}, right answers afterwards", ask(fork, asked, truth)[0], len(asked))
                        return right, problems[0][1]["message"] if problems else ""

            for name, how in {
                "429 with Retry-After": lambda: (429, {"Retry-After": 1}, b"slow down"), "503": lambda: (503, {}, b"overloaded"),
                "502 with a page": lambda: (502, {"Content-Type": "text/html"}, b"<html>bad gateway</html>"), "cut connections": lambda: None,
                "half a response": lambda: (200, {}, b'{"jsonrpc":"2.0","id":'),
            }.items():
                attempt(name, failing(how), all_right=True)
                check(True, f"{name}, each third time: all answers are right")
            limited = {"code": -32005, "message": "rate limit exceeded"}
            turn = Every(3)
            attempt("an error of JSON-RPC", refusing(lambda method: True, limited, lambda request: turn()), all_right=True)
            check(True, "the error -32005, each third time: all answers are right")

            newest = {"code": -32000, "message": "header not found"}
            turn_of_stale = Every(2)
            stale = refusing(lambda method: True, newest, lambda request: turn_of_stale())
            right, text = attempt("a stale head", stale)
            check(True, f"header not found, each second time: {right} of {len(asked)} answers are right; {text[:160]}")

            state = ("eth_getProof", "eth_getCode", "eth_getBalance", "eth_getStorageAt", "eth_call")
            pruned = {"code": -32000, "message": "missing trie node (path ) state is not available"}
            right, text = attempt("states of 128 blocks", refusing(lambda method: method in state, pruned))
            check("state" in text or "account" in text, f"states that are gone: {right} of {len(asked)} answers are right; {text[:200]}")

            for method, what in ("eth_getProof", "proofs"), ("eth_getCode", "code"):
                wrong = altering(method, lambda result: altered(result, next(path for path in leaves(result) if path[:1] in ((), ("accountProof",)))))
                right, text = attempt(f"wrong {what}", wrong, "--retries", 0)
                check(True, f"wrong {what}: {right} of {len(asked)} answers are right; {text[:200]}")
                right, _ = attempt(f"wrong {what}, and another server", wrong, "--retries", 0, urls=[upstream.url], all_right=True)
                check(right == len(asked), f"wrong {what} by one of two servers: all answers are right")

            lies, refused = 0, 0
            for method, sample in {
                "eth_getProof": ("eth_getProof", world.contracts[2], ["0x1", "0x9"], hex(first)),
                "eth_getBlockByNumber": ("eth_getBlockByNumber", hex(first), True), "eth_getBlockByHash": ("eth_getBlockByNumber", hex(first - 5), True),
                "eth_getBlockReceipts": ("eth_getBlockReceipts", hex(first - 6)),
            }.items():
                for path in leaves(upstream.rpc(*sample)):
                    lies += 1
                    lie = altering(method, lambda result, path=path: result if result is None else altered(result, path))
                    right, text = attempt(f"a lie in {method}: {path}", lie, "--retries", 0)
                    refused += right != len(asked)
            check(True, f"{lies} lies, one in each field: {refused} had a clear problem, the others no effect")


def kills(options):
    """Kills while state is fetched: the folder opens, has what it had, and nothing else."""
    chance, rounds = chance_of(options), options.rounds or 50
    with folder() as work:
        upstream, _ = begin(options, work)
        with upstream, Proxy(upstream.url, 0.002) as proxy:
            world = with_history(upstream, chance, 60)
            first = head(upstream)
            asked = [
                *questions(world, first), *(("eth_getStorageAt", contract, hex(slot), "latest") for contract in world.contracts for slot in range(SLOTS)),
                *(("eth_getBlockByNumber", hex(block), True) for block in range(1, first)),
            ]
            as_of = lambda request: tuple(hex(first) if part == "latest" else part for part in request)
            truth = {json.dumps(request): without_claims(upstream.rpc(*as_of(request))) for request in asked}
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
                                expect("truth", without_claims(connection.rpc(*request)), truth[json.dumps(request)])
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
    parser.add_argument("--rounds", type=int, default=0, help="transactions, slots or kills of a part [default: what it needs]")
    parser.add_argument("--seconds", type=float, default=2, help="seconds of each measurement of a rate [default: 2]")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="of everything random [default: random]")


if __name__ == "__main__":
    nodes.main(__doc__, PARTS, arguments=arguments)
