#!/usr/bin/env python3
"""Check the dependency rule of ARCHITECTURE.md: which crates may depend on which others, and on how many; what node-core must not mention; how
many test executables `cargo test` links.

Reads `cargo metadata` and `cargo tree`; checks normal and build dependencies, not dev-dependencies. The exit status is 1 on a violation.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The crates of this workspace that each crate may use.
LAYERS = {
    "node-types": set(), "node-core": {"node-types"}, "node-evm": {"node-types", "node-core"}, "node-chain": {"node-types", "node-core"},
    "node-rpc": {"node-types", "node-core"}, "node-http": {"node-types", "node-core", "node-rpc"}, "node-store": {"node-types", "node-core"},
    "node-upstream": {"node-types", "node-core"}, "node-fork": {"node-types", "node-core", "node-store", "node-upstream"},
    "node-dev": {"node-types", "node-core", "node-evm", "node-chain", "node-rpc", "node-http", "node-store", "node-upstream", "node-fork"},
    "node-server": {"node-types", "node-core", "node-evm", "node-chain", "node-rpc", "node-http", "node-store", "node-upstream", "node-fork", "node-dev"},
    "node-tests": {"node-types", "node-core", "node-evm", "node-chain", "node-rpc", "node-http", "node-store", "node-upstream", "node-fork", "node-dev"}, "node-benches": set(),
}

# External dependencies that only some crates may use.
RESERVED = {
    "revm": {"node-evm"}, "secp256k1": {"node-evm"}, "c-kzg": {"node-evm"}, "actix-web": {"node-http"}, "tokio": {"node-dev", "node-http", "node-store", "node-tests"}, "object_store": {"node-store"},
    "ureq": {"node-server", "node-tests", "node-upstream"}, "tungstenite": {"node-tests", "node-upstream"}, "clap": {"node-core", "node-http", "node-server", "node-tests", "node-upstream"},
}

# What must not appear in the sources of node-core, with the reason.
FOREIGN = {
    r"\bwire(_|\b)": "the JSON structures belong to node-http and node-rpc",
    r'"(body|path|query|header|params)\.': "locations in a request belong to node-http",
    r"(?i:http(?!s?://))|\b(REST|OpenAPI)\b": "interfaces belong to node-http",
}


# Libraries with options of cargo, and the most crates that they may need on this platform, this workspace's included. A limit rises only with
# a reason.
WEIGHTS = {"node-types": 31, "node-core": 50, "node-upstream": 73, "node-dev --no-default-features": 171}

# One test executable for each library, two for the server, one for node-tests, one for the example that consists of tests: each links all of
# the node. New tests are modules of one of these.
TESTS = 14


def heavy() -> list[str]:
    """Lists the libraries that need more crates than they should."""
    faults = []
    for package, limit in WEIGHTS.items():
        command = ["cargo", "tree", "--locked", "-p", *package.split(), "-e", "normal", "--prefix", "none", "-f", "{p}"]
        lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
        count = len({" ".join(line.split()[:2]) for line in lines if line})
        print(f"{package}: {count} crates, at most {limit}")
        faults += [f"{package} needs too many crates"] if count > limit else []
    return faults


def foreign() -> list[str]:
    """Lists the lines of node-core that mention something foreign, with the reason why they must not."""
    return [
        f"{path}:{number}: {reason}"
        for path in (ROOT / "crates/node-core/src").rglob("*.rs")
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        for pattern, reason in FOREIGN.items()
        if re.search(pattern, line)
    ]


def main() -> int:
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    # Examples are programs of users: they may use everything, and nothing uses them.
    packages = {package["name"]: package for package in metadata["packages"] if not package["name"].startswith("example-")}
    tests = [target["name"] for package in metadata["packages"] for target in package["targets"] if target["test"]]
    faults = [f"{len(tests)} test executables, at most {TESTS}: {', '.join(sorted(tests))}"] if len(tests) > TESTS else []
    faults += foreign() + heavy() + [f"{name} has no layer: add it here and in ARCHITECTURE.md" for name in packages.keys() - LAYERS.keys()]
    for name, package in packages.items():
        for dependency in (dependency for dependency in package["dependencies"] if dependency["kind"] != "dev"):
            used = dependency["name"]
            if used in packages and used not in LAYERS.get(name, set()):
                faults.append(f"{name} may not use {used}")
            if used.startswith("alloy") and used not in RESERVED and name != "node-tests" and not dependency["optional"]:
                faults.append(f"{name} may use {used} only in tests, or behind a feature")
            if name not in RESERVED.get(used, {name}):
                faults.append(f"{name} may not use {used}: only {', '.join(sorted(RESERVED[used]))} may")
    print("\n".join(sorted(faults)) or f"layers hold: {len(packages)} crates checked")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
