"""Fills a development chain with contracts, logs, reverts, transactions and filters."""

ACCOUNTS = [
    "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
    "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc", "0x90f79bf6eb2c4f870365e785982e1f101e93b906",
]
# An impersonated account.
PUPPET = "0x15d34aaf54267db7d7c367839aaf71a00a2c6a65"
# Stores the word in its call data, logs it with topic 1, and returns it; without call data, returns the stored word.
KEEPER = "0x6027600c60003960276000f33615601b57600035806000556000526001602060" + "00a160206000f35b60005460005260206000f3"
# PUSH0, PUSH0, REVERT
REVERTER, REVERTER_ADDRESS = "0x5f5ffd", "0x00000000000000000000000000000000000000fe"
BLOCKS = 20


def seed(server):
    """Fills the chain of `server`. Returns addresses, hashes and filter ids of what it created."""
    server.rpc("anvil_impersonateAccount", PUPPET)
    server.rpc("anvil_setCode", REVERTER_ADDRESS, REVERTER)

    def send(**transaction):
        return server.rpc("eth_sendTransaction", {"from": PUPPET, **transaction})

    transactions = [send(data=KEEPER)]
    keeper = server.rpc("eth_getTransactionReceipt", transactions[0])["contractAddress"]
    for number in range(BLOCKS):
        transactions.append(send(to=keeper, data=f"0x{number:064x}"))
        transactions.append(send(to=ACCOUNTS[number % len(ACCOUNTS)], value="0x1"))
    log_filters = [server.rpc("eth_newFilter", logs) for logs in ({"address": keeper}, {})]
    head = int(server.rpc("eth_blockNumber"), 16)
    return {
        "accounts": ACCOUNTS, "puppet": PUPPET, "keeper": keeper, "reverter": REVERTER_ADDRESS, "topic": f"0x{1:064x}",
        "transactions": transactions, "blocks": [server.rpc("eth_getBlockByNumber", hex(number), False)["hash"] for number in range(head + 1)],
        "head": head, "log_filters": log_filters,
        "filters": [*log_filters, server.rpc("eth_newBlockFilter"), server.rpc("eth_newPendingTransactionFilter")],
    }
