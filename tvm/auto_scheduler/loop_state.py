"""States as programs handle them: their methods apply steps.

s = dag.get_init_state()
i, j, k = s[C].iters
i_outer, i_inner = s.split(C, i, [16])
s.parallel(C, i_outer)
print(s)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.error import TVMError
from tvm.te.tensor import Operation, Tensor

from .loops import ANNOTATION_NAMES, Annotation, Iterator, Stage
from .state_object import StateObject
from .steps import (
    AnnotationStep,
    CacheReadStep,
    CacheWriteStep,
    ComputeAtStep,
    ComputeInlineStep,
    ComputeRootStep,
    FollowFusedSplitStep,
    FollowSplitStep,
    FuseStep,
    PragmaStep,
    ReorderStep,
    RfactorStep,
    SplitStep,
    Step,
    StorageAlignStep,
)

__all__ = ["Iterator", "Stage", "State", "StateObject"]


class State:
    """A state that changes; its ``state_object`` is the present one, which does not.

    Stages are given by their operations, tensors or positions, loops by iterators or positions.

    Parameters
    ----------
    state_object : StateObject
        The state to begin with.
    dag : ComputeDAG
        The program.
    """

    ANNOTATION_TRANS_TABLE = {
        ("none" if number == 0 else name): number for number, name in enumerate(ANNOTATION_NAMES)
    }

    def __init__(self, state_object: StateObject, dag: Any) -> None:
        self.state_object = state_object
        self.compute_dag = dag
        # operations of before also find the stage of what has taken their place
        self.stage_id_map: dict[Operation, int] = {}
        self._note_stages()

    def _note_stages(self) -> None:
        for position, stage in enumerate(self.stages):
            self.stage_id_map[stage.op] = position

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages in the order of computation."""
        return self.state_object.stages

    @property
    def transform_steps(self) -> tuple[Step, ...]:
        """The steps so far."""
        return self.state_object.transform_steps

    @property
    def stage_ops(self) -> list[Operation]:
        """The operations of the stages."""
        return self.state_object.stage_ops

    def bind(self, stage: Any, iterator: Any, thread_name: str) -> Iterator:
        """Let threads execute the iterations of a loop.

        Parameters
        ----------
        stage : Operation, Tensor or int
            The stage.
        iterator : Iterator
            The loop.
        thread_name : str
            ``vthread``, ``blockIdx.x``, ``threadIdx.x`` and so on.
        """
        number = self.ANNOTATION_TRANS_TABLE.get(thread_name, 0)
        if number < Annotation.VTHREAD or number == Annotation.TENSORIZE:
            raise ValueError(f"Invalid thread_name: {thread_name}")
        return self._annotate(stage, iterator, Annotation(number))

    def parallel(self, stage: Any, iterator: Any) -> Iterator:
        """Divide the iterations of a loop among threads.

        Parameters
        ----------
        stage, iterator :
            As of :meth:`bind`.
        """
        return self._annotate(stage, iterator, Annotation.PARALLEL)

    def unroll(self, stage: Any, iterator: Any, max_unroll: int | None = None) -> Iterator:
        """Repeat the body in place of a loop.

        Parameters
        ----------
        stage, iterator :
            As of :meth:`bind`.
        max_unroll : int, optional
            A loop of more iterations is left as it is.
        """
        loop = self._loop(stage, iterator)
        if max_unroll is not None and (loop.extent is None or loop.extent > max_unroll):
            return loop
        return self._annotate(stage, iterator, Annotation.UNROLL)

    def vectorize(self, stage: Any, iterator: Any) -> Iterator:
        """Execute a loop as vector instructions.

        Parameters
        ----------
        stage, iterator :
            As of :meth:`bind`.
        """
        return self._annotate(stage, iterator, Annotation.VECTORIZE)

    def _annotate(self, stage: Any, iterator: Any, annotation: Annotation) -> Iterator:
        loop: Iterator = self._apply(AnnotationStep(*self._place(stage, iterator), annotation))
        return loop

    def fuse(self, stage: Any, iters: Sequence[Any]) -> Iterator:
        """Replace consecutive loops by one.

        Parameters
        ----------
        stage :
            The stage.
        iters : list of Iterator
            From the outermost to the innermost.

        Returns
        -------
        Iterator
            If more than one loop was given, the new one.
        """
        stage_id = self._stage_id(stage)
        ids = tuple([self._iter_id(stage_id, loop) for loop in iters])
        loop: Iterator = self._apply(FuseStep(stage_id, ids))
        return loop

    def pragma(self, stage: Any, iterator: Any, pragma_type: str) -> None:
        """Put a pragma on a loop.

        Parameters
        ----------
        stage, iterator :
            As of :meth:`bind`.
        pragma_type : str
            ``auto_unroll_max_step$16``, for example.
        """
        self._apply(PragmaStep(*self._place(stage, iterator), pragma_type))

    def reorder(self, stage: Any, order: Sequence[Any]) -> None:
        """Put all loops of a stage in the given order.

        Parameters
        ----------
        stage :
            The stage.
        order : list of Iterator
            From the outermost to the innermost.
        """
        stage_id = self._stage_id(stage)
        ids = tuple([self._iter_id(stage_id, loop) for loop in order])
        self._apply(ReorderStep(stage_id, ids))

    def split(
        self,
        stage: Any,
        iterator: Any,
        lengths: Sequence[int | None],
        inner_to_outer: bool = True,
    ) -> list[Iterator]:
        """Replace a loop by nested ones.

        Parameters
        ----------
        stage, iterator :
            As of :meth:`bind`.
        lengths : list of int
            Of the inner loops, or of the outer ones.
        inner_to_outer : bool
            Whether the outermost loop, rather than the innermost, has what is left.

        Returns
        -------
        list of Iterator
            One more than lengths, outer ones first.
        """
        stage_id, iter_id = self._place(stage, iterator)
        extent = self.stages[stage_id].iters[iter_id].extent
        known = tuple([None if n is None else int(n) for n in lengths])
        made: list[Iterator] = self._apply(
            SplitStep(stage_id, iter_id, extent, known, inner_to_outer)
        )
        return made

    def follow_split(
        self, stage: Any, iterator: Any, src_step_id: int, n_split: int
    ) -> list[Iterator]:
        """Split a loop into the lengths of an earlier split.

        Parameters
        ----------
        stage, iterator :
            As of :meth:`bind`.
        src_step_id : int
            The position of that split among the steps.
        n_split : int
            How many lengths; the last is the product of those of the split that are left.
        """
        made: list[Iterator] = self._apply(
            FollowSplitStep(*self._place(stage, iterator), src_step_id, n_split)
        )
        return made

    def follow_fused_split(
        self,
        stage: Any,
        iterator: Any,
        src_step_ids: Sequence[int],
        level: int,
        factor_or_nparts: bool,
    ) -> list[Iterator]:
        """Split a fused loop by the product of lengths of earlier splits.

        Parameters
        ----------
        stage, iterator :
            As of :meth:`bind`.
        src_step_ids : list of int
            The positions of those splits among the steps.
        level : int
            Which of their lengths.
        factor_or_nparts : bool
            Whether that is the length of the inner loop, rather than of the outer one.
        """
        sources = tuple([int(source) for source in src_step_ids])
        place = self._place(stage, iterator)
        made: list[Iterator] = self._apply(
            FollowFusedSplitStep(*place, sources, level, bool(factor_or_nparts))
        )
        return made

    def storage_align(self, stage: Any, iterator: Any, factor: int, offset: int) -> None:
        """Make the stride of an axis congruent to ``offset`` modulo ``factor``.

        Parameters
        ----------
        stage, iterator :
            As of :meth:`bind`.
        factor, offset : int
            In elements.
        """
        self._apply(StorageAlignStep(*self._place(stage, iterator), factor, offset))

    def compute_at(self, stage: Any, target_stage: Any, target_iter: Any) -> None:
        """Compute a stage inside a loop of another one.

        Parameters
        ----------
        stage :
            The stage.
        target_stage :
            The other one.
        target_iter : Iterator
            Its loop.
        """
        place = self._place(target_stage, target_iter)
        self._apply(ComputeAtStep(self._stage_id(stage), *place))

    def compute_inline(self, stage: Any) -> None:
        """Put a stage's expression wherever it is read.

        Parameters
        ----------
        stage :
            The stage.
        """
        self._apply(ComputeInlineStep(self._stage_id(stage)))

    def compute_root(self, stage: Any) -> None:
        """Compute a stage on its own.

        Parameters
        ----------
        stage :
            The stage.
        """
        self._apply(ComputeRootStep(self._stage_id(stage)))

    def cache_read(self, stage: Any, scope_name: str, reader_stages: Sequence[Any]) -> Operation:
        """Let stages read a copy of another one.

        Parameters
        ----------
        stage :
            What is read.
        scope_name : str
            Where the copy is kept.
        reader_stages : list
            Who reads the copy.

        Returns
        -------
        Operation
            The copy.
        """
        readers = tuple([self._stage_id(reader) for reader in reader_stages])
        return self._new_stage(CacheReadStep(self._stage_id(stage), scope_name, readers))

    def cache_write(self, stage: Any, scope_name: str) -> Operation:
        """Compute a stage in a storage scope, before it is copied.

        Parameters
        ----------
        stage :
            The stage.
        scope_name : str
            Where it is computed.

        Returns
        -------
        Operation
            The computation; the stage itself becomes the copy.
        """
        return self._new_stage(CacheWriteStep(self._stage_id(stage), scope_name))

    def rfactor(self, stage: Any, iterator: Any, factor_iter_id: int) -> Operation:
        """Compute partial results of a reduction first.

        Parameters
        ----------
        stage, iterator :
            The reduction, and the loop that has a partial result for each iteration.
        factor_iter_id : int
            The position of the new axis in the partial results.

        Returns
        -------
        Operation
            The partial results.
        """
        return self._new_stage(RfactorStep(*self._place(stage, iterator), factor_iter_id))

    def copy(self) -> State:
        """A state of its own with the same stages."""
        new = State(self.state_object, self.compute_dag)
        new.stage_id_map = dict(self.stage_id_map)
        return new

    def _apply(self, step: Step) -> Any:
        self.state_object, result = step.apply(self.state_object)
        return result

    def _new_stage(self, step: Step) -> Operation:
        position: int = self._apply(step)
        for op, at in self.stage_id_map.items():
            if at >= position:
                self.stage_id_map[op] = at + 1
        self._note_stages()
        return self.stages[position].op

    def _place(self, stage: Any, iterator: Any) -> tuple[int, int]:
        stage_id = self._stage_id(stage)
        return stage_id, self._iter_id(stage_id, iterator)

    def _loop(self, stage: Any, iterator: Any) -> Iterator:
        stage_id, iter_id = self._place(stage, iterator)
        return self.stages[stage_id].iters[iter_id]

    def _stage_id(self, stage: Any) -> int:
        if isinstance(stage, int):
            if not 0 <= stage < len(self.stages):
                raise TVMError(f"a state of {len(self.stages)} stages has no stage {stage}")
            return stage
        op = stage.op if isinstance(stage, Tensor) else stage
        if not isinstance(op, Operation):
            raise ValueError(
                f"Invalid stage: an Operation, Tensor or int is required, got {type(stage).__name__}"
            )
        if op not in self.stage_id_map:
            raise ValueError(f"the state has no stage of {op.name}")
        return self.stage_id_map[op]

    def _iter_id(self, stage_id: int, iterator: Any) -> int:
        stage = self.stages[stage_id]
        if isinstance(iterator, int):
            return iterator
        position = stage.index_of(iterator) if isinstance(iterator, Iterator) else -1
        if position < 0:
            found = getattr(iterator, "name", iterator)
            raise ValueError(
                f"the stage of {stage.op.name} has no loop {found}; its loops are "
                f"{', '.join([loop.name for loop in stage.iters]) or 'none'}"
            )
        return position

    def __getitem__(self, key: Any) -> Stage:
        return self.stages[self._stage_id(key)]

    def __str__(self) -> str:
        return str(self.state_object)

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def as_object(state: State | StateObject) -> StateObject:
    """The state itself, of one that changes."""
    return state.state_object if isinstance(state, State) else state
