"""What the tests share: small networks of bench/networks.py, ranks that are started once per session."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))  # where tests travel beside the package
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Compiled code of tests is to be made quickly, not to be fast: no headers compiled beforehand, no vectors.
os.environ.setdefault("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0")
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "0")


def need(name: str) -> Any:
    """A package that a test is about: without it the test is skipped, or fails where the package was asked for
    (MOIRAI_TEST_NEEDS, which scripts/check --with-torch sets). One that is there and can't be imported is a failure."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name or name in os.environ.get("MOIRAI_TEST_NEEDS", "").split(","):
            raise
        pytest.skip(f"{name} is not here (scripts/check --with-torch installs it)", allow_module_level=True)


def links(names: str | list[str], bandwidth: str = "10GB/s", latency: str = "20us") -> list[dict[str, str]]:
    return [{"from": a, "to": b, "bandwidth": bandwidth, "latency": latency} for a in names for b in names if a != b]


@pytest.fixture(scope="session", autouse=True)
def nest():
    """Ranks on processors start quickly; those that have a GPU, and those of other programs, are started as users' are."""
    if importlib.util.find_spec("torch") is None or need("torch").cuda.is_available():
        yield
        return
    from nest import Nest

    from moirai.torch import workers

    found = workers.subprocess = Nest()  # type: ignore[assignment]
    yield
    workers.subprocess = subprocess  # type: ignore[assignment]
    found.close()


@pytest.fixture(scope="session")
def captured():
    """Small networks by name: (module, arguments, the module captured), which takes seconds, once for all tests. Times of operators are
    those of the test that set them last."""
    need("torch")
    import networks

    import moirai.torch as mt

    found: dict[str, Any] = {}

    def get(name: str) -> Any:
        if name not in found:
            module, args = networks.make(name, small=True)
            found[name] = (module, args, mt.capture(module, args, name=name, heads=networks.HEADS.get(name, False)))
        return found[name]

    return get


@pytest.fixture(scope="session")
def cpu_cluster():
    import moirai

    devices = [{"name": n, "type": "cpu", "memory": "2GB"} for n in "ABCD"]
    return moirai.Cluster.open({"name": "four", "devices": devices, "links": links("ABCD")})


@pytest.fixture(scope="session")
def cpu_workers(cpu_cluster):
    torch = need("torch")
    import moirai.torch as mt

    torch.set_num_threads(1)
    with mt.Workers(cpu_cluster) as workers:
        yield workers
