"""CUDA MPS: the service that lets processes run on one GPU at the same time, each on its share of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path


class MpsError(RuntimeError):
    """The MPS control daemon could not be started."""


def is_running(folder: str) -> bool:
    return (Path(folder) / "control").exists() and _control(folder, "get_server_list") is not None


def _control(folder: str, command: str) -> str | None:
    try:
        done = subprocess.run(
            ["nvidia-cuda-mps-control"],
            input=command + "\n",
            env={**os.environ, "CUDA_MPS_PIPE_DIRECTORY": folder},
            capture_output=True,
            text=True,
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


class Mps:
    """The daemon that is there, or one of our own that ends with us."""

    def __init__(self) -> None:
        given = os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")
        self.ours = not is_running(given)
        self.folder = tempfile.mkdtemp(prefix="moirai-mps-") if self.ours else given
        if self.ours:
            self._start()

    def _start(self) -> None:
        if shutil.which("nvidia-cuda-mps-control") is None:
            raise MpsError("shares of a GPU need CUDA MPS, and nvidia-cuda-mps-control is not here")
        env = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": self.folder, "CUDA_MPS_LOG_DIRECTORY": self.folder}
        done = subprocess.run(["nvidia-cuda-mps-control", "-d"], env=env, capture_output=True, text=True, timeout=30)
        for _ in range(100):
            if is_running(self.folder):
                return
            time.sleep(0.05)
        raise MpsError(
            f"nvidia-cuda-mps-control did not start: {(done.stderr or done.stdout).strip() or 'no reason given'}"
        )

    def environment(self, share: float) -> dict[str, str]:
        """For a process that is to have this share."""
        percent = f"{100 * share:g}"
        return {"CUDA_MPS_PIPE_DIRECTORY": self.folder, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": percent}

    def stop(self) -> None:
        if self.ours:
            _control(self.folder, "quit")
            shutil.rmtree(self.folder, ignore_errors=True)
