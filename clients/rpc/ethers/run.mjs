// Tests a development chain with ethers.

import assert from "node:assert/strict";
import {
  AbiCoder, Contract, ContractFactory, HDNodeWallet, JsonRpcProvider, Mnemonic, NonceManager, WebSocketProvider, decodeRlp,
  keccak256, parseEther, parseUnits, toBeHex, verifyMessage, verifyTypedData,
} from "ethers";
import { checkProof, contract, emptyBlob, nothing, step, url, wsUrl } from "../checks.mjs";

const { abi, bytecode } = contract;
const mnemonic = Mnemonic.fromPhrase("test test test test test test test test test test test junk");
// Without this the client would reuse responses for a quarter of a second.
const provider = new JsonRpcProvider(url, undefined, { cacheTimeout: -1, pollingInterval: 50 });
const [aliceKey, bobKey, carolKey] = [0, 1, 2].map((index) =>
  HDNodeWallet.fromMnemonic(mnemonic, `m/44'/60'/0'/0/${index}`).connect(provider));
const alice = new NonceManager(aliceKey);
const stranger = "0x00000000000000000000000000000000000a11ce";
const rpc = (method, ...params) => provider.send(method, params);

let store;

/// Sends a transaction of a type and checks it in the block.
const sends = async (type, request) => {
  const sent = await alice.sendTransaction({ to: bobKey.address, value: 1n, type, ...request });
  const receipt = await sent.wait();
  assert.equal(receipt.status, 1);
  assert.equal(receipt.type, type);
  const transaction = await provider.getTransaction(sent.hash);
  assert.equal(transaction.type, type);
  assert.equal(transaction.blockHash, receipt.blockHash);
  return transaction;
};

await step("deploy", async () => {
  assert.equal((await provider.getNetwork()).chainId, 31337n);
  store = await new ContractFactory(abi, bytecode, alice).deploy();
  await store.waitForDeployment();
  assert.ok((await provider.getCode(store.target)).length > 100);
});

await step("accounts", async () => {
  const accounts = await provider.listAccounts();
  assert.equal(accounts.length, 10);
  const sent = await (await provider.getSigner(bobKey.address)).sendTransaction({ to: carolKey.address, value: 3n });
  assert.equal((await sent.wait()).from, bobKey.address);
});

await step("type 0", () => sends(0, { gasPrice: parseUnits("5", "gwei") }));
await step("type 1", async () => {
  const accessList = [{ address: store.target, storageKeys: [toBeHex(1, 32)] }];
  const sent = await sends(1, { gasPrice: parseUnits("5", "gwei"), accessList });
  assert.deepEqual(sent.accessList, accessList);
});
await step("type 2", async () => {
  const before = await provider.getBalance(bobKey.address);
  await sends(2, {});
  assert.equal(await provider.getBalance(bobKey.address), before + 1n);
});
await step("type 3", async () => {
  const kzg = { blobToKzgCommitment: () => nothing, computeBlobKzgProof: () => nothing };
  const sent = await sends(3, { blobs: [emptyBlob], kzg, maxFeePerBlobGas: parseUnits("1", "gwei") });
  assert.equal(sent.blobVersionedHashes.length, 1);
});
await step("type 4", async () => {
  const authorization = await carolKey.authorize({ address: store.target, nonce: await carolKey.getNonce() });
  await sends(4, { authorizationList: [authorization] });
  assert.equal(await provider.getCode(carolKey.address), `0xef0100${store.target.slice(2)}`.toLowerCase());
});

await step("read", async () => {
  await (await store.set(7, 42)).wait();
  assert.equal(await store.values(7), 42n);
  assert.equal(await store.count(), 1n);
  assert.equal(BigInt(await provider.getStorage(store.target, 1)), 1n);
});

await step("call", async () => {
  assert.deepEqual([...await store.set.staticCallResult(1, 2)], []);
  const { data } = await store.count.populateTransaction();
  const result = await rpc("eth_call", { to: store.target, data }, "latest", {
    [store.target]: { stateDiff: { [toBeHex(1, 32)]: toBeHex(99, 32) } },
  });
  assert.equal(BigInt(result), 99n);
});

await step("estimate", async () => {
  const gasLimit = await store.set.estimateGas(8, 1);
  const { gasUsed, status } = await (await store.set(8, 1, { gasLimit })).wait();
  assert.equal(status, 1);
  assert.ok(gasUsed <= gasLimit && gasLimit < gasUsed * 2n, `${gasLimit} for ${gasUsed}`);
});

await step("logs", async () => {
  const { blockNumber: first } = await (await store.set(100, 1)).wait();
  const { blockNumber: last } = await (await store.set(101, 2)).wait();
  const all = await store.queryFilter(store.filters.Stored(), first, last);
  assert.deepEqual(all.map(({ args }) => [args.key, args.value]), [[100n, 1n], [101n, 2n]]);
  assert.equal((await store.queryFilter(store.filters.Stored(null, 101), first, last)).length, 1);
  assert.equal((await store.queryFilter(store.filters.Stored(null, 102), first, last)).length, 0);
  const filter = await rpc("eth_newFilter", { address: store.target });
  const receipt = await (await store.set(102, 3)).wait();
  const changes = await rpc("eth_getFilterChanges", filter);
  assert.deepEqual(changes.map(({ transactionHash }) => transactionHash), [receipt.hash]);
  assert.deepEqual(await rpc("eth_getFilterChanges", filter), []);
  assert.equal(await rpc("eth_uninstallFilter", filter), true);
});

await step("subscribe", async () => {
  const live = new WebSocketProvider(wsUrl);
  const heard = { blocks: [], logs: [], pending: [] };
  await live.on("block", (number) => heard.blocks.push(number));
  await live.on("pending", (hash) => heard.pending.push(hash));
  const watched = new Contract(store.target, abi, live);
  await watched.on("Stored", (who, key, value, event) => heard.logs.push([who, key, value, event.log.transactionHash]));
  assert.ok(await live.getBlockNumber());
  await new Promise((resolve) => setTimeout(resolve, 500));
  const { hash, blockNumber } = await (await store.set(200, 5)).wait();
  const all = () => heard.blocks.includes(blockNumber) && heard.pending.includes(hash) && heard.logs.length > 0;
  for (let tries = 0; !all() && tries < 200; tries++) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.ok(heard.blocks.includes(blockNumber), "the block");
  assert.ok(heard.pending.includes(hash), "the pending transaction");
  assert.deepEqual(heard.logs, [[aliceKey.address, 200n, 5n, hash]]);
  await watched.removeAllListeners();
  await live.destroy();
});

await step("revert reason", async () => {
  await assert.rejects(store.set.staticCall(1, 13), ({ code, reason }) => code === "CALL_EXCEPTION" && reason === "unlucky");
  await assert.rejects(store.set.staticCall(1, 2000), ({ revert }) =>
    revert.name === "TooLarge" && revert.args[0] === 2000n && revert.args[1] === 1000n);
  const nonce = await aliceKey.getNonce();
  await assert.rejects(store.connect(aliceKey).set(1, 13, { nonce }), ({ reason }) => reason === "unlucky");
  const sent = await store.connect(aliceKey).set(1, 13, { nonce, gasLimit: 100_000 });
  await assert.rejects(sent.wait(), ({ receipt }) => receipt.status === 0);
  alice.reset();
});

await step("proof", async () => {
  const block = await rpc("eth_getBlockByNumber", "latest", false);
  const slot = keccak256(AbiCoder.defaultAbiCoder().encode(["uint256", "uint256"], [7, 0]));
  const result = await rpc("eth_getProof", store.target, [slot], block.number);
  checkProof(result, block.stateRoot, slot, 42n, { keccak: keccak256, decode: decodeRlp });
});

await step("signatures", async () => {
  const signer = await provider.getSigner(bobKey.address);
  assert.equal(verifyMessage("hello", await signer.signMessage("hello")), bobKey.address);
  assert.equal(verifyMessage("hello", await signer._legacySignMessage("hello")), bobKey.address);
  const domain = { name: "Store", version: "1", chainId: 31337, verifyingContract: store.target };
  const types = {
    Order: [{ name: "items", type: "Item[]" }, { name: "to", type: "address" }, { name: "low", type: "int8" }],
    Item: [{ name: "key", type: "uint256" }, { name: "notes", type: "string[]" }],
  };
  const message = { items: [{ key: 1, notes: ["a", "b"] }, { key: 2, notes: [] }], to: bobKey.address, low: -5 };
  const signature = await signer.signTypedData(domain, types, message);
  assert.equal(verifyTypedData(domain, types, message, signature), bobKey.address);
  assert.equal(signature, await bobKey.signTypedData(domain, types, message));
});

await step("snapshot", async () => {
  const before = await provider.getBlockNumber();
  const id = await rpc("evm_snapshot");
  await (await store.set(300, 9)).wait();
  assert.equal(await rpc("evm_revert", id), true);
  assert.equal(await rpc("evm_revert", id), false);
  alice.reset();
  assert.equal(Number(await rpc("eth_blockNumber")), before);
  assert.equal(await store.values(300), 0n);
});

const head = () => rpc("eth_getBlockByNumber", "latest", false);

await step("mine", async () => {
  const before = await head();
  await rpc("hardhat_mine", "0x3", "0xa");
  const after = await head();
  assert.equal(Number(after.number), Number(before.number) + 3);
  const third = await rpc("eth_getBlockByNumber", toBeHex(Number(after.number) - 1).replace(/^0x0+/, "0x"), false);
  assert.equal(Number(after.timestamp), Number(third.timestamp) + 10);
  await rpc("evm_mine", { blocks: 2 });
  assert.equal(Number((await head()).number), Number(after.number) + 2);
});

await step("automine", async () => {
  await rpc("evm_setAutomine", false);
  assert.equal(await rpc("hardhat_getAutomine"), false);
  const { hash } = await store.set(400, 1);
  assert.equal(await provider.getTransactionReceipt(hash), null);
  assert.deepEqual(await rpc("txpool_status"), { pending: "0x1", queued: "0x0" });
  assert.equal(await rpc("hardhat_dropTransaction", hash), true);
  assert.deepEqual(await rpc("txpool_status"), { pending: "0x0", queued: "0x0" });
  alice.reset();
  const kept = await store.set(400, 2);
  await rpc("evm_setAutomine", true);
  assert.equal((await kept.wait()).status, 1);
  await rpc("evm_setIntervalMining", 1);
  const { number } = await head();
  for (let tries = 0; (await head()).number === number && tries < 100; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.ok(Number((await head()).number) > Number(number), "no block came by itself");
  await rpc("evm_setIntervalMining", 0);
  await rpc("evm_setAutomine", true);
});

await step("time", async () => {
  const timestamp = Number((await head()).timestamp);
  await rpc("evm_increaseTime", 1000);
  await rpc("evm_mine");
  const later = Number((await head()).timestamp);
  assert.ok(later >= timestamp + 900 && later < timestamp + 1100, `${timestamp} to ${later}`);
  await rpc("evm_setNextBlockTimestamp", later + 500);
  await rpc("evm_mine");
  assert.equal(Number((await head()).timestamp), later + 500);
  await rpc("evm_mine", later + 600);
  assert.equal(Number((await head()).timestamp), later + 600);
});

await step("blocks", async () => {
  await rpc("hardhat_setNextBlockBaseFeePerGas", toBeHex(parseUnits("20", "gwei")));
  await rpc("hardhat_setCoinbase", stranger);
  await rpc("hardhat_setPrevRandao", toBeHex(5, 32));
  await rpc("evm_mine");
  const block = await head();
  assert.equal(BigInt(block.baseFeePerGas), parseUnits("20", "gwei"));
  assert.equal(block.miner, stranger);
  assert.equal(BigInt(block.mixHash), 5n);
});

await step("edits", async () => {
  await rpc("hardhat_setBalance", stranger, toBeHex(parseEther("3")));
  await rpc("hardhat_setNonce", stranger, "0x4");
  await rpc("hardhat_setStorageAt", store.target, "0x1", toBeHex(77, 32));
  assert.equal(await provider.getBalance(stranger), parseEther("3"));
  assert.equal(await provider.getTransactionCount(stranger), 4);
  assert.equal(await store.count(), 77n);
  await rpc("hardhat_setCode", stranger, "0x6001");
  assert.equal(await provider.getCode(stranger), "0x6001");
  await rpc("hardhat_setCode", stranger, "0x");
});

await step("impersonation", async () => {
  await rpc("hardhat_impersonateAccount", stranger);
  assert.ok((await rpc("eth_accounts")).includes(stranger));
  const sent = await (await provider.getSigner(stranger)).sendTransaction({ to: bobKey.address, value: 5n });
  assert.equal((await sent.wait()).from.toLowerCase(), stranger);
  await rpc("hardhat_stopImpersonatingAccount", stranger);
  await assert.rejects(rpc("eth_sendTransaction", { from: stranger, to: bobKey.address }), /unknown account/);
});

await step("state", async () => {
  const state = await rpc("anvil_dumpState");
  await rpc("hardhat_reset");
  assert.equal((await head()).number, "0x0");
  assert.equal(await provider.getBalance(stranger), 0n);
  assert.equal(await rpc("anvil_loadState", state), true);
  assert.equal(await store.values(7), 42n);
});

provider.destroy();
