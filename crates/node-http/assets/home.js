// Shows the chain and updates it on events. Data from the chain is always inserted as text, never as markup.

import { facts, fork, read } from "./chain.js";
import { bars, steps } from "./charts.js";
import { Refusal, events, hasToken, setToken } from "./client.js";
import { integer, percent, wei } from "./format.js";
import { block, list, tick, transaction } from "./rows.js";

const BETWEEN_READS = 250;
const LONGEST_WAIT = 5000;
const NOTICE = 15_000;

const $ = (id) => document.getElementById(id);
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// Leaves unchanged text alone, because screen readers would announce it again.
function write(id, text) {
  if ($(id).textContent !== text) $(id).textContent = text;
}

function say(state, text) {
  $("live").dataset.state = state;
  write("live", text);
}

function notice(id, text) {
  write(id, text);
  $(id).hidden = !text;
}

function show({ head, blocks, transactions, history, gasPrice, removed }) {
  const number = integer(head.Number);
  document.title = `${number} · node`;
  write("number", number);
  write("hash", head.Hash);
  write("gas-price", wei(gasPrice));
  write("base-fee", head.BaseFeePerGas === null ? "none yet" : wei(history.fees.at(-1)));
  write("gas-used", integer(head.GasUsed));
  write("gas-limit", integer(head.GasLimit));
  $("age").dataset.at = head.Timestamp;
  charts(history);
  list($("blocks"), blocks, (item) => item.Hash, block);
  list($("transactions"), transactions, (item) => item.BlockHash + item.Hash, transaction);
  $("no-transactions").hidden = transactions.length > 0;
  if (removed.length > 0) announce(removed.map((item) => integer(item.Number)));
  tick();
}

function charts({ oldest, fees, used }) {
  const name = (index) => (index < used.length ? `block ${integer(oldest + BigInt(index))}` : "next block");
  const fee = (index) => `${wei(fees[index])}, ${name(index)}`;
  const gas = (index) => `${percent(used[index])}, ${name(index)}`;
  const mean = used.reduce((sum, ratio) => sum + ratio, 0) / used.length;
  steps($("fees"), fees, fee, (low, high) => (low === high ? wei(high) : `${wei(low, high)} to ${wei(high)}`));
  bars($("gas"), used, gas, (high) => `${percent(mean)} on average, at most ${percent(high)}`);
  for (const place of document.querySelectorAll(".from")) place.textContent = `from ${name(0)}`;
}

let announced;

function announce(numbers) {
  const which = numbers.length === 1 ? `Block ${numbers[0]}` : `Blocks ${numbers.at(-1)} to ${numbers[0]}`;
  notice("reorganized", `${which} left the chain.`);
  clearTimeout(announced);
  announced = setTimeout(notice, NOTICE, "reorganized", "");
}

let asking = null;

// Asks for a token. Calls while the dialog is open have no effect.
function ask() {
  asking ??= new Promise((resolve) => {
    say("lost", "Token needed");
    if (hasToken()) write("ask-title", "The server refused this token");
    $("ask").onsubmit = () => {
      setToken($("token").value);
      $("token").value = "";
      resolve();
    };
    $("ask").oncancel = (event) => event.preventDefault();
    $("ask").showModal();
  }).finally(() => (asking = null));
  return asking;
}

let [changed, reading, known, forked] = [false, false, false, true];

// Reads the chain after a change, once for changes in quick succession.
async function refresh() {
  changed = true;
  if (reading) return;
  reading = true;
  while (changed && !document.hidden) {
    changed = false;
    let pause = BETWEEN_READS;
    try {
      if (!known) {
        const { ChainId, ClientVersion } = await facts();
        known = forked = true;
        write("chain-id", ChainId);
        write("version", ClientVersion);
      }
      show(await read());
      if (forked) {
        write("fork-of", (forked = await fork()));
        $("fork").hidden = !forked;
      }
      notice("trouble", "");
    } catch (error) {
      changed = true;
      if (error.status === 401) await ask();
      else if (error instanceof Refusal) notice("trouble", `The server returned status ${error.status}: ${error.message}`);
      pause = Math.max(1000, 1000 * (error.retryAfter ?? 0));
    }
    await sleep(pause);
  }
  reading = false;
}

// Follows the event stream while the page is visible, and opens it again after an interruption. Events that were missed do not
// matter, because the chain is read when the stream opens.
async function follow() {
  let wait = 500;
  for (;;) {
    while (document.hidden) await new Promise((shown) => document.addEventListener("visibilitychange", shown, { once: true }));
    let pause = wait;
    wait = Math.min(wait * 2, LONGEST_WAIT);
    try {
      for await (const { id, event, data } of events("events/?Stream=blocks")) {
        if (event === "problem") throw new Refusal(0, JSON.parse(data).detail, 1);
        if ($("live").dataset.state !== "live") {
          known = false;
          say("live", "Live");
          refresh();
        }
        wait = 500;
        if (id) refresh();
      }
      say("lost", "Connection closed");
    } catch (error) {
      if (error.status === 401) {
        await ask();
        pause = 0;
      } else if (error instanceof Refusal) {
        say("lost", `Waiting: ${error.message}`);
        pause = Math.max(pause, 1000 * error.retryAfter);
      } else {
        say("lost", document.hidden ? "Paused" : "Server unreachable");
      }
    }
    await sleep(pause);
  }
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && changed) refresh();
});
setInterval(tick, 1000);
follow();
