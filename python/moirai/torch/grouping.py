"""Groups of a captured network: from the cache, from Inductor, or by rules of our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping, Sequence

import torch

from .cache import digest, read_json, write_json
from .groups import Calls, by_rules, calls_of, check, from_kernels
from .ir import ALIAS, OP, Node
from .piece import Piece
from .precision import flags


def whole_piece(nodes: Mapping[str, Node], base: Mapping[str, str], results: Sequence[str]) -> Piece:
    """All calls of a network; inputs, weights and constants are arguments."""
    inner = tuple(n for n in nodes.values() if n.kind in (OP, ALIAS))
    read = {r for n in inner for r in n.refs()}
    args = tuple(n for n, node in nodes.items() if node.kind not in (OP, ALIAS) and n in read)
    made = [r for r in results if nodes[base[r]].kind == OP]
    return Piece(inner, args, tuple(dict.fromkeys(made)))


def find_groups(
    nodes: Mapping[str, Node],
    base: Mapping[str, str],
    results: Sequence[str],
    device: torch.device | None,
    folder: Path | None,
) -> tuple[list[list[str]], str]:
    """The groups, and who made them: "inductor", or the reason why our own rules did; without a device nobody else is
    asked."""
    calls = calls_of(nodes, base, results)
    if device is None:
        return by_rules(calls, nodes), "as asked"
    piece = whole_piece(nodes, base, results)
    metas = {a: nodes[a].meta for a in piece.args}
    key = repr((piece.text(metas), torch.__version__, device.type, _place(device), sorted(flags().items())))
    path = folder / "groups" / f"{digest(key)}.json" if folder else None
    kept = read_json(path, None)
    if kept is not None:
        order = [n.name for n in piece.nodes]
        groups = [[order[i] for i in g] for g in kept["groups"]]  # names may be others
        if not check(calls, groups):
            return groups, str(kept["by"])
    groups, by = _ask(piece, metas, nodes, base, calls, device)
    if by == "inductor":
        number = {n.name: i for i, n in enumerate(piece.nodes)}
        write_json(path, {"by": by, "groups": [[number[c] for c in g] for g in groups]})
    return groups, by


def _place(device: torch.device) -> str:
    if device.type != "cuda" or not torch.cuda.is_available():
        return ""
    return torch.cuda.get_device_properties(0).name


def _ask(piece: Piece, metas: Any, nodes: Mapping[str, Node], base: Mapping[str, str], calls: Calls,
         device: torch.device) -> tuple[list[list[str]], str]:  # fmt: skip
    try:
        from .inductor import kernels_of, reason
    except Exception as error:  # a version without it
        return by_rules(calls, nodes), f"no Inductor: {type(error).__name__}"
    try:
        groups = from_kernels(calls, kernels_of(piece, metas, nodes, base, device))
    except Exception as error:
        return by_rules(calls, nodes), f"no groups from Inductor: {reason(error)}"
    wrong = check(calls, groups)
    return (by_rules(calls, nodes), f"no groups from Inductor: {wrong}") if wrong else (groups, "inductor")
