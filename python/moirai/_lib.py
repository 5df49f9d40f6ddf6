"""The shared library, and what every call needs: errors as exceptions, strings, long calls that Ctrl-C ends softly."""

from __future__ import annotations

import os
import queue
import threading
from pathlib import Path
from typing import Any, Callable

from ._ffi import ffi


class Error(Exception):
    """What the library says when it fails, in one line; `code` is its result."""

    code = -1


class UsageError(Error, ValueError):
    """The arguments make no sense."""

    code = -2


class InputError(Error, ValueError):
    """A file or a value is malformed."""

    code = -3


class InfeasibleError(Error):
    """No plan exists, or this method finds none that fits."""

    code = -4


class LimitError(Error):
    """No plan within the time or effort limit."""

    code = -5


class VerifyError(Error):
    """Results differ from the reference."""

    code = -6


_KINDS = {kind.code: kind for kind in (Error, UsageError, InputError, InfeasibleError, LimitError, VerifyError)}

lib: Any = ffi.dlopen(os.environ.get("MOIRAI_LIBRARY") or str(Path(__file__).with_name("libmoirai.so")))


def text(pointer: Any) -> str:
    """A C string as str; "" for NULL."""
    return ffi.string(pointer).decode("utf-8", "replace") if pointer else ""


def optional(pointer: Any) -> str | None:
    return text(pointer) if pointer else None


def bytes_of(value: str | os.PathLike[str]) -> bytes:
    return os.fspath(value).encode()


def failure(result: int) -> Error:
    """The exception for a negative result of a call that this thread has just made."""
    return _KINDS.get(result, Error)(text(lib.moirai_error_message()))


def check(result: int) -> int:
    if result < 0:
        raise failure(result)
    return result


def take(kind: str, function: Callable[..., int], *args: Any) -> Any:
    """Calls a function whose first argument is where the new object goes; frees it when Python lets go of it."""
    out = ffi.new(f"moirai_{kind} **")
    check(function(out, *args))
    return owned(kind, out[0])


def owned(kind: str, pointer: Any) -> Any:
    return ffi.gc(pointer, getattr(lib, f"moirai_{kind}_free"))


def take_text(function: Callable[..., int], *args: Any) -> str:
    """Calls a function that hands over a text and its length."""
    out, length = ffi.new("char **"), ffi.new("size_t *")
    check(function(out, length, *args))
    try:
        return bytes(ffi.buffer(out[0], length[0])).decode()
    finally:
        lib.free(out[0])


class LongCall:
    """A call that may take minutes, on a thread of its own, since Python sees signals only between its own
    instructions.

    cffi lets other threads run meanwhile. The first Ctrl-C sets `interrupt`, upon which searches end with the best plan
    so far; the second is KeyboardInterrupt as usual. News from the library's threads reach `progress` on the calling
    thread.
    """

    def __init__(self, progress: Callable[[Any], None] | None = None) -> None:
        self.interrupt = ffi.new("moirai_interrupt *")
        self.interrupted = False
        self._progress = progress
        self._events: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()

    def post(self, news: Any) -> None:
        """From any thread: news for `progress`."""
        self._events.put(("news", news))

    def _work(self, function: Callable[[], int]) -> None:
        try:
            result = function()
            self._events.put(("done", failure(result) if result < 0 else None))  # messages belong to this thread
        except BaseException as error:  # noqa: BLE001: handed to the caller
            self._events.put(("done", error))

    def _next(self) -> tuple[str, Any]:
        while True:
            try:
                # A wait without end would not be left for a signal on every platform.
                return self._events.get(timeout=0.2)
            except queue.Empty:
                continue

    def run(self, function: Callable[[], int]) -> None:
        worker = threading.Thread(target=self._work, args=(function,), name="moirai")
        trouble: BaseException | None = None
        worker.start()
        while True:
            try:
                kind, value = self._next()
                if kind == "done":
                    break
                if self._progress and trouble is None:
                    self._progress(value)
            except KeyboardInterrupt:
                if self.interrupted:
                    raise
                self.interrupted = True
                lib.moirai_interrupt_raise(self.interrupt)
            except Exception as error:  # the caller's own callback: stop, then tell
                trouble = error
                lib.moirai_interrupt_raise(self.interrupt)
        worker.join()
        if trouble is not None:
            raise trouble
        if value is not None:
            raise value
