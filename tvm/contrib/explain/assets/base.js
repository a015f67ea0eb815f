"use strict";
// What all views share: making elements, numbers as text, colours, the selection, the tooltip.

const state = { report: null, view: "", query: "", listeners: [] };

function make(tag, attrs, ...children) {
  const svg = ["svg", "path", "rect", "circle", "line", "text", "g", "polyline"].includes(tag);
  const element = svg
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [key, value] of Object.entries(attrs || {})) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) element.setAttribute(key, value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

function secondsText(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 1) return `${value.toFixed(2)} s`;
  if (value >= 1e-3) return `${(value * 1e3).toFixed(value >= 0.1 ? 0 : 2)} ms`;
  return `${(value * 1e6).toFixed(1)} µs`;
}

function scaled(value, unit, base = 1000) {
  const steps = ["", "k", "M", "G", "T"];
  let step = 0;
  while (value >= base && step < steps.length - 1) { value /= base; step += 1; }
  const digits = value >= 100 || step === 0 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${steps[step]}${unit}`;
}

const bytesText = (value) => scaled(value, "B");
const percent = (value) => `${(100 * value).toFixed(value < 0.1 ? 1 : 0)} %`;
const tensorText = (t) => `${t.dtype}[${t.shape.map((d) => (d < 0 ? "?" : d)).join(", ")}]`;
const shortName = (name) => name.replace(/^tvmgen_default_/, "").replace("_without_weight_transform", "").replace(/^fused_/, "").replace(/nn_contrib_|^nn_|_nn_/g, (m) => (m === "_nn_" ? "_" : ""));

const PALETTE = ["#7fb2f0", "#f2a65a", "#8fd19e", "#d59be0", "#f08a8a", "#79d0d6", "#e3cf65", "#b8a2f2",
  "#a9c26b", "#e59bbd", "#8fa9c7", "#cfae8c"];

function paletteFor(keys) {
  const found = new Map();
  for (const key of keys) if (!found.has(key)) found.set(key, PALETTE[found.size % PALETTE.length]);
  return found;
}

// from pale to strong, for shares between 0 and 1
function heat(share) {
  const t = Math.sqrt(Math.max(0, Math.min(1, share)));
  return `hsl(${52 - 46 * t}, ${60 + 30 * t}%, ${86 - 30 * t}%)`;
}

const KINDS = [
  ["input", /^input$/, "#9fb0c3"],
  ["convolution", /conv/, "#7fb2f0"],
  ["matrix product", /dense|matmul|batch_matmul|attention/, "#b8a2f2"],
  ["pooling", /pool/, "#79d0d6"],
  ["normalisation, softmax", /norm|softmax/, "#f2a65a"],
  ["layout and shape", /^(layout_transform|transpose|reshape|squeeze|expand_dims|concatenate|split|strided_slice|take|gather|cast|nn\.pad|broadcast_to|nn\.batch_flatten|copy|tile|stack)/, "#e3cf65"],
  ["reduction", /^(sum|mean|max|min|prod|argmax|argmin|variance)$/, "#f08a8a"],
  ["element-wise", /./, "#8fd19e"],
];
const kindOf = (op) => KINDS.find(([, pattern]) => pattern.test(op.split(" + ")[0]));

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const tip = make("div", { class: "tip" });
function showTip(event, text) {
  tip.textContent = text;
  tip.style.display = "block";
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.min(event.clientX + 14, innerWidth - box.width - 8)}px`;
  tip.style.top = `${Math.min(event.clientY + 14, innerHeight - box.height - 8)}px`;
}
function hideTip() { tip.style.display = "none"; }

function go(view, ...place) {
  location.hash = [view, ...place].join("/");
}

const goNode = (graph, index) => go("graph", graph, index);
const goKernel = (index) => go("kernels", index);

function nodeLabel(node) {
  const first = node.op.split(" + ");
  const name = first[0].replace(/^nn\./, "").replace(/^contrib_/, "").replace("_without_weight_transform", "");
  return first.length > 1 ? `${name} +${first.length - 1}` : name;
}

function nodeLinks(graph, indices) {
  const nodes = state.report[graph].nodes;
  return make("div", { class: "links" }, indices.map((i) =>
    make("a", { onclick: () => goNode(graph, i), title: nodes[i].op },
      `${nodeLabel(nodes[i])}${nodes[i].name ? `  ${nodes[i].name}` : ""}`)));
}

// a table whose columns sort: [title, text of a row, number of a row or null, class]
function table(columns, rows, options = {}) {
  let order = [...rows];
  const body = make("tbody");
  const fill = () => body.replaceChildren(...order.map((row) => {
    const line = make("tr", { class: options.onpick ? "row" : null },
      columns.map(([, text, , kind]) => make("td", { class: kind }, text(row))));
    if (options.onpick) line.addEventListener("click", () => options.onpick(row));
    if (options.tag) options.tag(line, row);
    return line;
  }));
  const sort = (value) => { order = [...rows].sort((a, b) => value(b) - value(a)); fill(); };
  const head = make("tr", {}, columns.map(([title, , value, kind]) =>
    make("th", { class: [kind, value ? "sortable" : ""].join(" "), onclick: value ? () => sort(value) : () => {} },
      title)));
  fill();
  return make("table", {}, make("thead", {}, head), body);
}

function bar(...parts) {
  let at = 0;
  return make("div", { class: "bar" }, parts.map(([share, kind]) => {
    const width = 100 * Math.max(0, Math.min(1 - at, share));
    const piece = make("i", { class: kind, style: `left:${100 * at}%;width:${width}%` });
    at += width / 100;
    return piece;
  }));
}
