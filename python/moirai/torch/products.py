"""Are products in half precision right on this part of a GPU?

Kernels for matrix products share their work out over the multiprocessors that they find. In parts cut by CUDA MPS some
of cuBLAS's kernels for float16 and bfloat16 then leave tiles of the result out, or write not-a-number: which ones
depends on the number of multiprocessors and on the shape, and nothing says so (docs/pytorch.md has a table). Products
in float32 are right. So before a part computes a product in half precision it does it once on random numbers, in half
and in single precision. Where the two differ another kernel is taken that was found to be right (half.py), and where
there is none, the part refuses.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Iterable

import torch
import torch.utils._pytree as pytree

from .half import instead
from .ir import Node, Ref, call
from .program import RankProgram
from .rank import Rank

HALF = (torch.float16, torch.bfloat16)
_PRODUCTS = {
    f"aten.{name}"
    for name in ("linear.default", "addmm.default", "mm.default", "bmm.default", "baddbmm.default", "matmul.default",
                 "convolution.default", "conv1d.default", "conv2d.default", "conv2d.padding", "conv3d.default",
                 "scaled_dot_product_attention.default")
} | {"moirai.conv_relu", "moirai.conv_add_relu", "moirai.linear_act"}  # fmt: skip
_MOST_OFF = 0.03  # of the norm; bfloat16 rounds by 0.2 %, faults are off by 10 % and more


def has_half(nodes: Iterable[Node]) -> bool:
    """Whether something is computed in half precision, if only on the way: under autocast results may be float32."""
    return any(getattr(m, "dtype", None) in HALF for m in pytree.tree_leaves([n.meta for n in nodes]))


class WrongProduct(RuntimeError):
    """A kernel of this part gives wrong results."""


def in_part() -> bool:
    """Whether this process has a share of a GPU."""
    return float(os.environ.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") or 100) < 100


class Judge:
    """Products that were looked at are not tried again: `right` has what computes them."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.right: dict[Any, str] = {}

    def settle(self, program: RankProgram, weights: dict[str, torch.Tensor], host_at: Any = None) -> dict[str, str]:
        """Products of a rank, at the shapes and strides that they have there, by kernels that are right, in place.
        Returns those that are not the module's own: node -> operator."""
        steps = [s for g in program.segments for s in g.steps]
        if not has_half(n for s in steps for n in s.nodes):
            return {}
        found: dict[str, str] = {}

        def look(node: Node, env: dict[str, Any]) -> None:
            other = self.node(node, env)
            if other != node.target:
                found[node.name] = other

        inputs = {n: m.empty(self.device).zero_() for n, m in program.inputs.items()}
        for _ in Rank(program, weights, self.device, None, host_at).rehearse(inputs, look):
            pass
        for s in steps:
            s.nodes = [replace(n, target=found.get(n.name, n.target)) for n in s.nodes]
        return found

    def node(self, node: Node, env: dict[str, Any]) -> str:
        """What computes a node: itself, or where it is a product in half precision that goes wrong here another operator
        that is right. Raises WrongProduct where none is."""
        if node.target not in _PRODUCTS:
            return node.target
        reads = {r: env[r] for r in node.refs() if isinstance(env[r], torch.Tensor) and env[r].dtype in HALF}
        if not reads:
            return node.target
        shapes = [(tuple(t.shape), t.stride(), t.dtype) for t in reads.values()]
        key = (node.target, *shapes, repr([a for a in node.args if not isinstance(a, Ref)]), repr(node.kwargs))
        if key not in self.right:
            self.right[key] = self._find(node, env, reads)
        return self.right[key]

    def _find(self, node: Node, env: dict[str, Any], reads: dict[str, torch.Tensor]) -> str:
        some = {r: torch.empty_like(t).normal_() for r, t in reads.items()}
        expected = call(node, {**env, **{r: t.float() for r, t in some.items()}}, self.device).double()

        def off(target: str) -> float:
            got = call(replace(node, target=target), {**env, **some}, self.device).double()
            return float((got - expected).norm() / expected.norm().clamp_min(1e-30))

        first = off(node.target)
        if first < _MOST_OFF:
            return node.target
        for other in instead(node.target) if not node.kwargs else ():
            try:
                if off(other) < _MOST_OFF:
                    return other
            except Exception as error:  # no Triton here, or no kernel of it for this
                print(f"{other}: {type(error).__name__}: {error}")
        raise WrongProduct(_words(node, reads, first))


def _words(node: Node, reads: dict[str, torch.Tensor], off: float) -> str:
    shapes = " x ".join(str(tuple(t.shape)) for t in reads.values())
    kind = str(next(iter(reads.values())).dtype).replace("torch.", "")
    where = ""
    if torch.cuda.is_available():
        where = f" of {torch.cuda.get_device_properties(0).multi_processor_count} multiprocessors"
    return (
        f"'{node.path or node.name}' would be wrong: {node.target} of {shapes} in {kind} is off by {100 * off:.3g} % "
        f"on this part{where}, a fault of the GPU's libraries: take another share, or float32"
    )
