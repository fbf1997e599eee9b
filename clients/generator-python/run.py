"""Calls the nine operations of the interface description through the client that OpenAPI Generator makes for Python.

NODE_URL is the URL of the server.
"""

import os

from openapi_client import ApiClient, Configuration, DevelopmentApi, InterfaceApi
from openapi_client.exceptions import UnprocessableEntityException
from openapi_client.models import (
    FilterObject, InputCall, InputEstimateGas, InputFeeHistory, InputGetLogs, InputGetProof, InputGetStorageAt, InputImpersonate,
    InputNewFilter, InputSendRawTransaction, InputSendTransaction, ParamsTransaction,
)

ALICE = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"

client = ApiClient(Configuration(host=os.environ["NODE_URL"]))
node = InterfaceApi(client)
body = InputSendTransaction.from_dict({"Transaction": {"From": ALICE, "To": ALICE, "Value": "1"}})
development = DevelopmentApi(client)
development.impersonate(InputImpersonate(address=ALICE))
sent = development.send_transaction(body).transaction_hash
whole, hashes = (node.get_block_by_number("latest", flag).block.transactions for flag in (True, False))
assert [item.hash for item in whole] == [item.hash for item in hashes] == [sent], (whole, hashes)
assert whole[0].var_from == ALICE and hashes[0].var_from is None, (whole, hashes)
assert node.get_block_by_number("pending", False).block.number is None

transaction = ParamsTransaction(var_from=ALICE, to=ALICE, value="1")
assert node.call(InputCall(transaction=transaction)).data == "0x"
assert node.estimate_gas(InputEstimateGas(transaction=transaction)).estimated_gas == "21000"
assert node.fee_history(InputFeeHistory(block_count="1", reward_percentiles=[50])).oldest_block == "1"
assert node.get_proof(InputGetProof(address=ALICE, storage_keys=["0x0"])).nonce == "1"
assert int(node.get_storage_at(InputGetStorageAt(address=ALICE, position="0")).value, 16) == 0
assert node.get_logs(InputGetLogs(from_block="0")).logs == []
empty = FilterObject(address="", from_block="", to_block="", topics=[])
assert node.new_filter(InputNewFilter(filter_object=empty)).filter_id
try:
    node.send_raw_transaction(InputSendRawTransaction(data="0x00"))
    raise AssertionError("the transaction was accepted")
except UnprocessableEntityException as refused:
    assert refused.data.type.endswith("/problems/transaction-rejected"), refused
print("OpenAPI Generator, python: the nine operations were called")
