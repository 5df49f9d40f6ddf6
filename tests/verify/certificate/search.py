"""Search trees, walked again."""

from collections import defaultdict
from itertools import combinations

from .files import demand


class Node:
    """What is known: devices left to each operator, heads and tails by (operator, device) and of transfers, tasks in order."""

    def __init__(self, may, head, tail, arcs):
        self.may, self.head, self.tail, self.arcs = [set(x) for x in may], head.copy(), tail.copy(), arcs

    def part(self, arc=None, i=None, k=None):
        """A copy where one task more goes before another one, or operator i is on k."""
        part = Node(self.may, self.head, self.tail, self.arcs + [arc] if arc else self.arcs)
        if i is not None:
            part.may[i] = {k}
        return part

    def cell(self, task):
        """Where a task's head and tail are."""
        return (task, min(self.may[task])) if type(task) is int else task

    def room(self):
        """What is left; it gets less and never more."""
        return sum(map(len, self.may)) - sum(self.head.values()) - sum(self.tail.values())


class Search:
    """A tree whose open nodes are closed by rules (docs/certificate.md, "Searches")."""

    def __init__(self, b, a, z, obj):
        self.b, self.a, self.z, self.T, self.tree, self.at = b, a, z, obj["length_ns"], obj["tree"], 0

    def bound(self):
        may = [self.b.allowed(i, self.a, self.z) for i in range(self.b.n)]
        self.walk(Node(may, defaultdict(int), defaultdict(int), []))
        demand(self.at == len(self.tree), "a search goes on behind its end")
        return self.T + 1

    def transfer(self, i, o, j, k):
        """Operators are tasks by number, transfers as (producer, output, reader or, with flow tensor, device)."""
        return (i, o, j if self.b.p.by_edge else k)

    def task(self, number):
        u, b = number - self.b.n, self.b
        if u < 0:
            return number if number >= 0 else None
        e, to = (u, None) if b.p.by_edge else divmod(u, b.K)
        return self.transfer(*b.edges[e][:3], to) if e < len(b.edges) else None

    def walk(self, node):
        """None: a node that is closed already."""
        need = 3 if self.tree[self.at : self.at + 1] == [-2] else 1
        number = self.tree[self.at : self.at + need]
        demand(len(number) == need, "a search ends before its time")
        self.at += need
        if node and self.closes(node):
            node = None
        if number[0] == -1:
            demand(not node, "a search leaves a case open")
        elif number[0] == -2:
            u, v = map(self.task, number[1:])
            demand(not node or (None not in (u, v) and u != v and self.machines(node, u) & self.machines(node, v)),
                   "tasks in order that need not be")  # fmt: skip
            for arc in ((u, v), (v, u)):
                self.walk(node and node.part(arc=arc))
        else:
            i = number[0]
            demand(i < self.b.n, "a search divides by no operator")
            for k in self.b.allowed(i, self.a, self.z):
                self.walk(node.part(i=i, k=k) if node and k in node.may[i] else None)

    def row(self, node, task):
        """Head, time and tail of a task that takes place."""
        at = node.cell(task)
        return node.head[at], self.b.ns[task][at[1]] if type(task) is int else self.sure[task][0], node.tail[at]

    def machines(self, node, task):
        """What the task certainly holds."""
        b, may = self.b, node.may
        if type(task) is int:
            return {k for k in may[task] if len(may[task]) == 1 and b.ns[task][k] > 0}
        if task not in self.sure or self.sure[task][0] <= 0:
            return set()
        _, ends = self.sure[task]
        if b.p.congestion == "port":
            return {b.K * (1 + side) + k for side, k in enumerate(ends) if k is not None}
        return set(b.p.held(*ends)) if None not in ends else set()

    def find_transfers(self, node):
        b, may = self.b, node.may
        self.sure = {}
        for i, o, j, t in b.edges:
            if may[i] & may[j] or (not b.p.by_edge and len(may[j]) > 1):
                continue
            task = self.transfer(i, o, j, min(may[j]))
            least = min(t[k][l] for k in may[i] for l in may[j])
            self.sure[task] = (least, tuple(min(x) if len(x) == 1 else None for x in (may[i], may[j])))
            for path, end in ((node.head, i), (node.tail, j)):
                path[task] = max(path[task], min(path[end, k] + b.ns[end][k] for k in may[end]))
            if node.head[task] + least + node.tail[task] > self.T:
                return False
        return True

    def follow_edges(self, node, forwards):
        """Heads by the edges into operators or, backwards, tails by those out of them."""
        b, path = self.b, node.head if forwards else node.tail
        for i, o, j, t in b.edges if forwards else b.back:
            done = [(k, path[i, k] + b.ns[i][k]) for k in node.may[i]]
            ends = (i, o, j) if forwards else (j, o, i)
            for l in node.may[j]:
                reached = [y if k == l else max(y, path.get(self.transfer(*ends, l if forwards else k), 0)) + t[k][l] for k, y in done]
                path[j, l] = max(path[j, l], min(reached))

    def drop_late(self, node):
        for i, devices in enumerate(node.may):
            devices -= {k for k in devices if node.head[i, k] + self.b.ns[i][k] + node.tail[i, k] > self.T}
        return all(node.may)

    def in_order(self, node, u, v):
        p, q, x, y = self.row(node, u), self.row(node, v), node.cell(u), node.cell(v)
        node.head[y], node.tail[x] = max(q[0], p[0] + p[1]), max(p[2], q[1] + q[2])

    def asked(self, jobs):
        return max((h + sum(x[1] for x in jobs if x[0] >= h and x[2] >= q) + q
                    for h in {x[0] for x in jobs} for q in {x[2] for x in jobs}
                    if any(x[0] >= h and x[2] >= q for x in jobs)), default=0)  # fmt: skip

    def visit_machines(self, node):
        b, may, jobs = self.b, node.may, {}
        for task in [*range(b.n), *self.sure]:
            for machine in self.machines(node, task):
                jobs.setdefault(machine, []).append(task)
        for machine, tasks in sorted(jobs.items()):
            for u, v in combinations(tasks, 2):
                p, q = self.row(node, u), self.row(node, v)
                first, second = p[0] + p[1] + q[1] + q[2] <= self.T, q[0] + q[1] + p[1] + p[2] <= self.T
                if not first and not second:
                    return False
                if first != second:
                    self.in_order(node, *((u, v) if first else (v, u)))
            rows = [self.row(node, u) for u in tasks]
            if self.asked(rows) > self.T:
                return False
            for i in range(b.n if machine < b.K else 0):
                if machine in may[i] and len(may[i]) > 1 and b.ns[i][machine] > 0:
                    row = (node.head[i, machine], b.ns[i][machine], node.tail[i, machine])
                    if self.asked([*rows, row]) > self.T:
                        may[i].discard(machine)
        return True

    def closes(self, node):
        for _ in range(1000):
            before = node.room()
            self.follow_edges(node, True)
            self.follow_edges(node, False)
            if not self.drop_late(node) or not self.find_transfers(node):
                return True
            for u, v in node.arcs:
                self.in_order(node, u, v)
            if not self.visit_machines(node):
                return True
            if node.room() == before:
                return False
        return False
