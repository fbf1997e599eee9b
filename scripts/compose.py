#!/usr/bin/env python3
"""Run what deploy/scale/compose.yaml describes, a store, a writer, two readers and nginx, and use it as a client does.

    scripts/compose.py [--bin FOLDER] [--no-containers]

Builds and starts the containers if `docker compose` works. Otherwise, and with --no-containers, the commands and the variables of the file run as
processes of this machine, with another S3 server, moto's. Needs nginx, and moto[server,s3] and PyYAML from PyPI.
"""

import contextlib
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

import nodes
from nodes import ALICE, ROOT, Failure, check, expect, fetch, free_port, need, process, rpc, run, wait_for
from s3 import BUCKET, create_bucket

FOLDER = ROOT / "deploy/scale"


def use(url, stop_reader):
    """Sends transactions and reads their effect through nginx, before and after a reader ends."""
    to = "0x" + "44" * 20
    for number in range(1, 21):
        if number == 10:
            stop_reader()
        hash_ = rpc(url, "eth_sendTransaction", {"from": ALICE, "to": to, "value": "0x1"})
        if number == 1:
            rpc(url, "anvil_setAutomine", True)
        receipt = wait_for("the receipt", lambda: rpc(url, "eth_getTransactionReceipt", hash_), 60)
        # Read-your-writes: the header makes a reader that is behind wait.
        head = str(int(receipt["blockNumber"], 16))
        body = json.dumps(nodes.message("eth_getBalance", to, "latest")).encode()
        status, text = fetch(url, {"X-Min-Head": head}, body)
        expect("status and balance", (status, int(json.loads(text)["result"], 16)), (200, number))
    filter_ = rpc(url, "eth_newBlockFilter")
    rpc(url, "evm_mine")
    seen = sum(len(rpc(url, "eth_getFilterChanges", filter_)) for _ in range(4))
    check(seen >= 1, "20 transactions and a filter through nginx, with one reader from the tenth on")


def containers(compose):
    try:
        run(*compose, "up", "--build", "--detach", timeout=3600)
        wait_for("the start", lambda: fetch("http://127.0.0.1:8080/ready")[0] == 200, 300)
        use("http://127.0.0.1:8080", lambda: run(*compose, "stop", "reader-1"))
    except Failure as failure:
        raise Failure(f"{failure}\n{run(*compose, 'logs')[-4000:]}") from None
    finally:
        run(*compose, "down", "--volumes")


def processes(options, services):
    need("nginx", "moto_server")
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        # The workers of nginx run as another user.
        folder.chmod(0o755)
        ports = {name: free_port() for name in ("store", "writer", "reader-1", "reader-2", "nginx")}

        def here(value):
            value = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", str(value))
            for service, port in ports.items():
                value = re.sub(rf"\b{service}:\d+", f"127.0.0.1:{port}", value)
            return value.replace("s3://chain/", f"s3://{BUCKET}/")

        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        stack.enter_context(process(["moto_server", "-H", "127.0.0.1", "-p", ports["store"]], **quiet))
        create_bucket(ports["store"])
        running = {}
        for name in ("writer", "reader-1", "reader-2"):
            service = services[name]
            data = folder / name
            command = [options.server, *[data if word == "/data" else here(word) for word in service["command"]]]
            environment = {key: here(value) for key, value in service["environment"].items()}
            environment["ETHNODE_TRUSTED_PROXIES"] += ",127.0.0.1"
            environment |= {"ETHNODE_PORT": str(ports[name]), "ETHNODE_HOST": "127.0.0.1"}
            log = stack.enter_context((folder / f"{name}.log").open("w"))
            running[name] = stack.enter_context(process(command, stdout=log, stderr=log, env=os.environ | environment))
            ready = lambda: fetch(f"http://127.0.0.1:{ports[name]}/ready")[0] == 200
            try:
                wait_for(f"the start of {name}", ready, 60)
            except Failure as failure:
                raise Failure(f"{failure}\n{(folder / f'{name}.log').read_text()[-4000:]}") from None
        site = (FOLDER / "nginx.conf").read_text().replace("listen 8080", f"listen 127.0.0.1:{ports['nginx']}").replace(" resolve;", ";")
        temporary = " ".join(f"{kind}_temp_path {folder};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (folder / "nginx.conf").write_text(here(re.sub(r"resolver [^;]*;", "", site)).replace("http {", f"http {{ {temporary} access_log off;"))
        nginx = ["nginx", "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "nginx.log", "-g", f"daemon off; pid {folder}/nginx.pid;"]
        stack.enter_context(process(nginx, **quiet))
        url = f"http://127.0.0.1:{ports['nginx']}"
        wait_for("nginx", lambda: fetch(f"{url}/ready")[0] == 200)
        use(url, lambda: (running["reader-1"].terminate(), running["reader-1"].wait()))


def compose(options):
    """a store, a writer, two readers and nginx"""
    try:
        import yaml
    except ImportError:
        raise nodes.Missing("PyYAML is not installed: pip install PyYAML") from None
    services = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
    command = ["docker", "compose", "-f", FOLDER / "compose.yaml"]
    if not options.no_containers and subprocess.run(["sh", "-c", "docker info && docker compose version"], capture_output=True).returncode == 0:
        return containers(command)
    processes(options, services)


def arguments(parser):
    parser.add_argument("--no-containers", action="store_true", help="run processes even if Docker is there")


if __name__ == "__main__":
    nodes.main(__doc__, {"compose": compose}, arguments=arguments)
