"""Several requests at a time on the rank of a processor.

Every request in flight has a slot of a copy of the network: memory for its arguments and results, a tag for each of its
messages, and a thread that follows it, which waits for what arrives. One thread computes, a segment at a time, of those
whose tensors have arrived that of the oldest request, or, where the plan has a pace, the one that is due first (docs/rate.md). So a rank goes on with the next request while others work at this one, and nothing that
waits keeps anything else from going on: no circle can arise, whatever the plan. A slot is used again when all ranks
have ended the request that had it; its tags can't meet those of another request.

A request that fails on a rank goes through all ranks nevertheless, with zeros in place of what was not computed:
others would wait for it. Its error is the one that came first; no other request notices.
"""

from __future__ import annotations

import heapq
import queue
import threading
import time
import traceback
from concurrent.futures import Future
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Callable

import torch
import torch.distributed as dist

from .program import Send
from .rank import ExchangeRank, as_bytes


@dataclass
class Slot:
    """Where a request in flight has its arguments and results, and the copy of the network that it is for."""

    rank: ExchangeRank
    inputs: dict[str, torch.Tensor]
    outputs: dict[int, torch.Tensor]
    first_tag: int  # of its messages, one for each transfer of the plan
    pace_per_ns: float = 0.0  # requests that enter, as planned, in a nanosecond of one request alone; 0: oldest first


@dataclass
class Flight:
    """One request on its way."""

    number: int
    slot: int
    at: Slot
    env: dict[str, Any] = field(default_factory=dict)
    arriving: dict[int, tuple[Any, torch.Tensor]] = field(default_factory=dict)
    leaving: list[tuple[Any, torch.Tensor]] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)  # when its segments were computed
    error: tuple[int, str] | None = None  # the moment, and what


def one_line(error: BaseException) -> str:
    lines = [x.strip() for x in str(error).splitlines() if x.strip()]
    return lines[0] if lines else type(error).__name__


class Turns:
    """One thread does what others ask for: what is due first."""

    def __init__(self, prepare: Callable[[], None]) -> None:
        self._prepare = prepare
        self._heap: list[tuple[float, int, Callable[[], None], Future[None]]] = []
        self._changed = threading.Condition()
        self._ended = False
        threading.Thread(target=self._work, daemon=True).start()

    def do(self, number: int, what: Callable[[], None], later: float = 0.0) -> None:
        """Returns when it is done, and raises what it raised. `later`: as many requests as may go before it. A request
        asks for one thing at a time: its number tells its entries apart."""
        done: Future[None] = Future()
        with self._changed:
            heapq.heappush(self._heap, (number + later, number, what, done))
            self._changed.notify()
        done.result()

    def _work(self) -> None:
        self._prepare()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._heap or self._ended)
                if not self._heap:
                    return
                *_, what, done = heapq.heappop(self._heap)
            try:
                what()
            except Exception as error:  # a message that can't be sent
                done.set_exception(error)
            else:
                done.set_result(None)

    def end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify()


class Stream:
    """Reads (number, slot, lanes) from its connection and answers (slot, error or None, spans, lost) in any order. It ends with
    its connection."""

    def __init__(self, connection: Connection, slots: dict[int, Slot]) -> None:
        self.connection, self.slots = connection, slots
        self.queues: dict[int, queue.SimpleQueue[Flight | None]] = {s: queue.SimpleQueue() for s in slots}
        self.answering, self.wire = threading.Lock(), threading.Lock()
        threads = torch.get_num_threads()

        def prepare() -> None:  # both are settings of a thread
            torch.set_grad_enabled(False)
            torch.set_num_threads(threads)

        self.turns = Turns(prepare)
        for q in self.queues.values():
            threading.Thread(target=self._follow, args=(q,), daemon=True).start()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        try:
            while True:
                number, slot, _ = self.connection.recv()
                self.queues[slot].put(Flight(number, slot, self.slots[slot]))
        except (EOFError, OSError):
            pass
        for q in self.queues.values():
            q.put(None)
        self.turns.end()

    def _follow(self, flights: queue.SimpleQueue[Flight | None]) -> None:
        while (flight := flights.get()) is not None:
            lost = False
            try:
                self._request(flight)
            except Exception as error:  # of messages: those of operators are in the flight
                traceback.print_exc()
                lost, flight.error = True, (time.monotonic_ns(), one_line(error))
            with self.answering:
                try:
                    self.connection.send((flight.slot, flight.error, flight.spans, lost))
                except OSError:
                    return

    def _request(self, flight: Flight) -> None:
        rank = flight.at.rank
        program = rank.program
        for w in (w for g in program.segments for w in g.waits):
            buffer = rank.buffer(w)
            with self.wire:
                work = dist.irecv(as_bytes(buffer), w.source, rank.groups[w.source], tag=flight.at.first_tag + w.index)
            flight.arriving[w.index] = (work, buffer)
        for i, segment in enumerate(program.segments):
            for w in segment.waits:
                work, buffer = flight.arriving.pop(w.index)
                work.wait()
                flight.env[w.value] = buffer
            later = flight.at.pace_per_ns * segment.start_ns
            self.turns.do(flight.number, lambda i=i: self._compute(flight, i), later)  # type: ignore[misc]
        self.turns.do(flight.number, lambda: self._hand_over(flight))
        for work, _ in flight.leaving:
            work.wait()

    def _try(self, flight: Flight, what: Callable[[], None]) -> None:
        if flight.error is None:
            try:
                what()
            except Exception as error:
                traceback.print_exc()
                flight.error = (time.monotonic_ns(), one_line(error))

    def _compute(self, flight: Flight, i: int) -> None:
        begin = time.monotonic_ns()
        if i == 0:
            self._try(flight, lambda: self._begin(flight))
        self._try(flight, lambda: flight.at.rank.run_segment(flight.env, i))
        flight.spans.append((begin, time.monotonic_ns()))
        for s in flight.at.rank.program.segments[i].sends:
            self._send(flight, s)

    def _begin(self, flight: Flight) -> None:
        flight.env.update(flight.at.rank.fixed)
        flight.env.update(flight.at.rank.here(flight.at.inputs))

    def _send(self, flight: Flight, s: Send) -> None:
        rank = flight.at.rank
        tensor = s.meta.zeros(rank.wire) if flight.error else s.meta.lay_out(flight.env[s.value])
        with self.wire:
            work = dist.isend(as_bytes(tensor), s.target, rank.groups[s.target], tag=flight.at.first_tag + s.index)
        flight.leaving.append((work, tensor))

    def _hand_over(self, flight: Flight) -> None:
        rank = flight.at.rank

        def copy() -> None:
            if not rank.program.segments:
                self._begin(flight)
            for position, tensor in rank.results(flight.env):
                flight.at.outputs[position].copy_(tensor)

        self._try(flight, copy)
        flight.env.clear()
