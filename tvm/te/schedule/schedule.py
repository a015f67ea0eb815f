"""A schedule: a stage for each operation of a graph.

s = te.create_schedule(C.op)
i_outer, i_inner = s[C].split(C.op.axis[0], factor=32)
s[B].compute_at(s[C], i_outer)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tvm.error import ScheduleError
from tvm.runtime.object import Object
from tvm.support.notebook import table

from ..tensor import Operation, PlaceholderOp, Tensor
from . import cache, normalize, rfactor
from .graph import create_read_graph, post_dfs_order
from .group import create_group, group_scan_bodies
from .record import ScheduleRecord, primitive, record_of
from .stage import Stage
from .stage_text import is_inlined, loop_texts, place_text


class ScheduleKeyError(ScheduleError, ValueError):
    """A schedule has no stage for what was given."""


class Schedule(Object):
    """Stages in the order of computation; ``s[tensor or operation]`` is one of them.

    ``stage_map`` finds a stage by its operation, also by those that the primitives have replaced.
    """

    __slots__ = ("code_hash", "groups", "outputs", "program", "record", "stage_map", "stages")

    def __init__(self, outputs: Sequence[Operation]) -> None:
        self.code_hash: str | None = None  # of the template that it is from, if that attaches one
        self.outputs: list[Operation] = list(outputs)
        self.groups: list[Stage] = []
        graph = create_read_graph(self.outputs)
        self.program = post_dfs_order(self.outputs, graph)  # as written, before any primitive
        self.stages = [Stage(op) for op in self.program]
        self.stage_map: dict[Operation, Stage] = {stage.op: stage for stage in self.stages}
        for op in self.outputs:
            self.stage_map[op].is_output = True
        group_scan_bodies(self)
        self.record: ScheduleRecord | None = record_of(self)

    def _repr_html_(self) -> str:
        return table(["stage", "computed", "loops"], [_row(stage) for stage in self.stages])

    def __getitem__(self, tensor: Tensor | Operation) -> Stage:
        op = tensor.op if isinstance(tensor, Tensor) else tensor
        if not isinstance(op, Operation):
            raise ScheduleKeyError(
                f"Expect schedule key to be Tensor or Operation, got {type(tensor).__name__}"
            )
        stage = self.stage_map.get(op)
        if stage is None:
            raise ScheduleKeyError(
                f"Cannot find the operation {op.name} in schedule; its stages are "
                f"{', '.join([stage.op.name for stage in self.stages])}"
            )
        return stage

    def __repr__(self) -> str:
        return f"schedule({', '.join([stage.op.name for stage in self.stages])})"

    @property
    def schedule_record(self) -> list[Schedule]:
        """Copies of the schedule as it was before and after each primitive, if they were wanted."""
        return [] if self.record is None else self.record.copies

    @property
    def primitive_record(self) -> list[str]:
        """The names of the primitives, ``vanilla`` first."""
        return [] if self.record is None else self.record.primitives

    def current(self, tensor: Tensor) -> Tensor:
        """What has taken the place of a tensor whose operation a primitive replaced."""
        stage = self.stage_map.get(tensor.op)
        return tensor if stage is None else stage.op.output(tensor.value_index)

    def copy(self) -> Schedule:
        """A schedule of its own with the same stages."""
        new = Schedule.__new__(Schedule)
        copies = {id(stage): stage.copy() for stage in (*self.stages, *self.groups)}
        for stage in copies.values():
            if stage.attach_stage is not None:
                stage.attach_stage = copies[id(stage.attach_stage)]
            if stage.group is not None:
                stage.group = copies[id(stage.group)]
        new.code_hash, new.record = self.code_hash, None
        new.outputs = list(self.outputs)
        new.program = self.program
        new.groups = [copies[id(group)] for group in self.groups]
        new.stages = [copies[id(stage)] for stage in self.stages]
        new.stage_map = {op: copies[id(stage)] for op, stage in self.stage_map.items()}
        return new

    def normalize(self) -> Schedule:
        """A copy with inlined stages put in place and all loops starting from 0."""
        return normalize.normalize(self)

    @primitive
    def create_group(self, outputs: Any, inputs: Any, include_inputs: bool = False) -> Stage:
        """A group of all stages between tensors, that are placed together.

            g = s.create_group(outputs=D, inputs=A)     B, C, D are computed inside the loop of E
            g.compute_at(s[E], E.op.axis[0])

        Parameters
        ----------
        outputs, inputs : Tensor or list of Tensor
            The ends of the group.
        include_inputs : bool
            Whether the stages of ``inputs`` belong to the group.

        Returns
        -------
        group : Stage
            For compute_at and compute_root.
        """
        last, first = [_tensors("create_group", given) for given in (outputs, inputs)]
        return create_group(self, last, first, include_inputs)

    @primitive
    def cache_read(self, tensor: Tensor, scope: str, readers: Any) -> Tensor:
        """Let ``readers`` read a copy of a tensor, kept in a storage scope.

            C[i] = A[i] + 1   ->   A.local[i] = A[i]
                                   C[i] = A.local[i] + 1

        Parameters
        ----------
        tensor : Tensor
            What is read.
        scope : str
            Where the copy is kept, such as ``global`` or ``shared``.
        readers : list of Tensor or Operation
            Who shall read the copy.

        Returns
        -------
        cache : Tensor
        """
        return cache.cache_read(self, tensor, scope, _operations(readers))

    @primitive
    def cache_write(self, tensor: Any, scope: str) -> Any:
        """Compute a tensor in a storage scope, and copy it into its place.

            C[i] = A[i] + 1   ->   C.local[i.c] = A[i.c] + 1
                                   C[i] = C.local[i]

        Loops that the stage had become the axes of the cache, its layout.

        Parameters
        ----------
        tensor : Tensor or list of Tensor
            The output, or all the outputs of an operation.
        scope : str
            Where the copy is kept, such as ``global`` or ``local``.

        Returns
        -------
        cache : Tensor or list of Tensor
        """
        caches = cache.cache_write(self, _tensors("cache_write", tensor), scope)
        return caches if isinstance(tensor, (list, tuple)) else caches[0]

    @primitive
    def rfactor(self, tensor: Tensor, axis: Any, factor_axis: int = 0) -> Any:
        """Compute partial results of a reduction, one an iteration of ``axis``, then combine them.

            B[] = sum(A[k])   ->   B.rf[k.inner] = sum(A[k.outer*f + k.inner])   over k.outer
                                   B[] = sum(B.rf[k.inner.v])                    over k.inner.v

        Parameters
        ----------
        tensor : Tensor
            The reduction.
        axis : IterVar
            A loop that comes from its reduction axes.
        factor_axis : int
            The position of the new axis in the partial results.

        Returns
        -------
        Tensor, or a list of them for a tuple reduction
        """
        return rfactor.rfactor(self, tensor, axis, factor_axis)


def _operations(readers: Any) -> list[Operation]:
    if isinstance(readers, (Tensor, Operation)):
        readers = [readers]
    elif not isinstance(readers, (list, tuple)):
        raise ScheduleError(
            f"cache_read requires a list of readers, got a value of {type(readers).__name__}"
        )
    return [reader.op if isinstance(reader, Tensor) else reader for reader in readers]


def _tensors(primitive: str, given: Any) -> list[Tensor]:
    tensors = list(given) if isinstance(given, (list, tuple)) else [given]
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise ScheduleError(
                f"{primitive} requires tensors, got a value of {type(tensor).__name__}"
            )
    return tensors


def create_schedule(ops: Any) -> Schedule:
    """A schedule that computes every stage on its own, in order.

    Parameters
    ----------
    ops : Operation or list of Operation
        The outputs.
    """
    given: Iterable[Any] = ops if isinstance(ops, (list, tuple)) else [ops]
    outputs = [op.op if isinstance(op, Tensor) else op for op in given]
    for op in outputs:
        if not isinstance(op, Operation):
            raise ScheduleError(
                f"create_schedule requires operations, got a value of {type(op).__name__}",
                hint="te.create_schedule(C.op) or te.create_schedule([C.op, D.op])",
            )
    return Schedule(list(dict.fromkeys(outputs)))


def _row(stage: Stage) -> tuple[str, str, str]:
    """A stage in the table that notebooks show: its name, its place, its loops from outside in."""
    if isinstance(stage.op, PlaceholderOp):
        return stage.op.name, "an input", ""
    loops = [] if is_inlined(stage) else loop_texts(stage)
    return stage.op.name, place_text(stage) or "by itself", ", ".join(loops)
