"""The limits of a server under load: slow, greedy and deaf clients, and a stop under load."""

import contextlib
import json
import random
import resource
import socket
import statistics
import threading
import time

from benchmarks.requests import Case
from nodes import ALICE, ENDLESS, Connection, Failure, Server, WebSocket, check, frame, get_bytes, message, post_bytes

GIB = 1 << 30
LOGGER = "0x00000000000000000000000000000000000106e5"
# Logs 32 bytes until less than 10,000 gas is left.
LOGGER_CODE = "0x5b60206000a06127105a1160005700"
FULL_BLOCK = json.dumps(message("eth_getBlockByNumber", "0x1", True))
ALL_LOGS = json.dumps(message("eth_getLogs", {"fromBlock": "0x1", "toBlock": "latest"}))
LATEST = message("eth_getBlockByNumber", "latest", True)


def send(server, data="0x", to=ALICE, gas=15_000_000):
    server.rpc("eth_sendTransaction", {"from": ALICE, "to": to, "data": data, "gas": hex(gas)})


def a_long_block(server):
    """A response of 200 KiB, which hardly shrinks when it is compressed."""
    send(server, "0x" + random.Random(1).randbytes(100_000).hex())


def many_logs(server):
    """A response of 4 MB."""
    server.rpc("anvil_setCode", LOGGER, LOGGER_CODE)
    send(server, to=LOGGER, gas=6_600_000)


def encoded(encoding):
    return get_bytes("/getBlockByNumber/1/true/", "localhost", f"Accept-Encoding: {encoding}") * 16


# Clients that send requests and read nothing: what the chain has, options of the server, numbers of connections and of WebSockets, of
# addresses that they come from, and what each sends.
DEAF = {
    **{f"unread, {encoding}": (a_long_block, ["--max-connections", "16384"], 4_096, 256, 4, encoded(encoding), frame(FULL_BLOCK) * 16)
       for encoding in ("identity", "gzip", "br")},
    "large, connections": (many_logs, ["--max-streams", "4096"], 1_500, 0, 100, post_bytes("/", ALL_LOGS) * 10, b""),
    "large, WebSockets": (many_logs, ["--max-streams", "4096"], 0, 252, 100, b"", frame(ALL_LOGS) * 10),
    **{f"ahead, batches of {length}": (lambda server: None, [], 4_096, 0, 200, post_bytes("/", json.dumps([LATEST] * length)) * 100, b"")
       for length in (1, 10)},
}


def connect(server, source):
    """Connects from an address, with the smallest buffer for what the server sends."""
    stream = socket.socket()
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stream.bind((source, 0))
    stream.connect(("127.0.0.1", int(server.url.rsplit(":", 1)[1])))
    return stream


def send_at_once(stream, data):
    """Sends as much of `data` as the connection takes, and does not block from then on."""
    stream.setblocking(False)
    with contextlib.suppress(OSError):
        stream.send(data)


def deaf(options):
    """Thousands of connections and WebSockets that ask for long or many responses and read nothing: less than 1 GiB of memory."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (16_384, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    for name, (prepare, more, connections, sockets, addresses, requests, frames) in DEAF.items():
        with Server(options.server, "dev", "--rate-limit", "off", *more) as server, contextlib.ExitStack() as streams:
            prepare(server)
            begun, refused = server.memory(), 0
            for index in range(sockets):
                stream = streams.enter_context(connect(server, f"127.0.{2 + index % addresses}.1"))
                try:
                    WebSocket(stream)
                    send_at_once(stream, frames)
                except Failure:
                    refused += 1
            for index in range(connections):
                send_at_once(streams.enter_context(connect(server, f"127.0.{2 + index % addresses}.1")), requests)
            peak, ends = 0, time.monotonic() + max(4 * options.seconds, 5)
            while time.monotonic() < ends:
                peak = max(peak, server.memory())
                time.sleep(0.2)
            began = time.monotonic()
            server.get("/getBlockByNumber/latest/true/")
            check(peak < GIB, f"{name}: {connections} connections, {sockets} WebSockets ({refused} refused): {peak >> 20} MiB at most, "
                              f"{begun >> 20} before; another client waits {(time.monotonic() - began) * 1e3:.0f} ms")


def subscribers(options):
    """64 WebSockets that send requests and subscribe to everything, but read nothing, take less than 1 MiB of memory each."""
    count, blocks = 64, 2_000
    with Server(options.server, "dev") as server, contextlib.ExitStack() as stack:
        def grow():
            for _ in range(blocks // 100):
                # The response, and the notification, have 100 KiB.
                send(server, "0x" + "00" * 50_000)
                server.rpc("anvil_mine", hex(99))
            return server.memory()

        begun, grown = server.memory(), grow()
        streams = [stack.enter_context(connect(server, "127.0.0.1")) for _ in range(count)]
        for stream in streams:
            client = WebSocket(stream)
            for subscription in (["newHeads"], ["logs", {}], ["newPendingTransactions", True]):
                client.socket.sendall(frame(json.dumps(message("eth_subscribe", *subscription))))
            stream.setblocking(False)
        ends, sent = time.monotonic() + options.seconds, 0
        while time.monotonic() < ends:
            for stream in streams:
                with contextlib.suppress(BlockingIOError):
                    sent += stream.send(frame(FULL_BLOCK) * 100)
        heard = grow()
        established = 1
        kept = sum(stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == established for stream in streams)
        # The chain itself uses the same memory with and without them.
        each = max(heard - grown - (grown - begun), 0) / count
        check(each < 1 << 20 and kept == count, f"{count} WebSockets that sent {sent / count / 1024:.0f} KiB each and read nothing, over {blocks:,} "
                                                f"blocks: {each / 1024:.0f} KiB of memory each, {kept} of them still open")


def slow(options):
    """1,000 connections send one byte per second, half of them of the headers, half of a body: the p99 of other clients less than doubles."""
    head = b"POST /getLogs/ HTTP/1.1\r\nHost: localhost\r\n"
    whole = head + b"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
    case = Case("/getStorageAt/", [{"Address": ALICE, "Position": "0"}])
    with Server(options.server, "dev") as server:
        ends, opened = threading.Event(), []

        def drip():
            def open_one(index):
                stream = Connection(server.url).socket
                stream.sendall(whole if index % 2 else head)
                opened.append(index)
                return stream

            streams = [open_one(index) for index in range(1_000)]
            while not ends.wait(1):
                for index, stream in enumerate(streams):
                    try:
                        stream.sendall(b"x")
                    except OSError:
                        # The server has closed it, as documented: open another one.
                        stream.close()
                        streams[index] = open_one(index)
            for stream in streams:
                stream.close()

        without = statistics.median(case.measure(server, options, number).late for number in range(3))
        dripping = threading.Thread(target=drip, daemon=True)
        dripping.start()
        while len(opened) < 1_000:
            time.sleep(0.1)
        beside = statistics.median(case.measure(server, options, number).late for number in range(3))
        ends.set()
        dripping.join()
        check(beside < 2 * without, f"p99 of storage reads {beside:.2f} ms beside 1,000 slow connections ({len(opened)} in all), {without:.2f} ms without")


def ending(options):
    """SIGTERM while 64 connections send requests: each accepted request gets a complete response."""
    rounds, results = 5, []
    for _ in range(rounds):
        server = Server(options.server, "dev")

        def ask():
            with contextlib.suppress(OSError):
                connection = Connection(server.url)
                while True:
                    # An error here is a connection that ended between two responses.
                    connection.socket.sendall(connection.get_bytes("/getBlockByNumber/latest/true/"))
                    first = connection.socket.recv(65_536)
                    if not first:
                        return
                    try:
                        whole = connection.response(first)
                    except OSError:
                        whole = False
                    results.append(bool(whole))

        askers = [threading.Thread(target=ask) for _ in range(64)]
        for asker in askers:
            asker.start()
        time.sleep(1)
        server.stop()
        for asker in askers:
            asker.join()
    check(all(results) and results, f"{rounds} times SIGTERM under load, {results.count(True)} complete responses, {results.count(False)} truncated")


def endless(options):
    """32 endless calls end at their time limit, while /health responds within 50 ms."""
    limit, took, statuses, health = 3, [], set(), []
    with Server(options.server, "dev", "--gas-cap", "1000000000000", "--call-timeout", f"{limit}s") as server:
        def call():
            connection = server.connect()
            began = time.monotonic()
            statuses.add(connection.send(post_bytes("/call/", json.dumps({"Transaction": {"Data": ENDLESS, "Gas": "1000000000000"}})))[0])
            took.append(time.monotonic() - began)

        callers = [threading.Thread(target=call) for _ in range(32)]
        for caller in callers:
            caller.start()
        connection = server.connect()
        while any(caller.is_alive() for caller in callers):
            began = time.monotonic()
            connection.get("/health")
            health.append(time.monotonic() - began)
            time.sleep(0.01)
    # The measuring thread itself may wait for a processor that the calls occupy.
    check(max(took) < limit + 1 and statuses <= {422, 503}, f"32 calls without end finished within {max(took):.2f} s (limit {limit} s), with {statuses}")
    check(max(health) < 0.05, f"/health within {max(health) * 1e3:.1f} ms at most of {len(health)}, {statistics.median(health) * 1e3:.2f} ms usually")


# Two requests that occupy a thread for long, each as long as the limits allow: code, and a proof of 1,024 slots.
HEAVY = {
    "calls": message("eth_call", {"data": ENDLESS, "gas": "0x2faf080"}, "latest"),
    "proofs": message("eth_getProof", LOGGER, [hex(slot) for slot in range(1_024)], "latest"),
}


def neighbours(options):
    """A trivial call while 8 and 64 clients of other addresses send heavy requests one after the other; --before measures another program as well."""
    trivial = post_bytes("/", json.dumps(message("eth_call", {"to": ALICE, "data": "0x"}, "latest")))
    limit = {8: 5, 64: 50}
    for program in filter(None, (options.before, options.server)):
        for kind, request in HEAVY.items():
            with Server(program, "dev", "--rate-limit", "off", "--log", "warn") as server:
                for slot in range(1_024):
                    server.rpc("anvil_setStorageAt", LOGGER, f"0x{slot:064x}", f"0x{slot + 1:064x}")
                server.rpc("anvil_mine")
                alone = trivial_times(server, trivial, options.seconds)
                for count in (8, 64):
                    beside = beside_heavy(server, request, count, lambda: trivial_times(server, trivial, options.seconds))
                    median, late = statistics.median(beside) * 1e3, sorted(beside)[len(beside) * 99 // 100] * 1e3
                    holds = program != options.server or median < limit[count]
                    check(holds, f"{program.parent.name}/{program.name}: a trivial call beside {count} clients with {kind}: median {median:.2f} ms, p99 {late:.1f} ms, "
                                 f"{statistics.median(alone) * 1e3:.2f} ms without")


def trivial_times(server, request, seconds):
    """The times of requests that a client of its own address sends one after the other."""
    connection, times, ends = server.connect("127.0.1.1"), [], time.monotonic() + seconds
    while time.monotonic() < ends:
        began = time.monotonic()
        if connection.send(request)[0] != 200:
            raise Failure("a trivial call was refused")
        times.append(time.monotonic() - began)
        time.sleep(0.005)
    connection.socket.close()
    return times


def beside_heavy(server, request, count, measure):
    """Returns what `measure` returns while clients of `count` addresses send a request again and again."""
    over, body = threading.Event(), post_bytes("/", json.dumps(request))

    def client(index):
        connection = server.connect(f"127.0.2.{index + 1}")
        with contextlib.suppress(OSError):
            while not over.is_set():
                connection.send(body)

    clients = [threading.Thread(target=client, args=(index,)) for index in range(count)]
    for each in clients:
        each.start()
    time.sleep(1)
    try:
        return measure()
    finally:
        over.set()
        for each in clients:
            each.join()


def limits(options):
    """All of these; --only chooses some."""
    for part in (deaf, subscribers, slow, endless, neighbours, ending):
        if part.__name__.startswith(tuple(options.only or [""])):
            print(f" {part.__name__}: {part.__doc__}", flush=True)
            part(options)
