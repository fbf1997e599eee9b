#!/usr/bin/env python3
"""Tries a server against its own description, with schemathesis.

    scripts/fuzz_openapi.py [--bin FILE] [--short] [--venv FOLDER] [--seed N]

Starts `node-server dev` on a seeded chain and lets schemathesis (tests/schemathesis) run all its phases over every operation that
/openapi.json describes; then once more for the operations below /dev/, on a server of their own, for they change the chain under the
others. Each run is followed by more cases that are valid by the description.

Fails when schemathesis finds anything, when an answer has a status of 500 or more, when an operation was not tried, when fewer than 30
of 100 cases of an operation were answered with 200, or when the cases together are fewer than 20,000 (--short: 3,000).

/events/ is left out: its answer does not end. tests/tests/events.rs tries it.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nodes import ROOT, Failure, Server, build
from seeds import seed

FOLDER = ROOT / "tests" / "schemathesis"
SERVER_OPTIONS = ["--max-filters", "1000000", "--filter-ttl", "10h"]
WITHOUT_END = "/events/"
SHARE_ANSWERED = 30

# Cases an operation: in the run of all phases, and in the one of valid requests.
LENGTHS = {"long": (140, 250, 20_000), "short": (12, 40, 3_000)}


def environment(folder):
    """The programs of a virtual environment in `folder`, which is made where there is none."""
    programs = folder / "bin"
    if not (programs / "st").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        requirements = FOLDER / "requirements.txt"
        subprocess.run([programs / "pip", "install", "--quiet", "-r", requirements], check=True)
    return programs


class Tally:
    """Cases by operation and status."""

    def __init__(self):
        self.statuses = collections.defaultdict(collections.Counter)
        self.other_methods = 0
        self.failed = []

    def read(self, report, operations):
        with open(report) as lines:
            for line in lines:
                event = json.loads(line).get("ScenarioFinished")
                if event:
                    self.count(event["recorder"], operations)

    def count(self, recorder, operations):
        for name, interaction in (recorder.get("interactions") or {}).items():
            case = recorder["cases"][name]["value"]
            operation = f"{case['method'].upper()} {case['path']}"
            status = (interaction["response"] or {}).get("status_code", 0)
            if operation in operations:
                self.statuses[operation][status] += 1
            else:
                self.other_methods += 1
            if status >= 500 or status == 0:
                self.failed.append(f"{operation}: {status}")

    def total(self):
        return sum(sum(counts.values()) for counts in self.statuses.values()) + self.other_methods


def described(document):
    paths = document["paths"].items()
    return {f"{method.upper()} {path}" for path, item in paths for method in item if path != WITHOUT_END}


def run(programs, binary, work, name, selection, length, options, tally):
    """Lets schemathesis loose on the operations of `selection`, on a server of their own."""
    all_phases, valid, _ = length
    with Server(binary, "dev", *SERVER_OPTIONS) as server:
        seeds = work / f"{name}.json"
        seeds.write_text(json.dumps({"url": server.url, "seed": options.seed, **seed(server)}))
        # Read from a file, for schemathesis leaves out the address that it reads a description from.
        document = server.get("/openapi.json")
        operations = described(document)
        description = work / f"{name}-openapi.json"
        description.write_text(json.dumps(document))
        kinds = [
            ("all", ["--max-examples", str(all_phases)]),
            ("valid", ["--max-examples", str(valid), "--phases", "fuzzing", "--mode", "positive"]),
        ]
        for kind, arguments in kinds:
            report = work / f"{name}-{kind}.ndjson"
            command = [
                programs / "st", "--config-file", FOLDER / "schemathesis.toml", "run", description, "--url", server.url,
                "--exclude-path", WITHOUT_END, *selection, *arguments, "--seed", str(options.seed),
                "--continue-on-failure", "--no-shrink", "--report", "ndjson", "--report-ndjson-path", report,
            ]
            print(f"\n== {name} operations, {kind} cases", flush=True)
            hooks = {"SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(FOLDER), "NODE_SEEDS": str(seeds)}
            result = subprocess.run(command, cwd=work, env={**os.environ, **hooks})
            if result.returncode != 0:
                tally.failed.append(f"schemathesis found something in {name} operations, {kind} cases")
            tally.read(report, operations)
        server.stop()
    return operations


def judge(tally, operations, least):
    faults = list(dict.fromkeys(tally.failed))
    print(f"\n{'cases':>7} {'200':>7} {'share':>6}  others")
    for operation in sorted(operations):
        counts = tally.statuses[operation]
        cases, answered = sum(counts.values()), counts[200]
        if cases == 0:
            faults.append(f"{operation} was not tried")
            continue
        share = 100 * answered / cases
        others = ", ".join(f"{status}: {count}" for status, count in sorted(counts.items()) if status != 200)
        print(f"{cases:7} {answered:7} {share:5.0f}%  {operation}  {others}")
        if share < SHARE_ANSWERED:
            faults.append(f"{operation}: only {share:.1f}% of {cases} cases were answered with 200")
    total = tally.total()
    print(f"{total} cases, {tally.other_methods} of them by methods that are not described")
    if total < least:
        faults.append(f"only {total} cases, at least {least} are wanted")
    return faults


def main():
    parser = argparse.ArgumentParser(description="Tries a server against its own description.")
    parser.add_argument("--bin", type=Path, help="the server's program; it is built where none is named")
    parser.add_argument("--short", action="store_true", help="a couple of minutes")
    parser.add_argument("--venv", type=Path, help="where schemathesis is, or is to be kept")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    binary = (options.bin or build() / "node-server").resolve()
    length = LENGTHS["short" if options.short else "long"]
    started = time.monotonic()
    tally = Tally()
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        programs = environment((options.venv or work / "venv").resolve())
        apart = ["--exclude-path-regex", "^/dev/"]
        operations = run(programs, binary, work, "plain", apart, length, options, tally)
        run(programs, binary, work, "development", ["--include-path-regex", "^/dev/"], length, options, tally)
    faults = judge(tally, operations, length[2])
    print(f"{time.monotonic() - started:.0f} s")
    for fault in faults:
        print(f"FAIL {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit(f"FAIL {failure}")
