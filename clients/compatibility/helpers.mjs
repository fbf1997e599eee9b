// Hardhat's network helpers: all of them, in Hardhat 2 and 3.

import { equal, report } from "./report.mjs";

const OTHER = "0x00000000000000000000000000000000000000aa";
const ONE = "0x1";

export async function run(tool, helpers, request) {
  const { time } = helpers;
  const block = async () => request("eth_getBlockByNumber", ["latest", false]);
  const [account] = await request("eth_accounts");
  const pend = () => request("eth_sendTransaction", [{ from: account, to: OTHER, value: ONE, gas: "0x5208" }]);
  await report(tool, {
    mine: async () => {
      const before = Number((await block()).number);
      await helpers.mine(5, { interval: 10 });
      equal(Number((await block()).number), before + 5);
    },
    mineUpTo: async () => {
      const target = Number((await block()).number) + 7;
      await helpers.mineUpTo(target);
      equal(Number((await block()).number), target);
    },
    "time.latest": async () => equal(await time.latest(), Number((await block()).timestamp)),
    "time.latestBlock": async () => equal(await time.latestBlock(), Number((await block()).number)),
    "time.increase": async () => {
      const before = await time.latest();
      equal(await time.increase(100), before + 100);
    },
    "time.increaseTo": async () => {
      const target = (await time.latest()) + 1000;
      await time.increaseTo(target);
      equal(await time.latest(), target);
    },
    "time.setNextBlockTimestamp": async () => {
      const target = (await time.latest()) + 500;
      await time.setNextBlockTimestamp(target);
      await helpers.mine();
      equal(await time.latest(), target);
    },
    setBalance: async () => {
      await helpers.setBalance(OTHER, 1234n);
      equal(Number(await request("eth_getBalance", [OTHER, "latest"])), 1234);
    },
    setCode: async () => {
      await helpers.setCode(OTHER, "0x6001");
      equal(await request("eth_getCode", [OTHER, "latest"]), "0x6001");
      await helpers.setCode(OTHER, "0x");
    },
    setNonce: async () => {
      await helpers.setNonce(OTHER, 7);
      equal(Number(await request("eth_getTransactionCount", [OTHER, "latest"])), 7);
    },
    "setStorageAt, getStorageAt": async () => {
      await helpers.setStorageAt(OTHER, 3, 9);
      equal(Number(await helpers.getStorageAt(OTHER, 3)), 9);
    },
    "impersonateAccount, stopImpersonatingAccount": async () => {
      await helpers.setBalance(OTHER, 10n ** 18n);
      await helpers.impersonateAccount(OTHER);
      await request("eth_sendTransaction", [{ from: OTHER, to: account, value: ONE, gas: "0x5208" }]);
      await helpers.stopImpersonatingAccount(OTHER);
    },
    setCoinbase: async () => {
      await helpers.setCoinbase(OTHER);
      await helpers.mine();
      equal((await block()).miner, OTHER);
    },
    setNextBlockBaseFeePerGas: async () => {
      await helpers.setNextBlockBaseFeePerGas(7_000_000_000);
      await helpers.mine();
      equal(Number((await block()).baseFeePerGas), 7_000_000_000);
    },
    setPrevRandao: async () => {
      await helpers.setPrevRandao(77);
      await helpers.mine();
      equal(Number((await block()).mixHash), 77);
    },
    setBlockGasLimit: async () => {
      await helpers.setBlockGasLimit(40_000_000);
      await helpers.mine();
      equal(Number((await block()).gasLimit), 40_000_000);
    },
    dropTransaction: async () => {
      await request("evm_setAutomine", [false]);
      const dropped = await helpers.dropTransaction(await pend());
      await request("evm_setAutomine", [true]);
      equal(dropped, true);
    },
    takeSnapshot: async () => {
      const before = (await block()).number;
      const snapshot = await helpers.takeSnapshot();
      await helpers.mine(3);
      await snapshot.restore();
      equal((await block()).number, before);
    },
    loadFixture: async () => {
      let calls = 0;
      async function fixture() {
        calls += 1;
        await helpers.mine(2);
        return (await block()).number;
      }
      const first = await helpers.loadFixture(fixture);
      await helpers.mine(4);
      equal(await helpers.loadFixture(fixture), first);
      equal((await block()).number, first);
      equal(calls, 1);
    },
    ...(helpers.reset && {
      reset: async () => {
        await helpers.reset();
        equal(Number((await block()).number), 0);
      },
    }),
  });
}
