"""A program as a graph of computes, and what a state says of it: schedules, bounds, Python code.

dag = auto_scheduler.ComputeDAG([A, B, C])
state = dag.get_init_state()
sch, args = dag.apply_steps_from_state(state)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from tvm._ffi.registry import get_global_func
from tvm.error import TVMError
from tvm.runtime.object import Object
from tvm.te.schedule import Schedule
from tvm.te.tensor import ComputeOp, Operation, Tensor

from .access import AccessAnalyzer
from .bounds import infer_bounds
from .dag_text import dag_text, shortened
from .flops import count_flops
from .graph import ComputeGraph, operations_of, sorted_operations
from .layout_rewrite import LayoutRewriteOption, get_shape_from_rewritten_layout, rewrite_layouts
from .loop_state import State, as_object
from .state_object import StateObject
from .steps import Replay, Step
from .utils import get_const_tuple
from .workload_registry import workload_key_to_tensors

__all__ = ["ComputeDAG", "LayoutRewriteOption", "get_shape_from_rewritten_layout"]

_HASH_FUNC = "auto_scheduler.compute_dag.hash_func"


class ComputeDAG(Object):
    """The operations between inputs and outputs.

    Parameters
    ----------
    compute_or_sche : list of Tensor, str or te.Schedule
        Inputs and outputs; the key of a workload; or a schedule without primitives.

    Attributes
    ----------
    tensors : list of Tensor
        Inputs and outputs.
    ops : tuple of Operation
        Each behind those that it reads.
    flop_ct : float
        The arithmetic operations.
    access_analyzer : AccessAnalyzer
        Who reads whom.
    init_state : StateObject
        A stage for each operation.
    """

    def __init__(self, compute_or_sche: Any) -> None:
        if isinstance(compute_or_sche, str):
            compute_or_sche = workload_key_to_tensors(compute_or_sche)
        if isinstance(compute_or_sche, Schedule):
            ops = operations_of(compute_or_sche)
            read = {tensor.op for op in ops for tensor in op.input_tensors}
            ends = [op for op in ops if op not in read or not isinstance(op, ComputeOp)]
            tensors = [op.output(i) for op in ends for i in range(op.num_outputs)]
        elif isinstance(compute_or_sche, (list, tuple)):
            tensors = list(compute_or_sche)
            for tensor in tensors:
                if not isinstance(tensor, Tensor):
                    raise ValueError(
                        f"The input of ComputeDAG should be a list of Tensor, got {type(tensor).__name__}"
                    )
            ops = sorted_operations(tensors)
        else:
            raise ValueError(
                "Invalid compute type: ComputeDAG takes a list of tensors, the key of a workload, "
                f"or a schedule, got {type(compute_or_sche).__name__}"
            )
        self._hold(tensors, ops)

    def _hold(self, tensors: Sequence[Tensor], ops: Sequence[Operation]) -> None:
        self.tensors = list(tensors)
        self.graph = ComputeGraph(ops)
        self.flop_ct = count_flops(ops)

    @classmethod
    def of(cls, tensors: Sequence[Tensor], ops: Sequence[Operation]) -> ComputeDAG:
        """The graph with operations in the given order."""
        dag = cls.__new__(cls)
        dag._hold(tensors, ops)
        return dag

    @property
    def ops(self) -> tuple[Operation, ...]:
        """The operations in the order of computation."""
        return self.graph.ops

    @property
    def access_analyzer(self) -> AccessAnalyzer:
        """Who reads whom, and how."""
        return self.graph.access

    @property
    def init_state(self) -> StateObject:
        """The state before any step."""
        return self.graph.initial_state

    def get_init_state(self) -> State:
        """A state before any step, to be changed."""
        return State(self.init_state, self)

    def apply_steps_from_state(
        self, state: State | StateObject, layout_rewrite: int = LayoutRewriteOption.NO_REWRITE
    ) -> tuple[Schedule, list[Tensor]]:
        """The schedule of a state, and its arguments.

        Parameters
        ----------
        state : State or StateObject
            The state.
        layout_rewrite : int
            A :class:`LayoutRewriteOption`.

        Returns
        -------
        te.Schedule, list of Tensor
        """
        steps = as_object(state).transform_steps
        if not layout_rewrite or not steps:
            return self._replayed(self.tensors, self.ops, steps)
        full = infer_bounds(self.full_state(state)).with_extents()
        new = rewrite_layouts(self.graph, self.tensors, full, layout_rewrite)
        return self._replayed(new.tensors, new.graph_ops, new.steps)

    def _replayed(
        self, tensors: Sequence[Tensor], ops: Sequence[Operation], steps: Sequence[Step]
    ) -> tuple[Schedule, list[Tensor]]:
        replay = Replay(ops, self._outputs(ops))
        replay.run(steps)
        return replay.schedule, [replay.schedule.current(tensor) for tensor in tensors]

    def _outputs(self, ops: Sequence[Operation]) -> list[Operation]:
        read = {tensor.op for op in ops for tensor in op.input_tensors}
        return [op for op in ops if op not in read]

    def print_python_code_from_state(self, state: State | StateObject) -> str:
        """The steps of a state as Python code on a schedule ``s``.

        Parameters
        ----------
        state : State or StateObject
            The state.
        """
        replay = Replay(self.ops, self._outputs(self.ops))
        computes = [i for i, op in enumerate(self.ops) if isinstance(op, ComputeOp)]
        axes = "".join([replay.axes_line(stage_id) for stage_id in computes])
        return axes + replay.run(as_object(state).transform_steps)

    def full_state(self, state: State | StateObject) -> StateObject:
        """The state with its stages, also of one that was read from a record and has steps only."""
        found = as_object(state)
        if found.stages and found.graph.root is self.graph:
            return found
        return self.graph.state_after(found.transform_steps)

    def infer_bound_from_state(self, state: State | StateObject) -> State:
        """The state with the extents of all loops.

        Parameters
        ----------
        state : State or StateObject
            The state.
        """
        new = State(infer_bounds(self.full_state(state)).with_extents(), self)
        if isinstance(state, State):
            new.stage_id_map.update({**state.stage_id_map, **new.stage_id_map})
        return new

    def rewrite_layout_from_state(self, state: State | StateObject) -> ComputeDAG:
        """The program whose inputs lie in the order in which the state reads them.

        Parameters
        ----------
        state : State or StateObject
            The state.
        """
        full = infer_bounds(self.full_state(state)).with_extents()
        option = LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
        new = rewrite_layouts(self.graph, self.tensors, full, option)
        return ComputeDAG.of(new.tensors, new.graph_ops)

    def workload_key(self) -> str:
        """A key by what is computed: a hash of the text, and the shapes of inputs and outputs."""
        text = dag_text(self.ops, simple_mode=True)
        hash_func = get_global_func(_HASH_FUNC, allow_missing=True)
        key = (
            hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
            if hash_func is None
            else hash_func(text)
        )
        shapes = [get_const_tuple(tensor.shape) for tensor in self.tensors]
        return json.dumps([key, *shapes])

    def __str__(self) -> str:
        return shortened(dag_text(self.ops))

    def __repr__(self) -> str:
        return str(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"tensors": self.tensors, "ops": self.ops}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._hold(state["tensors"], state["ops"])


def require_dag(value: Any, who: str) -> ComputeDAG:
    """The graph; an error for anything else."""
    if not isinstance(value, ComputeDAG):
        raise TVMError(f"{who} requires a ComputeDAG, got a value of {type(value).__name__}")
    return value
