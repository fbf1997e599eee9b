// Calls every operation of a development chain through the generated client, and checks the responses.
//
// NODE_URL is the URL of the server, NODE_OPENAPI the document that the client was generated from.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const baseUrl = process.env.NODE_URL ?? "http://127.0.0.1:8545";
const document = JSON.parse(readFileSync(process.env.NODE_OPENAPI ?? "../../docs/openapi.json", "utf8"));

const called = new Set<string>();
const client = createClient<paths>({ baseUrl });
client.use({
  onRequest: ({ request, schemaPath }) => {
    called.add(`${request.method.toLowerCase()} ${schemaPath}`);
  },
});

type Reply<T> = Promise<{ data?: T; error?: unknown; response: Response }>;

/** Returns the body of a response, which must be a 200. */
async function ok<T>(reply: Reply<T>): Promise<T> {
  const { data, error, response } = await reply;
  assert.equal(response.status, 200, `${response.url}: ${JSON.stringify(error)}`);
  assert.ok(data !== undefined, response.url);
  return data;
}

const alice = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const bob = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const stranger = "0x00000000000000000000000000000000000000aa";
const topic = `0x${"1".padStart(64, "0")}`;
// Stores the word in its call data, logs it with topic 1, and returns it.
const keeperCode =
  "0x6027600c60003960276000f3" +
  "3615601b57600035806000556000526001602060" +
  "00a160206000f35b60005460005260206000f3";
const word = (value: number) => `0x${value.toString(16).padStart(64, "0")}`;

async function development(): Promise<{ keeper: string; hash: string; block: string }> {
  assert.equal((await ok(client.POST("/dev/reset/", { body: {} }))).BlockNumber, "0");
  const snapshot = await ok(client.POST("/dev/snapshot/", { body: {} }));
  assert.equal((await ok(client.POST("/dev/revert/", { body: { SnapshotId: snapshot.SnapshotId } }))).Result, true);
  const account = { Address: stranger };
  const edits = [
    ok(client.POST("/dev/setBalance/", { body: { ...account, Balance: "5" } })),
    ok(client.POST("/dev/setNonce/", { body: { ...account, Nonce: "3" } })),
    ok(client.POST("/dev/setCode/", { body: { ...account, Code: "0x00" } })),
    ok(client.POST("/dev/setStorage/", { body: { ...account, Position: "0x1", Value: "9" } })),
  ];
  for (const edit of await Promise.all(edits)) assert.equal(edit.Result, true);
  await ok(client.POST("/dev/increaseTime/", { body: { Seconds: "5" } }));
  const latest = { params: { path: { BlockNumber: "latest", TransactionDetailFlag: false } } } as const;
  const head = await ok(client.GET("/getBlockByNumber/{BlockNumber}/{TransactionDetailFlag}/", latest));
  const timestamp = String(Number(head.Block?.Timestamp) + 60);
  await ok(client.POST("/dev/setNextBlockTimestamp/", { body: { Timestamp: timestamp } }));
  await ok(client.POST("/dev/setNextBlockBaseFee/", { body: { BaseFee: "1000000000" } }));
  const mined = await ok(client.POST("/dev/mine/", { body: { Blocks: "2" } }));
  assert.match(mined.BlockHash, /^0x[0-9a-f]{64}$/);
  const replaced = await ok(client.POST("/dev/reorganize/", { body: { Blocks: "1" } }));
  assert.deepEqual(replaced.Removed, [mined.BlockHash]);

  assert.equal((await ok(client.GET("/dev/fork/"))).Fork, null);
  const refused = await client.POST("/dev/setForkUrl/", { body: { Url: "http://127.0.0.1:1" } });
  assert.equal(refused.response.status, 422);

  await ok(client.POST("/dev/impersonate/", { body: { Address: bob } }));
  const creation = { From: bob, Data: keeperCode };
  const created = await ok(client.POST("/dev/sendTransaction/", { body: { Transaction: creation } }));
  const path = { Hash: created.TransactionHash };
  const receipt = await ok(client.GET("/getTransactionReceipt/{Hash}/", { params: { path } }));
  const keeper = receipt.TransactionReceipt?.ContractAddress;
  assert.ok(keeper);
  const call = { From: bob, To: keeper, Data: word(42) };
  const sent = await ok(client.POST("/dev/sendTransaction/", { body: { Transaction: call } }));
  assert.equal((await ok(client.POST("/dev/stopImpersonating/", { body: { Address: bob } }))).Result, true);
  const block = (await ok(client.GET("/getBlockByNumber/{BlockNumber}/{TransactionDetailFlag}/", latest))).Block?.Hash;
  assert.ok(block);
  return { keeper, hash: sent.TransactionHash, block };
}

async function pool(): Promise<void> {
  const example = document.paths["/sendRawTransaction/"].post;
  const body = example.requestBody.content["application/json"].example;
  const sent = await ok(client.POST("/sendRawTransaction/", { body }));
  const expected = example.responses["200"].content["application/json"].example;
  assert.equal(sent.TransactionHash, expected.TransactionHash);
  const content = await ok(client.GET("/dev/poolContent/"));
  assert.deepEqual(content.Queued.map((transaction) => transaction.Hash), [sent.TransactionHash]);
  const dropped = await ok(client.POST("/dev/dropTransaction/", { body: { TransactionHash: sent.TransactionHash } }));
  assert.equal(dropped.Result, true);
}

async function state(keeper: string): Promise<void> {
  const slot = await ok(client.POST("/getStorageAt/", { body: { Address: keeper, Position: "0" } }));
  assert.equal(slot.Value, word(42));
  const proof = await ok(client.POST("/getProof/", { body: { Address: keeper, StorageKeys: ["0x0"] } }));
  assert.equal(proof.StorageProof[0]?.Value, word(42));
  const latest = { Address: keeper, BlockNumber: "latest" };
  const account = await ok(client.GET("/getAccount/{Address}/{BlockNumber}/", { params: { path: latest } }));
  assert.equal(account.StorageRoot, proof.StorageHash);
  const path = { Address: stranger };
  const query = { BlockNumber: "latest" };
  assert.equal((await ok(client.GET("/getBalance/{Address}/", { params: { path, query } }))).Balance, "5");
  assert.equal((await ok(client.GET("/getCode/{Address}/", { params: { path } }))).Bytecode, "0x00");
  const pending = { Address: stranger, BlockNumber: "pending" };
  const next = await ok(client.GET("/getTransactionCount/{Address}/{BlockNumber}/", { params: { path: pending } }));
  assert.equal(next.TransactionCount, "3");
}

async function calls(keeper: string): Promise<void> {
  const call = { From: alice, To: keeper, Data: word(7) };
  const called = await ok(client.POST("/call/", { body: { Transaction: call, BlockNumber: "latest" } }));
  assert.equal(called.Data, word(7));
  const balance = { [alice]: { Balance: "1000000000000000000" } };
  const estimate = await ok(client.POST("/estimateGas/", { body: { Transaction: call, Object: balance } }));
  assert.ok(Number(estimate.EstimatedGas) > 21_000);

  const broken = await client.POST("/call/", { body: { Transaction: { Data: "0x5f5ffd" } } });
  assert.equal(broken.response.status, 422);
  const problem: components["schemas"]["ErrorModel"] | undefined = broken.error;
  assert.ok(problem?.type.endsWith("/problems/execution-reverted"));
}

async function blocks(block: string): Promise<void> {
  const whole = { BlockNumber: "latest", TransactionDetailFlag: true } as const;
  const byNumber = await ok(
    client.GET("/getBlockByNumber/{BlockNumber}/{TransactionDetailFlag}/", { params: { path: whole } }),
  );
  assert.equal(byNumber.Block?.Hash, block);
  assert.equal(byNumber.Block?.Transactions.length, 1);
  const latest = { BlockNumber: "latest" };
  const path = { Hash: block };
  const byHash = await ok(
    client.GET("/getBlockByHash/{Hash}/{TransactionDetailFlag}/", {
      params: { path: { ...path, TransactionDetailFlag: true } },
    }),
  );
  assert.deepEqual(byHash.Block, byNumber.Block);
  const receipts = await ok(client.GET("/getBlockReceipts/{BlockNumber}/", { params: { path: latest } }));
  assert.equal(receipts.TransactionReceipts[0]?.Logs.length, 1);
  const counts = [
    ok(client.GET("/getBlockTransactionCountByHash/{Hash}/", { params: { path } })),
    ok(client.GET("/getBlockTransactionCountByNumber/{BlockNumber}/", { params: { path: latest } })),
  ];
  for (const count of await Promise.all(counts)) assert.equal(count.TransactionCount, "1");
  const uncles = [
    ok(client.GET("/getUncleCountByBlockHash/{Hash}/", { params: { path } })),
    ok(client.GET("/getUncleCountByBlockNumber/{BlockNumber}/", { params: { path: latest } })),
  ];
  for (const count of await Promise.all(uncles)) assert.equal(count.UncleCount, "0");
}

async function bytes(block: string): Promise<void> {
  const path = { BlockNumber: block };
  const { Header: header } = await ok(client.GET("/getHeader/{BlockNumber}/", { params: { path } }));
  assert.equal(header?.Hash, block);
  assert.match((await ok(client.GET("/getRawHeader/{BlockNumber}/", { params: { path } }))).Data ?? "", /^0xf9/);
  assert.match((await ok(client.GET("/getRawBlock/{BlockNumber}/", { params: { path } }))).Data ?? "", /^0xf9/);
  assert.equal((await ok(client.GET("/getRawReceipts/{BlockNumber}/", { params: { path } }))).Receipts.length, 1);
}

async function transactions(hash: string, block: string): Promise<void> {
  const path = { Hash: hash };
  const found = await ok(client.GET("/getTransactionByHash/{Hash}/", { params: { path } }));
  assert.equal(found.Transaction?.BlockHash, block);
  const byHash = await ok(
    client.GET("/getTransactionByBlockHashAndIndex/{Hash}/{Index}/", { params: { path: { Hash: block, Index: "0" } } }),
  );
  const byNumber = await ok(
    client.GET("/getTransactionByBlockNumberAndIndex/{BlockNumber}/{Index}/", {
      params: { path: { BlockNumber: "latest", Index: "0" } },
    }),
  );
  for (const same of [byHash, byNumber]) assert.deepEqual(same.Transaction, found.Transaction);
  assert.equal((await ok(client.GET("/getTransactionExtras/{Hash}/", { params: { path } }))).BlobVersionedHashes, null);
  assert.match((await ok(client.GET("/getRawTransaction/{Hash}/", { params: { path } }))).Data ?? "", /^0x02/);
  assert.equal((await ok(client.GET("/getTransactionStatus/{Hash}/", { params: { path } }))).Status, "mined");
}

async function logs(keeper: string): Promise<void> {
  const filter = { Address: keeper, FromBlock: "0", ToBlock: "latest", Topics: [topic] };
  const found = await ok(client.POST("/getLogs/", { body: filter, params: { header: { Prefer: "page" } } }));
  assert.deepEqual(found.Logs.map((log) => log.Data), [word(42)]);
  const made = [
    await ok(client.POST("/newFilter/", { body: { FilterObject: filter } })),
    await ok(client.POST("/newBlockFilter/", { body: {} })),
    await ok(client.GET("/newBlockFilter/")),
    await ok(client.POST("/newPendingTransactionFilter/")),
    await ok(client.GET("/newPendingTransactionFilter/")),
  ];
  for (const { FilterId } of made) {
    const changes = await ok(client.GET("/getFilterChanges/{FilterId}/", { params: { path: { FilterId } } }));
    assert.deepEqual(changes.Result, []);
  }
  const path = { FilterId: made[0]?.FilterId ?? "" };
  const all = await ok(client.GET("/getFilterLogs/{FilterId}/", { params: { path } }));
  assert.deepEqual(all.Logs, found.Logs);
  assert.equal((await ok(client.GET("/uninstallFilter/{FilterId}/", { params: { path } }))).Result, true);
}

/** The stream of events does not end: one event is enough. */
async function events(): Promise<void> {
  const query = { Stream: "blocks", FromBlock: "1" } as const;
  const stream = await ok(client.GET("/events/", { params: { query }, parseAs: "stream" }));
  assert.ok(stream);
  let text = "";
  const decoder = new TextDecoder();
  for await (const piece of stream as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(piece, { stream: true });
    if (text.includes("event: block") || text.includes("event:block")) break;
  }
  assert.match(text, /"0x[0-9a-f]{64}"/);
}

async function chain(): Promise<void> {
  assert.ok(Number((await ok(client.GET("/blockNumber/"))).BlockNumber) >= 4);
  assert.equal((await ok(client.GET("/chainId/"))).ChainId, "31337");
  assert.ok(BigInt((await ok(client.GET("/gasPrice/"))).GasPrice) > 0n);
  assert.ok(BigInt((await ok(client.GET("/maxPriorityFeePerGas/"))).MaxPriorityFeePerGas) >= 0n);
  assert.ok(BigInt((await ok(client.GET("/blobBaseFee/"))).BaseFee) >= 1n);
  assert.equal((await ok(client.GET("/syncing/"))).SyncStatus, null);
  assert.match((await ok(client.GET("/clientVersion/"))).ClientVersion, /^anvil\/ethnode\//);
  const fees = await ok(client.POST("/feeHistory/", { body: { BlockCount: "2", RewardPercentiles: [50] } }));
  assert.equal(fees.BaseFeePerGas.length, 3);
}

async function server(): Promise<void> {
  assert.equal((await ok(client.GET("/health"))).Status, "ok");
  assert.equal((await ok(client.GET("/ready"))).Status, "ok");
  const schema = await ok(client.GET("/schemas/{Name}.json", { params: { path: { Name: "Output_call" } } }));
  assert.equal((schema as { title?: string }).title, "Output_call");
  assert.match((await ok(client.GET("/schemas/", { parseAs: "text" }))) as string, /Output_call/);
  assert.match((await ok(client.GET("/problems/", { parseAs: "text" }))) as string, /block-not-found/);
  const slug = { Slug: "block-not-found" } as const;
  const page = await ok(client.GET("/problems/{Slug}", { params: { path: slug }, parseAs: "text" }));
  assert.match(page as string, /Remedy/);
  const served = await ok(client.GET("/openapi.json"));
  assert.deepEqual(Object.keys((served as typeof document).paths), Object.keys(document.paths));
}

const { keeper, hash, block } = await development();
await pool();
await state(keeper);
await calls(keeper);
await blocks(block);
await bytes(block);
await transactions(hash, block);
await logs(keeper);
await events();
await chain();
await server();

const described = Object.entries(document.paths as Record<string, object>).flatMap(([path, item]) =>
  Object.keys(item).map((method) => `${method} ${path}`),
);
const missing = described.filter((operation) => !called.has(operation));
assert.deepEqual(missing, [], "operations that were not called");
console.log(`typescript: ${described.length} operations were called`);
process.exit(0);
