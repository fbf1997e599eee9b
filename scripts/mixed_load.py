#!/usr/bin/env python3
"""Put a development chain under a mixed load, and check that it stays correct and does not grow.

    scripts/mixed_load.py [--minutes 60] [--seed N] [--bin FOLDER]

Several processes use one server with a folder, each from an address of its own:

* readers read storage, proofs, logs and blocks at all heights, over REST and JSON-RPC;
* a sender sends signed transactions, each of which stores the number of its block and emits a log;
* a follower polls a filter, another a WebSocket with subscriptions, and both maintain a copy of the chain's logs and heads;
* another mines and replaces blocks;
* slow clients read a byte now and then, hostile ones send noise, half requests, endless calls and requests whose responses they
  do not read, or open as many connections as they can.

The state has a simple model: slot 0 of the contract, as of a block, is the number of the newest block up to it with a transaction. So
every value can be compared with that of the parent block, by hash, whatever reorganizations happen. In the end the copies of the
followers must be the chain's logs, and every acknowledged transaction must be in the chain or the pool.

Between the first sixth of the time and the end, memory may grow by a tenth, p99 of reads by a quarter and the noise of a busy machine
(LATENCY_NOISE), and the number of threads and files not at all, except for noise (connections are closed first). Caches fill with the
chain, so a long run begins with WARM blocks. In less than 20 minutes memory only has a bound. The exit status is 1 if anything else is
found.
"""

import argparse
import base64
import json
import multiprocessing
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import nodes
from nodes import Failure

LOGGER = "0x" + "10" * 20
# NUMBER, PUSH1 0, SSTORE; then CALLER, PUSH1 0, PUSH1 0, LOG1.
LOGGER_CODE = "0x43600055" + "3360006000a1"
# JUMPDEST, PUSH1 0, JUMP.
ENDLESS = "0x" + "20" * 20
ENDLESS_CODE = "0x5b600056"
ACCOUNTS = 8
SENDS_PER_SECOND = 15
# Transactions that are sent as fast as possible before a long run.
WARM = 20_000
# Depth of reorganizations. Signed transactions return to the pool.
DEEPEST = 6
# Most memory in a short run, in bytes.
MEMORY_BOUND = 512 << 20
# Growth of p99 that is noise, in seconds, in long runs and in short ones, which CI starts beside other work.
LATENCY_NOISE = (0.002, 0.2)


class Client(nodes.Connection):
    """A connection from a given address of this machine."""

    def __init__(self, url, source):
        self.host = url.split("//", 1)[1].rstrip("/")
        host, port = self.host.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=60, source_address=(source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def rpc(self, method, *params):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        response = self.expect(method, self.send(self.post_bytes("/", json.dumps(body))))
        if "error" in response:
            raise Failure(f"{method}: {response['error']}")
        return response["result"]


def read(share, index):
    """Reads at all heights, and compares each block with its parent. Reports latencies."""
    chance, client = random.Random(f"{share.seed} read {index}"), share.client(index)
    while not share.ended.is_set():
        head = int(client.rpc("eth_blockNumber"), 16)
        number = max(1, head - chance.randrange(5) if chance.random() < 0.2 else chance.randrange(head) + 1)
        started = time.perf_counter()
        block = client.rpc("eth_getBlockByNumber", hex(number), False)
        share.latency(started)
        # A reorganization may have shortened the chain.
        if block is None:
            continue
        try:
            examine(share, client, block, chance)
        except Failure:
            # It may have replaced the block meanwhile.
            now = client.rpc("eth_getBlockByNumber", hex(number), False)
            if now is not None and now["hash"] == block["hash"]:
                raise
        time.sleep(0.01)


def examine(share, client, block, chance):
    """Compares the state after a block with that after its parent, and the block with its logs."""
    number, at, parent = int(block["number"], 16), block["hash"], block["parentHash"]
    started = time.perf_counter()
    value = client.post("/getStorageAt/", {"Address": LOGGER, "Position": "0", "BlockNumber": at})["Value"]
    share.latency(started)
    expected = number if block["transactions"] else int(
        client.rpc("eth_getStorageAt", LOGGER, "0x0", {"blockHash": parent}), 16)
    if int(value, 16) != expected:
        raise Failure(f"slot 0 as of block {number} ({at}) is {value}, expected {expected}")
    choice = chance.randrange(5)
    started = time.perf_counter()
    if choice == 0:
        logs = client.rpc("eth_getLogs", {"blockHash": at, "address": LOGGER})
        if [log["transactionHash"] for log in logs] != block["transactions"]:
            raise Failure(f"block {number} has {len(block['transactions'])} transactions and {len(logs)} logs")
    elif choice == 1:
        # The server verifies each proof against the header.
        proof = client.rpc("eth_getProof", LOGGER, ["0x0"], {"blockHash": at})
        if int(proof["storageProof"][0]["value"], 16) != expected:
            raise Failure(f"the proof as of block {number} shows {proof['storageProof'][0]['value']}")
    elif choice == 2:
        client.post("/call/", {"Transaction": {"To": LOGGER, "From": LOGGER}, "BlockNumber": at})
    elif choice == 3:
        client.post("/feeHistory/", {"BlockCount": "20", "NewestBlock": "latest", "RewardPercentiles": [50]})
    else:
        client.get("/getBlockByNumber/latest/true/")
    share.latency(started)


def send(share, transactions, warm):
    """Sends `warm` transactions, then the others at a constant rate. Reports the hashes of the acknowledged ones."""
    client = share.client(10)
    share.followed.wait()
    for index, (hash, raw) in enumerate(transactions):
        if share.ended.is_set():
            return
        client.post("/sendRawTransaction/", {"Data": raw})
        share.reports.put(("sent", hash))
        if index >= warm:
            share.warm.set()
            time.sleep(1 / SENDS_PER_SECOND)
    raise Failure("there were too few transactions")


def poll(share):
    """Polls a filter, and maintains the logs of the chain."""
    client, logs = share.client(11), []
    identity = client.post("/newFilter/", {"FilterObject": {"Address": LOGGER, "FromBlock": "0", "ToBlock": "", "Topics": []}})
    path = f"/getFilterChanges/{identity['FilterId']}/"
    share.followed.wait()
    ended = False
    while True:
        for log in client.get(path)["Result"]:
            place = (log["BlockHash"], log["TransactionHash"])
            if not log["Removed"]:
                logs.append(place)
            elif place in logs[-200:]:
                logs.remove(place)
            else:
                raise Failure(f"the filter removes a log that it has not reported: {log}")
        if ended:
            share.reports.put(("logs", "filter", logs))
            return
        ended = share.settled.wait(0.2)


def subscribe(share):
    """Follows subscriptions over a WebSocket."""
    client, logs, heads = WebSocket(share.client(12)), [], {}
    client.call("eth_subscribe", "logs", {"address": LOGGER})
    client.call("eth_subscribe", "newHeads")
    share.followed.wait()
    ended = False
    while True:
        while (message := client.receive(0.2)) is not None:
            found = message["params"]["result"]
            if "transactionHash" not in found:
                heads[int(found["number"], 16)] = found["hash"]
                continue
            place = (found["blockHash"], found["transactionHash"])
            if not found["removed"]:
                logs.append(place)
            elif place in logs[-200:]:
                logs.remove(place)
            else:
                raise Failure(f"the subscription removes a log that it has not reported: {found}")
        if ended:
            share.reports.put(("logs", "subscription", logs))
            share.reports.put(("head", heads[max(heads)] if heads else None))
            return
        ended = share.settled.is_set()


class WebSocket:
    """A JSON-RPC client over WebSocket, as simple as possible."""

    def __init__(self, client):
        self.socket, self.rest = client.socket, b""
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET /ws HTTP/1.1\r\nHost: {client.host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode())
        while b"\r\n\r\n" not in self.rest:
            self.rest += self.socket.recv(4096)
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        if not head.startswith(b"HTTP/1.1 101"):
            raise Failure(f"no WebSocket: {head}")

    def call(self, method, *params):
        text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        length = bytes([0x80 | len(text)]) if len(text) < 126 else bytes([0x80 | 126]) + len(text).to_bytes(2)
        self.socket.sendall(b"\x81" + length + bytes(4) + text)
        while "id" not in (message := self.receive(60)):
            pass
        if "error" in message:
            raise Failure(f"{method}: {message['error']}")

    def receive(self, seconds):
        """Returns the next message, or `None` if there is none in time."""
        self.socket.settimeout(seconds)
        try:
            while (frame := self.frame()) is None:
                piece = self.socket.recv(65_536)
                if not piece:
                    raise Failure("the WebSocket was closed")
                self.rest += piece
        except TimeoutError:
            return None
        kind, payload = frame
        if kind == 9:
            self.socket.sendall(b"\x8a" + bytes([0x80 | len(payload)]) + bytes(4) + payload)
        return json.loads(payload) if kind == 1 else self.receive(seconds)

    def frame(self):
        if len(self.rest) < 2:
            return None
        length, start = self.rest[1] & 0x7f, 2
        if length >= 126:
            start = 4 if length == 126 else 10
            length = int.from_bytes(self.rest[2:start])
        if len(self.rest) < start + length:
            return None
        payload, kind = self.rest[start:start + length], self.rest[0] & 0xf
        self.rest = self.rest[start + length:]
        return kind, payload


def control(share):
    """Mines and replaces blocks."""
    chance, client = random.Random(f"{share.seed} control"), share.client(13)
    while not share.ended.wait(chance.uniform(0.2, 1)):
        if chance.random() < 0.3:
            client.post("/dev/mine/", {"Blocks": "2"})
        elif int(client.rpc("eth_blockNumber"), 16) > DEEPEST:
            client.post("/dev/reorganize/", {"Blocks": str(chance.randrange(1, DEEPEST))})


def slow(share):
    """Clients that read a byte now and then, and send a byte now and then."""
    streams = []
    while not share.ended.wait(0.5):
        if len(streams) < 40:
            stream = share.client(14 + len(streams) % 2).socket
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            if len(streams) % 2:
                stream.sendall(b"POST /getLogs/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n")
            else:
                stream.sendall(b"GET /getBlockByNumber/latest/true/ HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
            stream.setblocking(False)
            streams.append(stream)
        for index, stream in enumerate(list(streams)):
            try:
                stream.send(b" ") if index % 2 else stream.recv(1)
            except BlockingIOError:
                pass
            except OSError:
                stream.close()
                streams.remove(stream)


def hostile(share):
    """Noise, half requests, endless calls, floods of connections, responses that are not read."""
    chance, source = random.Random(f"{share.seed} hostile"), 16
    endless = json.dumps({"Transaction": {"To": ENDLESS, "From": LOGGER}})
    # A response of a megabyte.
    long = json.dumps({"BlockCount": "1024", "NewestBlock": "latest", "RewardPercentiles": list(range(100))})
    while not share.ended.wait(0.05):
        streams = []
        try:
            choice = chance.randrange(6)
            for _ in range(200 if choice == 0 else 4):
                streams.append(share.client(source).socket)
            for stream in streams:
                stream.setblocking(False)
                client = Client.__new__(Client)
                client.host = "localhost"
                if choice == 1:
                    stream.send(chance.randbytes(2_000))
                elif choice == 2:
                    stream.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + chance.randbytes(2_000))
                elif choice == 3:
                    stream.send(client.post_bytes("/call/", endless))
                elif choice == 4:
                    stream.send(client.post_bytes("/feeHistory/", long) * 8)
                else:
                    stream.send(client.get_bytes("/blockNumber/")[:chance.randrange(60)])
            time.sleep(chance.uniform(0, 0.5))
        except OSError:
            # Refused or closed, as hostile clients may be.
            pass
        for stream in streams:
            stream.close()


class Share:
    """What the processes share."""

    def __init__(self, url, seed):
        self.url, self.seed = url, seed
        # Nothing is sent before the filter and the subscription exist: they do not report earlier logs.
        self.followed = multiprocessing.Barrier(3)
        # Before the first is set, the load does not begin. The second ends the load, the last ends what follows it.
        self.warm = multiprocessing.Event()
        self.ended, self.settled = multiprocessing.Event(), multiprocessing.Event()
        self.reports = multiprocessing.Queue()

    def client(self, index):
        return Client(self.url, f"127.0.1.{1 + index}")

    def latency(self, started):
        self.reports.put(("latency", time.time(), time.perf_counter() - started))


def difference(logs, chain):
    """Returns what the report of a failure adds."""
    if logs is None:
        return ": it has reported nothing in time"
    if logs == chain:
        return ""
    at = next((index for index, pair in enumerate(zip(logs, chain)) if pair[0] != pair[1]), min(len(logs), len(chain)))
    return f": {len(logs)} are reported; at {at} {logs[at:at + 2]} instead of {chain[at:at + 2]}"


def guarded(share, job, arguments):
    try:
        job(share, *arguments)
    except Exception as error:  # Whatever it is ends the run.
        if not isinstance(error, Failure):
            traceback.print_exc()
        share.reports.put(("failure", f"{job.__name__}: {error!r}"))


def files_and_threads(pid):
    """Returns the numbers of open files and of threads. The runs of the chain do not count, because it grows."""
    threads = int(next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines()
                       if line.startswith("Threads:")).split()[1])
    return sum(not is_run(file) for file in Path(f"/proc/{pid}/fd").iterdir()), threads


def is_run(file):
    try:
        return file.readlink().suffix == ".rows"
    except FileNotFoundError:
        return False  # Closed meanwhile.


class Run:
    """One run: the load, what is measured meanwhile, and the comparison at the end."""

    def __init__(self, options, work):
        self.options, self.work, self.seconds = options, work / "data", options.minutes * 60
        self.is_long = self.seconds >= 1_200
        self.warm = WARM if self.is_long else 0
        command = [options.bin / "transfers", "--count", str(self.warm + int(self.seconds * SENDS_PER_SECOND) + 1_000),
                   "--accounts", str(ACCOUNTS), "--to", LOGGER, "--gas", "60000"]
        lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        self.transactions = [line.split() for line in lines]
        self.server = nodes.Server(options.bin / "ethnode", "dev", "--data-dir", self.work, "--log", "error",
                                   "--accounts", ACCOUNTS, "--cache-mb", "32", "--call-timeout", "1s")
        self.failures, self.latencies, self.samples = [], [], []
        self.sent, self.logs, self.head = [], {}, None

    def check(self, holds, text):
        print(f"{'ok  ' if holds else 'FAIL'} {text}", flush=True)
        if not holds:
            self.failures.append(text)

    def take_reports(self, share, seconds):
        """Collects reports for some time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self.failures:
            try:
                report = share.reports.get(timeout=left)
            except Exception:
                return
            match report:
                case ("latency", at, spent):
                    self.latencies.append((at, spent))
                case ("sent", hash):
                    self.sent.append(hash)
                case ("logs", who, logs):
                    self.logs[who] = logs
                case ("head", head):
                    self.head = head
                case ("failure", text):
                    self.check(False, text)

    def run(self):
        server = self.server
        client = server.connect()
        client.post("/dev/setCode/", {"Address": LOGGER, "Code": LOGGER_CODE})
        client.post("/dev/setCode/", {"Address": ENDLESS, "Code": ENDLESS_CODE})
        client.post("/dev/mine/", {"Blocks": "10"})
        share = Share(server.url, self.options.seed)
        first = [(send, (self.transactions, self.warm)), (poll, ()), (subscribe, ())]
        later = [(read, (0,)), (read, (1,)), (control, ()), (slow, ()), (hostile, ())]
        processes = [multiprocessing.Process(target=guarded, args=(share, *job), daemon=True) for job in first + later]
        idle = files_and_threads(server.process.pid)
        for process in processes[:len(first)]:
            process.start()
        while not share.warm.is_set() and not self.failures:
            self.take_reports(share, 1)
        began = time.time()
        for process in processes[len(first):]:
            process.start()
        while time.time() - began < self.seconds and not self.failures:
            self.take_reports(share, min(5, self.seconds / 30))
            self.samples.append((time.time() - began, server.status("VmRSS"), *files_and_threads(server.process.pid)))
            if len(self.samples) % 12 == 0:
                at, memory, files, threads = self.samples[-1]
                print(f"     {at:.0f} s: {memory >> 20} MiB, {files} files, {threads} threads, {len(self.sent)} sent", flush=True)
        share.ended.set()
        self.take_reports(share, 3)
        # Nothing changes any more; the followers read the rest.
        share.settled.set()
        self.take_reports(share, 10)
        for process in processes:
            process.join(5)
            process.terminate()
        if not self.failures:
            # The first connection was idle for too long.
            self.compare(began, server.connect(), idle)
        server.stop()
        done = subprocess.run([self.options.bin / "ethnode", "verify", "--data-dir", self.work],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.check(done.returncode == 0, f"verify: {done.stdout.strip().splitlines()[-1]}")

    def compare(self, began, client, idle):
        head = client.get("/getBlockByNumber/latest/false/")["Block"]
        chain = []
        for first in range(0, (last := int(head["Number"])) + 1, 1_000):
            query = {"Address": LOGGER, "FromBlock": str(first), "ToBlock": str(min(first + 999, last))}
            logs = client.post("/getLogs/", query)["Logs"]
            chain += [(log["BlockHash"], log["TransactionHash"]) for log in logs]
        for who in ("filter", "subscription"):
            logs = self.logs.get(who)
            self.check(logs == chain, f"the {who} has reported the {len(chain)} logs of the chain{difference(logs, chain)}")
        self.check(self.head == head["Hash"], f"the subscription has reported the head, block {int(head['Number'])}")
        mined = {hash for _, hash in chain}
        waiting = [hash for hash in self.sent if hash not in mined]
        states = {client.get(f"/getTransactionStatus/{hash}/")["Status"] for hash in waiting}
        self.check(states <= {"pending", "queued"} and len(mined) == len(chain),
                   f"{len(self.sent)} transactions are in the chain or, {len(waiting)} of them, in the pool: {states or 'none'}")

        warm = self.seconds / 6
        early = statistics.median(memory for at, memory, *_ in self.samples if warm <= at < 2 * warm)
        late = statistics.median(memory for at, memory, *_ in self.samples if at >= self.seconds - warm)
        allowed = early * 1.1 if self.is_long else MEMORY_BOUND
        self.check(late <= allowed, f"memory: {early / 2**20:.0f} MiB after {warm / 60:.1f} min, {late / 2**20:.0f} at the end")
        first, last = (self.p99(began, *bounds) for bounds in ((warm, 3 * warm), (self.seconds - 2 * warm, self.seconds)))
        self.check(last <= first * 1.25 + LATENCY_NOISE[not self.is_long],
                   f"p99 of {len(self.latencies)} reads: {first * 1e3:.1f} ms early, {last * 1e3:.1f} late")
        # Connections of clients that are gone close within moments.
        for _ in range(100):
            files, threads = files_and_threads(self.server.process.pid)
            if files <= idle[0] + 8 and threads <= self.most_threads():
                break
            time.sleep(0.2)
        self.check(files <= idle[0] + 8, f"{idle[0]} files before the load, {files} after it")
        self.check(threads <= self.most_threads(), f"{idle[1]} threads before the load, {self.most_threads()} early, {threads} after it")

    def most_threads(self):
        """Returns the most threads in the first third: pools start them as they are needed."""
        return max(threads for at, _, _, threads in self.samples if at < self.seconds / 3)

    def p99(self, began, start, end):
        spent = [spent for at, spent in self.latencies if start <= at - began < end]
        return statistics.quantiles(spent, n=100)[98]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--bin", type=Path, help="folder of ethnode and transfers, where they are built already")
    options = parser.parse_args()
    options.bin = options.bin or nodes.build("node-tests:transfers")
    print(f"{nodes.machine()}\nseed {options.seed}, {options.minutes:g} minutes", flush=True)
    with tempfile.TemporaryDirectory(prefix="mixed-load-") as work:
        run = Run(options, Path(work))
        with run.server:
            run.run()
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
