#!/usr/bin/env python3
"""The page of `moirai report` in a real browser: browser.py MOIRAI [--shots FOLDER]

It must load without an error or a request to anywhere, show the plan's own numbers, zoom, tell what is under the pointer, follow the
dark scheme, print, and take names for what they are. Exit code 77 where no Chromium is installed."""
import base64
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from page_test import check, check_quiet, main, run, shoot


def text_ns(ns):
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if ns >= size:
            return f"{ns / size:.3f} {unit}"
    return f"{ns} ns"


def tells(said, ns):
    """Is this moment in the text, in its unit and with any number of decimals that keeps three?"""
    unit, size = next(((u, s) for u, s in (("s", 10**9), ("ms", 10**6), ("us", 10**3)) if ns >= s), ("ns", 1))
    return any(f"{ns / size:.{digits}f} {unit}" in said for digits in range(10) if digits >= 3 or unit == "ns")


def count(n):
    return f"{n:,}"


# ---- what the page must say ----

def wrong_numbers(browser, plan, explained):
    """Where the page differs from the plan file and from `moirai explain --json`; empty if nowhere."""
    page = browser.run("""(() => {
      const t = id => { const e = document.getElementById(id); return e ? e.textContent : null; };
      return {makespan: t("makespan"), bound: t("bound"), transfers: t("transfers"), operators: t("operators"),
              shares: [0, 1, 2, 3, 4].map(i => t("share-" + i)), verdict: [...document.querySelectorAll("#verdict li")].map(e => e.textContent),
              devices: [...document.querySelectorAll("#devices tr[data-device]")].map(r => [...r.cells].map(c => c.textContent)),
              starts: window.moirai.state.plan.start.slice(0, window.moirai.data.problem.ops.length),
              names: window.moirai.data.problem.ops};
    })()""")
    path = explained["critical_path"]
    expected = {
        "makespan": text_ns(plan["makespan_ns"]), "bound": text_ns(plan["lower_bound_ns"]), "transfers": count(len(plan["transfers"])),
        "operators": count(len(plan["ops"])),
        "shares": [text_ns(path[k]) for k in ("computing_ns", "transferring_ns", "waiting_device_ns", "waiting_port_ns", "held_ns")],
        "verdict": [line[0].upper() + line[1:] + "." for line in explained["verdict"]],
    }
    wrong = [k for k, v in expected.items() if page[k] != v]
    starts = {op["name"]: op["start_ns"] for op in plan["ops"]}
    wrong += [f"start of {n}" for n, s in zip(page["names"], page["starts"]) if starts[n] != s]
    for row, device in zip(page["devices"], plan["devices"]):
        ops = sum(op["device"] == device["name"] for op in plan["ops"])
        if row[0].split("  ")[0] != device["name"] or row[1] != count(ops) or row[2] != text_ns(device["busy_ns"]):
            wrong.append(f"device {device['name']}")
    return wrong


def picture(browser, canvas):
    """A canvas as it looks now, in few characters."""
    return browser.run(f"document.getElementById('{canvas}').toDataURL()")


def place_of(browser, name):
    """Where the slice of an operator is on the screen."""
    browser.run("document.getElementById('timeline').scrollIntoView({block: 'center'})")
    return browser.run(f"""(() => {{
      const m = window.moirai, op = m.data.problem.ops.indexOf({json.dumps(name)}), part = m.state.parts.timeline;
      const box = document.getElementById("timeline").getBoundingClientRect(), [left, right] = part.area();
      const lane = part.boxes().find(b => b.lane.item.includes(op) && b.lane.kind === "compute" && !b.lane.measured);
      const t = (m.state.plan.start[op] + m.state.plan.finish[op]) / 2;
      return [box.left + left + (t - m.view.from) / (m.view.to - m.view.from) * (right - left), box.top + lane.y + lane.height / 2];
    }})()""")


def tip(browser):
    return browser.run("document.getElementById('tip').hidden ? null : document.getElementById('tip').innerText")


# ---- the tests ----

def small(browser):
    run("plan", "gpt3-tiny", "--cluster", "inter-server", "--rules", "none", "--placer", "heft", "-o", "plan.json", "--problem-out", "problem.json",
        "--log-json", "log.json", "--report", "small.html", "-q")
    plan = json.load(open("plan.json"))
    explained = json.loads(run("explain", "plan.json", "--problem", "problem.json", "--what-if", "0", "--json"))
    browser.open("small.html")
    check_quiet(browser, "small", "small.html")
    wrong = wrong_numbers(browser, plan, explained)
    check(f"small: the plan's numbers: {wrong}", wrong == [])
    shoot(browser, "small")

    # hover: the tip names the operator, its times and why it waited
    op = max(plan["ops"], key=lambda o: o["finish_ns"] - o["start_ns"])
    x, y = place_of(browser, op["name"])
    browser.mouse("mouseMoved", x, y)
    said = tip(browser) or ""
    check(f"small: the tip tells '{op['name']}': {said}", op["name"] in said and tells(said, op["start_ns"]) and tells(said, op["finish_ns"]))
    waits = {o["name"]: o for o in json.loads(run("explain", "plan.json", "--problem", "problem.json", "--op", op["name"], "--json"))["ops"]}[op["name"]]
    word = "device busy" if waits["waited_busy_ns"] else "input was late" if waits["ready_ns"] else "reads nothing"
    check(f"small: the tip tells why: {said}", word in said)

    # zoom by wheel, move by dragging, all by double click
    before, view = picture(browser, "timeline"), browser.run("[moirai.view.from, moirai.view.to]")
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-300)
    browser.frame()
    zoomed = browser.run("[moirai.view.from, moirai.view.to]")
    check("small: the wheel zooms in", zoomed[1] - zoomed[0] < 0.6 * (view[1] - view[0]) and picture(browser, "timeline") != before)
    at = place_of(browser, op["name"])
    check(f"small: it zooms around the pointer: {x} became {at[0]} of {view} {zoomed}", abs(at[0] - x) < 2)
    browser.mouse("mousePressed", x, y, button="left", clickCount=1)
    browser.mouse("mouseMoved", x + 60, y, button="left", buttons=1)
    browser.mouse("mouseReleased", x + 60, y, button="left", clickCount=1)
    check("small: dragging moves", browser.run("moirai.view.from") < zoomed[0] or zoomed[0] == 0)
    browser.run("document.getElementById('zoom-all').click()")
    browser.frame()
    check("small: 'all' shows all", browser.run("[moirai.view.from, moirai.view.to]") == view and picture(browser, "timeline") == before)

    # dark, print
    light = browser.run("getComputedStyle(document.body).backgroundColor")
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.frame()
    check("small: the dark scheme", browser.run("getComputedStyle(document.body).backgroundColor") != light and picture(browser, "timeline") != before)
    shoot(browser, "small-dark")
    pdf = base64.b64decode(browser.call("Page.printToPDF")["data"])
    check("small: prints", pdf[:5] == b"%PDF-" and len(pdf) > 10000)
    browser.call("Emulation.setEmulatedMedia", features=[])
    check("small: no errors at the end", browser.complaints() == [])


def changed(browser):
    """The check of the numbers sees a page whose numbers are not the plan's."""
    plan = json.load(open("plan.json"))
    explained = json.loads(run("explain", "plan.json", "--problem", "problem.json", "--what-if", "0", "--json"))
    page = open("small.html").read()
    for what, pattern in (("makespan", r'"makespan":(\d+)'), ("a share", r'"shares":\[(\d+)'), ("a start", r'"start":\[\d+,(-?\d+)'), ("a load", r'"computes":\[(\d+)')):
        found = re.search(pattern, page)
        open("changed.html", "w").write(page[:found.start(1)] + str(int(found.group(1)) + 12345) + page[found.end(1):])
        browser.open("changed.html")
        check(f"changed: {what} is noticed", wrong_numbers(browser, plan, explained) != [])


HOSTILE = ["</script><script>window.hacked=1</script>", "\"><img src=x onerror=window.hacked=1>", "a\nb", "'; window.hacked=1; '", "<b>bold</b>", "{{js}}"]


def hostile(browser):
    ops, last = [], None
    for i, name in enumerate(HOSTILE):
        ops.append({"name": name, "type": HOSTILE[i - 1], "memory_bytes": 5, "time_ns": [100000, None] if i % 2 else [None, 100000],
                    "inputs": [last] if last else [], "outputs": [{"name": name, "bytes": 1000}]})
        last = name
    devices = HOSTILE[:2]
    channels = [{"from": a, "to": b, "bytes_per_second": 10**9, "latency_ns": 5} for a, b in (devices, devices[::-1])]
    json.dump({"format": "moirai-problem", "version": 1, "name": HOSTILE[0], "flow": "tensor", "congestion": "port", "memory": "peak",
               "devices": [{"name": d, "memory_bytes": 10**6} for d in devices], "channels": channels, "ops": ops}, open("h.json", "w"))
    run("place", "h.json", "--placer", "heft", "-o", "hp.json", "-q")
    run("report", "hp.json", "hp.json", "--problem", "h.json", "--label", HOSTILE[1], "--label", HOSTILE[4], "-o", "h.html", "-q")
    browser.open("h.html")
    check_quiet(browser, "hostile", "h.html")
    check("hostile: the heading is the name", browser.run("document.getElementById('name').textContent") == HOSTILE[0])
    x, y = place_of(browser, HOSTILE[1])
    browser.mouse("mouseMoved", x, y)
    check("hostile: the tip is the name", HOSTILE[1] in (tip(browser) or ""))
    check("hostile: nothing ran", browser.run("typeof window.hacked") == "undefined")
    check("hostile: no element came of a name", browser.run("document.querySelectorAll('img, b:not(#tip b)').length") == 0)
    check("hostile: two scripts", browser.run("document.scripts.length") == 2)


def basis_problem(devices, launch_ns, segment_ns, assumed):
    """Two operators in a row; every number that the page shows of what its times rest on is a different one."""
    channels = [{"from": a, "to": b, "bytes_per_second": 10**9 * (1 + i + 2 * j), "latency_ns": 1000 * (1 + i + 2 * j)}
                for i, a in enumerate(devices) for j, b in enumerate(devices) if a != b]
    ops = [{"name": "a", "type": "Relu", "memory_bytes": 5, "time_ns": [100000] * len(devices), "inputs": [], "outputs": [{"name": "t", "bytes": 1000}]},
           {"name": "b", "type": "Relu", "memory_bytes": 5, "time_ns": [100000] * len(devices), "inputs": ["t"], "outputs": []}]
    return {"format": "moirai-problem", "version": 1, "name": "basis", "flow": "tensor", "congestion": "port", "memory": "static",
            **({"onnx": {"assumed": assumed}} if assumed else {}),
            "devices": [{"name": d, "memory_bytes": 10**6, **({"launch_ns": launch_ns + 1000 * k} if launch_ns else {}), **({"segment_ns": segment_ns} if segment_ns else {})}
                        for k, d in enumerate(devices)], "channels": channels, "ops": ops}


def basis(browser):
    """What the times rest on: estimated or not, launches, cuts, assumed sizes, links."""
    cases = [("two", ["A", "B"], 5000, 8000, ["batch=1", "height=224"]), ("one", ["A"], 5000, 0, ["batch=1"]), ("plain", ["A", "B"], 0, 0, []),
             ("ten", [f"d{i}" for i in range(10)], 5000, 8000, [])]
    for name, devices, launch, segment, assumed in cases:
        json.dump(basis_problem(devices, launch, segment, assumed), open("b.json", "w"))
        run("place", "b.json", "--placer", "heft", "-o", "bp.json", "--report", "b.html", "--force", "-q")
        browser.open("b.html")
        check_quiet(browser, f"basis {name}", "b.html")
        shown = browser.run("document.getElementById('costs').checkVisibility() ? document.getElementById('costs').textContent : ''")
        more = browser.run("document.getElementById('makespan').parentNode.textContent")
        proven = browser.run("document.getElementById('bound').parentNode.textContent")
        check(f"basis {name}: the verdict's words: {proven}", proven.endswith("optimal (searched)"))
        check(f"basis {name}: estimated or not: {more}", ("estimated, not measured" in more) == (launch > 0))
        most = launch + 1000 * (len(devices) - 1)
        starts = f"Starting an operator takes {text_ns(launch)}" + (f" to {text_ns(most)}" if most > launch else "") + " on average"
        check(f"basis {name}: launches: {shown}", (starts in shown) if launch else "Starting" not in shown)
        check(f"basis {name}: cuts: {shown}", (f"A cut costs its receiver {text_ns(segment)} beside the message" in shown) if segment else "A cut" not in shown)
        check(f"basis {name}: assumed: {shown}", (f"were assumed: {', '.join(assumed)}." in shown) if assumed else "assumed" not in shown)
        cells = browser.run("[...document.querySelectorAll('#links tr')].map(r => [...r.cells].map(c => c.textContent))")
        if len(devices) == 2:
            check(f"basis {name}: links: {cells}", cells == [["from \\ to", "A", "B"], ["A", "", "3.00 GB/s, 3.000 us"], ["B", "2.00 GB/s, 2.000 us", ""]])
        elif len(devices) == 1:
            check(f"basis {name}: no links: {cells}", cells == [])
        else:
            pairs = sum(int(row[1]) for row in cells[1:])
            check(f"basis {name}: kinds of links: {cells}", cells[0] == ["link", "pairs of devices"] and len(cells) == 13 and 0 < pairs < 90)


def ports(browser):
    """Rows of what devices send and receive stand below each device, but not where they would crowd the devices out."""
    for n in (8, 9):
        problem = basis_problem([f"d{i}" for i in range(n)], 0, 0, [])
        for k, op in enumerate(problem["ops"]):  # a transfer in any case
            op["time_ns"] = [100000 if d == k else None for d in range(n)]
        json.dump(problem, open("b.json", "w"))
        run("place", "b.json", "--placer", "heft", "-o", "bp.json", "--report", "b.html", "--force", "-q")
        browser.open("b.html")
        check_quiet(browser, f"ports of {n}", "b.html")
        shown = "[document.getElementById('show-ports').checked, ...moirai.state.parts.timeline.boxes().map(b => b.lane.kind).filter(k => k !== 'compute')]"
        row = browser.run(shown)
        check(f"ports of {n} devices: {row}", row == ([True, "send", "receive"] if n <= 8 else [False]))
        browser.run("document.getElementById('show-ports').click()")
        browser.frame()
        row = browser.run(shown)
        check(f"ports of {n} devices, switched: {row}", row == ([False] if n <= 8 else [True, "send", "receive"]))


def timeline_of(plan, late):
    """A run of the plan in which all took `late` times as long; also written as t.json."""
    devices = []
    for d in plan["devices"]:
        mine = sorted((op for op in plan["ops"] if op["device"] == d["name"]), key=lambda o: o["start_ns"])
        segments = [{"file": "x", "start_ns": int(op["start_ns"] * late), "finish_ns": int(op["finish_ns"] * late), "median_ns": 1, "ops": [op["name"]]} for op in mine]
        devices.append({"name": d["name"], "segments": segments})
    transfers = [{"tensor": t["tensor"], "from": t["from"], "to": t["to"], "bytes": t["bytes"], "start_ns": int(t["start_ns"] * late),
                  "finish_ns": int(t["finish_ns"] * late) + 500, "median_ns": 1} for t in plan["transfers"]]
    latency = int(plan["makespan_ns"] * late)
    json.dump({"format": "moirai-timeline", "version": 1, "median_ns": latency, "devices": devices, "transfers": transfers}, open("t.json", "w"))
    return latency


def scales(browser):
    """A run that took four times as long does not squeeze its plan: the plan fills the picture, "all" shows the run."""
    plan = json.load(open("plan.json"))
    for late, filled in ((1.25, 1.25), (4, 1)):
        timeline_of(plan, late)
        run("report", "plan.json", "--problem", "problem.json", "--timeline", "t.json", "-o", "m.html", "--force", "-q")
        browser.open("m.html")
        check_quiet(browser, f"scales {late}", "m.html")
        seen = browser.run("[moirai.view.from, moirai.view.to]")
        check(f"scales: a run of {late} plans: {seen}", seen[0] == 0 and abs(seen[1] / (filled * plan["makespan_ns"]) - 1.01) < 0.005)
        browser.run("document.getElementById('zoom-all').click()")
        browser.frame()
        check(f"scales: all of {late} plans", browser.run("moirai.view.to") >= late * plan["makespan_ns"])


def rates(browser):
    """Of a plan for many requests the page says what holds for all copies first, and of the rest that it is of one request."""
    json.dump(basis_problem(["A", "B"], 0, 0, []), open("r.json", "w"))
    run("place", "r.json", "--objective", "rate", "--in-flight", "4", "--kind", "replicas", "--effort", "0.05", "--curve", "--threads", "1", "-o", "rp.json", "--report", "r.html", "-q")
    plan = json.load(open("rp.json"))
    check(f"rates: a copy on each device: {plan['in_flight']}", len(plan["copies"]) == 2)
    browser.open("r.html")
    check_quiet(browser, "rates", "r.html")
    text = "document.getElementById('%s').parentNode.textContent"
    first = browser.run("[...document.querySelectorAll('#figures .what')].map(e => e.textContent)")
    check(f"rates: what holds for the plan is first: {first}", first[:4] == ["rate", "period", "no plan serves one more often", "one request alone"])
    said = browser.run(text % "plan-rate")
    check(f"rates: the rate: {said}", f"{plan['in_flight']} in flight, 2 copies" in said)
    said = browser.run(text % "period")
    check(f"rates: the period: {said}", text_ns(plan["period_ns"]) in said)
    one = browser.run("document.getElementById('one').textContent")
    check(f"rates: the verdict's heading: {one}", one == "One request alone, on the plan's first copy:")
    check("rates: other headings", browser.run("[...document.querySelectorAll('h2 .one')].every(e => e.textContent === ' of one request alone, on the first copy')"))
    asked = browser.run("[...document.querySelectorAll('#rates tr td:first-child')].map(e => e.textContent)")
    check(f"rates: the numbers that were asked for: {asked}", sorted(asked) == ["1", "2", "4"])
    browser.open("b.html")
    check("rates: nothing of it where a plan is of one request", browser.run("document.getElementById('one').hidden && !document.querySelector('h2 .one').textContent"))


def measured(browser):
    """Planned over measured, and two plans side by side."""
    run("place", "problem.json", "--placer", "single", "-o", "single.json", "-q")
    plan = json.load(open("plan.json"))
    latency = timeline_of(plan, 1.25)
    run("report", "plan.json", "single.json", "--problem", "problem.json", "--timeline", "t.json", "--log", "log.json", "-o", "measured.html", "-q")
    browser.open("measured.html")
    check_quiet(browser, "measured", "measured.html")
    check("measured: its latency", browser.run("document.getElementById('measured').textContent") == text_ns(latency))
    shoot(browser, "measured")
    both = picture(browser, "timeline")
    browser.run("document.getElementById('show-measured').click()")
    browser.frame()
    check("measured: can be hidden", picture(browser, "timeline") != both)
    row = browser.run("[...document.querySelectorAll('#compare-makespan td')].map(c => c.textContent)")
    single = json.load(open("single.json"))
    check("measured: plans side by side", row == ["makespan", text_ns(plan["makespan_ns"]), text_ns(single["makespan_ns"])])
    browser.run("document.querySelectorAll('#tabs button')[1].click()")
    check("measured: the other plan", browser.run("document.getElementById('makespan').textContent") == text_ns(single["makespan_ns"]))
    check("measured: no errors at the end", browser.complaints() == [])
    run("report", "plan.json", "-o", "alone.html", "-q")
    browser.open("alone.html")
    check_quiet(browser, "alone", "alone.html")
    check("alone: no graph without a problem", browser.run("document.getElementById('graph-section').hidden"))
    check("alone: the makespan", browser.run("document.getElementById('makespan').textContent") == text_ns(plan["makespan_ns"]))


def large(browser):
    """50,560 operators: works, and says how quick it was; a loaded machine may be slower, so the time decides nothing."""
    run("problem", "alphafold2-3.2B", "--cluster", "inter-server", "--dtype", "fp16", "-o", "big.json", "-q")
    run("place", "big.json", "--placer", "heft", "-o", "bigplan.json", "--report", "big.html", "-q")
    plan = json.load(open("bigplan.json"))
    explained = json.loads(run("explain", "bigplan.json", "--problem", "big.json", "--what-if", "0", "--json"))
    opened = browser.open("big.html")
    check_quiet(browser, "large", "big.html")
    wrong = wrong_numbers(browser, plan, explained)
    check(f"large: the plan's numbers: {wrong[:5]}", wrong == [])
    shoot(browser, "large")
    frames = browser.run("""(() => { const m = moirai, t = m.state.parts, times = [];
      for (let i = 0; i < 30; i++) { m.view.zoom(0.8, m.view.whole * 0.37); const b = performance.now(); t.timeline.draw(); t.memory.draw(); times.push(performance.now() - b); }
      return times; })()""")
    browser.run("moirai.levels.set(100, 140)")
    browser.frame()
    x, y = place_of(browser, plan["ops"][20000]["name"])
    browser.run("moirai.view.all()")
    middle = plan["ops"][20000]
    browser.run(f"moirai.view.set({middle['start_ns']} - 2e6, {middle['finish_ns']} + 2e6)")
    browser.frame()
    x, y = place_of(browser, middle["name"])
    browser.mouse("mouseMoved", x, y)
    check("large: the tip after zooming in", middle["name"] in (tip(browser) or ""))
    shoot(browser, "large-near")
    size = os.path.getsize("big.html")
    print(f"large: {len(plan['ops'])} operators, {size / 1e6:.1f} MB, open after {opened:.2f} s, "
          f"a frame takes {sorted(frames)[len(frames) // 2]:.1f} ms in the middle, {max(frames):.1f} ms at most")


main(small, changed, hostile, basis, ports, rates, measured, scales, large)
