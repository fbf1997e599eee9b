// Sends user operations through alto, a bundler for ERC-4337, with permissionless.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { createPublicClient, createTestClient, createWalletClient, getContractAddress, http, parseEther } from "viem";
import { entryPoint07Address } from "viem/account-abstraction";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { foundry } from "viem/chains";
import { createSmartAccountClient } from "permissionless";
import { toSimpleSmartAccount } from "permissionless/accounts";
import { createPimlicoClient } from "permissionless/clients/pimlico";

const [node, bundler] = process.argv.slice(2);
const artifact = createRequire(import.meta.url)("@account-abstraction/contracts/artifacts/SimpleAccountFactory.json");
const transport = http(node);
const client = createPublicClient({ chain: foundry, transport });
const [from] = await createWalletClient({ transport }).getAddresses();
const wallet = createWalletClient({ account: from, chain: foundry, transport });
const nonce = await client.getTransactionCount({ address: from });
const factoryAddress = getContractAddress({ from, nonce: BigInt(nonce) });
const deployed = await wallet.deployContract({ abi: artifact.abi, bytecode: artifact.bytecode, args: [entryPoint07Address] });
assert.equal((await client.waitForTransactionReceipt({ hash: deployed })).status, "success");

const entryPoint = { address: entryPoint07Address, version: "0.7" };
const owner = privateKeyToAccount(generatePrivateKey());
const account = await toSimpleSmartAccount({ client, owner, factoryAddress, entryPoint });
await createTestClient({ mode: "anvil", transport }).setBalance({ address: account.address, value: parseEther("10") });
const pimlico = createPimlicoClient({ chain: foundry, transport: http(bundler), entryPoint });
const smart = createSmartAccountClient({
  account,
  chain: foundry,
  bundlerTransport: http(bundler),
  userOperation: { estimateFeesPerGas: async () => (await pimlico.getUserOperationGasPrice()).fast },
});
const target = "0x00000000000000000000000000000000000000dd";
for (const step of ["deploys the account", "uses the account"]) {
  const hash = await smart.sendUserOperation({ calls: [{ to: target, value: 5n }] });
  const receipt = await smart.waitForUserOperationReceipt({ hash });
  assert.ok(receipt.success);
  console.log(`ok ${step}`);
}
assert.equal(await client.getBalance({ address: target }), 10n);
