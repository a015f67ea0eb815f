"""Branches, loops, functions as values, references."""

from __future__ import annotations

import numpy as np

import tvm
from tests.relay.vm.common import check, run_vm
from tvm import relay

X = np.arange(6, dtype="float32").reshape(2, 3)


def test_kernels_run_in_order() -> None:
    x = relay.var("x", shape=(2, 3))
    check(relay.Function([x], relay.nn.relu(x - relay.const(2.0))), np.maximum(X - 2, 0), X)


def test_a_program_may_return_its_input() -> None:
    x = relay.var("x", shape=(2, 3))
    check(relay.Function([x], x), X, X)


def test_tuples_are_built_and_unpacked() -> None:
    x = relay.var("x", shape=(2, 4))
    parts = relay.split(x, 2, axis=1).astuple()
    value = relay.Tuple([relay.TupleGetItem(parts, 1), relay.Tuple([x, relay.const(1.0)])])
    data = np.arange(8, dtype="float32").reshape(2, 4)
    check(relay.Function([x], value), [data[:, 2:], [data, np.float32(1)]], data)


def test_a_tuple_is_an_argument() -> None:
    pair = relay.var("p", relay.TupleType([relay.TensorType((2, 3))] * 2))
    value = relay.add(relay.TupleGetItem(pair, 0), relay.TupleGetItem(pair, 1))
    check(relay.Function([pair], value), X + X, (X, X))


def test_an_if_runs_the_branch_that_its_condition_takes() -> None:
    x = relay.var("x", shape=(2, 3))
    c = relay.var("c", shape=(), dtype="bool")
    program = relay.Function([c, x], relay.If(c, relay.exp(x), relay.negative(x)))
    check(program, np.exp(X), np.array(True), X)
    check(program, -X, np.array(False), X)


def test_code_of_nested_ifs_grows_linearly() -> None:
    x = relay.var("x", shape=())
    value = x
    for i in range(20):
        smaller = relay.less(value, relay.const(float(10 * i)))
        value = relay.If(smaller, value + relay.const(1.0), value * relay.const(2.0))
    expected = np.float32(3)
    for i in range(20):
        expected = expected + 1 if expected < 10 * i else expected * 2
    check(relay.Function([x], value), expected, np.float32(3))


def test_a_recursive_function_counts() -> None:
    mod = tvm.IRModule()
    total = relay.GlobalVar("total")
    n, acc = relay.var("n", shape=(), dtype="int32"), relay.var("acc", shape=(), dtype="int32")
    again = total(relay.subtract(n, relay.const(1, "int32")), relay.add(acc, n))
    body = relay.If(relay.equal(n, relay.const(0, "int32")), acc, again)
    mod[total] = relay.Function([n, acc], body, relay.TensorType((), "int32"))
    m = relay.var("m", shape=(), dtype="int32")
    mod["main"] = relay.Function([m], total(m, relay.const(0, "int32")))
    check(mod, np.int32(5050), np.int32(100))


def test_a_loop_of_many_steps_needs_no_deep_stack() -> None:
    i = relay.var("i", shape=(), dtype="int32")

    def condition(i: relay.Expr) -> relay.Expr:
        return relay.less(i, relay.const(200_000, "int32"))

    def body(i: relay.Expr) -> list[relay.Expr]:
        return [relay.add(i, relay.const(1, "int32"))]

    loop = relay.loops.while_loop(condition, [i], body)
    start = relay.var("s", shape=(), dtype="int32")
    program = relay.Function([start], relay.TupleGetItem(loop(start), 0))
    assert run_vm(program, np.int32(0)) == 200_000


def test_a_closure_keeps_what_it_captures() -> None:
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
    f = relay.var("f")
    add_x = relay.Function([y], relay.add(x, y))
    value = relay.Let(f, add_x, relay.Call(f, [relay.Call(f, [relay.const(X)])]))
    check(relay.Function([x], value), 3 * X, X)


def test_lifting_functions_twice_is_lifting_them_once() -> None:
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
    f = relay.var("f")
    value = relay.Let(f, relay.Function([y], x + y), relay.Call(f, [relay.Call(f, [x])]))
    lifted = relay.transform.LambdaLift()(tvm.IRModule.from_expr(relay.Function([x], value)))
    assert len(relay.transform.LambdaLift()(lifted).functions) == len(lifted.functions) == 2
    check(relay.transform.ToANormalForm()(lifted), 3 * X, X)


def test_lifted_functions_have_the_type_parameters_that_they_use() -> None:
    mod = relay.parse("""
        def @keep[A](%a: A) -> fn(A) -> A { fn (%b: A) -> A { %a } }
        def @main(%x: Tensor[(2, 3), float32]) {
          let %f = @keep(%x);
          %f(exp(%x))
        }
    """)
    lifted = relay.transform.LambdaLift()(mod)
    assert relay.parse(lifted.astext()).astext() == lifted.astext()
    check(lifted, X, X)


def test_functions_are_arguments_and_results() -> None:
    tensor = relay.TensorType((2, 3))
    unary = relay.FuncType([tensor], tensor)
    mod = tvm.IRModule()
    twice = relay.GlobalVar("twice")
    g, v = relay.var("g", unary), relay.var("v", tensor)
    mod[twice] = relay.Function([g], relay.Function([v], g(g(v)), tensor), unary)
    x, y = relay.var("x", tensor), relay.var("y", tensor)
    scale = relay.Function([y], y * relay.const(3.0), tensor)
    mod["main"] = relay.Function([x], relay.Call(twice(scale), [x]))
    check(mod, 9 * X, X)


def test_a_local_function_calls_itself() -> None:
    scalar = relay.TensorType((), "int32")
    f, n, m = relay.var("f"), relay.var("n", scalar), relay.var("m", scalar)
    one = relay.const(1, "int32")
    body = relay.If(
        relay.less(n, relay.const(2, "int32")), one, n * relay.Call(f, [relay.subtract(n, one)])
    )
    factorial = relay.Function([n], body, scalar)
    program = relay.Function([m], relay.Let(f, factorial, relay.Call(f, [m])))
    check(program, np.int32(120), np.int32(5))


def test_references_are_written_and_read_in_order() -> None:
    x = relay.var("x", shape=(2, 3))
    r, before, done = relay.var("r"), relay.var("before"), relay.var("done")
    after = relay.subtract(relay.RefRead(r), before)
    write = relay.Let(done, relay.RefWrite(r, relay.exp(x)), after)
    value = relay.Let(r, relay.RefCreate(x), relay.Let(before, relay.RefRead(r), write))
    check(relay.Function([x], value), np.exp(X) - X, X)
