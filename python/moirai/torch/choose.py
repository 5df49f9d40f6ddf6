"""Which operators of a captured module to cut, and how: chosen by placing what cuts make.

Strips that are alike get one cut. Sizes are those with which 2, 3, ... devices end at the same time, with and without
what a message costs those that the rest of the network does not run on, and those by the devices' speeds, as one cuts
by hand; small products are slow and times grow by whole
tiles, so that the times of all sizes are asked for, not one speed of a device. All classes are cut for the same number
of devices first, in turns with cuts of other kinds, then each is tried with other sizes and whole. Times of pieces come from the profile, if there is one
(in proportion, until pieces are profiled: `samples` are the cuts to profile), else from the cost model. Images are cut by rows all together, in the devices' shares; so are sequences by
tokens, and with the sizes with which devices end at the same time where pieces of tokens were profiled; a batch by
samples, with such sizes. Cuts of all classes are tried with sums that
every piece makes for itself (repeated.py), too. Whole is always
among the candidates, and a gain below 0.5 % is none. Where the network is compiled, so are the pieces whose times are
given; groups of calls are those of our own rules then. `finalists` are those that are worth a run.
"""

from __future__ import annotations

import contextlib
import re
import time
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Iterable, Mapping, Sequence

from .._lib import UsageError, check, ffi, lib
from ..cluster import Cluster
from ..graph import Graph
from ..plan import Plan
from ..problem import Problem
from ..search import place, refuse_unknown
from .capture import Captured
from .cut_sizes import PIECE, balanced, even_sizes, step_of
from .cut_text import rounded
from .cuts import ALTERNATIVES, Strip, work

_WORTH = 0.995
_EFFORT = 0.001
_SMALL = 0.01  # a class with less of the products' work is not looked at
_ROWS = 2  # rows that pieces have at least, in the mean
_NUMBER = re.compile(r" \((?:(\d+) of \d+, |\d+ joined, (\d+)\))")
_SEARCHED = 1.02  # a cut whose plan at once takes so much longer than the best is not searched for a better one
_FAR = 1.1  # a cut that is predicted to take so much longer than the best is not worth a run
_FAR_FIRST = 1.25  # nor is the first of its kind: pieces of tokens and of columns have other kernels, meetings and sums


@dataclass(frozen=True)
class CutChoice:
    """What to cut: `cut` is "" where no cut pays. Times are those of quick plans. `finalists` are the best cut into each
    number of pieces, of tokens and otherwise, of those that are not far behind, and the best of each kind: what a run of them says counts more than what a plan does."""

    cut: str
    whole_ns: int
    cut_ns: int
    judged: int
    finalists: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()  # the fastest first


def piece_times(graph: Graph, measured: Iterable[Graph]) -> None:
    """Gives a cut network's graph the times that those profiled (the whole one first) say, in place."""
    known = [g._c for g in measured]
    check(lib.moirai_shards_times(graph._c, ffi.new("const moirai_graph *[]", known), len(known)))


class _Chooser:
    def __init__(self, captured: Captured, cluster: Any, problem: Mapping[str, Any], search: Mapping[str, Any],
                 measured: list[Graph], time_limit: float, least: float = _SMALL) -> None:  # fmt: skip
        self.whole = captured.recut(None) if captured.cuts else captured
        self.cluster, self.options, self.search = Cluster.open(cluster), dict(problem), dict(search)
        self.busy = self.whole.busy or self.whole.graph  # for several devices; one alone is as fast as it is alone
        given = measured or ([self.busy] if self.busy.devices else [])
        # a piece of tokens and one of columns that are as large take another time: each is judged by its own like
        self.measured = [g for g in given if not _parts_of(g)]
        self.like = {kind: [*self.measured[:1], *(g for g in given if _parts_of(g) == kind)] for kind in ("tokens", "samples")}
        self.end = time.monotonic() + time_limit if time_limit else None
        self.classes: dict[Any, list[Strip]] = {}
        self.judged: dict[str, int] = {}
        self.speeds: list[tuple[str, int]] = []
        self.pieces: dict[str, tuple[int, str]] = {}  # cut -> the most pieces of a strip, and of what kind
        strips = [s for s in self.whole.strips if s.kind not in ALTERNATIVES]
        total = sum(work(s, self.whole.nodes) for s in strips)
        for s in strips:
            self.classes.setdefault(s.alike, []).append(s)
        self.order = sorted(
            (k for k, v in self.classes.items() if sum(work(s, self.whole.nodes) for s in v) >= least * total),
            key=lambda k: -sum(work(s, self.whole.nodes) for s in self.classes[k]),
        )

    def over(self) -> bool:
        return self.end is not None and time.monotonic() > self.end

    def text(self, sizes: Mapping[Any, list[int]]) -> str:
        return "; ".join(
            f"{s.name}: {','.join(map(str, n))}" for k, n in sizes.items() if len(n) > 1 for s in self.classes[k]
        )

    def judge(self, sizes: Mapping[Any, list[int]]) -> int:
        return self.judge_text(self.text(sizes), max((len(n) for n in sizes.values()), default=0))

    def judge_text(self, cut: str, pieces: int) -> int:
        """The makespan of a quick plan: a device per piece, or a list scheduler's; where that is near the best so far, the
        search's, too."""
        if cut not in self.judged:
            graph = self.whole.recut(cut, quick=True).graph if cut else self.busy
            if cut and self.measured:
                piece_times(graph, self.like.get(_parts_of(graph), self.measured))
            problem = Problem(graph, self.cluster, **self.options)
            least = min(self.judged.values(), default=0)
            ns = min(p.makespan_ns for p in self.at_once(problem)) if cut and least else 0
            if ns < _SEARCHED * least or not least:
                found = place(problem, effort=_EFFORT, gap=0.02, **self.search).makespan_ns
                ns = min(ns, found) if ns else found
            self.judged[cut] = ns
            if not cut and self.busy is not self.whole.graph:
                single = place(Problem(self.whole.graph, self.cluster, **self.options), "single")
                self.judged[cut] = min(self.judged[cut], single.makespan_ns)
            self.pieces[cut] = (pieces, kind_of(cut, graph))
        return self.judged[cut]

    def at_once(self, problem: Problem) -> list[Plan]:
        found = [place(problem, "heft")]
        with contextlib.suppress(ValueError):  # a device that can't run a piece
            found.append(Plan.by_devices(problem, by_pieces(problem.op_names, [d for d, _ in self.fastest()])))
        return found

    def finalists(self, least: int) -> tuple[str, ...]:
        """The first of each kind first."""
        best: dict[tuple[int, str], str] = {}
        firsts: list[str] = []
        for cut in sorted((c for c in self.judged if c), key=lambda c: self.judged[c]):
            first = all(kind != self.pieces[cut][1] for _, kind in best)
            if self.judged[cut] < (_FAR_FIRST if first else _FAR) * least:
                best.setdefault(self.pieces[cut], cut)
                firsts += [cut] if first else []
        return tuple(dict.fromkeys([*firsts, *best.values()]))

    def piece_ns(self) -> dict[Any, dict[str, list[int]]]:
        """Per class and device the times of a piece of 0, 1, ... steps. All classes are cut at once, strips that are alike
        into pieces of one size each: cutting a network anew takes its time."""
        steps = {k: range(step_of(v[0]), v[0].units, step_of(v[0])) for k in self.order for v in [self.classes[k]]}
        left = {k: list(some) for k, some in steps.items()}
        took: dict[Any, dict[str, dict[int, int]]] = {k: {} for k in self.order}
        while any(left.values()) and not self.over():
            labels: dict[str, tuple[Any, int]] = {}  # of first pieces: the class and the size
            items = []
            for k, sizes in left.items():
                for s in self.classes[k]:
                    label = f" (1 of 2, {sizes[0]} of {s.units} {s.unit}" if sizes else ""
                    if label and label not in labels:
                        labels[label] = (k, sizes[0])
                        items.append(f"{s.name}: {sizes[0]},{s.units - sizes.pop(0)}")
            graph = self.whole.recut("; ".join(items), quick=True).graph
            if self.measured:
                piece_times(graph, self.measured)
            self._add_pieces(Problem(graph, self.cluster, **self.options), labels, took)
        return {k: {d: _rising(by_size, steps[k]) for d, by_size in took[k].items()} for k in self.order if not left[k]}

    @staticmethod
    def _add_pieces(problem: Problem, labels: Mapping[str, tuple[Any, int]], took: dict[Any, dict[str, dict[int, int]]]) -> None:
        for name in problem.op_names:
            key, n = next((labels[label] for label in labels if label in name), (None, 0))
            for device, ns in problem.time_ns(name).items() if n else ():
                by_size = took[key].setdefault(device, {})
                by_size[n] = by_size.get(n, 0) + (ns or 0)

    def message_ns(self, key: Any) -> int:
        """There and back, of what a strip ends in: what being elsewhere costs a piece."""
        meta = self.whole.nodes[self.classes[key][0].end].meta
        links = [x.latency_ns + 1e9 * meta.bytes / x.bytes_per_second for x in self.cluster.links]
        return int(2 * (min(links, default=0) + 1000 * (self.options.get("segment_us") or 0)))

    def choose(self) -> CutChoice:
        best: dict[Any, list[int]] = {}
        whole = least = self.judge(best)
        times = self.piece_ns()
        sizes = {k: self.sizes(k, times.get(k, {})) for k in self.order}
        most = max((len(v) for v in sizes.values()), default=0)
        together = {self.text(c): c for c in ({k: v[i] for k, v in sizes.items() if i < len(v)} for i in range(most))}
        pieces = {cut: max(map(len, c.values())) for cut, c in together.items()}
        kinds = [self.by_batch(), self.by_tokens(), [*pieces.items()], [(_every(cut), n) for cut, n in pieces.items()]]
        other: dict[str, int] = {}
        tries = [t for some in zip_longest(*kinds) for t in some if t]  # of each kind some, should the time be over
        for cut, n in tries:
            ns = self.judge_text(cut, n) if not self.over() else whole
            if cut not in together:
                other[cut] = ns
            elif ns < _WORTH * least:
                best, least = together[cut], ns
        for change in [{k: each} for k in self.order for each in ([], *sizes[k])]:  # one class at a time
            candidate = {**best, **change}
            ns = self.judge(candidate) if not self.over() else whole
            if ns < _WORTH * least or (ns <= least and len(self.text(candidate)) < len(self.text(best))):
                best, least = candidate, ns
        cut = self.text(best)
        for rows, pieces in self.by_rows():
            for candidate in dict.fromkeys([rows, f"{rows}; {cut}" if cut else rows]):
                if not self.over() and (ns := self.judge_text(candidate, pieces)) < _WORTH * least:
                    cut, least = candidate, ns
        for candidate, ns in other.items():
            if ns < _WORTH * least:
                cut, least = candidate, ns
        return CutChoice(cut, whole, least, len(self.judged), self.finalists(least), tuple(d for d, _ in self.fastest()))

    def by_rows(self) -> list[tuple[str, int]]:
        """All images in rows by the devices' speeds, for 2, 3, ... devices, and how many pieces: together, since a strip of
        rows alone would be handed whole images and put them together again."""
        strips = [s for s in self.whole.strips if s.kind == "rows"]
        fast = [ns for _, ns in self.fastest()] if strips else []
        found = []
        for n in range(2, min(len(fast), 8) + 1):
            shares = ":".join(str(max(round(1000 * fast[0] / ns), 1)) for ns in fast[:n])
            items = [f"{s.name}: {shares}" for s in strips if s.units >= _ROWS * n]
            found += [("; ".join(items), n)] if items else []
        return found

    def fastest(self) -> list[tuple[str, int]]:
        """Devices, and what the whole network takes on each."""
        if self.speeds:
            return self.speeds
        problem = Problem(self.whole.graph, self.cluster, **self.options)
        took = dict.fromkeys(problem.devices, 0)
        for name in problem.op_names:
            for device, ns in problem.time_ns(name).items():
                took[device] += ns or 0
        self.speeds = sorted(((d, ns) for d, ns in took.items() if ns > 0), key=lambda x: x[1])
        return self.speeds

    def by_tokens(self) -> list[tuple[str, int]]:
        """All sequences in pieces of tokens for 2, 3, ... devices, and how many pieces: by what pieces were measured to
        take, and by the devices' speeds."""
        strips = [s for s in self.whole.strips if s.kind == "tokens"]
        fast = self.fastest() if strips else []
        found: dict[str, int] = {}
        for n in range(2, min(len(fast), 8) + 1):
            shares = [max(round(1000 * fast[0][1] / ns), 1) for _, ns in fast[:n]]
            some = [s for s in strips if s.units >= n]
            tries = [[(s, rounded(shares, s.units)) for s in some]]
            tries.append([(s, even_sizes(s, [d for d, _ in fast[:n]], self.like["tokens"][1:]) or sizes) for s, sizes in tries[0]])
            for each in reversed(tries):
                cut = "; ".join(f"{s.name}: {','.join(map(str, sizes))}" for s, sizes in each)
                found.setdefault(cut, n) if cut else None
        return list(found.items())

    def by_batch(self) -> list[tuple[str, int]]:
        """The batch in pieces for 2, 3, ... devices, and how many: by what pieces were measured to take, and in
        proportion."""
        found: dict[str, int] = {}
        for s in [s for s in self.whole.strips if s.kind == "batch"]:
            fast = self.fastest()
            for n in range(2, min(len(fast), s.units, 8) + 1):
                devices = [d for d, _ in fast[:n]]
                shares = [[ns * k // s.units for k in range(s.units + 1)] for _, ns in fast[:n]]
                tries = [even_sizes(s, devices, self.like["samples"][1:]), balanced(shares, [0] * n, s.units)]
                for sizes in ([k for k in some if k] for some in tries):
                    if len(sizes) > 1:
                        found.setdefault(f"{s.name}: {','.join(map(str, sizes))}", len(sizes))
        return list(found.items())

    def sizes(self, key: Any, times: Mapping[str, list[int]]) -> list[list[int]]:
        """That a class is tried with, by the times of its pieces."""
        strip, step = self.classes[key][0], step_of(self.classes[key][0])
        devices = sorted((d for d, t in times.items() if len(t) > 1 and t[-1] > 0), key=lambda d: times[d][-1])
        found: list[list[int]] = []
        for n in range(2, min(len(devices), 8) + 1):
            tries = [rounded([round(1e12 / times[d][-1]) for d in devices[:n]], strip.units)] if n <= strip.units else []
            for message in (0, self.message_ns(key)):
                steps = balanced([times[d] for d in devices[:n]], [message * (i > 0) for i in range(n)], -(-strip.units // step))
                tries.append([k * step for k in steps if k])
            for sizes in tries:
                if sizes:
                    sizes[0] -= sum(sizes) - strip.units  # the last step may be a smaller one
                if len(sizes) > 1 and min(sizes) > 0 and sizes not in found:
                    found.append(sizes)
        return found


def _rising(by_size: Mapping[int, int], sizes: Iterable[int]) -> list[int]:
    """Times of no piece and of these sizes: a larger one takes no less."""
    found = [0]
    for n in sizes:
        found.append(max(by_size.get(n, 0), found[-1]))
    return found


def by_pieces(names: Iterable[str], devices: Sequence[str]) -> dict[str, str]:
    """Operator -> device: the first pieces, and all that is in no piece, on the first device, the second ones on the
    second, and so on; what a piece puts together for itself, or repeats, is with it."""
    found = {}
    for name in names:
        label = _NUMBER.search(name)
        number = int(label[1] or label[2]) if label else 1
        found[name] = devices[min(number, len(devices)) - 1]
    return found


def _every(cut: str) -> str:
    """This cut with sums that every piece makes for itself."""
    return "; ".join(f"{item} every" for item in cut.split("; "))


def kind_of(cut: str, graph: Graph) -> str:
    """Of a cut: "tokens", "samples", "every", or "" (heads, columns, channels, rows)."""
    return _parts_of(graph) or ("every" if cut.endswith(" every") else "")


def _parts_of(graph: Graph) -> str:
    """ "tokens" or "samples" where pieces are of those."""
    labels = (PIECE.search(op.name) for op in graph.ops)
    return next((m[4] for m in labels if m and m[4] in ("tokens", "samples")), "")


def choose(captured: Captured, cluster: Any, *, measured: Iterable[Graph] = (), time_limit: float = 0, seed: int = 1,
           threads: int = 0, **problem: Any) -> CutChoice:  # fmt: skip
    """The cut of a captured module whose quick plan on this cluster is the shortest. `measured` are graphs with times,
    the whole network's first, then those of cut ones (`profile`); by default the captured one's, if it was profiled."""
    refuse_unknown("choose", problem, Problem.__init__, ("self", "graph", "cluster"))
    search = {"seed": seed, "threads": threads}
    return _Chooser(captured, cluster, problem, search, list(measured), time_limit).choose()


def plan(captured: Captured, cluster: Any, placer: str = "moirai", *, split_operators: str = "off",
         problem: Mapping[str, Any] | None = None, time_limit: float | None = None, **options: Any) -> Plan:  # fmt: skip
    """A plan of a captured module, with operators in pieces: "auto" chooses them, anything else but "off" is a cut.

    20 s unless `effort` or `time_limit` says otherwise, 0.4 of it for the choice. Where `profile` measured with all devices busy, plans of several devices are made
    for these times. `plan.captured` is what `distribute` takes with it, `plan.cut` how it was cut, "" where no cut pays."""
    settled = dict(problem or {})
    refuse_unknown("plan", options, place, ("problem", "placer"))
    refuse_unknown("plan: problem", settled, Problem.__init__, ("self", "graph", "cluster"))
    time_limit = (0 if "effort" in options else 20) if time_limit is None else time_limit
    begin, cut = time.monotonic(), "" if split_operators == "off" else split_operators
    wishes = [w for w in ("pin", "forbid", "together") if settled.get(w)]
    if cut and wishes:
        raise UsageError(f"plan: split_operators and {wishes[0]} do not go together: operators get other names")
    if cut == "auto":
        asked = {k: options[k] for k in ("seed", "threads") if k in options}
        cut = choose(captured, cluster, time_limit=0.4 * time_limit, **asked, **settled).cut
    made = captured.recut(cut) if cut else captured
    known = captured.busy or captured.graph
    if cut and known.devices:
        piece_times(made.graph, [known])
    left = max(time_limit - (time.monotonic() - begin), 0.1) if time_limit else 0
    found = place(Problem(made.graph if cut else known, cluster, **settled), placer, time_limit=left, **options)
    if captured.busy and placer == "moirai" and not wishes:  # one device alone is as fast as it is alone
        single = place(Problem(captured.graph, cluster, **settled), "single")
        found, made, cut = (single, captured, "") if single.makespan_ns <= found.makespan_ns else (found, made, cut)
    found.cut, found.captured = cut, made
    return found
