// Small SVG charts. They stretch to the width of their container; lines keep their thickness.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 600;
const HEIGHT = 100;

function draw(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

// The position of `value` between `low` and `high`, from 0 to 1. The values are BigInts; only the ratio fits into a number.
function position(value, low, high) {
  return high === low ? 0.5 : Number(((value - low) * 10_000n) / (high - low)) / 10_000;
}

// Draws a chart of `count` values, labelled by `describe(index)` and, all together, by `range`.
function chart(place, shapes, count, describe, range) {
  const svg = place.querySelector("svg");
  const output = place.querySelector("output");
  const step = WIDTH / count;
  const cursor = draw("rect", { class: "cursor", width: step, height: HEIGHT });
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.replaceChildren(...shapes, cursor);
  place.querySelector(".range").textContent = range;
  svg.setAttribute("aria-label", `${place.querySelector("h2").textContent}: ${describe(count - 1)}; ${range}`);
  // Shows the last value unless another one is selected.
  const show = (index) => {
    const shown = index === null ? count - 1 : Math.min(count - 1, Math.max(0, index));
    place.selected = index === null ? null : shown;
    cursor.setAttribute("x", shown * step);
    cursor.setAttribute("visibility", index === null ? "hidden" : "visible");
    output.textContent = describe(shown);
  };
  svg.onpointermove = ({ clientX }) => {
    const box = svg.getBoundingClientRect();
    show(Math.floor(((clientX - box.left) / box.width) * count));
  };
  svg.onpointerleave = svg.onblur = () => show(null);
  svg.onkeydown = ({ key }) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (move) show((place.selected ?? count - 1) + move);
  };
  show(place.selected ?? null);
}

// Draws values as steps, from the lowest to the highest.
export function steps(place, values, describe, range) {
  const low = values.reduce((a, b) => (a < b ? a : b));
  const high = values.reduce((a, b) => (a > b ? a : b));
  const step = WIDTH / values.length;
  const y = (value) => HEIGHT - 8 - position(value, low, high) * (HEIGHT - 16);
  const path = `M0 ${y(values[0])}${values.map((value, index) => `V${y(value)}H${(index + 1) * step}`).join("")}`;
  const shapes = [draw("path", { class: "area", d: `${path}V${HEIGHT}H0Z` }), draw("path", { class: "line", d: path })];
  chart(place, shapes, values.length, describe, range(low, high));
}

// Draws ratios as bars; the highest fills the height.
export function bars(place, ratios, describe, range) {
  const high = Math.max(...ratios);
  const step = WIDTH / ratios.length;
  const shapes = ratios.map((ratio, index) => {
    // A small value must differ from zero.
    const height = ratio > 0 ? Math.max(2, (ratio / high) * HEIGHT) : 0;
    return draw("rect", { class: "bar", x: index * step, y: HEIGHT - height, width: step * 0.8, height });
  });
  chart(place, shapes, ratios.length, describe, range(high));
}
