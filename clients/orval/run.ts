// Calls the nine operations of the interface description through the client that orval makes.

import {
  call, estimateGas, feeHistory, getBlockByNumber, getLogs, getProof, getStorageAt, impersonate, newFilter, sendRawTransaction,
  sendTransaction,
} from "./node_client/index";

function expect(name: string, got: unknown, expected: unknown): void {
  if (got !== expected) throw new Error(`${name}: ${got}, expected ${expected}`);
}

/** Returns the body of a response, which must be a 200. */
function ok<R extends { status: number; data: unknown }>(response: R): Extract<R, { status: 200 }>["data"] {
  if (response.status !== 200) throw new Error(JSON.stringify(response.data));
  return response.data as Extract<R, { status: 200 }>["data"];
}

async function main(): Promise<void> {
  const alice = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
  ok(await impersonate({ Address: alice }));
  const sent = ok(await sendTransaction({ Transaction: { From: alice, To: alice, Value: "1" } })).TransactionHash;
  for (const whole of [true, false]) {
    const { Block } = ok(await getBlockByNumber("latest", whole));
    const found = Block?.Transactions.map(({ Hash, From }) => `${Hash} ${From === alice}`).join();
    expect("getBlockByNumber", found, `${sent} ${whole}`);
  }
  const Transaction = { From: alice, To: alice, Value: "1" };
  expect("call", ok(await call({ Transaction })).Data, "0x");
  expect("estimateGas", ok(await estimateGas({ Transaction })).EstimatedGas, "21000");
  expect("feeHistory", ok(await feeHistory({ BlockCount: "1", RewardPercentiles: [50] })).OldestBlock, "1");
  expect("getProof", ok(await getProof({ Address: alice, StorageKeys: ["0x0"] })).Nonce, "1");
  expect("getStorageAt", Number(ok(await getStorageAt({ Address: alice, Position: "0" })).Value), 0);
  expect("getLogs", ok(await getLogs({ FromBlock: "0" })).Logs.length, 0);
  const filter = ok(await newFilter({ FilterObject: { Address: "", FromBlock: "", ToBlock: "", Topics: [] } }));
  expect("newFilter", filter.FilterId.length, 34);
  expect("sendRawTransaction", (await sendRawTransaction({ Data: "0x00" })).status, 422);
  console.log("orval: the nine operations were called");
}

main();
