"""A development chain under load. Transactions are signed before the clock starts.
The client is written in Python and adds to each time; the line about eth_chainId shows how much. With --anvil, an anvil is measured as well,
without bars.
"""

import json
import multiprocessing
import random
import statistics
import tempfile
import threading
import time
from pathlib import Path

from nodes import ALICE, ENDLESS, Anvil, Connection, Failure, Server, check, fdatasync_seconds, machine, message, transfers, wait_for

RATE = 5_000
CALLERS = 16
SENDERS = 1_000
CONNECTIONS = 16


def prepare(connection, method, *parameters):
    """Returns the bytes of a request."""
    return connection.post_bytes("/", json.dumps(message(method, *parameters)))


def failure_of(response):
    """Returns the error in a response, or None if it is a success."""
    return None if b'"error"' not in response[1] and response[0] == 200 else response[1].decode(errors="replace")[:1000]


def judge(judged, text, value, bar, unit=""):
    if judged:
        check(value < bar, f"{text}: {value:.4g}{unit}, bar {bar:.4g}{unit}")


def describe(name, seconds, elapsed):
    """Prints the latencies of requests. Returns their p99."""
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
    print(f"  {name:<44}{len(ordered):>8} responses{len(ordered) / elapsed:>9.0f}/s   p50 {statistics.median(ordered) * 1e3:8.3f} ms"
          f"   p99 {p99 * 1e3:8.3f} ms   max {ordered[-1] * 1e3:8.1f} ms", flush=True)
    return p99


def servers(options, *more, data=True):
    """Yields a server of each kind, and whether it is this one, to which the bars apply."""
    print(machine())
    for ours in (True, False)[:1 + options.anvil]:
        with tempfile.TemporaryDirectory(dir=options.work) as parent:
            folder = ["--data-dir", Path(parent, "data")] if data else []
            print(f" {'ethnode' if ours else 'anvil'}:", flush=True)
            with Server(options.server, "dev", "--log", "error", *folder, *more) if ours else Anvil(*map(str, more)) as server:
                yield server, ours
                if server.process.poll() is None:
                    server.stop()


def one_after_the_other(connection, requests):
    """Sends requests sequentially. Returns the seconds that each took."""
    taken = []
    for request in requests:
        started = time.perf_counter()
        response = connection.send(request)
        taken.append(time.perf_counter() - started)
        if failure := failure_of(response):
            raise Failure(failure)
    return taken


def sends(connection, signed):
    return [prepare(connection, "eth_sendRawTransaction", raw) for _, raw in signed]


def sequence(options):
    """Transactions over one connection, each sent after the response to the one before, which means durable and mined."""
    signed = transfers(options.bin, options.count, "--accounts", 10)
    for server, ours in servers(options):
        connection, sync = server.connect(), fdatasync_seconds(options.work)
        alone = one_after_the_other(connection, [prepare(connection, "eth_chainId")] * 2000)
        print(f"  fdatasync of 4 KiB: {sync * 1e3:.3f} ms; client and HTTP alone: {statistics.median(alone) * 1e3:.3f} ms a request", flush=True)
        requests, started = sends(connection, signed), time.monotonic()
        taken = one_after_the_other(connection, requests)
        elapsed = time.monotonic() - started
        wait_until_mined(connection, len(signed), 60)
        print(f"  {elapsed:.2f} s for {len(signed)}; server's processor time {server.cpu():.1f} s, peak memory {server.memory('VmHWM') / 1e6:.0f} MB")
        first, last = taken[:1000], taken[-1000:]
        for name, part in (("transactions, one after the other", taken), ("the first 1,000", first), ("the last 1,000", last)):
            describe(name, part, sum(part))
        # If fdatasync takes longer than 0.3 ms, plus the excess for one sync per transaction.
        judge(ours, "all sent", elapsed, (25 + max(0, sync - 0.0003) * 20_000) * options.count / 20_000, " s")
        judge(ours, "last 1,000 to first 1,000, medians", statistics.median(last) / statistics.median(first), 1.3)


def wait_until_mined(connection, count, seconds):
    def mined():
        head = int(connection.rpc("eth_blockNumber"), 16)
        return sum(int(connection.rpc("eth_getBlockTransactionCountByNumber", hex(number)), 16) for number in range(head + 1))
    wait_for(f"mining of {count} transactions", lambda: mined() >= count, seconds)


def rate(options):
    """5,000 transactions a second of 1,000 senders over 16 connections, into blocks of one second. A response counts from when its request was due."""
    signed = transfers(options.bin, int(RATE * options.seconds), "--accounts", SENDERS)
    queues = [[pair for number, pair in enumerate(signed) if number % SENDERS % CONNECTIONS == queue] for queue in range(CONNECTIONS)]
    # A block has room for what arrives in two seconds.
    for server, ours in servers(options, "--block-time", 1, "--gas-limit", 2 * RATE * 21_000, "--accounts", SENDERS):
        wanted = [([("eth_sendRawTransaction", raw) for _, raw in queue], True) for queue in queues]
        began = time.monotonic()
        taken = beside(server.url, wanted, options.seconds + 60, RATE / CONNECTIONS)["eth_sendRawTransaction"]
        elapsed = time.monotonic() - began
        p99 = describe(f"sends over 16 connections, {RATE}/s wanted", taken, elapsed)
        wait_until_mined(server.connect(), len(signed), options.seconds + 60)
        print(f"  server's processor time {server.cpu():.1f} s, peak memory {server.memory('VmHWM') / 1e6:.0f} MB")
        judge(ours, "p99 of an acknowledgement", p99 * 1e3, 20, " ms")


def call_endlessly(url, ready, responses):
    """Sends endless calls, one after the other over each connection, until it is terminated."""
    def work():
        connection = Connection(url)
        request = prepare(connection, "eth_call", {"data": ENDLESS}, "latest")
        while True:
            connection.send(request)
            with responses.get_lock():
                responses.value += 1

    for _ in range(CALLERS):
        threading.Thread(target=work, daemon=True).start()
    ready.set()
    threading.Event().wait()


def ask_for(url, calls, seconds, once, rate, results):
    """Sends requests sequentially, each once or over and over. Puts the seconds that each took into a queue, with a rate from when it was due."""
    connection = Connection(url)
    requests = [prepare(connection, *call) for call in calls]
    # The connections take turns.
    taken, number, begun = [], 0, time.monotonic() + (random.random() / rate if rate else 0)
    while time.monotonic() < begun + seconds and (not once or number < len(requests)):
        started = begun + number / rate if rate else time.monotonic()
        time.sleep(max(0, started - time.monotonic()))
        response = connection.send(requests[number % len(requests)])
        taken.append(time.monotonic() - started)
        number += 1
        if failure := failure_of(response):
            results.put((calls[0][0], taken, failure))
            return
    results.put((calls[0][0], taken, None))


def beside(url, wanted, seconds, rate=None):
    """Sends requests from several processes at the same time, at most `rate` a second each. Returns the seconds of all requests of each method."""
    results = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=ask_for, args=(url, calls, seconds, once, rate, results)) for calls, once in wanted]
    for worker in workers:
        worker.start()
    seen = {}
    for _ in workers:
        method, taken, failure = results.get()
        if failure:
            raise Failure(f"{method}: {failure}")
        seen.setdefault(method, []).extend(taken)
    for worker in workers:
        worker.join()
    return seen


def calls(options):
    """Storage reads, sends and eth_chainId while 16 clients run endless calls without pause."""
    signed = transfers(options.bin, 12_000, "--accounts", 10)
    read, chain_id = ([("eth_getStorageAt", ALICE, hex(slot), "latest") for slot in range(100)], False), ([("eth_chainId",)], False)
    for server, ours in servers(options):
        sent = 0

        def send(where, seconds, *others):
            nonlocal sent
            calls = [("eth_sendRawTransaction", raw) for _, raw in signed[sent:sent + 3000]]
            seen = beside(server.url, [(calls, True), *others], seconds)
            sent += len(seen["eth_sendRawTransaction"])
            for method, taken in seen.items():
                describe(f"{where}: {method}", taken, sum(taken))

        describe("quiet: storage, 1 reader", beside(server.url, [read], 3)["eth_getStorageAt"], 3)
        send("quiet", 3)
        ready, responses = multiprocessing.Event(), multiprocessing.Value("L", 0)
        load = multiprocessing.Process(target=call_endlessly, args=(server.url, ready, responses))
        load.start()
        ready.wait()
        time.sleep(0.5)
        begun, before = time.monotonic(), responses.value
        try:
            p99s = {readers: statistics.median(
                describe(f"under load: storage, {readers} reader(s)", beside(server.url, [read] * readers, options.seconds)["eth_getStorageAt"],
                         options.seconds) for _ in range(options.rounds)) for readers in (1, 4)}
            describe("under load: eth_chainId", beside(server.url, [chain_id], 3)["eth_chainId"], 3)
            send("under load", options.seconds)
            send("under load, together", options.seconds, read)
            print(f"  endless calls finished meanwhile: {(responses.value - before) / (time.monotonic() - begun):.1f}/s")
        finally:
            load.terminate()
            load.join()
        for readers, p99 in p99s.items():
            judge(ours, f"p99 of storage reads, {readers} reader(s), median of {options.rounds}", p99 * 1e3, 10, " ms")


def size(options):
    """Memory of a chain in memory after transactions one after the other, each in a block of its own, and idling after them."""
    for count, bar in ((options.count, 200), (5 * options.count, 350)):
        signed = transfers(options.bin, count, "--accounts", 10)
        for server, ours in servers(options, data=False):
            print(f"  listening after {getattr(server, 'seconds', 0) * 1e3:.0f} ms, {server.memory() / 1e6:.0f} MB", flush=True)
            connection = server.connect()
            describe(f"{count} transactions", taken := one_after_the_other(connection, sends(connection, signed)), sum(taken))
            print(f"  processor time {server.cpu():.1f} s, peak memory {server.memory('VmHWM') / 1e6:.0f} MB")
            judge(ours, f"memory after {count} transactions", server.memory() / 1e6, bar * max(1, count / 100_000), " MB")


def dev(options):
    """Sends one after the other, sends at a rate, and reads during endless calls; --only chooses some."""
    for part in (sequence, rate, calls):
        if part.__name__.startswith(tuple(options.only or [""])):
            part(options)
