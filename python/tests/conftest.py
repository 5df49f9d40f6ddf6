"""What the tests share: small networks of bench/networks.py, ranks that are started once per session."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))  # where tests travel beside the package
os.environ.setdefault("OMP_NUM_THREADS", "1")


def links(names: str | list[str], bandwidth: str = "10GB/s", latency: str = "20us") -> list[dict[str, str]]:
    return [{"from": a, "to": b, "bandwidth": bandwidth, "latency": latency} for a in names for b in names if a != b]


@pytest.fixture(scope="session")
def cpu_cluster():
    import moirai

    devices = [{"name": n, "type": "cpu", "memory": "2GB"} for n in "ABCD"]
    return moirai.Cluster.open({"name": "four", "devices": devices, "links": links("ABCD")})


@pytest.fixture(scope="session")
def cpu_workers(cpu_cluster):
    torch = pytest.importorskip("torch", reason="PyTorch is not here: tests of moirai.torch are skipped")
    import moirai.torch as mt

    torch.set_num_threads(1)
    with mt.Workers(cpu_cluster) as workers:
        yield workers
