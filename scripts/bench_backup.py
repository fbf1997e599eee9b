#!/usr/bin/env python3
"""Measure backups of a folder that a server has open, and their effect on requests.

    scripts/bench_backup.py GENESIS CHAIN [--rounds N] [--seconds N] [--server PROGRAM]

Imports CHAIN (RLP blocks) into a new folder and serves it. In each round wrk reads one storage slot over 4 connections, first
without backups, then during continuous backups, so that a machine that slows down slows both. Reports the medians of the
rounds: requests per second, median and 99th percentile of the latency; and the median time of the backups. A last
copy, without requests, is verified. Needs wrk.
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from nodes import Server, build

CONTRACT = "0x5fbdb2315678afecb367f032d93f642f64180aa3"

SCRIPT = f"""
wrk.method = "POST"
wrk.body = '{{"Address":"{CONTRACT}","Position":"0"}}'
wrk.headers["Content-Type"] = "application/json"
"""


def wrk(server, script, seconds):
    """Returns requests per second, and the median and the 99th percentile of the latency in milliseconds."""
    command = ["wrk", "-t1", "-c4", f"-d{seconds}s", "--latency", "-s", script, server.url + "/getStorageAt/"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in text or "Socket errors" in text:
        raise SystemExit(text)
    units = {"us": 0.001, "ms": 1.0, "s": 1000.0}

    def time_of(percentile):
        number, unit = re.search(rf"{percentile}%\s+([\d.]+)(us|ms|s)", text).groups()
        return float(number) * units[unit]

    return float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1)), time_of(50), time_of(99)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("genesis")
    parser.add_argument("chain")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5, help="length of each measurement")
    parser.add_argument("--server", type=Path, help="the server [default: build it]")
    options = parser.parse_args()
    program = options.server or build(profile="dist") / "ethnode"
    with tempfile.TemporaryDirectory() as parent:
        folder, copy, script = (Path(parent, name) for name in ("data", "copy", "wrk.lua"))
        script.write_text(SCRIPT)
        subprocess.run([program, "import", "--genesis", options.genesis, "--data-dir", folder, options.chain], check=True)
        size = sum(path.stat().st_blocks * 512 for path in folder.iterdir()) / 1e6
        server = Server(program, "run", "--log", "warn", "--genesis", options.genesis, "--data-dir", folder)
        rows, backups = {"alone": [], "beside backups": []}, []

        def back_up(enough):
            while not enough.is_set():
                shutil.rmtree(copy, ignore_errors=True)
                started = time.monotonic()
                command = [program, "backup", "--json", "--data-dir", folder, copy]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                backups.append((time.monotonic() - started, json.loads(output.splitlines()[-1])["rows"]))

        for _ in range(options.rounds):
            rows["alone"].append(wrk(server, script, options.seconds))
            enough = threading.Event()
            thread = threading.Thread(target=back_up, args=[enough])
            thread.start()
            rows["beside backups"].append(wrk(server, script, options.seconds))
            enough.set()
            thread.join()
        shutil.rmtree(copy)
        started = time.monotonic()
        subprocess.run([program, "backup", "--data-dir", folder, copy], check=True)
        alone = time.monotonic() - started
        server.stop()
        subprocess.run([program, "verify", "--data-dir", copy], check=True)
        copied = sum(path.stat().st_blocks * 512 for path in copy.iterdir()) / 1e6
    print(f"folder {size:.0f} MB, copy {copied:.0f} MB, {backups[0][1]} rows")
    print(f"backup without requests: {alone:.2f} s")
    print(f"{len(backups)} backups during requests: median {statistics.median(time for time, _ in backups):.2f} s")
    for name, measured in rows.items():
        rate, median, slow = (statistics.median(column) for column in zip(*measured))
        print(f"{name:<15} {rate:>8.0f} requests/s   median {median:.2f} ms   p99 {slow:.2f} ms")


if __name__ == "__main__":
    main()
