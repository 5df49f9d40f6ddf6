"""The few calls of the CUDA driver that PyTorch has no door to: our kernels, memory shared between processes, pinned
files."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import torch


class DriverError(RuntimeError):
    """A call of the CUDA driver that failed."""


class _Handle(ctypes.Structure):
    _fields_ = [("reserved", c_char * 64)]


class _MemoryOp(ctypes.Structure):
    _fields_ = [("kind", c_uint), ("address", c_uint64), ("value", c_uint64), ("how", c_uint), ("alias", c_uint64),
                ("reserved", c_uint64)]  # fmt: skip


_WAIT_64 = 4  # until a word is at least a value
_MOST_OPS = 255  # of a call
_CAN_USE_64_BIT_STREAM_MEM_OPS = 122


class Driver:
    """libcuda on PyTorch's context: call it after torch.cuda has been initialised on this thread's device."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        torch.cuda.current_stream().synchronize()  # makes the context
        self._opened: dict[bytes, list[int]] = {}  # handle -> address, uses
        module = c_void_p()
        text = Path(__file__).with_name("kernels.ptx").read_bytes()
        self._check("cuModuleLoadData", byref(module), ctypes.c_char_p(text))
        self._kernels: dict[str, c_void_p] = {}
        for name in ("moirai_start", "moirai_meet", "moirai_pass"):
            function = c_void_p()
            self._check("cuModuleGetFunction", byref(function), module, name.encode())
            self._kernels[name] = function

    def _check(self, name: str, *args: Any) -> None:
        result = getattr(self.cuda, name)(*args)
        if result:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorString(result, byref(text))
            raise DriverError(f"{name}: {(text.value or b'unknown error').decode()}")

    def launch(self, name: str, stream: torch.cuda.Stream, threads: int, *args: int | c_uint) -> None:
        """One block. Addresses are plain ints; c_uint for 32-bit numbers."""
        values = [a if isinstance(a, c_uint) else c_uint64(a) for a in args]
        params = (c_void_p * len(values))(*(ctypes.cast(byref(v), c_void_p) for v in values))
        self._check(
            "cuLaunchKernel", self._kernels[name], 1, 1, 1, threads, 1, 1, 0, c_void_p(stream.cuda_stream), params, None
        )

    def can_await(self) -> bool:
        """Whether streams can wait for words of memory: drivers from 2022 on."""
        able = c_int()
        if not hasattr(self.cuda, "cuStreamBatchMemOp_v2"):
            return False
        self._check("cuDeviceGetAttribute", byref(able), c_int(_CAN_USE_64_BIT_STREAM_MEM_OPS), c_int(torch.cuda.current_device()))
        return bool(able.value)

    def await_flags(self, stream: torch.cuda.Stream, addresses: list[int]) -> None:
        """What follows on the stream begins when none of these 64-bit words is 0. No kernel polls for that."""
        ops = [_MemoryOp(_WAIT_64, at, 1) for at in addresses]
        for i in range(0, len(ops), _MOST_OPS):
            some = ops[i : i + _MOST_OPS]
            raw = (_MemoryOp * len(some))(*some)
            self._check("cuStreamBatchMemOp_v2", c_void_p(stream.cuda_stream), c_uint(len(some)), raw, c_uint(0))

    # ---- memory of another process

    def export(self, address: int) -> tuple[bytes, int]:
        """A handle of the allocation that holds the address, and the offset within."""
        base, size, handle = c_uint64(), c_size_t(), _Handle()
        self._check("cuMemGetAddressRange_v2", byref(base), byref(size), c_uint64(address))
        self._check("cuIpcGetMemHandle", byref(handle), base)
        return bytes(handle), address - base.value

    def open(self, handle: bytes) -> int:
        """Where another process' allocation lies here. Every `open` has its `close`, before its owner frees the
        allocation."""
        known = self._opened.get(handle)
        if known is None:
            where, raw = c_uint64(), _Handle.from_buffer_copy(handle)
            self._check("cuIpcOpenMemHandle_v2", byref(where), raw, c_uint(1))  # 1: peer access where it takes that
            known = [where.value, 0]
            self._opened[handle] = known
        known[1] += 1
        return known[0]

    def close(self, handle: bytes) -> None:
        known = self._opened[handle]
        known[1] -= 1
        if not known[1]:
            del self._opened[handle]
            self._check("cuIpcCloseMemHandle", c_uint64(known[0]))

    # ---- host memory

    def pin(self, address: int, size: int) -> int:
        """Pins memory of this process; its address for the GPU."""
        where = c_uint64()
        self._check("cuMemHostRegister_v2", c_void_p(address), c_size_t(size), c_uint(3))  # portable, mapped
        self._check("cuMemHostGetDevicePointer_v2", byref(where), c_void_p(address), c_uint(0))
        return where.value

    def unpin(self, address: int) -> None:
        self._check("cuMemHostUnregister", c_void_p(address))

    def to_host(self, host: int, device: int, size: int, stream: torch.cuda.Stream) -> None:
        self._check(
            "cuMemcpyDtoHAsync_v2", c_void_p(host), c_uint64(device), c_size_t(size), c_void_p(stream.cuda_stream)
        )

    def to_device(self, device: int, host: int, size: int, stream: torch.cuda.Stream) -> None:
        self._check(
            "cuMemcpyHtoDAsync_v2", c_uint64(device), c_void_p(host), c_size_t(size), c_void_p(stream.cuda_stream)
        )


class _Foreign:
    """Memory that torch.as_tensor can look at."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 2}


def foreign_tensor(
    address: int, span: int, shape: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype
) -> torch.Tensor:
    """A tensor over memory that is not ours; `span` is its extent in bytes."""
    raw = torch.as_tensor(_Foreign(address, max(span, 1)), device="cuda")
    if raw.data_ptr() != address:
        raise DriverError("PyTorch copied memory of another process instead of looking at it")
    return raw[: max(span, dtype.itemsize) if span else 0].view(dtype).as_strided(shape, stride)


def span_of(tensor: torch.Tensor) -> int:
    """Bytes from a tensor's first element to the end of its last."""
    if tensor.numel() == 0:
        return 0
    return (1 + sum((d - 1) * s for d, s in zip(tensor.shape, tensor.stride()))) * tensor.element_size()
