#!/usr/bin/env python3
"""Tables of docs/pytorch.md from what bench/gpu_compiled.py and bench/shard.py have measured.

    python3 bench/gpu_tables.py alone LINES.jsonl...          # one part that runs all against torch.compile
    python3 bench/gpu_tables.py plans LINES.jsonl...          # plans of compiled kernels against torch.compile
    python3 bench/gpu_tables.py nccl LINES.jsonl...           # the same, by NCCL
    python3 bench/gpu_tables.py where LINES.jsonl...          # where the time of the fastest plans goes
    python3 bench/gpu_tables.py quiet LINES.jsonl...          # plans against torch.compile in turns, with nothing else on the GPU
    python3 bench/gpu_tables.py bounds LINES.jsonl...         # what no cut takes less than
    python3 bench/gpu_tables.py cut RESULTS.json...           # operators in pieces
    python3 bench/gpu_tables.py --write docs/pytorch.md ...   # in place, between <!-- KIND --> and <!-- end -->

Of a network that was measured more than once, the last time counts; alone, where other processes may have disturbed a
part, the calmest.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pages

NAMES = {"hrnet": "HRNet-W32's stages", "timm:coat_mini": "CoaT mini", "timm:inception_resnet_v2": "Inception-ResNet v2",
         "nasnet": "NASNet's cells", "inception": "Inception", "moe": "mixture of experts", "gpt2": "GPT-2",
         "t5": "T5", "swin": "Swin", "clip": "CLIP", "recommender": "recommender",
         "layers": "GPT-2 small's layers, 1 x 1,024", "layers-batch": "12 layers of 1,024, 4 x 512",
         "layers-short": "12 layers of 1,024, 1 x 128"}  # fmt: skip


def lines_of(paths: list[Path]) -> list[dict[str, Any]]:
    return [json.loads(line) for path in paths for line in path.read_text().splitlines() if line.strip()]


def named(line: dict[str, Any]) -> str:
    setting, name = line.get("setting", ""), line["network"]
    if name.startswith("tokens:"):
        _, name, sizes = name.split(":")
        setting = "; ".join(x for x in (setting, f"by hand in {sizes.replace('-', ', ')} tokens") if x)
    return NAMES.get(name, name) + (f", {setting}" if setting else "")


def alone(lines: list[dict[str, Any]]) -> list[str]:
    rows: dict[str, dict[str, Any]] = {}
    for x in lines:
        if x["what"].startswith("alone on") and x["spread"] <= rows.get(x["network"], x)["spread"]:
            rows[x["network"]] = x
    off = {x["network"]: x["off"] for x in lines if x["what"] == "ready"}
    made = ["| network | `torch.compile`, ms | ours, ms | of `torch.compile` | runs differ by | results off by |",
            "|---|---:|---:|---:|---:|---:|"]  # fmt: skip
    for name, x in rows.items():
        made.append(f"| {named(x)} | {x['torch_compiled_ms']:.3f} | {x['ours_ms']:.3f} | {x['of_torch']:.3f} | "
                    f"{100 * x.get('spread', 0):.1f} % | {off.get(name, 0):.0e} |")  # fmt: skip
    worst = max((x["of_torch"] for x in rows.values()), default=0)
    return [*made, "", f"Within 2 % of `torch.compile`: {sum(x['of_torch'] <= 1.02 for x in rows.values())} of {len(rows)}; "
            f"the slowest takes {worst:.3f} of it."]  # fmt: skip


class Row:
    """A network in one setting."""

    def __init__(self) -> None:
        self.calm = float("inf")
        self.torch: dict[str, Any] = {}
        self.sum: dict[str, Any] = {}
        self.plans: dict[str, list[dict[str, Any]]] = {}  # by links, the first plan first
        self.measured: set[str] = set()  # links since torch.compile was measured last

    def add(self, x: dict[str, Any]) -> None:
        if x["what"].startswith("alone on"):  # in turns, calm: what a disturbed time of torch.compile is not to hide
            self.calm = min(self.calm, x["torch_compiled_ms"])
        elif x["what"].startswith("torch compiled"):
            self.calm = min(self.calm, x["ms"])
            self.torch, self.measured = x, set()
        elif x["what"].startswith("sum of groups"):
            self.sum = x
        elif found := re.fullmatch(r"(\d) parts by (\w+), plan (\d+)", x["what"]):
            if found[2] not in self.measured:
                self.measured.add(found[2])
                self.plans[found[2]] = []
            plans = self.plans[found[2]]
            plans.append({**x, "parts": int(found[1])})

    def cells(self, links: str) -> list[str]:
        best, plans = min(self.torch["ms"], self.calm), self.plans[links]
        first, fastest = plans[0], min(plans, key=lambda p: p["ms"])
        groups = f"{self.sum['ms']:.3f} ({self.sum['ms'] / best:.2f})" if self.sum else ""
        off = f"{100 * (first['predicted_ms'] / first['ms'] - 1):+.1f} %"
        parts = f"{fastest['ms']:.3f}, {fastest['parts']} (plan {plans.index(fastest) + 1} of {len(plans)})"
        return [f"{best:.3f}", groups, f"{first['predicted_ms']:.3f} / {first['ms']:.3f}", off, parts, f"{best / fastest['ms']:.2f}"]


def plans(lines: list[dict[str, Any]], nccl: bool = False) -> list[str]:
    rows: dict[tuple[str, str], Row] = {}
    for x in lines:
        if x["what"].startswith("alone on"):
            for key in [k for k in rows if k[0] == named(x)]:
                rows[key].add(x)
        else:
            rows.setdefault((named(x), x.get("shares", "")), Row()).add(x)
    made = ["| network | parts | links | `torch.compile` on the largest, ms | sum of groups | first plan, predicted / measured | off | "
            "fastest plan, parts | times as fast |",
            "|---|---|---|---:|---:|---:|---:|---:|---:|"]  # fmt: skip
    offs = []
    for (name, shares), row in rows.items():
        for links in [x for x in row.plans if (x == "nccl") == nccl] if row.torch else ():
            made.append(f"| {name} | {shares.replace(',', ', ')} | {links} | {' | '.join(row.cells(links))} |")
            offs += [abs(p["predicted_ms"] / p["ms"] - 1) for p in row.plans[links][:1] if p["parts"] > 1]
    if offs:
        made += ["", f"First plans of several parts, predicted against measured: {100 * statistics.median(offs):.1f} % off in the "
                 f"median, {100 * max(offs):.1f} % at worst ({len(offs)} plans)."]  # fmt: skip
    return made


_PART = re.compile(r"(\d+) segments, planned ([\d.]+), took ([\d.]+), held ([\d.]+) ms")


def where(lines: list[dict[str, Any]]) -> list[str]:
    """Where the time of each network's fastest plan of several parts goes, by kind of link: of the busiest part."""
    ms: dict[tuple[str, ...], float] = {}
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    predicted: dict[tuple[str, ...], float] = {}
    last = ""
    for x in lines:
        if re.fullmatch(r"\d parts by \w+, plan \d+", x["what"]):
            last = x["what"]
        elif x["what"] != "where":
            continue
        key = (named(x), x.get("shares", ""), x.get("plan", last))
        if x["what"] == "where":
            found[key] = x
        else:
            ms[key], predicted[key] = x["ms"], x["predicted_ms"]
    best: dict[tuple[str, ...], tuple[str, ...]] = {}
    for key in found:
        row = (*key[:2], key[2].split(" by ")[1].split(",")[0])
        if key in ms and (row not in best or ms[key] < ms[best[row]]):
            best[row] = key
    made = ["| network | parts | links | measured, ms | predicted | busiest part: computes | meets | waits | segments took longer than planned | "
            "all parts compute of the time |",
            "|---|---|---|---:|---:|---:|---:|---:|---:|---:|"]  # fmt: skip
    for (name, shares, links), key in best.items():
        parts = [tuple(map(float, m.groups())) for v in found[key].values() if isinstance(v, str) and (m := _PART.fullmatch(v))]
        _, _, took, held = max(parts, key=lambda p: p[2])
        planned, all_took = (sum(p[i] for p in parts) for i in (1, 2))
        total = ms[key]
        made.append(f"| {name} | {shares.replace(',', ', ')} | {links} | {total:.3f} | {predicted[key]:.3f} | {took:.3f} | {held:.3f} | "
                    f"{max(total - took - held, 0):.3f} | {100 * (all_took / planned - 1):+.0f} % | "
                    f"{100 * all_took / len(parts) / total:.0f} % |")  # fmt: skip
    return made


def quiet(lines: list[dict[str, Any]]) -> list[str]:
    """Of each network, setting and kind of link the fastest plan of the last lines. What torch took before a plan was
    loaded counts, where it was faster then, and is the divisor of the last column; "in turns" is both with the plan loaded."""
    rows: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    before: dict[tuple[str, ...], float] = {}
    again: set[tuple[str, ...]] = set()  # kinds of links since torch was measured last
    for x in lines:
        if x["what"] == "calm":
            last = named(x), x["shares"]
            before[last] = min(v for k, v in x.items() if k.endswith("_ms"))
            again = {key for key in again if key[:2] != last}
        if x["what"] == "quiet":
            key = named(x), x["shares"], x["plan"].split(" by ")[1].split(",")[0]
            if key not in again:
                again.add(key)
                rows[key] = []
            rows[key].append({**x, "before": before[key[:2]]})
    made = ["| network | parts | links | torch on the largest, ms | plan, ms | parts used | in turns: torch / plan, ms | runs differ by | so many times as fast | "
            "times as fast as torch before |",
            "|---|---|---|---:|---:|---:|---:|---:|---:|---:|"]  # fmt: skip
    for (name, shares, links), some in rows.items():
        x = min(some, key=lambda r: r["ms"])
        best = min(min(r["before"], r["torch_ms"]) for r in some)
        made.append(f"| {name} | {shares.replace(',', ', ')} | {links} | {best:.3f} ({x['torch']}) | {x['ms']:.3f} | {x['plan'].split(' ')[0]} | "
                    f"{x['torch_ms']:.3f} / {x['ms']:.3f} | {100 * max(x['torch_spread'], x['spread']):.1f} % | {x['times_as_fast']:.2f} | "
                    f"{best / x['ms']:.2f} |")  # fmt: skip
    return made


def cut(rows: list[dict[str, Any]]) -> list[str]:
    import shard

    last = {(r["network"], r.get("setting", "")): r for r in rows}
    return shard.table(list(last.values())).splitlines()


def bounds(lines: list[dict[str, Any]]) -> list[str]:
    last = {named(x): x for x in lines if x["what"] == "all cuts"}
    made = ["| network | no cut takes less than, by times of parts alone | with all parts busy |", "|---|---:|---:|"]
    return made + [f"| {name} | {x['alone_ms']:.2f} ms | {x['busy_ms']:.2f} ms |" for name, x in last.items()]


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--write", type=Path, help="a page with <!-- KIND --> and <!-- end --> around the table")
    p.add_argument("kind", choices=["alone", "plans", "nccl", "where", "quiet", "bounds", "cut"])
    p.add_argument("files", nargs="+", help="of cut also FILE=SETTING, where the file does not say it")
    o = p.parse_args()
    if o.kind == "cut":
        files = [f.partition("=") for f in o.files]
        made = cut([{**r, **({"setting": s} if s else {})} for f, _, s in files for r in json.loads(Path(f).read_text())])
    else:
        kinds = {"alone": alone, "plans": plans, "nccl": partial(plans, nccl=True), "where": where, "quiet": quiet, "bounds": bounds}
        made = kinds[o.kind](lines_of([Path(f) for f in o.files]))
    return pages.show(o.write, o.kind, made)


if __name__ == "__main__":
    sys.exit(main())
