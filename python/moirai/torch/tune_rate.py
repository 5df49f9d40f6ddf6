"""The plan that was measured to serve the most requests per second, with so many in flight.

What is tried: a copy of the network on each device, the plan of one request, a row of stages, and what the search for
the best rate finds; on GPUs each with several numbers of lanes (slots_cuda.py). What is kept was measured to be the
fastest, so it is never behind any of the others. Beside every measured rate stands what a simulation of the runtime
says (rates.py): what it has to know of the machine is measured by copies on each device, which send nothing.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Mapping, Sequence

import torch

from .._lib import Error, UsageError
from ..cluster import Cluster
from ..plan import Plan
from ..problem import Problem
from ..search import place
from .capture import Captured, capture
from .copies import places_of
from .distribute import Distributed, distribute
from .flight import Flights
from .held import meetings
from .merging import expect
from .profile import probe, profile
from .rates import Machine, Played, alone, of_program, settled, simulate
from .slots_cuda import MOST_SLOTS
from .workers import Workers

KINDS = ("replicas", "latency", "stages", "any")  # the first say what the machine is like
NAMES = {"replicas": "a copy on each device", "latency": "the plan of one request", "stages": "a row of stages",
         "any": "the search's plan"}  # fmt: skip
_LANES = (0, 1, 2)
_FINALISTS = 3
_WINDOWS = 3  # of one request at a time
_LONGER = 2  # windows for what all predictions hang on
_FEWEST = 5  # times as many requests as are in flight, at least, that a run has


@dataclass
class RateTrial:
    """A plan that was run with so many requests in flight. `lanes`: see `distribute`."""

    kind: str
    in_flight: int
    lanes: int
    plan: Plan
    simulated_ns: int | None = None  # by what is known of the runtime; the plan's own `rate` knows less
    runs_ns: list[float] = field(default_factory=list)  # periods: of the first runs, then of the finals
    fitted: bool = False  # by such a run the simulation knows the machine: it says nothing new of it
    finals: int = 0  # how many of these

    @property
    def measured_ns(self) -> float:
        """The median of the finals, where it was in them."""
        return statistics.median(self.runs_ns[-self.finals :] if self.finals else self.runs_ns)

    @property
    def per_second(self) -> float:
        return 1e9 / self.measured_ns

    @property
    def devices(self) -> list[str]:
        copies = self.plan.rate.copies if self.plan.rate else []
        return sorted({d for c in copies for d in c.placement.values()})

    def __repr__(self) -> str:
        lanes = f", {self.lanes} at a time on a GPU" if self.lanes else ""
        said = f"{self.simulated_ns / 1e6:.3f} ms" if self.simulated_ns else "nothing"
        return (f"{NAMES[self.kind]} on {' '.join(self.devices)}{lanes}: {self.per_second:.6g} requests per second with "
                f"{self.in_flight} in flight, one every {self.measured_ns / 1e6:.3f} ms, simulated {said}")  # fmt: skip


@dataclass
class TunedRate:
    """What `tune_rate` found: `best`, and all that was tried."""

    best: RateTrial
    trials: list[RateTrial]
    captured: Captured
    cluster: Cluster
    transport: str
    machine: Machine

    @property
    def plan(self) -> Plan:
        return self.best.plan

    @property
    def verdict(self) -> str:
        rest = [t for t in self.trials if t.kind != self.best.kind]
        line = repr(self.best)
        if rest:
            other = min(rest, key=lambda t: t.measured_ns)
            line += f"; {NAMES[other.kind]} gives {other.per_second:.6g}"
        return line

    def distribute(self, **options: Any) -> Any:
        """As `moirai.torch.distribute`, with the plan that was found and as many in flight as it was found for."""
        for name, value in (("transport", self.transport), ("in_flight", self.best.in_flight), ("lanes", self.best.lanes)):
            options.setdefault(name, value)
        if "workers" not in options:
            options.setdefault("cluster", self.cluster)
        return distribute(self.captured, self.plan, **options)

    def __repr__(self) -> str:
        return "\n".join([self.verdict, *(("* " if t is self.best else "  ") + repr(t) for t in self.trials)])


@dataclass(frozen=True)
class Stream:
    """What was measured of requests in flight: the mean time between two ends, and what each took of the caller's
    processor, all in all and (where they went one by one) inside `submit`."""

    period_ns: float
    used_ns: float
    submit_ns: float = 0.0


def slope(ends: Sequence[int]) -> float:
    """The mean time between two ends, by the centres of both halves: requests end in bursts, and what lies between the
    first and the last of them is off by up to one."""
    half = len(ends) // 2
    return (statistics.fmean(ends[-half:]) - statistics.fmean(ends[:half])) / (len(ends) - half)


def _python_ns() -> int:
    """Processor time of this process's Python threads. Others, such as OpenMP's, which turn while they wait for the next copy of a tensor, keep no request waiting:
    counted with them, the caller of one network took ten times as long for a request as there was between two of them."""
    used = 0
    for t in threading.enumerate():
        try:
            with open(f"/proc/self/task/{t.native_id}/schedstat") as f:
                used += int(f.read().split()[0])
        except (OSError, ValueError, IndexError):  # it has ended; or the kernel does not count
            used += 0 if t is not threading.current_thread() else time.thread_time_ns()
    return used


def period_of(run: Distributed, args: Any, kwargs: Any, n: int, seconds: float) -> Stream:
    """n requests in flight all the time; the first 2n + 2 do not count, nor do the last n. With several copies n is 1, or what `run` has: slots are
    their business, and results that wait for their order must not hold the next ones up."""
    return _one_by_one(run, args, kwargs, seconds) if n == 1 else _several(run, args, kwargs, n, seconds)


def _one_by_one(run: Distributed, args: Any, kwargs: Any, seconds: float) -> Stream:
    ends: list[int] = []
    inside: list[int] = []
    limit, began = time.monotonic() + seconds, _python_ns()
    while time.monotonic() < limit or len(ends) < 16:
        begin = time.monotonic_ns()
        future = run.submit(*args, **kwargs)
        inside.append(time.monotonic_ns() - begin)
        future.result(120)
        ends.append(time.monotonic_ns())
    return Stream(slope(ends[4:]), (_python_ns() - began) / len(ends), statistics.median(inside))


def _several(run: Distributed, args: Any, kwargs: Any, n: int, seconds: float) -> Stream:
    place_free, ends, futures, requests = threading.Semaphore(n), [], [], run.requests()

    def ended(*_: Any) -> None:
        ends.append(time.monotonic_ns())

    # Futures end in their order, so that those of fast copies wait for slow ones: what counts is when requests themselves end.
    flights = isinstance(requests, Flights)
    if flights:
        before, requests.watch = requests.watch, ended
    limit, began = time.monotonic() + seconds, _python_ns()
    while time.monotonic() < limit or len(ends) < _FEWEST * n + 12:
        if n != run.in_flight:
            place_free.acquire()
        future = run.submit(*args, **kwargs)
        future.add_done_callback(lambda _: place_free.release())
        if not flights:
            future.add_done_callback(ended)
        futures.append(future)
        if len(futures) > 4096:
            futures = [f for f in futures if not f.done()]
    for f in futures:
        f.result(120)
    if flights:
        requests.watch = before
    return Stream(slope(sorted(ends)[2 * n + 2 : -n]), (_python_ns() - began) / len(ends))


class RateTuner:
    """Plans and runs of one captured and profiled network. `get` returns workers that are alive; `look` is called with what was loaded, before it
    is measured. What fails is told to `say` and left out."""

    def __init__(self, captured: Captured, args: Any, kwargs: Any, get: Callable[[], Workers], cluster: Cluster, o: Mapping[str, Any],
                 look: Callable[[Distributed, Plan], None] | None = None) -> None:  # fmt: skip
        self.captured, self.args, self.kwargs, self.get, self.cluster, self.o, self.look = captured, args, kwargs, get, cluster, o, look
        self.shared = get().kind == "cuda"
        self.machine = Machine(shared=self.shared)
        self.known: set[tuple[str, int, int]] = set()  # kinds, in flight, lanes by which the machine is known
        self.caller_ns = float("inf")  # that a request takes of the caller at most: it has one at a time, so no period is shorter
        self.meet = meetings(get(), transport=o["transport"], cache=o["cache"]) if self.shared else {}
        usual = {"segment_us": statistics.median(self.meet.values()) / 1000} if self.meet else {}
        self.problem = Problem(captured.graph, cluster, **{"congestion": "device", **usual, **o["problem"]})
        self.trials: list[RateTrial] = []
        self.failed: list[str] = []

    # ---- plans

    def _plan(self, wish: tuple[str, int]) -> Plan | None:
        kind, n = wish
        try:
            found = place(self.problem, objective="rate", in_flight=n, kind=None if kind == "any" else kind, gap=0.001,
                          **{k: self.o[k] for k in ("time_limit", "threads", "seed", "copies")})  # fmt: skip
        except Error as error:
            self.o["say"](f"{NAMES[kind]}, {n} in flight: {error}")
            return None
        return expect(self.captured, found, self.meet, False) if self.meet else found

    def plans(self, numbers: Sequence[int]) -> dict[tuple[str, int], Plan]:
        """By kind and number in flight. That of one request is for any number; one more by copies, two on each device,
        is what the machine is measured by."""
        twice = min(2 * len(self.cluster.devices), MOST_SLOTS)
        wishes = [("replicas", n) for n in sorted({*numbers, twice}, key=lambda n: (n != twice, n)) if n > 1]
        wishes += [("latency", 1)] + [(kind, n) for kind in ("stages", "any") for n in numbers if n > 1 or kind == "any"]
        with ThreadPoolExecutor(self.o["jobs"]) as pool:
            found = dict(zip(wishes, pool.map(self._plan, wishes)))
        if one := found.pop(("latency", 1), None):
            found.update({("latency", n): one for n in numbers})
        order = {kind: i for i, kind in enumerate(KINDS)}
        return {w: p for w, p in sorted(found.items(), key=lambda x: order[x[0][0]]) if p is not None}

    @staticmethod
    def loads(plans: Mapping[tuple[str, int], Plan]) -> list[list[tuple[str, int]]]:
        """What one load serves: equal plans of one copy with any number in flight; others are loaded each for itself."""
        groups: dict[Any, list[tuple[str, int]]] = {}
        for wish, plan in plans.items():
            copies = plan.rate.copies if plan.rate else []
            places = tuple(tuple(sorted(c.placement.items())) for c in copies)
            key = places if len(copies) < 2 else (places, tuple(c.slots for c in copies), wish[1])
            groups.setdefault(key, []).append(wish)
        return list(groups.values())

    # ---- runs

    def played(self, run: Distributed) -> list[Played]:
        """Every copy alone."""
        found = []
        for c, load in enumerate(run._loads):
            timeline = run.measure(*self.args, warmup=2, runs=self.o["alone"], copy=c, **self.kwargs).timeline
            found.append(of_program(load.program, timeline))
        return found

    def simulated(self, played: list[Played], plan: Plan, n: int, lanes: int, machine: Machine | None = None) -> int | None:
        places = places_of(plan, n) if len(played) > 1 else None
        counts, shares = (places.counts, places.shares) if places else ([n], None)
        return simulate(played, counts, shares, n, lanes, machine or self.machine)

    def way(self, run: Distributed, played: list[Played]) -> dict[str, float]:
        """What is between two requests, by one at a time of the first copy: inside `submit`, in the caller afterwards,
        and the rest of what passes beside the devices' work. The calmest of a few windows: the first requests after a load once took four times
        as long as those that followed, and all that is simulated hangs on it."""
        windows = (period_of(run, self.args, self.kwargs, 1, self.o["window"] / _WINDOWS) for _ in range(_WINDOWS))
        one = min(windows, key=lambda stream: stream.period_ns)
        used = min(one.used_ns, one.period_ns, self.caller_ns)
        serial = min(one.submit_ns, used)
        return {"serial_ns": serial, "finish_ns": used - serial, "delay_ns": one.period_ns - used - alone(played[0])[0]}

    def know(self, run: Distributed, plan: Plan, played: list[Played]) -> None:
        """The machine, by copies that send nothing: what devices do to each other, and what requests that share one
        gain."""
        n, at_work = run.in_flight, len({k for c in played for k in c.items})
        ways = {"slower": int(self.shared)} if at_work > 1 else {}
        if self.shared:
            ways["gain"] = 0
        found = {}
        for name, run.lanes in ways.items():
            found[name] = period_of(run, self.args, self.kwargs, n, _LONGER * self.o["window"])
        self.caller_ns = min((stream.period_ns for stream in found.values()), default=self.caller_ns)
        m = settled(self.machine, devices=at_work)
        m = settled(m, finish_ns=min(m.finish_ns, self.caller_ns - m.serial_ns))
        for name, lanes in ways.items():
            for _ in range(4):
                said = self.simulated(played, plan, n, lanes, m)
                off = found[name].period_ns / said if said else 1.0
                m = settled(m, **{name: getattr(m, name) * (off if name == "slower" else 1 / off)})
        self.machine = m
        self.known |= {("replicas", n, lanes) for lanes in ways.values()}

    def know_crowd(self, plan: Plan, n: int, options: Mapping[str, Any]) -> None:
        """What four requests gain that share a device, by twice as many of the same copies; as two do where there is no
        room for them."""
        try:
            with distribute(self.captured, plan, workers=self.get(), in_flight=2 * n, **options) as run:
                assert isinstance(run, Distributed)
                played = self.played(run)
                took = period_of(run, self.args, self.kwargs, 2 * n, _LONGER * self.o["window"]).period_ns
        except Error as error:
            self.o["say"](f"{2 * n} in flight, to know what more of them gain: {error}")
            return
        for _ in range(4):
            m = self.machine
            said = self.simulated(played, plan, 2 * n, 0)
            self.machine = settled(m, crowd=(m.crowd or m.gain) * (said / took if said else 1.0))

    def lanes_of(self, plan: Plan, n: int, run: Distributed) -> list[int]:
        if not self.shared or n == 1:
            return [0]
        places = places_of(plan, n)
        each: dict[int, int] = {}
        for c in places.copy_of:
            for k in run._loads[c].ranks:
                each[k] = each.get(k, 0) + 1
        return [lanes for lanes in _LANES if lanes < max(each.values())]

    def load(self, group: list[tuple[str, int]], plans: Mapping[tuple[str, int], Plan], numbers: Sequence[int]) -> None:
        plan, most = plans[group[0]], max(n for _, n in group)
        options = {"transport": self.o["transport"], "cache": self.o["cache"], "stall_s": self.o["stall_s"]}
        lanes = 1 if self.o["transport"] == "host" else 0
        measures = group[0][0] == "replicas" and not self.known and self.o["transport"] != "host"
        with distribute(self.captured, plan, workers=self.get(), in_flight=most, lanes=lanes, **options) as run:
            assert isinstance(run, Distributed)
            if self.look:
                self.look(run, plan)
            played = self.played(run)
            self.machine = settled(self.machine, **self.way(run, played))
            if measures:
                self.know(run, plan, played)
            ways = [(n, lane) for n in sorted({n for _, n in group if n in numbers}) for lane in ([1] if lanes else self.lanes_of(plan, n, run))]
            runs: dict[Any, list[float]] = {way: [] for way in ways}
            for _ in range(self.o["runs"]):  # in turns: what changes with time changes for all
                for n, run.lanes in ways:
                    runs[n, run.lanes].append(period_of(run, self.args, self.kwargs, n, self.o["window"]).period_ns)
            for n, lane in ways:
                said = self.simulated(played, plan, n, lane)
                fitted = n == 1 or (group[0][0], n, lane) in self.known
                same = [RateTrial(kind, n, lane, plans[kind, n], said, list(runs[n, lane]), fitted) for kind, m in group if m == n]
                self.trials += same
                self.o["say"](repr(same[0]) + "".join(f"; {NAMES[t.kind]} is the same" for t in same[1:]))
        if measures:
            if self.shared and max(numbers) > 2 and 2 * most <= MOST_SLOTS:
                self.know_crowd(plan, most, options)
            self.o["say"](f"the machine: {self.machine}")

    def run(self, numbers: Sequence[int], kept: Callable[[], None] = lambda: None) -> None:
        plans = self.plans(numbers)
        for group in self.loads(plans):
            try:
                self.load(group, plans, numbers)
            except Error as error:  # others are tried, with new ranks if there are any
                self.failed.append(f"{NAMES[group[0][0]]}, {group[0][1]} in flight: {error}")
                self.o["say"](self.failed[-1])
            kept()

    def finals(self) -> RateTrial:
        """The fastest few in turns: the fastest of many runs was lucky."""
        ranked = sorted(self.trials, key=lambda t: t.measured_ns)[:_FINALISTS]
        for _ in range(self.o["passes"] if len(ranked) > 1 else 0):
            for t in ranked:
                with distribute(self.captured, t.plan, workers=self.get(), in_flight=t.in_flight, lanes=t.lanes,
                                transport=self.o["transport"], cache=self.o["cache"]) as run:  # fmt: skip
                    t.runs_ns.append(period_of(run, self.args, self.kwargs, t.in_flight, self.o["window"]).period_ns)
                    t.finals += 1
        return min(ranked, key=lambda t: t.measured_ns)


def tune_rate(
    module: torch.nn.Module | Captured,
    args: Iterable[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    in_flight: int = 8,
    cluster: Cluster | str | Mapping[str, Any] | None = None,
    workers: Workers | None = None,
    probed: Cluster | None = None,
    fuse: str = "aten",
    transport: str = "auto",
    time_limit: float = 5,
    threads: int = 0,
    seed: int = 1,
    copies: int = 0,
    runs: int = 3,
    window: float = 1.0,
    passes: int = 3,
    cache: str | os.PathLike[str] | None | bool = True,
    problem: Mapping[str, Any] | None = None,
    name: str | None = None,
    say: Callable[[str], None] | None = None,
) -> TunedRate:
    """The plan that served the most requests per second with `in_flight` of them under way, of those that were tried: a copy on each device, the
    plan of one request, a row of stages, and what the search finds (`time_limit` seconds each, at most `copies` of the network).

    Each is run `runs` times for `window` seconds, on GPUs with several numbers of `lanes`; the fastest few are loaded again and run in turns,
    `passes` times, and their medians decide. Links are probed and operators profiled before, and the simulated rates are those of rates.py.
    `module` may have been captured already. `cluster` starts processes and ends them, `workers` that are there go on, `probed` is what `probe` has
    returned for them. Everything else is as in `tune`.
    """
    if (cluster is None) == (workers is None):
        raise UsageError("either cluster or workers says where to run")
    if in_flight < 1:
        raise UsageError(f"in_flight {in_flight}: expected 1 or more")
    if workers is None:
        with Workers(cluster, keep_weights=True) as started:  # type: ignore[arg-type]
            return tune_rate(module, args, kwargs, in_flight=in_flight, workers=started, probed=probed, fuse=fuse,
                             transport=transport, time_limit=time_limit, threads=threads, seed=seed, copies=copies, runs=runs, window=window,
                             passes=passes, cache=cache, problem=problem, name=name, say=say)  # fmt: skip
    given, named, ranks = tuple(args), dict(kwargs or {}), workers
    way = transport if transport != "auto" else "ipc" if ranks.kind == "cuda" else "gloo"
    captured = module if isinstance(module, Captured) else capture(module, given, named, name=name, fuse=fuse, cache=cache)
    where = probed or probe(ranks, transport=way)
    profile(captured, workers=ranks, cache=cache, busy=False)  # rates know by themselves how busy devices are
    o = {"transport": way, "time_limit": time_limit, "threads": threads, "seed": seed, "copies": copies, "runs": runs, "window": window,
         "passes": passes, "cache": cache, "problem": dict(problem or {}), "jobs": 1, "alone": 10, "stall_s": 120,
         "say": say or (lambda line: None)}  # fmt: skip
    tuner = RateTuner(captured, given, named, lambda: ranks, where, o)
    tuner.run([in_flight])
    if not tuner.trials:
        raise Error(f"tune_rate: no plan could be run: {tuner.failed[0] if tuner.failed else 'none fits'}")
    return TunedRate(tuner.finals(), tuner.trials, captured, where, way, tuner.machine)
