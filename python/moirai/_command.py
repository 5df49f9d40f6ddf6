"""The command `moirai` of a package that pip has installed: the program itself is beside this file."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    program = str(Path(__file__).with_name("moirai"))
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"moirai: {program}: {error.strerror}")
