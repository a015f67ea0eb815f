"""Attention becomes one kernel, in the forms that exporters write, with the same numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tvm
from tvm import relay, tir
from tvm.contrib import graph_executor
from tvm.relay.transform import FuseAttention
from tvm.relay.traverse import post_order
from tvm.runtime.vm import VirtualMachine

from .common import assert_unchanged, run, typed

Expr = relay.Expr


def heads_of(x: Expr, heads: int, axes: tuple[int, ...] = (0, 2, 1, 3)) -> Expr:
    return relay.transpose(relay.reshape(x, (0, 0, heads, -1)), axes)


def flat(x: Expr, rows: int, columns: int) -> Expr:
    return relay.reshape(x, (-1, rows, columns))


def attended(scores: Expr, value: Expr, heads: int, rows: int) -> Expr:
    """Softmax in four dimensions, the product with the values, heads side by side."""
    keys, width = (int(d) for d in relay.transform.InferTypeLocal(value).shape[1:])
    weights = flat(relay.nn.softmax(scores), rows, keys)
    result = relay.nn.batch_matmul(weights, value, transpose_b=False)
    result = relay.transpose(relay.reshape(result, (-1, heads, rows, width)), (0, 2, 1, 3))
    return relay.reshape(result, (-1, heads * width))


def sliced_with_mask() -> relay.Function:
    """One layer for queries, keys and values, sliced; a mask of examples."""
    x, mask = relay.var("x", shape=(2, 19, 3 * 24)), relay.var("mask", shape=(2, 1, 1, 19))
    q, k, v = [relay.strided_slice(x, [24 * i], [24 * (i + 1)], axes=[2]) for i in range(3)]
    product = relay.nn.batch_matmul(
        flat(heads_of(q, 3), 19, 8), flat(heads_of(k, 3, (0, 2, 3, 1)), 8, 19), transpose_b=False
    )
    scores = relay.reshape(product, (2, 3, 19, 19)) / relay.const(2.5) + mask
    return relay.Function([x, mask], attended(scores, flat(heads_of(v, 3), 19, 8), 3, 19))


def split_with_causal_mask() -> relay.Function:
    """A split, and a mask added to the product as it is."""
    x = relay.var("x", shape=(1, 12, 3 * 32))
    q, k, v = relay.split(x, 3, axis=2)
    product = relay.nn.batch_matmul(flat(heads_of(q, 2), 12, 16), flat(heads_of(k, 2), 12, 16))
    mask = relay.const(np.triu(np.full((12, 12), -1e4, "float32"), 1))
    scores = relay.reshape(relay.const(0.25) * product + mask, (1, 2, 12, 12))
    return relay.Function([x], attended(scores, flat(heads_of(v, 2), 12, 16), 2, 12))


def scaled_operands() -> relay.Function:
    """Queries and keys are scaled, heads come second in memory."""
    x, scale = relay.var("x", shape=(3, 17, 32)), relay.const(np.array([0.6], "float32"))
    q, k, v = [
        relay.reshape(relay.take(x, relay.const(i, "int64"), axis=0), (17, 4, 8)) for i in range(3)
    ]
    q, v = relay.transpose(q, (1, 0, 2)), relay.transpose(v, (1, 0, 2))
    q = flat(relay.reshape(q, (1, 4, 17, 8)) * scale, 17, 8)
    k = relay.transpose(k, (1, 2, 0)) * scale
    product = relay.nn.batch_matmul(q, k, transpose_b=False)
    weights = flat(relay.nn.softmax(relay.reshape(product, (1, 4, 17, 17))), 17, 17)
    result = relay.reshape(relay.nn.batch_matmul(weights, v, transpose_b=False), (1, 4, 17, 8))
    return relay.Function([x], relay.reshape(relay.transpose(result, (2, 0, 1, 3)), (17, 32)))


def replaced_scores() -> relay.Function:
    """Scores outside of a window are replaced, then a bias of each head is added."""
    q, k, v = [relay.var(name, shape=(6, 10, 8)) for name in "qkv"]
    window, bias = relay.var("window", shape=(1, 1, 10, 10), dtype="bool"), relay.var(
        "bias", shape=(1, 3, 10, 10)
    )  # fmt: skip
    scores = relay.reshape(relay.nn.batch_matmul(q, k), (2, 3, 10, 10)) * relay.const(0.3)
    scores = relay.where(window, scores, relay.const(-50.0)) + bias
    return relay.Function([q, k, v, window, bias], attended(scores, v, 3, 10))


def softmax_of_three_dimensions() -> relay.Function:
    """The mask is added in four dimensions, what follows works on three; values lie transposed."""
    q, k = [relay.var(name, shape=(4, 9, 4)) for name in "qk"]
    v, mask = relay.var("v", shape=(4, 20, 9)), relay.var("mask", shape=(2, 1, 9, 9))
    scores = relay.reshape(relay.nn.batch_matmul(q, k), (2, 2, 9, 9)) + mask
    weights = relay.nn.softmax(relay.reshape(scores, (4, 9, 9)) + relay.var("own", shape=(4, 9, 9)))
    result = relay.nn.batch_matmul(weights, v)
    return relay.Function(relay.analysis.free_vars(result), result)


FORMS = [
    sliced_with_mask,
    split_with_causal_mask,
    scaled_operands,
    replaced_scores,
    softmax_of_three_dimensions,
]


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=haswell -num-cores=8"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_fused_attention_gives_the_same_numbers(
    form: Callable[[], relay.Function], target: str
) -> None:
    func = form()
    rng = np.random.default_rng(1)
    inputs = {
        p.name_hint: rng.normal(size=p.type_annotation.concrete_shape)
        for p in typed(func)["main"].params
    }
    found = _run(func, inputs, 3, target)
    np.testing.assert_allclose(found, _run(func, inputs, 0, "llvm"), rtol=1e-5, atol=1e-5)


def _run(
    func: relay.Function, inputs: dict[str, np.ndarray], opt_level: int, target: str
) -> np.ndarray:
    with tvm.transform.PassContext(opt_level=opt_level):
        lib = relay.build(func, target)
    assert ("softmax" in lib.get_graph_json()) == (opt_level < 3)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    for param in func.params:
        value = inputs[param.name_hint]
        value = value > 0 if param.type_annotation.dtype == "bool" else value.astype("float32")
        module.set_input(param.name_hint, value)
    module.run()
    return module.get_output(0).numpy()


@pytest.mark.parametrize("form", FORMS[:3], ids=lambda form: form.__name__)
def test_nothing_is_moved_around_attention(form: Callable[[], relay.Function]) -> None:
    with tvm.target.Target("llvm"):
        main = run(form(), FuseAttention())
    outside = [n for n in _outside(main) if isinstance(n, relay.Call)]
    names = [n.op.name for n in outside if isinstance(n.op, tvm.ir.Op)]
    assert set(names) <= {"reshape"}
    assert sum(isinstance(n.op, relay.Function) for n in outside) == 1


def _outside(func: relay.Function) -> list[relay.Expr]:
    """The expressions of a function that are in no kernel."""
    kernels = [n for n in post_order(func) if isinstance(n, relay.Function) and n is not func]
    inside = {id(n) for kernel in kernels for n in post_order(kernel)}
    return [n for n in post_order(func) if id(n) not in inside]


def open_heads() -> relay.Function:
    """A length that only the run knows, of queries, keys, values and a mask; 4 heads side by side."""
    n = tir.SizeVar("n", "int32")
    x, mask = relay.var("x", shape=(1, n, 3 * 32)), relay.var("mask", shape=(n, n))
    q, k, v = relay.split(x, 3, axis=2)
    q, k, v = [relay.reshape(heads_of(y, 4), (4, -1, 8)) for y in (q, k, v)]
    scores = relay.reshape(relay.nn.batch_matmul(q, k), (-4, 1, 4, -2))
    weights = relay.nn.softmax(scores * relay.const(0.4) + mask)
    result = relay.nn.batch_matmul(relay.reshape(weights, (-3, -2)), v, transpose_b=False)
    result = relay.transpose(relay.reshape(result, (-4, 1, 4, -2)), (0, 2, 1, 3))
    return relay.Function([x, mask], relay.reshape(result, (-1, 32)))


def open_examples() -> relay.Function:
    """An open number of examples, too, each with a mask of its own that says what is kept."""
    b, n = [tir.SizeVar(name, "int32") for name in "bn"]
    x, keep = relay.var("x", shape=(b, n, 32)), relay.var("mask", shape=(b, 1, 1, n), dtype="bool")
    y = relay.reshape(heads_of(x, 4), (-3, -2))
    scores = relay.reshape(relay.nn.batch_matmul(y, y), (-4, -1, 4, -2))
    weights = relay.nn.softmax(relay.where(keep, scores, relay.const(-5.0)))
    result = relay.nn.batch_matmul(relay.reshape(weights, (-3, -2)), y, transpose_b=False)
    result = relay.transpose(relay.reshape(result, (-4, -1, 4, -2)), (0, 2, 1, 3))
    return relay.Function([x, keep], relay.reshape(result, (0, 0, -1)))


@pytest.mark.parametrize("form", [open_heads, open_examples], ids=lambda form: form.__name__)
def test_open_lengths_give_the_same_numbers(form: Callable[[], relay.Function]) -> None:
    func = form()
    with tvm.target.Target("llvm"):
        fused = run(func, FuseAttention())
    assert sum(isinstance(n, relay.Function) for n in post_order(fused)) == 2
    machines = []
    for level in (0, 3):
        with tvm.transform.PassContext(opt_level=level):
            mod = tvm.IRModule.from_expr(func)
            machines.append(VirtualMachine(relay.vm.compile(mod, "llvm"), tvm.cpu()))
    rng = np.random.default_rng(2)
    for length in (1, 2, 3, 7, 15, 16, 17, 31, 33, 64, 100):
        count = 1 if form is open_heads else length % 3 + 1
        x = rng.normal(size=(count, length, 96 if form is open_heads else 32)).astype("float32")
        mask = rng.normal(size=(length, length)).astype("float32")
        if form is open_examples:
            mask = rng.normal(size=(count, 1, 1, length)) > -1
        expected, found = [m.invoke("main", x, mask).numpy() for m in machines]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def _attention(axis: int = -1, heads: int = 2) -> tuple[list[relay.Var], Expr, Expr]:
    q, k, v = [relay.var(name, shape=(heads, 8, 16)) for name in "qkv"]
    scores = relay.nn.batch_matmul(q, k)
    weights = relay.nn.softmax(scores, axis=axis)
    return [q, k, v], scores, relay.nn.batch_matmul(weights, v, transpose_b=False)


def test_scores_that_are_read_elsewhere_stay() -> None:
    params, scores, result = _attention()
    with tvm.target.Target("llvm"):
        assert_unchanged(relay.Function(params, relay.Tuple([scores, result])), FuseAttention())


def test_softmax_along_queries_stays() -> None:
    params, _, result = _attention(axis=1)
    with tvm.target.Target("llvm"):
        assert_unchanged(relay.Function(params, result), FuseAttention())


def test_other_devices_keep_their_operators() -> None:
    params, _, result = _attention()
    with tvm.target.Target("opencl"):
        assert_unchanged(relay.Function(params, result), FuseAttention())


def test_bias_before_the_scale_stays() -> None:
    q, k, v = [relay.var(name, shape=(2, 8, 16)) for name in "qkv"]
    scores = (relay.nn.batch_matmul(q, k) + relay.var("bias", shape=(8, 8))) * relay.const(2.0)
    result = relay.nn.batch_matmul(relay.nn.softmax(scores), v, transpose_b=False)
    with tvm.target.Target("llvm"):
        assert_unchanged(relay.Function(relay.analysis.free_vars(result), result), FuseAttention())
