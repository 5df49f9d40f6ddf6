"""Files that are kept from one process to the next: measured times, groups, compiled code."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any


def cache_folder() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "moirai" / "torch"


def chosen_folder(cache: str | os.PathLike[str] | None | bool) -> Path | None:
    """A folder, the usual one for True, nowhere for None."""
    return cache_folder() if cache is True else Path(cache) if cache else None


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def read_json(path: Path | None, default: Any) -> Any:
    """What is there; the default where nothing is, or nothing that can be read."""
    try:
        return json.loads(path.read_text()) if path and path.exists() else default
    except (OSError, ValueError):
        return default


def write_json(path: Path | None, value: Any) -> None:
    """Whole or not at all: others may read it at the same time."""
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(value))
        part.replace(path)
