"""Buffers: declaration, loads and stores, flattening, access pointers."""

from __future__ import annotations

import pytest

from tvm import tir
from tvm.ir import structural_equal

i = tir.Var("i", "int32")
j = tir.Var("j", "int32")
n = tir.Var("n", "int32")


def test_defaults() -> None:
    A = tir.decl_buffer((4, n), name="A")
    assert A.dtype == "float32"
    assert A.data.name == "A"
    assert A.data.type_annotation.element_type.dtype == "float32"
    assert A.scope() == "global"
    assert (A.data_alignment, A.offset_factor) == (64, 1)
    assert A.elem_offset.value == 0
    assert A.strides == ()
    assert tir.decl_buffer(8).shape[0].value == 8
    assert tir.decl_buffer((), name="scalar").shape == ()


def test_strides_of_the_last_axes_imply_those_before() -> None:
    A = tir.decl_buffer((3, 4, 5), name="A", strides=[2])
    assert [int(stride) for stride in A.strides] == [40, 10, 2]
    assert int(A.offset_of([1, 1, 1])[0]) == 52


def test_options() -> None:
    A = tir.decl_buffer(
        (4, 4), "int8", "A", scope="shared", data_alignment=16, offset_factor=8,
        strides=[n, 1], axis_separators=[1],
    )  # fmt: skip
    assert A.scope() == "shared"
    assert A.data_alignment == 16
    assert isinstance(A.elem_offset, tir.Var)
    assert A.strides[0] is n
    assert int(A.axis_separators[0]) == 1
    broadcast = tir.decl_buffer((4, 4), buffer_type="auto_broadcast")
    assert len(broadcast.strides) == 2
    with pytest.raises(ValueError, match="requires a buffer_type"):
        tir.decl_buffer((4,), buffer_type="auto_brodcast")


def test_a_bool_takes_a_byte() -> None:
    A = tir.decl_buffer((4,), "bool")
    assert A.data.type_annotation.element_type.dtype == "int8"


def test_elements() -> None:
    A = tir.decl_buffer((4, 4), name="A")
    load = A[i, j]
    assert isinstance(load, tir.BufferLoad)
    assert load.dtype == "float32"
    assert load.indices == (i, j)
    assert A[0, tir.Ramp(i, 1, 4)].dtype == "float32x4"
    with pytest.raises(ValueError, match="buffer A requires scalars as all but the last index"):
        A[tir.Ramp(i, 1, 4), 0]
    with pytest.raises(ValueError, match="buffer A requires 2 indices, got 1"):
        tir.BufferStore(A, 1.0, [i])
    assert tir.decl_buffer(())[()].indices == ()


def test_slices() -> None:
    A = tir.decl_buffer((16, 16), name="A")
    region = A[i, 0:4]
    assert isinstance(region, tir.BufferRegion)
    assert [int(r.extent) for r in region.region] == [1, 4]
    vector = region + tir.Broadcast(1.0, 4)
    assert vector.dtype == "float32x4"
    assert str(A[i, j : j + 8 : 2]) == "A[i, j:j + 8:2]"
    assert A[i, j : j + 8 : 2].dtype == "float32x4"
    assert str(A[:, 2]) == "A[0:16, 2]"
    with pytest.raises(ValueError, match="slice of constant length, got n"):
        A[i, 0:n:1]


def test_vector_access() -> None:
    A = tir.decl_buffer((16,), name="A")
    load = A.vload([i], "float32x4")
    assert load.dtype == "float32x4"
    assert structural_equal(load.indices[0], tir.Ramp(i, 1, 4))
    store = A.vstore(i, load)
    assert structural_equal(store.indices[0], tir.Ramp(i, 1, 4))
    with pytest.raises(TypeError, match="buffer A requires float32 vectors, got int32x4"):
        A.vload([i], "int32x4")
    packed = tir.decl_buffer((16,), "float32x4", name="P")
    assert packed.vload([i]).indices[0] is i


def test_offsets() -> None:
    A = tir.decl_buffer((4, 8, 16))
    assert str(A.offset_of([1, i, j])[0]) == "i * 16 + j + 128"
    B = tir.decl_buffer((4, 8), strides=[n, 2], elem_offset=j)
    assert str(B.offset_of([i, 3])[0]) == "i * n + j + 6"
    assert str(tir.decl_buffer(()).offset_of([])[0]) == "0"
    with pytest.raises(ValueError, match="requires 3 indices, got 1"):
        A.offset_of([0])


def test_flattening() -> None:
    A = tir.decl_buffer((4, 8, n), name="A")
    flat = A.get_flattened_buffer()
    assert structural_equal(flat.shape[0], n * 32) or structural_equal(flat.shape[0], 32 * n)
    assert flat.data is A.data
    assert flat.get_flattened_buffer() is flat
    strided = tir.decl_buffer((4, 8), strides=[16, 1])
    assert int(strided.get_flattened_buffer().shape[0]) == 64
    scalar = tir.decl_buffer(()).get_flattened_buffer()
    assert [int(e) for e in scalar.shape] == [1]


def test_axis_separators_separate_groups() -> None:
    A = tir.decl_buffer((4, 8, 16), axis_separators=[2])
    flat = A.get_flattened_buffer()
    assert [int(e) for e in flat.shape] == [32, 16]
    assert [int(s) for s in flat.axis_separators] == [1]
    assert [str(e) for e in A.offset_of([i, 1, j])] == ["i * 8 + 1", "j"]


def test_access_pointers() -> None:
    A = tir.decl_buffer((4, 8), "float16", "A")
    pointer = A.access_ptr("rw", offset=i)
    kind, data, offset, extent, mask = pointer.args
    assert kind.dtype == "float16"
    assert data is A.data
    assert offset is i
    assert structural_equal(extent, 32 - i)
    assert int(mask) == tir.Buffer.READ | tir.Buffer.WRITE
    vectors = A.access_ptr("r", content_lanes=4)
    assert vectors.args[0].dtype == "float16x4"
    assert int(vectors.args[3]) == 8
    with pytest.raises(ValueError, match="mask 'r', 'w' or 'rw', got 'x'"):
        A.access_ptr("x")


def test_offsets_are_simplified() -> None:
    n = tir.SizeVar("n", "int32")
    A = tir.decl_buffer((4, n), name="A", elem_offset=100)
    assert str(A.offset_of([2, 3])[0]) == "n * 2 + 103"


def test_axis_separators_are_in_order_and_within_the_dimensions() -> None:
    for separators in ([1, 2], [-1]):
        with pytest.raises(ValueError, match="buffer A requires axis separators in order"):
            tir.decl_buffer((4,), name="A", axis_separators=separators)
    with pytest.raises(ValueError, match="in order from 0 to 3"):
        tir.decl_buffer((4, 4, 4), name="A", axis_separators=[2, 1])


def test_indices_are_integers() -> None:
    A = tir.decl_buffer((4,), name="A")
    for index in (tir.FloatImm("float32", 2.5), tir.StringImm("x")):
        with pytest.raises(ValueError, match="buffer A requires integers as indices, got"):
            A[index]
    assert tir.BufferLoad(A, [i < 2]).dtype == "float32"
