// Starts the program given as argument as prool starts anvil, as the suites of viem and wagmi do, and uses the chain.
import assert from "node:assert/strict";
import { createPublicClient, createTestClient, http } from "viem";
import { foundry } from "viem/chains";

// prool needs this function of Node.js 22.
Promise.withResolvers ??= function () {
  let resolve, reject;
  const promise = new Promise((...both) => ([resolve, reject] = both));
  return { promise, resolve, reject };
};
const { Instance, Server } = await import("prool");

const port = Number(process.argv[3]);
const options = { binary: process.argv[2], accounts: 3, gasPrice: 0, stepsTracing: true, codeSizeLimit: 60_000 };
const instance = Instance.anvil({ ...options, port });
await instance.start();
const transport = http(`http://127.0.0.1:${port}`);
const client = createPublicClient({ cacheTime: 0, chain: foundry, transport });
const test = createTestClient({ mode: "anvil", chain: foundry, transport });
await test.mine({ blocks: 3 });
assert.equal(await client.getBlockNumber(), 3n);
await test.setIntervalMining({ interval: 120 });
assert.equal(await test.request({ method: "anvil_getIntervalMining" }), 120);
await instance.stop();
console.log("ok instance");

// A pool of chains behind one port, one for each worker of a test suite.
const server = Server.create({ instance: Instance.anvil(options), port });
const stop = await server.start();
for (const worker of [1, 2]) {
  const pooled = createPublicClient({ chain: foundry, transport: http(`http://127.0.0.1:${port}/${worker}`) });
  assert.equal(await pooled.getBlockNumber(), 0n);
}
await stop();
console.log("ok pool");
process.exit(0);
