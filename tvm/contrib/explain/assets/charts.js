// Overview, roofline, memory, passes and build.

function overview() {
  const r = state.report;
  const calls = r.kernels.reduce((n, k) => n + k.calls, 0);
  const roof = r.kernels.reduce((s, k) => s + (k.roof_seconds || 0) * k.calls, 0);
  const tile = (value, name) => make("div", { class: "tile" }, make("b", {}, value), make("span", {}, name));
  const build = Object.values(r.phases).reduce((a, b) => a + b, 0);
  const tiles = make("div", { class: "tiles" },
    tile(r.seconds ? secondsText(r.seconds) : "–", "a run, kernels one after the other"),
    tile(r.seconds && roof ? percent(roof / r.seconds) : "–", "of the roof"),
    tile(`${calls}`, `calls of ${r.kernels.length} kernels`),
    tile(`${r.imported.nodes.filter((n) => n.op !== "input").length}`, "operators imported"),
    tile(bytesText(r.memory.planned), `planned memory, ${bytesText(r.memory.peak)} live at most`),
    tile(bytesText(r.memory.weights), `in ${r.weights.length} weights`));
  const top = r.kernels.map((_, i) => i).filter((i) => r.kernels[i].seconds).sort((a, b) => r.kernels[b].seconds - r.kernels[a].seconds).slice(0, 14);
  const total = r.seconds || 1;
  const most = top.length ? r.kernels[top[0]].seconds : 1;
  const slow = table([
    ["kernel", (i) => shortName(r.kernels[i].name)],
    ["calls", (i) => String(r.kernels[i].calls)],
    ["time", (i) => secondsText(r.kernels[i].seconds)],
    ["", (i) => percent(r.kernels[i].seconds / total)],
    ["time, and its roof", (i) => [bar([r.kernels[i].seconds / most]), bar([(r.kernels[i].roof_seconds || 0) * r.kernels[i].calls / most, "roof"])]],
  ], top, { onpick: (i) => goKernel(i) });
  const remarks = r.remarks.slice(0, 60).map((m) => make("div", { class: "remark" },
    make("div", {}, make("span", { class: `badge ${m.kind}` }, m.kind), m.node >= 0 ? make("a", { onclick: () => goNode("built", m.node) }, shortened(m.text)) : shortened(m.text)),
    make("div", { class: "cost" }, m.seconds === null ? "" : secondsText(m.seconds)), make("div", { class: "why" }, shortened(m.why))));
  return make("div", { class: "view" }, make("div", { class: "scroll" }, tiles,
    r.machine.note ? make("p", { class: "quiet" }, r.machine.note) : null,
    make("div", { class: "columns" },
      make("section", {}, make("h2", {}, "Where the time goes"), top.length ? slow : make("p", { class: "quiet" }, "Nothing was measured.")),
      make("section", {}, make("h2", {}, "What costs, and why"), remarks.length ? remarks : make("p", { class: "quiet" }, "Nothing stands out.")))));
}

const shortened = (text) => text.replace(/tvmgen_\w+/g, shortName).replace(/nn\.contrib_|_without_weight_transform|nn\./g, "");

function roofline() {
  const r = state.report, m = r.machine;
  const box = make("div", { class: "scroll" });
  const element = make("div", { class: "view" }, box);
  const kernels = r.kernels.map((k, i) => [k, i]).filter(([k]) => k.seconds && k.flops && k.bytes);
  if (!m.flops || !kernels.length) {
    box.append(make("h2", {}, "Roofline"), make("p", { class: "quiet" }, m.note || "Nothing was measured, so that there is no roofline."));
    return { element };
  }
  const width = 1100, height = 560, pad = { l: 100, r: 24, t: 18, b: 52 };
  const xs = kernels.map(([k]) => k.flops / k.bytes), ys = kernels.map(([k]) => k.flops * k.calls / k.seconds);
  const ridge = m.flops / m.bandwidth;
  const x0 = Math.log10(Math.min(...xs, ridge)) - 0.3, x1 = Math.log10(Math.max(...xs, ridge)) + 0.4;
  const y0 = Math.log10(Math.min(...ys)) - 0.3, y1 = Math.log10(Math.max(...ys, m.flops)) + 0.25;
  const x = (v) => pad.l + (Math.log10(v) - x0) / (x1 - x0) * (width - pad.l - pad.r);
  const y = (v) => height - pad.b - (Math.log10(v) - y0) / (y1 - y0) * (height - pad.t - pad.b);
  const svg = make("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "roofline" });
  for (let e = Math.ceil(x0); e <= x1; e += 1) svg.append(make("line", { class: "axis", x1: x(10 ** e), x2: x(10 ** e), y1: pad.t, y2: height - pad.b }),
    make("text", { x: x(10 ** e), y: height - pad.b + 18, "text-anchor": "middle" }, `${10 ** e >= 0.01 ? +(10 ** e).toPrecision(2) : (10 ** e).toExponential()}`));
  for (let e = Math.ceil(y0); e <= y1; e += 1) svg.append(make("line", { class: "axis", y1: y(10 ** e), y2: y(10 ** e), x1: pad.l, x2: width - pad.r }),
    make("text", { x: pad.l - 8, y: y(10 ** e) + 4, "text-anchor": "end" }, scaled(10 ** e, "FLOP/s")));
  const left = 10 ** x0, right = 10 ** x1;
  const low = Math.max(left * m.bandwidth, 10 ** y0);
  svg.append(make("polyline", { class: "roofline", points: `${x(low / m.bandwidth)},${y(low)} ${x(ridge)},${y(m.flops)} ${x(right)},${y(m.flops)}` }),
    make("text", { class: "strong", x: x(right) - 6, y: y(m.flops) + 17, "text-anchor": "end" }, `${scaled(m.flops, "FLOP/s")} of multiply-adds`),
    make("text", { class: "strong", x: x(Math.sqrt(ridge * low / m.bandwidth)) - 10, y: y(Math.sqrt(m.flops * low)) - 8, "text-anchor": "end" }, `${scaled(m.bandwidth, "B/s")} of memory`),
    make("text", { x: (width + pad.l) / 2, y: height - 10, "text-anchor": "middle" }, "operations for each byte of arguments"));
  const total = r.seconds;
  for (const [k, i] of [...kernels].sort((a, b) => b[0].seconds - a[0].seconds)) {
    const dot = make("circle", { class: "dot", cx: x(k.flops / k.bytes), cy: y(k.flops * k.calls / k.seconds), r: 4 + 26 * Math.sqrt(k.seconds / total),
      fill: kindOf(k.operators.join(" + "))[2], onclick: () => goKernel(i),
      onpointermove: (e) => showTip(e, `${shortName(k.name)}\n${secondsText(k.seconds)} in ${k.calls} calls, ${percent(kernelShare(k) || 0)} of the roof\n${scaled(k.flops * k.calls / k.seconds, "FLOP/s")}, ${(k.flops / k.bytes).toFixed(2)} operations a byte`),
      onpointerleave: hideTip });
    dot.dataset.kernel = i;
    dot.dataset.words = `${k.name} ${k.operators.join(" ")}`.toLowerCase();
    svg.append(dot);
  }
  box.append(make("h2", {}, "Roofline"), make("p", { class: "quiet" }, "Areas of circles are shares of the model's time. Bytes are those of arguments: what caches keep from the kernel before may exceed the line of memory. " +
    "The peak is that of float32; operations are counted as the kernel computes them, Winograd's products among them."), svg);
  return { element, search(words) {
    let count = 0;
    for (const dot of svg.querySelectorAll(".dot")) { const on = words && dot.dataset.words.includes(words); dot.classList.toggle("pick", Boolean(on)); dot.style.opacity = words && !on ? 0.15 : ""; count += on ? 1 : 0; }
    return count;
  } };
}

function memory() {
  const r = state.report, m = r.memory;
  const width = 1100, pad = 84, right = 20;
  const steps = Math.max(1, m.live.length);
  const x = (step) => pad + step / steps * (width - pad - right);
  const chart = make("svg", { class: "chart", viewBox: `0 0 ${width} 170` });
  const high = Math.max(m.peak, 1);
  const y = (v) => 142 - v / high * 120;
  let path = `M${x(0)} ${y(0)}`;
  m.live.forEach((v, i) => { path += ` L${x(i)} ${y(v)} L${x(i + 1)} ${y(v)}`; });
  chart.append(make("path", { class: "live", d: `${path} L${x(steps)} ${y(0)} Z` }),
    make("line", { class: "peak", x1: pad, x2: width - right, y1: y(m.peak), y2: y(m.peak) }),
    make("text", { class: "strong", x: Math.min(x(m.peak_step) + 8, width - 260), y: y(m.peak) - 6 }, `peak ${bytesText(m.peak)} at call ${m.peak_step}`),
    make("text", { x: pad - 8, y: y(0), "text-anchor": "end" }, "0"), make("text", { x: pad - 8, y: y(m.peak) + 4, "text-anchor": "end" }, bytesText(m.peak)),
    make("text", { x: width - right, y: 160, "text-anchor": "end" }, `call ${steps - 1}`), make("text", { x: pad, y: 160 }, "call 0"));
  // storages side by side, as tall as they are large
  const used = m.storages.map((s, i) => [s, i]).filter(([s, i]) => s.kind !== "weight" && m.lives.some((l) => l.storage === i));
  const sum = used.reduce((n, [s]) => n + s.bytes, 0) || 1;
  const tall = 330, arena = make("svg", { class: "chart", viewBox: `0 0 ${width} ${tall + 30}` });
  let top = 8;
  const place = new Map();
  for (const [s, i] of used) {
    const h = Math.max(3, s.bytes / sum * tall);
    place.set(i, [top, h]);
    arena.append(make("rect", { x: pad, y: top, width: width - pad - right, height: h, fill: "var(--panel)" }));
    if (h > 11) arena.append(make("text", { x: pad - 8, y: top + h / 2 + 4, "text-anchor": "end" }, bytesText(s.bytes)));
    top += h + 1;
  }
  arena.setAttribute("viewBox", `0 0 ${width} ${top + 8}`);
  const table_ = make("div");
  for (const life of m.lives) {
    const [at, h] = place.get(life.storage), storage = m.storages[life.storage], node = r.built.nodes[life.node];
    const tallness = Math.max(2, h * Math.min(1, life.bytes / Math.max(storage.bytes, 1)));
    const box = make("rect", { class: "life", x: x(life.first), y: at + h - tallness, width: Math.max(2, x(life.last + 1) - x(life.first)), height: tallness,
      fill: kindOf(node.op)[2], onclick: () => goNode("built", life.node),
      onpointermove: (e) => showTip(e, `${node.op}\n${node.name}\n${node.outputs.map(tensorText).join(", ")}, ${bytesText(life.bytes)}\ncalls ${life.first} to ${life.last}, storage ${life.storage}`), onpointerleave: hideTip });
    box.dataset.words = `${node.op} ${node.name}`.toLowerCase();
    arena.append(box);
  }
  const fill = (words) => {
    const found = r.weights.filter((w) => !words || `${w.name} ${w.node >= 0 ? r.built.nodes[w.node].name : ""} ${tensorText(w.tensor)}`.toLowerCase().includes(words));
    table_.replaceChildren(table([
      ["weight", (w) => w.name], ["type", (w) => tensorText(w.tensor), null, "left"],
      ["packed", (w) => bytesText(w.tensor.bytes), (w) => w.tensor.bytes],
      ["as imported", (w) => (w.original ? bytesText(w.original) : "–"), (w) => w.original],
      ["read by", (w) => (w.node >= 0 ? make("a", { onclick: () => goNode("built", w.node) }, r.built.nodes[w.node].name || r.built.nodes[w.node].op) : "–"), null, "left"],
    ], found.slice(0, 400)));
    return found.length;
  };
  fill("");
  const peak = m.lives.filter((l) => l.first <= m.peak_step && m.peak_step <= l.last).sort((a, b) => b.bytes - a.bytes).slice(0, 4);
  const element = make("div", { class: "view" }, make("div", { class: "scroll" },
    make("h2", {}, "Memory in use, call by call"),
    make("p", { class: "quiet" }, `Inputs, results and what lies between kernels; weights (${bytesText(m.weights)}) stay. The plan takes ${bytesText(m.planned)}, of which ${bytesText(m.peak)} are in use at most at once. ` +
      `Largest at the peak: ${peak.map((l) => `${nodeLabel(r.built.nodes[l.node])} ${bytesText(l.bytes)}`).join(", ")}.`), chart,
    make("h2", { style: "margin-top:22px" }, "The plan: which tensors share storage"), arena,
    make("h2", { style: "margin-top:22px" }, `Weights: ${r.weights.length}, ${bytesText(m.weights)}`), table_));
  return { element, search(words) {
    for (const box of arena.querySelectorAll(".life")) { const on = words && box.dataset.words.includes(words); box.classList.toggle("pick", Boolean(on)); box.style.opacity = words && !on ? 0.2 : ""; }
    return words ? fill(words) : (fill(""), 0);
  } };
}

class PassesPage {
  constructor() {
    this.list = make("aside", { class: "side left" });
    this.main = make("div", { class: "scroll" });
    this.element = make("div", { class: "view split" }, this.list, this.main);
    this.fill("");
    this.main.append(make("p", { class: "quiet" }, "Passes on the graph in order, then passes on the loops of all kernels. Choose one to see what it changed."));
  }

  fill(words) {
    const passes = state.report.passes;
    this.rows = new Map();
    const found = passes.map((_, i) => i).filter((i) => !words || passes[i].name.toLowerCase().includes(words) || passes[i].changes.some((c) => c.diff.toLowerCase().includes(words)));
    this.list.replaceChildren(...found.map((i) => {
      const p = passes[i];
      const row = make("div", { class: p.changed ? "pass" : "pass none", onclick: () => go("passes", i) },
        make("span", { style: `padding-left:${14 * p.depth}px` }, p.name, p.runs > 1 ? make("span", { class: "quiet" }, ` ×${p.runs}`) : null),
        make("span", {}, p.changed ? `${p.changed} ±` : "–"), make("span", {}, secondsText(p.seconds)));
      this.rows.set(i, row);
      return row;
    }));
    return words ? found.length : 0;
  }

  search(words) { return this.fill(words); }
  next() { const first = this.rows.keys().next(); if (!first.done) go("passes", first.value); }

  open(index) {
    if (index === undefined) {
      const first = state.report.passes.findIndex((p) => p.changes.length && p.changes[0].diff.length > 40);
      if (first >= 0 && this.current === undefined) this.open(first);
      return;
    }
    this.current = Number(index);
    const p = state.report.passes[this.current];
    if (!p) return;
    for (const [i, row] of this.rows) row.classList.toggle("pick", i === this.current);
    const row = this.rows.get(this.current);
    if (row) row.scrollIntoView({ block: "nearest" });
    this.main.replaceChildren(make("h2", {}, p.name), make("p", { class: "quiet" },
      `${secondsText(p.seconds)}${p.runs > 1 ? ` in ${p.runs} runs` : ""}; ${p.changed ? `${p.changed} functions changed` : "nothing changed"}` +
      (p.changed && !p.changes.length ? "; the passes inside show it, or the kernels are not among those whose texts are kept" : p.changed > p.changes.length ? `; ${p.changes.length} are shown` : "")),
      ...p.changes.flatMap((c) => [make("h3", { class: "mono" }, shortName(c.function)), diffOf(c)]));
  }
}

function diffOf(change) {
  const lines = change.diff.split("\n").map((line) => make("div", { class: line.startsWith("@@") ? "hunk" : line.startsWith("+") ? "plus" : line.startsWith("-") ? "minus" : null }, line || " "));
  if (change.is_cut) lines.push(make("div", { class: "hunk" }, "… more is not shown"));
  return make("div", { class: "diff mono" }, lines);
}

function building() {
  const r = state.report;
  const phases = Object.entries(r.phases), total = phases.reduce((n, [, s]) => n + s, 0) || 1;
  const stack = make("div", { class: "stack" }, phases.map(([name, s], i) => make("i", { style: `width:${100 * s / total}%;background:${PALETTE[i % PALETTE.length]}`, title: `${name}: ${secondsText(s)}` })));
  const legend = table([["phase", ([name]) => name], ["time", ([, s]) => secondsText(s)], ["share", ([, s]) => percent(s / total)]], phases);
  const sum = (k) => Object.values(k.compile_seconds).reduce((a, b) => a + b, 0);
  const kernels = [...r.kernels].sort((a, b) => sum(b) - sum(a)), most = kernels.length ? sum(kernels[0]) || 1 : 1;
  const kinds = [...new Set(kernels.flatMap((k) => Object.keys(k.compile_seconds)))];
  const byKernel = table([["kernel", (k) => shortName(k.name)], ...kinds.map((kind) => [kind, (k) => secondsText(k.compile_seconds[kind]), (k) => k.compile_seconds[kind] || 0]),
    ["", (k) => bar(...kinds.map((kind, i) => [(k.compile_seconds[kind] || 0) / most, ["", "second", "third"][i % 3]]))]], kernels.slice(0, 200), { onpick: (k) => goKernel(r.kernels.indexOf(k)) });
  const passes = [...r.passes].sort((a, b) => b.seconds - a.seconds).slice(0, 40);
  const byPass = table([["pass", (p) => make("a", { onclick: () => go("passes", r.passes.indexOf(p)) }, p.name)], ["runs", (p) => String(p.runs)], ["time", (p) => secondsText(p.seconds), (p) => p.seconds],
    ["", (p) => bar([p.seconds / (passes[0].seconds || 1)])]], passes);
  return make("div", { class: "view" }, make("div", { class: "scroll" }, make("h2", {}, `Made in ${secondsText(total)}`),
    make("p", { class: "quiet" }, "Compiling for show, measuring and comparing are what this report took, not part of a build. The time of a pass has that of the passes inside."), stack,
    make("div", { class: "columns" }, make("section", {}, legend, make("h2", { style: "margin-top:20px" }, "By kernel"), byKernel), make("section", {}, make("h2", {}, "By pass"), byPass))));
}
