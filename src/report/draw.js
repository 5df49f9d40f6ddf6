/* What every drawing needs: numbers for people, colours of the scheme, sharp canvases, axes, the tip. */

/* ---- numbers ---- the same words as the command prints */
function textNs(ns) {
  if (ns < 0) return "-";
  if (ns < 1e3) return ns + " ns";
  if (ns < 1e6) return (ns / 1e3).toFixed(3) + " us";
  if (ns < 1e9) return (ns / 1e6).toFixed(3) + " ms";
  return (ns / 1e9).toFixed(3) + " s";
}

/* A moment, fine enough to tell a task of `lasts` nanoseconds from its neighbours. */
function textMoment(ns, lasts) {
  const unit = ns >= 1e9 ? [1e9, "s", 9] : ns >= 1e6 ? [1e6, "ms", 6] : ns >= 1e3 ? [1e3, "us", 3] : [1, "ns", 0];
  const digits = Math.min(unit[2], Math.max(3, Math.ceil(-Math.log10(Math.max(lasts, 1) / unit[0])) + 2));
  return (ns / unit[0]).toFixed(digits) + " " + unit[1];
}

function textBytes(bytes) {
  const prefix = ["", "k", "M", "G", "T", "P", "E"];
  let x = bytes, i = 0;
  while (x >= 999.5 && i < 6) { x /= 1000; i++; }
  return x.toFixed(i === 0 ? 0 : x < 10 ? 2 : x < 100 ? 1 : 0) + " " + prefix[i] + "B";
}

function textCount(n) {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

function textShare(part, whole) {
  return whole > 0 ? (100 * part / whole).toFixed(1) + " %" : "-";
}

/* A gap is never shown as smaller than it is. */
function textGap(makespan, bound) {
  if (bound < 0) return "-";
  const gap = makespan > 0 ? (makespan - bound) / makespan : 0;
  return (Math.ceil(gap * 1e4 * (1 - 1e-12)) / 100).toFixed(2) + " %";
}

function shortName(name) {
  const slash = name.lastIndexOf("/");
  return slash >= 0 && slash + 1 < name.length ? name.slice(slash + 1) : name;
}

/* What a box says. A fused operator has the name of its last member, often just "relu": then the heaviest says more. */
function opLabel(problem, i) {
  const name = problem.ops[i], short = shortName(name), types = problem.types[problem.opType[i]].split("+");
  if (types.length < 2 || short.toLowerCase() !== types[types.length - 1].toLowerCase()) return short;
  const heavy = types.find((t) => /^(Conv|MatMul|Gemm|Attention)/.test(t)) || types[0], parts = name.split("/");
  return (parts.length > 1 ? parts[parts.length - 2] + "/" : "") + heavy.toLowerCase();
}

function plural(n, what) {
  return textCount(n) + " " + what + (n === 1 ? "" : "s");
}

/* ---- elements ---- names only ever become text */
function element(tag, className, text) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text;
  return e;
}

function byId(id) {
  return document.getElementById(id);
}

function chip(list, colour, text, thin) {
  const item = element("span");
  const box = element("span", thin ? "chip thin" : "chip");
  box.style.background = colour;
  item.append(box, text);
  list.append(item);
}

/* ---- colours ---- */
const scheme = {
  dark: false,
  read() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["paper", "panel", "ink", "muted", "line", "track", "send", "receive", "accent", "cut", "limit", "path"])
      this[name] = style.getPropertyValue("--" + name).trim();
    this.dark = matchMedia("(prefers-color-scheme: dark)").matches && !document.documentElement.hasAttribute("data-print");
  },
};

function mix(colour, other, share) {
  const parse = (c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16));
  const a = parse(colour), b = parse(other);
  return "#" + a.map((x, i) => Math.round(x + (b[i] - x) * share).toString(16).padStart(2, "0")).join("");
}

/* The devices' colours, lighter on a dark page. */
function deviceColour(data, k) {
  return scheme.dark ? mix(data.problem.colours[k], "#ffffff", 0.22) : data.problem.colours[k];
}

/* Computing, transferring, waiting for a device, waiting for a port, held back. */
function shareColour(i) {
  const light = ["#0072b2", "#e69f00", "#7d8899", "#b9c1cd", "#dfe3ea"], dark = ["#4aa3dc", "#eeb33f", "#8590a3", "#5d687b", "#3a424f"];
  return (scheme.dark ? dark : light)[i];
}

/* ---- canvas ---- */
const FONT = 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';

/* Sharp on every screen; returns the context in CSS pixels. */
function prepare(canvas, height) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth || 1000;
  const w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  canvas.style.height = height + "px";
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  g.font = "12px " + FONT;
  g.textBaseline = "middle";
  return { g, width, height };
}

/* Text cut to a width, with an ellipsis. */
function fitText(g, text, width) {
  if (text.length * 3 > width * 4) text = text.slice(0, Math.ceil(width / 3));
  if (g.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (g.measureText(text.slice(0, middle) + "…").width <= width) low = middle; else high = middle - 1;
  }
  return low ? text.slice(0, low) + "…" : "";
}

/* 1, 2 or 5 times a power of ten, at most `most` ticks. */
function tickStep(span, most) {
  const raw = span / most, power = Math.pow(10, Math.floor(Math.log10(raw))), x = raw / power;
  return (x <= 1 ? 1 : x <= 2 ? 2 : x <= 5 ? 5 : 10) * power;
}

function timeAxis(g, view, left, right, y, top) {
  const span = view.to - view.from, step = Math.max(tickStep(span, Math.max(2, (right - left) / 110)), 1);
  const unit = view.to >= 1e9 ? [1e9, "s"] : view.to >= 1e6 ? [1e6, "ms"] : view.to >= 1e3 ? [1e3, "us"] : [1, "ns"];
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / unit[0]) - 1e-9)));
  g.textAlign = "center";
  g.font = "11.5px " + FONT;
  for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
    const x = left + (t - view.from) / span * (right - left);
    g.fillStyle = scheme.line;
    g.fillRect(Math.round(x), top, 1, y - top);
    g.fillStyle = scheme.muted;
    if (x > left + 12 && x < right - 24 || t === 0) g.fillText((t / unit[0]).toFixed(digits) + (t === 0 ? "" : " " + unit[1]), x, y + 10);
  }
}

/* ---- a view: what part of the whole is shown ---- */
function makeView(whole, least, changed) {
  const view = {
    whole, from: 0, to: whole,
    set(from, to) {
      const span = Math.min(Math.max(to - from, least), view.whole);
      from = Math.min(Math.max(from, 0), view.whole - span);
      if (from === view.from && from + span === view.to) return false;
      view.from = from;
      view.to = from + span;
      changed();
      return true;
    },
    zoom(factor, at) {
      return view.set(at - (at - view.from) * factor, at + (view.to - at) * factor);
    },
    all() { return view.set(0, view.whole); },
  };
  return view;
}

/* Wheel zooms, dragging moves, double click shows all, keys do the same. `area` gives the left and right edge. */
function steer(canvas, view, area, hover) {
  const at = (e) => {
    const box = canvas.getBoundingClientRect(), [left, right] = area();
    const share = (e.clientX - box.left - left) / (right - left);
    return view.from + Math.min(Math.max(share, 0), 1) * (view.to - view.from);
  };
  canvas.addEventListener("wheel", (e) => {
    const span = view.to - view.from;
    const sideways = e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY);
    const moved = sideways ? view.set(view.from + (e.deltaX || e.deltaY) / 1000 * span, view.to + (e.deltaX || e.deltaY) / 1000 * span)
      : view.zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 300))), at(e));
    if (moved) { e.preventDefault(); hover(e); } /* what is shown whole lets the page scroll */
  }, { passive: false });
  let drag = null;
  canvas.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    drag = { x: e.clientX, from: view.from, to: view.to };
    canvas.setPointerCapture(e.pointerId);
  });
  canvas.addEventListener("pointermove", (e) => {
    if (drag) {
      const [left, right] = area(), move = (drag.x - e.clientX) / (right - left) * (drag.to - drag.from);
      view.set(drag.from + move, drag.to + move);
    }
    hover(e);
  });
  const drop = () => { drag = null; };
  canvas.addEventListener("pointerup", drop);
  canvas.addEventListener("pointercancel", drop);
  canvas.addEventListener("pointerleave", () => { tip.hide(); });
  canvas.addEventListener("dblclick", () => view.all());
  canvas.addEventListener("keydown", (e) => {
    const span = view.to - view.from, middle = (view.from + view.to) / 2;
    if (e.key === "+" || e.key === "=") view.zoom(0.6, middle);
    else if (e.key === "-") view.zoom(1 / 0.6, middle);
    else if (e.key === "0") view.all();
    else if (e.key === "ArrowLeft") view.set(view.from - span / 6, view.to - span / 6);
    else if (e.key === "ArrowRight") view.set(view.from + span / 6, view.to + span / 6);
    else return;
    e.preventDefault();
  });
}

/* ---- the tip ---- lines: [text] plain, [text, "b"] strong, [text, "muted"] */
const tip = {
  show(e, lines) {
    const box = byId("tip");
    box.replaceChildren();
    for (const [text, kind] of lines) {
      const line = element(kind === "b" ? "b" : "span", kind === "muted" ? "muted" : "", text);
      line.style.display = "block";
      box.append(line);
    }
    box.hidden = false;
    const w = box.offsetWidth, h = box.offsetHeight;
    box.style.left = Math.max(8, Math.min(e.clientX + 16, innerWidth - w - 10)) + "px";
    box.style.top = (e.clientY + 18 + h > innerHeight ? Math.max(8, e.clientY - h - 12) : e.clientY + 18) + "px";
  },
  hide() { byId("tip").hidden = true; },
};

/* One drawing per frame, however many events ask for it. */
function frame(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  };
}
