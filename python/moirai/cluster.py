"""Devices and the links between them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Mapping

from ._lib import bytes_of, check, lib, optional, take, text


@dataclass(frozen=True)
class Device:
    """A device as its cluster describes it; None where the file says nothing."""

    name: str
    type: str
    memory_bytes: int
    ep: str | None = None
    cores: str | None = None
    host: str | None = None
    threads: int | None = None
    share: float | None = None


@dataclass(frozen=True)
class Link:
    """One direction between two devices."""

    source: str
    target: str
    bytes_per_second: int
    latency_ns: int


class Cluster:
    """Devices and links, closed into a full mesh (docs/formats.md, moirai-cluster)."""

    def __init__(self, pointer: Any) -> None:
        self._c = pointer

    @classmethod
    def open(cls, what: str | os.PathLike[str] | Mapping[str, Any] | Cluster) -> Cluster:
        """A built-in name, a file, a description such as "2x v100, 2x p100 16GB, 100Gbps 5us", or a file's content as a
        dict."""
        if isinstance(what, Cluster):
            return what
        if isinstance(what, Mapping):
            whole = {"format": "moirai-cluster", "version": 1, "name": "cluster", **what}
            return cls.parse(json.dumps(whole))
        return cls(take("cluster", lib.moirai_cluster_open, bytes_of(what)))

    @classmethod
    def parse(cls, json: str | bytes, *, label: str = "cluster") -> Cluster:
        """A cluster file's text; `label` names it in messages."""
        data = json.encode() if isinstance(json, str) else json
        return cls(take("cluster", lib.moirai_cluster_parse, data, len(data), label.encode()))

    @property
    def name(self) -> str:
        return text(self._c.name)

    @property
    def notes(self) -> list[str]:
        """What looks odd in its file."""
        return text(self._c.notes).splitlines()

    def __len__(self) -> int:
        return int(self._c.n_devices)

    @property
    def devices(self) -> list[Device]:
        return [self._device(k) for k in range(self._c.n_devices)]

    @property
    def links(self) -> list[Link]:
        """Every ordered pair of devices, as the closure has it."""
        n = self._c.n_devices
        names = [text(self._c.device[k].name) for k in range(n)]
        return [
            Link(names[a], names[b], int(self._c.bytes_per_second[a * n + b]), int(self._c.latency_ns[a * n + b]))
            for a in range(n)
            for b in range(n)
            if a != b
        ]

    def _device(self, k: int) -> Device:
        d = self._c.device[k]
        return Device(
            name=text(d.name),
            type=text(d.type),
            memory_bytes=int(d.memory_bytes),
            ep=optional(d.ep),
            cores=optional(d.cores),
            host=optional(d.host),
            threads=int(d.threads) or None,
            share=float(d.share) or None,
        )

    def with_links(self, links: list[Link], *, name: str | None = None) -> Cluster:
        """The same devices with other links."""
        devices = []
        for d in self.devices:
            entry: dict[str, Any] = {"name": d.name, "memory_bytes": d.memory_bytes}
            for key in ("type", "ep", "cores", "host", "threads", "share"):
                if getattr(d, key):
                    entry[key] = getattr(d, key)
            devices.append(entry)
        given = [
            {"from": x.source, "to": x.target, "bytes_per_second": x.bytes_per_second, "latency_ns": x.latency_ns}
            for x in links
        ]
        return Cluster.open({"name": name or self.name, "devices": devices, "links": given})

    def save(self, path: str | os.PathLike[str]) -> None:
        check(lib.moirai_cluster_write(self._c, bytes_of(path)))

    def copy(self) -> Cluster:
        """A cluster of its own: `refine` changes the one that it is given."""
        return self.with_links(self.links)

    def __repr__(self) -> str:
        return f"<moirai.Cluster '{self.name}': {', '.join(d.name for d in self.devices)}>"


def builtin_clusters() -> list[str]:
    """Names that `Cluster.open` knows."""
    return [text(lib.moirai_cluster_builtin_name(i)) for i in range(lib.moirai_cluster_builtin_count())]


__all__ = ["Cluster", "Device", "Link", "builtin_clusters"]
