#!/usr/bin/env python3
"""Tables of docs/rate.md, docs/serve.md and docs/pytorch.md from what bench/rate_gaps.py, bench/msr.py and bench/load.py have found.

    bench/rate_tables.py gaps gaps.json                          # distances from the bound
    bench/rate_tables.py msr TABLE.md...                         # what bench/msr.py has printed, in any number of files
    bench/rate_tables.py load load.json                          # a server under load
    bench/rate_tables.py rates table.md...                       # on parts of a GPU, what bench/rate_gpu.py has written, in any number of files
    bench/rate_tables.py cpu results.json...                     # on processors, what bench/rate_cpu.py has written
    bench/rate_tables.py --write docs/rate.md gaps gaps.json     # in place, between <!-- gaps --> and <!-- end -->
"""

import argparse
import json
import pathlib
import re
import sys

import pages
import rate_cpu

LIMITS = {"one copy, 64": 4, "any, 64": 1}  # per cent
MET = 1.0001  # of what is known: to its last digit


def cells(answer):
    """Period, bound, what a certificate proves of it, and both gaps."""
    if not answer or "error" in answer:
        return ["-", "-", "-", "-"]
    period, bound, load = (answer[k] / 1e6 for k in ("period_ns", "period_bound_ns", "load_ns"))
    certified = answer.get("period_certified_ns")
    return [f"{period:.4f}", f"{bound:.4f}", "-" if certified is None else f"{certified / 1e4 / bound:.2f}", f"{100 * answer['period_gap']:.2f} ({100 * (1 - bound / load):.2f})"]


def verdict(networks, question):
    gaps = {n: 100 * x[question]["period_gap"] for n, x in networks.items() if "period_gap" in x.get(question, {})}
    if not gaps:
        return "none was planned"
    worst = max(gaps, key=gaps.get)
    return f"{sum(g <= LIMITS[question] for g in gaps.values())} of {len(networks)} within {LIMITS[question]} %, the furthest is {worst} with {gaps[worst]:.2f}"


def gaps_table(files):
    found = json.loads(pathlib.Path(files[0]).read_text())
    networks = found["networks"]
    made = [f"{found['limit_s']:g} s and {found['threads']} threads each, {found['machine']}, {found['made']}. One copy: {verdict(networks, 'one copy, 64')}. Any plan: {verdict(networks, 'any, 64')}.", "",
            "| network | one copy, ms | bound | certified, % | gap, % (of the load) | any plan, ms | bound | certified, % | gap, % (of the load) | one copy, 16 in flight: gap, % (of the load) |",
            "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"]  # fmt: skip
    for name, answers in networks.items():
        row = [*cells(answers.get("one copy, 64")), *cells(answers.get("any, 64")), cells(answers.get("one copy, 16"))[3]]
        made.append(f"| {name} | " + " | ".join(row) + " |")
    return made


def msr_table(files):
    rows = [[c.strip() for c in line.strip().strip("|").split("|")] for f in files for line in pathlib.Path(f).read_text().splitlines() if re.match(r"\| (Layer|Operator)-", line)]
    made, met = ["| instance | nodes | period | bound | their load | known | |", "|---|---:|---:|---:|---:|---:|---|"], 0
    for name, nodes, period, bound, _, _, load, known, *_ in sorted(rows):
        off = float(load) / float(known)
        said = "beaten" if off < 1 / MET else "met" if off <= MET else f"{100 * (off - 1):.2f} % above"
        met += off <= MET
        made.append(f"| {name} | {nodes} | {period} | {bound} | {load} | {known} | {said} |")
    return [*made, "", f"{met} of {len(rows)} are met or beaten."]


def load_table(files):
    r = json.loads(pathlib.Path(files[0]).read_text())
    words = {"p50_s": "p50 ms", "p50_simulated_s": "simulated", "p50_at_speed_s": "at its speed", "p99_s": "p99 ms", "p99_simulated_s": "simulated", "p99_at_speed_s": "at its speed",
             "late_p99_s": "clients late, p99", "silence_s": "longest silence"}  # fmt: skip
    keys = [k for k in words if k in r["parts"][0]]  # earlier runs have no second simulation
    made = [f"{r['rate_per_s']:.1f} requests per second at most, {1e3 * r['alone_s']:.1f} ms for one alone; arrivals at random:", "",
            "| part of the rate | requests | " + " | ".join(words[k] for k in keys) + " |", "|---|---:|" + "---:|" * len(keys)]  # fmt: skip
    for p in r["parts"]:
        made.append(f"| {p['percent']} % | {p['requests']:,} | " + " | ".join(f"{1e3 * p[k]:.1f}" for k in keys) + " |")
    if "recovery_s" in r:
        after = sorted(r["recovery_s"])
        made += ["", f"Then {len(after)} times kill -9 of a rank under load: the server went on after {after[0]:.2f} to {after[-1]:.2f} s, and no answer took longer than {r['longest_s']:.2f} s."]
    ok = r["accepted"] == r["codes"].get("200", 0) and not r["wrong"] and not r["broken"]
    made += ["" if "recovery_s" not in r else None, f"{r['accepted']:,} requests were accepted in all, " + ("and all of them answered, none wrong" if ok else f"{r['codes'].get('200', 0):,} answered, {r['wrong']} wrong, {r['broken']} cut off")
             + f"; {r['rounded']:,} were not the same bytes, {r['codes'].get('429', 0):,} refused."]  # fmt: skip
    return [line for line in made if line is not None]


def rates_table(files):
    rows = [line for f in files for line in pathlib.Path(f).read_text().splitlines() if line.startswith("|")]
    made = list(dict.fromkeys(rows))  # heads are the same
    off = {tuple(c.strip() for c in r.split("|")[1:3]): abs(float(r.split("|")[10].strip(" +%"))) for r in made[2:]}
    worst = max(off, key=off.get)
    return [*made, "", f"What is kept is within 10 % of what was simulated in {sum(x <= 10 for x in off.values())} of {len(off)} rows, the furthest is {' with '.join(worst)} in flight: {off[worst]:.1f} %."]


def cpu_table(files):
    return rate_cpu.table([r for f in files for r in json.loads(pathlib.Path(f).read_text())]).rstrip().splitlines()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--write", type=pathlib.Path, help="a page with <!-- KIND --> and <!-- end --> around the table")
    p.add_argument("kind", choices=["gaps", "msr", "load", "rates", "cpu"])
    p.add_argument("files", nargs="+")
    o = p.parse_args()
    made = {"gaps": gaps_table, "msr": msr_table, "load": load_table, "rates": rates_table, "cpu": cpu_table}[o.kind](o.files)
    return pages.show(o.write, o.kind, made)


if __name__ == "__main__":
    sys.exit(main())
