"""Imports and what they leave: time, memory and bytes, beside reth; proofs from long chains; backups."""

import collections
import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.requests import CONTRACT, ZERO, Case, Chain, Row, compare
from nodes import ROOT, Failure, Server, check, machine, run, verify

# Number of proofs that are requested with a cold page cache.
COLD = 3_000
CONTROL_GROUPS = Path("/sys/fs/cgroup")


class Usage:
    """What a process used from its start to its end."""

    def __init__(self, command, attempts=1):
        with tempfile.TemporaryFile(mode="w+") as output:
            started = time.monotonic()
            process = subprocess.Popen([str(part) for part in command], stdout=output, stderr=subprocess.STDOUT)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.seconds = time.monotonic() - started
            output.seek(0)
            text = output.read()
        if process.returncode and attempts == 1:
            raise Failure(f"{' '.join(map(str, command))} failed: {text[-2000:]}")
        if process.returncode:
            self.__init__(command, attempts - 1)
            return
        self.processor = used.ru_utime + used.ru_stime
        self.memory = used.ru_maxrss * 1024
        # Blocks of 512 bytes, as the kernel counts them.
        self.written = used.ru_oublock * 512


def import_here(options, genesis, chain, data):
    shutil.rmtree(data, ignore_errors=True)
    return Usage([options.server, "import", "--data-dir", data, "--genesis", genesis, chain])


def import_with_reth(options, genesis, chain, data):
    shutil.rmtree(data, ignore_errors=True)
    common = ["--datadir", data, "--chain", genesis, "--log.file.directory", f"{data}-logs"]
    Usage([options.reth, "init", *common])
    # Some of its runs fail when they end.
    return Usage([options.reth, "import", *common, chain], attempts=3)


def recorded(options):
    """The files of dev20k, or of --chain."""
    return options.chain or (ROOT.parent / "shared/bench/dev20k.genesis.json", ROOT.parent / "shared/bench/dev20k.rlp")


def median_row(title, rows, bars):
    """Prints the runs, their medians and the bars, which are the most that is allowed."""
    names = list(rows[0])
    median = {name: statistics.median(row[name] for row in rows) for name in names}
    print(f"{machine()}\n\n| {title} | " + " | ".join(names) + " |\n|---|" + "---:|" * len(names))
    for name, row in [*((str(number), row) for number, row in enumerate(rows, 1)), ("median", median)]:
        print(f"| {name} | " + " | ".join(f"{row[name]:,.2f}" for name in names) + " |", flush=True)
    for name, bar in bars.items():
        check(median[name] <= bar, f"{name}: {median[name]:.2f}, bar {bar}")


def start(options, genesis, folder, *more):
    """Starts the server. Returns it, and the seconds until its first response."""
    started = time.monotonic()
    server = Server(options.server, "run", "--log", "warn", "--genesis", genesis, "--data-dir", folder, *more)
    server.get("/health")
    return server, time.monotonic() - started


def imports(options):
    """dev20k into memory: from the start of the process until it listens; with --reth, `import` into a folder beside reth's."""
    genesis, chain = recorded(options)
    rows = []
    for _ in range(options.rounds):
        server, _ = start(options, genesis, ":memory:", "--import", chain)
        rows.append({"seconds": server.seconds, "processor s": server.cpu(), "peak MB": server.memory("VmHWM") / 1e6})
        server.stop()
        if options.reth:
            rows[-1]["folder s"] = import_here(options, genesis, chain, options.work / "ours").seconds
            rows[-1]["reth s"] = import_with_reth(options, genesis, chain, options.work / "reth").seconds
            rows[-1]["to reth"] = rows[-1]["folder s"] / rows[-1]["reth s"]
    median_row("Import", rows, {"seconds": 3} | ({"to reth": 0.9} if options.reth else {}))


def durable(options):
    """dev20k into a folder, everything durable, and how soon a server responds after a clean stop and after a SIGKILL."""
    genesis, chain = recorded(options)
    rows = []
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory(dir=options.work) as parent:
            folder, killed = Path(parent, "data"), Path(parent, "killed")
            server, _ = start(options, genesis, folder, "--import", chain, "--strict")
            row = {"import s": server.seconds, "processor s": server.cpu(), "peak MB": server.memory("VmHWM") / 1e6}
            server.stop()
            row["disk MB"] = sum(path.stat().st_blocks * 512 for path in folder.iterdir()) / 1e6
            server, row["clean s"] = start(options, genesis, folder)
            server.stop()
            start(options, genesis, killed, "--import", chain, "--strict")[0].kill()
            server, row["killed s"] = start(options, genesis, killed)
            server.stop()
            rows.append(row)
    median_row("Durable import", rows, {"import s": 3, "peak MB": 300, "disk MB": 100, "clean s": 0.5, "killed s": 2})


def compute(options):
    """Ethereum's compute benchmarks: one instruction or precompile at 100 million gas each, processor time beside reth's."""
    folder = ROOT.parent / "shared/vectors/eest-compute"
    names = sorted(path.parent for path in folder.glob("*/chain.rlp") if path.parent.name.startswith(tuple(options.only or [""])))
    rows = []
    for benchmark in names:
        files = benchmark / "genesis.json", benchmark / "chain.rlp"
        ours, theirs = [], []
        for _ in range(options.rounds):
            ours.append(import_here(options, *files, options.work / "ours").processor)
            theirs.append(import_with_reth(options, *files, options.work / "reth").processor if options.reth else float("nan"))
        rows.append((benchmark.name, statistics.median(ours), statistics.median(theirs)))
    print(f"{machine()}\n\n| Benchmark | here, s | reth, s | ratio |\n|---|---:|---:|---:|")
    total = ("sum", sum(row[1] for row in rows), sum(row[2] for row in rows))
    for name, ours, theirs in [*sorted(rows, key=lambda row: -row[1] / row[2]), total]:
        print(f"| {name} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} |")
        check(not ours / theirs > (0.8 if name == "sum" else 1.1), f"{name} to reth, bar {0.8 if name == 'sum' else 1.1}")


def growth(options):
    """What a block costs as a folder grows: imports of two lengths, beside reth, and proofs at random heights, warm, cold and in little memory."""
    chains = [Chain(options, blocks, options.genesis_accounts) for blocks in options.blocks or [20_000, 200_000]]
    print(f"{machine()}\n\n| Blocks | wall s | processor s | MB | written MB | / rows | disk / rows | trie bytes / leaf |\n" + "|---:" * 8 + "|")
    seconds = []
    for chain in chains:
        if options.reth:
            usage = import_with_reth(options, chain.genesis, chain.file, chain.folder / "reth")
            print(f"| {chain.blocks}, reth | {usage.seconds:.1f} | {usage.processor:.1f} | {usage.memory / 1e6:.0f} | {usage.written / 1e6:.0f} | | | |")
        usage = import_here(options, chain.genesis, chain.file, chain.folder / "data")
        stats = json.loads(run(options.server, "stats", "--json", "--data-dir", chain.folder / "data"))
        seconds.append(usage.seconds)
        print(f"| {chain.blocks} | {usage.seconds:.1f} | {usage.processor:.1f} | {usage.memory / 1e6:.0f} | {usage.written / 1e6:.0f} "
              f"| {usage.written / stats['bytes']:.2f} | {stats['run_bytes'] / stats['bytes']:.2f} | {stats['trie_bytes_per_leaf']:.1f} |", flush=True)
    for (short, chain), (long, longer) in zip(zip(seconds, chains), zip(seconds[1:], chains[1:])):
        print(f"{chain.blocks} to {longer.blocks} blocks: {long / short:.1f} times the time")

    longest = chains[-1]
    data, pick = longest.folder / "data", random.Random(3)
    rows = lambda server: [Row("getProof", (server, Case("/getProof/", proofs(longest, pick))), (server, Case("/getProof/", proofs(longest))), 0.85)]
    with longest.serve(options.server, data, fresh=False) as server:
        compare(options, "random heights", "the head", rows(server))
    for clients in (1, 16):
        if drop_page_cache():
            with longest.serve(options.server, data, fresh=False) as server:
                print(f"proofs, cold page cache: {cold_proofs(server, longest, clients)}")
    # Pages that are cached already do not count towards the limit of a control group.
    drop_page_cache()
    with longest.serve(options.server, data, "--cache-mb", options.memory // 2, fresh=False) as server:
        if limit_memory(server.process, options.memory):
            compare(options, f"random heights, within {options.memory} MB", "the head", rows(server))


def proofs(chain, pick=None):
    """Requests for proofs of an account and a slot, at the head or at random heights."""
    return [{"Address": holder, "StorageKeys": [ZERO], "BlockNumber": str(pick.randrange(chain.blocks // 10, chain.blocks)) if pick else "latest"}
            for holder in chain.holders]


def cold_proofs(server, chain, clients):
    """Requests each of some proofs once, with nothing in memory. Returns the times and the rate."""
    bodies = random.Random(4).sample(proofs(chain, random.Random(4)), min(COLD, len(chain.holders)))
    connections = itertools.cycle([server.connect() for _ in range(clients)])
    times, waiting = [], collections.deque()

    def receive():
        connection, started = waiting.popleft()
        connection.expect("/getProof/", connection.response())
        times.append(time.monotonic() - started)

    began = time.monotonic()
    for body in bodies:
        if len(waiting) == clients:
            receive()
        connection = next(connections)
        waiting.append((connection, time.monotonic()))
        connection.socket.sendall(connection.post_bytes("/getProof/", json.dumps(body)))
    while waiting:
        receive()
    rate = len(times) / (time.monotonic() - began)
    times.sort()
    middle, late = (times[len(times) * percent // 100] * 1e3 for percent in (50, 99))
    return f"{len(times)} over {clients} connections: p50 {middle:.2f} ms, p99 {late:.2f} ms, {rate:,.0f}/s"


def drop_page_cache():
    """Returns whether this is permitted."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3")
    except OSError as error:
        print(f"not measured with a cold page cache: {error}")
        return False
    return True


def limit_memory(process, megabytes):
    """Moves a process to a control group with that much memory. Returns whether this is possible."""
    unified = (CONTROL_GROUPS / "cgroup.controllers").exists()
    group = (CONTROL_GROUPS if unified else CONTROL_GROUPS / "memory") / "bench-growth"
    try:
        group.mkdir(exist_ok=True)
        (group / ("memory.max" if unified else "memory.limit_in_bytes")).write_text(str(megabytes << 20))
        (group / "cgroup.procs").write_text(str(process.pid))
    except OSError as error:
        print(f"not measured within {megabytes} MB: {error}")
        return False
    return True


def backup(options):
    """A slot read over 16 connections, during continuous backups and without them, and the time of a backup."""
    genesis, chain = recorded(options)
    folder, copy = options.work / "data", options.work / "copy"
    import_here(options, genesis, chain, folder)
    case = Case("/getStorageAt/", [{"Address": CONTRACT, "Position": "0"}])
    taken, rounds = [], []
    with Server(options.server, "run", "--log", "warn", "--genesis", genesis, "--data-dir", folder) as server:
        def back_up():
            shutil.rmtree(copy, ignore_errors=True)
            started = time.monotonic()
            run(options.server, "backup", "--data-dir", folder, copy)
            return time.monotonic() - started

        def repeat(enough):
            while not enough.is_set():
                taken.append(back_up())

        for number in range(options.rounds):
            alone = case.measure(server, options, number)
            enough = threading.Event()
            thread = threading.Thread(target=repeat, args=[enough])
            thread.start()
            rounds.append((alone, case.measure(server, options, number)))
            enough.set()
            thread.join()
        quiet = back_up()
        server.stop()
    verify(options.server, copy)
    size, copied = (sum(path.stat().st_blocks * 512 for path in place.iterdir() if path.is_file()) / 1e6 for place in (folder, copy))
    print(f"{machine()}\nfolder {size:.0f} MB, copy {copied:.0f} MB; a backup takes {quiet:.2f} s without requests, and {len(taken)} backups "
          f"during requests a median of {statistics.median(taken):.2f} s")
    for name, measured in zip(("alone", "beside backups"), zip(*rounds)):
        rate, _, late = (statistics.median(column) for column in zip(*measured))
        print(f"{name:<15} {rate:>8,.0f} requests/s   p99 {late:.2f} ms")
