"""A plan: a device and a start for every operator, a start for every transfer."""

from __future__ import annotations

import html
import os
import tempfile
from dataclasses import dataclass
from typing import Any

from ._lib import bytes_of, check, ffi, lib, optional, take, take_text, text
from .problem import Problem


@dataclass(frozen=True)
class Step:
    """An operator in a plan."""

    name: str
    device: str
    start_ns: int
    finish_ns: int


@dataclass(frozen=True)
class SearchStep:
    """What a step of the search has taken and gained, all its calls together."""

    name: str
    calls: int
    cpu_ns: int | None  # processor time; None where the plan was read from a file
    plan_gain_ns: int
    bound_gain_ns: int


@dataclass(frozen=True)
class Transfer:
    """A tensor on its way."""

    tensor: str
    source: str
    target: str
    start_ns: int
    finish_ns: int
    bytes: int


@dataclass(frozen=True)
class Copy:
    """One of several copies of the network that work at the same time."""

    share: float  # of the requests
    slots: int | None  # requests that it has in flight; None: copies take turns by their shares
    placement: dict[str, str]  # operator name -> device


@dataclass(frozen=True)
class Rate:
    """What a plan for many requests reaches, by the simulator (docs/rate.md)."""

    in_flight: int
    period_ns: int  # between two finished requests, in the long run
    period_bound_ns: int | None  # no plan with so many in flight has less; None where nothing is proven
    period_certified_ns: int | None  # of that bound, by its certificate; None where none was asked for
    latency_ns: int  # of the slowest request in flight
    alone_ns: int | None  # the period of one request at a time
    copies: list[Copy]  # the first is the plan itself
    pace: int = 0  # requests that enter while one goes its way, as its operators are due; 0: the oldest goes first

    @property
    def per_second(self) -> float:
        return 1e9 / self.period_ns if self.period_ns else float("inf")

    @property
    def gap(self) -> float | None:
        """(period - bound) / period; None where nothing is proven."""
        if self.period_bound_ns is None:
            return None
        return (self.period_ns - self.period_bound_ns) / self.period_ns if self.period_ns else 0.0


class Plan:
    """Who runs what and when, with a proven bound (docs/formats.md, moirai-plan). `problem` is what it is a plan of."""

    def __init__(self, pointer: Any, problem: Problem) -> None:
        self._c = pointer
        self.problem = problem
        self.interrupted = False  # Ctrl-C ended the search: the best plan until then
        self.cut = ""  # what was cut before, where `plan` was asked to: the plan is of that model
        self.captured: Any = None  # the module cut so, of `moirai.torch.plan`
        self.meetings: dict[str, int] = {}  # device -> ns that a meeting with others holds it up, of `moirai.torch`
        self.ports = False  # its devices send and receive one message at a time
        self.expected_ns: int | None = None  # when it ends, meetings included; None: as its makespan says

    @classmethod
    def read(cls, problem: Problem, path: str | os.PathLike[str]) -> Plan:
        """A plan file of this problem."""
        return cls(take("plan", lib.moirai_plan_read, problem._c, bytes_of(path)), problem)

    @classmethod
    def parse(cls, problem: Problem, json: str | bytes, *, label: str = "plan") -> Plan:
        data = json.encode() if isinstance(json, str) else json
        return cls(take("plan", lib.moirai_plan_parse, problem._c, data, len(data), label.encode()), problem)

    @classmethod
    def by_devices(cls, problem: Problem, devices: dict[str, str] | str) -> Plan:
        """A placement by hand: operator name -> device, or one device for all; starts are simulated, by upward
        ranks."""
        names = problem.op_names
        chosen = dict.fromkeys(names, devices) if isinstance(devices, str) else devices
        numbers = {d: k for k, d in enumerate(problem.devices)}
        missing = [n for n in names if n not in chosen]
        if missing:
            raise ValueError(f"no device for operator '{missing[0]}'")
        array = ffi.new("int32_t[]", [numbers[chosen[n]] for n in names] or [0])
        sim = take("sim", lib.moirai_sim_new, problem._c)
        if lib.moirai_sim_dispatch(sim, array, ffi.NULL) < 0:
            raise ValueError("an operator is on a device that can't run it, or a group is split")
        return cls(take("plan", lib.moirai_sim_plan, sim), problem)

    def replay(self, problem: Problem) -> Plan:
        """The same devices and orders with another problem's times: what this plan would take there."""
        text_of = tempfile.NamedTemporaryFile("w", suffix=".json", delete=False)
        text_of.close()
        try:
            self.save(text_of.name)
            moved = Plan.read(problem, text_of.name)
        finally:
            os.unlink(text_of.name)
        return Plan(take("plan", lib.moirai_plan_tighten, problem._c, moved._c), problem)

    def save(self, path: str | os.PathLike[str]) -> None:
        check(lib.moirai_plan_write(self._c, self.problem._c, bytes_of(path)))

    def check(self) -> None:
        """Raises with the first violation of docs/model.md, found by code that shares nothing with the search."""
        check(lib.moirai_plan_check(self.problem._c, self._c, ffi.NULL, ffi.NULL))

    # ---- figures

    @property
    def placer(self) -> str:
        return text(self._c.placer)

    @property
    def makespan_ns(self) -> int:
        return int(self._c.makespan_ns)

    @property
    def lower_bound_ns(self) -> int | None:
        """No plan of the problem is faster; None where nothing is proven."""
        return None if self._c.lower_bound_ns < 0 else int(self._c.lower_bound_ns)

    @property
    def gap(self) -> float | None:
        """(makespan - bound) / makespan; None where nothing is proven."""
        gap = float(lib.moirai_plan_gap(self._c))
        return None if gap < 0 else gap

    @property
    def plan_by(self) -> str | None:
        """The step of the search that found the plan; None where the placer has no steps."""
        return optional(self._c.origin.plan_by)

    @property
    def bound_by(self) -> str | None:
        """The step, bound or placer that has proven the bound."""
        return optional(self._c.origin.bound_by)

    @property
    def search_steps(self) -> list[SearchStep]:
        """The steps of the search that made the plan, and what each has gained; empty where the placer has none."""
        origin = self._c.origin
        return [
            SearchStep(
                name=text(s.name),
                calls=int(s.calls),
                cpu_ns=None if s.cpu_ns < 0 else int(s.cpu_ns),
                plan_gain_ns=int(s.plan_gain_ns),
                bound_gain_ns=int(s.bound_gain_ns),
            )
            for s in (origin.step[i] for i in range(origin.n_steps))
        ]

    @property
    def optimal(self) -> bool:
        return bool(lib.moirai_plan_is_optimal(self._c))

    @property
    def generation_ns(self) -> int:
        return int(self._c.generation_ns)

    @property
    def rate(self) -> Rate | None:
        """What it is for, where it was made for many requests in flight; None where it was not."""
        r, problem = self._c.rate, self.problem
        if not r:
            return None
        known = [None if ns < 0 else int(ns) for ns in (r.period_bound_ns, r.period_certified_ns, r.alone_ns)]
        names, devices = problem.op_names, problem.devices
        copies = [
            Copy(
                share=r.copy[c].share_ppm / 1e6,
                slots=int(r.copy[c].slots) or None,
                placement={name: devices[r.copy[c].op_device[i]] for i, name in enumerate(names)},
            )
            for c in range(r.n_copies)
        ]
        return Rate(int(r.in_flight), int(r.period_ns), *known[:2], int(r.latency_ns), known[2], copies, int(r.pace))

    # ---- who, what, when

    @property
    def steps(self) -> list[Step]:
        """Every operator, in the problem's order."""
        devices, c, p = self.problem.devices, self._c, self.problem._c
        return [
            Step(text(p.op_name[i]), devices[c.op_device[i]], int(c.op_start_ns[i]), int(c.op_finish_ns[i]))
            for i in range(c.n_ops)
        ]

    @property
    def transfers(self) -> list[Transfer]:
        """By start."""
        devices, c, p = self.problem.devices, self._c, self.problem._c
        return [
            Transfer(
                tensor=text(p.tensor_name[t.tensor]),
                source=devices[getattr(t, "from")],
                target=devices[t.to],
                start_ns=int(t.start_ns),
                finish_ns=int(t.finish_ns),
                bytes=int(p.tensor_bytes[t.tensor]),
            )
            for t in (c.transfer[i] for i in range(c.n_transfers))
        ]

    @property
    def placement(self) -> dict[str, str]:
        """Operator name -> device."""
        return {s.name: s.device for s in self.steps}

    @property
    def busy_ns(self) -> dict[str, int]:
        return {d: int(self._c.device_busy_ns[k]) for k, d in enumerate(self.problem.devices)}

    @property
    def peak_bytes(self) -> dict[str, int]:
        """The most memory at once, of devices where it is known."""
        peak = self._c.device_peak_bytes
        return {d: int(peak[k]) for k, d in enumerate(self.problem.devices) if peak[k] >= 0}

    # ---- people

    def __repr__(self) -> str:
        gap = "" if self.gap is None else f", gap {100 * self.gap:.2f} %"
        return f"<moirai.Plan by {self.placer or 'hand'}: {self.makespan_ns / 1e6:.3f} ms{gap}>"

    @property
    def verdict(self) -> list[str]:
        """Why it takes as long as it does, in sentences, the most important first (docs/report.md)."""
        analysis = take("analysis", lib.moirai_analysis_new, self.problem._c, self._c, ffi.NULL)
        return [text(analysis.verdict[i]) for i in range(analysis.n_verdict)]

    def report(self, path: str | os.PathLike[str]) -> None:
        """The report: a page of HTML, complete in itself."""
        page = take_text(lib.moirai_report_html, self.problem._c, self._c)
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)

    def _repr_html_(self) -> str:
        """A table of devices and the report's picture, for notebooks."""
        return _table(self) + take_text(lib.moirai_report_svg, self.problem._c, self._c)


def _table(plan: Plan) -> str:
    counts = dict.fromkeys(plan.problem.devices, 0)
    for step in plan.steps:
        counts[step.device] += 1
    span = max(plan.makespan_ns, 1)
    rows = "".join(
        f"<tr><td>{html.escape(d)}</td><td>{counts[d]}</td><td>{busy / 1e6:.3f}</td>"
        f"<td>{100 * busy / span:.1f} %</td><td>{plan.peak_bytes[d] / 1e6:.1f}</td></tr>"
        for d, busy in plan.busy_ns.items()
    )
    gap = "not proven" if plan.gap is None else f"{100 * plan.gap:.2f} %"
    return (
        f"<p><b>{html.escape(plan.placer or 'by hand')}</b>: {plan.makespan_ns / 1e6:.3f} ms, gap {gap}, "
        f"{len(plan.transfers)} transfers</p><table><tr><th>device</th><th>operators</th><th>busy ms</th>"
        f"<th>busy</th><th>peak MB</th></tr>{rows}</table>"
    )
