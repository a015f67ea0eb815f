"""Functions: parameters, attributes, specialisation, intrinsics of tensors."""

from __future__ import annotations

import pytest

from tvm import tir
from tvm.error import TVMError
from tvm.ir import PrimType, TupleType, assert_structural_equal
from tvm.script import tir as T


@T.prim_func
def scale(a: T.handle, b: T.handle, factor: T.float32):
    m = T.int32()
    n = T.int32()
    A = T.match_buffer(a, (m, n))
    B = T.match_buffer(b, (m, n))
    for i, j in T.grid(m, n):
        B[i, j] = A[i, j] * factor


def test_parameters_may_be_buffers() -> None:
    A = tir.decl_buffer((4,), name="A")
    n = tir.Var("n", "int32")
    func = tir.PrimFunc([A, n], tir.Evaluate(0))
    handle = func.params[0]
    assert handle.dtype == "handle"
    assert func.buffer_map[handle] is A
    assert isinstance(func.ret_type, TupleType)
    with pytest.raises(
        TypeError, match="PrimFunc requires variables and buffers as params, got int"
    ):
        tir.PrimFunc([3], tir.Evaluate(0))


def test_changes_are_copies() -> None:
    assert scale.with_body(scale.body) is scale
    other = scale.with_body(tir.Evaluate(0))
    assert other.params is scale.params
    named = scale.with_attr("tir.noalias", True)
    assert "tir.noalias" not in scale.attrs
    assert named.attrs["tir.noalias"] is True
    assert named.without_attr("tir.noalias").get_attr("tir.noalias", 7) == 7


def test_specialize_a_buffer() -> None:
    a, b, factor = scale.params
    result = scale.specialize({a: tir.decl_buffer((4, 8))})
    assert [p.name for p in result.params] == ["a", "b", "factor"]
    expected = T.prim_func  # the declared symbol stays

    @expected
    def scale_of_known_shape(a: T.handle, b: T.handle, factor: T.float32):
        T.func_attr({"global_symbol": "scale"})
        A = T.match_buffer(a, (4, 8))
        B = T.match_buffer(b, (4, 8))
        for i, j in T.grid(4, 8):
            B[i, j] = A[i, j] * factor

    assert_structural_equal(result, scale_of_known_shape)


def test_specialize_a_scalar() -> None:
    result = scale.specialize({scale.params[2]: 2.0})
    assert [p.name for p in result.params] == ["a", "b"]
    assert result.body.body.body.value.b.value == 2.0


def test_misuse_of_specialize() -> None:
    a, _, factor = scale.params
    with pytest.raises(TypeError, match="requires parameters of the function"):
        scale.specialize({tir.Var("z", "int32"): 1})
    with pytest.raises(TypeError, match="requires a buffer for a"):
        scale.specialize({a: 3})
    with pytest.raises(TypeError, match="requires a value for the scalar factor"):
        scale.specialize({factor: tir.decl_buffer((4,))})
    with pytest.raises(TypeError, match="requires a 2-dimensional float32 buffer for a, got 1"):
        scale.specialize({a: tir.decl_buffer((4,))})
    fixed = scale.specialize({a: tir.decl_buffer((4, 8))})
    with pytest.raises(TypeError, match="specialize requires 4 in parameter a, got 5"):
        fixed.specialize({a: tir.decl_buffer((5, 8))})


def test_results() -> None:
    @T.prim_func(private=True)
    def one() -> T.int32:
        return 1

    assert one.ret_type == PrimType("int32")


def test_tensor_intrinsics() -> None:
    intrin = tir.TensorIntrin.register("test.scale", scale, scale, override=True)
    assert tir.TensorIntrin.get("test.scale") is intrin
    with pytest.raises(ValueError, match="'test.scale' is taken"):
        tir.TensorIntrin.register("test.scale", scale, scale)
    assert tir.TensorIntrin.get("test.scales", allow_missing=True) is None
    with pytest.raises(TVMError, match="did you mean 'test.scale'"):
        tir.TensorIntrin.get("test.scales")


def test_specialized_programs_are_folded() -> None:
    @T.prim_func(private=True)
    def before(a: T.handle, n: T.int32):
        A = T.match_buffer(a, (n // 8, 8), "int32")
        for i in range(n - 1):
            A[i // 8, i % 8] = n * 2

    @T.prim_func(private=True)
    def expected(a: T.handle):
        A = T.match_buffer(a, (2, 8), "int32")
        for i in range(15):
            A[i // 8, i % 8] = 32

    assert_structural_equal(before.specialize({before.params[1]: 16}), expected)
    assert before.specialize({}) is before


def test_specialised_memory_is_that_of_the_given_buffer() -> None:
    @T.prim_func
    def copy(a: T.handle, b: T.handle):
        A = T.match_buffer(a, (4, 4))
        B = T.match_buffer(b, (4, 4))
        flat = T.decl_buffer((16,), data=B.data)
        for i in range(16):
            flat[i] = A[i // 4, i % 4]

    a, b = copy.params
    in_place = copy.specialize({b: copy.buffer_map[a]})
    memory = in_place.buffer_map[a].data
    assert in_place.buffer_map[b].data is memory
    assert in_place.body.buffer.data is memory
    assert in_place.body.body.body.buffer is in_place.body.buffer
