// ethers on a fork.

import { AbiCoder, Contract, JsonRpcProvider, keccak256, toBeHex } from "ethers";
import { dealt, ether, facts, pays, receiver, url } from "./facts.mjs";
import { equal, report } from "./report.mjs";

const { abi, router, whale, trader } = facts;
// Without this the client would reuse responses for a quarter of a second.
const provider = new JsonRpcProvider(url, undefined, { cacheTimeout: -1, pollingInterval: 50 });
const rpc = (method, ...params) => provider.send(method, params);
const [first, second, third] = facts.tokens.map((address) => new Contract(address, abi.Token, provider));
const pools = facts.pools.map((address) => new Contract(address, abi.Pool, provider));
const slotOf = (account) => keccak256(AbiCoder.defaultAbiCoder().encode(["address", "uint256"], [account, 0]));
const mined = async (sent) => (await sent).wait();
const swapper = async () => new Contract(router, abi.Router, await provider.getSigner(dealt));
const swap = async (amount, least, deadline = 2n ** 64n) =>
  mined((await swapper()).swap(amount, least, first.target, facts.pools, deadline));

await report("ethers", {
  "reset to an earlier block": async () => {
    await rpc("hardhat_reset", { forking: { jsonRpcUrl: facts.url, blockNumber: facts.early } });
    equal(await provider.getBlockNumber(), facts.early);
    const had = await third.balanceOf(trader);
    await rpc("hardhat_reset", { forking: { jsonRpcUrl: facts.url, blockNumber: facts.block } });
    equal(await provider.getBlockNumber(), facts.block);
    return `${had}, then ${await third.balanceOf(trader)}`;
  },
  "a block, a transaction and its receipt below the fork": async () => {
    const block = await provider.getBlock(facts.early, true);
    equal(block.hash, facts.earlyHash);
    equal(block.prefetchedTransactions[0].hash, facts.transaction);
    const { from, to, blockNumber } = await provider.getTransaction(facts.transaction);
    const receipt = await provider.getTransactionReceipt(facts.transaction);
    equal(receipt.blockHash, facts.earlyHash);
    return `${from} ${to} ${blockNumber} ${receipt.status} ${receipt.gasUsed} ${receipt.logs.length}`;
  },
  "calls as of blocks below the fork": async () => {
    const asOf = (blockTag) => third.balanceOf(trader, { blockTag });
    return `${await asOf(facts.early - 1)}, then ${await asOf(facts.early)}`;
  },
  "send from a rich account": async () => {
    const before = await provider.getBalance(receiver);
    await rpc("anvil_impersonateAccount", whale);
    const account = await provider.getSigner(whale);
    await mined(account.sendTransaction({ to: receiver, value: 10n * ether }));
    await mined(first.connect(account).transfer(receiver, 1000n * ether));
    await rpc("anvil_stopImpersonatingAccount", whale);
    equal((await provider.getBalance(receiver)) - before, 10n * ether);
    return String(await first.balanceOf(receiver));
  },
  "deal tokens": async () => {
    await rpc("hardhat_setStorageAt", first.target, slotOf(dealt), toBeHex(5000n * ether, 32));
    await rpc("hardhat_setBalance", dealt, toBeHex(ether));
    return String(await first.balanceOf(dealt));
  },
  "swap through two pools": async () => {
    const reserves = [[pools[0], first], [pools[0], second], [pools[1], second], [pools[1], third]];
    const [paid, middle, given, out] = await Promise.all(reserves.map(([pool, token]) => pool.reserves(token.target)));
    const expected = pays(pays(100n * ether, paid, middle), given, out);
    await rpc("anvil_impersonateAccount", dealt);
    await mined(first.connect(await provider.getSigner(dealt)).approve(router, 5000n * ether));
    const { gasUsed, logs } = await swap(100n * ether, expected);
    equal(await third.balanceOf(dealt), expected);
    return `${expected}, gas ${gasUsed}, ${logs.filter((log) => pools[0].interface.parseLog(log)).length} swaps`;
  },
  "logs from before and after the fork": async () => {
    const logs = await pools[0].queryFilter(pools[0].filters.Swapped(), 0, "latest");
    const filtered = await pools[0].queryFilter(pools[0].filters.Swapped(null, first.target), facts.early, "latest");
    return `${logs.map(({ args, blockNumber }) => `${blockNumber}: ${args.received}`)}; ${filtered.length}`;
  },
  "snapshot and revert": async () => {
    const [number, before] = [await provider.getBlockNumber(), await third.balanceOf(dealt)];
    const id = await rpc("evm_snapshot");
    await swap(7n * ether, 0n);
    const after = await third.balanceOf(dealt);
    equal(await rpc("evm_revert", id), true);
    equal(await third.balanceOf(dealt), before);
    equal(await provider.getBlockNumber(), number);
    return String(after - before);
  },
  "time travel": async () => {
    const deadline = (await provider.getBlock("latest")).timestamp + 3600;
    await swap(ether, 0n, deadline);
    await rpc("evm_increaseTime", 86_400);
    await rpc("evm_mine");
    equal((await provider.getBlock("latest")).timestamp > deadline, true);
    try {
      await (await swapper()).swap.staticCall(ether, 0n, first.target, facts.pools, deadline);
    } catch (error) {
      return `${error.code}: ${error.revert.name}`;
    }
    throw new Error("the deadline is over, and the swap succeeded");
  },
});
provider.destroy();
