"""Reads a block with transactions through the client that OpenAPI Generator makes for Python.

NODE_URL is the URL of the server.
"""

import os

from openapi_client import ApiClient, BlocksApi, CallsApi, Configuration, DevelopmentApi, LogsApi
from openapi_client.models import (
    FilterObject, InputCall, InputImpersonate, InputNewFilter, InputSendTransaction, ParamsTransaction,
)

ALICE = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"

client = ApiClient(Configuration(host=os.environ["NODE_URL"]))
transaction = ParamsTransaction(var_from=ALICE, to=ALICE, value="1")
body = InputSendTransaction.from_dict({"Transaction": {"From": ALICE, "To": ALICE, "Value": "1"}})
development = DevelopmentApi(client)
development.impersonate(InputImpersonate(address=ALICE))
sent = development.send_transaction(body).transaction_hash
blocks = BlocksApi(client)
whole, hashes = (blocks.get_block_by_number("latest", flag).block.transactions for flag in (True, False))
assert [item.hash for item in whole] == [item.hash for item in hashes] == [sent], (whole, hashes)
assert whole[0].var_from == ALICE and hashes[0].var_from is None, (whole, hashes)
assert blocks.get_block_by_number("pending", False).block.number is None
assert CallsApi(client).call(InputCall(transaction=transaction)).data == "0x"
empty = FilterObject(address="", from_block="", to_block="", topics=[])
assert LogsApi(client).new_filter(InputNewFilter(filter_object=empty)).filter_id
print("OpenAPI Generator, python: a block with transactions was read")
