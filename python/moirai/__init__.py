"""Moirai: which device runs which operator of a neural network, and when.

    import moirai
    plan = moirai.plan("gpt3-tiny", "inter-server", time_limit=5)
    plan.makespan_ns, plan.gap, plan.placement

Everything is computed by libmoirai; this package hands it over. `moirai.torch` is for people who have a
torch.nn.Module.
"""

from ._lib import Error, InfeasibleError, InputError, LimitError, UsageError, VerifyError
from .cluster import Cluster, Device, Link, builtin_clusters
from .graph import Graph, Op, Tensor
from .plan import Copy, Plan, Rate, SearchStep, Step, Transfer
from .problem import Problem
from .shard import Choice, Judgement, Shards, Strip
from ._version import version as __version__
from .search import Comparison, Progress, Proof, Row, compare, place, placers, plan, prove, refine

__all__ = [
    "Choice",
    "Cluster",
    "Comparison",
    "Copy",
    "Device",
    "Error",
    "Graph",
    "InfeasibleError",
    "InputError",
    "Judgement",
    "LimitError",
    "Link",
    "Op",
    "Plan",
    "Problem",
    "Progress",
    "Proof",
    "Rate",
    "Row",
    "SearchStep",
    "Shards",
    "Step",
    "Strip",
    "Tensor",
    "Transfer",
    "UsageError",
    "VerifyError",
    "builtin_clusters",
    "compare",
    "place",
    "placers",
    "plan",
    "prove",
    "refine",
]
