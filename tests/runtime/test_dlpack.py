"""Arrays and other frameworks' tensors over the same memory."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from datetime import datetime_CAPI
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import torch

import tvm.runtime.ndarray as nd

SHAPES = [(), (0,), (2, 0, 3), (2, 3)]
# the same element types by their names here, in torch and in jax
TYPES = {
    "bool": "bool",
    "uint8": "uint8",
    "int64": "int64",
    "float16": "float16",
    "float32": "float32",
    "bfloat16": "bfloat16",
    "e4m3_float8": "float8_e4m3fn",
    "e5m2_float8": "float8_e5m2",
}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_torch_shares_every_type_and_shape(name: str, shape: tuple[int, ...]) -> None:
    tensor = torch.ones(shape).to(getattr(torch, TYPES[name]))
    array = nd.from_dlpack(tensor)
    assert (array.dtype, array.shape) == (name, shape)
    assert (array.numpy().astype("float32") == 1).all()
    for back in (torch.from_dlpack(array), torch.utils.dlpack.from_dlpack(array.to_dlpack())):
        assert (back.dtype, back.shape) == (tensor.dtype, tensor.shape)
        assert back.numel() == 0 or back.data_ptr() == tensor.data_ptr()


@pytest.mark.parametrize("name", sorted({*TYPES} - {"int64"}))  # jax narrows int64 by itself
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_jax_shares_every_type_and_shape(name: str, shape: tuple[int, ...]) -> None:
    values = jnp.ones(shape, getattr(jnp, TYPES[name]))
    array = nd.from_dlpack(values)
    assert (array.dtype, array.shape) == (name, shape)
    assert values.size == 0 or array.data_address == values.unsafe_buffer_pointer()
    back = jnp.from_dlpack(array)
    assert back.dtype == values.dtype and bool((back == values).all())


@pytest.mark.parametrize("name", ["bool", "int8", "uint64", "float16", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_numpy_shares_every_type_and_shape(name: str, shape: tuple[int, ...]) -> None:
    array = nd.from_dlpack(np.ones(shape, name))
    assert (array.dtype, array.shape) == (name, shape)
    back = np.from_dlpack(array)
    assert (back.dtype, back.shape) == (name, shape)
    assert back.ctypes.data == array.data_address
    back[...] = 0
    assert (array.numpy() == 0).all()


GRID = np.arange(24.0).reshape(4, 6)
STRIDED: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda a: a.T,
    "every second": lambda a: a[::2, 1::3],
    "upside down": lambda a: a[::-1],
    "mirrored": lambda a: a[:, ::-2],
    "a column": lambda a: a[:, 2],
    "broadcast": lambda a: np.broadcast_to(a[0], (3, 6)),
    "an empty part": lambda a: a[4:, ::2],
}


@pytest.mark.parametrize("case", STRIDED)
@pytest.mark.parametrize("name", ["int8", "float16", "float32", "float64"])
def test_strides_are_read_and_copied(case: str, name: str) -> None:
    values = STRIDED[case](GRID.astype(name))
    array = nd.from_dlpack(values)
    np.testing.assert_array_equal(array.numpy(), values)
    assert array.copyto(nd.cpu()).strides is None


def test_strided_arrays_are_written_in_place() -> None:
    values = np.zeros((4, 6), "float32")
    part = nd.from_dlpack(values[::2, ::-1])
    part.copyfrom(np.arange(12).reshape(2, 6))
    expected = np.arange(12).reshape(2, 6)[:, ::-1]
    np.testing.assert_array_equal(values[::2], expected)
    nd.array(np.full((2, 6), 7, "float32")).copyto(part)
    assert (values[::2] == 7).all() and (values[1::2] == 0).all()
    part[:] = part.numpy() + 1
    assert (values[::2] == 8).all()


def test_copies_between_different_strides() -> None:
    source = nd.from_dlpack(np.arange(6, dtype="float32").reshape(2, 3).T)
    values = np.zeros((3, 4), "float32")
    source.copyto(nd.from_dlpack(values[:, ::2]))
    np.testing.assert_array_equal(values[:, ::2], source.numpy())


def test_vectors_with_strides() -> None:
    array = nd.empty((3,), "float32x4").copyfrom(np.arange(12.0).reshape(3, 4))
    np.testing.assert_array_equal(array.numpy(), np.arange(12.0).reshape(3, 4))


def test_capsules_of_both_versions() -> None:
    array = nd.array(np.arange(3))
    assert '"dltensor"' in repr(array.__dlpack__())
    assert '"dltensor"' in repr(array.__dlpack__(max_version=(0, 8)))
    capsule = array.__dlpack__(max_version=(1, 1))
    assert '"dltensor_versioned"' in repr(capsule)
    shared = nd.from_dlpack(capsule)
    assert shared.data_address == array.data_address
    with pytest.raises(ValueError, match='not used before.*"used_dltensor_versioned"'):
        nd.from_dlpack(capsule)
    for producer in (np.arange(3), torch.arange(3), jnp.arange(3)):
        assert nd.from_dlpack(producer.__dlpack__(max_version=(1, 0))).numpy().tolist() == [0, 1, 2]
        assert nd.from_dlpack(producer.__dlpack__()).numpy().tolist() == [0, 1, 2]


def test_a_producer_from_before_the_first_version() -> None:
    class Old:
        def __dlpack__(self) -> Any:
            return np.arange(3).__dlpack__()

    assert nd.from_dlpack(Old()).numpy().tolist() == [0, 1, 2]


def test_capsules_that_others_have_used() -> None:
    capsule = nd.array(np.ones(3)).to_dlpack()
    tensor = torch.utils.dlpack.from_dlpack(capsule)
    with pytest.raises(ValueError, match='not used before, got .*"used_dltensor"'):
        nd.from_dlpack(capsule)
    assert tensor.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="needs a DLPack capsule"):
        nd.from_dlpack(datetime_CAPI)


def test_arguments_of_the_protocol() -> None:
    array = nd.array(np.ones(3))
    assert array.__dlpack_device__() == (1, 0)
    assert nd.from_dlpack(array.__dlpack__(stream=-1)).shape == (3,)
    with pytest.raises(ValueError, match=r"stream=None on cpu\(0\), got 5"):
        array.__dlpack__(stream=5)
    copy = np.from_dlpack(array, copy=True)
    copy[:] = 0
    assert (array.numpy() == 1).all()


@pytest.mark.parametrize("versioned", [False, True])
def test_memory_lives_as_long_as_anybody_needs_it(versioned: bool) -> None:
    def export(array: nd.NDArray) -> Any:
        return array.__dlpack__(max_version=(1, 0) if versioned else None)

    def is_held(values: np.ndarray[Any, Any]) -> bool:
        return sys.getrefcount(values) > alone

    values = np.zeros(3)
    alone = 0
    alone = sys.getrefcount(values) + 1  # the argument of is_held
    # the capsule is never consumed
    array = nd.share_numpy(values)
    capsule = export(array)
    del array
    assert is_held(values)
    del capsule
    assert not is_held(values)
    # the producer goes first, then the consumer
    values = np.arange(3.0)
    array = nd.share_numpy(values)
    consumer = nd.from_dlpack(export(array))
    del array
    assert consumer.numpy().tolist() == [0, 1, 2] and is_held(values)
    del consumer
    assert not is_held(values)
    # the consumer goes first
    values = np.arange(3.0)
    array = nd.share_numpy(values)
    tensor = torch.from_dlpack(array)
    del tensor
    gc.collect()
    assert array.numpy().tolist() == [0, 1, 2] and is_held(values)
    del array
    assert not is_held(values)


def test_a_rejected_capsule_stays_usable() -> None:
    capsule = np.zeros(2, "complex64").__dlpack__()
    with pytest.raises(ValueError, match="numbers of a known kind"):
        nd.from_dlpack(capsule)
    assert '"dltensor"' in repr(capsule)


def test_elements_of_less_than_a_byte_are_not_shared() -> None:
    array = nd.empty((4,), "int4").copyfrom([1, -2, 7, -8])
    assert array.numpy().tolist() == [1, -2, 7, -8]
    with pytest.raises(ValueError, match="to_dlpack needs elements of whole bytes, got int4"):
        array.to_dlpack()
    small = nd.array(np.array([3, 15], ml_dtypes.uint4))
    assert small.dtype == "uint4" and small.numpy().tolist() == [3, 15]


def test_tensors_become_arrays_of_their_own() -> None:
    for values in (torch.ones(2, dtype=torch.bfloat16), jnp.ones(2, jnp.bfloat16)):
        array = nd.array(values)
        assert array.dtype == "bfloat16" and array.numpy().tolist() == [1, 1]
    tensor = torch.zeros(2)
    array = nd.array(tensor)
    tensor[0] = 1
    assert array.numpy().tolist() == [0, 0]
