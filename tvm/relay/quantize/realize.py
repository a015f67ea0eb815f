"""Write simulated quantisations, once their ranges are known, as integers.

    nn.conv2d(simulated_quantize(%x, s, ..), simulated_quantize(%w, t, ..))
->
    qnn.dequantize(qnn.conv2d(qnn.quantize(%x, s, 0), %w8, 0, 0, s, t), s * t, 0)
"""

from __future__ import annotations

import numpy as np

from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass, PassContext, PassInfo, Sequential
from tvm.relay.expr import Constant, const
from tvm.relay.function import Function
from tvm.relay.op.registry import ops
from tvm.relay.qnn.op.common import integer_range
from tvm.relay.qnn.op.products import PRODUCTS
from tvm.relay.qnn.op.qnn import dequantize, quantize
from tvm.relay.quantize.config import QAnnotateKind, current_qconfig
from tvm.relay.transform import FakeQuantizationToInteger
from tvm.relay.transform.common import FunctionPass
from tvm.relay.transform.fake_quantization_to_integer import TrainedConverter
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import rewrite_function


def as_pairs() -> Pass:
    """Simulated quantisations as a quantisation and its inverse."""

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        return rewrite_function(func, _as_pair).replace(ret_type=None)

    return FunctionPass(run, PassInfo(1, "QuantizePairs"))


def _as_pair(old: RelayExpr, new: RelayExpr) -> RelayExpr:
    if not calls(new, ops.relay.op.annotation.simulated_quantize):
        return new
    if new.attrs.kind == QAnnotateKind.IDENTITY:
        return new.args[0]
    numbers = [float(a.data.numpy()) for a in new.args[1:] if isinstance(a, Constant)]
    if len(numbers) < 3:
        raise TVMError(
            "realize requires ranges for what is quantised",
            at=new,
            hint="run relay.quantize.calibrate() before it",
        )
    scale, low, high = numbers
    dtype = current_qconfig().get_dtype_by_kind(QAnnotateKind(new.attrs.kind))
    step, zero = const(np.float32(scale)), const(0, "int32")
    whole = quantize(new.args[0], step, zero, out_dtype=dtype)
    if high < integer_range(dtype)[1]:
        whole = ops.clip(whole, a_min=low, a_max=high)
    return dequantize(whole, step, zero)


class _ProductConverter(TrainedConverter):
    """Products of dequantised tensors, also where no quantisation follows."""

    def rewrite(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        return (
            super().rewrite(old, new)
            if calls(new, ops.nn.conv2d, ops.nn.dense, ops.nn.batch_matmul)
            else new
        )


def _products() -> Pass:
    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        return rewrite_function(func, _ProductConverter(False, ()).rewrite)

    return FunctionPass(run, PassInfo(1, "QuantizeProducts"))


def _rounded() -> Pass:
    """The rounding of the options where values are scaled."""

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        config = current_qconfig()
        rounding = config.rounding if config.round_for_shift else "DOWN"
        if rounding == "UPWARD":
            return func

        def rewrite(old: RelayExpr, new: RelayExpr) -> RelayExpr:
            if not calls(new, ops.qnn.requantize):
                return new
            return new.replace(attrs=new.attrs.replace(rounding=rounding))

        return rewrite_function(func, rewrite)

    return FunctionPass(run, PassInfo(1, "QuantizeRounding"))


def _clipped() -> Pass:
    """Sums of products within the bits of the options."""

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        bits = current_qconfig().nbit_activation
        if bits == 32:
            return func

        def rewrite(old: RelayExpr, new: RelayExpr) -> RelayExpr:
            if not calls(new, *PRODUCTS):
                return new
            return ops.clip(new, a_min=-float(2 ** (bits - 1)), a_max=float(2 ** (bits - 1) - 1))

        return rewrite_function(func, rewrite)

    return FunctionPass(run, PassInfo(1, "QuantizeSums"))


def realize() -> Pass:
    """Simulated quantisations as integers, and what lies between them too."""

    return Sequential(
        [as_pairs(), FakeQuantizationToInteger(), _products(), _clipped(), _rounded()],
        opt_level=1,
        name="QuantizeRealize",
    )
