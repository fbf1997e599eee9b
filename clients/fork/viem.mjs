// viem on a fork.

import {
  createTestClient, encodeAbiParameters, http, keccak256, parseEventLogs, publicActions, toHex, walletActions,
} from "viem";
import { anvil } from "viem/chains";
import { dealt, ether, facts, pays, receiver, url } from "./facts.mjs";
import { equal, report } from "./report.mjs";

const { abi, router, whale, trader } = facts;
const [first, , third] = facts.tokens;
const [firstPool, secondPool] = facts.pools;
const node = createTestClient({ chain: anvil, mode: "anvil", transport: http(url, { timeout: 60_000 }), pollingInterval: 50 })
  .extend(publicActions)
  .extend(walletActions);

const balanceOf = (address, account, blockNumber) =>
  node.readContract({ address, abi: abi.Token, functionName: "balanceOf", args: [account], blockNumber });
const reserve = (address, token) => node.readContract({ address, abi: abi.Pool, functionName: "reserves", args: [token] });
const mined = async (hash) => {
  const receipt = await node.waitForTransactionReceipt({ hash });
  equal(receipt.status, "success");
  return receipt;
};
const write = async (account, address, contract, functionName, args) =>
  mined(await node.writeContract({ account, address, abi: abi[contract], functionName, args }));
const head = () => node.getBlock();
const swap = (amount, least, deadline = 2n ** 64n) => write(dealt, router, "Router", "swap", [amount, least, first, facts.pools, deadline]);
const slotOf = (account) => keccak256(encodeAbiParameters([{ type: "address" }, { type: "uint256" }], [account, 0n]));

await report("viem", {
  "reset to an earlier block": async () => {
    await node.reset({ jsonRpcUrl: facts.url, blockNumber: BigInt(facts.early) });
    equal((await head()).number, facts.early);
    const had = await balanceOf(third, trader);
    await node.reset({ jsonRpcUrl: facts.url, blockNumber: BigInt(facts.block) });
    equal((await head()).number, facts.block);
    return `${had}, then ${await balanceOf(third, trader)}`;
  },
  "a block, a transaction and its receipt below the fork": async () => {
    const block = await node.getBlock({ blockNumber: BigInt(facts.early), includeTransactions: true });
    equal(block.hash, facts.earlyHash);
    equal(block.transactions[0].hash, facts.transaction);
    const { from, to, blockNumber } = await node.getTransaction({ hash: facts.transaction });
    const receipt = await node.getTransactionReceipt({ hash: facts.transaction });
    equal(receipt.blockHash, facts.earlyHash);
    return `${from} ${to} ${blockNumber} ${receipt.status} ${receipt.gasUsed} ${receipt.logs.length}`;
  },
  "calls as of blocks below the fork": async () =>
    `${await balanceOf(third, trader, BigInt(facts.early) - 1n)}, then ${await balanceOf(third, trader, BigInt(facts.early))}`,
  "send from a rich account": async () => {
    const before = await node.getBalance({ address: receiver });
    await node.impersonateAccount({ address: whale });
    await mined(await node.sendTransaction({ account: whale, to: receiver, value: 10n * ether }));
    await write(whale, first, "Token", "transfer", [receiver, 1000n * ether]);
    await node.stopImpersonatingAccount({ address: whale });
    equal((await node.getBalance({ address: receiver })) - before, 10n * ether);
    return String(await balanceOf(first, receiver));
  },
  "deal tokens": async () => {
    await node.setStorageAt({ address: first, index: slotOf(dealt), value: toHex(5000n * ether, { size: 32 }) });
    await node.setBalance({ address: dealt, value: ether });
    return String(await balanceOf(first, dealt));
  },
  "swap through two pools": async () => {
    const [paid, second] = await Promise.all([reserve(firstPool, first), reserve(firstPool, facts.tokens[1])]);
    const [given, out] = await Promise.all([reserve(secondPool, facts.tokens[1]), reserve(secondPool, third)]);
    const expected = pays(pays(100n * ether, paid, second), given, out);
    await node.impersonateAccount({ address: dealt });
    await write(dealt, first, "Token", "approve", [router, 5000n * ether]);
    const { gasUsed, logs } = await swap(100n * ether, expected);
    equal(await balanceOf(third, dealt), expected);
    return `${expected}, gas ${gasUsed}, ${parseEventLogs({ abi: abi.Pool, logs }).length} swaps`;
  },
  "logs from before and after the fork": async () => {
    const logs = await node.getContractEvents({ address: firstPool, abi: abi.Pool, eventName: "Swapped", fromBlock: 0n, toBlock: "latest" });
    const filtered = await node.getContractEvents({
      address: firstPool, abi: abi.Pool, eventName: "Swapped", args: { paid: first }, fromBlock: BigInt(facts.early), toBlock: "latest",
    });
    return `${logs.map(({ args, blockNumber }) => `${blockNumber}: ${args.received}`)}; ${filtered.length}`;
  },
  "snapshot and revert": async () => {
    const [number, before] = [await node.getBlockNumber({ cacheTime: 0 }), await balanceOf(third, dealt)];
    const id = await node.snapshot();
    await swap(7n * ether, 0n);
    const after = await balanceOf(third, dealt);
    await node.revert({ id });
    equal(await balanceOf(third, dealt), before);
    equal(await node.getBlockNumber({ cacheTime: 0 }), number);
    return String(after - before);
  },
  "time travel": async () => {
    const deadline = (await head()).timestamp + 3600n;
    await swap(ether, 0n, deadline);
    await node.increaseTime({ seconds: 86_400 });
    await node.mine({ blocks: 1 });
    equal((await head()).timestamp > deadline, true);
    try {
      const args = [ether, 0n, first, facts.pools, deadline];
      await node.simulateContract({ account: dealt, address: router, abi: abi.Router, functionName: "swap", args });
    } catch (error) {
      return error.walk(({ data }) => data?.errorName).data.errorName;
    }
    throw new Error("the deadline is over, and the swap succeeded");
  },
});
