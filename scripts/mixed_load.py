#!/usr/bin/env python3
"""Put a development chain under a mixed load, and check that it stays correct and does not grow.

    scripts/mixed_load.py [--minutes 60] [--seed N] [--bin FOLDER]

Several processes use one server with a folder, each from an address of its own: two read at all heights over both interfaces; one sends
transactions, each of which stores the number of its block and emits a log; two follow by a filter and by subscriptions, and maintain a copy
of the chain's logs and heads; one mines and replaces blocks; slow clients read a byte now and then; hostile ones send noise, half
requests, endless calls and requests whose responses they do not read, or open as many connections as they can.

The state has a simple model: slot 0 of the contract, as of a block, is the number of the newest block up to it with a transaction. So
every value can be compared with that of the parent block, by hash, whatever reorganizations happen. In the end the copies of the
followers must be the chain's logs, and every acknowledged transaction must be in the chain or the pool.

Between the first sixth of the time and the end, memory may grow by a tenth, p99 of reads by a quarter and the noise of a busy machine
(LATENCY_NOISE), and the number of threads and files not at all. Caches fill with the chain, so a long run begins with WARM blocks. In less
than 20 minutes memory only has a bound.
"""

import contextlib
import json
import multiprocessing
import queue
import random
import socket
import statistics
import tempfile
import time
import traceback
from pathlib import Path

import nodes
from nodes import ENDLESS, Connection, Failure, Server, WebSocket, check, get_bytes, post_bytes, transfers, verify

LOGGER = "0x" + "10" * 20
# NUMBER, PUSH1 0, SSTORE; then CALLER, PUSH1 0, PUSH1 0, LOG1.
LOGGER_CODE = "0x43600055" + "3360006000a1"
WITHOUT_END = "0x" + "20" * 20
ACCOUNTS = 8
SENDS_PER_SECOND = 15
# Transactions that are sent as fast as possible before a long run.
WARM = 20_000
# Depth of reorganizations. Signed transactions return to the pool.
DEEPEST = 6
# Most memory in a short run, in bytes.
MEMORY_BOUND = 512 << 20
# Growth of p99 that is noise, in seconds, in long runs and in short ones, which may run beside other work.
LATENCY_NOISE = (0.002, 0.2)


class Share:
    """What the processes share."""

    def __init__(self, url, seed):
        self.url, self.seed = url, seed
        # Nothing is sent before the filter and the subscription exist: they do not report earlier logs.
        self.followed = multiprocessing.Barrier(3)
        # Before the first is set, the load does not begin. The second ends the load, the last ends what follows it.
        self.warm, self.ended, self.settled = (multiprocessing.Event() for _ in range(3))
        self.reports = multiprocessing.Queue()

    def client(self, index):
        return Connection(self.url, f"127.0.1.{1 + index}")

    def timed(self, call, *arguments):
        """Calls a function, and reports how long that took."""
        started = time.perf_counter()
        result = call(*arguments)
        self.reports.put(("latency", time.time(), time.perf_counter() - started))
        return result


def read(share, index):
    """Reads at all heights, and compares each block with its parent. Reports latencies."""
    chance, client = random.Random(f"{share.seed} read {index}"), share.client(index)
    while not share.ended.is_set():
        head = int(client.rpc("eth_blockNumber"), 16)
        number = hex(max(1, head - chance.randrange(5) if chance.random() < 0.2 else chance.randrange(head) + 1))
        block = share.timed(client.rpc, "eth_getBlockByNumber", number, False)
        # A reorganization may have shortened the chain.
        if block is None:
            continue
        try:
            examine(share, client, block, chance)
        except Failure:
            # It may have replaced the block meanwhile.
            now = client.rpc("eth_getBlockByNumber", number, False)
            if now is not None and now["hash"] == block["hash"]:
                raise
        time.sleep(0.01)


def examine(share, client, block, chance):
    """Compares the state after a block with that after its parent, and the block with its logs."""
    number, at = int(block["number"], 16), block["hash"]
    value = share.timed(client.post, "/getStorageAt/", {"Address": LOGGER, "Position": "0", "BlockNumber": at})["Value"]
    before = {"blockHash": block["parentHash"]}
    expected = number if block["transactions"] else int(client.rpc("eth_getStorageAt", LOGGER, "0x0", before), 16)
    if int(value, 16) != expected:
        raise Failure(f"slot 0 as of block {number} ({at}) is {value}, expected {expected}")
    match chance.randrange(5):
        case 0:
            logs = share.timed(client.rpc, "eth_getLogs", {"blockHash": at, "address": LOGGER})
            if [log["transactionHash"] for log in logs] != block["transactions"]:
                raise Failure(f"block {number} has {len(block['transactions'])} transactions and {len(logs)} logs")
        case 1:
            # The server verifies each proof against the header.
            proof = share.timed(client.rpc, "eth_getProof", LOGGER, ["0x0"], {"blockHash": at})
            if int(proof["storageProof"][0]["value"], 16) != expected:
                raise Failure(f"the proof as of block {number} shows {proof['storageProof'][0]['value']}")
        case 2:
            share.timed(client.post, "/call/", {"Transaction": {"To": LOGGER, "From": LOGGER}, "BlockNumber": at})
        case 3:
            share.timed(client.post, "/feeHistory/", {"BlockCount": "20", "NewestBlock": "latest", "RewardPercentiles": [50]})
        case 4:
            share.timed(client.get, "/getBlockByNumber/latest/true/")


def send(share, signed, warm):
    """Sends `warm` transactions, then the others at a constant rate. Reports the hashes of the acknowledged ones."""
    client = share.client(10)
    share.followed.wait()
    for index, (hash, raw) in enumerate(signed):
        if share.ended.is_set():
            return
        client.post("/sendRawTransaction/", {"Data": raw})
        share.reports.put(("sent", hash))
        if index >= warm:
            share.warm.set()
            time.sleep(1 / SENDS_PER_SECOND)
    raise Failure("there were too few transactions")


def follow(logs, block, transaction, removed):
    """Adds a log to a copy of the chain's logs, or removes it."""
    place = (block, transaction)
    if not removed:
        logs.append(place)
    elif place in logs[-200:]:
        logs.remove(place)
    else:
        raise Failure(f"a log is removed that was not reported: {place}")


def poll(share):
    """Polls a filter, and maintains the logs of the chain."""
    client, logs = share.client(11), []
    identity = client.rpc("eth_newFilter", {"address": LOGGER, "fromBlock": "0x0"})
    share.followed.wait()
    ended = False
    while True:
        for log in client.get(f"/getFilterChanges/{identity}/")["Result"]:
            follow(logs, log["BlockHash"], log["TransactionHash"], log["Removed"])
        if ended:
            share.reports.put(("filter", logs))
            return
        ended = share.settled.wait(0.2)


def subscribe(share):
    """Follows subscriptions over a WebSocket."""
    client, logs, heads = WebSocket(share.client(12).socket), [], {}
    client.call("eth_subscribe", "logs", {"address": LOGGER})
    client.call("eth_subscribe", "newHeads")
    share.followed.wait()
    ended = False
    while True:
        while (notice := client.receive(0.2)) is not None:
            found = notice["params"]["result"]
            if "transactionHash" in found:
                follow(logs, found["blockHash"], found["transactionHash"], found["removed"])
            else:
                heads[int(found["number"], 16)] = found["hash"]
        if ended:
            share.reports.put(("subscription", logs))
            share.reports.put(("head", heads[max(heads)] if heads else None))
            return
        ended = share.settled.is_set()


def control(share):
    """Mines and replaces blocks."""
    chance, client = random.Random(f"{share.seed} control"), share.client(13)
    while not share.ended.wait(chance.uniform(0.2, 1)):
        if chance.random() < 0.3:
            client.rpc("anvil_mine", "0x2")
        elif int(client.rpc("eth_blockNumber"), 16) > DEEPEST:
            client.post("/dev/reorganize/", {"Blocks": str(chance.randrange(1, DEEPEST))})


def slow(share):
    """Clients that read a byte now and then, and send a byte now and then."""
    streams = []
    while not share.ended.wait(0.5):
        if len(streams) < 40:
            stream = share.client(14 + len(streams) % 2).socket
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            half = post_bytes("/getLogs/", " " * 900)[:-900]
            stream.sendall(half if len(streams) % 2 else get_bytes("/getBlockByNumber/latest/true/") * 20)
            stream.setblocking(False)
            streams.append(stream)
        for index, stream in enumerate(streams):
            with contextlib.suppress(OSError):
                stream.send(b" ") if index % 2 else stream.recv(1)


def hostile(share):
    """Noise, half requests, endless calls, floods of connections, responses that are not read."""
    chance = random.Random(f"{share.seed} hostile")
    endless = post_bytes("/call/", json.dumps({"Transaction": {"To": WITHOUT_END, "From": LOGGER}}))
    # A response of a megabyte.
    long = post_bytes("/feeHistory/", json.dumps({"BlockCount": "1024", "NewestBlock": "latest", "RewardPercentiles": list(range(100))}))
    while not share.ended.wait(0.05):
        streams, flood = [], chance.random() < 0.2
        # They may be refused or closed.
        with contextlib.suppress(OSError):
            for _ in range(200 if flood else 4):
                streams.append(share.client(16).socket)
            for stream in streams:
                stream.setblocking(False)
                stream.send(chance.choice([chance.randbytes(2_000), endless, long * 8, get_bytes("/blockNumber/")[:chance.randrange(60)]]))
            time.sleep(chance.uniform(0, 0.5))
        for stream in streams:
            stream.close()


def guarded(share, job, arguments):
    try:
        job(share, *arguments)
    except Exception as error:  # Whatever it is ends the run.
        if not isinstance(error, Failure):
            traceback.print_exc()
        share.reports.put(("failure", f"{job.__name__}: {error!r}"))


def files_and_threads(server):
    """Returns the numbers of open files and of threads. The runs of the chain do not count, because it grows."""
    def counts(file):
        try:
            return file.readlink().suffix != ".rows"
        except FileNotFoundError:
            return True  # Closed meanwhile.

    folder = Path(f"/proc/{server.process.pid}")
    return sum(map(counts, (folder / "fd").iterdir())), len(list((folder / "task").iterdir()))


class Run:
    """One run: the load, what is measured meanwhile, and the comparison at the end."""

    def __init__(self, options, server):
        self.server, self.seconds, self.seed = server, options.minutes * 60, options.seed
        self.is_long = self.seconds >= 1_200
        self.warm = WARM if self.is_long else 0
        self.signed = transfers(options.bin, self.warm + int(self.seconds * SENDS_PER_SECOND) + 1_000, "--accounts", ACCOUNTS, "--to", LOGGER,
                                "--gas", 60_000)
        self.latencies, self.samples, self.sent, self.followed = [], [], [], {}

    def take_reports(self, share, seconds):
        """Collects reports for some time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not nodes.FAILED:
            try:
                report = share.reports.get(timeout=left)
            except queue.Empty:
                return
            match report:
                case ("latency", *spent):
                    self.latencies.append(spent)
                case ("sent", hash):
                    self.sent.append(hash)
                case ("failure", text):
                    check(False, text)
                case (what, value):
                    self.followed[what] = value

    def run(self):
        server = self.server
        for account, code in ((LOGGER, LOGGER_CODE), (WITHOUT_END, ENDLESS)):
            server.rpc("anvil_setCode", account, code)
        server.rpc("anvil_mine", "0xa")
        share = Share(server.url, self.seed)
        first = [(send, (self.signed, self.warm)), (poll, ()), (subscribe, ())]
        later = [(read, (0,)), (read, (1,)), (control, ()), (slow, ()), (hostile, ())]
        processes = [multiprocessing.Process(target=guarded, args=(share, *job), daemon=True) for job in first + later]
        idle = files_and_threads(server)
        for process in processes[:len(first)]:
            process.start()
        while not share.warm.is_set() and not nodes.FAILED:
            self.take_reports(share, 1)
        began = time.time()
        for process in processes[len(first):]:
            process.start()
        while time.time() - began < self.seconds and not nodes.FAILED:
            self.take_reports(share, min(5, self.seconds / 30))
            self.samples.append((time.time() - began, server.memory(), *files_and_threads(server)))
            if len(self.samples) % 12 == 0:
                at, memory, files, threads = self.samples[-1]
                print(f"  {at:.0f} s: {memory >> 20} MiB, {files} files, {threads} threads, {len(self.sent)} sent", flush=True)
        share.ended.set()
        self.take_reports(share, 3)
        # Nothing changes any more; the followers read the rest.
        share.settled.set()
        self.take_reports(share, 10)
        for process in processes:
            process.join(5)
            process.terminate()
        if not nodes.FAILED:
            self.compare(server.connect())
            self.compare_resources(began, idle)

    def compare(self, client):
        """Compares the chain with what was sent and what was followed."""
        head = client.rpc("eth_getBlockByNumber", "latest", False)
        chain, last = [], int(head["number"], 16)
        for start in range(0, last + 1, 1_000):
            wanted = {"address": LOGGER, "fromBlock": hex(start), "toBlock": hex(min(start + 999, last))}
            chain += [(log["blockHash"], log["transactionHash"]) for log in client.rpc("eth_getLogs", wanted)]
        for who in ("filter", "subscription"):
            logs = self.followed.get(who, [])
            at = next((at for at, pair in enumerate(zip(logs, chain)) if pair[0] != pair[1]), min(len(logs), len(chain)))
            check(logs == chain, f"the {who} has reported {len(logs)} of {len(chain)} logs of the chain, {at} as they are")
        check(self.followed.get("head") == head["hash"], f"the subscription has reported the head, block {last}")
        mined = {hash for _, hash in chain}
        waiting = [hash for hash in self.sent if hash not in mined]
        states = {client.get(f"/getTransactionStatus/{hash}/")["Status"] for hash in waiting}
        check(states <= {"pending", "queued"} and len(mined) == len(chain),
              f"{len(self.sent)} transactions are in the chain or, {len(waiting)} of them, in the pool: {states or 'none'}")

    def compare_resources(self, began, idle):
        """Compares memory, latencies, files and threads with those of the first part of the time."""
        warm = self.seconds / 6
        early, late = (statistics.median(memory for at, memory, *_ in self.samples if start <= at < start + warm) for start in (warm, 5 * warm))
        check(late <= (early * 1.1 if self.is_long else MEMORY_BOUND), f"memory: {early / 2**20:.0f} MiB early, {late / 2**20:.0f} at the end")
        first, last = (statistics.quantiles((spent for at, spent in self.latencies if start <= at - began < start + 2 * warm), n=100)[98]
                       for start in (warm, 4 * warm))
        check(last <= first * 1.25 + LATENCY_NOISE[not self.is_long], f"p99 of {len(self.latencies)} reads: {first * 1e3:.1f} ms early, {last * 1e3:.1f} late")
        # Pools start threads as they are needed. Connections of clients that are gone close within moments.
        most = idle[0] + 8, max(threads for at, _, _, threads in self.samples if at < self.seconds / 3)
        for _ in range(100):
            now = files_and_threads(self.server)
            if now[0] <= most[0] and now[1] <= most[1]:
                break
            time.sleep(0.2)
        check(now[0] <= most[0] and now[1] <= most[1], f"files and threads: {idle} before the load, {now} after it, at most {most}")


def load(options):
    """the load"""
    print(f"{nodes.machine()}\nseed {options.seed}, {options.minutes:g} minutes", flush=True)
    with tempfile.TemporaryDirectory(prefix="mixed-load-") as work:
        with Server(options.server, "dev", "--data-dir", f"{work}/data", "--log", "error", "--accounts", ACCOUNTS, "--cache-mb", "32",
                    "--call-timeout", "1s") as server:
            Run(options, server).run()
            server.stop()
        verify(options.server, f"{work}/data")


def arguments(parser):
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))


if __name__ == "__main__":
    nodes.main(__doc__, {"load": load}, ["node-tests:transfers"], arguments=arguments)
