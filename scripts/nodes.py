"""Shared by the scripts: building the programs, a server process, and a connection to it."""

import contextlib
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Failure(Exception):
    """A check failed."""


def checked(main):
    """Runs a script that ends with status 1 if a check fails."""
    try:
        main()
    except Failure as failure:
        sys.exit(f"error: {failure}")


def build(*packages, profile="release"):
    """Builds the server and other packages, given as `package` or `package:program`. Returns the folder of the programs.

    Benchmarks use the profile `dist`, which is what is shipped.
    """
    for package in ("node-server", *packages):
        name, _, program = package.partition(":")
        command = ["cargo", "build", "--profile", profile, "--all-features", "--quiet", "-p", name]
        command += ["--bin", program] if program else []
        subprocess.run(command, cwd=ROOT, check=True)
    metadata = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--no-deps"], cwd=ROOT, check=True, capture_output=True
    )
    return Path(json.loads(metadata.stdout)["target_directory"]) / profile


def free_port():
    """Returns a port of this machine that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def install(package):
    """Installs a package of Debian."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", package]):
        subprocess.run(["apt-get", *command], check=True, env=environment)


class Server:
    """A server process, from its start until it is stopped or killed."""

    def __init__(self, binary, *arguments, port=0):
        """Starts `binary` with `arguments` on a port (0: any free one), and waits until it listens."""
        command = [str(part) for part in (binary, *arguments, "--port", port)]
        started = time.monotonic()
        # A pipe would have to be read continuously.
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        line = ""
        # A line of text or of JSON.
        while not (found := re.search(r'listening on (\w+://[^\s"/]+)', line)):
            line = self.process.stdout.readline()
            if not line:
                self.process.wait()
                raise Failure(f"the server did not start: {self.error_text()}")
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

    def error_text(self):
        return self.log()[-2000:]

    def connect(self):
        return Connection(self.url)

    def get(self, path):
        with urllib.request.urlopen(self.url + path) as response:
            return json.load(response)

    def ask(self, path, body):
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request) as response:
            return json.load(response)

    def status(self, name):
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
        if status != 0:
            raise Failure(f"the server stopped with status {status}: {self.error_text()}")
        self.process.stdout.close()
        self.errors.close()


class Anvil(Server):
    """An anvil process, for comparison."""

    def __init__(self, program, *options):
        port = free_port()
        # --silent, because anvil blocks if its log is not read. The script polls its port instead.
        silent = [] if {"-q", "--quiet", "-v", "--verbosity", "--json", "--color"} & set(options) else ["--silent"]
        command = [str(part) for part in (program, *silent, "--port", port, *options)]
        self.errors = open("/dev/null")
        # npm's wrapper starts another process; killing the process group ends both.
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self.url = f"http://127.0.0.1:{port}"
        for _ in range(100):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                return
            time.sleep(0.1)
        self.kill()
        raise Failure("anvil did not start")

    def cpu(self):
        group = subprocess.run(["pgrep", "-g", str(self.process.pid)], capture_output=True, text=True, check=True)
        return sum(cpu(pid) for pid in group.stdout.split())

    def stop(self):
        self.kill()

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        super().kill()


def cpu(pid):
    """Returns the processor time that a process has used, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Connection:
    """A persistent connection. It does as little as possible, so that measurements show the server."""

    def __init__(self, url):
        self.host = url.split("//", 1)[1].rstrip("/")
        host, port = self.host.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def post_bytes(self, path, body):
        """Returns the bytes of a POST request, for `send`."""
        return (f"POST {path} HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}").encode()

    def get_bytes(self, path):
        return f"GET {path} HTTP/1.1\r\nHost: {self.host}\r\n\r\n".encode()

    def send(self, request):
        """Sends the bytes of a request. Returns status and body. Raises OSError if the server is gone."""
        self.socket.sendall(request)
        return self.response()

    def response(self):
        """Waits for a response. Returns status and body. Raises OSError if the server is gone."""
        received = b""
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

    def expect(self, path, response):
        status, body = response
        if status != 200:
            raise Failure(f"{path}: {status} {body.decode(errors='replace')}")
        return json.loads(body)


def fdatasync_seconds(folder, times=500):
    """Returns the median time in seconds of writing 4 KiB with an fdatasync to the disk of `folder`."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        taken = []
        for _ in range(times):
            os.write(file.fileno(), bytes(4096))
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def machine():
    """Returns a line that describes the machine, for reports."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text()).group(1)
    memory = int(re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text()).group(1)) / 2**20
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    date = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    return f"{date}, {os.cpu_count()} cores of {cpu}, {memory:.0f} GiB, Linux {os.uname().release}, load average {load}"
