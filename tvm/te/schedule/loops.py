"""Primitives that change a stage's loops: split, fuse, tile, reorder."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np

from tvm.error import ScheduleError
from tvm.ir.expr import PrimExpr
from tvm.support.dtype import dtype as as_dtype
from tvm.tir.expr import IntImm, IterVar, IterVarType, Var, as_expr

from .record import primitive
from .relations import Fuse, Singleton, Split
from .stage_state import StageState, index_of

LOOP_TYPES = (IterVarType.DataPar, IterVarType.CommReduce, IterVarType.Ordered)
# types of axes in the order in which fusing prefers them
_REORDERABLE = (*LOOP_TYPES, IterVarType.ThreadIndex)


class LoopPrimitives(StageState):
    """Split, fuse, tile and reorder."""

    __slots__ = ()

    @primitive
    def split(
        self,
        parent: IterVar,
        factor: Any = None,
        nparts: Any = None,
        disable_predication: bool = False,
    ) -> tuple[IterVar, IterVar]:
        """Replace a loop by two nested ones.

            for i in range(n):   ->   for i.outer in range(ceildiv(n, factor)):
                                          for i.inner in range(factor):

        Parameters
        ----------
        parent : IterVar
            The loop.
        factor : int or PrimExpr, optional
            The extent of the inner loop.
        nparts : int or PrimExpr, optional
            The extent of the outer loop; one of the two is required.
        disable_predication : bool
            Leave out the check of the tail, if the extent is known to divide.

        Returns
        -------
        outer, inner : IterVar
        """
        if (factor is None) == (nparts is None):
            found = "neither" if factor is None else "both"
            raise ScheduleError(f"split requires either factor or nparts, got {found}").add_context(
                f"stage {self.op.name}"
            )
        amount = self._positive("split", factor if nparts is None else nparts)
        position = self.find_leaf("split", parent)
        self._require_loop("split", parent)
        name, dtype = parent.var.name, parent.var.dtype
        outer = IterVar(None, Var(f"{name}.outer", dtype), parent.iter_type)
        inner = IterVar(None, Var(f"{name}.inner", dtype), parent.iter_type)
        size, count = (amount, None) if nparts is None else (None, amount)
        relation = Split(parent, outer, inner, size, count, disable_predication)
        self.apply_relation(relation, (outer, inner))
        self.leaf_iter_vars[position : position + 1] = [outer, inner]
        return outer, inner

    def _positive(self, primitive: str, amount: Any) -> PrimExpr:
        whole = isinstance(amount, float) and amount.is_integer()
        is_number = isinstance(amount, (Number, np.number, PrimExpr))
        expr = as_expr(int(amount) if whole else amount if is_number else 0.0)
        if not (expr.dtype.is_int or expr.dtype.is_uint):
            raise ScheduleError(
                f"{primitive} requires an integer as its factor, got {amount!r}"
            ).add_context(f"stage {self.op.name}")
        if isinstance(expr, IntImm) and expr.value <= 0:
            raise ScheduleError(
                f"{primitive} requires a positive factor, got {expr.value}"
            ).add_context(f"stage {self.op.name}")
        return expr

    def _require_loop(self, primitive: str, iv: IterVar) -> None:
        if iv.iter_type not in LOOP_TYPES:
            raise ScheduleError(
                f"{primitive} requires a loop, got {iv.var.name}, "
                f"an axis of type {iv.iter_type.name}"
            ).add_context(f"stage {self.op.name}")
        self.require_unbound(primitive, iv)

    @primitive
    def fuse(self, *args: IterVar) -> IterVar:
        """Replace consecutive loops by one; with no loops, make one of extent 1.

            for i in range(n):          ->   for i.j.fused in range(n * m):
                for j in range(m):

        Parameters
        ----------
        args : IterVar
            From the outermost to the innermost.

        Returns
        -------
        fused : IterVar
        """
        if not args:
            single = IterVar(None, Var("singleton", "int32"), IterVarType.DataPar)
            self.apply_relation(Singleton(single), (single,))
            self.leaf_iter_vars.insert(0, single)
            return single
        fused = args[0]
        if len(args) == 1:
            self.find_leaf("fuse", fused)
        for inner in args[1:]:
            fused = self._fuse_two(fused, inner)
        return fused

    def _fuse_two(self, outer: IterVar, inner: IterVar) -> IterVar:
        at_outer, at_inner = self.find_leaf("fuse", outer), self.find_leaf("fuse", inner)
        if outer is inner:
            raise ScheduleError(
                f"fuse requires different loops, got {outer.var.name} twice"
            ).add_context(f"stage {self.op.name}")
        if at_inner < at_outer:
            outer, inner, at_outer, at_inner = inner, outer, at_inner, at_outer
        self._require_loop("fuse", outer)
        self._require_loop("fuse", inner)
        if at_inner != at_outer + 1:
            between = self.leaf_iter_vars[at_outer + 1].var.name
            raise ScheduleError(
                "fuse requires loops that are consecutive, "
                f"got {outer.var.name} and {inner.var.name} with {between} between them",
                hint=f"reorder({outer.var.name}, {inner.var.name}) first",
            ).add_context(f"stage {self.op.name}")
        name = f"{outer.var.name}.{inner.var.name}.fused"
        fused = IterVar(
            None, Var(name, self._fused_dtype(outer, inner)), max(outer.iter_type, inner.iter_type)
        )
        self.apply_relation(Fuse(outer, inner, fused), (fused,))
        self.leaf_iter_vars[at_outer : at_inner + 1] = [fused]
        return fused

    def _fused_dtype(self, outer: IterVar, inner: IterVar) -> Any:
        """The wider of both, and wide enough for the whole iteration space."""
        size = 1
        for iv in self.op.root_iter_vars():
            extent = iv.dom.extent if iv.dom is not None else None
            size *= extent.value if isinstance(extent, IntImm) else 1
        if size >= 1 << 31:
            return as_dtype("int64")
        a, b = outer.var.dtype, inner.var.dtype
        return a if a.bits >= b.bits else b

    @primitive
    def reorder(self, *args: IterVar) -> None:
        """Put loops in the given order, in the places that they hold together.

        Parameters
        ----------
        args : IterVar
            From the outermost to the innermost.
        """
        places = [self.find_leaf("reorder", iv) for iv in args]
        for position, iv in enumerate(args):
            if iv.iter_type not in _REORDERABLE:
                raise ScheduleError(
                    f"reorder requires loops, got {iv.var.name}, an axis of type {iv.iter_type.name}"
                ).add_context(f"stage {self.op.name}")
            if index_of(args, iv) != position:
                raise ScheduleError(
                    f"reorder requires each loop once, got {iv.var.name} twice"
                ).add_context(f"stage {self.op.name}")
        for place, iv in zip(sorted(places), args, strict=True):
            self.leaf_iter_vars[place] = iv

    def tile(
        self, x_parent: IterVar, y_parent: IterVar, x_factor: Any, y_factor: Any
    ) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Split two loops and reorder: x.outer, y.outer, x.inner, y.inner.

        Returns
        -------
        x_outer, y_outer, x_inner, y_inner : IterVar
        """
        x_outer, x_inner = self.split(x_parent, factor=x_factor)
        y_outer, y_inner = self.split(y_parent, factor=y_factor)
        self.reorder(x_outer, y_outer, x_inner, y_inner)
        return x_outer, y_outer, x_inner, y_inner
