"""Programs that choose computes and schedules from tables by target, as tests of topi do."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te, topi
from tvm.topi import testing as ref

Array = np.ndarray
RNG = np.random.default_rng(11)
TARGET = "llvm"


@dataclass(frozen=True)
class Program:
    """A compute with its schedules by target."""

    name: str
    implementations: dict[str, tuple[Callable[..., Any], Callable[..., te.Schedule]]]
    shapes: tuple[tuple[int, ...], ...]
    options: tuple[Any, ...]
    expected: Callable[..., Array]

    def __str__(self) -> str:
        return f"{self.name}-{'-'.join([str(s).replace(' ', '') for s in self.options])}"


def _run(s: te.Schedule, tensors: Sequence[te.Tensor], arrays: Sequence[Array]) -> Array:
    function = tvm.build(s, list(tensors), TARGET)
    out = tensors[-1]
    found = tvm.nd.array(np.zeros([int(d) for d in out.shape], out.dtype))
    function(*[tvm.nd.array(a) for a in arrays], found)
    return found.numpy()


CONV2D = {
    "generic": (topi.nn.conv2d_nchw, topi.generic.schedule_conv2d_nchw),
    "cpu": (topi.x86.conv2d_nchw, topi.x86.schedule_conv2d_nchw),
    "arm_cpu": (topi.arm_cpu.conv2d_nchw_spatial_pack, topi.arm_cpu.schedule_conv2d_nchw_spatial_pack),
    "gpu": (topi.cuda.conv2d_nchw, topi.cuda.schedule_conv2d_nchw),
}  # fmt: skip
NHWC = {
    "generic": (topi.nn.conv2d_nhwc, topi.generic.schedule_conv2d_nhwc),
    "cpu": (topi.nn.conv2d_nhwc, topi.x86.schedule_conv2d_nhwc),
    "arm_cpu": (topi.arm_cpu.conv2d_nhwc_spatial_pack, topi.arm_cpu.schedule_conv2d_nhwc_spatial_pack),
    "hls": (topi.nn.conv2d_nhwc, topi.hls.schedule_conv2d_nhwc),
}  # fmt: skip
HWCN = {
    "generic": (topi.nn.conv2d_hwcn, topi.generic.schedule_conv2d_hwcn),
    "opencl": (topi.cuda.conv2d_hwcn, topi.cuda.schedule_conv2d_hwcn),
}
DEPTHWISE = {
    "generic": (topi.nn.depthwise_conv2d_nchw, topi.generic.schedule_depthwise_conv2d_nchw),
    "cpu": (topi.x86.depthwise_conv2d_nchw, topi.x86.schedule_depthwise_conv2d_nchw),
    "arm_cpu": (topi.arm_cpu.depthwise_conv2d_nchw, topi.arm_cpu.schedule_depthwise_conv2d_nchw),
    "mali": (topi.mali.depthwise_conv2d_nchw, topi.mali.schedule_depthwise_conv2d_nchw),
}
GROUPED = {
    "generic": (topi.nn.group_conv2d_nchw, topi.generic.schedule_group_conv2d_nchw),
    "cpu": (topi.x86.group_conv2d_nchw, topi.x86.schedule_group_conv2d_nchw),
}
CONV1D = {
    "generic": (topi.nn.conv1d_ncw, topi.generic.schedule_conv1d_ncw),
    "cpu": (topi.nn.conv1d_ncw, topi.x86.schedule_conv1d_ncw),
}
CONV3D = {
    "generic": (topi.nn.conv3d_ncdhw, topi.generic.schedule_conv3d_ncdhw),
    "cpu": (topi.x86.conv3d_ncdhw, topi.x86.schedule_conv3d_ncdhw),
}
TRANSPOSED2D = {
    "generic": (topi.nn.conv2d_transpose_nchw, topi.generic.schedule_conv2d_transpose_nchw),
    "cpu": (topi.x86.conv2d_transpose_nchw, topi.x86.schedule_conv2d_transpose_nchw),
}
TRANSPOSED3D = {
    "generic": (topi.nn.conv3d_transpose_ncdhw, topi.generic.schedule_conv3d_transpose_ncdhw),
    "cpu": (topi.x86.conv3d_transpose_ncdhw, topi.x86.schedule_conv3d_transpose_ncdhw),
}
WINOGRAD = {
    "generic": (topi.nn.conv2d_winograd_nchw, topi.generic.schedule_extern),
    "arm_cpu": (topi.arm_cpu.conv2d_nchw_winograd, topi.arm_cpu.schedule_conv2d_nchw_winograd),
}
DEFORMABLE = {
    "generic": (topi.nn.deformable_conv2d_nchw, topi.generic.schedule_deformable_conv2d_nchw),
    "cuda": (topi.cuda.deformable_conv2d_nchw, topi.cuda.schedule_deformable_conv2d_nchw),
}
DEFORMABLE_LAST = {
    "generic": (topi.nn.deformable_conv2d_nhwc, topi.generic.schedule_deformable_conv2d_nhwc)
}
CORRELATION = {"generic": (topi.nn.correlation_nchw, topi.generic.schedule_correlation_nchw)}
BATCH_MATMUL = {
    "generic": (topi.nn.batch_matmul, topi.generic.schedule_batch_matmul),
    "cpu": (topi.x86.batch_matmul, topi.x86.schedule_batch_matmul),
}
DENSE = {
    "generic": (topi.nn.dense, topi.generic.schedule_dense),
    "cpu": (topi.x86.dense_nopack, topi.x86.schedule_dense_nopack),
    "packed": (topi.x86.dense_pack, topi.x86.schedule_dense_pack),
    "gpu": (topi.gpu.dense_small_batch, topi.gpu.schedule_dense_small_batch),
}


def _plain_convolutions() -> list[Program]:
    rows: list[Program] = []
    for padding, dilation in (("VALID", 1), ("SAME", 2), ((0, 1, 2, 1), 2)):
        options = (1, padding, dilation, "float32")
        first, last = (1, 1, dilation, dilation), (dilation, dilation, 1, 1)
        rows += [
            Program(
                "conv2d_nchw", CONV2D, ((1, 3, 9, 8), (5, 3, 3, 3)), options,
                lambda a, w, s=first, p=padding: ref.conv2d_nchw_python(a, ref.dilate_python(w, s), 1, p),
            ),
            Program(
                "conv2d_nhwc", NHWC, ((1, 9, 8, 3), (3, 3, 3, 8)), options,
                lambda a, w, s=last, p=padding: ref.conv2d_nhwc_python(a, ref.dilate_python(w, s), 1, p),
            ),
            Program(
                "conv2d_hwcn", HWCN, ((9, 8, 3, 2), (3, 3, 3, 4)), options,
                lambda a, w, s=last, p=padding: ref.conv2d_hwcn_python(a, ref.dilate_python(w, s), 1, p),
            ),
        ]  # fmt: skip
    return rows


def _special_convolutions() -> list[Program]:
    depthwise = [
        Program(
            "depthwise", DEPTHWISE, ((1, 4, 9, 8), (4, multiplier, 3, 3)),
            ((2, 2), "SAME", (1, 1), "float32"),
            lambda a, w: ref.depthwise_conv2d_python_nchw(a, w, 2, "SAME"),
        )
        for multiplier in (1, 2)
    ]  # fmt: skip
    grouped = Program(
        "group_conv2d", GROUPED, ((1, 8, 6, 6), (12, 2, 3, 3)), (1, 1, 1, 4, "float32"),
        lambda a, w: ref.conv2d_nchw_python(a, w, 1, 1, 4),
    )  # fmt: skip
    conv1d = [
        Program(
            "conv1d", CONV1D, ((2, 4, 17), (6, 4, 3)), (2, padding, 2, "float32"),
            lambda a, w, p=padding: ref.conv1d_ncw_python(a, w, 2, p, 2),
        )
        for padding in ("VALID", "SAME", (0, 2))
    ]  # fmt: skip
    conv3d = [
        Program(
            "conv3d", CONV3D, ((1, 2, 4, 5, 6), (3, 2, 3, 3, 3)),
            ((1, 1, 1), padding, (1, 1, 1), 1, "float32"),
            lambda a, w, p=padding: ref.conv3d_ncdhw_python(a, w, 1, p),
        )
        for padding in (0, (0, 1, 0, 1, 0, 1))
    ]  # fmt: skip
    return [*depthwise, grouped, *conv1d, *conv3d]


def _transposed_convolutions() -> list[Program]:
    conv2d = [
        Program(
            "conv2d_transpose", TRANSPOSED2D, ((1, 3, 5, 6), (3, 4, 3, 3)),
            (steps, padding, "float32", extra),
            lambda a, w, s=steps, p=padding, e=extra: ref.conv2d_transpose_nchw_python(a, w, s, p, e),
        )
        for steps, padding, extra in (
            ((2, 2), (1, 1, 1, 1), (1, 1)), ((2, 1), (0, 1, 1, 0), (0, 0)),
        )
    ]  # fmt: skip
    conv3d = Program(
        "conv3d_transpose", TRANSPOSED3D, ((1, 2, 3, 3, 3), (2, 3, 3, 3, 3)),
        ((2, 2, 2), (1,) * 6, "float32", (1, 1, 1)),
        lambda a, w: ref.conv3d_transpose_ncdhw_python(a, w, (2,) * 3, (1,) * 6, (1,) * 3),
    )  # fmt: skip
    return [*conv2d, conv3d]


def _moved_convolutions() -> list[Program]:
    rows = [
        Program(
            "winograd", WINOGRAD, ((1, 4, 9, 9), (4, 4, 3, 3)), (1, 1, 1, "float32"),
            lambda a, w: ref.conv2d_nchw_python(a, w, 1, 1),
        )
    ]  # fmt: skip
    for dilation, groups in ((1, 1), (2, 2)):
        rest = (1, dilation, dilation, groups, groups)
        rows += [
            Program(
                "deformable", DEFORMABLE,
                ((1, 4, 6, 7), (1, 18 * groups, 6, 7), (6, 4 // groups, 3, 3)), (*rest, "float32"),
                lambda a, o, w, r=rest: ref.deformable_conv2d_nchw_python(a, o, w, *r),
            ),
            Program(
                "deformable", DEFORMABLE_LAST,
                ((1, 6, 7, 4), (1, 6, 7, 18 * groups), (3, 3, 4 // groups, 6)), (*rest, "float32"),
                lambda a, o, w, r=rest: ref.deformable_conv2d_nhwc_python(a, o, w, *r),
            ),
        ]  # fmt: skip
    return rows + [
        Program(
            "correlation", CORRELATION, ((1, 3, 9, 9), (1, 3, 9, 9)), steps,
            lambda a, b, s=steps: ref.correlation_nchw_python(a, b, *s),
        )
        for steps in ((1, 4, 1, 1, 4, True), (3, 3, 1, 2, 4, False))
    ]  # fmt: skip


def _products() -> list[Program]:
    rows = [
        Program("batch_matmul", BATCH_MATMUL, ((a, 6, 8), (b, 10, 8)), (), ref.batch_matmul)
        for a, b in ((2, 2), (1, 3), (3, 1))
    ]
    for units in (7, 64):
        shapes: tuple[tuple[int, ...], ...] = ((6, 24), (units, 24))
        rows.append(Program("dense", DENSE, shapes, (None, "float32"), lambda a, w: a @ w.T))
    return rows


CASES = [
    pytest.param(program, key, id=f"{program}-{key}")
    for program in [
        *_plain_convolutions(),
        *_special_convolutions(),
        *_transposed_convolutions(),
        *_moved_convolutions(),
        *_products(),
    ]
    for key in program.implementations
    if key in ("generic", "cpu", "arm_cpu", "packed")
]


@pytest.mark.parametrize(("program", "key"), CASES)
def test_implementations_agree_with_the_reference(program: Program, key: str) -> None:
    compute, schedule = program.implementations[key]
    tensors = [te.placeholder(shape, name=f"x{i}") for i, shape in enumerate(program.shapes)]
    arrays = [RNG.uniform(size=shape).astype("float32") for shape in program.shapes]
    with tvm.target.Target(TARGET):
        out = compute(*tensors, *program.options)
        s = schedule([out])
    expected = program.expected(*arrays)
    assert [int(d) for d in out.shape] == list(expected.shape)
    np.testing.assert_allclose(
        _run(s, [*tensors, out], arrays), expected, rtol=1e-3 if program.name == "winograd" else 1e-4
    )  # fmt: skip


def test_dispatch_takes_the_first_key_that_a_table_has() -> None:
    assert ref.dispatch("llvm", CONV2D) == CONV2D["cpu"]
    assert ref.dispatch("llvm", HWCN) == HWCN["generic"]
    assert ref.get_broadcast_schedule("llvm") is topi.x86.schedule_injective


def test_computes_with_blocked_channels() -> None:
    data, kernel = te.placeholder((1, 2, 7, 7, 8)), te.placeholder((4, 2, 3, 3, 8, 4))
    arrays = [
        RNG.uniform(size=shape).astype("float32") for shape in ((1, 2, 7, 7, 8), (4, 2, 3, 3, 8, 4))
    ]
    with tvm.target.Target(TARGET):
        out = topi.x86.conv2d_NCHWc(
            data, kernel, (1, 1), "SAME", (1, 1), "NCHW8c", "NCHW4c", "float32"
        )
        s = topi.x86.schedule_conv2d_NCHWc([out])
    plain = arrays[0].transpose(0, 1, 4, 2, 3).reshape(1, 16, 7, 7)
    weight = arrays[1].transpose(0, 5, 1, 4, 2, 3).reshape(16, 16, 3, 3)
    found = _run(s, [data, kernel, out], arrays).transpose(0, 1, 4, 2, 3).reshape(1, 16, 7, 7)
    np.testing.assert_allclose(found, ref.conv2d_nchw_python(plain, weight, 1, "SAME"), rtol=1e-4)


@pytest.mark.parametrize("target", ["llvm -mcpu=cascadelake", "llvm -mcpu=core-avx2"])
def test_dense_of_narrow_numbers_gives_exact_sums(target: str) -> None:
    data = te.placeholder((5, 32), "uint8")
    weight = te.placeholder((32, 32), "int8")
    with tvm.target.Target(target):
        out = topi.x86.dense_int8(data, weight, None, "int32")
        tvm.lower(topi.x86.schedule_dense_int8([out]), [data, weight, out])
        assert topi.x86.is_int8_hw_support("uint8", "int8") == ("cascadelake" in target)
    plain = topi.nn.dense(data, weight, None, "int32")
    arrays = [RNG.integers(0, 255, (5, 32)).astype("uint8"), RNG.integers(-128, 127, (32, 32)).astype("int8")]  # fmt: skip
    found = _run(topi.generic.schedule_dense(plain), [data, weight, plain], arrays)
    np.testing.assert_array_equal(found, arrays[0].astype("int32") @ arrays[1].T.astype("int32"))


def test_an_open_batch_is_known_to_the_run() -> None:
    count = te.size_var("n")
    x, y = te.placeholder((count, 4, 8)), te.placeholder((count, 6, 8))
    with tvm.target.Target(TARGET):
        out = topi.x86.batch_matmul(x, y)
        function = tvm.build(topi.x86.schedule_batch_matmul([out]), [x, y, out], TARGET)
    arrays = [RNG.uniform(size=(3, n, 8)).astype("float32") for n in (4, 6)]
    found = tvm.nd.array(np.zeros((3, 4, 6), "float32"))
    function(*[tvm.nd.array(a) for a in arrays], found)
    np.testing.assert_allclose(found.numpy(), ref.batch_matmul(*arrays), rtol=1e-5)


def test_schedules_of_absent_devices_say_so_when_called() -> None:
    with pytest.raises(tvm.error.OpNotImplemented, match="topi.hexagon.schedule_softmax requires"):
        topi.hexagon.schedule_softmax([te.placeholder((2, 3))])


def test_modules_of_absent_devices_have_names_to_import() -> None:
    from tvm.topi.hexagon.conv2d import schedule_conv2d_nchw

    importlib.import_module("tvm.topi.hls.nn")
    for function in (schedule_conv2d_nchw, topi.hls.nn):
        with pytest.raises(tvm.error.OpNotImplemented, match="requires schedules for"):
            function([te.placeholder((2, 3))])


def test_modules_are_attributes_of_their_package() -> None:
    assert topi.generic.conv2d.schedule_conv2d_nhwc is topi.generic.schedule_conv2d_nhwc
    assert not hasattr(topi.nn, "never_there")
