"""The compute facet of operators that are one function of topi.

compute=computed_by(topi.nn.depth_to_space, "block_size", "layout", "mode")
compute=computed_by(topi.image.crop_and_resize, "crop_size", "layout", RESULT_DTYPE)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te

RESULT_DTYPE = "dtype of the result"  # among the names of attributes


def computed_by(
    function: Callable[..., Any], *names: str
) -> Callable[[Any, Sequence[te.Tensor], Any], list[te.Tensor]]:
    """The tensors that the function makes of the operands, then of the attributes of these names."""

    def compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: Any) -> list[te.Tensor]:
        values = [
            out_type.dtype if name is RESULT_DTYPE else getattr(attrs, name) for name in names
        ]
        found = function(*inputs, *values)
        return list(found) if isinstance(found, (list, tuple)) else [found]

    return compute
