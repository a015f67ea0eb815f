"""Tensors without axes: operators that take an axis treat them as vectors of one element."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from tvm.relay import op as _op
from tvm.relay.frontend.common import infer_shape

from .registry import Converter, is_tensor
from .tree import mapped

# operators by the argument whose lack of axes the results share
_AXIS_OPERATORS = {
    **dict.fromkeys((
        "cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "sum", "mean", "prod", "amax",
        "amin", "max", "min", "aminmax", "argmax", "argmin", "all", "any", "var", "std",
        "var_mean", "std_mean", "norm", "linalg_vector_norm", "logsumexp", "softmax", "_softmax",
        "log_softmax", "_log_softmax", "cosine_similarity", "sort", "argsort", "topk", "kthvalue",
        "median", "nanmedian", "mode", "index_select", "index_add", "index_copy", "index_fill",
        "index_reduce", "scatter", "scatter_add", "scatter_reduce", "flip", "roll", "diff", "put",
        "glu", "count_nonzero",
    ), 0),
    **dict.fromkeys(("gather", "take_along_dim"), 2),
}  # fmt: skip


def accept_scalars(converters: MutableMapping[str, Converter]) -> None:
    """Wrap the converters of operators with an axis."""
    for name, leading in _AXIS_OPERATORS.items():
        kind = f"aten::{name}"
        if kind in converters:
            converters[kind] = _accepting(converters[kind], leading)


def _accepting(convert: Converter, leading: int) -> Converter:
    def accepting(*args: Any) -> Any:
        scalars = [is_tensor(arg) and infer_shape(arg) == () for arg in args]
        wide = is_tensor(args[0]) and not scalars[0]
        if not any(scalars[:1]) and not (leading and any(scalars)):
            return convert(*args)
        raised = [
            _op.reshape(arg, (1,)) if is_scalar and _is_raised(i, wide, leading) else arg
            for i, (arg, is_scalar) in enumerate(zip(args, scalars, strict=True))
        ]
        result = convert(*raised)
        return _lowered(result) if len(scalars) > leading and scalars[leading] else result

    return accepting


def _is_raised(position: int, wide: bool, leading: int) -> bool:
    """The data and what is as large as it; a number beside data with axes stays one."""
    return not wide or position == leading


def _lowered(result: Any) -> Any:
    return mapped(
        result,
        lambda leaf: (
            _op.reshape(leaf, ()) if is_tensor(leaf) and infer_shape(leaf) == (1,) else leaf
        ),
    )
