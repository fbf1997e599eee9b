#!/usr/bin/env python3
"""How long a backup of a folder takes that a server has open, and what requests feel of it.

    scripts/bench_backup.py GENESIS CHAIN [--seconds N] [--server PROGRAM]

Imports CHAIN (RLP blocks) into a new folder and serves it. Then wrk asks for one slot of storage over 16 connections for N seconds,
first with nothing else, then with one backup after the other going on. Reports requests a second and the time below which half and
99 of a hundred answers are, of both, and the median time of the backups. The last copy is verified. Needs wrk.
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
    """Requests a second, and milliseconds of the median and of the 99th percentile."""
    command = ["wrk", "-t1", "-c16", f"-d{seconds}s", "--latency", "-s", script, server.url + "/getStorageAt/"]
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
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--server", type=Path, help="the program, instead of one that is built")
    options = parser.parse_args()
    program = options.server or build() / "node-server"
    with tempfile.TemporaryDirectory() as parent:
        folder, copy, script = (Path(parent, name) for name in ("data", "copy", "wrk.lua"))
        script.write_text(SCRIPT)
        subprocess.run([program, "import", "--genesis", options.genesis, "--data-dir", folder, options.chain], check=True)
        size = sum(path.stat().st_blocks * 512 for path in folder.iterdir()) / 1e6
        server = Server(program, "run", "--log", "warn", "--genesis", options.genesis, "--data-dir", folder)
        rows = {"alone": wrk(server, script, options.seconds)}

        backups, wanted = [], threading.Event()

        def back_up():
            while not wanted.is_set():
                shutil.rmtree(copy, ignore_errors=True)
                started = time.monotonic()
                command = [program, "backup", "--json", "--data-dir", folder, copy]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                backups.append((time.monotonic() - started, json.loads(output.splitlines()[-1])["rows"]))

        thread = threading.Thread(target=back_up)
        thread.start()
        rows["beside backups"] = wrk(server, script, options.seconds)
        wanted.set()
        thread.join()
        shutil.rmtree(copy)
        started = time.monotonic()
        subprocess.run([program, "backup", "--data-dir", folder, copy], check=True)
        alone = time.monotonic() - started
        server.stop()
        subprocess.run([program, "verify", "--data-dir", copy], check=True)
        copied = sum(path.stat().st_blocks * 512 for path in copy.iterdir()) / 1e6
    print(f"folder {size:.0f} MB, copy {copied:.0f} MB, {backups[0][1]} rows")
    print(f"a backup of a server without requests: {alone:.2f} s")
    print(f"{len(backups)} backups beside requests: median {statistics.median(time for time, _ in backups):.2f} s")
    for name, (rate, median, slow) in rows.items():
        print(f"{name:<15} {rate:>8.0f} requests/s   median {median:.2f} ms   p99 {slow:.2f} ms")


if __name__ == "__main__":
    main()
