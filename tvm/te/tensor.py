"""Tensors, and the operations that produce them.

An operation says how a tensor's elements are computed; when and where is the schedule's business.
Two tensors are equal if they are the same output of the same operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tvm.error import RuntimeIndexError, RuntimeTypeError, RuntimeValueError, TVMError
from tvm.ir.expr import PrimExpr
from tvm.ir.node import Node, leaf, reference
from tvm.ir.visitor import Rewriter, Visitor
from tvm.runtime.object_generic import ObjectGeneric
from tvm.support.dtype import DType
from tvm.support.scope import deep
from tvm.tir.buffer import Buffer, DataProducer
from tvm.tir.expr import (
    ExprOp,
    IntImm,
    IterVar,
    IterVarType,
    ProducerLoad,
    Range,
    Reduce,
    as_expr,
    const,
)
from tvm.tir.stmt import Stmt

from .tensor_ops import TensorOperators

if TYPE_CHECKING:
    from .tensor_intrin import TensorIntrin


class TensorSlice(ObjectGeneric, ExprOp):
    """``A[i]``: a tensor with some of its indices given; with all of them, an element."""

    __slots__ = ("indices", "tensor")

    def __init__(self, tensor: Tensor, indices: Any) -> None:
        self.tensor = tensor
        self.indices: tuple[Any, ...] = indices if isinstance(indices, tuple) else (indices,)

    def __getitem__(self, indices: Any) -> TensorSlice:
        more = indices if isinstance(indices, tuple) else (indices,)
        return TensorSlice(self.tensor, self.indices + more)

    def asobject(self) -> PrimExpr:
        """The element, for a slice with all indices given."""
        return self.tensor(*self.indices)

    @property
    def dtype(self) -> DType:
        """The data type of the elements."""
        return self.tensor.dtype


class Tensor(TensorOperators, DataProducer, key="Tensor"):
    """An output of an operation."""

    shape: tuple[PrimExpr, ...]
    dtype: DType
    op: Operation = reference()
    value_index: int

    def __call__(self, *indices: Any) -> PrimExpr:
        """The element at ``indices``."""
        if len(indices) != len(self.shape):
            raise RuntimeValueError(
                f"need to provide {len(self.shape)} index in tensor {self.name}, "
                f"but {len(indices)} was provided"
            )
        places = tuple([as_expr(index) for index in indices])
        for axis, place in enumerate(places):
            if not (place.dtype.is_int or place.dtype.is_uint or place.dtype.is_bool):
                raise RuntimeTypeError(
                    f"tensor {self.name} requires integers as indices, got {place} of {place.dtype}"
                )
            if type(place) is IntImm:
                self._check_place(axis, place.value)
        return ProducerLoad(self, places)

    def _check_place(self, axis: int, place: int) -> None:
        dim = self.shape[axis]
        # nothing is ever read of an empty tensor
        if place < 0 or (type(dim) is IntImm and 0 < dim.value <= place):
            raise RuntimeIndexError(
                f"tensor {self.name} of shape {_shape_text(self.shape)} requires an index from 0 to "
                f"below {dim} in dimension {axis}, got {place}"
            )

    def __getitem__(self, indices: Any) -> TensorSlice:
        return TensorSlice(self, indices)

    def __iter__(self) -> Iterator[TensorSlice]:
        # without it Python would ask for elements until one is missing, and none ever is
        raise RuntimeTypeError(f"tensor {self.name} is symbolic: its elements cannot be listed")

    def __hash__(self) -> int:
        return hash((id(self.op), self.value_index))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Tensor):
            return False
        return self.op is other.op and self.value_index == other.value_index

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __repr__(self) -> str:
        return f"Tensor(shape={_shape_text(self.shape)}, op.name={self.op.name})"

    __str__ = __repr__

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """The axes of the operation that computes the tensor."""
        op: Any = self.op  # of computations
        axis: tuple[IterVar, ...] = op.axis
        return axis

    @property
    def name(self) -> str:
        """The operation's name; with the output's number if there are several."""
        op = self.op
        return op.name if op.num_outputs == 1 else f"{op.name}.v{self.value_index}"

    @classmethod
    def _elementwise(
        cls, shape: Sequence[PrimExpr], function: Callable[..., PrimExpr], name: str, tag: str
    ) -> Tensor:
        axis = spatial_axes(shape, [f"ax{i}" for i in range(len(shape))])
        body = as_expr(function(*[iv.var for iv in axis]))
        return ComputeOp(name, tag, {}, axis, (body,)).output(0)


def _shape_text(shape: Sequence[PrimExpr]) -> str:
    return f"[{', '.join([str(dim) for dim in shape])}]"


def domain_of(axis: IterVar) -> Range:
    """The range of an axis that has one, as those of an operation do."""
    assert axis.dom is not None
    return axis.dom


def spatial_axes(shape: Sequence[PrimExpr], names: Sequence[str]) -> tuple[IterVar, ...]:
    """An axis for each dimension."""
    return tuple(
        [
            IterVar(Range.from_min_extent(const(0, dim.dtype), dim), name, IterVarType.DataPar)
            for dim, name in zip(shape, names, strict=True)
        ]
    )


class Operation(Node, key="Operation"):
    """What produces tensors. Operations are the same only if they are one object."""

    __slots__ = ("_inputs", "_outputs")

    name: str
    tag: str
    attrs: dict[str, Any] = leaf()

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """The axes of the outputs; none where they are not computed element by element."""
        return ()

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """The axes that are summed or otherwise reduced."""
        return ()

    @property
    def num_outputs(self) -> int:
        """The number of tensors produced."""
        return 1

    def output_shape(self, index: int) -> tuple[PrimExpr, ...]:
        """The shape of an output."""
        raise NotImplementedError

    def output_dtype(self, index: int) -> DType:
        """The data type of an output."""
        raise NotImplementedError

    def root_iter_vars(self) -> tuple[IterVar, ...]:
        """The axes before scheduling: those of the outputs, then those reduced."""
        return ()

    def replace_inputs(self, replacements: Mapping[Tensor, Tensor]) -> Operation:
        """The operation reading other tensors; itself if it reads none of those replaced."""
        return self

    def output(self, index: int) -> Tensor:
        """The ``index``-th tensor produced."""
        return self.outputs[index]

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The tensors produced."""
        try:
            return self._outputs
        except AttributeError:
            self._outputs: tuple[Tensor, ...] = tuple(
                [
                    Tensor(self.output_shape(i), self.output_dtype(i), self, i)
                    for i in range(self.num_outputs)
                ]
            )
            return self._outputs

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors read, each once, in the order of first use."""
        try:
            return self._inputs
        except AttributeError:
            self._inputs: tuple[Tensor, ...] = self._find_inputs()
            return self._inputs

    def _find_inputs(self) -> tuple[Tensor, ...]:
        return ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    __str__ = __repr__

    def __hash__(self) -> int:
        return id(self) >> 4


class PlaceholderOp(Operation, key="PlaceholderOp"):
    """An input of the program."""

    shape: tuple[PrimExpr, ...]
    dtype: DType

    def output_shape(self, index: int) -> tuple[PrimExpr, ...]:
        return self.shape

    def output_dtype(self, index: int) -> DType:
        return self.dtype


class BaseComputeOp(Operation, key="BaseComputeOp"):
    """An operation that computes its outputs element by element."""

    axis: tuple[IterVar, ...] = reference()
    reduce_axis: tuple[IterVar, ...] = reference()

    def output_shape(self, index: int) -> tuple[PrimExpr, ...]:
        return tuple([domain_of(iv).extent for iv in self.axis])

    def root_iter_vars(self) -> tuple[IterVar, ...]:
        return (*self.axis, *self.reduce_axis)


class ComputeOp(BaseComputeOp, key="ComputeOp"):
    """Each output element is an expression of the axes, or a reduction of one."""

    body: tuple[PrimExpr, ...]

    def __init__(
        self,
        name: str,
        tag: str,
        attrs: Mapping[str, Any] | None,
        axis: Sequence[IterVar],
        body: Sequence[PrimExpr],
    ) -> None:
        first = body[0]
        reduce_axis = first.axis if isinstance(first, Reduce) else ()
        self._init(name, tag, dict(attrs or {}), tuple(axis), reduce_axis, tuple(body))
        _check_reductions(self)

    @property
    def num_outputs(self) -> int:
        return len(self.body)

    def output_dtype(self, index: int) -> DType:
        return self.body[index].dtype

    @deep
    def _find_inputs(self) -> tuple[Tensor, ...]:
        finder = _InputFinder()
        # the outputs of one reduction share their sources
        for value in self.body[:1] if isinstance(self.body[0], Reduce) else self.body:
            finder.visit(value)
        return tuple(finder.found)

    @deep
    def replace_inputs(self, replacements: Mapping[Tensor, Tensor]) -> Operation:
        if not any(tensor in replacements for tensor in self.input_tensors):
            return self
        rewriter = _InputReplacer(replacements)
        if isinstance(first := self.body[0], Reduce):
            body: tuple[PrimExpr, ...] = reduction_outputs(rewriter.visit(first), len(self.body))
        else:
            body = tuple([rewriter.visit(value) for value in self.body])
        return ComputeOp(self.name, self.tag, self.attrs, self.axis, body)


def reduction_outputs(reduce: Reduce, count: int) -> tuple[Reduce, ...]:
    """The ``count`` results of one tuple reduction."""
    return tuple([reduce.replace(value_index=i) for i in range(count)])


class _InputFinder(Visitor):
    def __init__(self) -> None:
        self.found: dict[Tensor, None] = {}

    def visit_producer_load(self, load: ProducerLoad) -> None:
        if isinstance(load.producer, Tensor):
            self.found[load.producer] = None
        self.visit_children(load)


class _InputReplacer(Rewriter):
    def __init__(self, replacements: Mapping[Tensor, Tensor]) -> None:
        self.replacements: Mapping[DataProducer, Tensor] = dict(replacements.items())

    def visit_producer_load(self, load: ProducerLoad) -> PrimExpr:
        load = self.rewrite_children(load)
        new = self.replacements.get(load.producer)
        return load if new is None else ProducerLoad(new, load.indices)


class _NestedReduceFinder(Visitor):
    found = False

    def visit_reduce(self, reduce: Reduce) -> None:
        self.found = True


@deep
def _check_reductions(op: ComputeOp) -> None:
    first = op.body[0]
    for value in op.body:
        if isinstance(value, Reduce) != isinstance(first, Reduce) or (
            isinstance(value, Reduce) and not _same_reduction(value, first)
        ):
            raise TVMError(
                f"compute {op.name} requires its outputs to be one tuple reduction or none, "
                "got different ones",
                hint="give each reduction its own te.compute",
            )
    finder = _NestedReduceFinder()
    for part in (*first.source, first.condition) if isinstance(first, Reduce) else op.body:
        finder.visit(part)
    if finder.found:
        raise TVMError(
            f"compute {op.name} requires reductions at the top level of its body, "
            "got one inside an expression",
            hint="put the reduction in a te.compute of its own and read that",
        )


def _same_reduction(a: Reduce, b: Any) -> bool:
    if a is b:
        return True
    same_axes = len(a.axis) == len(b.axis) and all(
        x is y for x, y in zip(a.axis, b.axis, strict=True)
    )
    return same_axes and a.combiner is b.combiner and len(a.source) == len(b.source)


class TensorComputeOp(BaseComputeOp, key="TensorComputeOp"):
    """Each call of an intrinsic computes a region: all of the axes behind the schedulable ones."""

    schedulable_ndim: int
    intrin: TensorIntrin = reference()
    inputs: tuple[Tensor, ...] = reference()
    input_regions: tuple[tuple[Range, ...], ...] = leaf()
    scalar_inputs: tuple[PrimExpr, ...] = ()

    @property
    def num_outputs(self) -> int:
        return self.intrin.op.num_outputs

    def output_dtype(self, index: int) -> DType:
        return self.intrin.op.output_dtype(index)

    def root_iter_vars(self) -> tuple[IterVar, ...]:
        return (*self.axis[: self.schedulable_ndim], *self.reduce_axis)

    def _find_inputs(self) -> tuple[Tensor, ...]:
        return tuple(dict.fromkeys(self.inputs))

    def replace_inputs(self, replacements: Mapping[Tensor, Tensor]) -> Operation:
        inputs = tuple([replacements.get(t, t) for t in self.inputs])
        return self if inputs == self.inputs else self.replace(inputs=inputs)


class TensorIntrinCall(Node, key="TensorIntrinCall"):
    """An intrinsic on regions of tensors."""

    intrin: TensorIntrin = reference()
    tensors: tuple[Tensor, ...] = reference()
    regions: tuple[tuple[Range, ...], ...] = leaf()
    reduce_axis: tuple[IterVar, ...] = reference()
    scalar_inputs: tuple[PrimExpr, ...] = ()


class ScanOp(Operation, key="ScanOp"):
    """A recurrence: the first steps along ``scan_axis`` from ``init``, each further by ``update``.

    ``update`` reads the steps before through ``state_placeholder``. ``spatial_axis`` has an axis for
    each other dimension of each state.
    """

    scan_axis: IterVar = reference()
    init: tuple[Tensor, ...] = reference()
    update: tuple[Tensor, ...] = reference()
    state_placeholder: tuple[Tensor, ...] = reference()
    inputs: tuple[Tensor, ...] = reference()
    spatial_axis: tuple[IterVar, ...] = reference()

    @property
    def spatial_axis_(self) -> tuple[IterVar, ...]:
        """The same under its classic name."""
        return self.spatial_axis

    @property
    def num_outputs(self) -> int:
        return len(self.update)

    def output_shape(self, index: int) -> tuple[PrimExpr, ...]:
        return self.state_placeholder[index].shape

    def output_dtype(self, index: int) -> DType:
        return self.update[index].dtype

    def root_iter_vars(self) -> tuple[IterVar, ...]:
        return (self.scan_axis, *self.spatial_axis)

    def spatial_axes_of(self, index: int) -> tuple[IterVar, ...]:
        """The axes of the dimensions of an output behind the first one."""
        start = sum([state.ndim - 1 for state in self.update[:index]])
        return self.spatial_axis[start : start + self.update[index].ndim - 1]

    def _find_inputs(self) -> tuple[Tensor, ...]:
        return tuple(dict.fromkeys((*self.init, *self.update)))

    def replace_inputs(self, replacements: Mapping[Tensor, Tensor]) -> Operation:
        if not any(tensor in replacements for tensor in self.input_tensors):
            return self
        init = tuple([replacements.get(t, t) for t in self.init])
        update = tuple([replacements.get(t, t) for t in self.update])
        return self.replace(init=init, update=update)


class ExternOp(Operation, key="ExternOp"):
    """Statements that compute the outputs from the inputs, through placeholder buffers."""

    inputs: tuple[Tensor, ...] = reference()
    input_placeholders: tuple[Buffer, ...] = reference()
    output_placeholders: tuple[Buffer, ...] = reference()
    body: Stmt

    @property
    def num_outputs(self) -> int:
        return len(self.output_placeholders)

    def output_shape(self, index: int) -> tuple[PrimExpr, ...]:
        return self.output_placeholders[index].shape

    def output_dtype(self, index: int) -> DType:
        return self.output_placeholders[index].dtype

    def _find_inputs(self) -> tuple[Tensor, ...]:
        return tuple(dict.fromkeys(self.inputs))

    def replace_inputs(self, replacements: Mapping[Tensor, Tensor]) -> Operation:
        inputs = tuple([replacements.get(t, t) for t in self.inputs])
        if inputs == self.inputs:
            return self
        return self.replace(inputs=inputs)


class HybridOp(ExternOp, key="HybridOp"):
    """Statements from a hybrid script; ``axis`` are its loops, outer ones first."""

    axis: tuple[IterVar, ...] = reference()

    def root_iter_vars(self) -> tuple[IterVar, ...]:
        return self.axis
