"""Mark what is to be quantised: the inputs and weights of layers, and what is added to their sums.

    nn.conv2d(%x, %w)  ->  nn.conv2d(simulated_quantize(%x, ..), simulated_quantize(%w, ..))

A rule gets a call, its new arguments and a context; those that carry a kind are `QAnnotateExpr`.
It returns another one, or None to leave the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.node import leaf, reference
from tvm.ir.op import Op
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.relay.expr import Call, Constant, TempExpr
from tvm.relay.function import Function
from tvm.relay.op.registry import ops
from tvm.relay.quantize.config import QAnnotateKind
from tvm.relay.quantize.context import QuantizeContext, current_context, quantize_context
from tvm.relay.quantize.simulate import attach_input, attach_simulated_quantize
from tvm.relay.transform.common import FunctionPass
from tvm.relay.traverse import rewrite_function
from tvm.support.docstrings import described_by
from tvm.support.signatures import take_names

Rewrite = Callable[[Call, list[Any], Any], Any]
INPUT, WEIGHT, ACTIVATION = QAnnotateKind.INPUT, QAnnotateKind.WEIGHT, QAnnotateKind.ACTIVATION
ANNOTATE_RULE = "FQAnnotateRewrite"


class MarkedExpr(TempExpr):
    """An expression that later rules know something about; walks see it as one node."""

    expr: RelayExpr = reference()


class QAnnotateExpr(MarkedExpr):
    """An expression and what it is in its layer."""

    kind: QAnnotateKind = leaf()

    def realize(self) -> RelayExpr:
        """The expression."""
        return self.expr


def rule_registry(attribute: str) -> Callable[[Callable[[], None]], Callable[..., Any]]:
    """A function that registers rules, under the name and the docstring of the decorated one."""

    def register_rule(op_name: str, frewrite: Rewrite | None = None, level: int = 10) -> Any:
        def register(rule: Rewrite) -> Rewrite:
            Op.get(op_name).set_attr(attribute, rule, level)
            return rule

        return register if frewrite is None else register(frewrite)

    return lambda named: described_by(_registration)(take_names(register_rule, named))


def _registration(op_name: str, frewrite: Rewrite | None = None, level: int = 10) -> None:
    """What is registered.

    Parameters
    ----------
    op_name : str
        The operator's name.
    frewrite : function, optional
        The rule; without it this is a decorator.
    level : int
        Of several rules that of the highest level holds.
    """


@rule_registry(ANNOTATE_RULE)
def register_annotate_function() -> None:
    """Register a rule for an operator: `f(ref_call, new_args, ctx)`, or None to leave the call."""


def kind_of(value: Any) -> tuple[RelayExpr, QAnnotateKind | None]:
    """An argument's expression and its kind, if it has one."""
    return (value.expr, value.kind) if isinstance(value, QAnnotateExpr) else (value, None)


def _with_arguments(call: Call, args: Sequence[RelayExpr]) -> Call:
    return call.replace(args=tuple(args))


def _as_input(value: RelayExpr, kind: QAnnotateKind | None) -> RelayExpr:
    return value if kind is INPUT else attach_input(value)


def _layer(ref_call: Call, new_args: list[Any], ctx: Any) -> Any:
    """A product of data and a weight; its sums are wider than 8 bits."""
    if quantize_context().check_to_skip(ref_call) or not _is_float(ref_call):
        return None
    data = _as_input(*kind_of(new_args[0]))
    weight, kind = kind_of(new_args[1])
    if kind is not None or not isinstance(weight, Constant):
        return None
    kernel = attach_simulated_quantize(weight, WEIGHT)
    return QAnnotateExpr(_with_arguments(ref_call, (data, kernel)), ACTIVATION)


def _is_float(call: Call) -> bool:
    return all([arg.checked_type.dtype == "float32" for arg in call.args])


conv2d_rewrite = conv2d_nchwc_rewrite = dense_rewrite = _layer


def batch_matmul_rewrite(ref_call: Call, new_args: list[Any], ctx: Any) -> Any:
    """A product of two values of the run, or of one and a weight."""
    if quantize_context().check_to_skip(ref_call) or not _is_float(ref_call):
        return None
    sides = [
        attach_simulated_quantize(value, WEIGHT)
        if isinstance(value, Constant)
        else _as_input(value, kind)
        for value, kind in map(kind_of, new_args)
    ]
    return QAnnotateExpr(_with_arguments(ref_call, sides), ACTIVATION)


def multiply_rewrite(ref_call: Call, new_args: list[Any], ctx: Any) -> Any:
    """A product by element of something quantised."""
    (left, a), (right, b) = map(kind_of, new_args)
    if (a is None and b is None) or quantize_context().check_to_skip(ref_call):
        return None
    sides = [
        attach_simulated_quantize(value, WEIGHT)
        if isinstance(value, Constant)
        else _as_input(value, kind)
        for value, kind in ((left, a), (right, b))
    ]
    return QAnnotateExpr(_with_arguments(ref_call, sides), ACTIVATION)


def add_rewrite(ref_call: Call, new_args: list[Any], ctx: Any) -> Any:
    """A sum with something quantised: constants keep the precision of sums."""
    (left, a), (right, b) = map(kind_of, new_args)
    if (a is None and b is None) or quantize_context().check_to_skip(ref_call):
        return None
    sides = [
        value if kind is not None or isinstance(value, Constant) else attach_input(value)
        for value, kind in ((left, a), (right, b))
    ]
    return QAnnotateExpr(_with_arguments(ref_call, sides), ACTIVATION)


def identity_rewrite(ref_call: Call, new_args: list[Any], ctx: Any) -> Any:
    """What moves or bounds elements keeps their kind."""
    value, kind = kind_of(new_args[0])
    if kind is None or quantize_context().check_to_skip(ref_call):
        return None
    rest = [kind_of(arg)[0] for arg in new_args[1:]]
    return QAnnotateExpr(_with_arguments(ref_call, (value, *rest)), kind)


def pool2d_rewrite(ref_call: Call, new_args: list[Any], ctx: Any) -> Any:
    """A pooling works on 8 bits."""
    value, kind = kind_of(new_args[0])
    if kind is None or quantize_context().check_to_skip(ref_call):
        return None
    return QAnnotateExpr(_with_arguments(ref_call, (_as_input(value, kind),)), INPUT)


pool1d_rewrite = pool2d_rewrite


def cast_hint_rewrite(ref_call: Call, new_args: list[Any], ctx: Any) -> Any:
    """Where `partition` cuts, values are of 8 bits."""
    value, kind = kind_of(new_args[0])
    if kind is None:
        return value
    return QAnnotateExpr(_with_arguments(ref_call, (_as_input(value, kind),)), INPUT)


def concatenate_rewrite(ref_call: Call, new_args: list[Any], ctx: Any) -> Any:
    """Joined values are of 8 bits each, if one of them is quantised."""
    whole = new_args[0]
    fields = [kind_of(field) for field in getattr(ctx, "fields_of", lambda t: ())(whole)]
    if not any([kind is not None for _, kind in fields]):
        return None
    if quantize_context().check_to_skip(ref_call):
        return None
    parts = [_as_input(value, kind) for value, kind in fields]
    return QAnnotateExpr(_with_arguments(ref_call, (whole.replace(fields=tuple(parts)),)), INPUT)


def global_avg_pool2d_rewrite(ref_call: Call, new_args: list[Any], ctx: Any) -> Any:
    """Means are taken of real numbers."""
    return None


_RULES: dict[Op, Rewrite] = {
    **dict.fromkeys((ops.nn.conv2d, ops.nn.contrib_conv2d_NCHWc, ops.nn.dense), _layer),
    ops.nn.batch_matmul: batch_matmul_rewrite,
    ops.multiply: multiply_rewrite,
    **dict.fromkeys((ops.add, ops.nn.bias_add), add_rewrite),
    **dict.fromkeys(
        (ops.clip, ops.nn.relu, ops.strided_slice, ops.nn.batch_flatten, ops.transpose,
         ops.reshape, ops.annotation.stop_fusion),
        identity_rewrite,
    ),
    **dict.fromkeys((ops.nn.max_pool2d, ops.nn.max_pool1d), pool2d_rewrite),
    ops.annotation.cast_hint: cast_hint_rewrite,
    ops.concatenate: concatenate_rewrite,
    ops.nn.global_avg_pool2d: global_avg_pool2d_rewrite,
}  # fmt: skip


class Annotator:
    """Rewrites one function forwards; what carries a mark is known by its expression."""

    def __init__(self, mark: str, rules: dict[Op, Rewrite], realizes: bool) -> None:
        self.mark = mark
        self.rules = rules
        # annotations leave something where a call without a rule takes them
        self.realizes = realizes
        self._marked: dict[int, tuple[RelayExpr, TempExpr]] = {}

    def fields_of(self, whole: Any) -> list[Any]:
        """The fields of a tuple, annotated ones with their annotations."""
        return [self.marked(field) for field in getattr(whole, "fields", ())]

    def marked(self, value: RelayExpr) -> Any:
        found = self._marked.get(id(value))
        return value if found is None else found[1]

    def rewrite(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if not isinstance(new, Call) or not isinstance(new.op, Op) or not isinstance(old, Call):
            return new
        rule = new.op.get_attr(self.mark) or self.rules.get(new.op)
        args = [self.marked(arg) for arg in new.args]
        result = None if rule is None else rule(old, args, self)
        if result is None:
            return self._left(new, args)
        if isinstance(result, MarkedExpr):
            value = result.expr
            self._marked[id(value)] = (value, result)
            return value
        assert isinstance(result, RelayExpr)
        return result

    def _left(self, call: Call, args: list[Any]) -> Call:
        if not self.realizes or not any([isinstance(arg, TempExpr) for arg in args]):
            return call
        made = [arg.realize() if isinstance(arg, TempExpr) else arg for arg in args]
        return call.replace(args=tuple(made))


def annotate() -> Pass:
    """Mark what is to be quantised, by the options of `qconfig`."""

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        annotator = Annotator(ANNOTATE_RULE, _RULES, realizes=False)
        if current_context() is not None:
            return rewrite_function(func, annotator.rewrite).replace(ret_type=None)
        with QuantizeContext():
            return rewrite_function(func, annotator.rewrite).replace(ret_type=None)

    return FunctionPass(run, PassInfo(1, "QuantizeAnnotate"))
