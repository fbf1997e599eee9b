#!/usr/bin/env python3
"""Compare this node with anvil: its responses, and how common tools and its options get along with both.

    scripts/anvil.py [--bin FOLDER] [--work FOLDER] [--all] [PART…]

--list lists the parts. `responses` sends the same signed transactions to both, each in a block with the same timestamp, and then the same
requests. Differences must be listed in the first table of docs/rpc-differences.md by method and path in the response, where `*` matches
anything but a dot and `**` anything; it fails if a difference is not listed, or if a row no longer applies. Block hashes differ, because the
genesis blocks do; they are replaced by the name of their block before. The other parts run tools in their newest versions from npm, in a
temporary folder or --work, which is kept. They fail if something fails here, and print what differs from anvil; docs/compatibility.md
has a summary. Needs anvil 1.7.1 in PATH, and eth-account 0.14.0.
"""

import fnmatch
import json
import os
import re
import shutil
import tempfile
import time
from pathlib import Path

import nodes
from nodes import ROOT, Anvil, Failure, Missing, Server, fetch, message, need, run, wait_for

try:
    import rlp
    from eth_account import Account
    from eth_utils import keccak, to_checksum_address
except ImportError:
    Account = None

DIFFERENCES = ROOT / "docs/rpc-differences.md"
MNEMONIC = "test test test test test test test test test test test junk"
CHAIN_ID = 31337
GENESIS_TIME = 1_800_000_000
GWEI = 10**9
COMMON = ["--mnemonic", MNEMONIC, "--chain-id", str(CHAIN_ID), "--hardfork", "osaka", "--gas-limit", "30000000", "--timestamp", str(GENESIS_TIME)]
NOBODY = "0x00000000000000000000000000000000000000b0"
UNKNOWN = "0x" + "99" * 32
ABSENT = "(absent)"

# Empty call data: adds one to slot 0, logs the sum under topic 0xaa, returns it. Otherwise: reverts with "no".
REVERT = "08c379a0" + "20".zfill(64) + "02".zfill(64) + "6e6f".ljust(64, "0")
COUNTER = "36601857" "5f54600101" "805f55" "5f52" "60aa60205fa1" "60205ff3" "5b606460235f3960645ffd" + REVERT
# Calls the account in the data and the identity precompile; returns how many of the calls succeeded.
CALLER = "5f5f5f5f5f5f355af1" "60205f5f5f60045afa" "015f5260205ff3"
# Sets slots 1 and 2, logs nothing, and self-destructs to the caller if it is called with data.
KEEPER = "36600e57" "6001600155" "6002545000" "5b33ff"
# Returns the slot at the hash of two words, like the balances of a token; slot 1 must be zero.
TOKEN = "600154601757" "604060045f37" "60405f20545f5260205ff3" "5b5f5ffd"


def deploy(code):
    """Returns init code that deploys `code`."""
    return f"0x60{len(code) // 2:02x}8060095f395ff3{code}"


class Signer:
    """An account of the mnemonic that signs transactions with consecutive nonces."""

    def __init__(self, index):
        if Account is None:
            raise Missing("eth-account is not installed: pip install eth-account==0.14.0")
        Account.enable_unaudited_hdwallet_features()
        self.account = Account.from_mnemonic(MNEMONIC, account_path=f"m/44'/60'/0'/0/{index}")
        self.address = self.account.address.lower()
        self.nonce = 0

    def sign(self, blobs=None, **fields):
        fields = {"nonce": self.nonce, "gas": 1_000_000, "value": 0, "data": "0x", **fields}
        if "gasPrice" not in fields:
            fields = {"maxFeePerGas": 20 * GWEI, "maxPriorityFeePerGas": GWEI, "type": 2, **fields}
        if fields["type"] == 0:
            del fields["type"]
        fields["chainId"] = CHAIN_ID
        fields["to"] = to_checksum_address(fields["to"]) if "to" in fields else ""
        self.nonce += 1
        return "0x" + self.account.sign_transaction(fields, blobs=blobs).raw_transaction.hex()

    def authorize(self, address, nonce):
        authorization = {"chainId": CHAIN_ID, "address": address, "nonce": nonce}
        return self.account.sign_authorization(authorization)


def created(sender, nonce):
    """Returns the address of a contract."""
    return "0x" + keccak(rlp.encode([bytes.fromhex(sender[2:]), nonce]))[12:].hex()


class Chain:
    """The transactions, one per block, and the contracts and hashes that they produce."""

    def __init__(self):
        alice, bob, carol = self.signers = [Signer(index) for index in range(3)]
        self.counter, self.caller, self.keeper = [created(alice.address, nonce) for nonce in range(3)]
        self.token = created(carol.address, 1)
        word = self.counter[2:].zfill(64)
        slot = {"address": to_checksum_address(self.counter), "storageKeys": ["0x" + "00" * 32]}
        blob = b"\x00" * (4096 * 32)
        self.transactions = [
            alice.sign(data=deploy(COUNTER)), alice.sign(data=deploy(CALLER)), alice.sign(data=deploy(KEEPER)),
            # Types 0 to 4.
            bob.sign(type=0, gasPrice=20 * GWEI, to=NOBODY, value=7, gas=21_000),
            bob.sign(type=1, gasPrice=20 * GWEI, to=self.counter, accessList=[slot]), bob.sign(to=self.counter),
            bob.sign(blobs=[blob], type=3, to=self.counter, maxFeePerBlobGas=10 * GWEI),
            bob.sign(type=4, to=carol.address, authorizationList=[carol.authorize(self.counter, 0)]),
            # Nested calls, storage, a revert, out of gas, a self-destruct.
            alice.sign(to=self.caller, data="0x" + word), alice.sign(to=self.keeper), alice.sign(to=self.counter, data="0x01", gas=100_000),
            alice.sign(to=self.counter, gas=21_300), alice.sign(to=self.keeper, data="0x01"), alice.sign(to=self.caller, data="0x" + word, value=5),
            # The authorization used its first nonce.
            carol.sign(nonce=1, data=deploy(TOKEN)),
        ]

    def grow(self, server):
        """Sends each transaction in a block of its own. Returns their hashes."""
        hashes = []
        # Hashes that follow from the genesis blocks differ.
        server.rpc("anvil_setNextBlockBaseFeePerGas", hex(GWEI))
        for index, transaction in enumerate(self.transactions):
            server.rpc("evm_setNextBlockTimestamp", hex(GENESIS_TIME + 12 * (index + 1)))
            hashes.append(server.rpc("eth_sendRawTransaction", transaction))
            # anvil responds before the block is mined.
            wait_for("a receipt", lambda: server.rpc("eth_getTransactionReceipt", hashes[-1]))
        return hashes


TRACERS = [
    {}, {"enableMemory": True, "enableReturnData": True}, {"disableStack": True, "disableStorage": True, "limit": 5},
    *({"tracer": f"{name}Tracer"} for name in ("call", "prestate", "4byte", "noop")),
    {"tracer": "callTracer", "tracerConfig": {"withLog": True}}, {"tracer": "callTracer", "tracerConfig": {"onlyTopCall": True}},
    {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}}, {"tracer": "flatCallTracer", "tracerConfig": {"convertParityErrors": True}},
]


def questions(chain, hashes, blocks):
    """Yields the methods and parameters that both servers get. `blocks` are the block hashes of the server."""
    alice, bob, carol = [signer.address for signer in chain.signers]
    head = len(hashes)
    numbers = [hex(number) for number in (1, 5, 7, head)]
    asked = [("web3_sha3", "0x68656c6c6f"), ("web3_clientVersion",), ("net_version",), ("net_listening",),
             ("net_peerCount",), ("eth_chainId",), ("eth_blockNumber",), ("eth_syncing",), ("eth_gasPrice",),
             ("eth_maxPriorityFeePerGas",), ("eth_blobBaseFee",), ("eth_accounts",), ("eth_coinbase",),
             ("eth_mining",), ("eth_hashrate",), ("eth_config",), ("eth_capabilities",), ("eth_protocolVersion",),
             ("anvil_getAutomine",), ("anvil_getGenesisTime",), ("txpool_status",), ("txpool_content",), ("txpool_inspect",), ("rpc_modules",),
             ("eth_feeHistory", "0x4", "latest", [25, 75]), ("eth_feeHistory", hex(head), hex(head), []),
             ("eth_newBlockFilter",), ("eth_newFilter", {}), ("eth_newPendingTransactionFilter",)]
    for account in (alice, carol, chain.counter, chain.keeper, NOBODY):
        for block in ("latest", "earliest", hex(5), {"blockHash": blocks[6]}):
            asked += [("eth_getBalance", account, block), ("eth_getTransactionCount", account, block),
                      ("eth_getCode", account, block), ("eth_getStorageAt", account, "0x0", block),
                      ("eth_getAccount", account, block), ("eth_getAccountInfo", account, block)]
        asked += [("eth_getProof", account, ["0x0", "0x1"], "latest"),
                  ("eth_getProof", account, ["0x" + "00" * 32, "0x" + "11" * 32], "latest"),
                  ("eth_getStorageValues", {account: ["0x" + "00" * 32]}, "latest")]
    for number in ("earliest", "latest", "safe", "finalized", "pending", *numbers):
        asked += [("eth_getBlockByNumber", number, full) for full in (False, True)]
        asked += [("eth_getBlockTransactionCountByNumber", number), ("eth_getUncleCountByBlockNumber", number),
                  ("eth_getTransactionByBlockNumberAndIndex", number, "0x0"), ("eth_getBlockReceipts", number),
                  ("eth_getRawTransactionByBlockNumberAndIndex", number, "0x0"),
                  ("eth_getUncleByBlockNumberAndIndex", number, "0x0"), ("debug_getRawHeader", number),
                  ("debug_getRawBlock", number), ("debug_getRawReceipts", number)]
    for block in (blocks[1], blocks[5], UNKNOWN):
        asked += [("eth_getBlockByHash", block, full) for full in (False, True)]
        asked += [("eth_getBlockTransactionCountByHash", block), ("eth_getUncleCountByBlockHash", block),
                  ("eth_getTransactionByBlockHashAndIndex", block, "0x0"), ("eth_getLogs", {"blockHash": block}),
                  ("eth_getRawTransactionByBlockHashAndIndex", block, "0x0"), ("debug_traceBlockByHash", block, {"tracer": "callTracer"})]
    for transaction in (*hashes, UNKNOWN):
        asked += [("eth_getTransactionByHash", transaction), ("eth_getTransactionReceipt", transaction),
                  ("eth_getRawTransactionByHash", transaction), ("debug_getRawTransaction", transaction)]
        asked += [("debug_traceTransaction", transaction, options) for options in TRACERS]
        asked.append(("trace_transaction", transaction))
    asked += [("trace_block", hex(number)) for number in range(head + 1)]
    asked += [("trace_block", "latest"), ("trace_block", "pending"), ("trace_block", "0x1000")]
    asked += [("eth_getTransactionBySenderAndNonce", sender, hex(nonce)) for sender in (alice, bob) for nonce in (0, 4, 99)]
    asked += [("erigon_getHeaderByNumber", number) for number in ("0x5", "latest", "0x1000")]
    asked += [("debug_codeByHash", hash) for hash in ("0x" + keccak(hexstr="0x" + COUNTER).hex(), UNKNOWN)]
    asked += [("debug_traceBlockByNumber", "0x6"), ("debug_traceBlockByNumber", "0x0"),
              ("debug_traceTransaction", hashes[0], {"tracer": "nobodysTracer"})]
    everything = {"fromBlock": "0x0", "toBlock": "latest"}
    topic = "0x" + "aa".zfill(64)
    asked += [("eth_getLogs", logs) for logs in (
        everything, {}, {**everything, "address": chain.counter}, {**everything, "topics": [topic]},
        {**everything, "topics": [None, topic]}, {**everything, "address": [NOBODY]},
        {"fromBlock": "0x6", "toBlock": "0x5"}, {"fromBlock": "0x1", "toBlock": "0x1000"})]
    word = "0x" + chain.counter[2:].zfill(64)
    calls = [
        {"to": chain.counter}, {"from": alice, "to": chain.counter, "gas": "0x186a0"},
        {"to": chain.counter, "data": "0x01"}, {"to": chain.caller, "input": word}, {"from": bob, "to": NOBODY, "value": "0x1"},
        {"from": NOBODY, "to": bob, "value": "0xde0b6b3a7640000"}, {"data": deploy(COUNTER)}, {"data": "0xfe"},
        {"to": chain.counter, "gas": "0x5300"}, {"to": chain.counter, "gas": "0x1"},
        {"from": alice, "to": chain.counter, "maxFeePerGas": hex(20 * GWEI), "maxPriorityFeePerGas": "0x1"},
        {"from": alice, "to": chain.counter, "gasPrice": hex(20 * GWEI), "type": "0x0"},
        {"from": alice, "to": chain.counter, "gasPrice": "0x1"}, {"to": "0x0000000000000000000000000000000000000004", "data": "0x1234"},
    ]
    for call in calls:
        asked += [("eth_call", call, "latest"), ("eth_call", call), ("eth_estimateGas", call),
                  ("eth_createAccessList", call, "latest"), ("debug_traceCall", call, "latest", {"tracer": "callTracer"}),
                  ("debug_traceCall", call, "latest", {"tracer": "prestateTracer"}), ("debug_traceCall", call, "latest")]
    overrides = {chain.counter: {"stateDiff": {"0x" + "00" * 32: "0x" + "ff".zfill(64)}}, NOBODY: {"balance": "0x7"}}
    asked += [("eth_call", {"to": chain.counter}, "latest", overrides),
              ("eth_call", {"to": chain.counter}, "latest", {}, {"number": "0x63"}), ("eth_estimateGas", {"to": chain.counter}, "latest", overrides),
              ("debug_traceCall", {"to": chain.counter}, "latest", {"tracer": "callTracer", "stateOverrides": overrides}),
              ("eth_simulateV1", {"blockStateCalls": [{"calls": [{"from": alice, "to": chain.counter}]}]}, "latest"),
              ("eth_sign", alice, "0x68656c6c6f"), ("personal_sign", "0x68656c6c6f", alice)]
    asked += [("eth_fillTransaction", fields) for fields in (
        {"from": alice, "to": chain.counter}, {"from": bob, "to": NOBODY, "value": "0x1", "gasPrice": hex(20 * GWEI)},
        {"from": alice, "data": deploy(COUNTER), "nonce": "0x63", "gas": "0x186a0"},
        {"from": alice, "to": NOBODY, "accessList": [], "gasPrice": hex(20 * GWEI)},
        {"from": alice, "to": NOBODY, "maxFeePerGas": hex(20 * GWEI), "maxPriorityFeePerGas": "0x1"},
        {"from": alice, "to": chain.counter, "data": "0x01"}, {"from": NOBODY, "to": bob, "value": "0xde0b6b3a7640000"})]
    # Invalid requests.
    asked += [("eth_getBalance",), ("eth_getBalance", alice, "latest", "more"), ("eth_getBalance", "0x12", "latest"),
              ("eth_getBalance", alice, "0x1000"), ("eth_getBalance", alice, "12"), ("eth_getBlockByNumber", "0x1000", False),
              ("eth_call", {"to": chain.counter}, {"blockHash": UNKNOWN}), ("eth_sendRawTransaction", "0x1234"),
              ("eth_sendRawTransaction", chain.transactions[0]), ("eth_nothing",), ("eth_getLogs", {"fromBlock": "x"}),
              ("eth_getTransactionByHash", "0x12"), ("eth_getFilterChanges", "0xffff"), ("eth_uninstallFilter", "0xffff")]
    return asked


def controls(chain):
    """Yields the requests that then control and read both chains, in order. `SNAPSHOT` stands for the result of the first."""
    alice, bob, _ = [signer.address for signer in chain.signers]
    word = "0x" + "7".zfill(64)
    later = GENESIS_TIME + 1_000
    balance_of = "0x70a08231" + NOBODY[2:].zfill(64)
    allowance = "0xdd62ed3e" + alice[2:].zfill(64) + bob[2:].zfill(64)
    transfer = {"from": NOBODY, "to": bob, "value": "0x5", "gas": "0x5208", "maxFeePerGas": hex(20 * GWEI), "maxPriorityFeePerGas": hex(GWEI)}
    return [
        ("evm_snapshot",), ("anvil_setBalance", NOBODY, hex(10**18)), ("eth_getBalance", NOBODY, "latest"),
        ("anvil_setNonce", NOBODY, "0x9"), ("eth_getTransactionCount", NOBODY, "latest"),
        ("anvil_setStorageAt", chain.keeper, word, word), ("eth_getStorageAt", chain.keeper, word, "latest"),
        ("hardhat_setCode", "0x00000000000000000000000000000000000000b1", "0x6001"),
        ("eth_getCode", "0x00000000000000000000000000000000000000b1", "latest"),
        ("anvil_dealERC20", NOBODY, chain.token, "0x4d"), ("eth_call", {"to": chain.token, "data": balance_of}),
        ("anvil_setERC20Allowance", alice, bob, chain.token, "0x5"),
        ("eth_call", {"to": chain.token, "data": allowance}), ("eth_getStorageAt", chain.token, "0x1", "latest"),
        ("evm_setNextBlockTimestamp", hex(later)), ("evm_mine",), ("eth_getBlockByNumber", "latest", False),
        ("anvil_impersonateAccount", NOBODY), ("evm_setNextBlockTimestamp", hex(later + 12)),
        ("evm_setAutomine", False), ("eth_sendTransaction", transfer), ("txpool_status",), ("evm_setAutomine", True),
        ("evm_mine",), ("eth_getBlockTransactionCountByNumber", "latest"), ("debug_traceBlockByNumber", "latest", {"tracer": "callTracer"}),
        ("debug_traceBlockByNumber", "latest", {"tracer": "prestateTracer"}),
        ("anvil_stopImpersonatingAccount", NOBODY), ("eth_sendTransaction", transfer),
        ("anvil_setNextBlockBaseFeePerGas", hex(3 * GWEI)), ("evm_setNextBlockTimestamp", hex(later + 100)),
        ("anvil_mine", "0x3", "0xa"), ("eth_feeHistory", "0x5", "latest", []), ("eth_getBlockByNumber", "latest", True),
        ("evm_revert", "SNAPSHOT"), ("eth_blockNumber",), ("eth_getBalance", NOBODY, "latest"), ("evm_revert", "SNAPSHOT"),
    ]


def named(value, names):
    """Returns the value with block hashes replaced by block names."""
    if isinstance(value, dict):
        return {key: named(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [named(item, names) for item in value]
    return names.get(value, value) if isinstance(value, str) else value


def differences(path, ours, theirs):
    """Yields the paths at which two responses differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            yield from differences(f"{path}.{key}", ours.get(key, ABSENT), theirs.get(key, ABSENT))
    elif isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            yield f"{path}.length".removeprefix("."), len(ours), len(theirs)
        for index, (our, their) in enumerate(zip(ours, theirs)):
            yield from differences(f"{path}[{index}]", our, their)
    elif ours != theirs:
        yield path.removeprefix("."), ours, theirs


def compared(response):
    """Returns the compared part of a response: its result, or code and data of its error."""
    if "error" in response:
        return {"error": {"code": response["error"].get("code"), "data": response["error"].get("data")}}
    return {"result": response.get("result")}


def listed():
    """Returns the listed differences, methods and paths, each with a count of 0."""
    rows = {}
    for line in DIFFERENCES.read_text().splitlines():
        cells = re.match(r"\| `([^`]+)` \| `([^`]+)` \|", line)
        if cells:
            rows[cells.groups()] = 0
    if not rows:
        raise Failure(f"{DIFFERENCES} lists nothing")
    return rows


def short(value):
    text = json.dumps(value)
    return text if len(text) < 160 else text[:157] + "..."


def matching(rows, method, path):
    """Returns the row that lists a difference, or None."""
    for row in rows:
        methods, places = row
        pattern = re.escape(places).replace(r"\*\*", ".*").replace(r"\*", "[^.]*")
        if fnmatch.fnmatchcase(method, methods) and re.fullmatch(pattern, path):
            return row
    return None


def ask(server, method, parameters):
    return json.loads(fetch(server.url, body=json.dumps(message(method, *parameters)).encode())[1])


def responses(options):
    """all JSON-RPC responses on the same chain, beside docs/rpc-differences.md"""
    rows = listed()
    # anvil uses the block's gas limit for calls without one.
    with (Server(options.server, "dev", "--bare", "--log", "error", *COMMON, "--gas-cap", "30000000") as node,
          Anvil(*COMMON, "--steps-tracing") as anvil):
        servers, chain = (node, anvil), Chain()
        ours, theirs = [chain.grow(server) for server in servers]
        nodes.expect("hashes of the transactions", ours, theirs)
        hashes = [[server.rpc("eth_getBlockByNumber", hex(number), False)["hash"] for number in range(len(ours) + 1)] for server in servers]
        names = [{hash: f"the hash of block {number}" for number, hash in enumerate(of_server)} for of_server in hashes]
        asked = [questions(chain, ours, of_server) + controls(chain) for of_server in hashes]
        methods, equal, met, unlisted, snapshots = set(), 0, 0, 0, [None, None]
        for (method, *our_parameters), (_, *their_parameters) in zip(*asked):
            parameters = [[snapshot if value == "SNAPSHOT" else value for value in of_server]
                          for of_server, snapshot in zip((our_parameters, their_parameters), snapshots)]
            for _ in range(20):
                responses = [ask(server, method, of_server) for server, of_server in zip(servers, parameters)]
                our, their = (named(compared(response), of_server) for response, of_server in zip(responses, names))
                # The timestamp of the pending block is the machine's time.
                found = [place for place in differences("", our, their) if not ("pending" in our_parameters and place[0] == "result.timestamp")]
                # anvil updates its fee history some time after the block.
                if method != "eth_feeHistory" or all(matching(rows, method, path) for path, *_ in found):
                    break
                time.sleep(0.1)
            if method == "evm_snapshot":
                snapshots = [response.get("result") for response in responses]
            here, there = (response.get("error", {}).get("code") == -32601 for response in responses)
            if here or there:
                if here and not there and method not in methods:
                    print(f"  only anvil has {method}")
                methods.add(method)
                continue
            methods.add(method)
            equal += not found
            for path, our, their in found:
                row = matching(rows, method, path)
                met, unlisted = met + bool(row), unlisted + (row is None)
                if row:
                    rows[row] += 1
                if row is None or options.all:
                    print(f"  {'listed ' if row else 'DIFFERS'} {method}{short(our_parameters)}: {path}\n        here {short(our)}\n"
                          f"        there {short(their)}")
    for row in (row for row, count in rows.items() if count == 0):
        nodes.check(False, f"not met: {' '.join(row)}")
    nodes.check(not unlisted, f"{len(methods)} methods, {len(asked[0])} requests: {equal} responses are equal, {met} differences are listed, "
                              f"{unlisted} are not")


CHECKS = ROOT / "clients/compatibility"
# For each part: packages, and the programs to run.
TOOLS = {
    "libraries": (["viem", "ethers"], [["node", "errors.mjs"], ["node", "viem.mjs"]]),
    "hardhat2": (["hardhat@2", "@nomicfoundation/hardhat-network-helpers@1", "ethers"], [["node", "hardhat2.cjs"]]),
    "hardhat3": (["node@22", "hardhat@3", "@nomicfoundation/hardhat-network-helpers@3"], [["node_modules/.bin/node", "hardhat3.mjs"]]),
}

def install(options, name, packages):
    """Returns a folder with packages of npm and the programs of clients/compatibility."""
    folder = options.work / name
    shutil.copytree(CHECKS, folder, dirs_exist_ok=True)
    npm_install(folder, packages, "module" if name == "hardhat3" else "commonjs")
    return folder


def npm_install(folder, packages, kind="module"):
    """Installs packages of npm in a folder, unless this was done before."""
    need("npm", "node")
    if not (folder / "package.json").exists():
        (folder / "package.json").write_text(json.dumps({"private": True, "type": kind}))
        environment = {**os.environ, "PATH": f"{folder / 'node_modules/.bin'}{os.pathsep}{os.environ['PATH']}"}
        # A Node.js of its own comes first: npm leaves out optional packages that do not fit the one that it runs with.
        for wave in filter(None, ([name for name in packages if name.startswith("node@")], packages)):
            run("npm", "install", "--no-audit", "--no-fund", "--silent", *wave, cwd=folder, env=environment)


def beside(options, find):
    """Has `find(server)` return results by tool and call, of this node and of anvil. Prints what differs, and fails if something fails here."""
    with Server(options.server, "dev", "--data-dir", ":memory:") as server, Anvil() as anvil:
        compare_results(find(server), find(anvil))


def compare_results(ours, theirs):
    for call, result in ours.items():
        if (there := theirs.get(call, "absent")) != result:
            print(f"  {': '.join(call)}: here {result}; anvil {there}")
    failed = [f"{': '.join(call)}: {result}" for call, result in ours.items() if result.startswith("fails")]
    nodes.check(not failed, f"{len(ours)} calls, {sum(theirs.get(call) == result for call, result in ours.items())} as with anvil{', '.join(['', *failed])}")


def tool(name):
    """Returns the part that runs a tool."""
    packages, commands = TOOLS[name]

    def play(options):
        folder = install(options, name, packages)

        def find(server, command):
            output = run(*command, cwd=folder, env={**os.environ, "NODE_RPC_URL": server.url}, timeout=300)
            lines = [json.loads(line) for line in output.splitlines() if line.startswith('{"tool"')]
            if not lines:
                raise Failure(f"{name} has tried nothing")
            return {(line["tool"], line["call"]): line["result"] for line in lines}
        for command in commands:
            beside(options, lambda server: find(server, command))
    play.__doc__ = f"calls of {' and '.join(packages)}"
    return play


PARTS = {"responses": responses, **{name: tool(name) for name in TOOLS}}


def play(options):
    """Runs the parts with a folder for packages."""
    given = options.work
    with tempfile.TemporaryDirectory() as temporary:
        options.work = (given or Path(temporary)).resolve()
        for name in options.parts:
            print(f"{name}:", flush=True)
            PARTS[name](options)


def arguments(parser):
    parser.add_argument("--work", type=Path, help="where to install the tools; it is kept")
    parser.add_argument("--all", action="store_true", help="print listed differences as well")


if __name__ == "__main__":
    nodes.main(__doc__, PARTS, arguments=arguments, together=play)
