"""Shapes that are computed from extents of inputs, of models whose inputs are open."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay import transform
from tvm.relay.traverse import post_order

HEADS, WIDTH = 4, 64


def _extent(x: relay.Expr, axis: int) -> relay.Expr:
    return relay.take(relay.op.shape_of(x, "int64"), relay.const([axis], "int64"), axis=0)


def _shaped(x: relay.Expr, *dims: relay.Expr | int) -> relay.Expr:
    parts = [relay.const([d], "int64") if isinstance(d, int) else d for d in dims]
    return relay.reshape(x, relay.concatenate(parts, axis=0))


def _attention() -> tvm.IRModule:
    """Words, their positions and attention, with shapes computed as exported models do."""
    rng = np.random.default_rng(0)
    words, places = [rng.random((50, WIDTH), dtype="float32") for _ in range(2)]
    ids = relay.var("ids", shape=(relay.Any(), relay.Any()), dtype="int64")
    batch, length = _extent(ids, 0), _extent(ids, 1)
    zero, one = relay.const(0, "int64"), relay.const(1, "int64")
    order = relay.arange(zero, relay.squeeze(length), one, "int64")
    x = relay.take(relay.const(words), ids, axis=0)
    x = x + relay.take(relay.const(places), relay.expand_dims(order, 0), axis=0)

    def heads() -> relay.Expr:
        weight = relay.const(rng.random((WIDTH, WIDTH), dtype="float32") / 32)
        y = relay.nn.dense(relay.reshape(x, (-1, WIDTH)), weight)
        y = relay.transpose(_shaped(y, batch, length, HEADS, -1), (0, 2, 1, 3))
        return relay.reshape(y, (-3, 0, 0))

    scores = relay.nn.batch_matmul(heads(), heads()) * relay.const(0.25)
    scores = relay.reshape(scores, (-4, -1, HEADS, 0, 0))
    weights = relay.reshape(relay.nn.softmax(scores), (-3, 0, 0))
    y = relay.nn.batch_matmul(weights, heads(), transpose_b=False)
    y = relay.transpose(_shaped(y, batch, HEADS, length, -1), (0, 2, 1, 3))
    y = _shaped(y, batch, length, WIDTH)
    return transform.InferType()(tvm.IRModule.from_expr(relay.Function([ids], y)))


def _names(mod: tvm.IRModule) -> list[str]:
    return [
        n.op.name
        for n in post_order(mod["main"].body)
        if isinstance(n, relay.Call) and isinstance(n.op, tvm.ir.Op)
    ]


def test_computed_shapes_become_attributes() -> None:
    mod = transform.KnownShapes()(transform.SymbolicShapes()(_attention()))
    mod = transform.InferType()(mod)
    assert "dyn.reshape" not in _names(mod)
    batch, length = mod["main"].params[0].checked_type.shape
    found = mod["main"].body.checked_type.shape
    assert found[0].same_as(batch) and found[1].same_as(length) and int(found[2]) == WIDTH


def test_functions_of_fixed_shapes_are_left_alone() -> None:
    x = relay.var("x", shape=(2, 3))
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.op.shape_of(x))))
    assert transform.KnownShapes()(mod)["main"] is mod["main"]


def test_shapes_that_the_run_gives_stay() -> None:
    x = relay.var("x", shape=(relay.Any(), 4))
    shape = relay.var("shape", shape=(2,), dtype="int64")
    y = relay.reshape(x, shape) + relay.cast(_extent(x, 0), "float32")
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, shape], y)))
    assert "dyn.reshape" in _names(transform.KnownShapes()(transform.SymbolicShapes()(mod)))


def test_attention_of_open_models_is_fused() -> None:
    mod = _attention()
    with tvm.target.Target("llvm"), tvm.transform.PassContext(opt_level=3):
        known = transform.KnownShapes()(transform.SymbolicShapes()(mod))
        known = transform.SimplifyExpr()(transform.DynamicToStatic()(transform.InferType()(known)))
        fused = transform.FuseAttention()(transform.InferType()(known))
    assert "contrib_attention" in fused["main"].astext(show_meta_data=False)


@pytest.mark.parametrize("batch, length", [(1, 7), (3, 16), (2, 33)])
def test_open_attention_gives_what_fixed_shapes_give(batch: int, length: int) -> None:
    mod = _attention()
    with tvm.transform.PassContext(opt_level=3):
        program = relay.vm.compile(mod, "llvm")
    ids = np.random.default_rng(1).integers(0, 50, (batch, length))
    found = tvm.runtime.vm.VirtualMachine(program, tvm.cpu()).invoke("main", tvm.nd.array(ids))
    debug = relay.create_executor("debug", mod=mod).evaluate()(ids)
    np.testing.assert_allclose(found.numpy(), debug.numpy(), rtol=2e-4, atol=2e-5)
