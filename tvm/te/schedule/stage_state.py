"""The state of a stage, and looking up its loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.error import ScheduleError, suggest
from tvm.ir.expr import PrimExpr
from tvm.runtime.object import Object
from tvm.tir.expr import IterVar, IterVarType

from ..tensor import Operation, PlaceholderOp
from .layout import Layout
from .relations import Relation
from .stage_data import NO_ATTR, AttachType, IterVarAttr


class StageState(Object):
    """How one operation is computed: its loops, and where they stand.

    ``relations`` tell how the axes in ``leaf_iter_vars`` (the loops, outermost first) come from those
    of the operation; ``all_iter_vars`` has both and all between.
    """

    __slots__ = (
        "_group",
        "all_iter_vars",
        "attach_ivar",
        "attach_stage",
        "attach_type",
        "is_double_buffered",
        "is_output",
        "is_rolling",
        "is_state",
        "iter_var_attrs",
        "layout",
        "leaf_iter_vars",
        "num_child_stages",
        "op",
        "origin_op",
        "record",
        "relations",
        "scope",
        "store_predicate",
        "threads",
    )  # fmt: skip

    def __init__(self, op: Operation) -> None:
        self.op = op
        self.origin_op = op
        self.record: Any = None  # of the schedule, which primitives are entered in
        self.scope = ""
        self.all_iter_vars: list[IterVar] = list(op.root_iter_vars())
        self.leaf_iter_vars: list[IterVar] = loops_among(self.all_iter_vars)
        self.threads: tuple[IterVar, ...] = ()
        self.store_predicate: PrimExpr | None = None
        self.relations: list[Relation] = []
        self.iter_var_attrs: dict[IterVar, IterVarAttr] = {}
        self.attach_type = AttachType.GroupRoot
        self.attach_ivar: IterVar | None = None
        self.attach_stage: Any = None
        self.layout = Layout()
        self.is_double_buffered = False
        self.is_rolling = False
        self._group: Any = None
        self.num_child_stages = 0  # of a group: the stages and groups right inside
        self.is_output = False
        # whether the result lies in the memory of a scan that it begins or goes on with
        self.is_state = False

    @property
    def group(self) -> Any:
        """The stage of the group that this one belongs to, or None."""
        return self._group

    @group.setter
    def group(self, group: Any) -> None:
        if self._group is not None:
            self._group.num_child_stages -= 1
        if group is not None:
            group.num_child_stages += 1
        self._group = group

    def attach_spec(self) -> StageState:
        """The stage that says where this one runs: itself, or a group that it belongs to."""
        spec = self
        while spec.attach_type is AttachType.GroupRoot and spec.group is not None:
            spec = spec.group
        return spec

    def __repr__(self) -> str:
        return f"stage({self.op.name}, {self.op})"

    __str__ = __repr__

    def find_leaf(self, primitive: str, iv: IterVar) -> int:
        """The position of a loop, or an error if the axis is none any more."""
        if not isinstance(iv, IterVar):
            raise ScheduleError(
                f"{primitive} requires an axis of stage {self.op.name}, "
                f"got a value of {type(iv).__name__}"
            ).add_context(f"stage {self.op.name}")
        position = index_of(self.leaf_iter_vars, iv)
        if position >= 0:
            return position
        name, loops = iv.var.name, [leaf.var.name for leaf in self.leaf_iter_vars]
        known = index_of(self.all_iter_vars, iv) >= 0
        found = "which was split or fused already" if known else "which is not one of its axes"
        raise ScheduleError(
            f"{primitive} requires a loop of stage {self.op.name}, got {name}, {found}",
            hint=f"its loops are {', '.join(loops) or 'none'}"
            + (f"; {near}" if not known and (near := suggest(name, loops)) else ""),
        ).add_context(f"stage {self.op.name}, axis {name}")

    def require_unbound(self, primitive: str, iv: IterVar) -> None:
        """Reject a loop that threads run."""
        if (attr := self.iter_var_attrs.get(iv)) is not None and attr.bind_thread is not None:
            raise ScheduleError(
                f"{primitive} requires a loop, got {iv.var.name}, which is bound to "
                f"{attr.bind_thread.thread_tag}",
                hint="bind a loop last, when nothing else is to be said of it",
            ).add_context(f"stage {self.op.name}")

    def require_own_memory(self, primitive: str) -> None:
        """Reject a stage that computes nothing, or whose result lies in memory of another one."""
        if isinstance(self.op, PlaceholderOp):
            raise ScheduleError(
                f"{primitive} requires a computed stage, got placeholder {self.op.name}",
                hint=f'cache_read({self.op.name}, "global", [consumer]) makes a stage of it',
            ).add_context(f"stage {self.op.name}")
        if self.is_state:
            raise ScheduleError(
                f"{primitive} requires a stage with memory of its own, got {self.op.name}, "
                "whose result lies in that of a scan",
                hint=f'cache_write({self.op.name}, "local") makes a stage that can have it',
            ).add_context(f"stage {self.op.name}")

    def apply_relation(self, relation: Relation, created: Sequence[IterVar]) -> None:
        """Record how new axes come about."""
        self.relations.append(relation)
        self.all_iter_vars.extend(created)

    def attr_of(self, iv: IterVar) -> IterVarAttr:
        """What is said of an axis."""
        return self.iter_var_attrs.get(iv, NO_ATTR)

    def thread_of(self, iv: IterVar) -> IterVar:
        """The thread axis that a loop is bound to, or the loop itself."""
        attr = self.iter_var_attrs.get(iv)
        return iv if attr is None or attr.bind_thread is None else attr.bind_thread


def loops_among(axes: Sequence[IterVar]) -> list[IterVar]:
    """The axes that are loops, and not only the dimensions of a result."""
    return [iv for iv in axes if iv.iter_type is not IterVarType.DimInfo]


def index_of(axes: Sequence[IterVar], iv: IterVar) -> int:
    """The position of an axis, -1 if it is not there."""
    for position, other in enumerate(axes):
        if other is iv:
            return position
    return -1
