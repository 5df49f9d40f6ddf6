"""A graph on a cluster with all numbers settled: what placers read."""

from __future__ import annotations

import os
from typing import Any, Iterable, Mapping

from ._lib import bytes_of, check, ffi, lib, take, text
from .cluster import Cluster
from .graph import Graph


class Problem:
    """Operators with a time on every device, tensors with a time between every two (docs/model.md)."""

    def __init__(
        self,
        graph: Graph,
        cluster: Cluster | str | Mapping[str, Any],
        *,
        flow: str = "tensor",
        congestion: str = "port",
        memory: str = "static",
        cost: str = "auto",
        runtime: str | None = None,
        segment_us: float | None = None,
        name: str | None = None,
        pin: Mapping[str, str] | None = None,
        forbid: Mapping[str, str] | None = None,
        together: Iterable[str] = (),
    ) -> None:
        """Times come from the cost model `cost`, with the launches of `runtime` (eager, ort, graph; None: the model's own). `pin` and `forbid` map shell patterns over operator names to devices
        (several with commas); operators that match one pattern of `together` share a device. `segment_us` is what a cut
        costs its receiver beside the message (None: what the runtime needs, docs/cost-models.md)."""
        c = Cluster.open(cluster)
        keep: list[Any] = []
        o = ffi.new("moirai_problem_options *")
        settle(o, keep, flow, congestion, memory, cost, runtime, segment_us, name)
        wishes = _wishes(keep, pin or {}, forbid or {}, together)
        o.wishes = wishes
        o.n_wishes = len(wishes)
        self._c = take("problem", lib.moirai_problem_new, graph._c, c._c, o)

    @classmethod
    def _of(cls, pointer: Any) -> Problem:
        self = cls.__new__(cls)
        self._c = pointer
        return self

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Problem:
        return cls._of(take("problem", lib.moirai_problem_read, bytes_of(path)))

    @classmethod
    def parse(cls, json: str | bytes, *, label: str = "problem") -> Problem:
        data = json.encode() if isinstance(json, str) else json
        return cls._of(take("problem", lib.moirai_problem_parse, data, len(data), label.encode()))

    def save(self, path: str | os.PathLike[str]) -> None:
        check(lib.moirai_problem_write(self._c, bytes_of(path)))

    @property
    def name(self) -> str:
        return text(self._c.name)

    def __len__(self) -> int:
        return int(self._c.n_ops)

    @property
    def devices(self) -> list[str]:
        return [text(self._c.device_name[k]) for k in range(self._c.n_devices)]

    @property
    def op_names(self) -> list[str]:
        return [text(self._c.op_name[i]) for i in range(self._c.n_ops)]

    def time_ns(self, op: str) -> dict[str, int | None]:
        """The operator's time on every device; None where it can't run."""
        i = lib.moirai_problem_find_op(self._c, op.encode())
        if i < 0:
            raise KeyError(op)
        n = self._c.n_devices
        times = [int(self._c.op_time_ns[i * n + k]) for k in range(n)]
        return {d: None if t < 0 else t for d, t in zip(self.devices, times)}

    def bounds(self) -> dict[str, int]:
        """The plain lower bounds in nanoseconds: critical path and load."""
        return {
            "critical_path": int(lib.moirai_bound_critical_path(self._c)),
            "load": int(lib.moirai_bound_load(self._c)),
        }

    def __repr__(self) -> str:
        return f"<moirai.Problem '{self.name}': {len(self)} operators on {len(self.devices)} devices>"


def settle(
    o: Any,
    keep: list[Any],
    flow: str = "tensor",
    congestion: str = "port",
    memory: str = "static",
    cost: str = "auto",
    runtime: str | None = None,
    segment_us: float | None = None,
    name: str | None = None,
) -> None:
    """Fills moirai_problem_options; `keep` must live as long as they do."""
    _choose(o, "flow", flow)
    _choose(o, "congestion", congestion)
    _choose(o, "memory", memory)
    if runtime is not None:
        _choose(o, "runtime", runtime)
    o.segment_ns = lib.MOIRAI_UNKNOWN if segment_us is None else round(1000 * segment_us)
    o.name = _string(keep, name)
    o.cost_model = _string(keep, cost)


def _choose(o: Any, what: str, value: str) -> None:
    out = ffi.new(f"moirai_{what} *")
    check(getattr(lib, f"moirai_{what}_parse")(out, value.encode()))
    setattr(o, what, out[0])


def _string(keep: list[Any], value: str | None) -> Any:
    if value is None:
        return ffi.NULL
    keep.append(ffi.new("char[]", value.encode()))
    return keep[-1]


def _wishes(keep: list[Any], pin: Mapping[str, str], forbid: Mapping[str, str], together: Iterable[str]) -> Any:
    listed: list[tuple[int, str, str | None]] = [(lib.MOIRAI_PIN, p, d) for p, d in pin.items()]
    listed += [(lib.MOIRAI_FORBID, p, d) for p, d in forbid.items()]
    listed += [(lib.MOIRAI_TOGETHER, p, None) for p in together]
    wishes = ffi.new("moirai_wish[]", len(listed))
    for wish, (kind, pattern, devices) in zip(wishes, listed):
        wish.kind = kind
        wish.pattern = _string(keep, pattern)
        wish.devices = _string(keep, devices)
    keep.append(wishes)
    return wishes
