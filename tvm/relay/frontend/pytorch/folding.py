"""Results of converters as later nodes take them: constants computed, types known, lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.frontend.common import ExprFolder

from .complex_tensors import Complex
from .quantized import Quantized
from .registry import is_tensor
from .tree import mapped


def folded(result: Any, folder: ExprFolder) -> Any:
    """Results folded together, so that what they share stays shared; tuples become lists."""
    tensors: list[RelayExpr] = []

    def collect(tensor: RelayExpr) -> RelayExpr:
        tensors.append(tensor)
        return tensor

    nested = _mapped(result, collect)
    folded = folder.fold_all(tensors)
    for tensor in folded:
        infer_type_of(tensor)
    following = iter(folded)
    return _mapped(nested, lambda _: next(following))


def _mapped(value: Any, apply: Callable[[RelayExpr], RelayExpr]) -> Any:
    def of_leaf(leaf: Any) -> Any:
        if isinstance(leaf, Complex):
            return leaf.map(apply)
        if isinstance(leaf, Quantized):
            return replace(leaf, data=apply(leaf.data))
        return apply(leaf) if is_tensor(leaf) else leaf

    return mapped(value, of_leaf)
