"""Numbers, refusals, and the shape of a certificate: which keys each kind of object has (docs/formats.md)."""

import json

INF = float("inf")
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
# missing. A type is n (number), l (list of numbers), L (list of such lists), t (text), b (true or false), a kind, "[" and a
# kind for a list of these, or "gone": what earlier versions have written, refused by name.
COUNT, NS, COUNTS = ("n", 0, INT), ("n", 0, LAST), ("l", 0, INT)
CASES = {"?receivers": COUNTS, "?open": ("b",), "?counts": ("l", -2, LAST, 5)}
CLASS = {"component_kind": COUNTS, "trees": ("L", 0, INT, 3), "?shared": COUNT, "?pairs": ("[pair",)}
CLAIMS = {"operators": COUNT, "lower_bound_ns": NS, "certified_bound_ns": NS, "?problem": ("t",), "?problem_digest": ("t",)}
CHAIN = {"?floating": COUNTS, "cuts": COUNTS, "block_class": COUNTS, "classes": ("[class",), "?memory": ("memory",), "?windows": ("windows",)}
# By kind its forms: the first whose key is there, or that needs none.
FORMS = {
    "certificate": [(None, {**CLAIMS, **CHAIN})],
    "rate": [
        ("in_flight", {**CLAIMS, **CHAIN, "in_flight": ("n", 1, INT), "?loads": ("loads",)}),
        (None, {**CLAIMS, "loads": ("loads",)}),
    ],
    "class": [("component_kind", CLASS), ("trees", CLASS), (None, {"?pairs": ("[pair",)})],
    "pair": [(None, {
        "entry": COUNT, "exit": COUNT, "lower_ns": NS, "?search": ("search",), "?leaves": ("[leaf",), "?loads": ("loads",),
        "?static": ("gone", "static proofs"), "?pool": ("gone", "pools"),
    })],
    "search": [(None, {"length_ns": ("n", 0, LAST // 8), "tree": ("l", -2, INT)})],
    "loads": [
        ("cases", {"op": COUNT, "cases": ("[loads",)}),
        ("prices", {"prices": ("l", 0, 1 << 40), "?byte_prices": ("l", 0, 1 << 50), "?unit": ("n", 1, MESSAGE),
                    "?shifts": ("l", 0, TIME), "?paths": ("l", 0, TIME), "?from": ("l", -MESSAGE, MESSAGE), "?to": ("l", -MESSAGE, MESSAGE)}),
        (None, {}),
    ],
    "leaf": [
        ("prices", {**CASES, "length_ns": ("n", 0, SPAN), "step_ns": ("n", 1, TIME), "buckets": COUNTS,
                    "prices": ("l", 0, 1 << 50, 3), "?count_prices": ("l", -TIME, TIME)}),
        (None, CASES),
    ],
    "memory": [(None, {"unit": ("n", 1, 1 << 40), "byte_prices": ("l", 0, 1 << 50), "pairs": ("[memory pair",)})],
    "memory pair": [(None, {"class": COUNT, "entry": COUNT, "exit": COUNT, "leaves": ("[leaf",)})],
    "windows": [(None, {"intervals": ("[interval",), "?pool": ("gone", "pools")})],
    "interval": [(None, {"?entry": COUNT, "?exit": COUNT, "?ns": ("l", 0, LAST)})],
}  # fmt: skip


def rows(numbers, each):
    """A list of numbers as tuples of so many."""
    return list(zip(*(iter(numbers),) * each))


def check_numbers(value, least, most, each=1):
    demand(type(value) is list and len(value) % each == 0, "no list of numbers")
    demand(all(type(x) is int and least <= x <= most for x in value), "a number out of range")


def check_value(name, value, kind, *range_):
    if kind == "n":
        demand(type(value) is int and range_[0] <= value <= range_[1], f"{name} is out of range")
    elif kind == "l":
        check_numbers(value, *range_)
    elif kind == "gone":
        raise Wrong(f"{name}: {range_[0]} are no longer verified")
    elif kind in "tb":
        demand(type(value) is (str if kind == "t" else bool), f"{name} is of another type")
    elif kind == "L" or kind[0] == "[":
        demand(type(value) is list, f"{name} is no list")
        for item in value:
            check_value(name, item, kind[1:] or "l", *range_)
    else:
        check_shape(kind, value)


def check_shape(kind, value):
    demand(type(value) is dict, f"{kind} is no object")
    for key, what in next(keys for key, keys in FORMS[kind] if key is None or value.get(key) is not None).items():
        item = value.get(key.lstrip("?"))
        demand(item is not None or key.startswith("?"), f"{kind}: {key} is missing")
        if item is not None:
            check_value(f"{kind}: {key}", item, *what)
    if kind == "interval":
        check_shape("class", value)
