// Shared by the JavaScript clients: steps that are reported, and verification of Merkle proofs.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

/// The contract that is deployed: ABI and init code.
export const contract = JSON.parse(readFileSync(new URL("contract/Store.json", import.meta.url)));

/// URLs of the server: JSON-RPC over HTTP and WebSocket.
export const url = process.env.NODE_RPC_URL;
export const wsUrl = `${url.replace(/^http/, "ws")}/ws`;

/// A blob of zeros. Its commitment and its proof are the point at infinity, so that no library is needed.
export const emptyBlob = `0x${"00".repeat(131_072)}`;
export const nothing = `0xc0${"00".repeat(47)}`;

/// Runs a step and reports that it was completed. Fails if it does not end in time.
export async function step(name, run) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${name} takes longer than 30 s`)), 30_000);
  });
  await Promise.race([run(), late]);
  clearTimeout(timer);
  console.log(`ok ${name}`);
}

/// Returns the value that a Merkle Patricia proof proves, or null if it proves absence. `keccak` and `decode` (RLP) are those of
/// the client's library and accept hex strings.
export function prove(root, key, nodes, { keccak, decode }) {
  let used = 0;
  const take = (hash) => {
    assert.ok(used < nodes.length, "the proof ends too early");
    assert.equal(keccak(nodes[used]), hash, `node ${used} is not the one that is committed to`);
    return decode(nodes[used++]);
  };
  let path = keccak(key).slice(2);
  let node = take(root);
  let value = null;
  for (;;) {
    let next;
    if (node.length === 17) {
      next = node[parseInt(path[0], 16)];
      path = path.slice(1);
    } else {
      assert.equal(node.length, 2);
      const [encoded, child] = node;
      const flags = parseInt(encoded[2], 16);
      const part = encoded.slice(flags & 1 ? 3 : 4);
      if (!path.startsWith(part)) break;
      path = path.slice(part.length);
      if (flags & 2) {
        if (path === "") value = child;
        break;
      }
      next = child;
    }
    if (next === "0x") break;
    node = Array.isArray(next) ? next : take(next);
  }
  assert.equal(used, nodes.length, "the proof has nodes too many");
  return value;
}

/// Verifies a result of eth_getProof for an account with one slot against the state root of its block, and that a modified
/// proof fails.
export function checkProof(result, stateRoot, slot, expected, tools) {
  const hex = (number) => {
    const digits = BigInt(number).toString(16);
    return BigInt(number) === 0n ? "0x" : `0x${digits.length % 2 ? "0" : ""}${digits}`;
  };
  const account = tools.decode(prove(stateRoot, result.address, result.accountProof, tools));
  assert.deepEqual(account, [hex(result.nonce), hex(result.balance), result.storageHash, result.codeHash]);
  const [proof] = result.storageProof;
  const value = tools.decode(prove(result.storageHash, slot, proof.proof, tools));
  assert.equal(BigInt(value), expected);
  assert.equal(BigInt(proof.value), expected);
  const last = result.accountProof.at(-1);
  const changed = [...result.accountProof.slice(0, -1), last.slice(0, -1) + (last.endsWith("0") ? "1" : "0")];
  assert.throws(() => prove(stateRoot, result.address, changed, tools), /not the one/);
}
