"""`--disabled-pass FuseOps,FoldScaleAxis`."""

from __future__ import annotations

import argparse

from tvm.error import suggest
from tvm.ir.pass_context import known_passes


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
