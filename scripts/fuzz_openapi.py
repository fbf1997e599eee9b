#!/usr/bin/env python3
"""Test a server against its own OpenAPI document, with schemathesis.

    scripts/fuzz_openapi.py [--bin FILE] [--short] [--venv FOLDER] [--seed N]

Starts `ethnode dev` on a seeded chain and runs all phases of schemathesis (tests/schemathesis) over every operation of
/openapi.json; then over the operations under /dev/ on a server of their own, because they change the chain. Each run is followed by more
cases that are valid according to the document.

Fails if schemathesis finds anything, if a status is 500 or more, if an operation was not tried, if fewer than 30 of 100 cases of
an operation got 200, or if there were fewer than 20,000 cases in total (--short: 3,000).

/events/ is left out, because its response does not end; tests/tests/events.rs covers it.
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
MIN_SUCCESS_PERCENT = 30

# The spellings of a boolean in a path.
FLAGS = "^(true|false|True|False|TRUE|FALSE|t|f|T|F|1|0)$"

# Cases per operation: in the run of all phases, and in the run of valid requests.
LENGTHS = {"long": (140, 250, 20_000), "short": (12, 40, 3_000)}


def environment(folder):
    """Returns the programs of the virtual environment in `folder`, which is created if it does not exist."""
    programs = folder / "bin"
    if not (programs / "st").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        requirements = FOLDER / "requirements.txt"
        subprocess.run([programs / "pip", "install", "--quiet", "-r", requirements], check=True)
    return programs


class Tally:
    """Returns the number of cases by operation and status."""

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


def exact(document, server):
    """Describes requests in every form that the server accepts, as its schemas do; the document itself has only plain ones."""
    def pointed(schema):
        if isinstance(schema, list):
            return [pointed(item) for item in schema]
        if not isinstance(schema, dict):
            return schema
        reference = schema.get("$ref", "").removesuffix(".json")
        moved = {"$ref": f"#/components/schemas/{reference}"} if reference else {}
        return {key: pointed(value) for key, value in schema.items() if key != "$ref"} | moved

    for name in document["components"]["schemas"]:
        schema = server.get(f"/schemas/{name}.json")
        document["components"]["schemas"][name] = pointed({key: schema[key] for key in schema if key not in ("$id", "$schema")})
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    for parameter in (parameter for operation in operations for parameter in operation.get("parameters", [])):
        if parameter["schema"].get("type") == "boolean":
            parameter |= {"schema": {"type": "string", "pattern": FLAGS}, "example": "true"}
    return document


def run(programs, binary, work, name, selection, length, options, tally):
    """Runs schemathesis on the operations of `selection`, on a server of their own."""
    all_phases, valid, _ = length
    with Server(binary, "dev", *SERVER_OPTIONS) as server:
        seeds = work / f"{name}.json"
        seeds.write_text(json.dumps({"url": server.url, "seed": options.seed, **seed(server)}))
        # Read from a file, because schemathesis excludes the URL from which it reads a document.
        document = exact(server.get("/openapi.json"), server)
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
        cases, succeeded = sum(counts.values()), counts[200]
        if cases == 0:
            faults.append(f"{operation} was not tried")
            continue
        share = 100 * succeeded / cases
        others = ", ".join(f"{status}: {count}" for status, count in sorted(counts.items()) if status != 200)
        print(f"{cases:7} {succeeded:7} {share:5.0f}%  {operation}  {others}")
        if share < MIN_SUCCESS_PERCENT:
            faults.append(f"{operation}: only {share:.1f}% of {cases} cases got 200")
    total = tally.total()
    print(f"{total} cases, {tally.other_methods} of them by methods that are not described")
    if total < least:
        faults.append(f"only {total} cases, at least {least} are wanted")
    return faults


def main():
    parser = argparse.ArgumentParser(description="Tries a server against its own description.")
    parser.add_argument("--bin", type=Path, help="the server [default: build it]")
    parser.add_argument("--short", action="store_true", help="a couple of minutes")
    parser.add_argument("--venv", type=Path, help="virtual environment with schemathesis; created if it does not exist")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    binary = (options.bin or build() / "ethnode").resolve()
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
