// The error classes of ethers and viem for usual failures.

import { JsonRpcProvider, Wallet } from "ethers";
import { createWalletClient, createPublicClient, http, BaseError } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { foundry } from "viem/chains";
import { report } from "./report.mjs";

const url = process.env.NODE_RPC_URL;
const KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
const POOR = `0x${"77".repeat(32)}`;
const OTHER = "0x00000000000000000000000000000000000000cc";
// Reverts with a custom error.
const CUSTOM = "0x63deadbeef60e01b5f5260045ffd";
const gwei = 10n ** 9n;

const provider = new JsonRpcProvider(url, undefined, { staticNetwork: true, cacheTimeout: -1 });
const ethers = new Wallet(KEY, provider);
const poor = new Wallet(POOR, provider);
const codeOf = (run) => async () => {
  try {
    await run();
  } catch (error) {
    return error.code ?? error.name;
  }
  return "no error";
};
const low = { to: OTHER, gasLimit: 21_000n };
await report("ethers, error code", {
  "more value than balance, sent": codeOf(() => poor.sendTransaction({ to: OTHER, value: 10n ** 18n })),
  "more value than balance, estimated": codeOf(() => provider.estimateGas({ from: poor.address, to: OTHER, value: 10n ** 18n })),
  "nonce too low": codeOf(async () => {
    await (await ethers.sendTransaction({ to: OTHER })).wait();
    await ethers.sendTransaction({ ...low, nonce: 0, value: 12345n });
  }),
  "replacement underpriced": codeOf(async () => {
    await provider.send("evm_setAutomine", [false]);
    const nonce = await provider.getTransactionCount(ethers.address, "latest");
    try {
      await ethers.sendTransaction({ ...low, nonce, value: 1n });
      await ethers.sendTransaction({ ...low, nonce, value: 2n });
    } finally {
      await provider.send("evm_setAutomine", [true]);
      await provider.send("evm_mine", []);
    }
  }),
  "gas below the intrinsic gas": codeOf(() => ethers.sendTransaction({ to: OTHER, gasLimit: 20_000n })),
  "fee cap below the base fee": codeOf(() => ethers.sendTransaction({ ...low, maxFeePerGas: 1n, maxPriorityFeePerGas: 0n })),
  "tip above the fee cap": codeOf(() => ethers.sendTransaction({ ...low, maxFeePerGas: 2n * gwei, maxPriorityFeePerGas: 3n * gwei })),
  "gas above the limit of a block": codeOf(() => ethers.sendTransaction({ to: OTHER, gasLimit: 10n ** 12n })),
  "call that reverts": codeOf(() => provider.call({ data: CUSTOM })),
  "estimate that reverts": codeOf(() => provider.estimateGas({ from: ethers.address, data: CUSTOM })),
});

const account = privateKeyToAccount(KEY);
const wallet = createWalletClient({ account, chain: foundry, transport: http(url) });
const broke = createWalletClient({ account: privateKeyToAccount(POOR), chain: foundry, transport: http(url) });
const client = createPublicClient({ chain: foundry, transport: http(url) });
// The name of the innermost error of viem that says what was wrong with the request, or else that of the code.
const nameOf = (run) => async () => {
  try {
    await run();
  } catch (error) {
    const general = ["RpcRequestError", "Error", "UnknownNodeError", "TransactionExecutionError"];
    const names = [];
    if (!(error instanceof BaseError)) return error.name;
    for (let cause = error; cause; cause = cause.cause) names.push(cause.name);
    const specific = names.filter((name) => name && !general.includes(name));
    return specific.findLast((name) => !name.endsWith("RpcError")) ?? specific.at(-1) ?? error.name;
  }
  return "no error";
};
await report("viem, error class", {
  "more value than balance, sent": nameOf(() => broke.sendTransaction({ to: OTHER, value: 10n ** 18n })),
  "more value than balance, estimated": nameOf(() => client.estimateGas({ account: broke.account, to: OTHER, value: 10n ** 18n })),
  "nonce too low": nameOf(() => wallet.sendTransaction({ to: OTHER, gas: 21_000n, nonce: 0, value: 777n })),
  "replacement underpriced": nameOf(async () => {
    const test = (method, params) => client.request({ method, params });
    await test("evm_setAutomine", [false]);
    const nonce = await client.getTransactionCount({ address: account.address });
    try {
      await wallet.sendTransaction({ to: OTHER, gas: 21_000n, nonce, value: 1n });
      await wallet.sendTransaction({ to: OTHER, gas: 21_000n, nonce, value: 2n });
    } finally {
      await test("evm_setAutomine", [true]);
      await test("evm_mine", []);
    }
  }),
  "gas above the limit of a block": nameOf(() => wallet.sendTransaction({ to: OTHER, gas: 10n ** 12n })),
  "gas below the intrinsic gas": nameOf(() => wallet.sendTransaction({ to: OTHER, gas: 20_000n })),
  "fee cap below the base fee": nameOf(() => wallet.sendTransaction({ to: OTHER, gas: 21_000n, maxFeePerGas: 1n, maxPriorityFeePerGas: 0n })),
  "tip above the fee cap": nameOf(() => client.call({ account, to: OTHER, maxFeePerGas: 2n * gwei, maxPriorityFeePerGas: 3n * gwei })),
  "call that reverts": nameOf(() => client.call({ data: CUSTOM })),
  "estimate that reverts": nameOf(() => client.estimateGas({ account, data: CUSTOM })),
});
process.exit(0);
