/* Memory over time, the search, shares: the plain charts. */

function makeMemory(data, plan, canvas, view) {
  const used = data.problem.devices.map((_, k) => k).filter((k) => plan.peak[k] > 0); /* who holds nothing has no curve */
  const K = used.length, HEIGHT = K > 10 ? 40 : 58, GAP = 16;
  let size = { right: 1000 };

  function drawDevice(g, k, y) {
    const m = plan.memory[k], limit = data.problem.deviceBytes[k];
    const far = limit > 3 * plan.peak[k], most = Math.max(far ? plan.peak[k] * 1.25 : Math.max(limit, plan.peak[k]) * 1.06, 1);
    const left = LEFT, right = size.right, px = (right - left) / (view.to - view.from), h = (b) => b / most * HEIGHT;
    const columns = Math.ceil(right - left), top = new Float64Array(columns);
    for (let i = 0; i < m.at.length; i++) { /* the largest value of each pixel */
      const a = Math.floor((m.at[i] - view.from) * px), b = i + 1 < m.at.length ? (m.at[i + 1] - view.from) * px : columns;
      for (let c = Math.max(a, 0); c < Math.min(Math.max(b, a + 1), columns); c++) top[c] = Math.max(top[c], m.bytes[i]);
    }
    g.fillStyle = scheme.track;
    g.fillRect(left, y, right - left, HEIGHT);
    g.fillStyle = deviceColour(data, k);
    g.globalAlpha = 0.45;
    for (let c = 0; c < columns;) {
      let e = c + 1;
      while (e < columns && top[e] === top[c]) e++;
      g.fillRect(left + c, y + HEIGHT - h(top[c]), e - c, h(top[c]));
      c = e;
    }
    g.globalAlpha = 1;
    g.fillRect(left, y + HEIGHT - h(plan.resident[k]), right - left, h(plan.resident[k]));
    if (far) { /* the limit is off the scale: say so instead of drawing an empty box */
      const narrow = right - left < 420;
      const text = narrow ? "up to " + textBytes(most) : "drawn up to " + textBytes(most) + "; the limit, " + textBytes(limit) + ", is " + (plan.peak[k] > 0 ? textCount(Math.round(limit / plan.peak[k])) : "many") + " times the peak";
      g.font = "11.5px " + FONT;
      g.textAlign = "right";
      g.globalAlpha = 0.85;
      g.fillStyle = scheme.track;
      g.fillRect(right - g.measureText(text).width - 14, y + 1, g.measureText(text).width + 14, 18);
      g.globalAlpha = 1;
      g.fillStyle = scheme.muted;
      g.fillText(text, right - 8, y + 10);
    } else {
      g.strokeStyle = scheme.limit;
      g.lineWidth = 1.4;
      g.setLineDash([5, 4]);
      g.beginPath();
      g.moveTo(left, y + HEIGHT - h(limit));
      g.lineTo(right, y + HEIGHT - h(limit));
      g.stroke();
      g.setLineDash([]);
    }
    g.textAlign = "left";
    g.fillStyle = scheme.ink;
    g.font = "600 13px " + FONT;
    g.fillText(fitText(g, data.problem.devices[k], LEFT - 24), 12, y + 9);
    g.fillStyle = scheme.muted;
    g.font = "11.5px " + FONT;
    g.fillText("peak " + textBytes(plan.peak[k]), 12, y + 25);
    if (HEIGHT > 50) g.fillText("of " + textBytes(limit), 12, y + 41);
    g.fillStyle = deviceColour(data, k);
    g.fillRect(0, y, 4, HEIGHT);
  }

  function draw() {
    const height = Math.max(K * (HEIGHT + GAP) - GAP, 0) + 8, { g, width } = prepare(canvas, height + AXIS);
    size = { right: width - RIGHT };
    used.forEach((k, i) => drawDevice(g, k, 4 + i * (HEIGHT + GAP)));
    timeAxis(g, view, LEFT, size.right, height, height - 4);
  }

  function lines(x, y) {
    const k = used[Math.floor((y - 4) / (HEIGHT + GAP))];
    if (k === undefined || x < LEFT) return null;
    const t = view.from + (x - LEFT) / (size.right - LEFT) * (view.to - view.from), m = plan.memory[k];
    let i = 0;
    while (i + 1 < m.at.length && m.at[i + 1] <= t) i++;
    return [[data.problem.devices[k] + ": " + textBytes(m.bytes[i]), "b"], ["at " + textNs(Math.round(t)) + "; " + textBytes(plan.resident[k]) + " of it weights and workspace"],
      [textShare(m.bytes[i], data.problem.deviceBytes[k]) + " of " + textBytes(data.problem.deviceBytes[k]), "muted"]];
  }

  return { draw, lines, area: () => [LEFT, size.right] };
}

/* Steps of the best makespan (solid) and of the bound (dashed). */
function drawSearch(data, plan, canvas) {
  const HEIGHT = 240, { g, width } = prepare(canvas, HEIGHT), e = plan.events, left = 96, right = width - 90, bottom = HEIGHT - 30, top = 14;
  let low = Infinity, high = 0, end = 1;
  for (let i = 0; i < e.length; i += 3) {
    end = Math.max(end, e[i]);
    for (const v of [e[i + 1], e[i + 2]]) if (v >= 0) { low = Math.min(low, v); high = Math.max(high, v); }
  }
  /* first plans may be many times the last: show what the end is about */
  high = Math.min(high, 2.2 * plan.makespan);
  const pad = Math.max((high - low) * 0.08, high * 0.01);
  low = Math.max(0, low - pad);
  high += pad;
  const x = (ms) => left + ms / end * (right - left), y = (v) => Math.max(top, bottom - (v - low) / (high - low) * (bottom - top));
  g.textAlign = "right";
  const step = tickStep(high - low, 4);
  for (let v = Math.ceil(low / step) * step; v <= high; v += step) {
    g.fillStyle = scheme.line;
    g.fillRect(left, Math.round(y(v)), right - left, 1);
    g.fillStyle = scheme.muted;
    g.fillText(textNs(Math.round(v)), left - 10, y(v));
  }
  timeAxis(g, { from: 0, to: end * 1e6 }, left, right, bottom, bottom - 4);
  const series = (offset, colour, dash, name) => {
    let last = -1;
    g.strokeStyle = colour;
    g.lineWidth = 2;
    g.setLineDash(dash);
    g.beginPath();
    for (let i = 0; i < e.length; i += 3) {
      const v = e[i + offset];
      if (v < 0) continue;
      if (last < 0) g.moveTo(x(e[i]), y(v)); else { g.lineTo(x(e[i]), y(last)); g.lineTo(x(e[i]), y(v)); }
      last = v;
    }
    if (last < 0) return;
    g.lineTo(right, y(last));
    g.stroke();
    g.setLineDash([]);
    g.textAlign = "left";
    g.fillStyle = colour;
    g.fillText(name, right + 8, y(last) + (offset === 1 ? -7 : 7));
  };
  series(1, deviceColour(data, 0), [], "best plan");
  series(2, scheme.cut, [6, 4], "bound");
}

/* A bar of the five shares. */
function shareBar(plan, small) {
  const bar = element("div", small ? "stack small" : "stack");
  plan.shares.forEach((ns, i) => {
    if (!ns) return;
    const part = element("div");
    part.style.width = 100 * ns / plan.makespan + "%";
    part.style.background = shareColour(i);
    bar.append(part);
  });
  return bar;
}
