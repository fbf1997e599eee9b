"""Rates of requests: each scenario compares requests with others, in turn, so that a machine that slows down slows both.
wrk sends with one thread over 16 connections. The ratio is the median of the rounds' ratios of rates; `us` is the server's processor time
for a request in microseconds.
"""

import json
import random
import re
import shlex
import shutil
import statistics
import time
from typing import NamedTuple

from nodes import ALICE, ROOT, Anvil, Failure, Server, check, machine, message, need, run

LUA = ROOT / "scripts/benchmarks/requests.lua"
CONTRACT = "0x5fbdb2315678afecb367f032d93f642f64180aa3"
SLOT = "0x6c31fc15422ebad28aaf9089c306702f67540b53c7eea8b7d2941044b027100f"
ZERO = "0x" + "00" * 32
DISTINCT = 6_000
# Requests in one piece where they are pipelined.
DEPTH = 16


class Chain:
    """A generated chain: its files, and what requests can ask for."""

    def __init__(self, options, blocks, genesis_accounts=0):
        self.blocks = blocks
        self.folder = options.work / f"chain-{blocks}-{genesis_accounts}"
        self.genesis, self.file, names = (self.folder / name for name in ("genesis.json", "chain.rlp", "names"))
        if not names.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            started = time.monotonic()
            holders = min(DISTINCT, blocks * 3 // 10)
            shape = f"--blocks {blocks} --transactions-per-block 3 --holders {holders} --recipients 1000 --slots 1000"
            if genesis_accounts:
                shape = f"--blocks {blocks} --transactions-per-block 20 --genesis-accounts {genesis_accounts}"
            outputs = ["--output", self.file, "--genesis-output", self.genesis, "--names-output", names]
            run(options.bin / "generate", *shape.split(), *outputs)
            print(f"  {blocks} blocks generated in {time.monotonic() - started:.1f} s, {self.file.stat().st_size / 1e6:.0f} MB", flush=True)
        of = {"holder": [], "tag": []}
        for line in names.read_text().splitlines():
            kind, value = line.split()
            of[kind].append(value)
        self.holders = of["holder"]
        self.tags = random.Random(1).sample(of["tag"], min(DISTINCT, len(of["tag"])))

    def old_blocks(self):
        """Blocks at which all accounts exist, followed by thousands of versions."""
        return range(self.blocks // 2, self.blocks * 6 // 10)

    def serve(self, program, data, *more, fresh=True):
        """Starts a server with this chain, which it imports unless it is stored in the folder already."""
        if fresh and data != ":memory:":
            shutil.rmtree(data, ignore_errors=True)
        imported = ["--import", self.file, "--strict"] if fresh else []
        server = Server(program, "run", "--data-dir", data, "--genesis", self.genesis, *imported, *more)
        size = "" if data == ":memory:" else f", folder {sum(file.stat().st_size for file in data.iterdir()) / 2**20:.0f} MiB"
        print(f"  {self.blocks} blocks in {data}: {'import' if fresh else 'start'} {server.seconds:.2f} s, processor time {server.cpu():.1f} s, "
              f"memory {server.memory() / 2**20:.0f} MiB{size}", flush=True)
        return server


class Measured(NamedTuple):
    """Requests per second, processor time of a request in microseconds, and the time in milliseconds within which 99% got a response."""
    rate: float
    cpu: float
    late: float


class Case:
    """One kind of request: path, bodies, and a check of the responses. Bodies that are paths are requested with GET."""

    def __init__(self, path, bodies=None, check=lambda response: True, depth=1, headers=()):
        self.path, self.bodies, self.check, self.depth, self.headers = path, list(bodies or [path]), check, depth, headers

    def measure(self, server, options, seed):
        need("wrk")
        is_path = lambda body: isinstance(body, str)
        file = options.work / "bodies"
        file.write_text("".join((body if is_path(body) else json.dumps(body)) + "\n" for body in self.bodies))
        for body in random.Random(seed).sample(self.bodies, 0 if self.headers else min(3, len(self.bodies))):
            response = server.get(body) if is_path(body) else server.ask(self.path, body)
            if not self.check(response):
                raise Failure(f"{body} got {str(response)[:1000]}")
        before = server.cpu()
        headers = [part for header in self.headers for part in ("-H", header)]
        output = run("wrk", "-t1", "-c16", f"-d{options.seconds}s", *headers, "-s", LUA, server.url, "--", self.path, file, seed, self.depth)
        found = re.search(r"completed (\d+) failed (\d+) seconds ([\d.]+) late ([\d.]+)", output)
        completed, failed, elapsed, late = map(float, found.groups())
        if failed or not completed:
            raise Failure(f"{self.path}: {failed:.0f} of {completed:.0f} requests failed\n{output}")
        return Measured(completed / elapsed, (server.cpu() - before) / completed * 1e6, late * 1e3)


class Row(NamedTuple):
    """A server and a kind of request, those beside them, and the bars: least and greatest ratio, least rate."""
    name: str
    side: tuple
    beside: tuple
    least: float = 0
    most: float = float("inf")
    rate: float = 0


def compare(options, here, there, rows):
    """Measures each row and what is beside it in turn, and prints the medians of the rounds under the titles `here` and `there`."""
    print(f"{machine()}\n\n| Request | {here}, requests/s | us | p99 ms | {there}, requests/s | us | ratio | of its time |\n"
          "|---|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    for row in rows:
        rounds = []
        for number in range(options.rounds):
            pair = [row.side, row.beside][::-1 if number % 2 else 1]
            measured = [case.measure(server, options, number) for server, case in pair]
            rounds.append(measured[::-1 if number % 2 else 1])
        ours, theirs = (Measured(*map(statistics.median, zip(*side))) for side in zip(*rounds))
        ratio, time_ratio = (statistics.median(a[place] / max(b[place], 1e-9) for a, b in rounds) for place in (0, 1))
        print(f"| {row.name} | {ours.rate:,.0f} | {ours.cpu:.1f} | {ours.late:.1f} | {theirs.rate:,.0f} | {theirs.cpu:.1f} | {ratio:.2f} "
              f"| {time_ratio:.2f} |", flush=True)
        if not (row.least <= ratio <= row.most and ours.rate >= row.rate):
            bars = f"{row.least:.2f} to {row.most:.2f}" + (f", {row.rate:,}/s" if row.rate else "")
            check(False, f"{row.name}: {ratio:.2f}, {ours.rate:,.0f}/s; bar {bars}")


def chain_of(options, blocks):
    return Chain(options, options.blocks[0] if options.blocks else blocks)


def http(options):
    """Light reads beside a constant body of the same server, one after the other and pipelined, and /health beside a bare actix server's."""
    genesis, file = options.chain or (lambda chain: (chain.genesis, chain.file))(chain_of(options, 2_000))
    command = ["run", "--data-dir", ":memory:", "--genesis", genesis, "--import", file, *shlex.split(options.server_options)]
    with Server(options.server, *command) as server, Server(options.bin / "examples/bare", port=None) as bare:
        blocks = [f"/getBlockByNumber/{random.randint(0, int(server.get('/blockNumber/')['BlockNumber']))}/false/" for _ in range(DISTINCT)]
        percentiles = {"BlockCount": "20", "NewestBlock": "latest", "RewardPercentiles": [25, 50, 75]}
        reads = [
            ("health", "/health", None, 0.9), ("storage", "/getStorageAt/", [{"Address": CONTRACT, "Position": SLOT, "BlockNumber": "latest"}], 0.9),
            ("balance", f"/getBalance/{ALICE}/?BlockNumber=latest", None, 0.9), ("block", "/getBlockByNumber/", blocks, 0.9),
            ("feeHistory", "/feeHistory/", [percentiles], 0.6),
            ("call", "/call/", [{"Transaction": {"To": CONTRACT, "Data": SLOT}, "BlockNumber": "latest"}], 0.4),
        ]
        rows = [Row("health, beside bare actix", (server, Case("/health")), (bare, Case("/health")), 0.92)]
        for depth, way in ((1, ""), (DEPTH, f", {DEPTH} pipelined")):
            constant = (server, Case("/chainId/", depth=depth))
            rows += [Row(name + way, (server, Case(path, bodies, depth=depth)), constant, 0 if way else least) for name, path, bodies, least in reads]
        compare(options, "this read", "a constant body", rows)


def operations(chain, server):
    """Yields the name of each operation that reads, with its requests over REST and over JSON-RPC, at old blocks."""
    pick = random.Random(3)
    holders = [pick.choice(chain.holders) for _ in range(DISTINCT)]
    heights = [str(pick.choice(chain.old_blocks())) for _ in range(DISTINCT)]
    places = list(zip(holders, heights, strict=True))
    # Hashes of some blocks and of their first transactions.
    blocks = [server.get(f"/getBlockByNumber/{height}/False/")["Block"] for height in heights[:500]]
    hashes = [block["Hash"] for block in blocks]
    sent = [block["Transactions"][0]["Hash"] for block in blocks]

    def tag(height):
        return hex(int(height)) if height.isdigit() else height

    def pair(name, method, bodies, params, check=lambda response: True):
        calls = [message(method, *items) for items in params]
        return name, Case(f"/{name.split()[0]}/", bodies, check), Case("/", calls, lambda response: "result" in response)

    def paths(name, method, *values):
        return pair(name, method, [f"/{name.split()[0].rstrip(',')}/" + "".join(f"{value}/" for value in row) for row in zip(*values)],
                    [[tag(value) if isinstance(value, str) else value for value in row] for row in zip(*values)])

    def logs(length):
        firsts = [pick.randrange(2, chain.blocks - length + 1) for _ in range(DISTINCT)]
        return pair(f"getLogs of {length} blocks", "eth_getLogs",
                    [{"Address": CONTRACT, "FromBlock": str(first), "ToBlock": str(first + length - 1)} for first in firsts],
                    [[{"address": CONTRACT, "fromBlock": hex(first), "toBlock": hex(first + length - 1)}] for first in firsts],
                    lambda response: len(response["Logs"]) >= length)

    def is_word(response):
        return response.get("Value", response.get("Data")) not in (None, ZERO, "0", "0x")

    for name in ("chainId", "blockNumber", "gasPrice", "maxPriorityFeePerGas", "blobBaseFee", "syncing", "clientVersion"):
        yield pair(name, "web3_clientVersion" if name == "clientVersion" else f"eth_{name}", [f"/{name}/"], [[]])
    for name in ("getBalance", "getCode"):
        yield pair(name, f"eth_{name}", [f"/{name}/{holder}/?BlockNumber={height}" for holder, height in places],
                   [[holder, tag(height)] for holder, height in places])
    for name in ("getTransactionCount", "getAccount"):
        yield paths(name, f"eth_{name}", holders, heights)
    yield pair("getStorageAt", "eth_getStorageAt", [{"Address": holder, "Position": ZERO, "BlockNumber": height} for holder, height in places],
               [[holder, ZERO, tag(height)] for holder, height in places], is_word)
    yield pair("getProof", "eth_getProof", [{"Address": holder, "StorageKeys": [ZERO], "BlockNumber": height} for holder, height in places],
               [[holder, [ZERO], tag(height)] for holder, height in places],
               lambda response: response["AccountProof"] and response["StorageProof"][0]["Proof"])
    for name, holds in (("call", is_word), ("estimateGas", lambda response: True)):
        yield pair(name, f"eth_{name}", [{"Transaction": {"To": holder, "Data": ZERO}, "BlockNumber": height} for holder, height in places],
                   [[{"to": holder, "input": ZERO}, tag(height)] for holder, height in places], holds)
    yield logs(10)
    yield logs(100)
    yield pair("getLogs of a rare topic", "eth_getLogs", [{"FromBlock": "0", "ToBlock": "latest", "Topics": [None, None, tag]} for tag in chain.tags],
               [[{"fromBlock": "0x0", "toBlock": "latest", "topics": [None, None, tag]}] for tag in chain.tags],
               lambda response: len(response["Logs"]) == 1)
    yield pair("feeHistory", "eth_feeHistory", [{"BlockCount": "8", "NewestBlock": height, "RewardPercentiles": [25, 75]} for height in heights],
               [["0x8", tag(height), [25, 75]] for height in heights])
    for detail, flag in (("full", True), ("hashes", False)):
        yield paths(f"getBlockByNumber, {detail}", "eth_getBlockByNumber", heights, [flag] * DISTINCT)
    yield paths("getBlockByHash, full", "eth_getBlockByHash", hashes, [True] * DISTINCT)
    for name, method in {"getHeader": "eth_getHeaderByNumber", "getRawHeader": "debug_getRawHeader", "getRawBlock": "debug_getRawBlock",
                         "getRawReceipts": "debug_getRawReceipts"}.items():
        yield paths(name, method, heights)
    for name in ("getBlockReceipts", "getBlockTransactionCountByNumber", "getUncleCountByBlockNumber"):
        yield paths(name, f"eth_{name}", heights)
    for name in ("getBlockTransactionCountByHash", "getUncleCountByBlockHash"):
        yield paths(name, f"eth_{name}", hashes)
    for name in ("getTransactionByHash", "getTransactionReceipt"):
        yield paths(name, f"eth_{name}", sent)
    yield paths("getRawTransaction", "eth_getRawTransactionByHash", sent)
    for name, of in (("getTransactionByBlockNumberAndIndex", heights), ("getTransactionByBlockHashAndIndex", hashes)):
        yield pair(name, f"eth_{name}", [f"/{name}/{block}/0/" for block in of], [[tag(block), "0x0"] for block in of])


def wanted(options, chain, server):
    """The operations that --only chooses by the beginning of their names."""
    return [row for row in operations(chain, server) if row[0].startswith(tuple(options.only or [""]))]


def versions(options):
    """All operations of two builds, over both interfaces."""
    if not options.before:
        raise Failure("versions needs --before PROGRAM")
    chain = chain_of(options, 20_000)
    with (chain.serve(options.before.resolve(), chain.folder / "before", "--api", "eth,debug,web3") as before,
          chain.serve(options.server, chain.folder / "after", "--api", "eth,debug,web3") as after):
        compare(options, "after", "before", [
            Row(f"{name}, {interface}", (after, case), (before, case), 0.97)
            for name, *cases in wanted(options, chain, after) for interface, case in zip(("REST", "JSON-RPC"), cases)])


def interfaces(options):
    """All operations over JSON-RPC beside REST."""
    chain = chain_of(options, 20_000)
    chain.serve(options.server, chain.folder / "data").stop()
    with chain.serve(options.server, chain.folder / "data", "--api", "eth,debug,web3", fresh=False) as server:
        compare(options, "JSON-RPC", "REST", [Row(name, (server, rpc), (server, rest), 0.9, 1 / 0.9)
                                              for name, rest, rpc in wanted(options, chain, server)])


def memory(options):
    """A chain in memory beside the same chain in a folder."""
    chain = chain_of(options, 20_000)
    names = ("getProof", "getStorageAt", "call", "getLogs of a rare topic", "getLogs of 100 blocks")
    with chain.serve(options.server, ":memory:") as ours, chain.serve(options.server, chain.folder / "data") as theirs:
        compare(options, "in memory", "in a folder", [Row(name, (ours, rest), (theirs, rest), 0.95)
                                                      for name, rest, _ in operations(chain, ours) if name in names])
        print(f"  memory afterwards: {ours.memory() / 1e6:.0f} MB, {theirs.memory() / 1e6:.0f} MB with a folder")


def rpc(options):
    """JSON-RPC beside anvil, on the chain of scripts/anvil.py."""
    from anvil import COMMON, Chain as Small
    with Server(options.server, "dev", "--log", "error", *COMMON) as node, Anvil(*COMMON) as anvil:
        chain = Small()
        hashes = [chain.grow(server) for server in (node, anvil)][0]
        alice, counter, tracer = chain.signers[0].address, {"to": chain.counter}, {"tracer": "callTracer"}
        asked = {name: message(name.split()[0], *parameters) for name, *parameters in [
            ("eth_chainId",), ("eth_blockNumber",), ("eth_gasPrice",), ("eth_getBalance", alice, "latest"),
            ("eth_getTransactionCount", alice, "latest"), ("eth_getCode", chain.counter, "latest"),
            ("eth_getStorageAt", chain.counter, ZERO, "latest"), ("eth_getBlockByNumber", "latest", False),
            ("eth_getBlockByNumber full", "0x6", True), ("eth_getTransactionByHash", hashes[5]),
            ("eth_getTransactionReceipt", hashes[5]), ("eth_getBlockReceipts", "0x6"),
            ("eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest", "address": chain.counter}),
            ("eth_feeHistory", "0x8", "latest", [25, 75]), ("eth_getProof", chain.counter, [ZERO], "latest"),
            ("eth_call", counter, "latest"), ("eth_estimateGas", counter), ("eth_createAccessList", counter, "latest"),
            ("debug_traceTransaction", hashes[8], tracer), ("debug_traceCall", counter, "latest", tracer)]}
        asked["100 eth_getBalance"] = [message("eth_getBalance", f"0x{id:040x}", "latest", id=id) for id in range(100)]
        asked["100 eth_call"] = [message("eth_call", counter, "latest", id=id) for id in range(100)]
        succeeds = lambda response: all(one.get("result") is not None for one in (response if isinstance(response, list) else [response]))
        compare(options, "here", "anvil", [Row(name, (node, case), (anvil, case), 1) for name, body in asked.items()
                                           if name.startswith(tuple(options.only or [""])) for case in [Case("/", [body], succeeds)]])


def cost(options):
    """getStorageAt with all features enabled, beside a bare route (tests/examples/bare.rs)."""
    tokens = options.work / "tokens"
    tokens.write_text("token-of-the-benchmark\n")
    more = ["--token-file", tokens, "--rate-limit", "1000000", "--metrics-addr", "127.0.0.1:0", "--max-head-age", "1h", "--log", "info",
            "--cors-origins", "https://wallet.example", "--allowed-hosts", "node.internal"]
    headers = ["Authorization: Bearer token-of-the-benchmark", "Accept-Encoding: gzip, br", "Accept: application/json"]
    case = Case("/getStorageAt/", [{"Address": ALICE, "Position": "0"}], headers=headers)
    with Server(options.server, "dev", *more) as full, Server(options.bin / "examples/bare", port=None) as bare:
        compare(options, "all features", "bare", [Row("getStorageAt", (full, case), (bare, case), 0.85)])
