"""Expressions of the loop level: constants, variables, arithmetic, loads, calls.

Two levels of construction: ``Add(a, b)`` builds exactly that node, while ``a + b`` and
:func:`tvm.tir.add` convert Python values, unify data types and fold constants.
As in classic TVM ``a == b`` builds a node; inside the compiler compare with ``is`` or
``structural_equal``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar
from typing import Any as AnyType

from tvm.error import RuntimeTypeError, RuntimeValueError
from tvm.ir import extension
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.node import Node, binder, child, derived, ignored, leaf, reference
from tvm.ir.op import Op
from tvm.ir.script_printer import Scriptable
from tvm.ir.structural import structural_equal
from tvm.ir.type import PointerType, PrimType, Type
from tvm.ir.visitor import Rewriter
from tvm.runtime.object_generic import ObjectGeneric
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype

from .access import check_access, check_predicate
from .constants import *  # noqa: F403
from .constants import HANDLE, INT32, IntImm, as_expr, as_exprs, as_lanes, const, int_imm
from .operators import ExprOp as ExprOp
from .operators import NotAnOperand as NotAnOperand
from .operators import PrimExprWithOp as PrimExprWithOp

if TYPE_CHECKING:
    from tvm.ir.span import Span

    from .buffer import Buffer, DataProducer

# ---- variables


class Var(PrimExprWithOp):
    """A variable, identified by itself and not by its name."""

    structural: ClassVar[str] = "variable"

    name: str = ignored()
    dtype: DType
    type_annotation: Type | None = reference(default=None)

    def __init__(
        self, name: str = "tir_var", dtype: str | Type = INT32, span: Span | None = None
    ) -> None:
        if type(name) is not str:
            name = _as_name(name)
        if isinstance(dtype, Type):
            self._init(name, _dtype_of_type(dtype), dtype, span)
        else:
            self._init(name, as_dtype(dtype), None, span)


def _as_name(name: AnyType) -> str:
    if not isinstance(name, str):
        raise RuntimeTypeError(f"a variable requires a text as its name, got {name!r}")
    return str(name)


def _dtype_of_type(annotation: Type) -> DType:
    return as_dtype(annotation.dtype) if isinstance(annotation, PrimType) else HANDLE


class SizeVar(Var):
    """A variable that is a size: never negative."""

    __init__ = Var.__init__


class Range(Scriptable, Node, key="Range"):
    """The integers from ``min``, ``extent`` of them."""

    min: PrimExpr
    extent: PrimExpr
    span: Span | None = ignored(default=None, kw_only=True)

    def __init__(self, begin: AnyType, end: AnyType = None, span: Span | None = None) -> None:
        if end is None:
            extent = as_expr(begin)
            self._init(int_imm(extent.dtype, 0), extent, span)
        else:
            low, high = _operands(begin, end)
            if isinstance(high, Add) and structural_equal(high.a, low):
                self._init(low, high.b, span)
            else:
                self._init(low, high - low, span)

    @staticmethod
    def from_min_extent(min_value: AnyType, extent: AnyType, span: Span | None = None) -> Range:
        """The range that starts at ``min_value`` and has ``extent`` elements."""
        low, count = _operands(min_value, extent)
        found: Range = Range._make(low, count, span)
        return found

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Range) and structural_equal(self, other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = object.__hash__


class IntImmEnum(ObjectGeneric):
    """The value of an enumeration, where an expression is taken.

    Parameters
    ----------
    value : int
    span : Span, optional
    """

    def __init__(self, value: int, span: Span | None = None) -> None:
        self.value, self.span = value, span

    def asobject(self) -> PrimExpr:
        """The constant of int32."""
        return const(self.value, INT32, self.span)


class IterVarType(IntEnum):
    """What an iteration variable is to the statement that has it."""

    DataPar = 0
    ThreadIndex = 1
    CommReduce = 2
    Ordered = 3
    Opaque = 4
    DimInfo = 4
    Unrolled = 5
    Vectorized = 6
    Parallelized = 7
    Tensorized = 8


class IterVar(ExprOp, Scriptable, Node):
    """An iteration over a range, by a variable."""

    dom: Range | None
    var: Var = binder()
    iter_type: IterVarType
    thread_tag: str = ""
    span: Span | None = ignored(default=None, kw_only=True)

    DataPar = IterVarType.DataPar
    ThreadIndex = IterVarType.ThreadIndex
    CommReduce = IterVarType.CommReduce
    Ordered = IterVarType.Ordered
    Opaque = IterVarType.Opaque
    DimInfo = IterVarType.Opaque
    Unrolled = IterVarType.Unrolled
    Vectorized = IterVarType.Vectorized
    Parallelized = IterVarType.Parallelized
    Tensorized = IterVarType.Tensorized

    __hash__ = ExprOp.__hash__

    def __init__(
        self,
        dom: Range | Sequence[AnyType] | None,
        var: Var | str,
        iter_type: int,
        thread_tag: str = "",
        span: Span | None = None,
    ) -> None:
        if dom is not None and not isinstance(dom, Range):
            if not isinstance(dom, (list, tuple)) or len(dom) != 2:
                raise RuntimeTypeError(
                    f"IterVar requires a Range or a pair as its domain, got {dom!r}"
                )
            dom = Range(dom[0], dom[1])
        if not isinstance(var, Var):
            var = Var(var, INT32 if dom is None else dom.extent.dtype)
        self._init(dom, var, IterVarType(iter_type), thread_tag, span)

    def asobject(self) -> PrimExpr:
        """The variable: what an IterVar is as an expression."""
        return self.var


def div_ambiguity_error() -> RuntimeError:
    """What ``a / b`` of integers raises."""
    return RuntimeError(
        "there are several divisions of integers: call floordiv and floormod, truncdiv and "
        "truncmod, or div of tvm.tir instead of the operator /"
    )


# ---- operators


class Cast(PrimExprWithOp):
    """A value converted to another dtype.

    A float becomes an integer towards zero, by way of int32 for smaller types and of int64 for uint32, which
    then wraps around. What that intermediate type cannot hold, NaN too, becomes its least number; in machine
    code what the processor makes of it, on x86 the same.
    """

    dtype: DType = leaf(convert=as_dtype)
    value: PrimExpr


class BinaryOpExpr(PrimExprWithOp):
    """Two operands of one dtype, which is the result's."""

    a: PrimExpr
    b: PrimExpr
    dtype: DType = derived("a.dtype")

    def __init__(self, a: AnyType, b: AnyType, span: Span | None = None) -> None:
        try:
            if a.dtype is not b.dtype:
                raise _mismatch(type(self), a, b)
            self._init(a, b, span)
        except AttributeError:
            self._init(*_operands(a, b), span)


def _operands(a: AnyType, b: AnyType) -> tuple[PrimExpr, PrimExpr]:
    """Python numbers among the operands take the dtype of the other one."""
    a = as_expr(a, b.dtype.element if isinstance(b, PrimExpr) else None)
    return a, as_expr(b, a.dtype.element)


def _mismatch(cls: type, a: PrimExpr, b: PrimExpr) -> RuntimeTypeError:
    return RuntimeTypeError(
        f"{cls.__name__} requires operands of one dtype, got {a.dtype} and {b.dtype}; "
        "hint: the Python operators and the functions of tvm.tir unify dtypes"
    )


class Add(BinaryOpExpr):
    """``a + b``"""


class Sub(BinaryOpExpr):
    """``a - b``"""


class Mul(BinaryOpExpr):
    """``a * b``"""


class Div(BinaryOpExpr):
    """``a / b``; integers are divided as in C, towards zero

    As in numpy, an integer divided by zero is 0, with no remainder, and the least number divided by -1
    is itself: integers wrap around. That holds for all four divisions.
    """


class Mod(BinaryOpExpr):
    """The remainder of :class:`Div`, as C's ``%``"""


class FloorDiv(BinaryOpExpr):
    """``a // b`` rounded down"""


class FloorMod(BinaryOpExpr):
    """The remainder of :class:`FloorDiv`: it has the sign of ``b``"""


class Min(BinaryOpExpr):
    """The smaller operand, as numpy's ``minimum``: NaN if either is; of zeros of both signs either one"""


class Max(BinaryOpExpr):
    """The larger operand, as numpy's ``maximum``: NaN if either is; of zeros of both signs either one"""


class CmpExpr(PrimExprWithOp):
    """A comparison: bool, lane by lane."""

    a: PrimExpr
    b: PrimExpr
    dtype: DType = derived("BOOL if a.dtype.lanes == 1 else BOOL.with_lanes(a.dtype.lanes)")

    __init__ = BinaryOpExpr.__init__


class EQ(CmpExpr):
    """``a == b``; true in Python if both operands are the same object."""

    def __bool__(self) -> bool:
        return self.a is self.b

    def asobject(self) -> EQ:
        """The comparison as an expression, which it is."""
        return self


class NE(CmpExpr):
    """``a != b``; true in Python if the operands are different objects."""

    def __bool__(self) -> bool:
        return self.a is not self.b

    def asobject(self) -> NE:
        """The comparison as an expression, which it is."""
        return self


# the classic names of what the operators == and != give
EqualOp, NotEqualOp = EQ, NE


class LT(CmpExpr):
    """``a < b``"""


class LE(CmpExpr):
    """``a <= b``"""


class GT(CmpExpr):
    """``a > b``"""


class GE(CmpExpr):
    """``a >= b``"""


class LogicalExpr(PrimExprWithOp):
    """An operation on truth values."""


class And(LogicalExpr):
    """Both; the second operand is evaluated only if the first is true."""

    a: PrimExpr
    b: PrimExpr
    dtype: DType = derived("a.dtype")

    __init__ = BinaryOpExpr.__init__


class Or(LogicalExpr):
    """Either; the second operand is evaluated only if the first is false."""

    a: PrimExpr
    b: PrimExpr
    dtype: DType = derived("a.dtype")

    __init__ = BinaryOpExpr.__init__


class Not(LogicalExpr):
    """Negation."""

    a: PrimExpr = child(convert=as_expr)
    dtype: DType = derived("a.dtype")


class Select(PrimExprWithOp):
    """One of two values, both of which may be evaluated."""

    condition: PrimExpr = child(convert=as_expr)
    true_value: PrimExpr = child(convert=as_expr)
    false_value: PrimExpr = child(convert=as_expr)
    dtype: DType = derived("true_value.dtype")

    def __check__(self) -> None:
        if self.true_value.dtype is not self.false_value.dtype:
            raise _mismatch(Select, self.true_value, self.false_value)
        condition = self.condition.dtype
        if not condition.is_bool:
            raise RuntimeTypeError(f"Select requires a condition of bool, got {condition}")
        if condition.lanes not in (1, self.dtype.lanes):
            raise RuntimeTypeError(
                f"Select requires a condition of one lane or of {self.dtype.lanes}, got {condition}"
            )


# ---- memory


class BufferLoad(PrimExprWithOp):
    """The element (or vector of elements) of a buffer at the indices."""

    buffer: Buffer = reference()
    indices: tuple[PrimExpr, ...] = child(convert=as_exprs)
    predicate: PrimExpr | None = None
    dtype: DType = derived("_element_dtype(buffer.dtype, indices)")

    def __init__(
        self,
        buffer: Buffer,
        indices: AnyType,
        predicate: PrimExpr | None = None,
        span: Span | None = None,
    ) -> None:
        positions = as_exprs(indices)
        check_access(buffer, positions)
        self._init(buffer, positions, predicate, span)
        if predicate is not None:
            check_predicate(predicate, self.dtype, "load a vector", "load indices")


def _element_dtype(dtype: DType, indices: tuple[PrimExpr, ...]) -> DType:
    if not indices or (lanes := indices[-1].dtype.lanes) == 1:
        return dtype
    return dtype.with_lanes(dtype.lanes * lanes)


class ProducerLoad(PrimExprWithOp):
    """The element of a tensor that is not in memory yet."""

    producer: DataProducer = reference()
    indices: tuple[PrimExpr, ...] = child(convert=as_exprs)
    dtype: DType = derived("producer.dtype")


# ---- vectors


class Ramp(PrimExprWithOp):
    """The vector ``base, base + stride, base + 2*stride, ...``"""

    base: PrimExpr = child(convert=as_expr)
    stride: PrimExpr = child(convert=as_expr)
    lanes: int = leaf(convert=as_lanes)
    dtype: DType = derived("base.dtype.with_lanes(lanes * base.dtype.lanes)")

    def __init__(
        self, base: AnyType, stride: AnyType, lanes: AnyType, span: Span | None = None
    ) -> None:
        base, stride = as_expr(base), as_expr(stride)
        if type(stride) is IntImm and stride.dtype is not base.dtype.element:
            stride = int_imm(base.dtype.element, stride.value)
        self._init(base, stride, as_lanes(lanes), span)


class Shuffle(PrimExprWithOp):
    """The lanes of the concatenated vectors picked by constant indices."""

    vectors: tuple[PrimExpr, ...] = child(convert=as_exprs)
    indices: tuple[PrimExpr, ...] = child(convert=as_exprs)
    dtype: DType = derived("vectors[0].dtype.with_lanes(len(indices))")


# ---- calls and bindings


class CallEffectKind(IntEnum):
    """What evaluating a call may do beside giving its value."""

    ExprAnnotation = 0
    Pure = 1
    ReadState = 2
    UpdateState = 3
    Opaque = UpdateState
    SpecialCallArg = 4
    EmbedInfo = 5
    ControlJump = 6


class Call(PrimExprWithOp):
    """A call of an intrinsic (``Op``) or of a function of the module (``GlobalVar``)."""

    op: RelayExpr = reference()
    args: tuple[PrimExpr, ...]

    def __init__(
        self, dtype: AnyType, op: RelayExpr | str, args: Sequence[AnyType], span: Span | None = None
    ) -> None:
        if isinstance(op, str):
            if not op.startswith("tir."):
                raise RuntimeValueError(
                    f"Call requires an intrinsic named 'tir.<name>', got {op!r}; "
                    "hint: tvm.tir.call_extern and call_intrin call by other names"
                )
            op = Op.get(op)
        self._init(as_dtype(dtype), op, as_exprs(args), span)


class Let(PrimExprWithOp):
    """``body`` with ``var`` bound to ``value``."""

    var: Var = binder("body")
    value: PrimExpr = child(convert=as_expr)
    body: PrimExpr = child(convert=as_expr)
    dtype: DType = derived("body.dtype")

    def __init__(self, var: Var, value: AnyType, body: AnyType, span: Span | None = None) -> None:
        self._init(var, bound_value(var, value), as_expr(body), span)


def bound_value(var: Var, value: AnyType) -> PrimExpr:
    """What a variable is bound to, which has its dtype; Python numbers take it."""
    found = as_expr(value, None if var.dtype.is_handle else var.dtype)
    if found.dtype is not var.dtype:
        raise RuntimeTypeError(
            f"binding {var.name} requires a value of {var.dtype}, got {found.dtype}: {found}; "
            "hint: cast it"
        )
    return found


class Any(PrimExprWithOp):
    """An unknown dimension of a relay shape."""

    dtype: DType = derived("INT32")


# ---- reductions


class CommReducer(Scriptable, Node):
    """A commutative combination: ``result`` of ``lhs`` and ``rhs``, with its neutral element."""

    lhs: tuple[Var, ...] = binder("result")
    rhs: tuple[Var, ...] = binder("result")
    result: tuple[PrimExpr, ...] = child(convert=as_exprs)
    identity_element: tuple[PrimExpr, ...] = child(convert=as_exprs)
    span: Span | None = ignored(default=None, kw_only=True)

    def __call__(self, a: Sequence[PrimExpr], b: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        """The combination of two tuples of values."""
        replacer = _VarReplacer(dict(zip((*self.lhs, *self.rhs), (*a, *b), strict=True)))
        return tuple([replacer.visit(value) for value in self.result])


class _VarReplacer(Rewriter):
    """Replaces variables in a combiner's result, which binds none and reads no buffer."""

    def __init__(self, bindings: Mapping[Var, PrimExpr]) -> None:
        self.bindings = bindings

    def visit_var(self, var: Var) -> PrimExpr:
        return self.bindings.get(var, var)


class Reduce(PrimExprWithOp):
    """The combination of ``source`` over the iterations of ``axis`` where ``condition`` holds."""

    combiner: CommReducer
    axis: tuple[IterVar, ...]
    source: tuple[PrimExpr, ...]
    condition: PrimExpr
    value_index: int
    init: tuple[PrimExpr, ...] = ()
    dtype: DType = derived("source[value_index].dtype")

    def __init__(
        self,
        combiner: CommReducer,
        src: Sequence[AnyType],
        rdom: Sequence[IterVar],
        condition: AnyType,
        value_index: int,
        init: Sequence[AnyType] | None = None,
        span: Span | None = None,
    ) -> None:
        self._init(
            combiner, tuple(rdom), as_exprs(src), as_expr(True if condition is None else condition), int(value_index),
            as_exprs(init or ()), span,
        )  # fmt: skip


def pointer_type(dtype: AnyType, scope: str = "global") -> PointerType:
    """The type of a pointer to elements of ``dtype``."""
    return PointerType(PrimType(as_dtype(dtype)), scope)


extension.make_dimension.provide(const)
