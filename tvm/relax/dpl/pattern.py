"""The pattern language: what a piece of a program looks like.

    conv = is_op("relax.nn.conv2d")(wildcard(), is_const())
    pattern = is_op("relax.nn.relu")(conv) | conv

A pattern object that occurs twice stands for one and the same expression.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tvm._ffi import register_object
from tvm.ir.expr import RelayExpr
from tvm.ir.extension import Extension
from tvm.ir.node import Node, child, leaf
from tvm.ir.op import Op
from tvm.ir.type import Type
from tvm.relax.base import StructInfo
from tvm.relax.expr import Var, as_struct_info
from tvm.relax.struct_info import as_dimensions
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype

from .constraints import CURRENT, PairConstraint, add_edge, required_constraints

# what the parts of a pattern stand for in an expression, from (pattern, expression, values of
# variables); None if it does not match
matched: Extension[Any] = Extension("tvm.relax.dpl")


def register_df_node(type_key: Any = None) -> Any:
    """Make a class known under its type key, which gets the prefix of patterns."""
    if isinstance(type_key, str):
        return register_object(f"relax.dpl.{type_key}")
    return register_object(type_key)


class Linkable:
    """What another pattern may be required to use: a pattern, or the last one of a sequence."""

    __slots__ = ()

    def used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """Require that this is used by another one, as argument `index` if that is not -1."""
        return _linked(self, other, PairConstraint(False, index))

    def only_used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """Require that this is used by another one and nothing else."""
        return _linked(self, other, PairConstraint(True, index))

    def __xor__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        return self.used_by(other)

    def __rshift__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        return self.only_used_by(other)


class DFPattern(Linkable, Node, key="relax.dpl.DFPattern"):
    """The base of patterns; Python's operators build patterns of calls."""

    def __call__(
        self, *args: DFPattern, varg_default_wildcard: bool = False, add_constraint: bool = True
    ) -> CallPattern:
        """A call of this with the given arguments.

        Parameters
        ----------
        args : DFPattern
        varg_default_wildcard : bool
            Whether there may be more arguments, of any kind.
        add_constraint : bool
            Whether the current context, if there is one, requires that the call uses the arguments.
        """
        return CallPattern(self, args, varg_default_wildcard, add_constraint)

    def __or__(self, other: DFPattern) -> OrPattern:
        return OrPattern(self, other)

    def __and__(self, other: DFPattern) -> AndPattern:
        return AndPattern(self, other)

    def __invert__(self) -> NotPattern:
        return NotPattern(self)

    def __add__(self, other: DFPattern) -> CallPattern:
        return is_op("relax.add")(self, other)

    def __sub__(self, other: DFPattern) -> CallPattern:
        return is_op("relax.subtract")(self, other)

    def __mul__(self, other: DFPattern) -> CallPattern:
        return is_op("relax.multiply")(self, other)

    def __truediv__(self, other: DFPattern) -> CallPattern:
        return is_op("relax.divide")(self, other)

    def has_attr(self, attrs: Mapping[str, Any]) -> AttrPattern:
        """This, with attributes of these values: of the call, the operator or the function."""
        return AttrPattern(self, attrs)

    def has_struct_info(self, struct_info: StructInfo) -> StructInfoPattern:
        """This, as struct info says, whose symbolic variables may stand for anything."""
        return StructInfoPattern(self, struct_info)

    def has_type(self, ttype: Type) -> TypePattern:
        """This, of exactly that type."""
        return TypePattern(self, ttype)

    def has_dtype(self, dtype: str) -> DataTypePattern:
        """This, a tensor of that dtype."""
        return has_dtype(dtype, self)

    def has_shape(self, shape: Sequence[Any]) -> ShapePattern:
        """This, a tensor of that shape."""
        return ShapePattern(self, shape)

    def match(self, expr: RelayExpr, var2val: Mapping[Var, RelayExpr] | None = None) -> bool:
        """Whether an expression looks like this.

        Parameters
        ----------
        expr : Expr
        var2val : dict of Var to Expr, optional
            The values of variables, which parts of the pattern are compared with.
        """
        return matched.required(self, expr, var2val) is not None

    def extract_matched_expr(
        self, expr: RelayExpr, var2val: Mapping[Var, RelayExpr] | None = None
    ) -> dict[DFPattern, RelayExpr] | None:
        """What each part of this stands for in an expression; None if that does not match."""
        found: dict[DFPattern, RelayExpr] | None = matched.required(self, expr, var2val)
        return found

    def dup(self) -> Any:
        """A copy, which stands for another expression."""
        return _duplicate(self, {})

    def fork_to(self, *args: DFPattern | PatternSeq) -> None:
        """Require that this is used by each of several others."""
        for user in args:
            self.used_by(user)

    def same_shape_as(self, *args: DFPattern) -> SameShapeConstraint:
        """Require that this is a tensor of the same shape as others."""
        return SameShapeConstraint(self, *args)


def _duplicate(pattern: DFPattern, done: dict[DFPattern, DFPattern]) -> DFPattern:
    if (known := done.get(pattern)) is None:
        new = pattern.map_children(lambda part: _duplicate(part, done))
        known = done[pattern] = pattern.replace() if new is pattern else new
    return known


def _patterns(values: Any) -> Any:
    return None if values is None else tuple(values)


class RuntimeDepPattern(DFPattern, key="relax.dpl.RuntimeDepPattern"):
    """A pattern of what is known when the program runs."""


class ExprPattern(DFPattern, key="relax.dpl.ExprPattern"):
    """One given expression, or one structurally equal to it."""

    expr: RelayExpr = leaf()


class VarPattern(DFPattern, key="relax.dpl.VarPattern"):
    """A variable; of any name if the name is empty."""

    name: str = ""

    def __init__(self, name_hint: str = "") -> None:
        self._init(name_hint)

    @property
    def name_hint(self) -> str:
        """The name."""
        return self.name


class DataflowVarPattern(VarPattern, key="relax.dpl.DataflowVarPattern"):
    """A variable of a dataflow block."""


class GlobalVarPattern(VarPattern, key="relax.dpl.GlobalVarPattern"):
    """The name of a function of the module."""


class ExternFuncPattern(DFPattern, key="relax.dpl.ExternFuncPattern"):
    """A packed function; any one if the name is empty."""

    global_symbol: str = ""

    def __init__(self, global_symbol: str = "") -> None:
        self._init(global_symbol)


class ConstantPattern(DFPattern, key="relax.dpl.ConstantPattern"):
    """A constant."""


class CallPattern(DFPattern, key="relax.dpl.CallPattern"):
    """A call.

    Parameters
    ----------
    op : DFPattern
    args : sequence of DFPattern
    varg_default_wildcard : bool
        Whether there may be more arguments, of any kind.
    add_constraint : bool
        Whether the current context, if there is one, requires that the call uses the arguments.
    """

    op: DFPattern
    args: tuple[DFPattern, ...] = child(convert=_patterns)
    varg_default_wildcard: bool = False

    def __init__(
        self,
        op: DFPattern | Op | RelayExpr,
        args: Sequence[DFPattern],
        varg_default_wildcard: bool = False,
        add_constraint: bool = True,
    ) -> None:
        callee = op if isinstance(op, DFPattern) else ExprPattern(op)
        self._init(callee, args, varg_default_wildcard)
        if add_constraint and CURRENT.current() is not None:
            # where they are in the call, comparing it with the pattern tells
            for arg in self.args:
                add_edge(arg, self, PairConstraint(is_part=True))


class FunctionPattern(DFPattern, key="relax.dpl.FunctionPattern"):
    """A function; of any parameters if they are None."""

    params: tuple[DFPattern, ...] | None = child(convert=_patterns)
    body: DFPattern


class TuplePattern(DFPattern, key="relax.dpl.TuplePattern"):
    """A tuple of such fields."""

    fields: tuple[DFPattern, ...] = child(convert=_patterns)

    def __init__(self, fields: Sequence[DFPattern]) -> None:
        self._init(fields)

    def __getitem__(self, index: int | None) -> TupleGetItemPattern:
        if index is not None:
            if not -len(self.fields) <= index < len(self.fields):
                raise IndexError(f"index out of range: {index} of {len(self.fields)} fields")
            index %= len(self.fields)
        return TupleGetItemPattern(self, index)

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[TupleGetItemPattern]:
        return iter([self[i] for i in range(len(self.fields))])


class UnorderedTuplePattern(DFPattern, key="relax.dpl.UnorderedTuplePattern"):
    """A tuple of such fields, in any order."""

    fields: tuple[DFPattern, ...] = child(convert=_patterns)

    def __len__(self) -> int:
        return len(self.fields)


class TupleGetItemPattern(DFPattern, key="relax.dpl.TupleGetItemPattern"):
    """A field of a tuple; any field if the index is None."""

    tuple: DFPattern
    index: int | None = None

    def __init__(self, tuple_value: DFPattern, index: int | None = None) -> None:
        self._init(tuple_value, index)

    @property
    def tuple_value(self) -> DFPattern:
        """The tuple."""
        return self.tuple


class OrPattern(DFPattern, key="relax.dpl.OrPattern"):
    """The left one, or else the right one."""

    left: DFPattern
    right: DFPattern


class AndPattern(DFPattern, key="relax.dpl.AndPattern"):
    """Both."""

    left: DFPattern
    right: DFPattern


class NotPattern(DFPattern, key="relax.dpl.NotPattern"):
    """What does not look like another pattern."""

    reject: DFPattern

    def __init__(self, to_reject: DFPattern) -> None:
        self._init(to_reject)


class WildcardPattern(DFPattern, key="relax.dpl.WildcardPattern"):
    """Anything."""


class StructInfoPattern(DFPattern, key="relax.dpl.StructInfoPattern"):
    """A pattern of which struct info is known; its symbolic variables may stand for anything."""

    pattern: DFPattern
    struct_info: StructInfo = leaf()

    def __init__(self, pattern: DFPattern, struct_info: Any) -> None:
        self._init(pattern, as_struct_info(struct_info, self))


class TypePattern(DFPattern, key="relax.dpl.TypePattern"):
    """A pattern with a type."""

    pattern: DFPattern
    type: Type = leaf()

    def __init__(self, pattern: DFPattern, ttype: Type) -> None:
        self._init(pattern, ttype)


class DataTypePattern(DFPattern, key="relax.dpl.DataTypePattern"):
    """A pattern with a dtype."""

    pattern: DFPattern
    dtype: DType = leaf(convert=as_dtype)


class ShapePattern(DFPattern, key="relax.dpl.ShapePattern"):
    """A pattern of tensors of a shape."""

    pattern: DFPattern
    shape: Sequence[Any] = leaf(convert=as_dimensions)


class PrimArrPattern(DFPattern, key="relax.dpl.PrimArrPattern"):
    """A shape itself."""

    fields: Sequence[Any] = leaf(convert=as_dimensions)

    def __init__(self, shape: Sequence[Any]) -> None:
        self._init(shape)

    def __getitem__(self, index: int) -> Any:
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)


class AttrPattern(DFPattern, key="relax.dpl.AttrPattern"):
    """A pattern with attributes."""

    pattern: DFPattern
    attrs: Mapping[str, Any] = leaf(convert=dict)


class DFConstraint(Node, key="relax.dpl.DFConstraint"):
    """What a context requires of what several patterns stand for."""


class SameShapeConstraint(DFConstraint, key="relax.dpl.SameShapeConstraint"):
    """Tensors have the same shape; the current context requires it, if there is one."""

    args: tuple[DFPattern, ...] = child()

    def __init__(self, *args: DFPattern) -> None:
        self._init(args)
        if CURRENT.current() is not None:
            required_constraints().validations.append(self)


class PatternSeq(Linkable, Node, key="relax.dpl.PatternSeq"):
    """Patterns, each used by the next one: what ``a >> b >> c`` and ``a ^ b`` make.

    Parameters
    ----------
    patterns : list of DFPattern
    only_use : bool
        Whether nothing else uses them.
    """

    patterns: tuple[DFPattern, ...] = child()
    pairs: tuple[PairConstraint, ...] = leaf(default=())

    def __init__(self, patterns: Sequence[DFPattern], only_use: bool = False) -> None:
        pairs = (PairConstraint(only_use),) * (len(patterns) - 1)
        self._init(tuple(patterns), pairs)
        self._require()

    def _require(self) -> None:
        followers = zip(self.patterns, self.patterns[1:], self.pairs, strict=False)
        for used, user, pair in followers:
            add_edge(used, user, pair)

    def __getitem__(self, index: int) -> DFPattern:
        return self.patterns[index]

    def __len__(self) -> int:
        return len(self.patterns)

    def dup(self) -> PatternSeq:
        """A copy of the patterns, with the same constraints between them."""
        done: dict[DFPattern, DFPattern] = {}
        new: PatternSeq = PatternSeq._make(
            tuple([_duplicate(p, done) for p in self.patterns]), self.pairs
        )
        new._require()
        return new


def _linked(used: Linkable, user: Linkable, pair: PairConstraint) -> PatternSeq:
    """Two sequences as one."""
    first, second = [s if isinstance(s, PatternSeq) else None for s in (used, user)]
    before = first.patterns if first else (used,)
    behind = second.patterns if second else (user,)
    add_edge(before[-1], behind[0], pair)
    pairs = (*(first.pairs if first else ()), pair, *(second.pairs if second else ()))
    made: PatternSeq = PatternSeq._make((*before, *behind), pairs)
    return made


# ---- constructors


def is_var(name: str = "") -> VarPattern:
    """A variable, of that name if one is given."""
    return VarPattern(name)


def is_gv(name: str = "") -> GlobalVarPattern:
    """The name of a function of the module."""
    return GlobalVarPattern(name)


def is_dfv(name: str = "") -> DataflowVarPattern:
    """A variable of a dataflow block."""
    return DataflowVarPattern(name)


def is_const() -> ConstantPattern:
    """A constant."""
    return ConstantPattern()


def is_expr(expr: RelayExpr) -> ExprPattern:
    """An expression equal to `expr`."""
    return ExprPattern(expr)


def is_op(op_name: str) -> ExprPattern:
    """An operator; call the pattern to match calls of it."""
    return ExprPattern(Op.get(op_name))


def is_tuple(
    fields: Sequence[DFPattern], unordered: bool = False
) -> TuplePattern | UnorderedTuplePattern:
    """A tuple of such fields, in any order if `unordered`."""
    return UnorderedTuplePattern(tuple(fields)) if unordered else TuplePattern(fields)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """A field of such a tuple."""
    return TupleGetItemPattern(tuple_value, index)


def wildcard() -> WildcardPattern:
    """Anything."""
    return WildcardPattern()


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DataTypePattern:
    """A tensor of that dtype."""
    return DataTypePattern(pattern if pattern is not None else wildcard(), as_dtype(dtype))


def is_shape(shape: Sequence[Any]) -> PrimArrPattern:
    """A shape itself, such as an argument."""
    return PrimArrPattern(shape)


def has_attr(attrs: Mapping[str, Any], pattern: DFPattern | None = None) -> AttrPattern:
    """Something with those attributes."""
    return AttrPattern(pattern if pattern is not None else wildcard(), attrs)


def reject(pattern: DFPattern) -> NotPattern:
    """What does not look like `pattern`."""
    return NotPattern(pattern)


def _arguments(args: Any) -> DFPattern:
    if args is None:
        return wildcard()
    return TuplePattern(args) if isinstance(args, (list, tuple)) else args


def is_call_tir(
    func_name: str,
    args: Sequence[DFPattern] | DFPattern | None = None,
    tir_vars: DFPattern | None = None,
) -> CallPattern:
    """A ``call_tir`` of a function of the module, with such tensors."""
    parts = [GlobalVarPattern(func_name), _arguments(args)]
    if tir_vars is not None:
        parts.append(tir_vars)
    return is_op("relax.call_tir")(*parts, add_constraint=False)


def is_call_dps_packed(
    func_name: str, args: Sequence[DFPattern] | DFPattern | None = None
) -> CallPattern:
    """A ``call_dps_packed`` of a packed function, with such tensors."""
    parts = (ExternFuncPattern(func_name), _arguments(args))
    return is_op("relax.call_dps_packed")(*parts, add_constraint=False)


def is_call_packed(func_name: str, args: Sequence[DFPattern] | None = None) -> CallPattern:
    """A call of a packed function; of any arguments if they are None."""
    if args is None:
        return ExternFuncPattern(func_name)(varg_default_wildcard=True)
    return ExternFuncPattern(func_name)(*args)


def make_fused_bias_activation_pattern(
    op_name: str, with_bias: bool = False, activation: str | None = None
) -> DFPattern:
    """An operator of two operands, a bias that is added, and an activation.

    Parameters
    ----------
    op_name : str
        Such as ``"relax.nn.conv2d"``.
    with_bias : bool
    activation : str, optional
        The name of the activation's operator.
    """
    out = is_op(op_name)(wildcard(), wildcard())
    if with_bias:
        out = is_op("relax.add")(out, wildcard())
    return out if activation is None else is_op(activation)(out)
