"""Roundings to bfloat16 that go, and those that stay."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.rounding import with_free_rounding
from tvm.relay.transform import SkipRounding, ToMixedPrecision
from tvm.relay.traverse import post_order


def rewritten(body: relay.Expr) -> relay.Function:
    func = relay.Function(relay.analysis.free_vars(body), body)
    with tvm.target.Target("llvm"):
        return SkipRounding()(tvm.IRModule.from_expr(func))["main"]


def dtypes(func: relay.Function) -> list[tuple[str, str]]:
    calls = [node for node in post_order(func) if isinstance(node, relay.Call)]
    return [(call.op.name, str(call.checked_type.dtype)) for call in calls]


def var(name: str, *shape: int, dtype: str = "float32") -> relay.Var:
    return relay.var(name, shape=shape, dtype=dtype)


def narrow(x: relay.Expr) -> relay.Expr:
    """A rounding as ToMixedPrecision puts it in."""
    return with_free_rounding(relay.cast(x, "bfloat16"))


def trip(x: relay.Expr) -> relay.Expr:
    """A rounding as programs ask for it."""
    return relay.cast(relay.cast(x, "bfloat16"), "float32")


def test_what_is_only_read_wide_is_computed_wide() -> None:
    half = relay.const(0.5, "bfloat16")
    body = relay.nn.softmax(relay.cast(narrow(var("x", 4, 8)) * half, "float32"))
    assert dtypes(rewritten(body)) == [("multiply", "float32"), ("nn.softmax", "float32")]


def test_what_a_dense_layer_reads_is_rounded() -> None:
    x = relay.nn.relu(narrow(var("x", 4, 8)))
    product = relay.nn.dense(x, var("w", 8, 8, dtype="bfloat16"), out_dtype="float32")
    body = relay.Tuple([product, relay.cast(x, "float32")])
    found = dtypes(rewritten(body))
    assert found.count(("nn.relu", "bfloat16")) == 1


def test_batched_products_are_wide_and_round_once_heads_are_together() -> None:
    a, b = narrow(var("a", 2, 4, 8)), narrow(var("b", 2, 4, 8))
    product = narrow(relay.nn.batch_matmul(a, b, out_dtype="float32"))
    heads = relay.reshape(relay.transpose(product, (1, 0, 2)), (4, 8))
    body = relay.nn.dense(heads, var("w", 8, 8, dtype="bfloat16"), out_dtype="float32")
    assert dtypes(rewritten(body)) == [
        ("nn.batch_matmul", "float32"), ("transpose", "float32"), ("reshape", "float32"),
        ("cast", "bfloat16"), ("nn.dense", "float32"),
    ]  # fmt: skip


def test_results_of_the_function_keep_their_type() -> None:
    found = rewritten(relay.nn.relu(narrow(var("x", 4, 8))))
    assert dtypes(found) == [("cast", "bfloat16"), ("nn.relu", "bfloat16")]


def test_programs_without_bfloat16_are_unchanged() -> None:
    mod = tvm.IRModule.from_expr(relay.Function([x := var("x", 4)], relay.nn.relu(x)))
    with tvm.target.Target("llvm"):
        typed = relay.transform.InferType()(mod)
        assert SkipRounding()(typed)["main"] is typed["main"]


def attention() -> tvm.IRModule:
    x, shape = var("x", 16, 64), (16, 4, 16)

    def heads(name: str, axes: tuple[int, ...]) -> relay.Expr:
        layer = relay.nn.dense(x, var(name, 64, 64))
        return relay.transpose(relay.reshape(layer, shape), axes)

    scores = relay.nn.batch_matmul(heads("q", (1, 0, 2)), heads("k", (1, 0, 2)))
    mask = relay.const(np.triu(np.full((16, 16), -3.4e38, "float32"), 1))
    shares = relay.nn.softmax(scores * relay.const(0.25) + mask)
    mixed = relay.nn.batch_matmul(shares, heads("v", (1, 2, 0)))
    body = relay.nn.dense(
        relay.reshape(relay.transpose(mixed, (1, 0, 2)), (16, 64)), var("o", 64, 64)
    )
    return tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))


def test_attention_in_bfloat16_is_close_to_the_wide_one() -> None:
    rng = np.random.default_rng(2)
    mod = relay.transform.InferType()(attention())
    feeds = [rng.normal(size=p.checked_type.concrete_shape).astype("float32") * 0.2
             for p in mod["main"].params]  # fmt: skip
    with tvm.transform.PassContext(opt_level=3):
        wide, mixed = [
            relay.create_executor("graph", m, tvm.cpu(), "llvm").evaluate()(*feeds).numpy()
            for m in (mod, ToMixedPrecision("bfloat16")(mod))
        ]
    assert np.abs(mixed.astype("float32") - wide).max() <= 0.02 * np.abs(wide).max()


def rounded(x: np.ndarray) -> np.ndarray:
    return x.astype(ml_dtypes.bfloat16).astype("float32")


@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
@pytest.mark.parametrize("is_mixed", [False, True])
def test_roundings_of_the_program_stay(opt_level: int, is_mixed: bool) -> None:
    x, y = var("x", 1, 4, 8), var("y", 1, 4, 8, dtype="bfloat16")
    scaled = x * relay.const(3.1)
    # moved, in a kernel that reads bfloat16, and beside a rounding of the compiler
    moved = relay.transpose(relay.cast(scaled, "bfloat16"), (0, 2, 1))
    fields = [relay.cast(moved, "float32"), trip(scaled) + relay.cast(y, "float32")]
    fields.append(relay.nn.dense(scaled, relay.const(np.eye(8, dtype="float32"))))
    mod = tvm.IRModule.from_expr(relay.Function([x, y], relay.Tuple(fields)))
    mod = relay.transform.InferType()(mod)
    values = np.random.default_rng(3).normal(size=(2, 1, 4, 8)).astype("float32")
    a, b = values[0], values[1].astype(ml_dtypes.bfloat16)
    with tvm.transform.PassContext(opt_level=opt_level):
        program = ToMixedPrecision("bfloat16")(mod) if is_mixed else mod
        found = relay.create_executor("graph", program).evaluate()(a, b)
    product = rounded(a * np.float32(3.1))
    np.testing.assert_array_equal(found[0].numpy(), product.transpose(0, 2, 1))
    np.testing.assert_array_equal(found[1].numpy(), product + b.astype("float32"))


@pytest.mark.parametrize("opt_level", [1, 3])
def test_roundings_of_the_program_stay_in_attention(opt_level: int) -> None:
    x = var("x", 1, 4, 8)
    shares = trip(relay.nn.softmax(trip(relay.nn.batch_matmul(x, x))))
    body = relay.nn.batch_matmul(shares, x, transpose_b=False)
    mod = tvm.IRModule.from_expr(relay.Function([x], body))
    value = np.random.default_rng(3).normal(size=(1, 4, 8)).astype("float32")
    with tvm.transform.PassContext(opt_level=opt_level):
        found = relay.create_executor("graph", mod).evaluate()(value).numpy()
    powers = np.exp(rounded(value @ value.transpose(0, 2, 1)))
    expected = rounded(powers / powers.sum(-1, keepdims=True)) @ value
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_what_mixed_precision_rounds_in_attention_is_left_out() -> None:
    mod = ToMixedPrecision("bfloat16")(relay.transform.InferType()(attention()))
    with tvm.target.Target("llvm"), tvm.transform.PassContext(opt_level=3):
        mod = relay.pipeline.fusion()(relay.pipeline.optimization()(mod))
    assert "nn.contrib_attention" in mod.astext()


def test_equal_roundings_of_the_program_and_of_the_compiler_stay_two() -> None:
    x = var("x", 4)
    body = relay.Tuple([narrow(x), relay.cast(x, "bfloat16")])
    mod = tvm.IRModule.from_expr(relay.Function([x], body))
    first, second = relay.transform.EliminateCommonSubexpr()(mod)["main"].body.fields
    assert first is not second
