"""Shared by the clients in Python: what the chain that is forked has, and steps that are reported as in report.mjs."""

import json
import os
from pathlib import Path

URL = os.environ["NODE_RPC_URL"]
FACTS = json.loads(Path(os.environ["NODE_FACTS"]).read_text())
ETHER = 10**18
# An account that has nothing until its slots and its balance are set, and one that receives.
DEALT = "0x00000000000000000000000000000000000dea17"
RECEIVER = "0x00000000000000000000000000000000000be4ef"


def pays(given, reserve_in, reserve_out):
    """Returns what one pool pays, from its reserves of the token that is paid and the one that is received."""
    return reserve_out * given // (reserve_in + given)


def equal(got, expected):
    if got != expected:
        raise AssertionError(f"got {got}, expected {expected}")


def step(tool, name):
    """Runs the body as a step, and prints what came of it."""
    def run(work):
        try:
            result = work() or "works"
        except Exception as error:
            result = f"fails: {type(error).__name__} {error}".splitlines()[0][:200]
        print(json.dumps({"tool": tool, "call": name, "result": result}), flush=True)
    return run
