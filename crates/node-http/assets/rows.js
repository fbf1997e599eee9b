// Rows of blocks and transactions.

import { address, hasToken } from "./client.js";
import { age, date, integer, percent, short, text, wei } from "./format.js";

const LONGEST = 2048;

function element(name, className, content) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (content !== undefined) made.textContent = content;
  return made;
}

function time(timestamp) {
  const made = element("time");
  made.dataset.at = timestamp;
  return made;
}

// Updates the age of every row.
export function tick() {
  for (const element of document.querySelectorAll("[data-at]")) {
    const now = age(element.dataset.at);
    if (element.textContent !== now) element.textContent = now;
  }
}

// Makes `list` show `items`, newest first. Existing rows are not touched, so they keep focus and stay open.
export function list(list, items, key, row) {
  const first = list.children.length === 0;
  const known = new Map([...list.children].map((child) => [child.dataset.key, child]));
  const wanted = new Set(items.map(key));
  for (const [name, child] of known) if (!wanted.has(name)) child.remove();
  items.forEach((item, index) => {
    const name = key(item);
    let child = known.get(name);
    if (!child) {
      child = element("li", first ? "" : "new");
      child.dataset.key = name;
      child.append(details(...row(item)));
    }
    if (list.children[index] !== child) list.insertBefore(child, list.children[index] ?? null);
  });
}

// The details are created when the row is first opened.
function details(summary, inside) {
  const made = element("details");
  const line = element("summary");
  line.append(...summary);
  made.append(line);
  made.addEventListener("toggle", async () => made.append(await inside()), { once: true });
  return made;
}

// A list of names and values. Missing values are left out, long ones are truncated.
function table(values, link) {
  const made = element("dl", "details");
  for (const [name, value] of Object.entries(values)) {
    if (value == null || value === "0x") continue;
    const shown = value.length > LONGEST ? `${value.slice(0, LONGEST)}…` : value;
    made.append(element("dt", "", name), element("dd", "", shown));
  }
  // A link cannot send a token.
  if (!hasToken()) {
    const place = element("dd");
    const anchor = element("a", "", "JSON");
    anchor.href = address(link);
    place.append(anchor);
    made.append(element("dt", "", "Full JSON"), place);
  }
  return made;
}

export function block(block) {
  const [used, limit] = [BigInt(block.GasUsed), BigInt(block.GasLimit)];
  const ratio = limit === 0n ? 0 : Number((used * 10_000n) / limit) / 10_000;
  const count = block.Transactions.length;
  const gas = element("span", "gas");
  gas.style.setProperty("--used", `${ratio * 100}%`);
  const said = text(block.ExtraData);
  const summary = [
    element("b", "", integer(block.Number)),
    element("span", "soft", count === 1 ? "1 transaction" : `${integer(count)} transactions`),
    time(block.Timestamp),
    gas,
  ];
  const inside = () =>
    table(
      {
        Hash: block.Hash,
        Parent: block.ParentHash,
        Time: date(block.Timestamp),
        "Gas used": `${integer(used)} of ${integer(limit)}, ${percent(ratio)}`,
        "Base fee": block.BaseFeePerGas && wei(block.BaseFeePerGas),
        Beneficiary: block.Miner,
        "Extra data": said ? `${block.ExtraData} “${said}”` : block.ExtraData,
        Size: `${integer(block.Size)} bytes`,
        "State root": block.StateRoot,
      },
      `getBlockByHash/${block.Hash}/true/`,
    );
  return [summary, inside];
}

export function transaction(transaction) {
  const receipt = transaction.Receipt;
  const failed = receipt.Status === "0";
  const route = `${short(transaction.From)} → ${transaction.To ? short(transaction.To) : "new contract"}`;
  const summary = [
    element("span", "mono", short(transaction.Hash)),
    element("b", "end", wei(transaction.Value)),
    element("span", failed ? "soft failed" : "soft", failed ? `Failed: ${route}` : route),
    time(transaction.Timestamp),
  ];
  const inside = () =>
    table(
      {
        Hash: transaction.Hash,
        Status: { 0: "Failed", 1: "Succeeded" }[receipt.Status],
        From: transaction.From,
        To: transaction.To,
        "New contract": receipt.ContractAddress,
        Value: `${transaction.Value} wei`,
        Block: `${integer(transaction.BlockNumber)}, index ${transaction.TransactionIndex}`,
        Nonce: transaction.Nonce,
        Gas: `${integer(receipt.GasUsed)} of ${integer(transaction.Gas)}`,
        "Gas price": wei(transaction.GasPrice),
        Logs: receipt.Logs.length,
        Input: transaction.Input,
      },
      `getTransactionByHash/${transaction.Hash}/`,
    );
  return [summary, inside];
}
