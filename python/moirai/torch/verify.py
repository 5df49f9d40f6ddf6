"""Are distributed results those of the whole network?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Mapping

import torch
import torch.utils._pytree as pytree

from .._lib import VerifyError
from .capture import Captured
from .ir import INPUT, WEIGHT, Ref, call, substitute
from .products import HALF, has_half


def _single(leaf: Any) -> Any:
    """Numbers of half precision, and the type itself, in single precision."""
    if isinstance(leaf, torch.Tensor):
        return leaf.float() if leaf.dtype in HALF else leaf
    return torch.float32 if isinstance(leaf, torch.dtype) and leaf in HALF else leaf


def whole(captured: Captured, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None,
          device: torch.device | str = "cpu", single: bool = False) -> Any:  # fmt: skip
    """The captured network on one device, in this process: what distributed runs are compared with. `single`: what is
    in half precision is computed in float32."""
    target = torch.device(device)
    change = _single if single else (lambda leaf: leaf)
    leaves = pytree.tree_leaves((args, dict(kwargs or {})))
    given = {k.name: v for k, v in zip(captured.in_leaves, leaves) if isinstance(k, Ref)}
    env: dict[str, Any] = {n: change(w.to(target)) for n, w in captured.weights.items()}
    with torch.no_grad():
        for node in captured.nodes.values():
            if node.kind == INPUT:
                env[node.name] = change(given[node.name].to(target))
            elif node.kind != WEIGHT:
                if single:
                    node = replace(node, args=substitute(node.args, change), kwargs=substitute(node.kwargs, change))
                env[node.name] = call(node, env, target)
    results = [env[x.name] if isinstance(x, Ref) else x for x in captured.out_leaves]
    return pytree.tree_unflatten(results, captured.out_spec)


def _differs(got: torch.Tensor, expected: torch.Tensor) -> float:
    off = torch.nan_to_num((got.detach().cpu().double() - expected.detach().cpu().double()).abs())
    return float(off.max()) if off.numel() else 0.0


def check_close(got: torch.Tensor, expected: torch.Tensor, what: str, half: bool = False, widen: float = 1.0) -> None:
    """Within atol 1e-4 and rtol 1e-3 of the largest number (half precision: 1e-2, times `widen`); whole numbers equal."""
    a, b = got.detach().cpu(), expected.detach().cpu()
    if a.shape != b.shape or a.dtype != b.dtype:
        raise VerifyError(f"{what} is {tuple(a.shape)} {a.dtype}, expected {tuple(b.shape)} {b.dtype}")
    if not a.is_floating_point():
        if not torch.equal(a, b):
            raise VerifyError(f"{what}: {int((a != b).sum())} of {a.numel()} numbers differ")
        return
    tolerance = 1e-2 * widen if half or a.dtype in HALF else 1e-3
    if not torch.equal(a.isfinite(), b.isfinite()):
        raise VerifyError(f"{what}: {int((a.isfinite() != b.isfinite()).sum())} numbers are not finite in one of both")
    scale = float(torch.nan_to_num(b.double().abs(), posinf=0.0).max()) if b.numel() else 0.0
    worst = _differs(a, b)
    if worst > (1e-2 if half or a.dtype in HALF else 1e-4) + tolerance * scale:
        raise VerifyError(f"{what} is off by {worst:.3g} where numbers reach {scale:.3g}")


def _as_near(captured: Captured, results: list[Any], expected: list[Any], given: tuple[Any, Mapping[str, Any]]) -> bool:
    """Whether results are no farther from those in float32 than twice what the expected ones are: many layers in half
    precision add up more than one rounding, and a sum of pieces is rounded once more, so neither is the right one."""
    right = pytree.tree_leaves(whole(captured, *given, single=True))
    both = [(a, b, c) for a, b, c in zip(results, expected, right) if isinstance(a, torch.Tensor)]
    return all(_differs(a, c) <= 2 * _differs(b, c) for a, b, c in both)


def compare(
    captured: Captured,
    verify: bool | torch.nn.Module,
    result: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> None:
    """Raises VerifyError where a result differs from the module's that is given, or from the whole network's. In half
    precision up to four times the usual is allowed where the result is `_as_near` to that in float32."""
    with torch.no_grad():
        module = isinstance(verify, torch.nn.Module)
        expected = verify(*args, **kwargs) if module else whole(captured, args, kwargs)  # type: ignore[operator]
    half = has_half(captured.nodes.values())
    got, wanted = pytree.tree_leaves(result), pytree.tree_leaves(expected)

    def check(widen: float) -> None:
        for i, (a, b) in enumerate(zip(got, wanted)):
            if isinstance(a, torch.Tensor):
                check_close(a, b, f"result {i}", half, widen)

    try:
        check(1.0)
    except VerifyError:
        if not half:
            raise
        check(4.0)
        if not _as_near(captured, got, wanted, (args, kwargs)):
            raise
