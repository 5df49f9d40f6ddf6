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
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Iterable, Mapping

import torch

from .._lib import UsageError
from ..cluster import Cluster, Link
from ..graph import Graph
from ..plan import Plan
from ..problem import Problem
from ..search import place, refine
from .capture import Captured, capture
from .busy import Corrected, gains
from .choose import CutChoice, batch_samples, choose, samples
from .cuts import ALTERNATIVES
from .distribute import Distributed, distribute
from .held import meetings
from .merging import expect, expected_ns
from .profile import probe, profile
from .program import build
from .timeline import Measured
from .workers import Workers

_HOPELESS = 1.25  # a plan that is predicted to take this much longer than what was measured is not tried
_WORTH = 0.99  # several devices have to be faster than one by this, as with `moirai tune`
_FINALISTS = 3
_SEGMENTS = (0, 1, 2)  # meetings that are added to latencies for a search, which knows none: a message has one at each end
_HOW = {"none": "eager", "aten": "eager with ATen's fused calls", "inductor": "compiled"}
Way = tuple[bool | int, str]  # how a network is captured: heads, fuse


def one_device(plan: Plan) -> bool:
    return len(set(plan.placement.values())) <= 1


def plan_key(plan: Plan) -> Any:
    """Equal for plans that run alike: the same operators in the same order on every device."""
    order: dict[str, list[str]] = {}
    for step in sorted(plan.steps, key=lambda s: (s.start_ns, s.finish_ns)):
        order.setdefault(step.device, []).append(step.name)
    return tuple(sorted((d, tuple(names)) for d, names in order.items()))


def _link(x: Link, extra_ns: int) -> Link:
    return replace(x, latency_ns=max(x.latency_ns - extra_ns, 0))


def held_ns(timeline: Mapping[str, Any], otherwise: Mapping[str, int]) -> dict[str, int]:
    """Device -> what a meeting of a run held it up for, where it had nothing to wait for."""
    found = dict(otherwise)
    for d in timeline["devices"]:
        held = [g["held_ns"] for g in d["segments"] if g["held_ns"] > 0]
        if held:
            found[d["name"]] = int(statistics.fmean(held))
    return found


def hold(graph: Graph, timeline: Mapping[str, Any], meetings: bool = True) -> None:
    """Lengthens a device's operators until they take what it was busy for in a run, `meetings` with others included.

    A device of this runtime computes nothing while it meets others; the model lets it, and knows the delay of a message
    alone. Where nothing is known of meetings but their sum, operators pay for it: the next plan will cut about as often
    as the last one of its placer."""
    took: dict[str, int] = {}
    work: dict[str, int] = {}
    times = {op.name: op.time_ns or {} for op in graph.ops}
    for d in timeline["devices"]:
        took[d["name"]] = sum(g["median_ns"] + (g["held_ns"] if meetings else 0) for g in d["segments"])
        work[d["name"]] = sum(times[op].get(d["name"], 0) for g in d["segments"] for op in g["ops"])
    usual = sum(took.values()) / max(sum(work.values()), 1)
    for name in graph.devices:
        factor = took[name] / work[name] if took.get(name) and work.get(name) else usual
        if factor > 0:
            known = {op: max(int(t[name] * factor), 1) for op, t in times.items() if name in t}
            graph.set_times(name, known)


class Times:
    """What is known of a captured network on a cluster: its profile, and runs of it.

    `problem` has keywords for `moirai.Problem`. Timelines are kept in `folder`. `meetings` are what `moirai.torch.meetings`
    has measured: first plans know it then. `whole_ns` is what devices that ran all were measured to take, before any run
    is learnt from; `gain` is that over the sum of operators, where these are another network's (`gains`). `busy` says whether plans of several devices take times of a profile with all devices busy, where there
    is one.
    """

    def __init__(
        self, captured: Captured, cluster: Cluster, problem: Mapping[str, Any], folder: str | os.PathLike[str],
        meetings: Mapping[str, int] | None = None, whole_ns: Mapping[str, int] | None = None,
        gain: Mapping[str, float] | None = None, busy: bool = True,
    ) -> None:  # fmt: skip
        self.captured, self.cluster, self.meetings = captured, cluster, dict(meetings or {})
        self._options, self._folder = dict(problem), os.fspath(folder)
        self._profile = captured.graph.copy()
        self._busy = captured.busy.copy() if busy and captured.busy else None
        self.whole_ns, self._gain = dict(whole_ns or {}), gain
        # one device? -> (placer, timeline's file, timeline)
        self._runs: dict[bool, list[tuple[str, str, dict[str, Any]]]] = {True: [], False: []}

    def learn(self, plan: Plan, measured: Measured, placer: str = "") -> str:
        """A run of this plan; returns the timeline's file."""
        runs = self._runs[one_device(plan)]
        if one_device(plan):
            self.whole_ns[next(iter(plan.placement.values()))] = measured.median_ns
        name = f"{self.captured.graph.name}-{self.captured.number}-{placer or plan.placer}"
        path = os.path.join(self._folder, f"{name}-{'alone' if one_device(plan) else 'split'}-{len(runs)}.json")
        measured.save(path)
        runs.append((placer or plan.placer, path, measured.timeline))
        return path

    def _known(self, alone: bool, placer: str) -> list[tuple[str, str, dict[str, Any]]]:
        """Runs, the placer's own last, since those count most: its next plan will be most like them."""
        runs = self._runs[alone] or ([] if alone or self._busy else self._runs[True])
        return [r for r in runs if r[0] != placer] + [r for r in runs if r[0] == placer]

    def meets(self, placer: str) -> dict[str, int]:
        """Device -> what a meeting takes, as it was in the last run, else as it was probed. Where messages hold each
        other up, runs have put it into the latencies."""
        runs = self._known(False, placer) if self._runs[False] else []
        if not self.meetings or not runs:
            return self.meetings
        return held_ns(runs[-1][2], self.meetings) if self._options.get("congestion") == "none" else {}

    def gain(self) -> dict[str, float]:
        """What is gained where operators are compiled as one piece. A network in pieces runs whole on one device: that
        says nothing of its pieces."""
        if self._gain is not None or self.captured.cuts:
            return dict(self._gain or {})
        return gains(self._profile, self.whole_ns)

    def corrected(self) -> Corrected | None:
        """Times between one device at work and all; None where that was not measured, or where runs of several devices
        say more."""
        if self._busy is None or self._runs[False]:
            return None
        shares = {d.name: d.share or 1.0 for d in self.cluster.devices}
        return Corrected(self._profile, self._busy, shares, self.gain())

    def problem(self, alone: bool, placer: str = "", segment_ns: int = 0, first: Graph | None = None) -> Problem:
        """With times of one device at work, or of several (`first`: these, before any run). Where messages do not hold each other up (ipc), a cut costs
        what its message took, and its devices the time to meet (`hold`, `meets`); else what makes the runs end when they
        did. `segment_ns` is added to all latencies."""
        known = self._profile if alone or self._busy is None else self._busy
        graph, cluster = (first or known).copy(), self.cluster.copy()
        runs = self._known(alone, placer)
        if runs:
            reports = refine(graph, cluster, [path for _, path, _ in runs])
            if not alone and self._runs[False] and self._options.get("congestion") == "none":
                extra_ns = int(reports[-1]["extra_ns"])
                cluster = cluster.with_links([_link(x, extra_ns) for x in cluster.links])
                hold(graph, runs[-1][2], not self.meetings)
        if segment_ns:
            cluster = cluster.with_links([_link(x, -segment_ns) for x in cluster.links])
        return Problem(graph, cluster, **self._options)

    def _splits(self, placer: str, options: Mapping[str, Any]) -> list[Plan]:
        """Plans of several devices. Where it is known what meetings cost, they are for messages that take so much longer,
        since many a cut less may pay for itself; the one that ends first with its meetings comes first."""
        meets, between = self.meets(placer), self.corrected()
        graph = between.before() if between else None
        if not meets:
            plan = place(self.problem(False, placer, first=graph), placer, **options)
            return [self._settled(plan, placer, between)[0]]
        shared = {**options, **{k: options[k] / len(_SEGMENTS) for k in ("time_limit",) if options.get(k)}}
        usual, plans = int(statistics.median(meets.values())), []
        for n in _SEGMENTS:
            bare = self.problem(False, placer, first=graph)
            plan = place(self.problem(False, placer, n * usual, graph), placer, **shared).replay(bare)
            plan, graph = self._settled(plan, placer, between, graph)
            plans.append(expect(self.captured, plan, meets, self._options.get("congestion") != "none"))
        return sorted(plans, key=expected_ns)

    def _settled(self, plan: Plan, placer: str, between: Corrected | None, graph: Graph | None = None) -> tuple[Plan, Graph | None]:
        """The plan with times as busy as it keeps its devices, once, and the graph with these, for the next search."""
        if not between or one_device(plan):
            return plan, graph
        expect(self.captured, plan, self.meets(placer), self._options.get("congestion") != "none")
        segments = {r.device: len(r.segments) for r in build(self.captured, plan, merge=True).ranks}
        graph = between.after(plan, segments)
        return plan.replay(self.problem(False, placer, first=graph)), graph

    def place(self, placer: str = "moirai", **options: Any) -> Plan:
        """The placer's plan, by these times; `moirai` takes one device where several are predicted to be no faster."""
        return self.places(placer, **options)[0]

    def _alone(self, plan: Plan) -> Plan:
        """A plan of one device takes what that was measured to take."""
        device = next(iter(plan.placement.values()), "")
        if device in self.whole_ns:
            plan.expected_ns = self.whole_ns[device]
        return plan

    def single(self, placer: str = "single") -> Plan:
        """The fastest device alone."""
        return self._alone(place(self.problem(True, placer), "single"))

    def places(self, placer: str = "moirai", *, within: float = 1.0, **options: Any) -> list[Plan]:
        """As `place`, and behind it the plans that were found beside it and are predicted to take at most `within` as
        long: predictions of plans differ by less than they are wrong, so that runs have to decide."""
        plans = self._splits(placer, options)
        plan = plans[0]
        if one_device(plan):
            plan = self._alone(plan.replay(self.problem(True, placer)))
        if placer == "moirai":
            single = self.single(placer)
            plan = single if expected_ns(single) < expected_ns(plan) else plan
        most = within * expected_ns(plan)
        found = {plan_key(p): p for p in reversed(plans) if expected_ns(p) <= most and not one_device(p)}
        found.pop(plan_key(plan), None)
        return [plan, *reversed(found.values())]


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
            f"{self.plan.placer or 'by hand'} on {' '.join(self.devices)}{heads}, {_HOW[self.fuse]}: "
            f"predicted {self.predicted_ns / 1e6:.3f} ms, measured {self.measured_ns / 1e6:.3f} ms"
        )


def _fastest(trials: list[Trial]) -> str:
    """Of the fastest: what it takes, and how it runs."""
    best = min(trials, key=lambda t: t.measured_ns)
    return f"{best.measured_ns / 1e6:.3f} ms ({_HOW[best.fuse]})"


@dataclass
class Tuned:
    """What `tune` found: `best`, and all that was tried."""

    best: Trial
    trials: list[Trial]
    cluster: Cluster
    transport: str

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
            line = f"NO SPLIT PAYS: '{self.best.devices[0]}' runs all in {_fastest([self.best])}{rest}"
        else:
            several = f"{len(self.best.devices)} devices take {_fastest([self.best])}"
            line = f"{several}, the fastest one alone {_fastest(ones)}"
        others = [t for t in self.trials if t.fuse != self.best.fuse]
        return line + (f"; otherwise than {_HOW[self.best.fuse]}: {_fastest(others)}" if others else "")

    def distribute(self, **options: Any) -> Any:
        """As `moirai.torch.distribute`, with the plan that was found."""
        options.setdefault("transport", self.transport)
        if "workers" not in options:
            options.setdefault("cluster", self.cluster)
        return distribute(self.captured, self.plan, **options)

    def __repr__(self) -> str:
        lines = [("* " if t is self.best else "  ") + repr(t) for t in self.trials]
        return "\n".join([self.verdict, *lines])


class _Tuner:
    def __init__(self, workers: Workers, cluster: Cluster, o: Mapping[str, Any], folder: str) -> None:
        self.workers, self.cluster, self.o, self.folder = workers, cluster, o, folder
        self.trials: list[Trial] = []
        self.seen: set[Any] = set()
        self.chosen: dict[bool | int, str] = {}  # cuts, by heads
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
            for trial in chosen:
                self.measure(trial)
        best = min(chosen, key=lambda t: t.measured_ns)
        if alone and not one_device(best.plan) and best.measured_ns > _WORTH * alone[0].measured_ns:
            return alone[0]
        return best

    def profile(self, captured: Captured) -> None:
        report = profile(captured, workers=self.workers, cache=self.o["cache"], busy=self.o["busy"])
        for op, why in list(report.not_compiled.items())[:1]:
            self.o["say"](f"{len(report.not_compiled)} operators are not compiled, such as '{op}': {why}")

    def choose(self, heads: bool | int, captures: Mapping[Way, Captured], options: Mapping[str, Any]) -> str:
        """The cut of a network, by profiles of pieces of several sizes and by runs of the few that are predicted to be
        the best. It is chosen for eager kernels, and compiled ones take the same: grouping anew for every size would take
        longer than everything else."""
        if heads not in self.chosen:
            whole, measured = self.plain(heads, captures), []
            plain = [s for s in whole.strips if s.kind not in ALTERNATIVES]
            tokens, batch = ([s for s in whole.strips if s.kind == kind] for kind in ("tokens", "batch"))
            for cut in [*batch_samples(batch), *samples(plain), *samples(tokens)[:2]]:
                measured.append(whole.recut(cut))
                self.profile(measured[-1])
            search = {**self.search, "time_limit": 3 * self.search["time_limit"]}
            if self.meet:
                search["segment_us"] = statistics.median(self.meet.values()) / 1000
            graphs = [c.busy or c.graph for c in (whole, *measured)]
            found = choose(whole, self.cluster, measured=graphs, **search, **options)
            self.chosen[heads] = self.faster(heads, whole, found, options) if found.cut else ""
            self.o["say"](f"cut: {self.chosen[heads] or 'no cut pays':.200}")
        return self.chosen[heads]

    def faster(self, heads: bool | int, whole: Captured, found: CutChoice, options: Mapping[str, Any]) -> str:
        """Of the cuts that are worth a run, the one whose run ended first."""
        took = {}
        for cut in dict.fromkeys([found.cut, *found.finalists]) if len(found.finalists) > 1 else ():
            made = whole.recut(cut)
            self.profile(made)
            times, before = self.times((heads, "none"), made, options), len(self.trials)
            for placer in self.o["placers"]:
                self.attempt((heads, "none"), times, placer, times.place(placer, **self.search))
            tried = [t.measured_ns for t in self.trials[before:]]
            if tried:
                took[cut] = min(tried)
        return min(took, key=lambda cut: took[cut]) if took else found.cut

    def times(self, way: Way, captured: Captured, options: Mapping[str, Any]) -> Times:
        """One per capture and cut: what was learnt stays."""
        key = (*way, captured.cuts)
        if key not in self.known:
            like = self.known.get((*way, "")) if captured.cuts else None
            whole = like.whole_ns if like and way[1] == "inductor" else None  # compiled, one device runs it whole
            gain = like.gain() if like else None
            self.known[key] = Times(captured, self.cluster, options, self.folder, self.meet, whole, gain)
        return self.known[key]

    def plain(self, heads: bool | int, captures: Mapping[Way, Captured]) -> Captured:
        """The eager capture, profiled."""
        found = captures.get((heads, "none"))
        if found is None:
            found = capture(self.o["module"], self.o["args"], self.o["kwargs"], heads=heads, name=self.o["name"])
            self.profile(found)
        return found

    def cut(self, way: Way, whole: Captured, captures: Mapping[Way, Captured], options: Mapping[str, Any]) -> None:
        """The network cut in every way asked for, profiled."""
        for asked in self.o["cuts"]:
            text = self.choose(way[0], captures, options) if asked == "auto" else asked
            if text and (*way, text) not in self.known:
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
            self.cut(way, captured, captures, options)
        for _ in range(self.o["rounds"] + 1):
            before = len(self.trials)
            for (heads, fuse, cut), times in self.known.items():
                if cut and "auto" in self.o["cuts"] and cut not in (*self.o["cuts"], self.chosen.get(heads)):
                    continue  # was tried, and was not the fastest cut
                for placer in self.o["placers"]:
                    self.attempt((heads, fuse), times, placer, times.place(placer, **self.search))
            if len(self.trials) == before:
                break
        return Tuned(self.finals(), self.trials, self.cluster, self.o["transport"])


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
) -> Tuned:
    """The plan that was measured to be the fastest, of one device or of several.

    The module is captured once for every entry of `heads` (`capture`: whole attention, groups of heads) and of `fuse`:
    by default eager calls, and on GPUs compiled code, too, since that is what a split has to beat there; `cuts` are tried
    beside each of these, "auto" being a choice by measured times (docs/shard.md). Links are
    probed and operators profiled, `busy` as in `profile`; then, `rounds` times and once more, plans of each capture are made by `placers` from
    all that is known (`time_limit` seconds each), run, and learnt from: what a model says of two plans can be wrong by
    more than they differ, so that a list scheduler's plan, which takes no time to make, is sometimes the faster one.
    One device that runs everything is among what is tried.
    The fastest few are run again in turns, `passes` times; their medians decide, and several devices have to be at
    least 1 % faster than one. `say` is called with a line per run.

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
                        busy=busy, name=name, say=say)  # fmt: skip
    given = tuple(args)
    kind = "cpu" if workers.kind == "cpu" else "cuda"
    fuses = tuple(fuse) if fuse is not None else ("none", "inductor") if workers.kind == "cuda" else ("none",)
    way = transport if transport != "auto" else "ipc" if workers.kind == "cuda" else "gloo"
    o = {"module": module, "args": given, "kwargs": dict(kwargs or {}), "transport": way, "rounds": rounds, "time_limit": time_limit,
         "placers": tuple(placers), "threads": threads, "seed": seed, "runs": runs, "passes": passes, "cache": cache,
         "problem": dict(problem or {}), "busy": busy, "cuts": tuple(cuts), "name": name, "say": say or (lambda line: None)}  # fmt: skip
    captures = _captures(module, given, kwargs, tuple(heads), fuses, kind, o)
    with tempfile.TemporaryDirectory(prefix="moirai-tune-") as folder:
        return _Tuner(workers, probed or probe(workers, transport=way), o, folder).tune(captures)
