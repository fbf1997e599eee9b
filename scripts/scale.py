#!/usr/bin/env python3
"""One writer, a shared store, and readers: what is promised in docs/scale.md, checked and measured.

    scripts/scale.py [--bin FOLDER] [--rounds N] [--s3 PROGRAM] [PART…]

Latencies are injected between the servers and a real S3 server, s3s-fs (`cargo install s3s-fs --features binary`), or moto's (`--s3 moto_server`,
PyPI). Faults are killed processes, writers that go on after another one took over, and stores that do not respond for a while.
"""

import contextlib
import http.client
import json
import multiprocessing
import os
import random
import re
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import nodes
from benchmarks.requests import CONTRACT, ZERO, Chain, Row, compare, operations
from nodes import ALICE, ROOT, Failure, Server, WebSocket, check, expect, fetch, free_port, run, wait_for
from slow_bucket import Bucket

# CALLER, PUSH1 0, PUSH1 0, LOG1, and a counter in slot 0.
LOGGER = "0x" + "10" * 20
LOGGER_CODE = "0x3360006000a1600054600101600055"
LOG = "info,request=warn"
RECEIVER = "0x" + "33" * 20


def chance_of(options):
    print(f"  --seed {options.seed}", flush=True)
    return random.Random(options.seed)


def writer(options, data, store, *more, publish="--publish"):
    return Server(options.server, "dev", "--data-dir", data, publish, store, "--log", LOG, *more)


def reader(options, store, *more):
    return Server(options.server, "serve", "--store", store, "--log", LOG, *more)


def head(server):
    block = server.rpc("eth_getBlockByNumber", "latest", False)
    return int(block["number"], 16), block["hash"]


def same_head(one, other, seconds=30):
    wait_for("the head of the writer on the reader", lambda: head(one) == head(other), seconds)


def answers(server, number, hash_of_head, holder):
    """What a server answers about block `number`."""
    at = hex(number)
    batch = [
        ("eth_getBlockByNumber", at, True), ("eth_getBlockReceipts", at), ("eth_getBalance", ALICE, at), ("eth_getStorageAt", LOGGER, "0x0", at),
        ("eth_getProof", LOGGER, ["0x0", "0x1"], at), ("eth_getProof", ALICE, [], at), ("eth_feeHistory", "0x5", at, [50]),
        ("eth_getLogs", {"address": LOGGER, "fromBlock": hex(max(0, number - 20)), "toBlock": at}), ("eth_call", {"to": LOGGER}, at),
        ("eth_getBlockByHash", hash_of_head, False), ("eth_getProof", CONTRACT, [ZERO], at), ("eth_getStorageAt", holder, ZERO, at),
    ]
    body = json.dumps([nodes.message(*request, id=index) for index, request in enumerate(batch)]).encode()
    return json.loads(fetch(server.url, body=body)[1])


def change(chance, server, snapshots):
    """Changes the chain at random: transactions, blocks, time, reorganizations and reverts."""
    kind = chance.randrange(10)
    if kind < 5:
        for _ in range(chance.randrange(1, 6)):
            server.rpc("eth_sendTransaction", {"from": ALICE, "to": chance.choice([LOGGER, RECEIVER]), "value": hex(chance.randrange(99))})
    elif kind < 7:
        server.rpc("anvil_mine", hex(chance.randrange(1, 30)))
    elif kind == 7:
        snapshots.append(server.rpc("evm_snapshot"))
    elif kind == 8 and snapshots:
        server.rpc("evm_revert", snapshots.pop(chance.randrange(len(snapshots))))
        snapshots.clear()
    else:
        server.rpc("anvil_reorg", min(chance.randrange(1, 8), head(server)[0]), [])


class Reading(threading.Thread):
    """Asks a reader again and again for its head and the receiver's balance there. Each response must be of one head."""

    def __init__(self, url, pause=0.0):
        super().__init__(daemon=True)
        self.url, self.pause, self.count, self.wrong, self.seen, self.ended = url, pause, 0, [], [], False
        self.start()

    def run(self):
        requests = [("eth_getBlockByNumber", "latest", False), ("eth_blockNumber",), ("eth_getBalance", RECEIVER, "latest")]
        body = json.dumps([nodes.message(*request, id=index) for index, request in enumerate(requests)]).encode()
        while not self.ended:
            time.sleep(self.pause)
            try:
                block, number, balance = (answer["result"] for answer in json.loads(fetch(self.url(), body=body)[1]))
            except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
                # The reader was killed, or cannot reach the store.
                continue
            self.count += 1
            self.seen.append((number, block["hash"], balance))
            if block["number"] != number:
                self.wrong.append((block["number"], number))

    def end(self):
        self.ended = True
        self.join()
        check(not self.wrong and self.count, f"{self.count} batches while the chain changed, each of one head {self.wrong[:3] or ''}")


def agree(options):
    """A reader answers like the writer at random heights, before, during and after reorganizations; and the recorded cases."""
    with contextlib.ExitStack() as stack:
        work, chain = Path(stack.enter_context(tempfile.TemporaryDirectory())), Chain(options, options.blocks)
        store = f"file://{work}/store"
        run(options.server, "import", "--data-dir", work / "data", "--genesis", chain.genesis, "--publish", store, chain.file)
        first = stack.enter_context(writer(options, work / "data", store, "--genesis", chain.genesis))
        first.rpc("anvil_setCode", LOGGER, LOGGER_CODE)
        first.rpc("anvil_setBalance", ALICE, hex(10**24))
        first.rpc("anvil_mine", "0x1")
        second = stack.enter_context(reader(options, store, "--cache-dir", work / "cache", "--writer", first.url))
        same_head(first, second)
        chance, snapshots, reading, compared = chance_of(options), [], Reading(lambda: second.url), 0
        for _ in range(options.rounds or 150):
            for _ in range(chance.randrange(1, 4)):
                change(chance, first, snapshots)
            same_head(first, second)
            number, hash_of_head = head(first)
            for at in {chance.randrange(number + 1) for _ in range(4)} | {number}:
                holder = chance.choice(chain.holders)
                expected = answers(first, at, hash_of_head, holder)
                expect(f"the answers about block {at}", answers(second, at, hash_of_head, holder), expected)
                compared += len(expected)
        reading.end()
        check(compared > 0, f"{compared} answers of the reader equal the writer's, up to block {number}")
        second.stop()
        first.stop()
    shared = Path(os.environ.get("NODE_SHARED", ROOT.parent / "shared")) / "conformance"
    if not shared.is_dir():
        return print(f"  skipped: recorded cases and exchanges, {shared} does not exist")
    for recorded in cases, exchanges:
        with tempfile.TemporaryDirectory() as work:
            store, api = f"file://{work}/store", ["--api", "debug,eth,net,testing,txpool,web3"]
            files = ["--genesis", shared / "chain/genesis.json", "--import", shared / "chain/chain.rlp"]
            with (Server(options.server, "run", "--data-dir", f"{work}/data", "--publish", store, *files, *api) as first,
                  reader(options, store, "--writer", first.url, *api) as second):
                same_head(first, second, 60)
                recorded(options, shared, first, second)


def cases(options, shared, first, second):
    results = [subprocess.run(["python3", shared / "run.py", server.url], capture_output=True, text=True).stdout for server in (first, second)]
    failed = [sorted(re.findall(r"^FAIL (.*)", result, re.M)) for result in results]
    passed = re.search(r"^[1-9]\d* passed", results[1], re.M)
    check(passed and failed[0] == failed[1], f"recorded cases: {passed and passed.group(0)}, and the same {len(failed[1])} failed as on the writer")


def exchanges(options, shared, _, second):
    output = run(options.bin / "exchanges", "--expected-failures", ROOT / ".ci/expected-exchanges.txt", second.url, shared / "rpc")
    check(True, f"recorded exchanges: {output.splitlines()[-1]}")


def percentile(times, share):
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def visible(options):
    """From the commit of a block on the writer to its notification by a reader, with 20 ms of latency: p99 below 1 s."""
    with contextlib.ExitStack() as stack:
        work, bucket = Path(stack.enter_context(tempfile.TemporaryDirectory())), Bucket(stack, options, 20)
        for mode in [], ["--publish-sync"]:
            store = f"{bucket.url}/{len(mode)}"
            with writer(options, work / f"data-{len(mode)}", store, *mode) as first, wait_for("the first manifest", lambda: reader(options, store)) as second:
                socket_ = WebSocket(second.connect().socket)
                socket_.call("eth_subscribe", "newHeads")
                times, commits = [], []
                for number in range(1, (options.rounds or 200) + 1):
                    began = time.monotonic()
                    first.rpc("evm_mine")
                    commits.append(time.monotonic() - began)
                    began = began if mode else time.monotonic()
                    while int((socket_.receive(60) or {"params": {"result": {"number": "0x0"}}})["params"]["result"]["number"], 16) < number:
                        pass
                    times.append(time.monotonic() - began)
                    time.sleep(random.random() / 10)
                late = percentile(times, 0.99)
                print(f"  {' '.join(mode) or 'default':<16} p50 {percentile(times, 0.5) * 1e3:.0f} ms, p99 {late * 1e3:.0f} ms; "
                      f"evm_mine p50 {percentile(commits, 0.5) * 1e3:.0f} ms")
                check(late < 1, "p99 is below 1 s")


def publishing(options):
    """Import with and without publishing, with 20 ms of latency: at most 15% slower."""
    with contextlib.ExitStack() as stack:
        work, bucket = Path(stack.enter_context(tempfile.TemporaryDirectory())), Bucket(stack, options, 20)
        chain = Chain(options, options.blocks)
        ratios = []
        for number in range(options.rounds or 5):
            seconds = {}
            for publish in [False, True][:: 1 if number % 2 else -1]:
                data = work / "data"
                shutil.rmtree(data, ignore_errors=True)
                target = ["--publish", f"{bucket.url}/import-{number}"] if publish else []
                output = run(options.server, "import", "--data-dir", data, "--genesis", chain.genesis, *target, chain.file)
                seconds[publish] = float(re.search(r"in ([\d.]+) s", output).group(1))
            ratios.append(seconds[True] / seconds[False])
            print(f"  {seconds[False]:.2f} s, {seconds[True]:.2f} s with publishing: {ratios[-1]:.2f}", flush=True)
        check(statistics.median(ratios) <= 1.15, f"the median of the ratios is {statistics.median(ratios):.2f}; bar 1.15")


def published(stack, options, chain, bucket, name="chain"):
    """Imports a chain and publishes it. Returns the folder and the URL of the store."""
    data, store = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "data", f"{bucket.url}/{name}"
    run(options.server, "import", "--data-dir", data, "--genesis", chain.genesis, "--publish", store, chain.file)
    return data, store


def warm(options):
    """A reader with a warm cache beside a server with a local folder: at least 80% of its rate."""
    options.rounds = options.rounds or 5
    with contextlib.ExitStack() as stack:
        bucket, chain = Bucket(stack, options, 0), Chain(options, options.blocks)
        data, store = published(stack, options, chain, bucket)
        local = stack.enter_context(Server(options.server, "run", "--data-dir", data, "--genesis", chain.genesis, "--log", LOG))
        far = stack.enter_context(measured_reader(options, store, "--cache-dir", data.parent / "cache"))
        same_head(local, far)
        wait_until_filled(far)
        kinds = [(name, case) for name, case, _ in operations(chain, local) if name in ("getStorageAt", "getProof", "call", "getLogs of 10 blocks")]
        for _, case in kinds:
            case.measure(far, options, 0)
        compare(options, "reader", "local folder", [Row(name, (far, case), (local, case), least=0.8) for name, case in kinds])


def counted(server, name):
    return float(re.search(rf"^ethnode_{name} (\S+)", fetch(server.metrics + "/metrics")[1], re.M).group(1))


def measured_reader(options, store, *more):
    port = free_port()
    server = reader(options, store, "--metrics-addr", f"127.0.0.1:{port}", *more)
    server.metrics = f"http://127.0.0.1:{port}"
    return server


def wait_until_filled(server, seconds=120):
    """Waits until the reader has read the indexes and filters of all runs, which it does in the background."""
    read, quiet = None, 0
    while quiet < 2:
        time.sleep(1)
        before, read = read, counted(server, 'store_bytes_total{operation="read"}')
        quiet = quiet + 1 if read == before else 0
        seconds -= 1
        if seconds < 0:
            raise Failure("the reader did not fill its cache in time")


def cold(options):
    """Reads that no cache has, with 25 ms of latency: a proof takes at most 5 dependent steps and 160 ms, a storage read 2 steps."""
    with contextlib.ExitStack() as stack:
        bucket, chain, chance = Bucket(stack, options, 25), Chain(options, options.blocks), chance_of(options)
        data, store = published(stack, options, chain, bucket)
        began = time.monotonic()
        server = stack.enter_context(measured_reader(options, store, "--cache-dir", data.parent / "cold"))
        server.rpc("eth_getBalance", CONTRACT, "latest")
        first = time.monotonic() - began
        check(first < 2, f"first answer after {first:.2f} s on an empty cache")
        wait_until_filled(server)
        slot = lambda: {"Address": chance.choice(chain.holders), "Position": ZERO, "BlockNumber": str(chance.choice(chain.old_blocks()))}
        proof = lambda: {"Address": chance.choice(chain.holders), "StorageKeys": [ZERO], "BlockNumber": str(chance.choice(chain.old_blocks()))}
        for path, body, bar, limit in (("/getStorageAt/", slot, 2, None), ("/getProof/", proof, 5, 0.16)):
            times, steps, reads = [], [], counted(server, "request_store_reads_total")
            for _ in range(options.rounds or 200):
                before, began = counted(server, "request_store_steps_total"), time.monotonic()
                server.ask(path, body())
                times.append(time.monotonic() - began)
                steps.append(counted(server, "request_store_steps_total") - before)
            reads = counted(server, "request_store_reads_total") - reads
            print(f"  {path}: p50 {percentile(times, 0.5) * 1e3:.0f} ms, p99 {percentile(times, 0.99) * 1e3:.0f} ms; {statistics.mean(steps):.1f} steps and "
                  f"{reads / len(times):.1f} reads on average", flush=True)
            check(max(steps) <= bar, f"{path} takes at most {max(steps):.0f} dependent steps; bar {bar}")
            if limit:
                check(percentile(times, 0.5) < limit, f"{path} p50 is below {limit} s")


def spread(options):
    """Four readers with cold caches beside one, with 25 ms of latency: at least 3.5 times its rate."""
    with contextlib.ExitStack() as stack:
        bucket, chain = Bucket(stack, options, 25), Chain(options, options.blocks)
        _, store = published(stack, options, chain, bucket)
        rates = {}
        for count in (1, 4):
            with contextlib.ExitStack() as running:
                servers = []
                for _ in range(count):
                    # One link would limit what four readers get.
                    bucket.connect(running, 25)
                    servers.append(running.enter_context(measured_reader(options, store, "--cache-mb", "16")))
                for server in servers:
                    wait_until_filled(server)
                rates[count] = rate_of(servers, chain, options)
                print(f"  {count} readers: {rates[count]:.0f} proofs/s", flush=True)
        check(rates[4] >= 3.5 * rates[1], f"four readers answer {rates[4] / rates[1]:.2f} times what one answers; bar 3.5")


def rate_of(servers, chain, options, clients=2, count=50):
    """Proofs a second that a few clients of each server get, anywhere in the chain, so that the caches remain cold."""
    done = []

    def ask(server, seed):
        chance, connection = random.Random(seed), server.connect()
        for _ in range(count):
            body = {"Address": chance.choice(chain.holders), "StorageKeys": [ZERO], "BlockNumber": str(chance.randrange(1, chain.blocks))}
            connection.post("/getProof/", body)
        done.append(seed)

    threads = [threading.Thread(target=ask, args=(server, f"{options.seed} {place} {client}"))
               for place, server in enumerate(servers) for client in range(clients)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(done) < len(threads):
        raise Failure("a client failed")
    return len(threads) * count / (time.monotonic() - began)


def failures(options):
    """Kills, failovers with the old writer alive, and outages: with --publish-sync nothing acknowledged is lost."""
    with contextlib.ExitStack() as stack:
        work, bucket = Path(stack.enter_context(tempfile.TemporaryDirectory())), Bucket(stack, options, 5)
        failing = Failing(options, work, bucket)
        stack.callback(failing.end)
        kinds = [failing.kill_writer, failing.kill_reader] * 5 + [failing.fail_over, failing.outage] * 2
        done = {}
        for number in range(options.rounds or 140):
            kind = kinds[number % len(kinds)]
            kind()
            failing.compare()
            done[kind.__name__] = done.get(kind.__name__, 0) + 1
            if number % 14 == 13:
                print(f"  {done}, {failing.acknowledged} transactions acknowledged", flush=True)
        failing.reading.end()
        failing.first.stop()
        run(options.server, "verify", "--store", bucket.url)
        check(True, f"{failing.acknowledged} acknowledged transactions are there, and the store is intact")


class Failing:
    """A writer and a reader of a bucket, one of which fails again and again while transactions are sent."""

    def __init__(self, options, work, bucket):
        self.options, self.work, self.bucket, self.chance = options, work, bucket, chance_of(options)
        self.folders, self.acknowledged = 0, 0
        self.start_writer(work / "data-0")
        self.start_reader()
        self.reading = Reading(lambda: self.second.url, pause=0.02)

    def start_writer(self, data, publish="--publish"):
        self.data = data
        self.first = writer(self.options, data, self.bucket.url, "--publish-sync", publish=publish)

    def start_reader(self):
        self.second = reader(self.options, self.bucket.url, "--cache-dir", self.work / "cache")

    def end(self):
        for server in (self.first, self.second):
            if server.process.poll() is None:
                server.kill()

    def send(self, server):
        """Sends a transaction, which is in a block when it is acknowledged. Returns whether it was."""
        try:
            server.rpc("eth_sendTransaction", {"from": ALICE, "to": RECEIVER, "value": "0x1"})
        except (OSError, ValueError, Failure, http.client.HTTPException):
            return False
        self.acknowledged += 1
        return True

    @contextlib.contextmanager
    def sending(self):
        """Sends transactions, one after the other, from a random time before something happens until after it."""
        server, ended = self.first, threading.Event()

        def send():
            while self.send(server) and not ended.is_set():
                pass

        thread = threading.Thread(target=send)
        thread.start()
        time.sleep(self.chance.random())
        yield
        ended.set()
        thread.join()

    def kill_writer(self):
        with self.sending():
            self.first.process.kill()
        self.first.kill()
        self.start_writer(self.data)

    def kill_reader(self):
        with self.sending():
            self.second.kill()
            self.start_reader()

    def fail_over(self):
        """Another server takes over from the store while the old one is writing: it refuses everything from then on."""
        old = self.first
        self.folders += 1
        with self.sending():
            self.start_writer(self.work / f"data-{self.folders}", publish="--restore")
        try:
            if self.send(old):
                raise Failure("the old writer acknowledged a transaction after another one took over")
        finally:
            old.kill()

    def outage(self):
        """The store does not respond for a while. The servers recover by themselves."""
        with self.sending():
            self.bucket.link.down.value = 1
            time.sleep(self.options.outage)
            self.bucket.link.down.value = 0
        if not wait_for("a transaction after the outage", lambda: self.send(self.first), 60):
            raise Failure("no transaction is accepted")

    def compare(self):
        """Whatever was acknowledged, or visible on a reader, is on the writer, and both have the same head."""
        same_head(self.first, self.second, 60)
        found = int(self.first.rpc("eth_getBalance", RECEIVER, "latest"), 16)
        # A transaction that was not acknowledged may be there.
        if found < self.acknowledged:
            raise Failure(f"{self.acknowledged} transactions were acknowledged, and {found} are there")
        self.acknowledged = found
        seen, self.reading.seen = self.reading.seen, []
        for number, hash_, balance in self.chance.sample(seen, min(10, len(seen))):
            expect(f"block {number}", self.first.rpc("eth_getBlockByNumber", number, False)["hash"], hash_)
            expect(f"the balance in block {number}", self.first.rpc("eth_getBalance", RECEIVER, number), balance)


PARTS = {part.__name__: part for part in (agree, visible, publishing, warm, cold, spread, failures)}


def arguments(parser):
    parser.add_argument("--s3", default="s3s-fs", help="the S3 server: s3s-fs or moto_server [default: s3s-fs]")
    parser.add_argument("--rounds", type=int, default=0, help="rounds of a part [default: what it needs]")
    parser.add_argument("--blocks", type=int, default=20_000, help="length of the generated chain [default: 20000]")
    parser.add_argument("--seconds", type=int, default=3, help="seconds of each measurement with wrk [default: 3]")
    parser.add_argument("--outage", type=float, default=10, help="seconds of an outage [default: 10]")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="of everything random [default: random]")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "ethnode-scale", help="folder of generated chains")


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    nodes.main(__doc__, PARTS, build=["node-tests:generate", "node-tests:exchanges"], arguments=arguments)
