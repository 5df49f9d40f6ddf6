/* Reads the data, fills the page, and connects what is drawn. */

/* Differences become numbers, and what every drawing needs is worked out once. */
function unpack(data) {
  const p = data.problem, n = p.ops.length;
  data.levels = p.opLevel.reduce((a, b) => Math.max(a, b + 1), 0);
  const off = new Int32Array(n + 1);
  for (const r of p.edgeReader) off[r + 1]++;
  for (let i = 0; i < n; i++) off[i + 1] += off[i];
  const at = off.slice(), op = new Int32Array(p.edgeReader.length);
  for (let t = 0; t < p.tensorProducer.length; t++)
    for (let e = p.tensorEdges[t]; e < p.tensorEdges[t + 1]; e++) op[at[p.edgeReader[e]]++] = p.tensorProducer[t];
  data.inputs = { off, op };
  for (const plan of data.plans) {
    const tasks = plan.start.length;
    plan.finish = new Float64Array(tasks);
    let start = 0;
    for (let i = 0; i < tasks; i++) {
      start += plan.start[i];
      plan.start[i] = start;
      plan.finish[i] = start + plan.lasts[i];
    }
    plan.onPath = new Uint8Array(tasks);
    for (const t of plan.path || []) plan.onPath[t] = 1;
  }
}

function figure(list, id, what, value, more) {
  const box = element("div", "figure"), v = element("div", "value", value);
  v.id = id;
  box.title = WORDS[what] || "";
  box.append(element("div", "what", what), v, element("div", "more", more));
  list.append(box);
}

function fillFigures(data, plan) {
  const list = byId("figures");
  list.replaceChildren();
  const estimated = data.problem.launchNs.some((ns) => ns > 0), one = !!plan.rate;
  if (one) fillRateFigures(list, plan.rate);
  figure(list, "makespan", one ? "one request alone" : "makespan", textNs(plan.makespan),
    (one ? "on the first copy, by " : estimated ? "estimated, not measured; by " : "one inference, by ") + plan.placer);
  if (plan.bound >= 0 && data.problem.partial)
    figure(list, "bound", "claimed bound", textNs(plan.bound), "not checked: the problem was not given");
  else if (plan.bound >= 0)
    figure(list, "bound", one ? "no plan of one is faster than" : "no plan is faster than", textNs(plan.bound), plan.bound === plan.makespan ? plan.state : "gap " + textGap(plan.makespan, plan.bound));
  if (plan.single >= 0)
    figure(list, "single", "best single device", textNs(plan.single), data.problem.devices[plan.singleDevice] + ", " + (plan.single / plan.makespan).toFixed(2) + (one ? " times that request" : " times the plan"));
  if (plan.measured)
    figure(list, "measured", "measured", textNs(plan.measured.latency), (plan.measured.latency / plan.makespan).toFixed(2) + " times the plan");
  figure(list, "transfers", "transfers", textCount(plan.tensor.length), textBytes(plan.sentBytes) + (data.problem.partial ? "" : ", " + textCount(plan.cutEdges) + " cut edges"));
  figure(list, "operators", "operators", textCount(plan.opDevice.length), "made in " + textNs(plan.generation));
}

/* Whatever is not of many requests is of one, and says so: the first copy may leave devices to the others. */
function fillVerdict(plan) {
  byId("one").textContent = plan.rate ? "One request alone, on the plan's first copy:" : "";
  byId("one").hidden = !plan.rate;
  for (const span of document.querySelectorAll("h2 .one")) span.textContent = plan.rate ? " of one request alone, on the first copy" : "";
  byId("verdict").replaceChildren(...plan.verdict.map((line) => element("li", "", line[0].toUpperCase() + line.slice(1) + ".")));
}

/* What the words above columns and figures mean. */
const WORDS = {
  makespan: "the time of one inference, from the first operator to the last",
  "no plan is faster than": "a lower bound that is proven for these times: the true optimum lies between it and the makespan",
  "one request alone": "the time of one inference while no other is in flight",
  "no plan of one is faster than": "a lower bound that is proven for one request alone",
  rate: "requests per second, by all copies of the plan",
  "no plan serves one more often": "a lower bound of the period that is proven for these times",
  "best single device": "all operators on the one device that is fastest alone",
  transfers: "tensors that move from one device to another",
  operators: "what is placed: operators of the network, fused ones count once",
  computes: "time in which the device runs operators",
  load: "share of the makespan in which the device computes",
  sends: "time in which its sending port is busy",
  receives: "time in which its receiving port is busy",
  weights: "weights and workspace of its operators: what must fit with memory static",
  peak: "weights, workspace and tensors alive, at the worst moment: what must fit with memory peak",
  of: "the memory of the device",
  waits: "time between its last input and its start",
  takes: "time in which it runs",
  share: "of the makespan",
  "plan gained": "how much shorter the best plan was after its calls than before",
  "bound gained": "how much higher the proven bound was after its calls than before",
};

function row(table, cells, tag) {
  const r = element("tr");
  for (const c of cells) {
    const cell = element(tag || "td");
    cell.append(...(Array.isArray(c) ? c : [c]));
    if (tag === "th" && WORDS[c]) cell.title = WORDS[c];
    r.append(cell);
  }
  table.append(r);
  return r;
}

function dot(colour) {
  const d = element("span", "dot");
  d.style.background = colour;
  return d;
}

function fillShares(data, plan, zoom) {
  const box = byId("shares");
  byId("path-section").hidden = !plan.shares;
  box.replaceChildren();
  if (!plan.shares) return;
  const table = element("table", "numbers");
  row(table, ["", "time", "share"], "th");
  plan.shares.forEach((ns, i) => {
    const r = row(table, [[dot(shareColour(i)), data.shareNames[i]], textNs(ns), textShare(ns, plan.makespan)]);
    r.cells[1].id = "share-" + i;
  });
  const tables = element("div", "columns");
  tables.append(table, longestSteps(data, plan, zoom));
  box.append(shareBar(plan), tables);
}

/* The parts of the critical path that take longest, waits included; a click shows one in the timeline. */
function longestSteps(data, plan, zoom) {
  const table = element("table", "numbers steps"), nOps = plan.opDevice.length, devices = data.problem.devices;
  const waits = new Map(plan.path.map((t, i) => [t, plan.start[t] - (i ? plan.finish[plan.path[i - 1]] : 0)]));
  const all = (t) => plan.lasts[t] + waits.get(t);
  const longest = plan.path.slice().sort((a, b) => all(b) - all(a) || a - b).slice(0, 6);
  table.id = "steps";
  row(table, ["longest of " + textCount(plan.path.length) + " steps", "where", "waits", "takes"], "th");
  for (const t of longest) {
    const where = t < nOps ? devices[plan.opDevice[t]] : devices[plan.from[t - nOps]] + " to " + devices[plan.to[t - nOps]];
    const r = row(table, [taskName(data, plan, t), where, textNs(waits.get(t)), textNs(plan.lasts[t])]);
    r.cells[0].title = taskName(data, plan, t);
    r.addEventListener("click", () => zoom(plan.start[t] - waits.get(t), plan.finish[t]));
  }
  return table;
}

/* What a number of every device is: once where all have the same. */
function range(list, text) {
  const low = Math.min(...list), high = Math.max(...list);
  return low === high ? text(low) : text(low) + " to " + text(high);
}

/* What the times rest on: launches, cuts, dimensions that were assumed, links. */
function fillCosts(data) {
  const p = data.problem, K = p.devices.length, lines = [], known = p.launchNs.filter((ns) => ns > 0);
  if (known.length) lines.push("Times are estimates of a cost model. Starting an operator takes " + range(known, textNs) + " on average.");
  if (p.segmentNs.some((ns) => ns > 0)) lines.push("A cut costs its receiver " + range(p.segmentNs, textNs) + " beside the message; latencies below have it in them.");
  if (p.assumed.length) lines.push("Sizes that the model leaves open were assumed: " + p.assumed.join(", ") + ".");
  byId("costs").replaceChildren(...lines.map((line) => element("p", "muted", line)));
  const table = byId("links");
  table.replaceChildren();
  const linked = K > 1 && p.rates.length > 0;
  byId("links-section").hidden = !linked && !lines.length;
  if (!linked) return;
  const text = (a, b) => a === b ? "" : textBytes(p.rates[a * K + b]) + "/s, " + textNs(p.latencies[a * K + b]);
  if (K <= 8) {
    row(table, ["from \\ to", ...p.devices], "th");
    for (let a = 0; a < K; a++) row(table, [p.devices[a], ...p.devices.map((_, b) => text(a, b))]);
    return;
  }
  const pairs = new Map(); /* many devices: what kinds of links there are */
  for (let a = 0; a < K; a++)
    for (let b = 0; b < K; b++) if (a !== b) pairs.set(text(a, b), (pairs.get(text(a, b)) || 0) + 1);
  row(table, ["link", "pairs of devices"], "th");
  for (const [what, n] of [...pairs].sort((x, y) => y[1] - x[1]).slice(0, 12)) row(table, [what, textCount(n)]);
}

function meter(share, colour) {
  const m = element("span", "meter"), i = element("i");
  i.style.width = Math.min(100, 100 * share) + "%";
  i.style.background = colour;
  m.append(i);
  return m;
}

function fillDevices(data, plan) {
  const table = byId("devices"), whole = plan.makespan || 1, partial = data.problem.partial;
  table.replaceChildren();
  row(table, ["device", "operators", "computes", "load", "sends", "receives", ...(partial ? [] : ["weights", "peak", "of"])], "th");
  data.problem.devices.forEach((name, k) => {
    const colour = deviceColour(data, k);
    const type = element("span", "muted", data.problem.deviceTypes[k] ? "  " + data.problem.deviceTypes[k] : "");
    const r = row(table, [[dot(colour), name, type], textCount(plan.ops[k]), textNs(plan.computes[k]),
      [meter(plan.computes[k] / whole, colour), element("span", "number", textShare(plan.computes[k], whole))], textNs(plan.sends[k]), textNs(plan.receives[k]),
      ...(partial ? [] : [textBytes(plan.resident[k]), [meter(plan.peak[k] / Math.max(1, data.problem.deviceBytes[k]), colour), element("span", "number", textBytes(plan.peak[k]))], textBytes(data.problem.deviceBytes[k])])]);
    r.cells[0].title = name;
    r.dataset.device = k;
  });
}

/* What every step of the search has taken and gained; processor times are only known where the search has just ended. */
function fillSearch(plan) {
  const table = byId("search-steps"), f = plan.stepFigures, timed = f.length > 0 && f[1] >= 0;
  const gain = (ns) => ns > 0 ? textNs(ns) : "-";
  byId("search").hidden = !plan.events.length;
  byId("search-section").hidden = !plan.events.length && !plan.stepName.length;
  table.replaceChildren();
  if (!plan.stepName.length) return;
  row(table, ["step", "calls", ...(timed ? ["processor time"] : []), "plan gained", "bound gained", "found"], "th");
  plan.stepName.forEach((name, i) => {
    const [calls, cpu, shorter, higher] = f.slice(4 * i, 4 * i + 4);
    const found = [name === plan.planBy ? "the plan" : "", name === plan.boundBy ? "the bound" : ""].filter((x) => x).join(", ");
    row(table, [name, textCount(calls), ...(timed ? [textNs(cpu)] : []), gain(shorter), gain(higher), found]);
  });
}

function fillCompare(data) {
  const table = byId("compare"), plans = data.plans;
  byId("compare-section").hidden = plans.length < 2;
  table.replaceChildren();
  if (plans.length < 2) return;
  row(table, ["", ...plans.map((p) => p.label)], "th");
  const line = (what, value, text, best) => {
    const values = plans.map(value), r = row(table, [what, ...values.map((v, i) => text(v, plans[i]))]);
    const least = Math.min(...values.filter((v) => v >= 0));
    if (best) values.forEach((v, i) => { if (v === least) r.cells[i + 1].className = "best"; });
    return r;
  };
  line("makespan", (p) => p.makespan, textNs, true).id = "compare-makespan";
  line("proven bound", (p) => p.bound, (v) => v < 0 ? "-" : textNs(v));
  line("gap", (p) => p.bound, (v, p) => textGap(p.makespan, v));
  if (plans.some((p) => p.measured)) line("measured", (p) => p.measured ? p.measured.latency : -1, (v) => v < 0 ? "-" : textNs(v), true);
  if (plans.every((p) => p.shares)) {
    const r = row(table, ["critical path", ...plans.map((p) => shareBar(p, true))]);
    r.id = "compare-shares";
    data.shareNames.forEach((name, i) => {
      if (plans.some((p) => p.shares[i])) line("  " + name, (p) => p.shares[i], (v, p) => textNs(v) + "  " + textShare(v, p.makespan).padStart(7));
    });
  }
  line("transfers", (p) => p.tensor.length, textCount);
  line("sent", (p) => p.sentBytes, textBytes);
  data.problem.devices.forEach((name, k) => line("load of " + name, (p) => p.computes[k], (v, p) => textShare(v, p.makespan)));
  line("made in", (p) => p.generation, textNs);
}

function fillLegends(data, plan) {
  const t = byId("timeline-legend");
  t.replaceChildren();
  chip(t, scheme.send, "sends", true);
  chip(t, scheme.receive, "receives", true);
  if (plan.path) chip(t, scheme.path, "critical path", true);
  if (plan.measured) t.append(element("span", "", "pale: measured, below the plan"));
  t.append(element("span", "", "wheel zooms · drag moves · double click shows all · keys + - 0 and arrows"));
  const m = byId("memory-legend");
  m.replaceChildren();
  m.append(element("span", "", "solid: weights and workspace · pale: tensors alive"));
  chip(m, scheme.limit, "limit", true);
  const g = byId("graph-legend");
  g.replaceChildren();
  data.problem.devices.forEach((name, k) => { if (plan.ops[k]) chip(g, deviceColour(data, k), name + (data.problem.deviceTypes[k] ? " (" + data.problem.deviceTypes[k] + ")" : "")); });
  chip(g, scheme.cut, "edges and bytes between devices", true);
}

/* When a plan, or what was measured of it, ends. */
function endOf(plan) {
  let end = plan.makespan;
  if (!plan.measured) return end;
  const m = plan.measured.segments;
  for (let i = 0; i < m.length; i += 5) end = Math.max(end, m[i + 3] + m[i + 4]);
  return Math.max(end, plan.measured.latency);
}

const MANY_PORTS = 8;

function start() {
  const data = JSON.parse(byId("data").textContent);
  unpack(data);
  const state = { plan: data.plans[0], parts: {} }, p = data.problem;
  const show = { path: true, ports: p.devices.length <= MANY_PORTS, measured: true }; /* rows of ports crowd out the devices */
  byId("show-ports").checked = show.ports;
  const whole = Math.max(1, ...data.plans.map(endOf));

  const drawTimes = frame(() => {
    state.parts.timeline.draw();
    if (state.parts.memory) state.parts.memory.draw();
  });
  const drawGraph = frame(() => state.parts.graph && state.parts.graph.draw());
  const view = makeView(whole * 1.01, Math.min(whole, 20), drawTimes), levels = makeView(Math.max(data.levels, 1), Math.min(data.levels, 4), drawGraph);

  function redraw() {
    scheme.read();
    fillFigures(data, state.plan);
    fillVerdict(state.plan);
    fillShares(data, state.plan, (from, to) => {
      view.set(from - 0.6 * (to - from), to + 0.6 * (to - from));
      byId("timeline-section").scrollIntoView({ block: "nearest" });
    });
    fillDevices(data, state.plan);
    fillCosts(data);
    fillCompare(data);
    fillSearch(state.plan);
    fillRate(data);
    fillLegends(data, state.plan);
    state.parts.timeline.draw();
    if (state.parts.memory) state.parts.memory.draw();
    if (state.parts.graph) state.parts.graph.draw();
    if (state.plan.events.length) drawSearch(data, state.plan, byId("search"));
  }

  function choose(plan) {
    state.plan = plan;
    byId("memory-section").hidden = byId("graph-section").hidden = !!p.partial;
    byId("path-switch").hidden = !!p.partial;
    byId("measured-switch").hidden = !data.plans.some((x) => x.measured);
    state.parts = { timeline: makeTimeline(data, plan, byId("timeline"), view, show) };
    if (!p.partial) {
      state.parts.memory = makeMemory(data, plan, byId("memory"), view);
      state.parts.graph = makeGraph(data, plan, byId("graph"), levels);
    }
    [...byId("tabs").children].forEach((b, i) => b.setAttribute("aria-pressed", data.plans[i] === plan));
    redraw();
  }

  byId("name").textContent = p.name;
  byId("modes").textContent = plural(p.ops.length, "operator") + " on " + plural(p.devices.length, "device") +
    (p.partial ? "" : " · flow " + p.flow + ", congestion " + p.congestion + ", memory " + p.memory);
  if (data.plans.length > 1)
    for (const plan of data.plans) {
      const b = element("button", "", plan.label + " · " + textNs(plan.makespan));
      b.type = "button";
      b.addEventListener("click", () => choose(plan));
      byId("tabs").append(b);
    }
  scheme.read();
  choose(state.plan);
  /* All plans have one scale; the first one fills it. A run that took much longer would squeeze its plan: "all" shows it. */
  view.set(0, 1.01 * (endOf(state.plan) > 1.5 * state.plan.makespan ? state.plan.makespan : endOf(state.plan)));

  const inside = (canvas, e) => { const box = canvas.getBoundingClientRect(); return [e.clientX - box.left, e.clientY - box.top]; };
  const hover = (canvas, lines) => (e) => {
    const found = lines(...inside(canvas, e));
    if (found) tip.show(e, found); else tip.hide();
  };
  steer(byId("timeline"), view, () => state.parts.timeline.area(), hover(byId("timeline"), (x, y) => {
    const found = state.parts.timeline.at(x, y);
    return found && sliceLines(data, state.plan, found);
  }));
  if (!p.partial) {
    steer(byId("memory"), view, () => state.parts.memory.area(), hover(byId("memory"), (x, y) => state.parts.memory.lines(x, y)));
    steer(byId("graph"), levels, () => state.parts.graph.area(), hover(byId("graph"), (x, y) => state.parts.graph.lines(x, y)));
  }
  byId("zoom-in").addEventListener("click", () => view.zoom(0.5, (view.from + view.to) / 2));
  byId("zoom-out").addEventListener("click", () => view.zoom(2, (view.from + view.to) / 2));
  byId("zoom-all").addEventListener("click", () => view.all());
  byId("graph-all").addEventListener("click", () => levels.all());
  for (const name of ["path", "ports", "measured"])
    byId("show-" + name).addEventListener("change", (e) => { show[name] = e.target.checked; drawTimes(); });
  addEventListener("resize", frame(redraw));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("beforeprint", () => { document.documentElement.setAttribute("data-print", ""); redraw(); });
  addEventListener("afterprint", () => { document.documentElement.removeAttribute("data-print"); redraw(); });
  window.moirai = { data, state, view, levels }; /* for those who open the console, and for the tests */
}

start();
document.documentElement.setAttribute("data-ready", "");
