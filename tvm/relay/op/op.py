"""Looking up operators and adding facets to them, under the classic names.

The package itself declares operators with `define_op`; these functions are for users.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm._ffi import register_func
from tvm.error import TVMError
from tvm.ir.op import Op, has_op, register_op, register_op_attr
from tvm.ir.type import Type
from tvm.support.docstrings import described_by

from .binary import broadcast_type
from .hints import debug
from .registry import OpPattern as _Pattern
from .schedules import REDUCTION_SCHEDULES
from .strategy import OpImplementation, OpSpecialization, OpStrategy

__all__ = [
    "OpImplementation", "OpPattern", "OpSpecialization", "OpStrategy", "debug", "get", "register",
    "register_alter_op_layout", "register_broadcast_schedule", "register_compute",
    "register_convert_op_layout", "register_external_compiler", "register_fake_quantization_to_integer", "register_gradient",
    "register_infer_correct_layout", "register_optional_fake_quantization_to_integer",
    "register_injective_schedule", "register_legalize", "register_mixed_precision_conversion",
    "register_pattern", "register_reduce_schedule", "register_schedule", "register_shape_func", "register_stateful",
    "register_strategy",
]  # fmt: skip

INTEGER_RULE = "FTVMFakeQuantizationToInteger"
OPTIONAL_INTEGER_RULE = "FTVMOptionalFakeQuantizationToInteger"


class OpPattern:
    """Fusion patterns under their classic names."""

    ELEMWISE = _Pattern.ELEMWISE
    BROADCAST = _Pattern.BROADCAST
    INJECTIVE = _Pattern.INJECTIVE
    COMM_REDUCE = _Pattern.COMM_REDUCE
    OUT_ELEMWISE_FUSABLE = _Pattern.OUT_ELEMWISE_FUSABLE
    TUPLE = _Pattern.TUPLE
    OPAQUE = _Pattern.OPAQUE


@register_func("tvm.relay.type_relation.Identity", override=True)
def identity_relation(arg_types: Sequence[Type], attrs: Any) -> Type:
    """The result has the type of the first argument."""
    return arg_types[0]


@register_func("tvm.relay.type_relation.Broadcast", override=True)
def broadcast_relation(arg_types: Sequence[Type], attrs: Any) -> Type:
    """Two arguments are broadcast to the result."""
    return broadcast_type("the type relation Broadcast")(attrs, arg_types)


@register_func("tvm.relay.type_relation.BroadcastComp", override=True)
def broadcast_comparison_relation(arg_types: Sequence[Type], attrs: Any) -> Type:
    """The same with a result of truth values."""
    return broadcast_type("the type relation BroadcastComp", "bool")(attrs, arg_types)


def get(op_name: str) -> Op:
    """The operator of that name."""
    return Op.get(op_name)


def register(op_name: str, describe: str = "") -> Op:
    """Make an operator known by name; its facets are registered one by one.

    Parameters
    ----------
    op_name : str
        Such as ``"my.cubed"``.
    describe : str
        A sentence about it.

    Raises
    ------
    TVMError
        If there is an operator of that name.
    """
    if has_op(op_name):
        raise TVMError(
            f"Operator {op_name} is registered before", hint=f'relay.op.get("{op_name}") gives it'
        )
    return register_op(op_name).set_facets(description=describe)


@described_by(register_op_attr)
def register_compute(op_name: str, compute: Any = None, level: int = 10) -> Any:
    """Set how an operator is computed.

    Parameters
    ----------
    compute : callable, optional
        ``compute(attrs, inputs, out_type)`` gives the list of result tensors of te.
        Left out, this is a decorator.
    """
    return register_op_attr(op_name, "compute", compute, level)


@described_by(register_op_attr)
def register_alter_op_layout(op_name: str, alter_layout: Any = None, level: int = 10) -> Any:
    """Set how an operator is replaced by one in a better layout.

    Parameters
    ----------
    alter_layout : callable, optional
        ``alter_layout(attrs, inputs, tinfos, out_type)`` gives the new expression, or None. ``tinfos``
        are placeholders of the arguments. Where the expression names other layouts than the old call
        did, the pass puts transforms around it.
        Left out, this is a decorator.
    """
    return register_op_attr(op_name, "alter_layout", alter_layout, level)


@described_by(register_op_attr)
def register_infer_correct_layout(op_name: str, infer_layout: Any = None, level: int = 10) -> Any:
    """Set how layouts spread through an operator.

    Parameters
    ----------
    infer_layout : callable, optional
        ``infer_layout(attrs, new_in_layouts, old_in_layouts, old_in_types)`` gives an
        `InferCorrectLayoutOutput`.
        Left out, this is a decorator.
    """
    return register_op_attr(op_name, "FInferCorrectLayout", infer_layout, level)


@described_by(register_op_attr)
def register_convert_op_layout(op_name: str, convert_layout: Any = None, level: int = 10) -> Any:
    """Set how an operator is converted to a wanted layout.

    Parameters
    ----------
    convert_layout : callable, optional
        ``convert_layout(attrs, inputs, tinfos, desired_layouts)`` gives the new call, or None. Where it
        names other layouts than the old call did, the pass puts transforms around it.
        Left out, this is a decorator.
    """
    return register_op_attr(op_name, "FTVMConvertOpLayout", convert_layout, level)


@described_by(register_op_attr)
def register_legalize(op_name: str, legal_op: Any = None, level: int = 10) -> Any:
    """Set how an operator is replaced where a target does not have it.

    Parameters
    ----------
    legal_op : callable, optional
        ``legal_op(attrs, inputs, types)`` gives another expression, or None to keep the call. ``types``
        are those of the arguments and of the result.
        Left out, this is a decorator.
    """
    return register_op_attr(op_name, "legalize", legal_op, level)


@described_by(register_op_attr)
def register_strategy(op_name: str, fstrategy: Any = None, level: int = 10) -> Any:
    """Set the choice among implementations.

    Parameters
    ----------
    fstrategy : callable, optional
        ``fstrategy(attrs, inputs, out_type, target)`` gives an `OpStrategy`.
        Left out, this is a decorator.
    """
    return register_op_attr(op_name, "strategy", fstrategy, level)


@described_by(register_op_attr)
def register_gradient(op_name: str, fgradient: Any = None, level: int = 10) -> Any:
    """Set the gradient.

    Parameters
    ----------
    fgradient : callable, optional
        ``fgradient(call, grad)`` gives the gradients of the arguments, one each, from the gradient of
        the result, which has the result's type.
        Left out, this is a decorator.
    """
    return register_op_attr(op_name, "gradient", fgradient, level)


@described_by(register_op_attr)
def register_fake_quantization_to_integer(op_name: str, func: Any = None, level: int = 10) -> Any:
    """Set how an operator between dequantize and quantize becomes one on integers.

    Parameters
    ----------
    func : callable, optional
        ``func(call, types)`` gives the expression and its affine type. ``types`` has the
        `tvm.ir.TensorAffineType` of each argument.
        Left out, this is a decorator.
    """
    return register_op_attr(op_name, INTEGER_RULE, func, level)


@described_by(register_op_attr)
def register_optional_fake_quantization_to_integer(
    op_name: str, func: Any = None, level: int = 10
) -> Any:
    """Set the same for `FakeQuantizationToInteger(optional_qnn_ops=[op_name])` alone.

    Parameters
    ----------
    func : callable, optional
        As of `register_fake_quantization_to_integer`.
    """
    return register_op_attr(op_name, OPTIONAL_INTEGER_RULE, func, level)


@described_by(register_op_attr)
def register_mixed_precision_conversion(op_name: str, func: Any = None, level: int = 10) -> Any:
    """Set what mixed precision may do with an operator.

    Parameters
    ----------
    func : callable, optional
        ``func(call, dtype)`` gives the category (0 always narrow, 1 as its arguments, 2 never), the dtype
        of the sums and that of the result.
        Left out, this is a decorator.
    """
    return register_op_attr(op_name, "precision", func, level)


@described_by(register_op_attr)
def register_shape_func(
    op_name: str, data_dependent: bool | Sequence[bool], shape_func: Any = None, level: int = 10
) -> Any:
    """Set the function that computes the result's shape at run time.

    Parameters
    ----------
    data_dependent : bool or list of bool
        Whether it reads the values of the arguments, or their shapes; for all, or for each.
    shape_func : callable, optional
        ``shape_func(attrs, inputs, out_ndims)`` gives a vector of int64 for each result.
        Left out, this is a decorator.
    """
    register_op_attr(op_name, "TShapeDataDependent", data_dependent, level)
    return register_op_attr(op_name, "shape_func", shape_func, level)


@described_by(register_op_attr)
def register_pattern(op_name: str, pattern: int, level: int = 10) -> None:
    """Set how an operator fuses.

    Parameters
    ----------
    pattern : OpPattern or int
        From ELEMWISE, which fuses with all, to OPAQUE, which is a kernel of its own.
    """
    register_op_attr(op_name, "fuse", _Pattern(pattern), level)


@described_by(register_op_attr)
def register_stateful(op_name: str, stateful: bool, level: int = 10) -> None:
    """Say whether an operator has effects beyond its result.

    Parameters
    ----------
    stateful : bool
        If so, no pass drops, merges or moves its calls.
    """
    register_op_attr(op_name, "TOpIsStateful", stateful, level)


@described_by(register_op_attr)
def register_schedule(
    op_name: str, schedule: Callable[..., Any] | None = None, level: int = 10
) -> Any:
    """Set the generic schedule.

    Parameters
    ----------
    schedule : callable, optional
        ``schedule(attrs, outs, target)`` gives a te schedule.
        Left out, this is a decorator.
    """

    def register_one(function: Callable[..., Any]) -> Callable[..., Any]:
        op = register_op(op_name)
        op.set_attr("schedules", {**(op.schedules or {}), "generic": function}, level)
        return function

    return register_one if schedule is None else register_one(schedule)


@described_by(register_op_attr)
def register_injective_schedule(op_name: str, level: int = 10) -> None:
    """Schedule an operator as an injective one."""
    register_op(op_name).set_attr("schedules", {}, level)


register_broadcast_schedule = register_injective_schedule


@described_by(register_op_attr)
def register_reduce_schedule(op_name: str, level: int = 10) -> None:
    """Schedule an operator as a reduction."""
    register_op(op_name).set_attr("schedules", dict(REDUCTION_SCHEDULES), level)


@described_by(register_op_attr)
def register_external_compiler(op_name: str, fexternal: Any = None, level: int = 10) -> Any:
    """Set the function that compiles an operator outside.

    Parameters
    ----------
    fexternal : callable, optional
        For code generators of users, which read it as ``op.get_attr("FTVMExternalCompiler")``.
        Left out, this is a decorator.
    """
    return register_op_attr(op_name, "FTVMExternalCompiler", fexternal, level)
