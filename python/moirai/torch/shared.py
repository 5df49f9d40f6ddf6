"""A file in memory that the caller and all ranks have mapped: arguments and results of a request lie in it."""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
from typing import Any

import torch

from .ir import Meta

_ALIGN = 256
_BY_ONE = 4 << 20  # bytes up to which one thread copies


def memory_folder() -> str:
    return "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()


def lay_out(sizes: list[int], first: int = 0) -> tuple[list[int], int]:
    """Offsets of pieces of these sizes, and the size of all."""
    offsets = []
    for size in sizes:
        offsets.append(first)
        first += -(-max(size, 1) // _ALIGN) * _ALIGN
    return offsets, max(first, _ALIGN)


def create(size: int) -> str:
    """A new file of zeros; the caller removes it."""
    descriptor, path = tempfile.mkstemp(prefix="moirai-", dir=memory_folder())
    try:
        os.posix_fallocate(descriptor, 0, size)  # no room is an error now, not a signal later
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(descriptor)
    return path


def put(target: torch.Tensor, source: torch.Tensor) -> None:
    """A copy in memory, small ones by the thread that asks. PyTorch's has a team of OpenMP's threads for every thread that
    copies, which turn while they wait for each other: requests in flight, of which a thread puts arguments and another
    gets results, then take more of the processor for their copies than for all else."""
    alike = source.dtype == target.dtype and source.shape == target.shape and source.nbytes <= _BY_ONE
    if alike and _plain(source) and _plain(target):
        ctypes.memmove(target.data_ptr(), source.data_ptr(), source.nbytes)
    else:
        target.copy_(source)


def _plain(tensor: torch.Tensor) -> bool:
    """Whether its bytes are its numbers, in their order."""
    strided = tensor.device.type == "cpu" and tensor.layout == torch.strided and not tensor.is_quantized
    return strided and tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def copy_of(source: torch.Tensor) -> torch.Tensor:
    made = torch.empty_like(source)
    put(made, source)
    return made


class Tensors:
    """Tensors of known shapes in such a file."""

    def __init__(self, path: str, metas: dict[Any, Meta]) -> None:
        offsets, self.size = lay_out([m.bytes for m in metas.values()])
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), self.size)
        whole = torch.frombuffer(self._map, dtype=torch.uint8)
        self.address = whole.data_ptr()
        self.tensor = {
            key: whole[at : at + m.bytes].view(m.dtype).view(m.shape)
            if m.bytes
            else torch.empty(m.shape, dtype=m.dtype)
            for (key, m), at in zip(metas.items(), offsets)
        }

    @staticmethod
    def size_of(metas: dict[Any, Meta]) -> int:
        return lay_out([m.bytes for m in metas.values()])[1]
