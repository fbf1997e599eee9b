"""cast on a fork: every step runs its program, as users do."""

import json
import os
import subprocess
import tempfile
from functools import partial

from steps import DEALT, ETHER, FACTS, RECEIVER, URL, equal, pays, step

step = partial(step, "cast")
# The program itself: npm's wrapper exits with 0 even if the program fails.
CAST = os.environ["NODE_CAST"]
# The user's settings must not affect the test.
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": tempfile.mkdtemp(), "ETH_RPC_URL": URL}
WHALE, TRADER, ROUTER = FACTS["whale"], FACTS["trader"], FACTS["router"]
FIRST, SECOND, THIRD = FACTS["tokens"]
POOLS = FACTS["pools"]
SWAP = "swap(uint256,uint256,address,address[],uint256)(uint256)"


def cast(*arguments, fails=False):
    done = subprocess.run([CAST, *map(str, arguments)], env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    if (done.returncode != 0) != fails:
        raise AssertionError(f"{arguments[:3]}: {done.returncode} {(done.stderr or done.stdout).strip()}")
    return (done.stderr if fails else done.stdout).strip()


def rpc(method, *parameters):
    return json.loads(cast("rpc", method, *(part if isinstance(part, str) else json.dumps(part) for part in parameters)))


def number(*arguments):
    """Returns the first number that a call returns; more digits follow in another notation."""
    return int(cast("call", *arguments).split()[0])


def balance(token, account, *more):
    return number(token, "balanceOf(address)(uint256)", account, *more)


def send(account, *arguments):
    receipt = json.loads(cast("send", "--json", "--unlocked", "--from", account, *arguments))
    equal(int(receipt["status"], 16), 1)
    return receipt


def now():
    return int(cast("block", "latest", "--field", "timestamp"))


def path():
    return f"[{','.join(POOLS)}]"


def swap(amount, least, deadline=2**64):
    return send(DEALT, ROUTER, SWAP, amount, least, FIRST, path(), deadline)


@step("reset to an earlier block")
def _():
    rpc("anvil_reset", {"forking": {"jsonRpcUrl": FACTS["url"], "blockNumber": FACTS["early"]}})
    equal(int(cast("block-number")), FACTS["early"])
    had = balance(THIRD, TRADER)
    rpc("anvil_reset", {"forking": {"jsonRpcUrl": FACTS["url"], "blockNumber": FACTS["block"]}})
    equal(int(cast("block-number")), FACTS["block"])
    return f"{had}, then {balance(THIRD, TRADER)}"


@step("a block, a transaction and its receipt below the fork")
def _():
    block = json.loads(cast("block", FACTS["early"], "--full", "--json"))
    equal(block["hash"], FACTS["earlyHash"])
    equal(block["transactions"][0]["hash"], FACTS["transaction"])
    sent = json.loads(cast("tx", FACTS["transaction"], "--json"))
    receipt = json.loads(cast("receipt", FACTS["transaction"], "--json"))
    equal(receipt["blockHash"], FACTS["earlyHash"])
    return f"{sent['from']} {sent['to']} {sent['blockNumber']} {receipt['status']} {receipt['gasUsed']} {len(receipt['logs'])}"


@step("calls as of blocks below the fork")
def _():
    return f"{balance(THIRD, TRADER, '--block', FACTS['early'] - 1)}, then {balance(THIRD, TRADER, '--block', FACTS['early'])}"


@step("traces a transaction of before the fork")
def _():
    trace = cast("run", FACTS["transaction"], "--quick")
    equal("swap(" in trace or "Transaction successfully executed" in trace, True)


@step("send from a rich account")
def _():
    before = int(cast("balance", RECEIVER))
    rpc("anvil_impersonateAccount", WHALE)
    send(WHALE, RECEIVER, "--value", "10ether")
    send(WHALE, FIRST, "transfer(address,uint256)", RECEIVER, 1000 * ETHER)
    rpc("anvil_stopImpersonatingAccount", WHALE)
    equal(int(cast("balance", RECEIVER)) - before, 10 * ETHER)
    return str(balance(FIRST, RECEIVER))


@step("deal tokens")
def _():
    slot = cast("index", "address", DEALT, 0)
    rpc("anvil_setStorageAt", FIRST, slot, f"0x{5000 * ETHER:064x}")
    rpc("anvil_setBalance", DEALT, hex(ETHER))
    equal(int(cast("storage", FIRST, slot), 16), 5000 * ETHER)
    return str(balance(FIRST, DEALT))


@step("swap through two pools")
def _():
    reserves = [(POOLS[0], FIRST), (POOLS[0], SECOND), (POOLS[1], SECOND), (POOLS[1], THIRD)]
    paid, middle, given, out = (number(pool, "reserves(address)(uint256)", token) for pool, token in reserves)
    expected = pays(pays(100 * ETHER, paid, middle), given, out)
    rpc("anvil_impersonateAccount", DEALT)
    send(DEALT, FIRST, "approve(address,uint256)", ROUTER, 5000 * ETHER)
    equal(number("--from", DEALT, ROUTER, SWAP, 100 * ETHER, expected, FIRST, path(), 2**64), expected)
    receipt = swap(100 * ETHER, expected)
    equal(balance(THIRD, DEALT), expected)
    return f"{expected}, gas {int(receipt['gasUsed'], 16)}, {len(receipt['logs'])} logs"


@step("logs from before and after the fork")
def _():
    event = "Swapped(address indexed,address indexed,uint256,uint256)"
    logs = json.loads(cast("logs", "--json", "--from-block", 0, "--to-block", "latest", "--address", POOLS[0], event))
    return str([(int(log["blockNumber"], 16), int(log["data"][66:], 16)) for log in logs])


@step("snapshot and revert")
def _():
    number, before = cast("block-number"), balance(THIRD, DEALT)
    snapshot = rpc("evm_snapshot")
    swap(7 * ETHER, 0)
    after = balance(THIRD, DEALT)
    equal(rpc("evm_revert", snapshot), True)
    equal((cast("block-number"), balance(THIRD, DEALT)), (number, before))
    return str(after - before)


@step("time travel")
def _():
    deadline = now() + 3600
    swap(ETHER, 0, deadline)
    rpc("evm_increaseTime", 86_400)
    rpc("evm_mine")
    equal(now() > deadline, True)
    said = cast("call", "--from", DEALT, ROUTER, SWAP, ETHER, 0, FIRST, path(), deadline, fails=True)
    equal(cast("sig", "Expired(uint256,uint256)")[2:] in said or "Expired" in said, True)
    return "Expired"
