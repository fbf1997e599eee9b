// The newest part of the chain, as of one head. Blocks and transactions are kept by hash, so that what was read once
// is never wrong, whatever leaves the chain; which of them stand in it is worked out anew from the head each time.

import { ask } from "./client.js";

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
  const found = (await ask(path)).Block;
  return found && remember(blocks, found.Hash, found);
}

// A transaction of `block`. One that moved to another block in a reorganization is read again.
async function transaction({ hash, block }) {
  const key = block.Hash + hash;
  if (transactions.has(key)) return transactions.get(key);
  const found = (await ask(`getTransactionByHash/${hash}/`)).Transaction;
  return found?.BlockHash === block.Hash ? remember(transactions, key, { ...found, Timestamp: block.Timestamp }) : null;
}

const entries = (block) => block.Transactions.map(({ Hash }) => ({ hash: Hash, block })).reverse();

// The newest blocks, newest first, each the parent of the one before it: as many as are listed, or until enough
// transactions are found.
async function walk(head) {
  const chain = [head];
  let found = head.Transactions.length;
  while (chain.length < LISTED || (found < LISTED && chain.length < CHARTED)) {
    const { Number: number, ParentHash: hash } = chain.at(-1);
    if (number === "0") break;
    if (!blocks.has(hash)) await readBefore(BigInt(number));
    // What was read by number is of another chain if it changed meanwhile.
    const parent = blocks.get(hash) ?? (await block(`getBlockByHash/${hash}/false/`));
    chain.push(parent);
    found += parent.Transactions.length;
  }
  return chain;
}

// Reads blocks before `end` at once, back to those that are listed.
async function readBefore(end) {
  const known = BigInt(listed[0]?.Number ?? -1);
  const reads = [];
  for (let number = end - 1n; number > known && reads.length < LISTED; number--) {
    reads.push(block(`getBlockByNumber/${number}/false/`));
  }
  await Promise.all(reads);
}

async function feeHistory(head) {
  const answer = await ask("feeHistory/", { BlockCount: String(CHARTED), NewestBlock: head.Number });
  return {
    oldest: BigInt(answer.OldestBlock),
    fees: answer.BaseFeePerGas.map(BigInt),
    used: answer.GasUsedRatio,
  };
}

// What never changes while the server runs.
export async function facts() {
  return Object.assign({}, ...(await Promise.all([ask("chainId/"), ask("clientVersion/")])));
}

// The chain as it is now, and which of the blocks that were listed before have left it.
export async function read() {
  const head = await block("getBlockByNumber/latest/false/");
  const [chain, history, { GasPrice }] = await Promise.all([walk(head), feeHistory(head), ask("gasPrice/")]);
  const newest = await Promise.all(chain.flatMap(entries).slice(0, LISTED).map(transaction));
  const oldest = BigInt(chain.at(-1).Number);
  const removed = listed.filter((block) => BigInt(block.Number) >= oldest && !chain.some(({ Hash }) => Hash === block.Hash));
  listed = chain.slice(0, LISTED);
  return { head, blocks: listed, transactions: newest.filter(Boolean), history, gasPrice: GasPrice, removed };
}
