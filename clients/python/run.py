"""Calls every operation of a development chain through the generated client, and checks the responses.

NODE_URL is the URL of the server, NODE_OPENAPI the document that the client was generated from.
"""

import importlib
import inspect
import json
import os
import pkgutil
import re
from pathlib import Path

from node_client import Client, api, models

URL = os.environ.get("NODE_URL", "http://127.0.0.1:8545")
DOCUMENT = json.loads(Path(os.environ.get("NODE_OPENAPI", "../../docs/openapi.json")).read_text())

ALICE = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
BOB = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
STRANGER = "0x00000000000000000000000000000000000000aa"
TOPIC = f"0x{1:064x}"
# Stores the word in its call data, logs it with topic 1, and returns it.
KEEPER = (
    "0x6027600c60003960276000f3"
    "3615601b57600035806000556000526001602060"
    "00a160206000f35b60005460005260206000f3"
)

client = Client(base_url=URL)
called = set()


def operations():
    """Returns the modules of all operations, by name."""
    found = {}
    for group in pkgutil.iter_modules(api.__path__):
        folder = importlib.import_module(f"{api.__name__}.{group.name}")
        for module in pkgutil.iter_modules(folder.__path__):
            found[module.name] = importlib.import_module(f"{folder.__name__}.{module.name}")
    return found


OPERATIONS = operations()


def ask(operation, **arguments):
    """Returns the response as the generated client decodes it."""
    called.add(operation)
    return OPERATIONS[operation].sync_detailed(client=client, **arguments)


def ok(operation, **arguments):
    """Calls an operation and returns the decoded response, which must be a 200."""
    response = ask(operation, **arguments)
    assert response.status_code == 200, f"{operation}: {response.status_code} {response.content!r}"
    assert response.parsed is not None, operation
    return response.parsed


def post(operation, **properties):
    """Like `ok`, with a body of these properties."""
    return ok(operation, body=input_of(operation).from_dict(properties))


def input_of(operation):
    """Returns the generated model of an operation's body."""
    return getattr(models, "Input" + "".join(part.capitalize() for part in operation.split("_")))


def word(number):
    return f"0x{number:064x}"


def latest():
    return ok("get_block_by_number", block_number="latest", transaction_detail_flag=False).block


def development():
    snapshot = post("snapshot")
    assert post("revert", SnapshotId=snapshot.snapshot_id).result is True
    assert post("set_balance", Address=STRANGER, Balance="5").result is True
    assert post("set_nonce", Address=STRANGER, Nonce="3").result is True
    assert post("set_code", Address=STRANGER, Code="0x00").result is True
    assert post("set_storage", Address=STRANGER, Position="0x1", Value="9").result is True
    head = latest()
    assert post("set_next_block_timestamp", Timestamp=str(int(head.timestamp) + 60)).result is True
    assert post("set_next_block_base_fee", BaseFee="1000000000").result is True
    mined = post("mine", Blocks="2")
    assert post("reorganize", Blocks="1").removed == [mined.block_hash]
    assert post("impersonate", Address=BOB).result is True
    created = post("send_transaction", Transaction={"From": BOB, "Data": KEEPER})
    keeper = ok("get_transaction_receipt", hash_=created.transaction_hash).transaction_receipt.contract_address
    sent = post("send_transaction", Transaction={"From": BOB, "To": keeper, "Data": word(42)})
    assert post("stop_impersonating", Address=BOB).result is True
    return keeper, sent.transaction_hash, latest().hash_


def pool():
    example = DOCUMENT["paths"]["/sendRawTransaction/"]["post"]
    sent = post("send_raw_transaction", **example["requestBody"]["content"]["application/json"]["example"])
    expected = example["responses"]["200"]["content"]["application/json"]["example"]
    assert sent.transaction_hash == expected["TransactionHash"]
    assert [transaction.hash_ for transaction in ok("pool_content").queued] == [sent.transaction_hash]
    assert post("drop_transaction", TransactionHash=sent.transaction_hash).result is True


def state(keeper):
    assert post("get_storage_at", Address=keeper, Position="0").value == word(42)
    proof = post("get_proof", Address=keeper, StorageKeys=["0x0"])
    assert proof.storage_proof[0].value == word(42)
    account = ok("get_account", address=keeper, block_number="latest")
    assert account.storage_root == proof.storage_hash
    assert ok("get_balance", address=STRANGER, block_number="latest").balance == "5"
    assert ok("get_code", address=STRANGER).bytecode == "0x00"
    assert ok("get_transaction_count", address=STRANGER, block_number="pending").transaction_count == "3"


def calls(keeper):
    call = {"From": ALICE, "To": keeper, "Data": word(7)}
    assert post("call", Transaction=call, BlockNumber="latest").data == word(7)
    balance = {ALICE: {"Balance": "1000000000000000000"}}
    assert int(post("estimate_gas", Transaction=call, Object=balance).estimated_gas) > 21_000
    broken = ask("call", body=models.InputCall.from_dict({"Transaction": {"Data": "0x5f5ffd"}}))
    assert broken.status_code == 422
    assert isinstance(broken.parsed, models.ErrorModel)
    assert broken.parsed.type_.endswith("/problems/execution-reverted")


def blocks(block):
    whole = ok("get_block_by_number", block_number="latest", transaction_detail_flag=True).block
    assert whole.hash_ == block and len(whole.transactions) == 1
    short = ok("get_block_by_number", block_number="latest", transaction_detail_flag=False).block
    assert short.hash_ == block
    assert ok("get_block_by_hash", hash_=block, transaction_detail_flag=True).block == whole
    assert ok("get_block_by_hash", hash_=block, transaction_detail_flag=False).block == short
    assert len(ok("get_block_receipts", block_number="latest").transaction_receipts[0].logs) == 1
    assert ok("get_header", block_number=block).header.hash_ == block
    assert ok("get_raw_header", block_number=block).data.startswith("0xf9")
    assert ok("get_raw_block", block_number=block).data.startswith("0xf9")
    assert len(ok("get_raw_receipts", block_number=block).receipts) == 1
    assert ok("get_block_transaction_count_by_hash", hash_=block).transaction_count == "1"
    assert ok("get_block_transaction_count_by_number", block_number="latest").transaction_count == "1"
    assert ok("get_uncle_count_by_block_hash", hash_=block).uncle_count == "0"
    assert ok("get_uncle_count_by_block_number", block_number="latest").uncle_count == "0"


def transactions(sent, block):
    found = ok("get_transaction_by_hash", hash_=sent).transaction
    assert found.block_hash == block
    assert ok("get_transaction_by_block_hash_and_index", hash_=block, index="0").transaction == found
    assert ok("get_transaction_by_block_number_and_index", block_number="latest", index="0").transaction == found
    assert ok("get_transaction_extras", hash_=sent).blob_versioned_hashes is None
    assert ok("get_raw_transaction", hash_=sent).data.startswith("0x02")
    assert ok("get_transaction_status", hash_=sent).status.value == "mined"


def logs(keeper):
    wanted = {"Address": keeper, "FromBlock": "0", "ToBlock": "latest", "Topics": [TOPIC]}
    found = ok("get_logs", body=models.InputGetLogs.from_dict(wanted), prefer="page").logs
    assert [log.data for log in found] == [word(42)]
    log_filter = post("new_filter", FilterObject=wanted).filter_id
    made = [
        log_filter,
        post("new_block_filter").filter_id,
        ok("new_block_filter_by_get").filter_id,
        ok("new_pending_transaction_filter").filter_id,
        ok("new_pending_transaction_filter_by_get").filter_id,
    ]
    for name in made:
        assert ok("get_filter_changes", filter_id=name).result == []
    assert ok("get_filter_logs", filter_id=log_filter).logs == found
    assert ok("uninstall_filter", filter_id=log_filter).result is True


def events():
    """Reads one event. The stream does not end, and the client's own call would wait for its end."""
    called.add("events")
    request = OPERATIONS["events"]._get_kwargs(stream=models.EventsStream.BLOCKS, from_block="1")
    with client.get_httpx_client().stream(**request) as response:
        assert response.status_code == 200, response.status_code
        lines = (line for line in response.iter_lines() if line.startswith("data:"))
        assert re.fullmatch(r'data: ?"0x[0-9a-f]{64}"', next(lines))


def chain():
    assert int(ok("block_number").block_number) >= 4
    assert ok("chain_id").chain_id == "31337"
    assert int(ok("gas_price").gas_price) > 0
    assert int(ok("max_priority_fee_per_gas").max_priority_fee_per_gas) >= 0
    assert int(ok("blob_base_fee").base_fee) >= 1
    assert ok("syncing").sync_status is None
    assert ok("client_version").client_version.startswith("anvil/ethnode/")
    assert len(post("fee_history", BlockCount="2", RewardPercentiles=[50]).base_fee_per_gas) == 3


def server():
    assert ok("health").status.value == "ok"
    assert ok("ready").status.value == "ok"
    schema = ok("schemas", name=models.SchemasName.OUTPUT_CALL)
    assert schema.additional_properties["title"] == "Output_call"
    assert "Remedy" in ok("problems", slug=models.ProblemsSlug.BLOCK_NOT_FOUND)
    assert set(ok("openapi").additional_properties["paths"]) == set(DOCUMENT["paths"])


def others():
    """Calls the operations that were not called yet with the parameters of their examples. The chain has other blocks than
    the examples, so an operation with a path that names something may not find it."""
    for path, item in DOCUMENT["paths"].items():
        for method, described in item.items():
            operation = next(name for name in OPERATIONS if name.replace("_", "") == described["operationId"].lower())
            if operation in called:
                continue
            examples = {parameter["name"].lower(): parameter["example"] for parameter in described.get("parameters", [])}
            names = {name.replace("_", ""): name for name in inspect.signature(OPERATIONS[operation].sync_detailed).parameters}
            arguments = {names[name]: example for name, example in examples.items()}
            if "body" in names:
                body = described["requestBody"]["content"]["application/json"]["example"]
                arguments["body"] = input_of(operation).from_dict(body)
            response = ask(operation, **arguments)
            expected = (200, 404) if "{" in path else (200,)
            assert response.status_code in expected, f"{method} {path}: {response.status_code} {response.content!r}"
            assert response.parsed is not None, operation


def main():
    keeper, sent, block = development()
    pool()
    state(keeper)
    calls(keeper)
    blocks(block)
    transactions(sent, block)
    logs(keeper)
    events()
    chain()
    server()
    others()
    described = sum(len(item) for item in DOCUMENT["paths"].values())
    assert len(OPERATIONS) == described, f"{len(OPERATIONS)} operations were generated, {described} are described"
    print(f"python: {described} operations were called")


if __name__ == "__main__":
    main()
