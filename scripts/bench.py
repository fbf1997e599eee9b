#!/usr/bin/env python3
"""Measure the server.

    scripts/bench.py --list | [SCENARIO…] [OPTION…]

Each scenario prints a table, with what it was measured on; the exit status is 1 if a bar is missed. Chains are generated unless they are
those in ../shared. --work keeps chains and folders for the next run, and must be on a disk. Requests are sent by wrk.
"""

import tempfile
from pathlib import Path
from typing import Callable, NamedTuple

import nodes
from benchmarks import bursts, dev, imports, limits, requests


def memory(options):
    """Rates of a chain in memory, and its size."""
    requests.memory(options)
    dev.size(options)


class Scenario(NamedTuple):
    """What is measured on which chain and server, beside what, and the bar."""
    measure: Callable
    chain: str
    server: str
    requests: str
    peer: str
    goal: str

    def __call__(self, options):
        given = options.work
        with tempfile.TemporaryDirectory() as temporary:
            options.work = Path(given or temporary)
            options.work.mkdir(parents=True, exist_ok=True)
            self.measure(options)
        options.work = given


SCENARIOS = {
    "http": Scenario(requests.http, "2,000 blocks or --chain", "run, in memory", "light reads; 16 in a piece",
                     "a constant body, bare actix", "0.9; fees 0.6, call 0.4; /health to actix 0.92"),
    "interfaces": Scenario(requests.interfaces, "20,000 blocks", "run, folder", "all operations over JSON-RPC", "REST", "0.9 to 1.11"),
    "versions": Scenario(requests.versions, "20,000 blocks", "run, folder", "all operations, both interfaces", "--before PROGRAM", "0.97"),
    "rpc": Scenario(requests.rpc, "15 transactions", "dev", "22 messages of JSON-RPC", "anvil", "1"),
    "cost": Scenario(requests.cost, "genesis", "dev, all features enabled", "storage", "a bare route", "0.85"),
    "import": Scenario(imports.imports, "dev20k or --chain", "run, in memory; import, folder", "", "--reth, for the folder", "3 s; 0.9"),
    "durable": Scenario(imports.durable, "dev20k or --chain", "run, folder", "the first response", "", "3 s, 300 MB; 0.5 s, 2 s after SIGKILL"),
    "growth": Scenario(imports.growth, "20,000 and 200,000 blocks", "import, then run", "proofs, random heights", "--reth; the head", "0.85"),
    "compute": Scenario(imports.compute, "EEST compute, 33 chains", "import", "", "--reth", "1.1; sum 0.8"),
    "backup": Scenario(imports.backup, "dev20k or --chain", "run, folder", "storage, during backups", "without backups", ""),
    "memory": Scenario(memory, "20,000 blocks; --count sends", "run and dev, in memory", "proofs, storage, calls, logs", "the chain in a folder",
                       "0.95; 200 MB, 350 MB"),
    "dev": Scenario(dev.dev, "--count sends", "dev, folder", "sends; storage beside endless calls", "--anvil", "25 s, 1.3; p99 20 ms; p99 10 ms"),
    "limits": Scenario(limits.limits, "genesis", "dev", "slow, greedy, deaf and heavy clients, a stop", "--before PROGRAM", "1 GiB; p99 below twice; 50 ms; 5, 50 ms"),
    "bursts": Scenario(bursts.bursts, "150 logs of 1.3 MB; a pool of 214 MB", "dev", "subscriptions, logs, the pool, gzip", "", "512 MiB; 64 MiB after"),
}


def arguments(parser):
    add = parser.add_argument
    add("--work", type=Path, help="keep chains and folders here [default: a temporary folder]")
    add("--rounds", type=int, default=3, help="[default: %(default)s]")
    add("--seconds", type=int, default=3, help="length of a measurement [default: %(default)s]")
    add("--blocks", type=lambda text: list(map(int, text.split(","))), help="lengths of generated chains, such as 2000,20000")
    add("--genesis-accounts", type=int, default=0, help="accounts at genesis of `growth`, a tenth of them with code and slots")
    add("--count", type=int, default=20_000, help="transactions of development chains [default: %(default)s]")
    add("--memory", type=int, default=400, help="MB for proofs in a control group [default: %(default)s]")
    add("--only", action="append", metavar="NAME", help="only requests, benchmarks, or parts of `dev`, `limits` and `bursts`, whose names begin so")
    add("--chain", type=lambda path: (Path(f"{path}.genesis.json"), Path(f"{path}.rlp")), help="FOLDER/NAME of NAME.genesis.json and NAME.rlp")
    add("--server-options", default="", help="more options of the server of `http`, such as '--workers 4'")
    add("--before", type=Path, help="the program that `versions` and `limits` compare with")
    add("--reth", type=Path, help="reth, for `import`, `growth` and `compute`")
    add("--anvil", action="store_true", help="measure anvil as well")


def listing():
    titles = ("name", "chain", "server", "requests", "peer", "goal")
    rows = [titles, *((name, *scenario[1:]) for name, scenario in SCENARIOS.items())]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


if __name__ == "__main__":
    nodes.main(__doc__, SCENARIOS, ["node-tests:generate", "node-tests:transfers", "node-tests:bare"], "dist", arguments, listing)
