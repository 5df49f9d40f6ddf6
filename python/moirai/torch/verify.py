"""Are distributed results those of the whole network?"""

from __future__ import annotations

from typing import Any, Mapping

import torch
import torch.utils._pytree as pytree

from .._lib import VerifyError
from .capture import Captured
from .ir import INPUT, WEIGHT, Ref, call
from .products import HALF, has_half


def whole(captured: Captured, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None,
          device: torch.device | str = "cpu") -> Any:  # fmt: skip
    """The captured network on one device, in this process: what distributed runs are compared with."""
    target = torch.device(device)
    leaves = pytree.tree_leaves((args, dict(kwargs or {})))
    given = {k.name: v for k, v in zip(captured.in_leaves, leaves) if isinstance(k, Ref)}
    env: dict[str, Any] = {n: w.to(target) for n, w in captured.weights.items()}
    with torch.no_grad():
        for node in captured.nodes.values():
            if node.kind == INPUT:
                env[node.name] = given[node.name].to(target)
            elif node.kind != WEIGHT:
                env[node.name] = call(node, env, target)
    results = [env[x.name] if isinstance(x, Ref) else x for x in captured.out_leaves]
    return pytree.tree_unflatten(results, captured.out_spec)


def check_close(got: torch.Tensor, expected: torch.Tensor, what: str, half: bool = False) -> None:
    """Within atol 1e-4 and rtol 1e-3 of the largest number (half precision: 1e-2); whole numbers equal."""
    a, b = got.detach().cpu(), expected.detach().cpu()
    if a.shape != b.shape or a.dtype != b.dtype:
        raise VerifyError(f"{what} is {tuple(a.shape)} {a.dtype}, expected {tuple(b.shape)} {b.dtype}")
    if not a.is_floating_point():
        if not torch.equal(a, b):
            raise VerifyError(f"{what}: {int((a != b).sum())} of {a.numel()} numbers differ")
        return
    atol, rtol = (1e-2, 1e-2) if half or a.dtype in HALF else (1e-4, 1e-3)
    x, y = a.double(), b.double()
    if not torch.equal(x.isfinite(), y.isfinite()):
        raise VerifyError(f"{what}: {int((x.isfinite() != y.isfinite()).sum())} numbers are not finite in one of both")
    off = torch.nan_to_num((x - y).abs())
    scale = float(torch.nan_to_num(y.abs(), posinf=0.0).max()) if y.numel() else 0.0
    worst = float(off.max()) if off.numel() else 0.0
    if worst > atol + rtol * scale:
        raise VerifyError(f"{what} is off by {worst:.3g} where numbers reach {scale:.3g}")


def compare(
    captured: Captured,
    verify: bool | torch.nn.Module,
    result: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> None:
    """Raises VerifyError where a result differs from the module's that is given, or from the whole network's."""
    with torch.no_grad():
        module = isinstance(verify, torch.nn.Module)
        expected = verify(*args, **kwargs) if module else whole(captured, args, kwargs)  # type: ignore[operator]
    half = has_half(captured.nodes.values())
    for i, (a, b) in enumerate(zip(pytree.tree_leaves(result), pytree.tree_leaves(expected))):
        if isinstance(a, torch.Tensor):
            check_close(a, b, f"result {i}", half)
