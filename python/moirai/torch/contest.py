"""Cuts of several kinds against each other: by what their pieces take as they will run, then by runs.

Heads and columns, the same with sums in every piece, tokens, samples: each has other kernels, sums and meetings, and
compiled kernels change the order. So times are those of the way in which one device is fastest. Of one cut of each kind
all pieces are profiled, as compiled code where that is the way; of others what libraries compute, since products depend
on sizes by tiles, and all else nearly by its bytes. What these times make the best of each kind is planned as any network
is, with products of its very sizes; all that are predicted near the best are run, the most promising first, and the
fastest is kept. Where that is one sequence or batch, a step of it goes from the device that took longest to another, if
the run says that all would end sooner.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Sequence

from ..graph import Graph
from ..plan import Plan
from .capture import Captured
from .choose import by_pieces, choose, kind_of, piece_times
from .cut_sizes import PIECE, batch_samples, samples, step_of
from .cuts import ALTERNATIVES
from .merging import expected_ns
from .times import Times, one_device

if TYPE_CHECKING:
    from .tune import Way, _Tuner

_NEAR = 1.15  # predictions of cuts are off by so much: one that is farther from the best is not run
_HOPE = 1.05  # nor is one that is predicted to take so much longer than what was measured
_RESIZED = 2  # times that sizes are changed after what a run took
_MOST = 6  # cuts that are planned in full
_CHOICE = 5  # times a plan's time limit, for the choice among all cuts
_KINDS = {"": "pieces", "every": "pieces with sums in each", "tokens": "tokens", "samples": "samples"}


@dataclass
class CutTried:
    """A cut that was looked at: what it was predicted to take, what it took in its first run, and why it was kept or
    not."""

    cut: str
    kind: str
    predicted_ns: int
    measured_ns: int | None = None
    why: str = ""

    def __repr__(self) -> str:
        first = self.cut.split("; ")
        strips = f"{first[0]}{f' and {len(first) - 1} more' if len(first) > 1 else ''}"
        took = f", measured {self.measured_ns / 1e6:.3f} ms" if self.measured_ns is not None else ""
        return f"cut by {_KINDS[self.kind]} ({strips}): predicted {self.predicted_ns / 1e6:.3f} ms{took}: {self.why}"


class Contest:
    def __init__(self, tuner: _Tuner, way: Way, whole: Captured, options: Mapping[str, Any]) -> None:
        self.tuner, self.way, self.whole, self.options = tuner, way, whole, options
        self.known: list[Captured] = []  # pieces that were profiled
        self.order: Sequence[str] = ()  # devices, the fastest first

    def samples(self) -> None:
        """Profiles pieces of several sizes."""
        plain = [s for s in self.whole.strips if s.kind not in ALTERNATIVES]
        tokens, batch = ([s for s in self.whole.strips if s.kind == kind] for kind in ("tokens", "batch"))
        for cuts in (batch_samples(batch), samples(plain), samples(tokens)[:3]):
            some = {cut: cut == min(cuts, key=_pieces) for cut in cuts}  # to be compiled?
            for cut in sorted(some, key=lambda cut: not some[cut]):
                if self.known and not self.tuner.left():
                    return
                made = self.whole.recut(cut, quick=True)
                self.tuner.profile(made, code=some[cut])
                self.fill(made)
                self.known.append(made)

    def fill(self, made: Captured) -> None:
        """Times of what was left out of a profile, by pieces of other sizes; whoever is at work, and with all busy."""
        like = [c for c in self.known if c is not made and bool(c.busy) == bool(made.busy) and _like(c, made)]
        for graph in filter(None, (made.graph, made.busy)):
            of = [(c.busy if graph is made.busy else c.graph) for c in (self.whole, *like)]
            piece_times(graph, [*(g for g in of if g), graph.copy()])

    def plan(self, cut: str) -> tuple[Times, str, Plan]:
        """What is known of this cut, and its plan that is predicted to be the fastest."""
        made, search = self.whole.recut(cut, quick=True), self.tuner.search
        self.tuner.profile(made, code=False)
        self.fill(made)
        times = self.tuner.times(self.way, made, self.options)
        plans = [(placer, times.place(placer, **search)) for placer in self.tuner.o["placers"]]
        if self.order:
            plans.append(("pieces", times.by_hand(by_pieces(made.ops, self.order), "pieces")))
        return times, *min(plans, key=lambda p: expected_ns(p[1]))

    def finalists(self) -> list[str]:
        limit, left = _CHOICE * self.tuner.search["time_limit"], self.tuner.left()
        search = {**self.tuner.search, "time_limit": min(limit, max(left / 4, 0.1))}
        if self.tuner.meet:
            search["segment_us"] = statistics.median(self.tuner.meet.values()) / 1000
        graphs: list[Graph] = [c.busy or c.graph for c in (self.whole, *self.known)]
        found = choose(self.whole, self.tuner.cluster, measured=graphs, **search, **self.options)
        self.order = found.devices
        return list(found.finalists or filter(None, [found.cut]))[:_MOST]

    def run(self) -> list[CutTried]:
        """All that were looked at, the one to keep first; [] where no cut pays."""
        self.samples()
        planned = []
        for cut in self.finalists():
            if planned and not self.tuner.left():
                break
            planned.append(self.planned(cut))
        planned.sort(key=lambda p: p[0].predicted_ns)
        for tried, times, placer, plan in planned:
            self.attempt(tried, planned[0][0].predicted_ns, times, placer, plan)
        for _ in range(_RESIZED):
            best = min((p for p in planned if p[0].measured_ns), key=lambda p: p[0].measured_ns or 0, default=None)
            cut = self.resized(*best) if best and self.tuner.left() else ""
            if not cut or any(p[0].cut == cut for p in planned):
                break
            planned.append(self.planned(cut))
            self.attempt(planned[-1][0], 0, *planned[-1][1:])
        return _ranked([p[0] for p in planned])

    def planned(self, cut: str) -> tuple[CutTried, Times, str, Plan]:
        times, placer, plan = self.plan(cut)
        return CutTried(cut, kind_of(cut, times.captured.graph), expected_ns(plan)), times, placer, plan

    def resized(self, tried: CutTried, times: Times, _: str, plan: Plan) -> str:
        """This cut of one sequence or batch with sizes with which the devices of its run would have ended sooner; "" where
        there are none."""
        strip = next((s for s in self.whole.strips if tried.cut.startswith(f"{s.name}: ")), None)
        where = {int(m[1]): d for op, d in plan.placement.items() if (m := PIECE.search(op))}  # the last of a piece
        took = times.busy_ns()
        if tried.kind not in ("tokens", "samples") or not strip or ";" in tried.cut or len(set(where.values())) < len(where):
            return ""
        sizes = [int(n) for n in tried.cut[len(strip.name) + 2 :].split(",")]
        made = shifted(sizes, [took.get(where.get(k + 1, ""), 0) for k in range(len(sizes))], step_of(strip))
        return f"{strip.name}: {','.join(map(str, made))}" if made else ""

    def attempt(self, tried: CutTried, least: int, times: Times, placer: str, plan: Plan) -> None:
        """Runs it, or says why not; `least` is the best prediction, 0 where predictions do not count."""
        before = len(self.tuner.trials)
        took = min((t.measured_ns for t in self.tuner.trials), default=0)
        if one_device(plan):
            tried.why = "not run: its best plan has one device"
        elif least and tried.predicted_ns > _NEAR * least:
            tried.why = f"not run: {100 * (tried.predicted_ns / least - 1):.0f} % above the best prediction"
        elif least and took and tried.predicted_ns > _HOPE * took:
            tried.why = f"not run: another was measured to take {took / 1e6:.3f} ms"
        elif before and not self.tuner.left() and tried.predicted_ns > least > 0:
            tried.why = "not run: the time was over"
        else:
            self.tuner.attempt(self.way, times, placer, plan)
            ran = self.tuner.trials[before:]
            tried.measured_ns = ran[0].measured_ns if ran else None
            tried.why = "" if ran else "not run: far above what was measured"


def shifted(sizes: Sequence[int], took: Sequence[int], step: int) -> list[int]:
    """With a step moved from the piece that took longest to another, if the last would end sooner then by the sizes; []
    otherwise."""
    last = max(range(len(sizes)), key=lambda k: took[k])
    best, found = 0.99 * took[last], []
    for k in range(len(sizes)) if min(took) > 0 and sizes[last] > step else ():
        moved = [n + step * ((i == k) - (i == last)) for i, n in enumerate(sizes)]
        end = max(t * new / old for t, new, old in zip(took, moved, sizes))
        if k != last and end < best:
            best, found = end, moved
    return found


def _pieces(cut: str) -> int:
    """Of its first strip."""
    return cut.split(";")[0].count(",") + 1


def _like(known: Captured, made: Captured) -> bool:
    """Pieces of tokens and of columns that are as large take another time."""
    kinds = [kind_of(c.cuts, c.graph).replace("every", "") for c in (known, made)]
    return kinds[0] == kinds[1]


def _ranked(tried: Iterable[CutTried]) -> list[CutTried]:
    """The fastest run first, then runs, then what was not run, by predictions."""
    found = sorted(tried, key=lambda t: (t.measured_ns is None, t.measured_ns or t.predicted_ns))
    for t in found:
        if t.measured_ns is not None and found[0].measured_ns is not None:
            off = 100 * (t.measured_ns / found[0].measured_ns - 1)
            t.why = "kept: the fastest of those that ran" if t is found[0] else f"not kept: {off:.1f} % slower"
    return found

