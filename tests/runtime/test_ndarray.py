"""Arrays: creation, copies, exchange with other frameworks."""

from __future__ import annotations

import gc
import pickle
import sys
import weakref

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import tvm.runtime.ndarray as nd
from tvm._ffi import get_global_func, register_extension
from tvm.runtime import Device, convert
from tvm.support.dtype import dtype

DTYPES = [
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "bool",
]  # fmt: skip


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3), (2, 0, 4), (1, 2, 3, 4)])
def test_values_come_back(name: str, shape: tuple[int, ...]) -> None:
    values = (np.random.default_rng(0).random(shape) * 2).astype(name)
    array = nd.array(values)
    assert array.shape == shape
    assert array.dtype is dtype(name)
    back = array.numpy()
    assert back.dtype == values.dtype and back.shape == shape
    np.testing.assert_array_equal(back, values)


@pytest.mark.parametrize(
    "name", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
)
def test_types_of_ml_dtypes(name: type) -> None:
    values = np.array([[1.5, -2.0], [0.25, 3.0]]).astype(name)
    back = nd.array(values).numpy()
    assert back.dtype == values.dtype
    np.testing.assert_array_equal(back.astype("float32"), values.astype("float32"))
    assert nd.array(np.array(1.5).astype(name)).numpy().astype("float32") == 1.5


def test_uint16_is_copied_as_the_bits_of_bfloat16() -> None:
    values = np.array([1.5, -2.0, 3e38]).astype(ml_dtypes.bfloat16)
    array = nd.empty((3,), "bfloat16").copyfrom(values.view("uint16"))
    np.testing.assert_array_equal(array.numpy(), values)


def test_python_numbers_and_lists() -> None:
    assert nd.array(3).dtype is dtype("int64")
    assert nd.array([[1.0, 2.0]]).shape == (1, 2)
    with pytest.raises(TypeError, match="array needs numbers"):
        nd.array(["a"])


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "float64"])
@given(data=st.data())
def test_views_are_copied_compact(dtype: str, data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.sampled_from([1, 2, 3, 65, 130]), min_size=1, max_size=3))
    whole = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    view = whole.transpose(data.draw(st.permutations(range(len(shape)))))
    steps = st.sampled_from([slice(None), slice(None, None, -1), slice(None, None, 2), slice(1, 3)])
    view = view[tuple(data.draw(steps) for _ in shape)]
    if data.draw(st.booleans()):
        view = np.broadcast_to(view, (2, *view.shape))  # which may not be written to
    np.testing.assert_array_equal(nd.array(view).numpy(), view)


def test_strided_numpy_is_copied_compact() -> None:
    values = np.arange(24, dtype="float32").reshape(4, 6)
    for part in (values.T, values[::2, 1::2], values[::-1], np.asfortranarray(values)):
        np.testing.assert_array_equal(nd.array(part).numpy(), part)


def test_memory_is_aligned() -> None:
    for size in (0, 1, 3, 1000):
        assert nd.empty((size,), "int8").data_address % 64 == 0


def test_copies() -> None:
    source = nd.array(np.arange(6, dtype="float32").reshape(2, 3))
    target = nd.empty((2, 3))
    assert source.copyto(target) is target
    np.testing.assert_array_equal(target.numpy(), source.numpy())
    other = source.copyto(nd.cpu(0))
    assert not other.same_as(source) and source.same_as(source)
    other[:] = 7
    assert (other.numpy() == 7).all()
    other[...] = source
    np.testing.assert_array_equal(other.numpy(), source.numpy())
    # elements are converted, as numpy does
    target.copyfrom(np.ones((2, 3), "int64"))
    assert (target.numpy() == 1).all()


def test_copy_errors_tell_both_sides() -> None:
    source = nd.empty((2, 3))
    with pytest.raises(ValueError, match=r"\(2, 3\) and dtype float32.*\(3, 2\) and float32"):
        source.copyto(nd.empty((3, 2))).numpy()
    with pytest.raises(ValueError, match=r"\(2, 3\), got \(3,\)"):
        source.copyfrom(np.zeros(3, "float32"))
    with pytest.raises(TypeError, match="NDArray or a Device, got str"):
        source.copyto("cpu")
    with pytest.raises(ValueError, match="only a"):
        source[0] = 1


def test_bad_shapes_and_types() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        nd.empty((2, -1))
    with pytest.raises(ValueError, match="too large"):
        nd.empty((1 << 40, 1 << 40))
    with pytest.raises(ValueError, match="float33x"):
        nd.empty((1,), "float33x")
    with pytest.raises(RuntimeError, match=r"no support for device rocm\(0\)"):
        nd.empty((1,), device=nd.rocm(0))


def test_dlpack_shares_memory_with_torch() -> None:
    tensor = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    array = nd.from_dlpack(tensor)
    tensor[0, 0] = 42
    assert array.numpy()[0, 0] == 42
    back = torch.utils.dlpack.from_dlpack(array.to_dlpack())
    assert back.data_ptr() == tensor.data_ptr()
    del tensor, array
    gc.collect()
    assert back[0, 0] == 42
    np.testing.assert_array_equal(np.from_dlpack(nd.array(np.arange(3))), [0, 1, 2])


def test_dlpack_of_booleans_and_bfloat16() -> None:
    array = nd.from_dlpack(torch.tensor([True, False]))
    assert array.dtype is dtype("bool")
    assert torch.utils.dlpack.from_dlpack(array.to_dlpack()).tolist() == [True, False]
    assert nd.from_dlpack(torch.tensor([1.5], dtype=torch.bfloat16)).numpy()[0] == 1.5


def test_dlpack_with_strides_is_read_right() -> None:
    tensor = torch.arange(6, dtype=torch.float32).reshape(2, 3).t()
    array = nd.from_dlpack(tensor)
    assert array.strides == (1, 3)
    np.testing.assert_array_equal(array.numpy(), tensor.numpy())
    np.testing.assert_array_equal(array.copyto(nd.cpu()).numpy(), tensor.numpy())


def test_a_capsule_is_used_once() -> None:
    capsule = nd.array(np.zeros(3)).to_dlpack()
    nd.from_dlpack(capsule)
    with pytest.raises(ValueError, match="not used before"):
        nd.from_dlpack(capsule)
    with pytest.raises(AttributeError, match="__dlpack__"):
        nd.from_dlpack("text")


def test_unused_capsules_free_their_array() -> None:
    values = np.zeros(3)
    owner = nd.share_numpy(values)
    capsule = owner.to_dlpack()
    del owner, capsule
    gc.collect()
    values.resize((4,), refcheck=True)  # raises while somebody refers to it


def test_views() -> None:
    array = nd.array(np.arange(6, dtype="float32"))
    view = array.view((2, 3))
    array[:] = 5
    assert (view.numpy() == 5).all()
    with pytest.raises(ValueError, match="would occupy bytes 0 <= i_byte < 28"):
        array.view((7,))


def test_pickle_and_numpy_protocols() -> None:
    array = nd.array(np.arange(3, dtype="int16"))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(array)).numpy(), array.numpy())
    np.testing.assert_array_equal(np.asarray(array), [0, 1, 2])
    assert len(array) == 3 and array.size == 3 and array.ndim == 1
    assert repr(array).startswith(f"<tvm.nd.NDArray shape={array.shape}, cpu(0)>\n")


def test_devices() -> None:
    assert nd.device("llvm -mcpu=skylake", 0) == nd.cpu(0) == nd.device(1)
    assert nd.device("cuda", 1) == nd.gpu(1) != nd.cuda(0)
    assert str(nd.cpu(2)) == "cpu(2)"
    assert isinstance(nd.array([1.0]).device, Device)
    assert nd.cpu().exist and not nd.vulkan().exist
    assert pickle.loads(pickle.dumps(nd.cuda(3))) == nd.cuda(3)
    assert {nd.cpu(0): 1}[nd.cpu()] == 1
    with pytest.raises(ValueError, match=r"unknown device type 'cda'.*'cuda'"):
        nd.device("cda")


@pytest.mark.parametrize("element", [torch.float8_e4m3fn, torch.float8_e5m2, torch.bfloat16])
def test_narrow_floats_are_shared_with_torch(element: torch.dtype) -> None:
    tensor = torch.tensor([0.5, -2.0]).to(element)
    array = nd.from_dlpack(tensor)
    np.testing.assert_array_equal(array.numpy().astype("float32"), tensor.float().numpy())
    back = torch.from_dlpack(array)
    assert back.dtype == element and back.data_ptr() == tensor.data_ptr()


def test_complex_numbers_are_rejected() -> None:
    with pytest.raises(ValueError, match="numbers of a known kind, got DLPack type code 5"):
        nd.from_dlpack(np.zeros(2, "complex64"))


def test_views_with_the_classic_defaults() -> None:
    array = nd.array(np.arange(6, dtype="float32"))
    assert array._create_view((2, 3)).numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert array._create_view([2], relative_byte_offset=8).numpy().tolist() == [2, 3]
    assert array._create_view((6,), "int32").dtype is dtype("int32")
    with pytest.raises(ValueError, match=r"occupy bytes 8 <= i_byte < 28, .* only contains 24"):
        array._create_view((5,), relative_byte_offset=8)


def test_extensions_hand_on_the_handle_of_an_array() -> None:
    class Wrapped:
        def __init__(self) -> None:
            self.array = nd.array(np.arange(3, dtype="float32"))

        @property
        def _tvm_handle(self) -> int:
            return self.array._tvm_handle

    register_extension(Wrapped)
    seen: list[float] = []
    convert(lambda array: seen.extend(array.numpy().tolist()))(Wrapped())
    assert seen == [0, 1, 2]


def test_dlpack_copies_on_demand() -> None:
    array = nd.array(np.zeros(2, "float32"))
    copy, shared = nd.from_dlpack(array.__dlpack__(copy=True)), nd.from_dlpack(array.__dlpack__())
    array[:] = 1
    assert shared.numpy().tolist() == [1, 1]
    assert copy.numpy().tolist() == [0, 0]
    with pytest.raises(BufferError, match=r"from cpu\(0\)"):
        array.__dlpack__(dl_device=(2, 0), copy=False)


def test_tensors_of_torch_live_as_long_as_their_arrays() -> None:
    tensor = torch.arange(6.0).reshape(2, 3)
    watched, array = weakref.ref(tensor), nd.from_dlpack(tensor)
    tensor[0, 0] = 7
    assert array.numpy()[0, 0] == 7
    storage = tensor.untyped_storage()
    before = sys.getrefcount(storage)
    del tensor
    gc.collect()
    assert array.numpy()[1].tolist() == [3, 4, 5]
    del array
    gc.collect()
    assert watched() is None and sys.getrefcount(storage) <= before


def test_tensors_that_cannot_be_shared_say_why() -> None:
    with pytest.raises(BufferError, match="require gradient"):
        nd.from_dlpack(torch.ones(2, requires_grad=True))
    with pytest.raises((BufferError, RuntimeError), match="strided|layout|parse"):
        nd.from_dlpack(torch.eye(2).to_sparse())


def test_values_that_are_no_numbers() -> None:
    hint = "objects with __dlpack__ will do"
    for value in (object(), None, "text", {}, np.zeros(2, "complex64")):
        with pytest.raises(TypeError, match=f"array needs numbers, got .*{hint}"):
            nd.array(value)
        with pytest.raises(TypeError, match=f"copyfrom needs numbers, got .*{hint}"):
            nd.empty((2,)).copyfrom(value)
    with pytest.raises(ValueError, match="array needs numbers or nested lists of them"):
        nd.array([[1, 2], [3]])
    with pytest.raises(TypeError, match="array needs numbers"):
        nd.array(np.zeros(2, [("a", "int8")]))


def test_shapes_and_devices_of_other_kinds() -> None:
    assert nd.empty(5).shape == nd.empty(np.int64(5)).shape == (5,)
    assert nd.empty([np.int32(2), 3]).shape == (2, 3)
    for shape in ((2.5,), "ab", ("a",), 1.5, (None,)):
        with pytest.raises(TypeError, match=r"a shape (is a tuple of|needs) integers, got"):
            nd.empty(shape)
    for device in ("cpu", 1, None):
        with pytest.raises(TypeError, match=r"a Device is needed, got .*tvm.cpu\(\)"):
            nd.empty((2,), "float32", device)
    with pytest.raises(ValueError, match="'global.texture' is not available on cpu"):
        nd.empty((2,), "float32", nd.cpu(), "global.texture")
    with pytest.raises(ValueError, match="dtype with elements, got void"):
        nd.empty((2,), "void")
    assert nd.empty((2,), mem_scope="global").shape == (2,)


def test_views_stay_inside_their_array() -> None:
    array = nd.array(np.arange(6, dtype="float32"))
    assert array._create_view((2,), "int32", 16).shape == (2,)
    assert array._create_view((0,), "int32", 24).shape == (0,)
    for offset in (20, 25, 2**64 - 4):
        with pytest.raises(ValueError, match=f"would occupy bytes {offset} <= i_byte"):
            array._create_view((2,), "int32", offset)
    with pytest.raises(ValueError, match="byte 0 or later, got -4"):
        array._create_view((1,), "float32", -4)
    with pytest.raises(ValueError, match="a view needs a contiguous array"):
        nd.from_dlpack(np.zeros((2, 3)).T)._create_view((6,))


def test_views_keep_the_memory() -> None:
    array = nd.array(np.arange(6, dtype="float32"))
    view = array._create_view((3,), relative_byte_offset=12)
    del array
    gc.collect()
    assert view.numpy().tolist() == [3, 4, 5]


@pytest.mark.parametrize("name", ["bool", "bfloat16", "int4", "e4m3_float8", "float32x4", "int64"])
@pytest.mark.parametrize("shape", [(), (0, 2), (3,)])
def test_every_type_is_pickled(name: str, shape: tuple[int, ...]) -> None:
    array = nd.empty(shape, name)
    array[:] = 1
    copy = pickle.loads(pickle.dumps(array))
    assert (copy.dtype, copy.shape) == (array.dtype, shape)
    np.testing.assert_array_equal(copy.numpy(), array.numpy())


def test_assignment_of_what_does_not_fit() -> None:
    array = nd.empty((2, 3))
    array[:] = np.arange(3)
    assert array.numpy().tolist() == [[0, 1, 2]] * 2
    with pytest.raises(ValueError, match=r"assignment needs shape \(2, 3\), got \(4,\)"):
        array[:] = np.ones(4)
    with pytest.raises(TypeError, match="assignment needs numbers, got str"):
        array[:] = "text"


def test_numpy_is_told_that_it_gets_a_copy() -> None:
    array = nd.array(np.zeros(2))
    with pytest.raises(ValueError, match="np.from_dlpack"):
        array.__array__(copy=False)
    assert np.asarray(array, "int32").dtype == "int32"


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "bfloat16", "bool"])
def test_shared_numpy_memory_keeps_its_kind_of_elements(name: str) -> None:
    values = np.array([0, 1, 1], "float32").astype(getattr(ml_dtypes, name, name))
    shared = nd.share_numpy(values)
    assert shared.dtype == nd.array(values).dtype
    np.testing.assert_array_equal(shared.numpy(), values)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8", "bool"])
def test_strided_elements_are_copied(dtype: str) -> None:
    array = np.arange(24).reshape(2, 3, 4).astype(dtype)
    wide = np.arange(2 * 100 * 130).reshape(2, 100, 130).astype(dtype)
    turned = (array.transpose(2, 0, 1), wide.transpose(0, 2, 1), wide.T, wide[:, ::-1, 3:].T)
    for view in (*turned, array[:, ::2], np.broadcast_to(array[:1], (5, 3, 4))):
        np.testing.assert_array_equal(nd.array(view).numpy(), view)


def test_two_names_of_a_native_array_are_equal() -> None:
    array = nd.array(np.zeros(2))
    again = get_global_func("vm.builtin.copy")(array)
    assert again == array
    assert hash(again) == hash(array)
    assert array != nd.array(np.zeros(2))
