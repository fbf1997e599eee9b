// Numbers, times and bytes as people read them. Quantities are BigInts: they have up to 256 bits.

const UNITS = [["ETH", 18], ["gwei", 9], ["wei", 0]];
const grouped = new Intl.NumberFormat("en");

// 1234567n -> "1,234,567"; what has more than 21 digits, as 1.234 × 10^30.
export function integer(value) {
  const digits = value.toString();
  return digits.length > 21 ? `${digits[0]}.${digits.slice(1, 4)} × 10^${digits.length - 1}` : grouped.format(value);
}

// An amount of wei in the largest unit that leaves at most six decimals, and that many at most.
export function wei(value) {
  if (value === 0n) return "0 wei";
  const [unit, decimals] = UNITS.find(([, places]) => value >= 10n ** BigInt(Math.max(places - 3, 0)));
  return `${scaled(value, decimals)} ${unit}`;
}

// `value` divided by 10^decimals, rounded down to six decimals.
function scaled(value, decimals) {
  const one = 10n ** BigInt(decimals);
  const fraction = (value % one).toString().padStart(decimals, "0").slice(0, Math.min(decimals, 6)).replace(/0+$/, "");
  return integer(value / one) + (fraction ? `.${fraction}` : "");
}

// Seconds as one figure and its unit.
function span(seconds) {
  const units = [["y", 31557600], ["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const [unit, length] = units.find(([, length]) => seconds >= length) ?? units.at(-1);
  return `${grouped.format(Math.floor(seconds / length))} ${unit}`;
}

// How long ago a block's timestamp is; chains may run ahead of the clock.
export function age(timestamp, now = Date.now()) {
  const seconds = Math.floor(now / 1000) - Number(timestamp);
  if (Math.abs(seconds) < 1) return "just now";
  return seconds > 0 ? `${span(seconds)} ago` : `${span(-seconds)} ahead of this clock`;
}

export function date(timestamp) {
  const time = new Date(Number(timestamp) * 1000);
  return Number.isNaN(time.getTime()) ? `${timestamp} s` : time.toISOString().replace("T", " ").replace(".000Z", " UTC");
}

// 0x0123456789… -> 0x012345…6789
export function short(hex) {
  return hex.length > 14 ? `${hex.slice(0, 8)}…${hex.slice(-4)}` : hex;
}

export function percent(ratio) {
  return `${(ratio * 100).toFixed(ratio > 0 && ratio < 0.01 ? 2 : 0)} %`;
}

// What bytes say if they are text that can be shown; otherwise nothing.
export function text(hex) {
  const bytes = Uint8Array.from(hex.slice(2).match(/../g) ?? [], (pair) => parseInt(pair, 16));
  try {
    const decoded = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    // No control characters, and none that turn or hide what stands beside them.
    return /^[^\p{C}\p{Zl}\p{Zp}]+$/u.test(decoded) ? decoded : "";
  } catch {
    return "";
  }
}
