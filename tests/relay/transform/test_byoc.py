"""From operators to functions for an external compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import tvm
from tvm import relay
from tvm.ir import register_op_attr
from tvm.ir.transform import Sequential
from tvm.relay.dataflow_pattern import is_op, wildcard
from tvm.relay.op.annotation import compiler_begin, compiler_end
from tvm.relay.transform import (
    AnnotateTarget,
    MergeCompilerRegions,
    MergeComposite,
    PartitionGraph,
)

from .common import assert_transforms, run, typed

SUPPORTED = ("exp", "log", "add", "nn.dense")


@pytest.fixture(autouse=True)
def compiler() -> Iterator[None]:
    for name in SUPPORTED:
        register_op_attr(name, "target.c", lambda _: True)
    yield
    for name in SUPPORTED:
        tvm.ir.Op.get(name).reset_attr("target.c")


def x_() -> relay.Var:
    return relay.var("x", shape=(4, 4))


def begin(e: relay.Expr) -> relay.Expr:
    return compiler_begin(e, "c")


def end(e: relay.Expr) -> relay.Expr:
    return compiler_end(e, "c")


def partitioned(func: relay.Function) -> tvm.IRModule:
    passes = [AnnotateTarget("c"), MergeCompilerRegions(), PartitionGraph()]
    return Sequential(passes)(typed(func))


def external(mod: tvm.IRModule) -> list[relay.Function]:
    return [f for _, f in mod.functions_items() if f.attrs.get("Compiler") == "c"]


def own(e: relay.Expr) -> relay.Expr:
    """What no compiler takes, with the marks on its only argument and on itself."""
    call = e.replace(args=tuple([compiler_begin(a, "default") for a in e.args]))
    return compiler_end(call, "default")


def test_annotations_say_who_takes_each_operator() -> None:
    x = x_()
    before = relay.Function([x], relay.tanh(relay.exp(x)))
    x = x_()
    after = relay.Function([x], own(relay.tanh(end(relay.exp(begin(x))))))
    assert_transforms(before, after, AnnotateTarget("c"))
    x = x_()
    assert_transforms(
        relay.Function([x], relay.tanh(x)),
        relay.Function([x], own(relay.tanh(x))),
        AnnotateTarget(["c"]),
    )


def test_every_use_has_an_annotation_of_its_own() -> None:
    x = x_()
    shared = relay.exp(x)
    before = relay.Function([x], relay.add(relay.tanh(shared), shared))
    x = x_()
    shared = relay.exp(begin(x))
    tanh = own(relay.tanh(end(shared)))
    after = relay.Function([x], end(relay.add(begin(tanh), begin(end(shared)))))
    assert_transforms(before, after, AnnotateTarget("c"))


def test_annotate_gives_tuples_the_compiler_of_their_fields() -> None:
    x = x_()
    before = relay.Function([x], relay.Tuple([relay.exp(x), relay.tanh(x)]))
    x = x_()
    after = relay.Function([x], relay.Tuple([end(relay.exp(begin(x))), own(relay.tanh(x))]))
    assert_transforms(before, after, AnnotateTarget("c", include_non_call_ops=False))

    x = x_()
    fields = [begin(end(relay.exp(begin(x)))), begin(end(relay.log(begin(x))))]
    taken = end(relay.TupleGetItem(begin(end(relay.Tuple(fields))), 0))
    x = x_()
    pair = relay.Tuple([relay.exp(x), relay.log(x)])
    item = relay.Function([x], relay.TupleGetItem(pair, 0))
    assert_transforms(
        item, relay.Function(relay.analysis.free_vars(taken), taken), AnnotateTarget("c")
    )


def test_branches_and_lets_are_annotated() -> None:
    x, c, v = x_(), relay.var("c", shape=(), dtype="bool"), relay.var("v")
    before = relay.Function([c, x], relay.Let(v, relay.exp(x), relay.If(c, v, relay.log(v))))
    x, c, v = x_(), relay.var("c", shape=(), dtype="bool"), relay.var("v")
    branch = relay.If(c, v, end(relay.log(begin(v))))
    plain = relay.Function([c, x], relay.Let(v, end(relay.exp(begin(x))), branch))
    assert_transforms(before, plain, AnnotateTarget("c", include_non_call_ops=False))
    assert_transforms(before, _bound_in_region(), AnnotateTarget("c"))


def _bound_in_region() -> relay.Function:
    x, c, v = x_(), relay.var("c", shape=(), dtype="bool"), relay.var("v")
    branch = relay.If(c, v, end(relay.log(begin(v))))
    return relay.Function([c, x], relay.Let(v, begin(end(relay.exp(begin(x)))), branch))


def test_annotating_twice_changes_nothing_more() -> None:
    x = x_()
    before = relay.Function([x], relay.tanh(relay.exp(x)))
    once = run(before, AnnotateTarget("c"))
    tvm.ir.assert_structural_equal(run(once, AnnotateTarget("c")), once)


def test_merge_joins_neighbours() -> None:
    x = x_()
    before = relay.Function([x], relay.log(relay.exp(x)))
    x = x_()
    after = relay.Function([x], end(relay.log(relay.exp(begin(x)))))
    assert_transforms(before, after, AnnotateTarget("c"), MergeCompilerRegions())


def test_merge_makes_no_cycle() -> None:
    x = x_()
    e = relay.exp(x)
    mod = partitioned(relay.Function([x], relay.log(e) + relay.tanh(e)))
    assert len(external(mod)) == 2
    assert str(mod["main"]).count("tanh") == 1


def test_partition_makes_one_function_of_a_diamond() -> None:
    x = x_()
    e = relay.exp(x)
    mod = partitioned(relay.Function([x], relay.tanh(relay.log(e) + e)))
    (func,) = external(mod)
    assert func.attrs["global_symbol"] == "tvmgen_default_c_main_0" and func.attrs["Primitive"] == 1
    assert [p.name_hint for p in func.params] == ["c_0_i0"]
    assert mod["main"].body.args[0].op.name_hint == "tvmgen_default_c_main_0"


def test_region_with_several_results_returns_a_tuple() -> None:
    x = x_()
    e = relay.exp(x)
    mod = partitioned(relay.Function([x], relay.Tuple([relay.tanh(e), relay.tanh(relay.log(e))])))
    (func,) = external(mod)
    assert isinstance(func.body, relay.Tuple)
    assert isinstance(mod["main"].body.fields[0].args[0], relay.TupleGetItem)


def test_constants_are_bound_or_passed() -> None:
    x = x_()
    func = relay.Function([x], x + relay.const(1.0))
    assert len(external(partitioned(func))[0].params) == 1
    mod = Sequential([AnnotateTarget("c"), PartitionGraph(bind_constants=False)])(typed(func))
    assert len(external(mod)[0].params) == 2


def test_composites_are_taken_as_one() -> None:
    x, w = x_(), relay.var("w", shape=(4, 4))
    pattern = is_op("nn.relu")(is_op("nn.dense")(wildcard(), wildcard()))
    func = relay.Function([x, w], relay.tanh(relay.nn.relu(relay.nn.dense(x, w))))
    mod = Sequential(
        [MergeComposite([("c.dense_relu", pattern)]), AnnotateTarget("c"), PartitionGraph()]
    )(typed(func))
    (outer,) = external(mod)
    assert outer.body.op.attrs["Composite"] == "c.dense_relu"
    rejected = run(func, MergeComposite([("c.dense_relu", pattern, lambda _: False)]))
    assert "Composite" not in str(rejected)


def test_deep_programs() -> None:
    x = x_()
    e: relay.Expr = x
    for _ in range(300):
        e = relay.tanh(relay.log(relay.exp(e)) + x)
    mod = partitioned(relay.Function([x], e))
    assert len(external(mod)) == 300


def test_regions_are_counted_by_what_enters_them() -> None:
    x, y = x_(), relay.var("y", shape=(4, 4))
    first = end(relay.add(begin(x), begin(y)))
    mod = PartitionGraph()(typed(relay.Function([x, y], end(relay.exp(begin(first))))))
    names = [gvar.name_hint for gvar in mod.functions if gvar.name_hint != "main"]
    assert names == ["tvmgen_default_c_main_0", "tvmgen_default_c_main_2"]
    assert mod[names[1]].params[0].name_hint == "c_2_i0"


def test_results_are_in_the_order_in_which_they_leave() -> None:
    x = x_()
    inner = relay.exp(begin(x))
    last, middle = end(relay.log(inner)), end(inner)
    mod = PartitionGraph()(typed(relay.Function([x], relay.tanh(last) + relay.tanh(middle))))
    (func,) = external(mod)
    assert [field.op.name for field in func.body.fields] == ["log", "exp"]


def test_tuples_of_constants_are_bound() -> None:
    scales = relay.Tuple([relay.const(0.5), relay.const(0.5)])
    zeros = relay.Tuple([relay.const(0), relay.const(0)])
    joined = relay.qnn.op.concatenate(
        relay.Tuple([relay.var("a", shape=(2,), dtype="int8")] * 2), scales, zeros,
        relay.const(0.5), relay.const(0), axis=0,
    )  # fmt: skip
    marked = joined.replace(args=tuple([begin(arg) for arg in joined.args]))
    body = end(marked)
    mod = PartitionGraph()(typed(relay.Function(relay.analysis.free_vars(body), body)))
    (func,) = external(mod)
    assert [type(arg) for arg in func.body.args[1:]] == [relay.Tuple] * 2 + [relay.Constant] * 2


def test_compilers_may_optimise_their_functions() -> None:
    @tvm.register_func("relay.ext.c.optimize", override=True)
    def optimize(mod: tvm.IRModule) -> tvm.IRModule:
        return relay.transform.FoldConstant()(mod)

    try:
        x, one = x_(), relay.const(1.0)
        body = end(relay.add(begin(one), begin(one))) * x
        (func,) = external(PartitionGraph()(typed(relay.Function([x], body))))
    finally:
        tvm._ffi.registry.remove_global_func("relay.ext.c.optimize")
    assert isinstance(func.body, relay.Constant) and func.body.data.numpy() == 2
    assert func.attrs["Compiler"] == "c"


def test_functions_of_other_compilers_are_inlined_undivided() -> None:
    x = x_()
    mod = PartitionGraph()(typed(relay.Function([x], relay.tanh(end(relay.exp(begin(x)))))))
    inlined = relay.transform.Inline()(mod)
    assert [gvar.name_hint for gvar in inlined.functions] == ["main"]
    called = inlined["main"].body.args[0].op
    assert called.attrs["Compiler"] == "c" and called.body.op.name == "exp"


def _split_taken(build: Callable[[relay.Var], relay.Expr]) -> tuple[relay.Function, relay.Expr]:
    """The external function and the body of `main`, where `split` is taken too."""
    x = x_()
    register_op_attr("split", "target.c", lambda _: True)
    try:
        mod = partitioned(relay.Function([x], build(x)))
    finally:
        tvm.ir.Op.get("split").reset_attr("target.c")
    (func,) = external(mod)
    return func, mod["main"].body


HALF = relay.TensorType((2, 4))


def test_partition_returns_a_tuple_alone_as_it_is() -> None:
    func, body = _split_taken(lambda x: relay.concatenate(relay.split(x, 2, axis=0), 1))
    assert func.body.op.name == "split"
    assert func.ret_type == relay.TupleType([HALF, HALF])
    assert isinstance(body.args[0].op, relay.GlobalVar)


def test_partition_returns_the_fields_of_tuples_beside_others() -> None:
    def build(x: relay.Var) -> relay.Expr:
        parts = relay.split(x, 2, axis=0)
        return relay.Tuple([relay.concatenate(parts, 1), relay.tanh(relay.exp(parts[0]))])

    func, body = _split_taken(build)
    assert func.ret_type == relay.TupleType([HALF] * 3)
    items = [*body.fields[0].args[0].fields, body.fields[1].args[0]]
    assert [type(item) for item in items] == [relay.TupleGetItem] * 3
    assert [item.index for item in items] == [0, 1, 2]
