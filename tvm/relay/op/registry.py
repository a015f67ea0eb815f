"""The records of operators: `define_op` makes one, `ops` finds it by its name.

    ops.clip(x, a_min=0.0, a_max=6.0)      # a relay.Call

Operators with a public function are declared through it (`tvm.relay.op.operator`). The record
(`tvm.ir.op.Op`) has every facet as a field; passes and the kernel compiler read them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np

from tvm import te
from tvm.ir.attrs import AttrFieldInfo, Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op, has_op, register_op
from tvm.ir.type import Type
from tvm.relay.expr import Call, TupleWrapper
from tvm.target import Target

from .types import with_checked_types

if TYPE_CHECKING:
    from tvm.tir import Layout

# the record of attributes that an operator has
OwnAttrs = TypeVar("OwnAttrs", bound=Attrs)
# facets say in their own signatures which types their operator has: a tensor's, mostly
Compute: TypeAlias = Callable[[OwnAttrs, Sequence["te.Tensor"], Any], "list[te.Tensor]"]
Schedule: TypeAlias = Callable[[OwnAttrs, Sequence["te.Tensor"], Target], "te.Schedule"]
Fold: TypeAlias = Callable[[OwnAttrs, Sequence[np.ndarray], Any], "list[np.ndarray]"]
Gradient: TypeAlias = Callable[[Call, RelayExpr], "list[RelayExpr]"]
Simplify: TypeAlias = Callable[[Call, Sequence[Any]], "RelayExpr | None"]
# from shapes (vectors of int64) and values of the arguments to the shapes of the results
ShapeFunc: TypeAlias = Callable[
    [OwnAttrs, Sequence["te.Tensor"], Sequence[object]], "list[te.Tensor]"
]
MakeStatic: TypeAlias = Callable[[Call], "RelayExpr | None"]
# from attributes, arguments and the types of arguments and result, for the current target
AlterLayout: TypeAlias = Callable[
    [OwnAttrs, Sequence[RelayExpr], Sequence[Type], Type], "RelayExpr | None"
]


class OpPattern(IntEnum):
    """How an operator fuses with its neighbours."""

    ELEMWISE = 0  # one element in, one out, same index
    BROADCAST = 1  # the index loses axes
    INJECTIVE = 2  # the index is mapped one to one
    COMM_REDUCE = 3  # a commutative reduction
    OUT_ELEMWISE_FUSABLE = 4  # element-wise operators may follow it in its loops
    TUPLE = 7  # a tuple node
    OPAQUE = 8  # never fused


class LayoutChoice(NamedTuple):
    """The layouts an operator wants and gives, and its attributes in those layouts."""

    inputs: tuple[Layout | None, ...]
    outputs: tuple[Layout | None, ...]
    attrs: Attrs | None = None  # None: unchanged


# the types of all arguments, from those known so far, that of the data first
ArgumentTypes: TypeAlias = Callable[[OwnAttrs, "Sequence[Type | None]"], "list[Type | None]"]
# as `layout.py` tells
InferLayout: TypeAlias = Callable[
    [OwnAttrs, "Sequence[Layout | None] | None", "Sequence[Layout | None]", Sequence[Type]],
    "LayoutChoice | None",
]


class Precision(Enum):
    """What mixed precision may do with an operator."""

    ALWAYS = "always"  # gains from low precision
    FOLLOW = "follow"  # takes the precision of its inputs
    KEEP_FLOAT32 = "never"  # loses accuracy


def define_op(
    name: str,
    attrs_type: type[OwnAttrs] | None = None,
    *,
    inputs: Sequence[str],
    infer_type: Callable[..., Type],
    fuse: OpPattern = OpPattern.OPAQUE,
    compute: Compute[OwnAttrs] | None = None,
    schedules: Mapping[str, Schedule[OwnAttrs]] | None = None,
    gradient: Gradient | None = None,
    derivative: Callable[..., Any] | None = None,
    legalize: Callable[..., RelayExpr | None] | None = None,
    qnn_legalize: Callable[..., RelayExpr | None] | None = None,
    qnn_canonicalize: Callable[..., RelayExpr | None] | None = None,
    shape_func: ShapeFunc[OwnAttrs] | None = None,
    shape_reads: Sequence[int] = (),
    make_static: MakeStatic | None = None,
    precision: Precision = Precision.FOLLOW,
    accumulates: bool = False,
    fast_math: str | None = None,
    mac_count: Callable[[Call], int] | None = None,
    simplify: Simplify | None = None,
    composition: Simplify | None = None,
    fold: Fold[OwnAttrs] | None = None,
    alter_layout: AlterLayout[OwnAttrs] | None = None,
    infer_layout: InferLayout[OwnAttrs] | None = None,
    argument_types: ArgumentTypes[OwnAttrs] | None = None,
    description: str = "",
    support_level: int = 10,
) -> Op:
    """Declare an operator; every facet it lacks is visible as None in its record.

    A type relation takes `arg_types`, or a checked type for each argument (`tvm.relay.op.types`).
    `shape_reads` are the positions of the arguments whose values the shape function gets; of the
    others it gets the shapes. A `composition` tells the call in other operators for gradients alone.
    """
    op = register_op(name)
    op.set_facets(
        attrs_type=attrs_type,
        num_inputs=len(inputs),
        arguments=[AttrFieldInfo(argument, "Expr") for argument in inputs],
        infer_type=with_checked_types(infer_type, name),
        fuse=fuse,
        compute=compute,
        schedules=dict(schedules or {}),
        gradient=gradient,
        derivative=derivative,
        legalize=legalize,
        qnn_legalize=qnn_legalize,
        qnn_canonicalize=qnn_canonicalize,
        shape_func=shape_func,
        make_static=make_static,
        precision=precision,
        accumulates=accumulates,
        fast_math=fast_math,
        mac_count=mac_count,
        simplify=simplify,
        composition=composition,
        fold=fold,
        alter_layout=alter_layout,
        infer_layout=infer_layout,
        argument_types=argument_types,
        description=description,
        support_level=support_level,
    )
    if shape_func is not None:
        reads = [int(i in shape_reads) for i in range(len(inputs))]
        op.set_attr("TShapeDataDependent", reads)
    op.extra["call"] = _build_call
    _DECLARED[name] = op
    return op


_DECLARED: dict[str, Op] = {}


class Operators:
    """Operators by their names, looked up on first use: `ops.nn.pad(x, zero, pad_width=...)`.

    Facets so build calls of operators that are declared after the one that they belong to.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> _Named:
        if name.startswith("__"):
            raise AttributeError(name)
        full = self._prefix + name
        found: Any
        if has_op(full):
            found = Op.get(full)
        elif any([known.startswith(f"{full}.") for known in Op.list_op_names()]):
            found = Operators(f"{full}.")
        else:
            raise AttributeError(f"no operator is declared as {full}, nor any {full}.*")
        setattr(self, name, found)
        return cast("_Named", found)


if TYPE_CHECKING:

    class _Named(Op):
        """An operator, or the beginning of the names of several."""

        def __call__(self, *args: Any, **kwargs: Any) -> Call: ...
        def __getattr__(self, name: str) -> _Named: ...


ops = Operators()


def zero_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """The gradient of a result that does not depend on the elements continuously."""
    return [ops.zeros_like(argument) for argument in call.args]


def all_ops() -> list[Op]:
    """Every relay operator declared by this package, in the order of declaration."""
    return list(_DECLARED.values())


def _build_call(op: Op, *args: RelayExpr, **attrs: object) -> Call:
    """`ops.nn.conv2d(data, weight, strides=(1, 1))` as a call node."""
    operands = [as_operand(op, i, value) for i, value in enumerate(args)]
    if op.num_inputs is not None and op.num_inputs != len(operands):
        names = ", ".join([argument.name for argument in op.arguments])
        raise TypeError(f"{op.name} requires the arguments ({names}), got {len(operands)}")
    if op.attrs_type is None:
        if attrs:
            raise TypeError(f"{op.name} has no attributes, got {', '.join(attrs)}")
        return Call(op, operands)
    return Call(op, operands, op.attrs_type(**attrs))


def as_operand(op: Op, position: int, value: object) -> RelayExpr:
    """An argument of a call; a tuple's wrapper stands for the tuple."""
    if isinstance(value, TupleWrapper):
        return value.astuple()
    if not isinstance(value, RelayExpr):
        name = op.arguments[position].name if position < len(op.arguments) else f"#{position}"
        raise TypeError(
            f"{op.name} requires a relay expression for {name}, got {type(value).__name__}; "
            "convert numbers and arrays with relay.const"
        )
    return value
