#!/usr/bin/env python3
"""Test a development chain with common JSON-RPC tools: cast, viem, ethers and web3.py.

    scripts/rpc_clients.py [--bin FILE] [--work FOLDER] [cast] [viem] [ethers] [web3py]

Each client is in `clients/rpc`, with pinned versions; it is installed into a temporary folder (or into --work, which is kept), and gets a
chain of its own. A client fails on an unexpected response, and if it did not perform all required steps.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nodes import ROOT, Failure, Server, build

FOLDER = ROOT / "clients" / "rpc"

# The steps of every client. A client prints `ok` and the name of each completed step.
STEPS = [
    "deploy", "accounts", "type 0", "type 1", "type 2", "type 3", "type 4", "read", "call", "estimate", "logs", "subscribe",
    "revert reason", "proof", "signatures", "snapshot", "mine", "automine", "time", "blocks", "edits", "impersonation", "state",
]

# Additional steps of some clients.
MORE = {"viem": ["reorganization"]}

# Time limit of a client in seconds: cast starts a process for each request.
LIMIT = 300


def npm(folder, command):
    subprocess.run(["npm", command, "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True)


def javascript(folder):
    npm(folder, "ci")
    return ["node", "run.mjs"]


def cast(folder):
    # Not every registry has its binaries for other systems, so that no lock file is complete; the version is exact.
    npm(folder, "install")
    return [sys.executable, "run.py"]


def web3py(folder):
    programs = folder / "venv" / "bin"
    if not (programs / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        subprocess.run([programs / "pip", "install", "--quiet", "-r", "requirements.txt"], cwd=folder, check=True)
    return [str(programs / "python"), "run.py"]


CLIENTS = {"cast": cast, "viem": javascript, "ethers": javascript, "web3py": web3py}


def run(name, command, folder, url):
    """Runs a client and checks its steps. Returns their number."""
    environment = {**os.environ, "NODE_RPC_URL": url}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, text=True, timeout=LIMIT, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except subprocess.TimeoutExpired as late:
        raise Failure(f"{name} took longer than {LIMIT} s: {late.output}") from late
    steps = [line.removeprefix("ok ") for line in done.stdout.splitlines() if line.startswith("ok ")]
    expected = [*STEPS, *MORE.get(name, [])]
    if done.returncode != 0 or sorted(steps) != sorted(expected):
        missing = [step for step in expected if step not in steps]
        raise Failure(f"{name} ended with status {done.returncode}; missing steps: {missing}:\n{done.stdout}")
    return len(steps)


def main():
    parser = argparse.ArgumentParser(description="Tests a development chain with common JSON-RPC tools.")
    parser.add_argument("--bin", type=Path, help="the server [default: build it]")
    parser.add_argument("--work", type=Path, help="where to install the clients; it is kept")
    parser.add_argument("clients", nargs="*", choices=[*CLIENTS, []], default=[])
    options = parser.parse_args()
    binary = (options.bin or build() / "ethnode").resolve()
    with tempfile.TemporaryDirectory() as temporary:
        work = (options.work or Path(temporary)).resolve()
        ignored = shutil.ignore_patterns("node_modules", "venv")
        shutil.copytree(FOLDER, work, ignore=ignored, dirs_exist_ok=True)
        for name in options.clients or CLIENTS:
            folder = work / name
            command = CLIENTS[name](folder)
            with Server(binary, "dev", "--data-dir", ":memory:") as server:
                started = time.monotonic()
                steps = run(name, command, folder, server.url)
                server.stop()
            print(f"{name}: {steps} steps, {time.monotonic() - started:.1f} s", flush=True)


if __name__ == "__main__":
    try:
        main()
    except (Failure, subprocess.CalledProcessError) as failure:
        sys.exit(f"FAIL {failure}")
