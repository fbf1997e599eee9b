"""web3.py on a fork."""

from functools import partial

from eth_abi import encode
from eth_utils import keccak
from web3 import Web3
from web3.exceptions import ContractCustomError

from steps import DEALT, ETHER, FACTS, RECEIVER, URL, equal, pays, step

step = partial(step, "web3.py")
w3 = Web3(Web3.HTTPProvider(URL, request_kwargs={"timeout": 60}))
checksum = Web3.to_checksum_address
dealt, receiver, whale, trader = map(checksum, (DEALT, RECEIVER, FACTS["whale"], FACTS["trader"]))


def contract(name, address):
    return w3.eth.contract(address=checksum(address), abi=FACTS["abi"][name])


first, second, third = (contract("Token", address) for address in FACTS["tokens"])
pools = [contract("Pool", address) for address in FACTS["pools"]]
router = contract("Router", FACTS["router"])


def rpc(method, *parameters):
    response = w3.provider.make_request(method, list(parameters))
    assert "error" not in response, response
    return response["result"]


def mined(sent):
    receipt = w3.eth.wait_for_transaction_receipt(sent, timeout=30, poll_latency=0.05)
    equal(receipt["status"], 1)
    return receipt


def balance(token, account, block="latest"):
    return token.functions.balanceOf(account).call(block_identifier=block)


def now():
    return w3.eth.get_block("latest")["timestamp"]


def swap(amount, least, deadline=2**64):
    call = router.functions.swap(amount, least, first.address, [pool.address for pool in pools], deadline)
    return mined(call.transact({"from": dealt}))


@step("reset to an earlier block")
def _():
    rpc("anvil_reset", {"forking": {"jsonRpcUrl": FACTS["url"], "blockNumber": FACTS["early"]}})
    equal(w3.eth.block_number, FACTS["early"])
    had = balance(third, trader)
    rpc("anvil_reset", {"forking": {"jsonRpcUrl": FACTS["url"], "blockNumber": FACTS["block"]}})
    equal(w3.eth.block_number, FACTS["block"])
    return f"{had}, then {balance(third, trader)}"


@step("a block, a transaction and its receipt below the fork")
def _():
    block = w3.eth.get_block(FACTS["early"], full_transactions=True)
    equal(block["hash"].to_0x_hex(), FACTS["earlyHash"])
    equal(block["transactions"][0]["hash"].to_0x_hex(), FACTS["transaction"])
    sent = w3.eth.get_transaction(FACTS["transaction"])
    receipt = w3.eth.get_transaction_receipt(FACTS["transaction"])
    equal(receipt["blockHash"].to_0x_hex(), FACTS["earlyHash"])
    return f"{sent['from']} {sent['to']} {sent['blockNumber']} {receipt['status']} {receipt['gasUsed']} {len(receipt['logs'])}"


@step("calls as of blocks below the fork")
def _():
    return f"{balance(third, trader, FACTS['early'] - 1)}, then {balance(third, trader, FACTS['early'])}"


@step("send from a rich account")
def _():
    before = w3.eth.get_balance(receiver)
    rpc("anvil_impersonateAccount", whale)
    mined(w3.eth.send_transaction({"from": whale, "to": receiver, "value": 10 * ETHER}))
    mined(first.functions.transfer(receiver, 1000 * ETHER).transact({"from": whale}))
    rpc("anvil_stopImpersonatingAccount", whale)
    equal(w3.eth.get_balance(receiver) - before, 10 * ETHER)
    return str(balance(first, receiver))


@step("deal tokens")
def _():
    slot = keccak(encode(["address", "uint256"], [dealt, 0]))
    rpc("anvil_setStorageAt", first.address, "0x" + slot.hex(), f"0x{5000 * ETHER:064x}")
    rpc("anvil_setBalance", dealt, hex(ETHER))
    return str(balance(first, dealt))


@step("swap through two pools")
def _():
    reserves = [(pools[0], first), (pools[0], second), (pools[1], second), (pools[1], third)]
    paid, middle, given, out = (pool.functions.reserves(token.address).call() for pool, token in reserves)
    expected = pays(pays(100 * ETHER, paid, middle), given, out)
    rpc("anvil_impersonateAccount", dealt)
    mined(first.functions.approve(router.address, 5000 * ETHER).transact({"from": dealt}))
    receipt = swap(100 * ETHER, expected)
    equal(balance(third, dealt), expected)
    swaps = [event for pool in pools for event in pool.events.Swapped().get_logs(from_block=receipt["blockNumber"])]
    return f"{expected}, gas {receipt['gasUsed']}, {len(swaps)} swaps"


@step("logs from before and after the fork")
def _():
    swaps = pools[0].events.Swapped().get_logs(from_block=0, to_block="latest")
    filtered = pools[0].events.Swapped().get_logs(from_block=FACTS["early"], to_block="latest", argument_filters={"paid": first.address})
    return f"{[(event['blockNumber'], event['args']['received']) for event in swaps]}; {len(filtered)}"


@step("snapshot and revert")
def _():
    number, before = w3.eth.block_number, balance(third, dealt)
    snapshot = rpc("evm_snapshot")
    swap(7 * ETHER, 0)
    after = balance(third, dealt)
    equal(rpc("evm_revert", snapshot), True)
    equal((w3.eth.block_number, balance(third, dealt)), (number, before))
    return str(after - before)


@step("time travel")
def _():
    deadline = now() + 3600
    swap(ETHER, 0, deadline)
    rpc("evm_increaseTime", 86_400)
    rpc("evm_mine")
    equal(now() > deadline, True)
    try:
        swap(ETHER, 0, deadline)
    except ContractCustomError as error:
        equal(str(error.data).startswith("0x" + keccak(text="Expired(uint256,uint256)")[:4].hex()), True)
        return "Expired"
    raise AssertionError("the deadline is over, and the swap succeeded")
