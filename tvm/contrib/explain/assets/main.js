// Reads the record that the page carries, and shows the view that the address names.

async function readRecord() {
  const text = document.getElementById("record").textContent.trim();
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function show() {
  const [name, ...place] = location.hash.slice(1).split("/");
  const view = state.views[name] ? name : "overview";
  for (const [key, page] of Object.entries(state.views)) {
    page.element.classList.toggle("shown", key === view);
    page.button.setAttribute("aria-selected", String(key === view));
  }
  hideTip();
  const changed = state.view !== view;
  state.view = view;
  const page = state.views[view];
  if (page.open) page.open(...place);
  if (changed) search();
}

function search() {
  const words = state.input.value.trim().toLowerCase();
  const page = state.views[state.view];
  const count = page.search ? page.search(words) : 0;
  state.count.textContent = words && page.search ? String(count) : "";
  document.documentElement.dataset.hits = words ? String(count) : "";
}

function begin(report) {
  state.report = report;
  const kernels = new KernelsPage();
  state.views = {
    overview: { element: overview() }, graph: new GraphPage(), kernels, roofline: roofline(), memory: memory(),
    passes: new PassesPage(), build: { element: building() },
  };
  const nav = make("nav", { role: "tablist" });
  for (const [name, page] of Object.entries(state.views)) {
    page.button = make("button", { role: "tab", "data-view": name, onclick: () => go(name) }, name[0].toUpperCase() + name.slice(1));
    nav.append(page.button);
  }
  state.input = make("input", { type: "search", placeholder: "search   /", "aria-label": "search", oninput: search,
    onkeydown: (e) => { const page = state.views[state.view]; if (e.key === "Enter" && page.next) page.next(); } });
  state.count = make("span", { class: "count" });
  const m = report.machine;
  document.body.replaceChildren(
    make("header", {}, make("div", { class: "title", title: report.model }, report.model),
      make("div", { class: "where" }, `${report.target} · ${m.name}${m.threads ? ` · ${m.threads} threads` : ""}`), nav,
      make("div", { class: "search" }, state.input, state.count)),
    make("main", {}, Object.values(state.views).map((page) => page.element)), tip);
  addEventListener("hashchange", show);
  addEventListener("keydown", (e) => { if (e.key === "/" && document.activeElement !== state.input) { e.preventDefault(); state.input.focus(); } });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => state.views.graph.draw());
  show();
  document.documentElement.dataset.ready = "yes";
}

readRecord().then(begin).catch((error) => {
  document.body.replaceChildren(make("div", { class: "failure" }, `This browser cannot read the report: ${error.message}`));
  console.error(error);
});
