"""The rate of a plan with N requests in flight, as this runtime has it: what docs/rate.md's simulator does not know.

That one has a device work at one operator at a time, the oldest request's first, and the next request enters at the
moment when one ends. Here a device works at whole segments, as the program has them (program.py), and

- on a GPU requests share it evenly, as many as there are lanes (slots_cuda.py): two of them get on `gain` times as fast,
  all together, as one alone, four and more `crowd` times (kernels that leave a part half idle gain by every further one,
  others do not); in a lane they follow each other. A processor takes the oldest request's segment;
- devices that are parts of one slow each other down: by `slower` at a time at which all of them work, by less where some
  wait. What segments take was measured beside others already, as far as these worked at the same time: that part is
  taken out first (`_undisturbed`);
- between the end of a request and the begin of the next in its slot there are the caller and the ranks' processes: the
  caller has one request at a time, for `finish_ns` when it ends and for `serial_ns` before it begins, and beside that
  there are `delay_ns` until it does.

`gain`, `crowd` and `slower` are measured by runs of a copy of the network on each device (tune_rate.py); what segments take, and the
way between two requests, by runs of the plan itself with one request at a time: a graph of many kernels takes longer
to be launched. An event-driven play of some dozens of requests: O(requests * segments * log) and, where requests share a
device, times as many as do; where devices slow each other down, times as many as there are.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import Any, Mapping, Sequence

from .flight import Places
from .merging import Item
from .program import Program

_MOST_SEGMENTS = 10_000  # played through, unless that is too few requests


@dataclass(frozen=True)
class Machine:
    """What is known of the machine, for one network. `shared`: GPUs, whose lanes share them. `slower` is with so many `devices` at work."""

    shared: bool = False
    devices: int = 0  # 0: those of the plan
    gain: float = 1.0
    crowd: float = 0.0  # 0: as `gain`
    slower: float = 1.0
    serial_ns: int = 0
    finish_ns: int = 0
    delay_ns: int = 0

    def together(self, m: int) -> float:
        """How many times as fast m requests get on that share a device."""
        if m < 2:
            return 1.0
        return self.gain + ((self.crowd or self.gain) - self.gain) * min(m - 2, 2) / 2


@dataclass(frozen=True)
class Played:
    """One copy of the network: segments by device, what passes between two of them, and messages."""

    items: Mapping[int, Sequence[Item]]
    meeting_ns: Mapping[int, Sequence[int]]
    took_ns: Sequence[int]
    target: Sequence[int]

    @property
    def n_segments(self) -> int:
        return sum(map(len, self.items.values()))


def of_program(program: Program, timeline: Mapping[str, Any] | None = None) -> Played:
    """With the times of a run alone, where there is one, else as planned."""
    run = {d["name"]: d["segments"] for d in timeline["devices"]} if timeline else {}
    items, meets = {}, {}
    for r in program.ranks:
        if not r.segments and not r.outputs:
            continue
        took = [g["median_ns"] for g in run[r.device]] if r.device in run else [g.work_ns for g in r.segments]
        held = [g["held_ns"] for g in run[r.device]] if r.device in run else [0] * len(r.segments)
        items[r.rank] = [Item(max(ns, 1), [w.index for w in g.waits], [s.index for s in g.sends])
                         for ns, g in zip(took, r.segments)]  # fmt: skip
        meets[r.rank] = held
    sends = program.transfers
    return Played(items, meets, [max(t.finish_ns - t.start_ns, 0) for t in sends], [t.target for t in sends])


@dataclass
class _Flight:
    """A request on its way."""

    slot: int
    copy: Played
    number: int
    there: dict[int, set[int]] = field(default_factory=dict)  # device -> messages that have come
    at: dict[int, int] = field(default_factory=dict)  # device -> segments that are done
    passed: dict[int, bool] = field(default_factory=dict)  # device -> the meeting behind them is over, its lane is free
    left: int = 0  # devices that are not done


class _Device:
    """Who computes, and how much of it is left. On a processor that is one request at a time."""

    def __init__(self, machine: Machine) -> None:
        self.shared, self.together, self.slow = machine.shared, machine.together, 1.0
        self.running: dict[int, float] = {}  # request -> ns that it would take alone
        self.ready: list[int] = []  # a processor's: those that wait for it
        self.since = 0.0
        self.version = 0

    def speed(self) -> float:
        """Of each that runs."""
        m = len(self.running)
        return self.together(m) / (max(m, 1) * self.slow)

    def advance(self, now: float) -> None:
        done = (now - self.since) * self.speed()
        for number in self.running:
            self.running[number] -= done
        self.since = now

    def add(self, number: int, work: float, now: float) -> None:
        self.advance(now)
        self.running[number] = work

    def next_end(self) -> tuple[float, int] | None:
        if not self.running:
            return None
        number = min(self.running, key=lambda n: (self.running[n], n))
        return self.since + max(self.running[number], 0.0) / self.speed(), number


class _Play:
    def __init__(self, copies: Sequence[Played], places: Places, in_flight: int, lanes: int, machine: Machine) -> None:
        self.copies, self.places, self.in_flight, self.lanes, self.m = copies, places, in_flight, lanes, machine
        devices = sorted({k for c in copies for k in c.items})
        self.device = {k: _Device(machine) for k in devices}
        self.apart = machine.slower == 1 or len(devices) == 1  # devices do nothing to each other
        self.lane: dict[int, list[list[int]]] = {k: [] for k in devices}  # requests of a lane, the first is at work
        self.launched = dict.fromkeys(devices, 0)
        self.flights: dict[int, _Flight] = {}
        self.events: list[tuple[float, int, Any]] = []
        self.count = self.order = self.open = 0
        self.host_free = 0.0
        self.ends: list[float] = []
        self.worked: list[tuple[int, int, float, float]] = []  # device, segment, begin, end, where somebody looks
        self.looked_at = False

    def at(self, when: float, what: Any) -> None:
        self.order += 1
        heapq.heappush(self.events, (when, self.order, what))

    # ---- requests come and go

    def enter(self, now: float) -> None:
        """As many as may; each is the caller's for a while first."""
        while self.open < self.in_flight and self.places.free:
            slot = self.places.take()
            self.open += 1
            self.host_free = max(self.host_free, now) + self.m.serial_ns
            flight = _Flight(slot, self.copies[self.places.copy_of[slot]], self.count)
            self.count += 1
            self.at(self.host_free + self.m.delay_ns, ("begin", flight))

    def begin(self, f: _Flight, now: float) -> None:
        self.flights[f.number] = f
        f.left = len(f.copy.items)
        f.there = {k: set() for k in f.copy.items}
        f.at, f.passed = dict.fromkeys(f.copy.items, 0), dict.fromkeys(f.copy.items, True)
        for k in f.copy.items:
            if self.lanes and self.m.shared:
                lane = self.lane[k]
                nth = self.launched[k] % self.lanes
                self.launched[k] += 1
                while len(lane) <= nth:
                    lane.append([])
                lane[nth].append(f.number)
            self.go_on(f, k, now)

    def first(self, f: _Flight, k: int) -> bool:
        """Whether it is its lane's turn."""
        return not (self.lanes and self.m.shared) or any(q and q[0] == f.number for q in self.lane[k])

    def go_on(self, f: _Flight, k: int, now: float) -> None:
        """The next segment on a device, if it can begin."""
        items, i = f.copy.items[k], f.at[k]
        if not f.passed[k] or not self.first(f, k):
            return
        if i == len(items):
            self.leave(f, k, now)
        elif f.there[k].issuperset(items[i].waits):
            f.passed[k] = False
            device = self.device[k]
            if device.shared or not device.running:
                device.add(f.number, items[i].work_ns, now)
                self.plan_end(k, now)
                if len(device.running) == 1:
                    self.disturb(now)
            else:
                heapq.heappush(device.ready, f.number)

    def plan_end(self, k: int, now: float) -> None:
        device = self.device[k]
        device.version += 1
        found = device.next_end()
        if found:
            self.at(max(found[0], now), ("end", k, device.version, found[1]))

    def disturb(self, now: float) -> None:
        """A device began to work, or stopped: the others become slower, or faster."""
        if self.apart:
            return
        busy = sum(bool(d.running) for d in self.device.values())
        for k, d in self.device.items():
            slow = 1 + (self.m.slower - 1) * max(busy - 1, 0) / ((self.m.devices or len(self.device)) - 1)
            if d.running and slow != d.slow:
                d.advance(now)
                d.slow = slow
                self.plan_end(k, now)

    def end(self, k: int, number: int, now: float) -> None:
        device, f = self.device[k], self.flights[number]
        device.advance(now)
        del device.running[number]
        if device.ready:
            other = heapq.heappop(device.ready)
            g = self.flights[other]
            device.add(other, g.copy.items[k][g.at[k]].work_ns, now)
        self.plan_end(k, now)
        if not device.running:
            self.disturb(now)
        i = f.at[k]
        if self.looked_at:
            self.worked.append((k, i, now - f.copy.items[k][i].work_ns, now))
        f.at[k] = i + 1
        for m in f.copy.items[k][i].sends:
            self.at(now + f.copy.took_ns[m], ("arrive", f, m))
        self.at(now + f.copy.meeting_ns[k][i], ("pass", f, k))

    def leave(self, f: _Flight, k: int, now: float) -> None:
        """All of a request is done on a device: its lane goes on."""
        f.passed[k] = False
        f.left -= 1
        for queue in self.lane[k]:
            if queue and queue[0] == f.number:
                queue.pop(0)
                if queue:
                    self.go_on(self.flights[queue[0]], k, now)
                break
        if not f.left:
            del self.flights[f.number]
            self.ends.append(now)
            self.host_free = max(self.host_free, now) + self.m.finish_ns
            self.at(self.host_free, ("free", f))

    def free(self, f: _Flight, now: float) -> None:
        self.places.give(f.slot)
        self.open -= 1
        self.enter(now)

    # ----

    def run(self, requests: int) -> bool:
        """Until so many have ended; False: they wait for each other."""
        self.enter(0.0)
        while self.events and len(self.ends) < requests:
            now, _, what = heapq.heappop(self.events)
            if what[0] == "begin":
                self.begin(what[1], now)
            elif what[0] == "end":
                if self.device[what[1]].version == what[2]:
                    self.end(what[1], what[3], now)
            elif what[0] == "free":
                self.free(what[1], now)
            elif what[0] == "arrive":
                f, m = what[1:]
                f.there[f.copy.target[m]].add(m)
                self.go_on(f, f.copy.target[m], now)
            else:
                f, k = what[1:]
                f.passed[k] = True
                self.go_on(f, k, now)
        return len(self.ends) >= requests

    def period(self) -> float:
        """Over the second half, since the first one has what is not steady yet: as many at a time as are in flight, which may end together."""
        turns = max(len(self.ends) // (2 * self.in_flight), 1)
        return (self.ends[-1] - self.ends[-1 - turns * self.in_flight]) / (turns * self.in_flight)


def alone(copy: Played) -> tuple[float, list[tuple[int, int, float, float]]]:
    """One request of a copy, without the caller: what it takes, and when each device worked."""
    play = _Play([copy], Places([1]), 1, 0, Machine())
    play.looked_at = True
    play.run(1)
    return (play.ends[0] if play.ends else 0.0), play.worked


def _undisturbed(copy: Played, machine: Machine) -> Played:
    """Segments as they would be if no other device worked meanwhile: they were measured with one request, of which
    other devices had parts at the same time."""
    devices = sorted(copy.items)
    if machine.slower == 1 or len(devices) == 1:
        return copy
    others = (machine.devices or len(devices)) - 1
    worked = alone(copy)[1]
    begins = {k: [0.0] for k in devices}  # moments, and how long a device has worked until then
    until = {k: [0.0] for k in devices}
    for k, _, begin, end in worked:
        begins[k] += [begin, end]
        until[k] += [until[k][-1], until[k][-1] + end - begin]

    def busy(k: int, at: float) -> float:
        i = bisect_right(begins[k], at) - 1
        return until[k][i] + (at - begins[k][i] if i % 2 else 0)

    items = {k: list(v) for k, v in copy.items.items()}
    for k, i, begin, end in worked:
        beside = sum(busy(j, end) - busy(j, begin) for j in devices if j != k) / others
        items[k][i] = replace(items[k][i], work_ns=max(round(end - begin - beside * (1 - 1 / machine.slower)), 1))
    return replace(copy, items=items)


def simulate(copies: Sequence[Played], counts: Sequence[int], shares: Sequence[float] | None, in_flight: int,
             lanes: int, machine: Machine) -> int | None:  # fmt: skip
    """The period in ns. `counts` are slots of the copies, with `shares` where these take turns by them (flight.Places).
    None: requests wait for each other in a circle."""
    each = max(c.n_segments for c in copies)
    requests = max(6 * in_flight + 8, min(_MOST_SEGMENTS // max(each, 1), 400))
    places = Places(list(counts), list(shares) if shares else None, in_flight)
    play = _Play([_undisturbed(c, machine) for c in copies], places, in_flight, lanes, machine)
    return round(play.period()) if play.run(requests) else None


def settled(machine: Machine, **known: Any) -> Machine:
    """With numbers that can be: two requests that share a device get on at most twice as fast as one, four at most four times, no gain
    is below 1/2; devices make each other slower, if anything; no time is below 0."""
    found = replace(machine, **known)
    times = {k: max(int(getattr(found, k)), 0) for k in ("serial_ns", "finish_ns", "delay_ns")}
    crowd = min(max(found.crowd, 0.5), 4.0) if found.crowd else 0.0
    return replace(found, gain=min(max(found.gain, 0.5), 2.0), crowd=crowd, slower=min(max(found.slower, 1.0), 4.0), **times)
