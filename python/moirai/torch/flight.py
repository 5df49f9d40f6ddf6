"""Requests in flight, as their caller sees them: at most so many at a time, each with a future, results in the order in
which they were asked for.

They are under way on the ranks at the same time (`Flights`): on processors segment by segment (stream.py), on GPUs as
a CUDA graph for each (slots_cuda.py). Where GPUs can't have graphs, send through the host, or work beside processors,
requests wait for each other (`Queue`).
"""

from __future__ import annotations

import os
import queue
import threading
import time
import weakref
from collections import deque
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, Callable, Iterator

from .._lib import Error, UsageError
from .ir import Meta
from .shared import Tensors, create
from .workers import Workers

_START_S = 600  # slots of GPUs are captured


class Busy(Error):
    """As many requests are in flight as may be."""


class RequestError(Error):
    """A device could not compute a request. Others are not harmed."""


class Request:
    def __init__(self, slot: int, given: Any) -> None:
        self.slot, self.given = slot, given
        self.number = -1  # of all that reached the ranks
        self.future: Future[Any] = Future()
        self.future.set_running_or_notify_cancel()
        self.result: Any = None
        self.error: BaseException | None = None
        self.ended = False


class Places:
    """Slots of one copy of the network, or of several, numbered one after the other: who takes the next request.

    Without `shares`, the copy that has the largest part of its slots free; with them, of those with a free slot the one
    that is furthest behind its share. At most `most` are taken at a time.
    """

    def __init__(self, counts: list[int], shares: list[float] | None = None, most: int = 0) -> None:
        first = [sum(counts[:c]) for c in range(len(counts))]
        self.copy_of = [c for c, n in enumerate(counts) for _ in range(n)]
        self._free = [list(range(at + n - 1, at - 1, -1)) for at, n in zip(first, counts)]
        self.counts, self.shares = counts, shares
        self._given = [0] * len(counts)
        self._left = most or sum(counts)

    @property
    def free(self) -> bool:
        return self._left > 0 and any(self._free)

    def take(self) -> int:
        able = [c for c, slots in enumerate(self._free) if slots]
        if self.shares is None:
            copy = max(able, key=lambda c: len(self._free[c]) / self.counts[c])
        else:
            shares, total = self.shares, sum(self._given) + 1
            copy = max(able, key=lambda c: shares[c] * total - self._given[c])
        self._given[copy] += 1
        self._left -= 1
        return self._free[copy].pop()

    def give(self, slot: int) -> None:
        self._free[self.copy_of[slot]].append(slot)
        self._left += 1


class Requests:
    """Slots, back-pressure, and results in order. Subclasses have a thread that calls `_settle`.

    A slot is free when its request has ended, be it that the result waits for those before it: a slow copy of the
    network does not hold up the others.
    """

    def __init__(self, in_flight: int, places: Places | None = None) -> None:
        self.in_flight = in_flight
        self._places = places or Places([in_flight])
        self._order: deque[Request] = deque()
        self._changed = threading.Condition()
        self._paused = False
        self._ended: Error | None = None  # why no more requests are taken
        self._thread: threading.Thread | None = None

    def _begin(self, request: Request) -> None:
        """A request that has its slot and its place in the order."""
        raise NotImplementedError

    def submit(self, given: Any, block: bool = True) -> Future[Any]:
        with self._changed:
            while self._ended is None and (self._paused or not self._places.free):
                if not block or self.inside():
                    raise Busy(f"{self.in_flight} requests are in flight, as many as may be: try again later")
                self._changed.wait()
            if self._ended is not None:
                raise self._ended
            request = Request(self._places.take(), given)
            self._order.append(request)
        try:
            self._begin(request)
        except Exception as error:
            self._settle(request, error=error)
        return request.future

    def inside(self) -> bool:
        """Whether this is the thread that hands out results: it can't wait for one."""
        return threading.current_thread() is self._thread

    def _settle(self, request: Request | None = None, result: Any = None, error: BaseException | None = None) -> None:
        """This one has ended: its slot is free, and all up to the first that has not ended get their results."""
        ready = []
        with self._changed:
            if request is not None and not request.ended:
                request.result, request.error, request.ended = result, error, True
                self._places.give(request.slot)
            while self._order and self._order[0].ended:
                ready.append(self._order.popleft())
            self._changed.notify_all()
        for r in ready:
            if r.error is not None:
                r.future.set_exception(r.error)
            else:
                r.future.set_result(r.result)

    def _fail(self, error: Error) -> None:
        """All requests in flight have failed, and there will be no others."""
        with self._changed:
            self._ended = self._ended or error
            for r in self._order:
                if not r.ended:
                    r.error, r.ended = error, True  # its slot stays taken: nobody will ask for it
        self._settle()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is in flight meanwhile."""
        if self.inside():
            raise UsageError("a future's callback can't wait for other requests")
        with self._changed:
            self._changed.wait_for(lambda: not self._paused)
            self._paused = True
            self._changed.wait_for(lambda: not self._order)
        try:
            yield
        finally:
            with self._changed:
                self._paused = False
                self._changed.notify_all()

    def close(self) -> None:
        """Takes no more requests, and waits for those in flight."""
        if self.inside():
            raise UsageError("close was called by a future, whose thread has to hand out the other results first")
        with self._changed:
            self._ended = self._ended or UsageError("the distributed module was closed")
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._order)
        self._end()
        if self._thread:
            self._thread.join()

    def _end(self) -> None:
        """Nothing is in flight, and nothing will be."""


class Queue(Requests):
    """One after the other, by a function that takes what was submitted."""

    def __init__(self, in_flight: int, function: Callable[[Any], Any]) -> None:
        super().__init__(in_flight)
        self._function = weakref.WeakMethod(function)  # its owner may go away although our thread waits
        self._queue: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _begin(self, request: Request) -> None:
        self._queue.put(request)

    def _work(self) -> None:
        while (request := self._queue.get()) is not None:
            try:
                function = self._function()
                if function is None:
                    raise UsageError("the distributed module is gone")
                result = function(request.given)
            except BaseException as error:
                self._settle(request, error=error)
            else:
                self._settle(request, result)

    def _end(self) -> None:
        self._queue.put(None)


@dataclass
class Copy:
    """A copy of the network that is loaded, as requests see it."""

    key: int  # of the load
    ranks: list[int]
    transfers: int
    pinned: list[str] = field(default_factory=list)  # a file for each of its slots, on GPUs
    pace_per_ns: float = 0.0  # requests that enter in a nanosecond of one request alone, on processors; 0: oldest first


class Flights(Requests):
    """Requests that are under way on the ranks at the same time.

    `put` lays arguments into a slot's tensors, `get` makes a result of them. All ranks hear of requests in the same
    order, whichever copy they go to: on GPUs a request may queue behind those that came before it, never behind later
    ones, so that ranks can't wait in a circle.
    """

    def __init__(
        self,
        workers: Workers,
        copies: list[Copy],
        metas: dict[Any, Meta],
        places: Places,
        in_flight: int,
        put: Callable[[Tensors, Any], None],
        get: Callable[[Tensors, Any], Any],
        stall_s: float,
        lanes: int = 0,
    ) -> None:
        super().__init__(in_flight, places)
        self.lanes = lanes  # may be changed at any time: whatever waits, waits for earlier requests alone
        self._workers, self._put, self._get, self._stall_s = workers, put, get, stall_s
        self._copies, self._ranks = copies, sorted({k for c in copies for k in c.ranks})
        self.watch: Callable[[int, dict[str, list[tuple[int, int]]]], None] | None = None  # told when segments ran
        self._files: list[str] = []
        try:
            for _ in places.copy_of:
                self._files.append(create(Tensors.size_of(metas)))
            self._slots = [Tensors(path, metas) for path in self._files]
            jobs = {k: {"metas": metas, "slots": self._slots_on(k)} for k in self._ranks}
            self._connections = workers.streams(jobs, _START_S)
        finally:
            for path in self._files:  # all who need them have them mapped
                os.unlink(path)
        self._sending = threading.Lock()
        self._count = 0
        self._under_way: dict[int, tuple[Request, dict[int, Any]]] = {}  # slot -> answers of ranks
        self._moved = time.monotonic()  # when something happened last
        self._wake, self._waker = Pipe(duplex=False)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _slots_on(self, k: int) -> list[dict[str, Any]]:
        """What rank k has to know of each slot of its copies."""
        found, of = [], self._places.copy_of
        for slot, c in enumerate(of):
            copy, nth = self._copies[c], slot - of.index(c)
            if k in copy.ranks:
                pinned = copy.pinned[nth] if copy.pinned else ""
                found.append({"slot": slot, "key": copy.key, "nth": nth, "shared": self._files[slot], "pinned": pinned,
                              "first_tag": 1 + nth * copy.transfers, "pace_per_ns": copy.pace_per_ns})  # fmt: skip
        return found

    def _who(self, slot: int) -> list[int]:
        return self._copies[self._places.copy_of[slot]].ranks

    def _begin(self, request: Request) -> None:
        self._put(self._slots[request.slot], request.given)
        with self._sending:
            request.number, self._count = self._count, self._count + 1
            self._under_way[request.slot] = (request, {})
            self._moved = time.monotonic()
            for k in self._who(request.slot):
                try:
                    self._connections[k].send((request.number, request.slot, self.lanes))
                except OSError:
                    pass  # whoever listens finds out

    # ---- the thread that listens

    def _listen(self) -> None:
        ranks: dict[Any, int] = {c: k for k, c in self._connections.items()}
        while True:
            ready = wait([*ranks, self._wake], timeout=1)
            if self._wake in ready:
                break
            lost = [why for c in ready if (why := self._answer(c, ranks[c]))]
            late = self._order and time.monotonic() - self._moved > self._stall_s + 10
            if late and not lost:
                lost = [(self._late(), f"no answer within {self._stall_s + 10:g} s")]
            if lost:
                self._fail(self._workers.lost(self._ranks, *lost[0]))
                break
        for c in self._connections.values():
            c.close()

    def _late(self) -> int:
        oldest, answers = min(self._under_way.values(), key=lambda x: x[0].number)
        return next(k for k in self._who(oldest.slot) if k not in answers)

    def _answer(self, connection: Connection, k: int) -> tuple[int, str | None] | None:
        """Takes an answer; returns what to say of a rank that is lost, or has lost another one."""
        try:
            slot, error, spans, lost = connection.recv()
        except (EOFError, OSError):
            return k, None
        if lost:
            return k, error[1]
        self._moved = time.monotonic()
        request, answers = self._under_way[slot]
        answers[k] = (error, spans)
        if len(answers) == len(self._who(slot)):
            del self._under_way[slot]
            self._finish(request, answers)
        return None

    def _finish(self, request: Request, answers: dict[int, Any]) -> None:
        name = [d.name for d in self._workers.devices]
        if self.watch:
            self.watch(request.number, {name[k]: spans for k, (_, spans) in answers.items()})
        errors = sorted((error, k) for k, (error, _) in answers.items() if error)
        if errors:  # the first one: zeros that it sent instead may have led to others
            (_, line), k = errors[0]
            self._settle(request, error=RequestError(f"device '{name[k]}': {line}"))
            return
        try:
            result = self._get(self._slots[request.slot], request.given)
        except Exception as error:
            self._settle(request, error=error)
        else:
            self._settle(request, result)

    def _end(self) -> None:
        self._waker.send(None)
