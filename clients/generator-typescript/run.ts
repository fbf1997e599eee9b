// Calls the nine operations of the interface description through the client that OpenAPI Generator makes for TypeScript. NODE_URL is the URL
// of the server.

import { Configuration, DevelopmentApi, InputSendTransactionFromJSON, InterfaceApi, ResponseError } from "./node_client/index";

declare const process: { env: Record<string, string | undefined> };

function expect(name: string, got: unknown, expected: unknown): void {
  if (got !== expected) throw new Error(`${name}: ${got}, expected ${expected}`);
}

async function main(): Promise<void> {
  const alice = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
  const configuration = new Configuration({ basePath: process.env.NODE_URL });
  const node = new InterfaceApi(configuration);
  const inputSendTransaction = InputSendTransactionFromJSON({ Transaction: { From: alice, To: alice, Value: "1" } });
  const development = new DevelopmentApi(configuration);
  await development.impersonate({ inputImpersonate: { address: alice } });
  const { transactionHash } = await development.sendTransaction({ inputSendTransaction });
  for (const transactionDetailFlag of [true, false]) {
    const { block } = await node.getBlockByNumber({ blockNumber: "latest", transactionDetailFlag });
    const found = block?.transactions.map(({ hash, from }) => `${hash} ${from === alice}`).join();
    expect("transactions", found, `${transactionHash} ${transactionDetailFlag}`);
  }
  const transaction = { from: alice, to: alice, value: "1" };
  expect("call", (await node.call({ inputCall: { transaction } })).data, "0x");
  expect("estimateGas", (await node.estimateGas({ inputEstimateGas: { transaction } })).estimatedGas, "21000");
  const fees = await node.feeHistory({ inputFeeHistory: { blockCount: "1", rewardPercentiles: [50] } });
  expect("feeHistory", fees.oldestBlock, "1");
  const proof = await node.getProof({ inputGetProof: { address: alice, storageKeys: ["0x0"] } });
  expect("getProof", proof.nonce, "1");
  const { value } = await node.getStorageAt({ inputGetStorageAt: { address: alice, position: "0" } });
  expect("getStorageAt", Number(value), 0);
  expect("getLogs", (await node.getLogs({ inputGetLogs: { fromBlock: "0" } })).logs.length, 0);
  const filterObject = { address: "", fromBlock: "", toBlock: "", topics: [] };
  expect("newFilter", (await node.newFilter({ inputNewFilter: { filterObject } })).filterId.length, 34);
  const refused = await node.sendRawTransaction({ inputSendRawTransaction: { data: "0x00" } }).catch((error: unknown) => error);
  expect("sendRawTransaction", refused instanceof ResponseError && refused.response.status, 422);
  console.log("OpenAPI Generator, typescript-fetch: the nine operations were called");
}

main();
