"""Tests a development chain with cast: every step runs its program, as users do."""

import json
import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path

URL = os.environ["NODE_RPC_URL"]
HERE = Path(__file__).parent
# The program itself: npm's wrapper exits with 0 even if the program fails.
[CAST] = (HERE / "node_modules" / "@foundry-rs").glob("cast-*/bin/cast")
CONTRACT = json.loads((HERE.parent / "contract" / "Store.json").read_text())
STRANGER = "0x00000000000000000000000000000000000a11ce"
JUNK = "test test test test test test test test test test test junk"
# The user's settings must not affect the test.
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": tempfile.mkdtemp()}


def run(*arguments, expect=0, input=None, **more):
    environment = {**ENVIRONMENT, **more}
    done = subprocess.run(
        [str(CAST), *map(str, arguments)], env=environment, input=input, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == expect, f"{arguments}: {done.returncode} {done.stdout} {done.stderr}"
    return (done.stdout if expect == 0 else done.stderr).strip()


def cast(*arguments, url=URL, **more):
    return run(*arguments, ETH_RPC_URL=url, **more)


def rpc(method, *parameters):
    """Returns the server's result, parsed as JSON. Parameters are read from standard input: a dump is too long for an argument."""
    return json.loads(cast("rpc", method, "--raw", input=json.dumps(parameters)))


def step(name):
    """Runs the body as a step, and reports that it was completed."""
    def work(function):
        function()
        print(f"ok {name}", flush=True)
    return work


KEYS = [run("wallet", "private-key", "--mnemonic", JUNK, "--mnemonic-index", index) for index in range(3)]
ALICE, BOB, CAROL = (run("wallet", "address", "--private-key", key) for key in KEYS)
STORE = None


def send(*arguments, **more):
    receipt = json.loads(cast("send", "--json", "--private-key", KEYS[0], *arguments, **more))
    assert int(receipt["status"], 16) == 1, receipt
    return receipt


def sends(kind, *arguments):
    receipt = send(BOB, "--value", "1", *arguments)
    sent = rpc("eth_getTransactionByHash", receipt["transactionHash"])
    assert (receipt["type"], sent["type"]) == (hex(kind), hex(kind)), sent
    assert sent["blockHash"] == receipt["blockHash"]
    return sent


def set_value(key, value, *more):
    return send(STORE, "set(uint256,uint256)", key, value, *more)


def number(text):
    return int(text.split()[0])


@step("deploy")
def _():
    global STORE
    assert cast("chain-id") == "31337"
    receipt = send("--create", CONTRACT["bytecode"])
    STORE = receipt["contractAddress"]
    assert len(cast("code", STORE)) > 100


@step("accounts")
def _():
    assert len(rpc("eth_accounts")) == 10
    receipt = json.loads(cast("send", "--json", "--unlocked", "--from", BOB, CAROL, "--value", "3"))
    assert receipt["from"].lower() == BOB.lower()


@step("type 0")
def _():
    sends(0, "--legacy")


@step("type 1")
def _():
    slot = "0x" + "00" * 31 + "01"
    sent = sends(1, "--legacy", "--access-list", json.dumps([{"address": STORE, "storageKeys": [slot]}]))
    assert sent["accessList"] == [{"address": STORE.lower(), "storageKeys": [slot]}], sent


@step("type 2")
def _():
    before = int(cast("balance", BOB))
    sends(2)
    assert int(cast("balance", BOB)) == before + 1


@step("type 3")
def _():
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"a blob")
        file.flush()
        sent = sends(3, "--blob", "--path", file.name)
    assert len(sent["blobVersionedHashes"]) == 1


@step("type 4")
def _():
    nonce = cast("nonce", CAROL)
    signed = cast("wallet", "sign-auth", STORE, "--nonce", nonce, "--chain", 31337, "--private-key", KEYS[2])
    sends(4, "--auth", signed)
    assert cast("code", CAROL) == f"0xef0100{STORE[2:].lower()}"


@step("read")
def _():
    set_value(7, 42)
    assert number(cast("call", STORE, "values(uint256)(uint256)", 7)) == 42
    assert number(cast("call", STORE, "count()(uint256)")) == 1
    assert int(cast("storage", STORE, 1), 16) == 1


@step("call")
def _():
    assert cast("call", "--from", ALICE, STORE, "set(uint256,uint256)", 1, 2) == "0x"
    changed = {STORE: {"stateDiff": {"0x" + "00" * 31 + "01": "0x" + "00" * 31 + "63"}}}
    data = run("calldata", "count()")
    assert int(rpc("eth_call", {"to": STORE, "data": data}, "latest", changed), 16) == 99


@step("estimate")
def _():
    gas = int(cast("estimate", "--from", ALICE, STORE, "set(uint256,uint256)", 8, 1))
    used = int(set_value(8, 1, "--gas-limit", gas)["gasUsed"], 16)
    assert used <= gas < 2 * used, (gas, used)


def logs(*arguments):
    return json.loads(cast("logs", "--json", "--address", STORE, *arguments))


@step("logs")
def _():
    first = int(set_value(100, 1)["blockNumber"], 16)
    last = int(set_value(101, 2)["blockNumber"], 16)
    window = ("--from-block", first, "--to-block", last, "Stored(address indexed,uint256 indexed,uint256)")
    found = [(int(log["topics"][2], 16), int(log["data"], 16)) for log in logs(*window)]
    assert found == [(100, 1), (101, 2)], found
    assert len(logs(*window, ALICE)) == 2
    assert len(logs(*window, ALICE, 101)) == 1
    assert logs(*window, ALICE, 102) == []
    created = rpc("eth_newFilter", {"address": STORE})
    receipt = set_value(102, 3)
    assert [log["transactionHash"] for log in rpc("eth_getFilterChanges", created)] == [receipt["transactionHash"]]
    assert rpc("eth_uninstallFilter", created) is True


@step("subscribe")
def _():
    socket = URL.replace("http", "ws", 1) + "/ws"
    assert int(cast("block-number", url=socket)) > 0
    command = [str(CAST), "logs", "--subscribe", "--address", STORE, "--rpc-url", socket]
    follower = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    heard = []
    reader = threading.Thread(target=lambda: heard.extend(iter(follower.stdout.readline, "")))
    reader.start()
    try:
        # It does not report when it starts to listen.
        until = time.monotonic() + 30
        while not heard:
            assert time.monotonic() < until and follower.poll() is None, "nothing was heard"
            last = set_value(200, 5)["transactionHash"]
            time.sleep(0.5)
        while last not in "".join(heard):
            assert time.monotonic() < until and follower.poll() is None, heard
            time.sleep(0.05)
    finally:
        follower.kill()
        follower.wait()
        reader.join()


@step("revert reason")
def _():
    assert "unlucky" in cast("call", "--from", ALICE, STORE, "set(uint256,uint256)", 1, 13, expect=1)
    selector = run("sig", "TooLarge(uint256,uint256)")
    assert selector[2:] in cast("call", "--from", ALICE, STORE, "set(uint256,uint256)", 1, 2000, expect=1)
    failed = ("send", "--json", "--private-key", KEYS[0], STORE, "set(uint256,uint256)", 1, 13)
    assert "unlucky" in cast(*failed, expect=1)
    hash_ = cast(*failed[:2], "--async", *failed[2:], "--gas-limit", 100_000).strip('"')
    assert rpc("eth_getTransactionReceipt", hash_)["status"] == "0x0"


def prove(root, key, nodes):
    """Returns the value that a Merkle Patricia proof proves, or None if it proves absence."""
    nodes = list(nodes)
    path = run("keccak", key)[2:]
    expected = root
    while True:
        if isinstance(expected, list):
            node = expected
        else:
            assert nodes, "the proof ends too early"
            raw = nodes.pop(0)
            assert run("keccak", raw) == expected, "a node is not the one that is committed to"
            node = json.loads(run("from-rlp", raw))
        if len(node) == 17:
            expected, path = node[int(path[0], 16)], path[1:]
        else:
            encoded, expected = node[0][2:], node[1]
            flags = int(encoded[0], 16)
            part = encoded[1:] if flags & 1 else encoded[2:]
            if not path.startswith(part):
                break
            path = path[len(part):]
            if flags & 2:
                assert not nodes, "the proof has nodes too many"
                return expected if not path else None
        if expected == "0x":
            break
    assert not nodes, "the proof has nodes too many"
    return None


@step("proof")
def _():
    block = rpc("eth_getBlockByNumber", "latest", False)
    slot = run("index", "uint256", 7, 0)
    proof = json.loads(cast("proof", STORE, slot, "--block", int(block["number"], 16)))
    account = json.loads(run("from-rlp", prove(block["stateRoot"], STORE.lower(), proof["accountProof"])))
    assert account[2:] == [proof["storageHash"], proof["codeHash"]], account
    assert [int(part[2:] or "0", 16) for part in account[:2]] == [int(proof["nonce"], 16), int(proof["balance"], 16)]
    value = run("from-rlp", prove(proof["storageHash"], slot, proof["storageProof"][0]["proof"])).strip('"')
    assert int(value, 16) == 42
    last = proof["accountProof"][-1]
    changed = [*proof["accountProof"][:-1], last[:-1] + ("1" if last.endswith("0") else "0")]
    try:
        prove(block["stateRoot"], STORE.lower(), changed)
    except AssertionError:
        return
    raise SystemExit("a proof that was changed holds")


@step("signatures")
def _():
    signed = rpc("personal_sign", run("from-utf8", "hello"), BOB)
    run("wallet", "verify", "--address", BOB, "hello", signed)
    assert signed == run("wallet", "sign", "--private-key", KEYS[1], "hello")
    data = {
        "types": {
            "EIP712Domain": [{"name": "name", "type": "string"}, {"name": "chainId", "type": "uint256"}],
            "Item": [{"name": "key", "type": "uint256"}, {"name": "notes", "type": "string[]"}],
            "Order": [{"name": "items", "type": "Item[]"}, {"name": "low", "type": "int8"}],
        },
        "primaryType": "Order", "domain": {"name": "Store", "chainId": 31337},
        "message": {"items": [{"key": 1, "notes": ["a", "b"]}, {"key": 2, "notes": []}], "low": -5},
    }
    assert rpc("eth_signTypedData_v4", BOB, data) == run(
        "wallet", "sign", "--private-key", KEYS[1], "--data", json.dumps(data)
    )


@step("snapshot")
def _():
    before = cast("block-number")
    snapshot = rpc("evm_snapshot")
    set_value(300, 9)
    assert rpc("evm_revert", snapshot) is True
    assert cast("block-number") == before
    assert number(cast("call", STORE, "values(uint256)(uint256)", 300)) == 0


def head():
    return rpc("eth_getBlockByNumber", "latest", False)


@step("mine")
def _():
    before = head()
    rpc("anvil_mine", "0x3", "0xa")
    after = head()
    assert int(after["number"], 16) == int(before["number"], 16) + 3
    third = rpc("eth_getBlockByNumber", hex(int(after["number"], 16) - 1), False)
    assert int(after["timestamp"], 16) == int(third["timestamp"], 16) + 10


@step("automine")
def _():
    rpc("evm_setAutomine", False)
    assert rpc("anvil_getAutomine") is False
    waiting = cast("send", "--async", "--unlocked", "--from", BOB, STRANGER, "--value", 1)
    assert rpc("eth_getTransactionReceipt", waiting) is None
    assert rpc("txpool_status") == {"pending": "0x1", "queued": "0x0"}
    assert rpc("anvil_dropTransaction", waiting) == waiting
    assert rpc("txpool_status") == {"pending": "0x0", "queued": "0x0"}
    rpc("evm_setAutomine", True)
    rpc("evm_setIntervalMining", 1)
    before, until = cast("block-number"), time.monotonic() + 10
    while cast("block-number") == before:
        assert time.monotonic() < until, "no block came by itself"
    rpc("evm_setIntervalMining", 0)
    rpc("evm_setAutomine", True)


@step("time")
def _():
    before = int(head()["timestamp"], 16)
    rpc("evm_increaseTime", 1000)
    rpc("evm_mine")
    later = int(head()["timestamp"], 16)
    assert before + 900 <= later < before + 1100, (before, later)
    rpc("evm_setNextBlockTimestamp", later + 500)
    rpc("evm_mine")
    assert int(head()["timestamp"], 16) == later + 500


@step("blocks")
def _():
    rpc("anvil_setNextBlockBaseFeePerGas", hex(20 * 10**9))
    rpc("anvil_setCoinbase", STRANGER)
    rpc("evm_mine")
    assert int(cast("base-fee")) == 20 * 10**9
    assert head()["miner"] == STRANGER


@step("edits")
def _():
    rpc("anvil_setBalance", STRANGER, hex(3 * 10**18))
    rpc("anvil_setNonce", STRANGER, "0x4")
    rpc("anvil_setCode", STRANGER, "0x6001")
    rpc("anvil_setStorageAt", STORE, "0x1", "0x" + "00" * 31 + "4d")
    assert (cast("balance", STRANGER), cast("nonce", STRANGER)) == (str(3 * 10**18), "4")
    assert cast("code", STRANGER) == "0x6001"
    assert number(cast("call", STORE, "count()(uint256)")) == 77
    rpc("anvil_setCode", STRANGER, "0x")


@step("impersonation")
def _():
    transfer = ("send", "--json", "--unlocked", "--from", STRANGER, BOB, "--value", 5)
    assert "unknown account" in cast(*transfer, expect=1)
    rpc("anvil_impersonateAccount", STRANGER)
    assert json.loads(cast(*transfer))["from"].lower() == STRANGER
    rpc("anvil_stopImpersonatingAccount", STRANGER)
    assert "unknown account" in cast(*transfer, expect=1)


@step("state")
def _():
    state = rpc("anvil_dumpState")
    rpc("anvil_reset")
    assert (cast("block-number"), cast("balance", STRANGER)) == ("0", "0")
    assert rpc("anvil_loadState", state) is True
    assert number(cast("call", STORE, "values(uint256)(uint256)", 7)) == 42
