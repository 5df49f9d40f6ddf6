#!/usr/bin/env python3
"""Is a verdict of `moirai plan` one to stake money on? What a new user does in the first hour, and whether `moirai tune` denies it.

    python3 bench/first_hour.py FOLDER --out DIR [--clusters 8+4+2+2,1+1] [--first-core 0] [--seconds S] [--docs PAGE] [NAME...]

FOLDER has ONNX files (bench/first_hour_networks.py makes some). A cluster is processors of this machine by their threads, each
kept to cores of its own: 8+4+2+2 takes sixteen. For each network and cluster, by the installed command alone:

  guess     `moirai plan` by the cost model
  measured  `moirai profile`, then `moirai plan` by the measured times, with the links of one `moirai probe` per cluster
  tune      `moirai tune`: what the fastest split takes, in turns with the fastest device alone

A verdict recommends a split where the lower end of its interval is above 1; without an interval that is the speed-up itself. It is
DENIED where tune then measures less than that lower end, less 1 %, by which two medians of one plan differ (tune's own
threshold). Anything else that was measured outside of the interval is counted as such, and so is a split that pays although the
verdict was for one device; "not tried" is where tune's time was over before its first split. The journal in DIR has a line per case and is what a second call goes on from: smallest networks
first, and after --seconds no new case begins. Exit code 1 if any verdict is denied.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path
from typing import Any

SLACK = 0.01
BEGIN, END = "<!-- first_hour begin -->", "<!-- first_hour end -->"


class Bench:
    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.out, self.began = args, Path(args.out), time.monotonic()
        self.out.mkdir(parents=True, exist_ok=True)
        self.journal = self.out / "journal.jsonl"
        lines = self.journal.read_text().splitlines() if self.journal.exists() else []
        self.rows = {(r["network"], r["cluster"]): r for r in map(json.loads, lines)}

    def moirai(self, *words: Any) -> dict[str, Any]:
        """The command's JSON; what it says beside that goes to a log."""
        done = subprocess.run([self.args.moirai, *map(str, words), "--json"], capture_output=True, text=True)
        with (self.out / "log.txt").open("a") as f:
            f.write(f"$ moirai {' '.join(map(str, words))}\n{done.stderr}\n")
        if done.returncode:
            raise RuntimeError(f"moirai {words[0]}: {(done.stderr.strip().splitlines() or ['?'])[-1][:200]}")
        return json.loads(done.stdout)

    def cluster(self, line: str) -> Path:
        """Its file, with measured links."""
        path = self.out / f"{line}.json"
        if path.exists():
            return path
        devices, core = [], self.args.first_core
        for i, n in enumerate(map(int, line.split("+"))):
            cores = str(core) if n == 1 else f"{core}-{core + n - 1}"
            devices.append({"name": chr(65 + i), "type": "cpu", "memory": "8GB", "ep": "cpu", "threads": n, "cores": cores})
            core += n
        links = [{"from": a["name"], "to": b["name"], "bandwidth": "40Gbps", "latency": "5us", "both": True} for a, b in combinations(devices, 2)]
        plain = self.out / f"{line}.plain.json"
        plain.write_text(json.dumps({"format": "moirai-cluster", "version": 1, "name": line, "devices": devices, "links": links}))
        self.moirai("probe", "--cluster", plain, "--seconds", self.args.probe_seconds, "-o", path, "--force")
        return path

    def planned(self, network: Path, cluster: Path, *more: Any) -> dict[str, Any]:
        plan = self.moirai("plan", network, "--cluster", cluster, "--time-limit", self.args.plan_limit, *more)
        up = plan.get("speed_up")
        return {"speed_up": up, "low": plan.get("speed_up_low", up), "high": plan.get("speed_up_high", up), "interval": "speed_up_low" in plan,
                "makespan_ns": plan["makespan_ns"], "single_ns": plan.get("single_makespan_ns"), "single": plan.get("single_device")}  # fmt: skip

    def case(self, model: Path, line: str) -> dict[str, Any]:
        cluster, times, began = self.cluster(line), self.out / f"{model.stem}-{line}.measured.json", time.monotonic()
        row: dict[str, Any] = {"network": model.stem, "cluster": line, "load": os.getloadavg()[0]}
        row["guess"] = self.planned(model, cluster)
        self.moirai("profile", model, "--cluster", cluster, "--cache", self.out / "times", "--runs", self.args.profile_runs, "-o", times, "--force")
        row["measured"] = self.planned(times, cluster, "--rules", "none")
        row["plan_s"] = time.monotonic() - began
        tune = self.moirai("tune", model, "--cluster", cluster, "--keep-links", "--cache", self.out / "times", "--time-limit", self.args.tune_limit,
                           "--plan-limit", self.args.plan_limit)  # fmt: skip
        alone = tune.get("best_alone_ns")
        splits = [r["measured_ns"] for r in tune["rounds"] if len(r["passes_ns"]) > 1 or not tune["n_passes"]]
        row["tune"] = {"split_pays": tune["split_pays"], "alone_ns": alone, "machine_ns": tune.get("machine_ns"), "noise": tune["noise"],
                       "speed_up": alone / min(splits) if splits and alone else None, "n_passes": tune["n_passes"], "verdict": tune["verdict"], "stopped": tune["stopped"],
                       "first": [alone / r["passes_ns"][0] for r in tune["rounds"][:1] if alone],
                       "longer": [r["measured_ns"] / r["promised_ns"] for r in tune["rounds"] if r.get("promised_ns")]}  # fmt: skip
        row["s"] = time.monotonic() - began
        times.unlink()
        return row

    def left_s(self) -> float:
        return self.args.seconds - (time.monotonic() - self.began)

    def run(self) -> None:
        files = sorted(Path(self.args.folder).glob("*.onnx"), key=lambda p: p.stat().st_size)
        cases = [(f, c) for c in self.args.clusters.split(",") for f in files if not self.args.names or f.stem in self.args.names]
        for model, line in cases:
            if (model.stem, line) in self.rows or self.left_s() <= 0:
                continue
            try:
                row = self.case(model, line)
            except (RuntimeError, KeyError, json.JSONDecodeError) as e:
                row = {"network": model.stem, "cluster": line, "failed": str(e)}
            self.rows[model.stem, line] = row
            with self.journal.open("a") as f:
                f.write(json.dumps(row) + "\n")
            print(" ".join(shown(row)), flush=True)
        missing = [f"{f.stem} on {c}" for f, c in cases if (f.stem, c) not in self.rows]
        if missing:
            print(f"not begun, the time was over: {', '.join(missing)}")


# ---- verdicts


def recommends(verdict: dict[str, Any]) -> bool:
    return bool(verdict["speed_up"] and verdict["low"] > 1.005 and verdict["speed_up"] > 1.005)


def judged(verdict: dict[str, Any], tune: dict[str, Any]) -> str:
    """What tune says of it. Where no split was worth trying to tune, one device is the fastest that it knows."""
    up, found = verdict["speed_up"], tune["speed_up"] or 1.0
    if not tune["speed_up"] and tune.get("stopped") == "the time was over":
        return "not tried"
    if recommends(verdict):
        return "DENIED" if found < (1 - SLACK) * verdict["low"] else "above" if found > (1 + SLACK) * verdict["high"] else "held"
    if up is None or up <= 1.005:
        return "missed" if tune["split_pays"] and found > 1.05 else "one device"
    if found > (1 + SLACK) * verdict["high"]:
        return "above"
    return "below" if found < (1 - SLACK) * min(verdict["low"], 1) else "open"


def said(verdict: dict[str, Any]) -> str:
    if verdict["speed_up"] is None:
        return "not known"
    if verdict["speed_up"] <= 1.005:
        return "one device"
    return f"{verdict['speed_up']:.2f}" + (f" ({verdict['low']:.2f} to {verdict['high']:.2f})" if verdict["interval"] else "")


def shown(row: dict[str, Any]) -> list[str]:
    if "failed" in row:
        return [row["network"], row["cluster"], "failed: " + row["failed"]]
    tune = row["tune"]
    split = f"{tune['speed_up']:.2f}" if tune["speed_up"] else "none tried"
    return [row["network"], row["cluster"], said(row["guess"]), judged(row["guess"], tune), said(row["measured"]), judged(row["measured"], tune), split,
            "split" if tune["split_pays"] else "one device", f"{tune['alone_ns'] / 1e6:.1f}", f"{tune['machine_ns'] / 1e6:.1f}", f"{100 * tune['noise']:.0f} %"]  # fmt: skip


def table(rows: list[dict[str, Any]]) -> str:
    head = ["network", "threads", "cost model", "", "measured times", "", "fastest split", "tune keeps", "best alone ms", "machine ms", "noise"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * 6 + "---:|---|---:|---:|---:|"]
    return "\n".join(lines + ["| " + " | ".join(shown(r)) + " |" for r in rows if "failed" not in r]) + "\n"


def counts(rows: list[dict[str, Any]]) -> str:
    done, text = [r for r in rows if "failed" not in r], ""
    for name in ("guess", "measured"):
        verdicts = [judged(r[name], r["tune"]) for r in done]
        text += f"{name}: {len(done)} verdicts, {sum(recommends(r[name]) for r in done)} recommend a split, {verdicts.count('DENIED')} of them denied; "
        text += ", ".join(f"{verdicts.count(v)} {v}" for v in ("held", "above", "open", "below", "one device", "missed", "not tried")) + "\n"
    longer = sorted(r["tune"]["longer"][0] for r in done if r["tune"].get("longer"))
    if longer:
        text += f"first splits took {longer[0]:.2f} to {longer[-1]:.2f} times what was promised, {longer[len(longer) // 2]:.2f} in the median of {len(longer)}\n"
    noisy = sum(r["tune"]["noise"] > 0.1 for r in done)
    text += f"{sum(r['tune']['split_pays'] for r in done)} splits kept by tune; passes of one plan differed by more than 10 % in {noisy} cases"
    failed = [r for r in rows if "failed" in r]
    return text + "".join(f"\n{r['network']} on {r['cluster']} failed: {r['failed']}" for r in failed)


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--out", required=True)
    p.add_argument("--moirai", default="moirai")
    p.add_argument("--clusters", default="1+1")
    p.add_argument("--first-core", type=int, default=0)
    p.add_argument("--seconds", type=float, default=1e9)
    p.add_argument("--plan-limit", type=float, default=3)
    p.add_argument("--tune-limit", type=float, default=30)
    p.add_argument("--probe-seconds", type=float, default=3)
    p.add_argument("--profile-runs", type=int, default=20)
    p.add_argument("--docs", help="puts the table between the marks of that page")
    p.add_argument("names", nargs="*", metavar="NAME")
    args = p.parse_args()
    bench = Bench(args)
    bench.run()
    rows = list(bench.rows.values())
    (bench.out / "table.md").write_text(table(rows))
    print("\n" + table(rows) + "\n" + counts(rows))
    if args.docs:
        page = Path(args.docs).read_text()
        before, rest = page.split(BEGIN)
        Path(args.docs).write_text(before + BEGIN + "\n" + table(rows) + END + rest.split(END)[1])
    return int(any(judged(r[k], r["tune"]) == "DENIED" for r in rows if "failed" not in r for k in ("guess", "measured")))


if __name__ == "__main__":
    sys.exit(main())
