"""Relay programs written in Python give what relay gives."""

from __future__ import annotations

import ast

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.backend.interpreter import ConstructorValue, RefValue
from tvm.relay.testing.py_converter import run_as_python, to_python
from tvm.runtime.container import ADT


def number(value: float) -> relay.Constant:
    return relay.const(value)


def test_tensors_tuples_and_operators() -> None:
    x = relay.const(np.arange(6, dtype="float32").reshape(2, 3))
    parts = relay.split(x + number(1.0), 2).astuple()
    first, second = run_as_python(parts)
    np.testing.assert_array_equal(first.numpy(), [[1, 2, 3]])
    np.testing.assert_array_equal(second.numpy(), [[4, 5, 6]])
    again = run_as_python(relay.concatenate(parts, 0))
    np.testing.assert_array_equal(again.numpy(), x.data.numpy() + 1)
    assert np.isinf(run_as_python(relay.exp(relay.const(np.float32(np.inf)))).numpy())


def test_function_with_branches_is_a_python_function() -> None:
    x = relay.var("lambda", shape=(), dtype="int32")
    scope = relay.ScopeBuilder()
    with scope.if_scope(relay.less(x, number(1))):
        scope.ret(number(0))
    with scope.else_scope():
        scope.ret(x + number(1))
    func = relay.Function([x], scope.get())
    run = run_as_python(func)
    given = [tvm.nd.array(np.int32(n)) for n in (-3, 5)]
    assert [int(run(n).numpy()) for n in given] == [0, 6]
    assert "if less" in ast.unparse(to_python(func))


def test_recursion_and_references() -> None:
    fact, n = relay.var("fact"), relay.var("n", shape=(), dtype="int32")
    smaller = relay.Call(fact, [n - number(1)])
    body = relay.If(relay.equal(n, number(0)), number(1), n * smaller)
    program = relay.Let(fact, relay.Function([n], body), relay.Call(fact, [number(5)]))
    assert int(run_as_python(program).numpy()) == 120
    cell = relay.var("cell")
    write = relay.Let(relay.var("_"), relay.RefWrite(cell, number(2.0)), relay.RefRead(cell))
    assert float(run_as_python(relay.Let(cell, relay.RefCreate(number(1.0)), write)).numpy()) == 2
    assert isinstance(run_as_python(relay.RefCreate(number(1.0))), RefValue)


def test_data_types_and_global_functions() -> None:
    mod = tvm.IRModule()
    prelude = relay.prelude.Prelude(mod)
    _, cons, nil = mod.get_type("List")
    numbers = cons(number(1), cons(number(2), nil()))
    y = relay.var("y")
    tripled = run_as_python(prelude.map(relay.Function([y], y * number(3)), numbers), mod)
    assert isinstance(tripled, ConstructorValue)
    assert int(tripled.fields[1].fields[0].numpy()) == 6
    assert int(run_as_python(prelude.sum(numbers), mod).numpy()) == 3


def test_free_variables_are_rejected() -> None:
    with pytest.raises(tvm.TVMError, match="requires a value for the variable %x"):
        to_python(relay.var("x") + number(1))


def test_tuples_are_of_the_runtime() -> None:
    assert isinstance(run_as_python(relay.Tuple([])), ADT)
    pair = relay.Tuple([number(1.0), relay.Tuple([number(2.0)])])
    found = run_as_python(pair)
    assert isinstance(found, ADT) and isinstance(found[1], ADT) and len(found) == 2
    halves = run_as_python(relay.split(relay.const(np.arange(4.0, dtype="float32")), 2))
    assert isinstance(halves, ADT) and [list(h.numpy()) for h in halves] == [[0, 1], [2, 3]]
