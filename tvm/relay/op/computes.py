"""The compute facet of operators that are one function of topi.

compute=computed_by(topi.nn.depth_to_space, "block_size", "layout", "mode")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te


def computed_by(
    function: Callable[..., Any], *names: str
) -> Callable[[Any, Sequence[te.Tensor], object], list[te.Tensor]]:
    """A tensor that the function makes of the operands, then of the attributes of these names."""

    def compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: object) -> list[te.Tensor]:
        return [function(*inputs, *[getattr(attrs, name) for name in names])]

    return compute
