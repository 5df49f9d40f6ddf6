"""A captured network: nodes in an order in which they can run, each a call of an ATen operator.

torch.fx graphs hold live Python objects; ranks are other processes, often with another device and other strides. So
what travels is this: plain data, pickled in microseconds, with operators by name.
"""

from __future__ import annotations

import contextlib
import operator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Callable, Iterable, Iterator, Mapping

import torch
import torch.backends.cuda as attention_kernels

_FEW_KEYS = 64
_HALF = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Ref:
    """An argument that is another node's value."""

    name: str


@dataclass(frozen=True)
class Meta:
    """What is known of a tensor before it exists."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    stride: tuple[int, ...]

    @property
    def numel(self) -> int:
        n = 1
        for d in self.shape:
            n *= d
        return n

    @property
    def bytes(self) -> int:
        return self.numel * self.dtype.itemsize

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Meta:
        return cls(tuple(int(d) for d in tensor.shape), tensor.dtype, tuple(int(s) for s in tensor.stride()))

    def empty(self, device: torch.device | str) -> torch.Tensor:
        return torch.empty_strided(self.shape, self.stride, dtype=self.dtype, device=device)

    def zeros(self, device: torch.device | str) -> torch.Tensor:
        return self.empty(device).zero_()

    @property
    def dense(self) -> bool:
        """Every element once and without gaps, in whatever order of dimensions."""
        step = 1
        for stride, size in sorted((s, d) for s, d in zip(self.stride, self.shape) if d != 1):
            if stride != step:
                return False
            step *= size
        return True

    @property
    def packed(self) -> Meta:
        """The same where it is dense, else in the usual order: what a message has room for."""
        if self.dense:
            return self
        usual = [1]
        for d in self.shape[:0:-1]:
            usual.insert(0, usual[0] * max(d, 1))
        return Meta(self.shape, self.dtype, tuple(usual[: len(self.shape)]))

    def fits(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor has these strides; those of dimensions of one element do not count."""
        return all(a == b or d <= 1 for a, b, d in zip(tensor.stride(), self.stride, self.shape))

    def lay_out(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor in these strides: itself, or a copy."""
        return tensor if self.fits(tensor) else self.empty(tensor.device).copy_(tensor)


# What a node is to a plan.
OP = "op"  # computes: an operator of the graph
ALIAS = "alias"  # another look at its only tensor: a view, a part of a tuple; free, repeated wherever it is needed
CONST = "const"  # depends on weights alone: computed once, when a rank is loaded
INPUT = "input"
WEIGHT = "weight"


@dataclass
class Node:
    """`meta` is a Meta, or a tuple of Meta and None for operators with several results."""

    name: str
    kind: str
    target: str = ""
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    meta: Any = None
    path: str = ""  # the module that it came from: "layers.3.attn.q_proj"
    members: tuple[str, ...] = ()  # names of the calls that were made one
    named: str = ""  # the operator's name, where it is not to be made up: "q_proj (2 of 3, 5 of 12 heads)"

    def refs(self) -> list[str]:
        """Names of the values that it reads, in order, repeats kept."""
        found: list[str] = []
        _add_refs(self.args, found)
        _add_refs(self.kwargs, found)
        return found


def _add_refs(value: Any, found: list[str]) -> None:
    """Of nested tuples, lists and dicts. No generator: this is asked for more often than anything else."""
    if isinstance(value, Ref):
        found.append(value.name)
    elif isinstance(value, (tuple, list)):
        for item in value:
            _add_refs(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            _add_refs(item, found)
    elif isinstance(value, slice):
        _add_refs((value.start, value.stop, value.step), found)


def substitute(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same nest with other leaves."""
    if isinstance(value, tuple):
        return tuple(substitute(item, change) for item in value)
    if isinstance(value, list):
        return [substitute(item, change) for item in value]
    if isinstance(value, dict):
        return {key: substitute(item, change) for key, item in value.items()}
    return change(value)


@contextlib.contextmanager
def kernels_for_few_keys() -> Iterator[None]:
    """PyTorch's own kernel of attention alone: see `_attention`."""
    flash, cudnn = attention_kernels.flash_sdp_enabled(), attention_kernels.cudnn_sdp_enabled()
    attention_kernels.enable_flash_sdp(False)
    attention_kernels.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        attention_kernels.enable_flash_sdp(flash)
        attention_kernels.enable_cudnn_sdp(cudnn)


def few_keys(nodes: Iterable[Node], metas: Mapping[str, Any]) -> bool:
    """Whether there is attention in half precision over few keys among these, and none over many."""
    found = [n for n in nodes if n.target == "aten.scaled_dot_product_attention.default"]
    keys = [metas[n.args[1].name] for n in found]
    return bool(keys) and all(m.dtype in _HALF and m.shape[-2] <= _FEW_KEYS for m in keys)


def _attention(query: torch.Tensor, key: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Attention in half precision over few keys, as in windows, by the kernel that is fastest there: PyTorch takes
    cuDNN's wherever the mask allows it, which takes 1.1 to 1.8 times as long up to 64 keys, and less beyond (H200)."""
    run = torch.ops.aten.scaled_dot_product_attention.default
    if not (query.is_cuda and query.dtype in _HALF and key.size(-2) <= _FEW_KEYS):
        return run(query, key, *args, **kwargs)  # type: ignore[no-any-return]
    with kernels_for_few_keys():
        return run(query, key, *args, **kwargs)  # type: ignore[no-any-return]


def raw_function(target: str) -> Callable[..., Any]:
    """The operator of a name such as aten.linear.default, as a compiler takes it.

    A view that was possible where the network was captured need not be on another device, whose kernels may lay their
    results out otherwise: reshape copies then.
    """
    if target == "getitem":
        return operator.getitem
    if target in ("aten.view.default", "aten._unsafe_view.default"):
        target = "aten.reshape.default"
    if target.startswith("moirai_"):
        from . import half  # noqa: F401  # defines them
    found: Any = torch.ops
    for part in target.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


@lru_cache(maxsize=None)
def function_of(target: str) -> Callable[..., Any]:
    """What runs a call: ATen's operator, or ours."""
    if target.startswith("moirai."):
        from . import fold, fused

        return (fold.FUNCTIONS | fused.FUNCTIONS)[target]
    if target == "aten.scaled_dot_product_attention.default":
        return _attention
    return raw_function(target)


def call(node: Node, env: dict[str, Any], device: torch.device) -> Any:
    """Runs a node on values of `env`; devices among its arguments become this one."""

    def change(leaf: Any) -> Any:
        if isinstance(leaf, Ref):
            return env[leaf.name]
        return device if isinstance(leaf, torch.device) else leaf

    args = [
        env[a.name] if type(a) is Ref else substitute(a, change) if type(a) in (list, tuple, torch.device) else a
        for a in node.args
    ]
    if node.kwargs:
        return function_of(node.target)(*args, **substitute(node.kwargs, change))
    return function_of(node.target)(*args)
