// Graphs on canvases: panned, zoomed, searched; a node's counterparts in the other graph are marked.

const NODE = { width: 132, height: 40, across: 156, down: 78 };

class GraphView {
  constructor(name, caption, owner) {
    this.name = name;
    this.owner = owner;
    this.graph = state.report[name];
    this.canvas = make("canvas", { "aria-label": caption });
    this.element = make("div", { class: "graph" }, this.canvas, make("div", { class: "caption" }, caption));
    this.scale = 1; this.x = 0; this.y = 0;
    this.hits = new Set(); this.linked = new Set(); this.picked = -1; this.hover = -1;
    this.colours = [];
    this.ink = this.canvas.getContext("2d");
    new ResizeObserver(() => this.resize()).observe(this.element);
    this.listen();
  }

  left(node) { return node.x * NODE.across; }
  top(node) { return node.y * NODE.down; }

  resize() {
    const box = this.element.getBoundingClientRect();
    if (!box.width || !box.height) return;
    const first = !this.width;
    this.width = box.width; this.height = box.height;
    this.ratio = devicePixelRatio || 1;
    this.canvas.width = box.width * this.ratio;
    this.canvas.height = box.height * this.ratio;
    if (first) {
      this.start();
      const [wanted] = this.picked >= 0 ? [this.picked] : this.linked;
      if (wanted !== undefined) this.centre(wanted, 0.85);
    }
    this.draw();
  }

  extent() {
    let right = 1, bottom = 1;
    for (const node of this.graph.nodes) {
      right = Math.max(right, this.left(node) + NODE.width);
      bottom = Math.max(bottom, this.top(node) + NODE.height);
    }
    return [right, bottom];
  }

  fit() {
    const [right, bottom] = this.extent();
    this.scale = Math.min((this.width - 60) / right, (this.height - 110) / bottom, 1.5);
    this.x = (this.width - right * this.scale) / 2;
    this.y = (this.height - bottom * this.scale) / 2;
  }

  // readable: the beginning of the graph, in the middle
  start() {
    this.fit();
    if (this.scale >= 0.55 || !this.graph.nodes.length) return;
    this.scale = 0.85;
    const first = this.graph.nodes.reduce((a, b) => (b.y < a.y ? b : a));
    this.x = this.width / 2 - (this.left(first) + NODE.width / 2) * this.scale;
    this.y = 54 - this.top(first) * this.scale;
  }

  centre(index, least) {
    const node = this.graph.nodes[index];
    this.scale = Math.max(this.scale, least);
    this.x = this.width / 2 - (this.left(node) + NODE.width / 2) * this.scale;
    this.y = this.height / 2 - (this.top(node) + NODE.height / 2) * this.scale;
    this.draw();
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = (event.clientX - box.left - this.x) / this.scale;
    const y = (event.clientY - box.top - this.y) / this.scale;
    return this.graph.nodes.findIndex((n) => x >= this.left(n) && x <= this.left(n) + NODE.width &&
      y >= this.top(n) && y <= this.top(n) + NODE.height);
  }

  listen() {
    let from = null, moved = false;
    this.canvas.addEventListener("pointerdown", (e) => {
      from = [e.clientX, e.clientY, this.x, this.y]; moved = false;
      this.canvas.setPointerCapture(e.pointerId);
    });
    this.canvas.addEventListener("pointermove", (e) => {
      if (from) {
        moved = moved || Math.hypot(e.clientX - from[0], e.clientY - from[1]) > 4;
        this.x = from[2] + e.clientX - from[0]; this.y = from[3] + e.clientY - from[1];
        this.canvas.classList.toggle("drag", moved);
        if (moved) { hideTip(); this.draw(); }
        return;
      }
      const found = this.at(e);
      if (found >= 0) showTip(e, describeNode(this.graph.nodes[found])); else hideTip();
      if (found !== this.hover) { this.hover = found; this.draw(); }
    });
    this.canvas.addEventListener("pointerup", (e) => {
      this.canvas.classList.remove("drag");
      if (from && !moved) { const found = this.at(e); if (found >= 0) goNode(this.name, found); }
      from = null;
    });
    this.canvas.addEventListener("pointerleave", () => { hideTip(); this.hover = -1; this.draw(); });
    this.canvas.addEventListener("wheel", (e) => {
      e.preventDefault();
      const box = this.canvas.getBoundingClientRect();
      const px = e.clientX - box.left, py = e.clientY - box.top;
      const scale = Math.max(0.02, Math.min(4, this.scale * Math.exp(-e.deltaY * 0.0016)));
      this.x = px - (px - this.x) * scale / this.scale;
      this.y = py - (py - this.y) * scale / this.scale;
      this.scale = scale;
      hideTip(); this.draw();
    }, { passive: false });
    this.canvas.addEventListener("dblclick", () => { this.fit(); this.draw(); });
  }

  draw() {
    if (this.waiting || !this.width) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.paint(); });
  }

  paint() {
    const ink = this.ink, ratio = this.ratio;
    ink.setTransform(ratio, 0, 0, ratio, 0, 0);
    ink.clearRect(0, 0, this.width, this.height);
    ink.setTransform(ratio * this.scale, 0, 0, ratio * this.scale, ratio * this.x, ratio * this.y);
    const margin = 40;
    const window = [-this.x / this.scale - margin, -this.y / this.scale - margin,
      (this.width - this.x) / this.scale + margin, (this.height - this.y) / this.scale + margin];
    this.paintEdges(ink, window);
    const dim = this.hits.size > 0;
    this.graph.nodes.forEach((node, i) => {
      const x = this.left(node), y = this.top(node);
      if (x > window[2] || x + NODE.width < window[0] || y > window[3] || y + NODE.height < window[1]) return;
      ink.globalAlpha = dim && !this.hits.has(i) && i !== this.picked && !this.linked.has(i) ? 0.28 : 1;
      this.paintNode(ink, node, i, x, y);
    });
    ink.globalAlpha = 1;
  }

  paintEdges(ink, window) {
    const strong = css("--accent"), plain = css("--edge");
    ink.lineWidth = Math.max(1.1, 0.8 / this.scale);
    this.graph.edges.forEach(([start, end], i) => {
      const a = this.graph.nodes[start], b = this.graph.nodes[end];
      const top = this.top(a) + NODE.height, bottom = this.top(b);
      if (top > window[3] || bottom < window[1]) return;
      const on = start === this.picked || end === this.picked || start === this.hover || end === this.hover;
      ink.strokeStyle = on ? strong : plain;
      const bends = this.graph.bends[i] || [];
      const points = [[this.left(a) + NODE.width / 2, top]];
      for (let k = 0; k < bends.length; k += 2) {
        points.push([bends[k] * NODE.across + NODE.width / 2, bends[k + 1] * NODE.down + NODE.height / 2]);
      }
      points.push([this.left(b) + NODE.width / 2, bottom]);
      ink.beginPath();
      ink.moveTo(...points[0]);
      for (let k = 1; k < points.length; k += 1) {
        const [x0, y0] = points[k - 1], [x1, y1] = points[k];
        const middle = (y0 + y1) / 2;
        if (Math.abs(x0 - x1) < 0.5) ink.lineTo(x1, y1);
        else ink.bezierCurveTo(x0, middle, x1, middle, x1, y1);
      }
      ink.stroke();
    });
  }

  paintNode(ink, node, i, x, y) {
    ink.beginPath();
    ink.roundRect(x, y, NODE.width, NODE.height, 7);
    ink.fillStyle = this.colours[i] || "#ccc";
    ink.fill();
    const ring = i === this.picked ? css("--pick") : this.linked.has(i) ? css("--accent")
      : this.hits.has(i) ? css("--hit") : null;
    if (ring) { ink.strokeStyle = ring; ink.lineWidth = Math.max(3, 2 / this.scale); ink.stroke(); }
    if (!node.others.length && node.op !== "input") {
      ink.setLineDash([4, 3]); ink.strokeStyle = css("--quiet"); ink.lineWidth = 1; ink.stroke(); ink.setLineDash([]);
    }
    if (this.scale < 0.3) return;
    ink.fillStyle = "#16202b";
    ink.textAlign = "center";
    ink.font = "600 12px system-ui, sans-serif";
    ink.fillText(clipped(nodeLabel(node), 19), x + NODE.width / 2, y + 16, NODE.width - 8);
    ink.font = "11px system-ui, sans-serif";
    ink.globalAlpha *= 0.75;
    const shape = node.outputs.length ? node.outputs[0].shape.join("×") : "";
    const low = node.op === "input" ? node.name : this.owner.mode === "time" && node.seconds ? secondsText(node.seconds) : shape;
    ink.fillText(clipped(low, 22), x + NODE.width / 2, y + 31, NODE.width - 8);
  }
}

const clipped = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

const untold = (node) => (node.is_folded ? "folded: it depends on no input"
  : "not traced: a pass replaced it, or joined it with others");

function describeNode(node) {
  const lines = [node.op, node.name, node.outputs.map(tensorText).join(", ")];
  if (node.layout) lines.push(`layout ${node.layout}`);
  if (node.seconds) lines.push(secondsText(node.seconds));
  if (!node.others.length && node.op !== "input") lines.push(untold(node));
  return lines.filter(Boolean).join("\n");
}

class GraphPage {
  constructor() {
    this.mode = "fusion"; this.shown = "both";
    this.views = { imported: new GraphView("imported", "as imported", this), built: new GraphView("built", "as built: one node a kernel call", this) };
    this.legend = make("div", { class: "legend" });
    this.tools = make("div", { class: "tools" });
    this.side = make("aside", { class: "side" });
    const graphs = make("div", { class: "graphs" }, this.views.imported.element, this.views.built.element, this.tools, this.legend);
    this.element = make("div", { class: "view split" }, graphs, this.side);
    this.spread();
    this.setMode(this.mode);
    this.setShown(this.shown);
    this.describe(null, -1);
  }

  // times of calls, seen by the imported nodes too
  spread() {
    const { imported, built } = state.report;
    for (const node of imported.nodes) node.seconds = Math.max(0, ...node.others.map((i) => built.nodes[i].seconds));
  }

  setShown(shown) {
    this.shown = shown;
    this.views.imported.element.style.display = shown === "built" ? "none" : "";
    this.views.built.element.style.display = shown === "imported" ? "none" : "";
    this.paintTools();
  }

  setMode(mode) {
    this.mode = mode;
    const { imported, built } = state.report;
    let entries = [];
    if (mode === "fusion") {
      const colour = (i) => PALETTE[i % PALETTE.length];
      this.views.built.colours = built.nodes.map((n, i) => (n.kernel < 0 ? "#9fb0c3" : colour(i)));
      this.views.imported.colours = imported.nodes.map((n) =>
        n.op === "input" ? "#9fb0c3" : n.others.length ? colour(n.others[0]) : "#d5dbe2");
      entries = [["one colour: one kernel call", PALETTE[0]], ["input", "#9fb0c3"], ["folded, or not traced through a pass", "#d5dbe2"]];
    } else if (mode === "time") {
      const most = Math.max(1e-12, ...built.nodes.map((n) => n.seconds));
      for (const view of Object.values(this.views)) view.colours = view.graph.nodes.map((n) => heat(n.seconds / most));
      entries = [1, 0.5, 0.2, 0.05, 0].map((s) => [secondsText(s * most), heat(s)]);
    } else {
      const key = { operator: (n) => kindOf(n.op)[0], "data type": (n) => (n.outputs[0] || {}).dtype || "", layout: (n) => n.layout || "none of its own" }[mode];
      const colours = mode === "operator" ? new Map(KINDS.map(([name, , c]) => [name, c]))
        : paletteFor([...imported.nodes, ...built.nodes].map(key));
      for (const view of Object.values(this.views)) view.colours = view.graph.nodes.map((n) => colours.get(key(n)));
      const used = new Set([...imported.nodes, ...built.nodes].map(key));
      entries = [...colours].filter(([name]) => used.has(name));
    }
    this.legend.replaceChildren(...entries.map(([name, colour]) =>
      make("div", {}, make("i", { style: `background:${colour}` }), name)));
    this.paintTools();
    this.draw();
  }

  paintTools() {
    const group = (names, current, set) => make("div", { class: "group" }, names.map((name) =>
      make("button", { "aria-pressed": String(name === current), onclick: () => set(name) }, name)));
    this.tools.replaceChildren(
      group(["imported", "both", "built"], this.shown, (name) => this.setShown(name)),
      group(["fusion", "operator", "time", "data type", "layout"], this.mode, (name) => this.setMode(name)),
      make("div", { class: "group" }, make("button", { onclick: () => { for (const v of Object.values(this.views)) { if (v.width) v.fit(); v.draw(); } } }, "fit")));
  }

  draw() { for (const view of Object.values(this.views)) view.draw(); }

  open(name, index) {
    if (name === undefined) return;
    const number = Number(index);
    const other = name === "built" ? "imported" : "built";
    const own = this.views[name], far = this.views[other];
    if (!own || !own.graph.nodes[number]) return;
    if (this.shown !== "both" && this.shown !== name) this.setShown(name);
    const node = own.graph.nodes[number];
    own.picked = number; far.picked = -1;
    far.linked = new Set(node.others);
    own.linked = new Set();
    if (name === "imported") for (const i of node.others) for (const k of far.graph.nodes[i].others) own.linked.add(k);
    if (own.width) this.reveal(own, number);
    if (node.others.length && far.width) this.reveal(far, node.others[0]);
    this.describe(name, number);
    this.draw();
  }

  reveal(view, index) {
    const node = view.graph.nodes[index];
    const x = view.left(node) * view.scale + view.x, y = view.top(node) * view.scale + view.y;
    if (x < 20 || y < 20 || x > view.width - 140 || y > view.height - 80 || view.scale < 0.3) view.centre(index, 0.7);
  }

  describe(name, index) {
    if (index < 0) {
      const { imported, built } = state.report;
      const ops = imported.nodes.filter((n) => n.op !== "input").length;
      this.side.replaceChildren(make("h2", {}, "The graph before and after"),
        make("p", {}, `${ops} operators became ${built.nodes.filter((n) => n.kernel >= 0).length} kernel calls.`),
        make("p", { class: "quiet" }, "Click a node to see what it is, what it was fused with, and the kernel that serves it. " +
          "Drag to move, turn the wheel to zoom, double-click to see all. Weights are not drawn; nodes list them."));
      return;
    }
    const node = state.report[name].nodes[index];
    const facts = [["operators", node.op], ["name", node.name], ["result", node.outputs.map(tensorText).join(", ")],
      ["layout", node.layout], ["time", node.seconds ? secondsText(node.seconds) : ""],
      ["weights", node.weights.map((w) => `${tensorText(w)}, ${bytesText(w.bytes)}`).join("; ")]];
    const other = name === "built" ? "imported" : "built";
    const kernel = name === "built" ? node.kernel : node.others.length ? state.report.built.nodes[node.others[0]].kernel : -1;
    this.side.replaceChildren(make("h2", {}, nodeLabel(node)),
      make("dl", {}, facts.filter(([, v]) => v).map(([k, v]) => [make("dt", {}, k), make("dd", {}, v)])),
      kernel >= 0 ? make("p", {}, make("a", { onclick: () => goKernel(kernel), class: "to-kernel" }, "its kernel →")) : null,
      make("h3", {}, name === "built" ? "computes" : "served by"),
      node.others.length ? nodeLinks(other, node.others) : make("p", { class: "quiet" },
        node.op === "input" ? "an input" : name === "built" ? "not traced: a pass made it without saying from what" : untold(node)),
      node.detail ? make("h3", {}, "attributes") : null, node.detail ? make("pre", { class: "mono" }, node.detail) : null);
  }

  search(words) {
    let count = 0;
    for (const view of Object.values(this.views)) {
      view.hits = new Set();
      if (words) view.graph.nodes.forEach((n, i) => {
        if (`${n.op} ${n.name} ${n.layout} ${n.outputs.map(tensorText).join(" ")}`.toLowerCase().includes(words)) view.hits.add(i);
      });
      count += view.hits.size;
    }
    this.draw();
    return count;
  }

  next() {
    const view = this.views[this.shown === "built" ? "built" : "imported"];
    const other = this.views.built;
    const from = view.hits.size ? view : other;
    const hits = [...from.hits];
    if (!hits.length) return;
    const after = hits.find((i) => i > from.picked);
    goNode(from.name, after === undefined ? hits[0] : after);
  }
}
