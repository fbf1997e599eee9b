// Hardhat 3 on a fork over HTTP, or with its own network as a fork of what serves at that URL (NODE_NETWORK=simulated).

import { setTimeout as sleep } from "node:timers/promises";
import { createHardhatRuntimeEnvironment } from "hardhat/hre";
import plugin from "@nomicfoundation/hardhat-network-helpers";
import { decodeErrorResult, decodeEventLog, decodeFunctionResult, encodeAbiParameters, encodeFunctionData, keccak256, toEventSelector, toHex } from "viem";
import { dealt, ether, facts, pays, receiver, url } from "./facts.mjs";
import { equal, report } from "./report.mjs";

const simulated = process.env.NODE_NETWORK === "simulated";
const chain = simulated
  ? { type: "edr-simulated", chainType: "l1", chainId: 31337, forking: { url, blockNumber: facts.block } }
  : { type: "http", chainType: "l1", url, timeout: 60_000 };
// Hardhat has to be told the rules of old blocks.
const chainDescriptors = { 31337: { name: "development", chainType: "l1", hardforkHistory: { osaka: { blockNumber: 0 } } } };
const hre = await createHardhatRuntimeEnvironment({ plugins: [plugin], networks: { chain }, chainDescriptors });
const { networkHelpers: helpers, provider } = await hre.network.connect("chain");
const request = (method, ...params) => provider.request({ method, params });

const { abi, router, whale, trader } = facts;
const [first, second, third] = facts.tokens;
const number = async () => Number(await request("eth_blockNumber"));
const read = async (to, contract, functionName, args, block = "latest") => {
  const data = await request("eth_call", { to, data: encodeFunctionData({ abi: abi[contract], functionName, args }) }, block);
  return decodeFunctionResult({ abi: abi[contract], functionName, data });
};
const balanceOf = (token, account, block) => read(token, "Token", "balanceOf", [account], block);
const send = async (transaction) => {
  const hash = await request("eth_sendTransaction", transaction);
  let receipt;
  // anvil returns the hash before the block is there.
  while (!(receipt = await request("eth_getTransactionReceipt", hash))) await sleep(20);
  equal(receipt.status, "0x1");
  return receipt;
};
const write = (from, to, contract, functionName, args) => send({ from, to, data: encodeFunctionData({ abi: abi[contract], functionName, args }) });
const swap = (amount, least, deadline = 2n ** 64n) => write(dealt, router, "Router", "swap", [amount, least, first, facts.pools, deadline]);
const slotOf = (account) => keccak256(encodeAbiParameters([{ type: "address" }, { type: "uint256" }], [account, 0n]));

await report(`Hardhat 3${simulated ? ", its own network" : ""}`, {
  // Its own network forks one block as long as it lives.
  ...(!simulated && {
    "reset to an earlier block": async () => {
      await request("hardhat_reset", { forking: { jsonRpcUrl: facts.url, blockNumber: facts.early } });
      equal(await number(), facts.early);
      const had = await balanceOf(third, trader);
      await request("hardhat_reset", { forking: { jsonRpcUrl: facts.url, blockNumber: facts.block } });
      equal(await number(), facts.block);
      return `${had}, then ${await balanceOf(third, trader)}`;
    },
  }),
  "a block, a transaction and its receipt below the fork": async () => {
    const block = await request("eth_getBlockByNumber", toHex(facts.early), true);
    equal(block.hash, facts.earlyHash);
    equal(block.transactions[0].hash, facts.transaction);
    const { from, to, blockNumber } = await request("eth_getTransactionByHash", facts.transaction);
    const receipt = await request("eth_getTransactionReceipt", facts.transaction);
    equal(receipt.blockHash, facts.earlyHash);
    return `${from} ${to} ${blockNumber} ${receipt.status} ${receipt.gasUsed} ${receipt.logs.length}`;
  },
  "calls as of blocks below the fork": async () =>
    `${await balanceOf(third, trader, toHex(facts.early - 1))}, then ${await balanceOf(third, trader, toHex(facts.early))}`,
  "send from a rich account": async () => {
    const before = BigInt(await request("eth_getBalance", receiver, "latest"));
    await helpers.impersonateAccount(whale);
    await send({ from: whale, to: receiver, value: toHex(10n * ether) });
    await write(whale, first, "Token", "transfer", [receiver, 1000n * ether]);
    await helpers.stopImpersonatingAccount(whale);
    equal(BigInt(await request("eth_getBalance", receiver, "latest")) - before, 10n * ether);
    return String(await balanceOf(first, receiver));
  },
  "deal tokens": async () => {
    await helpers.setStorageAt(first, slotOf(dealt), 5000n * ether);
    await helpers.setBalance(dealt, ether);
    return String(await balanceOf(first, dealt));
  },
  "swap through two pools": async () => {
    const reserve = (pool, token) => read(facts.pools[pool], "Pool", "reserves", [token]);
    const expected = pays(pays(100n * ether, await reserve(0, first), await reserve(0, second)), await reserve(1, second), await reserve(1, third));
    await helpers.impersonateAccount(dealt);
    await write(dealt, first, "Token", "approve", [router, 5000n * ether]);
    const { gasUsed } = await swap(100n * ether, expected);
    equal(await balanceOf(third, dealt), expected);
    return `${expected}, gas ${Number(gasUsed)}`;
  },
  "logs from before and after the fork": async () => {
    const topic = toEventSelector(abi.Pool.find(({ name }) => name === "Swapped"));
    const logs = await request("eth_getLogs", { address: facts.pools[0], topics: [topic], fromBlock: "0x0", toBlock: "latest" });
    const received = (log) => decodeEventLog({ abi: abi.Pool, ...log }).args.received;
    return String(logs.map((log) => `${Number(log.blockNumber)}: ${received(log)}`));
  },
  "snapshot and revert": async () => {
    const [block, before] = [await number(), await balanceOf(third, dealt)];
    const snapshot = await helpers.takeSnapshot();
    await swap(7n * ether, 0n);
    const after = await balanceOf(third, dealt);
    await snapshot.restore();
    equal(await balanceOf(third, dealt), before);
    equal(await number(), block);
    return String(after - before);
  },
  "loadFixture": async () => {
    const fixture = async () => {
      await swap(3n * ether, 0n);
      return balanceOf(third, dealt);
    };
    const had = await helpers.loadFixture(fixture);
    await swap(3n * ether, 0n);
    equal(await helpers.loadFixture(fixture), had);
    equal(await balanceOf(third, dealt), had);
    return String(had);
  },
  "time travel": async () => {
    const deadline = BigInt(await helpers.time.latest()) + 3600n;
    await swap(ether, 0n, deadline);
    await helpers.time.increase(86_400);
    equal((await helpers.time.latest()) > deadline, true);
    const data = encodeFunctionData({ abi: abi.Router, functionName: "swap", args: [ether, 0n, first, facts.pools, deadline] });
    try {
      await request("eth_call", { from: dealt, to: router, data }, "latest");
    } catch (error) {
      const reverted = typeof error.data === "string" ? error.data : error.data.data;
      return decodeErrorResult({ abi: abi.Router, data: reverted }).errorName;
    }
    throw new Error("the deadline is over, and the swap succeeded");
  },
});
// Its own network keeps the process alive.
process.exit(0);
