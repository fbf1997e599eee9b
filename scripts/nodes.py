"""Shared by the scripts: their command line, checks, the programs, a server process, and connections to it."""

import argparse
import base64
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The first account of a development chain.
ALICE = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
# Code that never ends: JUMPDEST, PUSH1 0, JUMP.
ENDLESS = "0x5b600056"
# Seconds to wait for what should happen at once.
PATIENCE = 20

# How programs that are missing are installed; others are packages of Debian with the same name.
INSTALL = {
    "nginx": "apt-get install nginx-light", "promtool": "apt-get install prometheus",
    "anvil": "npm install --global @foundry-rs/anvil@1.7.1", "npm": "apt-get install npm", "node": "apt-get install nodejs",
    "moto_server": "pip install 'moto[server,s3]'", "s3s-fs": "cargo install s3s-fs --version 0.14.1 --features binary --locked",
    "st": "pip install -r tests/schemathesis/requirements.txt",
}


class Failure(Exception):
    """A check failed."""


class Missing(Exception):
    """A program or a package is not installed."""


# Texts of checks that failed, of scripts that go on after one.
FAILED = []


def check(holds, text):
    """Prints the result of a check. If one failed, the script ends with status 1."""
    print(f"  {'ok  ' if holds else 'FAIL'} {text}", flush=True)
    if not holds:
        FAILED.append(text)


def expect(what, got, expected):
    if got != expected:
        raise Failure(f"{what}: {got!r} instead of {expected!r}")


def wait_for(what, condition, seconds=PATIENCE):
    """Waits until `condition` returns something, and returns that."""
    deadline, problem = time.monotonic() + seconds, ""
    while True:
        try:
            if value := condition():
                return value
        except (OSError, ValueError, Failure) as error:
            problem = f": {error}"
        if time.monotonic() > deadline:
            raise Failure(f"{what} did not happen within {seconds} s{problem}")
        time.sleep(0.1)


def need(*names):
    """Ends the script with status 2 unless these programs are installed."""
    if absent := [name for name in names if not shutil.which(name)]:
        raise Missing("; ".join(f"{name} is not installed: {INSTALL.get(name, f'apt-get install {name}')}" for name in absent))


def main(doc, parts, build=(), profile="release", arguments=lambda parser: None, listing=None, together=None):
    """The command line of a script: runs the named parts, or all, and exits with status 1 if a check failed, 2 if a program is missing.

    `parts` maps names to functions that get the options; with `together`, that gets them, with the names of the parts. `build` are the
    packages that are built without --bin.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of {', '.join(parts)} [default: all]")
    parser.add_argument("--bin", type=Path, help="folder of the built programs [default: build them]")
    parser.add_argument("--list", action="store_true", help="list the parts")
    arguments(parser)
    options = parser.parse_args()
    if unknown := set(options.parts) - parts.keys():
        parser.error(f"no part is named {', '.join(sorted(unknown))}")
    if options.list:
        print(listing() if listing else "\n".join(f"{name:<16}{part.__doc__.splitlines()[0]}" for name, part in parts.items()))
        return
    try:
        options.bin = (options.bin or build_programs(*build, profile=profile)).resolve()
        options.server = options.bin / "ethnode"
        options.parts = options.parts or list(parts)
        for name in [] if together else options.parts:
            print(f"{name}:", flush=True)
            parts[name](options)
        if together:
            together(options)
    except Missing as missing:
        print(missing, file=sys.stderr)
        sys.exit(2)
    except (Failure, subprocess.CalledProcessError) as failure:
        sys.exit(f"FAIL {failure}")
    if FAILED:
        sys.exit("\n".join(["failed:", *FAILED]))


def build_programs(*packages, profile="release"):
    """Builds the server and other packages, given as `package:program`. Returns the folder of the programs.

    Benchmarks use the profile `dist`, which is what is shipped.
    """
    for package in ("node-server:ethnode", *packages):
        name, _, program = package.partition(":")
        kind = "--example" if program == "bare" else "--bin"
        run("cargo", "build", "--profile", profile, "--all-features", "--quiet", "-p", name, kind, program, cwd=ROOT)
    metadata = json.loads(run("cargo", "metadata", "--format-version", "1", "--no-deps", cwd=ROOT))
    return Path(metadata["target_directory"]) / profile


def run(*command, **options):
    """Runs a program. Returns its output, and fails with it if the status is not 0."""
    try:
        done = subprocess.run([str(part) for part in command], text=True, capture_output=True, **options)
    except subprocess.TimeoutExpired as late:
        raise Failure(str(late)) from late
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))} ended with {done.returncode}: {(done.stdout + done.stderr).strip()[-4000:]}")
    return done.stdout


@contextlib.contextmanager
def process(command, **options):
    """Runs a program, which is ended afterwards."""
    running = subprocess.Popen([str(part) for part in command], **options)
    try:
        yield running
    finally:
        running.terminate()
        running.wait()


def verify(server, folder):
    run(server, "verify", "--data-dir", folder)


def free_port():
    """Returns a port of this machine that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def fetch(url, headers=None, body=None, context=None):
    """Returns status and text of a response, whatever the status is."""
    try:
        request = urllib.request.Request(url, body, {"Content-Type": "application/json", **(headers or {})})
        with urllib.request.urlopen(request, timeout=60, context=context) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def message(method, *parameters, id=1):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": list(parameters)}


def rpc(url, method, *parameters):
    """Returns the result of a JSON-RPC request."""
    response = json.loads(fetch(url, body=json.dumps(message(method, *parameters)).encode())[1])
    if "error" in response:
        raise Failure(f"{url}: {method}: {response['error']}")
    return response["result"]


def cpu(pid):
    """Returns the processor time that a process has used, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Server:
    """A server process, from its start until it is stopped or killed."""

    def __init__(self, *command, port=0):
        """Starts a program on a port (0: any free one), and waits until it listens."""
        started = time.monotonic()
        # A pipe would have to be read continuously.
        self.errors = tempfile.TemporaryFile(mode="w+")
        ports = [] if port is None else ["--port", port]
        # Its log instead of the lines for a terminal, which nobody would read.
        environment = {"ETHNODE_LOG": "info", **os.environ}
        command = [str(part) for part in (*command, *ports)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors, text=True, env=environment)
        line = ""
        # A line of text or of JSON.
        while not (found := re.search(r'listening on (\w+://[^\s"/]+)', line)):
            line = self.process.stdout.readline()
            if not line:
                self.process.wait()
                raise Failure(f"the server did not start: {self.log()[-2000:]}")
        self.url = found.group(1)
        # Seconds until it listened.
        self.seconds = time.monotonic() - started

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self.process.poll() is None:
            self.kill()

    def log(self):
        """Returns what the server has written to standard error."""
        self.errors.seek(0)
        return self.errors.read().strip()

    def connect(self, source=None):
        return Connection(self.url, source)

    def get(self, path, body=None):
        """Sends a request, with POST if it has a body. Returns the body of the response."""
        status, text = fetch(self.url + path, body=None if body is None else json.dumps(body).encode())
        if status != 200:
            raise Failure(f"{path}: {status} {text[:2000]}")
        return json.loads(text)

    ask = get

    def rpc(self, method, *parameters):
        return rpc(self.url, method, *parameters)

    def memory(self, name="VmRSS"):
        """Returns a size from /proc/PID/status, in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{name}:\s+(\d+) kB", status, re.M).group(1)) * 1024

    def cpu(self):
        """Returns the processor time used so far, in seconds."""
        return cpu(self.process.pid)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()

    def stop(self):
        """Sends SIGTERM and waits for a clean exit."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(120)
        except subprocess.TimeoutExpired as error:
            self.kill()
            raise Failure("the server did not stop") from error
        expect(f"status of the server, after {self.log()[-2000:]}", status, 0)
        self.process.stdout.close()
        self.errors.close()


class Anvil(Server):
    """An anvil process, for comparison."""

    def __init__(self, *options):
        need("anvil")
        port = free_port()
        # --silent, because anvil blocks if its log is not read. The script polls its port instead.
        command = [str(part) for part in ("anvil", "--silent", "--port", port, *options)]
        self.errors = open("/dev/null")
        # npm's wrapper starts another process; killing the process group ends both.
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        self.url = f"http://127.0.0.1:{port}"
        try:
            wait_for("the start of anvil", lambda: socket.create_connection(("127.0.0.1", port)).close() is None, 10)
        except Failure:
            self.kill()
            raise

    def cpu(self):
        return sum(cpu(pid) for pid in run("pgrep", "-g", self.process.pid).split())

    def stop(self):
        self.kill()

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        super().kill()


class Connection:
    """A persistent connection. It does as little as possible, so that measurements show the server."""

    def __init__(self, url, source=None):
        """Connects, from the address `source` of this machine."""
        self.host = url.split("//", 1)[1].rstrip("/")
        host, port = self.host.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=60, source_address=source and (source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def post_bytes(self, path, body):
        """Returns the bytes of a POST request, for `send`."""
        return post_bytes(path, body, self.host)

    def get_bytes(self, path):
        return get_bytes(path, self.host)

    def send(self, request):
        """Sends the bytes of a request. Returns status and body. Raises OSError if the server is gone."""
        self.socket.sendall(request)
        return self.response()

    def response(self, received=b""):
        """Waits for the rest of a response. Returns status and body. Raises OSError if the server is gone."""
        while (end := received.find(b"\r\n\r\n")) < 0:
            received += self.receive()
        length = re.search(rb"content-length: (\d+)", received[:end], re.I)
        if length is None:
            raise Failure(f"response without Content-Length: {received[:end]}")
        missing = end + 4 + int(length.group(1)) - len(received)
        while missing > 0:
            piece = self.receive()
            received += piece
            missing -= len(piece)
        return int(received[9:12]), received[end + 4:]

    def receive(self):
        piece = self.socket.recv(65536)
        if not piece:
            raise ConnectionError("the connection was closed")
        return piece

    def get(self, path):
        return self.expect(path, self.send(self.get_bytes(path)))

    def post(self, path, body):
        return self.expect(path, self.send(self.post_bytes(path, json.dumps(body))))

    def rpc(self, method, *parameters):
        response = self.post("/", message(method, *parameters))
        if "error" in response:
            raise Failure(f"{method}: {response['error']}")
        return response["result"]

    def expect(self, path, response):
        status, body = response
        if status != 200:
            raise Failure(f"{path}: {status} {body.decode(errors='replace')}")
        return json.loads(body)


def post_bytes(path, body, host="localhost"):
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head + body).encode()


def get_bytes(path, host="localhost", *headers):
    return "\r\n".join([f"GET {path} HTTP/1.1", f"Host: {host}", *headers, "", ""]).encode()


def frame(text, kind=1):
    """Returns a WebSocket message as clients send it, masked with zeros (RFC 6455)."""
    size = bytes([0x80 | len(text)]) if len(text) < 126 else bytes([0x80 | 126]) + len(text).to_bytes(2)
    return bytes([0x80 | kind]) + size + bytes(4) + (text if isinstance(text, bytes) else text.encode())


class WebSocket:
    """A JSON-RPC client over WebSocket, as simple as possible."""

    def __init__(self, stream, host="localhost", path="/ws"):
        self.socket, self.rest = stream, b""
        key = f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}"
        stream.sendall(get_bytes(path, host, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", key))
        while b"\r\n\r\n" not in self.rest:
            piece = stream.recv(4096)
            if not piece:
                raise Failure("the connection was closed instead of an upgrade")
            self.rest += piece
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        if not head.startswith(b"HTTP/1.1 101"):
            raise Failure(f"no WebSocket: {head}")

    def call(self, method, *parameters):
        self.socket.sendall(frame(json.dumps(message(method, *parameters))))
        while "id" not in (response := self.receive(60)):
            pass
        if "error" in response:
            raise Failure(f"{method}: {response['error']}")
        return response["result"]

    def receive(self, seconds):
        """Returns the next message, or `None` if there is none in time."""
        self.socket.settimeout(seconds)
        try:
            while (received := self.next_frame()) is None:
                piece = self.socket.recv(65_536)
                if not piece:
                    raise Failure("the WebSocket was closed")
                self.rest += piece
        except TimeoutError:
            return None
        kind, payload = received
        if kind == 9:
            self.socket.sendall(frame(payload, 10))
        return json.loads(payload) if kind == 1 else self.receive(seconds)

    def next_frame(self):
        if len(self.rest) < 2:
            return None
        length, start = self.rest[1] & 0x7f, 2
        if length >= 126:
            start = 4 if length == 126 else 10
            length = int.from_bytes(self.rest[2:start])
        if len(self.rest) < start + length:
            return None
        payload, kind = self.rest[start:start + length], self.rest[0] & 0xf
        self.rest = self.rest[start + length:]
        return kind, payload


def transfers(programs, count, *options):
    """Returns signed transactions with their hashes, round-robin over the accounts."""
    lines = run(programs / "transfers", "--count", count, *options).splitlines()
    return [line.split() for line in lines]


def fdatasync_seconds(folder, times=500):
    """Returns the seconds of a write of 4 KiB with an fdatasync to the disk of `folder`."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        started = time.perf_counter()
        for _ in range(times):
            os.write(file.fileno(), bytes(4096))
            os.fdatasync(file.fileno())
        return (time.perf_counter() - started) / times


def machine():
    """Returns a line that describes the machine, for reports."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text()).group(1)
    memory = int(re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text()).group(1)) / 2**20
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    date = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    return f"{date}, {os.cpu_count()} cores of {model}, {memory:.0f} GiB, Linux {os.uname().release}, load average {load}"
