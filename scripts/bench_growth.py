#!/usr/bin/env python3
"""Measure what a block costs as a folder grows: import of chains of two lengths, bytes written and stored, proofs at random heights.

    scripts/bench_growth.py [--work FOLDER] [--blocks N ...] [--genesis-accounts N] [--rounds N] [--seconds S] [--programs FOLDER]
                            [--memory MB] [--reth PROGRAM]

Imports generated chains into folders, each in a process of its own, and prints wall and processor time, peak memory, bytes written,
bytes on disk per byte of rows, and bytes of tries per changed leaf. Then serves the longest chain and sends getProof for random
accounts, at the head and at random heights, with wrk (1 thread, 16 connections): with all memory, and, if control groups can be
created, with --memory MB for the process and its page cache. After a start with the page cache dropped, if that is permitted, it
sends 3,000 of them at random heights, one after the other and over 16 connections. With --reth, reth imports the same chains. With
--genesis-accounts, chains begin with that many accounts, a tenth of them with code and slots, and blocks change a skewed selection of
them.

--work FOLDER keeps chains and folders for the next run.
"""

import argparse
import collections
import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_archive import Case, Chain
from nodes import Connection, Server, build

# Number of proofs that are requested with a cold page cache.
COLD = 3_000

CONTROL_GROUPS = Path("/sys/fs/cgroup")


class Usage:
    """What a process used from its start to its end."""

    def __init__(self, command):
        command = [str(part) for part in command]
        started = time.monotonic()
        with tempfile.TemporaryFile(mode="w+") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.seconds = time.monotonic() - started
            if process.returncode:
                output.seek(0)
                sys.exit(f"{' '.join(command)} failed: {output.read()[-2000:]}")
        self.processor = used.ru_utime + used.ru_stime
        self.memory = used.ru_maxrss * 1024
        # Blocks of 512 bytes, as the kernel counts them.
        self.written = used.ru_oublock * 512


def import_chain(programs, chain):
    """Imports `chain` into a new folder. Returns what that used, and the statistics of the folder."""
    data = chain.folder / "data"
    shutil.rmtree(data, ignore_errors=True)
    common = ["--data-dir", data]
    usage = Usage([programs / "ethnode", "import", *common, "--genesis", chain.genesis, chain.file])
    stats = subprocess.run([programs / "ethnode", "stats", "--json", *common], check=True, capture_output=True)
    return usage, json.loads(stats.stdout)


def import_with_reth(reth, chain):
    data = chain.folder / "reth"
    shutil.rmtree(data, ignore_errors=True)
    common = ["--datadir", data, "--chain", chain.genesis, "--log.file.directory", chain.folder / "reth-logs"]
    Usage([reth, "init", *common])
    return Usage([reth, "import", *common, chain.file])


def proofs(chain, heights):
    """Requests for proofs of an account and a slot, at blocks that `heights` chooses."""
    slot = "0x" + "00" * 32
    return [{"Address": holder, "StorageKeys": [slot], "BlockNumber": heights()} for holder in chain.holders]


def limit_memory(process, megabytes):
    """Moves a process to a control group with that much memory. Returns whether this is possible."""
    unified = (CONTROL_GROUPS / "cgroup.controllers").exists()
    group = (CONTROL_GROUPS if unified else CONTROL_GROUPS / "memory") / "bench-growth"
    try:
        group.mkdir(exist_ok=True)
        (group / ("memory.max" if unified else "memory.limit_in_bytes")).write_text(str(megabytes << 20))
        (group / "cgroup.procs").write_text(str(process.pid))
    except OSError as error:
        print(f"not measured within {megabytes} MB: {error}")
        return False
    return True


def measure_proofs(server, chain, work, options):
    pick = random.Random(3)
    head = Case("head", "/getProof/", proofs(chain, lambda: "latest"))
    old = Case("old", "/getProof/", proofs(chain, lambda: str(pick.randrange(chain.blocks // 10, chain.blocks))))
    rounds = [[case.measure(server, work, options.seconds, number) for case in (head, old)] for number in range(options.rounds)]
    ratio = statistics.median(old.rate / head.rate for head, old in rounds)
    at_head, at_old = (statistics.median(measured.rate for measured in column) for column in zip(*rounds))
    late = statistics.median(old.late for _, old in rounds)
    return f"{at_head:,.0f}/s at the head, {at_old:,.0f}/s at random heights (p99 {late:.1f} ms), ratio {ratio:.2f}"


def measure_cold_proofs(server, chain, clients):
    """Requests each of some proofs once, with nothing in memory. Returns the median time, that of 99 in 100, and the rate."""
    pick = random.Random(4)
    bodies = proofs(chain, lambda: str(pick.randrange(chain.blocks // 10, chain.blocks)))
    connections = itertools.cycle([Connection(server.url) for _ in range(clients)])
    times, waiting = [], collections.deque()

    def receive():
        connection, started = waiting.popleft()
        connection.expect("/getProof/", connection.response())
        times.append(time.monotonic() - started)

    began = time.monotonic()
    for body in pick.sample(bodies, min(COLD, len(bodies))):
        if len(waiting) == clients:
            receive()
        connection = next(connections)
        waiting.append((connection, time.monotonic()))
        connection.socket.sendall(connection.post_bytes("/getProof/", json.dumps(body)))
    while waiting:
        receive()
    times.sort()
    middle, late = (times[len(times) * percent // 100] * 1e3 for percent in (50, 99))
    return f"{len(times)} over {clients} connections: p50 {middle:.2f} ms, p99 {late:.2f} ms, {len(times) / (time.monotonic() - began):,.0f}/s"


def drop_page_cache():
    """Returns whether this is permitted."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3")
    except OSError as error:
        print(f"not measured with a cold page cache: {error}")
        return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--blocks", type=int, nargs="+", default=[20_000, 200_000])
    parser.add_argument("--genesis-accounts", type=int, default=0)
    parser.add_argument("--programs", type=Path, help="folder with ethnode and generate [default: build them]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--memory", type=int, default=400, help="MB for proofs in a control group")
    parser.add_argument("--reth", type=Path)
    options = parser.parse_args()
    temporary = None if options.work else tempfile.TemporaryDirectory()
    work = options.work or Path(temporary.name)
    programs = options.programs or build("node-tests:generate", profile="dist")
    chains = [
        Chain(programs, work, blocks, min(6_000, blocks * 3 // 10), options.genesis_accounts) for blocks in options.blocks
    ]

    print(f"{'blocks':>9}{'':>6}{'wall s':>9}{'CPU s':>8}{'MB':>7}{'written MB':>12}{'/ rows':>8}{'disk / rows':>13}{'trie B/leaf':>13}")
    seconds = []
    for chain in chains:
        if options.reth:
            usage = import_with_reth(options.reth, chain)
            print(f"{chain.blocks:>9}{'reth':>6}{usage.seconds:>9.1f}{usage.processor:>8.1f}{usage.memory / 1e6:>7.0f}"
                  f"{usage.written / 1e6:>12.0f}")
        usage, stats = import_chain(programs, chain)
        seconds.append(usage.seconds)
        print(f"{chain.blocks:>9}{'':>6}{usage.seconds:>9.1f}{usage.processor:>8.1f}{usage.memory / 1e6:>7.0f}"
              f"{usage.written / 1e6:>12.0f}{usage.written / stats['bytes']:>8.2f}"
              f"{stats['run_bytes'] / stats['bytes']:>13.2f}{stats['trie_bytes_per_leaf']:>13.1f}", flush=True)
    for (short, chain), (long, longer) in zip(zip(seconds, chains), zip(seconds[1:], chains[1:])):
        print(f"{chain.blocks} to {longer.blocks} blocks: {long / short:.1f} times the time")

    longest = chains[-1]
    arguments = ("run", "--data-dir", longest.folder / "data")
    with Server(programs / "ethnode", *arguments) as server:
        print(f"proofs, all memory: {measure_proofs(server, longest, work, options)}")
        server.stop()
    for clients in (1, 16):
        if drop_page_cache():
            with Server(programs / "ethnode", *arguments) as server:
                print(f"proofs, cold page cache: {measure_cold_proofs(server, longest, clients)}")
                server.stop()
    # Pages that are cached already do not count towards the limit of a control group.
    drop_page_cache()
    with Server(programs / "ethnode", *arguments, "--cache-mb", options.memory // 2) as server:
        if limit_memory(server.process, options.memory):
            print(f"proofs within {options.memory} MB: {measure_proofs(server, longest, work, options)}")
        server.stop()


if __name__ == "__main__":
    main()
