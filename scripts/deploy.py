#!/usr/bin/env python3
"""Check the files in deploy/, make a Debian package, and run what deploy/compose.yaml describes.

    scripts/deploy.py [--bin FOLDER] [--output FOLDER] [--no-containers] [PART…]

--list lists the parts. `stack` builds and starts the containers if `docker compose` works. Otherwise, and with --no-containers, the server,
nginx and Prometheus run as processes of this machine, with the command, the variables and the files of compose.yaml; Grafana is left out.
"""

import gzip
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path

import nodes
from nodes import ROOT, Failure, Missing, Server, expect, fetch, free_port, message, need, run, wait_for
from proxies import nginx_paths

DEPLOY = ROOT / "deploy"
# Seconds from the start until everything runs, and the dashboard has data.
LIMIT = 300


def load(path):
    try:
        import yaml
    except ImportError:
        raise Missing("PyYAML is not installed: pip install PyYAML") from None
    return yaml.safe_load(path.read_text())


def files(options):
    """compose.yaml, nginx.conf, prometheus.yml, the unit, its settings and its socket, as nginx, promtool, systemd and the server read them"""
    need("nginx", "promtool")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        services = load(DEPLOY / "compose.yaml")["services"]
        for service, volume in ((service, volume.split(":")[0]) for service, of in services.items() for volume in of.get("volumes", [])):
            if volume.startswith(".") and not (DEPLOY / volume).is_file():
                raise Failure(f"{service} mounts {volume}, which does not exist")
        node = services["node"]
        expect("the Dockerfile exists", (DEPLOY / node["build"]["context"] / node["build"]["dockerfile"]).is_file(), True)
        # A warning identifies a variable that is not a setting.
        settings = run(options.server, "config", *node["command"], env={**os.environ, **node["environment"]})
        expect("settings of the compose file", ("warning" in settings, settings.count("ETHNODE_")), (False, len(node["environment"])))
        print(f"  compose.yaml: {len(services)} services, {len(node['environment'])} variables")

        config = folder / "nginx.conf"
        shutil.copy(DEPLOY / "compose/nginx.conf", config)
        run("nginx", "-t", "-p", folder, "-c", config, "-e", f"{folder}/error.log", "-g", f"pid {folder}/pid;")
        for path in ("compose/prometheus.yml", "alerts.yml"):
            shutil.copy(DEPLOY / path, folder)
        run("promtool", "check", "config", folder / "prometheus.yml")
        jobs = [target["job_name"] for target in load(DEPLOY / "compose/prometheus.yml")["scrape_configs"]]
        expect("the job that the alert rules expect", jobs, ["ethnode"])
        source = load(DEPLOY / "compose/datasources.yml")["datasources"][0]
        expect("the source of the dashboard", (source["type"], "prometheus:9090" in source["url"]), ("prometheus", True))
        load(DEPLOY / "compose/dashboards.yml")
        print("  nginx.conf, prometheus.yml and alerts.yml: accepted by nginx and promtool")
        unit(options, folder)
        moving(folder)
    socket_activation(options)


def unit(options, folder):
    expect("the folder of the service", "/var/lib/ethnode" in run(options.server, "config", "run", "--config", DEPLOY / "ethnode.toml"), True)
    need("systemd-analyze")
    service = folder / "ethnode.service"
    # The program is not installed here.
    service.write_text((DEPLOY / "ethnode.service").read_text().replace("/usr/bin/ethnode", str(options.server)))
    backup = folder / "ethnode-backup.service"
    backup.write_text((DEPLOY / "ethnode-backup.service").read_text().replace("/usr/lib/ethnode/backup", str(DEPLOY / "backup.sh")))
    others = [shutil.copy(DEPLOY / name, folder) for name in ("ethnode.socket", "ethnode-backup.timer")]
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", service, backup, *others], capture_output=True, text=True)
    expect("complaints of systemd", [line for line in done.stderr.splitlines() if "ethnode" in line], [])
    print("  the units and ethnode.toml: accepted by systemd-analyze and the server")


def moving(folder):
    """nginx.conf in front of a name whose address changes."""
    address, port, name_port = ["127.0.0.2"], free_port(), free_port()

    def names():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
            server.bind(("127.0.0.1", name_port))
            while address[0]:
                query, sender = server.recvfrom(512)
                # The question repeated, and one address for it, with a time to live of a second.
                end = query.index(b"\0", 12) + 5
                answer = b"\xc0\x0c\0\x01\0\x01\0\0\0\x01\0\x04" + socket.inet_aton(address[0] or "0.0.0.0")
                server.sendto(query[:2] + b"\x81\x80\0\x01\0\x01\0\0\0\0" + query[12:end] + answer, sender)

    class Where(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = f"{self.server.server_address[0]}{self.path}".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    text, site = (DEPLOY / "compose/nginx.conf").read_text(), free_port()
    for old, new in (("listen 8080", f"listen 127.0.0.1:{site}"), ("http {", f"http {{ {nginx_paths(folder)}"), ("node:8545", f"node.test:{port}"),
                     ("127.0.0.11 valid=5s", f"127.0.0.1:{name_port} valid=1s")):
        expect(f"{old} in nginx.conf", text.count(old), 1)
        text = text.replace(old, new)
    config = folder / "moving.conf"
    config.write_text(text)
    threading.Thread(target=names, daemon=True).start()
    servers = [http.server.ThreadingHTTPServer((at, port), Where) for at in ("127.0.0.2", "127.0.0.3")]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    nginx = subprocess.Popen(["nginx", "-p", folder, "-c", config, "-e", folder / "moving.log", "-g", f"daemon off; pid {folder}/moving.pid;"])
    try:
        for address[0] in ("127.0.0.2", "127.0.0.3"):
            found = f"{address[0]}/events/?Stream=blocks"
            wait_for(f"requests reach {found}", lambda: fetch(f"http://127.0.0.1:{site}/node/events/?Stream=blocks")[1] == found)
    finally:
        address[0] = None
        nginx.terminate()
        nginx.wait(20)
        for server in servers:
            server.shutdown()
            server.server_close()
    print("  nginx.conf: requests follow a name whose address changes")


def socket_activation(options):
    need("systemd-socket-activate")
    port = free_port()
    # The server's own port is not used.
    command = ["systemd-socket-activate", "--listen", f"127.0.0.1:{port}", options.server, "run", "--data-dir", ":memory:", "--port", "1", "--log", "warn"]
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        # The first connection starts the server, and waits for it.
        wait_for("the start by a connection", lambda: fetch(f"http://127.0.0.1:{port}/ready")[0] == 200)
        expect("the address", process.stdout.readline().strip(), f"listening on http://127.0.0.1:{port}")
        process.terminate()
        expect("status of the server", process.wait(20), 0)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    print("  the server uses the socket of systemd-socket-activate, and responds to the connection that started it")


# Systemd reads units again after they change, and a removed service is stopped; not if the package is installed below another root.
SYSTEMD = '#!/bin/sh\nset -e\n[ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ] || exit 0\n'
# The user and the folder are made in images without a running systemd as well.
USER = '#!/bin/sh\nset -e\n[ -z "$DPKG_ROOT" ] || exit 0\nsystemd-sysusers ethnode.conf\n[ -d /run/systemd/system ] || exit 0\n'
# A program that does not start is no fault of the installation: apt would refuse every other package until it is mended.
RESTART = """systemctl daemon-reload
if [ "$1" = configure ] && [ -n "$2" ]; then systemctl try-restart ethnode || echo 'ethnode did not start again: journalctl -u ethnode -p err' >&2; fi
"""
CONTROL = """Package: ethnode
Version: {version}
Architecture: {architecture}
Maintainer: the authors of ethnode <nobody@example.org>
Installed-Size: {size}
Depends: {depends}, systemd | systemd-standalone-sysusers | systemd-sysusers
Section: net
Priority: optional
Description: Ethereum execution node with REST and JSON-RPC
 Serves a development chain or an imported one, with every historical state
 and Merkle proofs, over HTTP. The service is not started by the package:
 edit /etc/ethnode/ethnode.toml, then systemctl enable --now ethnode.
"""
BASH_COMPLETION = "usr/share/bash-completion/completions/ethnode"


def libraries(program):
    """The packages of the libraries that the program needs, by the newest version of the symbols of the C library."""
    found = set(re.findall(r"NEEDED +(\S+)", run("objdump", "-p", program)))
    if others := {name for name in found if not re.match(r"lib(c|m|pthread|dl|gcc_s)\.so|ld-linux", name)}:
        raise Failure(f"the program needs libraries that the package does not mention: {others}")
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", run("objdump", "-T", program))
    major, minor = max((int(major), int(minor)) for major, minor in versions)
    return f"libc6 (>= {major}.{minor}), libgcc-s1"


def content(server):
    """Yields the paths of the package's files with what is in them: bytes, text, or the path of a file."""
    yield "usr/bin/ethnode", server
    for name in ("ethnode.service", "ethnode.socket", "ethnode-backup.service", "ethnode-backup.timer"):
        yield f"lib/systemd/system/{name}", DEPLOY / name
    yield "usr/lib/sysusers.d/ethnode.conf", DEPLOY / "ethnode.sysusers"
    yield "usr/lib/ethnode/backup", DEPLOY / "backup.sh"
    yield "etc/ethnode/ethnode.toml", DEPLOY / "ethnode.toml"
    for shell, path in (("bash", BASH_COMPLETION), ("zsh", "usr/share/zsh/vendor-completions/_ethnode"),
                        ("fish", "usr/share/fish/vendor_completions.d/ethnode.fish")):
        yield path, run(server, "completions", shell)
    # Compressed without a time, so that the same content makes the same package.
    with tempfile.TemporaryDirectory() as pages:
        run(server, "man", pages)
        for page in Path(pages).iterdir():
            yield f"usr/share/man/man1/{page.name}.gz", gzip.compress(page.read_bytes(), mtime=0)
    documents = "usr/share/doc/ethnode"
    # All of them, because they link to each other.
    for page in sorted((ROOT / "docs").iterdir()):
        yield f"{documents}/{page.name}", page
    for name in ("alerts.yml", "grafana.json"):
        yield f"{documents}/{name}", DEPLOY / name
    yield f"{documents}/changelog.gz", gzip.compress((ROOT / "CHANGELOG.md").read_bytes(), mtime=0)
    yield f"{documents}/copyright", "MIT or Apache-2.0, at your option.\nOn Debian systems, the Apache License is in /usr/share/common-licenses/Apache-2.0.\n"
    yield "DEBIAN/conffiles", "/etc/ethnode/ethnode.toml\n"
    yield "DEBIAN/postinst", USER + RESTART
    yield "DEBIAN/prerm", SYSTEMD + 'if [ "$1" = remove ]; then systemctl disable --now ethnode-backup.timer ethnode.socket ethnode; fi\n'
    yield "DEBIAN/postrm", SYSTEMD + "systemctl daemon-reload\n"


def package(options):
    """the Debian package: it is made, installed in an empty folder, used and removed; --output keeps it"""
    need("dpkg-deb", "objdump", "strip")
    features = re.search(r"^features: (.*)$", run(options.server, "--version"), re.M).group(1)
    if "tls" not in features.split(", "):
        raise Failure(f"a program for others needs TLS, and this one was built with these features: {features}; build it with --all-features")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "package"
        for name, value in content(options.server):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(value.read_bytes() if isinstance(value, Path) else value if isinstance(value, bytes) else value.encode())
            path.chmod(0o755 if name.startswith(("usr/bin", "usr/lib/ethnode")) or re.search(r"DEBIAN/p", name) else 0o644)
        run("strip", root / "usr/bin/ethnode")
        size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024
        version, architecture = run(options.server, "--version").split()[1], run("dpkg", "--print-architecture").strip()
        control = CONTROL.format(version=version, architecture=architecture, size=size, depends=libraries(options.server))
        (root / "DEBIAN/control").write_text(control)
        for path in (path for path in [root, *root.rglob("*")] if path.is_dir()):
            path.chmod(0o755)
        file = (options.output or Path(folder)) / f"ethnode_{version}_{architecture}.deb"
        run("dpkg-deb", "--build", "--root-owner-group", root, file)
        check_package(file, Path(folder) / "installed")
    print(f"  {file.name}: installed, run and removed again in an empty folder")


def check_package(file, root):
    for line in run("dpkg-deb", "--contents", file).splitlines():
        mode, owner = line.split()[:2]
        if owner != "root/root" or "w" in mode[5:]:
            raise Failure(f"owner or permissions: {line}")
    for path in ("info", "updates", "triggers"):
        (root / "var/lib/dpkg" / path).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    # The scripts would run in the folder, where there is no shell.
    dpkg = ("dpkg", f"--root={root}", "--force-not-root", "--force-depends", "--force-script-chrootless", "--log=/dev/null")
    run(*dpkg, "--install", file)
    run(root / "usr/bin/ethnode", "--version")
    page = gzip.decompress((root / "usr/share/man/man1/ethnode-run.1.gz").read_bytes()).decode()
    expect("the man page of run has an option", "shutdown" in page, True)
    expect("completions", "ethnode" in run("bash", "-c", f". {root / BASH_COMPLETION} && complete -p ethnode"), True)
    run(*dpkg, "--purge", "ethnode")
    expect("left after the removal", [path for path in root.rglob("*") if path.is_file() and "var/lib/dpkg" not in str(path)], [])


def metrics(options):
    """the text of /metrics in both formats, and the alert rules over the series of alerts-test.yml, by promtool"""
    need("promtool")
    port = free_port()
    with Server(options.server, "dev", "--data-dir", ":memory:", "--log", "warn", "--metrics-addr", f"127.0.0.1:{port}") as server:
        busy(server.url)
        url = f"http://127.0.0.1:{port}/metrics"
        expect("complaints of promtool", run("promtool", "check", "metrics", input=fetch(url)[1]), "")
        expect("the end of OpenMetrics", fetch(url, {"Accept": "application/openmetrics-text; version=1.0.0"})[1][-6:], "# EOF\n")
        server.stop()
    run("promtool", "test", "rules", DEPLOY / "alerts-test.yml")
    alerts = set(re.findall(r"- alert: (\w+)", (DEPLOY / "alerts.yml").read_text()))
    expect("alerts with a test", set(re.findall(r'alertname="(\w+)"', (DEPLOY / "alerts-test.yml").read_text())), alerts)
    print(f"  promtool accepts the metrics; {len(alerts)} alerts fire when they should, and none without a problem")


def busy(url):
    """Sends what fills the panels: a batch with results and an error, calls, and a request that is refused."""
    calls = [("eth_chainId",), ("eth_nonsense",), ("eth_getBlockByNumber", "latest", True), ("eth_call", {"to": "0x4e59b44847b379578588920ca78fbf26c0b4956c"})]
    fetch(f"{url}/", body=json.dumps([message(*call) for call in calls]).encode())
    expect("a foreign host", fetch(f"{url}/chainId/", {"Host": "other.example"})[0], 403)


def panels():
    """Yields the title of each panel of the dashboard with its expressions, whose variables have the values that they have in Grafana at first."""
    for panel in json.loads((DEPLOY / "grafana.json").read_text())["panels"]:
        # Grafana's interval for rates is at least four times 15 s, whatever is scraped more often.
        values = {"$__rate_interval": "1m", "$job": ".*", "$instance": ".*"}
        yield panel["title"], [re.sub(r"\$\w+", lambda variable: values[variable[0]], target["expr"]) for target in panel.get("targets", [])]


def look(ports, healthy):
    """Looks at the running services from outside, until every panel of the dashboard has data."""
    started, node = time.monotonic(), f"http://127.0.0.1:{ports['nginx']}/node"
    prometheus, grafana = (f"http://127.0.0.1:{ports.get(name)}/api" for name in ("prometheus", "grafana"))
    get = lambda url: json.loads(fetch(url)[1])
    ready = wait_for("the server is ready through nginx", lambda: fetch(f"{node}/ready/")[0] == 200 and get(f"{node}/ready/"), LIMIT)
    expect("links have the prefix", ready["$schema"].startswith(f"{node}/schemas/"), True)
    wait_for("the server is healthy", healthy, LIMIT)

    def has_data(expression):
        found = get(f"{prometheus}/v1/query?query={urllib.parse.quote(expression)}")["data"]["result"]
        return any(sample["value"][1] != "NaN" for sample in found)

    def all_shown():
        busy(node)
        if empty := [title for title, expressions in panels() if not all(map(has_data, expressions))]:
            raise Failure(f"panels without data: {', '.join(empty)}")
        return True
    wait_for("the dashboard has data", all_shown, LIMIT)
    rules = [rule for group in get(f"{prometheus}/v1/rules")["data"]["groups"] for rule in group["rules"]]
    expect("the health of the alert rules", {rule["health"] for rule in rules}, {"ok"})
    print(f"  ready through nginx, healthy, and data for all {len(list(panels()))} panels after {time.monotonic() - started:.0f} s; {len(rules)} alert rules")
    if "grafana" in ports:
        found = wait_for("Grafana has the dashboard", lambda: get(f"{grafana}/search?type=dash-db"), LIMIT)
        print(f"  Grafana shows {found[0]['title']!r} without a login")


def stack(options):
    """what compose.yaml describes, by Docker or as processes, until every panel of the dashboard has data"""
    if not options.no_containers and succeeds("docker", "info") and succeeds("docker", "compose", "version"):
        containers()
        return
    with tempfile.TemporaryDirectory() as folder:
        # The workers of nginx run as another user.
        Path(folder).chmod(0o755)
        processes(options.server, Path(folder))


def processes(server, folder):
    """Runs the services without Grafana as processes."""
    need("nginx", "prometheus")
    node = load(DEPLOY / "compose.yaml")["services"]["node"]
    ports = {name: free_port() for name in ("node", "metrics", "nginx", "prometheus")}
    (folder / "data").mkdir()

    def adapted(name, *more):
        """A file of the compose file with the addresses of this machine."""
        text = (DEPLOY / "compose" / name).read_text()
        for old, new in (("node:8545", f"127.0.0.1:{ports['node']}"), ("node:9545", f"127.0.0.1:{ports['metrics']}"), *more):
            text = text.replace(old, new)
        (folder / name).write_text(text)
        return folder / name
    site = adapted("nginx.conf", ("listen 8080", f"listen 127.0.0.1:{ports['nginx']}"), ("http {", f"http {{ {nginx_paths(folder)}"))
    scrapes = adapted("prometheus.yml", ("- alerts.yml", f"- {DEPLOY / 'alerts.yml'}"))
    # nginx is on this machine, too.
    variables = {**node["environment"], "ETHNODE_PORT": ports["node"], "ETHNODE_METRICS_ADDR": f"127.0.0.1:{ports['metrics']}",
                 "ETHNODE_TRUSTED_PROXIES": f"{node['environment']['ETHNODE_TRUSTED_PROXIES']},127.0.0.1"}
    commands = [
        [server, *[folder / "data" if word == "/data" else word for word in node["command"]]],
        ["nginx", "-p", folder, "-c", site, "-e", folder / "nginx.log", "-g", f"daemon off; pid {folder}/nginx.pid;"],
        ["prometheus", f"--config.file={scrapes}", f"--storage.tsdb.path={folder}/prometheus", f"--web.listen-address=127.0.0.1:{ports['prometheus']}"],
    ]
    running, environment = [], {**os.environ, **{name: str(value) for name, value in variables.items()}}
    with (folder / "log").open("w+") as log:
        try:
            for command in commands:
                running.append(subprocess.Popen([str(part) for part in command], stdout=log, stderr=log, env=environment))
            look(ports, lambda: succeeds(server, "health", "--port", ports["node"]))
        except Failure as failure:
            log.seek(0)
            raise Failure(f"{failure}\n{log.read()[-4000:]}") from None
        finally:
            for process in running:
                process.terminate()
            statuses = [process.wait(60) for process in running]
    expect("status of the server", statuses[0], 0)
    print("  the server, nginx and Prometheus of compose.yaml ran as processes of this machine; Grafana was left out")


def succeeds(*command):
    try:
        run(*command)
    except (Failure, OSError):
        return False
    return True


def containers():
    """Starts the containers as operators do."""
    compose = ["docker", "compose", "-f", DEPLOY / "compose.yaml"]
    try:
        run(*compose, "up", "--build", "--detach", timeout=3600)
        health = lambda: json.loads(run(*compose, "ps", "--format", "json", "node").splitlines()[0])["Health"] == "healthy"
        look({"nginx": 8080, "prometheus": 9090, "grafana": 3000}, health)
    except Failure as failure:
        raise Failure(f"{failure}\n{run(*compose, 'logs')[-4000:]}") from None
    finally:
        run(*compose, "down", "--volumes")
    print("  compose.yaml: started and stopped with Docker")


def arguments(parser):
    parser.add_argument("--output", type=Path, help="where `package` writes the package [default: it is only checked]")
    parser.add_argument("--no-containers", action="store_true", help="run the services as processes")


if __name__ == "__main__":
    nodes.main(__doc__, {"files": files, "package": package, "metrics": metrics, "stack": stack}, arguments=arguments)
