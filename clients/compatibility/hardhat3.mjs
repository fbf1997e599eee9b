// Hardhat 3: the helpers belong to a connection.

import { createHardhatRuntimeEnvironment } from "hardhat/hre";
import plugin from "@nomicfoundation/hardhat-network-helpers";
import { run } from "./helpers.mjs";

const chain = { type: "http", chainType: "l1", url: process.env.NODE_RPC_URL, timeout: 600_000 };
const hre = await createHardhatRuntimeEnvironment({ plugins: [plugin], networks: { chain } });
const { networkHelpers, provider } = await hre.network.connect("chain");
await run("network helpers, Hardhat 3", networkHelpers, (method, params = []) => provider.request({ method, params }));
