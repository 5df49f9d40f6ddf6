"""What a server of a module knows of its requests: a queue with deadlines in front of `submit`, ranks that are started
again, and counters."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from typing import Any, Callable

from .._lib import Error
from .distribute import Distributed
from .flight import Flights
from .protocol import Wanted
from .workers import RankError

log = logging.getLogger("moirai")
_BOUNDS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Job:
    """One accepted or refused request; `code` is 0 until it is answered."""

    def __init__(
        self, wanted: Wanted, args: tuple[Any, ...], kwargs: dict[str, Any], begin: float, limit: float
    ) -> None:
        self.wanted, self.args, self.kwargs = wanted, args, kwargs
        self.begin, self.limit = begin, min(wanted.timeout_s or limit, limit)
        self.code, self.text, self.result = 0, "", None
        self.number = -1  # of those that were accepted
        self.done = threading.Event()

    @property
    def left(self) -> float:
        return self.begin + self.limit - time.monotonic()

    def answer(self, code: int, text: str = "", result: Any = None) -> None:
        if not self.code:
            self.code, self.text, self.result = code, " ".join(text.split()), result
            self.done.set()


class Line:
    """Requests that wait, in their order, and those that the devices have: as many as may be in flight.

    Where a rank is lost, `again` is told so, if there is one, and what was in flight goes back to the front, in its order:
    it is asked again when `take` brings other ranks. Without it, requests are refused from then on.
    """

    def __init__(self, run: Distributed, most: int, again: Callable[[str], None] | None = None) -> None:
        self.run, self.most, self._again = run, most, again
        self._changed = threading.Condition()
        self._waiting: deque[Job] = deque()
        self._sent = 0
        self._closed = False
        self.lost = ""  # why no request can be computed
        self.n_accepted = self.n_repeated = 0
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    @property
    def ready(self) -> bool:
        return not self._closed and not self.lost

    def counts(self) -> tuple[int, int]:
        with self._changed:
            return len(self._waiting), self._sent

    def miss(self, why: str) -> None:
        """Its ranks are gone, as another line has found out."""
        with self._changed:
            self.lost = self.lost or why

    def take(self, run: Distributed) -> None:
        """Other ranks, after a loss."""
        with self._changed:
            self.run, self.lost = run, ""
            self._changed.notify_all()

    def ask(self, job: Job) -> None:
        """Returns when it is answered, be it that it was refused or took too long."""
        with self._changed:
            if self._closed:
                job.answer(503, "the server is ending and takes no more requests")
            elif self.lost and self._again is None:
                job.answer(503, self.lost)
            elif job.left <= 0:
                job.answer(504, f"no answer within {job.limit:.6g} s: that was over when the request had been read")
            elif len(self._waiting) >= self.most and not self._place():
                job.answer(429, f"{len(self._waiting)} requests wait already, as many as may: try again later")
            else:
                job.number, self.n_accepted = self.n_accepted, self.n_accepted + 1
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
        return not self.lost and self._sent + len(self._waiting) < self.run.in_flight

    def _able(self) -> bool:
        return bool(self._waiting) and self._sent < self.run.in_flight and not (self.lost and self._again)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._able() or self._over())
                if not self._waiting:
                    return
                job, run = self._waiting.popleft(), self.run
                self._sent += 1
            try:
                future = run.submit(*job.args, **job.kwargs)
            except Exception as error:
                self._ended(job, run, error, None)
            else:
                future.add_done_callback(lambda f, job=job, run=run: self._ended(job, run, f.exception(), f))  # type: ignore[misc]

    def _over(self) -> bool:
        return self._closed and not self._waiting and not self._sent

    def _ended(self, job: Job, run: Distributed, error: BaseException | None, future: Any) -> None:
        lost = ""
        with self._changed:
            self._sent -= 1
            stale = run is not self.run or bool(self.lost)  # those ranks are known to be gone
            if isinstance(error, RankError) and run is self.run:
                lost = self.lost = " ".join(str(error).split())
            if error is None:
                job.answer(200, result=future.result())
            elif self._again is not None and (lost or isinstance(error, RankError) or (stale and future is None)):
                self._repeat(job)
            else:
                job.answer(503 if self.lost else 500, str(error) if isinstance(error, Error) else repr(error))
            self._changed.notify_all()
        if lost and self._again is not None:
            self._again(lost)

    def _repeat(self, job: Job) -> None:
        """Back to its place in the order, unless its time was over."""
        if not job.code:
            self.n_repeated += 1
            at = sum(1 for other in self._waiting if other.number < job.number)
            self._waiting.insert(at, job)

    def close(self) -> None:
        """Takes no more, and waits until all that were accepted are answered."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._waiting and not self._sent)
        self._thread.join()


class Keeper:
    """Starts ranks again after a loss, in a thread, until it succeeds or the server ends. `make` gives a run for each
    line (None: ranks are not ours to start); `close` ends runs."""

    def __init__(
        self, make: Callable[[], list[Distributed]] | None, close: Callable[[list[Distributed]], None]
    ) -> None:
        self._make, self._close = make, close
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self.lines: list[Line] = []
        self.watch: Callable[[list[Distributed]], None] = lambda _: None  # told of new runs
        self.n_groups = 1

    @property
    def able(self) -> bool:
        return self._make is not None

    def lost(self, why: str) -> None:
        with self._lock:
            if self._thread is None and not self._ended.is_set():
                self._thread = threading.Thread(target=self._again, args=(why,), daemon=True)
                self._thread.start()

    def _again(self, why: str) -> None:
        begun, pause = time.monotonic(), 1.0
        log.warning("lost: %s", why)
        for line in self.lines:
            line.miss(why)
        self._close([line.run for line in self.lines])  # nobody is in flight there: all have failed
        while self._make and not self._ended.is_set():
            try:
                runs = self._make()
            except Exception as error:
                log.warning("the plan did not start: %s", " ".join(str(error).split()))
                self._ended.wait(pause)
                pause = min(2 * pause, 30)
                continue
            log.warning("going on after %.2f s", time.monotonic() - begun)
            self.watch(runs)
            with self._lock:
                self._thread = None
                self.n_groups += 1
            for line, run in zip(self.lines, runs):
                line.take(run)
            return

    def close(self) -> None:
        """No more of it; all lines are closed."""
        self._ended.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()
        self._close([line.run for line in self.lines])


class Metrics:
    """Counters for Prometheus, by the names of `moirai serve`."""

    def __init__(self, runs: list[Distributed]) -> None:
        self._lock = threading.Lock()
        self._codes: Counter[int] = Counter()
        self._buckets = [0] * len(_BOUNDS_S)
        self._sum_s = 0.0
        self._devices = [[r.device for r in run.program.ranks if r.segments or r.outputs] for run in runs]
        self._busy_ns: list[dict[str, int]] = [{} for _ in runs]
        self.watch(runs)

    def watch(self, runs: list[Distributed]) -> None:
        """From now on, these."""
        for k, run in enumerate(runs):
            requests = run.requests()
            if isinstance(requests, Flights) and run.transport == "gloo":  # GPUs do not tell when they computed
                self._busy_ns[k] = {d: self._busy_ns[k].get(d, 0) for d in self._devices[k]}
                requests.watch = lambda _, spans, k=k: self._add(k, spans)  # type: ignore[misc]

    def _add(self, k: int, spans: dict[str, list[tuple[int, int]]]) -> None:
        with self._lock:
            for device, found in spans.items():
                self._busy_ns[k][device] = self._busy_ns[k].get(device, 0) + sum(b - a for a, b in found)

    def count(self, code: int, seconds: float) -> None:
        with self._lock:
            self._codes[code] += 1
            if code == 200:
                self._sum_s += seconds
                for i, bound in enumerate(_BOUNDS_S):
                    self._buckets[i] += seconds <= bound

    def page(self, lines: list[Line], n_groups: int) -> str:
        counts = [line.counts() for line in lines]
        text: list[str] = []

        def head(name: str, kind: str, what: str) -> None:
            text.extend((f"# HELP moirai_{name} {what}", f"# TYPE moirai_{name} {kind}"))

        def whose(k: int, device: str) -> str:
            return f'{{device="{_label(device)}"' + (f',bucket="{k}"}}' if len(lines) > 1 else "}")

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
            text.append(f"moirai_waiting_requests {sum(waiting for waiting, _ in counts)}")
            head("in_flight_requests", "gauge", "Requests that the devices have.")
            text.append(f"moirai_in_flight_requests {sum(sent for _, sent in counts)}")
            head("repeated_requests_total", "counter", "Requests sent again after devices had gone.")
            text.append(f"moirai_repeated_requests_total {sum(line.n_repeated for line in lines)}")
            head("groups_total", "counter", "Groups of devices that were started and used.")
            text.append(f"moirai_groups_total {n_groups}")
            head("device_up", "gauge", "1 where a device of this name is at work.")
            for k, devices in enumerate(self._devices):
                text.extend(f"moirai_device_up{whose(k, d)} {int(not lines[k].lost)}" for d in devices)
            if any(self._busy_ns):
                head("device_busy_seconds_total", "counter", "Time that a device has computed.")
            for k, busy in enumerate(self._busy_ns):
                text.extend(f"moirai_device_busy_seconds_total{whose(k, d)} {ns / 1e9:.9g}" for d, ns in busy.items())
        return "\n".join(text) + "\n"


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
