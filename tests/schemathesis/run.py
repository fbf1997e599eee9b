#!/usr/bin/env python3
"""Test a server against its own OpenAPI document, with schemathesis.

    tests/schemathesis/run.py [--bin FOLDER] [--short] [--seed N]

Starts `ethnode dev` on a seeded chain and runs all phases of schemathesis over every operation of
/openapi.json, and then cases that are valid according to the document; then the same over the operations under /dev/ on a server of their
own, because they change the chain. /events/ is left out, because its response does not end; a test of its own covers it.

Fails if schemathesis finds anything, if a status is 500 or more, if fewer than 30 of 100 cases of an operation got 200, or if there were
fewer than 20,000 cases in total (--short: 3,000).
"""

import collections
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.append(str(FOLDER.parents[1] / "scripts"))

import nodes
from nodes import Server, check, need
from seeds import seed

WITHOUT_END = "/events/"
MIN_SUCCESS_PERCENT = 30
# The spellings of a boolean in a path.
FLAGS = "^(true|false|True|False|TRUE|FALSE|t|f|T|F|1|0)$"
# Cases per operation, in the run of all phases and in that of valid requests, and the least number of all.
LONG, SHORT = (140, 250, 20_000), (12, 40, 3_000)


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


def fuzz(options, work, selection, statuses):
    """Runs schemathesis on the operations of `selection`, on a server of their own, and counts statuses by operation."""
    with Server(options.server, "dev", "--max-filters", "1000000", "--filter-ttl", "10h") as server:
        seeds, description = work / "seeds.json", work / "openapi.json"
        seeds.write_text(json.dumps({"url": server.url, "seed": options.seed, **seed(server)}))
        # Read from a file, because schemathesis excludes the URL from which it reads a document.
        document = exact(server.get("/openapi.json"), server)
        description.write_text(json.dumps(document))
        described = {f"{method.upper()} {path}" for path, item in document["paths"].items() for method in item if path != WITHOUT_END}
        hooks = {"SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(FOLDER), "NODE_SEEDS": str(seeds)}
        all_phases, valid, _ = SHORT if options.short else LONG
        for kind in (["--max-examples", all_phases], ["--max-examples", valid, "--phases", "fuzzing", "--mode", "positive"]):
            report = work / "report.ndjson"
            command = ["st", "--config-file", FOLDER / "schemathesis.toml", "run", description, "--url", server.url, "--exclude-path", WITHOUT_END,
                       *selection, *kind, "--seed", options.seed, "--continue-on-failure", "--no-shrink", "--report", "ndjson",
                       "--report-ndjson-path", report]
            result = subprocess.run([str(part) for part in command], cwd=work, env={**os.environ, **hooks})
            check(result.returncode == 0, f"schemathesis found nothing: {' '.join(map(str, [*selection, *kind]))}")
            for event in filter(None, (json.loads(line).get("ScenarioFinished") for line in report.open())):
                cases, interactions = (event["recorder"].get(name) or {} for name in ("cases", "interactions"))
                for name, interaction in interactions.items():
                    operation = f"{cases[name]['value']['method'].upper()} {cases[name]['value']['path']}"
                    status = (interaction["response"] or {}).get("status_code", 0)
                    statuses[operation if operation in described else "other methods"][status] += 1
        server.stop()
    return described


def openapi(options):
    """all operations"""
    need("st")
    statuses = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as work:
        operations = fuzz(options, Path(work), ["--exclude-path-regex", "^/dev/"], statuses)
        fuzz(options, Path(work), ["--include-path-regex", "^/dev/"], statuses)
    for operation in (*sorted(operations), "other methods"):
        counts = statuses[operation]
        share = 100 * counts[200] / max(1, counts.total())
        holds = not any(status == 0 or status >= 500 for status in counts) and (operation not in operations or share >= MIN_SUCCESS_PERCENT)
        check(holds, f"{counts.total():7} {share:5.0f}%  {operation}  {dict(sorted(counts.items()))}")
    total, least = sum(counts.total() for counts in statuses.values()), (SHORT if options.short else LONG)[2]
    check(total >= least, f"{total} cases, at least {least}")


def arguments(parser):
    parser.add_argument("--short", action="store_true", help="a couple of minutes")
    parser.add_argument("--seed", type=int, default=1)


if __name__ == "__main__":
    nodes.main(__doc__, {"openapi": openapi}, arguments=arguments)
