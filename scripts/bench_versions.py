#!/usr/bin/env python3
"""Compares two builds of the server: requests per second of each, measured side by side.

    scripts/bench_versions.py BEFORE AFTER [--work FOLDER] [--rounds N] [--seconds S] [--blocks N] [--least RATIO]
                              [--operation NAME]…

BEFORE and AFTER are programs. Each imports the same generated chain into a folder of its own and is then asked for
storage, calls, proofs and logs with wrk (1 thread, 16 connections). A round measures every request once on each build,
one right after the other and in alternating order, so that other work on the machine slows both. The ratio of a
request is the median of the ratios of the rounds. A ratio below --least ends with status 1.

With --operation, operations of bench_interfaces.py are requested instead, over both JSON-RPC and REST.

FOLDER keeps the chain for the next run. Needs wrk.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from bench_archive import Chain, cases
from bench_interfaces import operations
from nodes import Server, build, machine


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--programs", type=Path, help="folder of `generate`, if it is built already")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=20_000)
    parser.add_argument("--least", type=float, default=0.95)
    parser.add_argument("--operation", action="append", default=[], metavar="NAME")
    options = parser.parse_args()
    temporary = None if options.work else tempfile.TemporaryDirectory()
    work = options.work or Path(temporary.name)
    work.mkdir(parents=True, exist_ok=True)
    programs = options.programs or build("node-tests:generate")
    chain = Chain(programs, work, options.blocks, min(6_000, options.blocks * 3 // 10))
    servers = []
    try:
        for name, program in (("before", options.before), ("after", options.after)):
            data = chain.folder / name
            shutil.rmtree(data, ignore_errors=True)
            more = ("--data-dir", data, "--genesis", chain.genesis, "--import", chain.file, "--strict")
            servers.append(Server(program, "run", *more))
            print(f"{name}: import {servers[-1].seconds:.2f} s")
        requests = both_interfaces(chain, servers[1], options.operation) if options.operation else cases(chain)
        measured = {case.name: [] for case in requests}
        for number in range(options.rounds):
            for case in requests:
                order = [0, 1] if number % 2 == 0 else [1, 0]
                rates = {place: case.measure(servers[place], work, options.seconds, number) for place in order}
                measured[case.name].append((rates[0], rates[1]))
    finally:
        for server in servers:
            server.stop()
    print(machine())
    print(f"{'request':<32}{'before/s':>12}{'after/s':>12}{'ratio':>8}{'CPU ratio':>11}")
    passed = True
    for name, rounds in measured.items():
        before, after = (statistics.median(pair[place].rate for pair in rounds) for place in (0, 1))
        ratio = statistics.median(pair[1].rate / pair[0].rate for pair in rounds)
        cpu = statistics.median(pair[1].cpu / pair[0].cpu for pair in rounds)
        passed &= ratio >= options.least
        print(f"{name:<32}{before:>12,.0f}{after:>12,.0f}{ratio:>8.2f}{cpu:>11.2f}{'' if ratio >= options.least else '  slower'}")
    sys.exit(0 if passed else 1)


def both_interfaces(chain, server, names):
    """Returns the requests of the operations with these names, over JSON-RPC and REST."""
    found = {name: cases for name, *cases in operations(chain, server)}
    if unknown := set(names) - found.keys():
        sys.exit(f"unknown operations {sorted(unknown)}: expected {', '.join(found)}")
    cases = [(interface, case) for name in names for interface, case in zip(("REST", "JSON-RPC"), found[name], strict=True)]
    for interface, case in cases:
        case.name += f", {interface}"
    return [case for _, case in cases]


if __name__ == "__main__":
    main()
