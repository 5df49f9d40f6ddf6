"""The number types that products are computed in: settings of a process that change results and times.

TF32 is asked for by `torch.set_float32_matmul_precision` and by flags of cuDNN; a rank is another process. So the
caller's settings travel with every job, and are part of what measured times, groups and compiled code are kept under.
"""

from __future__ import annotations

from typing import Any, Mapping

import torch


def flags() -> dict[str, Any]:
    """This process' settings."""
    return {
        "matmul": torch.get_float32_matmul_precision(),
        "cudnn_tf32": torch.backends.cudnn.allow_tf32,
        "fp16_reduction": torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction,
        "bf16_reduction": torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction,
    }


def adopt(given: Mapping[str, Any]) -> None:
    """Another process' settings."""
    if given == flags():
        return
    torch.set_float32_matmul_precision(given["matmul"])
    torch.backends.cudnn.allow_tf32 = given["cudnn_tf32"]
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = given["fp16_reduction"]
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = given["bf16_reduction"]
