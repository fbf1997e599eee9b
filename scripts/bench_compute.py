#!/usr/bin/env python3
"""Compare the processor time of importing Ethereum's compute benchmarks with reth's.

Each benchmark is a folder with `genesis.json` and `chain.rlp`: one instruction or precompile at 100 million gas. Both programs import
it into a new folder, in turn; shown are medians of user and system time, with the start of the process, in seconds. The exit status is 1
if an import fails.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from nodes import build


def seconds(command: list, attempts: int = 1) -> float:
    """Runs a program, again if it fails, and returns the processor time of the run that succeeded."""
    for _ in range(attempts):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        errors = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        if status == 0:
            return usage.ru_utime + usage.ru_stime
        print(f"{' '.join(map(str, command))} failed: {errors.decode(errors='replace')[-2000:]}", file=sys.stderr)
    sys.exit(1)


def ours(server: Path, benchmark: Path, folder: str) -> float:
    options = ["--genesis", benchmark / "genesis.json", "--data-dir", f"{folder}/ours"]
    return seconds([server, "import", *options, benchmark / "chain.rlp"])


def theirs(reth: Path, benchmark: Path, folder: str) -> float:
    options = ["--chain", benchmark / "genesis.json", "--datadir", f"{folder}/reth", "--log.file.directory", f"{folder}/logs"]
    # Some of its runs fail when they end.
    return seconds([reth, "import", *options, benchmark / "chain.rlp"], attempts=3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder of all benchmarks")
    parser.add_argument("names", nargs="*", help="run only these")
    parser.add_argument("--bin", type=Path, help="folder of the built programs")
    parser.add_argument("--reth", type=Path, help="reth; without it only this node is measured")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    server = (options.bin or build(profile="dist")) / "ethnode"
    benchmarks = sorted(path.parent for path in options.folder.glob("*/chain.rlp"))
    benchmarks = [path for path in benchmarks if not options.names or path.name in options.names]
    rows = []
    for benchmark in benchmarks:
        our_times, their_times = [], []
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory() as folder:
                our_times.append(ours(server, benchmark, folder))
                if options.reth:
                    their_times.append(theirs(options.reth, benchmark, folder))
        rows.append((benchmark.name, statistics.median(our_times), statistics.median(their_times or [float("nan")])))
    print("| Benchmark | here | reth | ratio |\n|---|---:|---:|---:|")
    total = ("sum", sum(row[1] for row in rows), sum(row[2] for row in rows))
    for name, our_time, their_time in [*sorted(rows, key=lambda row: -row[1] / row[2]), total]:
        print(f"| {name} | {our_time:.2f} | {their_time:.2f} | {our_time / their_time:.2f} |")


if __name__ == "__main__":
    main()
