#!/usr/bin/env python3
"""Measure a durable import, and how soon a server responds after it.

    scripts/bench_durable.py GENESIS CHAIN [--runs N] [--growth]

Each run imports CHAIN (RLP blocks) into a new folder and reports: seconds until the server listens, with everything durable;
processor seconds; peak memory; size of the folder after a clean stop; seconds from the start of a process to its first response,
after that stop and after a SIGKILL right after the import.

--growth also imports the first tenth of the blocks, and reports how many times longer the whole chain takes.
"""

import argparse
import pathlib
import resource
import statistics
import sys
import tempfile
import time

from nodes import Server, build

BARS = {"import s": 3.0, "peak MB": 300, "disk MB": 100, "clean s": 0.5, "killed s": 2.0}


def start(binary, genesis, folder, chain=None):
    """Starts the server. Returns it, and the seconds until its first response."""
    more = ["--import", chain, "--strict"] if chain else []
    started = time.monotonic()
    server = Server(binary, "run", "--log", "warn", "--genesis", genesis, "--data-dir", folder, *more)
    server.get("/health")
    return server, time.monotonic() - started


def run(binary, genesis, chain):
    with tempfile.TemporaryDirectory() as parent:
        folder = pathlib.Path(parent, "data")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        server, _ = start(binary, genesis, folder, chain)
        row = {"import s": server.seconds, "peak MB": server.status("VmHWM") / 1e6}
        server.stop()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        row["cpu s"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        row["disk MB"] = sum(path.stat().st_blocks * 512 for path in folder.iterdir()) / 1e6
        server, row["clean s"] = start(binary, genesis, folder)
        server.stop()
    with tempfile.TemporaryDirectory() as parent:
        folder = pathlib.Path(parent, "data")
        start(binary, genesis, folder, chain)[0].kill()
        server, row["killed s"] = start(binary, genesis, folder)
        server.stop()
    return row


def offsets(data):
    """Returns the offsets at which the blocks of a chain file end."""
    at = 0
    while at < len(data):
        first = data[at]
        if first < 0xC0:
            sys.exit(f"no block at byte {at}")
        if first < 0xF8:
            at += 1 + first - 0xC0
        else:
            width = first - 0xF7
            at += 1 + width + int.from_bytes(data[at + 1:at + 1 + width], "big")
        yield at


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("genesis", type=pathlib.Path)
    parser.add_argument("chain", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--growth", action="store_true", help="compare with the first tenth of the blocks")
    arguments = parser.parse_args()
    genesis, chain = arguments.genesis.resolve(), arguments.chain.resolve()
    binary = build(profile="dist") / "ethnode"

    names = ["import s", "cpu s", "peak MB", "disk MB", "clean s", "killed s"]
    show = lambda title, row: print(f"{title:8}" + "".join(f"{row[name]:>11.2f}" for name in names), flush=True)
    print(f"{'':8}" + "".join(f"{name:>11}" for name in names))
    rows = []
    for number in range(arguments.runs):
        rows.append(run(binary, genesis, chain))
        show(f"run {number + 1}", rows[-1])
    median = {name: statistics.median(row[name] for row in rows) for name in names}
    show("median", median)
    print(f"{'bar':8}" + "".join(f"{BARS.get(name, '-'):>11}" for name in names) + "   (of dev20k)")

    if arguments.growth:
        data = chain.read_bytes()
        ends = list(offsets(data))
        with tempfile.NamedTemporaryFile() as tenth:
            tenth.write(data[:ends[len(ends) // 10 - 1]])
            tenth.flush()
            times = [run(binary, genesis, tenth.name)["import s"] for _ in range(arguments.runs)]
        ratio = median["import s"] / statistics.median(times)
        print(f"first {len(ends) // 10} blocks: {statistics.median(times):.2f} s; all {len(ends)}: {ratio:.1f} times as long (bar 11)")


if __name__ == "__main__":
    main()
