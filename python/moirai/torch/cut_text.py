"""Cuts as text: "layer0/mlp: 2:3:5; *attention: 2,4,6 tree" (docs/shard.md), as for ONNX models."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Mapping

from .._lib import UsageError

_SUMS = ("chain", "star", "tree", "every")  # every: whoever reads a sum makes it for itself (repeated.py)


@dataclass(frozen=True)
class Cut:
    """An item: which strips, which sizes. `numbers` are units ("," as in 2,4,6), shares (":") or a number of pieces."""

    pattern: str
    kind: str  # "units", "shares", "pieces", "whole"
    numbers: tuple[int, ...]
    sum: str

    def sizes(self, name: str, units: int, unit: str) -> list[int]:
        """Of a strip; UsageError where that can't be."""
        if self.kind == "whole":
            return [units]
        if self.kind == "units":
            if sum(self.numbers) != units:
                raise UsageError(f"strip '{name}': the sizes add up to {sum(self.numbers)} {unit}, it has {units}")
            return list(self.numbers)
        shares = [1] * self.numbers[0] if self.kind == "pieces" else list(self.numbers)
        if len(shares) > units:
            raise UsageError(f"strip '{name}': {len(shares)} pieces, it has {units} {unit}")
        return rounded(shares, units)


def tile_of(units: int, tiles: int) -> int:
    """Units that a size is to be a multiple of, so that there are at least so many tiles."""
    tile = 64
    while tile > 1 and (units % tile or units // tile < tiles):
        tile //= 2
    return tile


def rounded(shares: list[int], units: int) -> list[int]:
    """Shares as whole tiles, at least one each: the largest remainders get what rounding leaves."""
    tile = tile_of(units, 4 * len(shares))
    tiles, total = units // tile, sum(shares)
    exact = [s / total * tiles for s in shares]
    found = [max(int(x), 1) for x in exact]
    while sum(found) > tiles:
        found[max(range(len(found)), key=lambda i: (found[i] > 1, found[i] - exact[i]))] -= 1
    while sum(found) < tiles:
        found[max(range(len(found)), key=lambda i: (exact[i] - found[i], -i))] += 1
    return [n * tile for n in found]


def _numbers(pattern: str, text: str) -> tuple[str, tuple[int, ...]]:
    if text == "whole":
        return "whole", ()
    if "," in text and ":" in text:
        raise UsageError(f'cut "{pattern}": sizes are 2,4,6 (units) or 2:3:5 (shares), not both')
    words = re.split("[,:]", text)
    for word in words:
        if not re.fullmatch(r"\s*[0-9]{1,15}\s*", word) or int(word) < 1:
            raise UsageError(f'cut "{pattern}": "{word.strip()}" is not a size of at least 1')
    kind = "units" if "," in text else "shares" if ":" in text else "pieces"
    return kind, tuple(int(w) for w in words)


def text(cuts: str | Mapping[str, str]) -> str:
    if not isinstance(cuts, (str, Mapping)):
        raise UsageError(f"cuts are a text or a mapping of strips to sizes, not {type(cuts).__name__}")
    return cuts if isinstance(cuts, str) else "; ".join(f"{k}: {v}" for k, v in cuts.items())


def parse(cuts: str | Mapping[str, str]) -> list[Cut]:
    """UsageError, in one line, for what is no cut."""
    found = []
    for line in text(cuts).splitlines():
        for item in re.split(r"(?:^|\s)#", line)[0].split(";"):  # names have that sign inside: the second of a path
            if not item.strip():
                continue
            pattern, colon, rest = item.partition(":")
            if not colon:
                raise UsageError(f'cut "{item.strip()}": a strip, a colon and sizes are needed')
            words = rest.split()
            how = words.pop() if words and words[-1] in _SUMS else "chain"
            if len(words) > 1 and words[-1].isalpha():
                raise UsageError(f'cut "{pattern.strip()}": sum "{words[-1]}": expected {", ".join(_SUMS[:-1])} or {_SUMS[-1]}')
            found.append(Cut(pattern.strip(), *_numbers(pattern.strip(), "".join(words)), how))
    if not found:
        raise UsageError("the cut is empty")
    return found
