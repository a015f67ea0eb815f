// Kernels by time, and one kernel's forms side by side with linked lines.

const LINE = 18;
const WORDS = {
  te: /^(reduce|te|inlined|computed|kept|loops|parallel|vectorized|unrolled|placeholder)$/,
  tir: /^(for|in|with|if|else|def|assert|and|or|not|T|while|return)$/,
  llvm: /^(define|internal|load|store|br|ret|call|tail|phi|getelementptr|inbounds|fadd|fmul|fsub|fdiv|add|sub|mul|sdiv|udiv|icmp|fcmp|select|label|to|align|nsw|nuw|contract|x|ptr|float|double|void|half|bfloat|i1|i8|i16|i32|i64|shufflevector|insertelement|extractelement|zext|sext|trunc|switch)$/,
  assembly: /^(v?[a-z]{2,}[a-z0-9]*)$/,
};

function coloured(text, language) {
  const words = WORDS[language];
  const pieces = [];
  const pattern = language === "assembly" || language === "llvm" ? /([;#].*$)|("[^"]*")|([%@$.\w]+)|([^%@$.\w;#"]+|[;#"])/g
    : /(#.*$|\/\/.*$)|("[^"]*")|([A-Za-z_][\w]*|\d[\w.]*)|([^A-Za-z_\d"#/]+|[#"/])/g;
  for (const [, comment, string, word, rest] of text.matchAll(pattern)) {
    if (comment) pieces.push(make("span", { class: "c" }, comment));
    else if (string) pieces.push(make("span", { class: "s" }, string));
    else if (word && /^[$-]?\d/.test(word)) pieces.push(make("span", { class: "n" }, word));
    else if (word && words && words.test(word)) pieces.push(make("span", { class: "k" }, word));
    else pieces.push(word || rest);
  }
  return pieces;
}

// lines are drawn where they are looked at: a kernel has tens of thousands
class CodePane {
  constructor(code, owner) {
    this.code = code; this.owner = owner;
    this.lines = code.text ? code.text.split("\n") : [];
    this.on = new Set();
    this.element = make("div", { class: "code", "data-language": code.language });
    const known = code.language === "te" ? 0 : code.lines.filter((l) => l > 0).length;
    const told = code.language === "te" || code.language === "tir" ? "" : code.lines.length ? `${percent(known / code.lines.length)} of lines linked` : "lines not linked";
    this.element.append(make("div", { class: "name" }, code.language, make("span", {}, `${this.lines.length} lines${told ? `, ${told}` : ""}`)));
    if (code.note) this.element.append(make("div", { class: "note" }, code.note));
    this.box = make("div", { class: "lines mono", tabindex: "0" });
    const wide = this.lines.reduce((n, l) => Math.max(n, l.length), 0);
    this.room = make("div", { style: `height:${this.lines.length * LINE}px;width:${wide + 9}ch` });
    this.box.append(this.room);
    this.element.append(this.box);
    this.box.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / LINE) - 10);
    const last = Math.min(this.lines.length, first + Math.ceil(this.box.clientHeight / LINE) + 20);
    const drawn = [];
    for (let i = first; i < last; i += 1) {
      const stage = this.owner.stageOf(this, i + 1);
      const line = make("div", { class: this.on.has(i + 1) ? "line on" : "line", style: `top:${i * LINE}px`, onclick: () => this.owner.pick(this, i + 1) },
        make("span", { class: "mark", style: stage ? `background:${this.owner.colours.get(stage)}` : "" }),
        make("span", { class: "no" }, String(i + 1)), coloured(this.lines[i], this.code.language));
      drawn.push(line);
    }
    this.room.replaceChildren(...drawn);
  }

  mark(lines, scrolls) {
    this.on = new Set(lines);
    if (scrolls && lines.length) {
      const top = (lines[0] - 1) * LINE;
      if (top < this.box.scrollTop || top > this.box.scrollTop + this.box.clientHeight - 3 * LINE)
        this.box.scrollTop = Math.max(0, top - this.box.clientHeight / 3);
    }
    this.draw();
  }
}

class CodePanes {
  constructor(kernel) {
    this.te = kernel.codes.find((c) => c.language === "te");
    this.tir = kernel.codes.find((c) => c.language === "tir");
    const stages = this.tir ? [...new Set(this.tir.lines.filter((l) => l > 0))].sort((a, b) => a - b) : [];
    this.colours = paletteFor(stages);
    this.panes = kernel.codes.map((code) => new CodePane(code, this));
    this.element = make("div", { class: "codes" }, this.panes.map((p) => p.element));
    requestAnimationFrame(() => this.start());
  }

  // past the checks of arguments, to what is computed
  start() {
    for (const pane of this.panes) {
      const language = pane.code.language;
      const first = pane.lines.findIndex((_, i) => this.stageOf(pane, i + 1) > 0);
      if (language !== "te" && first > 0) {
        pane.box.scrollTop = Math.max(0, (first - 3) * LINE);
        const indent = pane.lines[first].search(/\S/);
        if (language === "tir" && indent > 4) pane.box.scrollLeft = (indent - 4) * 7.2;
      }
      pane.draw();
    }
  }

  // the loop program's lines that a line of a pane belongs to
  tirLines(pane, line) {
    if (pane.code.language === "tir") return [line];
    if (pane.code.language !== "te") return pane.code.lines[line - 1] > 0 ? [pane.code.lines[line - 1]] : [];
    const stage = this.stageOf(pane, line);
    return this.tir ? this.tir.lines.flatMap((l, i) => (l === stage && stage ? [i + 1] : [])) : [];
  }

  // the line of the schedule where the stage begins that a line belongs to
  stageOf(pane, line) {
    if (!this.tir) return 0;
    if (pane.code.language === "te") {
      let at = line;
      while (at > 1 && pane.lines[at - 1].startsWith("  ")) at -= 1;
      return this.colours.has(at) ? at : 0;
    }
    const own = pane.code.language === "tir" ? line : pane.code.lines[line - 1] || 0;
    return own ? this.tir.lines[own - 1] || 0 : 0;
  }

  pick(pane, line) {
    const wanted = new Set(this.tirLines(pane, line));
    const stages = new Set([...wanted].map((l) => this.tir.lines[l - 1]).filter((l) => l > 0));
    for (const other of this.panes) {
      const language = other.code.language;
      let lines;
      if (language === "tir") lines = [...wanted].sort((a, b) => a - b);
      else if (language === "te") lines = other.lines.map((_, i) => i + 1).filter((l) => stages.has(this.stageOf(other, l)));
      else lines = other.code.lines.flatMap((l, i) => (wanted.has(l) ? [i + 1] : []));
      if (other === pane && !lines.includes(line)) lines = [line, ...lines];
      other.mark(lines, other !== pane);
    }
  }
}

function kernelShare(kernel) {
  if (!kernel.roof_seconds || !kernel.seconds) return null;
  return kernel.roof_seconds * kernel.calls / kernel.seconds;
}

class KernelsPage {
  constructor() {
    this.order = state.report.kernels.map((_, i) => i).sort((a, b) =>
      state.report.kernels[b].seconds - state.report.kernels[a].seconds || state.report.kernels[b].flops - state.report.kernels[a].flops);
    this.current = -1;
    this.list = make("aside", { class: "side left" });
    this.main = make("div", { class: "kernel" });
    this.element = make("div", { class: "view split" }, this.list, this.main);
    this.fill("");
  }

  fill(words) {
    const kernels = state.report.kernels;
    const total = kernels.reduce((sum, k) => sum + k.seconds, 0) || 1;
    this.rows = new Map();
    const found = this.order.filter((i) => `${kernels[i].name} ${kernels[i].operators.join(" ")} ${this.names(kernels[i])}`.toLowerCase().includes(words));
    this.list.replaceChildren(table([
      ["kernel", (i) => shortName(kernels[i].name)],
      ["calls", (i) => String(kernels[i].calls), (i) => kernels[i].calls],
      ["time", (i) => secondsText(kernels[i].seconds), (i) => kernels[i].seconds],
      ["share, roof", (i) => [bar([kernels[i].seconds / total]), bar([kernelShare(kernels[i]) || 0, "roof"])], (i) => kernelShare(kernels[i]) || 0],
    ], found, { onpick: (i) => goKernel(i), tag: (line, i) => this.rows.set(i, line) }));
    this.tag();
    return words ? found.length : 0;
  }

  names(kernel) {
    const { built, imported } = state.report;
    return kernel.nodes.flatMap((n) => built.nodes[n].others).map((i) => imported.nodes[i].name).join(" ");
  }

  tag() { for (const [i, line] of this.rows) line.classList.toggle("pick", i === this.current); }

  search(words) { return this.fill(words); }
  next() { const first = this.rows.keys().next(); if (!first.done) goKernel(first.value); }

  open(index) {
    const number = index === undefined ? (this.current >= 0 ? this.current : this.order[0]) : Number(index);
    const kernel = state.report.kernels[number];
    if (!kernel || number === this.current) return;
    this.current = number;
    this.tag();
    const one = kernel.calls ? kernel.seconds / kernel.calls : 0;
    const fact = (name, value) => (value ? make("span", {}, `${name} `, make("b", {}, value)) : null);
    const share = kernelShare(kernel);
    const nodes = [...new Set(kernel.nodes.flatMap((n) => state.report.built.nodes[n].others))];
    this.panes = new CodePanes(kernel);
    this.main.replaceChildren(
      make("div", { class: "head" }, make("h2", { class: "mono" }, kernel.name),
        make("div", { class: "facts" }, fact("calls", String(kernel.calls)), fact("a call", one ? secondsText(one) : ""),
          fact("operations", scaled(kernel.flops, "FLOP")), fact("bytes", bytesText(kernel.bytes)),
          fact("speed", one ? `${scaled(kernel.flops / one, "FLOP/s")}` : ""),
          fact("bandwidth", one ? `${scaled(kernel.bytes / one, "B/s")}` : ""),
          fact("roof", share ? `${percent(share)}, ${kernel.bound} bound` : ""),
          fact("workspace", kernel.workspace ? bytesText(kernel.workspace) : ""),
          Object.entries(kernel.compile_seconds).map(([name, s]) => fact(name, secondsText(s)))),
        make("div", { class: "two" },
          make("div", {}, make("h3", {}, "tile"), choicesOf(kernel)),
          make("div", {}, make("h3", {}, `serves ${nodes.length} nodes of the model`), nodes.length ? nodeLinks("imported", nodes) : make("p", { class: "quiet" }, "not known")))),
      this.panes.element);
  }
}

function choicesOf(kernel) {
  if (!kernel.choices.length) return make("p", { class: "quiet" }, "The schedule of this operator is fixed: there were no candidates.");
  return make("div", {}, kernel.choices.map((choice) => {
    const best = choice.candidates.length ? choice.candidates[0].cost : 0;
    return make("div", {},
      make("p", {}, make("code", {}, choice.tile), make("br"),
        make("span", { class: "quiet" }, `chosen by the ${choice.origin}${choice.count ? ` among ${choice.count}` : ""}; ${percent(choice.share)} of the peak predicted`)),
      choice.candidates.length > 1 ? table([
        ["candidate", (c) => make("code", { class: c.tile === choice.tile ? "good" : null }, `${c.tile === choice.tile ? "✓ " : ""}${c.tile.replace(/^\w+\(|\)$/g, "")}`)],
        ["cost", (c) => `${(c.cost / best).toFixed(3)}×`],
      ], choice.candidates.slice(0, 8)) : null);
  }));
}
