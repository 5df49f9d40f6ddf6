"""Tables in pages of docs, between <!-- KIND --> and <!-- end -->."""

from __future__ import annotations

import re
import sys
from pathlib import Path


def show(page: Path | None, kind: str, made: list[str]) -> int:
    """Writes a table into a page, or prints it where none is given; the exit code."""
    if not page:
        print("\n".join(made))
        return 0
    text, marks = page.read_text(), re.compile(rf"(<!-- {kind} -->\n).*?(<!-- end -->)", re.S)
    if not marks.search(text):
        print(f"{Path(sys.argv[0]).name}: {page} has no <!-- {kind} --> ... <!-- end -->", file=sys.stderr)
        return 1
    page.write_text(marks.sub(lambda m: m[1] + "\n".join(made) + "\n" + m[2], text))
    return 0
