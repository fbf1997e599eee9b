// The newest part of the chain. Blocks and transactions are cached by hash, so entries stay correct after a reorganization.

import { ask } from "./client.js";

const LISTED = 10;
const CHARTED = 60;
const MAX_CACHED = 500;

const blocks = new Map();
const transactions = new Map();
let listed = [];

// Limits the size of a map by deleting its oldest entry.
function cache(map, hash, value) {
  map.set(hash, value);
  if (map.size > MAX_CACHED) map.delete(map.keys().next().value);
  return value;
}

async function block(path) {
  const found = (await ask(path)).Block;
  return found && cache(blocks, found.Hash, found);
}

// A transaction of `block` with its receipt, or null if it has moved to another block in a reorganization.
async function transaction({ hash, block }) {
  const key = block.Hash + hash;
  if (transactions.has(key)) return transactions.get(key);
  const reads = [`getTransactionByHash/${hash}/`, `getTransactionReceipt/${hash}/`];
  const [{ Transaction: found }, { TransactionReceipt: Receipt }] = await Promise.all(reads.map((path) => ask(path)));
  if (found?.BlockHash !== block.Hash || Receipt?.BlockHash !== block.Hash) return null;
  return cache(transactions, key, { ...found, Receipt, Timestamp: block.Timestamp });
}

const entries = (block) => block.Transactions.map(({ Hash }) => ({ hash: Hash, block })).reverse();

// The newest blocks, newest first: as many as the page lists, and more until there are enough transactions.
async function walk(head) {
  const chain = [head];
  let found = head.Transactions.length;
  while (chain.length < LISTED || (found < LISTED && chain.length < CHARTED)) {
    const { Number: number, ParentHash: hash } = chain.at(-1);
    if (number === "0") break;
    if (!blocks.has(hash)) await readBefore(BigInt(number));
    // A block read by number belongs to another branch if the chain was reorganized meanwhile.
    const parent = blocks.get(hash) ?? (await block(`getBlockByHash/${hash}/false/`));
    chain.push(parent);
    found += parent.Transactions.length;
  }
  return chain;
}

// Reads the blocks before `end` in parallel, back to those already listed.
async function readBefore(end) {
  const known = BigInt(listed[0]?.Number ?? -1);
  const reads = [];
  for (let number = end - 1n; number > known && reads.length < LISTED; number--) {
    reads.push(block(`getBlockByNumber/${number}/false/`));
  }
  await Promise.all(reads);
}

async function feeHistory(head) {
  const history = await ask("feeHistory/", { BlockCount: String(CHARTED), NewestBlock: head.Number });
  return {
    oldest: BigInt(history.OldestBlock),
    fees: history.BaseFeePerGas.map(BigInt),
    used: history.GasUsedRatio,
  };
}

// Facts that do not change while the server runs.
export async function facts() {
  return Object.assign({}, ...(await Promise.all([ask("chainId/"), ask("clientVersion/")])));
}

// The chain that this one continues, as text; empty if there is none.
export async function fork() {
  const { Fork } = await ask("ready").catch(() => ({}));
  if (!Fork) return "";
  const names = Fork.Endpoints.map((server) => server.Name + (server.LastFailure ? " (failing)" : ""));
  return `${Fork.ChainId} at block ${Fork.BlockNumber}: ${names.join(", ") || "offline"}${Fork.Verified ? "" : ", not verified"}`;
}

// The current chain, and the previously listed blocks that are no longer part of it.
export async function read() {
  const head = await block("getBlockByNumber/latest/false/");
  const [chain, history, { GasPrice }] = await Promise.all([walk(head), feeHistory(head), ask("gasPrice/")]);
  const newest = await Promise.all(chain.flatMap(entries).slice(0, LISTED).map(transaction));
  const oldest = BigInt(chain.at(-1).Number);
  const removed = listed.filter((block) => BigInt(block.Number) >= oldest && !chain.some(({ Hash }) => Hash === block.Hash));
  listed = chain.slice(0, LISTED);
  return { head, blocks: listed, transactions: newest.filter(Boolean), history, gasPrice: GasPrice, removed };
}
