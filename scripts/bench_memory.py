#!/usr/bin/env python3
"""Measure chains in memory: their size, their blocks, and their reads beside those of a folder.

    scripts/bench_memory.py [size] [reverts] [reads] [--bin FOLDER] [--server PROGRAM] [--counts N,N] [--work FOLDER]
                            [--blocks N] [--rounds N] [--seconds S]

size     `dev` in memory: its start, then transactions one after the other over one connection, each in a block of its own, and
         the resident memory after them. Then 5 seconds of idling. Bars: 200 MB after 20,000 transactions, 350 MB after 100,000.
reverts  what tests of contracts do: snapshot, transaction, revert, over and over on a chain of 2,000 blocks.
reads    a generated chain, imported by `run` into memory and into a folder: wrk asks both in turn for proofs, storage and calls
         at old blocks, and for logs. Bar: 0.95 of the folder's rate, median of the rounds.

--server measures another ethnode than that in --bin, such as one of an earlier release. The exit status is 1 if a bar is missed.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_archive import Chain, cases
from bench_dev import Node, Verdicts, one_after_the_other, transfers
from nodes import Failure, Server, build, machine

# Transactions, bytes.
SIZES = {20_000: 200e6, 100_000: 350e6}
RATIO = 0.95
IDLE_SECONDS = 5


def size(node, options, verdicts):
    for count in options.counts:
        raws = transfers(options.bin, count)
        with node.start() as server:
            print(f"  listening after {server.seconds * 1e3:.0f} ms, {server.status('VmRSS') / 1e6:.0f} MB", flush=True)
            connection = server.connect()
            requests = (node.prepare(connection, "send", raw) for raw in raws)
            taken = one_after_the_other(node, connection, requests)
            cpu = server.cpu()
            print(f"  {count} transactions: {sum(taken):.2f} s, median {statistics.median(taken) * 1e6:.0f} us, last 1,000 to first "
                  f"1,000 {statistics.median(taken[-1000:]) / statistics.median(taken[:1000]):.2f}, p99.9 "
                  f"{sorted(taken)[-len(taken) // 1000] * 1e3:.1f} ms; processor time {cpu:.1f} s, "
                  f"peak memory {server.status('VmHWM') / 1e6:.0f} MB", flush=True)
            time.sleep(IDLE_SECONDS)
            print(f"  idle: {(server.cpu() - cpu) / IDLE_SECONDS:.1%} of a core, "
                  f"{len(list(Path(f'/proc/{server.process.pid}/task').iterdir()))} threads")
            bar = SIZES.get(count, max(SIZES.values()) if count < max(SIZES) else float("inf"))
            verdicts.judge(f"memory after {count} transactions", server.status("VmRSS") / 1e6, bar / 1e6, " MB")


def reverts(node, options, _):
    raws = transfers(options.bin, 4_000, accounts=1)
    with node.start() as server:
        connection = server.connect()

        def ask(method, *parameters):
            return connection.post("/", {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters})["result"]

        one_after_the_other(node, connection, [node.prepare(connection, "send", raw) for raw in raws[:2_000]])
        taken = []
        cpu = server.cpu()
        for _ in range(1_000):
            snapshot = ask("evm_snapshot")
            ask("eth_sendRawTransaction", raws[2_000])
            started = time.perf_counter()
            if ask("evm_revert", snapshot) is not True:
                raise Failure("evm_revert failed")
            taken.append(time.perf_counter() - started)
        print(f"  revert of a block: median {statistics.median(taken) * 1e3:.2f} ms, p99 {sorted(taken)[-10] * 1e3:.2f} ms; processor "
              f"time of a round {(server.cpu() - cpu):.2f} ms; memory {server.status('VmRSS') / 1e6:.0f} MB")


def reads(node, options, verdicts):
    wanted = {"proof, old", "storage, old", "call, old", "logs, rare topic", "logs, 100 blocks"}
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        chain = Chain(options.bin, work, options.blocks, min(6_000, options.blocks * 3 // 10))
        measured = [case for case in cases(chain) if case.name in wanted]
        arguments = ("run", "--genesis", chain.genesis, "--import", chain.file, "--strict")
        rates = {case.name: [] for case in measured}
        with (Server(node.binary, *arguments, "--data-dir", ":memory:") as memory,
              Server(node.binary, *arguments, "--data-dir", Path(temporary, "data")) as folder):
            for name, server in (("memory", memory), ("folder", folder)):
                print(f"  {name}: import {server.seconds:.1f} s, processor time {server.cpu():.1f} s, memory "
                      f"{server.status('VmRSS') / 1e6:.0f} MB", flush=True)
            for number in range(options.rounds):
                for case in measured:
                    both = [case.measure(server, Path(temporary), options.seconds, number).rate for server in (memory, folder)]
                    rates[case.name].append(both)
            for name, rounds in rates.items():
                in_memory, in_folder = (statistics.median(rates) for rates in zip(*rounds))
                print(f"  {name:<20}{in_memory:>10,.0f}/s in memory{in_folder:>10,.0f}/s in a folder")
                ratio = statistics.median(memory / folder for memory, folder in rounds)
                verdicts.judge(f"{name}: a folder's rate to that in memory", 1 / ratio, 1 / RATIO)
            print(f"  memory afterwards: {memory.status('VmRSS') / 1e6:.0f} MB, {folder.status('VmRSS') / 1e6:.0f} MB with a folder")


def main():
    parts = {"size": size, "reverts": reverts, "reads": reads}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="size, reverts or reads [default: all]")
    parser.add_argument("--bin", type=Path, help="folder with ethnode, transfers and generate [default: build them]")
    parser.add_argument("--server", type=Path, help="the ethnode to measure [default: that in --bin]")
    parser.add_argument("--counts", type=lambda text: [int(count) for count in text.split(",")], default=list(SIZES),
                        help="transactions of `size` [default: 20000,100000]")
    parser.add_argument("--work", type=Path, help="keep the generated chain here for the next run")
    parser.add_argument("--blocks", type=int, default=20_000, help="blocks of `reads`")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of `reads`")
    parser.add_argument("--seconds", type=int, default=3, help="length of each measurement of `reads`")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(parts):
        parser.error(f"no part is named {', '.join(sorted(unknown))}")
    options.bin = options.bin or build("node-tests:transfers", "node-tests:generate", profile="dist")
    node = Node(options.server or options.bin / "ethnode")
    print(machine(), flush=True)
    verdicts = Verdicts()
    for name in options.parts or parts:
        print(f"{name}:", flush=True)
        try:
            parts[name](node, options, verdicts)
        except (Failure, OSError, subprocess.CalledProcessError) as failure:
            print(f"  FAIL  {failure}", flush=True)
            verdicts.met = False
    return 0 if verdicts.met else 1


if __name__ == "__main__":
    sys.exit(main())
