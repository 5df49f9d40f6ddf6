"""Search trees, walked again."""

from .files import demand


class Search:
    """A tree whose open nodes are closed by rules (docs/certificate.md, "Searches")."""

    def __init__(self, b, a, z, obj):
        self.b, self.a, self.z, self.T, self.tree, self.at = b, a, z, obj["length_ns"], obj["tree"], 0

    def bound(self):
        cells = [[0] * self.b.K for _ in range(self.b.n)]
        may = [set(self.b.allowed(i, self.a, self.z)) for i in range(self.b.n)]
        self.walk([may, cells, [list(x) for x in cells], {}, {}, []], False)
        demand(self.at == len(self.tree), "a search goes on behind its end")
        return self.T + 1

    def task(self, number):
        """Operators by number, transfers as (producer, output, reader or device)."""
        u, b = number - self.b.n, self.b
        if u < 0:
            return number if number >= 0 else None
        e, to = (u, None) if b.p.by_edge else divmod(u, b.K)
        return b.edges[e][:2] + (b.edges[e][2] if b.p.by_edge else to,) if e < len(b.edges) else None

    def walk(self, node, dead):
        need = 3 if self.tree[self.at : self.at + 1] == [-2] else 1
        number = self.tree[self.at : self.at + need]
        demand(len(number) == need, "a search ends before its time")
        self.at += need
        dead = dead or self.closes(node)
        if number[0] == -1:
            demand(dead, "a search leaves a case open")
        elif number[0] == -2:
            u, v = map(self.task, number[1:])
            demand(dead or (None not in (u, v) and u != v and self.machines(node, u) & self.machines(node, v)),
                   "tasks in order that need not be")  # fmt: skip
            for arc in ((u, v), (v, u)):
                self.walk(None if dead else self.copy(node, arc=arc), dead)
        else:
            demand(number[0] < self.b.n, "a search divides by no operator")
            for k in self.b.allowed(number[0], self.a, self.z):
                skip = dead or k not in node[0][number[0]]
                self.walk(None if skip else self.copy(node, only=(number[0], k)), skip)

    def copy(self, node, arc=None, only=None):
        may, head, tail, out_head, out_tail, arcs = node
        may = [set(x) for x in may]
        if only:
            may[only[0]] = {only[1]}
        return [may, [list(x) for x in head], [list(x) for x in tail], dict(out_head), dict(out_tail),
                arcs + [arc] if arc else arcs]  # fmt: skip

    def machines(self, node, task):
        """What the task certainly holds."""
        b, may = self.b, node[0]
        if type(task) is int:
            return {k for k in may[task] if len(may[task]) == 1 and b.time(task, k) > 0}
        if task not in self.sure or self.sure[task][0] <= 0:
            return set()
        _, ends = self.sure[task]
        if b.p.congestion == "port":
            return {b.K * (1 + side) + k for side, k in enumerate(ends) if k is not None}
        return set(b.p.held(*ends)) if None not in ends else set()

    def find_transfers(self, node):
        b, (may, head, tail, out_head, out_tail, _) = self.b, node
        self.sure = {}
        for i, o, j, t in b.edges:
            if may[i] & may[j] or (not b.p.by_edge and len(may[j]) > 1):
                continue
            task = (i, o, j if b.p.by_edge else min(may[j]))
            least = min(t[k][l] for k in may[i] for l in may[j])
            self.sure[task] = (least, tuple(min(x) if len(x) == 1 else None for x in (may[i], may[j])))
            done = min(head[i][k] + b.time(i, k) for k in may[i])
            after = min(b.time(j, l) + tail[j][l] for l in may[j])
            out_head[task] = max(out_head.get(task, 0), done)
            out_tail[task] = max(out_tail.get(task, 0), after)
            if out_head[task] + least + out_tail[task] > self.T:
                return False
        return True

    def follow_edges(self, node):
        b, (may, head, tail, out_head, out_tail, _) = self.b, node
        for i, o, j, t in b.edges:
            done = [(k, head[i][k] + b.ns[i][k]) for k in may[i]]
            for l in may[j]:
                sent = out_head.get((i, o, j if b.p.by_edge else l), 0)
                head[j][l] = max(head[j][l], min([y if k == l else (y if y > sent else sent) + t[k][l] for k, y in done]))
        for i, o, j, t in reversed(b.edges):
            left = [(l, b.ns[j][l] + tail[j][l], out_tail.get((i, o, j if b.p.by_edge else l), 0)) for l in may[j]]
            for k in may[i]:
                tail[i][k] = max(tail[i][k], min([y if k == l else (y if y > sent else sent) + t[k][l] for l, y, sent in left]))
        for i in range(b.n):
            may[i] -= {k for k in may[i] if head[i][k] + b.ns[i][k] + tail[i][k] > self.T}
        return all(may)

    def get(self, node, task):
        may, head, tail, out_head, out_tail, _ = node
        if type(task) is int:
            k = min(may[task])
            return [head[task][k], self.b.time(task, k), tail[task][k]]
        return [out_head.get(task, 0), self.sure[task][0], out_tail.get(task, 0)]

    def in_order(self, node, u, v):
        x, y = self.get(node, u), self.get(node, v)
        for task, side, value in ((v, 0, x[0] + x[1]), (u, 1, y[1] + y[2])):
            where = node[1 + side][task] if type(task) is int else node[3 + side]
            key = min(node[0][task]) if type(task) is int else task
            where[key] = max(where.get(key, 0) if type(where) is dict else where[key], value)

    def asked(self, jobs):
        return max((h + sum(x[1] for x in jobs if x[0] >= h and x[2] >= q) + q
                    for h in {x[0] for x in jobs} for q in {x[2] for x in jobs}
                    if any(x[0] >= h and x[2] >= q for x in jobs)), default=0)  # fmt: skip

    def visit_machines(self, node):
        b, may, T = self.b, node[0], self.T
        jobs = {}
        for task in [*range(b.n), *self.sure]:
            for machine in self.machines(node, task):
                jobs.setdefault(machine, []).append(task)
        for machine, tasks in sorted(jobs.items()):
            for x, u in enumerate(tasks):
                for v in tasks[x + 1 :]:
                    p, q = self.get(node, u), self.get(node, v)
                    first, second = p[0] + p[1] + q[1] + q[2] <= T, q[0] + q[1] + p[1] + p[2] <= T
                    if not first and not second:
                        return False
                    if first != second:
                        self.in_order(node, *((u, v) if first else (v, u)))
            rows = [self.get(node, u) for u in tasks]
            if self.asked(rows) > T:
                return False
            for i in range(b.n if machine < b.K else 0):
                if machine in may[i] and len(may[i]) > 1 and b.time(i, machine) > 0:
                    row = [node[1][i][machine], b.time(i, machine), node[2][i][machine]]
                    if self.asked([*rows, row]) > T:
                        may[i].discard(machine)
        return True

    def room(self, node):
        """What is left; it gets less and never more."""
        may, head, tail, out_head, out_tail, _ = node
        return sum(map(len, may)) - sum(map(sum, head + tail)) - sum(out_head.values()) - sum(out_tail.values())

    def closes(self, node):
        for _ in range(1000):
            before = self.room(node)
            if not self.follow_edges(node) or not self.find_transfers(node):
                return True
            for u, v in node[5]:
                self.in_order(node, u, v)
            if not self.visit_machines(node):
                return True
            if self.room(node) == before:
                return False
        return False
