"""Compute in a narrow float type where that gains speed and costs little accuracy.

    %0 = nn.dense(%x, %w);         %0 = cast(%x, "float16"); %1 = cast(%w, "float16");
    nn.relu(%0)              ->    %2 = nn.dense(%0, %1, out_dtype="float32");
                                   nn.relu(cast(%2, "float16"))

The operators' `precision` facets tell which of them gain, which follow their inputs and which must
stay wide. Products accumulate in float32. A user's facet is a function of the call and the narrow
type that gives (kind, accumulation dtype, result dtype) with kind 0 always, 1 follow, 2 never.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from tvm.error import OpNotImplemented, TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.pass_context import register_pass_config
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.analysis.infer import infer_type_of, tensor_type_of
from tvm.relay.expr import Call, Tuple, TupleGetItem
from tvm.relay.function import Function, is_closed, is_primitive
from tvm.relay.op.op import register_mixed_precision_conversion
from tvm.relay.op.registry import Precision, ops
from tvm.relay.rounding import with_free_rounding
from tvm.relay.transform.common import FunctionPass
from tvm.relay.transform.operators import is_operator_call
from tvm.relay.traverse import keep_span, operands, post_order, tensors_of, with_operands
from tvm.relay.ty import dtypes_of

KEEP_OUTPUT = "relay.ToMixedPrecision.keep_orig_output_dtype"
register_pass_config(KEEP_OUTPUT, bool)

_WIDE = "float32"
# from a call and the narrow type to (kind, accumulation dtype, result dtype)
_Facet: TypeAlias = "Callable[[Call, str], list[int | str]]"
_KINDS = (Precision.ALWAYS, Precision.FOLLOW, Precision.KEEP_FLOAT32)
# the kinds as users' facets give them
MIXED_PRECISION_ALWAYS, MIXED_PRECISION_FOLLOW, MIXED_PRECISION_NEVER = range(3)


def get_generic_out_dtypes(call_node: Call, mixed_precision_type: str) -> list[str]:
    """The dtypes that a call accumulates in and gives."""
    has_out_dtype = call_node.attrs is not None and "out_dtype" in call_node.attrs
    return [_WIDE if has_out_dtype else mixed_precision_type, mixed_precision_type]


def generic_always_op(call_node: Call, mixed_precision_type: str) -> list[int | str]:
    """The facet of an operator that gains from narrow types."""
    return [MIXED_PRECISION_ALWAYS, *get_generic_out_dtypes(call_node, mixed_precision_type)]


def generic_follow_op(call_node: Call, mixed_precision_type: str) -> list[int | str]:
    """The facet of an operator that takes the precision of its inputs."""
    return [MIXED_PRECISION_FOLLOW, *get_generic_out_dtypes(call_node, mixed_precision_type)]


def generic_never_op(call_node: Call, mixed_precision_type: str) -> list[int | str]:
    """The facet of an operator that loses accuracy."""
    return [MIXED_PRECISION_NEVER, *get_generic_out_dtypes(call_node, mixed_precision_type)]


def register_func_to_op_list(list_ops: Iterable[str]) -> Callable[[_Facet], _Facet]:
    """A decorator that sets the facet of all these operators."""

    def register(function: _Facet) -> _Facet:
        for name in list_ops:
            register_mixed_precision_conversion(name, function)
        return function

    return register


class _Rule(NamedTuple):
    kind: Precision
    accumulate: str
    result: str


class _Mixer:
    """Rebuilds one function bottom up."""

    def __init__(self, narrow: str, missing_op_mode: int) -> None:
        self.narrow = narrow
        self.missing_op_mode = missing_op_mode
        self.missing: dict[str, None] = {}
        self._new: dict[int, RelayExpr] = {}
        self._plain: set[int] = set()  # untouched, as is everything below: parameters and the like
        self._casts: dict[tuple[int, str], RelayExpr] = {}

    def run(self, func: Function, keep_output: bool) -> Function:
        for node in post_order(func.body, is_opaque=is_closed):
            new = self._new[id(node)] = keep_span(node, self._rewrite(node))
            if new is node and all([id(o) in self._plain for o in _below(node)]):
                self._plain.add(id(node))
        body = self._restored(func.body) if keep_output else self._new[id(func.body)]
        return func if body is func.body else func.replace(body=body, ret_type=None)

    def _rewrite(self, node: RelayExpr) -> RelayExpr:
        if is_operator_call(node):
            return self._call(node)
        if isinstance(node, (Tuple, TupleGetItem)):
            return with_operands(node, [self._new.get(id(o), o) for o in operands(node)])
        below = () if is_closed(node) else operands(node)
        return with_operands(node, [self._restored(o) for o in below]) if below else node

    def _call(self, call: Call) -> RelayExpr:
        rule = self._rule(call)
        kind = rule.kind
        if kind is Precision.FOLLOW:
            kind = Precision.ALWAYS if self._follows(call) else Precision.KEEP_FLOAT32
        if kind is Precision.KEEP_FLOAT32:
            return with_operands(call, [call.op, *[self._restored(a) for a in call.args]])
        args = [self._as_narrow(self._new[id(a)]) for a in call.args]
        new = with_operands(call, [call.op, *args])
        assert isinstance(new, Call)
        if new is call:
            return call
        if (
            new.attrs is not None
            and "out_dtype" in new.attrs
            and tensor_type_of(call).dtype == _WIDE
        ):
            new = new.replace(attrs=new.attrs.replace(out_dtype=rule.accumulate))
            return self._cast(new, rule.result)
        return new

    def _rule(self, call: Call) -> _Rule:
        precision = call.operator.precision
        if isinstance(precision, Precision):
            return _Rule(precision, _WIDE, self.narrow)
        if precision is None:
            if self.missing_op_mode == 0:
                raise OpNotImplemented(
                    f"ToMixedPrecision requires the precision of {call.operator.name}",
                    hint="register it: relay.op.register_mixed_precision_conversion",
                )
            self.missing[call.operator.name] = None
            return _Rule(Precision.KEEP_FLOAT32, _WIDE, self.narrow)
        kind, accumulate, result = precision(call, self.narrow)
        return _Rule(_KINDS[int(kind)], str(accumulate), str(result))

    def _follows(self, call: Call) -> bool:
        """Whether a value is narrow, and the others are narrow or parameters."""
        if call.attrs is not None and "dtype" in call.attrs:
            return False  # the result's type is given
        found = False
        for old in tensors_of(call):
            new = self._new[id(old)]
            dtypes = dtypes_of(infer_type_of(new))
            if self.narrow in dtypes:
                found = True
            elif _WIDE in dtypes and id(old) not in self._plain:
                return False
        return found

    def _as_narrow(self, expr: RelayExpr) -> RelayExpr:
        return self._converted(expr, _WIDE, self.narrow)

    def _restored(self, old: RelayExpr) -> RelayExpr:
        """The new value of an expression in the types it had."""
        new = self._new.get(id(old), old)
        return new if new is old else self._converted(new, self.narrow, _WIDE, infer_type_of(old))

    def _converted(
        self, expr: RelayExpr, before: str, after: str, had: Type | None = None
    ) -> RelayExpr:
        """`expr` with its tensors of one dtype in another, if that is the one they had."""
        if isinstance(expr, (Op, Function)):
            return expr
        ty = infer_type_of(expr)
        if isinstance(ty, TupleType):
            if before not in dtypes_of(ty):
                return expr
            count = len(ty.fields)
            parts = expr.fields if isinstance(expr, Tuple) else None
            types = had.fields if isinstance(had, TupleType) else [None] * count
            items = parts or [TupleGetItem(expr, i) for i in range(count)]
            pairs = zip(items, types, strict=True)
            fields = [self._converted(item, before, after, t) for item, t in pairs]
            if parts and all([new is old for new, old in zip(fields, parts, strict=True)]):
                return expr
            return Tuple(fields)
        if not isinstance(ty, TensorType) or ty.dtype != before:
            return expr
        if had is not None and getattr(had, "dtype", None) != after:
            return expr
        return self._cast(expr, after)

    def _cast(self, expr: RelayExpr, dtype: str) -> RelayExpr:
        if tensor_type_of(expr).dtype == dtype:
            return expr
        key = (id(expr), dtype)
        if key not in self._casts:
            self._casts[key] = with_free_rounding(ops.cast(expr, dtype=dtype))
            if dtype == _WIDE:  # back again: what there was
                self._casts[(id(self._casts[key]), self.narrow)] = expr
        return self._casts[key]


def _below(node: RelayExpr) -> list[RelayExpr]:
    return [o for o in operands(node) if not isinstance(o, (Op, Function))]


def ToMixedPrecision(mixed_precision_type: str = "float16", missing_op_mode: int = 1) -> Pass:
    """The pass.

    Parameters
    ----------
    mixed_precision_type : the narrow type, float16 or bfloat16.
    missing_op_mode : what to do about operators without a `precision` facet: 0 reject, 1 keep
        them in float32 and warn, 2 keep them and be silent.
    """
    if mixed_precision_type not in ("float16", "bfloat16"):
        raise TVMError(
            f"ToMixedPrecision requires float16 or bfloat16, got {mixed_precision_type!r}"
        )
    if missing_op_mode not in (0, 1, 2):
        raise TVMError(
            f"ToMixedPrecision requires missing_op_mode 0, 1 or 2, got {missing_op_mode}"
        )

    def run(func: Function, _: IRModule, context: PassContext) -> Function:
        if is_primitive(func):
            return func
        mixer = _Mixer(mixed_precision_type, missing_op_mode)
        result = mixer.run(func, bool(context.config.get(KEEP_OUTPUT, False)))
        if mixer.missing and missing_op_mode == 1:
            warnings.warn(f"ToMixedPrecision leaves {', '.join(mixer.missing)} in float32")
        return result

    return FunctionPass(run, PassInfo(0, "ToMixedPrecision"))
