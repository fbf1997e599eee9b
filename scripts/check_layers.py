#!/usr/bin/env python3
"""Check the dependency rule of ARCHITECTURE.md: which crates may depend on which others.

Reads `cargo metadata`; checks normal and build dependencies, not dev-dependencies. Also checks that node-core does not
mention what belongs to its interfaces, and that files do not import one another in long circles. The exit status is 1 on
a violation.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

from import_circles import circles

# The crates of this workspace that each crate may use.
LAYERS = {
    "node-types": set(),
    "node-core": {"node-types"},
    "node-evm": {"node-types", "node-core"},
    "node-chain": {"node-types", "node-core"},
    "node-rpc": {"node-types", "node-core"},
    "node-http": {"node-types", "node-core", "node-rpc"},
    "node-store": {"node-types", "node-core"},
    "node-dev": {"node-types", "node-core", "node-evm", "node-chain", "node-rpc", "node-http", "node-store"},
    "node-server": {"node-types", "node-core", "node-evm", "node-chain", "node-rpc", "node-http", "node-store", "node-dev"},
    "node-tests": {"node-types", "node-core", "node-evm", "node-chain", "node-rpc", "node-http", "node-store", "node-dev"},
}

# External dependencies that only some crates may use.
RESERVED = {
    "revm": {"node-evm"},
    "revm-inspectors": {"node-evm"},
    "alloy-rpc-types-trace": {"node-evm"},
    "secp256k1": {"node-evm"},
    "c-kzg": {"node-evm"},
    "actix-web": {"node-http"},
    "tokio": {"node-http", "node-tests"},
    "redb": {"node-store"},
    "ureq": {"node-server", "node-tests"},
    "tungstenite": {"node-tests"},
    "clap": {"node-http", "node-server", "node-tests"},
}

# What must not appear in the sources of node-core, with the reason.
FOREIGN = {
    r"\bwire\b": "the JSON structures belong to node-http and node-rpc",
    r'"(body|path|query|header|params)\.': "locations in a request belong to node-http",
    r"`(--)?[a-z]+(-[a-z]+)+`|(?<![-|])--[a-z]": "options of the command line belong to node-rpc's table",
}


def foreign_words(folder: Path) -> list[str]:
    """Lists the lines below `folder` that match a pattern of `FOREIGN`."""
    return [
        f"{path}:{number}: {reason}"
        for path in sorted(folder.rglob("*.rs"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        for pattern, reason in FOREIGN.items()
        if re.search(pattern, line)
    ]


def main() -> int:
    metadata = json.loads(
        subprocess.run(
            ["cargo", "metadata", "--format-version", "1", "--no-deps"], check=True, capture_output=True
        ).stdout
    )
    faults = foreign_words(Path(__file__).parent.parent / "crates/node-core/src")
    for package in metadata["packages"]:
        src = Path(package["manifest_path"]).parent / "src"
        faults += [f"{src}: files import one another in a circle: {', '.join(circle)}" for circle in circles(src)]
    packages = {package["name"]: package for package in metadata["packages"]}
    # Examples are programs of users: they may use everything, and nothing uses them.
    packages = {name: package for name, package in packages.items() if not name.startswith("example-")}
    for unknown in packages.keys() - LAYERS.keys():
        faults.append(f"{unknown} has no layer: add it here and in ARCHITECTURE.md")
    for name, package in packages.items():
        for dependency in package["dependencies"]:
            used = dependency["name"]
            if dependency["kind"] == "dev":
                continue
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
