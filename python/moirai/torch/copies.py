"""Plans for many requests have one copy of the network or several that work at the same time (docs/rate.md): a plan for
each, and how many requests each has in flight."""

from __future__ import annotations

import math

from ..plan import Plan
from .flight import Places


def plans_of(plan: Plan) -> list[Plan]:
    """A plan of one request for each copy; the first is the plan itself."""
    copies = plan.rate.copies if plan.rate else []
    others = [Plan.by_devices(plan.problem, c.placement) for c in copies[1:]]
    for p in others:
        p.meetings, p.ports = plan.meetings, plan.ports
    return [plan, *others]


def paces_of(plan: Plan, in_flight: int) -> list[float]:
    """Of each copy, requests that enter in a nanosecond of one request alone, as the plan's pace has it (docs/rate.md);
    with another number of requests than the plan was made for, in proportion."""
    rate = plan.rate
    if not rate or not rate.pace:
        return [0.0] * len(rate.copies if rate else [plan])
    return [rate.pace * in_flight / rate.in_flight / max(p.makespan_ns, 1) for p in plans_of(plan)]


def places_of(plan: Plan, in_flight: int) -> Places:
    """Slots of the copies. With another number of requests than the plan was made for, they keep their proportions."""
    copies = plan.rate.copies if plan.rate else []
    if len(copies) < 2 or plan.rate is None:
        return Places([in_flight])
    slots = [c.slots for c in copies if c.slots]
    if len(slots) == len(copies):
        counts = [max(1, round(n * in_flight / plan.rate.in_flight)) for n in slots]
        return Places(counts, None, in_flight)
    # By shares: a slot more than its share, for turns that come close together.
    counts = [min(in_flight, math.ceil(c.share * in_flight) + 1) for c in copies]
    return Places(counts, [c.share for c in copies], in_flight)
