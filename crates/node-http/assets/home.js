// The page: what is read is shown, what happens is followed. All that comes from the chain is set as text, never as markup.

import { facts, read } from "./chain.js";
import { bars, steps } from "./charts.js";
import { Refusal, events, hasToken, setToken } from "./client.js";
import { integer, percent, wei } from "./format.js";
import { block, list, tick, transaction } from "./rows.js";

const BETWEEN_READS = 250;
const LONGEST_WAIT = 5000;
const NOTICE = 15_000;

const $ = (id) => document.getElementById(id);
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function say(state, text) {
  $("live").dataset.state = state;
  if ($("live-text").textContent !== text) $("live-text").textContent = text;
}

function complain(text) {
  if ($("trouble").textContent !== text) $("trouble").textContent = text;
  $("trouble").hidden = !text;
}

function show({ head, blocks, transactions, history, gasPrice, removed }) {
  const number = integer(BigInt(head.Number));
  document.title = `${number} · node`;
  $("number").textContent = number;
  $("hash").textContent = head.Hash;
  $("age").dataset.at = head.Timestamp;
  $("gas-price").textContent = wei(gasPrice);
  $("gas-used").textContent = integer(BigInt(head.GasUsed));
  $("gas-limit").textContent = integer(BigInt(head.GasLimit));
  charts(history);
  list($("blocks"), blocks, (item) => item.Hash, block);
  list($("transactions"), transactions, (item) => item.BlockHash + item.Hash, transaction);
  $("no-transactions").hidden = transactions.length > 0;
  if (removed.length > 0) announce(removed.map((item) => BigInt(item.Number)));
  tick();
}

function charts({ oldest, fees, used }) {
  const name = (index) => (index < used.length ? `block ${integer(oldest + BigInt(index))}` : "next block");
  const blocks = used.length === 1 ? "1 block" : `the last ${used.length} blocks`;
  const fee = (index) => `${wei(fees[index])}, ${name(index)}`;
  const gas = (index) => `${percent(used[index])}, ${name(index)}`;
  const { low, high } = steps($("fees"), fees, fee, `Base fee of ${blocks}: ${fee(used.length)}`);
  bars($("gas"), used, gas, `Gas used of the limit in ${blocks}: ${gas(used.length - 1)}`);
  const mean = used.reduce((sum, ratio) => sum + ratio, 0) / used.length;
  scale($("fees"), name(0), low === high ? wei(low) : `${wei(low)} to ${wei(high)}`);
  scale($("gas"), name(0), `${percent(mean)} on average`);
}

function scale(figure, from, range) {
  figure.querySelector(".from").textContent = `From ${from}`;
  figure.querySelector(".range").textContent = range;
}

let announced;

function announce(numbers) {
  const [newest, oldest] = [integer(numbers[0]), integer(numbers.at(-1))];
  const which = numbers.length === 1 ? `Block ${newest}` : `Blocks ${oldest} to ${newest}`;
  $("reorganized").textContent = `${which} left the chain.`;
  $("reorganized").hidden = false;
  clearTimeout(announced);
  announced = setTimeout(() => ($("reorganized").hidden = true), NOTICE);
}

let asking = null;

// Asks for a token, once at a time.
function ask() {
  asking ??= new Promise((resolve) => {
    say("lost", "Token needed");
    if (hasToken()) $("ask-why").textContent = "The server refused this token. Another one is kept in this tab only.";
    $("ask").onsubmit = () => {
      setToken($("token").value);
      $("token").value = "";
      resolve();
    };
    // Without one there is nothing to show.
    $("ask").oncancel = (event) => event.preventDefault();
    $("ask").showModal();
  }).finally(() => (asking = null));
  return asking;
}

let [changed, reading, known] = [false, false, false];

// Reads the chain after a change; many changes in a short time are read at once.
async function refresh() {
  changed = true;
  if (reading) return;
  reading = true;
  while (changed && !document.hidden) {
    changed = false;
    let pause = BETWEEN_READS;
    try {
      if (!known) {
        const { chainId, version } = await facts();
        known = true;
        $("chain-id").textContent = chainId;
        $("version").textContent = version;
      }
      show(await read());
      complain("");
    } catch (error) {
      changed = true;
      if (error instanceof Refusal && error.status === 401) await ask();
      else if (error instanceof Refusal) complain(`The server answers ${error.status}: ${error.message}`);
      pause = Math.max(1000, 1000 * (error.retryAfter ?? 0));
    }
    await sleep(pause);
  }
  reading = false;
}

// Follows what happens for as long as the page is open, from where it broke off.
async function follow() {
  let last;
  let wait = 500;
  for (;;) {
    let pause = wait;
    wait = Math.min(wait * 2, LONGEST_WAIT);
    try {
      for await (const { id, event, data } of events("events/?Stream=blocks", last)) {
        if (event === "problem") throw new Refusal(0, JSON.parse(data).detail, 1);
        if ($("live").dataset.state !== "live") {
          known = false;
          say("live", "Live");
          refresh();
        }
        wait = 500;
        if (id && id !== last) {
          last = id;
          refresh();
        }
      }
      say("lost", "Connection closed");
    } catch (error) {
      if (error instanceof Refusal && error.status === 401) {
        await ask();
        pause = 0;
      } else if (error instanceof Refusal) {
        // The place is none of this chain: begin anew.
        if ([404, 422].includes(error.status)) last = undefined;
        say("lost", `Waiting: ${error.message}`);
        pause = Math.max(pause, 1000 * error.retryAfter);
      } else {
        console.assert(error instanceof TypeError || error instanceof DOMException, error);
        say("lost", "Server not reached");
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
