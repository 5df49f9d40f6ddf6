/* Plans for many requests: a table, and rate against latency where there are several. */

const perSecond = (ns) => ns > 0 ? 1e9 / ns : 0;
const textRate = (v) => v >= 100 ? textCount(Math.round(v)) : v.toPrecision(3);

/* What holds for the whole plan. */
function fillRateFigures(list, r) {
  figure(list, "plan-rate", "rate", textRate(perSecond(r.period)) + "/s", textCount(r.in_flight) + " in flight, " + (r.copies === 1 ? "one copy" : textCount(r.copies) + " copies"));
  figure(list, "period", "period", textNs(r.period), "at most " + textNs(r.latency) + " of a request in flight");
  if (r.bound >= 0) figure(list, "period-bound", "no plan serves one more often", "than every " + textNs(r.bound), "gap " + textGap(r.period, r.bound));
}

function fillRate(data) {
  const plans = data.plans.filter((p) => p.rate).sort((a, b) => a.rate.in_flight - b.rate.in_flight), table = byId("rates");
  byId("rate-section").hidden = !plans.length;
  byId("rate").hidden = plans.length < 2;
  table.replaceChildren();
  if (!plans.length) return;
  row(table, ["in flight", "requests/s", "period", "proven bound", "gap", "latency", "copies"], "th");
  for (const { rate: r, label } of plans) /* a curve's are for more than some have */
    row(table, [(/^([0-9]+) in flight$/.exec(label) || ["", textCount(r.in_flight)])[1], textRate(perSecond(r.period)), textNs(r.period), r.bound < 0 ? "-" : textNs(r.bound),
      textGap(r.period, r.bound), textNs(r.latency), textCount(r.copies)]);
  if (plans.length > 1) drawRate(data, plans.map((p) => p.rate), byId("rate"));
}

/* A dot per number of requests: to the right slower answers, up more of them. The dashed line is what the bounds allow. */
function drawRate(data, rates, canvas) {
  const HEIGHT = 260, { g, width } = prepare(canvas, HEIGHT), left = 96, right = width - 60, bottom = HEIGHT - 30, top = 20;
  const most = 1.08 * Math.max(...rates.map((r) => perSecond(Math.max(r.bound, 1)) || 0), ...rates.map((r) => perSecond(r.period)));
  const high = Math.min(most, 2.5 * Math.max(...rates.map((r) => perSecond(r.period)))), end = 1.05 * Math.max(1, ...rates.map((r) => r.latency));
  const x = (ns) => left + ns / end * (right - left), y = (v) => Math.max(top, bottom - v / high * (bottom - top));
  const step = tickStep(high, 4);
  g.textAlign = "right";
  for (let v = 0; v <= high; v += step) {
    g.fillStyle = scheme.line;
    g.fillRect(left, Math.round(y(v)), right - left, 1);
    g.fillStyle = scheme.muted;
    g.fillText(textRate(v) + "/s", left - 10, y(v));
  }
  timeAxis(g, { from: 0, to: end }, left, right, bottom, bottom - 4);
  const line = (value, colour, dash) => {
    g.strokeStyle = colour;
    g.lineWidth = 2;
    g.setLineDash(dash);
    g.beginPath();
    rates.forEach((r, i) => i ? g.lineTo(x(r.latency), y(value(r))) : g.moveTo(x(r.latency), y(value(r))));
    g.stroke();
    g.setLineDash([]);
  };
  if (rates.every((r) => r.bound > 0)) line((r) => perSecond(r.bound), scheme.cut, [6, 4]);
  line((r) => perSecond(r.period), deviceColour(data, 0), []);
  g.textAlign = "left";
  for (const r of rates) {
    g.fillStyle = deviceColour(data, 0);
    g.beginPath();
    g.arc(x(r.latency), y(perSecond(r.period)), 4, 0, 2 * Math.PI);
    g.fill();
    g.fillStyle = scheme.ink;
    g.fillText(String(r.in_flight), x(r.latency) + 7, y(perSecond(r.period)) + 12);
  }
}
