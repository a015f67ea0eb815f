"""Options of a build's passes, such as `--disabled-pass FuseOps,FoldScaleAxis`."""

from __future__ import annotations

import argparse

from tvm.error import suggest
from tvm.ir.pass_context import known_passes


def add_pass_args(parser: argparse.ArgumentParser) -> None:
    """The options of commands that compile a model for themselves."""
    parser.add_argument(
        "-O", "--opt-level", type=int, choices=range(4), default=3, metavar="[0-3]",
        help="level of optimisation (3)",
    )  # fmt: skip
    parser.add_argument(
        "--pass-config", action="append", metavar="name=value", help="an option of a pass"
    )
    parser.add_argument(
        "--disabled-pass", type=parse_pass_list_str, default="", metavar="PASSES",
        help="passes to leave out, with commas",
    )  # fmt: skip


def parse_pass_list_str(input_string: str) -> list[str]:
    """The names of passes in a list with commas."""
    names = [name.strip() for name in input_string.split(",") if name.strip()]
    known = known_passes()
    if unknown := [name for name in names if name not in known]:
        near = suggest(unknown[0], known)
        raise argparse.ArgumentTypeError(
            f"Following passes are not registered within tvm: {', '.join(unknown)}"
            + (f"; {near}" if near else "")
        )
    return names
