#!/usr/bin/env python3
"""Check the limits of the server under load, and measure the cost of its features. Needs wrk.

    scripts/bench_limits.py [PART...] [--bin FOLDER] [--seconds N]

slow    1,000 connections send one byte per second; the p99 of other clients less than doubles
calls   32 endless calls end at their time limit, while /health responds within 50 ms
flood   a client above its rate gets 429 for the excess only; another client is not affected
deaf    64 WebSockets that send requests and subscribe, but read nothing, take less than 1 MiB of memory each
unread  4,096 connections and WebSockets of four clients that ask for long responses, compressed or not, and read nothing: less than
        1 GiB of memory
large   1,500 connections, then 252 WebSockets, of 100 clients that ask ten times for 4 MB of logs and read nothing: less than 1 GiB
        of memory
ahead   4,096 connections of 200 clients that send 100 short requests at once and read nothing: less than 1 GiB of memory
streams 4,096 HTTP/2 connections with a window of zero and 16 streams each for 16 or 48 KB, and 2,048 with four for 48 KB in `br`:
        less than 1 GiB of memory
ending  SIGTERM under load truncates no response
cost    requests per second of getStorageAt with all features enabled, compared with a bare route (tests/examples/bare.rs)

The exit status is 1 if a check fails.
"""

import argparse
import random
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import nodes

ACCOUNT = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
LOGGER = "0x00000000000000000000000000000000000106e5"
STORAGE = f'{{"Address": "{ACCOUNT}", "Position": "0"}}'
# JUMPDEST PUSH1 0 JUMP
ENDLESS = '{"Transaction": {"Data": "0x5b600056", "Gas": "1000000000000"}}'
TOKEN = "token-of-the-benchmark"


class Verdicts:
    """Results, and whether all are within their bars."""

    def __init__(self):
        self.failed = False

    def report(self, what, holds):
        self.failed |= not holds
        print(f"{'ok  ' if holds else 'FAIL'} {what}", flush=True)


def wrk(url, seconds, connections=16, body=None, headers=()):
    """Returns requests per second, the p99 in milliseconds, and the number of responses that are not 2xx or 3xx."""
    script = ""
    if body is not None:
        script = f"wrk.method = 'POST'\nwrk.body = [[{body}]]\nwrk.headers['Content-Type'] = 'application/json'\n"
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", file.name]
        for header in headers:
            command += ["-H", header]
        text = subprocess.run([*command, url], check=True, capture_output=True, text=True).stdout
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1))
    value, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", text).groups()
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    broken = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    return {
        "rate": rate,
        "requests": int(re.search(r"(\d+) requests in", text).group(1)),
        "p99": float(value) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit],
        "refused": int(refused.group(1)) if refused else 0,
        "broken": sum(map(int, broken.groups())) if broken else 0,
    }


def address(url):
    host, port = url.split("//", 1)[1].rstrip("/").rsplit(":", 1)
    return host, int(port)


def slow(programs, verdicts, seconds):
    """1,000 connections that send one byte per second, half of them of the headers, half of a body."""
    server = nodes.Server(programs / "ethnode", "dev")
    storage = server.url + "/getStorageAt/"
    ends = threading.Event()
    opened = [0]

    def drip():
        head = b"POST /getLogs/ HTTP/1.1\r\nHost: localhost\r\n"
        whole = head + b"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
        streams = []

        def connect(index):
            stream = socket.create_connection(address(server.url))
            stream.sendall(whole if index % 2 else head)
            opened[0] += 1
            return stream

        streams = [connect(index) for index in range(1_000)]
        while not ends.wait(1):
            for index, stream in enumerate(streams):
                try:
                    stream.sendall(b"x")
                except OSError:
                    # The server has closed it, as documented: open another one.
                    stream.close()
                    streams[index] = connect(index)
        for stream in streams:
            stream.close()

    before = [wrk(storage, seconds, body=STORAGE)["p99"] for _ in range(3)]
    dripping = threading.Thread(target=drip, daemon=True)
    dripping.start()
    while opened[0] < 1_000:
        time.sleep(0.1)
    beside = [wrk(storage, seconds, body=STORAGE) for _ in range(3)]
    ends.set()
    dripping.join()
    server.stop()
    without, with_them = statistics.median(before), statistics.median(one["p99"] for one in beside)
    verdicts.report(
        f"slow: p99 of storage reads {with_them:.2f} ms beside 1,000 slow connections ({opened[0]} in all), "
        f"{without:.2f} ms without: {with_them / without:.2f} times",
        with_them < 2 * without and not any(one["refused"] or one["broken"] for one in beside),
    )


def calls(programs, verdicts, seconds):
    """32 endless calls, and /health meanwhile."""
    limit = 3
    server = nodes.Server(programs / "ethnode", "dev", "--gas-cap", "1000000000000", "--call-timeout", f"{limit}s")
    took, statuses = [], []

    def run():
        connection = server.connect()
        began = time.monotonic()
        status, _ = connection.send(connection.post_bytes("/call/", ENDLESS))
        took.append(time.monotonic() - began)
        statuses.append(status)

    callers = [threading.Thread(target=run) for _ in range(32)]
    for caller in callers:
        caller.start()
    connection = server.connect()
    health = []
    while any(caller.is_alive() for caller in callers):
        began = time.monotonic()
        status, _ = connection.send(connection.get_bytes("/health"))
        health.append(time.monotonic() - began)
        if status != 200:
            verdicts.report(f"calls: /health returned {status}", False)
        time.sleep(0.01)
    server.stop()
    # The measuring thread itself may wait for a processor that the calls occupy.
    verdicts.report(
        f"calls: 32 calls without end finished within {max(took):.2f} s (limit {limit} s), with {sorted(set(statuses))}",
        max(took) < limit + 1 and set(statuses) <= {422, 503},
    )
    verdicts.report(
        f"calls: /health within {max(health) * 1e3:.1f} ms at most of {len(health)}, "
        f"{statistics.median(health) * 1e3:.2f} ms usually",
        max(health) < 0.050,
    )


def flood(programs, verdicts, seconds):
    """Far more than the allowed rate from one client, and a few requests from another."""
    limit = 200
    server = nodes.Server(programs / "ethnode", "dev", "--rate-limit", limit, "--trusted-proxies", "127.0.0.1")
    polite = []

    def ask():
        for _ in range(seconds * 10):
            connection = server.connect()
            request = connection.get_bytes("/chainId/").replace(b"\r\n\r\n", b"\r\nX-Forwarded-For: 203.0.113.2\r\n\r\n")
            polite.append(connection.send(request)[0])
            time.sleep(0.1)

    asking = threading.Thread(target=ask)
    asking.start()
    flooded = wrk(server.url + "/chainId/", seconds, headers=["X-Forwarded-For: 203.0.113.1"])
    asking.join()
    server.stop()
    total = flooded["requests"]
    served = total - flooded["refused"]
    verdicts.report(
        f"flood: of {total} requests in {seconds} s, {served} were served at a limit of {limit} a second",
        limit * seconds * 0.9 <= served <= limit * (seconds + 1) * 1.1 and not flooded["broken"],
    )
    verdicts.report(
        f"flood: another client got {polite.count(200)} of {len(polite)} responses", polite.count(200) == len(polite)
    )


def deaf(programs, verdicts, seconds):
    """64 WebSockets that subscribe to everything, send requests until the socket is full, and read nothing."""
    count, blocks = 64, 2_000
    with nodes.Server(programs / "ethnode", "dev") as server:
        server.ask("/dev/impersonate/", {"Address": ACCOUNT})

        def grow():
            for _ in range(blocks // 100):
                # The response, and the notification, have 100 KiB.
                server.ask("/dev/sendTransaction/", {"Transaction": {"From": ACCOUNT, "To": ACCOUNT, "Data": "0x" + "00" * 50_000}})
                server.ask("/dev/mine/", {"Blocks": 99})
            return server.status("VmRSS")

        begun = server.status("VmRSS")
        grown = grow()
        ask = frame('{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x1",true]}')
        subscribe = [frame(f'{{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["{kind}"{options}]}}')
                     for kind, options in (("newHeads", ""), ("logs", ",{}"), ("newPendingTransactions", ",true"))]
        streams, sent = [], 0
        for _ in range(count):
            stream = connect_deaf(server, "127.0.0.1")
            if not upgrade(stream):
                raise nodes.Failure("the WebSocket was refused")
            stream.sendall(b"".join(subscribe))
            stream.setblocking(False)
            streams.append(stream)
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            for stream in streams:
                try:
                    sent += stream.send(ask * 100)
                except BlockingIOError:
                    pass
        heard = grow()
        kept = sum(is_open(stream) for stream in streams)
        # The chain itself uses the same memory with and without them.
        each = max(heard - grown - (grown - begun), 0) / count
        verdicts.report(
            f"deaf: {count} WebSockets that sent {sent / count / 1024:.0f} KiB each and read nothing, over {blocks:,} blocks: "
            f"{each / 1024:.0f} KiB of memory each, {kept} of them still open",
            each < 1 << 20 and kept == count,
        )
        for stream in streams:
            stream.close()
        server.stop()


def connect_deaf(server, source):
    """Connects from the address `source`, with the smallest buffer for what the server sends."""
    stream = socket.socket()
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stream.bind((source, 0))
    stream.connect(address(server.url))
    return stream


def upgrade(stream):
    """Returns whether the server accepts a WebSocket on this connection."""
    stream.sendall(b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                   b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
    return stream.recv(4096).startswith(b"HTTP/1.1 101")


def send_at_once(stream, data):
    """Sends as much of `data` as the connection takes, and does not block from then on."""
    stream.setblocking(False)
    try:
        stream.send(data)
    except OSError:
        pass


def post(body):
    """Returns the bytes of a JSON-RPC request."""
    head = f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head + body).encode()


def allow_many_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (16_384, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def most_memory(server, seconds):
    """Returns the most memory that a server takes within that time, in bytes."""
    peak, ends = 0, time.monotonic() + seconds
    while time.monotonic() < ends:
        peak = max(peak, server.status("VmRSS"))
        time.sleep(0.2)
    return peak


def large(programs, verdicts, seconds):
    """1,500 connections or 252 WebSockets that ask ten times for 4 MB of logs and read nothing."""
    allow_many_files()
    # Logs 32 bytes until less than 10,000 gas is left.
    code = "0x5b60206000a06127105a1160005700"
    body = '{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x1","toBlock":"latest"}]}'
    for kind, count in (("connections", 1_500), ("WebSockets", 252)):
        with nodes.Server(programs / "ethnode", "dev", "--rate-limit", "off", "--max-streams", "4096") as server:
            server.ask("/dev/impersonate/", {"Address": ACCOUNT})
            server.ask("/dev/setCode/", {"Address": LOGGER, "Code": code})
            server.ask("/dev/sendTransaction/", {"Transaction": {"From": ACCOUNT, "To": LOGGER, "Gas": "6600000"}})
            connection = server.connect()
            _, response = connection.send(post(body))
            begun, streams, refused = server.status("VmRSS"), [], 0
            for index in range(count):
                stream = connect_deaf(server, f"127.0.{2 + index % 100}.1")
                streams.append(stream)
                if kind == "connections":
                    send_at_once(stream, post(body) * 10)
                elif upgrade(stream):
                    send_at_once(stream, frame(body) * 10)
                else:
                    refused += 1
            peak = most_memory(server, max(seconds, 30))
            verdicts.report(
                f"large: {count} {kind} ({refused} refused) that ask ten times for {len(response) / 1e6:.1f} MB and read nothing: "
                f"{peak >> 20} MiB at most ({begun >> 20} before)",
                peak < 1 << 30 and len(response) > 4e6 and refused == 0,
            )
            for stream in streams:
                stream.close()
            server.stop()


def ahead(programs, verdicts, seconds):
    """4,096 connections that send 100 JSON-RPC batches at once, of one request or of ten, and read nothing."""
    allow_many_files()
    call = '{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["latest",true]}'
    for length in (1, 10):
        request = post(f"[{','.join([call] * length)}]")
        with nodes.Server(programs / "ethnode", "dev", "--rate-limit", "off") as server:
            begun, streams = server.status("VmRSS"), []
            for index in range(4_096):
                stream = connect_deaf(server, f"127.0.{2 + index % 200}.1")
                send_at_once(stream, request * 100)
                streams.append(stream)
            peak = most_memory(server, max(seconds, 20))
            verdicts.report(
                f"ahead: 4,096 connections that send 100 batches of {length} and read nothing: {peak >> 20} MiB at most "
                f"({begun >> 20} before)",
                peak < 1 << 30,
            )
            for stream in streams:
                stream.close()
            server.stop()


def unread(programs, verdicts, seconds):
    """4,096 connections from four addresses that ask for long responses, and 256 WebSockets, all of which read nothing."""
    allow_many_files()
    for encoding in ("identity", "gzip", "br"):
        unread_in(programs, verdicts, seconds, encoding)


def unread_in(programs, verdicts, seconds, encoding):
    """Like `unread`, for responses in one encoding."""
    with nodes.Server(programs / "ethnode", "dev", "--max-connections", "16384", "--rate-limit", "off") as server:
        server.ask("/dev/impersonate/", {"Address": ACCOUNT})
        # A response of 200 KiB, which hardly shrinks when it is compressed.
        sent = {"From": ACCOUNT, "To": ACCOUNT, "Data": "0x" + random.Random(1).randbytes(100_000).hex()}
        server.ask("/dev/sendTransaction/", {"Transaction": sent})
        get = f"GET /getBlockByNumber/1/true/ HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: {encoding}\r\n\r\n".encode()
        ask = frame('{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x1",true]}')
        begun, streams, sockets = server.status("VmRSS"), [], []
        for index in range(256):
            stream = connect_deaf(server, f"127.0.0.{2 + index % 4}")
            streams.append(stream)
            if upgrade(stream):
                sockets.append(stream)
        plain = [connect_deaf(server, f"127.0.0.{2 + index % 4}") for index in range(4_096)]
        for stream in plain:
            send_at_once(stream, get * 16)
        for stream in sockets:
            send_at_once(stream, ask * 16)
        streams += plain
        peak = most_memory(server, max(seconds, 20))
        connection = server.connect()
        began = time.monotonic()
        status, _ = connection.send(connection.get_bytes("/getBlockByNumber/1/true/"))
        took = time.monotonic() - began
        verdicts.report(
            f"unread, {encoding}: 4,096 connections and {len(sockets)} WebSockets that read nothing: {peak >> 20} MiB at most "
            f"({begun >> 20} before); another client got {status} in {took * 1e3:.0f} ms",
            peak < 1 << 30 and status == 200,
        )
        for stream in streams:
            stream.close()
        time.sleep(5)
        print(f"     {server.status('VmRSS') >> 20} MiB afterwards", flush=True)
        server.stop()


def streams(programs, verdicts, seconds):
    """HTTP/2 connections that allow the server to send nothing, with streams for responses of 16 and 48 KB."""
    allow_many_files()
    for encoding, count, short, long in (("identity", 4_096, 8, 8), ("br", 2_048, 0, 4)):
        with nodes.Server(programs / "ethnode", "dev", "--rate-limit", "off") as server:
            paths = []
            for name, code in (("5", "5b" * 8_090), ("6", "5b" * 24_000)):
                account = f"0x{name:0>40}"
                server.ask("/dev/setCode/", {"Address": account, "Code": "0x" + code})
                paths.append(f"/getCode/{account}/")
            requests = [paths[0]] * short + [paths[1]] * long
            # SETTINGS_INITIAL_WINDOW_SIZE is 0, the server's SETTINGS are acknowledged, and each request ends its stream.
            opening = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + http2_frame(4, 0, 0, (4).to_bytes(2) + bytes(4)) + http2_frame(4, 1, 0)
            opening += b"".join(http2_frame(1, 5, 2 * index + 1, http2_head(path, encoding)) for index, path in enumerate(requests))
            begun, open_streams = server.status("VmRSS"), []
            for index in range(count):
                stream = connect_deaf(server, f"127.0.{2 + index % 200}.1")
                send_at_once(stream, opening)
                open_streams.append(stream)
            peak = most_memory(server, max(seconds, 20))
            verdicts.report(
                f"streams, {encoding}: {count:,} HTTP/2 connections with {short} streams for 16 KB and {long} for 48 KB: "
                f"{peak >> 20} MiB at most ({begun >> 20} before)",
                begun < peak < 1 << 30,
            )
            for stream in open_streams:
                stream.close()
            server.stop()


def http2_frame(kind, flags, stream, payload=b""):
    """Returns a frame (RFC 9113, section 4.1)."""
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def http2_head(path, encoding):
    """Returns the encoded headers of a GET request (RFC 7541)."""
    head = b"\x82\x86"
    for name, value in ((b"\x04", path), (b"\x01", "localhost"), (b"\x0f\x01", encoding)):
        head += name + bytes([len(value)]) + value.encode()
    return head


def is_open(stream):
    """Returns whether the connection is still open, without reading its bytes."""
    established = 1
    return stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == established


def frame(text):
    """Returns a WebSocket message as clients send it, masked with zeros (RFC 6455)."""
    length = len(text)
    head = bytes([0x81, 0x80 | length]) if length < 126 else bytes([0x81, 0x80 | 126]) + length.to_bytes(2)
    return head + bytes(4) + text.encode()


def ending(programs, verdicts, seconds):
    """SIGTERM while 64 connections send requests: each accepted request gets a complete response."""
    cut, whole, rounds = 0, 0, 5
    for _ in range(rounds):
        server = nodes.Server(programs / "ethnode", "dev")
        results = []

        def ask():
            try:
                connection = server.connect()
            except OSError:
                return
            request = connection.get_bytes("/getBlockByNumber/latest/true/")
            stream = connection.socket
            while True:
                try:
                    stream.sendall(request)
                    response = read_response(stream)
                except OSError:
                    # The connection ended between two responses, before the server accepted the request.
                    return
                results.append(response)
                if response != "whole":
                    return

        askers = [threading.Thread(target=ask) for _ in range(64)]
        for asker in askers:
            asker.start()
        time.sleep(1)
        server.stop()
        for asker in askers:
            asker.join()
        cut += results.count("cut")
        whole += results.count("whole")
    verdicts.report(f"ending: {rounds} times SIGTERM under load, {whole} complete responses, {cut} truncated", cut == 0 and whole > 0)


def read_response(stream):
    """Returns whether a response was whole, cut, or never began."""
    text = b""
    while b"\r\n\r\n" not in text:
        piece = stream.recv(65_536)
        if not piece:
            return "cut" if text else "none"
        text += piece
    head, body = text.split(b"\r\n\r\n", 1)
    length = int(re.search(rb"content-length: (\d+)", head.lower()).group(1))
    while len(body) < length:
        piece = stream.recv(65_536)
        if not piece:
            return "cut"
        body += piece
    return "whole"


def cost(programs, verdicts, seconds):
    """getStorageAt with all features enabled, and on a bare route, alternating."""
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder) / "tokens"
        tokens.write_text(TOKEN + "\n")
        options = ["--token-file", tokens, "--rate-limit", "1000000", "--metrics-addr", "127.0.0.1:0"]
        options += ["--cors-origins", "https://wallet.example", "--allowed-hosts", "node.internal"]
        options += ["--log", "info", "--max-head-age", "1h"]
        server = nodes.Server(programs / "ethnode", "dev", *options)
        headers = [f"Authorization: Bearer {TOKEN}", "Accept-Encoding: gzip, br", "Accept: application/json"]
        with tempfile.TemporaryFile() as log:
            bare = subprocess.Popen([programs / "examples" / "bare"], stdout=subprocess.PIPE, stderr=log, text=True)
            bare_url = bare.stdout.readline().split()[-1]
            pairs = []
            for _ in range(5):
                plain = wrk(bare_url + "/getStorageAt/", seconds, body=STORAGE, headers=headers)
                full = wrk(server.url + "/getStorageAt/", seconds, body=STORAGE, headers=headers)
                if plain["refused"] or full["refused"]:
                    raise nodes.Failure("requests were refused")
                pairs.append((full["rate"], plain["rate"]))
            bare.terminate()
            bare.wait()
        server.stop()
    ratio = statistics.median(full / plain for full, plain in pairs)
    full, plain = (statistics.median(side) for side in zip(*pairs))
    verdicts.report(f"cost: {full:.0f} requests/s with all features, {plain:.0f} bare: {ratio:.2f}", ratio >= 0.85)


PARTS = {"slow": slow, "calls": calls, "flood": flood, "deaf": deaf, "unread": unread, "large": large, "ahead": ahead, "streams": streams, "ending": ending, "cost": cost}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of {', '.join(PARTS)} [default: all]")
    parser.add_argument("--bin", type=Path, help="folder with the programs [default: build them]")
    parser.add_argument("--seconds", type=int, default=5, help="length of one measurement")
    options = parser.parse_args()
    if unknown := set(options.parts) - PARTS.keys():
        parser.error(f"unknown part {', '.join(sorted(unknown))}")
    print(nodes.machine())
    if options.bin is None:
        options.bin = nodes.build(profile="dist")
        command = ["cargo", "build", "--profile", "dist", "--quiet", "-p", "node-tests", "--example", "bare"]
        subprocess.run(command, cwd=nodes.ROOT, check=True)
    verdicts = Verdicts()
    for name in options.parts or PARTS:
        PARTS[name](options.bin, verdicts, options.seconds)
    return 1 if verdicts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
