#!/usr/bin/env python3
"""Compare how common tools get along with a development chain and with anvil, and print the table of docs/compatibility.md.

    scripts/compatibility.py [--bin FILE] [--work FOLDER] [--write] [--short]

The tools come from npm in their current versions, into a temporary folder or --work, which is kept. --write updates docs/compatibility.md.
--short runs only what needs neither Hardhat nor a browser, and fails if anything fails here.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from nodes import ROOT, Anvil, Failure, Server, build

CHECKS = ROOT / "clients" / "compatibility"
TABLE = ROOT / "docs" / "compatibility.md"

# Time limit of a tool in seconds.
LIMIT = 300

# For each folder: packages, and the programs to run there.
TOOLS = {
    "libraries": (["viem", "ethers"], [["node", "errors.mjs"], ["node", "viem.mjs"]]),
    "hardhat2": (
        ["hardhat@2", "@nomicfoundation/hardhat-network-helpers@1", "ethers"], [["node", "hardhat2.cjs"]],
    ),
    "hardhat3": (
        ["hardhat@3", "@nomicfoundation/hardhat-network-helpers@3", "node@22"],
        [["node_modules/.bin/node", "hardhat3.mjs"]],
    ),
    "foundry": (["@foundry-rs/anvil", "@foundry-rs/cast"], []),
}

# Options of anvil that need a value other than 1.
VALUES = {"accounts": "3", "hardfork": "prague", "order": "fees", "derivation-path": "m/44'/60'/0'/0/", "host": "127.0.0.1",
          "mnemonic": "test test test test test test test test test test test junk", "port": "0", "chain-id": "5"}

# Options of anvil that need another one.
COMPANIONS = {"mixed-mining": ["--block-time", "1"]}

# Subcommands of cast with their arguments; ACCOUNT and TX are replaced.
CAST = [
    "block-number", "chain-id", "client", "gas-price", "base-fee", "block latest", "age latest", "balance ACCOUNT", "nonce ACCOUNT",
    "code ACCOUNT", "codehash ACCOUNT", "codesize ACCOUNT", "storage ACCOUNT 0", "proof ACCOUNT 0", "storage-root ACCOUNT",
    "send --unlocked --from ACCOUNT --value 1 ACCOUNT", "tx TX", "receipt TX", "estimate --from ACCOUNT ACCOUNT", "call ACCOUNT",
    "access-list ACCOUNT", "logs", "find-block 1", "rpc evm_mine", "publish RAW", "run TX", "tx-pool status", "tx-pool content",
]
ACCOUNT = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"


def install(name, packages, work):
    folder = work / name
    shutil.copytree(CHECKS, folder, dirs_exist_ok=True)
    if not (folder / "package.json").exists():
        kind = "module" if name == "hardhat3" else "commonjs"
        (folder / "package.json").write_text(json.dumps({"private": True, "type": kind}))
        command = ["npm", "install", "--no-audit", "--no-fund", "--silent", *packages]
        subprocess.run(command, cwd=folder, check=True)
    return folder


def versions(folder, packages):
    for package in packages:
        name = package if package.startswith("@") and package.count("@") == 1 else package.rsplit("@", 1)[0] or package
        manifest = folder / "node_modules" / name / "package.json"
        yield f"{name} {json.loads(manifest.read_text())['version']}"


def rows(command, folder, url):
    """Returns the result of each call of a tool, by tool and call."""
    environment = {**os.environ, "NODE_RPC_URL": url}
    try:
        done = subprocess.run(command, cwd=folder, env=environment, text=True, timeout=LIMIT, capture_output=True)
    except subprocess.TimeoutExpired as late:
        raise Failure(f"{command} took longer than {LIMIT} s") from late
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"tool"')]
    if not lines:
        raise Failure(f"{command} ended with status {done.returncode}: {done.stderr[-500:]}")
    return {(line["tool"], line["call"]): line["result"] for line in lines}


def cast(program, url):
    found, values = {}, {"ACCOUNT": ACCOUNT}
    key = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
    signed = [program, "mktx", "--rpc-url", url, "--private-key", key, ACCOUNT]
    for command in CAST:
        words = command.split()
        if "RAW" in words:
            values["RAW"] = subprocess.run(signed, text=True, capture_output=True, timeout=60).stdout.strip()
        arguments = [values.get(word, word) for word in words]
        extra = ["--json"] if words[0] == "send" else []
        done = subprocess.run(
            [program, *arguments, "--rpc-url", url, *extra], text=True, capture_output=True, timeout=60,
        )
        # npm's wrapper does not pass on the status.
        succeeded = done.returncode == 0 and not done.stderr.startswith("Error")
        if words[0] == "send" and succeeded:
            values["TX"] = json.loads(done.stdout)["transactionHash"]
        name = " ".join(words[:2]) if words[0] in ("rpc", "tx-pool") else words[0]
        found["cast", name] = "works" if succeeded else f"fails: {done.stderr.strip().splitlines()[0][:90]}"
    return found


def options_of(anvil):
    text = subprocess.run([anvil, "--help"], text=True, capture_output=True, check=True).stdout
    return re.findall(r"^\s+(?:-\w, +)?--([a-z0-9-]+)(.*)$", text, re.MULTILINE)


def options(binary, anvil):
    """Returns for each option of anvil whether `dev` has it, or what it says instead."""
    found = {}
    for name, rest in options_of(anvil):
        value = [VALUES.get(name, "1")] if "<" in rest and "[<" not in rest else []
        command = [binary, "config", "dev", f"--{name}", *value, *COMPANIONS.get(name, [])]
        done = subprocess.run(command, text=True, capture_output=True, timeout=60)
        said = re.search(r"is not an option here: (.*)", done.stderr)
        if done.returncode == 0:
            result = "works"
        else:
            result = f"refused: {said[1]}" if said else f"fails: {done.stderr.splitlines()[0]}"
        found["options", f"`--{name}`"] = result
    return found


def table(ours, theirs, used):
    lines = [
        "# Compatibility", "",
        "How common tools get along with a development chain of this node, and with anvil beside it. `scripts/compatibility.py --write` makes this",
        "page; `.ci/run` runs a short form. Versions: " + ", ".join(used) + ".", "",
        "| Tool | Call | anvil | here |", "|---|---|---|---|",
    ]
    escaped = lambda text: text.replace("|", "\\|").replace("<", "&lt;")
    for (tool, call), result in ours.items():
        lines.append(f"| {tool} | {escaped(call)} | {escaped(theirs.get((tool, call), 'works'))} | {escaped(result)} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description="Compares how common tools get along with this node and with anvil.")
    parser.add_argument("--bin", type=Path, help="the server [default: build it]")
    parser.add_argument("--work", type=Path, help="where to install the tools; it is kept")
    parser.add_argument("--write", action="store_true", help="update docs/compatibility.md")
    parser.add_argument("--short", action="store_true", help="only viem, ethers, cast and the options")
    arguments = parser.parse_args()
    binary = (arguments.bin or build() / "node-server").resolve()
    with tempfile.TemporaryDirectory() as temporary:
        work = (arguments.work or Path(temporary)).resolve()
        tools = {name: tool for name, tool in TOOLS.items() if not (arguments.short and name.startswith("hardhat"))}
        folders = {name: install(name, packages, work) for name, (packages, _) in tools.items()}
        used = [version for name, (packages, _) in tools.items() for version in versions(folders[name], packages)]
        programs = folders["foundry"] / "node_modules" / ".bin"
        results = []
        for start in (lambda: Server(binary, "dev", "--data-dir", ":memory:"), lambda: Anvil(programs / "anvil")):
            found = {}
            for name, (_, commands) in tools.items():
                for command in commands:
                    with start() as running:
                        found |= rows(command, folders[name], running.url)
            with start() as running:
                found |= cast(programs / "cast", running.url)
            results.append(found)
        ours, theirs = results
        ours |= options(binary, programs / "anvil")
    text = table(ours, theirs, sorted(set(used)))
    print(text)
    if arguments.write:
        TABLE.write_text(text)
    failed = [f"{tool}: {call}: {result}" for (tool, call), result in ours.items() if result.startswith("fails")]
    if failed:
        sys.exit("FAIL " + "\n".join(failed))


if __name__ == "__main__":
    try:
        main()
    except (Failure, subprocess.CalledProcessError) as failure:
        sys.exit(f"FAIL {failure}")
