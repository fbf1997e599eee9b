#!/usr/bin/env python3
"""Measure reads from an archive in a folder: proofs, logs, storage and calls, at the head and at old blocks.

    scripts/bench_archive.py [--work FOLDER] [--rounds N] [--seconds S] [--blocks N] [--long-blocks N] [--programs FOLDER] [--quick]

Generates two chains, one ten times as long as the other, imports each into a folder, and sends requests with wrk (1 thread,
16 connections) for thousands of accounts, slots and topics in random order. In the first half of the rounds the newest blocks are in
memory; in the other half, after a restart, all blocks are in runs. Each round measures every request once, so that a
machine that slows down slows all of them; the bars apply to medians of the rounds, and to ratios within a round. The exit status is 1
if a bar is missed.

--work FOLDER stores chains and data folders for the next run. Needs wrk.
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
import time
from pathlib import Path
from typing import NamedTuple

from nodes import ROOT, Server, build

LUA = ROOT / "scripts" / "wrk_requests.lua"
CONTRACT = "0x5fbdb2315678afecb367f032d93f642f64180aa3"
DISTINCT = 6_000


class Chain:
    """A generated chain: its files, and requests that it can serve."""

    def __init__(self, programs, work, blocks, holders, genesis_accounts=0):
        self.blocks = blocks
        self.folder = work / (f"chain-{blocks}-{genesis_accounts}" if genesis_accounts else f"chain-{blocks}")
        self.genesis, self.file, names = (self.folder / name for name in ("genesis.json", "chain.rlp", "names"))
        if not names.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            started = time.monotonic()
            shape = f"--blocks {blocks} --transactions-per-block 3 --holders {holders} --recipients 1000 --slots 1000"
            if genesis_accounts:
                shape = f"--blocks {blocks} --transactions-per-block 20 --genesis-accounts {genesis_accounts}"
            outputs = ["--output", self.file, "--genesis-output", self.genesis, "--names-output", names]
            subprocess.run([programs / "generate", *shape.split(), *outputs], check=True)
            size = self.file.stat().st_size / 1e6
            print(f"{blocks} blocks generated in {time.monotonic() - started:.1f} s, {size:.0f} MB")
        of = {"holder": [], "tag": []}
        for line in names.read_text().splitlines():
            kind, value = line.split()
            of[kind].append(value)
        self.holders = of["holder"]
        self.tags = random.Random(1).sample(of["tag"], min(DISTINCT, len(of["tag"])))

    def old_blocks(self):
        """A block at which all accounts exist, followed by thousands of versions."""
        return range(self.blocks // 2, self.blocks * 6 // 10)


class Measured(NamedTuple):
    """Requests per second, the server's processor time per request in microseconds, and the time in milliseconds within which 99% got a response."""
    rate: float
    cpu: float
    late: float


class Case:
    """One kind of request: path, bodies, and a check of the responses. Bodies that are paths are requested with GET."""

    def __init__(self, name, path, bodies=(), check=lambda response: True):
        self.name, self.path, self.bodies, self.check = name, path, bodies, check

    def measure(self, server, work, seconds, seed):
        file = work / "bodies"
        file.write_text("".join((body if is_path(body) else json.dumps(body)) + "\n" for body in self.bodies))
        for body in random.Random(seed).sample(self.bodies, min(3, len(self.bodies))):
            response = server.get(body) if is_path(body) else server.ask(self.path, body)
            if not self.check(response):
                sys.exit(f"{self.name}: {body} got {str(response)[:1000]}")
        before = server.cpu()
        output = subprocess.run(
            ["wrk", "-t1", "-c16", f"-d{seconds}s", "-s", LUA, server.url, "--", self.path, file, str(seed)],
            check=True, capture_output=True, text=True,
        ).stdout
        used = server.cpu() - before
        found = re.search(r"completed (\d+) failed (\d+) seconds ([\d.]+) late ([\d.]+)", output)
        completed, failed, elapsed, late = map(float, found.groups())
        if failed or not completed:
            sys.exit(f"{self.name}: {failed:.0f} requests failed\n{output}")
        return Measured(completed / elapsed, used / completed * 1e6, late * 1e3)


def is_path(body):
    return isinstance(body, str)


def cases(chain):
    pick = random.Random(2)
    old = chain.old_blocks()
    zero = "0x" + "00" * 32

    def proof(block):
        return [{"Address": holder, "StorageKeys": [zero], "BlockNumber": block()} for holder in chain.holders]

    def storage(block):
        return [{"Address": holder, "Position": zero, "BlockNumber": block()} for holder in chain.holders]

    def call(block):
        return [{"Transaction": {"To": holder, "Data": zero}, "BlockNumber": block()} for holder in chain.holders]

    def latest():
        return "latest"

    def some_old():
        return str(pick.choice(old))

    def hundred_blocks():
        first = pick.randrange(2, chain.blocks - 99)
        return {"Address": CONTRACT, "FromBlock": str(first), "ToBlock": str(first + 99)}

    def proves(response):
        return response["AccountProof"] and response["StorageProof"][0]["Proof"]

    def is_word(response):
        return response.get("Value", response.get("Data")) not in (None, zero, "0", "0x")

    return [
        Case("health", "/health"),
        Case("proof, head", "/getProof/", proof(latest), proves),
        Case("proof, old", "/getProof/", proof(some_old), proves),
        Case("storage, head", "/getStorageAt/", storage(latest), is_word),
        Case("storage, old", "/getStorageAt/", storage(some_old), is_word),
        Case("call, head", "/call/", call(latest), is_word),
        Case("call, old", "/call/", call(some_old), is_word),
        rare_topic(chain),
        Case("logs, 100 blocks", "/getLogs/", [hundred_blocks() for _ in range(DISTINCT)],
             lambda response: len(response["Logs"]) >= 100),
    ]


def rare_topic(chain, name="logs, rare topic"):
    bodies = [{"FromBlock": "0", "ToBlock": "latest", "Topics": [None, None, tag]} for tag in chain.tags]
    return Case(name, "/getLogs/", bodies, lambda response: len(response["Logs"]) == 1)


# Case, minimum requests per second.
RATES = {"proof, head": 15_000, "logs, rare topic": 30_000, "logs, 100 blocks": 6_000}

# Case, the case it is compared with, minimum ratio of the rates.
RATIOS = [
    ("proof, old", "proof, head", 0.9),
    ("storage, old", "storage, head", 0.8),
    ("call, old", "call, head", 0.8),
    ("logs, rare topic, long chain", "logs, rare topic", 0.8),
]


def report(rounds):
    """Prints the medians. Returns whether all bars are met."""
    print(f"{'request':<30}{'requests/s':>12}{'of health':>11}{'CPU us':>8}{'bar':>9}")
    passed = True
    for name in rounds[0]:
        rate = statistics.median(measured[name].rate for measured in rounds)
        cpu = statistics.median(measured[name].cpu for measured in rounds)
        share = statistics.median(measured[name].rate / measured["health"].rate for measured in rounds)
        bar, verdict = RATES.get(name), ""
        if bar:
            verdict = "PASS" if rate >= bar else "FAIL"
            passed &= rate >= bar
        print(f"{name:<30}{rate:>12,.0f}{share:>11.0%}{cpu:>8.1f}{bar or '':>9}  {verdict}")
    for name, other, bar in RATIOS:
        ratio = statistics.median(measured[name].rate / measured[other].rate for measured in rounds)
        cpu = statistics.median(measured[other].cpu / measured[name].cpu for measured in rounds)
        passed &= ratio >= bar
        verdict = "PASS" if ratio >= bar else "FAIL"
        print(f"{name} / {other}: {ratio:.2f} (by CPU time {cpu:.2f}), bar {bar}  {verdict}")
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--programs", type=Path, help="folder with ethnode and generate [default: build them]")
    parser.add_argument("--rounds", type=int, default=5, help="rounds in each half")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--blocks", type=int, default=20_000)
    parser.add_argument("--long-blocks", type=int, help="[default: ten times --blocks]")
    parser.add_argument("--quick", action="store_true", help="small chains and one round of one second, to try the script")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds, options.blocks = 1, 1, 2_000
    holders = min(DISTINCT, options.blocks * 3 // 10)
    temporary = None if options.work else tempfile.TemporaryDirectory()
    work = options.work or Path(temporary.name)
    work.mkdir(parents=True, exist_ok=True)
    programs = options.programs or build("node-tests:generate", profile="dist")
    lengths = (options.blocks, options.long_blocks or 10 * options.blocks)
    chains = [Chain(programs, work, blocks, holders) for blocks in lengths]
    long_case = rare_topic(chains[1], "logs, rare topic, long chain")
    of_short = cases(chains[0])
    passed = True
    for fresh in (True, False):
        servers = []
        try:
            for chain in chains:
                data = chain.folder / "data"
                if fresh:
                    shutil.rmtree(data, ignore_errors=True)
                more = ["--import", chain.file, "--strict"] if fresh else []
                server = Server(programs / "ethnode", "run", "--data-dir", data, "--genesis", chain.genesis, *more)
                servers.append(server)
                size = sum(file.stat().st_size for file in data.iterdir()) / 2**20
                print(f"{chain.blocks} blocks: {'import' if fresh else 'start'} {server.seconds:.2f} s, "
                      f"peak memory {server.status('VmHWM') / 2**20:.0f} MiB, folder {size:.0f} MiB")
            rounds = []
            for number in range(options.rounds):
                measured = {case.name: case.measure(servers[0], work, options.seconds, number) for case in of_short}
                measured[long_case.name] = long_case.measure(servers[1], work, options.seconds, number)
                rounds.append(measured)
            print("\nthe newest blocks in memory:" if fresh else "\nall blocks in runs:")
            passed &= report(rounds)
            for server, chain in zip(servers, chains):
                print(f"{chain.blocks} blocks: peak memory {server.status('VmHWM') / 2**20:.0f} MiB")
        finally:
            for server in servers:
                server.stop()
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
