"""A stage: one operation's loops, where it runs, and the primitives that change them."""

from __future__ import annotations

from tvm.tir.expr import IterVar

from .annotations import AnnotationPrimitives
from .loops import LoopPrimitives
from .placement import PlacementPrimitives
from .stage_data import AttachType
from .stage_state import loops_among


class Stage(LoopPrimitives, AnnotationPrimitives, PlacementPrimitives):
    """How one operation is computed. ``s[C]`` of a schedule gives the stage of a tensor."""

    __slots__ = ()

    def copy(self) -> Stage:
        """A stage of its own with the same state; what it is attached to stays the same."""
        new = Stage(self.op)
        new.origin_op = self.origin_op
        new.scope = self.scope
        new.all_iter_vars = list(self.all_iter_vars)
        new.leaf_iter_vars = list(self.leaf_iter_vars)
        new.threads = self.threads
        new.store_predicate = self.store_predicate
        new.relations = list(self.relations)
        new.iter_var_attrs = dict(self.iter_var_attrs)
        new.attach_type = self.attach_type
        new.attach_ivar = self.attach_ivar
        new.attach_stage = self.attach_stage
        new.layout = self.layout
        new.is_double_buffered = self.is_double_buffered
        new.is_rolling = self.is_rolling
        new.group = self.group
        new.is_output = self.is_output
        new.is_state = self.is_state
        return new

    @property
    def is_inlined(self) -> bool:
        """Whether the stage has no loops of its own."""
        return self.attach_type in (AttachType.Inline, AttachType.InlinedAlready)

    def reset_loops(self) -> None:
        """Forget all transformations of the loops."""
        self.all_iter_vars = list(self.op.root_iter_vars())
        self.leaf_iter_vars: list[IterVar] = loops_among(self.all_iter_vars)
        self.relations = []
        self.iter_var_attrs = {}
