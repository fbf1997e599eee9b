#!/usr/bin/env python3
"""Measure a development chain under load: transactions sequentially and concurrently, and reads during endless calls.

    scripts/bench_dev.py [sequence] [pool] [rate] [calls] [--bin FOLDER] [--data FOLDER] [--anvil PROGRAM] [--count N]
                         [--seconds S] [--rounds N]

sequence  20,000 transactions over one connection to `dev --data-dir`, each sent after the response to the one before. Each
          response means that the transaction is durable and mined. Bar: 25 s for all of them; if an fdatasync takes more than
          0.3 ms, plus the excess for one sync per transaction. The last thousand must cost as much as the first.
pool      10,000 transactions of 1,000 senders over 16 connections: first without mining, then mined in one go; then with
          instant mining. Bars: 500 MB of memory, at most one second without a response.
rate      5,000 transactions a second of 1,000 senders over 16 connections, for --seconds, into blocks of one second. The time of
          a response counts from the moment at which its request was due, even if the connection was not free then. Bar: all are
          sent in time, with a p99 of 20 ms, and mined.
calls     16 clients run endless calls without pause; others read storage, request /health, and send transactions. Bar: the
          p99 of storage reads is below 10 ms.

--anvil also measures an anvil, with the parts that it supports. Transactions are signed before the clock starts. The client is
written in Python and adds to each time; the line about /health shows how much. The exit status is 1 if a bar is missed.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import nodes
from nodes import Connection, Failure, Server, build, fdatasync_seconds, machine

ALICE = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
# JUMPDEST, PUSH1 0, JUMP
ENDLESS = "0x5b600056"
SEQUENCE_BAR = 25.0
# If fdatasync takes longer, the bar is higher.
SYNC_SECONDS = 0.0003
SYNCS = 1
GROWTH_BAR = 1.3
MEMORY_BAR = 500e6
GAP_BAR = 1.0
READ_BAR = 0.010
RATE = 5_000
ACKNOWLEDGED_BAR = 0.020
CALLERS = 16


class Node:
    """Requests of ethnode."""

    name = "ethnode"

    def __init__(self, binary):
        self.binary = binary

    def start(self, *options, data=None):
        folder = ["--data-dir", data] if data else []
        return Server(self.binary, "dev", "--log", "error", *folder, *options)

    def prepare(self, connection, what, *values):
        """Returns the bytes of a request."""
        match what:
            case "health":
                return connection.get_bytes("/health")
            case "send":
                return connection.post_bytes("/sendRawTransaction/", json.dumps({"Data": values[0]}))
            case "storage":
                return connection.post_bytes("/getStorageAt/", json.dumps({"Address": ALICE, "Position": values[0]}))
            case "call":
                return connection.post_bytes("/call/", json.dumps({"Transaction": {"Data": ENDLESS}}))

    def refusal(self, response):
        """Returns the error in a response, or None if it is a success."""
        status, body = response
        return None if status == 200 else f"{status} {body.decode(errors='replace')}"

    def mined(self, connection):
        """Returns the number of mined transactions."""
        head = int(connection.get("/blockNumber/")["BlockNumber"])
        counts = (connection.get(f"/getBlockTransactionCountByNumber/{n}/") for n in range(head + 1))
        return sum(int(count["TransactionCount"]) for count in counts)


class Anvil:
    """The same requests in JSON-RPC."""

    name = "anvil"

    def __init__(self, program):
        self.program = program

    def start(self, *options, data=None):
        return nodes.Anvil(self.program, *options)

    def prepare(self, connection, what, *values):
        match what:
            case "health":
                method, parameters = "eth_chainId", []
            case "send":
                method, parameters = "eth_sendRawTransaction", [values[0]]
            case "storage":
                method, parameters = "eth_getStorageAt", [ALICE, hex(int(values[0])), "latest"]
            case "call":
                method, parameters = "eth_call", [{"data": ENDLESS}, "latest"]
        return connection.post_bytes("/", json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}))

    def refusal(self, response):
        error = json.loads(response[1]).get("error")
        return error and str(error)

    def mined(self, connection):
        def ask(method, *parameters):
            request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
            return int(connection.post("/", request)["result"], 16)

        return sum(ask("eth_getBlockTransactionCountByNumber", hex(n)) for n in range(ask("eth_blockNumber") + 1))


class Verdicts:
    """The bars that were checked."""

    def __init__(self):
        self.met = True

    def judge(self, text, value, bar, unit=""):
        met = value < bar
        self.met &= met
        print(f"  {'PASS' if met else 'FAIL'}  {text}: {value:.4g}{unit}, bar {bar:.4g}{unit}", flush=True)


def percentile(ordered, share):
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def describe(name, seconds, elapsed):
    """Prints the latencies of requests. Returns their p99."""
    ordered = sorted(seconds)
    p99 = percentile(ordered, 0.99)
    print(f"  {name:<44}{len(ordered):>8} responses{len(ordered) / elapsed:>9.0f}/s   p50 {statistics.median(ordered) * 1e3:8.3f} ms"
          f"   p99 {p99 * 1e3:8.3f} ms   max {ordered[-1] * 1e3:8.1f} ms", flush=True)
    return p99


def transfers(programs, count, accounts=10):
    """Returns signed transactions, round-robin over the accounts."""
    command = [programs / "transfers", "--count", str(count), "--accounts", str(accounts)]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return [line.split()[1] for line in lines]


def one_after_the_other(node, connection, requests):
    """Sends requests sequentially. Returns the seconds that each took."""
    taken = []
    for request in requests:
        started = time.perf_counter()
        response = connection.send(request)
        taken.append(time.perf_counter() - started)
        if refusal := node.refusal(response):
            raise Failure(refusal)
    return taken


def sequence(node, options, verdicts):
    raws = transfers(options.bin, options.count)
    with tempfile.TemporaryDirectory(dir=options.data) as parent:
        sync = fdatasync_seconds(parent)
        server = node.start(data=Path(parent, "data"))
        try:
            connection = server.connect()
            requests = [node.prepare(connection, "send", raw) for raw in raws]
            health = one_after_the_other(node, connection, [node.prepare(connection, "health")] * 2000)
            print(f"  fdatasync of 4 KiB: {sync * 1e3:.3f} ms; client and HTTP alone, by /health: "
                  f"{statistics.median(health) * 1e3:.3f} ms a request", flush=True)
            started = time.monotonic()
            taken = one_after_the_other(node, connection, requests)
            elapsed = time.monotonic() - started
            mined = node.mined(connection)
            while mined < len(raws):
                if time.monotonic() - started > elapsed + 60:
                    raise Failure(f"only {mined} of {len(raws)} were mined")
                mined = node.mined(connection)
                elapsed = time.monotonic() - started
            print(f"  {elapsed:.2f} s until all {mined} were mined; server's processor time {server.cpu():.1f} s, "
                  f"peak memory {server.status('VmHWM') / 1e6:.0f} MB")
            describe("transactions, one after the other", taken, elapsed)
            first, last = taken[:1000], taken[-1000:]
            middle = taken[len(taken) // 2:][:1000]
            for name, part in (("first", first), ("middle", middle), ("last", last)):
                describe(f"the {name} 1,000", part, sum(part))
            if node.name == Node.name:
                bar = (SEQUENCE_BAR + max(0, sync - SYNC_SECONDS) * SYNCS * 20_000) * options.count / 20_000
                verdicts.judge("all mined", elapsed, bar, " s")
                verdicts.judge("last 1,000 to first 1,000, medians", statistics.median(last) / statistics.median(first),
                               GROWTH_BAR)
        finally:
            server.stop()


def send_all(node, url, queues, results, rate=None):
    """Sends the transactions of each queue over a connection of its own: each after the response to the one before, but at most
    `rate` per second of each connection. Puts the (start, end) of each into a queue; with a rate, the start is when it was due."""
    spans, refusals = [], []

    def run(number, raws):
        connection = Connection(url)
        requests = [node.prepare(connection, "send", raw) for raw in raws]
        # The connections take turns.
        begun = time.monotonic() + number / len(queues) / rate if rate else 0
        for position, request in enumerate(requests):
            started = begun + position / rate if rate else time.monotonic()
            time.sleep(max(0, started - time.monotonic()))
            response = connection.send(request)
            spans.append((started, time.monotonic()))
            if refusal := node.refusal(response):
                refusals.append(refusal)

    threads = [threading.Thread(target=run, args=(number, raws)) for number, raws in enumerate(queues)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put((spans, refusals))


def send_from_processes(node, url, raws, senders, rate=None):
    """Sends transactions over 16 connections of 4 processes, those of a sender over the same one, at most `rate` per second in
    all. Returns the (start, end) of each."""
    connections, processes = 16, 4
    queues = [[raw for number, raw in enumerate(raws) if number % senders % connections == queue]
              for queue in range(connections)]
    results = multiprocessing.Queue()
    of_each = rate and rate / connections
    workers = [multiprocessing.Process(target=send_all, args=(node, url, queues[n::processes], results, of_each))
               for n in range(processes)]
    for worker in workers:
        worker.start()
    done = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    refusals = [refusal for _, of_worker in done for refusal in of_worker]
    if refusals:
        raise Failure(f"{len(refusals)} were refused: {refusals[0]}")
    return [span for of_worker, _ in done for span in of_worker]


def pool(node, options, verdicts):
    senders = 1000
    raws = transfers(options.bin, 10_000, senders)
    for waiting in (True, False):
        with tempfile.TemporaryDirectory(dir=options.data) as parent:
            mode = ["--no-mining"] if waiting else []
            server = node.start("--accounts", senders, *mode, data=Path(parent, "data"))
            try:
                title = "they wait" if waiting else "mined as they come"
                spans = send_from_processes(node, server.url, raws, senders)
                ends = sorted(end for _, end in spans)
                elapsed = ends[-1] - min(start for start, _ in spans)
                describe(f"10,000 sends over 16 connections, {title}", [end - start for start, end in spans], elapsed)
                connection = server.connect()
                if waiting and node.name == Node.name:
                    mining = time.monotonic()
                    connection.post("/dev/mine/", {"Blocks": "8"})
                    print(f"  mined in 8 blocks: {time.monotonic() - mining:.2f} s")
                if not waiting or node.name == Node.name:
                    mined = node.mined(connection)
                    if mined != len(raws):
                        raise Failure(f"{mined} of {len(raws)} are mined")
                memory = server.status("VmHWM")
                gap = max(after - before for before, after in zip(ends, ends[1:]))
                print(f"  longest time without a response {gap * 1e3:.0f} ms, peak memory {memory / 1e6:.0f} MB")
                if node.name == Node.name:
                    verdicts.judge(f"peak memory, {title}", memory / 1e6, MEMORY_BAR / 1e6, " MB")
                    verdicts.judge(f"longest time without a response, {title}", gap, GAP_BAR, " s")
            finally:
                server.stop()


def rate(node, options, verdicts):
    senders = 1000
    raws = transfers(options.bin, int(RATE * options.seconds), senders)
    with tempfile.TemporaryDirectory(dir=options.data) as parent:
        # A block has room for what arrives in two seconds.
        limits = ["--gas-limit", 2 * RATE * 21_000, "--accounts", senders]
        server = node.start("--block-time", 1, *limits, data=Path(parent, "data"))
        try:
            begun = time.monotonic()
            spans = send_from_processes(node, server.url, raws, senders, RATE)
            elapsed = max(end for _, end in spans) - min(start for start, _ in spans)
            p99 = describe(f"sends over 16 connections, {RATE}/s wanted", [end - start for start, end in spans], elapsed)
            connection = server.connect()
            while (mined := node.mined(connection)) < len(raws):
                if time.monotonic() - begun > options.seconds + 60:
                    raise Failure(f"only {mined} of {len(raws)} were mined")
                time.sleep(0.2)
            print(f"  server's processor time {server.cpu():.1f} s, peak memory {server.status('VmHWM') / 1e6:.0f} MB")
            if node.name == Node.name:
                verdicts.judge("p99 of an acknowledgement", p99 * 1e3, ACKNOWLEDGED_BAR * 1e3, " ms")
                verdicts.judge(f"seconds for {len(raws):,}", elapsed, options.seconds * 1.01, " s")
        finally:
            server.stop()


def call_endlessly(node, url, callers, ready, responses):
    """Sends endless calls, one after the other, until it is terminated."""
    def run():
        connection = Connection(url)
        request = node.prepare(connection, "call")
        while True:
            connection.send(request)
            with responses.get_lock():
                responses.value += 1

    for _ in range(callers):
        threading.Thread(target=run, daemon=True).start()
    ready.set()
    threading.Event().wait()


def ask_for(node, url, what, values, seconds, results):
    """Sends requests of one kind sequentially. Puts the seconds that each took into a queue."""
    connection = Connection(url)
    requests = [node.prepare(connection, what, *([value] if value is not None else [])) for value in values]
    taken, number, end = [], 0, time.monotonic() + seconds
    while time.monotonic() < end and (what != "send" or number < len(requests)):
        started = time.perf_counter()
        response = connection.send(requests[number % len(requests)])
        taken.append(time.perf_counter() - started)
        number += 1
        if refusal := node.refusal(response):
            results.put((what, taken, refusal))
            return
    results.put((what, taken, None))


def beside(node, server, wanted, seconds):
    """Sends requests from several processes at the same time. Returns the seconds of all requests of each kind."""
    results = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=ask_for, args=(node, server.url, what, values, seconds, results))
               for what, values in wanted]
    for worker in workers:
        worker.start()
    seen = {}
    for _ in workers:
        what, taken, refusal = results.get()
        if refusal:
            raise Failure(f"{what}: {refusal}")
        seen.setdefault(what, []).extend(taken)
    for worker in workers:
        worker.join()
    return seen


def calls(node, options, verdicts):
    raws = transfers(options.bin, 20_000)
    slots = [str(number) for number in range(100)]
    reader, health = ("storage", slots), ("health", [None])
    seconds, p99s = options.seconds, {1: [], 4: []}
    with tempfile.TemporaryDirectory(dir=options.data) as parent:
        server = node.start(data=Path(parent, "data"))
        try:
            quiet = beside(node, server, [reader], 3)
            describe("quiet: storage, 1 reader", quiet["storage"], 3)
            quiet = beside(node, server, [("send", raws[:3000])], 3)
            describe("quiet: sends, 1 sender", quiet["send"], sum(quiet["send"]))
            sent = 3000 - 3000 % 10 if len(quiet["send"]) == 3000 else len(quiet["send"])
            ready, responses = multiprocessing.Event(), multiprocessing.Value("L", 0)
            load = multiprocessing.Process(target=call_endlessly, args=(node, server.url, CALLERS, ready, responses))
            load.start()
            ready.wait()
            time.sleep(0.5)
            begun, calls_before = time.monotonic(), responses.value
            try:
                for _ in range(options.rounds):
                    for readers in (1, 4):
                        seen = beside(node, server, [reader] * readers, seconds)
                        p99s[readers].append(describe(f"under load: storage, {readers} reader(s)", seen["storage"], seconds))
                describe("under load: health", beside(node, server, [health], 3)["health"], 3)
                seen = beside(node, server, [("send", raws[sent:])], seconds)
                describe("under load: sends, 1 sender", seen["send"], sum(seen["send"]))
                sent += len(seen["send"])
                seen = beside(node, server, [("send", raws[sent:]), reader], seconds)
                describe("under load: sends, beside a reader", seen["send"], sum(seen["send"]))
                describe("under load: storage, beside a sender", seen["storage"], seconds)
                rate = (responses.value - calls_before) / (time.monotonic() - begun)
                print(f"  endless calls finished meanwhile: {rate:.1f}/s")
            finally:
                load.terminate()
                load.join()
            if node.name == Node.name:
                for readers, of_rounds in p99s.items():
                    verdicts.judge(f"p99 of storage reads, {readers} reader(s), median of {len(of_rounds)}",
                                   statistics.median(of_rounds) * 1e3, READ_BAR * 1e3, " ms")
        finally:
            server.stop()


def main():
    parts = {"sequence": sequence, "pool": pool, "rate": rate, "calls": calls}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="sequence, pool, rate or calls [default: all]")
    parser.add_argument("--bin", type=Path, help="folder with ethnode and transfers [default: build them]")
    parser.add_argument("--data", type=Path, help="where to create data folders; must be on a disk, not in memory")
    parser.add_argument("--anvil", help="an anvil to compare with")
    parser.add_argument("--count", type=int, default=20_000, help="transactions of `sequence`")
    parser.add_argument("--seconds", type=float, default=10, help="length of each measurement of `calls` and `rate`")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of storage reads in `calls`")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(parts):
        parser.error(f"no part is named {', '.join(sorted(unknown))}")
    options.bin = options.bin or build("node-tests:transfers", profile="dist")
    nodes = [Node(options.bin / "ethnode")] + ([Anvil(options.anvil)] if options.anvil else [])
    print(machine(), flush=True)
    verdicts = Verdicts()
    for name in options.parts or parts:
        for node in nodes:
            print(f"{name}, {node.name}:", flush=True)
            try:
                parts[name](node, options, verdicts)
            except (Failure, OSError) as failure:
                print(f"  {'FAIL' if node.name == Node.name else 'ended'}  {failure}", flush=True)
                verdicts.met &= node.name != Node.name
    return 0 if verdicts.met else 1


if __name__ == "__main__":
    sys.exit(main())
