"""Primitives that say where a stage runs and where its result lies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.error import ScheduleError
from tvm.ir.expr import PrimExpr
from tvm.tir.expr import IterVar, as_expr
from tvm.tir.index_map import IndexMap

from ..annotation_checks import check_scope
from ..tensor import ComputeOp, PlaceholderOp
from .layout import transform_loops
from .record import primitive
from .stage_data import AttachType
from .stage_state import StageState


class PlacementPrimitives(StageState):
    """Where a stage runs."""

    __slots__ = ()

    @primitive
    def compute_at(self, parent: Any, scope: IterVar) -> None:
        """Compute the stage inside a loop of a stage that uses it.

            for i: B[i] = ...            for i:
            for i: C[i] = B[i] ...  ->       B[i] = ...
                                             C[i] = B[i] ...

        Parameters
        ----------
        parent : Stage
            The stage whose loop it is.
        scope : IterVar
            The loop.
        """
        if not self.is_state:
            self.require_own_memory("compute_at")
        if parent is self:
            raise ScheduleError(
                f"compute_at requires another stage, got {self.op.name} itself"
            ).add_context(f"stage {self.op.name}")
        if not isinstance(parent, StageState):
            raise ScheduleError(
                f"compute_at requires a stage, got a value of {type(parent).__name__}",
                hint=f"s[{self.op.name}].compute_at(s[consumer], axis)",
            ).add_context(f"stage {self.op.name}")
        if self.is_output:
            raise ScheduleError(
                f"compute_at requires a stage that another one reads, got output {self.op.name}",
                hint=f"attach {parent.op.name} to {self.op.name} instead",
            ).add_context(f"stage {self.op.name}")
        self._require_same_group(parent)
        parent.find_leaf("compute_at", scope)
        self.attach_type = AttachType.Scope
        self.attach_ivar = scope
        self.attach_stage = parent

    def _require_same_group(self, parent: StageState) -> None:
        group, around = self.group, parent.group
        while around is not None and around is not group:
            around = around.group
        if around is not group:
            raise ScheduleError(
                f"compute_at requires a stage of the group that {self.op.name} belongs to, "
                f"got {parent.op.name}",
                hint="the stages of a scan's step cannot leave it; of a group, move the group",
            ).add_context(f"stage {self.op.name}")

    @primitive
    def compute_inline(self) -> None:
        """Put the stage's expression wherever it is read."""
        self.require_own_memory("compute_inline")
        if not isinstance(self.op, ComputeOp) or self.op.reduce_axis:
            kind = "a reduction" if isinstance(self.op, ComputeOp) else type(self.op).__name__
            raise ScheduleError(
                f"compute_inline requires an element-wise compute, got {self.op.name}, {kind}",
                hint="compute_at places it inside a loop of its consumer",
            ).add_context(f"stage {self.op.name}")
        if self.is_output:
            raise ScheduleError(
                f"compute_inline requires a stage that another one reads, "
                f"got output {self.op.name}",
            ).add_context(f"stage {self.op.name}")
        self.attach_type = AttachType.Inline

    @primitive
    def compute_root(self) -> None:
        """Compute the stage on its own, before those that use it: the default."""
        self.attach_type = AttachType.GroupRoot
        self.attach_ivar = None
        self.attach_stage = None

    @primitive
    def set_scope(self, scope: str) -> None:
        """Keep the result in a storage scope such as ``shared`` or ``local``."""
        check_scope("set_scope", scope)
        if scope not in ("", "global"):
            self.require_own_memory("set_scope")
        if self.is_output and scope not in ("", "global"):
            raise ScheduleError(
                f"set_scope requires a stage that is kept inside, got output {self.op.name}",
                hint=f'cache_write({self.op.name}, "{scope}") computes it there',
            ).add_context(f"stage {self.op.name}")
        self.scope = scope

    @primitive
    def set_store_predicate(self, predicate: Any) -> None:
        """Store only where ``predicate`` holds: threads of which one is enough."""
        expr: PrimExpr = as_expr(predicate)
        if not expr.dtype.is_bool:
            raise ScheduleError(
                f"set_store_predicate requires a condition, got {expr} of {expr.dtype}"
            ).add_context(f"stage {self.op.name}")
        if not isinstance(self.op, ComputeOp):
            raise ScheduleError(
                f"set_store_predicate requires a compute, got {self.op.name}, "
                f"a {type(self.op).__name__}"
            ).add_context(f"stage {self.op.name}")
        self.store_predicate = expr

    @primitive
    def double_buffer(self) -> None:
        """Compute into one of two copies while the other one is read."""
        self.require_own_memory("double_buffer")
        if self.is_output:
            raise ScheduleError(
                f"double_buffer requires a stage that is kept inside, got output {self.op.name}"
            ).add_context(f"stage {self.op.name}")
        self.is_double_buffered = True

    @primitive
    def rolling_buffer(self) -> None:
        """Keep what neighbouring iterations share, and compute what is new in each.

            for y:                                    for y:
                B[y : y + 3] = ...              ->        B[(y + 2) % 3] = ...
                C[y] = B[y] + B[y + 2]                    C[y] = B[y % 3] + B[(y + 2) % 3]

        The stage is placed by ``compute_at`` in a loop that moves what its reader reads forwards;
        the first iteration computes all of it.
        """
        self.require_own_memory("rolling_buffer")
        if self.is_output:
            raise ScheduleError(
                f"rolling_buffer requires a stage that is kept inside, got output {self.op.name}"
            ).add_context(f"stage {self.op.name}")
        if not isinstance(self.op, ComputeOp):
            raise ScheduleError(
                f"rolling_buffer requires a compute, got {self.op.name}, a {type(self.op).__name__}"
            ).add_context(f"stage {self.op.name}")
        self.is_rolling = True

    @primitive
    def transform_layout(self, mapping_function: Callable[..., Any]) -> list[IterVar] | None:
        """Change where the elements of the result lie in memory; of an argument, its shape too.

            s[B].transform_layout(lambda i, j: [i // 4, j, te.AXIS_SEPARATOR, i % 4])

        Parameters
        ----------
        mapping_function : callable
            From the indices to the new indices, with ``te.AXIS_SEPARATOR`` where the dimensions of
            flattened memory are divided.

        Returns
        -------
        new_iter_vars : list of IterVar or None
            The loops in the order of the layout, if those over the result's axes were untouched and
            of constant extent.
        """
        if not isinstance(self.op, (ComputeOp, PlaceholderOp)):
            raise ScheduleError(
                f"transform_layout requires a compute or placeholder, got {self.op.name}, "
                f"a {type(self.op).__name__}"
            ).add_context(f"stage {self.op.name}")
        if self.is_state:
            self.require_own_memory("transform_layout")
        tensor = self.op.output(0)
        ndim = len(self.layout.maps[-1].final_indices) if self.layout.maps else tensor.ndim
        dtype = tensor.shape[0].dtype if tensor.ndim else "int32"
        try:
            index_map, separators = IndexMap.from_func_with_separators(
                mapping_function, ndim, index_dtype=dtype
            )
        except (ValueError, TypeError, IndexError) as error:
            raise ScheduleError(
                f"transform_layout requires a function of {ndim} indices, got {error}"
            ).add_context(f"stage {self.op.name}") from error
        try:
            self.layout.check(tensor.name, tensor.shape, index_map)
        except ScheduleError as error:
            error.add_context(f"stage {self.op.name}")
            raise
        is_first = not self.layout.maps
        self.layout = self.layout.then(index_map, separators)
        if not is_first or isinstance(self.op, PlaceholderOp):
            return None
        return transform_loops(self, index_map)
