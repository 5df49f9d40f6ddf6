"""What every process of a torchrun does in the tests: `spmd_rank.py [TRANSPORT] [eager]`, any number of ranks."""

from __future__ import annotations

import os
import sys

import networks
import torch
from conftest import links

import moirai
import moirai.torch as mt
from moirai.torch.rank import ExchangeRank

transport = sys.argv[1] if len(sys.argv) > 1 else "auto"
if os.environ.get("MOIRAI_TEST_HOSTS"):  # ranks that pass for several hosts, so that NCCL lets them share a GPU
    os.environ["NCCL_HOSTID"] = f"host{os.environ['RANK']}"
torch.set_num_threads(1)
module, args = networks.make("moe", small=True)
network = mt.capture(module, args)
devices = [f"d{k}" for k in range(int(os.environ["WORLD_SIZE"]))]
for d in devices:
    network.graph.set_times(d, [200_000] * len(network.graph))
cluster = {"devices": [{"name": d, "type": "cpu", "memory": "1GB"} for d in devices], "links": links(devices)}
problem = moirai.Problem(network.graph, cluster)
plan = moirai.Plan.by_devices(problem, {n: devices[i % len(devices)] for i, n in enumerate(problem.op_names)})
device = "cuda" if transport == "nccl" else None

for early in (True, False):  # by gloo also with receives as late as NCCL's, and never matched by more than their order
    ExchangeRank.early = early
    with mt.distribute(
        network, plan, transport=transport, graphs="eager" not in sys.argv, device=device, verify=module
    ) as run:
        for i in range(20):
            x = torch.randn(args[0].shape, generator=torch.Generator().manual_seed(i))
            with torch.no_grad():
                assert torch.allclose(run(x), module(x), atol=1e-3), i
        found = run.measure(x, warmup=1, runs=3)
        assert len(found.latency_ns) == 3 and min(found.latency_ns) > 0
        assert all(t["finish_ns"] >= t["start_ns"] for t in found.timeline["transfers"])
        try:
            run(torch.randn(1, 9, 16))
        except moirai.UsageError as error:
            assert "captured was" in str(error)
        else:
            raise AssertionError("a wrong shape was taken")
        print(f"agreed by {run.transport}, {found.median_ns / 1e3:.0f} us, eager: '{run.why_eager}'", flush=True)
