#!/usr/bin/env python3
"""Start deploy/compose.yaml with Docker or Podman, and look at it from outside, until every panel of the dashboard has data.

    scripts/compose.py [--bin PROGRAM] [--no-containers]

The image of the server is made of PROGRAM, its libraries and the last stage of deploy/Dockerfile. The other images are pulled; if their
registry cannot be reached, nginx and Prometheus are those of this machine, and Grafana is left out. Ports are free ones. Without Docker or
Podman, or where they cannot run containers, and with --no-containers, the server, nginx and Prometheus run as processes of this machine, with the command,
the variables and the files of compose.yaml.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import metrics
from deploy_files import DEPLOY, load
from nodes import Failure, build, checked, free_port, install
from proxies import nginx_paths

PROJECT = "node-compose-check"
# Seconds from the start until everything runs, and the dashboard has data.
PATIENCE = 300
# How the images of programs of this machine are made: folders they need, and the end of their Dockerfile.
STAND_INS = {
    "nginx": (["var/log/nginx", "var/lib/nginx", "run", "tmp"], 'ENTRYPOINT ["nginx", "-g", "daemon off; user root;"]'),
    "prometheus": (["prometheus"], 'ENTRYPOINT ["prometheus", "--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]'),
}
# Podman as the files need it: a network with names, and limits that a container may also set inside another sandbox.
PODMAN = '[containers]\ndefault_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]\n[network]\nnetwork_backend = "netavark"\n'


class Skip(Exception):
    """Containers cannot be started here."""


def run(*command, timeout=300):
    """Returns the output of a command and whether it succeeded."""
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return f"{command[0]} did not end within {timeout} s", False
    return (done.stdout + done.stderr).strip(), done.returncode == 0


def must(*command):
    output, succeeded = run(*command)
    if not succeeded:
        raise Failure(f"{' '.join(map(str, command))}: {output}")
    return output


def engine(folder):
    """Returns the program that runs containers, and the command that reads compose files."""
    if shutil.which("docker") and run("docker", "info", timeout=20)[1] and run("docker", "compose", "version")[1]:
        return "docker", ["docker", "compose"]
    if not shutil.which("podman") or not shutil.which("podman-compose"):
        raise Skip("there is no Docker with a running daemon and docker compose, and no Podman with podman-compose")
    if not shutil.which("netavark") and not Path("/usr/lib/podman/netavark").exists():
        raise Skip("Podman has no netavark, without which containers do not find each other by name")
    if "CONTAINERS_CONF" not in os.environ:
        settings = folder / "containers.conf"
        # Not every kernel suits crun.
        settings.write_text(PODMAN + ('[engine]\nruntime = "runc"\n' if shutil.which("runc") else ""))
        os.environ["CONTAINERS_CONF"] = str(settings)
    return "podman", ["podman-compose"]


def image_of(name):
    return f"localhost/{PROJECT}-{name}:latest"


def make_image(program, name, path, dockerfile, folders=()):
    """Makes an image of a program at `path` and its libraries. Returns its name."""
    with tempfile.TemporaryDirectory() as context:
        root = Path(context) / "root"
        for folder in folders:
            (root / folder).mkdir(parents=True)
        (root / "etc").mkdir(parents=True)
        (root / "etc/passwd").write_text("root:x:0:0::/:/\nnobody:x:65534:65534::/:/\n")
        (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
        for library in re.findall(r"/\S+", run("ldd", path)[0]):
            if Path(library).is_file():
                target = root / library[1:]
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(library, target)
        (root / "usr/local/bin").mkdir(parents=True)
        shutil.copy(path, root / "usr/local/bin" / name)
        for folder in ("data", "backup"):
            (Path(context) / "image" / folder).mkdir(parents=True)
        text = "FROM scratch\nCOPY root /\nENV PATH=/usr/local/bin\n" + dockerfile
        (Path(context) / "Dockerfile").write_text(text)
        image = image_of(name)
        # Only this format has health checks.
        output, succeeded = run(program, "build", *(["--format", "docker"] if program == "podman" else []), "-t", image, context)
        if not succeeded:
            raise Skip(f"{program} cannot build an image here: {output.splitlines()[-1]}")
        return image


def last_stage():
    """The last stage of the Dockerfile, without its base image and the copy of the program."""
    stage = (DEPLOY / "Dockerfile").read_text().rsplit("\nFROM ", 1)[1].split("\n", 1)[1]
    return re.sub(r"COPY --from=build (--chown=\S+ )?/image/", r"COPY \1image/", stage.replace("COPY --from=build /image/usr /usr\n", ""))


def images(program, services, binary):
    """Replaces the images of the services by those that are here. Returns what to say about them."""
    services["node"].pop("build")
    services["node"]["image"] = make_image(program, "ethnode", binary, last_stage())
    output, succeeded = run(program, "run", "--rm", services["node"]["image"], "--version", timeout=60)
    if not succeeded:
        raise Skip(f"{program} cannot run a container here: {output.splitlines()[-1]}")
    remarks = []
    for name in [name for name in services if name != "node"]:
        image = services[name]["image"]
        # Podman has no default registry.
        image = f"docker.io/{image if '/' in image else 'library/' + image}"
        output, succeeded = run(program, "pull", "--quiet", image)
        if succeeded:
            services[name]["image"] = image
        elif name in STAND_INS and shutil.which(name):
            folders, dockerfile = STAND_INS[name]
            services[name]["image"] = make_image(program, name, shutil.which(name), dockerfile, folders)
            remarks.append(f"{name} is that of this machine, as {image} cannot be pulled ({output.splitlines()[-1].rsplit(': ', 1)[-1]})")
        else:
            services.pop(name)
            remarks.append(f"{name} is left out, as {image} cannot be pulled ({output.splitlines()[-1].rsplit(': ', 1)[-1]})")
    return remarks


def rewrite(services):
    """Publishes free ports, and mounts files by absolute paths. Returns the port of each service that has one."""
    ports = {}
    for name, service in services.items():
        if "ports" in service:
            ports[name] = free_port()
            service["ports"] = [f"127.0.0.1:{ports[name]}:{service['ports'][0].rsplit(':', 1)[1]}"]
        service["volumes"] = [str(DEPLOY / volume[2:]) if volume.startswith("./") else volume for volume in service.get("volumes", [])]
    return ports


def get(url):
    with urllib.request.urlopen(url, timeout=10) as response:
        return json.load(response)


def wait_for(what, check, started):
    while True:
        try:
            if value := check():
                return value
            problem = "it did not happen"
        except (OSError, ValueError, Failure) as error:
            problem = error
        if time.monotonic() > started + PATIENCE:
            raise Failure(f"{what} within {PATIENCE} s of the start: {problem}")
        time.sleep(0.5)


def look(ports, started, healthy):
    node = f"http://127.0.0.1:{ports['nginx']}/node"
    ready = wait_for("the server is ready through nginx", lambda: get(f"{node}/ready/"), started)
    if ready["Status"] != "ok" or not ready["$schema"].startswith(f"{node}/schemas/"):
        raise Failure(f"/ready through nginx: {ready}")
    print(f"the server is ready through nginx after {time.monotonic() - started:.0f} s, and its links have the prefix")
    wait_for("the server is healthy", healthy, started)
    print("the server is healthy")

    prometheus = f"http://127.0.0.1:{ports['prometheus']}"

    def empty():
        metrics.requests(node)
        if panels := metrics.empty_panels(prometheus):
            raise Failure(f"panels without data: {', '.join(panels)}")
        return True
    wait_for("the dashboard has data", empty, started)
    groups = get(f"{prometheus}/api/v1/rules")["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    if not rules:
        raise Failure("Prometheus has no alert rules")
    print(f"Prometheus has data for all {len(list(metrics.panels()))} panels of the dashboard {time.monotonic() - started:.0f} s after the start, "
          f"and {len(rules)} alert rules")

    if "grafana" in ports:
        grafana = f"http://127.0.0.1:{ports['grafana']}/api"
        found = wait_for("Grafana has the dashboard", lambda: get(f"{grafana}/search?type=dash-db"), started)
        print(f"Grafana shows {found[0]['title']!r} without a login after {time.monotonic() - started:.0f} s")


def is_healthy(program):
    """Whether the container of the server is healthy."""
    container = must(program, "ps", "-q", "--filter", f"label=com.docker.compose.project={PROJECT}",
                     "--filter", "label=com.docker.compose.service=node")
    if program == "podman":
        # Without systemd nobody runs it regularly.
        return run(program, "healthcheck", "run", container)[1]
    return must(program, "inspect", "--format", "{{.State.Health.Status}}", container) == "healthy"


def processes(binary, folder):
    """Runs the services without Grafana as processes."""
    for program in ("nginx", "prometheus"):
        if not shutil.which(program):
            install("nginx-light" if program == "nginx" else program)
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
        [binary, *[folder / "data" if word == "/data" else word for word in node["command"]]],
        ["nginx", "-p", folder, "-c", site, "-e", folder / "nginx.log", "-g", f"daemon off; pid {folder}/nginx.pid;"],
        ["prometheus", f"--config.file={scrapes}", f"--storage.tsdb.path={folder}/prometheus",
         f"--web.listen-address=127.0.0.1:{ports['prometheus']}"],
    ]
    started, running = time.monotonic(), []
    with (folder / "log").open("w+") as log:
        try:
            environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
            for command in commands:
                running.append(subprocess.Popen([str(part) for part in command], stdout=log, stderr=log, env=environment))
            look(ports, started, lambda: run(binary, "health", "--port", ports["node"])[1])
        except Failure as failure:
            log.seek(0)
            raise Failure(f"{failure}\n{log.read()[-4000:]}") from None
        finally:
            for process in running:
                process.terminate()
            statuses = [process.wait(60) for process in running]
    if statuses[0] != 0:
        raise Failure(f"the server ended with status {statuses[0]}")
    print("compose.yaml: its server, nginx and Prometheus ran as processes of this machine; Grafana was left out")


def check(binary, folder):
    program, compose = engine(folder)

    def volumes():
        return set(run(program, "volume", "ls", "-q")[0].split())
    before = volumes()
    try:
        start(program, compose, binary, folder)
    finally:
        # podman-compose leaves volumes without a name.
        if made := volumes() - before:
            run(program, "volume", "rm", *made)
        # Those that were pulled stay.
        run(program, "rmi", "-f", *[image_of(name) for name in ("ethnode", *STAND_INS)])


def start(program, compose, binary, folder):
    services = load(DEPLOY / "compose.yaml")
    for remark in images(program, services["services"], binary):
        print(remark)
    ports = rewrite(services["services"])
    services.pop("name")
    file = folder / "compose.json"
    # YAML, too.
    file.write_text(json.dumps(services))
    compose = [*compose, "-p", PROJECT, "-f", file]
    started = time.monotonic()
    try:
        must(*compose, "up", "-d")
        look(ports, started, lambda: is_healthy(program))
    except Failure as failure:
        raise Failure(f"{failure}\n{run(*compose, 'logs', timeout=30)[0][-4000:]}") from None
    finally:
        run(*compose, "down", "-v")
    print(f"compose.yaml: started and stopped with {' '.join(map(str, compose[:-4]))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, help="server program [default: build it]")
    parser.add_argument("--no-containers", action="store_true", help="run processes, as where there are no containers")
    arguments = parser.parse_args()
    binary = (arguments.bin or build() / "ethnode").resolve()
    with tempfile.TemporaryDirectory() as folder:
        # The workers of nginx run as another user.
        Path(folder).chmod(0o755)
        try:
            if arguments.no_containers:
                raise Skip("not wanted")
            check(binary, Path(folder))
        except Skip as reason:
            print(f"without containers: {reason}")
            processes(binary, Path(folder))


if __name__ == "__main__":
    checked(main)
