"""What importers share: types and values of the expressions built so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tvm.error import OpNotImplemented, TVMError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.op import Op
from tvm.ir.pass_context import PassContext, register_pass_config
from tvm.ir.span import SourceName, Span
from tvm.ir.type import TensorType
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Constant, Tuple, const
from tvm.relay.transform.fold_constant import ConstantFolder
from tvm.runtime.ndarray import NDArray
from tvm.support import deep
from tvm.tir import IntImm

Dim: TypeAlias = Any  # an int, or tir.Any / a variable if it is not known


class ExprFolder(ConstantFolder):
    """Folds expressions as they are built; what it returned once is not looked at again."""

    def __init__(self) -> None:
        super().__init__()
        # what was returned, kept so that no identity is used again; constants need no memory
        self._settled: dict[int, RelayExpr] = {}
        self._done: dict[int, RelayExpr] = {}  # of one call, by what it was given

    @deep
    def fold(self, expr: RelayExpr) -> RelayExpr:
        """``expr`` with what depends on constants alone computed."""
        result = self._fold(expr)
        self._done.clear()  # and with it the constants that are folded now
        return result

    def _fold(self, expr: RelayExpr) -> RelayExpr:
        if isinstance(expr, Constant) or id(expr) in self._settled:
            return expr
        if found := self._done.get(id(expr)):
            return found
        new = self._fold_node(expr, expr.map_children(self._fold))
        self._done[id(expr)] = new
        if not isinstance(new, Constant):
            self._settled[id(new)] = new
        return new


def infer_type(node: RelayExpr, mod: Any = None) -> Any:
    """The type of an expression; only what is new is inferred."""
    return infer_type_of(node)


def infer_shape(node: RelayExpr, mod: Any = None) -> tuple[Dim, ...]:
    """The shape as integers where known, as expressions where not."""
    ty = infer_type_of(node)
    if not isinstance(ty, TensorType):
        raise TVMError(f"a tensor is required here, got a value of type {ty}")
    return tuple([d.value if isinstance(d, IntImm) else d for d in ty.shape])


def infer_dtype(node: RelayExpr) -> str:
    """The element type."""
    return str(infer_type_of(node).dtype)


def infer_value(node: RelayExpr, params: Mapping[str, Any] | None = None) -> Any:
    """The numpy value of a constant expression, None if it is not constant."""
    if isinstance(node, Constant):
        return node.data.numpy()
    found = (params or {}).get(getattr(node, "name_hint", ""))
    return found.numpy() if isinstance(found, NDArray) else found


def fold_constant(node: RelayExpr, mod: Any = None) -> RelayExpr:
    """The expression with constant parts computed."""
    return ExprFolder().fold(node)


def scalar_like(value: float, node: RelayExpr) -> Constant:
    """A 0-d constant of the element type of ``node``."""
    return const(value, infer_dtype(node))


def as_exprs(result: Any) -> list[RelayExpr]:
    """The outputs of a converter as a list of expressions."""
    if isinstance(result, (list, tuple)):
        return list(result)
    if hasattr(result, "astuple"):  # a TupleWrapper
        return [result[i] for i in range(result.size)]
    if isinstance(result, Tuple):
        return list(result.fields)
    return [result]


register_pass_config("relay.frontend.fill_span", bool)  # say where expressions come from


def should_fill_span() -> bool:
    """Whether importers say where expressions come from; they do by default."""
    return bool(PassContext.current().config.get("relay.frontend.fill_span", True))


def set_span(sym: Any, span: Span | SourceName | str) -> Any:
    """Say where an expression comes from, and all below it that nothing was said about yet.

    Parameters
    ----------
    sym : relay.Expr or a list of them
        The expression; it is changed, and returned.
    span : Span or str
        The place, or the name of what it was made from.
    """
    if not should_fill_span():
        return sym
    found = span if isinstance(span, Span) else Span(span, 0, 0, 0, 0)
    stack: list[RelayExpr] = [e for e in as_exprs(sym) if isinstance(e, RelayExpr)]
    while stack:
        expr = stack.pop()
        if expr.span is None and not isinstance(expr, (Op, GlobalVar)):
            expr.span = found
            stack.extend([child for child in expr.children() if isinstance(child, RelayExpr)])
    return sym


@dataclass(frozen=True)
class Unsupported:
    """One node that an importer has no converter for."""

    operator: str
    node: str
    inputs: Sequence[str]

    def __str__(self) -> str:
        return f"{self.operator} (node {self.node}, inputs {', '.join(self.inputs) or 'none'})"


def refuse(framework: str, nodes: Sequence[Unsupported], hint: str) -> OpNotImplemented:
    """One error that lists all nodes that cannot be imported."""
    kinds = sorted({node.operator for node in nodes})
    lines = "\n".join(f"    {node}" for node in nodes)
    return OpNotImplemented(
        f"the {framework} importer requires operators it knows, got {len(nodes)} nodes of "
        f"{len(kinds)} unsupported operators: {', '.join(kinds)}\n{lines}",
        hint=hint,
    )


def same_padding(
    in_shape: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    lower: bool = False,
) -> tuple[int, ...]:
    """Padding (all begins, then all ends) so that the output is ``ceil(input / stride)``."""
    begins, ends = [], []
    for size, k, stride, dilation in zip(in_shape, kernel, strides, dilations, strict=True):
        out = -(-size // stride)
        total = max(0, (out - 1) * stride + (k - 1) * dilation + 1 - size)
        small = total // 2
        begins.append(total - small if lower else small)
        ends.append(small if lower else total - small)
    return (*begins, *ends)


def constant(value: Any, dtype: str | None = None) -> Constant:
    """A constant of a numpy array or scalar, its dtype kept."""
    array = np.asarray(value) if dtype is None else np.asarray(value, dtype)
    return const(np.ascontiguousarray(array).reshape(array.shape), str(array.dtype))
