"""Which calls of a network are one kernel: operators of a plan, as the compiler will have them.

Inductor is run as far as its scheduler's fusion (inductor.py). Of every kernel we know the buffers that it writes and
reads, and of a buffer the call whose value it *holds*, if any. From that:

- Kernels that hand each other what is no call's value (statistics of a norm, copies for a layout) are one group.
- Values that one kernel writes are one group only if the later reads nothing from outside that the earlier does not.
  Inductor also fuses siblings; one operator of them would make readers of the first wait for inputs of the second.
- A call whose value no kernel writes belongs to whoever computes it on the way to its own values. Inductor repeats
  cheap calls in several kernels; ours are computed once: by the first of these groups, where the others come after it
  anyway, else by the group that makes all that the call reads, else by themselves.

So the result is right whatever Inductor says: every call is in exactly one group, and what is a kernel decides speed
alone. Groups that would wait for each other in a circle are taken apart. Where Inductor is not to be had, rules of our
own do: calls that are cheap join their only reader, or the call that makes all they read.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Iterable, Mapping, Sequence

from . import flops
from .ir import OP, Node

# What a kernel of a compiler takes in: elementwise calls, norms, reductions, copies.
CHEAP = set(
    "relu gelu silu sigmoid tanh hardswish hardsigmoid leaky_relu elu exp log neg abs sqrt rsqrt pow add sub mul div "
    "clamp where clone _to_copy contiguous reshape view batch_norm layer_norm rms_norm group_norm softmax log_softmax "
    "_softmax _log_softmax mean sum amax masked_fill maximum minimum upsample_nearest2d cos sin square".split()
)  # fmt: skip


@dataclass
class Calls:
    """The calls of a network in order, and what each reads of others, views aside."""

    order: list[str]
    reads: dict[str, set[str]]
    results: set[str]  # calls whose values the caller gets
    position: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.position = {c: i for i, c in enumerate(self.order)}

    def body(self, values: Iterable[str], stop: set[str]) -> tuple[set[str], set[str]]:
        """Calls that lead to these values from those in `stop`, and which of those they read."""
        own = set(values)
        calls: set[str] = set()
        reads: set[str] = set()
        todo = list(own)
        while todo:
            call = todo.pop()
            if call in calls:
                continue
            calls.add(call)
            for read in self.reads[call]:
                if read in stop and read not in own:
                    reads.add(read)
                else:
                    todo.append(read)
        return calls, reads


@dataclass
class Kernels:
    """What a scheduler fused: for each kernel its parts as (buffers written, buffers read), and whose value a buffer
    holds; None for a view of a value that was copied."""

    parts: list[list[tuple[list[str], set[str]]]]
    holds: dict[str, str | None]


def from_kernels(calls: Calls, kernels: Kernels) -> list[list[str]]:
    """Groups of all calls, each group and all of them in an order in which they can run."""
    seeds = [sorted(values, key=calls.position.__getitem__) for values in _written_together(kernels)]
    stop = {v for s in seeds for v in s} | calls.results
    groups = _split_siblings(calls, seeds, stop)
    _settle_repeated(calls, groups, stop)
    found = [sorted(calls.body(g, stop)[0], key=calls.position.__getitem__) for g in groups]
    return acyclic(calls, found)


def _written_together(kernels: Kernels) -> list[set[str]]:
    """Values of kernels that are one: parts of one kernel, and those that hand on what is no value."""
    parts = [(k, *p) for k, kernel in enumerate(kernels.parts) for p in kernel]
    writer = {b: i for i, (_, written, _) in enumerate(parts) for b in written}
    up = list(range(len(parts)))

    def find(i: int) -> int:
        while up[i] != i:
            up[i] = i = up[up[i]]
        return i

    for i, (kernel, _, read) in enumerate(parts):
        for b in sorted(read & writer.keys()):
            if parts[writer[b]][0] == kernel or b not in kernels.holds:
                up[find(writer[b])] = find(i)
    made: dict[int, set[str]] = defaultdict(set)
    for i, (_, written, _) in enumerate(parts):
        made[find(i)].update(v for b in written if (v := kernels.holds.get(b)) is not None)
    seen: set[str] = set()  # a value that several kernels write is the first one's
    found = []
    for values in made.values():
        found.append(values - seen)
        seen |= values
    return [v for v in found if v]


def _split_siblings(calls: Calls, seeds: list[list[str]], stop: set[str]) -> list[list[str]]:
    groups: list[list[str]] = []
    rest = sorted(stop - {v for s in seeds for v in s}, key=calls.position.__getitem__)
    for seed in [*seeds, *([v] for v in rest)]:
        waits: set[str] | None = None
        for value in seed:
            reads = calls.body([value], stop)[1]
            if waits is None or not reads - set(groups[-1]) <= waits:
                groups.append([])
                waits = reads
            groups[-1].append(value)
    return groups


def _settle_repeated(calls: Calls, groups: list[list[str]], stop: set[str]) -> None:
    """Calls that several groups would compute become a value of one."""
    while True:
        home = {v: k for k, g in enumerate(groups) for v in g}
        held = [calls.body(g, stop) for g in groups]
        where: dict[str, list[int]] = defaultdict(list)
        for k, (own, _) in enumerate(held):
            for call in own:
                where[call].append(k)
        repeated = {c for c, ks in where.items() if len(ks) > 1}
        readers: dict[str, set[str]] = defaultdict(set)
        for call in repeated:
            for read in calls.reads[call]:
                readers[read].add(call)
        # With the last of a chain written, those before it need not be.
        chosen = sorted((c for c in repeated if not readers[c]), key=calls.position.__getitem__)
        if not chosen:
            return
        past = _past([{home[r] for r in reads} for _, reads in held])
        for call in chosen:
            ks = where[call]
            first = [k for k in ks if all(k == j or k in past[j] for j in ks)]
            makers = {home[r] for r in calls.body([call], stop)[1]}
            stop.add(call)
            if first:
                groups[first[0]].append(call)
            elif len(makers) == 1:
                groups[makers.pop()].append(call)
            else:
                groups.append([call])


def _past(reads: Sequence[set[int]]) -> list[set[int]]:
    """All groups that each depends on, directly or not; circles are cut where they are met."""
    past: list[set[int] | None] = [None] * len(reads)
    for root in range(len(reads)):
        stack = [(root, iter(sorted(reads[root])))]
        open_now = {root}
        while stack and past[root] is None:
            k, rest = stack[-1]
            nxt = next((j for j in rest if past[j] is None and j not in open_now), None)
            if nxt is not None:
                open_now.add(nxt)
                stack.append((nxt, iter(sorted(reads[nxt]))))
                continue
            found: set[int] = set()
            for j in reads[k]:
                found |= {j} | (past[j] or set())
            past[k] = found
            stack.pop()
    return [p or set() for p in past]


def _in_order(needs: list[set[int]], rank: list[int]) -> list[int]:
    """As many as can run, by rank where there is a choice."""
    users: dict[int, list[int]] = defaultdict(list)
    for k, reads in enumerate(needs):
        for j in reads:
            users[j].append(k)
    left = [len(n) for n in needs]
    ready = [(rank[k], k) for k in range(len(needs)) if not left[k]]
    heapq.heapify(ready)
    order = []
    while ready:
        _, k = heapq.heappop(ready)
        order.append(k)
        for j in users[k]:
            left[j] -= 1
            if not left[j]:
                heapq.heappush(ready, (rank[j], j))
    return order


def acyclic(calls: Calls, groups: list[list[str]]) -> list[list[str]]:
    """The groups in an order in which they can run; those that wait in a circle, or between two, are taken apart."""
    while True:
        home = {c: k for k, g in enumerate(groups) for c in g}
        needs = [{home[r] for c in g for r in calls.reads[c]} - {k} for k, g in enumerate(groups)]
        rank = [calls.position[g[-1]] for g in groups]
        order = _in_order(needs, rank)
        if len(order) == len(groups):
            return [groups[k] for k in order]
        users: list[set[int]] = [set() for _ in groups]
        for k, reads in enumerate(needs):
            for j in reads:
                users[j].add(k)
        free = set(order) | set(_in_order(users, rank))
        groups = [part for k, g in enumerate(groups) for part in ([g] if k in free else [[c] for c in g])]


def by_rules(calls: Calls, nodes: Mapping[str, Node]) -> list[list[str]]:
    """Cheap calls join the group that makes all they read, if that is cheap, or one that nobody else reads."""
    group: dict[str, list[str]] = {c: [c] for c in calls.order}
    readers: dict[str, set[str]] = defaultdict(set)
    for call, reads in calls.reads.items():
        for read in reads:
            readers[read].add(call)

    def cheap(call: str) -> bool:
        return flops.base_name(nodes[call].target) in CHEAP

    for call in filter(cheap, calls.order):
        for read in sorted(filter(cheap, calls.reads[call]), key=calls.position.__getitem__):
            one, other = group[read], group[call]
            if one is other:
                continue
            outside = {r for c in one for r in readers[c]} - set(one)
            only = outside <= set(other) and not calls.results.intersection(one)
            alone = all(group[r] is one for r in calls.reads[call]) and len(other) == 1
            if only or alone:
                one.extend(other)
                group.update((c, one) for c in other)
    found = {id(g): sorted(g, key=calls.position.__getitem__) for g in group.values()}
    return acyclic(calls, list(found.values()))


def check(calls: Calls, groups: list[list[str]]) -> str:
    """What is wrong with groups; "" where every call is in one, and none waits for itself."""
    seen: set[str] = set()
    for group in groups:
        twice = seen.intersection(group)
        if twice:
            return f"'{sorted(twice)[0]}' is in two groups"
        early = [r for c in group for r in calls.reads[c] if r not in seen and r not in group]
        if early:
            return f"'{group[0]}' reads '{early[0]}', which comes later"
        seen.update(group)
    missing = [c for c in calls.order if c not in seen]
    return f"'{missing[0]}' is in no group" if missing else ""


def calls_of(nodes: Mapping[str, Node], base: Mapping[str, str], results: Iterable[str]) -> Calls:
    """`base` maps every value to what it is a view of."""
    order = [n for n, node in nodes.items() if node.kind == OP]
    reads = {n: {base[r] for r in nodes[n].refs() if nodes[base[r]].kind == OP} for n in order}
    return Calls(order, reads, {base[r] for r in results if nodes[base[r]].kind == OP})
