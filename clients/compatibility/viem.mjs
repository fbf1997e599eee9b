// viem: the test actions in each mode, and watchers over HTTP and WebSocket.

import {
  createPublicClient, createTestClient, createWalletClient, http, parseAbiItem, parseEther, publicActions, testActions, toEventSelector,
  webSocket,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { foundry } from "viem/chains";
import { equal, report, within } from "./report.mjs";

const url = process.env.NODE_RPC_URL;
const OTHER = "0x00000000000000000000000000000000000000bb";
const account = privateKeyToAccount("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// What the tool that a mode is named after has not.
const ABSENT = {
  anvil: [],
  hardhat: ["dumpState", "loadState", "removeBlockTimestampInterval", "setBlockTimestampInterval", "setRpcUrl"],
  ganache: [
    "dropTransaction", "dumpState", "impersonateAccount", "loadState", "removeBlockTimestampInterval", "reset", "setBlockTimestampInterval",
    "setCoinbase", "setLoggingEnabled", "setMinGasPrice", "setNextBlockBaseFeePerGas", "setNonce", "setRpcUrl", "setStorageAt",
    "stopImpersonatingAccount",
  ],
};

// Ends the line of a check with why a call was refused, or fails if it was not.
const refused = async (call) => {
  try {
    await call();
  } catch (error) {
    return `refused: ${String(error.details ?? error.shortMessage).split("\n")[0]}`;
  }
};

for (const mode of ["anvil", "hardhat", "ganache"]) {
  const test = createTestClient({ mode, chain: foundry, transport: http(url) }).extend(publicActions);
  const wallet = createWalletClient({ account, chain: foundry, transport: http(url) });
  const send = (more = {}) => wallet.sendTransaction({ to: OTHER, value: 1n, ...more });
  const number = async () => Number(await test.getBlockNumber({ cacheTime: 0 }));
  const unsigned = { from: OTHER, to: account.address, value: 1n };
  const waiting = async (check) => {
    await test.setAutomine(false);
    try {
      await check(await send());
    } finally {
      await test.mine({ blocks: 1 });
      await test.setAutomine(true);
    }
  };
  const checks = {
    mine: async () => {
      const before = await number();
      await test.mine({ blocks: 3 });
      equal(await number(), before + 3);
    },
    increaseTime: async () => {
      const before = Number((await test.getBlock()).timestamp);
      await test.increaseTime({ seconds: 100 });
      await test.mine({ blocks: 1 });
      within(Number((await test.getBlock()).timestamp), before + 100, before + 103);
    },
    setNextBlockTimestamp: async () => {
      const target = (await test.getBlock()).timestamp + 900n;
      await test.setNextBlockTimestamp({ timestamp: target });
      await test.mine({ blocks: 1 });
      equal((await test.getBlock()).timestamp, target);
    },
    "snapshot, revert": async () => {
      const before = await number();
      const id = await test.snapshot();
      await test.mine({ blocks: 2 });
      await test.revert({ id });
      equal(await number(), before);
    },
    setIntervalMining: async () => {
      const before = await number();
      await test.setIntervalMining({ interval: 1 });
      await sleep(2600);
      await test.setIntervalMining({ interval: 0 });
      await test.setAutomine(true);
      within((await number()) - before, 2, 4);
    },
    setBalance: async () => {
      await test.setBalance({ address: OTHER, value: parseEther("2") });
      equal(await test.getBalance({ address: OTHER }), parseEther("2"));
    },
    setCode: async () => {
      await test.setCode({ address: OTHER, bytecode: "0x6001" });
      equal(await test.getCode({ address: OTHER }), "0x6001");
      await test.setCode({ address: OTHER, bytecode: "0x" });
    },
    setNonce: async () => {
      const nonce = 5 + (await test.getTransactionCount({ address: OTHER }));
      await test.setNonce({ address: OTHER, nonce });
      equal(await test.getTransactionCount({ address: OTHER }), nonce);
    },
    setStorageAt: async () => {
      const value = `0x${"0".repeat(62)}2a`;
      await test.setStorageAt({ address: OTHER, index: 2, value });
      equal(await test.getStorageAt({ address: OTHER, slot: "0x2" }), value);
    },
    setCoinbase: async () => {
      await test.setCoinbase({ address: OTHER });
      await test.mine({ blocks: 1 });
      equal((await test.getBlock()).miner, OTHER);
    },
    setNextBlockBaseFeePerGas: async () => {
      await test.setNextBlockBaseFeePerGas({ baseFeePerGas: 5_000_000_000n });
      await test.mine({ blocks: 1 });
      equal((await test.getBlock()).baseFeePerGas, 5_000_000_000n);
    },
    setBlockGasLimit: async () => {
      await test.setBlockGasLimit({ gasLimit: 35_000_000n });
      await test.mine({ blocks: 1 });
      equal((await test.getBlock()).gasLimit, 35_000_000n);
    },
    "impersonateAccount, stopImpersonatingAccount": async () => {
      await test.setBalance({ address: OTHER, value: parseEther("2") });
      await test.impersonateAccount({ address: OTHER });
      const other = createWalletClient({ account: OTHER, chain: foundry, transport: http(url) });
      await other.sendTransaction({ to: account.address, value: 1n, gas: 21_000n });
      await test.stopImpersonatingAccount({ address: OTHER });
    },
    setAutomine: () => waiting(async (hash) => equal((await test.getTransaction({ hash })).blockNumber, null)),
    getAutomine: async () => equal(await test.getAutomine(), true),
    getTxpoolStatus: () => waiting(async () => equal((await test.getTxpoolStatus()).pending, 1)),
    getTxpoolContent: () => waiting(async () => equal(Object.keys((await test.getTxpoolContent()).pending).length, 1)),
    inspectTxpool: () => waiting(async () => equal(Object.keys((await test.inspectTxpool()).pending).length, 1)),
    dropTransaction: () =>
      waiting(async (hash) => {
        await test.dropTransaction({ hash });
        equal((await test.getTxpoolStatus()).pending, 0);
      }),
    sendUnsignedTransaction: async () => {
      await test.setBalance({ address: OTHER, value: parseEther("2") });
      if (mode === "ganache") return void (await test.sendUnsignedTransaction(unsigned));
      await test.impersonateAccount({ address: OTHER });
      await test.sendUnsignedTransaction(unsigned);
      await test.stopImpersonatingAccount({ address: OTHER });
    },
    setMinGasPrice: () => refused(() => test.setMinGasPrice({ gasPrice: 1n })),
    setRpcUrl: () => refused(() => test.setRpcUrl("http://127.0.0.1:1")),
    setLoggingEnabled: () => test.setLoggingEnabled(true),
    "setBlockTimestampInterval, removeBlockTimestampInterval": async () => {
      await test.setBlockTimestampInterval({ interval: 7 });
      const before = (await test.getBlock()).timestamp;
      await test.mine({ blocks: 1 });
      await test.removeBlockTimestampInterval();
      equal((await test.getBlock()).timestamp, before + 7n);
    },
    "dumpState, loadState": async () => test.loadState({ state: await test.dumpState() }),
    reset: async () => {
      await test.reset();
      equal(await number(), 0);
    },
  };
  for (const call of Object.keys(checks)) {
    if (call.split(", ").every((name) => ABSENT[mode].includes(name))) checks[call] = async () => `not called: not in ${mode}`;
  }
  const called = new Set(Object.keys(checks).flatMap((call) => call.split(", ")));
  for (const name of Object.keys(testActions({ mode })(test)).filter((name) => !called.has(name))) {
    checks[name] = async () => {
      throw new Error("viem.mjs does not call it");
    };
  }
  await report(`viem, mode ${mode}`, checks);
}

// A contract that emits Ping() when it is called.
const PING = [parseAbiItem("event Ping()")];
const EMITTER = `0x6027600c60003960276000f37f${toEventSelector(PING[0]).slice(2)}60006000a100`;

const transports = { HTTP: () => http(url), "WebSocket at /": () => webSocket(url.replace("http", "ws"), { retryCount: 0 }) };
for (const [name, transport] of Object.entries(transports)) {
  const client = createPublicClient({ chain: foundry, transport: transport(), pollingInterval: 100 });
  const test = createTestClient({ mode: "anvil", chain: foundry, transport: http(url) });
  const wallet = createWalletClient({ account, chain: foundry, transport: http(url) });
  const emit = async () => {
    const hash = await wallet.sendTransaction({ data: EMITTER });
    const { contractAddress } = await client.waitForTransactionReceipt({ hash });
    await sleep(800);
    await wallet.sendTransaction({ to: contractAddress });
  };
  const heard = (watch) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error("nothing within 8 s")), 8000);
      const done = () => (clearTimeout(timer), clearInterval(mining), stop(), resolve());
      const stop = watch(done, reject);
      const mining = setInterval(() => test.mine({ blocks: 1 }).catch(reject), 1000);
    });
  await report(`viem, watchers over ${name}`, {
    watchBlocks: () => heard((done, onError) => client.watchBlocks({ onBlock: (block, before) => before && done(), onError, emitOnBegin: true })),
    watchBlockNumber: () => heard((done, onError) => client.watchBlockNumber({ onBlockNumber: (now, before) => before !== undefined && done(), onError, emitOnBegin: true })),
    watchEvent: () =>
      heard((done, onError) => {
        emit().catch(onError);
        return client.watchEvent({ event: PING[0], onLogs: done, onError });
      }),
    watchContractEvent: () =>
      heard((done, onError) => {
        emit().catch(onError);
        return client.watchContractEvent({ abi: PING, eventName: "Ping", onLogs: done, onError });
      }),
    watchPendingTransactions: () =>
      heard((done, onError) => {
        setTimeout(() => wallet.sendTransaction({ to: OTHER, value: 1n }).catch(onError), 800);
        return client.watchPendingTransactions({ onTransactions: done, onError });
      }),
  });
}
process.exit(0);
