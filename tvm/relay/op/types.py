"""Type relations' vocabulary: dimensions that may be unknown, broadcasting, checks with clear messages.

A dimension is an `int` when it is known and an expression otherwise: `Any`, of which nothing is
known, or an expression over variables. Arithmetic on `Any` gives `Any`, on variables it gives
expressions. A check that cannot be decided passes; `undecided` gathers what it would have tested,
so that the shape functions of the virtual machine test it when the program runs.

A type relation is a function of the attributes and of the argument types. It may name the arguments
instead, and gets types that are checked, of the rank that the annotation says:

    def _trilu_type(attrs: Any, data: TensorType) -> Type: ...
    def _transform_type(attrs: Any, cls_prob: Tensor3, loc_pred: Tensor2, anchor: Tensor3) -> Type: ...
    def _stack_type(attrs: Any, data: TensorTypes) -> Type: ...
    def _softmax_type(attrs: Any, data: Floating) -> Type: ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Annotated, TypeAlias, TypeGuard, get_args, get_type_hints, overload
from typing import Any as AnyValue

from tvm import te, tir
from tvm.arith import Analyzer
from tvm.error import TVMError, TypeCheckError
from tvm.ir import structural_equal
from tvm.ir.attrs import Attrs
from tvm.ir.expr import PrimExpr
from tvm.ir.type import TensorType, TupleType, Type
from tvm.support.dtype import dtype as as_dtype
from tvm.tir import Any, IntImm
from tvm.tir.constants import fits

Dim: TypeAlias = "int | PrimExpr"
Shape: TypeAlias = "tuple[Dim, ...]"
TypeRelation: TypeAlias = Callable[[Attrs, Sequence[Type]], Type]
# types of arguments in the signature of a type relation: a tensor's of this rank, or one that a function
# of the type, the operator and the argument's name accepts; a tuple of tensors'
Tensor0: TypeAlias = Annotated[TensorType, 0]
Tensor1: TypeAlias = Annotated[TensorType, 1]
Tensor2: TypeAlias = Annotated[TensorType, 2]
Tensor3: TypeAlias = Annotated[TensorType, 3]
Tensor4: TypeAlias = Annotated[TensorType, 4]
Tensor5: TypeAlias = Annotated[TensorType, 5]
TensorTypes: TypeAlias = tuple[TensorType, ...]


def as_dim(value: object) -> Dim:
    """A dimension as an int where it is known."""
    if isinstance(value, IntImm):
        return int(value.value)
    return value if isinstance(value, PrimExpr) else int(value)  # type: ignore[call-overload]


def shape_of_type(ty: Type) -> Shape:
    """The dimensions of a tensor type."""
    assert isinstance(ty, TensorType), f"{ty} has no shape"
    return tuple([as_dim(d) for d in ty.shape])


def unknown() -> PrimExpr:
    """A dimension that only the run can tell."""
    return Any()


@overload
def is_known(value: Dim, /) -> TypeGuard[int]: ...
@overload
def is_known(*values: Dim) -> bool: ...
def is_known(*values: Dim) -> bool:
    """Whether all the dimensions are numbers."""
    return all(isinstance(v, int) for v in values)


def are_known(values: Sequence[Dim]) -> TypeGuard[tuple[int, ...]]:
    """Whether all the dimensions of a shape are numbers."""
    return is_known(*values)


def is_any(value: Dim) -> bool:
    """Whether nothing at all is known of a dimension."""
    return isinstance(value, Any)


def apply(function: Callable[..., Dim], *values: Dim) -> Dim:
    """`function` of dimensions: unknown as soon as one is."""
    if is_known(*values):
        return function(*values)
    if any(is_any(v) for v in values):
        return unknown()
    try:
        return simplified(function(*values))
    except (TypeError, ValueError, TVMError):
        return unknown()  # a function that only numbers have, such as `round`


def simplified(value: object) -> Dim:
    """A dimension in its shortest form, so that equal ones look equal."""
    if isinstance(value, PrimExpr):
        return as_dim(Analyzer().simplify(value))
    return as_dim(value)


def largest(a: Dim, b: Dim) -> Dim:
    """The larger of two dimensions, as an expression if one is."""
    return max(a, b) if is_known(a) and is_known(b) else tir.max(a, b)


def smallest(a: Dim, b: Dim) -> Dim:
    """The smaller of two dimensions, as an expression if one is."""
    return min(a, b) if is_known(a) and is_known(b) else tir.min(a, b)


def product(values: Sequence[Dim]) -> Dim:
    """The number of elements; a zero makes it known."""
    if any(isinstance(v, int) and v == 0 for v in values):
        return 0
    total: Dim = 1
    for value in values:
        if is_any(value):
            return unknown()
        total = total * value
    return simplified(total)


Conditions: TypeAlias = "list[tuple[PrimExpr, str]]"
_UNDECIDED: ContextVar[Conditions | None] = ContextVar("undecided", default=None)


@contextmanager
def undecided() -> Iterator[Conditions]:
    """Gather the checks of variable dimensions, with the messages of those that fail."""
    conditions: Conditions = []
    token = _UNDECIDED.set(conditions)
    try:
        yield conditions
    finally:
        _UNDECIDED.reset(token)


# what equal dimensions are for; the kernel that requires them is named in front
MUST_FIT = "requires arguments whose shapes fit each other"


def leave_to_run(condition: Callable[[], PrimExpr], message: str, *dims: Dim) -> None:
    """Note a condition on dimensions of which at least one is variable."""
    conditions = _UNDECIDED.get()
    if conditions is not None and not any(is_any(d) for d in dims):
        conditions.append((condition(), message))


def equal_extents(a: AnyValue, b: AnyValue) -> PrimExpr:
    """The condition that two dimensions are equal."""
    return tir.EQ(a, b)


def select_dim(condition: PrimExpr, then: AnyValue, otherwise: AnyValue) -> PrimExpr:
    """One of two dimensions, as the run tells."""
    return tir.Select(condition, then, otherwise)


def may_equal(a: Dim, b: Dim) -> bool:
    """Whether two dimensions that must be equal can be; False only if they certainly differ."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if not same_dim(a, b):
        leave_to_run(lambda: equal_extents(a, b), MUST_FIT, a, b)
    return True


def same_dim(a: Dim, b: Dim) -> bool:
    """Whether two dimensions are certainly the same."""
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    return not is_any(a) and not is_any(b) and structural_equal(a, b)


def refine(a: Dim, b: Dim) -> Dim:
    """Two statements about one dimension: the more precise of them."""
    return b if is_any(a) else a


def tensor(shape: Sequence[Dim], dtype: str) -> TensorType:
    """A tensor type."""
    return TensorType(tuple(shape), dtype)


def show(shape: Sequence[Dim]) -> str:
    """A shape as text: `(1, ?, 3)`."""
    inner = ", ".join(["?" if is_any(d) else str(d) for d in shape])
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def expect_tensor(
    ty: Type, who: str, argument: str = "data", rank: int | None = None
) -> TensorType:
    """The type as a tensor type (of a given rank)."""
    if not isinstance(ty, TensorType):
        raise TypeCheckError(f"{who} requires a tensor for {argument}, got {ty}")
    if rank is not None and len(ty.shape) != rank:
        raise TypeCheckError(
            f"{who} requires a tensor of rank {rank} for {argument}, "
            f"got shape {show(shape_of_type(ty))}"
        )
    return ty


def expect_floating(ty: Type, who: str, argument: str = "data") -> TensorType:
    """The type as a tensor type of floating-point numbers."""
    found = expect_tensor(ty, who, argument)
    expect(
        as_dtype(found.dtype).is_float,
        f"{who} requires floating-point numbers for {argument}, got {found.dtype}",
        hint='convert it first: relay.cast(x, "float32")',
    )
    return found


Floating: TypeAlias = Annotated[TensorType, expect_floating]


def expect_tuple(ty: Type, who: str, argument: str = "data") -> tuple[TensorType, ...]:
    """The tensor types of a tuple of tensors."""
    if not isinstance(ty, TupleType):
        raise TypeCheckError(f"{who} requires a tuple of tensors for {argument}, got {ty}")
    return tuple([expect_tensor(field, who, argument) for field in ty.fields])


def expect(condition: bool, message: str, hint: str = "") -> None:
    """Reject a call whose types do not fit."""
    if not condition:
        raise TypeCheckError(message, hint=hint)


def expect_countable(
    numbers: Iterable[Dim], dtype: str, who: str, hint: str = "dtype='int64' does"
) -> None:
    """Reject positions and counts in an integer dtype that does not hold them."""
    kind = as_dtype(dtype)
    known = [number for number in numbers if isinstance(number, int)]
    expect(
        kind.is_float or all([fits(number, kind) for number in known]),
        f"{who} requires a dtype that holds {max(known, default=0)}, got {dtype!r}",
        hint=hint,
    )


def expect_dim(value: Dim, wanted: Dim, who: str, what: str) -> None:
    """Check one dimension against another."""
    if not may_equal(value, wanted):
        raise TypeCheckError(f"{who} requires {what} to be {wanted}, got {value}")


def expect_same_dtype(types: Sequence[TensorType], who: str) -> str:
    """The dtype that all arguments share."""
    dtypes = [ty.dtype for ty in types]
    if any(d != dtypes[0] for d in dtypes):
        raise TypeCheckError(
            f"{who} requires arguments of one dtype, got {' and '.join(dict.fromkeys(dtypes))}",
            hint="convert one of them with relay.cast",
        )
    return str(dtypes[0])


def positive_axis(axis: int, rank: int, who: str) -> int:
    """An axis counted from the front; rejects one that does not exist."""
    if not -rank <= axis < rank:
        raise TypeCheckError(f"{who} requires an axis in [{-rank}, {rank}), got {axis}")
    return axis % rank


def positive_axes(axes: Sequence[int], rank: int, who: str) -> tuple[int, ...]:
    """Distinct axes counted from the front."""
    found = tuple([positive_axis(a, rank, who) for a in axes])
    expect(len(set(found)) == len(found), f"{who} requires distinct axes, got {tuple(axes)}")
    return found


def broadcast_shapes(a: Shape, b: Shape, who: str) -> Shape:
    """The shape that two shapes broadcast to, numpy's rule."""
    rank = max(len(a), len(b))
    padded_a = (1,) * (rank - len(a)) + a
    padded_b = (1,) * (rank - len(b)) + b
    return tuple(
        [_broadcast_dims(x, y, a, b, who) for x, y in zip(padded_a, padded_b, strict=True)]
    )


def _broadcast_dims(x: Dim, y: Dim, a: Shape, b: Shape, who: str) -> Dim:
    if isinstance(x, int) and isinstance(y, int):
        if x == y or y == 1:
            return x
        if x == 1:
            return y
        raise TypeCheckError(
            f"{who} requires shapes that broadcast to each other, got {show(a)} and {show(b)}"
        )
    message = f"{who} requires shapes that broadcast to each other"
    if isinstance(x, int):
        x, y = y, x
    if isinstance(y, int):
        if y != 1:
            leave_to_run(lambda: tir.Or(equal_extents(x, 1), equal_extents(x, y)), message, x)
        return x if y == 1 else y
    if same_dim(x, y):
        return x
    if is_any(x) or is_any(y):
        return unknown()
    leave_to_run(
        lambda: tir.Or(equal_extents(x, y), tir.Or(equal_extents(x, 1), equal_extents(y, 1))),
        message,
    )
    return select_dim(equal_extents(x, 1), y, x)


def with_checked_types(relation: Callable[..., Type], who: str) -> Callable[..., Type]:
    """A type relation over `arg_types`, from one that has a parameter for each argument.

    The last arguments may have none. Relations over `arg_types` are left as they are.
    """
    annotations = getattr(relation, "__annotations__", {})
    if "arg_types" in annotations or len(annotations) < 2:
        return relation
    hints = get_type_hints(relation, include_extras=True)
    checks = [_check_of(hint, who, name) for name, hint in hints.items()][1:-1]

    def checked(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
        return relation(attrs, *[check(ty) for check, ty in zip(checks, arg_types, strict=False)])

    checked.__doc__ = relation.__doc__
    return checked


def _check_of(hint: AnyValue, who: str, argument: str) -> Callable[[Type], AnyValue]:
    """What a type must be that comes to a parameter of this annotation."""
    if hint == TensorTypes:
        return partial(expect_tuple, who=who, argument=argument)
    if hint is Type:
        return lambda ty: ty
    kind = get_args(hint)[1] if get_args(hint) else None
    if callable(kind):
        return partial(kind, who=who, argument=argument)
    return partial(expect_tensor, who=who, argument=argument, rank=kind)


def same_as_input(who: str) -> TypeRelation:
    """The type relation of operators that keep shape and dtype."""

    def relation(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
        """A tensor of the operand's shape and dtype."""
        return expect_tensor(arg_types[0], who)

    return relation


def integers_only(function: Callable[..., te.Tensor], who: str) -> Callable[..., te.Tensor]:
    """A compute of tensors of integers or booleans.

    The call has a type for floating-point numbers, too, as analyses of programs that are not run rely on.
    """

    def checked(*inputs: te.Tensor) -> te.Tensor:
        for tensor in inputs:
            expect(not tensor.dtype.is_float, f"{who} requires integers, got {tensor.dtype}")
        return function(*inputs)

    return checked


def keep_shape(who: str, dtype: str) -> TypeRelation:
    """The type relation of operators that keep the shape and give a fixed dtype."""

    def relation(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
        """A tensor of the operand's shape, and of the fixed dtype."""
        return tensor(shape_of_type(expect_tensor(arg_types[0], who)), dtype)

    return relation
