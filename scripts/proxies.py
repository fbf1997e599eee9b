#!/usr/bin/env python3
"""Run the examples of docs/proxies.md in front of two servers.

    scripts/proxies.py [--bin PROGRAM] [PROXY…]

Installs nginx by apt-get if it is missing; Caddy and Traefik take part if they are installed. Checks TLS with HTTP/1.1 and HTTP/2, the prefix and
the addresses in responses, headers that clients forge, WebSocket, an event stream that is not buffered, and that control is refused. Then
restarts the two servers in turns under load: no request may fail.
"""

import argparse
import base64
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from nodes import ROOT, Failure, Server, build, checked, free_port, install

HOST = "node.example"
# Seconds to wait for what should happen at once.
PATIENCE = 20


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


class Proxy:
    """A proxy with its example, on a free port, in front of two ports."""

    # Seconds after which it has noticed that a server is ready: those that check servers do so every second.
    notices = 3

    def __init__(self, folder, backends):
        self.port = free_port()
        self.folder = Path(folder)
        self.certificate, self.key = self.folder / "cert.pem", self.folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
                        "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}", "-keyout", self.key, "-out", self.certificate],
                       check=True, capture_output=True)
        command = self.configure([("8545", backends[0]), ("8546", backends[1])])
        with (self.folder / "error.log").open("a") as log:
            home = {name: folder for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
            self.process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log, env={**os.environ, **home})
        deadline = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Failure(f"{command[0]} did not start: {self.log()}")
            time.sleep(0.05)

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

    def client(self):
        """A persistent connection of HTTP/1.1."""
        return Client(self)

    def curl(self, path, *arguments):
        command = ["curl", "-sS", "--cacert", self.certificate, "--resolve", f"{HOST}:{self.port}:127.0.0.1", *arguments,
                   f"https://{HOST}:{self.port}{path}"]
        return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


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


# The first is installed if it is missing, the others run where they are.
PROXIES = {"nginx": Nginx, "caddy": Caddy, "traefik": Traefik}

# Headers with which a client could pretend to be another one, or make the server link to another host.
FORGED = ["X-Forwarded-For: 203.0.113.9", "X-Real-IP: 203.0.113.9", "X-Forwarded-Host: evil.example", "X-Forwarded-Proto: http",
          "X-Forwarded-Prefix: /evil", "Forwarded: for=203.0.113.9;host=evil.example;proto=http", 'Forwarded: for="[::']


def expect(what, got, expected):
    if got != expected:
        raise Failure(f"{what}: {got!r} instead of {expected!r}")


def request(client, method, path, body=None, headers=None):
    """Sends a request. Returns status, headers and body."""
    headers = {"Content-Type": "application/json", **(headers or {})} if body else (headers or {})
    client.request(method, path, body, headers)
    response = client.getresponse()
    return response.status, response.headers, response.read()


def mine(control):
    """Mines a block by a request to the port for control. Returns the response."""
    client = http.client.HTTPConnection("127.0.0.1", control)
    with contextlib.closing(client):
        return json.loads(request(client, "POST", "/", '{"jsonrpc":"2.0","id":1,"method":"evm_mine"}')[2])


def check_requests(nginx, control):
    version, text = nginx.curl("/node/chainId/", "--http2", "-w", "\n%{http_version}").rsplit("\n", 1)[::-1]
    expect("HTTP version", version, "2")
    public = f"https://{HOST}:{nginx.port}/node"
    expect("$schema", json.loads(text)["$schema"], f"{public}/schemas/Output_chainId.json")
    client = nginx.client()
    status, headers, body = request(client, "GET", "/node/none/")
    problem = json.loads(body)
    expect("status", (status, problem["status"]), (404, 404))
    identifier = headers["X-Request-Id"]
    expect("id", problem["instance"].rsplit(":", 1)[1], identifier)
    status, _, body = request(client, "POST", "/node/", '{"jsonrpc":"2.0","id":1,"method":"evm_mine"}')
    expect("control through the proxy", "refused" in json.loads(body)["error"]["message"], True)
    expect("control on its own address", "result" in mine(control), True)
    client.close()
    print("TLS, HTTP/2, the prefix, ids and refused control: as expected")


def check_forging(proxy, server):
    public = f"https://{HOST}:{proxy.port}/node"
    for number, header in enumerate(["Accept: */*", *FORGED]):
        identifier = f"forged-{number}"
        text = proxy.curl("/node/chainId/", "--interface", "127.0.0.2", "-D", "-", "-H", header, "-H", f"X-Request-Id: {identifier}")
        identifier = re.search(r"(?im)^x-request-id: (\S+)", text).group(1)
        expect(f"$schema with {header}", json.loads(text.splitlines()[-1])["$schema"], f"{public}/schemas/Output_chainId.json")
        deadline = time.monotonic() + PATIENCE
        while not (line := re.search(rf"^.* id={identifier} .*$", server.log(), re.M)):
            if time.monotonic() > deadline:
                raise Failure(f"no line of request {identifier}")
            time.sleep(0.05)
        expect(f"client with {header}", re.search(r"client=(\S+)", line.group()).group(1), "127.0.0.2")
    print(f"{len(FORGED)} headers that a client forged: ignored")


def check_websocket(nginx):
    with nginx.connect() as connection:
        key = base64.b64encode(os.urandom(16)).decode()
        connection.sendall((f"GET /node/ws HTTP/1.1\r\nHost: {HOST}:{nginx.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        reader = connection.makefile("rb")
        expect("upgrade", reader.readline().split()[1], b"101")
        while reader.readline() != b"\r\n":
            pass
        message = b'{"jsonrpc":"2.0","id":7,"method":"eth_chainId"}'
        # A short text frame with a mask of zeros.
        connection.sendall(bytes([0x81, 0x80 | len(message), 0, 0, 0, 0]) + message)
        first, length = reader.read(2)
        expect("frame", first, 0x81)
        expect("result", json.loads(reader.read(length))["result"], "0x7a69")
    print("WebSocket: a call returned its result")


def check_events(nginx, control):
    with nginx.connect() as connection:
        connection.sendall(f"GET /node/events/?Stream=blocks HTTP/1.1\r\nHost: {HOST}:{nginx.port}\r\n\r\n".encode())
        reader = connection.makefile("rb")
        expect("status", reader.readline().split()[1], b"200")
        mined = None
        # Without an end of the stream, each event must arrive by itself.
        for line in reader:
            if line.startswith(b"id: ") and mined is None:
                mined = time.monotonic()
                mine(control)
            if line.startswith(b"event: block"):
                break
        else:
            raise Failure("the event stream ended")
    print(f"event stream: a block arrived {1000 * (time.monotonic() - mined):.0f} ms after the request to mine it")


class Load:
    """Threads that send requests until they are stopped."""

    def __init__(self, nginx, threads=4):
        self.nginx, self.sent, self.failures, self.stopped = nginx, 0, [], False
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(index,)) for index in range(threads)]
        for thread in self.threads:
            thread.start()

    def run(self, index):
        client = self.nginx.client()
        body = '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}'
        while not self.stopped:
            posts = (self.sent + index) % 2 == 0
            try:
                status, _, text = request(client, "POST", "/node/", body) if posts else request(client, "GET", "/node/blockNumber/")
                failure = None if status == 200 else f"{status} {text[:200]}"
            except (OSError, http.client.HTTPException) as error:
                failure = repr(error)
                client = self.nginx.client()
            with self.lock:
                self.sent += 1
                if failure:
                    self.failures.append(failure)

    def stop(self):
        self.stopped = True
        for thread in self.threads:
            thread.join()


def rolling_restart(nginx, start, servers, rounds=3):
    """Restarts the servers in turns under load."""
    load = Load(nginx)
    try:
        for _ in range(rounds):
            for index in range(len(servers)):
                servers[index].stop()
                servers[index] = start(index)
                time.sleep(nginx.notices)
    finally:
        load.stop()
    print(f"rolling restart: {rounds * len(servers)} restarts, {load.sent} requests, {len(load.failures)} failed")
    if load.failures:
        raise Failure(f"{load.failures[:5]}\n{nginx.log()[-2000:]}")


def check(proxy, binary):
    """Checks a class of proxies."""
    ports = [free_port(), free_port()]

    def start(index, *command, level="warn"):
        command = command or ("run", "--data-dir", ":memory:")
        return Server(binary, *command, "--trusted-proxies", "127.0.0.1", "--allowed-hosts", HOST, "--shutdown-delay", "2s", "--log", level,
                      port=ports[index])

    control = free_port()
    # The first alone, so that all requests go to it.
    with start(0, "dev", "--bare", "--control-listen", f"127.0.0.1:{control}", level="info") as server, \
            tempfile.TemporaryDirectory() as folder, proxy(folder, ports) as running:
        wait_until_served(running)
        check_requests(running, control)
        check_forging(running, server)
        check_websocket(running)
        check_events(running, control)
        server.stop()
        servers = [start(0), start(1)]
        try:
            wait_until_served(running)
            rolling_restart(running, start, servers)
        finally:
            for server in servers:
                server.__exit__()


def wait_until_served(proxy):
    """Waits until the proxy passes requests on, and then for its next checks of the servers."""
    deadline, text = time.monotonic() + PATIENCE, ""
    while '"ChainId"' not in text:
        if time.monotonic() > deadline:
            raise Failure(f"the proxy does not pass requests on: {text}\n{proxy.log()[-2000:]}")
        time.sleep(0.2)
        with contextlib.suppress(subprocess.CalledProcessError):
            text = proxy.curl("/node/chainId/")
    time.sleep(proxy.notices)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, help="server program [default: build it]")
    parser.add_argument("names", nargs="*", metavar="PROXY", help="nginx, caddy or traefik [default: those that are installed, and nginx]")
    arguments = parser.parse_args()
    binary = arguments.bin or build() / "ethnode"
    if not shutil.which("nginx"):
        install("nginx-light")
    for name in arguments.names or filter(shutil.which, PROXIES):
        print(f"{name}:", flush=True)
        check(PROXIES[name], binary)


if __name__ == "__main__":
    checked(main)
