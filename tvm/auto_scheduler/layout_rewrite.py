"""Inputs whose elements lie in the order in which the tiles of a state read them.

B[k, j]  read by loops j.0, j.1, k.0, j.2, k.1, j.3   ->   B'[j.0, j.1, k.0, j.2, k.1, j.3]

Computes name such inputs in their attribute ``layout_free_placeholders``. Either the input itself has
the new layout, as weights that are transformed when a model is built, or a stage transforms it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.support.scope import deep
from tvm.target import Target
from tvm.te.declare import compute, placeholder
from tvm.te.tensor import ComputeOp, Operation, Tensor
from tvm.tir import op as tir_op
from tvm.tir.expr import IterVar, ProducerLoad, Var, const

from .graph import ComputeGraph
from .loops import Annotation, Iterator, clean_name, constant_extent
from .state_object import StateObject
from .steps import (
    AnnotationStep,
    CacheReadStep,
    ComputeAtStep,
    FollowFusedSplitStep,
    FollowSplitStep,
    FuseStep,
    Step,
)

LAYOUT_FREE = "layout_free_placeholders"
_STAGE = "auto_scheduler_layout_transform"


class LayoutRewriteOption:
    """What becomes of inputs that may lie in any order."""

    NO_REWRITE = 0
    # a stage copies the input
    INSERT_TRANSFORM_STAGE = 1
    # the input comes in the new layout
    REWRITE_FOR_PRE_TRANSFORMED = 2

    @staticmethod
    def get_target_default(target: Any, in_relay_integration: bool = False) -> int:
        """What is usual for a target.

        Parameters
        ----------
        target : Target or str
            The target.
        in_relay_integration : bool
            Whether a model is built, whose weights are constants.
        """
        if Target(target).kind.name != "llvm":
            return LayoutRewriteOption.NO_REWRITE
        if in_relay_integration:
            return LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
        return LayoutRewriteOption.INSERT_TRANSFORM_STAGE


@dataclass(frozen=True)
class NewLayout:
    """A layout by loops: for each new dimension the old one, its extent, and what one step is of it."""

    dims: tuple[tuple[int, int, int], ...]
    names: tuple[str, ...]  # of the axes that read the old dimensions
    shape: tuple[int, ...]

    @property
    def new_shape(self) -> list[int]:
        """The extents of the new dimensions."""
        return [extent for _, extent, _ in self.dims]

    def new_indices(self, indices: Sequence[PrimExpr]) -> list[PrimExpr]:
        """Where the element at ``indices`` lies."""
        found = []
        for dim, extent, stride in self.dims:
            index = tir_op.floordiv(indices[dim], stride) if stride > 1 else indices[dim]
            if stride * extent < self.padded(dim):
                index = tir_op.floormod(index, extent)
            found.append(index)
        return found

    def old_indices(self, indices: Sequence[PrimExpr]) -> list[PrimExpr]:
        """Which element lies at ``indices``."""
        found: list[PrimExpr] = [const(0, "int32")] * len(self.shape)
        for (dim, _, stride), index in zip(self.dims, indices, strict=True):
            found[dim] = found[dim] + index * stride
        return found

    def padded(self, dim: int) -> int:
        """The extent of an old dimension that the new ones have room for."""
        return max([stride * extent for d, extent, stride in self.dims if d == dim])

    def __str__(self) -> str:
        return "".join([f"{extent}{self.names[dim]}" for dim, extent, _ in self.dims])


def new_layouts(state: StateObject) -> dict[Operation, tuple[int, NewLayout]]:
    """For each input that may be rewritten, the stage that reads it and the layout by its loops.

    The state's bounds are known.
    """
    found: dict[Operation, tuple[int, NewLayout]] = {}
    graph = state.graph
    inputs = {op.name: op for op in graph.root.ops if not isinstance(op, ComputeOp)}
    for stage_id, stage in enumerate(state.stages):
        if not isinstance(stage.op, ComputeOp):
            continue
        free = [getattr(t, "op", t).name for t in stage.op.attrs.get(LAYOUT_FREE, ())]
        reading: dict[Operation, Any] = graph.access.read_from[stage.op]
        for source, reads in reading.items():
            if source.name in free and inputs.get(source.name) is source:
                layout = _layout_of(state, stage_id, stage.op, source, reads)
                if layout is not None:
                    found[source] = (stage_id, layout)
    return found


def _layout_of(
    state: StateObject, stage_id: int, op: ComputeOp, source: Operation, reads: Any
) -> NewLayout | None:
    axes = [clean_name(iv.var.name) for iv in op.root_iter_vars()]
    variables = {iv.var: name for iv, name in zip(op.root_iter_vars(), axes, strict=True)}
    (indices, *others) = reads
    if others or not all([isinstance(i, Var) and i in variables for i in indices]):
        return None
    names = [variables[index] for index in indices]
    if len(set(names)) < len(names):
        return None
    shape = [constant_extent(iv) or 0 for iv in _axes_reading(op, indices)]
    parts: list[tuple[int, int]] = []
    for loop in state.stages[stage_id].iters:
        for original in loop.orig_iters or (loop,):
            name = _axis_name(original)
            if name in names and original.extent is not None:
                parts.append((names.index(name), original.extent))
    strides = [1] * len(names)
    dims: list[tuple[int, int, int]] = []
    for dim, extent in reversed(parts):
        dims.append((dim, extent, strides[dim]))
        strides[dim] *= extent
    if any([stride < extent for stride, extent in zip(strides, shape, strict=True)]):
        return None
    return NewLayout(tuple(reversed(dims)), tuple(names), tuple(shape))


def _axes_reading(op: ComputeOp, indices: Sequence[PrimExpr]) -> list[IterVar]:
    by_var: dict[PrimExpr, IterVar] = {iv.var: iv for iv in op.root_iter_vars()}
    return [by_var[index] for index in indices]


def _axis_name(loop: Iterator) -> str:
    """The axis that a loop comes from by splits."""
    return loop.name.split(".")[0]


@dataclass(frozen=True)
class Rewritten:
    """The graph with other layouts, its tensors in the order of the old ones, and the steps for it."""

    graph_ops: list[Operation]
    tensors: list[Tensor]
    steps: tuple[Step, ...]


def rewrite_layouts(
    graph: ComputeGraph, tensors: Sequence[Tensor], state: StateObject, option: int
) -> Rewritten:
    """Rewrite the layouts of inputs for a state whose bounds are known.

    Parameters
    ----------
    graph : ComputeGraph
        Before any step.
    tensors : list of Tensor
        Inputs and outputs.
    state : StateObject
        Its loops are the layouts.
    option : int
        A :class:`LayoutRewriteOption`.
    """
    inserts = option == LayoutRewriteOption.INSERT_TRANSFORM_STAGE
    layouts = {op: layout for op, (_, layout) in new_layouts(state).items()}
    new: dict[Operation, Operation] = {}
    ops: list[Operation] = []
    steps = state.transform_steps
    sources: dict[Operation, tuple[Tensor, NewLayout]] = {}
    for op in graph.ops:
        if op in layouts:
            position = len(ops)
            inserted, source = _new_input(op, layouts[op], inserts)
            ops.extend(inserted)
            sources[op] = (source, layouts[op])
            new[op] = inserted[0]
            if inserts:
                steps = (*_transform_steps(position + 1, source), *_shifted(steps, position + 1))
            continue
        changed = _with_inputs(op, new, sources)
        ops.append(changed)
        new[op] = changed
    return Rewritten(ops, [new[t.op].output(t.value_index) for t in tensors], steps)


def _new_input(op: Operation, layout: NewLayout, inserts: bool) -> tuple[list[Operation], Tensor]:
    """The operations for an input, and the tensor that is read."""
    source = op.output(0)
    if not inserts:
        tensor = placeholder(layout.new_shape, source.dtype, op.name)
        return [tensor.op], tensor

    def element(*indices: Var) -> PrimExpr:
        old = layout.old_indices(indices)
        value = source(*old)
        inside = [
            index < extent
            for dim, (index, extent) in enumerate(zip(old, layout.shape, strict=True))
            if layout.padded(dim) > extent
        ]
        if not inside:
            return value
        return tir_op.if_then_else(tir_op.all(*inside), value, const(0, source.dtype))

    tensor = compute(layout.new_shape, element, name=_STAGE)
    return [op, tensor.op], tensor


def _transform_steps(stage_id: int, tensor: Tensor) -> tuple[Step, ...]:
    loops = tuple(range(tensor.ndim))
    return FuseStep(stage_id, loops), AnnotationStep(stage_id, 0, Annotation.PARALLEL)


def _shifted(steps: Sequence[Step], start: int) -> tuple[Step, ...]:
    """Steps for a graph with one more stage at ``start``, behind two steps that transform it.

    Steps that add stages move it along.
    """
    found: list[Step] = []
    ours = start  # where the new stage is, by now

    def moved(stage: int) -> int:
        return stage + 1 if stage >= ours else stage

    for step in steps:
        shifted: Any = replace(step, stage_id=moved(step.stage_id))  # type: ignore[type-var]
        if isinstance(shifted, ComputeAtStep):
            shifted = replace(shifted, target_stage_id=moved(shifted.target_stage_id))
        elif isinstance(shifted, CacheReadStep):
            readers = tuple([moved(stage) for stage in shifted.reader_stage_ids])
            shifted = replace(shifted, reader_stage_ids=readers)
        elif isinstance(shifted, FollowSplitStep):
            shifted = replace(shifted, src_step_id=shifted.src_step_id + 2)
        elif isinstance(shifted, FollowFusedSplitStep):
            sources = tuple([source + 2 for source in shifted.src_step_ids])
            shifted = replace(shifted, src_step_ids=sources)
        found.append(shifted)
        if step.changes_stages and shifted.stage_id + isinstance(step, CacheReadStep) <= ours:
            ours += 1
    return tuple(found)


@deep
def _with_inputs(
    op: Operation,
    new: Mapping[Operation, Operation],
    sources: Mapping[Operation, tuple[Tensor, NewLayout]],
) -> Operation:
    replaced = {
        tensor: new[tensor.op].output(tensor.value_index)
        for tensor in op.input_tensors
        if tensor.op not in sources and new.get(tensor.op, tensor.op) is not tensor.op
    }
    changed = op.replace_inputs(replaced)
    if not isinstance(changed, ComputeOp) or not any([t.op in sources for t in op.input_tensors]):
        return changed
    rewriter = _LayoutRewriter(sources)
    body = [rewriter.visit(value) for value in changed.body]
    return ComputeOp(changed.name, changed.tag, changed.attrs, changed.axis, body)


class _LayoutRewriter(Rewriter):
    def __init__(self, sources: Mapping[Operation, tuple[Tensor, NewLayout]]) -> None:
        self.sources = sources

    def visit_producer_load(self, load: ProducerLoad) -> PrimExpr:
        load = self.rewrite_children(load)
        source = self.sources.get(load.producer.op)  # type: ignore[attr-defined]
        if source is None:
            return load
        tensor, layout = source
        return ProducerLoad(tensor, tuple(layout.new_indices(load.indices)))


@cache
def parse_layout(layout: str) -> tuple[tuple[int, str], ...]:
    """The dimensions of a layout's text: ``"4j8k"`` is 4 of j, then 8 of k."""
    parts = re.findall(r"(\d+)([^\d]+)", layout)
    if "".join([f"{n}{name}" for n, name in parts]) != layout:
        raise TVMError(f"a rewritten layout has an extent before each axis, got {layout!r}")
    return tuple([(int(n), name) for n, name in parts])


def get_shape_from_rewritten_layout(
    rewritten_layout: str, axis_names: Sequence[str]
) -> tuple[int, ...]:
    """The shape before the layout was rewritten.

    Parameters
    ----------
    rewritten_layout : str
        Such as ``"4j8k16j"``.
    axis_names : list of str
        The axes in their old order.
    """
    shape = dict.fromkeys(axis_names, 1)
    for extent, name in parse_layout(str(rewritten_layout)):
        if name not in shape:
            raise TVMError(
                f"the layout {rewritten_layout} has axis {name}, which is none of "
                f"{', '.join(axis_names)}"
            )
        shape[name] *= extent
    return tuple(shape.values())


def layout_of_text(layout: str, axis_names: Sequence[str]) -> NewLayout:
    """The layout of a text, for a tensor with the given axes."""
    names = list(axis_names)
    strides = [1] * len(names)
    dims: list[tuple[int, int, int]] = []
    for extent, name in reversed(parse_layout(layout)):
        dim = names.index(name)
        dims.append((dim, extent, strides[dim]))
        strides[dim] *= extent
    return NewLayout(tuple(reversed(dims)), tuple(names), tuple(strides))


def layouts_of_texts(src_layout: str, dst_layout: str) -> tuple[NewLayout, NewLayout]:
    """Two layouts of the same axes.

    Parameters
    ----------
    src_layout, dst_layout : str
        Such as ``"64k64j"`` and ``"4j64k16j"``.
    """
    names = list(dict.fromkeys([name for _, name in parse_layout(src_layout)]))
    others = {name for _, name in parse_layout(dst_layout)}
    if others != set(names):
        raise TVMError(f"{src_layout} and {dst_layout} are no layouts of the same axes")
    source, target = layout_of_text(src_layout, names), layout_of_text(dst_layout, names)
    if source.shape != target.shape:
        raise TVMError(f"the axes of {src_layout} and {dst_layout} have other extents")
    return source, target


def reads_rewritten(op: ComputeOp, old: Tensor, new: Tensor, layout: NewLayout) -> ComputeOp:
    """The compute reading ``new``, which has the elements of ``old`` in another layout."""
    rewriter = _LayoutRewriter({old.op: (new, layout)})
    body = [rewriter.visit(value) for value in op.body]
    return ComputeOp(op.name, op.tag, op.attrs, op.axis, body)
