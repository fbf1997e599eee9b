#!/usr/bin/env python3
"""Check that the release build is reproducible: build the last commit twice, in different folders, and compare.

    scripts/reproducible.py [--package node-server] [--profile dist] [--print]

`--print` prints the command that it runs. The same compilers of Rust and C, the same dependencies (Cargo.lock) and the same target
folder give the same bytes. The two builds differ in the folder of the sources and in time; paths of the home folder are replaced as
well, but it is the same in both.
"""

import argparse
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from nodes import ROOT


# The sources that one dependency generates contain the path of the target folder, so that it must be the same everywhere.
TARGET = Path("/tmp/node-release")


def environment(folder, commit="HEAD"):
    """Returns the variables with which a build of `folder` depends on neither its path, nor the home folder, nor the time."""
    cargo = os.environ.get("CARGO_HOME") or str(Path.home() / ".cargo")
    places = {str(folder): ".", cargo: "cargo", str(TARGET): "target"}
    flags = " ".join(f"--remap-path-prefix={path}={name}" for path, name in places.items())
    # For C code, which mentions files in assertions.
    c_flags = " ".join(f"-ffile-prefix-map={path}={name}" for path, name in places.items())
    time = subprocess.run(["git", "log", "-1", "--format=%ct", commit], cwd=ROOT, check=True, capture_output=True, text=True)
    return {
        "RUSTFLAGS": flags, "CFLAGS": c_flags, "CXXFLAGS": c_flags, "SOURCE_DATE_EPOCH": time.stdout.strip(),
        "CARGO_INCREMENTAL": "0", "CARGO_TARGET_DIR": str(TARGET),
    }


def build(folder, commit, options):
    """Builds `commit` in `folder`. Returns the hash of the program."""
    folder.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=folder, input=archive, check=True)
    command = ["cargo", "build", "--locked", "--all-features", "--profile", options.profile, "-p", options.package]
    shutil.rmtree(TARGET, ignore_errors=True)
    subprocess.run(command, cwd=folder, env={**os.environ, **environment(folder, commit)}, check=True)
    program = TARGET / options.profile / options.package
    return hashlib.sha256(program.read_bytes()).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", default="node-server")
    parser.add_argument("--profile", default="dist")
    parser.add_argument("--print", action="store_true", help="print the command for this folder, and build nothing")
    options = parser.parse_args()
    if options.print:
        variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment(ROOT).items())
        print(f"{variables} cargo build --locked --all-features --profile {options.profile} -p {options.package}")
        return 0
    # HEAD may change during the builds.
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    with tempfile.TemporaryDirectory(prefix="reproducible-") as work:
        hashes = [build(Path(work) / name, commit, options) for name in ("first", "a/second/folder")]
    shutil.rmtree(TARGET)
    for hash in hashes:
        print(hash)
    return 0 if len(set(hashes)) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
