"""What each node of a captured network is to a plan: an operator, an alias, a constant (ir.py)."""

from __future__ import annotations

from typing import Any

import torch

from . import flops
from .ir import ALIAS, CONST, INPUT, OP, WEIGHT, Meta, Node, Ref

_SAME = {"aten.alias.default", "aten.detach.default", "aten.lift_fresh_copy.default", "aten.lift_fresh.default"}
_LIKE_VIEW = {"aten._unsafe_view.default", "aten.view.default"}


def _function_schema(target: str) -> Any:
    found: Any = torch.ops
    for part in target.split("."):
        found = getattr(found, part)
    return found


def viewable(meta: Meta, shape: tuple[int, ...]) -> bool:
    try:
        meta.empty("meta").view(shape)
        return True
    except RuntimeError:
        return False


def is_alias(node: Node, first: Any) -> bool:
    """Whether a node shows its first tensor again without computing."""
    if node.target == "getitem" or node.target in _SAME:
        return True
    if not isinstance(first, Meta) or node.target.startswith("moirai."):
        return False
    if node.target in _LIKE_VIEW:  # exported as a view; in another layout (layout.py) it may have to copy
        return viewable(first, node.meta.shape)
    if node.target == "aten.clone.default":
        asked = node.kwargs.get("memory_format")
        return asked in (None, torch.preserve_format) or node.meta.stride == first.stride
    if node.target == "aten.dropout.default":
        return not (len(node.args) > 2 and node.args[2])
    returns = _function_schema(node.target)._schema.returns
    if not returns or any(r.alias_info is None or r.alias_info.is_write for r in returns):
        return False
    if not isinstance(node.meta, Meta):
        return True  # split and its kind: a tuple of views
    if node.meta.dtype != first.dtype:
        return False
    if flops.base_name(node.target) in ("reshape", "contiguous", "flatten", "to"):
        if node.meta.numel == first.numel and node.meta.shape != first.shape:
            return viewable(first, node.meta.shape)
        return node.meta.stride == first.stride
    return True


def _is_random(node: Node) -> bool:
    if node.target == "getitem" or node.target.startswith("moirai."):
        return False
    return torch.Tag.nondeterministic_seeded in _function_schema(node.target).tags


def classify(nodes: dict[str, Node]) -> None:
    """Constants first: a view of a weight is one, too."""
    for node in nodes.values():
        if node.kind in (INPUT, WEIGHT):
            continue
        refs = node.refs()
        if all(nodes[r].kind in (CONST, WEIGHT) for r in refs) and not _is_random(node):
            node.kind = CONST
        elif refs and is_alias(node, nodes[refs[0]].meta) and len(set(refs)) == 1:
            node.kind = ALIAS
        else:
            node.kind = OP


def live(nodes: dict[str, Node], out_leaves: list[Any]) -> dict[str, Node]:
    """Without what no result depends on; every input stays, since callers give them all."""
    todo = [leaf.name for leaf in out_leaves if isinstance(leaf, Ref)]
    seen = set(todo)
    while todo:
        for ref in nodes[todo.pop()].refs():
            if ref not in seen:
                seen.add(ref)
                todo.append(ref)
    return {n: node for n, node in nodes.items() if n in seen or node.kind == INPUT}
