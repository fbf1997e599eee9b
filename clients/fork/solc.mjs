#!/usr/bin/env node
// The compiler's command line as far as forge uses it, by solc-js: `--version`, and `--standard-json` over the standard streams.

import { readFileSync, writeSync } from "node:fs";
import solc from "solc";

if (process.argv.includes("--version")) {
  console.log(`solc, the solidity compiler commandline interface\nVersion: ${solc.version()}`);
} else {
  let output = Buffer.from(solc.compile(readFileSync(0, "utf8")));
  while (output.length) output = output.subarray(writeSync(1, output));
}
