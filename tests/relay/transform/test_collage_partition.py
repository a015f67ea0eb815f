"""Parts of a program go to the compiler for which they cost the least."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tests.system_tools import needs_onednn
from tvm import relay
from tvm.relay import transform
from tvm.relay.collage import CostEstimator, CustomCostEstimator, MockCostEstimator
from tvm.relay.contrib.register import register_pattern_table
from tvm.relay.dataflow_pattern import is_op, wildcard

COMPILER = "example_target_hook"
TARGETS = [tvm.target.Target("llvm"), tvm.target.Target(COMPILER)]


@pytest.fixture(autouse=True)
def patterns():
    def accepts(call: relay.Call) -> bool:
        return call.checked_type.shape[0] == 10

    register_pattern_table(
        COMPILER,
        [
            (f"{COMPILER}.abs_negative", is_op("negative")(is_op("abs")(wildcard())), accepts),
            (f"{COMPILER}.abs", is_op("abs")(wildcard()), accepts),
            (f"{COMPILER}.add", is_op("add")(wildcard(), wildcard())),
        ],
    )
    yield
    register_pattern_table(COMPILER, [])


def partitioned(body: relay.Expr, estimator: CostEstimator, **options: object) -> tvm.IRModule:
    func = relay.Function(relay.analysis.free_vars(body), body)
    config = {f"relay.collage.{name}": value for name, value in options.items()}
    with tvm.transform.PassContext(config=config) as context:
        plan = tvm.target.make_compilation_config(context, TARGETS)
        return transform.CollagePartition(plan, estimator)(tvm.IRModule.from_expr(func))


def external(mod: tvm.IRModule) -> dict[str, list[str]]:
    """Operators of the functions for the other compiler."""
    return {
        gvar.name_hint: sorted(
            [
                node.op.name
                for node in relay.analysis.post_order(func)
                if isinstance(node, relay.Call) and isinstance(node.op, tvm.ir.Op)
            ]
        )
        for gvar, func in mod.functions.items()
        if func.attrs.get("Compiler") == COMPILER
    }


def costs(llvm: float, other: float, **more: int) -> MockCostEstimator:
    return MockCostEstimator({"llvm": llvm, COMPILER: other}, **more)


x, y = relay.var("x", shape=(10, 10)), relay.var("y", shape=(10, 10))


def test_the_cheaper_compiler_takes_what_it_can() -> None:
    body = relay.exp(relay.negative(relay.abs(x)))
    cheap = partitioned(body, costs(100, 1))
    name = f"collage_{COMPILER}_abs_negative"
    assert external(cheap) == {name: ["abs", "negative"]}
    func = cheap[name]
    assert func.attrs["Primitive"] == 1 and func.body.op.attrs["Composite"].endswith("abs_negative")
    assert relay.analysis.list_op_freqs(tvm.IRModule.from_expr(cheap["main"])) == {"exp": 1}
    dear = partitioned(body, costs(1, 100))
    assert external(dear) == {}
    tvm.ir.assert_structural_equal(dear["main"].body, transform.InferType()(
        tvm.IRModule.from_expr(relay.Function([x], body)))["main"].body, map_free_vars=True)  # fmt: skip


def test_checks_and_shapes_decide_too() -> None:
    z = relay.var("z", shape=(3,))
    assert external(partitioned(relay.abs(z), costs(100, 1))) == {}
    assert external(partitioned(relay.abs(x), costs(100, 1))) != {}


def test_neighbours_of_one_compiler_are_joined() -> None:
    body = relay.add(relay.add(relay.abs(x), y), relay.const(1.0))
    joined = external(partitioned(body, costs(100, 10)))
    assert list(joined.values()) == [["abs", "add", "add"]]
    limited = external(partitioned(body, costs(10, 10.2), byoc_max_depth=2, tvm_max_depth=1))
    assert sorted(map(len, limited.values())) == [2]
    apart = external(partitioned(body, costs(100, 10), byoc_fusion_style=[f"{COMPILER}.NoFusion"]))
    assert sorted(map(len, apart.values())) == [1, 1, 1]
    with pytest.raises(tvm.TVMError, match="requires a compiler and one of"):
        partitioned(body, costs(1, 1), byoc_fusion_style=[f"{COMPILER}.Fusion"])


def test_chosen_parts_of_one_compiler_that_touch_become_one_function() -> None:
    total = relay.abs(x)
    body = relay.Tuple([total, relay.exp(relay.add(total, y)), relay.add(relay.exp(total), total)])
    mod = partitioned(body, costs(100, 10))
    # the second sum waits for exp, so that it cannot be in the function that gives exp its input
    assert external(mod) == {
        f"collage_{COMPILER}": ["abs", "add"],
        f"collage_{COMPILER}_add": ["add"],
    }
    func = mod[f"collage_{COMPILER}"]
    assert len(func.body.fields) == 2 and not func.attrs.get("Inline")
    assert [type(f) for f in mod["main"].body.fields] == [relay.TupleGetItem, *[relay.Call] * 2]


def test_the_largest_parts_alone_are_estimated() -> None:
    first = relay.abs(x)
    second = relay.abs(first)
    total = relay.add(first, second)
    found = partitioned(relay.add(second, total), costs(2, 1, max_estimates=2))
    assert external(found) == {f"collage_{COMPILER}_abs_abs_add_add": ["abs", "abs", "add", "add"]}


def test_a_value_with_two_uses_stays_a_result() -> None:
    total = relay.abs(x)
    body = relay.Tuple([relay.add(total, y), relay.exp(total)])
    apart = partitioned(body, costs(100, 10), byoc_fusion_style=[f"{COMPILER}.NoFusion"])
    assert sorted(external(apart).values()) == [["abs"], ["add"]]
    (func,) = [
        f for f in partitioned(body, costs(100, 10)).functions.values() if "Compiler" in f.attrs
    ]
    assert len(func.body.fields) == 2


def test_fusion_of_ours_is_worth_something() -> None:
    # three operators of ours in one kernel cost 0.9 + 0.81 + 0.729, two apart 0.9 each
    body = relay.exp(relay.abs(relay.sqrt(x)))
    assert external(partitioned(body, costs(1, 0.8))) == {}
    assert external(partitioned(body, costs(1, 0.5), tvm_max_depth=1)) != {}


def test_equal_parts_are_estimated_once() -> None:
    body = relay.abs(x)
    for _ in range(7):
        body = relay.abs(body)
    estimator = costs(1, 2, max_estimates=12)
    partitioned(body, estimator)
    with pytest.raises(tvm.TVMError, match="at most 3 estimates"):
        partitioned(body, costs(1, 2, max_estimates=3))
    with pytest.raises(tvm.TVMError, match="no cost for the target kind llvm"):
        partitioned(body, MockCostEstimator({"cuda": 1}))


def test_a_registered_function_may_estimate() -> None:
    @tvm.register_func("test.collage.estimate", override=True)
    def estimate(mod: tvm.IRModule, target: tvm.target.Target) -> float:
        assert target.kind.name in ("llvm", COMPILER) and "main" in mod
        return 1.0 if target.kind.name == COMPILER else 2.0

    found = partitioned(relay.abs(x), CustomCostEstimator("test.collage.estimate"))
    assert len(external(found)) == 1


def test_constants_stay_inside_their_part() -> None:
    mod = partitioned(relay.add(x, relay.const(np.ones((10, 10), "float32"))), costs(100, 1))
    (gvar,) = [g for g in mod.get_global_vars() if g.name_hint != "main"]
    assert len(mod[gvar].params) == 1 and len(mod["main"].body.args) == 1


@needs_onednn()
def test_measured_parts_compute_the_same() -> None:
    rng = np.random.default_rng(0)
    data = relay.var("data", shape=(1, 4, 8, 8))
    weight = relay.const(rng.standard_normal((4, 4, 3, 3)).astype("float32"))
    body = relay.exp(relay.nn.relu(relay.nn.conv2d(data, weight, padding=(1, 1))))
    mod = tvm.IRModule.from_expr(relay.Function([data], body))
    kind = "dnnl"
    tvm.target.register_target_kind(kind, attrs={"is_external_codegen": True}, override=True)
    targets = [tvm.target.Target("llvm"), tvm.target.Target(kind)]
    plan = tvm.target.make_compilation_config(tvm.transform.PassContext.current(), targets)
    found = transform.CollagePartition(plan)(mod)
    forced = transform.CollagePartition(plan, MockCostEstimator({"llvm": 9, "dnnl": 1}))(mod)
    assert any([f.attrs.get("Compiler") == "dnnl" for f in forced.functions.values()])
    value = rng.standard_normal((1, 4, 8, 8)).astype("float32")
    results = []
    for module in (mod, found, forced):
        lib = relay.build(module, targets)["default"](tvm.cpu())
        lib["set_input"]("data", tvm.nd.array(value))
        lib["run"]()
        results.append(lib["get_output"](0).numpy())
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], rtol=1e-4, atol=1e-5)
