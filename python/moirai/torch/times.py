"""What is known of a captured network on a cluster, and the plans that follow from it: times of its profile, alone and with
all devices busy, what meetings cost, and runs."""

from __future__ import annotations

import os
import statistics
from dataclasses import replace
from typing import Any, Mapping

from ..cluster import Cluster, Link
from ..graph import Graph
from ..plan import Plan
from ..problem import Problem
from ..search import place, refine
from .busy import Corrected
from .capture import Captured
from .merging import expect, expected_ns
from .timeline import Measured

_SEGMENTS = (0, 1, 2)  # meetings that are added to latencies for a search, which knows none: a message has one at each end


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
    is learnt from. `busy` says whether plans of several devices take times of a profile with all devices busy, where there
    is one.
    """

    def __init__(
        self, captured: Captured, cluster: Cluster, problem: Mapping[str, Any], folder: str | os.PathLike[str],
        meetings: Mapping[str, int] | None = None, whole_ns: Mapping[str, int] | None = None, busy: bool = True,
    ) -> None:  # fmt: skip
        self.captured, self.cluster, self.meetings = captured, cluster, dict(meetings or {})
        self._options, self._folder = dict(problem), os.fspath(folder)
        self._profile = captured.graph.copy()
        self._busy = captured.busy.copy() if busy and captured.busy else None
        self.whole_ns = dict(whole_ns or {})
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

    def busy_ns(self) -> dict[str, int]:
        """What devices computed for in the last run of several; {} before it."""
        devices = self._runs[False][-1][2]["devices"] if self._runs[False] else []
        return {d["name"]: sum(g["median_ns"] for g in d["segments"]) for d in devices}

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

    def corrected(self) -> Corrected | None:
        """Times between one device at work and all; None where that was not measured, or where runs of several devices
        say more."""
        if self._busy is None or self._runs[False]:
            return None
        shares = {d.name: d.share or 1.0 for d in self.cluster.devices}
        return Corrected(self._profile, self._busy, shares)

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

    def by_hand(self, devices: Mapping[str, str], placer: str = "") -> Plan:
        """The plan with these devices (operator -> device), by these times, as those that a placer finds."""
        between, meets = self.corrected(), self.meets(placer)
        plan = Plan.by_devices(self.problem(False, placer, first=between.before() if between else None), dict(devices))
        plan = self._settled(plan, placer, between)[0]
        return expect(self.captured, plan, meets, self._options.get("congestion") != "none") if meets else plan

    def again_ns(self, plan: Plan) -> int:
        """What a plan is predicted to take by all that is known now, runs of itself among it."""
        if one_device(plan):
            return expected_ns(self._alone(plan.replay(self.problem(True, plan.placer))))
        played, meets = plan.replay(self.problem(False, plan.placer)), self.meets(plan.placer)
        return expected_ns(expect(self.captured, played, meets, self._options.get("congestion") != "none") if meets else played)

    def _settled(self, plan: Plan, placer: str, between: Corrected | None, graph: Graph | None = None) -> tuple[Plan, Graph | None]:
        """The plan with times as busy as it keeps its devices, once, and the graph with these, for the next search."""
        if not between or one_device(plan):
            return plan, graph
        graph = between.after(plan)
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
