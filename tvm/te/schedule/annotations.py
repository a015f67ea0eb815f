"""Primitives that say how loops run: vectorize, unroll, parallel, bind, pragma, prefetch."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Number
from typing import Any

import numpy as np

from tvm.error import ScheduleError
from tvm.ir.expr import PrimExpr
from tvm.tir.expr import IntImm, IterVar, IterVarType, StringImm, as_expr, convert

from ..annotation_checks import check_pragma
from ..tensor import ComputeOp, ScanOp, Tensor, TensorComputeOp, TensorIntrinCall
from ..tensor_intrin import TensorIntrin
from .record import primitive
from .stage_data import IterVarAttr
from .stage_state import StageState, index_of

# loops of which an iteration needs what the one before has left
_DEPENDENT = {IterVarType.CommReduce: "a reduction", IterVarType.Ordered: "the steps of a scan"}
_PRAGMA_LOOPS = {"unroll": IterVarType.Unrolled, "vectorize": IterVarType.Vectorized}


class AnnotationPrimitives(StageState):
    """How loops run."""

    __slots__ = ()

    @primitive
    def vectorize(self, var: IterVar) -> None:
        """Execute the loop as vector instructions."""
        self._set_kind("vectorize", var, IterVarType.Vectorized)

    @primitive
    def unroll(self, var: IterVar) -> None:
        """Repeat the body in place of the loop."""
        self._set_kind("unroll", var, IterVarType.Unrolled)

    @primitive
    def parallel(self, var: IterVar) -> None:
        """Divide the iterations among threads."""
        self._set_kind("parallel", var, IterVarType.Parallelized)

    def _set_kind(self, primitive: str, iv: IterVar, kind: IterVarType) -> None:
        self.find_leaf(primitive, iv)
        self.require_unbound(primitive, iv)
        origin = _DEPENDENT.get(iv.iter_type)
        if origin is not None and kind is not IterVarType.Unrolled:
            raise ScheduleError(
                f"{primitive} requires a loop whose iterations are independent, "
                f"got {iv.var.name}, which comes from {origin}",
                hint=f"{primitive} a spatial axis, or rfactor the reduction first",
            ).add_context(f"stage {self.op.name}")
        self._update(iv, iter_type=kind)

    def _update(self, iv: IterVar, **changes: Any) -> None:
        self.iter_var_attrs[iv] = replace(self.iter_var_attrs.get(iv) or IterVarAttr(), **changes)

    @primitive
    def bind(self, ivar: IterVar, thread_ivar: IterVar) -> None:
        """Let the threads of an axis execute the iterations.

        Parameters
        ----------
        ivar : IterVar
            The loop.
        thread_ivar : IterVar
            From :func:`tvm.te.thread_axis`.
        """
        self.find_leaf("bind", ivar)
        if not isinstance(thread_ivar, IterVar) or thread_ivar.iter_type is not (
            IterVarType.ThreadIndex
        ):
            raise ScheduleError(
                f"bind requires a thread axis, got {thread_ivar}",
                hint='make one with te.thread_axis("threadIdx.x")',
            ).add_context(f"stage {self.op.name}, axis {ivar.var.name}")
        self.require_unbound("bind", ivar)
        self._require_free_thread(ivar, thread_ivar)
        self._update(ivar, bind_thread=thread_ivar)

    def _require_free_thread(self, ivar: IterVar, thread: IterVar) -> None:
        attr = self.attr_of(ivar)
        if attr.iter_type is not IterVarType.DataPar:
            raise ScheduleError(
                f"bind requires a plain loop, got {ivar.var.name}, which is "
                f"{attr.iter_type.name.lower()}",
            ).add_context(f"stage {self.op.name}, axis {ivar.var.name}")
        tag = thread.thread_tag
        for other, said in self.iter_var_attrs.items():
            bound = said.bind_thread
            is_taken = bound is not None and bound.thread_tag == tag and "Idx." in tag
            if is_taken and index_of(self.leaf_iter_vars, other) >= 0:
                raise ScheduleError(
                    f"bind requires threads that no loop of stage {self.op.name} has yet, "
                    f"got {tag}, which {other.var.name} is bound to",
                    hint="fuse both loops and bind the fused one, or take another dimension",
                ).add_context(f"stage {self.op.name}, axis {ivar.var.name}")

    @primitive
    def env_threads(self, threads: Any) -> None:
        """Run all parts of a scan within the given threads.

        Parameters
        ----------
        threads : IterVar or list of IterVar
            From :func:`tvm.te.thread_axis`, with their extents; they become the outermost loops.
        """
        given = tuple(threads) if isinstance(threads, (list, tuple)) else (threads,)
        if not isinstance(self.op, ScanOp):
            raise ScheduleError(
                f"env_threads requires a scan, got {self.op.name}, a {type(self.op).__name__}",
                hint="bind a loop of the stage instead",
            ).add_context(f"stage {self.op.name}")
        if self.threads:
            raise ScheduleError(
                f"env_threads requires a stage that has none yet, got {self.op.name} again"
            ).add_context(f"stage {self.op.name}")
        for thread in given:
            is_thread = isinstance(thread, IterVar) and (
                thread.iter_type is IterVarType.ThreadIndex and thread.dom is not None
            )
            if not is_thread:
                raise ScheduleError(
                    f"env_threads requires thread axes with extents, got {thread}",
                    hint='make one with te.thread_axis((0, 32), "threadIdx.x")',
                ).add_context(f"stage {self.op.name}")
        self.threads = given
        self.leaf_iter_vars[:0] = given
        self.all_iter_vars.extend(given)

    @primitive
    def pragma(self, var: IterVar, pragma_type: str, pragma_value: Any = None) -> None:
        """Put an attribute ``pragma_<type>`` on the loop.

        Parameters
        ----------
        var : IterVar
            The loop.
        pragma_type : str
            ``unroll``, ``vectorize``, ``auto_unroll_max_step``, ``unroll_explicit``,
            ``parallel_launch_point``, ``parallel_stride_pattern``, ``parallel_barrier_when_finish``,
            ``import_llvm``, ``import_c``, ...
        pragma_value : int, str or PrimExpr, optional
            1 by default.
        """
        self.find_leaf("pragma", var)
        check_pragma(pragma_type, pragma_value)
        if (kind := _PRAGMA_LOOPS.get(pragma_type)) is not None:
            self._set_kind("pragma", var, kind)
            return
        value: PrimExpr = as_expr(1 if pragma_value is None else convert(pragma_value))
        attr = self.attr_of(var)
        self._update(
            var,
            pragma_keys=(*attr.pragma_keys, StringImm(pragma_type)),
            pragma_values=(*attr.pragma_values, value),
        )

    @primitive
    def prefetch(
        self, tensor: Tensor, var: IterVar, offset: Any, over: IterVar | None = None
    ) -> None:
        """Bring what a later iteration reads near: a hint to the processor.

            for i: ... A[i] ...   ->   for i:
                                           prefetch(A[i + offset])
                                           ... A[i] ...

        Parameters
        ----------
        tensor : Tensor
            What is read.
        var : IterVar
            The loop in whose body to prefetch.
        offset : int or PrimExpr
            How many iterations ahead.
        over : IterVar, optional
            A loop further inside, of this stage or of one computed there, whose iterations share
            the lines to bring. What is read has to lie in one piece.
        """
        self.find_leaf("prefetch", var)
        if not isinstance(tensor, Tensor):
            raise ScheduleError(
                f"prefetch requires a tensor, got a value of {type(tensor).__name__}"
            ).add_context(f"stage {self.op.name}, axis {var.var.name}")
        ahead = as_expr(offset) if isinstance(offset, (Number, np.number, PrimExpr)) else None
        if ahead is None or not (ahead.dtype.is_int or ahead.dtype.is_uint):
            raise ScheduleError(
                f"prefetch requires an integer as its offset, got {offset!r}"
            ).add_context(f"stage {self.op.name}, axis {var.var.name}")
        attr = self.attr_of(var)
        self._update(
            var,
            prefetch_data=(*attr.prefetch_data, tensor),
            prefetch_offset=(*attr.prefetch_offset, ahead),
            prefetch_over=(*attr.prefetch_over, over),
        )

    @primitive
    def tensorize(self, var: IterVar, tensor_intrin: TensorIntrin | TensorIntrinCall) -> None:
        """Let an intrinsic do the work of a loop and of all loops inside it.

            for i.outer:                            for i.outer:
                for i.inner in range(16):     ->        vadd16(C[i.outer*16 : i.outer*16 + 16], ...)
                    C[i.outer*16 + i.inner] = ...

        Parameters
        ----------
        var : IterVar
            The outermost of the loops.
        tensor_intrin : TensorIntrin or TensorIntrinCall
            From :func:`tvm.te.decl_tensor_intrin`; computes what the loops compute. An operation
            that was written as calls of an intrinsic keeps these.
        """
        self.find_leaf("tensorize", var)
        if isinstance(tensor_intrin, TensorIntrinCall):
            if tensor_intrin.scalar_inputs:
                raise ScheduleError(
                    f"tensorize requires an intrinsic without scalar inputs, "
                    f"got {tensor_intrin.intrin.name} with {len(tensor_intrin.scalar_inputs)}",
                    hint="return the call from a te.compute instead",
                ).add_context(f"stage {self.op.name}, axis {var.var.name}")
            tensor_intrin = tensor_intrin.intrin
        if not isinstance(tensor_intrin, TensorIntrin):
            raise ScheduleError(
                f"tensorize requires a tensor intrinsic, got a value of "
                f"{type(tensor_intrin).__name__}",
                hint="declare one with te.decl_tensor_intrin",
            ).add_context(f"stage {self.op.name}, axis {var.var.name}")
        if isinstance(self.op, TensorComputeOp):
            return  # it consists of calls of an intrinsic already
        if not isinstance(self.op, ComputeOp):
            raise ScheduleError(
                f"tensorize requires a compute, got {self.op.name}, a {type(self.op).__name__}"
            ).add_context(f"stage {self.op.name}")
        self._update(var, iter_type=IterVarType.Tensorized, tensor_intrin=tensor_intrin)

    @primitive
    def storage_align(self, axis: IterVar, factor: int, offset: int) -> None:
        """Make the stride of an axis congruent to ``offset`` modulo ``factor``.

        Parameters
        ----------
        axis : IterVar
            An axis of the operation.
        factor, offset : int
            In elements.
        """
        self.require_own_memory("storage_align")
        axes = self.op.axis if isinstance(self.op, ComputeOp) else self.op.root_iter_vars()
        if not isinstance(axis, IterVar) or index_of(axes, axis) < 0:
            found = axis.var.name if isinstance(axis, IterVar) else repr(axis)
            raise ScheduleError(
                f"storage_align requires an axis of operation {self.op.name}, got {found}",
                hint=f"its axes are {', '.join([iv.var.name for iv in axes]) or 'none'}",
            ).add_context(f"stage {self.op.name}")
        numbers = [self._integer("storage_align", what) for what in (factor, offset)]
        if numbers[0] <= 0:
            raise ScheduleError(
                f"storage_align requires a positive factor, got {factor}"
            ).add_context(f"stage {self.op.name}")
        self._update(axis, dim_align_factor=numbers[0], dim_align_offset=numbers[1])

    def _integer(self, primitive: str, number: Any) -> int:
        value = number.value if isinstance(number, IntImm) else number
        if not isinstance(value, Integral):
            raise ScheduleError(
                f"{primitive} requires integers as factor and offset, got {number!r}"
            ).add_context(f"stage {self.op.name}")
        return int(value)
