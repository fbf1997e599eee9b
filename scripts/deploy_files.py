#!/usr/bin/env python3
"""Check the files in deploy/ as far as that is possible without Docker and systemd.

    scripts/deploy_files.py [--bin PROGRAM]

compose.yaml: that it is YAML, that the files it mounts exist, that the variables it sets are settings of the server, and that the options of
its command are accepted. Those of nginx and Prometheus are read by nginx -t and promtool, the unit by systemd-analyze, and the settings of
the service by the server, which also uses the socket of systemd-socket-activate.
"""

import argparse
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from nodes import ROOT, Failure, build, checked, free_port, install

DEPLOY = ROOT / "deploy"


def load(path):
    try:
        import yaml
    except ImportError:
        install("python3-yaml")
        import yaml
    return yaml.safe_load(path.read_text())


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))}: {(done.stdout + done.stderr).strip()}")
    return done.stdout + done.stderr


def check_compose(binary):
    services = load(DEPLOY / "compose.yaml")["services"]
    mounts = 0
    for name, service in services.items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                mounts += 1
                if not (DEPLOY / source).is_file():
                    raise Failure(f"{name} mounts {source}, which does not exist")
    node = services["node"]
    if not (DEPLOY / node["build"]["context"] / node["build"]["dockerfile"]).is_file():
        raise Failure("the Dockerfile of the compose file does not exist")
    environment = {**os.environ, **node["environment"]}
    # A warning identifies a variable that is not a setting.
    settings = run(binary, "config", *node["command"], env=environment)
    if "warning" in settings or settings.count("ETHNODE_") != len(node["environment"]):
        raise Failure(f"settings of the compose file: {settings}")
    print(f"compose.yaml: {len(services)} services, {mounts} mounted files, {len(node['environment'])} variables")


def check_nginx(folder):
    config = Path(folder) / "nginx.conf"
    # nginx resolves names when it reads its settings.
    config.write_text((DEPLOY / "compose/nginx.conf").read_text().replace("server node:8545", "server 127.0.0.1:8545"))
    run("nginx", "-t", "-p", folder, "-c", config, "-e", f"{folder}/error.log", "-g", f"pid {folder}/pid;")
    print("compose/nginx.conf: accepted by nginx")


def check_prometheus(folder):
    for name in ("compose/prometheus.yml", "alerts.yml"):
        shutil.copy(DEPLOY / name, folder)
    run("promtool", "check", "config", Path(folder) / "prometheus.yml")
    targets = load(DEPLOY / "compose/prometheus.yml")["scrape_configs"]
    if [target["job_name"] for target in targets] != ["ethnode"]:
        raise Failure("the alert rules expect the job ethnode")
    source = load(DEPLOY / "compose/datasources.yml")["datasources"][0]
    if source["type"] != "prometheus" or "prometheus:9090" not in source["url"]:
        raise Failure(f"unexpected data source {source}")
    load(DEPLOY / "compose/dashboards.yml")
    print("compose/prometheus.yml with alerts.yml: accepted by promtool")


def check_unit(binary, folder):
    settings = run(binary, "config", "run", "--config", DEPLOY / "ethnode.toml")
    if "/var/lib/ethnode" not in settings:
        raise Failure(f"settings of the service: {settings}")
    if not shutil.which("systemd-analyze"):
        print("ethnode.toml: accepted; the unit was not checked, because there is no systemd-analyze")
        return
    unit = Path(folder) / "ethnode.service"
    # The program is not installed here.
    unit.write_text((DEPLOY / "ethnode.service").read_text().replace("/usr/bin/node-server", str(binary)))
    socket = Path(shutil.copy(DEPLOY / "ethnode.socket", folder))
    output = run("systemd-analyze", "verify", "--man=no", unit, socket)
    ours = [line for line in output.splitlines() if "ethnode.s" in line]
    if ours:
        raise Failure("\n".join(ours))
    print("ethnode.service, ethnode.socket and ethnode.toml: accepted by systemd-analyze and the server")


def check_socket(binary):
    if not (activate := shutil.which("systemd-socket-activate")):
        print("the socket was not tried, because there is no systemd-socket-activate")
        return
    port = free_port()
    # The server's own port is not used.
    command = [activate, "--listen", f"127.0.0.1:{port}", binary, "run", "--data-dir", ":memory:", "--port", "1", "--log", "warn"]
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        # The first connection starts the server, and waits for it.
        deadline = time.monotonic() + 20
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=20) as response:
                    break
            except urllib.error.URLError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        line = process.stdout.readline()
        if response.status != 200 or line.strip() != f"listening on http://127.0.0.1:{port}":
            raise Failure(f"socket activation: {response.status}, {line}")
        process.terminate()
        if process.wait(20) != 0:
            raise Failure(f"the server ended with status {process.returncode}")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    print("the server uses the socket of systemd-socket-activate, and responds to the connection that started it")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, help="server program [default: build it]")
    binary = (parser.parse_args().bin or build() / "ethnode").resolve()
    for program, package in (("nginx", "nginx-light"), ("promtool", "prometheus")):
        if not shutil.which(program):
            install(package)
    with tempfile.TemporaryDirectory() as folder:
        check_compose(binary)
        check_nginx(folder)
        check_prometheus(folder)
        check_unit(binary, folder)
        check_socket(binary)


if __name__ == "__main__":
    checked(main)
