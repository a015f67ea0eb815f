"""Fusion of operators into kernels."""

from __future__ import annotations

import tvm
from tvm import relay
from tvm.relay.transform import DefuseOps, FuseOps, SeparateOps

from .common import run, typed


def kernels(func: relay.Function, level: int = 2) -> list[list[str]]:
    """The operators of each kernel, in order of execution."""
    fused = run(func, FuseOps(level))
    found = []
    for node in relay.analysis.post_order(fused):
        if isinstance(node, relay.Call) and isinstance(node.op, relay.Function):
            body = relay.analysis.post_order(node.op.body)
            found.append([n.op.name for n in body if isinstance(n, relay.Call)])
    return found


def image(name: str = "x", channels: int = 4) -> relay.Var:
    return relay.var(name, shape=(1, channels, 8, 8))


def conv(x: relay.Expr, name: str = "w") -> relay.Expr:
    return relay.nn.conv2d(x, relay.var(name), channels=4, kernel_size=(3, 3), padding=(1, 1))


def function(body: relay.Expr) -> relay.Function:
    return relay.Function(relay.analysis.free_vars(body), body)


def test_elementwise_chain_is_one_kernel() -> None:
    x = image()
    assert kernels(function(relay.exp(relay.nn.relu(x + x)))) == [["add", "nn.relu", "exp"]]


def test_epilogue_follows_convolution() -> None:
    x = image()
    body = relay.nn.relu(conv(x) + relay.var("b", shape=(4, 1, 1)))
    assert kernels(function(body)) == [["nn.conv2d", "add", "nn.relu"]]


def test_residual_addition_joins_the_last_convolution() -> None:
    x = image()
    first = relay.nn.relu(conv(x, "w1"))
    body = relay.nn.relu(conv(first, "w2") + first)
    assert kernels(function(body)) == [["nn.conv2d", "nn.relu"], ["nn.conv2d", "add", "nn.relu"]]


def test_two_convolutions_never_share_a_kernel() -> None:
    x = image()
    found = kernels(function(conv(x, "w1") + conv(x, "w2")))
    assert sorted(found) == [["nn.conv2d"], ["nn.conv2d", "add"]]


def test_reduction_takes_what_feeds_it() -> None:
    x = image()
    assert kernels(function(relay.sum(relay.exp(x), axis=1))) == [["exp", "sum"]]
    assert kernels(function(relay.exp(relay.sum(x, axis=1)))) == [["sum"], ["exp"]]


def test_injective_operators_fuse_with_elementwise() -> None:
    x = image()
    body = relay.nn.relu(relay.transpose(x + x, (0, 2, 3, 1)))
    assert kernels(function(body)) == [["add", "transpose", "nn.relu"]]


def test_concatenation_takes_its_producers() -> None:
    x, y = image("x"), image("y")
    body = relay.concatenate([relay.nn.relu(x), relay.exp(y)], axis=1)
    assert kernels(function(body)) == [["nn.relu", "exp", "concatenate"]]


def test_tuple_of_results_stays_outside() -> None:
    x = image()
    fused = run(function(relay.Tuple([relay.exp(x), relay.nn.relu(x)])), FuseOps(2))
    assert isinstance(fused.body, relay.Tuple)
    assert all(isinstance(f.op, relay.Function) for f in fused.body.fields)


def test_split_results_are_used_by_later_kernels() -> None:
    x = image()
    a, b = relay.split(relay.exp(x), 2, axis=1)
    assert ["exp", "split", "add"] in kernels(function(a + b))


def test_level_zero_gives_each_operator_its_kernel() -> None:
    x = image()
    assert kernels(function(relay.exp(relay.nn.relu(x))), 0) == [["nn.relu"], ["exp"]]


def test_operators_left_over_get_a_kernel_each() -> None:
    x = image()
    separate = run(function(relay.exp(relay.nn.relu(x))), SeparateOps())
    assert str(separate) == str(run(function(relay.exp(relay.nn.relu(image()))), FuseOps(0)))
    fused = run(function(relay.exp(relay.nn.relu(x))), FuseOps(2))
    assert run(fused, SeparateOps()).body is fused.body


def test_kernel_takes_the_fields_it_reads() -> None:
    a, b = relay.split(image(), 2, axis=1)
    fused = run(function(relay.Tuple([relay.sum(a, axis=1), relay.max(b, axis=1)])), FuseOps(2))
    for name in ("sum", "max"):
        (kernel,) = [
            n for n in relay.analysis.post_order(fused)
            if isinstance(n, relay.Call) and isinstance(n.op, relay.Function) and name in str(n.op)
        ]  # fmt: skip
        assert [type(arg) for arg in kernel.args] == [relay.TupleGetItem]


def test_scalar_constants_are_part_of_the_kernel() -> None:
    x = image()
    fused = run(function(x + relay.const(2.0)), FuseOps(2))
    assert len(fused.body.args) == 1


def test_scalar_constant_used_by_two_kernels_is_in_both() -> None:
    x, two = image(), relay.const(2.0)
    body = relay.sum(x + two, axis=1, keepdims=True)
    fused = run(function(relay.nn.softmax(body) * two), FuseOps(2))
    calls = [n for n in relay.analysis.post_order(fused) if isinstance(n, relay.Call)]
    kernels = [c for c in calls if isinstance(c.op, relay.Function)]
    assert all(not isinstance(a, relay.Constant) for c in kernels for a in c.args)


def test_depth_is_limited_by_the_context() -> None:
    x = image()
    body: relay.Expr = x
    for _ in range(20):
        body = relay.exp(body)
    with tvm.transform.PassContext(config={"relay.FuseOps.max_depth": 5}):
        assert [len(k) for k in kernels(function(body))] == [5, 5, 5, 5]


def test_chains_without_shared_values_are_as_long_as_the_context_says() -> None:
    body: relay.Expr = image()
    for _ in range(300):
        body = relay.exp(body)
    with tvm.transform.PassContext(config={"relay.FuseOps.max_depth": 1000}):
        assert [len(k) for k in kernels(function(body))] == [300]


def test_function_is_marked_and_typed() -> None:
    x = image()
    fused = run(function(relay.exp(x)), FuseOps(2))
    kernel = fused.body.op
    assert kernel.attrs["Primitive"] == 1
    assert kernel.ret_type == x.type_annotation
    assert kernel.checked_type is not None


def test_reshape_alone_is_marked() -> None:
    x = image()
    fused = run(function(relay.reshape(x, (1, -1))), FuseOps(2))
    assert fused.body.op.attrs["relay.reshape_only"] == 1


def test_fusing_twice_changes_nothing() -> None:
    x = image()
    mod = FuseOps(2)(typed(function(relay.exp(x))))
    assert tvm.ir.structural_equal(FuseOps(2)(mod)["main"], mod["main"])


def test_defuse_restores_the_program() -> None:
    x = image()
    func = function(relay.nn.relu(conv(x) + relay.const(1.0)))
    before = typed(func)
    after = DefuseOps()(FuseOps(2)(before))
    tvm.ir.assert_structural_equal(before["main"], after["main"])


def test_deep_chain() -> None:
    x = image()
    body: relay.Expr = x
    for _ in range(20_000):
        body = relay.exp(body)
    assert len(kernels(function(body))) == 20_000 // 256 + 1


def test_fused_program_as_text() -> None:
    x = relay.var("x", shape=(2,))
    mod = FuseOps(2)(typed(function(relay.exp(x + x))))
    t = "Tensor[(2,), float32]"
    assert str(mod) == (
        f"def @main(%x: {t}) -> {t} {{\n"
        f"  %1 = fn (%p0: {t}, Primitive=1) -> {t} {{\n"
        f"    %0 = add(%p0, %p0) /* ty={t} */;\n"
        f"    exp(%0) /* ty={t} */\n"
        f"  }} /* ty=fn ({t}) -> {t} */;\n"
        f"  %1(%x) /* ty={t} */\n"
        "}\n"
    )


def test_values_used_twice_do_not_multiply_without_bound() -> None:
    x = relay.var("x", shape=(4, 4))
    value: relay.Expr = x
    for _ in range(40):
        value = relay.tanh(value) * value
    kernels = [
        n
        for n in relay.traverse.post_order(run(relay.Function([x], value), FuseOps()))
        if isinstance(n, relay.Function) and "Primitive" in n.attrs
    ]
    assert 4 < len(kernels) < 40


def test_stop_fusion_leaves_no_kernel() -> None:
    x = relay.var("x", shape=(4,))
    apart = relay.exp(relay.annotation.stop_fusion(relay.tanh(x)))
    func = relay.transform.FuseOps(2)(
        relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], apart)))
    )["main"]
    assert relay.testing.count_ops(func) == {"tanh": 1, "exp": 1}
    assert isinstance(func.body.args[0], relay.Call)  # of the other kernel


def test_kernels_take_no_more_arguments_than_their_target_allows() -> None:
    body = relay.exp(image("x0"))
    for i in range(1, 40):
        body = body + relay.exp(image(f"x{i}"))
    with tvm.target.Target("metal"):
        found = kernels(function(body))
    # 31 arguments, of which one is the result
    assert found[0].count("exp") == 30 and found[1:] == [["exp"], ["add"]] * 10
    with tvm.target.Target("llvm"):
        assert len(kernels(function(body))) == 1
