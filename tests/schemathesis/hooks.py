"""Puts data of the chain into requests that schemathesis generated, so that many succeed.

Only valid requests are changed, and not all of them. NODE_SEEDS is the path of a file with the server's URL and the contents of its
chain.
"""

import json
import os
import random
import urllib.request
from pathlib import Path

import schemathesis
from eth_account import Account

SEEDS = json.loads(Path(os.environ["NODE_SEEDS"]).read_text())
MNEMONIC = "test test test test test test test test test test test junk"

# Percentage of requests that are changed, by phase.
CHANGED = {"coverage": 60}
CHANGED_OTHERWISE = 94

random = random.Random(SEEDS["seed"])
Account.enable_unaudited_hdwallet_features()
SIGNERS = [Account.from_mnemonic(MNEMONIC, account_path=f"m/44'/60'/0'/0/{index}") for index in range(4)]


def get(path):
    with urllib.request.urlopen(SEEDS["url"] + path) as response:
        return json.load(response)


def post(path, body):
    request = urllib.request.Request(
        SEEDS["url"] + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def address():
    return random.choice([*SEEDS["accounts"], SEEDS["keeper"], SEEDS["puppet"]])


def number():
    height = random.randrange(SEEDS["head"] + 1)
    return random.choice([str(height), hex(height), height])


def block():
    return random.choice([number(), "latest", "earliest", "safe", "finalized", random.choice(SEEDS["blocks"])])


def tag():
    return random.choice([number(), "latest", "earliest", "pending", "safe", "finalized"])


def signed():
    """Returns the bytes of a transaction that the pool accepts."""
    signer = random.choice(SIGNERS)
    transaction = {
        "chainId": 31337,
        "nonce": int(get(f"/getTransactionCount/{signer.address}/pending/")["TransactionCount"]),
        "gas": 100_000,
        "to": bytes.fromhex(SEEDS["keeper"][2:]),
        "value": 0,
        "data": f"0x{random.getrandbits(64):064x}",
    }
    fees = random.choice([
        {"gasPrice": 10**11},
        {"type": 1, "accessList": [], "gasPrice": 10**11},
        {"type": 2, "maxFeePerGas": 10**11, "maxPriorityFeePerGas": 10},
    ])
    return "0x" + signer.sign_transaction({**transaction, **fees}).raw_transaction.hex().removeprefix("0x")


def call(made_up):
    """Returns a call of a contract that keeps gas and data of the generated one if possible."""
    transaction = {"From": address(), "To": random.choice([SEEDS["keeper"], address()])}
    data = made_up.get("Data") or made_up.get("Input")
    if random.random() < 0.2:
        transaction["To"] = SEEDS["reverter"]
    if isinstance(data, str) and random.random() < 0.5:
        transaction["Data"] = data
    elif random.random() < 0.5:
        transaction["Input"] = f"0x{random.getrandbits(32):064x}"
    if random.random() < 0.3:
        transaction |= {"Gas": "200000", "Value": "0", "GasPrice": 0}
    return transaction


def log_filter(made_up):
    first = random.randrange(SEEDS["head"] + 1)
    topics = random.choice([[], [SEEDS["topic"]], [[SEEDS["topic"], None]], [None], made_up.get("Topics") or []])
    return {
        "Address": random.choice([SEEDS["keeper"], "", [SEEDS["keeper"], *SEEDS["accounts"]]]),
        "FromBlock": first,
        "ToBlock": random.choice([str(random.randint(first, SEEDS["head"])), "latest"]),
        "Topics": topics,
    }


def logs(made_up):
    if random.random() < 0.3:
        return {"BlockHash": random.choice(SEEDS["blocks"])}
    return log_filter(made_up)


def fee_history(made_up):
    percentiles = sorted(random.uniform(0, 100) for _ in range(random.randrange(5)))
    return {"BlockCount": random.randint(1, 1024), "NewestBlock": tag(), "RewardPercentiles": percentiles}


def snapshot(made_up):
    return post("/dev/snapshot/", {})


def timestamp(made_up):
    head = get("/getBlockByNumber/latest/false/")["Block"]
    return {"Timestamp": str(int(head["Timestamp"]) + random.randint(50, 100))}


def transaction(made_up):
    more = {key: value for key, value in {"Data": f"0x{random.getrandbits(64):064x}"}.items() if random.random() < 0.5}
    return {"Transaction": {"From": SEEDS["puppet"], "To": random.choice([address(), SEEDS["keeper"]]), **more}}


# Bodies by operation.
BODIES = {
    "getLogs": logs,
    "newFilter": lambda made_up: {"FilterObject": log_filter(made_up.get("FilterObject") or {})},
    "call": lambda made_up: {"Transaction": call(made_up.get("Transaction") or {}), "BlockNumber": block()},
    "estimateGas": lambda made_up: {"Transaction": call(made_up.get("Transaction") or {})},
    "feeHistory": fee_history,
    "getProof": lambda made_up: {**made_up, "Address": address(), "BlockNumber": block()},
    "getStorageAt": lambda made_up: {"Address": address(), "Position": random.randrange(3), "BlockNumber": tag()},
    "sendRawTransaction": lambda made_up: {"Data": signed()},
    # Small times, fees and lengths, so that the chain can continue for long.
    "mine": lambda made_up: {"Blocks": str(random.randint(1, 3)), "Interval": random.choice([None, 1, "12"])},
    "setNextBlockTimestamp": timestamp,
    "increaseTime": lambda made_up: {"Seconds": random.randint(0, 20)},
    "setNextBlockBaseFee": lambda made_up: {"BaseFee": str(random.randrange(10**10))},
    "revert": snapshot,
    "reorganize": lambda made_up: {"Blocks": random.randint(1, 3)},
    "sendTransaction": transaction,
}

# As generated, these would make the chain unusable for other operations.
ALWAYS = {"mine", "setNextBlockTimestamp", "increaseTime", "setNextBlockBaseFee", "revert", "reorganize"}

PARAMETERS = {
    "Address": address,
    "Index": lambda: str(random.randrange(3)),
    "TransactionDetailFlag": lambda: random.choice(["true", "false"]),
}


def parameter(operation, name, made_up):
    if name == "Hash":
        of_block = "Block" in operation or "Uncle" in operation
        return random.choice(SEEDS["blocks"] if of_block else SEEDS["transactions"])
    if name == "BlockNumber":
        by_tag = operation in ("getBlockByNumber", "getTransactionByBlockNumberAndIndex")
        return str(tag() if by_tag else block())
    if name == "FilterId":
        if operation == "uninstallFilter":
            return made_up
        return random.choice(SEEDS["log_filters"] if operation == "getFilterLogs" else SEEDS["filters"])
    return PARAMETERS[name]() if name in PARAMETERS else made_up


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is None or case.meta.generation.mode.value != "positive":
        return
    if case.method.lower() not in ("get", "post"):
        return
    operation = [part for part in case.path.split("/") if part not in ("", "dev")][0]
    share = CHANGED.get(case.meta.phase.name.value, CHANGED_OTHERWISE)
    if operation not in ALWAYS and random.randrange(100) >= share:
        return
    if case.path_parameters:
        for name, made_up in case.path_parameters.items():
            case.path_parameters[name] = parameter(operation, name, made_up)
    if case.query and "BlockNumber" in case.query:
        case.query["BlockNumber"] = str(block())
    if case.query and "cursor" in case.query:
        del case.query["cursor"]
    if operation in BODIES and case.method.lower() == "post":
        made_up = case.body if isinstance(case.body, dict) else {}
        case.body = BODIES[operation](made_up)
