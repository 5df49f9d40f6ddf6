"""Ranks for tests, forked from a process that has imported PyTorch once, which each would do for two seconds else. They have the parent,
the environment and the log that `python -m moirai.torch.worker`, which users' ranks are, would have."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import threading
import time
from typing import Any

SUBREAPER = 36  # prctl: who gets the children of a child that has ended


class Nest:
    """Its `Popen` stands in for that of moirai.torch.workers."""

    DEVNULL, STDOUT, TimeoutExpired = subprocess.DEVNULL, subprocess.STDOUT, subprocess.TimeoutExpired

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def Popen(self, command: list[str], *, env: dict[str, str], stdout: Any, **_: Any) -> subprocess.Popen[bytes]:
        assert command[1:3] == ["-m", "moirai.torch.worker"]
        with self._lock:
            if self._process is None:
                pipe = subprocess.PIPE
                self._process = subprocess.Popen([sys.executable, __file__], stdin=pipe, stdout=pipe, text=True, env=env)
            asked, told = self._process.stdin, self._process.stdout
            assert asked and told
            prctl = ctypes.CDLL(None).prctl
            prctl(SUBREAPER, 1)  # now only: other tests see what becomes of orphans
            job = {"words": command[3:], "env": env, "parent": os.getpid(), "log": stdout.fileno()}
            print(json.dumps(job), file=asked, flush=True)
            pid = int(told.readline())
            prctl(SUBREAPER, 0)
        found = subprocess.Popen.__new__(subprocess.Popen)
        found.args, found.pid, found.returncode = command, pid, None
        found.stdin = found.stdout = found.stderr = None
        found._child_created, found._waitpid_lock = True, threading.Lock()  # type: ignore[attr-defined]
        return found

    def close(self) -> None:
        if self._process and self._process.stdin:
            self._process.stdin.close()
            self._process.wait(10)


def rank(job: dict[str, Any]) -> None:
    """In the rank's process."""
    from moirai.torch import worker

    while os.getppid() != job["parent"]:
        time.sleep(0.001)
    log = os.open(f"/proc/{job['parent']}/fd/{job['log']}", os.O_WRONLY | os.O_APPEND)
    print(os.getpid(), flush=True)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.clear()
    os.environ.update(job["env"])
    sys.path[:0] = [p for p in job["env"].get("PYTHONPATH", "").split(os.pathsep) if p and p not in sys.path]
    sys.argv = ["worker", *job["words"]]
    worker.main()


def main() -> None:
    import gc

    import torch._inductor.compile_fx  # noqa: F401 what some of them compile with: four seconds each

    import moirai.torch.worker

    gc.freeze()  # what was imported is not looked at in each rank
    while line := sys.stdin.readline():
        between = os.fork()
        if between:
            os.waitpid(between, 0)
        elif os.fork():
            os._exit(0)
        else:
            try:
                rank(json.loads(line))
            finally:
                os._exit(1)


if __name__ == "__main__":
    main()
