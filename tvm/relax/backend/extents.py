"""Symbolic dimensions on both sides: 64 bits in programs, 32 in the kernel library.

relax            int64 n      Tensor((n, n * 2))
library's graph  int32 n      Tensor[(n, n * 2)]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.relay.op.types import as_dim
from tvm.tir.expr import Any as UnknownDim
from tvm.tir.expr import Cast, IntImm, SizeVar
from tvm.tir.expr import Var as TirVar

PROGRAM_DTYPE, GRAPH_DTYPE = "int64", "int32"


class Extents:
    """The dimensions of one function in the library's graphs, and back."""

    def __init__(self) -> None:
        self._in_graph: dict[TirVar, PrimExpr] = {}
        self._in_program: dict[TirVar, PrimExpr] = {}

    def in_graph(self, dims: Sequence[PrimExpr]) -> tuple[Any, ...]:
        """Dimensions as the library has them; a number is an int."""
        return tuple([self._narrow(dim) for dim in dims])

    def in_program(self, dims: Sequence[Any]) -> list[PrimExpr]:
        """Dimensions that the library inferred."""
        rewriter = _Converter(self._in_program, PROGRAM_DTYPE)
        return [
            rewriter.converted(dim) if isinstance(dim, PrimExpr) else IntImm(PROGRAM_DTYPE, dim)
            for dim in dims
        ]

    def _narrow(self, dim: PrimExpr) -> Any:
        if isinstance(dim, IntImm):
            return int(dim.value)
        return as_dim(_Converter(self._in_graph, GRAPH_DTYPE, self._define).converted(dim))

    def _define(self, var: TirVar) -> PrimExpr:
        if str(var.dtype) != PROGRAM_DTYPE:
            raise KeyError(var)
        made: TirVar = SizeVar(var.name, GRAPH_DTYPE)
        self._in_graph[var], self._in_program[made] = made, var
        return made


class _Converter(Rewriter):
    """The same expression of other variables and of another width."""

    def __init__(self, variables: dict[TirVar, PrimExpr], dtype: str, define: Any = None) -> None:
        self.variables = variables
        self.dtype = dtype
        self.define = define

    def converted(self, dim: PrimExpr) -> PrimExpr:
        """A dimension, which must consist of numbers and known variables."""
        found: PrimExpr = self.visit(dim)
        return found

    def visit_var(self, var: TirVar) -> PrimExpr:
        found = self.variables.get(var)
        if found is None and self.define is not None:
            found = self.define(var)
        if found is None:
            raise KeyError(var)
        return found

    visit_size_var = visit_var

    def visit_int_imm(self, number: IntImm) -> PrimExpr:
        return IntImm(self.dtype, number.value)

    def visit_cast(self, cast: Cast) -> PrimExpr:
        raise KeyError(cast)

    def visit_any(self, dim: UnknownDim) -> PrimExpr:
        raise KeyError(dim)


def are_equal(analyzer: Analyzer, left: Sequence[PrimExpr], right: Sequence[PrimExpr]) -> bool:
    """Whether two shapes are certainly the same."""
    return len(left) == len(right) and all(
        [bool(analyzer.can_prove_equal(a, b)) for a, b in zip(left, right, strict=True)]
    )
