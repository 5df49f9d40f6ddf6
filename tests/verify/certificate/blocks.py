"""Problems in topological order, and blocks between two cuts."""

from .files import demand, rows


class Problem:
    """Operators in topological order: of those that are ready the first in the file."""

    def __init__(self, file):
        names = [d["name"] for d in file["devices"]]
        self.K = K = len(names)
        self.by_edge = file["flow"] == "edge"
        self.congestion = file["congestion"]
        self.by_devices = self.congestion == "device"  # what holds its devices holds their ports
        if self.by_devices:
            self.congestion = "port"
        self.capacity = [d["memory_bytes"] for d in file["devices"]]
        channel = {(names.index(c["from"]), names.index(c["to"])): c for c in file.get("channels") or []}
        ops = file["ops"]
        time = [op["time_ns"] for op in ops]
        may = [{k for k in range(K) if t[k] is not None} for t in time]
        group = [op.get("group") for op in ops]
        for g in set(group) - {None}:
            who = [i for i in range(len(ops)) if group[i] == g]
            common = set.intersection(*(may[i] for i in who))
            for i in who:
                may[i] = common
        own = [op["memory_bytes"] for op in ops]
        readers = {}
        for i, op in enumerate(ops):
            for w in op.get("shared_weights") or []:
                readers.setdefault(w["name"], (w["bytes"], []))[1].append(i)
        for size, who in readers.values():  # where all readers share a device the weight is the first one's
            if all(j == who[0] or (group[j] is not None and group[j] == group[who[0]]) for j in who):
                own[who[0]] += size
        writer = {}
        for i, op in enumerate(ops):
            for o, tensor in enumerate(op["outputs"]):
                table = tensor.get("transfer_ns") or [
                    [0 if a == b else -(-tensor["bytes"] * 10**9 // channel[a, b]["bytes_per_second"])
                     + (channel[a, b].get("latency_ns") or 0) for b in range(K)] for a in range(K)]  # fmt: skip
                writer[tensor["name"]] = (i, o, table)
        edges = [(*writer[x][:2], j, writer[x][2])
                 for j, op in enumerate(ops) for x in dict.fromkeys(op["inputs"]) if x in writer]  # fmt: skip
        order, done = [], set()
        needs = [{e[0] for e in edges if e[2] == j} for j in range(len(ops))]
        while len(order) < len(ops):
            i = next(i for i in range(len(ops)) if i not in done and needs[i] <= done)
            order.append(i)
            done.add(i)
        self.n = len(ops)
        self.time, self.may, self.bytes = time, [sorted(m) for m in may], own
        self.edges, self.place = edges, list(range(self.n))
        self.take(order)

    def take(self, order):
        """Keeps these operators, in this order."""
        here = {i: at for at, i in enumerate(order)}
        self.place = [here[i] for i in self.place if i in here]
        self.time, self.may, self.bytes = ([x[i] for i in order] for x in (self.time, self.may, self.bytes))
        self.edges = sorted(((here[i], o, here[j], t) for i, o, j, t in self.edges if i in here and j in here),
                            key=lambda e: e[:3])  # fmt: skip
        self.n, self.known = len(order), {}

    def block(self, ops, entry, exit_):
        """A block of its own for one certificate; what depends on the problem alone is found once for all of them."""
        key = (*ops, entry, exit_)
        if key not in self.known:
            self.known[key] = Block(self, ops, entry, exit_)
        return self.known[key].anew()

    def without(self, numbers):
        part = object.__new__(Problem)
        part.__dict__.update(self.__dict__)
        gone = {self.place[i] for i in numbers}
        part.take([i for i in range(self.n) if i not in gone])
        return part

    def resources(self, loads=False):
        if loads and self.by_devices:
            return self.K
        return {"port": 3 * self.K, "channel": self.K + self.K * self.K, "none": self.K}[self.congestion]

    def held(self, a, b, loads=False):
        """Resources of a transfer from a to b."""
        if loads and self.by_devices:
            return (a, b)
        if self.congestion == "port":
            return (self.K + a, 2 * self.K + b)
        return (self.K + a * self.K + b,) if self.congestion == "channel" else ()


class Block:
    """Operators between two cuts, the cuts included, and the edges among them."""

    def __init__(self, p, ops, entry, exit_):
        self.p, self.ops, self.n, self.K = p, ops, len(ops), p.K
        self.entry, self.exit = (0 if entry else None), (self.n - 1 if exit_ else None)
        local = {i: at for at, i in enumerate(ops)}
        self.edges = [(local[i], o, local[j], t) for i, o, j, t in p.edges
                      if i in local and j in local and local[i] != self.exit]  # fmt: skip
        count = {}
        for i, o, _, _ in self.edges:
            count[i, o] = count.get((i, o), 0) + 1
        self.readers = [count[e[:2]] for e in self.edges]
        self.ns = [[0] * self.K if self.is_cut(i) else p.time[op] for i, op in enumerate(ops)]
        self.found = {}  # of paths, heads and tails, packets, components, equal devices

    def anew(self):
        """The same block, of which no certificate has said anything yet."""
        copy = object.__new__(Block)
        copy.__dict__.update(self.__dict__)
        copy.shared, copy.kinds, copy.count, copy.described = None, [], [], False
        return copy

    def once(self, key, find, *of):
        if key not in self.found:
            self.found[key] = find(*of)
        return self.found[key]

    def is_cut(self, i):
        return i == self.entry or i == self.exit

    def time(self, i, k):
        return self.ns[i][k]

    def allowed(self, i, a, z):
        return [a] if i == self.entry else [z] if i == self.exit else self.p.may[self.ops[i]]

    def row(self, i):
        """All that counts of an operator."""
        return (self.p.time[self.ops[i]], self.p.may[self.ops[i]], self.p.bytes[self.ops[i]])

    def content(self):
        return ([None if self.is_cut(i) else self.row(i) for i in range(self.n)], self.edges, self.entry, self.exit)

    def is_like(self, other):
        return self.ops is other.ops or self.content() == other.content()

    def is_shared(self, e):
        return self.shared is not None and e[0] == self.entry and e[1] == self.shared

    def packets(self):
        """Edges that one transfer to a device serves: those of a tensor, or each by itself."""
        return self.once("packets", self.find_packets)

    def find_packets(self):
        found = {}
        for x, e in enumerate(self.edges):
            found.setdefault(x if self.p.by_edge else e[:2], []).append(x)
        return list(found.values())

    def ends(self):
        """Edges out of each operator, and into it."""
        return self.once("ends", lambda: [[[x for x, e in enumerate(self.edges) if e[end] == i] for i in range(self.n)] for end in (0, 2)])

    def longest(self, head, tail, may):
        """The greatest over operators of the least over their devices."""
        return max((min(head[i][k] + self.time(i, k) + tail[i][k] for k in may[i]) for i in range(self.n)), default=0)

    def heads(self, may):
        return self.once(("heads", *map(tuple, may)), self.find_heads, may)

    def find_heads(self, may):
        head = [[0] * self.K for _ in range(self.n)]
        for i, _, j, t in self.edges:
            done = [(head[i][k] + self.ns[i][k], t[k]) for k in may[i]]
            head[j] = [max(h, min([x + sent[l] for x, sent in done])) for l, h in enumerate(head[j])]
        return head

    def tails(self, may):
        return self.once(("tails", *map(tuple, may)), self.find_tails, may)

    def find_tails(self, may):
        tail = [[0] * self.K for _ in range(self.n)]
        for i, _, j, t in reversed(self.edges):
            left = [(self.ns[j][l] + tail[j][l], l) for l in may[j]]
            tail[i] = [max(q, min([t[k][l] + x for x, l in left])) for k, q in enumerate(tail[i])]
        return tail

    def path(self, a, z):
        return self.once(("path", a, z), self.find_path, a, z)

    def find_path(self, a, z):
        if self.n == (self.entry is not None) + (self.exit is not None):
            sent = [e[3][a][z] for e in self.edges] if self.n == 2 else []
            return max(sent, default=0) if self.p.congestion == "none" else sum(sent)
        may = [self.allowed(i, a, z) for i in range(self.n)]
        return self.longest(self.heads(may), [[0] * self.K] * self.n, may)

    def components(self):
        return self.once("components", self.find_components)

    def find_components(self):
        root = list(range(self.n))

        def find(i):
            while root[i] != i:
                i = root[i]
            return i

        for i, _, j, _ in self.edges:
            if not self.is_cut(i) and not self.is_cut(j):
                x, y = sorted((find(i), find(j)))
                root[y] = x
        parts = {}
        for i in range(self.n):
            if not self.is_cut(i):
                parts.setdefault(find(i), []).append(i)
        return list(parts.values())

    def component_content(self, ops):
        return self.once(("content", *ops), self.find_content, ops)

    def find_content(self, ops):
        place = {i: at for at, i in enumerate(ops)}
        place.update({self.entry: "entry", self.exit: "exit"})
        edges = [(place.get(e[0]), e[1], place.get(e[2]), self.readers[x], e[3])
                 for x, e in enumerate(self.edges) if e[0] in ops or e[2] in ops]  # fmt: skip
        return [self.row(i) for i in ops], edges

    def read_class(self, obj):
        """Kinds of components, their spanning trees, the shared tensor."""
        parts, kind = self.components(), obj["component_kind"]
        demand(len(kind) == len(parts), "component_kind has not one number per component")
        self.described, first = True, []
        for ops, number in zip(parts, kind):
            demand(number <= len(self.kinds), "kinds are not numbered in order")
            if number == len(self.kinds):
                self.kinds.append(ops)
                self.count.append(0)
                first.append(self.component_content(ops))
            demand(self.component_content(ops) == first[number], "a component is no copy of the first of its kind")
            self.count[number] += 1
        demand(len(obj["trees"]) == len(self.kinds), "trees has not one tree per kind")
        self.trees = []
        for ops, tree in zip(self.kinds, obj["trees"]):
            demand(len(tree) == 3 * (len(ops) - 1), "a tree has too few or too many edges")
            label, edges = list(range(len(ops))), []
            for i, o, j in rows(tree, 3):
                demand(i < len(ops) and j < len(ops) and label[i] != label[j], "a tree's edge closes a ring")
                found = [e for e, f in enumerate(self.edges) if f[:3] == (ops[i], o, ops[j])]
                demand(found, "a tree's edge is not in the problem")
                edges.append(found[0])
                label = [label[i] if y == label[j] else y for y in label]
            self.trees.append(edges)
        if obj.get("shared") is not None:
            demand(not self.p.by_edge and self.entry is not None, "a shared tensor needs flow tensor and an entry")
            self.shared = obj["shared"]
            demand(any(self.is_shared(e) for e in self.edges), "the shared tensor is not read in its block")

    def shared_ns(self, a, k):
        return next(e[3][a][k] for e in self.edges if self.is_shared(e))

    def equal_devices(self):
        """The first device that each can be exchanged with."""
        return self.once("equal", self.find_equal_devices)

    def find_equal_devices(self):
        def same(j, k):
            for i in range(self.n):
                if self.is_cut(i):
                    continue
                time, may = self.p.time[self.ops[i]], self.p.may[self.ops[i]]
                if (j in may) != (k in may) or (j in may and time[j] != time[k]):
                    return False
            rest = [l for l in range(self.K) if l not in (j, k)]
            return all(t[j][k] == t[k][j] and all(t[j][l] == t[k][l] and t[l][j] == t[l][k] for l in rest)
                       for _, _, _, t in self.edges)  # fmt: skip

        least = []
        for k in range(self.K):
            least.append(next((j for j in range(k) if least[j] == j and same(j, k)), k))
        return least
