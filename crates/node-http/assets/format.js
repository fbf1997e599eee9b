// Formats numbers, times and bytes. Quantities have up to 256 bits, so they are BigInts or strings of digits.

const UNITS = [["ETH", 18], ["gwei", 9], ["wei", 0]];
const TIMES = [["y", 31557600], ["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
const grouped = new Intl.NumberFormat("en");

// 1234567 -> 1,234,567, or 1.234 × 10^30 if there are more than 21 digits.
export function integer(value) {
  const digits = String(value);
  return digits.length > 21 ? `${digits[0]}.${digits.slice(1, 4)} × 10^${digits.length - 1}` : grouped.format(digits);
}

// An amount of wei, rounded down to six decimals, in the unit that suits `like`, by default the amount itself.
export function wei(quantity, like = quantity) {
  const value = BigInt(quantity);
  const [unit, places] = UNITS.find(([, places]) => like >= 10n ** BigInt(Math.max(places - 3, 0))) ?? UNITS.at(-1);
  const one = 10n ** BigInt(places);
  const decimals = (value % one).toString().padStart(places, "0").slice(0, Math.min(places, 6)).replace(/0+$/, "");
  const whole = integer(value / one);
  return `${whole}${decimals && !whole.includes("^") ? `.${decimals}` : ""} ${unit}`;
}

// The age of a timestamp. It may be negative: a development chain's clock may be ahead, and is a little after fast blocks.
export function age(timestamp, now = Date.now()) {
  const seconds = Math.floor(now / 1000) - Number(timestamp);
  const [unit, length] = TIMES.find(([, length]) => Math.abs(seconds) >= length) ?? ["s", 1];
  const span = `${grouped.format(Math.floor(Math.abs(seconds) / length))} ${unit}`;
  return -15 < seconds && seconds < 2 ? "now" : seconds > 0 ? `${span} ago` : `in ${span}`;
}

export function date(timestamp) {
  const time = new Date(Number(timestamp) * 1000);
  return Number.isNaN(time.getTime()) ? `${timestamp} s` : time.toISOString().replace("T", " ").replace(".000Z", " UTC");
}

// 0x0123456789… -> 0x0123…6789
export function short(hex) {
  return `${hex.slice(0, 6)}…${hex.slice(-4)}`;
}

export function percent(ratio) {
  return `${(ratio * 100).toFixed(ratio > 0 && ratio < 0.01 ? 2 : 0)} %`;
}

// Bytes as text, or "" if they are not printable text.
export function text(hex) {
  const bytes = Uint8Array.from(hex.slice(2).match(/../g) ?? [], (pair) => parseInt(pair, 16));
  try {
    const decoded = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    // Reject control characters and those that change the direction of text or are invisible.
    return /^[^\p{C}\p{Zl}\p{Zp}]+$/u.test(decoded) ? decoded : "";
  } catch {
    return "";
  }
}
