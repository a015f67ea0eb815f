"""The functions that programs of the virtual machine call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm.relax.testing.runtime_builtin import MakeShapeCode, MatchShapeCode
from tvm.runtime import ShapeTuple


def builtin(name: str) -> Any:
    return tvm.get_global_func(f"vm.builtin.{name}")


def test_shapes_are_matched_and_made() -> None:
    heap = tvm.nd.array(np.zeros(4, "int64"))
    codes = (MatchShapeCode.STORE_TO_HEAP, 1, MatchShapeCode.ASSERT_EQUAL_TO_IMM, 3)
    builtin("match_shape")(ShapeTuple([7, 3]), heap, 2, *codes, "")
    codes = (MatchShapeCode.ASSERT_EQUAL_TO_LOAD, 1)
    builtin("match_shape")(tvm.nd.empty((7,)), heap, 1, *codes, "")
    codes = (MakeShapeCode.LOAD_SHAPE, 1, MakeShapeCode.USE_IMM, 2)
    assert builtin("make_shape")(heap, 2, *codes) == (7, 2)
    assert builtin("make_prim_value")(heap, MakeShapeCode.LOAD_SHAPE, 1) == 7


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ((1, 0, 0), "has 2 axes, expected 1"),
        ((2, 0, 5, 2, 0), "axis 0 of the shape is 7, expected 5"),
        ((2, 3, 0, 2, 0), "axis 0 of the shape is 7, expected 0 as elsewhere"),
        ((2, 1, 4, 2, 0), "has 4 places, got index 4"),
    ],
)
def test_other_shapes_are_refused(codes: tuple[int, ...], message: str) -> None:
    heap = tvm.nd.array(np.zeros(4, "int64"))
    with pytest.raises(RuntimeError, match=message):
        builtin("match_shape")(ShapeTuple([7, 3]), heap, *codes, "f(x)")


@pytest.mark.parametrize(
    ("name", "args", "error", "message"),
    [
        ("tensor", (tvm.nd.empty((2,)), 3, ""), ValueError, "with ndim 3, got 1"),
        (
            "tensor",
            (tvm.nd.empty((2,)), 1, "int8", "here"),
            ValueError,
            "here expected .* dtype int8",
        ),
        ("tensor", (ShapeTuple([1]), 1, ""), TypeError, "expected a Tensor, got Shape"),
        ("shape", ([1], 1, ""), TypeError, "expected a Shape"),
        ("shape", (ShapeTuple([1]), 2, ""), ValueError, "with ndim 2, got 1"),
        ("tuple", ([1, 2], 3, ""), ValueError, "with 3 elements, got 2"),
        ("tuple", (5, 3, ""), TypeError, "needs a Tuple, got int"),
        ("func", (5, "here"), TypeError, "here expected a Function, got int"),
        ("prim_value", (2.5, "int64", ""), TypeError, "a number of type int64, got float"),
    ],
)
def test_arguments_are_checked(name: str, args: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        builtin(f"check_{name}_info")(*args)


def test_tuples_of_all_kinds_have_items() -> None:
    item = builtin("tuple_getitem")
    assert item([4, 5], 1) == 5
    assert item(builtin("make_tuple")(4, "x"), 1) == "x"
    assert item(tvm.runtime.container.ADT(0, [4, 5]), 0) == 4
    with pytest.raises(IndexError, match="index 2 is out of range"):
        item([4, 5], 2)


def test_conditions_are_read_from_numbers_and_tensors() -> None:
    read = builtin("read_if_cond")
    assert read(1) and read(tvm.nd.array(np.array(True))) and read(tvm.nd.array(np.array(256)))
    assert not read(tvm.nd.array(np.array(0, "int8")))
    with pytest.raises(TypeError, match="bool or integers, got float32"):
        read(tvm.nd.array(np.array(1, "float32")))


def test_a_dynamic_call_gets_extents_behind_its_tensors() -> None:
    found: list[Any] = []
    builtin("call_tir_dyn")(lambda *args: found.extend(args), "tensor", ShapeTuple([3, 4]))
    assert found == ["tensor", 3, 4]


def test_values_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    show = tvm.get_global_func("relax.run.print")
    matrix = tvm.nd.array(np.array([[1, 2], [3, 4]], "int8"))
    show("", 1, (1.5, tvm.nd.array(np.array(True))), matrix)
    show("{{{}}} of {}", "x", (3,))
    assert capsys.readouterr().out == "1 (1.5, True) [[1 2]\n [3 4]]\n{x} of (3,)\n"


def test_assertions_tell_their_values() -> None:
    check = tvm.get_global_func("relax.run.assert_op")
    check(True, "never {}")
    with pytest.raises(AssertionError, match=r"^Assertion Failed: \(5, 6\)"):
        check(tvm.nd.array(np.array(False)), "", [5, 6])
    with pytest.raises(AssertionError, match="^number 5"):
        check(0, "number {}", 5)


def cache_of(rows: int, reserved: int) -> Any:
    first = tvm.nd.array(np.arange(rows * 2, dtype="float32").reshape(rows, 2))
    return builtin("attention_kv_cache_create")(first, ShapeTuple([reserved, 2]), -1)


def test_a_cache_of_keys_grows() -> None:
    cache = cache_of(1, 2)
    for value in (5, 6, 7):
        row = tvm.nd.array(np.full((1, 2), value, "float32"))
        cache = builtin("attention_kv_cache_append")(cache, row)
    found = builtin("attention_kv_cache_view")(cache, ShapeTuple([4, 2])).numpy()
    np.testing.assert_array_equal(found, [[0, 1], [5, 5], [6, 6], [7, 7]])
    builtin("attention_kv_cache_array_popn")([cache], 3)
    assert builtin("attention_kv_cache_view")(cache).shape == (1, 2)
    builtin("attention_kv_cache_array_clear")([cache])
    assert builtin("attention_kv_cache_view")(cache).shape == (0, 2)


def test_a_window_keeps_its_first_rows() -> None:
    cache = cache_of(0, 3)
    override = builtin("attention_kv_cache_window_override_with_sinks")
    for value in range(5):
        override(cache, tvm.nd.array(np.full((1, 2), value, "float32")), 3, 1)
    found = builtin("attention_kv_cache_view")(cache).numpy()
    np.testing.assert_array_equal(found[:, 0], [0, 3, 4])
    with pytest.raises(ValueError, match="the cache needs rows of float32 of shape"):
        override(cache, tvm.nd.array(np.zeros((1, 3), "float32")), 3, 1)


def test_tokens_are_drawn_among_the_likeliest() -> None:
    likely = tvm.nd.array(np.array([[0.1, 0.6, 0.3]], "float32"))
    draw = builtin("sample_top_p_from_prob")
    assert [draw(likely, 1.0, u) for u in (0.0, 0.59, 0.61, 0.95)] == [1, 1, 2, 0]
    assert [draw(likely, 0.5, u) for u in (0.0, 0.99)] == [1, 1]
    logits = tvm.nd.array(np.log(likely.numpy()))
    assert builtin("sample_top_p_from_logits")(logits, 0.0, 1.0, 0.99) == 1
    assert builtin("sample_top_p_from_logits")(logits, 1.0, 1.0, 0.61) == 2
    uniform = tvm.nd.array(np.array([[0.05], [0.5]], "float32"))
    rows = tvm.nd.array(np.repeat(likely.numpy(), 2, 0))
    assert builtin("multinomial_from_uniform")(rows, uniform).numpy().tolist() == [[0], [1]]


def test_penalties_lower_the_logits_of_tokens() -> None:
    logits = tvm.nd.array(np.array([[2.0, -2.0, 1.0]], "float32"))
    tokens = tvm.nd.array(np.array([0, 1], "int32"))
    builtin("apply_repetition_penalty")(logits, tokens, 2.0)
    np.testing.assert_allclose(logits.numpy(), [[1, -4, 1]])
    builtin("apply_presence_and_frequency_penalty")(logits, tokens, tokens, 0.5, 1.0)
    np.testing.assert_allclose(logits.numpy(), [[0.5, -5.5, 1]])
    builtin("apply_softmax_with_temperature")(logits, 0.0)
    np.testing.assert_allclose(logits.numpy(), [[0, 0, 1]])
    with pytest.raises(ValueError, match="no token 9 of 3"):
        builtin("apply_repetition_penalty")(logits, tvm.nd.array(np.array([9], "int32")), 2.0)
