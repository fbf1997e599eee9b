#!/usr/bin/env python3
"""Run tools of contract developers as their users do: those that start anvil themselves, and those that expect a chain to be there.

    scripts/tools.py [--bin FOLDER] [--work FOLDER] [TOOL…]

--list lists the tools. Their programs are in `clients/tools`; packages go to a temporary folder (or to --work, which is kept). Tools that
start anvil find the program under that name. Needs npm; `page` needs Chromium and Playwright, and `state` anvil.
"""

import contextlib
import functools
import http.server
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path

import nodes
from nodes import ALICE, ROOT, Server, free_port, need, run, wait_for

TOOLS = ROOT / "clients/tools"
# The keys of the first two accounts.
KEYS = ("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
        "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d")
ENTRY_POINT = "0x0000000071727De22E5E9d8BAf0edAc6f37da032"


def install(options, name, *packages, files=()):
    """Returns a folder with packages of npm and files of `clients/tools`."""
    need("npm", "node")
    folder = options.work / name
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "package.json").exists():
        (folder / "package.json").write_text('{"private": true}')
        run("npm", "install", "--no-audit", "--no-fund", "--silent", *packages, cwd=folder)
    for file in files:
        shutil.copy(TOOLS / file, folder)
    return folder


def anvil(options):
    """Returns the path of the program under the name anvil, in a folder of its own."""
    link = options.work / "anvil/anvil"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(options.server)
    return link


def finished(output, *steps):
    nodes.expect("completed steps", [line for line in output.splitlines() if line.startswith("ok ")], [f"ok {step}" for step in steps])
    print(f"  {len(steps)} steps")


def prool(options):
    """prool starts a chain, and a pool of chains, as the suites of viem and wagmi do"""
    folder = install(options, "prool", "prool@0.2.16", "viem@2", files=["prool.mjs"])
    finished(run("node", "prool.mjs", anvil(options), free_port(), cwd=folder, timeout=120), "instance", "pool")


def alloy(options):
    """alloy's Anvil starts chains with its defaults and with a mnemonic"""
    folder = options.work / "alloy"
    shutil.copytree(TOOLS / "alloy", folder, dirs_exist_ok=True)
    run("cargo", "build", "--quiet", cwd=folder, env={**os.environ, "CARGO_TARGET_DIR": str(folder / "target")})
    finished(run(folder / "target/debug/starts-anvil", anvil(options), timeout=60), "instance")


def ape(options):
    """ape-foundry starts a chain with its defaults"""
    folder = options.work / "ape"
    shutil.copytree(TOOLS / "ape", folder, dirs_exist_ok=True)
    programs = folder / "venv/bin"
    if not programs.exists():
        run(sys.executable, "-m", "venv", folder / "venv")
        run(programs / "pip", "install", "--quiet", "eth-ape==0.8.51", "ape-foundry==0.8.12")
    path = os.pathsep.join([str(anvil(options).parent), str(programs), os.environ["PATH"]])
    tests = ("ape", "test", "--network", "ethereum:local:foundry")
    print(f"  {run(*tests, cwd=folder, env={**os.environ, 'PATH': path}, timeout=300).splitlines()[-1].strip(' =')}")


def hardhat(options):
    """Hardhat's sample project on a fresh chain"""
    folder = install(options, "hardhat", "hardhat@2.29.1", "@nomicfoundation/hardhat-toolbox@6", "solc@0.8.28", files=["hardhat.config.cjs"])
    sample = folder / "node_modules/hardhat/sample-projects/javascript"
    for part in ("contracts", "test"):
        shutil.copytree(sample / part, folder / part, dirs_exist_ok=True)
    with Server(options.server, "dev") as server:
        command = (folder / "node_modules/.bin/hardhat", "--config", "hardhat.config.cjs", "--network", "node", "test")
        output = run(*command, cwd=folder, env={**os.environ, "NODE_URL": server.url}, timeout=300)
        server.stop()
    passing = [line.strip() for line in output.splitlines() if "passing" in line]
    print(f"  {passing[0]}")


def page(options):
    """a page on another port sends from an account of the chain in Chromium, with ethers"""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise nodes.Missing("Playwright is not installed: pip install playwright") from None
    need("chromium")
    folder = install(options, "page", "ethers@6", files=["page.html"])
    shutil.copy(folder / "node_modules/ethers/dist/ethers.min.js", folder)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    files = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=files.serve_forever, daemon=True).start()
    with contextlib.closing(files.socket), sync_playwright() as playwright, Server(options.server, "dev") as server:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"] if os.geteuid() == 0 else [])
        shown = chromium.new_page()
        shown.goto(f"http://localhost:{files.server_port}/page.html?node={server.url}")
        shown.wait_for_function("() => document.querySelector('#result').textContent")
        nodes.expect("the page", shown.inner_text("#result"), "status 1")
        chromium.close()
        files.shutdown()
        server.stop()
    print("  status 1")


def alto(options):
    """alto, a bundler of ERC-4337, with permissionless"""
    packages = ("@pimlico/alto@0.0.20", "permissionless@0.4.1", "viem@2", "ox@0.11.3", "@account-abstraction/contracts@0.7.0")
    folder = install(options, "alto", *packages, files=["alto.mjs"])
    port = free_port()
    with Server(options.server, "dev") as server:
        settings = {
            "--entrypoints": ENTRY_POINT, "--rpc-url": server.url, "--port": port, "--executor-private-keys": KEYS[1],
            "--utility-private-key": KEYS[0], "--safe-mode": "false", "--network-name": "local",
        }
        command = [folder / "node_modules/.bin/alto", *(part for setting in settings.items() for part in setting)]
        with open(options.work / "alto.log", "w") as log, nodes.process(command, stdout=log, stderr=log):
            wait_for("alto serves requests", lambda: nodes.rpc(f"http://127.0.0.1:{port}", "eth_chainId"), 60)
            output = run("node", "alto.mjs", server.url, f"http://127.0.0.1:{port}", cwd=folder, timeout=120)
        server.stop()
    finished(output, "deploys the account", "uses the account")


# Init code that emits a log, and deploys nothing.
LOGS = "0x60aa60205fa100"


def fill(server):
    """Makes a transfer, a log and a failure, and moves the time. Returns the hashes of the transactions."""
    transfer = {"from": ALICE, "to": "0x00000000000000000000000000000000000000dd", "value": "0x5"}
    hashes = [server.rpc("eth_sendTransaction", {"gas": "0x186a0", **more}) for more in
              (transfer, {"from": ALICE, "data": LOGS}, {"from": ALICE, "data": "0xfe"})]
    server.rpc("evm_increaseTime", 1_000_000)
    server.rpc("evm_mine")
    return hashes


def facts(server, hashes):
    """What a dump contains of the chain."""
    number = server.rpc("eth_blockNumber")
    blocks = [server.rpc("eth_getBlockByNumber", hex(index), False) for index in range(1, int(number, 16) + 1)]
    receipts = [server.rpc("eth_getTransactionReceipt", hash) for hash in hashes]
    logs = server.rpc("eth_getLogs", {"fromBlock": "0x1"})
    return {
        "blocks": [[block[name] for name in ("number", "timestamp", "gasUsed", "baseFeePerGas", "transactions")] for block in blocks],
        "receipts": [[receipt[name] for name in ("status", "blockNumber", "gasUsed", "effectiveGasPrice", "contractAddress", "from", "to")]
                     for receipt in receipts],
        "logs": [[log[name] for name in ("address", "topics", "data", "blockNumber", "transactionHash")] for log in logs],
        "transactions": [server.rpc("eth_getTransactionByHash", hash)["input"] for hash in hashes],
        "balance": server.rpc("eth_getBalance", ALICE, "latest"),
    }


def state(options):
    """a chain moves from anvil to this program and back through dumps"""
    with nodes.Anvil() as anvil:
        hashes = fill(anvil)
        dump, expected = anvil.rpc("anvil_dumpState"), facts(anvil, hashes)
    with Server(options.server, "dev") as server:
        server.rpc("anvil_loadState", dump)
        nodes.expect("the chain of anvil, loaded here", facts(server, hashes), expected)
        hashes += fill(server)
        dump, expected = server.rpc("anvil_dumpState"), facts(server, hashes)
        server.stop()
    with nodes.Anvil() as anvil:
        anvil.rpc("anvil_loadState", dump)
        nodes.expect("the chain of this program, loaded by anvil", facts(anvil, hashes), expected)
        anvil.rpc("eth_sendTransaction", {"from": ALICE, "to": ALICE, "value": "0x1"})
        wait_for("the block after it", lambda: int(anvil.rpc("eth_blockNumber"), 16) == len(expected["blocks"]) + 1)
    print(f"  {len(expected['blocks'])} blocks, {len(hashes)} transactions")


PARTS = {"state": state, "prool": prool, "alloy": alloy, "ape": ape, "hardhat": hardhat, "page": page, "alto": alto}


def play(options):
    """Runs the chosen tools in one folder."""
    with tempfile.TemporaryDirectory() as temporary:
        options.work = (options.work or Path(temporary)).resolve()
        for name in options.parts:
            print(f"{name}:", flush=True)
            PARTS[name](options)


if __name__ == "__main__":
    nodes.main(__doc__, PARTS, together=play, arguments=lambda parser: parser.add_argument("--work", type=Path, help="where to install packages; it is kept"))
