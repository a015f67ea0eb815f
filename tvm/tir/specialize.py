"""Give parameters of a function values: the shapes of its buffers, or numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.support import deep

from .buffer import Buffer
from .expr import Var, as_expr
from .rebuild import BINARY
from .stmt_functor import Substituter

if TYPE_CHECKING:
    from .function import PrimFunc


@deep
def specialize_function(func: PrimFunc, param_map: Mapping[Var, Any]) -> PrimFunc:
    """See :meth:`PrimFunc.specialize`."""
    if not param_map:
        return func
    values: dict[Var, PrimExpr] = {}
    for param, given in param_map.items():
        if not any(param is known for known in func.params):
            raise TypeError(f"specialize requires parameters of the function, got {param}")
        if isinstance(given, Buffer):
            _match_buffer(func, param, given, values)
        elif param in func.buffer_map:
            raise TypeError(f"specialize requires a buffer for {param}, got {given!r}")
        else:
            _match_expr(param, as_expr(given, param.dtype), values, param.name)
    substituter = _Specializer(values)
    return func.replace(
        params=tuple([param for param in func.params if param not in values]),
        buffer_map={p: substituter.buffer(buffer) for p, buffer in func.buffer_map.items()},
        body=substituter.visit(func.body),
    )


class _Specializer(Substituter):
    """Folds what has constant operands now."""

    def visit_binary_op_expr(self, expr: Any) -> PrimExpr:
        return self._folded(expr)

    def visit_cmp_expr(self, expr: Any) -> PrimExpr:
        return self._folded(expr)

    def visit_logical_expr(self, expr: Any) -> PrimExpr:
        return self._folded(expr)

    def _folded(self, expr: Any) -> PrimExpr:
        new: Any = self.rewrite_children(expr)
        return new if new is expr else BINARY[type(new)](new.a, new.b)


def _match_buffer(func: PrimFunc, param: Var, given: Buffer, values: dict[Var, PrimExpr]) -> None:
    declared = func.buffer_map.get(param)
    if declared is None:
        raise TypeError(f"specialize requires a value for the scalar {param}, got a buffer")
    if declared.dtype is not given.dtype or len(declared.shape) != len(given.shape):
        raise TypeError(
            f"specialize requires a {len(declared.shape)}-dimensional {declared.dtype} buffer for "
            f"{param}, got {len(given.shape)} dimensions of {given.dtype}"
        )
    pairs = [*zip(declared.shape, given.shape, strict=True)]
    if declared.strides or given.strides:
        if len(declared.strides) != len(given.strides):
            raise TypeError(
                f"specialize requires {len(declared.strides)} strides for {param}, "
                f"got {len(given.strides)}"
            )
        pairs += zip(declared.strides, given.strides, strict=True)
    # other buffers in the same memory follow
    pairs += [(declared.elem_offset, given.elem_offset), (declared.data, given.data)]
    for old, new in pairs:
        _match_expr(old, new, values, param.name)


def _match_expr(old: PrimExpr, new: PrimExpr, values: dict[Var, PrimExpr], name: str) -> None:
    if isinstance(old, Var):
        known = values.setdefault(old, new)
        if known is new or structural_equal(known, new):
            return
        old = known
    elif structural_equal(old, new):
        return
    raise TypeError(f"specialize requires {old} in parameter {name}, got {new}")
