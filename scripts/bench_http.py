#!/usr/bin/env python3
"""Measure light reads over HTTP as shares of what the same server reaches with a constant body.

    scripts/bench_http.py [--bin FOLDER] [--genesis FILE --chain FILE] [--rounds N] [--seconds S]
                          [--workers N] [--server-cores LIST] [--client-cores LIST]

Each round sends every request over 16 connections in three ways: over HTTP/1.1 one after the other, over HTTP/1.1 with 16 requests
in one piece (pipelining), and over HTTP/2 with 4 streams. A share is the median of the rounds' ratios, so that a machine
that slows down does not matter. The processor time is the server's, in microseconds per request. The bars apply to HTTP/1.1. The
exit status is 1 if one is missed.

--server-cores and --client-cores bind the server and the clients to processors, such as 0 and 1-3. The chain is generated unless
it is given, such as dev20k. Needs wrk; HTTP/2 is left out without h2load (nghttp2-client).
"""

import argparse
import json
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_archive import CONTRACT, LUA, Chain
from nodes import Failure, Server, build

SLOT = "0x6c31fc15422ebad28aaf9089c306702f67540b53c7eea8b7d2941044b027100f"
ALICE = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
CONNECTIONS = 16
# Requests in one piece.
DEPTH = 16
# Requests of a connection of HTTP/2 at the same time. With more, calls would exceed the queue of their threads.
STREAMS = 4
CONSTANT = "constant body"


def reads(head):
    """The name, path, bodies (none: it is read with GET, from one of the paths) and least share of each read."""
    blocks = [f"/getBlockByNumber/{random.randint(0, head)}/false/" for _ in range(6_000)]
    return [
        (CONSTANT, ["/chainId/"], None, None),
        ("health", ["/health"], None, 0.9),
        ("storage", ["/getStorageAt/"], {"Address": CONTRACT, "Position": SLOT, "BlockNumber": "latest"}, 0.9),
        ("balance", [f"/getBalance/{ALICE}/?BlockNumber=latest"], None, 0.9),
        ("block", blocks, None, 0.9),
        ("feeHistory", ["/feeHistory/"], {"BlockCount": "20", "NewestBlock": "latest", "RewardPercentiles": [25, 50, 75]}, 0.6),
        ("call", ["/call/"], {"Transaction": {"To": CONTRACT, "Data": SLOT}, "BlockNumber": "latest"}, 0.4),
    ]


def bound(cores):
    return ["taskset", "-c", cores] if cores else []


def number(pattern, text):
    found = re.search(pattern, text)
    if not found:
        raise Failure(f"unexpected output:\n{text}")
    return float(found.group(1))


def wrk(options, url, file, paths, body, depth):
    """Returns requests per second."""
    file.write_text("".join(line + "\n" for line in ([json.dumps(body)] if body else paths)))
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{options.seconds}s", "-s", LUA, url, "--", paths[0], file, "1", str(depth)]
    output = subprocess.run(bound(options.client_cores) + command, check=True, capture_output=True, text=True).stdout
    if failed := number(r"failed (\d+)", output):
        raise Failure(f"{failed:.0f} requests failed")
    return number(r"completed (\d+)", output) / number(r"seconds ([\d.]+)", output)


def h2load(options, url, file, paths, body):
    """Returns requests per second over HTTP/2."""
    command = ["h2load", "-t1", f"-c{CONNECTIONS}", f"-m{STREAMS}", f"-D{options.seconds}"]
    if body:
        file.write_text(json.dumps(body))
        command += ["-d", file, "-H", "content-type: application/json"]
    command += [url + path for path in paths[:100]]
    output = subprocess.run(bound(options.client_cores) + command, check=True, capture_output=True, text=True).stdout
    if number(r"(\d+) failed", output):
        raise Failure(f"requests failed:\n{output}")
    return number(r"([\d.]+) req/s", output)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, help="folder of the built programs")
    parser.add_argument("--genesis", type=Path)
    parser.add_argument("--chain", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--workers", type=int, help="threads that serve connections [default: one per core]")
    parser.add_argument("--server-cores")
    parser.add_argument("--client-cores")
    options = parser.parse_args()
    programs = options.bin or build("node-tests:generate", profile="dist")
    ways = {
        "HTTP/1.1": lambda *request: wrk(options, *request, 1),
        f"{DEPTH} pipelined": lambda *request: wrk(options, *request, DEPTH),
    }
    if shutil.which("h2load"):
        ways["HTTP/2"] = lambda *request: h2load(options, *request)
    else:
        print("HTTP/2 is left out: h2load is not installed")
    missed = []
    with tempfile.TemporaryDirectory() as temporary:
        if options.chain:
            genesis, file = options.genesis, options.chain
        else:
            chain = Chain(programs, Path(temporary), 2_000, 600)
            genesis, file = chain.genesis, chain.file
        workers = ["--workers", options.workers] if options.workers else []
        command = [*bound(options.server_cores), programs / "ethnode", "run", "--data-dir", ":memory:", "--genesis", genesis]
        with Server(*command, "--import", file, *workers) as server:
            head = int(server.get("/blockNumber/")["BlockNumber"])
            print("| Way | Request | requests/s | us | of a constant body | bar |\n|---|---|---:|---:|---:|---:|")
            for way, measure in ways.items():
                rounds = []
                for _ in range(options.rounds):
                    measured = {}
                    for name, paths, body, _ in reads(head):
                        before = server.cpu()
                        rate = measure(server.url, Path(temporary, "bodies"), paths, body)
                        measured[name] = rate, (server.cpu() - before) / rate / options.seconds * 1e6
                    rounds.append(measured)
                for name, _, _, bar in reads(head):
                    rate, used = (statistics.median(column) for column in zip(*(measured[name] for measured in rounds), strict=True))
                    share = statistics.median(measured[name][0] / measured[CONSTANT][0] for measured in rounds)
                    bar = bar if way == "HTTP/1.1" else None
                    print(f"| {way} | {name} | {rate:,.0f} | {used:.1f} | {share:.2f} | {bar or ''} |", flush=True)
                    if bar and share < bar:
                        missed.append(f"{name} ({share:.2f})")
    if missed:
        sys.exit("below the bar: " + ", ".join(missed))


if __name__ == "__main__":
    main()
