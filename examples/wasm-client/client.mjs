// Reads an account from a node and has WebAssembly verify it.
//
//     cargo build -p example-wasm-client --target wasm32-unknown-unknown
//     node examples/wasm-client/client.mjs http://127.0.0.1:8545 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266
import { readFile } from "node:fs/promises";

const [base, address, wasm = "target/wasm32-unknown-unknown/debug/example_wasm_client.wasm"] = process.argv.slice(2);

async function post(url, body) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return response.json();
}

const { Header: header } = await (await fetch(`${base}/getHeader/latest/`)).json();
const request = { Address: address, BlockNumber: header.Hash, StorageKeys: [] };
const response = await post(`${base}/getProof/`, request);

const { instance } = await WebAssembly.instantiate(await readFile(wasm), {});
const { memory, reserve, verify, buffer } = instance.exports;
const texts = new TextEncoder().encode([header, request, response].map((text) => JSON.stringify(text)).join("\n"));
const start = reserve(texts.length);
new Uint8Array(memory.buffer, start, texts.length).set(texts);
const length = verify();
const sentence = new TextDecoder().decode(new Uint8Array(memory.buffer, buffer(), length));
console.log(sentence);
process.exitCode = sentence.startsWith("proven") ? 0 : 1;
