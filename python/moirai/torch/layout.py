"""Channels last for the whole network, decided once.

cuDNN's convolutions, and those of processors, compute in channels last; tensors in the other order are transposed
around each of them. So inputs are converted where they enter, weights where they are loaded, and all between follows:
elementwise calls keep the order that they find. Whether it pays is Inductor's rule for inference, with its measured
factors: convolutions count by their arithmetic, grouped ones are slower in channels last, all others faster.
What becomes of every value's strides, and which views have to copy now, is found by one pass of fake tensors.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses import FakeTensorMode

from . import flops
from .fold import CONVOLUTIONS, transposed
from .ir import ALIAS, CONST, INPUT, OP, WEIGHT, Meta, Node, Ref, call

_GROUPED, _PLAIN, _NARROWING, _SMALL = 1.358, 0.823, 0.725, 0.783
_FEW = 300  # so many nodes per convolution, and it is no convolutional network


def _planes(nodes: dict[str, Node]) -> list[Node]:
    """Convolutions over two dimensions."""
    found = [n for n in nodes.values() if n.target in CONVOLUTIONS and n.kind == OP and not transposed(n)]
    return [n for n in found if isinstance(n.meta, Meta) and len(n.meta.shape) == 4 and isinstance(n.args[0], Ref)]


def _factor(weight: Meta, channels: int) -> float:
    out, per_group = weight.shape[:2]
    if channels > per_group > 1:
        return _GROUPED
    if out <= 64 and per_group <= 64:
        return _SMALL
    return _NARROWING if 2 * out <= per_group and weight.shape[2] > 1 else _PLAIN


def pays(nodes: dict[str, Node]) -> bool:
    """Inductor's rule."""
    convs = _planes(nodes)
    if not convs or len(nodes) >= _FEW * len(convs):
        return False
    plain = last = 0.0
    for conv in convs:
        x, weight = nodes[conv.args[0].name].meta, nodes[conv.args[1].name].meta
        work = flops.flops(conv, [x, weight], [conv.meta])
        plain += work
        last += work * _factor(weight, x.shape[1])
    return last <= plain


def strides_of(meta: Meta) -> Meta:
    """In channels last."""
    _, c, h, w = meta.shape
    return Meta(meta.shape, meta.dtype, (c * h * w, 1, w * c, c))


def _entering(conv: Node, nodes: dict[str, Node]) -> set[str]:
    """Inputs that reach a convolution through calls that keep their shape."""
    found, seen, todo = set(), set(), [conv.args[0].name]
    shape = nodes[conv.args[0].name].meta.shape
    while todo:
        node = nodes[todo.pop()]
        if node.kind == INPUT:
            found.add(node.name)
        elif node.kind in (OP, ALIAS) and node.name not in seen:
            seen.add(node.name)
            todo += [r for r in node.refs() if isinstance(m := nodes[r].meta, Meta) and m.shape == shape]
    return found


def channels_last(nodes: dict[str, Node]) -> dict[str, Node]:
    """New nodes with convolutions' weights as constants in that order, inputs too, and strides that follow."""
    made: dict[str, Node] = {}
    inputs = set().union(*(_entering(c, nodes) for c in _planes(nodes)))
    convs = {c.name for c in _planes(nodes)}
    for name, node in nodes.items():
        if name in inputs:
            node.meta = strides_of(node.meta)
        if name in convs and nodes[node.args[1].name].kind in (WEIGHT, CONST):
            weight = node.args[1].name
            last = f"{weight}_last"
            if last not in made:
                how = {"memory_format": torch.channels_last}
                meta = strides_of(nodes[weight].meta)
                made[last] = Node(last, CONST, "aten.clone.default", (Ref(weight),), how, meta)
            node.args = (node.args[0], Ref(last), *node.args[2:])
        made[name] = node
    follow(made)
    return made


_MOST_KNOWN = 50_000  # calls whose results' layouts are kept: layers are alike, and so are a network's cuts
_known: dict[Any, Any] = {}


def follow(nodes: dict[str, Node], device: str = "cpu") -> None:
    """Strides of all values on a device, by fake tensors, from those of inputs and weights."""
    where = torch.device(device)
    found: dict[str, Any] = {}
    with torch.no_grad(), FakeTensorMode():
        for node in nodes.values():
            found[node.name] = node.meta if node.kind in (INPUT, WEIGHT) else _followed(node, found, where)
    for node in nodes.values():
        node.meta = found[node.name]


def _followed(node: Node, found: dict[str, Any], where: torch.device) -> Any:
    """A call's result, as it was where the same was called before."""
    key = (where, node.target, _frozen(node.args, found), _frozen(node.kwargs, found))
    if key not in _known:
        env = {r: _empty(found[r], where) for r in node.refs()}
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[key] = _like(call(node, env, where), node.meta)
    return _known[key]


def _frozen(value: Any, found: dict[str, Any]) -> Any:
    """Arguments as part of a key: what is known of tensors in their place. 1 is not 1.0, which makes another dtype."""
    if isinstance(value, Ref):
        return found[value.name]
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(v, found) for v in value)
    if isinstance(value, dict):
        return tuple((k, _frozen(v, found)) for k, v in value.items())
    return type(value), value


def _empty(known: Any, where: torch.device) -> Any:
    if isinstance(known, Meta):
        return known.empty(where)
    return tuple(_empty(k, where) for k in known) if isinstance(known, tuple) else known


def _like(value: Any, known: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return Meta.of(value)
    return tuple(_like(v, k) for v, k in zip(value, known)) if isinstance(value, (tuple, list)) else known
