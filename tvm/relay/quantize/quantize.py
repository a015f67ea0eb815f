"""Networks in 8 bits.

    with relay.quantize.qconfig(calibrate_mode="max", skip_conv_layers=None):
        mod = relay.quantize.quantize(mod, params, dataset=[{"data": array}, ...])

The steps are passes: `annotate` annotates what is to be quantised, `calibrate` finds its ranges, and
`realize` writes it, and what lies between, in integers; `partition` before them stores what leaves
a layer in 8 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext, Sequential
from tvm.relay.expr import Call
from tvm.relay.program import bind_params_by_name
from tvm.relay.quantize.annotate import annotate
from tvm.relay.quantize.calibrate import calibrate
from tvm.relay.quantize.config import QAnnotateKind, QConfig, current_qconfig, kind2str, qconfig
from tvm.relay.quantize.context import QuantizeContext, quantize_context
from tvm.relay.quantize.partition import partition
from tvm.relay.quantize.partition_conversions import partition_conversions
from tvm.relay.quantize.realize import as_pairs, realize
from tvm.relay.transform import (
    CanonicalizeOps,
    FoldConstant,
    FoldScaleAxis,
    InferType,
    SimplifyInference,
)

__all__ = [
    "QAnnotateKind",
    "QConfig",
    "QuantizeContext",
    "annotate",
    "calibrate",
    "current_qconfig",
    "kind2str",
    "partition",
    "prerequisite_optimize",
    "qconfig",
    "quantize",
    "quantize_context",
    "realize",
]


def prerequisite_optimize(mod: IRModule, params: Mapping[str, Any] | None = None) -> IRModule:
    """The module with constants for its parameters, and without operators of training.

    Parameters
    ----------
    mod : IRModule
        The network.
    params : dict of str to NDArray, optional
        Values of the parameters of `main`.
    """
    if params:
        mod = mod.clone()
        mod["main"] = bind_params_by_name(mod["main"], params)
    passes = [
        InferType(),
        SimplifyInference(),
        FoldConstant(),
        FoldScaleAxis(),
        CanonicalizeOps(),
        FoldConstant(),
    ]
    with PassContext(opt_level=3):
        return Sequential(passes)(mod)


def quantize(
    mod: IRModule,
    params: Mapping[str, Any] | None = None,
    dataset: Iterable[Mapping[str, Any]] | None = None,
) -> IRModule:
    """The module with layers on integers, by the options of `qconfig`.

    Parameters
    ----------
    mod : a network; the weights of its layers must be parameters with values, or constants.
    params : values of parameters.
    dataset : inputs by name, for ranges that depend on them.
    """
    config = current_qconfig()
    mod = prerequisite_optimize(mod, params)
    with QuantizeContext():
        mod = calibrate(dataset)(annotate()(mod), None)
    if config.do_simulation:
        return as_pairs()(mod)
    result = realize()(mod)
    if config.partition_conversions == "disabled":
        return result
    dtypes = {config.dtype_input, config.dtype_weight, config.dtype_activation}
    return partition_conversions(result, dtypes, config.partition_conversions == "fully_integral")


def _forward_op(ref_call: Call, args: Sequence[RelayExpr]) -> Call:
    """The call with other arguments, as rules of programs make it."""
    return ref_call.replace(args=tuple(args))
