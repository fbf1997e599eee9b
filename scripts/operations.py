#!/usr/bin/env python3
"""Play what happens to servers in production, and print what could be seen.

    scripts/operations.py [--bin FOLDER] [SCENE…]

--list lists the scenes. It fails if something is not as docs/operations.md and docs/runbook.md say.
"""

import concurrent.futures
import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import nodes
from nodes import ALICE, ENDLESS, PATIENCE, Connection, Failure, Server, WebSocket, expect, fetch, free_port, get_bytes, message, post_bytes, rpc, run, \
    verify, wait_for


def metric(port, name):
    """The value of a metric without labels, or the sum over its labels."""
    values = re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", fetch(f"http://127.0.0.1:{port}/metrics")[1], re.M)
    return sum(map(float, values))


def unready(server):
    """Why a server is not ready; `None` if it is."""
    status, body = fetch(server.url + "/ready")
    return None if status == 200 else json.loads(body)["detail"]


@contextlib.contextmanager
def started(*command, **options):
    """Starts a program that is ended with SIGTERM, and must end well."""
    process = subprocess.Popen([str(part) for part in command], **options)
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        expect("exit status", process.wait(PATIENCE), 0)
    finally:
        process.kill()
        process.wait()


def disk(options):
    """a disk becomes full under a development chain and during an import, and grows (needs root, for a tmpfs)"""
    if os.geteuid() != 0:
        print("  skipped: only root can mount a tmpfs")
        return
    for play, size in [(full_disk, "12m"), (full_import, "1m")]:
        with tempfile.TemporaryDirectory() as folder:
            mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, text=True)
            if mounted.returncode != 0:
                print(f"  skipped: a tmpfs cannot be mounted here: {mounted.stderr.strip()}")
                return
            try:
                play(options.server, folder)
            finally:
                run("umount", "-l", folder)


def full_disk(binary, folder):
    metrics = free_port()
    with Server(binary, "dev", "--bare", "--data-dir", f"{folder}/data", "--log", "info,request=off", "--log-format", "json",
                "--metrics-addr", f"127.0.0.1:{metrics}") as server:
        def send():
            # With 64 KiB of data, they fill the disk soon.
            return server.rpc("eth_sendTransaction", {"from": ALICE, "to": ALICE, "data": "0x" + "ff" * 65536, "gas": "0xe00000"})
        try:
            for _ in range(1_000):
                send()
        except Failure as refused:
            print(f"  {refused}")
        print(f"  /ready is 503: {unready(server)}; {metric(metrics, 'ethnode_storage_failures_total'):.0f} failures counted")
        expect("failures and their gauge", (metric(metrics, "ethnode_storage_failures_total") > 0, metric(metrics, "ethnode_storage_failing")), (True, 1))
        expect("/ready of a full disk", unready(server) is None, False)
        head = server.rpc("eth_blockNumber")
        run("mount", "-o", "remount,size=64m", folder)
        began = time.monotonic()
        wait_for("/ready after the disk grew", lambda: not unready(server))
        expect("blocks that were refused", server.rpc("eth_blockNumber"), head)
        send()
        print(f"  the disk grew: /ready is 200 after {time.monotonic() - began:.1f} s, and a transaction is mined")
        wait_for("the line about the recovery", lambda: "changes can be stored again" in server.log())
        logged = [json.loads(line) for line in server.log().splitlines()]
        failed = [line for line in logged if line["message"] == "request failed"]
        expect("lines of the failed request, with its id and the reason",
               [("id" in line, "No space left on device" in line["error"]) for line in failed], [(True, True)] * len(failed))
        expect("lines about failure and recovery", sum(line["message"].startswith("changes can") for line in logged), 2)
        server.stop()
    verify(binary, f"{folder}/data")


def full_import(binary, folder):
    with tempfile.TemporaryDirectory() as source:
        chain, genesis = chain_file(binary, source, 3_000), f"{source}/genesis.json"
        try:
            run(binary, "import", "--genesis", genesis, "--data-dir", f"{folder}/first", chain)
            raise Failure("an import into a full disk succeeds")
        except Failure as failure:
            expect("the reason", "No space left on device" in str(failure), True)
        shutil.rmtree(f"{folder}/first")
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        with started(binary, "run", "--genesis", genesis, "--data-dir", f"{folder}/data", "--import", chain, "--port", port, "--log", "warn",
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            wait_for("/ready of a full disk", lambda: "the import continues" in fetch(f"{url}/ready")[1])
            run("mount", "-o", "remount,size=256m", folder)
            wait_for("/ready after the disk grew", lambda: fetch(f"{url}/ready")[0] == 200)
            expect("the head", rpc(url, "eth_blockNumber"), hex(3_000))
        print("  run --import: waits on a full disk, and continues to the end once there is room")
        verify(binary, f"{folder}/data")


def damage(options):
    """a file of the chain becomes damaged, and is repaired"""
    with tempfile.TemporaryDirectory() as folder:
        common = (options.server, "dev", "--bare", "--data-dir", f"{folder}/data")
        with Server(*common, "--log", "error") as server:
            server.rpc("anvil_mine", hex(100))
            server.stop()
        # Without a cache, what was read before is read again.
        with Server(*common, "--log", "info,request=off", "--cache-mb", "0") as server:
            runs = {path: path.read_bytes() for path in Path(folder, "data").glob("run-*")}
            for path, content in runs.items():
                # The end was read when the file was opened.
                with path.open("r+b") as file:
                    file.write(bytes(byte ^ 0xff for byte in content[:len(content) // 2]))
            for number in range(100):
                fetch(server.url, body=json.dumps(message("eth_getBlockByNumber", hex(number), True)).encode())
            detail = wait_for("/ready of a damaged file", lambda: unready(server))
            print(f"  /ready is 503: {detail}")
            expect("the file is named", any(f"{path.name} is damaged" in detail for path in runs), True)
            for path, content in runs.items():
                path.write_bytes(content)
            wait_for("/ready after the repair", lambda: not unready(server))
            wait_for("a line about the repair", lambda: "all of the storage can be read again" in server.log())
            print(f"  repaired; the log: {next(line for line in server.log().splitlines() if 'a part of the storage' in line)}")
            server.stop()


def chain_file(binary, folder, blocks):
    """Makes a file with empty blocks, and its genesis in `folder`."""
    chain, genesis = Path(folder) / "chain.rlp", Path(folder) / "genesis.json"
    forks = ["homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople", "petersburg", "istanbul", "berlin", "london"]
    config = {"chainId": 31337, **{f"{fork}Block": 0 for fork in forks}, "terminalTotalDifficulty": 0, "shanghaiTime": 0}
    genesis.write_text(json.dumps({"config": config, "gasLimit": "0x1c9c380", "difficulty": "0x0", "alloc": {ALICE: {"balance": hex(10**24)}}}))
    with Server(binary, "dev", "--genesis", genesis, "--data-dir", f"{folder}/dev", "--log", "error") as server:
        for _ in range(0, blocks, 500):
            server.rpc("anvil_mine", hex(500))
        server.stop()
    run(binary, "export", "--data-dir", f"{folder}/dev", chain)
    return chain


def clients(options):
    """one client runs endless calls and traces and opens all streams that it gets, another one wants quick responses"""
    with Server(options.server, "dev", "--bare", "--log", "warn", "--gas-cap", "500000000") as server:
        # What threads need for their first calls stays.
        idle = server.memory()
        crowd(server)
        traces(server)
        before = at_rest(server)
        during, peak = crowd(server), traces(server)
        after = at_rest(server)
        numbers = [f"{bytes / 2**20:.0f} MiB {when}" for bytes, when in
                   ((before, "before"), (during, "during calls"), (peak, "during traces"), (after, "after"))]
        print(f"  memory: {', '.join(numbers)}")
        expect("memory during calls is within 64 MiB of before", during < before + 64 * 2**20, True)
        expect("memory before is within 64 MiB of that of an idle server", before < idle + 64 * 2**20, True)
        expect("memory after is within 20% of before", after < 1.2 * before, True)


def at_rest(server):
    """The server's memory after a pause, in which calls end at their deadline and what they took is returned."""
    time.sleep(8)
    return server.memory()


def traces(server):
    """Has one client trace 24 endless calls. Returns the most memory of the server meanwhile."""
    body = json.dumps(message("debug_traceCall", {"data": ENDLESS, "gas": hex(50_000_000)}, "latest")).encode()
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        traced = [pool.submit(fetch, server.url, body=body) for _ in range(24)]
        peak = 0
        while not all(trace.done() for trace in traced):
            peak = max(peak, server.memory())
            time.sleep(0.05)
    # Those for which there is no thread get status 503.
    expect("traces with a result", sum('"result"' in trace.result()[1] for trace in traced), 0)
    return peak


def crowd(server):
    """Has one client take all that it gets, while another one makes calls. Returns the server's memory meanwhile."""
    endless, short = (post_bytes("/call/", json.dumps({"Transaction": call})) for call in ({"Data": ENDLESS, "Gas": "0x2faf080"}, {"Data": "0x00"}))
    with contextlib.ExitStack() as stack:
        def connect(source, request=b""):
            stream = stack.enter_context(Connection(server.url, source).socket)
            stream.sendall(request)
            return stream
        greedy, modest = "127.0.0.2", "127.0.0.3"
        events = get_bytes("/events/")
        opened = sum(stream.recv(12) == b"HTTP/1.1 200" for stream in [connect(greedy, events) for _ in range(256)])
        filters = makes_filters(connect(greedy), 1_024)
        callers = [connect(greedy, endless) for _ in range(24)]
        other, times = connect(modest), []
        for _ in range(200):
            began = time.monotonic()
            other.sendall(short)
            response = other.recv(65536)
            times.append(time.monotonic() - began)
            expect("status of the other client", response[:12], b"HTTP/1.1 200")
        expect("a stream of the other client", connect(modest, events).recv(12), b"HTTP/1.1 200")
        expect("a filter of the other client", makes_filters(other, 1), 1)
        median = 1000 * statistics.median(times)
        print(f"  one client: {opened} of 256 streams, {filters} of 1024 filters, {len(callers)} endless calls; calls of another one: median {median:.1f} ms, "
              f"99th percentile {1000 * sorted(times)[197]:.1f} ms, and a stream and a filter of its own")
        expect("the median is below 50 ms", median < 50, True)
        expect("streams are shared", opened < 256, True)
        return server.memory()


def makes_filters(stream, times):
    """Requests filters over a connection. Returns how many were made."""
    made = 0
    for _ in range(times):
        stream.sendall(post_bytes("/", json.dumps(message("eth_newBlockFilter"))))
        made += b'"result"' in stream.recv(65536)
    return made


def resources(server):
    """Descriptors, threads, and memory in MiB."""
    folder = Path(f"/proc/{server.process.pid}")
    return len(list((folder / "fd").iterdir())), len(list((folder / "task").iterdir())), server.memory() / 2**20


def churn(server):
    """Opens and closes connections, streams and WebSockets, sends batches, and reloads the settings."""
    batch = json.dumps([message(method) for method in ("eth_chainId", "eth_nonsense")]).encode()

    def use(_):
        for _ in range(50):
            with Connection(server.url).socket as client:
                client.sendall(get_bytes("/events/"))
                client.recv(12)
            with Connection(server.url).socket as client:
                WebSocket(client)
            expect("status", fetch(server.url + "/blockNumber/")[0], 200)
            expect("responses of a batch", len(json.loads(fetch(server.url, body=batch)[1])), 2)
        server.process.send_signal(signal.SIGHUP)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(8)))
    # Streams notice that their clients have left when they are read.
    wait_for("the end of the connections", lambda: resources(server)[0] < 64 + 32)


def restarts(options):
    """descriptors, threads and memory after many connections, streams and reloads"""
    with Server(options.server, "dev", "--bare", "--log", "warn") as server:
        rounds = []
        for _ in range(4):
            churn(server)
            rounds.append(resources(server))
            print("  {} descriptors, {} threads, {:.0f} MiB after 400 streams, WebSockets, requests and batches".format(*rounds[-1]))
        for what, first, last in zip(("descriptors", "threads", "memory"), rounds[1], rounds[-1]):
            expect(f"{what} do not grow", last <= first * (1.1 if what == "memory" else 1), True)
        server.stop()


SCENES = {"disk": disk, "damage": damage, "clients": clients, "restarts": restarts}

if __name__ == "__main__":
    nodes.main(__doc__, SCENES)
