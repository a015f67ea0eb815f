"""Networks in 8 bits.

    with relay.quantize.qconfig(calibrate_mode="max", skip_conv_layers=None):
        mod = relay.quantize.quantize(mod, params, dataset=[{"data": array}, ...])

The inputs and weights of convolutions and dense layers are quantised and dequantised; what lies
between is then computed with integers (`FakeQuantizationToInteger`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext, Sequential
from tvm.relay.backend.program import bind_params_by_name
from tvm.relay.expr import Call, Constant, const
from tvm.relay.function import Function
from tvm.relay.qnn.op.qnn import dequantize
from tvm.relay.qnn.op.qnn import quantize as quantize_op
from tvm.relay.qnn.op.requantize import REQUANTIZE
from tvm.relay.quantize.calibrate import (
    Thresholds,
    collect_inputs,
    input_threshold,
    weight_threshold,
)
from tvm.relay.quantize.config import (
    QAnnotateKind,
    QConfig,
    current_qconfig,
)
from tvm.relay.quantize.partition_conversions import partition_conversions
from tvm.relay.transform import (
    CanonicalizeOps,
    FakeQuantizationToInteger,
    FoldConstant,
    FoldScaleAxis,
    InferType,
    SimplifyInference,
)
from tvm.relay.transform.operators import CONV2D, DENSE, calls
from tvm.relay.traverse import post_order, rewrite_function


def prerequisite_optimize(mod: IRModule, params: Mapping[str, Any] | None = None) -> IRModule:
    """The module with constants for its parameters, and without operators of training."""
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
    main = mod["main"]
    layers = _layers(main, config)
    thresholds = _thresholds(main, layers, config, dataset)
    result = mod.clone()
    result["main"] = _quantized(main, layers, thresholds, config)
    result = InferType()(result)
    if config.do_simulation:
        return result
    result = _rounded(FakeQuantizationToInteger()(result), config)
    if config.partition_conversions == "disabled":
        return result
    dtypes = {config.dtype_input, config.dtype_weight, config.dtype_activation}
    return partition_conversions(result, dtypes, config.partition_conversions == "fully_integral")


def _rounded(mod: IRModule, config: QConfig) -> IRModule:
    """The module with the rounding of the options where values are scaled."""
    if config.rounding == "UPWARD":
        return mod

    def rewrite(old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if not calls(new, REQUANTIZE):
            return new
        return new.replace(attrs=new.attrs.replace(rounding=config.rounding))

    result = mod.clone()
    result["main"] = rewrite_function(mod["main"], rewrite)
    return InferType()(result)


def _layers(func: Function, config: QConfig) -> list[Call]:
    """The layers to quantise, in order."""
    skipped = set(config.skip_conv_layers or ())
    found: list[Call] = []
    convolutions = 0
    for node in post_order(func):
        is_conv = calls(node, CONV2D)
        if not isinstance(node, Call) or not (is_conv or calls(node, DENSE)):
            continue
        is_wanted = not config.skip_dense_layer
        if is_conv:
            is_wanted = convolutions not in skipped
            convolutions += 1
        is_wanted = is_wanted and config.guard(node)
        if is_wanted and isinstance(node.args[1], Constant) and _is_float(node):
            found.append(node)
    return found


def _is_float(call: Call) -> bool:
    return all([arg.checked_type.dtype == "float32" for arg in call.args])


def _thresholds(
    func: Function,
    layers: list[Call],
    config: QConfig,
    dataset: Iterable[Mapping[str, Any]] | None,
) -> Thresholds:
    inputs = {id(layer.args[0]): layer.args[0] for layer in layers}
    if config.calibrate_mode == "global_scale":
        return dict.fromkeys(inputs, config.global_scale)
    if dataset is None:
        raise TVMError(f'quantize requires a dataset for calibrate_mode="{config.calibrate_mode}"')
    values = list(inputs.values())
    samples = collect_inputs(func, values, dataset, config.calibrate_chunk_by)
    found = zip(values, samples, strict=True)
    return {id(value): input_threshold(array, config) for value, array in found}


def _quantized(
    func: Function, layers: list[Call], thresholds: Thresholds, config: QConfig
) -> Function:
    wanted = {id(layer) for layer in layers}
    made: dict[int, RelayExpr] = {}  # an input of several layers is quantised once

    def rewrite(old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if id(old) not in wanted or not isinstance(old, Call) or not isinstance(new, Call):
            return new
        data, weight = old.args
        assert isinstance(weight, Constant)
        if id(data) not in made:
            made[id(data)] = _simulated(
                new.args[0], thresholds[id(data)], QAnnotateKind.INPUT, config
            )
        threshold = weight_threshold(weight.data.numpy(), config.weight_scale)
        kernel = _simulated(weight, threshold, QAnnotateKind.WEIGHT, config)
        return new.replace(args=(made[id(data)], kernel))

    return rewrite_function(func, rewrite).replace(ret_type=None)


def _simulated(
    value: RelayExpr, threshold: float, kind: QAnnotateKind, config: QConfig
) -> RelayExpr:
    """The value rounded to its levels."""
    dtype, bits = config.get_dtype_by_kind(kind), config.get_nbit_by_kind(kind)
    is_signed = dtype == "int8"
    scale = const(np.float32(threshold / (2 ** (bits - 1) if is_signed else 2**bits - 1)))
    zero = const(0, "int32")
    whole = quantize_op(value, scale, zero, out_dtype=dtype)
    return dequantize(whole, scale, zero)
