"""The compute facet of operators that are one function of topi.

compute=computed_by(topi.nn.depth_to_space, "block_size", "layout", "mode")
compute=computed_by(topi.image.crop_and_resize, "crop_size", "layout", RESULT_DTYPE)

The function's docstring describes the parameters that the operator's leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te

# among the names of attributes
RESULT_DTYPE, RESULT_SHAPE = "result.dtype", "result.shape"


@dataclass(frozen=True)
class ComputedBy:
    """The tensors that a function makes of the operands, then of the attributes of these names."""

    function: Callable[..., Any]
    names: tuple[str, ...]

    def __call__(self, attrs: Any, inputs: Sequence[te.Tensor], out_type: Any) -> list[te.Tensor]:
        values = [
            getattr(attrs, name)
            if (field := name.removeprefix("result.")) == name
            else getattr(out_type, field)
            for name in self.names
        ]
        found = self.function(*inputs, *values)
        return list(found) if isinstance(found, (list, tuple)) else [found]


def computed_by(function: Callable[..., Any], *names: str) -> ComputedBy:
    """The compute of an operator that is this function of its operands and attributes."""
    return ComputedBy(function, names)
