"""Walks over expressions."""

from __future__ import annotations

import tvm
from tvm import relay
from tvm.relay.analysis.infer import infer_type_of, known_type
from tvm.relay.traverse import nodes_outside_functions, post_order, rewrite_post_order

DEEP = 50_000


def chain(depth: int) -> relay.Function:
    x = relay.var("x", shape=(2,))
    body: relay.Expr = x
    for _ in range(depth):
        body = relay.exp(body)
    return relay.Function([x], body)


def test_post_order_gives_operands_first_and_once() -> None:
    x = relay.var("x", shape=(2,))
    shared = relay.exp(x)
    order = post_order(shared + shared)
    calls = [n for n in order if isinstance(n, relay.Call)]
    assert calls[0] is shared
    assert len(calls) == 2


def test_rewrite_without_change_returns_the_same_object() -> None:
    func = chain(10)
    assert rewrite_post_order(func, lambda old, new: new) is func


def test_rewrite_keeps_sharing() -> None:
    x = relay.var("x", shape=(2,))
    shared = relay.exp(x)
    y = relay.var("y", shape=(2,))
    result = relay.bind(shared + shared, {x: y})
    assert result.args[0] is result.args[1]


def test_walks_survive_deep_programs() -> None:
    func = chain(DEEP)
    assert len(post_order(func)) == DEEP + 3
    assert len(relay.analysis.free_vars(func)) == 0
    assert rewrite_post_order(func, lambda old, new: new) is func


def test_functor_survives_deep_programs() -> None:
    class Count(relay.ExprVisitor):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def visit_call(self, call: relay.Call) -> None:
            super().visit_call(call)
            self.calls += 1

    count = Count()
    count.visit(chain(DEEP))
    assert count.calls == DEEP


def test_mutator_returns_the_same_object_if_nothing_changed() -> None:
    func = chain(5)
    assert relay.ExprMutator().visit(func) is func


def test_mutator_replaces_calls() -> None:
    class ExpToLog(relay.ExprMutator):
        def visit_call(self, call: relay.Call) -> relay.Expr:
            new = super().visit_call(call)
            return relay.log(new.args[0]) if new.op.name == "exp" else new

    func = ExpToLog().visit(chain(3))
    assert relay.analysis.list_op_freqs(tvm.IRModule.from_expr(func)) == {"log": 3}


def test_free_bound_and_all_variables() -> None:
    x, y, z = (relay.var(n, shape=(1,)) for n in "xyz")
    expr = relay.Let(y, x, relay.Function([z], z + y + x))
    assert relay.analysis.free_vars(expr) == [x]
    assert set(relay.analysis.bound_vars(expr)) == {y, z}
    assert set(relay.analysis.all_vars(expr)) == {x, y, z}


def test_nodes_outside_functions_come_operands_first() -> None:
    x = relay.var("x", shape=(2,))
    inner = relay.Function([y := relay.var("y", shape=(2,))], relay.exp(y))
    called = relay.Call(inner, [relay.negative(x)])
    body = relay.add(called, x)
    found = nodes_outside_functions(body)
    assert [id(n) for n in found] == [id(n) for n in (x, called.args[0], called, body)]


def test_calls_rebuilt_over_operands_of_the_same_types_keep_theirs() -> None:
    x = relay.var("x", shape=(2, 3))
    inner = relay.exp(x)
    root = relay.nn.relu(relay.add(inner, relay.const(1.0)))
    wanted = infer_type_of(root)

    def replaced(by: relay.Expr) -> relay.Expr:
        infer_type_of(by)
        return rewrite_post_order(root, lambda old, new: by if old is inner else new)

    assert known_type(replaced(relay.sqrt(x))) is wanted
    other = replaced(relay.sqrt(relay.var("y", shape=(5, 3))))
    assert known_type(other) is None
    assert infer_type_of(other).concrete_shape == (5, 3)
