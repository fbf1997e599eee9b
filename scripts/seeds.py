"""Fills a development chain with contracts, logs, reverts, transactions and filters."""

ACCOUNTS = [
    "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
    "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
    "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc",
    "0x90f79bf6eb2c4f870365e785982e1f101e93b906",
]

# An impersonated account.
PUPPET = "0x15d34aaf54267db7d7c367839aaf71a00a2c6a65"

# Stores the word in its call data, logs it with topic 1, and returns it; without call data, returns the stored word.
KEEPER = (
    "0x6027600c60003960276000f3"
    "3615601b57600035806000556000526001602060"
    "00a160206000f35b60005460005260206000f3"
)

# PUSH0, PUSH0, REVERT
REVERTER = "0x5f5ffd"
REVERTER_ADDRESS = "0x00000000000000000000000000000000000000fe"

TOPIC = f"0x{1:064x}"

BLOCKS = 20


def word(number):
    return f"0x{number:064x}"


def seed(server):
    """Fills the chain of `server`. Returns addresses, hashes and filter ids of what it created."""
    server.ask("/dev/impersonate/", {"Address": PUPPET})
    server.ask("/dev/setCode/", {"Address": REVERTER_ADDRESS, "Code": REVERTER})

    def send(**transaction):
        response = server.ask("/dev/sendTransaction/", {"Transaction": {"From": PUPPET, **transaction}})
        return response["TransactionHash"]

    transactions = [send(Data=KEEPER)]
    receipt = server.get(f"/getTransactionReceipt/{transactions[0]}/")["TransactionReceipt"]
    keeper = receipt["ContractAddress"]
    for number in range(BLOCKS):
        transactions.append(send(To=keeper, Data=word(number)))
        transactions.append(send(To=ACCOUNTS[number % len(ACCOUNTS)], Value="1"))
    anything = {"Address": "", "FromBlock": "", "ToBlock": "", "Topics": []}
    logs = [{"FilterObject": {**anything, "Address": keeper}}, {"FilterObject": anything}]
    log_filters = [server.ask("/newFilter/", body)["FilterId"] for body in logs]
    filters = [server.get(f"/{kind}/")["FilterId"] for kind in ("newBlockFilter", "newPendingTransactionFilter")]
    head = int(server.get("/blockNumber/")["BlockNumber"])
    blocks = [server.get(f"/getBlockByNumber/{number}/false/")["Block"]["Hash"] for number in range(head + 1)]
    return {
        "accounts": ACCOUNTS,
        "puppet": PUPPET,
        "keeper": keeper,
        "reverter": REVERTER_ADDRESS,
        "topic": TOPIC,
        "transactions": transactions,
        "blocks": blocks,
        "head": head,
        "log_filters": log_filters,
        "filters": log_filters + filters,
    }
