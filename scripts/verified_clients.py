#!/usr/bin/env python3
"""Have the light client, alloy's client of JSON-RPC, and the client in WebAssembly on Node.js verify what a development chain serves."""
import argparse
import json
import subprocess
import threading
import urllib.request

from nodes import ROOT, Server

ACCOUNT = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
WASM = ROOT / "target/wasm32-unknown-unknown/debug/example_wasm_client.wasm"


def mine(url: str) -> None:
    """Seals a block."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "evm_mine", "params": []}).encode()
    urllib.request.urlopen(urllib.request.Request(url, body, {"content-type": "application/json"})).read()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, help="the server")
    server_binary = parser.parse_args().bin
    clients = ["example-light-client", "example-rpc-client"]
    subprocess.run(["cargo", "build", "--quiet", "--locked", *(f"-p={name}" for name in clients)], cwd=ROOT, check=True)
    light_client, rpc_client = (ROOT / "target/debug" / name for name in clients)
    with Server(server_binary, "dev", "--data-dir", ":memory:") as server:
        timers = [threading.Timer(seconds, mine, [server.url]) for seconds in (1, 3)]
        for timer in timers:
            timer.start()
        followed = subprocess.run(
            [light_client, server.url, ACCOUNT, "0", "3", "latest"], check=True, capture_output=True, text=True, timeout=60
        ).stdout
        print(followed, end="")
        assert len(followed.splitlines()) == 3, followed
        subprocess.run([rpc_client, server.url], check=True, timeout=60)
        if WASM.exists():
            subprocess.run(["node", ROOT / "examples/wasm-client/client.mjs", server.url, ACCOUNT, WASM], check=True, timeout=60)
        else:
            print("skipped the client in WebAssembly, which was not built")


if __name__ == "__main__":
    main()
