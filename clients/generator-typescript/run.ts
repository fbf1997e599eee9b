// Reads a block with transactions through the client that OpenAPI Generator makes for TypeScript. NODE_URL is the URL of the server.

import { BlocksApi, Configuration, DevelopmentApi, InputSendTransactionFromJSON } from "./node_client/index";

declare const process: { env: Record<string, string | undefined> };

async function main(): Promise<void> {
  const alice = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
  const configuration = new Configuration({ basePath: process.env.NODE_URL });
  const inputSendTransaction = InputSendTransactionFromJSON({ Transaction: { From: alice, To: alice, Value: "1" } });
  const development = new DevelopmentApi(configuration);
  await development.impersonate({ inputImpersonate: { address: alice } });
  const { transactionHash } = await development.sendTransaction({ inputSendTransaction });
  for (const transactionDetailFlag of [true, false]) {
    const { block } = await new BlocksApi(configuration).getBlockByNumber({ blockNumber: "latest", transactionDetailFlag });
    const found = block?.transactions.map(({ hash, from }) => `${hash} ${from === alice}`).join();
    if (found !== `${transactionHash} ${transactionDetailFlag}`) throw new Error(`${found}`);
  }
  console.log("OpenAPI Generator, typescript-fetch: a block with transactions was read");
}

main();
