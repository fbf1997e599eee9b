#!/usr/bin/env python3
"""Kill the server at random moments, and check that nothing is lost.

    scripts/kills.py [--rounds 200] [--seed N] [--blocks 20000] [--bin FOLDER] [--keep] [KIND…]

Each round works on a folder, ends with a SIGKILL at a random moment, starts the server on the folder again, compares its responses with
what was acknowledged, stops it, and runs `ethnode verify`. The kinds of rounds take turns; --list lists them.
"""

import json
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from http.client import HTTPException
from pathlib import Path

import nodes
from nodes import Failure, Server, run, transfers, verify

# Length of the chain that stays, and of the branch that replaces it.
BRANCHES = (800, 1_000)
# Transactions in a folder before a new one is started.
FOLDER_TRANSACTIONS = 3_000
LOGGER = "0x" + "10" * 20
# CALLER, PUSH1 0, PUSH1 0, LOG1: one log per transaction.
LOGGER_CODE = "0x3360006000a1"
EMPTY = {"Address": "", "FromBlock": "", "ToBlock": "", "Topics": []}
MODES = [[], [], ["--no-mining"], ["--block-time", "1"], ["--block-time", "1", "--mixed-mining"]]


class Kind:
    """Rounds that kill one thing."""

    # For all kinds.
    options, chance, work, folders, longest_start = None, None, None, 0, 0.0

    def __init__(self):
        self.server = self.options.server
        self.begin()

    def begin(self):
        """Prepares what rounds use until one of them fails."""

    def end(self):
        """Stops what `begin` has started."""

    def folder(self):
        Kind.folders += 1
        return self.work / f"data-{Kind.folders}"

    def start(self, *command):
        server = Server(self.server, *command, "--log", "error")
        Kind.longest_start = max(Kind.longest_start, server.seconds)
        return server

    def command(self, name, folder, *more):
        return [str(part) for part in (self.server, name, "--data-dir", folder, *more)]

    def chain(self, name, blocks, *more):
        """Returns a file with a generated chain."""
        file = self.work / f"{name}.rlp"
        if not file.exists():
            run(self.options.bin / "generate", "--blocks", blocks, "--transactions-per-block", 2, *more, "--output", file)
        return file

    def whole(self):
        """Returns a folder with the whole chain, and the seconds that its import took."""
        if not hasattr(Kind, "imported"):
            folder, chain = self.folder(), self.chain("chain", self.options.blocks)
            began = time.monotonic()
            run(*self.command("import", folder, chain))
            Kind.imported = folder, time.monotonic() - began
        return Kind.imported

    def kill(self, command, make):
        """Kills a command at a random moment within the time that it takes, which the first run of `make()`, another command, shows.
        Returns whether it did not end before."""
        if not hasattr(self, "seconds"):
            began = time.monotonic()
            run(*make())
            self.seconds = time.monotonic() - began
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(self.chance.uniform(0, self.seconds))
        except subprocess.TimeoutExpired:
            process.kill()
        code = process.wait()
        if code not in (0, -signal.SIGKILL):
            raise Failure(f"{command[1]} ended with {code}")
        return code != 0


class Import(Kind):
    """an import"""

    def begin(self):
        self.data, self.acknowledged = self.folder(), 0

    def round(self):
        chain = self.chain("chain", self.options.blocks)
        process = subprocess.Popen(self.command("import", self.data, "--json", chain), stdout=subprocess.PIPE, text=True)
        killer = threading.Timer(self.chance.uniform(0, self.whole()[1] * 0.6), process.kill)
        killer.start()
        for line in process.stdout:
            # The last line may be truncated.
            if line.endswith("\n"):
                self.acknowledged = max(self.acknowledged, int(json.loads(line).get("durable", 0)))
        process.wait()
        killer.cancel()
        if process.returncode not in (0, -signal.SIGKILL):
            raise Failure(f"the import ended with {process.returncode}")
        server = self.start("run", "--data-dir", self.data)
        head = int(server.rpc("eth_blockNumber"), 16)
        server.stop()
        if head < self.acknowledged:
            raise Failure(f"block {self.acknowledged} was acknowledged, and the head is {head}")
        if process.returncode == 0 and head != self.options.blocks:
            raise Failure(f"the import ended by itself at block {head}")
        verify(self.server, self.data)
        text, self.acknowledged = f"killed at block {self.acknowledged} or later, head {head}", head
        if head == self.options.blocks:
            shutil.rmtree(self.data)
            self.begin()
        return text


class Prune(Kind):
    """`prune` of the whole chain"""

    def copy(self):
        folder = self.folder()
        shutil.copytree(self.whole()[0], folder, ignore=shutil.ignore_patterns("*.sock"))
        return folder

    def prune(self, folder):
        return self.command("prune", folder, "--before", self.options.blocks // 2)

    def round(self):
        folder = self.copy()
        killed = self.kill(self.prune(folder), lambda: self.prune(self.copy()))
        verify(self.server, folder)
        run(*self.prune(folder))
        verify(self.server, folder)
        shutil.rmtree(folder)
        return "killed" if killed else "ended before it was killed"


class Backup(Kind):
    """a backup of the whole chain"""

    def round(self):
        copy, (whole, _) = self.folder(), self.whole()
        killed = self.kill(self.command("backup", whole, copy), lambda: self.command("backup", whole, self.folder()))
        # The folder gets its name when it is complete.
        if killed and not copy.exists():
            run(*self.command("backup", whole, copy))
        verify(self.server, copy)
        verify(self.server, whole)
        shutil.rmtree(copy)
        return "killed" if killed else "ended before it was killed"


class Switch(Kind):
    """an import whose blocks replace all others"""

    def short(self):
        """Returns a new folder with the shorter branch."""
        folder = self.folder()
        run(*self.command("import", folder, self.branch(0)))
        return folder

    def branch(self, place):
        return self.chain(f"branch-{place}", BRANCHES[place], "--seed", place + 1)

    def hashes(self, folder):
        """Returns the hashes of the blocks at which the branches end, or `None` if the chain is shorter."""
        server = self.start("run", "--data-dir", folder)
        found = [server.rpc("eth_getBlockByNumber", hex(number), False) for number in BRANCHES]
        server.stop()
        return [block and block["hash"] for block in found]

    def round(self):
        if not hasattr(self, "heads"):
            folder = self.folder()
            run(*self.command("import", folder, self.branch(1)))
            self.heads = self.hashes(folder)
        folder = self.short()
        before = self.hashes(folder)[0]
        killed = self.kill(self.command("import", folder, self.branch(1)), lambda: self.command("import", self.short(), self.branch(1)))
        found = self.hashes(folder)[0]
        if found not in (before, self.heads[0]):
            raise Failure(f"block {BRANCHES[0]} is {found}, of neither branch")
        verify(self.server, folder)
        run(*self.command("import", folder, self.branch(1)))
        if self.hashes(folder) != self.heads:
            raise Failure("the longer branch is not canonical")
        verify(self.server, folder)
        shutil.rmtree(folder)
        return f"killed {'after' if found == self.heads[0] else 'before'} the switch" if killed else "ended before it was killed"


class LogFilter:
    """A filter for the logs of the contract, and what it has reported."""

    def __init__(self, identity):
        self.identity = identity
        # Hashes of the transactions whose logs it has reported, and whether a poll may have been cut off.
        self.reported, self.asking = [], False

    def changes(self, connection):
        return [log["TransactionHash"] for log in connection.get(f"/getFilterChanges/{self.identity}/")["Result"]]

    def poll(self, connection):
        while True:
            self.asking = True
            self.reported += self.changes(connection)
            self.asking = False
            time.sleep(0.003)

    def compare(self, connection, chain):
        """Compares the logs that it has reported, in order and none twice, with the chain. Returns how many a cut-off poll lost."""
        rest, where = self.changes(connection), f"filter {self.identity}"
        if self.reported != chain[:len(self.reported)]:
            raise Failure(f"{where} reported {len(self.reported)} logs before the kill that are not the first of the chain")
        if rest != chain[len(chain) - len(rest):]:
            raise Failure(f"{where} reported {len(rest)} logs after the kill that are not the last of the chain")
        left_out = len(chain) - len(self.reported) - len(rest)
        if left_out < 0:
            raise Failure(f"{where} reported {-left_out} logs twice")
        if left_out > 0 and not self.asking:
            raise Failure(f"{where} lost {left_out} logs, and no poll was cut off")
        # The missing logs are explained; from here on they count as reported.
        self.reported, self.asking = list(chain), False
        return left_out


class Dev(Kind):
    """a development chain: transactions of types 0 and 2 in any order, log filters that are polled, new filters, balances"""

    def begin(self):
        self.data, self.acknowledged, self.balances, self.created = self.folder(), [], {}, []
        signed = transfers(self.options.bin, 3 * FOLDER_TRANSACTIONS, "--accounts", 8, "--to", LOGGER, "--gas", 60_000, "--types", "mixed")
        self.queues = [self.shuffled(signed[account::8]) for account in range(8)]
        server = self.start("dev", "--data-dir", self.data, "--accounts", 8, "--no-mining")
        server.ask("/dev/setCode/", {"Address": LOGGER, "Code": LOGGER_CODE})
        self.filters = [LogFilter(server.ask("/newFilter/", {"FilterObject": {**EMPTY, "Address": LOGGER}})["FilterId"]) for _ in range(2)]
        server.stop()

    def shuffled(self, signed):
        """Shuffles transactions within groups of four, so that some wait for an earlier nonce. The last is sent first."""
        groups = [signed[first:first + 4] for first in range(0, len(signed), 4)]
        return [pair for group in reversed(groups) for pair in self.chance.sample(group, len(group))]

    def under_load(self, server, jobs):
        """Runs `job(connection)` of each job until the server is killed."""
        problems, ended = [], threading.Event()

        def guard(job):
            try:
                job(server.connect())
            except OSError as error:
                if not ended.is_set():
                    problems.append(f"the server was gone before it was killed: {error}")
            except Failure as failure:
                problems.append(str(failure))

        threads = [threading.Thread(target=guard, args=(job,)) for job in jobs]
        for thread in threads:
            thread.start()
        time.sleep(self.chance.uniform(0.02, 0.8))
        ended.set()
        server.kill()
        for thread in threads:
            thread.join()
        if problems:
            raise Failure(problems[0])

    def sender(self, queues):
        def send(connection):
            while queue := max(queues, key=len):
                hash, raw = queue[-1]
                # If the kill cut off its response, it is sent again in the next round, and may be known by then.
                connection.post("/sendRawTransaction/", {"Data": raw})
                self.acknowledged.append(hash)
                queue.pop()
        return send

    def statuses(self, connection):
        """Returns the number of acknowledged transactions of each status."""
        counts = {"mined": 0, "pending": 0, "queued": 0}
        for hash in self.acknowledged:
            status = connection.get(f"/getTransactionStatus/{hash}/")["Status"]
            if status not in counts:
                raise Failure(f"transaction {hash} was acknowledged, and is {status}")
            counts[status] += 1
        return counts

    def edit(self, connection):
        """Sets the balances of accounts that nothing else changes."""
        chance = random.Random(len(self.balances))
        while True:
            address, balance = f"0x{(0x20 << 152) + len(self.balances):040x}", str(chance.randrange(1 << 96))
            connection.post("/dev/setBalance/", {"Address": address, "Balance": balance})
            self.balances[address] = balance
            time.sleep(0.01)

    def create(self, connection):
        while True:
            for path, body in (("/newFilter/", {"FilterObject": EMPTY}), ("/newBlockFilter/", {}), ("/newPendingTransactionFilter/", {})):
                self.created.append(connection.post(path, body)["FilterId"])
                time.sleep(0.1)

    def round(self):
        mode, before = self.chance.choice(MODES), len(self.acknowledged)
        jobs = [self.sender(self.queues[first::4]) for first in range(4)] + [log_filter.poll for log_filter in self.filters] + [self.edit, self.create]
        self.under_load(self.start("dev", "--data-dir", self.data, "--accounts", 8, *mode), jobs)
        server = self.start("dev", "--data-dir", self.data, "--accounts", 8, "--no-mining")
        found = self.compare(server.connect())
        server.stop()
        verify(self.server, self.data)
        text = f"{' '.join(mode) or 'instant'}: killed after {len(self.acknowledged) - before} transactions, {len(self.acknowledged)} in all, {found}"
        if len(self.acknowledged) >= FOLDER_TRANSACTIONS:
            shutil.rmtree(self.data)
            self.begin()
        return text

    def compare(self, connection):
        """Compares the chain with what was acknowledged. Returns a summary."""
        statuses = self.statuses(connection)
        for address, balance in self.balances.items():
            found = connection.get(f"/getBalance/{address}/")["Balance"]
            if found != balance:
                raise Failure(f"balance {balance} of {address} was acknowledged, and is {found}")
        for identity in self.created:
            connection.get(f"/getFilterChanges/{identity}/")
            # The number of filters is limited.
            connection.rpc("eth_uninstallFilter", identity)
        self.created.clear()
        logs = connection.post("/getLogs/", {"Address": LOGGER, "FromBlock": "0", "ToBlock": "latest"})["Logs"]
        chain = [log["TransactionHash"] for log in logs]
        if len(set(chain)) != len(chain) or len(chain) < statuses["mined"]:
            raise Failure(f"{len(chain)} logs, {len(set(chain))} of them different, of {statuses['mined']} transactions")
        left_out = sum(log_filter.compare(connection, chain) for log_filter in self.filters)
        return f"{statuses}, {len(self.balances)} balances, {left_out} logs in polls cut off"


class Control(Kind):
    """operations that control a development chain: each is done as a whole or not at all"""

    ADDRESSES = [f"0x{(0x30 << 152) + number:040x}" for number in range(4)]
    EDITS = "anvil_setBalance", "anvil_setNonce", "anvil_setStorageAt"
    # Operations of a round before the one that is killed.
    MOST = 12

    def begin(self):
        self.data, self.snapshots = self.folder(), []
        # It does the same operations, and shows the state before and after the one that is killed.
        self.twin = self.start("dev", "--data-dir", ":memory:", "--no-mining")

    def end(self):
        self.twin.stop()

    def operation(self):
        """Returns a random operation as a JSON-RPC method with parameters."""
        chance, address = self.chance, self.chance.choice(self.ADDRESSES)
        transfer = {"from": chance.choice(self.accounts), "to": address, "value": "0x1", "gas": "0x5208", "gasPrice": hex(10 ** 10)}
        choices = [
            ("anvil_setBalance", address, hex(chance.randrange(1 << 64))),
            ("anvil_setNonce", address, hex(chance.randrange(1 << 20))),
            ("anvil_setStorageAt", address, hex(chance.randrange(3)), f"0x{chance.randrange(1 << 64):064x}"),
            ("eth_sendTransaction", transfer),
            ("eth_sendTransaction", transfer),
            ("evm_mine",),
            ("evm_snapshot",),
        ]
        if self.snapshots:
            choices += [("evm_revert", chance.choice(self.snapshots))] * 3
        if int(self.twin.rpc("eth_blockNumber"), 16) > 0:
            choices += [("anvil_rollback", "0x1"), ("anvil_reorg", 1, [])]
        return chance.choice(choices + [("anvil_dropAllTransactions",)] + [("anvil_reset",)] * (chance.random() < 0.3))

    def state(self, server):
        """Returns what a client can see of the chain, without what depends on the time."""
        head = int(server.rpc("eth_blockNumber"), 16)
        pool = server.rpc("txpool_content")
        return {
            "blocks": [server.rpc("eth_getBlockByNumber", hex(number), False)["transactions"] for number in range(head + 1)],
            "pool": [sorted(one["hash"] for by_nonce in pool[kind].values() for one in by_nonce.values()) for kind in ("pending", "queued")],
            "accounts": [
                [server.rpc("eth_getBalance", address, block), server.rpc("eth_getTransactionCount", address, block)]
                for address in self.ADDRESSES + self.accounts for block in ("latest", "pending")
            ],
            "slots": [server.rpc("eth_getStorageAt", address, hex(slot), "latest") for address in self.ADDRESSES for slot in range(3)],
        }

    def follow(self, method, parameters, result):
        """Keeps the snapshots that exist after an operation."""
        if method == "evm_snapshot":
            self.snapshots.append(result)
        elif method == "evm_revert":
            self.snapshots = self.snapshots[:self.snapshots.index(parameters[0])]
        elif method in ("anvil_reset", "anvil_rollback", "anvil_reorg"):
            # Which of them are gone, depends on their blocks.
            self.snapshots.clear()

    def round(self):
        server = self.start("dev", "--data-dir", self.data, "--no-mining")
        self.accounts = server.rpc("eth_accounts")[:2]
        for _ in range(self.chance.randrange(self.MOST)):
            method, *parameters = self.operation()
            results = [one.rpc(method, *parameters) for one in (self.twin, server)]
            self.follow(method, parameters, results[0])
        before = self.state(self.twin)
        # Mostly one that changes several things. Whether a snapshot was created cannot be seen.
        simple = ("evm_snapshot",) if self.chance.random() < 0.2 else ("evm_snapshot", "eth_sendTransaction", *self.EDITS)
        while (chosen := self.operation())[0] in simple:
            pass
        method, *parameters = chosen
        self.follow(method, parameters, self.twin.rpc(method, *parameters))
        after = self.state(self.twin)
        killer = threading.Timer(self.chance.uniform(0, 0.004), server.kill)
        killer.start()
        acknowledged = True
        try:
            server.rpc(method, *parameters)
        except (OSError, HTTPException, Failure):
            acknowledged = False
        killer.join()
        server = self.start("dev", "--data-dir", self.data, "--no-mining")
        found = self.state(server)
        if found != after and (acknowledged or found != before):
            server.kill()
            parts = {key: (before[key], after[key], found[key]) for key in found if found[key] != after[key]}
            raise Failure(f"{method} {parameters}: neither the state before nor after it; acknowledged: {acknowledged}; before, after, found: {parts}")
        if found != after:
            server.rpc(method, *parameters)
        server.stop()
        verify(self.server, self.data)
        return f"{method} {'acknowledged' if acknowledged else 'done' if found == after else 'not done'}"


KINDS = {"import": Import, "prune": Prune, "backup": Backup, "reorganization": Switch, "dev": Dev, "control": Control}


def series(options):
    """Plays the rounds."""
    print(f"seed {options.seed}", flush=True)
    Kind.options, Kind.chance, Kind.work = options, random.Random(options.seed), Path(tempfile.mkdtemp(prefix="kills-"))
    kinds, failures = {}, []
    try:
        for number in range(options.rounds):
            name = options.parts[number % len(options.parts)]
            kind = kinds[name] = kinds.get(name) or KINDS[name]()
            try:
                print(f"round {number}, {name}: {kind.round()}", flush=True)
            except Failure as failure:
                failures.append(f"round {number}, {name}: {failure}")
                print(f"FAILED: {failures[-1]}", flush=True)
                kind.end()
                kind.begin()
    finally:
        for kind in kinds.values():
            kind.end()
        if options.keep and failures:
            print(f"the folders are in {Kind.work}")
        else:
            shutil.rmtree(Kind.work, ignore_errors=True)
    print(f"seed {options.seed}: {options.rounds} rounds, {len(failures)} failures; longest start {Kind.longest_start:.2f} s")
    nodes.FAILED += failures


def arguments(parser):
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--blocks", type=int, default=20_000, help="length of the imported chain")
    parser.add_argument("--keep", action="store_true", help="keep the folders of rounds that failed")


if __name__ == "__main__":
    nodes.main(__doc__, KINDS, ["node-tests:generate", "node-tests:transfers"], arguments=arguments, together=series)
