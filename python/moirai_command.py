"""The command `moirai` of a package that pip has installed: the program itself is in the folder of the package.

Not a module of the package, which needs cffi when it is imported: the command needs nothing, on a machine without network
neither.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    program = str(Path(__file__).with_name("moirai") / "moirai")
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"moirai: {program}: {error.strerror}")
