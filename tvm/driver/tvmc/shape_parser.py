"""`--input-shapes "data:[1,3,224,224] mask:[1,-1]"`."""

from __future__ import annotations

import argparse
import re

from tvm.relay.ty import Any

Shapes = dict[str, list[int | Any]]

_INPUT = re.compile(r"\s*(?:\"([^\"]+)\"|'([^']+)'|([^\s\[\]\"']+?))\s*:\s*\[([^\[\]]*)\]\s*,?")


def parse_shape_string(inputs_string: str) -> Shapes:
    """Shapes by the names of inputs.

    Parameters
    ----------
    inputs_string : str
        Such as ``"input1:[10,10,20] input2:[2,-1]"``; -1 (or ?) is a dimension that is not known.
    """
    shapes: Shapes = {}
    at = 0
    text = inputs_string.rstrip()
    while at < len(text):
        found = _INPUT.match(text, at)
        if found is None:
            break
        name = found[1] or found[2] or found[3]
        if name in shapes:
            raise argparse.ArgumentTypeError(f"--input-shapes gives {name!r} two shapes")
        shapes[name] = [_dimension(item) for item in found[4].split(",") if item.strip()]
        at = found.end()
    if at < len(text) or not shapes:
        raise argparse.ArgumentTypeError(
            "--input-shapes argument is malformed, it should be like "
            f'"input1:[1,3,224,224] input2:[1,16]", got {inputs_string!r}'
        )
    return shapes


def _dimension(text: str) -> int | Any:
    text = text.strip()
    if text in ("-1", "?"):
        return Any()
    if not re.fullmatch(r"\d+", text):
        raise argparse.ArgumentTypeError(
            f"--input-shapes requires integers as dimensions (-1: not known), got {text!r}"
        )
    return int(text)
