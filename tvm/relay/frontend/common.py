"""What importers share: types and values of the expressions built so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tvm.error import OpNotImplemented, TVMError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.pass_context import PassContext, register_pass_config
from tvm.ir.span import SourceName, Span
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay import op as _op
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Constant, Tuple, TupleWrapper, Var, const
from tvm.relay.function import Function
from tvm.relay.transform import InferType
from tvm.relay.transform.fold_constant import ConstantFolder
from tvm.relay.traverse import free_vars, substitute
from tvm.runtime.ndarray import NDArray
from tvm.support import deep
from tvm.tir import IntImm

from .attributes import (
    AttrCvt,
    DuplicateFilter,
    ExprTable,
    Renamer,
    RequiredAttr,
    StrAttrsDict,
    get_name,
    get_relay_op,
    new_var,
    to_int_list,
)
from .cells import gru_cell, lstm_cell, rnn_cell

__all__ = [
    "AttrCvt", "DuplicateFilter", "ExprFolder", "ExprTable", "Renamer", "RequiredAttr",
    "StrAttrsDict", "Unsupported", "as_exprs", "autopad", "constant", "ensure_scalar_shape",
    "extremes", "flat_names", "fold_constant", "get_name", "get_relay_op", "gru_cell", "infer_channels", "infer_dtype",
    "infer_shape", "infer_type", "infer_value", "infer_value_simulated", "is_static", "lstm_cell", "new_var",
    "unsupported_operators", "rnn_cell", "same_padding", "scalar_like", "set_span", "shape_of", "static_or",
    "should_fill_span", "to_int_list", "try_infer_value", "try_resolve_var_to_const", "unbind",
]  # fmt: skip
Dim: TypeAlias = Any  # an int, or tir.Any / a variable if it is not known


class ExprFolder(ConstantFolder):
    """Folds expressions as they are built; what it returned once is not looked at again."""

    def __init__(self) -> None:
        super().__init__()
        # what was returned, kept so that no identity is used again; constants need no memory
        self._folded: dict[int, RelayExpr] = {}
        self._done: dict[int, RelayExpr] = {}  # of one call, by what it was given

    # what is known from before is this object's own, so that no caller gives any
    def fold(self, expr: RelayExpr) -> RelayExpr:  # type: ignore[override]
        """``expr`` with what depends on constants alone computed."""
        return self.fold_all([expr])[0]

    @deep
    def fold_all(self, exprs: Sequence[RelayExpr]) -> list[RelayExpr]:
        """Expressions folded together: what they share stays shared."""
        results = [self._fold(expr) for expr in exprs]
        self._done.clear()  # and with it the constants that are folded now
        return results

    def _fold(self, expr: RelayExpr) -> RelayExpr:
        if isinstance(expr, Constant) or id(expr) in self._folded:
            return expr
        if found := self._done.get(id(expr)):
            return found
        new = self.rewrite(expr, expr.map_children(self._fold))
        self._done[id(expr)] = new
        if not isinstance(new, Constant):
            self._folded[id(new)] = new
        return new


def infer_type(node: RelayExpr, mod: Any = None) -> RelayExpr:
    """The expression, whose ``checked_type`` is known then; only what is new is inferred.

    Parameters
    ----------
    node : relay.Expr
        The expression.
    mod : IRModule, optional
        The functions that it calls.
    """
    if isinstance(node, Function):
        program = IRModule.from_expr(node)
        program.update(mod or {})
        typed: Function = InferType()(program)["main"]
        return typed
    infer_type_of(node, mod)
    return node


def infer_shape(inputs: RelayExpr, mod: Any = None) -> tuple[Dim, ...]:
    """The shape as integers where known, as expressions where not."""
    return tuple([d.value if isinstance(d, IntImm) else d for d in _tensor_type(inputs).shape])


def is_static(extents: Iterable[Dim]) -> bool:
    """Whether all extents are numbers."""
    return all([isinstance(extent, int) for extent in extents])


def static_or(extents: Iterable[Dim], other: Any) -> list[Any]:
    """The extents, something else in place of dynamic ones."""
    return [extent if isinstance(extent, int) else other for extent in extents]


def infer_dtype(node: RelayExpr) -> str:
    """The element type."""
    return str(_tensor_type(node).dtype)


def _tensor_type(node: RelayExpr) -> TensorType:
    ty = infer_type_of(node)
    if not isinstance(ty, TensorType):
        raise TVMError(f"a tensor is required here, got a value of type {ty}")
    return ty


def infer_value(
    input_val: RelayExpr, params: Mapping[str, Any] | None = None, mod: Any = None
) -> Any:
    """The numpy value of an expression of constants and parameters, None if it has other parts."""
    if isinstance(input_val, Constant):
        return input_val.data.numpy()
    if isinstance(input_val, Var) or not params:
        found = (params or {}).get(getattr(input_val, "name_hint", ""))
        return found.numpy() if isinstance(found, NDArray) else found
    binds: dict[Var, RelayExpr] = {
        v: constant(_as_numpy(params[v.name_hint]))
        for v in free_vars(input_val)
        if v.name_hint in params
    }
    folded = fold_constant(substitute(input_val, binds), mod)
    return folded.data.numpy() if isinstance(folded, Constant) else None


def _as_numpy(value: Any) -> np.ndarray:
    return value.numpy() if isinstance(value, NDArray) else np.asarray(value)


def infer_value_simulated(input_val: RelayExpr, params: Mapping[str, Any]) -> Any:
    """The same; what is no parameter has random values, of which shapes do not depend."""
    random = np.random.default_rng(0)
    made = {
        v.name_hint: random.random(infer_shape(v)).astype(infer_dtype(v))
        for v in free_vars(input_val)
        if v.name_hint not in params
    }
    return infer_value(input_val, {**made, **params})


def try_infer_value(
    val: RelayExpr,
    on_success: Callable[[Any], Any] | None = None,
    on_failure: Callable[[], Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> tuple[Any, bool]:
    """The value of an expression and whether it has one; else the expression itself.

    Parameters
    ----------
    on_success, on_failure : what to give instead, with the value and without.
    """
    found = infer_value(val, parameters)
    if found is None:
        return (val if on_failure is None else on_failure()), False
    return (found if on_success is None else on_success(found)), True


def infer_channels(inputs: RelayExpr, transpose: bool = False) -> Dim:
    """How many channels a weight makes: its first extent, of a transposed layer the second.

    Parameters
    ----------
    inputs : relay.Expr
        The weight of a convolution, channels first.
    transpose : bool
        Whether the convolution is transposed.
    """
    return infer_shape(inputs)[1 if transpose else 0]


def shape_of(
    x: RelayExpr, dtype: str = "int64", start: int | None = None, end: int | None = None
) -> RelayExpr:
    """The extents, or those from `start` to `end`: a constant where they are known.

    Parameters
    ----------
    x : relay.Expr
        A tensor.
    dtype : str
        The element type of the extents.
    start, end : int, optional
        The first axis, and the one behind the last; all by default.

    Returns
    -------
    relay.Expr
        A vector with an element for each axis.
    """
    part, rank = infer_shape(x)[slice(start, end)], len(infer_shape(x))
    if is_static(part):
        return constant(np.array(part, dtype))
    first, last, _ = slice(start, end).indices(rank)
    dims = _op.shape_of(x, dtype)
    return dims if len(part) == rank else _op.strided_slice(dims, [first], [last])


def unbind(data: RelayExpr, axis: int = 0) -> TupleWrapper:
    """The parts along an axis, which they lose.

    Parameters
    ----------
    data : relay.Expr
        The tensor; the extent of the axis must be known.
    axis : int
        The axis.
    """
    parts = _op.split(data, infer_shape(data)[axis], axis)
    return TupleWrapper(
        Tuple([_op.squeeze(part, axis=[axis]) for part in as_exprs(parts)]), len(as_exprs(parts))
    )


def ensure_scalar_shape(x: RelayExpr) -> RelayExpr:
    """A tensor of one element as one without axes."""
    return x if not infer_shape(x) else _op.squeeze(x)


def try_resolve_var_to_const(x: RelayExpr, graph_params: Mapping[str, Any]) -> RelayExpr:
    """A variable that stands for a parameter of one element as that number."""
    found = infer_value(x, graph_params) if isinstance(x, Var) else None
    return x if found is None or found.size != 1 else constant(found)


def autopad(
    data: RelayExpr,
    strides: Sequence[int],
    kernel_shape: Sequence[int],
    dilations: Sequence[int] = (1, 1),
    pad_type: str = "constant",
    deconv: bool = False,
    mode: str = "SAME_UPPER",
    pad_value: float = 0.0,
) -> RelayExpr:
    """Data padded so that a window gives `ceil(extent / stride)` results along each axis.

    Parameters
    ----------
    data : (batch, channels, ...).
    deconv : whether the window is that of a transposed layer.
    mode : "SAME_UPPER" puts what is left over behind, "SAME_LOWER" before.
    """
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise TVMError(f"autopad requires SAME_UPPER or SAME_LOWER as its mode, got {mode!r}")
    extents = infer_shape(data)[2:]
    if not is_static(extents):
        raise OpNotImplemented(f"autopad requires known extents, got {extents}")
    spread = [(k - 1) * d + 1 for k, d in zip(kernel_shape, dilations, strict=False)]
    if deconv:
        totals = [max(0, k - s) for k, s in zip(spread, strides, strict=True)]
        halves = [
            (t - t // 2, t // 2) if mode == "SAME_LOWER" else (t // 2, t - t // 2) for t in totals
        ]
    else:
        found = same_padding(extents, spread, strides, [1] * len(spread), mode == "SAME_LOWER")
        halves = list(zip(found[: len(spread)], found[len(spread) :], strict=True))
    width = [(0, 0), (0, 0), *halves]
    return _op.nn.pad(data, width, pad_value, pad_type)


def fold_constant(node: RelayExpr, mod: Any = None) -> RelayExpr:
    """The expression with constant parts computed."""
    return ExprFolder().fold(node)


def scalar_like(value: float, node: RelayExpr) -> RelayExpr:
    """A 0-d constant of the element type of ``node``."""
    return const(value, infer_dtype(node))


def extremes(dtype: str) -> tuple[float, float]:
    """The least and the greatest value of an element type, infinities for floats."""
    if "float" in dtype:
        return -math.inf, math.inf
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def as_exprs(result: Any) -> list[RelayExpr]:
    """The outputs of a converter as a list of expressions."""
    if isinstance(result, (list, tuple)):
        return list(result)
    if hasattr(result, "astuple"):  # a TupleWrapper
        return [result[i] for i in range(result.size)]
    if isinstance(result, Tuple):
        return list(result.fields)
    return [result]


def flat_names(name: str, value: RelayExpr) -> list[str]:
    """Names of the tensors of an output: those of tuples are ``name.0``, ``name.1``, ..."""
    return _names_in(name, infer_type_of(value))


def _names_in(name: str, ty: Type) -> list[str]:
    if not isinstance(ty, TupleType):
        return [name]
    return [n for i, field in enumerate(ty.fields) for n in _names_in(f"{name}.{i}", field)]


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
    name: Any = span  # the node takes it as text or as the name of a source
    found = span if isinstance(span, Span) else Span(name, 0, 0, 0, 0)
    stack: list[Any] = [e for e in as_exprs(sym) if isinstance(e, RelayExpr)]
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
    near: str = ""  # what may be meant, as `suggest` says it

    def __str__(self) -> str:
        return f"{self.operator} (node {self.node}, inputs {', '.join(self.inputs) or 'none'})"


def unsupported_operators(
    framework: str, nodes: Sequence[Unsupported], hint: str
) -> OpNotImplemented:
    """One error that lists all nodes that cannot be imported."""
    kinds = sorted({node.operator for node in nodes})
    near = {node.operator: node.near for node in reversed(nodes)}
    lines = "\n".join(
        # what may be meant is told once for each operator
        f"    {node}" + (f"; {text}" if (text := near.pop(node.operator, "")) else "")
        for node in nodes
    )
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


def constant(value: Any, dtype: str | None = None) -> RelayExpr:
    """A constant of a numpy array or scalar, its dtype kept."""
    array = np.asarray(value) if dtype is None else np.asarray(value, dtype)
    return const(np.ascontiguousarray(array).reshape(array.shape), str(array.dtype))
