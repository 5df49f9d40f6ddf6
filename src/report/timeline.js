/* The timeline: a row per device with its operators, what it sends and what it receives; below the plan what was measured.
 *
 * A lane is a list of slices that do not overlap, in order. Slices narrower than a pixel and a half are added up per pixel
 * and drawn as shades, so that the cost of a frame is the number of visible slices at worst, and tens of thousands look right. */

const LEFT = 118, RIGHT = 14, AXIS = 22;

/* Lanes of the plan and of the measured run; each slice keeps the number of its task. */
function makeLanes(data, plan) {
  const K = data.problem.devices.length, rows = [];
  const lane = (row, kind, measured) => {
    const l = { row, kind, measured, device: row, item: [], start: [], finish: [] };
    return l;
  };
  const list = (into, row, kind, n, measured) => {
    while (into.length <= n) into.push(lane(row, kind, measured));
    return into[n];
  };
  for (let k = 0; k < K; k++)
    rows.push({ device: k, compute: [], send: [], receive: [], mCompute: [], mSend: [], mReceive: [] });
  const order = (items) => items.sort((a, b) => plan.start[a] - plan.start[b] || plan.finish[a] - plan.finish[b] || a - b);
  const nOps = plan.opDevice.length, ops = order(Array.from(plan.opDevice.keys()));
  const push = (l, item, start, finish) => { l.item.push(item); l.start.push(start); l.finish.push(finish); };
  for (const i of ops) push(list(rows[plan.opDevice[i]].compute, plan.opDevice[i], "compute", 0), i, plan.start[i], plan.finish[i]);
  for (const t of order(Array.from(plan.from.keys(), (x) => x + nOps))) {
    const x = t - nOps;
    push(list(rows[plan.from[x]].send, plan.from[x], "send", plan.sendLane[x] || 0), t, plan.start[t], plan.finish[t]);
    push(list(rows[plan.to[x]].receive, plan.to[x], "receive", plan.receiveLane[x] || 0), t, plan.start[t], plan.finish[t]);
  }
  if (plan.measured) {
    for (const [from, key, kind] of [["segments", "mCompute", "compute"], ["sends", "mSend", "send"], ["receives", "mReceive", "receive"]]) {
      const m = plan.measured[from];
      for (let i = 0; i < m.length; i += 5)
        push(list(rows[m[i]][key], m[i], kind, m[i + 1], true), m[i + 2], m[i + 3], m[i + 3] + m[i + 4]);
    }
  }
  return rows;
}

/* First slice of the lane that finishes after `t`. */
function firstAfter(lane, t) {
  let low = 0, high = lane.finish.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.finish[middle] <= t) low = middle + 1; else high = middle;
  }
  return low;
}

function makeTimeline(data, plan, canvas, view, show) {
  const rows = makeLanes(data, plan);
  let boxes = []; /* what lies where: lanes with y and height */
  let size = { width: 1000, right: 986 };

  function layout() {
    const many = rows.length > 10, bar = many ? 20 : 34, port = many ? 5 : 7, box = [];
    let y = 6;
    const add = (lanes, height) => {
      for (const lane of lanes) { box.push({ lane, y, height }); y += height + 1; }
    };
    for (const row of rows) {
      row.y = y;
      add(row.compute.length ? row.compute : [{ row: row.device, device: row.device, kind: "compute", item: [], start: [], finish: [] }], bar);
      if (show.ports) { add(row.send, port); add(row.receive, port); }
      if (plan.measured && show.measured) {
        y += 2;
        add(row.mCompute.length ? row.mCompute : [{ row: row.device, device: row.device, kind: "compute", measured: true, item: [], start: [], finish: [] }], Math.round(bar * 0.6));
        if (show.ports) { add(row.mSend, port - 2); add(row.mReceive, port - 2); }
      }
      row.height = y - row.y;
      y += many ? 9 : 15;
    }
    boxes = box;
    return y - (many ? 9 : 15) + 4;
  }

  function colourOf(lane) {
    if (lane.kind === "send") return scheme.send;
    if (lane.kind === "receive") return scheme.receive;
    return lane.measured ? mix(deviceColour(data, lane.device), scheme.paper.length === 7 ? scheme.paper : "#ffffff", scheme.dark ? 0.25 : 0.42) : deviceColour(data, lane.device);
  }

  /* Slices of a lane; `only` picks some of them. */
  function drawLane(g, lane, y, height, colour, only) {
    const k = (size.right - LEFT) / (view.to - view.from), n = lane.item.length, columns = size.right - LEFT + 2;
    const cover = new Float32Array(columns);
    let shaded = false;
    g.fillStyle = colour;
    for (let i = firstAfter(lane, view.from); i < n && lane.start[i] < view.to; i++) {
      if (only && !only[lane.item[i]]) continue;
      const a = (lane.start[i] - view.from) * k, b = (lane.finish[i] - view.from) * k;
      if (b - a >= 1.5) {
        const x = Math.max(a, 0), w = Math.min(b, columns) - x;
        g.fillRect(LEFT + x, y, only ? w : Math.max(w - (b - a > 4 ? 1 : 0.3), 0.5), height);
        continue;
      }
      const c = Math.max(0, Math.floor(a)), share = Math.max(b - a, only ? 0.4 : 0.08);
      shaded = true;
      if (c < columns) cover[c] += Math.min(share, c + 1 - a);
      if (b > c + 1 && c + 1 < columns) cover[c + 1] += b - c - 1;
    }
    if (!shaded) return;
    for (let c = 0; c < columns;) { /* equal shades in one rectangle */
      const level = Math.min(10, Math.ceil(cover[c] * 10));
      let e = c + 1;
      while (e < columns && Math.min(10, Math.ceil(cover[e] * 10)) === level) e++;
      if (level) {
        g.globalAlpha = only ? 0.3 + 0.07 * level : 0.25 + 0.075 * level;
        g.fillRect(LEFT + c, y, e - c, height);
      }
      c = e;
    }
    g.globalAlpha = 1;
  }

  function drawNames(g, lane, y, height) {
    const k = (size.right - LEFT) / (view.to - view.from);
    g.fillStyle = scheme.dark ? "#10131a" : "#ffffff";
    g.font = (height > 24 ? "12px " : "10.5px ") + FONT;
    g.textAlign = "left";
    let drawn = 0;
    for (let i = firstAfter(lane, view.from); i < lane.item.length && lane.start[i] < view.to && drawn < 400; i++) {
      const a = Math.max((lane.start[i] - view.from) * k, 0), b = Math.min((lane.finish[i] - view.from) * k, size.right - LEFT);
      if (b - a < 26) continue;
      const name = lane.measured ? plural(plan.measured.segmentOps[3 * lane.item[i] + 2], "operator") : opLabel(data.problem, lane.item[i]);
      const text = fitText(g, name, b - a - 9);
      if (text === name || text.length > 3) g.fillText(text, LEFT + a + 5, y + height / 2 + 0.5);
      drawn++;
    }
  }

  function drawLabel(g, row) {
    const name = data.problem.devices[row.device];
    g.textAlign = "left";
    g.font = "600 13px " + FONT;
    g.fillStyle = deviceColour(data, row.device);
    g.fillRect(0, row.y, 4, row.height - 1);
    g.fillStyle = scheme.ink;
    g.fillText(fitText(g, name, LEFT - 24), 12, row.y + 9);
    if (row.height > 28) {
      g.font = "11.5px " + FONT;
      g.fillStyle = scheme.muted;
      g.fillText("busy " + textShare(plan.computes[row.device], plan.makespan), 12, row.y + 25);
      if (row.height > 40 && data.problem.deviceTypes[row.device]) g.fillText(fitText(g, data.problem.deviceTypes[row.device], LEFT - 24), 12, row.y + 40);
    }
  }

  /* Where the critical path goes from one lane to another. */
  function drawJumps(g) {
    const place = new Map();
    for (const b of boxes) if (!b.lane.measured) for (const kind of ["compute", "send"]) if (b.lane.kind === kind) place.set(kind + b.lane.device, place.get(kind + b.lane.device) || b);
    const k = (size.right - LEFT) / (view.to - view.from), nOps = plan.opDevice.length;
    const boxOf = (t) => place.get(t < nOps ? "compute" + plan.opDevice[t] : "send" + plan.from[t - nOps]);
    let seen = 0;
    for (const t of plan.path) seen += plan.finish[t] >= view.from && plan.start[t] <= view.to;
    if (seen > 500) return;
    g.strokeStyle = scheme.path;
    g.lineWidth = 1;
    g.globalAlpha = 0.55;
    g.setLineDash([2, 3]);
    g.beginPath();
    for (let i = 1; i < plan.path.length; i++) {
      const t = plan.path[i], before = plan.path[i - 1], a = boxOf(before), b = boxOf(t);
      if (!a || !b || plan.start[t] < view.from || plan.finish[before] > view.to) continue;
      const x0 = LEFT + (plan.finish[before] - view.from) * k, x1 = LEFT + (plan.start[t] - view.from) * k;
      g.moveTo(Math.max(x0, LEFT), a.y + a.height - 2);
      g.lineTo(Math.min(x1, size.right), b.y + b.height - 2);
    }
    g.stroke();
    g.setLineDash([]);
    g.globalAlpha = 1;
  }

  function draw() {
    const height = layout(), { g, width } = prepare(canvas, height + AXIS);
    size = { width, right: width - RIGHT };
    for (const b of boxes) {
      g.fillStyle = scheme.track;
      g.fillRect(LEFT, b.y, size.right - LEFT, b.height);
    }
    timeAxis(g, view, LEFT, size.right, height, 2);
    for (const b of boxes) {
      drawLane(g, b.lane, b.y, b.height, colourOf(b.lane));
      if (b.lane.kind === "compute") drawNames(g, b.lane, b.y, b.height);
    }
    if (show.path && plan.path) {
      for (const b of boxes)
        if (!b.lane.measured) drawLane(g, b.lane, b.lane.kind === "compute" ? b.y + b.height - 4 : b.y, b.lane.kind === "compute" ? 4 : b.height, scheme.path, plan.onPath);
      if (show.ports) drawJumps(g);
    }
    for (const row of rows) drawLabel(g, row);
  }

  /* The slices at a point: the one under it, or how many share its pixel. */
  function at(x, y) {
    const box = boxes.find((b) => y >= b.y && y <= b.y + b.height);
    if (!box || x < LEFT || x > size.right) return null;
    const k = (view.to - view.from) / (size.right - LEFT), t = view.from + (x - LEFT) * k, lane = box.lane;
    const first = firstAfter(lane, t - 1.5 * k);
    let n = 0, best = -1, distance = Infinity;
    for (let i = first; i < lane.item.length && lane.start[i] <= t + 1.5 * k; i++) {
      const d = Math.max(lane.start[i] - t, t - lane.finish[i], 0);
      if (d < distance) { distance = d; best = i; }
      n++;
    }
    if (best < 0) return { lane, n: 0, t };
    const wide = lane.finish[best] - lane.start[best] >= 2 * k;
    return { lane, n: wide && distance === 0 ? 1 : n, item: lane.item[best], index: best, t };
  }

  return { draw, at, area: () => [LEFT, size.right], rows, boxes: () => boxes };
}

/* ---- what the tip says ---- */

function tensorName(data, t) {
  const name = data.problem.tensorName[t];
  return name === 0 ? data.problem.ops[data.problem.tensorProducer[t]] : name;
}

function taskName(data, plan, task) {
  const nOps = plan.opDevice.length;
  return task < nOps ? data.problem.ops[task] : tensorName(data, plan.tensor[task - nOps]);
}

/* Why a task starts when it does. */
function whyLines(data, plan, task) {
  const lines = [], nOps = plan.opDevice.length, devices = data.problem.devices;
  if (!plan.busy) return lines;
  const cause = plan.cause[task] ? task - plan.cause[task] : -1, behind = plan.behind[task] ? task - plan.behind[task] : -1;
  const ready = textMoment(plan.start[task] - plan.busy[task] - plan.held[task], plan.lasts[task]);
  if (cause < 0) lines.push(["reads nothing that another operator makes", "muted"]);
  else if (cause >= nOps) lines.push(["last input " + taskName(data, plan, cause) + " came from " + devices[plan.from[cause - nOps]] + " at " + ready, "muted"]);
  else lines.push(["ready at " + textNs(ready) + ", when " + data.problem.ops[cause] + " finished", "muted"]);
  if (plan.busy[task] > 0) {
    const what = task < nOps ? "device busy" : "port busy";
    lines.push(["waited " + textNs(plan.busy[task]) + ": " + what + (behind >= 0 ? ", behind " + taskName(data, plan, behind) : ""), "muted"]);
  }
  if (plan.held[task] > 0) lines.push(["held back by the plan for " + textNs(plan.held[task]), "muted"]);
  if (plan.busy[task] + plan.held[task] === 0 && cause >= 0) lines.push(["started at once: its input was late", "muted"]);
  if (plan.onPath[task]) lines.push(["on the critical path", "b"]);
  return lines;
}

function sliceLines(data, plan, found) {
  const { lane, item, index, n } = found, devices = data.problem.devices, nOps = plan.opDevice.length;
  if (!n) return null;
  const what = { compute: "operators", send: "transfers sent", receive: "transfers received" }[lane.kind];
  if (n > 1) return [[textCount(n) + " " + (lane.measured ? "measured " : "") + what + " here", "b"], ["on " + devices[lane.device] + "; zoom in to tell them apart", "muted"]];
  const lasts = lane.finish[index] - lane.start[index];
  const times = [textMoment(lane.start[index], lasts) + " to " + textMoment(lane.finish[index], lasts) + " (" + textNs(lasts) + ")"];
  if (lane.measured && lane.kind === "compute") {
    const [first, last, count] = plan.measured.segmentOps.slice(3 * item, 3 * item + 3);
    return [["measured: a segment of " + plural(count, "operator") + " on " + devices[lane.device], "b"], times,
      [first >= 0 ? data.problem.ops[first] + (count > 1 ? " to " + data.problem.ops[last] : "") : "", "muted"]];
  }
  if (lane.measured) {
    const [from, to, bytes] = plan.measured.transferEnds.slice(3 * item, 3 * item + 3);
    return [["measured: " + plan.measured.tensor[item], "b"], [devices[from] + " to " + devices[to] + ", " + textBytes(bytes)], times];
  }
  if (item < nOps) return [[data.problem.ops[item], "b"], [data.problem.types[data.problem.opType[item]] + " on " + devices[lane.device]], times, ...whyLines(data, plan, item)];
  const x = item - nOps;
  return [[taskName(data, plan, item), "b"], [devices[plan.from[x]] + " to " + devices[plan.to[x]] + ", " + textBytes(data.problem.tensorBytes[plan.tensor[x]])], times, ...whyLines(data, plan, item)];
}
