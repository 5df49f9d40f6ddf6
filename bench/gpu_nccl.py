#!/usr/bin/env python3
"""A rank of bench/gpu_compiled.py's rows by NCCL: torchrun starts one for every part of the GPU, with a job's file.

NCCL takes several ranks on a GPU from 2.31 on, where NCCL_MULTI_RANK_GPU_ENABLE=1 is in the environment: they send by
peer access. Without it ranks pass for hosts of their own (NCCL_HOSTID) and talk by NCCL's sockets on this one.
Links are probed by the runtime itself, as moirai.torch.probe does; rank 0 plans, all learn from every run.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Iterator

JOB = json.loads(Path(sys.argv[1]).read_text()) if len(sys.argv) > 1 else {}
RANK = int(os.environ.get("RANK", "0"))
if JOB.get("shares"):  # before CUDA is there
    os.environ["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = f"{100 * JOB['shares'][RANK]:g}"
    if os.environ.get("NCCL_MULTI_RANK_GPU_ENABLE") != "1":
        os.environ["NCCL_HOSTID"] = f"host{RANK}"

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402
import networks_compiled  # noqa: E402
from moirai.torch.merging import expected_ns  # noqa: E402
from moirai.torch.precision import adopt  # noqa: E402
from moirai.torch.profile import chain  # noqa: E402
from moirai.torch.times import one_device  # noqa: E402

CUDA = bool(JOB.get("shares"))
WAY = {"device": "cuda" if CUDA else "cpu", "transport": "nccl" if CUDA else "gloo"}


def say(what: str, **numbers: Any) -> None:
    if RANK == 0:
        with open(JOB["lines"], "a") as file:
            file.write(json.dumps({"what": what, **numbers}) + "\n")


@contextlib.contextmanager
def turn() -> Iterator[None]:
    """Rank 0 waits for its turn on the GPU, the others for it."""
    with contextlib.ExitStack() as stack:
        if RANK == 0:
            lock = stack.enter_context(open(JOB["turn"], "w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        dist.barrier()
        yield
        dist.barrier()


def hop_ns(cluster: moirai.Cluster, n_bytes: int, length: int = 16) -> float:
    """What a message between the first device and the last takes, with all that a cut costs."""
    names = [d.name for d in cluster.devices]
    captured = chain(length, n_bytes)
    for name in names:
        captured.graph.set_times(name, [1000] * length)
    problem = moirai.Problem(captured.graph, cluster)

    def latency(places: list[str]) -> float:
        plan = moirai.Plan.by_devices(problem, dict(zip(captured.ops, places)))
        with mt.distribute(captured, plan, compile=False, **WAY) as run, turn():
            return float(run.measure(torch.zeros(n_bytes // 4), warmup=5, runs=20).median_ns)

    ends = names[0], names[-1]
    alone = sum(latency([e] * length) for e in ends) / 2
    return max((latency([ends[i % 2] for i in range(length)]) - alone) / (length - 1), 1.0)


def probed(cluster: moirai.Cluster) -> moirai.Cluster:
    small, large = hop_ns(cluster, 4096), hop_ns(cluster, 4 << 20)
    rate = int(1e9 * ((4 << 20) - 4096) / max(large - small, 1.0))
    say("links", nccl_us=small / 1000, gb_s=rate / 1e9)
    return cluster.with_links([replace(x, latency_ns=int(small), bytes_per_second=rate) for x in cluster.links])


def planned(times: mt.Times) -> moirai.Plan:
    """Rank 0's plan, everywhere."""
    found: list[Any] = [None]
    if RANK == 0:
        plan = times.place("moirai", time_limit=JOB["time_limit"], threads=JOB["threads"])
        path = Path(JOB["lines"]).with_suffix(".plan.json")
        plan.save(path)
        found = [(one_device(plan), expected_ns(plan), path.read_text())]
    dist.broadcast_object_list(found, 0)
    alone, expected, text = found[0]
    plan = moirai.Plan.parse(times.problem(alone, "moirai"), text)
    plan.expected_ns = expected
    return plan


def measured(captured: mt.Captured, plan: moirai.Plan, module: Any, args: Any, number: int) -> mt.Measured:
    start = time.monotonic()
    with mt.distribute(captured, plan, cache=JOB["cache"], compile=JOB.get("compile"), **WAY) as run:
        loaded = time.monotonic() - start
        with turn():
            got, found = run(*args), run.measure(*args, warmup=5, runs=JOB["runs"])
        why: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(why, run.why_eager)
    with torch.no_grad():
        expected = module(*args)
    off = float((got.float() - expected.float()).norm() / expected.float().norm())
    parts = len(set(plan.placement.values()))
    say(f"{parts} parts by nccl, plan {number}", ms=found.median_ns / 1e6, predicted_ms=plan.expected_ns / 1e6,
        transfers=len(plan.transfers), off=off, loaded_s=loaded, eager=[w for w in why if w])  # fmt: skip
    return found


def main() -> None:
    signal.alarm(JOB.get("limit_s", 600))  # a rank that waits for ever would keep the others from their turns
    adopt(JOB["flags"])
    torch.set_num_threads(2)
    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "8"  # four ranks of one GPU have no room for more
    dist.init_process_group("gloo")
    module, args = networks_compiled.make(JOB["network"], JOB["small"], getattr(torch, JOB["dtype"]))
    kind = "cuda" if CUDA else "cpu"
    captured = mt.capture(module, args, name=JOB["network"], fuse=JOB.get("fuse", "inductor"), fuse_for=kind, cache=JOB["cache"],
                          cuts=JOB["cuts"] or None)  # fmt: skip
    for device, ns in JOB["times"].items():
        captured.graph.set_times(device, ns)
    folder = Path(JOB["lines"]).parent / f"rank{RANK}"
    folder.mkdir(exist_ok=True)
    times = mt.Times(captured, probed(moirai.Cluster.open(JOB["cluster"])), {"congestion": "port"}, folder, whole_ns=JOB.get("whole"))
    for number in range(JOB["plans"]):
        plan = planned(times)
        times.learn(plan, measured(captured, plan, module, args, number))
        late = [time.time() > JOB["until"]]
        dist.broadcast_object_list(late, 0)
        if late[0]:
            break
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
