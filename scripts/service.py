#!/usr/bin/env python3
"""Run the Debian package as a service, under systemd in a machine of its own.

    scripts/service.py [--bin FOLDER] [--root FOLDER] [PART…]

Makes a minimal Debian with debootstrap, boots it with systemd-nspawn, which needs root, and installs the package there. The parts run in this order,
each after the ones before it: without `install`, the others have nothing to start. Run it once at a time: machines share control groups.
"""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import deploy
import nodes
from nodes import Failure, Missing, expect, need, run, wait_for
from proxies import certify

SETTINGS = "/etc/ethnode/ethnode.toml"
# The package in the machine.
PACKAGE = "/root/ethnode.deb"
# Requests, each with a line, and how many lines journald keeps of other services within 30 s: some times as many on a large disk.
FLOOD, BURST = 5_000, 100
# Enough for a machine that is busy.
SLOW = 120
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Machine:
    """A booted Debian, with a network of its own."""

    def __init__(self, root):
        self.root = root
        self.log = tempfile.TemporaryFile("w+")
        command = ["systemd-nspawn", "--quiet", "--directory", root, "--register=no", "--keep-unit", "--private-network", "--boot", "--console=read-only"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        try:
            self.first = wait_for("the first process of the machine", self.find_first, SLOW)
            wait_for("the end of the boot", lambda: self.state() in ("running", "degraded"), SLOW)
        except Failure as failure:
            self.stop()
            self.log.seek(0)
            raise Failure(f"{failure}\n{self.log.read()[-2000:]}") from None

    def find_first(self):
        """Returns the process below systemd-nspawn that is number 1 in a namespace of its own."""
        found = [self.process.pid]
        for parent in found:
            with contextlib.suppress(OSError):
                found += map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())
                status = Path(f"/proc/{parent}/status").read_text()
                numbers = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[1:]
                if len(numbers) > 1 and numbers[-1] == "1":
                    return parent
        return None

    def command(self, *words):
        return ["nsenter", "--target", self.first, "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "env", "-i", f"PATH={PATH}", *words]

    def run(self, *words):
        return run(*self.command(*words))

    def status(self, *words):
        return subprocess.run([str(word) for word in self.command(*words)], capture_output=True).returncode

    def state(self):
        done = subprocess.run([str(word) for word in self.command("systemctl", "is-system-running")], capture_output=True, text=True)
        return done.stdout.strip()

    def show(self, unit, property):
        return self.run("systemctl", "show", unit, "--property", property, "--value").strip()

    def journal(self, priority, since="-1h", unit="ethnode"):
        return self.run("journalctl", "--unit", unit, "--priority", priority, "--since", since, "--output", "cat", "--quiet").splitlines()

    def put(self, path, text, mode=0o640):
        """Writes a file of root that the group of the service may read, by replacing it."""
        (self.root / "root/new").write_text(text)
        self.run("install", "-o", "root", "-g", "ethnode", "-m", f"{mode:o}", "-T", "/root/new", path)

    def stop(self):
        # systemd-nspawn shuts the machine down on the first SIGTERM.
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def settings(machine, *more):
    """Writes settings for a node with TLS, tokens and metrics."""
    text = (deploy.DEPLOY / "ethnode.toml").read_text()
    run_section = "\n".join(("[run]", 'tls-cert = "/etc/ethnode/tls.crt"', 'tls-key = "/etc/ethnode/tls.key"', 'token-file = "/etc/ethnode/tokens"',
                             'metrics-addr = "127.0.0.1:9545"', *more))
    machine.put(SETTINGS, text.replace("[run]", run_section))


def certificate(machine, name):
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / file for file in ("crt", "key")]
        certify(name, f"DNS:{name}", *files)
        for file, kind in zip(files, ("crt", "key")):
            machine.put(f"/etc/ethnode/tls.{kind}", file.read_text())


def ready(machine):
    return machine.status("ethnode", "health", "--config", SETTINGS) == 0


def ask(machine, token):
    """Returns the status of a request with a token."""
    request = f"curl -sk -o /dev/null -w %{{http_code}} -H 'Authorization: Bearer {token}' https://127.0.0.1:8545/blockNumber/"
    return machine.run("sh", "-c", request)


def served(machine):
    """Returns the certificate that the service shows."""
    return machine.run("sh", "-c", "echo | openssl s_client -connect 127.0.0.1:8545 2>/dev/null | openssl x509 -noout -subject")


def purge(machine):
    """Removes the package with everything that it and earlier parts have left."""
    machine.run("sh", "-c", "dpkg --purge ethnode && rm -rf /etc/ethnode /var/lib/ethnode*")


def install(options):
    """the package: its user, files that others cannot read, and the first start"""
    machine = options.machine
    purge(machine)
    machine.run("dpkg", "--install", PACKAGE)
    expect("the user", machine.run("id", "-gn", "ethnode").strip(), "ethnode")
    expect("the service after the installation", machine.show("ethnode", "ActiveState"), "inactive")
    settings(machine)
    certificate(machine, "first.example")
    machine.put("/etc/ethnode/tokens", "first-token-0123456789\nmetrics-token-01234567 metrics\n")
    expect("others read the tokens", machine.status("runuser", "-u", "nobody", "--", "cat", "/etc/ethnode/tokens") != 0, True)
    machine.run("systemctl", "enable", "--now", "ethnode")
    wait_for("the service is ready", lambda: ready(machine))
    expect("requests with a token, and with another one", [ask(machine, token) for token in ("first-token-0123456789", "other")], ["200", "401"])
    expect("the process", machine.run("ps", "-o", "user=", "-C", "ethnode").strip(), "ethnode")
    print("  installed; the service runs as its user, with TLS and tokens from files of root")


def reload(options):
    """systemctl reload: other tokens and another certificate, while the process keeps running"""
    machine, before = options.machine, options.machine.show("ethnode", "MainPID")
    certificate(machine, "second.example")
    machine.put("/etc/ethnode/tokens", "second-token-0123456789\nmetrics-token-01234567 metrics\n")
    machine.run("systemctl", "reload", "ethnode")
    wait_for("the new token is valid", lambda: ask(machine, "second-token-0123456789") == "200")
    expect("the old token", ask(machine, "first-token-0123456789"), "401")
    expect("the new certificate", "second.example" in served(machine), True)
    expect("the process", machine.show("ethnode", "MainPID"), before)
    machine.put("/etc/ethnode/tokens", "second-token-0123456789\n")
    machine.run("systemctl", "reload", "ethnode")
    wait_for("the warning", lambda: any("no token has the role metrics" in line for line in machine.journal("warning")))
    expect("metrics without a token", machine.run("sh", "-c", "curl -s -o /dev/null -w %{http_code} http://127.0.0.1:9545/metrics"), "401")
    print("  tokens and certificate were replaced; metrics stay closed without their last token")


def kills(options):
    """SIGKILL: the service starts again, and its blocks are there"""
    machine = options.machine
    machine.run("systemctl", "kill", "--signal", "KILL", "ethnode")
    wait_for("the restart", lambda: machine.show("ethnode", "NRestarts") == "1" and machine.show("ethnode", "ActiveState") == "active", SLOW)
    wait_for("the service is ready", lambda: ready(machine))
    expect("the reason in the journal", machine.show("ethnode", "Result"), "success")
    print("  the service started again after SIGKILL")


def log(options):
    """priorities: errors alone, and everything but requests"""
    machine = options.machine
    ask(machine, "second-token-0123456789")
    wait_for("the line of a request", lambda: any(" request:" in line for line in machine.journal("debug")))
    expect("lines of requests from info on", [line for line in machine.journal("info") if " request:" in line], [])
    expect("the start from info on", any("starting" in line for line in machine.journal("info")), True)
    machine.put("/etc/ethnode/tokens", "short\n")
    machine.run("systemctl", "reload", "ethnode")
    errors = wait_for("an error", lambda: [line for line in machine.journal("err") if "a file was not reloaded" in line])
    expect("lines of another priority", [line for line in machine.journal("err") if "ERROR" not in line and "Main process" not in line
                                         and not line.startswith("error: ")], [])
    machine.put("/etc/ethnode/tokens", "second-token-0123456789\n")
    machine.run("systemctl", "reload", "ethnode")
    print(f"  journalctl -p err: {errors[0][-100:]}")
    machine.run("systemctl", "restart", "ethnode")
    identifier = machine.show("ethnode", "InvocationID")
    machine.run("curl", "-sk", "-o", "/dev/null", f"https://127.0.0.1:8545/health#[1-{FLOOD}]")
    count = ("sh", "-c", f"journalctl _SYSTEMD_INVOCATION_ID={identifier} --output cat | grep -c 'path=\"/health\"'")
    wait_for(f"{FLOOD} lines in the journal", lambda: int(machine.run(*count)) >= FLOOD)
    print(f"  {FLOOD} requests have a line each")


def faults(options):
    """faults that a restart cannot mend, and one that it could: all end in the state failed, the former at once"""
    machine = options.machine
    machine.put("/etc/ethnode/secret.json", "{}", 0o600)
    for what, more, reason in (("an invalid setting", ['workers = "many"'], "workers"), ("an unreadable genesis", ['genesis = "/etc/ethnode/secret.json"'], "Permission denied"),
                               ("a port of the system", ['control-listen = "127.0.0.1:80"'], "cannot listen on 127.0.0.1:80")):
        machine.run("systemctl", "stop", "ethnode")
        machine.run("systemctl", "reset-failed", "ethnode")
        settings(machine, *more)
        since = machine.run("date", "+%Y-%m-%d %H:%M:%S").strip()
        time.sleep(1)
        machine.status("systemctl", "start", "ethnode")
        wait_for(what, lambda: machine.show("ethnode", "ActiveState") == "failed", SLOW)
        # Longer than the time between two starts.
        time.sleep(7)
        found = [machine.show("ethnode", name) for name in ("ActiveState", "ExecMainStatus", "NRestarts")]
        expect(f"{what}: state, status and restarts", found, ["failed", "2", "0"])
        lines = machine.journal("err", since)
        expect(f"{what}: {reason} in the journal, once", sum(reason in line for line in lines), 1)
    # The service tries again, but not for ever.
    machine.run("sh", "-c", "mkdir -p /run/systemd/system/ethnode.service.d && printf '[Service]\nRestartSec=100ms\n' > "
                            "/run/systemd/system/ethnode.service.d/quick.conf && systemctl daemon-reload")
    settings(machine)
    machine.run("systemd-run", "--unit", "other", "ethnode", "dev", "--data-dir", ":memory:", "--port", "8545")
    wait_for("the other program", lambda: machine.status("ethnode", "health") == 0)
    attempts(machine, "a used port")
    machine.run("systemctl", "stop", "other")
    settings(machine, "existing = true")
    machine.run("mv", "/var/lib/ethnode", "/var/lib/ethnode-away")
    attempts(machine, "a volume that is not mounted")
    machine.run("sh", "-c", "rm -r /var/lib/ethnode && mv /var/lib/ethnode-away /var/lib/ethnode && rm -r /run/systemd/system/ethnode.service.d && "
                            "systemctl daemon-reload && systemctl reset-failed ethnode && systemctl start ethnode")
    wait_for("the service is ready", lambda: ready(machine))
    print("  three faults ended in `failed` at once, a used port and a missing chain after ten attempts")


def attempts(machine, what):
    machine.run("systemctl", "reset-failed", "ethnode")
    machine.status("systemctl", "start", "ethnode")
    wait_for(f"the last attempt with {what}", lambda: machine.show("ethnode", "ActiveState") == "failed", SLOW)
    expect(f"attempts with {what}", machine.show("ethnode", "NRestarts"), "10")


def backups(options):
    """the backup service, its timer, and the way back from a copy"""
    machine = options.machine
    machine.run("systemctl", "enable", "--now", "ethnode-backup.timer")
    expect("the timer", machine.show("ethnode-backup.timer", "ActiveState"), "active")
    for _ in range(9):
        machine.run("systemctl", "start", "ethnode-backup.service")
    copies = machine.run("ls", "/var/lib/ethnode-backup").split()
    expect("copies", len(copies), 7)
    expect("the owner", machine.run("stat", "-c", "%U %a", f"/var/lib/ethnode-backup/{copies[-1]}").split()[0], "ethnode")
    machine.run("sh", "-c", f"""set -e
        systemctl stop ethnode
        mv /var/lib/ethnode /var/lib/ethnode-damaged
        cp -a /var/lib/ethnode-backup/{copies[-1]} /var/lib/ethnode
        runuser -u ethnode -- ethnode verify --data-dir /var/lib/ethnode
        systemctl start ethnode""")
    wait_for("the service is ready", lambda: ready(machine))
    print(f"  {len(copies)} copies are kept; the newest one was restored")


def reboot(options):
    """the machine starts again, and the service and the backup timer with it"""
    options.machine.stop()
    machine = options.machine = Machine(options.machine.root)
    wait_for("the service is ready", lambda: ready(machine), SLOW)
    expect("the timer", machine.show("ethnode-backup.timer", "ActiveState"), "active")
    print("  the service and its timer started with the machine")


def upgrade(options):
    """the package again, one whose program does not start, the way back, and the removal"""
    machine = options.machine
    install = ("dpkg", "--install", "--force-confold")
    before = machine.show("ethnode", "MainPID")
    machine.run(*install, PACKAGE)
    wait_for("the new process", lambda: machine.show("ethnode", "MainPID") not in ("0", before) and ready(machine), SLOW)
    machine.run("sh", "-c", f"""set -e
        rm -rf /root/broken
        dpkg-deb --raw-extract {PACKAGE} /root/broken
        printf '#!/bin/sh\nexit 2\n' > /root/broken/usr/bin/ethnode
        sed -i 's/^Version: .*/&+broken/' /root/broken/DEBIAN/control
        dpkg-deb -Znone --build /root/broken""")
    machine.run(*install, "/root/broken.deb")
    expect("the package and the service", (machine.run("dpkg-query", "-Wf", "${db:Status-Abbrev}", "ethnode").strip(), machine.show("ethnode", "ActiveState")),
           ("ii", "failed"))
    machine.run(*install, PACKAGE)
    machine.run("systemctl", "restart", "ethnode")
    wait_for("the service is ready", lambda: ready(machine))
    machine.run("dpkg", "--remove", "ethnode")
    expect("the service after the removal", machine.status("systemctl", "is-active", "--quiet", "ethnode") != 0, True)
    expect("settings and data", machine.status("test", "-e", SETTINGS, "-a", "-d", "/var/lib/ethnode"), 0)
    print("  the upgrade started the new program, one that does not start was replaced; settings and data remain after the removal")


def change(machine, text):
    """Puts lines in the section `run` of the settings, instead of those with the same keys, also if they are comments."""
    lines = machine.run("cat", SETTINGS).splitlines()
    for line in text.splitlines():
        key = line.split(" = ")[0]
        lines = [other for other in lines if not re.match(rf"#?{key} = ", other)]
        lines.insert(lines.index("[run]") + 1, line)
    machine.put(SETTINGS, "\n".join(lines) + "\n", 0o644)


def runbook(options):
    """docs/runbook.md: its commands and settings in the order in which they are written, on a fresh installation"""
    machine, home = options.machine, options.machine.root / "root"
    purge(machine)
    page = (nodes.ROOT / "docs/runbook.md").read_text().replace("amd64", machine.run("dpkg", "--print-architecture").strip())
    machine.run("dpkg-deb", "--raw-extract", PACKAGE, "/root/package")
    for version in set(re.findall(r"ethnode_([\d.]+)_", page)):
        machine.run("sed", "-i", f"s/^Version: .*/Version: {version}/", "/root/package/DEBIAN/control")
        machine.run("dpkg-deb", "-Znone", "--build", "/root/package", "/root")
    machine.run("rm", "-r", "/root/package")
    run(options.bin / "generate", "--blocks", 2000, "--output", home / "chain.rlp", "--genesis-output", home / "genesis.json")
    certify("node.example", "DNS:node.example", home / "node.crt", home / "node.key")
    # apt-get asks before it installs an older package.
    (machine.root / "etc/apt/apt.conf.d/yes").write_text('APT::Get::Assume-Yes "true";\n')
    output = ""
    for kind, block in re.findall(r"^```(\w*)\n(.*?)^```", page, re.M | re.S):
        if kind == "toml":
            change(machine, block)
            machine.run("systemctl", "try-restart", "ethnode")
        elif kind == "yaml":
            machine.put("/etc/prometheus/prometheus.yml", f"global: {{ scrape_interval: 1s }}\n{block}", 0o644)
            machine.run("promtool", "check", "config", "/etc/prometheus/prometheus.yml")
            machine.run("systemctl", "reload", "prometheus")
            query = "curl -s 'http://127.0.0.1:9090/api/v1/query?query=ethnode_head_number'"
            wait_for("the head in Prometheus", lambda: '"2000"' in machine.run("sh", "-c", query))
        else:
            output += machine.run("bash", "-euc", f"cd /root\n{block}")
    wait_for("the service is ready", lambda: ready(machine))
    expect("the response to the request with a token", output.count('"BlockNumber":"2000"}'), 1)
    expect("the restored copy", output.count("all rows are correct"), 1)
    print("  all of its commands succeed")


PARTS = {part.__name__: part for part in (install, reload, kills, log, faults, backups, reboot, upgrade, runbook)}


def together(options):
    need("systemd-nspawn", "debootstrap", "nsenter", "openssl")
    if os.geteuid() != 0:
        raise Missing("systemd-nspawn needs root")
    with tempfile.TemporaryDirectory() as work:
        root = options.root or Path(work) / "root"
        if not (root / "etc/debian_version").exists():
            suite = next(line.split("=")[1].strip() for line in Path("/etc/os-release").read_text().splitlines() if line.startswith("VERSION_CODENAME="))
            run("debootstrap", "--variant=minbase", "--include=systemd,systemd-sysv,dbus,curl,openssl,procps,prometheus", suite, root, options.mirror)
        deploy.package(SimpleNamespace(server=options.server, output=Path(work)))
        shutil.copy(next(Path(work).glob("*.deb")), root / PACKAGE.lstrip("/"))
        # Without the folder, journald keeps nothing for the next run.
        shutil.rmtree(root / "var/log/journal", ignore_errors=True)
        journal = root / "etc/systemd/journald.conf.d/burst.conf"
        journal.parent.mkdir(parents=True, exist_ok=True)
        journal.write_text(f"[Journal]\nRateLimitBurst={BURST}\n")
        options.machine = Machine(root)
        try:
            for name in options.parts:
                print(f"{name}:", flush=True)
                PARTS[name](options)
        except Failure as failure:
            raise Failure(f"{failure}\n" + "\n".join(options.machine.journal("debug")[-40:])) from None
        finally:
            options.machine.stop()


def arguments(parser):
    parser.add_argument("--root", type=Path, help="folder of the machine's Debian, which is made if it is missing [default: a temporary one]")
    parser.add_argument("--mirror", default="http://deb.debian.org/debian", help="[default: %(default)s]")


if __name__ == "__main__":
    nodes.main(__doc__, PARTS, ["node-tests:generate"], arguments=arguments, together=together)
