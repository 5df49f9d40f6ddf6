"""What a server of a module knows of its requests: a queue with deadlines in front of `submit`, and counters."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from typing import Any

from .._lib import Error
from .distribute import Distributed
from .flight import Flights
from .protocol import Wanted
from .workers import RankError

_BOUNDS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Job:
    """One accepted or refused request; `code` is 0 until it is answered."""

    def __init__(
        self, wanted: Wanted, args: tuple[Any, ...], kwargs: dict[str, Any], begin: float, limit: float
    ) -> None:
        self.wanted, self.args, self.kwargs = wanted, args, kwargs
        self.begin, self.limit = begin, min(wanted.timeout_s or limit, limit)
        self.code, self.text, self.result = 0, "", None
        self.done = threading.Event()

    @property
    def left(self) -> float:
        return self.begin + self.limit - time.monotonic()

    def answer(self, code: int, text: str = "", result: Any = None) -> None:
        if not self.code:
            self.code, self.text, self.result = code, " ".join(text.split()), result
            self.done.set()


class Line:
    """Requests that wait, in their order, and those that the devices have: as many as may be in flight."""

    def __init__(self, run: Distributed, most: int) -> None:
        self.run, self.most = run, most
        self._changed = threading.Condition()
        self._waiting: deque[Job] = deque()
        self._sent = 0
        self._closed = False
        self.lost = ""  # why no request can be computed any more
        self.n_accepted = 0
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    @property
    def ready(self) -> bool:
        return not self._closed and not self.lost

    def counts(self) -> tuple[int, int]:
        with self._changed:
            return len(self._waiting), self._sent

    def ask(self, job: Job) -> None:
        """Returns when it is answered, be it that it was refused or took too long."""
        with self._changed:
            if self._closed:
                job.answer(503, "the server is ending and takes no more requests")
            elif self.lost:
                job.answer(503, self.lost)
            elif job.left <= 0:
                job.answer(504, f"no answer within {job.limit:.6g} s: that was over when the request had been read")
            elif len(self._waiting) >= self.most and not self._place():
                job.answer(429, f"{len(self._waiting)} requests wait already, as many as may: try again later")
            else:
                self.n_accepted += 1
                self._waiting.append(job)
                self._changed.notify_all()
        if job.code or job.done.wait(max(job.left, 0)):
            return
        with self._changed:
            waiting = job in self._waiting
            if waiting:
                self._waiting.remove(job)
            what = "still waiting" if waiting else "being computed"
            job.answer(504, f"no answer within {job.limit:.6g} s: the request was {what}")
            self._changed.notify_all()

    def _place(self) -> bool:
        """Whether the devices take one more at once: one that only passes through does not wait."""
        return self._sent + len(self._waiting) < self.run.in_flight

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: (self._waiting and self._sent < self.run.in_flight) or self._over())
                if not self._waiting:
                    return
                job = self._waiting.popleft()
                self._sent += 1
            try:
                future = self.run.submit(*job.args, **job.kwargs)
            except Exception as error:
                self._ended(job, error, None)
            else:
                future.add_done_callback(lambda f, job=job: self._ended(job, f.exception(), f))  # type: ignore[misc]

    def _over(self) -> bool:
        return self._closed and not self._waiting

    def _ended(self, job: Job, error: BaseException | None, future: Any) -> None:
        with self._changed:
            self._sent -= 1
            if isinstance(error, RankError):
                self.lost = " ".join(str(error).split())
            if error is None:
                job.answer(200, result=future.result())
            else:
                job.answer(503 if self.lost else 500, str(error) if isinstance(error, Error) else repr(error))
            self._changed.notify_all()

    def close(self) -> None:
        """Takes no more, and waits until all that were accepted are answered."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._waiting and not self._sent)
        self._thread.join()


class Metrics:
    """Counters for Prometheus, by the names of `moirai serve`."""

    def __init__(self, run: Distributed) -> None:
        self._lock = threading.Lock()
        self._codes: Counter[int] = Counter()
        self._buckets = [0] * len(_BOUNDS_S)
        self._sum_s = 0.0
        self._devices = [r.device for r in run.program.ranks if r.segments or r.outputs]
        self._busy_ns: dict[str, int] = {}
        requests = run.requests()
        if isinstance(requests, Flights) and run.transport == "gloo":  # GPUs do not tell when they computed
            self._busy_ns = dict.fromkeys(self._devices, 0)
            requests.watch = self._watch

    def _watch(self, _: int, spans: dict[str, list[tuple[int, int]]]) -> None:
        with self._lock:
            for device, found in spans.items():
                self._busy_ns[device] += sum(b - a for a, b in found)

    def count(self, code: int, seconds: float) -> None:
        with self._lock:
            self._codes[code] += 1
            if code == 200:
                self._sum_s += seconds
                for i, bound in enumerate(_BOUNDS_S):
                    self._buckets[i] += seconds <= bound

    def page(self, line: Line) -> str:
        waiting, sent = line.counts()
        text: list[str] = []

        def head(name: str, kind: str, what: str) -> None:
            text.extend((f"# HELP moirai_{name} {what}", f"# TYPE moirai_{name} {kind}"))

        with self._lock:
            head("requests_total", "counter", "Inference requests by their status code.")
            text.extend(f'moirai_requests_total{{code="{c}"}} {n}' for c, n in sorted(self._codes.items()))
            what = "From a request's arrival to its answer, of those with status code 200."
            head("request_seconds", "histogram", what)
            for bound, n in zip([*_BOUNDS_S, "+Inf"], [*self._buckets, self._codes[200]]):
                text.append(f'moirai_request_seconds_bucket{{le="{bound}"}} {n}')
            text.append(f"moirai_request_seconds_sum {self._sum_s:.9g}")
            text.append(f"moirai_request_seconds_count {self._codes[200]}")
            head("waiting_requests", "gauge", "Requests that were accepted and not sent to the devices yet.")
            text.append(f"moirai_waiting_requests {waiting}")
            head("in_flight_requests", "gauge", "Requests that the devices have.")
            text.append(f"moirai_in_flight_requests {sent}")
            head("device_up", "gauge", "1 where a device of this name is at work.")
            text.extend(f'moirai_device_up{{device="{_label(d)}"}} {int(not line.lost)}' for d in self._devices)
            if self._busy_ns:
                head("device_busy_seconds_total", "counter", "Time that a device has computed.")
            for d, ns in self._busy_ns.items():
                text.append(f'moirai_device_busy_seconds_total{{device="{_label(d)}"}} {ns / 1e9:.9g}')
        return "\n".join(text) + "\n"


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
