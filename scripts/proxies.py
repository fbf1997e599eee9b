#!/usr/bin/env python3
"""Run the nginx example of docs/proxies.md in front of two servers.

    scripts/proxies.py [--bin PROGRAM]

Installs nginx by apt-get if it is missing. Checks TLS with HTTP/1.1 and HTTP/2, the prefix and the addresses in responses, ids of requests,
WebSocket, an event stream that is not buffered, and that control is refused. Then restarts the two servers in turns under load: no request
may fail.
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
import sys
import tempfile
import threading
import time
from pathlib import Path

from nodes import ROOT, Failure, Server, build, free_port, install

HOST = "node.example"
# Seconds to wait for what should happen at once.
PATIENCE = 20


def example():
    """The example in docs/proxies.md."""
    return re.search(r"^```nginx\n(.*?)^```", (ROOT / "docs/proxies.md").read_text(), re.M | re.S).group(1)


class Nginx:
    """nginx with the example, on a free port, in front of two ports."""

    def __init__(self, folder, backends):
        self.port = free_port()
        self.folder = Path(folder)
        self.certificate = self.folder / "cert.pem"
        key = self.folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
                        "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}", "-keyout", key, "-out", self.certificate],
                       check=True, capture_output=True)
        site = example()
        for old, new in [("8545", backends[0]), ("8546", backends[1]), ("443", f"127.0.0.1:{self.port}"),
                         ("/etc/ssl/node.example.crt", self.certificate), ("/etc/ssl/node.example.key", key)]:
            if site.count(old) != 1:
                raise Failure(f"{old} is not once in the example")
            site = site.replace(old, str(new))
        # Only root may choose the user of the workers, who must read the folder.
        user = "user root;" if os.geteuid() == 0 else ""
        temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        config = self.folder / "nginx.conf"
        config.write_text(f"{user} daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
                          f"http {{ access_log off; {temporary}\n{site}}}\n")
        command = ["nginx", "-p", folder, "-c", config, "-e", f"{folder}/error.log"]
        self.process = subprocess.Popen([str(part) for part in command], stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Failure(f"nginx did not start: {self.process.stderr.read() if self.process.poll() is not None else ''}")
            time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)
        self.process.stderr.close()

    def log(self):
        return (self.folder / "error.log").read_text()

    def connect(self):
        """An encrypted connection with the name that clients use."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        return context.wrap_socket(plain, server_hostname=HOST)

    def client(self):
        """A persistent connection of HTTP/1.1."""
        client = http.client.HTTPConnection(f"{HOST}:{self.port}")
        client.sock = self.connect()
        return client

    def curl(self, path, *arguments):
        command = ["curl", "-sS", "--cacert", self.certificate, "--resolve", f"{HOST}:{self.port}:127.0.0.1", *arguments,
                   f"https://{HOST}:{self.port}{path}"]
        return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


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
    expect("id made by nginx", (len(identifier), problem["instance"]), (32, f"urn:request-id:{identifier}"))
    status, _, body = request(client, "POST", "/node/", '{"jsonrpc":"2.0","id":1,"method":"evm_mine"}')
    expect("control through the proxy", "refused" in json.loads(body)["error"]["message"], True)
    expect("control on its own address", "result" in mine(control), True)
    client.close()
    print("TLS, HTTP/2, the prefix, ids and refused control: as expected")


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
    print("WebSocket: a call was answered")


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
                time.sleep(0.5)
    finally:
        load.stop()
    print(f"rolling restart: {rounds * len(servers)} restarts, {load.sent} requests, {len(load.failures)} failed")
    if load.failures:
        raise Failure(f"{load.failures[:5]}\n{nginx.log()[-2000:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, help="server program [default: build it]")
    binary = parser.parse_args().bin or build() / "node-server"
    if not shutil.which("nginx"):
        install("nginx-light")
    ports = [free_port(), free_port()]

    def start(index, command=("run", "--data-dir", ":memory:")):
        return Server(binary, *command, "--trusted-proxies", "127.0.0.1", "--allowed-hosts", HOST, "--shutdown-delay", "1s", "--log", "warn",
                      port=ports[index])

    with tempfile.TemporaryDirectory() as folder, Nginx(folder, ports) as nginx:
        # The first alone, so that all requests go to it.
        control = free_port()
        with start(0, ("dev", "--bare", "--control-listen", f"127.0.0.1:{control}")) as server:
            check_requests(nginx, control)
            check_websocket(nginx)
            check_events(nginx, control)
            server.stop()
        servers = [start(0), start(1)]
        try:
            rolling_restart(nginx, start, servers)
        finally:
            for server in servers:
                server.__exit__()


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"error: {failure}")
