// Tests a development chain with viem.

import assert from "node:assert/strict";
import {
  createPublicClient, createTestClient, createWalletClient, defineKzg, fromRlp, hashTypedData, hexToBytes, http,
  keccak256, encodeAbiParameters, parseEther, parseEventLogs, parseGwei, publicActions, recoverAddress, recoverMessageAddress,
  toHex, walletActions, webSocket, BaseError, ContractFunctionRevertedError,
} from "viem";
import { mnemonicToAccount } from "viem/accounts";
import { anvil } from "viem/chains";
import { checkProof, contract, emptyBlob, nothing, step, url, wsUrl } from "../checks.mjs";

const { abi, bytecode } = contract;
const junk = "test test test test test test test test test test test junk";
const alice = mnemonicToAccount(junk, { addressIndex: 0 });
const bob = mnemonicToAccount(junk, { addressIndex: 1 });
const carol = mnemonicToAccount(junk, { addressIndex: 2 });
const stranger = "0x00000000000000000000000000000000000a11ce";

const node = createTestClient({ chain: anvil, mode: "anvil", transport: http(url), pollingInterval: 50 })
  .extend(publicActions)
  .extend(walletActions);
const wallet = createWalletClient({ account: alice, chain: anvil, transport: http(url) });
const hardhat = createTestClient({ chain: anvil, mode: "hardhat", transport: http(url) });

const mined = async (hash) => {
  const receipt = await node.waitForTransactionReceipt({ hash });
  assert.equal(receipt.status, "success");
  return receipt;
};

/// Sends a transaction of a type and checks it in the block.
const sends = async (type, request, from = wallet) => {
  const hash = await from.sendTransaction({ to: bob.address, value: 1n, type, ...request });
  const receipt = await mined(hash);
  const transaction = await node.getTransaction({ hash });
  assert.equal(transaction.type, type);
  assert.equal(transaction.blockHash, receipt.blockHash);
  assert.equal(receipt.type, type);
  return transaction;
};

let address;
const set = (key, value) => wallet.writeContract({ address, abi, functionName: "set", args: [key, value] });

await step("deploy", async () => {
  assert.equal(await node.getChainId(), 31337);
  const receipt = await mined(await wallet.deployContract({ abi, bytecode }));
  address = receipt.contractAddress;
  assert.ok((await node.getCode({ address })).length > 100);
});

await step("accounts", async () => {
  assert.equal((await node.request({ method: "eth_accounts" })).length, 10);
  // The client has no key here, so that the node signs.
  const hash = await node.sendTransaction({ account: bob.address, to: carol.address, value: 3n });
  assert.equal((await mined(hash)).from, bob.address.toLowerCase());
});

await step("type 0", () => sends("legacy", { gasPrice: parseGwei("5") }));
await step("type 1", async () => {
  const accessList = [{ address, storageKeys: [toHex(1, { size: 32 })] }];
  const sent = await sends("eip2930", { gasPrice: parseGwei("5"), accessList });
  assert.deepEqual(sent.accessList, [{ address: address.toLowerCase(), storageKeys: [toHex(1, { size: 32 })] }]);
});
await step("type 2", async () => {
  const before = await node.getBalance({ address: bob.address });
  await sends("eip1559", {});
  assert.equal(await node.getBalance({ address: bob.address }), before + 1n);
});
await step("type 3", async () => {
  const kzg = defineKzg({ blobToKzgCommitment: () => hexToBytes(nothing), computeBlobKzgProof: () => hexToBytes(nothing) });
  const sent = await sends("eip4844", {
    blobs: [emptyBlob], kzg, maxFeePerBlobGas: parseGwei("1"),
  });
  assert.equal(sent.blobVersionedHashes.length, 1);
});
await step("type 4", async () => {
  const authorization = await carol.signAuthorization({
    address, chainId: 31337, nonce: await node.getTransactionCount({ address: carol.address }),
  });
  await sends("eip7702", { authorizationList: [authorization] });
  const code = await node.getCode({ address: carol.address });
  assert.equal(code, `0xef0100${address.slice(2)}`.toLowerCase());
});

await step("read", async () => {
  await mined(await set(7n, 42n));
  assert.equal(await node.readContract({ address, abi, functionName: "values", args: [7n] }), 42n);
  assert.equal(await node.readContract({ address, abi, functionName: "count" }), 1n);
  assert.equal(BigInt(await node.getStorageAt({ address, slot: "0x1" })), 1n);
});

await step("call", async () => {
  const { request } = await node.simulateContract({ account: alice, address, abi, functionName: "set", args: [1n, 2n] });
  assert.equal(request.functionName, "set");
  const override = [{ address, stateDiff: [{ slot: toHex(1, { size: 32 }), value: toHex(99, { size: 32 }) }] }];
  assert.equal(await node.readContract({ address, abi, functionName: "count", stateOverride: override }), 99n);
});

await step("estimate", async () => {
  const gas = await node.estimateContractGas({ account: alice, address, abi, functionName: "set", args: [8n, 1n] });
  const hash = await wallet.writeContract({ address, abi, functionName: "set", args: [8n, 1n], gas });
  const { gasUsed } = await mined(hash);
  assert.ok(gasUsed <= gas && gas < gasUsed * 2n, `${gas} for ${gasUsed}`);
});

await step("logs", async () => {
  const { blockNumber: first } = await mined(await set(100n, 1n));
  const { blockNumber: last } = await mined(await set(101n, 2n));
  const filter = { address, event: abi.find(({ name }) => name === "Stored"), fromBlock: first, toBlock: last };
  const logs = await node.getLogs(filter);
  assert.deepEqual(logs.map(({ args }) => [args.key, args.value]), [[100n, 1n], [101n, 2n]]);
  assert.equal((await node.getLogs({ ...filter, args: { key: 101n } })).length, 1);
  assert.equal((await node.getLogs({ ...filter, args: { key: 102n } })).length, 0);
  const created = await node.createContractEventFilter({ address, abi, eventName: "Stored" });
  const receipt = await mined(await set(102n, 3n));
  const [parsed] = parseEventLogs({ abi, logs: receipt.logs });
  const changes = await node.getFilterChanges({ filter: created });
  assert.deepEqual(changes.map(({ args }) => args), [parsed.args]);
  assert.ok(await node.uninstallFilter({ filter: created }));
});

await step("subscribe", async () => {
  const transport = webSocket(wsUrl);
  const live = createPublicClient({ chain: anvil, transport });
  const heard = { blocks: [], logs: [], pending: [] };
  const errors = [];
  const onError = (error) => errors.push(error);
  const ends = [
    live.watchBlockNumber({ onBlockNumber: (number) => heard.blocks.push(number), onError }),
    live.watchContractEvent({ address, abi, onLogs: (logs) => heard.logs.push(...logs), onError }),
    live.watchPendingTransactions({ onTransactions: (hashes) => heard.pending.push(...hashes), onError }),
  ];
  assert.ok(await live.getBlockNumber());
  await new Promise((resolve) => setTimeout(resolve, 500));
  const hash = await set(200n, 5n);
  const { blockNumber } = await mined(hash);
  const all = () => heard.blocks.includes(blockNumber) && heard.logs.length > 0 && heard.pending.includes(hash);
  for (let tries = 0; !all() && tries < 200; tries++) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.deepEqual(errors, []);
  assert.ok(heard.blocks.includes(blockNumber), "the block");
  assert.ok(heard.pending.includes(hash), "the pending transaction");
  assert.deepEqual(heard.logs.map(({ args, transactionHash }) => [args.key, transactionHash]), [[200n, hash]]);
  ends.forEach((end) => end());
  (await live.transport.getRpcClient()).close();
});

await step("revert reason", async () => {
  const refusal = async (value) => {
    const error = await node.simulateContract({ account: alice, address, abi, functionName: "set", args: [1n, value] })
      .then(() => assert.fail("it does not revert"), (error) => error);
    assert.ok(error instanceof BaseError, String(error));
    return error.walk((cause) => cause instanceof ContractFunctionRevertedError);
  };
  assert.equal((await refusal(13n)).reason, "unlucky");
  assert.deepEqual((await refusal(2000n)).data, { abiItem: abi.find(({ name }) => name === "TooLarge"), errorName: "TooLarge", args: [2000n, 1000n] });
  await assert.rejects(set(1n, 13n), /unlucky/);
  const hash = await wallet.writeContract({ address, abi, functionName: "set", args: [1n, 13n], gas: 100_000n });
  assert.equal((await node.waitForTransactionReceipt({ hash })).status, "reverted");
});

await step("proof", async () => {
  const block = await node.getBlock();
  const slot = keccak256(encodeAbiParameters([{ type: "uint256" }, { type: "uint256" }], [7n, 0n]));
  const result = await node.getProof({ address, storageKeys: [slot], blockNumber: block.number });
  const tools = { keccak: keccak256, decode: (bytes) => fromRlp(bytes, "hex") };
  checkProof({ ...result, address: address.toLowerCase() }, block.stateRoot, slot, 42n, tools);
});

await step("signatures", async () => {
  const message = "hello";
  const request = (method, ...params) => node.request({ method, params });
  const signed = await request("personal_sign", toHex(message), bob.address);
  assert.equal(await recoverMessageAddress({ message, signature: signed }), bob.address);
  assert.equal(await request("eth_sign", bob.address, toHex(message)), signed);
  const data = {
    domain: { name: "Store", version: "1", chainId: 31337, verifyingContract: address },
    types: { Item: [{ name: "key", type: "uint256" }, { name: "notes", type: "string[]" }], Order: [{ name: "items", type: "Item[]" }, { name: "to", type: "address" }, { name: "low", type: "int8" }] },
    primaryType: "Order",
    message: { items: [{ key: 1n, notes: ["a", "b"] }, { key: 2n, notes: [] }], to: bob.address, low: -5 },
  };
  const signature = await node.signTypedData({ account: bob.address, ...data });
  assert.equal(await recoverAddress({ hash: hashTypedData(data), signature }), bob.address);
  assert.equal(signature, await bob.signTypedData(data));
});

await step("snapshot", async () => {
  const id = await node.snapshot();
  const before = await node.getBlockNumber();
  await mined(await set(300n, 9n));
  await node.revert({ id });
  assert.equal(await node.getBlockNumber({ cacheTime: 0 }), before);
  assert.equal(await node.readContract({ address, abi, functionName: "values", args: [300n] }), 0n);
});

await step("mine", async () => {
  const before = await node.getBlock();
  await node.mine({ blocks: 3, interval: 10 });
  const after = await node.getBlock();
  assert.equal(after.number, before.number + 3n);
  const third = await node.getBlock({ blockNumber: after.number - 1n });
  assert.equal(after.timestamp, third.timestamp + 10n);
  await hardhat.mine({ blocks: 2 });
  assert.equal(await node.getBlockNumber({ cacheTime: 0 }), after.number + 2n);
});

await step("automine", async () => {
  assert.equal(await node.getAutomine(), true);
  await node.setAutomine(false);
  assert.equal(await node.getAutomine(), false);
  const hash = await set(400n, 1n);
  await assert.rejects(node.getTransactionReceipt({ hash }), /could not be found/);
  assert.deepEqual(await node.getTxpoolStatus(), { pending: 1, queued: 0 });
  const content = await node.getTxpoolContent();
  assert.equal(Object.values(content.pending[alice.address])[0].hash, hash);
  await node.dropTransaction({ hash });
  assert.deepEqual(await node.getTxpoolStatus(), { pending: 0, queued: 0 });
  const kept = await set(400n, 2n);
  await node.setAutomine(true);
  await mined(kept);
  await node.setIntervalMining({ interval: 1 });
  assert.equal(await node.getAutomine(), false);
  const { number } = await node.getBlock();
  for (let tries = 0; (await node.getBlock()).number === number && tries < 100; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.ok((await node.getBlock()).number > number, "no block came by itself");
  await node.setIntervalMining({ interval: 0 });
  await node.setAutomine(true);
});

await step("time", async () => {
  const { timestamp } = await node.getBlock();
  await node.increaseTime({ seconds: 1000 });
  await node.mine({ blocks: 1 });
  const later = (await node.getBlock()).timestamp;
  // Mining many blocks per second has moved the chain's time slightly ahead of the clock.
  assert.ok(later >= timestamp + 900n && later < timestamp + 1100n, `${timestamp} to ${later}`);
  await node.setNextBlockTimestamp({ timestamp: later + 500n });
  await node.mine({ blocks: 1 });
  assert.equal((await node.getBlock()).timestamp, later + 500n);
  await node.setBlockTimestampInterval({ interval: 7 });
  await node.mine({ blocks: 2 });
  assert.equal((await node.getBlock()).timestamp, later + 514n);
  await node.removeBlockTimestampInterval();
});

await step("blocks", async () => {
  await node.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei("20") });
  await node.setCoinbase({ address: stranger });
  await node.mine({ blocks: 1 });
  const block = await node.getBlock();
  assert.equal(block.baseFeePerGas, parseGwei("20"));
  assert.equal(block.miner, stranger);
  await node.setBlockGasLimit({ gasLimit: 20_000_000n });
  await node.mine({ blocks: 1 });
  assert.equal((await node.getBlock()).gasLimit, 20_000_000n);
  await node.setBlockGasLimit({ gasLimit: 30_000_000n });
  await node.setLoggingEnabled(true);
  await assert.rejects(node.setRpcUrl("http://example.org"), /does not continue another one/);
  await assert.rejects(node.setMinGasPrice({ gasPrice: 1n }), /EIP-1559/);
});

await step("edits", async () => {
  for (const client of [node, hardhat]) {
    await client.setBalance({ address: stranger, value: parseEther("3") });
    await client.setNonce({ address: stranger, nonce: client === node ? 4 : 5 });
    await client.setCode({ address: stranger, bytecode: client === node ? "0x6001" : "0x" });
    await client.setStorageAt({ address, index: 1, value: toHex(client === node ? 77 : 78, { size: 32 }) });
    assert.equal(await node.getBalance({ address: stranger }), parseEther("3"));
    assert.equal(await node.getTransactionCount({ address: stranger }), client === node ? 4 : 5);
    assert.equal(await node.getCode({ address: stranger }), client === node ? "0x6001" : undefined);
    assert.equal(await node.readContract({ address, abi, functionName: "count" }), client === node ? 77n : 78n);
  }
});

await step("impersonation", async () => {
  const send = () => node.sendTransaction({ account: stranger, to: bob.address, value: 5n });
  await assert.rejects(send(), /unknown account/);
  for (const client of [node, hardhat]) {
    await client.impersonateAccount({ address: stranger });
    assert.equal((await mined(await send())).from, stranger);
    await client.stopImpersonatingAccount({ address: stranger });
    await assert.rejects(send(), /unknown account/);
  }
  const hash = await node.sendUnsignedTransaction({ from: stranger, to: bob.address, value: 5n });
  assert.equal((await mined(hash)).from, stranger);
});

await step("reorganization", async () => {
  const tip = await node.getBlock();
  await node.mine({ blocks: 3 });
  const before = await node.getBlock();
  await node.request({ method: "anvil_reorg", params: [2, [[{ from: alice.address, to: bob.address, value: "0x1" }, 1]]] });
  const after = await node.getBlock();
  assert.equal(after.number, before.number);
  assert.notEqual(after.hash, before.hash);
  assert.equal(after.transactions.length, 1);
  await node.request({ method: "anvil_rollback", params: [3] });
  assert.equal((await node.getBlock()).hash, tip.hash);
});

await step("state", async () => {
  const state = await node.dumpState();
  const balance = await node.getBalance({ address: stranger });
  await node.reset();
  assert.equal(await node.getBlockNumber({ cacheTime: 0 }), 0n);
  assert.equal(await node.getBalance({ address: stranger }), 0n);
  await node.loadState({ state });
  assert.equal(await node.getBalance({ address: stranger }), balance);
  assert.equal(await node.readContract({ address, abi, functionName: "values", args: [7n] }), 42n);
  await node.mine({ blocks: 1 });
});
