"""Products in half precision by other kernels than cuBLAS's, for parts of a GPU where those are wrong (products.py): by
Triton, or in single precision, whose kernels are right everywhere.

They are operators of PyTorch's, so that a compiler leaves them as they are.
"""

from typing import Any, Callable, Optional

import torch
from torch import Tensor

INSTEAD = ("moirai_triton", "moirai_single")  # in the order in which they are tried
NAMES = ("linear", "addmm", "mm", "bmm", "matmul")


def _triton(a: Tensor, b: Tensor, bias: Any) -> Tensor:
    from .triton_products import product

    return product(a, b, bias)


def _single(a: Tensor, b: Tensor, bias: Any) -> Tensor:
    made = torch.bmm(a.float(), b.float())
    return (made if bias is None else made + bias.float()).to(a.dtype)


Kernel = Callable[[Tensor, Tensor, Any], Tensor]


def _flat(kernel: Kernel, x: Tensor, b: Tensor, bias: Any) -> Tensor:
    """(..., k) by (k, n)."""
    made = kernel(x.reshape(1, -1, x.shape[-1]), b.unsqueeze(0), bias)
    return made.view(*x.shape[:-1], b.shape[1])


def _matmul(kernel: Kernel, a: Tensor, b: Tensor) -> Tensor:
    if b.dim() <= 2 or a.dim() < 2:
        return _flat(kernel, a, b if b.dim() == 2 else b.unsqueeze(1), None).view(torch.matmul(a.to("meta"), b.to("meta")).shape)
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    left, right = a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:])
    made = kernel(left.reshape(-1, *a.shape[-2:]), right.reshape(-1, *b.shape[-2:]), None)
    return made.view(*batch, a.shape[-2], b.shape[-1])


def _define(space: str, kernel: Kernel) -> None:
    """linear, addmm, mm, bmm and matmul of a kernel: moirai_triton::linear and so on."""

    def linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
        return _flat(kernel, x, weight.t(), bias)

    def addmm(bias: Tensor, a: Tensor, b: Tensor) -> Tensor:
        if bias.dim() == 1:
            return kernel(a.unsqueeze(0), b.unsqueeze(0), bias)[0]
        return kernel(a.unsqueeze(0), b.unsqueeze(0), None)[0] + bias

    def mm(a: Tensor, b: Tensor) -> Tensor:
        return kernel(a.unsqueeze(0), b.unsqueeze(0), None)[0]

    def bmm(a: Tensor, b: Tensor) -> Tensor:
        return kernel(a, b, None)

    def matmul(a: Tensor, b: Tensor) -> Tensor:
        return _matmul(kernel, a, b)

    for function in (linear, addmm, mm, bmm, matmul):
        plain = getattr(torch.ops.aten, function.__name__).default
        made = torch.library.custom_op(f"{space}::{function.__name__}", function, mutates_args=())
        made.register_fake(lambda *args, plain=plain: plain(*args).contiguous())


for _space, _kernel in zip(INSTEAD, (_triton, _single)):
    _define(_space, _kernel)


def instead(target: str) -> list[str]:
    """Other operators that compute the same, the fastest first."""
    space, _, rest = target.partition(".")
    name = rest.partition(".")[0]
    return [f"{s}.{name}.default" for s in INSTEAD] if space == "aten" and name in NAMES else []
