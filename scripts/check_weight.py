#!/usr/bin/env python3
"""Check that the libraries need no more crates than they should, this workspace's included.

Counts what `cargo tree` lists for one package alone: normal dependencies on this platform. The exit status is 1 if there are
more than the limit, which rises only with a reason.
"""
import subprocess
import sys

# Package, options, most crates.
LIMITS = [
    ("node-types", [], 31),
    ("node-core", [], 50),
    ("node-dev", ["--no-default-features"], 171),
]


def crates(package: str, options: list[str]) -> set[str]:
    """Returns the crates that `package` needs, with their versions."""
    command = ["cargo", "tree", "--locked", "-p", package, *options, "-e", "normal", "--prefix", "none", "-f", "{p}"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {" ".join(line.split()[:2]) for line in lines if line}


def main() -> int:
    failed = False
    for package, options, limit in LIMITS:
        count = len(crates(package, options))
        failed |= count > limit
        print(f"{package} {' '.join(options)}: {count} crates, at most {limit}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
