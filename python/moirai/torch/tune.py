"""The fastest plan that was found and measured, in one call: several captures of a module, several rounds of plans.

What devices do to each other is part of the times. Parts of one GPU, or cores of one processor, slow each other down
when all of them work, and not when one works alone. So two sets of times are kept: plans of several devices are made
from a profile for which all work at once, and from runs of several devices; plans of one device from runs of one. What
is chosen between them is chosen by what was measured.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Mapping

import torch

from .._lib import UsageError
from ..cluster import Cluster
from ..plan import Plan
from ..search import place
from .capture import Captured, capture
from .contest import Contest, CutTried
from .distribute import Distributed, distribute
from .held import meetings
from .merging import expected_ns
from .profile import probe, profile
from .timeline import Measured
from .times import Times, one_device, plan_key
from .workers import Workers

_HOPELESS = 1.25  # a plan that is predicted to take this much longer than what was measured is not tried
_WORTH = 0.99  # several devices have to be faster than one by this, as with `moirai tune`
_FINALISTS = 3
_HOW = {"none": "eager", "aten": "eager with ATen's fused calls", "inductor": "compiled"}
Way = tuple[bool | int, str]  # how a network is captured: heads, fuse


@dataclass
class Trial:
    """A plan that was run. `heads` and `fuse` say of which capture."""

    heads: bool | int
    fuse: str
    captured: Captured
    plan: Plan
    predicted_ns: int
    latency_ns: list[int] = field(default_factory=list)  # medians of its runs: the first, then those of the finals

    @property
    def measured_ns(self) -> int:
        """The median of the finals, where it was in them."""
        return int(statistics.median(self.latency_ns[1:] or self.latency_ns))

    @property
    def devices(self) -> list[str]:
        return sorted(set(self.plan.placement.values()))

    def __repr__(self) -> str:
        groups = "every head" if self.heads is True else f"{self.heads} groups of heads"
        heads = (f", {groups}" if self.heads else "") + (", in pieces" if self.captured.cuts else "")
        return (
            f"{self.plan.placer or ('by pieces' if self.captured.cuts else 'by hand')} on {' '.join(self.devices)}{heads}, {_HOW[self.fuse]}: "
            f"predicted {self.predicted_ns / 1e6:.3f} ms, measured {self.measured_ns / 1e6:.3f} ms"
        )


def _fastest(trials: list[Trial]) -> str:
    """Of the fastest: what it takes, and how it runs."""
    best = min(trials, key=lambda t: t.measured_ns)
    return f"{best.measured_ns / 1e6:.3f} ms ({_HOW[best.fuse]})"


@dataclass
class Tuned:
    """What `tune` found: `best`, all that was tried, and `cuts`, those that were looked at where one was to be chosen, with
    why it was kept or not."""

    best: Trial
    trials: list[Trial]
    cluster: Cluster
    transport: str
    cuts: list[CutTried] = field(default_factory=list)
    predicted_ns: int = 0  # of the best, by all that was learnt from runs
    ended: bool = False  # `seconds` were over before all was tried

    @property
    def captured(self) -> Captured:
        return self.best.captured

    @property
    def plan(self) -> Plan:
        return self.best.plan

    @property
    def verdict(self) -> str:
        """Whether a split pays, in one line: against the fastest device alone, compiled or not, in the same number
        types. What was tried and is not kept is in it."""
        ones = [t for t in self.trials if one_device(t.plan)]
        splits = [t for t in self.trials if not one_device(t.plan)]
        if one_device(self.plan):
            rest = f"; the fastest split takes {_fastest(splits)}" if splits else ""
            what = "NO SPLIT WAS TRIED" if self.ended and not splits else "NO SPLIT PAYS"
            line = f"{what}: '{self.best.devices[0]}' runs all in {_fastest([self.best])}{rest}"
        else:
            several = f"{len(self.best.devices)} devices take {_fastest([self.best])}"
            line = f"{several}, the fastest one alone {_fastest(ones)}"
        others = [t for t in self.trials if t.fuse != self.best.fuse]
        line += f"; otherwise than {_HOW[self.best.fuse]}: {_fastest(others)}" if others else ""
        return line + ("; the time was over before all was tried" if self.ended else "")

    def distribute(self, **options: Any) -> Any:
        """As `moirai.torch.distribute`, with the plan that was found."""
        options.setdefault("transport", self.transport)
        if "workers" not in options:
            options.setdefault("cluster", self.cluster)
        return distribute(self.captured, self.plan, **options)

    def __repr__(self) -> str:
        lines = [("* " if t is self.best else "  ") + repr(t) for t in self.trials]
        return "\n".join([self.verdict, *lines, *map(repr, self.cuts)])


class _Tuner:
    def __init__(self, workers: Workers, cluster: Cluster, o: Mapping[str, Any], folder: str) -> None:
        self.workers, self.cluster, self.o, self.folder = workers, cluster, o, folder
        self.trials: list[Trial] = []
        self.seen: set[Any] = set()
        self.chosen: dict[Way, str] = {}  # cuts
        self.looked_at: list[CutTried] = []
        self.end = time.monotonic() + o["seconds"] if o["seconds"] else float("inf")
        self.known: dict[tuple[bool | int, str, str], Times] = {}  # by way and cut
        self.meet: dict[str, int] = {}
        self.search = {k: o[k] for k in ("time_limit", "threads", "seed")}

    def measure(self, trial: Trial) -> Measured:
        options = {"transport": self.o["transport"], "cache": self.o["cache"]}
        with distribute(trial.captured, trial.plan, workers=self.workers, **options) as run:
            assert isinstance(run, Distributed)
            run(*self.o["args"], **self.o["kwargs"])
            measured = run.measure(runs=self.o["runs"])
        trial.latency_ns.append(measured.median_ns)
        return measured

    def attempt(self, way: Way, times: Times, placer: str, plan: Plan, always: bool = False) -> None:
        """Runs a plan, unless its like was run or, `always` aside, it has no chance."""
        key = (times.captured.number, plan_key(plan))
        best = min((t.measured_ns for t in self.trials), default=None)
        if key in self.seen or (not always and best is not None and expected_ns(plan) > _HOPELESS * best):
            return
        self.seen.add(key)
        trial = Trial(*way, times.captured, plan, expected_ns(plan))
        times.learn(plan, self.measure(trial), placer)
        self.trials.append(trial)
        self.o["say"](repr(trial))

    def finals(self) -> Trial:
        """The fastest plans in turns: whatever changes with time changes for all, and the fastest of several runs was
        lucky."""
        ranked = sorted(self.trials, key=lambda t: t.measured_ns)
        chosen = ranked[:_FINALISTS]
        alone = [t for t in ranked if one_device(t.plan)]
        chosen += [t for t in alone[:1] if t not in chosen]
        for _ in range(self.o["passes"] if len(chosen) > 1 else 0):
            for trial in chosen if self.left() else ():
                self.measure(trial)
        best = min(chosen, key=lambda t: t.measured_ns)
        if alone and not one_device(best.plan) and best.measured_ns > _WORTH * alone[0].measured_ns:
            return alone[0]
        return best

    def profile(self, captured: Captured, code: bool = True) -> None:
        report = profile(captured, workers=self.workers, cache=self.o["cache"], busy=self.o["busy"], code=code)
        for op, why in list(report.not_compiled.items())[:1]:
            self.o["say"](f"{len(report.not_compiled)} operators are not compiled, such as '{op}': {why}")

    def left(self) -> float:
        """Seconds in which something may still begin."""
        return max(self.end - time.monotonic(), 0.0)

    def fastest(self, heads: bool | int) -> Way:
        """In which one device runs the network in the least time."""
        alone = [t for t in self.trials if t.heads == heads and not t.captured.cuts and one_device(t.plan)]
        return heads, min(alone, key=lambda t: t.latency_ns[0]).fuse

    def worth(self, way: Way, cut: str) -> bool:
        """Whether it is to be planned. Where a cut was to be chosen, others were tried, or are of kernels that are slower."""
        return "auto" not in self.o["cuts"] or cut in self.o["cuts"] or (way == self.fastest(way[0]) and cut in ("", self.chosen.get(way)))

    def choose(self, way: Way, whole: Captured, options: Mapping[str, Any]) -> str:
        """The cut that is kept, "" where none pays, for the way in which one device runs the network fastest: others would
        run the same cut slower, or a worse one."""
        if way != self.fastest(way[0]):
            return ""
        if way not in self.chosen:
            self.looked_at += (tried := Contest(self, way, whole, options).run())
            self.chosen[way] = tried[0].cut if tried and tried[0].measured_ns is not None else ""
            for t in tried:
                self.o["say"](f"{t!r:.300}")
            self.o["say"](f"cut: {self.chosen[way] or 'no cut pays':.200}")
        return self.chosen[way]

    def times(self, way: Way, captured: Captured, options: Mapping[str, Any]) -> Times:
        """One per capture and cut: what was learnt stays."""
        key = (*way, captured.cuts)
        if key not in self.known:
            like = self.known.get((*way, "")) if captured.cuts else None
            whole = like.whole_ns if like and way[1] == "inductor" else None  # compiled, one device runs it whole
            self.known[key] = Times(captured, self.cluster, options, self.folder, self.meet, whole)
        return self.known[key]

    def cut(self, way: Way, whole: Captured, options: Mapping[str, Any]) -> None:
        """The network cut in every way asked for, profiled."""
        for asked in self.o["cuts"] if self.left() else ():
            text = self.choose(way, whole, options) if asked == "auto" else asked
            if self.left() and text and (*way, text) not in self.known:
                made = whole.recut(text)
                self.profile(made)
                self.times(way, made, options)

    def tune(self, captures: Mapping[Way, Captured]) -> Tuned:
        options = {"congestion": "none" if self.o["transport"] == "ipc" else "port", **self.o["problem"]}
        self.meet = meetings(self.workers, transport=self.o["transport"], cache=self.o["cache"])
        for way, captured in captures.items():  # what a split must beat
            self.profile(captured)
            times = self.times(way, captured, options)
            self.attempt(way, times, "single", place(times.problem(True), "single"), always=True)
        for way, captured in captures.items():
            self.cut(way, captured, options)
        for _ in range(self.o["rounds"] + 1):
            before = len(self.trials)
            for (heads, fuse, cut), times in sorted(self.known.items(), key=lambda x: not x[0][2]):  # pieces first
                for placer in self.o["placers"] if self.worth((heads, fuse), cut) and self.left() else ():
                    self.attempt((heads, fuse), times, placer, times.place(placer, **self.search))
            if len(self.trials) == before:
                break
        ended = not self.left()
        best = self.finals()
        predicted_ns = self.known[best.heads, best.fuse, best.captured.cuts].again_ns(best.plan)
        return Tuned(best, self.trials, self.cluster, self.o["transport"], self.looked_at, predicted_ns, ended)


def _captures(module: torch.nn.Module, args: Any, kwargs: Any, heads: Iterable[bool | int], fuses: Iterable[str],
              kind: str, o: Mapping[str, Any]) -> dict[Way, Captured]:  # fmt: skip
    """One per way to take attention apart and to fuse; what has no attention once for each of the latter."""
    found: dict[Way, Captured] = {}
    ways = [(h, f) for f in dict.fromkeys(fuses) for h in heads]
    for h, f in ways:
        made = capture(module, args, kwargs, heads=h, name=o["name"], fuse=f, fuse_for=kind, cache=o["cache"])
        if not any(set(made.ops) == set(c.ops) for (_, g), c in found.items() if f == g):
            found[h, f] = made
        if f == "inductor" and made.grouped_by != "inductor":
            o["say"](f"operators are grouped by rules of our own: {made.grouped_by}")
    if not found:
        raise UsageError("tune needs at least one way to capture the network: heads=(False,), fuse=('none',)")
    return found


def tune(
    module: torch.nn.Module,
    args: Iterable[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    cluster: Cluster | str | Mapping[str, Any] | None = None,
    workers: Workers | None = None,
    probed: Cluster | None = None,
    heads: Iterable[bool | int] = (False,),
    cuts: Iterable[str] = (),
    fuse: Iterable[str] | None = None,
    placers: Iterable[str] = ("m-etf", "heft", "moirai"),
    transport: str = "auto",
    rounds: int = 2,
    time_limit: float = 10,
    threads: int = 0,
    seed: int = 1,
    runs: int = 30,
    passes: int = 3,
    cache: str | os.PathLike[str] | None | bool = True,
    problem: Mapping[str, Any] | None = None,
    busy: bool | None = None,
    name: str | None = None,
    say: Callable[[str], None] | None = None,
    seconds: float | None = None,
) -> Tuned:
    """The plan that was measured to be the fastest, of one device or of several.

    The module is captured once for every entry of `heads` (`capture`: whole attention, groups of heads) and of `fuse`:
    by default eager calls, and on GPUs compiled code, too, since that is what a split has to beat there; `cuts` are tried
    beside each of these, "auto" being a choice by measured times and runs of the kernels of the fastest of these ways
    (docs/shard.md). Links are
    probed and operators profiled, `busy` as in `profile`; then, `rounds` times and once more, plans of each capture are made by `placers` from
    all that is known (`time_limit` seconds each), run, and learnt from: what a model says of two plans can be wrong by
    more than they differ, so that a list scheduler's plan, which takes no time to make, is sometimes the faster one.
    One device that runs everything is among what is tried.
    The fastest few are run again in turns, `passes` times; their medians decide, and several devices have to be at
    least 1 % faster than one. `say` is called with a line per run. After `seconds`, if given, nothing more is begun.

    `cluster` starts processes and ends them; `workers` that are there already go on. `probed` is what `probe` has
    returned for them, if it was called before. Everything else is as in `distribute`, `profile`, `place` and `Problem`.
    """
    if (cluster is None) == (workers is None):
        raise UsageError("either cluster or workers says where to run")
    if workers is None:
        with Workers(cluster, keep_weights=True) as started:  # type: ignore[arg-type]
            return tune(module, args, kwargs, workers=started, probed=probed, heads=heads, cuts=cuts, fuse=fuse,
                        placers=placers, transport=transport, rounds=rounds, time_limit=time_limit,
                        threads=threads, seed=seed, runs=runs, passes=passes, cache=cache, problem=problem,
                        busy=busy, name=name, say=say, seconds=seconds)  # fmt: skip
    given = tuple(args)
    kind = "cpu" if workers.kind == "cpu" else "cuda"
    fuses = tuple(fuse) if fuse is not None else ("none", "inductor") if workers.kind == "cuda" else ("none",)
    way = transport if transport != "auto" else "ipc" if workers.kind == "cuda" else "gloo"
    o = {"module": module, "args": given, "kwargs": dict(kwargs or {}), "transport": way, "rounds": rounds, "time_limit": time_limit,
         "placers": tuple(placers), "threads": threads, "seed": seed, "runs": runs, "passes": passes, "cache": cache,
         "problem": dict(problem or {}), "busy": busy, "cuts": (cuts,) if isinstance(cuts, str) else tuple(cuts), "name": name, "seconds": seconds, "say": say or (lambda line: None)}  # fmt: skip
    captures = _captures(module, given, kwargs, tuple(heads), fuses, kind, o)
    with tempfile.TemporaryDirectory(prefix="moirai-tune-") as folder:
        return _Tuner(workers, probed or probe(workers, transport=way), o, folder).tune(captures)
