#!/usr/bin/env python3
"""Kill a development chain under load at random moments, and check that nothing is lost.

    scripts/kill_dev.py [--rounds 100] [--seed N] [--bin FOLDER] [--keep]

A round starts `ethnode dev --data-dir` in a random mining mode. Several connections send transactions of types 0 and 2, not in the
order of their nonces; others poll log filters, create filters and set balances. A SIGKILL at a random moment ends everything. Then the
server is started again, and the script checks that

* each acknowledged transaction is in a block or in the pool,
* each acknowledged filter works, and has reported the logs of the chain in order, none twice, and none left out except those of a
  poll whose response the kill cut off,
* each acknowledged balance is set,
* `ethnode verify` succeeds.

Prints one line per round. The exit status is 1 if anything was lost.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from nodes import Failure, Server, build

ACCOUNTS = 8
SENDERS = 4
POLLERS = 2
TRANSACTIONS = 24_000
# Transactions in a folder before a new one is started.
FOLDER_TRANSACTIONS = 3_000
# Transactions of an account are shuffled within groups of this size, so that some wait for an earlier nonce.
SHUFFLED = 4
LOAD_SECONDS = 0.8
LOGGER = "0x" + "10" * 20
# CALLER, PUSH1 0, PUSH1 0, LOG1: one log per transaction.
LOGGER_CODE = "0x3360006000a1"
EMPTY = {"Address": "", "FromBlock": "", "ToBlock": "", "Topics": []}
MODES = [[], [], ["--no-mining"], ["--block-time", "1"], ["--block-time", "1", "--mixed-mining"]]


class LogFilter:
    """A filter for the logs of the contract, and what it has reported."""

    def __init__(self, identity):
        self.identity = identity
        # Hashes of the transactions whose logs it has reported, and whether a poll may have been cut off.
        self.reported = []
        self.asking = False


class Folder:
    """A chain, and what the server has acknowledged."""

    def __init__(self, path):
        self.path = path
        # For each account, the indexes of its transactions in sending order.
        self.queues = None
        self.acknowledged = []
        self.balances = {}
        self.filters = []
        self.created = []
        self.next_balance = 0


class Series:
    def __init__(self, programs, seed, work):
        self.random = random.Random(seed)
        self.binary = programs / "ethnode"
        self.work = work
        command = [programs / "transfers", "--count", str(TRANSACTIONS), "--accounts", str(ACCOUNTS), "--to", LOGGER,
                   "--gas", "60000", "--types", "mixed"]
        lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        self.transactions = [line.split() for line in lines]
        self.folders = 0
        self.longest_start = 0.0
        self.begin()

    def begin(self):
        """Creates a new folder, with the contract and two filters."""
        self.folders += 1
        self.folder = folder = Folder(self.work / f"data-{self.folders}")
        folder.queues = [self.shuffled(account) for account in range(ACCOUNTS)]
        server = self.start(["--no-mining"])
        connection = server.connect()
        connection.post("/dev/setCode/", {"Address": LOGGER, "Code": LOGGER_CODE})
        for _ in range(POLLERS):
            response = connection.post("/newFilter/", {"FilterObject": {**EMPTY, "Address": LOGGER}})
            folder.filters.append(LogFilter(response["FilterId"]))
        server.stop()

    def shuffled(self, account):
        places = list(range(account, TRANSACTIONS, ACCOUNTS))
        for first in range(0, len(places), SHUFFLED):
            part = places[first:first + SHUFFLED]
            self.random.shuffle(part)
            places[first:first + SHUFFLED] = part
        places.reverse()
        return places

    def start(self, mode):
        server = Server(self.binary, "dev", "--data-dir", self.folder.path, "--log", "error",
                        "--accounts", ACCOUNTS, *mode)
        self.longest_start = max(self.longest_start, server.seconds)
        return server

    def round(self):
        """Runs one round. Returns a description of it."""
        folder = self.folder
        mode = self.random.choice(MODES)
        server = self.start(mode)
        before, problems = len(folder.acknowledged), []
        jobs = [(self.send, first) for first in range(SENDERS)]
        jobs += [(self.poll, log_filter) for log_filter in folder.filters]
        jobs += [(self.edit, random.Random(self.random.random())), (self.create, None)]
        ended = threading.Event()
        threads = [threading.Thread(target=self.guard, args=(job, server, what, problems, ended)) for job, what in jobs]
        for thread in threads:
            thread.start()
        time.sleep(self.random.uniform(0.02, LOAD_SECONDS))
        ended.set()
        server.kill()
        for thread in threads:
            thread.join()
        if problems:
            raise Failure(problems[0])
        server = self.start(["--no-mining"])
        found = self.compare(server)
        server.stop()
        done = subprocess.run([self.binary, "verify", "--data-dir", folder.path], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise Failure(f"verify: {done.stdout.strip()}")
        text = (f"{' '.join(mode) or 'instant'}: killed after {len(folder.acknowledged) - before} transactions, "
                f"{len(folder.acknowledged)} in all, {found}")
        if len(folder.acknowledged) >= FOLDER_TRANSACTIONS:
            shutil.rmtree(folder.path)
            self.begin()
        return text

    def guard(self, job, server, what, problems, ended):
        """Repeats `job` until the server is gone."""
        try:
            job(server.connect(), what)
        except OSError as error:
            if not ended.is_set():
                problems.append(f"the server was gone before it was killed: {error}")
        except Failure as failure:
            problems.append(str(failure))

    def send(self, connection, first):
        """Sends the transactions of some accounts."""
        queues = self.folder.queues[first::SENDERS]
        while queue := max(queues, key=len):
            hash, raw = self.transactions[queue[-1]]
            # If the kill cut off its response, it is sent again in the next round, and may be known by then.
            connection.post("/sendRawTransaction/", {"Data": raw})
            self.folder.acknowledged.append(hash)
            queue.pop()

    def poll(self, connection, log_filter):
        """Polls a filter."""
        while True:
            log_filter.asking = True
            response = connection.get(f"/getFilterChanges/{log_filter.identity}/")
            log_filter.reported += [log["TransactionHash"] for log in response["Result"]]
            log_filter.asking = False
            time.sleep(0.003)

    def edit(self, connection, chance):
        """Sets the balances of accounts that nothing else changes."""
        while True:
            address = f"0x{0x20 << 152 | self.folder.next_balance:040x}"
            self.folder.next_balance += 1
            balance = str(chance.randrange(1 << 96))
            connection.post("/dev/setBalance/", {"Address": address, "Balance": balance})
            self.folder.balances[address] = balance
            time.sleep(0.01)

    def create(self, connection, _):
        """Creates filters of each kind."""
        while True:
            for path, body in (("/newFilter/", {"FilterObject": EMPTY}), ("/newBlockFilter/", {}),
                               ("/newPendingTransactionFilter/", {})):
                self.folder.created.append(connection.post(path, body)["FilterId"])
                time.sleep(0.1)

    def compare(self, server):
        """Compares the chain with what was acknowledged. Returns a summary."""
        folder, connection = self.folder, server.connect()
        statuses = {"mined": 0, "pending": 0, "queued": 0}
        for hash in folder.acknowledged:
            status = connection.get(f"/getTransactionStatus/{hash}/")
            if status["Status"] not in statuses:
                raise Failure(f"transaction {hash} was acknowledged, and is {json.dumps(status)}")
            statuses[status["Status"]] += 1
        for address, balance in folder.balances.items():
            found = connection.get(f"/getBalance/{address}/")["Balance"]
            if found != balance:
                raise Failure(f"balance {balance} of {address} was acknowledged, and is {found}")
        for identity in folder.created:
            connection.get(f"/getFilterChanges/{identity}/")
            # The number of filters is limited.
            connection.get(f"/uninstallFilter/{identity}/")
        folder.created.clear()
        logs = connection.post("/getLogs/", {"Address": LOGGER, "FromBlock": "0", "ToBlock": "latest"})["Logs"]
        chain = [log["TransactionHash"] for log in logs]
        if len(set(chain)) != len(chain) or len(chain) < statuses["mined"]:
            raise Failure(f"{len(chain)} logs, {len(set(chain))} of them different, of {statuses['mined']} transactions")
        left_out = sum(self.compare_filter(connection, log_filter, chain) for log_filter in folder.filters)
        return ", ".join(f"{count} {status}" for status, count in statuses.items()) + (
            f", {len(folder.balances)} balances, {left_out} logs in polls cut off")

    def compare_filter(self, connection, log_filter, chain):
        """Compares the logs that a filter has reported with the chain. Returns how many were lost with a cut-off poll."""
        rest = connection.get(f"/getFilterChanges/{log_filter.identity}/")["Result"]
        rest = [log["TransactionHash"] for log in rest]
        reported = log_filter.reported
        where = f"filter {log_filter.identity}"
        if reported != chain[:len(reported)]:
            raise Failure(f"{where} reported {len(reported)} logs before the kill that are not the first of the chain")
        if rest != chain[len(chain) - len(rest):]:
            raise Failure(f"{where} reported {len(rest)} logs after the kill that are not the last of the chain")
        left_out = len(chain) - len(reported) - len(rest)
        if left_out < 0:
            raise Failure(f"{where} reported {-left_out} logs twice")
        if left_out > 0 and not log_filter.asking:
            raise Failure(f"{where} lost {left_out} logs, and no poll was cut off")
        # The missing logs are explained; from here on they count as reported.
        log_filter.reported, log_filter.asking = list(chain), False
        return left_out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--bin", type=Path, help="folder of ethnode and transfers, where they are built already")
    parser.add_argument("--keep", action="store_true", help="keep the folders of rounds that failed")
    arguments = parser.parse_args()
    programs = arguments.bin or build("node-tests:transfers")
    print(f"seed {arguments.seed}", flush=True)

    work = Path(tempfile.mkdtemp(prefix="kill-dev-"))
    failures = []
    try:
        series = Series(programs, arguments.seed, work)
        for number in range(arguments.rounds):
            try:
                print(f"round {number}: {series.round()}", flush=True)
            except Failure as failure:
                failures.append(f"round {number}, {series.folder.path.name}: {failure}")
                print(f"FAILED: {failures[-1]}", flush=True)
                series.begin()
        print(f"longest start: {series.longest_start:.2f} s")
    finally:
        if arguments.keep and failures:
            print(f"the folders are in {work}")
        else:
            shutil.rmtree(work, ignore_errors=True)
    print(f"seed {arguments.seed}: {arguments.rounds} rounds, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
