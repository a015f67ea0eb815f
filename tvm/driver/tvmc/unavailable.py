"""Commands of classic releases that this one does not have."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from tvm.driver.tvmc.errors import TVMCException

_REASONS = {
    "micro": "projects for microcontrollers are not made; "
    "`tvmc compile --target c --output-format mlf` writes C sources for them",
}


def add_micro_parser(subparsers: Any, _: argparse.ArgumentParser, __: Any) -> None:
    """`tvmc micro`."""
    _add_parser(subparsers, "micro")


def _add_parser(subparsers: Any, name: str) -> None:
    parser = subparsers.add_parser(
        name, usage=f"tvmc {name}",
        description=f"Not available in this release: {_REASONS[name]}.",
    )  # fmt: skip
    # whatever follows, the answer is the same
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(func=lambda _: reject(name))


def reject(command: str) -> NoReturn:
    """The answer to a command that there is not."""
    raise TVMCException(f"tvmc {command} is not available in this release: {_REASONS[command]}")
