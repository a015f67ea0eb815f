"""Roundings to bfloat16 that go, and those that stay."""

from __future__ import annotations

import numpy as np

import tvm
from tvm import relay
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
    return relay.cast(x, "bfloat16")


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


def test_attention_in_bfloat16_is_near_the_wide_one() -> None:
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
