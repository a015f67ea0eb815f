"""Primitives that say how loops run: vectorize, unroll, parallel, bind, pragma, prefetch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tvm.error import ScheduleError
from tvm.ir.expr import PrimExpr
from tvm.tir.expr import IterVar, IterVarType, as_expr, convert

from ..tensor import ComputeOp, ScanOp, Tensor
from ..tensor_intrin import TensorIntrin, TensorIntrinCall
from .stage_data import IterVarAttr
from .stage_state import StageState, index_of

_PRAGMA_LOOPS = {"unroll": IterVarType.Unrolled, "vectorize": IterVarType.Vectorized}


class AnnotationPrimitives(StageState):
    """How loops run."""

    __slots__ = ()

    def vectorize(self, var: IterVar) -> None:
        """Execute the loop as vector instructions."""
        self._set_kind("vectorize", var, IterVarType.Vectorized)

    def unroll(self, var: IterVar) -> None:
        """Repeat the body in place of the loop."""
        self._set_kind("unroll", var, IterVarType.Unrolled)

    def parallel(self, var: IterVar) -> None:
        """Divide the iterations among threads."""
        self._set_kind("parallel", var, IterVarType.Parallelized)

    def _set_kind(self, primitive: str, iv: IterVar, kind: IterVarType) -> None:
        self.find_leaf(primitive, iv)
        if iv.iter_type is IterVarType.CommReduce and kind is IterVarType.Parallelized:
            raise ScheduleError(
                f"parallel requires a loop whose iterations are independent, got {iv.var.name}, "
                "which comes from a reduction",
                hint="parallelize a spatial axis, or rfactor the reduction first",
            ).add_context(f"stage {self.op.name}")
        self._update(iv, iter_type=kind)

    def _update(self, iv: IterVar, **changes: Any) -> None:
        self.iter_var_attrs[iv] = replace(self.iter_var_attrs.get(iv) or IterVarAttr(), **changes)

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
        self._update(ivar, bind_thread=thread_ivar)

    def env_threads(self, threads: Any) -> None:
        """Run all parts of a scan within the given threads.

        Parameters
        ----------
        threads : IterVar or list of IterVar
            From :func:`tvm.te.thread_axis`, with their extents; they become the outermost loops.
        """
        given = (threads,) if isinstance(threads, IterVar) else tuple(threads)
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
            if thread.iter_type is not IterVarType.ThreadIndex or thread.dom is None:
                raise ScheduleError(
                    f"env_threads requires thread axes with extents, got {thread.var.name}",
                    hint='make one with te.thread_axis((0, 32), "threadIdx.x")',
                ).add_context(f"stage {self.op.name}")
        self.threads = given
        self.leaf_iter_vars[:0] = given
        self.all_iter_vars.extend(given)

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
        if (kind := _PRAGMA_LOOPS.get(pragma_type)) is not None:
            self._set_kind("pragma", var, kind)
            return
        value: PrimExpr = as_expr(1 if pragma_value is None else convert(pragma_value))
        attr = self.attr_of(var)
        self._update(
            var,
            pragma_keys=(*attr.pragma_keys, pragma_type),
            pragma_values=(*attr.pragma_values, value),
        )

    def prefetch(self, tensor: Tensor, var: IterVar, offset: Any) -> None:
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
        """
        self.find_leaf("prefetch", var)
        if not isinstance(tensor, Tensor):
            raise ScheduleError(
                f"prefetch requires a tensor, got a value of {type(tensor).__name__}"
            ).add_context(f"stage {self.op.name}, axis {var.var.name}")
        attr = self.attr_of(var)
        self._update(
            var,
            prefetch_data=(*attr.prefetch_data, tensor),
            prefetch_offset=(*attr.prefetch_offset, as_expr(offset)),
        )

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
            From :func:`tvm.te.decl_tensor_intrin`; computes what the loops compute.
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
        if not isinstance(self.op, ComputeOp):
            raise ScheduleError(
                f"tensorize requires a compute, got {self.op.name}, a {type(self.op).__name__}"
            ).add_context(f"stage {self.op.name}")
        self._update(var, iter_type=IterVarType.Tensorized, tensor_intrin=tensor_intrin)

    def storage_align(self, axis: IterVar, factor: int, offset: int) -> None:
        """Make the stride of an axis congruent to ``offset`` modulo ``factor``.

        Parameters
        ----------
        axis : IterVar
            An axis of the operation.
        factor, offset : int
            In elements.
        """
        if index_of(self.op.root_iter_vars(), axis) < 0:
            raise ScheduleError(
                f"storage_align requires an axis of operation {self.op.name}, got {axis.var.name}",
                hint=f"its axes are {', '.join([iv.var.name for iv in self.op.root_iter_vars()])}",
            ).add_context(f"stage {self.op.name}")
        if int(factor) <= 0:
            raise ScheduleError(
                f"storage_align requires a positive factor, got {factor}"
            ).add_context(f"stage {self.op.name}")
        self._update(axis, dim_align_factor=int(factor), dim_align_offset=int(offset))
