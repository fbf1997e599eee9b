"""Tests a development chain with web3.py."""

import asyncio
import json
import os
import sys
import time
import traceback
from pathlib import Path

import rlp
from eth_abi import encode
from eth_account import Account
from eth_account.messages import encode_defunct, encode_typed_data
from eth_utils import keccak, to_bytes
from web3 import AsyncWeb3, Web3, WebSocketProvider
from web3.exceptions import ContractCustomError, ContractLogicError, TransactionNotFound, Web3RPCError
from web3.utils.subscriptions import LogsSubscription, NewHeadsSubscription, PendingTxSubscription

sys.path.append(str(Path(__file__).parent.parent))
from proofs import prove

URL = os.environ["NODE_RPC_URL"]
CONTRACT = json.loads((Path(__file__).parent.parent / "contract" / "Store.json").read_text())
STRANGER = Web3.to_checksum_address("0x00000000000000000000000000000000000a11ce")

w3 = Web3(Web3.HTTPProvider(URL, request_kwargs={"timeout": 30}))
Account.enable_unaudited_hdwallet_features()
JUNK = "test test test test test test test test test test test junk"
failed = []
alice, bob, carol = (Account.from_mnemonic(JUNK, account_path=f"m/44'/60'/0'/0/{index}") for index in range(3))


def step(name):
    """Runs the body as a step, and reports what came of it. The following steps run in any case."""
    def run(work):
        try:
            work()
        except (Exception, SystemExit) as error:
            traceback.print_exc(file=sys.stdout)
            print(f"failed {name}: {type(error).__name__}: {str(error).splitlines()[:1]}", flush=True)
            failed.append(name)
        else:
            print(f"ok {name}", flush=True)
    return run


def rpc(method, *parameters):
    response = w3.provider.make_request(method, list(parameters))
    assert "error" not in response, response
    return response["result"]


def refused(method, *parameters):
    response = w3.provider.make_request(method, list(parameters))
    assert "error" in response, f"{method} was not refused"
    return response["error"]


def mined(transaction_hash):
    receipt = w3.eth.wait_for_transaction_receipt(transaction_hash, timeout=30, poll_latency=0.05)
    assert receipt["status"] == 1, receipt
    return receipt


def fees():
    return {"maxFeePerGas": Web3.to_wei(50, "gwei"), "maxPriorityFeePerGas": Web3.to_wei(1, "gwei")}


def send(transaction, **more):
    """Signs with alice's key, sends and waits."""
    filled = {"chainId": w3.eth.chain_id, "nonce": w3.eth.get_transaction_count(alice.address), "gas": 300_000, **transaction}
    return mined(w3.eth.send_raw_transaction(alice.sign_transaction(filled, **more).raw_transaction))


def sends(kind, transaction, **more):
    receipt = send({"to": bob.address, "value": 1, **transaction}, **more)
    sent = w3.eth.get_transaction(receipt["transactionHash"])
    assert (receipt["type"], sent["type"]) == (kind, kind), (receipt["type"], sent["type"])
    assert sent["blockHash"] == receipt["blockHash"]
    return sent


store = None


def set_value(key, value, **more):
    return send(store.functions.set(key, value).build_transaction(
        {"from": alice.address, "nonce": w3.eth.get_transaction_count(alice.address), "chainId": 31337, "gas": 300_000, **fees(), **more}
    ))


@step("deploy")
def _():
    global store
    assert w3.eth.chain_id == 31337
    receipt = send({"data": CONTRACT["bytecode"], "gas": 1_000_000, "value": 0, **fees()})
    store = w3.eth.contract(address=receipt["contractAddress"], abi=CONTRACT["abi"])
    assert len(w3.eth.get_code(store.address)) > 50


@step("accounts")
def _():
    assert len(w3.eth.accounts) == 10 and w3.eth.accounts[1] == bob.address
    receipt = mined(w3.eth.send_transaction({"from": bob.address, "to": carol.address, "value": 3}))
    assert receipt["from"] == bob.address


@step("type 0")
def _():
    sends(0, {"gasPrice": Web3.to_wei(50, "gwei")})


@step("type 1")
def _():
    access_list = [{"address": store.address, "storageKeys": ["0x" + "00" * 31 + "01"]}]
    sent = sends(1, {"gasPrice": Web3.to_wei(50, "gwei"), "accessList": access_list, "type": 1})
    assert sent["accessList"][0]["address"] == store.address, sent


@step("type 2")
def _():
    before = w3.eth.get_balance(bob.address)
    sends(2, fees())
    assert w3.eth.get_balance(bob.address) == before + 1


@step("type 3")
def _():
    blob = b"\0" * 131_072
    transaction = {"type": 3, "maxFeePerBlobGas": Web3.to_wei(1, "gwei"), **fees()}
    sent = sends(3, transaction, blobs=[blob])
    assert len(sent["blobVersionedHashes"]) == 1


@step("type 4")
def _():
    authorization = carol.sign_authorization(
        {"chainId": 31337, "address": store.address, "nonce": w3.eth.get_transaction_count(carol.address)}
    )
    sends(4, {"authorizationList": [authorization], **fees()})
    assert w3.eth.get_code(carol.address) == bytes.fromhex("ef0100") + to_bytes(hexstr=store.address)


@step("read")
def _():
    set_value(7, 42)
    assert store.functions.values(7).call() == 42
    assert store.functions.count().call() == 1
    assert int.from_bytes(w3.eth.get_storage_at(store.address, 1)) == 1


@step("call")
def _():
    assert store.functions.set(1, 2).call({"from": alice.address}) == []
    changed = {store.address: {"stateDiff": {"0x" + "00" * 31 + "01": "0x" + "00" * 31 + "63"}}}
    assert store.functions.count().call(state_override=changed) == 99


@step("estimate")
def _():
    gas = store.functions.set(8, 1).estimate_gas({"from": alice.address})
    used = set_value(8, 1, gas=gas)["gasUsed"]
    assert used <= gas < 2 * used, (gas, used)


@step("logs")
def _():
    first = set_value(100, 1)["blockNumber"]
    last = set_value(101, 2)["blockNumber"]
    logs = store.events.Stored().get_logs(from_block=first, to_block=last)
    assert [(log["args"]["key"], log["args"]["value"]) for log in logs] == [(100, 1), (101, 2)], logs
    filtered = store.events.Stored().get_logs(from_block=first, to_block=last, argument_filters={"key": 101})
    assert len(filtered) == 1
    assert not store.events.Stored().get_logs(from_block=first, to_block=last, argument_filters={"key": 102})
    created = w3.eth.filter({"address": store.address})
    receipt = set_value(102, 3)
    assert [log["transactionHash"] for log in created.get_new_entries()] == [receipt["transactionHash"]]
    assert created.get_new_entries() == []
    assert w3.eth.uninstall_filter(created.filter_id)


@step("subscribe")
def _():
    async def follow():
        heard = {"heads": [], "logs": [], "pending": []}

        async def head(context):
            heard["heads"].append(context.result["number"])

        async def log(context):
            heard["logs"].append((context.result["transactionHash"], context.result["topics"][2][-1]))

        async def pending(context):
            heard["pending"].append(context.result)

        async with AsyncWeb3(WebSocketProvider(URL.replace("http", "ws", 1) + "/ws")) as live:
            ids = await live.subscription_manager.subscribe([
                NewHeadsSubscription(handler=head),
                LogsSubscription(address=store.address, handler=log),
                PendingTxSubscription(handler=pending),
            ])
            assert len(ids) == 3
            handling = asyncio.create_task(live.subscription_manager.handle_subscriptions(run_forever=True))
            receipt = await asyncio.to_thread(set_value, 200, 5)
            wanted = receipt["transactionHash"]
            for _ in range(200):
                if receipt["blockNumber"] in heard["heads"] and heard["logs"] and wanted in heard["pending"]:
                    break
                await asyncio.sleep(0.05)
            handling.cancel()
            assert receipt["blockNumber"] in heard["heads"], heard
            assert wanted in heard["pending"], heard
            assert heard["logs"] == [(wanted, 200)], heard
    asyncio.run(asyncio.wait_for(follow(), 30))


@step("revert reason")
def _():
    try:
        store.functions.set(1, 13).call()
        raise SystemExit("it does not revert")
    except ContractCustomError:
        raise
    except ContractLogicError as error:
        assert "unlucky" in str(error), error
    try:
        store.functions.set(1, 2000).call()
        raise SystemExit("it does not revert")
    except ContractCustomError as error:
        selector = keccak(text="TooLarge(uint256,uint256)")[:4]
        assert error.data == "0x" + (selector + encode(["uint256", "uint256"], [2000, 1000])).hex(), error
    sent = w3.eth.send_transaction(
        {"from": bob.address, "to": store.address, "data": store.encode_abi("set", [1, 13]), "gas": 100_000}
    )
    assert w3.eth.wait_for_transaction_receipt(sent, timeout=30)["status"] == 0


@step("proof")
def _():
    block = w3.eth.get_block("latest")
    slot = keccak(encode(["uint256", "uint256"], [7, 0]))
    proof = w3.eth.get_proof(store.address, [int.from_bytes(slot)], block["number"])
    address = to_bytes(hexstr=store.address)
    account = rlp.decode(prove(block["stateRoot"], address, proof["accountProof"]))
    number = lambda value: value.to_bytes((value.bit_length() + 7) // 8)
    assert account == [number(proof["nonce"]), number(proof["balance"]), proof["storageHash"], proof["codeHash"]]
    value = rlp.decode(prove(proof["storageHash"], slot, proof["storageProof"][0]["proof"]))
    assert int.from_bytes(value) == 42
    changed = [*proof["accountProof"][:-1], bytes(proof["accountProof"][-1][:-1]) + b"\xff"]
    try:
        prove(block["stateRoot"], address, changed)
    except AssertionError:
        return
    raise SystemExit("a proof that was changed holds")


@step("signatures")
def _():
    signed = w3.eth.sign(bob.address, text="hello")
    assert Account.recover_message(encode_defunct(text="hello"), signature=signed) == bob.address
    data = {
        "types": {
            "EIP712Domain": [
                {"name": "name", "type": "string"}, {"name": "version", "type": "string"},
                {"name": "chainId", "type": "uint256"}, {"name": "verifyingContract", "type": "address"},
            ],
            "Item": [{"name": "key", "type": "uint256"}, {"name": "notes", "type": "string[]"}],
            "Order": [
                {"name": "items", "type": "Item[]"}, {"name": "to", "type": "address"}, {"name": "low", "type": "int8"},
            ],
        },
        "primaryType": "Order",
        "domain": {"name": "Store", "version": "1", "chainId": 31337, "verifyingContract": store.address},
        "message": {
            "items": [{"key": 1, "notes": ["a", "b"]}, {"key": 2, "notes": []}], "to": bob.address, "low": -5,
        },
    }
    signature = rpc("eth_signTypedData_v4", bob.address, data)
    assert Account.recover_message(encode_typed_data(full_message=data), signature=signature) == bob.address


@step("snapshot")
def _():
    before = w3.eth.block_number
    snapshot = rpc("evm_snapshot")
    set_value(300, 9)
    assert rpc("evm_revert", snapshot) is True
    assert w3.eth.block_number == before
    assert store.functions.values(300).call() == 0


@step("mine")
def _():
    before = w3.eth.get_block("latest")
    rpc("anvil_mine", 3, 10)
    after = w3.eth.get_block("latest")
    assert after["number"] == before["number"] + 3
    assert after["timestamp"] == w3.eth.get_block(after["number"] - 1)["timestamp"] + 10
    rpc("evm_mine")
    assert w3.eth.block_number == after["number"] + 1


@step("automine")
def _():
    rpc("evm_setAutomine", False)
    assert rpc("anvil_getAutomine") is False
    transaction = {"from": bob.address, "to": STRANGER, "value": 1}
    sent = w3.eth.send_transaction(transaction)
    try:
        w3.eth.get_transaction_receipt(sent)
        raise SystemExit("it is mined")
    except TransactionNotFound:
        pass
    assert rpc("txpool_status") == {"pending": "0x1", "queued": "0x0"}
    assert rpc("anvil_dropTransaction", sent.to_0x_hex()) == sent.to_0x_hex()
    kept = w3.eth.send_transaction(transaction)
    rpc("evm_setAutomine", True)
    mined(kept)
    rpc("evm_setIntervalMining", 1)
    number = w3.eth.block_number
    until = time.monotonic() + 10
    while w3.eth.block_number == number:
        assert time.monotonic() < until, "no block came by itself"
        time.sleep(0.05)
    rpc("evm_setIntervalMining", 0)
    rpc("evm_setAutomine", True)


@step("time")
def _():
    before = w3.eth.get_block("latest")["timestamp"]
    rpc("evm_increaseTime", 1000)
    rpc("evm_mine")
    later = w3.eth.get_block("latest")["timestamp"]
    assert before + 900 <= later < before + 1100, (before, later)
    rpc("evm_setNextBlockTimestamp", later + 500)
    rpc("evm_mine")
    assert w3.eth.get_block("latest")["timestamp"] == later + 500


@step("blocks")
def _():
    rpc("anvil_setNextBlockBaseFeePerGas", hex(Web3.to_wei(20, "gwei")))
    rpc("anvil_setCoinbase", STRANGER)
    rpc("evm_mine")
    block = w3.eth.get_block("latest")
    assert (block["baseFeePerGas"], block["miner"]) == (Web3.to_wei(20, "gwei"), STRANGER)


@step("edits")
def _():
    rpc("anvil_setBalance", STRANGER, hex(Web3.to_wei(3, "ether")))
    rpc("anvil_setNonce", STRANGER, "0x4")
    rpc("anvil_setCode", STRANGER, "0x6001")
    rpc("anvil_setStorageAt", store.address, "0x1", "0x" + "00" * 31 + "4d")
    assert w3.eth.get_balance(STRANGER) == Web3.to_wei(3, "ether")
    assert w3.eth.get_transaction_count(STRANGER) == 4
    assert w3.eth.get_code(STRANGER) == b"\x60\x01"
    assert store.functions.count().call() == 77
    rpc("anvil_setCode", STRANGER, "0x")


@step("impersonation")
def _():
    transaction = {"from": STRANGER, "to": bob.address, "value": 5}
    try:
        w3.eth.send_transaction(transaction)
        raise SystemExit("anyone sends in the name of strangers")
    except Web3RPCError as error:
        assert "unknown account" in str(error), error
    rpc("anvil_impersonateAccount", STRANGER)
    assert mined(w3.eth.send_transaction(transaction))["from"] == STRANGER
    rpc("anvil_stopImpersonatingAccount", STRANGER)
    assert refused("eth_sendTransaction", {"from": STRANGER, "to": bob.address})["code"] == -32000


@step("state")
def _():
    state = rpc("anvil_dumpState")
    rpc("anvil_reset")
    assert w3.eth.block_number == 0
    assert w3.eth.get_balance(STRANGER) == 0
    assert rpc("anvil_loadState", state) is True
    assert store.functions.values(7).call() == 42


sys.exit(1 if failed else 0)
