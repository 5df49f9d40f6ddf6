"""One process per device of a cluster, started once and used for any number of plans."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Connection, Listener, wait
from pathlib import Path
from typing import Any, Mapping

import torch.distributed as dist

from .._lib import Error
from ..cluster import Cluster, Device
from .mps import Mps


class RankError(Error):
    """A rank failed or died; the others have been ended."""

def kind_of(device: Device) -> str:
    """ "cuda" for shares of a GPU and for devices whose `ep` says so, else "cpu"."""
    return "cuda" if device.share or (device.ep or "").lower().startswith("cuda") else "cpu"


def _gpu_index(device: Device) -> str:
    _, _, index = (device.ep or "").partition(":")
    return index or "0"


def _cores(text: str | None) -> set[int]:
    found: set[int] = set()
    for part in (text or "").split(","):
        if part.strip():
            first, _, last = part.partition("-")
            found.update(range(int(first), int(last or first) + 1))
    return found


class Workers:
    """Processes for the devices of a cluster.

    A device with `share` gets that part of its GPU by CUDA MPS, whose daemon is started where none runs; `ep` "cuda:1"
    names another GPU than the first. All others are processes on this host's processor, with `threads` threads (1) on
    `cores`; a cluster may have both (`kind` is then "mixed"). With `keep_weights` ranks keep the weights of all
    networks that they had: other plans of them load faster. What ranks print goes to files in `logs`, if that is given.
    Use it as a context manager, or call `close`.
    """

    def __init__(
        self,
        cluster: Cluster | str | Mapping[str, Any],
        *,
        start_limit_s: float = 120,
        logs: str | os.PathLike[str] | None = None,
        keep_weights: bool = False,
    ) -> None:
        self.cluster = Cluster.open(cluster)
        self.devices = self.cluster.devices
        kinds = {kind_of(d) for d in self.devices}
        self.kind = kinds.pop() if len(kinds) == 1 else "mixed"
        self.key = 0
        self.keep_weights = keep_weights
        self.held: dict[tuple[int, int], set[str]] = {}  # (rank, network) -> weights that it has
        self.aborts: list[str] = []  # files whose first byte ends all waiting on GPUs
        self._ended = ""  # why there are no ranks any more, where that was a failure
        self._streams = 0
        self._ending = threading.Lock()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._connections: list[Connection] = []
        self._folder = tempfile.TemporaryDirectory(prefix="moirai-ranks-")
        self._logs = os.fspath(logs) if logs else self._folder.name
        os.makedirs(self._logs, exist_ok=True)
        self._mps = Mps() if any(d.share for d in self.devices) else None
        self.store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        try:
            self._start(start_limit_s)
        except BaseException:
            self.close()
            raise

    # ---- starting

    def _environment(self, device: Device, key: bytes) -> dict[str, str]:
        env = {**os.environ, "MOIRAI_WORKER_KEY": key.hex(), "PYTHONUNBUFFERED": "1"}
        package = str(Path(__file__).resolve().parents[2])
        env["PYTHONPATH"] = os.pathsep.join(p for p in (package, env.get("PYTHONPATH")) if p)
        if kind_of(device) == "cuda":
            env["CUDA_VISIBLE_DEVICES"] = _gpu_index(device)
            env.pop("PYTORCH_CUDA_ALLOC_CONF", None)  # expandable segments can't be shared with other processes
            if device.share:  # with 32 queues each, four parts are more than MPS has room for ("out of memory")
                env.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
        else:
            env["OMP_NUM_THREADS"] = str(device.threads or 1)
        if self._mps and device.share:
            env.update(self._mps.environment(device.share))
        return env

    def _start(self, limit_s: float) -> None:
        key = secrets.token_bytes(16)
        address = os.path.join(self._folder.name, "socket")
        with Listener(address, backlog=len(self.devices), authkey=key) as listener:
            for k, device in enumerate(self.devices):
                with open(self._log(k), "wb") as log:
                    self._processes.append(
                        subprocess.Popen(
                            [sys.executable, "-m", "moirai.torch.worker", address, str(k)],
                            env=self._environment(device, key),
                            stdin=subprocess.DEVNULL,
                            stdout=log,
                            stderr=subprocess.STDOUT,
                        )
                    )
            called: dict[int, Connection] = {}
            while len(called) < len(self.devices):
                connection = self._accept(listener, called, limit_s)
                called[connection.recv()] = connection
        self._connections = [called[k] for k in range(len(self.devices))]
        for k, device in enumerate(self.devices):
            self._connections[k].send(
                {
                    "rank": k,
                    "world": len(self.devices),
                    "kind": kind_of(device),
                    "gloo": self.kind != "cuda",
                    "port": self.store.port,
                    "threads": device.threads or 1,
                    "cores": _cores(device.cores),
                    "start_limit_s": limit_s,
                }
            )
        self.about = self._answers(list(range(len(self.devices))), limit_s)

    def _accept(self, listener: Listener, called: Mapping[int, Any], limit_s: float) -> Connection:
        """The next rank that calls; looks after those that have not yet."""
        socket: Any = listener._listener._socket  # type: ignore[attr-defined]
        socket.settimeout(0.25)
        limit = time.monotonic() + limit_s
        while True:
            try:
                return listener.accept()
            except TimeoutError:
                missing = [k for k in range(len(self.devices)) if k not in called]
                gone = [k for k in missing if self._processes[k].poll() is not None]
                if gone or time.monotonic() > limit:
                    raise RankError(self._epitaph((gone or missing)[0])) from None

    def _log(self, k: int) -> str:
        return os.path.join(self._logs, f"rank{k}.log")

    # ---- talking

    def tell(self, what: str, jobs: Mapping[int, Any], limit_s: float = 600) -> dict[int, Any]:
        """Sends a job each to some ranks and returns their answers. The first failure ends all ranks."""
        if not self.alive:
            raise self.gone()
        for k, job in jobs.items():
            try:
                self._connections[k].send((what, job))
            except (BrokenPipeError, ConnectionError, OSError):
                self._fail(k)
        return self._answers(list(jobs), limit_s)

    def streams(self, jobs: Mapping[int, Any], limit_s: float = 60) -> dict[int, Connection]:
        """A connection of their own to some ranks, for requests of a plan."""
        if not self.alive:
            raise self.gone()
        key, self._streams = secrets.token_bytes(16), self._streams + 1
        address = os.path.join(self._folder.name, f"stream{self._streams}")
        found: dict[int, Connection] = {}
        with Listener(address, backlog=len(self.devices), authkey=key) as listener:
            for k, job in jobs.items():
                self._connections[k].send(("stream", {**job, "address": address, "authkey": key}))
            while len(found) < len(jobs):
                connection = self._accept(listener, found, limit_s)
                found[connection.recv()] = connection
        self._answers(list(jobs), limit_s)
        return found

    def lost(self, ranks: list[int], k: int, reason: str | None) -> RankError:
        """Ends all ranks after rank k was lost, or has lost another one (`reason`), and returns why."""
        with self._ending:
            if not self.alive:
                return self.gone()
            limit = time.monotonic() + 2
            while reason and time.monotonic() < limit:  # who has died is soon known
                if dead := [j for j in ranks if self._processes[j].poll() is not None]:
                    k, reason = dead[0], None
                time.sleep(0.01)
            try:
                self._fail(k, reason)
            except RankError as error:
                return error
        raise AssertionError("_fail returns never")

    def gone(self) -> RankError:
        return RankError(f"the ranks were ended{': ' + self._ended if self._ended else ''}; start others")

    def _answers(self, ranks: list[int], limit_s: float) -> dict[int, Any]:
        waiting: dict[Any, int] = {self._connections[k]: k for k in ranks}
        found: dict[int, Any] = {}
        limit = time.monotonic() + limit_s
        while waiting:
            ready: list[Any] = wait(list(waiting), timeout=max(limit - time.monotonic(), 0))
            if not ready:
                late = ", ".join(f"'{self.devices[k].name}'" for k in waiting.values())
                self._ended = f"no answer from {late} within {limit_s:g} s"
                self.close()
                raise RankError(f"{self._ended}: all ranks were ended")
            failed: tuple[int, str] | None = None
            for connection in ready:
                k = waiting.pop(connection)
                try:
                    state, value = connection.recv()
                except (EOFError, ConnectionError, OSError):
                    self._fail(k)
                if state == "error":
                    failed = failed or (k, value)
                else:
                    found[k] = value
            if failed:
                self._fail(*failed)
        return found

    def _fail(self, k: int, reason: str | None = None) -> None:
        line = self._ended = f"device '{self.devices[k].name}': {reason}" if reason else self._epitaph(k)
        self.close()
        raise RankError(f"{line}; all ranks were ended")

    def _epitaph(self, k: int) -> str:
        """Why a process is gone: its signal or exit code, and its last words."""
        process = self._processes[k]
        try:
            code = process.wait(2)
        except subprocess.TimeoutExpired:
            return f"device '{self.devices[k].name}': rank {k} does not answer"
        how = f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        words = ""
        try:
            lines = [x for x in Path(self._log(k)).read_text(errors="replace").splitlines() if x.strip()]
            words = f": {lines[-1].strip()[:300]}" if lines and code > 0 else ""
        except OSError:
            pass
        return f"device '{self.devices[k].name}': rank {k} {how}{words}"

    def logs(self) -> dict[str, str]:
        """What each rank has printed."""
        return {d.name: Path(self._log(k)).read_text(errors="replace") for k, d in enumerate(self.devices)}

    # ---- ending

    @property
    def alive(self) -> bool:
        return bool(self._connections)

    def close(self) -> None:
        """Ends all ranks: those that wait on a GPU let go first, then they are asked, then killed."""
        for path in self.aborts:
            try:
                with open(path, "r+b") as file:
                    file.write(b"\x01")
            except OSError:
                pass
        for connection in self._connections:
            try:
                connection.send(("exit", None))
            except (BrokenPipeError, ConnectionError, OSError):
                pass
        limit = time.monotonic() + 3
        for process in self._processes:
            try:
                process.wait(max(limit - time.monotonic(), 0.01))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for connection in self._connections:
            connection.close()
        self._connections, self._processes, self.aborts = [], [], []
        if self._mps:
            self._mps.stop()
            self._mps = None
        self._folder.cleanup()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            if getattr(self, "_processes", None):
                self.close()
        except Exception:
            pass
