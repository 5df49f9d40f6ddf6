#!/usr/bin/env python3
"""A second verifier of certificates, in whole numbers without end.

Written from docs/certificate.md and docs/formats.md; it shares nothing with the verifier in C (src/prove/), so that a
fault of one is seen by the other. Slow where that one is quick: for certificates of small problems.

  check_certificate.py PROBLEM CERTIFICATE...    a line for each certificate; exit code 6 where one does not hold
  check_certificate.py --dossier FILE...         compares with the verdicts of the C verifier, which the tests write
                                                 down; exit code 1 where the two disagree

A dossier has a line for each thing: "P", a problem; "C accepted NS", "C rejected" or "C limit", a certificate of the
problem before it. "limit": the C verifier refuses what is larger than its tables; nothing is compared then.
"""

import json
import sys

INF = float("inf")
UNIT = 1 << 22  # of the multipliers of static proofs
LAST = (1 << 63) - 1
TIME = 1 << 61
SPAN = 1 << 60
INT = (1 << 31) - 1
MESSAGE = 1 << 62


class Wrong(Exception):
    """What does not hold."""


def demand(holds, what):
    if not holds:
        raise Wrong(what)


# ---- files ----


class Real:
    """A number that is not whole."""


def pairs_once(pairs):
    found = dict(pairs)
    demand(len(found) == len(pairs), "a key is there twice")
    return found


def parse(text):
    def none(word):
        raise Wrong(f"{word} is no JSON")

    try:
        return json.loads(text, object_pairs_hook=pairs_once, parse_float=lambda _: Real(), parse_constant=none)
    except (ValueError, RecursionError) as error:
        raise Wrong(f"no JSON: {error}") from error


# Keys of each kind of object (docs/formats.md): type, range, how many numbers come together; "?" before what may be
# missing. A type is n (number), l (list of numbers), L (list of such lists), t (text), b (true or false), or a kind.
GRID = {"length_ns": ("n", 0, SPAN), "step_ns": ("n", 1, TIME), "buckets": ("l", 0, INT)}
CASES = {"?receivers": ("l", 0, INT), "?open": ("b",), "?counts": ("l", -2, LAST, 5)}
DUALS = {"loads": ("l", 0, SPAN, 4), "duals": ("l", -(10**15), 10**15, 2)}
CLASS = {"component_kind": ("l", 0, INT), "trees": ("L", 0, INT, 3), "?shared": ("n", 0, INT), "?pairs": ("[pair",)}
CLAIMS = {
    "operators": ("n", 0, INT), "lower_bound_ns": ("n", 0, LAST), "certified_bound_ns": ("n", 0, LAST),
    "?problem": ("t",), "?problem_digest": ("t",),
}  # fmt: skip
CHAIN = {
    "?floating": ("l", 0, INT), "cuts": ("l", 0, INT), "block_class": ("l", 0, INT), "classes": ("[class",),
    "?memory": ("memory",), "?windows": ("windows",),
}  # fmt: skip
KINDS = {
    "certificate": {**CLAIMS, **CHAIN},
    "pair": {
        "entry": ("n", 0, INT), "exit": ("n", 0, INT), "lower_ns": ("n", 0, LAST), "?static": ("[static",),
        "?pool": ("pool",), "?search": ("search",), "?leaves": ("[leaf",), "?loads": ("loads",),
    },
    "pool": {
        "length_ns": ("n", 1, LAST // 8), "step_ns": ("n", 1, LAST // 8), "bucket_ns": ("n", 1, LAST // 8),
        "weights": ("l", 0, INT), "prices": ("l", 0, 1 << 62), "flows": ("l", 0, 1 << 62, 3),
    },
    "search": {"length_ns": ("n", 0, LAST // 8), "tree": ("l", -2, INT)},
    "memory": {"unit": ("n", 1, 1 << 40), "byte_prices": ("l", 0, 1 << 50), "pairs": ("[memory pair",)},
    "memory pair": {"class": ("n", 0, INT), "entry": ("n", 0, INT), "exit": ("n", 0, INT), "leaves": ("[leaf",)},
    "windows": {"intervals": ("[interval",), "?pool": ("pool",)},
    "interval": {"?entry": ("n", 0, INT), "?exit": ("n", 0, INT), "?ns": ("l", 0, LAST)},
}  # fmt: skip
# Kinds with several forms: the first whose key is there.
FORMS = {
    "rate": [
        ("in_flight", {**CLAIMS, **CHAIN, "in_flight": ("n", 1, INT), "?loads": ("loads",)}),
        (None, {**CLAIMS, "loads": ("loads",)}),
    ],
    "class": [("component_kind", CLASS), ("trees", CLASS), (None, {"?pairs": ("[pair",)})],
    "loads": [
        ("cases", {"op": ("n", 0, INT), "cases": ("[loads",)}),
        ("prices", {"prices": ("l", 0, 1 << 40), "?byte_prices": ("l", 0, 1 << 50), "?unit": ("n", 1, MESSAGE),
                    "?from": ("l", -MESSAGE, MESSAGE), "?to": ("l", -MESSAGE, MESSAGE)}),
        (None, {}),
    ],
    "leaf": [
        ("prices", {**CASES, **GRID, "prices": ("l", 0, TIME, 3), "?count_prices": ("l", -TIME, TIME)}),
        (None, CASES),
    ],
    "static": [
        (key, {"upper_ns": ("n", 0, SPAN), "groups": ("L", 0, INT), "?sent": ("n", 0, INT),
               "?return_ns": ("n", 1, SPAN), "cases": ("case",)}) for key in ("groups", "cases")
    ] + [(None, {"upper_ns": ("n", 0, SPAN), **DUALS})],
    "case": [
        ("receivers", {"receivers": ("l", 0, INT), "next": ("[case",), "nobody": ("case",)}),
        ("returns", {"returns": ("l", 0, INT), "next": ("[case",), "nobody": ("case",)}),
        ("there", {"op": ("n", 0, INT), "device": ("n", 0, INT), "there": ("case",), "elsewhere": ("case",)}),
        ("low", {"group": ("n", 0, INT), "device": ("n", 0, INT), "most": ("n", 0, INT), "low": ("case",),
                 "high": ("case",)}),
        ("loads", DUALS), ("duals", DUALS), (None, {}),
    ],
}  # fmt: skip


def check_numbers(value, least, most, each=1):
    demand(type(value) is list and len(value) % each == 0, "no list of numbers")
    demand(all(type(x) is int and least <= x <= most for x in value), "a number out of range")


def check_shape(kind, value):
    if kind.startswith("["):
        demand(type(value) is list, f"no list of {kind[1:]}")
        for item in value:
            check_shape(kind[1:], item)
        return
    demand(type(value) is dict, f"{kind} is no object")
    keys = KINDS.get(kind)
    if kind in FORMS:
        keys = next(keys for key, keys in FORMS[kind] if key is None or value.get(key) is not None)
    for key, (what, *range_) in keys.items():
        item = value.get(key.lstrip("?"))
        if item is None:
            demand(key.startswith("?"), f"{kind}: {key} is missing")
        elif what == "n":
            demand(type(item) is int and range_[0] <= item <= range_[1], f"{kind}: {key} is out of range")
        elif what == "l":
            check_numbers(item, *range_)
        elif what == "L":
            demand(type(item) is list, f"{kind}: {key} is no list")
            for part in item:
                check_numbers(part, *range_)
        elif what in "tb":
            demand(type(item) is (str if what == "t" else bool), f"{kind}: {key} is of another type")
        else:
            check_shape(what, item)
    if kind == "interval":
        check_shape("class", value)


# ---- problems ----


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
        self.n = len(order)

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


# ---- blocks ----


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
        self.shared = None
        self.kinds = None

    def is_cut(self, i):
        return i == self.entry or i == self.exit

    def time(self, i, k):
        return 0 if self.is_cut(i) else self.p.time[self.ops[i]][k]

    def allowed(self, i, a, z):
        return [a] if i == self.entry else [z] if i == self.exit else self.p.may[self.ops[i]]

    def row(self, i):
        """All that counts of an operator."""
        return (self.p.time[self.ops[i]], self.p.may[self.ops[i]], self.p.bytes[self.ops[i]])

    def content(self):
        return ([None if self.is_cut(i) else self.row(i) for i in range(self.n)], self.edges, self.entry, self.exit)

    def is_shared(self, e):
        return self.shared is not None and e[0] == self.entry and e[1] == self.shared

    def heads(self, may):
        head = [[0] * self.K for _ in range(self.n)]
        for i, _, j, t in self.edges:
            for l in range(self.K):
                head[j][l] = max(head[j][l], min(head[i][k] + self.time(i, k) + t[k][l] for k in may[i]))
        return head

    def tails(self, may):
        tail = [[0] * self.K for _ in range(self.n)]
        for i, _, j, t in reversed(self.edges):
            for k in range(self.K):
                tail[i][k] = max(tail[i][k], min(t[k][l] + self.time(j, l) + tail[j][l] for l in may[j]))
        return tail

    def path(self, a, z):
        if self.n == (self.entry is not None) + (self.exit is not None):
            sent = [e[3][a][z] for e in self.edges] if self.n == 2 else []
            return max(sent, default=0) if self.p.congestion == "none" else sum(sent)
        may = [self.allowed(i, a, z) for i in range(self.n)]
        head = self.heads(may)
        return max((min(head[i][k] + self.time(i, k) for k in may[i]) for i in range(self.n)), default=0)

    def components(self):
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
        place = {i: at for at, i in enumerate(ops)}
        place.update({self.entry: "entry", self.exit: "exit"})
        edges = [(place.get(e[0]), e[1], place.get(e[2]), self.readers[x], e[3])
                 for x, e in enumerate(self.edges) if e[0] in ops or e[2] in ops]  # fmt: skip
        return [self.row(i) for i in ops], edges

    def read_class(self, obj):
        """Kinds of components, their spanning trees, the shared tensor."""
        parts, kind = self.components(), obj["component_kind"]
        demand(len(kind) == len(parts), "component_kind has not one number per component")
        self.kinds, self.count, first = [], [], []
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
            for x in range(0, len(tree), 3):
                i, o, j = tree[x : x + 3]
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


def prove_class(b, obj):
    """What is proven between all pairs of devices."""
    K = b.K
    firsts = range(K) if b.entry is not None else [0]
    lasts = range(K) if b.exit is not None else [0]
    bound = {(a, z): b.path(a, z) if a in firsts and z in lasts else 0 for a in range(K) for z in range(K)}
    described, apart = obj.get("component_kind") is not None, dict.fromkeys(bound, 0)
    if not described and obj.get("pairs") is None:
        return bound
    if described:
        b.read_class(obj)
    for pair in obj.get("pairs") or []:
        a, z = pair["entry"], pair["exit"]
        demand(a in firsts and z in lasts, "entry or exit of a pair is out of range")
        before = ns = bound[a, z]
        for proof in pair.get("static") or []:
            ns = max(ns, Static(b, a, z, ns, proof).bound())
        if pair.get("pool") is not None:
            ns = max(ns, prove_pool(b, a, z, pair["pool"], None))
        if pair.get("search") is not None:
            ns = max(ns, Search(b, a, z, pair["search"]).bound())
        if pair.get("loads") is not None:
            loads = Loads(b, a, z)
            proven = loads.case(pair["loads"])
            if loads.bytes:  # capacities of equal devices may differ: it holds for this pair alone
                apart[a, z] = max(apart[a, z], proven)
            else:
                ns = max(ns, proven)
        demand(described or not b.components() or pair.get("leaves") is None, "leaves of a class that was not described")
        b.kinds, b.count = (b.kinds, b.count) if b.kinds is not None else ([], [])
        bound[a, z] = max(ns, prove_leaves(b, a, z, before, pair.get("leaves") or []))
        most = max(bound[a, z], apart[a, z])
        demand(most >= pair["lower_ns"], f"{pair['lower_ns']} ns are claimed, {most} proven")
    least = b.equal_devices()

    def image(a, z):
        apart = b.entry is not None and b.exit is not None and a != z
        return (least[a], least[z], apart)

    most = {}
    for at, ns in bound.items():
        most[image(*at)] = max(most.get(image(*at), 0), ns)
    return {at: max(most[image(*at)], apart[at]) for at in bound}


# ---- prices of loads ----


class Loads:
    """A proof by prices on loads of a block between devices a and z, or of the time between requests."""

    def __init__(self, b, a, z, rate=False):
        self.b, self.p, self.K, self.rate, self.bytes = b, b.p, b.K, rate, False
        self.may = [list(b.allowed(i, a, z)) for i in range(b.n)]

    def case(self, obj):
        if obj.get("cases") is None:
            return self.leaf(obj)
        op, parts = obj["op"], obj["cases"]
        demand(not self.rate and op < self.b.n and len(parts) == self.K, "cases are not one per device")
        devices, proven = self.may[op], []
        for k in devices:
            self.may[op] = [k]
            proven.append(self.case(parts[k]))
        self.may[op] = devices
        return min(proven)

    def messages(self, obj, key):
        """[edge][device]"""
        numbers, unit, found = obj.get(key) or [], obj.get("unit") or 1, [[0] * self.K for _ in self.b.edges]
        demand(len(numbers) % (self.K + 1) == 0, "messages have not one number per device")
        last = -1
        for x in range(0, len(numbers), self.K + 1):
            edge = numbers[x]
            demand(last < edge < len(found), "messages of no edge, or edges that do not ascend")
            found[edge] = [m * unit for m in numbers[x + 1 : x + 1 + self.K]]
            demand(all(abs(m) <= MESSAGE for m in found[edge]), "a message is too large")
            last = edge
        return found

    def offsets(self, price, head, tail, path):
        b, first, last = self.b, {}, {}

        def meet(r, before, after):
            first[r], last[r] = min(first.get(r, before), before), min(last.get(r, after), after)

        for i in range(b.n):
            for k in self.may[i]:
                meet(k, head[i][k], tail[i][k])
        for i, _, j, _ in b.edges:
            for k in self.may[i]:
                for l in self.may[j]:
                    for r in self.p.held(k, l, loads=True) if k != l else ():
                        meet(r, head[i][k] + b.time(i, k), b.time(j, l) + tail[j][l])
        return sum(y * min(path, first[r] + last[r] if r in first else path) for r, y in enumerate(price))

    def costs(self, price, bytes_, out, into):
        """What each operator costs on each device."""
        b, p, K = self.b, self.p, self.K
        cost = [{k: price[k] * b.time(i, k) + bytes_[k] * (0 if b.is_cut(i) else p.bytes[b.ops[i]])
                 for k in self.may[i]} for i in range(b.n)]  # fmt: skip
        packets = {}
        for x, e in enumerate(b.edges):
            packets.setdefault(x if p.by_edge else e[:2], []).append(x)
            for k in self.may[e[0]]:
                cost[e[0]][k] += out[x][k]
            for k in self.may[e[2]]:
                cost[e[2]][k] += into[x][k]
        for edges in packets.values():
            i, table = b.edges[edges[0]][0], b.edges[edges[0]][3]
            for k in self.may[i]:
                for l in range(K):
                    taken = sum(max(0, out[x][k] + into[x][l]) for x in edges if l in self.may[b.edges[x][2]])
                    paid = sum(price[r] for r in p.held(k, l, loads=True)) * table[k][l] if k != l else 0
                    cost[i][k] -= max(0, taken - paid)
        return cost

    def leaf(self, obj):
        b, p, path = self.b, self.p, 0
        if not self.rate:
            head, tail = b.heads(self.may), b.tails(self.may)
            path = max(min(head[i][k] + b.time(i, k) + tail[i][k] for k in self.may[i]) for i in range(b.n)) if b.n else 0
        if obj.get("prices") is None:
            return path
        price, bytes_ = obj["prices"], obj.get("byte_prices")
        self.bytes |= bytes_ is not None
        bytes_ = [0] * self.K if bytes_ is None else bytes_
        demand(len(price) == p.resources(loads=True) and len(bytes_) == self.K, "prices have not one number each")
        cost = self.costs(price, bytes_, self.messages(obj, "from"), self.messages(obj, "to"))
        total = sum(min(c.values()) for c in cost) - sum(u * m for u, m in zip(bytes_, p.capacity))
        if not self.rate:
            total += self.offsets(price, head, tail, path)
        if total <= 0 or not sum(price):
            return path
        return max(path, min(SPAN, total // sum(price) if self.rate else -(-total // sum(price))))


# ---- leaves ----


class Leaf:
    def __init__(self, b, a, obj):
        self.receivers, self.open = obj.get("receivers"), obj.get("open") is True
        if self.receivers is not None:
            demand(b.shared is not None and len(self.receivers) < b.K, "receivers of a tensor that is not there")
            demand(all(k < b.K and k != a for k in self.receivers), "a receiver is no device")
            demand(len(set(self.receivers)) == len(self.receivers), "a receiver is there twice")
        demand(not self.open or (self.receivers is not None and b.p.congestion == "port"), "an open leaf without order")
        numbers = obj.get("counts") or []
        self.counts = [tuple(numbers[x : x + 5]) for x in range(0, len(numbers), 5)]
        for kind, place, device, least, most in self.counts:
            demand(device < b.K and 0 <= least <= TIME and (0 <= most <= TIME or most == LAST), "a count of nothing")
            if kind < 0:
                demand(place == 0 and (kind == -2 or self.receivers is not None), "a time of nothing")
            elif kind >= 0:
                demand(kind < len(b.kinds) and 0 <= place < len(b.kinds[kind]), "a count of no operator")
                demand(least <= INT and most <= INT, "a count out of range")
        self.priced = obj.get("prices") is not None
        if not self.priced:
            return
        self.T, self.step, self.buckets = obj["length_ns"], obj["step_ns"], obj["buckets"]
        self.N = self.T // self.step + 1
        x = self.buckets
        demand(len(x) > 1 and x[0] == 0 and x[-1] == self.N, "buckets do not cover the steps")
        demand(all(u < v for u, v in zip(x, x[1:])), "buckets do not ascend")
        self.price = {}
        for r, q, price in zip(*(iter(obj["prices"]),) * 3):
            demand(r < b.p.resources() and q < len(x) - 1 and not self.price.get((r, q)), "a price of nothing")
            self.price[r, q] = price
        paid = obj.get("count_prices") or []
        demand(len(paid) <= len(self.counts), "more prices on counts than counts")
        demand(not any(w and c[0] < 0 for w, c in zip(paid, self.counts)), "a time has a price")
        self.count_price = paid + [0] * (len(self.counts) - len(paid))

    def length_of(self, q):
        return min(self.buckets[q + 1] * self.step, self.T) - min(self.buckets[q] * self.step, self.T)

    def count_term(self):
        return sum(w * (c[4] if w > 0 else c[3]) for w, c in zip(self.count_price, self.counts))

    def capacity(self):
        return sum(price * self.length_of(q) for (_, q), price in self.price.items()) + self.count_term()


def counts_cover(b, leaves, depth):
    if not leaves or any(len(x.counts) == depth for x in leaves):
        return bool(leaves)
    first = leaves[0].counts[depth]
    every = LAST if first[0] < 0 else b.count[first[0]]
    low, high = [], []
    for x in leaves:
        c = x.counts[depth]
        if c[:3] != first[:3]:
            return False
        if c[3] <= 0:
            low.append(x)
        elif c[4] >= every:
            high.append(x)
        else:
            return False
    most = min((x.counts[depth][4] for x in low), default=None)
    if not high:
        return most >= every and counts_cover(b, low, depth + 1)
    least = max(x.counts[depth][3] for x in high)
    return bool(low) and most >= least - 1 and counts_cover(b, low, depth + 1) and counts_cover(b, high, depth + 1)


def cover(b, a, z, leaves, equals):
    ordered = b.p.congestion == "port"
    least = b.equal_devices()
    ends = {a} | ({z} if b.exit is not None else set())
    mine = [k if k in ends else next(j for j in range(k + 1) if j not in ends and least[j] == least[k])
            for k in range(b.K)]  # fmt: skip

    def covered(receivers, opened):
        return counts_cover(b, [x for x in leaves if x.receivers == receivers and x.open == opened], 0)

    def sendings(named, left):
        if ordered and covered(named, True):
            return True
        if not covered(named, False):
            return False
        seen = set()
        for at, k in enumerate(left):
            if ordered and equals and mine[k] in seen:
                continue
            if not sendings(named + [k], [l for l in left if l != k] if ordered else left[at + 1 :]):
                return False
            seen.add(mine[k])
        return True

    if covered(None, False):
        return True
    if b.shared is None:
        return False
    devices = {k for e in b.edges if b.is_shared(e) for k in b.allowed(e[2], a, z)} - {a}
    return sendings([], sorted(devices))


def read_leaves(b, a, z, objects, equals):
    leaves = [Leaf(b, a, x) for x in objects]
    demand(not leaves or cover(b, a, z, leaves, equals), "the leaves leave cases out")
    return leaves


def prove_leaves(b, a, z, path, objects):
    least = INF
    for leaf in read_leaves(b, a, z, objects, True):
        ns = path
        if leaf.priced and leaf.T >= path:
            demand(Pricing(b, a, z, leaf, None).sum > leaf.capacity(), "prices do not exclude a length")
            ns = leaf.T + 1
        least = min(least, ns)
    return max(path, least) if objects else path


class Pricing:
    """The least that all tasks of a block pay within the leaf's length."""

    def __init__(self, b, a, z, leaf, byte_price):
        self.b, self.a, self.z, self.leaf, self.byte_price = b, a, z, leaf, byte_price
        self.N, self.step, self.T = leaf.N, leaf.step, leaf.T
        self.rate, self.start, self.lines = {}, {}, {}
        for r in {r for r, _ in leaf.price}:
            rate = [leaf.price.get((r, q), 0) for q in range(len(leaf.buckets) - 1)
                    for _ in range(leaf.buckets[q], leaf.buckets[q + 1])]  # fmt: skip
            start = [0]
            for g in range(self.N - 1):
                start.append(start[-1] + rate[g] * self.step)
            self.rate[r], self.start[r] = rate, start
        self.arrivals()
        self.sum = INF if self.direct_is_late() else self.add_up()

    def until(self, r, t):
        g = t // self.step
        return self.start[r][g] + (t - g * self.step) * self.rate[r][g]

    def line(self, held, ns, share):
        """The least cost of a task by the step of its start; never where it would end too late."""
        key = (held, ns, share)
        if key not in self.lines:
            held = [r for r in held if r in self.rate]
            line, kink = [], self.step - ns % self.step
            for g in range(self.N):
                room = min(self.T - ns - g * self.step, self.step - 1)
                shifts = [0, room] + ([kink] if kink < room else [])
                line.append(INF if room < 0 else min(
                    sum(self.until(r, g * self.step + x + ns) - self.until(r, g * self.step + x) for r in held)
                    for x in shifts) // share)  # fmt: skip
            self.lines[key] = line
        return self.lines[key]

    def transfer(self, x, k, l):
        share = 1 if self.b.p.by_edge else self.b.readers[x]
        return self.line(self.b.p.held(k, l), self.b.edges[x][3][k][l], share)

    def arrivals(self):
        """When the shared tensor is on each device: no sooner, no later."""
        b, leaf, port = self.b, self.leaf, self.b.p.congestion == "port"
        self.soonest, self.latest, self.later = {self.a: 0}, {}, set()
        sent, order = 0, leaf.receivers or []
        for k in order:
            sent = sent + b.shared_ns(self.a, k) if port else b.shared_ns(self.a, k)
            self.latest[k] = self.T
            for kind, _, device, least, most in leaf.counts:
                if kind == -1 and device == k:
                    sent, self.latest[k] = max(sent, least), min(self.latest[k], most)
            self.soonest[k] = sent
        if leaf.open:
            self.later = {k for k in range(b.K) if k not in self.soonest}
            self.soonest.update({k: sent + b.shared_ns(self.a, k) for k in self.later})
        before = self.T
        for k in reversed(order) if port else []:
            self.latest[k] = min(self.latest[k], before)
            before = max(self.latest[k] - b.shared_ns(self.a, k), -1)

    def direct_is_late(self):
        b = self.b
        for e in b.edges:
            if b.entry is not None and self.a != self.z and (e[0], e[2]) == (b.entry, b.exit):
                ns = e[3][self.a][self.z]
                if self.leaf.receivers is not None and b.is_shared(e):
                    ns = self.soonest.get(self.z, INF)
                if ns > self.T:
                    return True
        return False

    def send(self, k):
        ns = self.b.shared_ns(self.a, k)
        if self.latest[k] < self.soonest[k]:
            return INF
        line = self.line(self.b.p.held(self.a, k), ns, 1)
        first, last = (self.soonest[k] - ns) // self.step, (self.latest[k] - ns) // self.step
        return min(line[first : last + 1], default=INF)

    def add_up(self):
        total = sum(self.send(k) for k in self.leaf.receivers or [])
        return total + sum(self.component(x) * self.b.count[x] for x in range(len(self.b.kinds)))

    def from_entry(self, x, k, value):
        b, e = self.b, self.b.edges[x]
        shared = self.leaf.receivers is not None and b.is_shared(e)
        if shared and k not in self.later:
            first = self.soonest[k] // self.step if k in self.soonest else self.N
            return [INF if g < first else v for g, v in enumerate(value)]
        if k == self.a:
            return value
        ns, line, least, out = e[3][self.a][k], self.transfer(x, self.a, k), INF, []
        wait, first = ns // self.step, (self.soonest[k] - ns) // self.step if shared else 0
        for g in range(self.N):
            if g >= first + wait:
                least = min(least, line[g - wait])
            out.append(value[g] + least)
        return out

    def to_exit(self, x, i, k, value):
        if k == self.z:
            return value
        line, after, least, out = self.transfer(x, k, self.z), self.b.time(i, k) // self.step, INF, list(value)
        for g in range(self.N - 1, -1, -1):
            if g + after < self.N:
                least = min(least, line[g + after])
            out[g] += least
        return out

    def own(self, kind, place, i):
        b, out = self.b, {}
        for k in b.p.may[b.ops[i]]:
            flat = self.byte_price[k] * b.p.bytes[b.ops[i]] if self.byte_price else 0
            flat += sum(w for w, c in zip(self.leaf.count_price, self.leaf.counts) if c[:3] == (kind, place, k))
            value = [v + flat for v in self.line((k,), b.time(i, k), 1)]
            for x, e in enumerate(b.edges):
                if e[0] == b.entry and e[2] == i:
                    value = self.from_entry(x, k, value)
                elif e[2] == b.exit and e[0] == i:
                    value = self.to_exit(x, i, k, value)
            out[k] = value
        return out

    def component(self, kind):
        b, ops = self.b, self.b.kinds[kind]
        value = {i: self.own(kind, place, i) for place, i in enumerate(ops)}

        def gather(i, above):
            for x in b.trees[kind]:
                if x != above and i in (b.edges[x][0], b.edges[x][2]):
                    e = b.edges[x]
                    child = e[2] if e[0] == i else e[0]
                    gather(child, x)
                    message = self.read_by(x, value[child]) if child == e[2] else self.written_by(x, value[child])
                    for k in value[i]:
                        value[i][k] = [u + v for u, v in zip(value[i][k], message[k])]

        gather(ops[0], None)
        return min((v for line in value[ops[0]].values() for v in line), default=INF)

    def written_by(self, x, child):
        """The child writes: its least cost by the step and device of the parent, which reads."""
        i, _, j, t = self.b.edges[x]
        out = {k: [INF] * self.N for k in self.b.p.may[self.b.ops[j]]}
        for l, line in child.items():
            after, least, done = self.b.time(i, l) // self.step, INF, []
            for u in range(self.N):
                least = min(least, line[u - after]) if u >= after else least
                done.append(least)
            for k, best in out.items():
                wait, ready, cost = t[l][k] // self.step, INF, self.transfer(x, l, k) if l != k else [0] * self.N
                for g in range(wait, self.N):
                    ready = min(ready, done[g - wait] + cost[g - wait])
                    best[g] = min(best[g], ready)
        return out

    def read_by(self, x, child):
        i, _, j, t = self.b.edges[x]
        out = {k: [INF] * self.N for k in self.b.p.may[self.b.ops[i]]}
        for l, line in child.items():
            begun = list(line)
            for g in range(self.N - 2, -1, -1):
                begun[g] = min(begun[g], begun[g + 1])
            for k, best in out.items():
                wait, later, cost = t[k][l] // self.step, INF, self.transfer(x, k, l) if l != k else [0] * self.N
                after = self.b.time(i, k) // self.step
                for u in range(self.N - 1 - wait, after - 1, -1):
                    later = min(later, begun[u + wait] + cost[u])
                    best[u - after] = min(best[u - after], later)
        return out


# ---- pools ----


def prove_pool(b, a, z, obj, view):
    """One pool of all devices; `view`: heads, tails and arcs of the whole in place of longest paths."""
    T, step, width, weight, price = (obj[x] for x in ("length_ns", "step_ns", "bucket_ns", "weights", "prices"))
    demand(len(weight) == b.K and len(price) == (T - 1) // width + 1, "not one weight per device, price per bucket")
    may = [b.allowed(i, a, z) for i in range(b.n)]
    head, tail, more = view or (b.heads(may), b.tails(may), [])
    arcs = [(i, j, min(b.time(i, k) + t[k][l] for k in may[i] for l in may[j])) for i, _, j, t in b.edges] + more
    window = [{k: (head[i][k], T - b.time(i, k) - tail[i][k]) for k in may[i]} for i in range(b.n)]
    window = [{k: w for k, w in x.items() if w[0] <= w[1]} for x in window]
    demand(all(window), "an operator has no start")
    first = [min(w[0] for w in x.values()) for x in window]
    steps = [(max(w[1] for w in x.values()) - f) // step + 1 for x, f in zip(window, first)]
    late = [-(-(first[j] - first[i] - apart) // step) for i, j, apart in arcs]
    for i in range(b.n - 1, -1, -1):
        for (x, j, _), m in zip(arcs, late):
            if x == i:
                steps[i] = min(steps[i], steps[j] + m)
        demand(steps[i] >= 1, "an operator has no start")
    extra = [{} for _ in range(b.n)]
    for x in range(0, len(obj["flows"]), 3):
        e, g, value = obj["flows"][x : x + 3]
        demand(e < len(arcs) and g >= 1 and g - late[e] >= 1, "a flow of no step")
        i, j, _ = arcs[e]
        if g < steps[i]:
            extra[i][g] = extra[i].get(g, 0) + value
            extra[j][g - late[e]] = extra[j].get(g - late[e], 0) - value
    start = [0]
    for q, y in enumerate(price):
        start.append(start[-1] + y * (min((q + 1) * width, T) - q * width))

    def until(t):
        q = min(t // width, len(price) - 1)
        return start[q] + price[q] * (t - q * width)

    def pays(begin, end, ns):
        at = {begin, end} | {q * width for q in range(begin // width + 1, end // width + 1)}
        at |= {q * width - ns for q in range((begin + ns) // width + 1, (end + ns) // width + 1)}
        return min(until(t + ns) - until(t) for t in at)

    total = 0
    for i in range(b.n):
        flow, least = 0, INF
        for g in range(steps[i]):
            flow += extra[i].get(g, 0)
            begin = first[i] + g * step
            for k, w in window[i].items():
                at = (max(w[0], begin), min(w[1], begin + step - 1))
                if at[0] <= at[1]:
                    least = min(least, weight[k] * pays(*at, b.time(i, k)) + flow)
        total += least if least < INF else 1 << 63
    demand(total > sum(weight) * start[-1], "a pool's prices exclude nothing")
    return T + 1


# ---- searches ----


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
            for l in may[j]:
                sent = out_head.get((i, o, j if b.p.by_edge else l), 0)
                head[j][l] = max(head[j][l], min(
                    head[i][k] + b.time(i, k) if k == l else max(head[i][k] + b.time(i, k), sent) + t[k][l]
                    for k in may[i]))  # fmt: skip
        for i, o, j, t in reversed(b.edges):
            for k in may[i]:
                tail[i][k] = max(tail[i][k], min(
                    b.time(j, l) + tail[j][l] if k == l else
                    max(b.time(j, l) + tail[j][l], out_tail.get((i, o, j if b.p.by_edge else l), 0)) + t[k][l]
                    for l in may[j]))  # fmt: skip
        for i in range(b.n):
            may[i] -= {k for k in may[i] if head[i][k] + b.time(i, k) + tail[i][k] > self.T}
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

    def closes(self, node):
        for _ in range(1000):
            before = repr(node)
            if not self.follow_edges(node) or not self.find_transfers(node):
                return True
            for u, v in node[5]:
                self.in_order(node, u, v)
            if not self.visit_machines(node):
                return True
            if repr(node) == before:
                return False
        return False


# ---- static proofs ----


class Static:
    """Multipliers of a linear programme, by cases."""

    def __init__(self, b, a, z, proven, obj):
        self.b, self.a, self.z, self.proven, self.upper, self.obj = b, a, z, proven, obj["upper_ns"], obj
        self.groups, self.sent, self.results, self.K = obj.get("groups") or [], None, set(), b.K
        self.told = [set(b.allowed(i, a, z)) for i in range(b.n)]
        self.orders = {"receivers": [[], False], "returns": [[], False]}  # devices, whether nobody else follows

    def bound(self):
        obj, b, port = self.obj, self.b, self.b.p.congestion == "port"
        if obj.get("cases") is None:
            return self.leaf(obj)
        counted = [i for group in self.groups for i in group]
        demand(all(i < b.n for i in counted) and len(set(counted)) == len(counted), "groups are none")
        self.reads = [0] * b.n
        if obj.get("sent") is not None:
            demand(b.entry is not None and not b.p.by_edge and port, "a tensor that is sent where there is none")
            self.sent = obj["sent"]
            for e in b.edges:
                self.reads[e[2]] += self.is_sent(e)
        if obj.get("return_ns") is not None:
            demand(b.exit is not None and port, "results where there are none")
            self.results = {x for x, e in enumerate(b.edges) if all(e[3][k][self.z] >= obj["return_ns"]
                            for k in range(self.K) if k != self.z)}  # fmt: skip
        sizes = [len(group) for group in self.groups] + ([sum(self.reads)] if self.sent is not None else [])
        self.size, self.least, self.most = sizes, [[0] * self.K for _ in sizes], [[s] * self.K for s in sizes]
        return self.case(obj["cases"])

    def is_sent(self, e):
        return self.sent is not None and e[0] == self.b.entry and e[1] == self.sent

    # -- cases --

    def case(self, c):
        for key in ("receivers", "returns"):
            if c.get(key) is not None:
                return self.by_order(c, key)
        if c.get("there") is not None:
            i, k = c["op"], c["device"]
            demand(i < self.b.n and k < self.K, "op or device of a case is out of range")
            return min(self.told_case(i, self.told[i] & {k}, c["there"]), self.told_case(i, self.told[i] - {k}, c["elsewhere"]))
        if c.get("low") is not None:
            g, k, most = c["group"], c["device"], c["most"]
            demand(g < len(self.groups) and k < self.K, "group or device of a case is out of range")
            return min(self.ranged(self.most, g, k, min(self.most[g][k], most), c["low"]),
                       self.ranged(self.least, g, k, max(self.least[g][k], most + 1), c["high"]))  # fmt: skip
        return self.leaf(c)

    def told_case(self, i, devices, c):
        old, self.told[i] = self.told[i], devices
        bound, self.told[i] = self.case(c), old
        return bound

    def ranged(self, where, g, k, value, c):
        old, where[g][k] = where[g][k], value
        bound, where[g][k] = self.case(c), old
        return bound

    def by_order(self, c, key):
        b, to, order = self.b, key == "receivers", self.orders[key]
        named, own, devices = order[0], self.a if to else self.z, c[key]
        demand(self.sent is not None if to else self.obj.get("return_ns") is not None, "an order of nothing")
        demand(not order[1] and len(c["next"]) == len(devices) and all(k < self.K for k in devices), "an order of nothing")
        for x, (i, o, j, t) in enumerate(b.edges):
            if self.is_sent((i, o)) if to else x in self.results:
                may = set(b.allowed(j if to else i, self.a, self.z)) - {own} - set(named)
                demand(may <= set(devices), "devices of a case leave some out")
        demand(not (set(devices) & ({own} | set(named))), "a device is named twice")
        bound = self.upper
        for k, part in zip(devices, c["next"]):
            named.append(k)
            bound = min(bound, self.ranged(self.least, -1, k, max(self.least[-1][k], 1), part) if to else self.case(part))
            named.pop()
        order[1] = True
        old = self.most[-1] if to else None
        if to:
            self.most[-1] = [m if k == own or k in named else 0 for k, m in enumerate(old)]
        bound = min(bound, self.case(c["nobody"]))
        order[1] = False
        if to:
            self.most[-1] = old
        return bound

    # -- where and when --

    def received(self, e, k):
        named = self.orders["receivers"][0]
        if k == self.a:
            return 0
        before = named[: named.index(k) + 1] if k in named else named + [k]
        return sum(e[3][self.a][l] for l in before)

    def returned(self, k):
        """What follows the arrival of a result from k."""
        named = self.orders["returns"][0]
        before = named[: named.index(k)] if k in named else named
        return sum(min((self.b.edges[x][3][l][self.z] for x in self.results), default=INF) for l in before)

    def may_go(self, x, k, l):
        named, closed = self.orders["returns"]
        return not (k != l and l == self.z and closed and k not in named and x in self.results)

    def after(self, x, k, l):
        _, _, j, t = self.b.edges[x]
        ns = self.b.time(j, l) + self.tail[j][l]
        if k != l and l == self.z and self.orders["returns"][0] and x in self.results:
            ns = max(ns, self.returned(k))
        return ns + t[k][l]

    def crosses(self, x, k, l):
        i, _, j, _ = self.b.edges[x]
        return (k in self.mask[i] and l in self.mask[j] and self.may_go(x, k, l)
                and self.head[i][k] + self.b.time(i, k) + self.after(x, k, l) <= self.upper)  # fmt: skip

    def find_paths(self):
        b, K = self.b, self.K
        self.head, self.tail = ([[0] * K for _ in range(b.n)] for _ in "ht")
        for x, e in enumerate(b.edges):
            i, _, j, t = e
            for l in range(K):
                ns = min((self.head[i][k] + b.time(i, k) + t[k][l] for k in self.mask[i] if self.may_go(x, k, l)), default=INF)
                self.head[j][l] = max(self.head[j][l], ns, self.received(e, l) if self.is_sent(e) else 0)
        for x in range(len(b.edges) - 1, -1, -1):
            i, _, j, _ = b.edges[x]
            for k in range(K):
                ns = min((self.after(x, k, l) for l in self.mask[j] if self.may_go(x, k, l)), default=INF)
                self.tail[i][k] = max(self.tail[i][k], ns)

    def narrow(self):
        """Numbers of each group on each device, and devices, by each other; False: they admit nothing."""
        for g, group in enumerate(self.groups):
            for k in range(self.K):
                low, high = self.low[g], self.high[g]
                low[k] = max(low[k], sum(self.mask[i] == {k} for i in group), self.size[g] - sum(high) + high[k])
                high[k] = min(high[k], sum(k in self.mask[i] for i in group), self.size[g] - sum(low) + low[k])
                if low[k] > high[k]:
                    return False
                for i in group if high[k] <= 0 else []:
                    self.mask[i].discard(k)
        return all(self.mask) and all(sum(self.low[g]) <= s <= sum(self.high[g]) and
                                      all(x <= y for x, y in zip(self.low[g], self.high[g])) for g, s in enumerate(self.size))

    def has_plans(self):
        b = self.b
        named, closed = self.orders["receivers"]
        self.mask = [set(x) for x in self.told]
        for e in b.edges if closed else []:
            if self.is_sent(e):
                self.mask[e[2]] &= {self.a, *named}
        self.low, self.high = [list(x) for x in self.least], [list(x) for x in self.most]
        while True:
            before = repr((self.mask, self.low, self.high))
            if not all(self.mask) or not self.narrow():
                return False
            self.find_paths()
            for i in range(b.n):
                self.mask[i] -= {k for k in self.mask[i] if self.head[i][k] + b.time(i, k) + self.tail[i][k] > self.upper}
            if repr((self.mask, self.low, self.high)) == before:
                break
        return all(any(self.crosses(x, k, l) for k in range(self.K) for l in range(self.K)) for x in range(len(b.edges)))

    # -- what the multipliers add up to --

    def leaf(self, c):
        b, K, E = self.b, self.K, len(self.b.edges)
        if self.obj.get("cases") is None:
            self.size, self.least, self.most, self.reads = [], [], [], [0] * b.n
        if not self.has_plans():
            return self.upper
        demand(c.get("duals") is not None, "a case with plans has no multipliers")
        self.loads = list(zip(*(iter(c["loads"]),) * 4))
        kinds = {"port": (0, 1, 2), "channel": (0, 3), "none": (0,)}[b.p.congestion]
        for kind, which, head, tail in self.loads:
            demand(kind in kinds and which < (K * K if kind == 3 else K), "a load of no resource")
            demand(head + tail <= self.proven, "a load row for more than is proven")
        signs = 2 * E * K
        places = [0, E * K, signs, signs + E * K * K, signs + E * K * K + E, signs + E * K * K + E + b.n]
        counts = places[5] + len(self.loads)
        self.dual = {}
        for place, value in zip(*(iter(c["duals"]),) * 2):
            demand(0 <= place < counts + len(self.size) * K, "a multiplier of no row")
            demand(value >= 0 or not signs <= place < counts, "a negative multiplier of an inequality")
            self.dual[place] = value
        d = self.dual.get
        self.out, self.into, self.share, self.path, self.end, self.load = (
            (lambda x, base=base: d(base + x, 0)) for base in places)  # fmt: skip
        self.number = lambda g, k: d(counts + g * K + k, 0)
        return self.verdict()

    def price(self, kind_which, head, tail):
        return sum(self.load(r) for r, x in enumerate(self.loads) if x[:2] in kind_which and head >= x[2] and tail >= x[3])

    def op_term(self, i):
        b, K = self.b, self.K
        behind = self.end(i) + sum(self.path(x) for x, e in enumerate(b.edges) if e[0] == i)
        slope = behind - sum(self.path(x) for x, e in enumerate(b.edges) if e[2] == i)
        costs = []
        for k in self.mask[i]:
            cost = (behind + self.price([(0, k)], self.head[i][k], self.tail[i][k])) * b.time(i, k)
            cost += sum(self.out(x * K + k) for x, e in enumerate(b.edges) if e[0] == i)
            cost += sum(self.into(x * K + k) for x, e in enumerate(b.edges) if e[2] == i)
            cost -= sum(self.number(g, k) for g, group in enumerate(self.groups) if i in group)
            if self.sent is not None:
                cost -= self.reads[i] * self.number(len(self.groups), k)
            costs.append(cost)
        first = min(self.head[i][k] for k in self.mask[i])
        last = self.upper - min(b.time(i, k) + self.tail[i][k] for k in self.mask[i])
        return min(costs) + slope * (first if slope > 0 else last)

    def line_price(self, edges, k, l):
        """Multipliers of the load rows in which a tensor counts that goes from k to l to any of these readers."""
        b, i = self.b, self.b.edges[edges[0]][0]
        if k == l or k not in self.mask[i]:
            return 0
        after = min((b.time(b.edges[x][2], l) + self.tail[b.edges[x][2]][l] for x in edges if l in self.mask[b.edges[x][2]]), default=INF)
        return self.price([(1, k), (2, l), (3, k * self.K + l)], self.head[i][k] + b.time(i, k), after)

    def tensor_term(self, edges):
        b, K, total = self.b, self.K, 0
        shares, table = not b.p.by_edge and len(edges) > 1, b.edges[edges[0]][3]
        pairs = [(k, l) for k in range(K) for l in range(K)]
        for x in edges:
            costs = []
            for k, l in pairs:
                if self.crosses(x, k, l):
                    once = shares and k != l
                    price = self.path(x) + (0 if once else self.line_price([x], k, l))
                    costs.append(price * table[k][l] - self.out(x * K + k) - self.into(x * K + l)
                                 + (self.share((x * K + k) * K + l) if once else 0))  # fmt: skip
            total += min(costs)
        for k, l in pairs if shares else []:
            cost = self.line_price(edges, k, l) * table[k][l]
            cost -= sum(self.share((x * K + k) * K + l) for x in edges if k != l)
            if cost < 0 and any(self.crosses(x, k, l) for x in edges):
                total += cost
        return total

    def verdict(self):
        b, K = self.b, self.K
        total = sum(self.load(r) * (x[2] + x[3]) for r, x in enumerate(self.loads))
        slope = UNIT - sum(self.load(r) for r in range(len(self.loads))) - sum(self.end(i) for i in range(b.n))
        for g in range(len(self.size)):
            for k in range(K):
                u = self.number(g, k)
                total += u * (self.low[g][k] if u > 0 else self.high[g][k])
        total += sum(self.op_term(i) for i in range(b.n))
        tensors = {}
        for x, e in enumerate(b.edges):
            tensors.setdefault(x if b.p.by_edge else e[:2], []).append(x)
        total += sum(self.tensor_term(edges) for edges in tensors.values())
        total += slope * (self.proven if slope > 0 else self.upper)
        return max(0, min(-(-total // UNIT), self.upper))


# ---- the whole ----


def follow(p, entry, exit_):
    """Operators that follow the one and precede the other, the two included."""
    after = {i for i in range(p.n) if entry is None or i == entry}
    before = {i for i in range(p.n) if exit_ is None or i == exit_}
    for i, _, j, _ in p.edges:
        after |= {j} if i in after else set()
    for i, _, j, _ in reversed(p.edges):
        before |= {i} if j in before else set()
    demand(entry is None or exit_ is None or (entry != exit_ and exit_ in after), "its exit does not follow its entry")
    return sorted(after & before)


def prove_windows(p, obj):
    K, intervals = p.K, []
    for x in obj["intervals"]:
        ends = [x.get(key) for key in ("entry", "exit")]
        demand(all(e is None or e < p.n for e in ends), "entry or exit is no operator")
        u, v = (None if e is None else p.place[e] for e in ends)
        ns = prove_class(Block(p, follow(p, u, v), u is not None, v is not None), x)
        if x.get("ns") is not None:
            demand(len(x["ns"]) == K * K, "ns has not one number per pair of devices")
            for at, claim in enumerate(x["ns"]):
                demand(claim <= ns[divmod(at, K)], "more ns are claimed than proven")
                ns[divmod(at, K)] = claim
        intervals.append((u, v, ns))
    head, tail = ([[0] * K for _ in range(p.n)] for _ in "ht")
    ways = [(i, j, {(k, l): t[k][l] for k in range(K) for l in range(K)}) for i, _, j, t in p.edges]
    ways += [x for x in intervals if x[0] is not None and x[1] is not None]
    for u, v, ns in intervals:
        for k in range(K):
            if u is None and v is not None:
                head[v][k] = max(head[v][k], ns[0, k])
            if u is not None and v is None:
                tail[u][k] = max(tail[u][k], ns[k, 0])
    for i, j, ns in sorted(ways, key=lambda x: x[0]):
        for l in range(K):
            head[j][l] = max(head[j][l], min(head[i][k] + p.time[i][k] + ns[k, l] for k in p.may[i]))
    for i, j, ns in sorted(ways, key=lambda x: -x[0]):
        for k in range(K):
            tail[i][k] = max(tail[i][k], min(ns[k, l] + p.time[j][l] + tail[j][l] for l in p.may[j]))
    best = max(min(head[i][k] + p.time[i][k] + tail[i][k] for k in p.may[i]) for i in range(p.n))
    best = max([best] + [ns[0, 0] for u, v, ns in intervals if u is None and v is None])
    if obj.get("pool") is not None:
        arcs = [(u, v, min(p.time[u][k] + ns[k, l] for k in p.may[u] for l in p.may[v]))
                for u, v, ns in intervals if u is not None and v is not None]  # fmt: skip
        best = max(best, prove_pool(Block(p, list(range(p.n)), False, False), 0, 0, obj["pool"], (head, tail, arcs)))
    return best


def memory_leaf(b, a, z, leaf, proven, unit, price, cheapest):
    low, high = proven, LAST
    for c in leaf.counts:
        if c[0] == -2:
            low, high = max(low, c[3]), min(high, c[4])
    if low > high:
        return LAST * unit
    value = low * unit + cheapest
    if not leaf.priced:
        return value
    demand(leaf.T >= high, "prices end before the lengths that they are for")
    paid = Pricing(b, a, z, leaf, price).sum
    if paid == INF:
        return LAST * unit
    worth, least, at = 0, unit * leaf.T, 0
    for q in range(len(leaf.buckets) - 1):
        rate = sum(y for (_, x), y in leaf.price.items() if x == q)
        end = at + leaf.length_of(q)
        if at <= low <= end:
            least = min(least, unit * low - worth - rate * (low - at))
        worth, at = worth + rate * (end - at), end
        if at >= low:
            least = min(least, unit * at - worth)
    return max(value, paid - leaf.count_term() + least)


def chain_cost(p, cuts, blocks, value, unit, price):
    cost = {0: 0}
    for i, c in enumerate(blocks):
        out = p.may[cuts[i]] if i < len(cuts) else [0]
        cost = {z: min(cost[a] + value[c][a, z] for a in cost) for z in out}
        for z in out if i < len(cuts) else []:
            cost[z] += p.time[cuts[i]][z] * unit + price[z] * p.bytes[cuts[i]]
    return cost[0]


def prove_memory(p, cuts, blocks, classes, bound, obj):
    unit, price = obj["unit"], obj["byte_prices"]
    demand(len(price) == p.K, "byte_prices has not one price per device")
    cheap = [sum(min(price[k] for k in p.may[i]) * p.bytes[i] for x, i in enumerate(b.ops) if not b.is_cut(x)) for b in classes]
    value = [{at: ns * unit + cheap[c] for at, ns in bound[c].items()} for c in range(len(classes))]
    for pair in obj["pairs"]:
        c, a, z = pair["class"], pair["entry"], pair["exit"]
        demand(c < len(classes) and a < p.K and z < p.K, "class, entry or exit of a pair is out of range")
        b = classes[c]
        demand((b.entry is not None or not a) and (b.exit is not None or not z), "a pair of no class")
        demand(b.kinds is not None or not b.components(), "a pair of a class that was not described")
        b.kinds, b.count = (b.kinds, b.count) if b.kinds is not None else ([], [])
        leaves = read_leaves(b, a, z, pair["leaves"], False)
        if leaves:
            value[c][a, z] = max(value[c][a, z], min(
                memory_leaf(b, a, z, x, bound[c][a, z], unit, price, cheap[c]) for x in leaves))  # fmt: skip
    total = chain_cost(p, cuts, blocks, value, unit, price) - sum(u * m for u, m in zip(price, p.capacity))
    return min(max(0, -(-total // unit)), LAST)


def prove(whole, cert):
    """What the certificate proves: the length of a plan, or the time between requests."""
    objective = cert.get("objective")
    demand(objective in (None, "latency", "rate"), "objective is neither rate nor latency")
    check_shape("rate" if objective == "rate" else "certificate", cert)
    demand(cert["operators"] == whole.n and cert["certified_bound_ns"] <= cert["lower_bound_ns"], "claims of another problem")
    if objective != "rate":
        proven = prove_one(whole, cert)
    else:
        proven = 0
        if cert.get("loads") is not None:
            proven = Loads(Block(whole, list(range(whole.n)), False, False), 0, 0, True).case(cert["loads"])
        if cert.get("in_flight") is not None:
            proven = max(proven, prove_one(whole, cert) // cert["in_flight"])
    demand(proven >= cert["certified_bound_ns"], f"{cert['certified_bound_ns']} ns are claimed, {proven} proven")
    return min(proven, LAST)


def prove_one(whole, cert):
    """Of one request."""
    p, gone = whole, cert.get("floating")
    if gone is not None:
        demand(all(i < p.n for i in gone) and len(set(gone)) == len(gone) < p.n, "what floats is no part of it")
        p = p.without(gone)
    demand(all(i < p.n for i in cert["cuts"]) and len(set(cert["cuts"])) == len(cert["cuts"]), "cuts are no operators")
    cuts = [p.place[i] for i in cert["cuts"]]
    block = [0] * p.n
    for i, _, j, _ in p.edges:
        block[j] = max(block[j], block[i] + (i in cuts))
    demand([block[c] for c in cuts] == list(range(len(cuts))), "a cut does not come after those before it")
    for i in range(p.n):
        mine = block[i] + (i in cuts)
        demand(mine >= len(cuts) or any(block[e[2]] == mine for e in p.edges if e[0] == i), "an operator need not come before a cut")
    numbers = cert["block_class"]
    demand(len(numbers) == len(cuts) + 1, "block_class has not one number per block")
    classes = []
    for x, c in enumerate(numbers):
        ops = cuts[x - 1 : x] * (x > 0) + [i for i in range(p.n) if block[i] == x and i not in cuts] + cuts[x : x + 1]
        b = Block(p, ops, x > 0, x < len(cuts))
        demand(c <= len(classes), "classes are not numbered in order")
        if c == len(classes):
            classes.append(b)
        demand(b.content() == classes[c].content(), "a block is no copy of the first of its class")
    demand(len(cert["classes"]) == len(classes), "classes has not one entry per class")
    bound = [prove_class(b, obj) for b, obj in zip(classes, cert["classes"])]
    proven = chain_cost(p, cuts, numbers, bound, 1, [0] * p.K)
    if cert.get("memory") is not None:
        proven = max(proven, prove_memory(p, cuts, numbers, classes, bound, cert["memory"]))
    if cert.get("windows") is not None:
        proven = max(proven, prove_windows(p, cert["windows"]))
    return min(proven, LAST)


def verdict(problem, text):
    """(nanoseconds, None), or (None, what is wrong)."""
    try:
        cert = parse(text)
        demand(type(cert) is dict and cert.get("format") == "moirai-certificate" and cert.get("version") == 1, "no certificate")
        return prove(problem, cert), None
    except (Wrong, RecursionError) as error:
        return None, str(error)


def check_dossier(path):
    """Prints what the two verifiers say of everything in the file; the number of disagreements."""
    problem, counts, wrong = None, {"accepted": 0, "rejected": 0, "limit": 0}, 0
    with open(path, encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            what, _, text = line.partition("\t")
            if what == "P":
                problem = Problem(parse(text))
                continue
            _, theirs, *ns = what.split(" ")
            counts[theirs] += 1
            if theirs == "limit":
                continue
            mine, why = verdict(problem, text)
            if mine != (int(ns[0]) if ns else None):
                wrong += 1
                print(f"{path}:{number}: the C verifier says '{what[2:]}', this one {mine if why is None else why!r}")
    print(f"{path}: {counts['accepted']} accepted, {counts['rejected']} rejected, {counts['limit']} beyond limits, {wrong} disagreements")
    return wrong


def main(arguments):
    sys.setrecursionlimit(20000)
    if len(arguments) >= 2 and arguments[0] == "--dossier":
        return 1 if sum(check_dossier(path) for path in arguments[1:]) else 0
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    with open(arguments[0], encoding="utf-8") as file:
        problem, worst = Problem(parse(file.read())), 0
    for path in arguments[1:]:
        with open(path, encoding="utf-8") as file:
            ns, why = verdict(problem, file.read())
        print(f"{path}: rejected: {why}" if why else f"{path}: proven: no plan takes less than {ns} ns")
        worst = 6 if why else worst
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
