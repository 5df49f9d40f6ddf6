"""Sums that every piece computes for itself.

Between two strips lie a sum of partial results and what is cheap beside the products: the residual sum, a norm. On one
device it keeps the others waiting twice, for what it reads of them and for what they read of it. With a cut of the kind
"every", piece 2, 3, ... of a strip has a copy of all that is cheap between it and the products before it: devices meet
once, and each reads the others' partial results. The first piece, and whoever is no piece, keep the original.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Mapping

from .flops import base_name
from .groups import CHEAP
from .ir import ALIAS, OP, Node, Ref, substitute


def repeat(nodes: dict[str, Node], piece_of: Mapping[str, int]) -> dict[str, Node]:
    """Nodes in order, classified; `piece_of` are nodes of strips that are cut so, with the number of their piece, from 0."""
    pieces = max(piece_of.values(), default=0) + 1
    needed = _needed(nodes, piece_of, pieces)
    found: dict[str, Node] = {}
    for name, node in nodes.items():
        found[name] = _reading(node, name, piece_of.get(name, 0), needed)
        for k in (k for k in range(1, pieces) if name in needed[k]):
            copy = _reading(node, _copy(name, k), k, needed)
            copy.named = f"{node.named} ({k + 1} of {pieces}, repeated)" if node.named else ""
            found[copy.name] = copy
    return found


def _copy(name: str, k: int) -> str:
    return f"{name}_every{k + 1}"


def _needed(nodes: Mapping[str, Node], piece_of: Mapping[str, int], pieces: int) -> list[set[str]]:
    """By piece, what it has a copy of."""
    needed: list[set[str]] = [set() for _ in range(pieces)]
    for name in reversed(nodes):
        readers = {piece_of.get(name, 0), *(k for k in range(1, pieces) if name in needed[k])} - {0}
        for k in readers:
            needed[k] |= {r for r in nodes[name].refs() if r not in piece_of and _cheap(nodes[r])}
    return needed


def _cheap(node: Node) -> bool:
    return node.kind == ALIAS or (node.kind == OP and base_name(node.target) in CHEAP)


def _reading(node: Node, name: str, k: int, needed: list[set[str]]) -> Node:
    """The node under this name, with piece k's copies of what it reads."""

    def change(leaf: Any) -> Any:
        return Ref(_copy(leaf.name, k)) if isinstance(leaf, Ref) and leaf.name in needed[k] else leaf

    return replace(node, name=name, args=substitute(node.args, change), kwargs=substitute(node.kwargs, change))
