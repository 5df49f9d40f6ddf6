"""Problems in topological order, and blocks of them between two cuts."""

from copy import copy
from functools import cache

from .files import demand, rows


def turned(edges):
    """The same ways backwards, last ones first."""
    return [(j, o, i, list(zip(*t))) for i, o, j, t in reversed(edges)]


def longest_paths(path, edges, ns, may):
    """Adds to path[operator][device] what edges (from, output, to, table) make of it, in their order."""
    for i, _, j, t in edges:
        done = [(path[i][k] + ns[i][k], t[k]) for k in may[i]]
        path[j] = [max(h, min([x + sent[l] for x, sent in done])) for l, h in enumerate(path[j])]
    return path


def longest(head, tail, ns, may):
    """The greatest over operators of the least over their devices."""
    return max((min(h[k] + t[k] + q[k] for k in devices) for h, t, q, devices in zip(head, ns, tail, may)), default=0)


class Problem:
    """Operators in topological order: of those that are ready the first in the file."""

    def __init__(self, file):
        names, ops = [d["name"] for d in file["devices"]], file["ops"]
        self.K = K = len(names)
        self.by_edge, self.by_devices = file["flow"] == "edge", file["congestion"] == "device"
        self.congestion = "port" if self.by_devices else file["congestion"]  # what holds its devices holds their ports
        self.capacity = [d["memory_bytes"] for d in file["devices"]]
        channel = {(names.index(c["from"]), names.index(c["to"])): c for c in file.get("channels") or []}
        self.ns, group = [op["time_ns"] for op in ops], [op.get("group") for op in ops]
        can = [{k for k in range(K) if ns[k] is not None} for ns in self.ns]
        self.may = [sorted(set.intersection(m, *(n for n, h in zip(can, group) if g is not None and g == h))) for m, g in zip(can, group)]
        self.bytes, readers, writer = [op["memory_bytes"] for op in ops], {}, {}
        for i, op in enumerate(ops):
            for w in op.get("shared_weights") or []:
                readers.setdefault(w["name"], (w["bytes"], []))[1].append(i)
            for o, tensor in enumerate(op["outputs"]):
                table = tensor.get("transfer_ns") or [
                    [0 if a == b else -(-tensor["bytes"] * 10**9 // channel[a, b]["bytes_per_second"])
                     + (channel[a, b].get("latency_ns") or 0) for b in range(K)] for a in range(K)]  # fmt: skip
                writer[tensor["name"]] = (i, o, table)
        for size, (first, *others) in readers.values():  # where all readers share a device the weight is the first one's
            if all(j == first or (group[j] is not None and group[j] == group[first]) for j in others):
                self.bytes[first] += size
        self.edges = [(*writer[x][:2], j, writer[x][2])
                      for j, op in enumerate(ops) for x in dict.fromkeys(op["inputs"]) if x in writer]  # fmt: skip
        self.place, order, done = list(range(len(ops))), [], set()
        needs = [{e[0] for e in self.edges if e[2] == j} for j in range(len(ops))]
        while len(order) < len(ops):
            order.append(next(i for i in range(len(ops)) if i not in done and needs[i] <= done))
            done.add(order[-1])
        self.take(order)

    def take(self, order):
        """Keeps these operators, in this order."""
        here = {i: at for at, i in enumerate(order)}
        self.place = [here[i] for i in self.place if i in here]
        self.ns, self.may, self.bytes = ([x[i] for i in order] for x in (self.ns, self.may, self.bytes))
        self.edges = sorted(((here[i], o, here[j], t) for i, o, j, t in self.edges if i in here and j in here), key=lambda e: e[:3])
        self.n, self.known = len(order), cache(lambda *key: Block(self, *key))

    def block(self, ops, entry, exit_):
        """A block of its own for one certificate; what depends on the problem alone is found once for all of them."""
        return copy(self.known(tuple(ops), entry, exit_))

    def without(self, numbers):
        part, gone = copy(self), {self.place[i] for i in numbers}
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
    """Operators between two cuts, the cuts included, which take no time and no bytes here, and the edges among them."""

    shared, kinds = None, None  # a certificate says nothing of them

    def __init__(self, p, ops, entry, exit_):
        self.p, self.ops, self.n, self.K = p, ops, len(ops), p.K
        self.entry, self.exit = (0 if entry else None), (self.n - 1 if exit_ else None)
        self.inside, self.may = range(self.n)[entry : self.n - exit_], [p.may[op] for op in ops]
        self.ns = [p.ns[op] if i in self.inside else [0] * self.K for i, op in enumerate(ops)]
        self.bytes = [p.bytes[op] if i in self.inside else 0 for i, op in enumerate(ops)]
        local = {i: at for at, i in enumerate(ops)}
        self.edges = [(local[i], o, local[j], t) for i, o, j, t in p.edges
                      if i in local and j in local and local[i] != self.exit]  # fmt: skip
        self.back, sent = turned(self.edges), [e[:2] for e in self.edges]
        self.readers = [sent.count(e) for e in sent]
        for find in ("packets", "reach", "path", "components", "equal_devices"):  # the same for all certificates
            setattr(self, find, cache(getattr(self, find)))

    def allowed(self, i, a, z):
        return [a] if i == self.entry else [z] if i == self.exit else self.may[i]

    def is_like(self, other):
        """All that counts is the same."""
        def content(b):
            return [(b.ns[i], b.may[i], b.bytes[i]) for i in b.inside], b.edges, b.entry, b.exit

        return self.ops is other.ops or content(self) == content(other)

    def is_shared(self, e):
        return self.shared is not None and e[:2] == (self.entry, self.shared)

    def shared_ns(self, a, k):
        return next(e[3][a][k] for e in self.edges if self.is_shared(e))

    def packets(self):
        """Edges that one transfer to a device serves: those of a tensor, or each by itself."""
        found = {}
        for x, e in enumerate(self.edges):
            found.setdefault(x if self.p.by_edge else e[:2], []).append(x)
        return list(found.values())

    def reach(self, forwards, *may):
        """Longest paths to the start of each operator on each device or, backwards, from its finish on."""
        return longest_paths([[0] * self.K for _ in self.ops], self.edges if forwards else self.back, self.ns, may)

    def path(self, a, z):
        if not self.inside:
            sent = [e[3][a][z] for e in self.edges] if self.n == 2 else []
            return max(sent, default=0) if self.p.congestion == "none" else sum(sent)
        may = [tuple(self.allowed(i, a, z)) for i in range(self.n)]
        return longest(self.reach(True, *may), [[0] * self.K] * self.n, self.ns, may)

    def components(self):
        """What is connected without the cuts, as blocks between the same cuts; readers of tensors stay those of the whole."""
        label, found = list(range(self.n)), []
        for i, _, j, _ in self.edges:
            if i in self.inside and j in self.inside:
                first, last = sorted((label[i], label[j]))
                label = [first if x == last else x for x in label]
        count = {e[:2]: n for e, n in zip(self.edges, self.readers)}
        for one in dict.fromkeys(label[i] for i in self.inside):
            ops = [i for i in range(self.n) if i not in self.inside or label[i] == one]
            found.append(self.p.block((self.ops[i] for i in ops), self.entry is not None, self.exit is not None))
            found[-1].readers = [count[ops[i], o] for i, o, _, _ in found[-1].edges]
        return found

    def read_class(self, obj):
        """Kinds of components, their spanning trees, the shared tensor."""
        parts, kind, self.kinds, self.shared = self.components(), obj["component_kind"], [], obj.get("shared")
        demand(len(kind) == len(parts), "component_kind has not one number per component")
        for part, number in zip(parts, kind):
            demand(number <= len(self.kinds), "kinds are not numbered in order")
            if number == len(self.kinds):
                self.kinds.append(copy(part))
            demand(part.is_like(self.kinds[number]), "a component is no copy of the first of its kind")
        demand(len(obj["trees"]) == len(self.kinds), "trees has not one tree per kind")
        for number, (one, tree) in enumerate(zip(self.kinds, obj["trees"])):
            one.tree, one.shared, one.count = self.read_tree(one, tree), self.shared, kind.count(number)
        if self.shared is not None:
            demand(not self.p.by_edge and self.entry is not None, "a shared tensor needs flow tensor and an entry")
            demand(any(self.is_shared(e) for e in self.edges), "the shared tensor is not read in its block")

    def read_tree(self, one, numbers):
        """Edges that connect all operators of a component without a ring."""
        label, edges = list(one.inside), [e[:3] for e in one.edges]
        demand(len(numbers) == 3 * (len(label) - 1), "a tree has too few or too many edges")
        for i, o, j in rows(numbers, 3):
            demand(max(i, j) < len(label) and label[i] != label[j], "a tree's edge closes a ring")
            label = [label[i] if y == label[j] else y for y in label]
        tree = [(one.inside[i], o, one.inside[j]) for i, o, j in rows(numbers, 3)]
        demand(all(e in edges for e in tree), "a tree's edge is not in the problem")
        return [edges.index(e) for e in tree]

    def equal_devices(self):
        """The first device that each can be exchanged with."""
        def same(j, k):
            turn = {**{l: l for l in range(self.K)}, j: k, k: j}
            return all(self.ns[i][j] == self.ns[i][k] and {j, k} & {*self.may[i]} in (set(), {j, k}) for i in self.inside) and all(
                t[a][b] == t[turn[a]][turn[b]] for _, _, _, t in self.edges for a in turn for b in turn if a != b)  # fmt: skip

        least = []
        for k in range(self.K):
            least.append(next((j for j in range(k) if least[j] == j and same(j, k)), k))
        return least
