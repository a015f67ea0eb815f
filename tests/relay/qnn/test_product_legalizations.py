"""What `relay.qnn.transform.Legalize` makes of quantised products, by target."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay

ZERO_POINTS = (relay.const(7), relay.const(3))
AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512"
ARM = "llvm -device=arm_cpu -mtriple=aarch64-linux-gnu"
ARM_DOT = f"{ARM} -mattr=+v8.2a,+dotprod"


def _values(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.random.default_rng(len(shape)).integers(0, 100, shape).astype(dtype)


def _conv2d(
    data: str, weight: str, scale: relay.Expr, zero: relay.Expr
) -> tuple[relay.Function, list[np.ndarray]]:
    x, w = (
        relay.var("x", shape=(1, 6, 5, 5), dtype=data),
        relay.var("w", shape=(9, 6, 3, 3), dtype=weight),
    )
    one = relay.const(np.float32(1))
    y = relay.qnn.conv2d(x, w, ZERO_POINTS[0], zero, one, scale, (3, 3), 9)
    return relay.Function([x, w], y), [_values((1, 6, 5, 5), data), _values((9, 6, 3, 3), weight)]


def _dense(
    data: str, weight: str, scale: relay.Expr, zero: relay.Expr
) -> tuple[relay.Function, list[np.ndarray]]:
    x, w = relay.var("x", shape=(4, 6), dtype=data), relay.var("w", shape=(9, 6), dtype=weight)
    one = relay.const(np.float32(1))
    y = relay.qnn.dense(x, w, ZERO_POINTS[0], zero, one, scale, 9)
    return relay.Function([x, w], y), [_values((4, 6), data), _values((9, 6), weight)]


def _legal(func: relay.Function, target: str | tvm.target.Target) -> relay.Function:
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(func))
    with tvm.target.Target(target):
        return relay.qnn.transform.Legalize()(mod)["main"]


def _run(func: relay.Function, values: list[np.ndarray]) -> np.ndarray:
    mod = tvm.IRModule.from_expr(func)
    return relay.create_executor("graph", mod=mod).evaluate()(*values).numpy()


def _factors(func: relay.Function) -> tuple[str, list[str]]:
    """The product's operator and the dtypes of its factors."""
    found = []
    typed = relay.transform.InferType()(tvm.IRModule.from_expr(func))["main"]

    def visit(node: relay.Expr) -> None:
        if isinstance(node, relay.Call) and node.op.name.split(".")[-1] in ("conv2d", "dense"):
            found.append((node.op.name, [a.checked_type.dtype for a in node.args[:2]]))

    relay.analysis.post_order_visit(typed, visit)
    assert len(found) == 1
    return found[0]


PRODUCTS = {"conv2d": _conv2d, "dense": _dense}
SCALAR = (relay.const(np.float32(1)), ZERO_POINTS[1])


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize(
    ("target", "before", "quantized", "after"),
    [
        (AVX512, ("int8", "int8"), True, ["uint8", "int8"]),
        (AVX512, ("uint8", "uint8"), True, ["uint8", "int8"]),
        (AVX512, ("uint8", "int8"), True, ["uint8", "int8"]),
        ("llvm", ("uint8", "int8"), False, ["int16", "int16"]),
        (ARM_DOT, ("uint8", "int8"), True, ["uint8", "uint8"]),
        (ARM_DOT, ("int8", "int8"), True, ["int8", "int8"]),
        (ARM, ("int8", "int8"), False, ["int16", "int16"]),
        ("cuda", ("uint8", "int8"), True, ["int8", "int8"]),
    ],
)
def test_factors_get_what_the_target_multiplies(
    product: str, target: str, before: tuple[str, str], quantized: bool, after: list[str]
) -> None:
    func, values = PRODUCTS[product](*before, *SCALAR)
    legal = _legal(func, target)
    name, dtypes = _factors(legal)
    assert name.startswith("qnn.") == quantized
    assert dtypes == after
    np.testing.assert_array_equal(_run(legal, values), _run(func, values))


@pytest.mark.parametrize("product", PRODUCTS)
def test_channels_fill_the_vectors_of_hexagon(product: str) -> None:
    scale = relay.const(np.linspace(0.5, 1, 9).astype("float32"))
    zero = relay.const(np.arange(9, dtype="int32"))
    func, values = PRODUCTS[product]("uint8", "int8", scale, zero)
    legal = _legal(func, tvm.target.hexagon("v68"))
    assert "(32, " in str(relay.transform.InferType()(tvm.IRModule.from_expr(legal)))
    np.testing.assert_array_equal(_run(legal, values), _run(func, values))


def test_users_rewrite_products_for_targets_of_their_own() -> None:
    func, _ = _dense("uint8", "int8", *SCALAR)
    legalize = relay.qnn.op.legalizations.qnn_dense_legalize
    seen = []
    legalize.register("aocl")(lambda attrs, inputs, types: seen.append(len(inputs)))
    try:
        _legal(func, tvm.target.Target({"kind": "llvm", "keys": ["aocl"]}))
    finally:
        del legalize.dispatch_dict["aocl"]
    assert seen == [6]
