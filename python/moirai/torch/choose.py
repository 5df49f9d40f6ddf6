"""Which operators of a captured module to cut, and how: chosen by placing what cuts make.

Strips that are alike get one cut. Sizes are shares by the devices' speeds on the strip's operators, for 2, 3, ...
devices; all classes are cut alike first, then each is tried with other sizes and whole. Times of pieces come from the
profile, if there is one (in proportion, until pieces are profiled), else from the cost model. Whole is always among the
candidates, and a gain below 0.5 % is none.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Iterable, Mapping

from .._lib import UsageError, check, ffi, lib
from ..cluster import Cluster
from ..graph import Graph
from ..plan import Plan
from ..problem import Problem
from ..search import place
from .capture import Captured
from .cut_text import rounded
from .cuts import Strip, work

_WORTH = 0.995
_EFFORT = 0.001
_SMALL = 0.01  # a class with less of the products' work is not looked at


@dataclass(frozen=True)
class CutChoice:
    """What to cut: `cut` is "" where no cut pays. Times are those of quick plans."""

    cut: str
    whole_ns: int
    cut_ns: int
    judged: int


def piece_times(graph: Graph, measured: Iterable[Graph]) -> None:
    """Gives a cut network's graph the times that those profiled (the whole one first) say, in place."""
    known = [g._c for g in measured]
    check(lib.moirai_shards_times(graph._c, ffi.new("const moirai_graph *[]", known), len(known)))


class _Chooser:
    def __init__(self, captured: Captured, cluster: Any, problem: Mapping[str, Any], search: Mapping[str, Any],
                 measured: list[Graph], time_limit: float) -> None:  # fmt: skip
        self.whole = captured.recut(None) if captured.cuts else captured
        self.cluster, self.options, self.search = Cluster.open(cluster), dict(problem), dict(search)
        self.measured = measured or ([self.whole.graph] if self.whole.graph.devices else [])
        self.end = time.monotonic() + time_limit if time_limit else None
        self.classes: dict[Any, list[Strip]] = {}
        self.judged: dict[str, int] = {}
        strips = [s for s in self.whole.strips if s.kind != "heads"]
        total = sum(work(s, self.whole.nodes) for s in strips)
        for s in strips:
            self.classes.setdefault(s.alike, []).append(s)
        self.order = sorted(
            (k for k, v in self.classes.items() if sum(work(s, self.whole.nodes) for s in v) > _SMALL * total),
            key=lambda k: -sum(work(s, self.whole.nodes) for s in self.classes[k]),
        )

    def over(self) -> bool:
        return self.end is not None and time.monotonic() > self.end

    def text(self, sizes: Mapping[Any, list[int]]) -> str:
        return "; ".join(
            f"{s.name}: {','.join(map(str, n))}" for k, n in sizes.items() if len(n) > 1 for s in self.classes[k]
        )

    def judge(self, sizes: Mapping[Any, list[int]]) -> int:
        """The makespan of a quick plan."""
        cut = self.text(sizes)
        if cut not in self.judged:
            graph = (self.whole.recut(cut) if cut else self.whole).graph
            if cut and self.measured:
                piece_times(graph, self.measured)
            plan = place(Problem(graph, self.cluster, **self.options), effort=_EFFORT, gap=0.02, **self.search)
            self.judged[cut] = plan.makespan_ns
        return self.judged[cut]

    def speeds(self) -> list[float]:
        """Of the devices on all that can be cut, the fastest first."""
        problem = Problem(self.whole.graph, self.cluster, **self.options)
        took = dict.fromkeys(problem.devices, 0)
        for name in problem.op_names:
            for device, ns in problem.time_ns(name).items():
                took[device] += ns or 0
        return sorted((1 / t for t in took.values() if t > 0), reverse=True)

    def choose(self) -> CutChoice:
        best: dict[Any, list[int]] = {}
        whole = least = self.judge(best)
        speeds = self.speeds()
        shares = [[int(1000 * s / speeds[0]) or 1 for s in speeds[:n]] for n in range(2, min(len(speeds), 8) + 1)]
        tries = [{k: self.sizes(k, share) for k in self.order} for share in shares]
        tries += [{**best, k: sizes} for k in self.order for sizes in ([], *(self.sizes(k, s) for s in shares))]
        for number, candidate in enumerate(tries):
            if self.over():
                break
            if number >= len(shares):  # one class at a time, from the best so far
                candidate = {**best, **candidate}
            ns = self.judge(candidate)
            if ns < _WORTH * least or (ns <= least and len(self.text(candidate)) < len(self.text(best))):
                best, least = candidate, ns
        return CutChoice(self.text(best), whole, least, len(self.judged))

    def sizes(self, key: Any, share: list[int]) -> list[int]:
        units = self.classes[key][0].units
        return rounded(share, units) if units >= len(share) else []


def choose(captured: Captured, cluster: Any, *, measured: Iterable[Graph] = (), time_limit: float = 0, seed: int = 1,
           threads: int = 0, **problem: Any) -> CutChoice:  # fmt: skip
    """The cut of a captured module whose quick plan on this cluster is the shortest. `measured` are graphs with times,
    the whole network's first, then those of cut ones (`profile`); by default the captured one's, if it was profiled."""
    search = {"seed": seed, "threads": threads}
    return _Chooser(captured, cluster, problem, search, list(measured), time_limit).choose()


def plan(captured: Captured, cluster: Any, placer: str = "moirai", *, split_operators: str = "off",
         problem: Mapping[str, Any] | None = None, time_limit: float | None = None, **options: Any) -> Plan:  # fmt: skip
    """A plan of a captured module, with operators in pieces: "auto" chooses them, anything else but "off" is a cut.

    20 s unless `effort` or `time_limit` says otherwise, 0.4 of it for the choice. `plan.captured` is what `distribute` takes with it, `plan.cut` how it was cut, "" where no cut pays."""
    settled = dict(problem or {})
    time_limit = (0 if "effort" in options else 20) if time_limit is None else time_limit
    begin, cut = time.monotonic(), "" if split_operators == "off" else split_operators
    wishes = [w for w in ("pin", "forbid", "together") if settled.get(w)]
    if cut and wishes:
        raise UsageError(f"plan: split_operators and {wishes[0]} do not go together: operators get other names")
    if cut == "auto":
        asked = {k: options[k] for k in ("seed", "threads") if k in options}
        cut = choose(captured, cluster, time_limit=0.4 * time_limit, **asked, **settled).cut
    made = captured.recut(cut) if cut else captured
    if cut and captured.graph.devices:
        piece_times(made.graph, [captured.graph])
    left = max(time_limit - (time.monotonic() - begin), 0.1) if time_limit else 0
    found = place(Problem(made.graph, cluster, **settled), placer, time_limit=left, **options)
    found.cut, found.captured = cut, made
    return found
