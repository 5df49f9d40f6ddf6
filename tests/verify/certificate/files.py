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
# missing. A type is n (number), l (list of numbers), L (list of such lists), t (text), b (true or false), or a kind.
GRID = {"length_ns": ("n", 0, SPAN), "step_ns": ("n", 1, TIME), "buckets": ("l", 0, INT)}
CASES = {"?receivers": ("l", 0, INT), "?open": ("b",), "?counts": ("l", -2, LAST, 5)}
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
        "entry": ("n", 0, INT), "exit": ("n", 0, INT), "lower_ns": ("n", 0, LAST),
        "?search": ("search",), "?leaves": ("[leaf",), "?loads": ("loads",),
    },
    "search": {"length_ns": ("n", 0, LAST // 8), "tree": ("l", -2, INT)},
    "memory": {"unit": ("n", 1, 1 << 40), "byte_prices": ("l", 0, 1 << 50), "pairs": ("[memory pair",)},
    "memory pair": {"class": ("n", 0, INT), "entry": ("n", 0, INT), "exit": ("n", 0, INT), "leaves": ("[leaf",)},
    "windows": {"intervals": ("[interval",)},
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
                    "?shifts": ("l", 0, TIME),
                    "?from": ("l", -MESSAGE, MESSAGE), "?to": ("l", -MESSAGE, MESSAGE)}),
        (None, {}),
    ],
    "leaf": [
        ("prices", {**CASES, **GRID, "prices": ("l", 0, 1 << 50, 3), "?count_prices": ("l", -TIME, TIME)}),
        (None, CASES),
    ],
}  # fmt: skip
# Kinds of proof that earlier versions have written: refused by name.
GONE = {"pair": {"static": "static proofs", "pool": "pools"}, "windows": {"pool": "pools"}}


def rows(numbers, each):
    """A list of numbers as tuples of so many."""
    return list(zip(*(iter(numbers),) * each))


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
    for gone, what in GONE.get(kind, {}).items():
        demand(value.get(gone) is None, f"{kind}: {gone}: {what} are no longer verified")
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
