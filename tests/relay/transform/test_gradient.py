"""Gradients of functions, in both modes, against the rules of calculus and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.transform import (
    DeadCodeElimination,
    FirstOrderGradient,
    InferType,
    LazyGradientInit,
    PartialEvaluate,
    gradient,
)

MODES = ["higher_order", "first_order"]
T = relay.TensorType((3, 4), "float32")
DATA = np.random.default_rng(1).uniform(0.2, 1.5, (3, 4)).astype("float32")


def evaluate(func: relay.Function, *args: np.ndarray, mod: tvm.IRModule | None = None) -> list:
    mod = tvm.IRModule() if mod is None else mod
    found = relay.create_executor("debug", mod=mod).evaluate(func)(*args)
    return [found[0].numpy(), *[g.numpy() for g in found[1]]]


@pytest.mark.parametrize("mode", MODES)
def test_gradient_has_the_type_of_value_and_parameters(mode: str) -> None:
    x = relay.var("x", T)
    back = relay.testing.run_infer_type(gradient(relay.Function([x], x + x), mode=mode))
    expected = relay.FuncType([T], relay.TupleType([T, relay.TupleType([T])]))
    assert back.checked_type == expected
    value, slope = evaluate(back, DATA)
    np.testing.assert_allclose(value, 2 * DATA)
    np.testing.assert_allclose(slope, np.full_like(DATA, 2))


@pytest.mark.parametrize("mode", MODES)
def test_gradients_of_shared_values_are_added(mode: str) -> None:
    x, y = relay.var("x", T), relay.var("y", T)
    shared = relay.exp(x) * y
    func = relay.Function([x, y], shared * shared + relay.log(y))
    value, dx, dy = evaluate(gradient(func, mode=mode), DATA, DATA + 1)
    a, b = DATA.astype("float64"), DATA.astype("float64") + 1
    np.testing.assert_allclose(value, np.exp(2 * a) * b * b + np.log(b), rtol=1e-5)
    np.testing.assert_allclose(dx, 2 * np.exp(2 * a) * b * b, rtol=1e-5)
    np.testing.assert_allclose(dy, 2 * np.exp(2 * a) * b + 1 / b, rtol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_are_summed_where_operands_were_broadcast(mode: str) -> None:
    x, b = relay.var("x", T), relay.var("b", shape=(4,))
    _, _, db = evaluate(gradient(relay.Function([x, b], x * b), mode=mode), DATA, DATA[0])
    np.testing.assert_allclose(db, DATA.sum(0), rtol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_tuples_pass_their_gradients_on(mode: str) -> None:
    x = relay.var("x", T)
    parts = relay.split(x, 2, axis=1)
    body = relay.concatenate([parts[0] * parts[1], parts[0]], axis=1)
    _, dx = evaluate(gradient(relay.Function([x], body), mode=mode), DATA)
    np.testing.assert_allclose(dx[:, :2], DATA[:, 2:] + 1, rtol=1e-5)
    np.testing.assert_allclose(dx[:, 2:], DATA[:, :2], rtol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_parameters_and_results_may_be_tuples(mode: str) -> None:
    p = relay.var("p", relay.TupleType([T, T]))
    body = relay.Tuple(
        [relay.TupleGetItem(p, 0) * relay.TupleGetItem(p, 1), relay.TupleGetItem(p, 0)]
    )
    func = gradient(relay.Function([p], body), mode=mode)
    args = [tvm.nd.array(DATA), tvm.nd.array(DATA + 1)]
    _, (grads,) = relay.create_executor("debug").evaluate(func)(args)
    np.testing.assert_allclose(grads[0].numpy(), DATA + 2, rtol=1e-5)
    np.testing.assert_allclose(grads[1].numpy(), DATA, rtol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_unused_parameter_has_gradient_zero(mode: str) -> None:
    x, y = relay.var("x", T), relay.var("y", T)
    _, _, dy = evaluate(gradient(relay.Function([x, y], relay.tanh(x)), mode=mode), DATA, DATA)
    assert not dy.any()


def test_second_derivative_is_the_gradient_of_the_gradient() -> None:
    x = relay.var("x", "float32")
    cube = gradient(relay.Function([x], x * x * x))
    y = relay.var("y", "float32")
    slope = relay.Function([y], relay.TupleGetItem(relay.TupleGetItem(relay.Call(cube, [y]), 1), 0))
    value, second = evaluate(gradient(slope), np.float32(3))
    assert (value, second) == (27, 18)


def test_gradient_goes_through_branches_closures_and_references() -> None:
    x, c, f, r, u = (relay.var(n) for n in "xcfru")
    x, c = relay.var("x", T), relay.var("c", "bool")
    z = relay.var("z", T)
    body = relay.Let(
        f,
        relay.Function([z], z * x),
        relay.Let(
            r,
            relay.RefCreate(relay.Call(f, [x])),
            relay.Let(
                u,
                relay.RefWrite(r, relay.If(c, relay.RefRead(r) * x, relay.RefRead(r))),
                relay.RefRead(r),
            ),
        ),
    )
    func = gradient(relay.Function([x, c], body))
    run = relay.create_executor("debug").evaluate(func)
    for flag, expected in ((True, 3 * DATA**2), (False, 2 * DATA)):
        slope = run(DATA, np.array(flag))[1][0].numpy()
        np.testing.assert_allclose(slope, expected, rtol=1e-5)


def test_gradient_goes_through_recursion_and_data_types() -> None:
    mod = relay.parse("""
    type List[A] { Cons(A, List[A]), Nil, }
    def @product(%xs: List[float32]) -> float32 {
      match (%xs) { Cons(%x, %rest) => %x * @product(%rest), Nil => 1f, }
    }
    def @main(%x: float32, %y: float32) -> float32 {
      @product(Cons(%x, Cons(%y, Cons(%x, Nil))))
    }""")
    back = gradient(mod["main"], mod)
    value, dx, dy = evaluate(back, np.float32(3), np.float32(5), mod=InferType()(mod))
    assert (value, dx, dy) == (45, 30, 9)


def test_gradient_of_a_loop() -> None:
    i, y = relay.var("i", "int32"), relay.var("y", "float32")
    loop = relay.while_loop(
        lambda i, y: relay.less(i, relay.const(4)),
        [i, y],
        lambda i, y: [i + relay.const(1), y * y],
    )
    x = relay.var("x", "float32")
    body = relay.TupleGetItem(loop(relay.const(0), x), 1)
    value, slope = evaluate(gradient(relay.Function([x], body)), np.float32(1.1))
    np.testing.assert_allclose(value, 1.1**16, rtol=1e-5)
    np.testing.assert_allclose(slope, 16 * 1.1**15, rtol=1e-5)


def test_pass_replaces_functions_by_their_gradients() -> None:
    x = relay.var("x", T)
    mod = FirstOrderGradient()(tvm.IRModule.from_expr(relay.Function([x], relay.sigmoid(x))))
    sigmoid = 1 / (1 + np.exp(-DATA))
    for kind in ("debug", "graph"):
        found = relay.create_executor(kind, mod=mod).evaluate()(DATA)
        np.testing.assert_allclose(found[1][0].numpy(), sigmoid * (1 - sigmoid), rtol=1e-5)


def test_missing_gradient_names_the_operator() -> None:
    x = relay.var("x", T)
    func = relay.Function([x], relay.reinterpret(x, "float32"))
    for mode in MODES:
        with pytest.raises(
            tvm.error.OpNotImplemented, match="operator reinterpret has no gradient"
        ):
            gradient(func, mode=mode)
    with pytest.raises(tvm.error.TVMError, match="modes"):
        gradient(func, mode="second")
    with pytest.raises(tvm.error.TVMError, match="higher_order"):
        branch = relay.If(relay.const(True), x, x)
        gradient(relay.Function([x], branch), mode="first_order")


def test_first_order_gradient_of_a_deep_chain() -> None:
    x = relay.var("x", "float32")
    body = x
    for _ in range(3000):
        body = relay.negative(body)
    func = gradient(relay.Function([x], body), mode="first_order")
    assert evaluate(func, np.float32(2)) == [2, 1]


def test_lazy_gradients_compute_the_same() -> None:
    x, y = relay.var("x", T), relay.var("y", T)
    shared = relay.exp(x) * y + relay.zeros_like(x)
    func = relay.Function([x, y], relay.Tuple([shared * relay.ones_like(y), relay.log(y)]))
    mod = InferType()(tvm.IRModule.from_expr(func))
    lazy = LazyGradientInit()(mod)
    assert lazy["main"].checked_type == mod["main"].checked_type
    found = relay.create_executor("debug", mod=lazy).evaluate()(DATA, DATA)
    np.testing.assert_allclose(found[0].numpy(), np.exp(DATA) * DATA, rtol=1e-5)
    np.testing.assert_allclose(found[1].numpy(), np.log(DATA), rtol=1e-5)


def test_lazy_gradients_of_gradients_become_plain_graphs() -> None:
    x = relay.var("x", T)
    back = gradient(relay.Function([x], relay.tanh(x) * x))
    mod = LazyGradientInit()(InferType()(tvm.IRModule.from_expr(back)))
    mod = PartialEvaluate()(mod)
    for _ in range(2):
        mod = DeadCodeElimination(inline_once=True, ignore_impurity=True)(mod)
    ops = relay.testing.count_ops(mod["main"])
    assert "zeros_like" not in ops
    found = relay.create_executor("debug", mod=mod).evaluate()(DATA)
    np.testing.assert_allclose(
        found[1][0].numpy(), np.tanh(DATA) + DATA / np.cosh(DATA) ** 2, rtol=1e-4
    )
