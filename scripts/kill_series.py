#!/usr/bin/env python3
"""Kill the server at random moments, and check that nothing is lost.

    scripts/kill_series.py [--rounds 200] [--seed N] [--blocks 20000] [--bin FOLDER] [--keep]

Each round works on a folder, ends with a SIGKILL at a random moment, starts the server on the folder again, compares its responses with
what was acknowledged, stops it, and runs `ethnode verify`. The rounds take turns: they kill an import, a server that receives
transactions over several connections, `prune`, a backup of a folder, an import that replaces the chain by a longer branch, and a migration.

Prints one line per round, and in the end what was lost. The exit status is 1 if anything was.
"""

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from nodes import ROOT, Failure, Server

# Length of the chain that stays, and of the branch that replaces it.
BRANCHES = (800, 1_000)
TRANSFERS = 20_000
CONNECTIONS = 5
ACCOUNTS = 10
# The pool holds 20,480 transactions; a new folder is started before it is full.
FOLDER_TRANSFERS = 12_000
# Longest time until a server that receives transactions is killed, in seconds.
INTAKE = 1.5

# A folder of storage layout 1.
OLD_FOLDER = ROOT / "tests/fixtures/layout-1.tar.gz"


def content(folder):
    """Returns the content of each file."""
    return {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}


class Series:
    """Folders, and what was acknowledged in them."""

    def __init__(self, arguments, work):
        self.random = random.Random(arguments.seed)
        self.binary = str(arguments.bin / "ethnode")
        self.work = work
        self.chain = work / "chain.rlp"
        self.blocks = arguments.blocks
        self.generator = arguments.bin / "generate"
        self.generate(self.chain, self.blocks)
        self.branches = [work / f"branch-{blocks}.rlp" for blocks in BRANCHES]
        for seed, (branch, blocks) in enumerate(zip(self.branches, BRANCHES), start=1):
            self.generate(branch, blocks, "--seed", str(seed))
        transfers = [arguments.bin / "transfers", "--count", str(TRANSFERS)]
        lines = subprocess.run(transfers, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        self.transfers = [line.split() for line in lines]
        self.folders = 0
        self.longest_start = 0.0
        self.begin_import()
        self.begin_intake()
        self.import_time = self.measure_import()
        self.prune_time = self.measure_prune()
        self.backup_time = self.measure_backup()
        self.switch_time = self.measure_switch()
        self.migration_time = self.measure_migration()

    def generate(self, path, blocks, *options):
        command = [self.generator, "--blocks", str(blocks), "--transactions-per-block", "2", *options]
        subprocess.run([*command, "--output", path], check=True)

    def new_folder(self):
        self.folders += 1
        return self.work / f"data-{self.folders}"

    def begin_import(self):
        self.import_folder = self.new_folder()
        self.imported = 0

    def begin_intake(self):
        self.intake_folder = self.new_folder()
        # For each account, the number of transactions sent, and the hashes of the acknowledged ones.
        self.sent = [0] * ACCOUNTS
        self.acknowledged = []
        self.refused = []

    def import_command(self, folder, chain=None):
        return [self.binary, "import", "--data-dir", folder, "--json", chain or self.chain]

    @staticmethod
    def time_of(command):
        """Runs a command, and returns how long it took, in seconds."""
        start = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - start

    def measure_import(self):
        folder = self.new_folder()
        self.whole_folder = folder
        return self.time_of(self.import_command(folder))

    def prune_command(self, folder):
        return [self.binary, "prune", "--data-dir", folder, "--before", str(self.blocks // 2)]

    def copy_whole_folder(self):
        folder = self.new_folder()
        shutil.copytree(self.whole_folder, folder, ignore=shutil.ignore_patterns("*.sock"))
        return folder

    def measure_prune(self):
        folder = self.copy_whole_folder()
        spent = self.time_of(self.prune_command(folder))
        shutil.rmtree(folder)
        return spent

    def kill_within(self, command, seconds):
        """Kills a command at a random moment within this time. Returns false if it ended before that."""
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            process.wait(self.random.uniform(0, seconds))
        except subprocess.TimeoutExpired:
            process.kill()
        code = process.wait()
        if code not in (0, -signal.SIGKILL):
            raise Failure(f"{command[1]} ended with {code}")
        return code != 0

    def kill_prune(self):
        """Kills a prune of a copy of the whole chain, and prunes again. Returns what happened."""
        folder = self.copy_whole_folder()
        killed = self.kill_within(self.prune_command(folder), self.prune_time)
        self.verify(folder)
        subprocess.run(self.prune_command(folder), check=True, stdout=subprocess.DEVNULL)
        self.verify(folder)
        shutil.rmtree(folder)
        return "prune killed" if killed else "prune ended before it was killed"

    def kill_backup(self):
        """Kills a backup of the whole chain, and backs it up again. Returns what happened."""
        copy = self.new_folder()
        command = [self.binary, "backup", "--data-dir", self.whole_folder, copy]
        killed = self.kill_within(command, self.backup_time)
        # The folder gets its name when it is complete.
        if killed and not copy.exists():
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        self.verify(copy)
        self.verify(self.whole_folder)
        shutil.rmtree(copy)
        return "backup killed" if killed else "backup ended before it was killed"

    def measure_backup(self):
        copy = self.new_folder()
        spent = self.time_of([self.binary, "backup", "--data-dir", self.whole_folder, copy])
        shutil.rmtree(copy)
        return spent

    def migrate_command(self, copy):
        return [self.binary, "migrate", "--data-dir", self.old_folder, copy]

    def measure_migration(self):
        self.old_folder = self.new_folder()
        self.old_folder.mkdir()
        subprocess.run(["tar", "-xzf", OLD_FOLDER, "-C", self.old_folder, "--strip-components", "1"], check=True)
        self.old_content = content(self.old_folder)
        copy = self.new_folder()
        spent = self.time_of(self.migrate_command(copy))
        shutil.rmtree(copy)
        return spent

    def kill_migration(self):
        """Kills a migration several times, and completes it. Returns what happened."""
        copy = self.new_folder()
        kills = 0
        for _ in range(5):
            killed = self.kill_within(self.migrate_command(copy), self.migration_time)
            kills += killed
            # The folder gets its name when it is complete.
            if copy.exists():
                break
        else:
            subprocess.run(self.migrate_command(copy), check=True, stdout=subprocess.DEVNULL)
        if content(self.old_folder) != self.old_content:
            raise Failure("the migration has changed the old folder")
        self.verify(copy)
        shutil.rmtree(copy)
        return f"migration killed {kills} times"

    def begin_branch(self):
        """Returns a new folder with the shorter branch."""
        folder = self.new_folder()
        subprocess.run(self.import_command(folder, self.branches[0]), check=True, stdout=subprocess.DEVNULL)
        return folder

    def measure_switch(self):
        folder = self.begin_branch()
        spent = self.time_of(self.import_command(folder, self.branches[1]))
        self.branch_heads = [self.head_of(folder, blocks) for blocks in BRANCHES]
        shutil.rmtree(folder)
        return spent

    def head_of(self, folder, number):
        """Returns the hash of a block, or `None` if the chain is shorter."""
        server = self.start(folder)
        found = server.connect().get(f"/getBlockByNumber/{number}/false/")["Block"]
        server.stop()
        return found and found["Hash"]

    def kill_switch(self):
        """Kills an import whose blocks replace all others. Returns what happened."""
        folder = self.begin_branch()
        before = self.head_of(folder, BRANCHES[0])
        killed = self.kill_within(self.import_command(folder, self.branches[1]), self.switch_time)
        found = self.head_of(folder, BRANCHES[0])
        if found not in (before, self.branch_heads[0]):
            raise Failure(f"block {BRANCHES[0]} is {found}, of neither branch")
        self.verify(folder)
        subprocess.run(self.import_command(folder, self.branches[1]), check=True, stdout=subprocess.DEVNULL)
        if self.head_of(folder, BRANCHES[1]) != self.branch_heads[1]:
            raise Failure("the longer branch is not canonical")
        self.verify(folder)
        shutil.rmtree(folder)
        switched = "after" if found == self.branch_heads[0] else "before"
        return f"reorganization killed {switched} the switch" if killed else "reorganization ended before it was killed"

    def kill_import(self):
        """Kills an import. Returns a description of the round."""
        process = subprocess.Popen(self.import_command(self.import_folder), stdout=subprocess.PIPE, text=True)
        killer = threading.Timer(self.random.uniform(0, self.import_time * 0.6), process.kill)
        killer.start()
        acknowledged = self.imported
        for line in process.stdout:
            # The last line may be truncated.
            if line.endswith("\n"):
                acknowledged = max(acknowledged, durable_block(json.loads(line)))
        process.wait()
        killer.cancel()
        if process.returncode not in (0, -signal.SIGKILL):
            raise Failure(f"the import ended with {process.returncode}")

        server = self.start(self.import_folder)
        head = int(server.connect().get("/blockNumber/")["BlockNumber"])
        server.stop()
        if head < acknowledged:
            raise Failure(f"block {acknowledged} was acknowledged, and the head is {head}")
        if process.returncode == 0 and head != self.blocks:
            raise Failure(f"the import ended by itself at block {head}")
        self.imported = head
        self.verify(self.import_folder)
        text = f"import killed at block {acknowledged} or later, head {head}"
        if head == self.blocks:
            shutil.rmtree(self.import_folder)
            self.begin_import()
        return text

    def kill_intake(self):
        """Kills a server that receives transactions. Returns a description of the round."""
        server = self.start(self.intake_folder)
        before = len(self.acknowledged)
        threads = [threading.Thread(target=self.send, args=(server, first)) for first in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        time.sleep(self.random.uniform(0, INTAKE))
        server.kill()
        for thread in threads:
            thread.join()
        if self.refused:
            raise Failure(f"refused: {self.refused.pop()}")

        server = self.start(self.intake_folder)
        connection = server.connect()
        lost = []
        for hash in self.acknowledged:
            status = connection.get(f"/getTransactionStatus/{hash}/")["Status"]
            if status not in ("pending", "queued", "mined"):
                lost.append(f"{hash} is {status}")
        server.stop()
        if lost:
            raise Failure(f"{len(lost)} of {len(self.acknowledged)} transactions: {', '.join(lost[:5])}")
        self.verify(self.intake_folder)
        text = f"intake killed after {len(self.acknowledged) - before} transactions, {len(self.acknowledged)} in all"
        if len(self.acknowledged) >= FOLDER_TRANSFERS:
            shutil.rmtree(self.intake_folder)
            self.begin_intake()
        return text

    def send(self, server, first):
        """Sends transactions of some accounts over one connection until the server is gone."""
        try:
            connection = server.connect()
        except OSError:
            return
        accounts = range(first, ACCOUNTS, CONNECTIONS)
        while True:
            account = min(accounts, key=lambda account: self.sent[account])
            place = self.sent[account] * ACCOUNTS + account
            if place >= len(self.transfers):
                return
            hash, raw = self.transfers[place]
            try:
                # A transaction that was known before the kill is acknowledged again.
                connection.post("/sendRawTransaction/", {"Data": raw})
            except OSError:
                # Whether it was accepted is unknown. It is sent again after the next start, and may be known then.
                return
            except Failure as failure:
                self.refused.append(f"{hash}: {failure}")
                return
            self.acknowledged.append(hash)
            self.sent[account] += 1

    def start(self, folder):
        server = Server(self.binary, "run", "--data-dir", folder, "--log", "error")
        self.longest_start = max(self.longest_start, server.seconds)
        return server

    def verify(self, folder):
        command = [self.binary, "verify", "--data-dir", folder]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise Failure(f"verify: {done.stdout.strip()}")


def durable_block(line):
    """Returns the last durable block according to a line of an import, or 0 if the line does not mention one."""
    return int(line.get("durable", 0))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--blocks", type=int, default=20_000, help="length of the imported chain")
    parser.add_argument("--bin", type=Path, default=ROOT / "target/release",
                        help="folder with ethnode, generate and transfers")
    parser.add_argument("--keep", action="store_true", help="keep the folders of rounds that failed")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)

    work = Path(tempfile.mkdtemp(prefix="kill-series-"))
    failures = []
    try:
        series = Series(arguments, work)
        for number in range(arguments.rounds):
            kinds = [series.kill_import, series.kill_intake, series.kill_prune, series.kill_backup, series.kill_switch,
                     series.kill_migration]
            kill = kinds[number % len(kinds)]
            try:
                text = kill()
                print(f"round {number}: {text}", flush=True)
            except Failure as failure:
                failures.append(f"round {number}: {failure}")
                print(f"round {number}: FAILED: {failure}", flush=True)
                series.begin_import()
                series.begin_intake()
        print(f"longest start: {series.longest_start:.2f} s")
    finally:
        if arguments.keep and failures:
            print(f"the folders are in {work}")
        else:
            shutil.rmtree(work, ignore_errors=True)
    print(f"seed {arguments.seed}: {arguments.rounds} rounds, {len(failures)} failures")
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
