"""What a command says besides its results: on stderr, so that results can be piped."""

from __future__ import annotations

import argparse
import sys

from tvm import knobs


def tell(text: str) -> None:
    """Write lines, unless ``TVM_QUIET`` is set or ``-q`` given."""
    if not knobs.QUIET.value:
        sys.stderr.write(f"{text}\n")


def add_quiet_arg(parser: argparse.ArgumentParser) -> None:
    """Add ``-q``."""
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing but results")
