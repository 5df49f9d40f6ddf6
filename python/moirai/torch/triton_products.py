"""A product of matrices in half precision by Triton: every tile is its own block, whatever the number of multiprocessors.

Not as fast as cuBLAS's where those are right; taken where they are not (products.py)."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

# Rows and columns of a tile, steps of the sum, warps, stages: the first whose tiles keep all multiprocessors busy.
_TILES = ((128, 128, 64, 8, 3), (128, 64, 64, 4, 3), (64, 64, 64, 4, 3), (32, 64, 64, 4, 3), (32, 32, 64, 4, 3))


@triton.jit
def _kernel(a, b, bias, c, M, N, K, a_batch, a_m, a_k, b_batch, b_k, b_n, c_batch, HAS_BIAS: tl.constexpr,
            TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):  # fmt: skip
    across = tl.cdiv(N, TILE_N)
    tile, batch = tl.program_id(0), tl.program_id(1).to(tl.int64)
    rows = ((tile // across) * TILE_M + tl.arange(0, TILE_M)).to(tl.int64)
    columns = ((tile % across) * TILE_N + tl.arange(0, TILE_N)).to(tl.int64)
    inner = tl.arange(0, TILE_K).to(tl.int64)
    at_a = a + batch * a_batch + rows[:, None] * a_m + inner[None, :] * a_k
    at_b = b + batch * b_batch + inner[:, None] * b_k + columns[None, :] * b_n
    total = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, TILE_K)):
        left = K - step * TILE_K
        x = tl.load(at_a, mask=(rows[:, None] < M) & (inner[None, :] < left), other=0.0)
        y = tl.load(at_b, mask=(inner[:, None] < left) & (columns[None, :] < N), other=0.0)
        total += tl.dot(x, y)
        at_a += TILE_K * a_k
        at_b += TILE_K * b_k
    if HAS_BIAS:
        total += tl.load(bias + columns, mask=columns < N, other=0.0).to(tl.float32)[None, :]
    to = c + batch * c_batch + rows[:, None] * N + columns[None, :]
    tl.store(to, total.to(c.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


def product(a: torch.Tensor, b: torch.Tensor, bias: Any = None) -> torch.Tensor:
    """(batch, m, k) by (batch, k, n), and a row for all, in whatever strides."""
    batch, m, k = a.shape
    n = b.shape[2]
    c = torch.empty((batch, m, n), dtype=a.dtype, device=a.device)
    if not c.numel():
        return c
    cuda = a.device.type == "cuda"
    sm = torch.cuda.get_device_properties(a.device).multi_processor_count if cuda else 1
    tiles = [(batch * triton.cdiv(m, t[0]) * triton.cdiv(n, t[1]), t) for t in _TILES]
    tile_m, tile_n, tile_k, warps, stages = next((t for count, t in tiles if count >= sm), _TILES[-1])
    grid = (triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n), batch)
    _kernel[grid](a, b, c if bias is None else bias.contiguous(), c, m, n, k, *a.stride(), *b.stride(), c.stride(0),
                  bias is not None, tile_m, tile_n, tile_k, num_warps=warps, num_stages=stages)  # fmt: skip
    return c
