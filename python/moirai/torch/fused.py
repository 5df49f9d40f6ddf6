"""Calls that ATen has as one kernel on GPUs: a convolution with its activation, or with a sum and its activation
(cuDNN), a product with its activation (cuBLASLt). `capture(..., fuse="aten")` makes one operator of each.

Whether the one kernel is there, right and faster than the separate calls depends on shapes, strides, number types and
the part of the GPU. So it is tried where it runs, at the first call of its kind, which is never inside a CUDA graph
(ranks warm up before they capture); elsewhere, and on processors, the separate calls run.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Callable

import torch

from .fold import transposed
from .ir import OP, Meta, Node, Ref

_CALLS = 20
_chosen: dict[Any, bool] = {}  # kind, shapes, strides -> whether the one kernel is taken
_aten = torch.ops.aten


def _key(kind: str, tensors: tuple[Any, ...], rest: tuple[Any, ...]) -> Any:
    shapes = [(tuple(t.shape), t.stride(), t.dtype) if isinstance(t, torch.Tensor) else None for t in tensors]
    return (kind, torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision(), repr(shapes), repr(rest))


def _seconds(work: Callable[[], Any]) -> float:
    best = float("inf")
    for _ in range(3):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(_CALLS):
            work()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - began)
    return best


def _try(one: Callable[[], torch.Tensor], several: Callable[[], torch.Tensor]) -> bool:
    try:
        got, expected = one(), several()
        off = (got - expected).abs().max()
        right = bool(off <= 1e-2 * expected.abs().max() + 1e-6)
        return right and _seconds(one) < _seconds(several)
    except RuntimeError:  # no such kernel here
        return False


def _choose(key: Any, one: Callable[[], torch.Tensor], several: Callable[[], torch.Tensor]) -> torch.Tensor:
    if key not in _chosen:
        if torch.cuda.is_current_stream_capturing():
            return several()
        _chosen[key] = _try(one, several)
    return one() if _chosen[key] else several()


def conv_relu(x: torch.Tensor, w: torch.Tensor, b: Any, *how: Any) -> torch.Tensor:
    """`how`: stride, padding, dilation, groups."""

    def several() -> torch.Tensor:
        return _aten.relu_.default(_aten.conv2d.default(x, w, b, *how))

    if not x.is_cuda:
        return several()
    return _choose(_key("conv_relu", (x, w, b), how), lambda: _aten.cudnn_convolution_relu(x, w, b, *how), several)


def conv_add_relu(x: torch.Tensor, w: torch.Tensor, b: Any, z: torch.Tensor, *how: Any) -> torch.Tensor:
    def several() -> torch.Tensor:
        return _aten.relu_.default(_aten.conv2d.default(x, w, b, *how).add_(z))

    if not x.is_cuda:
        return several()
    key = _key("conv_add_relu", (x, w, b, z), how)
    return _choose(key, lambda: _aten.cudnn_convolution_add_relu(x, w, z, 1.0, b, *how), several)


def linear_act(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, gelu: bool) -> torch.Tensor:
    """With relu, or with gelu by tanh, which is what cuBLASLt has."""

    def several() -> torch.Tensor:
        y = _aten.linear.default(x, w, b)
        return _aten.gelu.default(y, approximate="tanh") if gelu else _aten.relu_.default(y)

    def one() -> torch.Tensor:
        flat = x.reshape(-1, x.shape[-1])
        return _aten._addmm_activation(b, flat, w.t(), use_gelu=gelu).view(*x.shape[:-1], -1)

    return _choose(_key("linear_act", (x, w, b), (gelu,)), one, several) if x.is_cuda else several()


FUNCTIONS = {"moirai.conv_relu": conv_relu, "moirai.conv_add_relu": conv_add_relu, "moirai.linear_act": linear_act}


# ---- which calls


def _pair(value: Any) -> list[int]:
    return [int(v) for v in value] * (2 if len(value) == 1 else 1) if isinstance(value, (list, tuple)) else [value] * 2


def _how(conv: Node) -> tuple[Any, ...] | None:
    if conv.kwargs or conv.target not in ("aten.conv2d.default", "aten.convolution.default") or transposed(conv):
        return None
    if not isinstance(conv.meta, Meta) or len(conv.meta.shape) != 4:
        return None
    at = {"stride": 3, "padding": 4, "dilation": 5}
    given = [conv.args[i] if len(conv.args) > i else (0 if what == "padding" else 1) for what, i in at.items()]
    groups = conv.args[8 if conv.target == "aten.convolution.default" else 6 :][:1]
    return (*(_pair(v) for v in given), int(groups[0]) if groups else 1)


class _Finder:
    def __init__(self, nodes: dict[str, Node], results: list[Any]) -> None:
        self.nodes = nodes
        self.gone: set[str] = set()
        self.readers: dict[str, int] = {}
        for name in [r for n in nodes.values() for r in n.refs()] + [r.name for r in results if isinstance(r, Ref)]:
            self.readers[name] = self.readers.get(name, 0) + 1

    def own(self, value: Any) -> Node | None:
        """The call whose value this is, if nobody else reads it."""
        node = self.nodes[value.name] if isinstance(value, Ref) else None
        while node is not None and self.readers[node.name] == 1:
            if node.kind == OP:
                return node
            node = self.nodes[node.args[0].name] if node.target == "aten.alias.default" else None
        return None

    def merge(self, last: Node, before: list[Node], target: str, args: tuple[Any, ...]) -> Node:
        self.gone.update(b.name for b in before)
        members = tuple(m for n in [*before, last] for m in (n.members or (n.name,)))
        heavy = before[0]
        return replace(last, target=target, args=args, kwargs={}, path=heavy.path, members=members)

    def relu(self, node: Node) -> Node | None:
        inner = self.own(node.args[0])
        if inner is None or inner.meta != node.meta:
            return None
        if inner.target == "aten.linear.default" and len(inner.args) > 2 and not inner.kwargs and inner.args[2]:
            return self.merge(node, [inner], "moirai.linear_act", (*inner.args[:3], False))
        if (how := _how(inner)) is not None:
            return self.merge(node, [inner], "moirai.conv_relu", (*_three(inner), *how))
        if inner.target != "aten.add.Tensor" or inner.kwargs or len(inner.args) != 2:
            return None
        for side, z in (inner.args, inner.args[::-1]):
            conv = self.own(side)
            how = _how(conv) if conv is not None else None
            if conv is not None and how is not None and isinstance(z, Ref) and self.nodes[z.name].meta == conv.meta:
                return self.merge(node, [conv, inner], "moirai.conv_add_relu", (*_three(conv), z, *how))
        return None

    def gelu(self, node: Node) -> Node | None:
        inner = self.own(node.args[0])
        if inner is None or node.kwargs.get("approximate", "none") != "tanh":
            return None
        if inner.target == "aten.linear.default" and len(inner.args) > 2 and not inner.kwargs and inner.args[2]:
            return self.merge(node, [inner], "moirai.linear_act", (*inner.args[:3], True))
        return None


def _three(conv: Node) -> tuple[Any, ...]:
    return (*conv.args[:2], conv.args[2] if len(conv.args) > 2 else None)


def fuse_calls(nodes: dict[str, Node], results: list[Any]) -> dict[str, Node]:
    """New nodes, in which these calls are one, under the last one's name."""
    finder = _Finder(nodes, results)
    merged = {}
    for node in nodes.values():
        rule = {"aten.relu.default": finder.relu, "aten.gelu.default": finder.gelu}.get(node.target)
        found = rule(node) if rule is not None and node.kind == OP else None
        if found is not None:
            merged[node.name] = found
    return {n: merged.get(n, node) for n, node in nodes.items() if n not in finder.gone}
