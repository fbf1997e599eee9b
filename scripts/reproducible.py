#!/usr/bin/env python3
"""Check that the release build is reproducible: build the last commit twice, in different folders, and compare.

    scripts/reproducible.py [--profile dist] [--print]

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

from nodes import ROOT, run

# The sources that one dependency generates contain the path of the target folder, so that it must be the same everywhere.
TARGET = Path("/tmp/node-release")


def environment(folder, commit="HEAD"):
    """Returns the variables with which a build of `folder` depends on neither its path, nor the home folder, nor the time."""
    places = {folder: ".", os.environ.get("CARGO_HOME") or Path.home() / ".cargo": "cargo", TARGET: "target"}
    # For C code, which mentions files in assertions.
    c_flags = " ".join(f"-ffile-prefix-map={path}={name}" for path, name in places.items())
    flags = " ".join(f"--remap-path-prefix={path}={name}" for path, name in places.items())
    time = run("git", "log", "-1", "--format=%ct", commit, cwd=ROOT).strip()
    return {"RUSTFLAGS": flags, "CFLAGS": c_flags, "CXXFLAGS": c_flags, "SOURCE_DATE_EPOCH": time, "CARGO_INCREMENTAL": "0",
            "CARGO_TARGET_DIR": str(TARGET)}


def build(folder, commit, command, profile):
    """Builds `commit` in `folder`. Returns the hash of the program."""
    folder.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=folder, input=archive, check=True)
    shutil.rmtree(TARGET, ignore_errors=True)
    subprocess.run(command, cwd=folder, env={**os.environ, **environment(folder, commit)}, check=True)
    return hashlib.sha256((TARGET / profile / "ethnode").read_bytes()).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", default="dist")
    parser.add_argument("--print", action="store_true", help="print the command for this folder, and build nothing")
    options = parser.parse_args()
    command = ["cargo", "build", "--locked", "--all-features", "--profile", options.profile, "-p", "node-server"]
    if options.print:
        print(*(f"{name}={shlex.quote(value)}" for name, value in environment(ROOT).items()), *command)
        return 0
    # HEAD may change during the builds.
    commit = run("git", "rev-parse", "HEAD", cwd=ROOT).strip()
    with tempfile.TemporaryDirectory(prefix="reproducible-") as work:
        hashes = [build(Path(work) / name, commit, command, options.profile) for name in ("first", "a/second/folder")]
    shutil.rmtree(TARGET)
    print("\n".join(hashes))
    return 0 if len(set(hashes)) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
