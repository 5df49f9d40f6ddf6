/* The network by layers: operators of one depth share a column, colours are devices. From afar a column is a stack of its
 * devices' shares, with the bytes that cross devices below it; near enough, operators and edges show one by one. */

const GRAPH_HEIGHT = 300, CUTS = 44, GRAPH_LEFT = 8, GRAPH_RIGHT = 14;

function makeGraph(data, plan, canvas, view) {
  const p = data.problem, n = p.ops.length, levels = data.levels, K = p.devices.length;
  const members = Array.from({ length: levels }, () => []), row = new Float64Array(n);
  let size = { right: 1000 }, near = false;

  /* Readers stand near what they read: two sweeps of barycentres, beginning with the devices' order. */
  function arrange() {
    const inputs = data.inputs;
    for (let i = 0; i < n; i++) members[p.opLevel[i]].push(i);
    for (const list of members) list.sort((a, b) => plan.opDevice[a] - plan.opDevice[b] || a - b);
    const place = (list) => list.forEach((i, j) => { row[i] = (j + 0.5) / list.length; });
    members.forEach(place);
    for (let sweep = 0; sweep < 2; sweep++)
      for (const list of members) {
        const centre = new Map();
        for (const i of list) {
          let sum = 0;
          for (let j = inputs.off[i]; j < inputs.off[i + 1]; j++) sum += row[inputs.op[j]];
          const count = inputs.off[i + 1] - inputs.off[i];
          centre.set(i, count ? sum / count : row[i]);
        }
        list.sort((a, b) => centre.get(a) - centre.get(b) || plan.opDevice[a] - plan.opDevice[b] || a - b);
        place(list);
      }
  }

  /* Operators by device and bytes cut, of each level. */
  const count = new Float64Array(levels * K), cut = new Float64Array(levels);
  function sum() {
    for (let i = 0; i < n; i++) count[p.opLevel[i] * K + plan.opDevice[i]]++;
    for (let x = 0; x < plan.tensor.length; x++) cut[p.opLevel[p.tensorProducer[plan.tensor[x]]]] += p.tensorBytes[plan.tensor[x]];
  }

  const xOf = (level) => GRAPH_LEFT + (level + 0.5 - view.from) / (view.to - view.from) * (size.right - GRAPH_LEFT);
  const yOf = (i) => 10 + row[i] * (GRAPH_HEIGHT - 20);
  const range = () => [Math.max(0, Math.floor(view.from)), Math.min(levels - 1, Math.ceil(view.to))];

  function widest() {
    const [a, b] = range();
    let most = 1;
    for (let l = a; l <= b; l++) most = Math.max(most, members[l].length);
    return most;
  }

  function drawFar(g) {
    const columns = Math.ceil(size.right - GRAPH_LEFT), perColumn = (view.to - view.from) / columns;
    let most = 0;
    const width = Math.max(perColumn > 0.5 ? 3 : 1, Math.floor(1 / perColumn));
    const total = [], slots = Math.ceil(columns / width);
    for (let c = 0; c < slots; c++) {
      const a = Math.floor(view.from + c * width * perColumn), b = Math.max(a + 1, Math.floor(view.from + (c + 1) * width * perColumn));
      const shares = new Float64Array(K);
      for (let l = a; l < b && l < levels; l++) for (let k = 0; k < K; k++) shares[k] += count[l * K + k] / (b - a);
      total.push(shares);
      most = Math.max(most, shares.reduce((x, y) => x + y, 0));
    }
    total.forEach((shares, c) => {
      let y = GRAPH_HEIGHT;
      for (let k = 0; k < K; k++) {
        const h = shares[k] / most * (GRAPH_HEIGHT - 14);
        g.fillStyle = deviceColour(data, k);
        y -= h;
        if (h > 0) g.fillRect(GRAPH_LEFT + c * width, y, Math.max(width - (width > 3 ? 1 : 0), 1), h);
      }
    });
    g.fillStyle = scheme.muted;
    g.textAlign = "right";
    g.fillText("up to " + textCount(Math.round(most)) + " operators a layer", size.right, 8);
  }

  function drawEdges(g) {
    const [a, b] = range(), inputs = data.inputs, levelPx = (size.right - GRAPH_LEFT) / (view.to - view.from);
    for (const cuts of [false, true]) {
      g.beginPath();
      for (let l = a; l <= b; l++)
        for (const i of members[l])
          for (let j = inputs.off[i]; j < inputs.off[i + 1]; j++) {
            const from = inputs.op[j];
            if ((plan.opDevice[from] !== plan.opDevice[i]) !== cuts) continue;
            const x0 = xOf(p.opLevel[from]), x1 = xOf(l), bend = Math.min(levelPx * 0.5, (x1 - x0) / 2);
            g.moveTo(x0, yOf(from));
            g.bezierCurveTo(x0 + bend, yOf(from), x1 - bend, yOf(i), x1, yOf(i));
          }
      g.strokeStyle = cuts ? scheme.cut : scheme.muted;
      g.lineWidth = cuts ? 1.3 : 0.8;
      g.globalAlpha = cuts ? 0.9 : 0.4;
      g.stroke();
    }
    g.globalAlpha = 1;
  }

  function drawNear(g) {
    const [a, b] = range(), px = (size.right - GRAPH_LEFT) / (view.to - view.from);
    const radius = Math.max(1.6, Math.min(7, px / 3, (GRAPH_HEIGHT - 20) / widest() / 2.4));
    drawEdges(g);
    for (let l = a; l <= b; l++)
      for (const i of members[l]) {
        g.fillStyle = deviceColour(data, plan.opDevice[i]);
        g.beginPath();
        g.arc(xOf(l), yOf(i), radius, 0, 2 * Math.PI);
        g.fill();
        if (plan.onPath && plan.onPath[i] && radius > 2) {
          g.strokeStyle = scheme.path;
          g.lineWidth = 1.6;
          g.stroke();
        }
      }
    if (px > 60 && widest() < 24) {
      g.font = "10.5px " + FONT;
      g.textAlign = "center";
      g.fillStyle = scheme.muted;
      for (let l = a; l <= b; l++)
        for (const i of members[l]) g.fillText(fitText(g, opLabel(p, i), px - 8), xOf(l), yOf(i) - radius - 6);
    }
  }

  /* Bytes that leave a layer for another device. */
  function drawCuts(g) {
    const columns = Math.ceil(size.right - GRAPH_LEFT), top = GRAPH_HEIGHT + 12, px = columns / (view.to - view.from);
    const width = Math.max(px < 2 ? 3 : 1, Math.floor(px)), slots = Math.ceil(columns / width), sums = new Float64Array(slots);
    const [a, b] = range();
    for (let l = a; l <= b && l < levels; l++) {
      const c = Math.floor((l - view.from) * px / width + 1e-9);
      if (c >= 0 && c < slots) sums[c] += cut[l];
    }
    const most = sums.reduce((x, y) => Math.max(x, y), 0);
    g.fillStyle = scheme.line;
    g.fillRect(GRAPH_LEFT, top + CUTS - 14, size.right - GRAPH_LEFT, 1);
    g.fillStyle = scheme.cut;
    for (let c = 0; c < slots; c++) if (sums[c] > 0) {
      const h = Math.max(1, sums[c] / most * (CUTS - 16));
      g.fillRect(GRAPH_LEFT + c * width, top + CUTS - 14 - h, Math.max(width - (width > 3 ? 1 : 0), 1), h);
    }
    g.fillStyle = scheme.muted;
    g.font = "11.5px " + FONT;
    g.textAlign = "left";
    g.fillText("sent to other devices, at most " + textBytes(most) + " a column", GRAPH_LEFT, top + CUTS - 2);
    g.textAlign = "right";
    g.fillText("layers " + textCount(Math.floor(view.from) + 1) + " to " + textCount(Math.min(levels, Math.ceil(view.to))) + " of " + textCount(levels), size.right, top + CUTS - 2);
  }

  function draw() {
    const { g, width } = prepare(canvas, GRAPH_HEIGHT + CUTS + 18);
    size = { right: width - GRAPH_RIGHT };
    const px = (size.right - GRAPH_LEFT) / (view.to - view.from);
    near = px >= 9 && widest() <= 110;
    if (near) drawNear(g); else drawFar(g);
    drawCuts(g);
  }

  function lines(x, y) {
    const level = Math.floor(view.from + (x - GRAPH_LEFT) / (size.right - GRAPH_LEFT) * (view.to - view.from));
    if (level < 0 || level >= levels || x < GRAPH_LEFT) return null;
    if (near && y < GRAPH_HEIGHT) {
      let best = -1, distance = 14 * 14;
      for (const i of members[level]) {
        const d = (xOf(level) - x) ** 2 + (yOf(i) - y) ** 2;
        if (d < distance) { distance = d; best = i; }
      }
      if (best >= 0)
        return [[p.ops[best], "b"], [p.types[p.opType[best]] + " on " + p.devices[plan.opDevice[best]] + ", " + textNs(plan.finish[best] - plan.start[best])],
          ["reads " + textCount(data.inputs.off[best + 1] - data.inputs.off[best]) + " operators, holds " + textBytes(p.opBytes[best]), "muted"]];
    }
    const out = [["layer " + textCount(level + 1) + ": " + textCount(members[level].length) + " operators", "b"]];
    for (let k = 0; k < K; k++) if (count[level * K + k]) out.push([p.devices[k] + ": " + textCount(count[level * K + k])]);
    if (cut[level]) out.push([textBytes(cut[level]) + " sent to other devices", "muted"]);
    return out;
  }

  arrange();
  sum();
  return { draw, lines, area: () => [GRAPH_LEFT, size.right], isNear: () => near };
}
