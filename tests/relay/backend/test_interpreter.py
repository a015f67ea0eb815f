"""The interpreter runs the whole language."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay import testing
from tvm.runtime.container import ADT, tuple_object


def value(text: str, *args: Any, name: str = "main") -> Any:
    mod = relay.parse(text)
    return relay.create_executor("debug", mod).evaluate(mod.get_global_var(name))(*args)


def test_operators_tuples_and_sharing() -> None:
    text = "def @main(%x: Tensor[(4,), float32]) { %0 = exp(%x); (%0 + %0, split(%x, indices_or_sections=2)) }"
    x = np.arange(4, dtype="float32")
    result = value(text, x)
    assert isinstance(result, ADT) and isinstance(result[1], ADT)
    total, (a, b) = result
    np.testing.assert_allclose(total.numpy(), 2 * np.exp(x), rtol=1e-5)
    np.testing.assert_array_equal(b.numpy(), x[2:])


def test_recursion_and_conditions() -> None:
    text = """
        def @factorial(%n: int32) -> int32 {
          if (%n == 0) { 1 } else { %n * @factorial(%n - 1) }
        }
        def @main(%n: int32) { @factorial(%n) }
    """
    assert value(text, np.int32(10)).numpy() == 3628800


def test_closures_see_where_they_were_made() -> None:
    text = """
        def @main(%x: int32) {
          let %add = fn (%n: int32) -> int32 { %n + %x };
          let %loop: fn (int32) -> int32 = fn (%k: int32) -> int32 {
            if (%k == 0) { 0 } else { %add(%loop(%k - 1)) }
          };
          %loop(5)
        }
    """
    assert value(text, np.int32(7)).numpy() == 35


def test_data_types() -> None:
    text = """
        type List[A] { Cons(A, List[A]), Nil }
        def @sum(%l: List[int32]) -> int32 {
          match (%l) { Cons(%h, %t) => %h + @sum(%t), Nil => 0 }
        }
        def @list() -> List[int32] { Cons(1, Cons(2, Nil())) }
        def @main() { @sum(@list()) }
    """
    assert value(text).numpy() == 3
    made = value(text, name="list")
    assert made.constructor.name_hint == "Cons" and made.fields[0].numpy() == 1


def test_references() -> None:
    text = "def @main(%x: int32) { let %r = ref(%x); let %_ = ref_write(%r, ref_read(%r) + 1); ref_read(%r) }"
    assert value(text, np.int32(4)).numpy() == 5


def test_shapes_known_at_run_time() -> None:
    text = "def @main(%x: Tensor[(?, 3), float32]) { sum(exp(%x), axis=[0]) }"
    for rows in (1, 4):
        x = np.ones((rows, 3), "float32")
        np.testing.assert_allclose(value(text, x).numpy(), np.exp(x).sum(0), rtol=1e-5)


def test_agrees_with_the_graph_executor() -> None:
    mod, params = testing.resnet.get_workload(image_shape=(3, 28, 28), num_classes=10, num_layers=8)
    data = np.random.default_rng(0).random((1, 3, 28, 28), "float32")
    found = [
        relay.create_executor(kind, mod, params=params).evaluate()(data).numpy()
        for kind in ("debug", "graph")
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-3, atol=1e-5)


def test_long_programs() -> None:
    x = relay.var("x", shape=())
    e: relay.Expr = x
    for _ in range(3000):
        e = relay.negative(e)
    assert (
        relay.create_executor("debug").evaluate(relay.Function([x], e))(np.float32(2)).numpy() == 2
    )


def test_wrong_number_of_arguments_is_rejected() -> None:
    with pytest.raises(ValueError, match="takes 1 arguments, got 2|got 2"):
        x = relay.var("x", shape=())
        relay.create_executor("debug").evaluate(relay.Function([x], x))(1.0, 2.0)


def test_a_match_that_nothing_fits() -> None:
    text = """
        type Maybe { Some(int32), None_ }
        def @main(%m: Maybe) -> int32 { match? (%m) { Some(%x) => %x } }
        def @none() -> Maybe { None_() }
        def @both() -> int32 { @main(@none()) }
    """
    with pytest.raises(tvm.TVMError, match="no clause of a match"):
        value(text, name="both")


def test_quantised_operators_on_several_tensors() -> None:
    x = relay.var("x", shape=(3,), dtype="int8")
    scale, zero = relay.const(0.5), relay.const(0, "int32")
    joined = relay.qnn.op.concatenate([x, x], [scale, scale], [zero, zero], scale, zero, 0)
    call = relay.create_executor("debug").evaluate(relay.Function([x], joined))
    np.testing.assert_array_equal(call(np.array([1, -2, 3], "int8")).numpy(), [1, -2, 3, 1, -2, 3])


def test_requantising_rounds_as_compiled_code_does() -> None:
    x = relay.var("x", shape=(256,), dtype="int8")
    zero = relay.const(0, "int32")
    scales = relay.const(0.05), relay.const(0.02)  # their quotient is 2.5, but for its last digits
    wider = relay.qnn.op.requantize(x, scales[0], zero, scales[1], zero, rounding="TONEAREST")
    data = np.arange(-128, 128).astype("int8")
    found = [
        relay.create_executor(kind).evaluate(relay.Function([x], wider))(data).numpy()
        for kind in ("debug", "graph")
    ]
    np.testing.assert_array_equal(*found)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "function",
    [
        relay.max, relay.min, relay.mean, relay.variance, relay.logsumexp,
        relay.nn.softmax, relay.nn.log_softmax,
    ],
)  # fmt: skip
def test_reductions_of_nothing_are_those_of_kernels(function: Callable[..., relay.Expr]) -> None:
    x = relay.var("x", shape=(2, 0))
    func = relay.Function([x], function(x, axis=1))
    value = np.zeros((2, 0), "float32")
    found = relay.create_executor("debug").evaluate(func)(value).numpy()
    compiled = relay.create_executor("graph", mod=tvm.IRModule.from_expr(func)).evaluate()
    np.testing.assert_array_equal(found, compiled(value).numpy())


def test_tuples_of_the_runtime_are_arguments() -> None:
    text = "def @main(%t: (Tensor[(2,), float32], Tensor[(2,), float32])) { %t.0 - %t.1 }"
    arrays = [tvm.nd.array(np.full(2, n, "float32")) for n in (3, 1)]
    np.testing.assert_array_equal(value(text, tuple_object(arrays)).numpy(), [2, 2])


def test_arrays_of_numpys_types_become_narrow_ones_that_have_their_numbers() -> None:
    text = 'def @main(%x: Tensor[(2,), int4], %y: Tensor[(2,), bfloat16]) { cast(%x, dtype="float32") + cast(%y, dtype="float32") }'
    run = relay.create_executor("vm", relay.parse(text)).evaluate()
    found = run(np.array([-8, 7], "int8"), np.float32([0.5, 1.0]))
    np.testing.assert_array_equal(found.numpy(), [-7.5, 8.0])
    for wrong in ((np.array([8, 0]), np.float32([0, 0])), (np.array([1, 0]), np.float32([0.1, 0]))):
        with pytest.raises(tvm.TVMError, match="needs|requires"):
            run(*wrong)
