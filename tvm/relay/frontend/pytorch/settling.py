"""Results of converters as later nodes take them: constants computed, types known, lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.relay.expr import TupleWrapper
from tvm.relay.frontend.common import ExprFolder, infer_type

from .complexes import Complex
from .quantized import Quantized
from .registry import is_tensor


def settled(result: Any, folder: ExprFolder) -> Any:
    """Results folded together, so that what they share stays shared; tuples become lists."""
    tensors: list[RelayExpr] = []

    def collect(tensor: RelayExpr) -> RelayExpr:
        tensors.append(tensor)
        return tensor

    nested = _mapped(result, collect)
    folded = folder.fold_all(tensors)
    for tensor in folded:
        infer_type(tensor)
    following = iter(folded)
    return _mapped(nested, lambda _: next(following))


def _mapped(value: Any, apply: Callable[[RelayExpr], RelayExpr]) -> Any:
    if is_tensor(value):
        return apply(value)
    if isinstance(value, TupleWrapper):
        return [apply(value[i]) for i in range(value.size)]
    if isinstance(value, (list, tuple)):
        return [_mapped(item, apply) for item in value]
    if isinstance(value, Complex):
        return value.map(apply)
    if isinstance(value, Quantized):
        return replace(value, data=apply(value.data))
    return value
