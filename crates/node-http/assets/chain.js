// The newest part of the chain, as of one head. Blocks and transactions are kept by hash, so that what was read once
// is never wrong, whatever leaves the chain; which of them stand in it is worked out anew from the head each time.

import { get, post } from "./client.js";

const LISTED = 10;
const CHARTED = 60;
const REMEMBERED = 500;

const blocks = new Map();
const transactions = new Map();
let listed = [];

// A map does not grow without end: the oldest entries leave.
function remember(map, hash, value) {
  map.set(hash, value);
  if (map.size > REMEMBERED) map.delete(map.keys().next().value);
  return value;
}

async function block(path) {
  const found = (await get(path)).Block;
  return found && remember(blocks, found.Hash, found);
}

// A transaction of `block`. One that moved to another block in a reorganization is read again.
async function transaction({ hash, block }) {
  const key = block.Hash + hash;
  if (transactions.has(key)) return transactions.get(key);
  const found = (await get(`getTransactionByHash/${hash}/`)).Transaction;
  return found?.BlockHash === block.Hash ? remember(transactions, key, { ...found, Timestamp: block.Timestamp }) : null;
}

const entries = (block) => block.Transactions.map(({ Hash }) => ({ hash: Hash, block })).reverse();

// The newest blocks, newest first, each the parent of the one before it.
async function newest(head) {
  const missing = [];
  if (!blocks.has(head.ParentHash)) {
    for (let number = BigInt(head.Number) - 1n; number >= 0n && missing.length < LISTED - 1; number--) {
      missing.push(block(`getBlockByNumber/${number}/false/`));
    }
  }
  await Promise.all(missing);
  const chain = [head];
  while (chain.length < LISTED && BigInt(chain.at(-1).Number) > 0n) {
    const parent = chain.at(-1).ParentHash;
    // Blocks that were read by number are of another chain if it changed meanwhile.
    const next = blocks.get(parent) ?? (await block(`getBlockByHash/${parent}/false/`));
    if (!next) break;
    chain.push(next);
  }
  return chain;
}

// The newest transactions: of the listed blocks, and of older ones of which the fee history says that they hold some.
async function latest(chain, history) {
  const found = chain.flatMap(entries);
  let number = BigInt(chain.at(-1).Number) - 1n;
  for (; found.length < LISTED && number >= history.oldest; number--) {
    if (!history.used[Number(number - history.oldest)]) continue;
    const older = await block(`getBlockByNumber/${number}/false/`);
    if (older) found.push(...entries(older));
  }
  return (await Promise.all(found.slice(0, LISTED).map(transaction))).filter(Boolean);
}

async function feeHistory(head) {
  const answer = await post("feeHistory/", { BlockCount: String(CHARTED), NewestBlock: head.Number });
  return {
    oldest: BigInt(answer.OldestBlock),
    fees: answer.BaseFeePerGas.map(BigInt),
    used: answer.GasUsedRatio,
  };
}

// What never changes while the server runs.
export async function facts() {
  const [{ ChainId }, { ClientVersion }] = await Promise.all([get("chainId/"), get("clientVersion/")]);
  return { chainId: ChainId, version: ClientVersion };
}

// The chain as it is now, and which of the blocks that were listed before have left it.
export async function read() {
  const head = await block("getBlockByNumber/latest/false/");
  const [chain, history, { GasPrice }] = await Promise.all([newest(head), feeHistory(head), get("gasPrice/")]);
  const hashes = new Set(chain.map(({ Hash }) => Hash));
  const oldest = BigInt(chain.at(-1).Number);
  const removed = listed.filter(({ Hash, Number: number }) => !hashes.has(Hash) && BigInt(number) >= oldest);
  const newestTransactions = await latest(chain, history);
  listed = chain;
  return { head, blocks: chain, transactions: newestTransactions, history, gasPrice: BigInt(GasPrice), removed };
}
