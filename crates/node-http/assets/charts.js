// Little charts in SVG. They stretch to the width of their place; lines keep their strength.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 600;
const HEIGHT = 100;

function draw(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

// How far `value` is on the way from `low` to `high`. Only the ratio is small enough for a number.
function position(value, low, high) {
  return high === low ? 0.5 : Number(((value - low) * 10_000n) / (high - low)) / 10_000;
}

// A chart of one value a block. `paint` draws, `describe(index)` says what stands at a block, and `summary` what the whole shows.
function chart(place, count, paint, describe, summary) {
  const svg = place.querySelector("svg");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-label", summary);
  const cursor = draw("rect", { class: "cursor", y: 0, height: HEIGHT, visibility: "hidden" });
  svg.replaceChildren(...paint(), cursor);
  const output = place.querySelector("output");
  const step = WIDTH / count;
  const show = (index) => {
    place.selected = index;
    cursor.setAttribute("visibility", index === null ? "hidden" : "visible");
    if (index !== null) {
      cursor.setAttribute("x", index * step);
      cursor.setAttribute("width", step);
    }
    output.textContent = describe(index ?? count - 1);
    output.classList.toggle("past", index !== null);
  };
  svg.onpointermove = (event) => {
    const box = svg.getBoundingClientRect();
    show(Math.min(count - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * count))));
  };
  svg.onpointerleave = svg.onblur = () => show(null);
  svg.onkeydown = ({ key }) => {
    const moves = { ArrowLeft: -1, ArrowRight: 1 };
    if (key in moves) show(Math.min(count - 1, Math.max(0, (place.selected ?? count - 1) + moves[key])));
    if (key === "Escape") show(null);
  };
  const selected = place.selected ?? null;
  show(selected !== null && selected < count ? selected : null);
}

// Values as steps, from the lowest to the highest.
export function steps(place, values, describe, summary) {
  const low = values.reduce((a, b) => (a < b ? a : b));
  const high = values.reduce((a, b) => (a > b ? a : b));
  const step = WIDTH / values.length;
  const y = (value) => (HEIGHT - 8 - position(value, low, high) * (HEIGHT - 16)).toFixed(1);
  const line = values.map((value, index) => `H${(index * step).toFixed(1)}V${y(value)}H${((index + 1) * step).toFixed(1)}`);
  const path = `M0 ${y(values[0])}${line.join("")}`;
  const paint = () => [
    draw("path", { class: "area", d: `${path}V${HEIGHT}H0Z` }),
    draw("path", { class: "line", d: path }),
  ];
  chart(place, values.length, paint, describe, summary);
  return { low, high };
}

// Ratios between 0 and 1 as bars, over a line at the half.
export function bars(place, ratios, describe, summary) {
  const step = WIDTH / ratios.length;
  const gap = Math.min(2, step / 4);
  const bar = (ratio, index) => {
    // A little gas is more than none.
    const height = ratio > 0 ? Math.max(2, Math.min(ratio, 1) * HEIGHT) : 0;
    return draw("rect", { class: "bar", x: index * step + gap / 2, y: HEIGHT - height, width: step - gap, height });
  };
  const half = draw("line", { class: "half", x1: 0, x2: WIDTH, y1: HEIGHT / 2, y2: HEIGHT / 2 });
  chart(place, ratios.length, () => [half, ...ratios.map(bar)], describe, summary);
}
