"""Programs printed and read again are the same."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tvm
from tests.relay.op.cases import binary_cases, moving_cases, reduce_cases, unary_cases
from tests.relay.op.nn_cases import nn_cases
from tvm import relay, te
from tvm.relay import pipeline, testing


def assert_round_trip(mod: tvm.IRModule) -> None:
    mod = relay.transform.InferType()(mod)
    text = mod.astext()
    again = relay.parse(text)
    tvm.ir.assert_structural_equal(again, mod, map_free_vars=True)
    # what was read comes from this text, no longer from where its layers came from
    assert again.astext() == re.sub(r" span=\S+", "", text)


def check(func: relay.Expr) -> None:
    assert_round_trip(tvm.IRModule.from_expr(func))


x = relay.var("x", shape=(2, 3))


def test_constants_of_all_kinds() -> None:
    values = [1.5, 0.1, 1 / 3, -2.0, 1e-30, np.inf, -np.inf]
    for dtype in ("float16", "float32", "float64"):
        check(relay.Tuple([relay.const(v, dtype) for v in values]))
    ints = [
        relay.const(v, d) for v, d in ((-1, "int8"), (2**40, "int64"), (3, "int32"), (200, "uint8"))
    ]
    check(relay.Tuple([*ints, relay.const(True), relay.const(np.arange(6).reshape(2, 3))]))
    check(x + relay.const(np.random.rand(2, 3).astype("float32")))


def test_conditions_lets_tuples_and_inner_functions() -> None:
    c, y, f = relay.var("c", "bool"), relay.var("y", shape=(2, 3)), relay.var("f")
    inner = relay.Function([y], relay.exp(y) + x)
    body = relay.If(c, relay.Call(f, [x]), relay.Tuple([relay.log(x), x])[0])
    check(relay.Function([c, x], relay.Let(f, inner, body)))
    check(relay.Function([x], relay.Tuple([relay.Tuple([x]), relay.Tuple([]), x])))
    shared = relay.exp(x)
    check(relay.Function([c, x], relay.If(c, shared + x, relay.log(shared) + shared)))


def test_let_in_the_middle_of_a_graph() -> None:
    y = relay.var("y")
    check(relay.Function([x], relay.exp(relay.Let(y, relay.log(x), y + y)) + x))


def test_references() -> None:
    r = relay.var("r")
    body = relay.Let(
        r, relay.RefCreate(x), relay.Let(relay.var("u"), relay.RefWrite(r, x), relay.RefRead(r))
    )
    check(relay.Function([x], body))


def test_primitive_functions_and_attributes() -> None:
    a = relay.var("a", shape=(2, 3))
    func = relay.Function([a], relay.clip(a, 1 / 3, 6.0)).with_attr(
        {"Primitive": 1, "Composite": 'a "b"\n', "relay.x": [1, 2.5], "d": {"k": "v"}, "n": None}
    )
    check(relay.Function([x], relay.Call(func, [x])))


def test_dynamic_shapes() -> None:
    d = relay.var("d", shape=(relay.Any(), 3))
    check(relay.Function([d], relay.exp(d)))


def test_several_functions_and_data_types() -> None:
    mod = relay.parse("""
        type Tree[A] { Leaf(A), Node(Tree[A], Tree[A]), Empty }
        def @sum(%t: Tree[int32]) -> int32 {
          match (%t) {
            Leaf(%v) => %v,
            Node(%l, %r) => @sum(%l) + @sum(%r),
            Empty => 0,
          }
        }
        def @main() { @sum(Node(Leaf(1), Leaf(2))) }
    """)
    assert_round_trip(mod)


def test_expressions_with_free_variables() -> None:
    e = relay.exp(x) + relay.var("y", shape=(3,))
    again = relay.parse_expr(e.astext())
    tvm.ir.assert_structural_equal(again, e, map_free_vars=True)


CASES = unary_cases() + binary_cases() + reduce_cases() + moving_cases() + nn_cases()


def test_every_operator() -> None:
    for case in CASES:
        params = [
            relay.var(f"p{i}", shape=a.shape, dtype=str(a.dtype)) for i, a in enumerate(case.inputs)
        ]
        check(relay.Function(params, case.build(*params)))


@pytest.mark.parametrize("make", [testing.mlp, testing.resnet, testing.mobilenet])
def test_networks(make: object) -> None:
    mod, _ = make.get_workload(batch_size=1)  # type: ignore[attr-defined]
    assert_round_trip(mod)
    assert_round_trip(pipeline.fusion()(pipeline.optimization()(mod)))


def test_long_programs() -> None:
    e, lets = x, x
    for _ in range(5000):
        e = relay.exp(e)
        lets = relay.Let(relay.var("v"), relay.exp(x), lets)
    check(relay.Function([x], e))
    check(relay.Function([x], lets))


def test_functions_of_the_loop_level() -> None:
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    kernel = te.create_prim_func([A, te.compute((n,), lambda i: A[i] + 1.0, name="B")])
    mod = tvm.IRModule({"main": relay.Function([x], relay.exp(x)), "kernel": kernel})
    assert_round_trip(mod)
    assert "T.prim_func" in relay.pretty_print(mod)
    assert "meta[tir.PrimFunc][0]" in mod.astext()


def test_nodes_among_attributes() -> None:
    device = tvm.target.VirtualDevice(tvm.cpu(0), tvm.target.Target("llvm"))
    func = relay.Function([x], relay.annotation.on_device(relay.exp(x), tvm.cpu(0)))
    check(func)
    check(relay.Function([x], x).with_attr("where", device))


def test_value_of_a_block_that_is_used_outside_of_it() -> None:
    c, y, f = relay.var("c", "bool"), relay.var("y", shape=(2, 3)), relay.var("f")
    shared = relay.exp(x)
    check(relay.Function([c, x], relay.If(c, shared, relay.log(shared)) + shared))
    inner = relay.Let(f, relay.log(shared), f + f)
    check(relay.Function([c, x], relay.Let(y, inner, relay.If(c, inner, y))))
    check(relay.Function([x], relay.Let(y, shared, y + shared)))


def test_module_of_types_alone() -> None:
    mod = relay.parse('#[version = "0.0.5"]\ntype Tree[A] { Leaf, Node(A, Tree[A]) }')
    assert mod.astext().startswith('#[version = "0.0.5"]')
    assert_round_trip(mod)
