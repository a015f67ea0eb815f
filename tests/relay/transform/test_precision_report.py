"""What the report tells of quantised and of narrow programs."""

from __future__ import annotations

import numpy as np

import tvm
from tvm import relay
from tvm.relay.transform import PrecisionReport, ToMixedPrecision, precision_report

NEW, OLD = "llvm -mcpu=cooperlake", "llvm -mcpu=nehalem"


def pair(x: relay.Expr) -> relay.Expr:
    scale, zero = relay.const(np.float32(0.1)), relay.const(3)
    q = relay.qnn.op.quantize(x, scale, zero, out_dtype="uint8")
    return relay.qnn.op.dequantize(q, scale, zero)


def weight(*shape: int) -> relay.Expr:
    values = relay.const(np.ones(shape, "int8"))
    return relay.qnn.op.dequantize(values, relay.const(np.float32(0.1)), relay.const(0))


def quantised_program() -> tvm.IRModule:
    x = relay.var("x", shape=(1, 16, 8, 8))
    y = relay.nn.conv2d(pair(x), weight(32, 16, 3, 3), kernel_size=(3, 3), channels=32)
    y = relay.nn.max_pool2d(pair(relay.nn.relu(y)), (2, 2))
    y = relay.nn.conv2d(pair(y), weight(32, 1, 1, 1), groups=32, kernel_size=(1, 1), channels=32)
    return tvm.IRModule.from_expr(relay.Function([x], relay.nn.softmax(y)))


def told(report: PrecisionReport) -> dict[str, tuple[str, str]]:
    return {f"{row.operator} {i}": (row.dtype, row.reason) for i, row in enumerate(report)}


def test_products_of_quantised_tensors_run_in_int8() -> None:
    assert told(precision_report(quantised_program(), NEW)) == {
        "nn.conv2d 0": ("int8", ""),
        "nn.relu 1": ("float32", "element-wise: it runs on the sums in registers"),
        "nn.max_pool2d 2": ("int8", ""),
        "nn.conv2d 3": ("int8", ""),
        "nn.softmax 4": ("float32", "it loses accuracy in a narrow type"),
    }


def test_a_processor_without_the_instructions_is_named_as_the_reason() -> None:
    report = precision_report(quantised_program(), OLD)
    assert report.rows[0].reason == "the processor has no dot products of 8-bit numbers"


def narrow_program() -> tvm.IRModule:
    x, w = relay.var("x", shape=(4, 32)), relay.var("w", shape=(16, 32))
    body = relay.nn.softmax(relay.nn.relu(relay.nn.dense(x, w)))
    mod = tvm.IRModule.from_expr(relay.Function([x, w], body))
    return ToMixedPrecision("bfloat16")(relay.transform.InferType()(mod))


def test_mixed_precision_is_reported() -> None:
    report = precision_report(narrow_program(), NEW)
    assert told(report) == {
        "nn.dense 0": ("bfloat16", ""),
        "nn.relu 1": ("bfloat16", ""),
        "nn.softmax 2": ("float32", "it loses accuracy in a narrow type"),
    }
    assert [row.operator for row in report.stayed] == ["nn.softmax"]


def test_narrow_products_without_an_instruction_are_told() -> None:
    report = precision_report(narrow_program(), OLD)
    wanted = "multiplied in float32: the processor has no dot products of bfloat16"
    assert report.rows[0].reason == wanted


def test_plain_programs_stay() -> None:
    x = relay.var("x", shape=(4, 32))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    report = precision_report(mod, NEW)
    assert str(report) == "    1 nn.relu  float32   its inputs are float32"


def test_parameters_are_taken_for_constants() -> None:
    shapes = {"x": (1, 32, 4, 4), "w": (16, 32, 1, 1)}
    x, w = relay.var("x", shape=shapes["x"]), relay.var("w", shape=shapes["w"], dtype="int8")
    real = relay.qnn.op.dequantize(w, relay.const(np.float32(0.1)), relay.const(0))
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.conv2d(pair(x), real)))
    values = {"w": np.ones(shapes["w"], "int8")}
    assert precision_report(mod, NEW).rows[0].reason == "the weight is not a constant"
    assert precision_report(mod, NEW, values).rows[0].dtype == "int8"
