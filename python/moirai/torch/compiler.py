"""Compiled code of one process: equal pieces once, from a file where an earlier process left it, or else not at all,
with the reason."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Sequence

import torch

from .cache import digest
from .groups import CHEAP
from .flops import base_name
from .ir import OP, Meta
from .piece import Piece
from .precision import flags

Code = Callable[..., Sequence[Any]]


@dataclass
class Counts:
    """What a compiler has done."""

    pieces: int = 0  # asked for
    distinct: int = 0
    compiled: int = 0
    loaded: int = 0
    seconds: float = 0.0
    failed: dict[str, str] = field(default_factory=dict)  # first call of a piece -> reason


def multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 0


def settle(folder: Path | None, device: torch.device, threads: int) -> None:
    """Where Inductor keeps what it makes. Its keys have the GPU's name, not the number of multiprocessors that a
    process may use: parts of one GPU would share code whose grids were chosen for another. Before Inductor is used."""
    if folder is not None:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor" / f"{device.type}{multiprocessors(device)}")
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(threads))


class Compiler:
    def __init__(self, device: torch.device, folder: Path | None) -> None:
        self.device = device
        self.folder = folder / "compiled" if folder else None
        self.known: dict[str, tuple[Code | None, str]] = {}
        name = torch.cuda.get_device_properties(device).name if device.type == "cuda" else ""
        self.place = (torch.__version__, torch.version.cuda, device.type, name, multiprocessors(device))

    @staticmethod
    def worth(piece: Piece) -> bool:
        """Whether there is something in it that a library does not do anyway."""
        return any(n.kind == OP and base_name(n.target) in CHEAP for n in piece.nodes) or (
            sum(n.kind == OP for n in piece.nodes) > 1
        )

    def key(self, piece: Piece, examples: Sequence[torch.Tensor]) -> str:
        metas = {a: Meta.of(x) for a, x in zip(piece.args, examples)}
        return digest(repr((piece.text(metas), self.place, sorted(flags().items()))))

    def get(self, piece: Piece, examples: Sequence[torch.Tensor], counts: Counts) -> Code | None:
        """None where it is to run eagerly; `counts.failed` has the reason, if that was not meant."""
        counts.pieces += 1
        if not self.worth(piece):
            return None
        key = self.key(piece, examples)
        if key not in self.known:
            counts.distinct += 1
            began = time.monotonic()
            self.known[key] = self._make(piece, examples, self.folder / key if self.folder else None, counts)
            counts.seconds += time.monotonic() - began
        code, why = self.known[key]
        if code is None:
            counts.failed[next(n.name for n in piece.nodes if n.kind == OP)] = why
        return code

    def _make(
        self, piece: Piece, examples: Sequence[torch.Tensor], path: Path | None, counts: Counts
    ) -> tuple[Code | None, str]:
        try:
            from .inductor import compile_piece
        except Exception as error:  # a version without it
            return None, f"no Inductor: {type(error).__name__}"
        from .inductor import reason

        try:
            code, loaded = compile_piece(piece, examples, self.device, path)
            code(*examples)  # kernels are loaded, and fail, at the first call
        except Exception as error:
            return None, reason(error)
        counts.loaded += loaded
        counts.compiled += not loaded
        return code, ""
