"""Rewriting and partitioning by patterns."""

from __future__ import annotations

from typing import Any

import pytest

import tvm
from tvm import relay
from tvm.relay.dataflow_pattern import (
    DFPatternCallback,
    is_constant,
    is_op,
    is_var,
    rewrite,
    wildcard,
)

x, y, z = (relay.var(name, shape=(4, 4)) for name in "xyz")
equal = tvm.ir.structural_equal


class AddToSubtract(DFPatternCallback):
    def __init__(self, **options: bool) -> None:
        super().__init__(**options)
        self.a, self.b = wildcard(), wildcard()
        self.pattern = self.a + self.b
        self.seen: list[Any] = []

    def callback(self, pre: relay.Expr, post: relay.Expr, node_map: Any) -> relay.Expr:
        self.seen.append(pre)
        return node_map[self.a][0] - node_map[self.b][0]


def test_all_matches_are_rewritten() -> None:
    assert equal(AddToSubtract().rewrite((x + y) + z), (x - y) - z)
    same = x * y
    assert AddToSubtract().rewrite(same) is same


def test_shared_nodes_stay_shared() -> None:
    shared = x + y
    e = AddToSubtract().rewrite(relay.exp(shared) * relay.exp(shared))
    assert e.args[0].args[0] is e.args[1].args[0]


def test_rewrite_goes_on_until_nothing_changes() -> None:
    class Shrink(DFPatternCallback):
        def __init__(self, once: bool) -> None:
            super().__init__(rewrite_once=once)
            self.x = wildcard()
            self.pattern = is_op("exp")(is_op("exp")(self.x))

        def callback(self, pre: relay.Expr, post: relay.Expr, node_map: Any) -> relay.Expr:
            return relay.exp(node_map[self.x][0])

    e = relay.exp(relay.exp(relay.exp(relay.exp(relay.exp(x)))))
    assert equal(Shrink(False).rewrite(e), relay.exp(x))
    assert equal(Shrink(True).rewrite(e), relay.exp(relay.exp(relay.exp(x))))


def test_typed_expressions_on_request() -> None:
    rewriter = AddToSubtract(require_type=True)
    rewriter.rewrite(relay.Function([x, y, z], (x + y) + z))
    assert [e.checked_type.concrete_shape for e in rewriter.seen] == [(4, 4)] * 2


def test_several_callbacks() -> None:
    class ExpToLog(DFPatternCallback):
        def __init__(self) -> None:
            super().__init__()
            self.pattern = is_op("exp")(wildcard())

        def callback(self, pre: relay.Expr, post: relay.Expr, node_map: Any) -> relay.Expr:
            return relay.log(post.args[0])

    assert equal(rewrite([AddToSubtract(), ExpToLog()], relay.exp(x + y)), relay.log(x - y))


def test_result_used_inside_and_outside_is_not_rewritten() -> None:
    class Fuse(DFPatternCallback):
        def __init__(self) -> None:
            super().__init__()
            self.pattern = is_op("exp")(is_op("log")(wildcard()))

        def callback(self, pre: relay.Expr, post: relay.Expr, node_map: Any) -> relay.Expr:
            return pre.args[0].args[0]

    inner = relay.log(x)
    e = relay.exp(inner) + inner
    assert Fuse().rewrite(e) is e


def test_callback_without_pattern_is_an_error() -> None:
    with pytest.raises(tvm.TVMError, match="requires a pattern"):
        DFPatternCallback().rewrite(x)


def test_partition_moves_a_match_into_a_function() -> None:
    conv = is_op("nn.relu")(is_op("nn.dense")(wildcard(), wildcard()))
    got = conv.partition(relay.exp(relay.nn.relu(relay.nn.dense(x, y))), {"Composite": "d"})
    a, b = relay.var("a"), relay.var("b")
    func = relay.Function([a, b], relay.nn.relu(relay.nn.dense(a, b))).with_attr(
        {"PartitionedFromPattern": "nn.dense_nn.relu_", "Composite": "d"}
    )
    assert equal(got, relay.exp(func(x, y)))


def test_partition_embeds_constants_of_the_pattern_only() -> None:
    e = relay.nn.relu(x + relay.const(1.0))
    got = is_op("nn.relu")(wildcard() + is_constant()).partition(e)
    assert len(got.args) == 1
    assert len(is_op("nn.relu")(wildcard() + wildcard()).partition(e).args) == 2


def test_partition_checks_and_does_not_repeat() -> None:
    pattern = wildcard() + wildcard()
    e = (x + y) * (y + z)
    assert pattern.partition(e, check=lambda _: False) is e
    once = pattern.partition(e)
    assert equal(pattern.partition(once), once)
    some = pattern.partition(e, check=lambda root: root.args[0] is x)
    assert isinstance(some.args[0].op, relay.Function) and some.args[1].args[0] is y


def test_overlapping_matches_give_the_later_one() -> None:
    pattern = is_op("exp")(is_op("exp")(wildcard()))
    got = pattern.partition(relay.exp(relay.exp(relay.exp(x))))
    assert isinstance(got.op, relay.Function) and equal(got.args[0], relay.exp(x))


def test_partition_of_a_dominated_region() -> None:
    unary = is_op("exp")(wildcard()) | is_op("tanh")(wildcard())
    d = relay.nn.dense(x, y)
    pattern = (wildcard() + wildcard()).dominates(is_op("nn.dense")(wildcard(), wildcard()), unary)
    got = pattern.partition(relay.log(relay.exp(d) + relay.tanh(d)))
    call = got.args[0]
    assert [a.name_hint for a in call.args] == ["x", "y"]
    assert call.op.attrs["PartitionedFromPattern"] == "nn.dense_exp_tanh_add_"


def test_what_is_used_outside_may_lead_to_the_result() -> None:
    total = relay.add(x, y)
    pattern = is_op("multiply")(is_op("add")(wildcard(), wildcard()), wildcard())
    call = pattern.partition(relay.multiply(total, relay.sigmoid(total)))
    assert isinstance(call.op, relay.Function)
    assert call.op.attrs["PartitionedFromPattern"] == "add_multiply_"
    assert call.args[2].op.name == "sigmoid" and call.args[2].args[0].op.name == "add"
    kept = relay.Tuple([relay.multiply(total, y), total])
    assert pattern.partition(kept) is kept


def test_both_forms_of_a_scaled_quotient_are_rewritten() -> None:
    class Scaled(DFPatternCallback):
        def __init__(self) -> None:
            super().__init__()
            self.parts = [wildcard() for _ in range(3)]
            a, b, c = self.parts
            self.pattern = is_op("divide")(is_op("multiply")(a, b), is_op("sqrt")(c))

        def callback(self, pre, post, node_map):
            return relay.Tuple([node_map[part][0] for part in self.parts])

    z = relay.var("z")
    for expr in (x * y / relay.sqrt(z), x * (y / relay.sqrt(z)), (y / relay.sqrt(z)) * x):
        found = Scaled().rewrite(expr)
        assert {field.name_hint for field in found.fields[:2]} == {"x", "y"}
        assert found.fields[2] is z


def test_long_programs() -> None:
    e = x
    for _ in range(3000):
        e = relay.exp(e) + y
    got = AddToSubtract().rewrite(relay.Function([x, y], e))
    assert "add(" not in str(got)
    parts = (is_op("exp")(wildcard()) + is_var("y")).partition(e)
    assert str(parts).count("fn (") == 3000
    typed = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, y], parts)))
    assert typed["main"].ret_type == relay.TensorType((4, 4))


def test_what_runs_once_is_not_repeated_for_others() -> None:
    class Wrap(DFPatternCallback):
        def __init__(self) -> None:
            super().__init__(rewrite_once=True)
            self.pattern = is_op("tanh")(wildcard())

        def callback(self, pre: relay.Expr, post: relay.Expr, node_map: Any) -> relay.Expr:
            return relay.exp(post)

    after = rewrite([Wrap(), AddToSubtract()], relay.tanh(x + y))
    assert equal(after, relay.exp(relay.tanh(x - y)))


def test_labels_name_calls_of_functions() -> None:
    inner = relay.Function([z], relay.exp(z), None, None, None)
    pattern = is_op("add")(wildcard()(wildcard()), wildcard())
    call = pattern.partition(relay.Call(inner, [x]) + y)
    assert call.op.attrs["PartitionedFromPattern"] == "exp_FunctionCall_add_"
