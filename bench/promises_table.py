#!/usr/bin/env python3
"""The table of limits in docs/results.md from what bench_promises has printed, a cell a line, of one run or several.

    python3 bench/promises_table.py CELLS.txt...
    python3 bench/promises_table.py --write docs/results.md CELLS.txt...

Of a cell that was measured more than once, the last line counts.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pages


def cells_of(paths: list[Path]) -> dict[tuple[str, ...], dict[str, float]]:
    """By shape, operators, devices and mode: the columns limit, taken, over, peak and answer, and whether a promise was broken."""
    found = {}
    for line in (x for path in paths for x in path.read_text().splitlines()):
        w = line.split()
        if len(w) >= 12 and w[1].isdigit():
            names = {"limit": 4, "taken": 5, "peak": 9, "answer": 11}
            found[tuple(w[:4])] = {**{k: float(w[i]) for k, i in names.items()}, "broken": "BROKEN" in line}
    return found


def table(cells: dict[tuple[str, ...], dict[str, float]]) -> list[str]:
    made = ["| operators | cells | limit, s | taken at most, s | answer to Ctrl-C at most, s | where | peak at most, MB | broken |",
            "|---:|---:|---:|---:|---:|---|---:|---:|"]  # fmt: skip
    for n in sorted({int(k[1]) for k in cells}):
        for limit in sorted({c["limit"] for k, c in cells.items() if int(k[1]) == n}):
            some = {k: c for k, c in cells.items() if int(k[1]) == n and c["limit"] == limit}
            slow = max(some, key=lambda k: some[k]["answer"])
            most = {name: max(c[name] for c in some.values()) for name in ("taken", "answer", "peak")}
            made.append(f"| {n:,} | {len(some)} | {limit:g} | {most['taken']:.2f} | {most['answer']:.2f} | {slow[0]}, {slow[2]} devices, {slow[3]} | "
                        f"{most['peak']:,.0f} | {sum(c['broken'] for c in some.values()):g} |")  # fmt: skip
    return [*made, "", f"{len(cells)} cells, {sum(c['broken'] for c in cells.values()):g} broken."]


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cells", type=Path, nargs="+", help="what bench_promises printed")
    p.add_argument("--write", type=Path, help="a page, in place, between <!-- promises --> and <!-- end -->")
    o = p.parse_args()
    return pages.show(o.write, "promises", table(cells_of(o.cells)))


if __name__ == "__main__":
    sys.exit(main())
