#!/usr/bin/env python3
"""Run the examples of docs/proxies.md in front of two servers.

    scripts/proxies.py [--bin FOLDER] [PROXY…]

Checks TLS with HTTP/1.1 and HTTP/2, the prefix and the addresses in responses, headers that clients forge, WebSocket, an event stream that is not buffered, and that
control is refused. Then restarts the two servers, which import a chain, in turns under load: no request may fail.
"""

import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import nodes
from nodes import PATIENCE, ROOT, Failure, Server, WebSocket, expect, free_port, get_bytes, message, need, rpc, run, wait_for

HOST = "node.example"


def example(title, replacements):
    """The example of docs/proxies.md under a title, with other addresses and files."""
    section = (ROOT / "docs/proxies.md").read_text().split(f"\n## {title}\n")[1]
    text = re.search(r"^```\w*\n(.*?)^```", section, re.M | re.S).group(1)
    for old, new in replacements:
        if text.count(old) != 1:
            raise Failure(f"{old} is not once in the example for {title}")
        text = text.replace(old, str(new))
    return text


class Client(http.client.HTTPConnection):
    """A connection to a proxy, opened again after the proxy has closed it with a response, as nginx does after 1,000 of them."""

    def __init__(self, proxy):
        super().__init__(f"{HOST}:{proxy.port}")
        self.proxy = proxy

    def connect(self):
        self.sock = self.proxy.connect()

    def ask(self, path, body=None):
        """Sends a request. Returns status, headers and body."""
        self.request("POST" if body else "GET", path, body, {"Content-Type": "application/json"} if body else {})
        response = self.getresponse()
        return response.status, response.headers, response.read()


class Proxy:
    """A proxy with its example, on a free port, in front of two ports."""

    # Seconds after which it has noticed that a server is ready: those that check servers do so every second.
    notices = 3

    def __init__(self, folder, backends):
        self.port = free_port()
        self.folder = Path(folder)
        self.certificate, self.key = self.folder / "cert.pem", self.folder / "key.pem"
        certify(HOST, f"DNS:{HOST}", self.certificate, self.key)
        command = self.configure([("8545", backends[0]), ("8546", backends[1])])
        with (self.folder / "error.log").open("a") as log:
            home = {name: folder for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
            self.process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log, env={**os.environ, **home})
        try:
            wait_for("the start of the proxy", lambda: socket.create_connection(("127.0.0.1", self.port)).close() is None)
        except Failure as failure:
            self.__exit__()
            raise Failure(f"{failure}: {self.log()}") from None

    def configure(self, backends):
        """Writes the settings. Returns the command."""
        raise NotImplementedError

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)

    def log(self):
        return (self.folder / "error.log").read_text()

    def connect(self):
        """An encrypted connection with the name that clients use."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        return context.wrap_socket(plain, server_hostname=HOST)

    def curl(self, path, *arguments):
        resolve = ["--resolve", f"{HOST}:{self.port}:127.0.0.1"]
        return run("curl", "-sS", "--cacert", self.certificate, *resolve, *arguments, f"https://{HOST}:{self.port}{path}")


def certify(name, alternative, certificate, key):
    """Makes a certificate that is its own authority."""
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", f"/CN={name}",
        "-addext", f"subjectAltName={alternative}", "-keyout", key, "-out", certificate)


def nginx_paths(folder):
    """Settings of nginx with which it writes to this folder alone."""
    return "access_log off;" + "".join(f" {kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))


class Nginx(Proxy):
    notices = 0.5

    def configure(self, backends):
        folder = self.folder
        site = example("nginx", [*backends, ("443", f"127.0.0.1:{self.port}"), ("/etc/ssl/node.example.crt", self.certificate),
                                 ("/etc/ssl/node.example.key", self.key)])
        # Only root may choose the user of the workers, who must read the folder.
        user = "user root;" if os.geteuid() == 0 else ""
        config = folder / "nginx.conf"
        config.write_text(f"{user} daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
                          f"http {{ {nginx_paths(folder)}\n{site}}}\n")
        return ["nginx", "-p", folder, "-c", config, "-e", f"{folder}/error.log"]


class Caddy(Proxy):
    def configure(self, backends):
        # Without a certificate from an authority.
        site = example("Caddy", [*backends, (f"{HOST} {{", f"{HOST}:{self.port} {{\n    tls {self.certificate} {self.key}")])
        config = self.folder / "Caddyfile"
        config.write_text("{\n    admin off\n    auto_https disable_redirects\n}\n" + site)
        return ["caddy", "run", "--adapter", "caddyfile", "--config", config]


class Traefik(Proxy):
    def configure(self, backends):
        rules, config = self.folder / "rules.yml", self.folder / "traefik.yml"
        rules.write_text(example("Traefik", backends) + f"tls:\n  certificates:\n    - certFile: {self.certificate}\n      keyFile: {self.key}\n")
        config.write_text(f"entryPoints:\n  websecure:\n    address: 127.0.0.1:{self.port}\nproviders:\n  file:\n    filename: {rules}\n"
                          "global:\n  checkNewVersion: false\n  sendAnonymousUsage: false\n")
        return ["traefik", f"--configfile={config}"]


# Headers with which a client could pretend to be another one, or make the server link to another host.
FORGED = ["X-Forwarded-For: 203.0.113.9", "X-Real-IP: 203.0.113.9", "X-Forwarded-Host: evil.example", "X-Forwarded-Proto: http",
          "X-Forwarded-Prefix: /evil", "Forwarded: for=203.0.113.9;host=evil.example;proto=http", 'Forwarded: for="[::']


def check_requests(proxy, control):
    public = f"https://{HOST}:{proxy.port}/node"
    text, version = proxy.curl("/node/chainId/", "--http2", "-w", "\n%{http_version}").rsplit("\n", 1)
    expect("version of HTTP and $schema", (version, json.loads(text)["$schema"]), ("2", f"{public}/schemas/Output_chainId.json"))
    client = Client(proxy)
    status, headers, body = client.ask("/node/none/")
    problem = json.loads(body)
    expect("status", (status, problem["status"]), (404, 404))
    expect("id", problem["instance"].rsplit(":", 1)[1], headers["X-Request-Id"])
    _, _, body = client.ask("/node/", json.dumps(message("evm_mine")))
    expect("control through the proxy", "refused" in json.loads(body)["error"]["message"], True)
    rpc(control, "evm_mine")
    client.close()
    print("  TLS, HTTP/2, the prefix, ids and refused control: as expected")


def check_forging(proxy, server):
    public = f"https://{HOST}:{proxy.port}/node"
    for number, header in enumerate(["Accept: */*", *FORGED]):
        text = proxy.curl("/node/chainId/", "--interface", "127.0.0.2", "-D", "-", "-H", header, "-H", f"X-Request-Id: forged-{number}")
        identifier = re.search(r"(?im)^x-request-id: (\S+)", text).group(1)
        expect(f"$schema with {header}", json.loads(text.splitlines()[-1])["$schema"], f"{public}/schemas/Output_chainId.json")
        line = wait_for(f"a line of request {identifier}", lambda: re.search(rf"^.* id={identifier} .*$", server.log(), re.M))
        expect(f"client with {header}", re.search(r"client=(\S+)", line.group()).group(1), "127.0.0.2")
    print(f"  {len(FORGED)} headers that a client forged: ignored")


def check_streams(proxy, control):
    with proxy.connect() as connection:
        expect("result over WebSocket", WebSocket(connection, f"{HOST}:{proxy.port}", "/node/ws").call("eth_chainId"), "0x7a69")
    with proxy.connect() as connection:
        connection.sendall(get_bytes("/node/events/?Stream=blocks", f"{HOST}:{proxy.port}"))
        reader = connection.makefile("rb")
        expect("status", reader.readline().split()[1], b"200")
        mined = None
        # Without an end of the stream, each event must arrive by itself.
        for line in reader:
            if line.startswith(b"id: ") and mined is None:
                mined = time.monotonic()
                rpc(control, "evm_mine")
            if line.startswith(b"event: block"):
                break
        else:
            raise Failure("the event stream ended")
    print(f"  WebSocket: a call returned its result; event stream: a block arrived {1000 * (time.monotonic() - mined):.0f} ms after the request to mine it")


def rolling_restart(proxy, start, servers, rounds=3):
    """Restarts the servers in turns, which import a chain again, while threads send requests."""
    sent, failures, stopped = [], [], threading.Event()

    def load():
        client = Client(proxy)
        while not stopped.is_set():
            try:
                status, _, text = client.ask("/node/", json.dumps(message("eth_blockNumber"))) if len(sent) % 2 else client.ask("/node/blockNumber/")
                failure = None if status == 200 else f"{status} {text[:200]}"
            except (OSError, http.client.HTTPException) as error:
                failure, client = repr(error), Client(proxy)
            sent.append(1)
            failures.extend([failure] if failure else [])

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for index in [*range(len(servers))] * rounds:
            servers[index].stop()
            servers[index] = start(index)
            time.sleep(proxy.notices)
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
    print(f"  rolling restart: {rounds * len(servers)} restarts, {len(sent)} requests, {len(failures)} failed")
    if failures:
        raise Failure(f"{failures[:5]}\n{proxy.log()[-2000:]}")


def check(kind, program, options):
    """Checks a kind of proxy."""
    need(program, "openssl", "curl")
    ports, control = [free_port(), free_port()], f"127.0.0.1:{free_port()}"

    def start(index, *command, level="warn"):
        # While it imports, it responds with 503.
        command = command or ("run", "--data-dir", ":memory:", "--import", chain.name)
        return Server(options.server, *command, "--trusted-proxies", "127.0.0.1", "--allowed-hosts", HOST, "--shutdown-delay", "2s",
                      "--log", level, port=ports[index])

    # The first alone, so that all requests go to it.
    with tempfile.NamedTemporaryFile() as chain, start(0, "dev", "--bare", "--control-listen", control, level="info") as server, \
            tempfile.TemporaryDirectory() as folder, kind(folder, ports) as proxy:
        wait_until_served(proxy)
        check_requests(proxy, f"http://{control}/")
        check_forging(proxy, server)
        check_streams(proxy, f"http://{control}/")
        server.stop()
        run(options.bin / "generate", "--blocks", 2000, "--output", chain.name)
        servers = [start(0), start(1)]
        try:
            wait_until_served(proxy)
            rolling_restart(proxy, start, servers)
        finally:
            for server in servers:
                server.__exit__()


def wait_until_served(proxy):
    """Waits until the proxy passes requests on, and then for its next checks of the servers."""
    wait_for("a response through the proxy", lambda: '"ChainId"' in proxy.curl("/node/chainId/"))
    time.sleep(proxy.notices)


def part(kind, title):
    play = lambda options: check(kind, title.lower(), options)
    play.__doc__ = f"the example for {title}"
    return play


if __name__ == "__main__":
    parts = {title.lower(): part(kind, title) for kind, title in ((Nginx, "nginx"), (Caddy, "Caddy"), (Traefik, "Traefik"))}
    nodes.main(__doc__, parts, ["node-tests:generate"])
