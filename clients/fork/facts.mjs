// What the chain that is forked has, as scripts/fork_clients.py made it; and what its pools pay.

import { readFileSync } from "node:fs";

export const url = process.env.NODE_RPC_URL;
export const facts = JSON.parse(readFileSync(process.env.NODE_FACTS));
export const ether = 10n ** 18n;

/// An account that has nothing until its slots and its balance are set, and one that receives.
export const dealt = "0x00000000000000000000000000000000000dea17";
export const receiver = "0x00000000000000000000000000000000000be4ef";

/// Returns what one pool pays for `given`, from its reserves of the token that is paid and the one that is received.
export const pays = (given, reserveIn, reserveOut) => (reserveOut * given) / (reserveIn + given);
