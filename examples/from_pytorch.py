"""From a torch.nn.Module to a distributed run, step by step: on two processes here, or on parts of a GPU with --gpu.

python3 examples/from_pytorch.py [--gpu]
"""

import sys

import torch
from torch import nn

import moirai
import moirai.torch as mt

# %% A module: anything that torch.export takes.


class Towers(nn.Module):
    """Four towers over one input, and a head that reads them all."""

    def __init__(self, width: int = 512, towers: int = 4) -> None:
        super().__init__()
        self.towers = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(towers)
        )
        self.head = nn.Linear(towers * width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.cat([tower(x) for tower in self.towers], -1))


torch.manual_seed(1)
module, x = Towers().eval(), torch.randn(256, 512)

# %% Its graph: operators with shapes, bytes, arithmetic; names lead back to the module.

captured = mt.capture(module, (x,))
for op in captured.graph.ops[:4]:
    print(f"{op.name:16} {op.type:8} {op.flops / 1e6:10.1f} MFLOP {op.weight_bytes / 1e6:8.2f} MB of weights")

# %% Devices: processes on this machine's cores, or unequal parts of its GPU.

if "--gpu" in sys.argv:
    devices = [{"name": f"p{n}", "type": "gpu", "memory": "8GB", "share": n / 100} for n in (20, 30, 50)]
else:
    devices = [{"name": n, "type": "cpu", "memory": "2GB", "threads": 1} for n in ("A", "B")]

names = [d["name"] for d in devices]
links = [{"from": a, "to": b, "bandwidth": "10GB/s", "latency": "50us"} for a in names for b in names if a != b]

with mt.Workers({"name": "here", "devices": devices, "links": links}) as workers:
    # %% What operators and transfers really take here.

    cluster = mt.probe(workers)
    report = mt.profile(captured, workers=workers)
    print(f"{report.distinct} distinct operators of {report.ops}, {report.measured} measured now")

    # %% Plans, and why they take as long as they do.

    problem = moirai.Problem(captured.graph, cluster)
    plans = moirai.compare(problem, ["single", "m-etf", "heft", "moirai"], time_limit=5)
    print(plans)
    print("\n".join(plans.best.verdict))

    # %% The fastest one runs. Every result is compared with the module's own.

    with mt.distribute(module, plans.best, workers=workers, verify=module) as run:
        print("result", tuple(run(x).shape))
        measured = run.measure(x, runs=30)
        print(measured)
        measured.save("run.json")

    # %% What the run showed goes back into times and latencies; the next plan knows better.

    better = cluster.copy()
    moirai.refine(captured.graph, better, ["run.json"])
    again = moirai.place(moirai.Problem(captured.graph, better), time_limit=5)
    print("after refining:", again)

    # %% All of that in one call, until it no longer gets faster: what was measured to be the fastest is kept.

    found = mt.tune(module, (x,), workers=workers, probed=cluster, rounds=1, time_limit=2, say=print)
    print(found.verdict)
    with found.distribute(workers=workers, verify=module) as run:
        run(x)
