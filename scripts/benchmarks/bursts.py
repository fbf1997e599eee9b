"""Clients that take as much memory as their limits allow: how much that is, and how much remains."""

import contextlib
import gzip
import json
import os
import threading
import time
from pathlib import Path

from benchmarks.limits import LOGGER, send
from nodes import Connection, Failure, Server, WebSocket, check, message, post_bytes

MIB = 1 << 20
# Most memory above that before a burst, and above it some seconds after.
PEAK, REST = 512 * MIB, int(os.environ.get("BURST_REST", 64)) * MIB
# Seconds in which memory returns.
RETURN = 20
# PUSH3 1,300,000, PUSH1 0, LOG0.
LONG_LOG = "0x6213d6206000a0"
# 4,000 topics and 1,000 addresses.
LARGE_FILTER = {"address": [f"0x{index:040x}" for index in range(1_000)],
                "topics": [[f"0x{position:02x}{index:062x}" for index in range(1_000)] for position in range(4)]}


@contextlib.contextmanager
def burst(server, name):
    """Checks how much more memory the server takes at most during the block, and how much more after it."""
    begun, told = server.memory(), []
    # Resets the peak.
    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")
    yield told
    peak = server.memory("VmHWM") - begun
    ends = time.monotonic() + RETURN
    while (rest := server.memory() - begun) > REST and time.monotonic() < ends:
        time.sleep(0.2)
    check(peak < PEAK and rest < REST, f"{name}: {peak / MIB:.0f} MiB at most above {begun / MIB:.0f}, {rest / MIB:.0f} after; {', '.join(told)}")


def at_once(count, work):
    """Calls a function in so many threads. Returns the results."""
    results = []
    threads = [threading.Thread(target=lambda: results.append(work())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(results) < count:
        raise Failure(f"{count - len(results)} of {count} threads failed")
    return results


def outcomes(responses):
    """Counts responses of JSON-RPC, by the beginning of the error."""
    texts = [json.loads(body[:2_000]).get("error", {}).get("message", "")[:60] if len(body) < 2_000 else f"{len(body) / MIB:.0f} MiB"
             for _, body in responses]
    return "; ".join(f"{texts.count(text)} times {text}" for text in sorted(set(texts)))


def subscriptions(options):
    """128 WebSockets subscribe to logs of 1,000 addresses with 4,000 topics each, up to 100 times; then blocks are mined."""
    subscription = json.dumps(message("eth_subscribe", "logs", LARGE_FILTER)).encode()
    # A masked frame with a length of eight bytes.
    request = bytes([0x81, 0xff]) + len(subscription).to_bytes(8) + bytes(4) + subscription
    with Server(options.server, "dev") as server, burst(server, "subscriptions") as told, contextlib.ExitStack() as stack:
        accepted = 0
        for _ in range(128):
            client = WebSocket(stack.enter_context(Connection(server.url).socket))
            for _ in range(100):
                client.socket.sendall(request)
                if "error" in client.receive(60):
                    break
                accepted += 1
        before = server.cpu()
        for _ in range(20):
            server.rpc("evm_mine")
        time.sleep(1)
        told += [f"{accepted} accepted", f"{(server.cpu() - before) / 20 * 1e3:.0f} ms of processor time for a block"]


def logs(options):
    """Four clients request 150 logs of 1.3 MB at once; with the block that the refusal states, one gets the logs that fit."""
    with Server(options.server, "dev") as server:
        server.rpc("anvil_setCode", LOGGER, LONG_LOG)
        for _ in range(150):
            send(server, to=LOGGER)
        with burst(server, "logs") as told:
            def request(last="latest"):
                search = json.dumps(message("eth_getLogs", {"fromBlock": "0x1", "toBlock": last}))
                return Connection(server.url).send(post_bytes("/", search))

            told.append(outcomes(at_once(4, request)))
            refused = json.loads(request()[1])["error"]["message"]
            last = int(refused.split("up to block ")[1].split()[0])
            told.append(f"up to block {last}: {len(request(hex(last))[1]) / MIB:.0f} MiB")


def pool(options):
    """Four clients request the content of a pool of 214 MB at once."""
    with Server(options.server, "dev", "--no-mining") as server:
        accounts = server.rpc("eth_accounts")
        data = "0x" + "00" * 130_000
        connection = Connection(server.url)
        for index in range(1_650):
            connection.rpc("eth_sendTransaction", {"from": accounts[index % 10], "to": LOGGER, "data": data, "gas": hex(1_500_000)})
        with burst(server, "pool") as told:
            request = post_bytes("/", json.dumps(message("txpool_content")))
            told.append(outcomes(at_once(4, lambda: Connection(server.url).send(request))))


def members(options):
    """Four clients send 5 MB of empty gzip members at once."""
    empty = gzip.compress(b"")
    body = empty * (5_000_000 // len(empty))
    head = f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
    with Server(options.server, "dev") as server, burst(server, "empty gzip members") as told:
        before = server.cpu()
        statuses = at_once(4, lambda: Connection(server.url).send(head.encode() + body)[0])
        each = (server.cpu() - before) / 4
        told.append(f"{each * 1e3:.0f} ms of processor time each, statuses {sorted(set(statuses))}")
        check(each < 0.2, "a body of empty members takes less than 200 ms of processor time")


def bursts(options):
    """All of these; --only chooses some."""
    for part in (subscriptions, logs, pool, members):
        if part.__name__.startswith(tuple(options.only or [""])):
            print(f" {part.__name__}: {part.__doc__}", flush=True)
            part(options)
