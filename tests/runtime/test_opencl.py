"""Arrays, streams and libraries on OpenCL devices, and what is said where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tvm
from tests.codegen.gpu.programs import vector_add
from tests.runtime.native_library import INCLUDES, RUNTIME_OPTIONS
from tests.system_tools import needs_opencl, needs_tool
from tvm import te
from tvm.contrib import cc

NO_DRIVER = {**os.environ, "OCL_ICD_VENDORS": "/nonexistent"}


def add() -> tvm.runtime.Module:
    program = vector_add()
    return tvm.build(program.schedule, program.args, "opencl", name="add")


def on_device(count: int = 1000) -> list[tvm.nd.NDArray]:
    values = [np.arange(count), 2 * np.arange(count), np.zeros(count)]
    return [tvm.nd.array(value.astype("float32"), tvm.opencl(0)) for value in values]


@needs_opencl()
def test_attributes() -> None:
    device = tvm.opencl(0)
    assert device.exist and not tvm.opencl(99).exist
    assert device.max_threads_per_block and device.max_shared_memory_per_block
    assert device.device_name and device.total_global_memory and device.max_thread_dimensions
    with pytest.raises(ValueError, match=r"OpenCL devices, got opencl\(99\)"):
        tvm.nd.empty((1,), device=tvm.opencl(99))


@needs_opencl()
def test_copies_and_views() -> None:
    values = np.arange(256, dtype="float32")
    array = tvm.nd.array(values, tvm.opencl(0))
    other = tvm.nd.empty((256,), device=tvm.opencl(0))
    array.copyto(other)
    np.testing.assert_array_equal(other.numpy(), values)
    view = array._create_view((64,), relative_byte_offset=512)
    np.testing.assert_array_equal(view.numpy(), values[128:192])
    # a kernel that is given memory from inside of an array
    program = vector_add()
    func = tvm.build(program.schedule, program.args, "opencl")
    result = tvm.nd.empty((64,), device=tvm.opencl(0))
    func(view, view, result)
    np.testing.assert_array_equal(result.numpy(), 2 * values[128:192])


@needs_opencl()
def test_streams() -> None:
    device = tvm.opencl(0)
    stream = device.create_raw_stream()
    device.set_raw_stream(stream)
    a, b, c = on_device()
    add()["add"](a, b, c)
    device.sync(stream)
    np.testing.assert_array_equal(c.numpy(), 3 * np.arange(1000))
    device.set_raw_stream(None)
    device.free_raw_stream(stream)


@needs_opencl()
def test_time_evaluator() -> None:
    func = add()
    timed = func.time_evaluator("add", tvm.opencl(0), number=3)(*on_device())
    assert timed.mean > 0


@needs_opencl()
def test_wrong_arguments() -> None:
    func, (a, _, c) = add()["add"], on_device()
    with pytest.raises(ValueError, match=r"argument 1 \(buffer B\) needs to be on device opencl"):
        func(a, tvm.nd.array(np.zeros(1000, "float32")), c)
    with pytest.raises(tvm.TVMError, match="out of memory: cannot allocate 281474976710656 bytes"):
        tvm.nd.empty((1 << 46,), device=tvm.opencl(0))


@needs_opencl()
def test_more_threads_than_there_are() -> None:
    A = te.placeholder((1 << 20,), name="A")
    B = te.compute(A.shape, lambda i: A[i] + 1, name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    arrays = [tvm.nd.empty((1 << 20,), device=tvm.opencl(0)) for _ in range(2)]
    with pytest.raises(
        tvm.TVMError, match=r"launch kernel default_function_kernel .*block \(1048576"
    ):
        tvm.build(s, [A, B], "opencl")(*arrays)


@needs_opencl()
def test_libraries_in_python_and_cpp(tmp_path: Path) -> None:
    path = str(tmp_path / "add.so")
    func = add()
    func.export_library(path)
    loaded = tvm.runtime.load_module(path)
    [kernels] = loaded.imported_modules
    assert kernels.type_key == "opencl"
    assert kernels.get_source() == func.imported_modules[0].get_source()
    a, b, c = on_device()
    loaded["add"](a, b, c)
    np.testing.assert_array_equal(c.numpy(), 3 * np.arange(1000))


@needs_opencl()
@needs_tool("g++")
def test_a_program_without_python(tmp_path: Path) -> None:
    library, program = str(tmp_path / "add.so"), str(tmp_path / "run_on_device")
    add().export_library(library)
    source = str(Path(__file__).parent / "cpp" / "run_on_device.cc")
    cc.create_executable(
        program, [source], options=["-std=c++17", "-O0", *INCLUDES, *RUNTIME_OPTIONS], cc="g++"
    )
    found = subprocess.run([program, library, "4"], capture_output=True, text=True)
    assert found.stdout == "right\n"
    without = subprocess.run([program, library, "4"], capture_output=True, text=True, env=NO_DRIVER)
    assert "OpenCL cannot be used: no " in without.stdout and without.returncode == 1


def test_without_a_driver() -> None:
    """A program is built, and told at its first array that there is no device."""
    text = (
        "import tvm\n"
        "from tests.runtime.test_opencl import add\n"
        "assert not tvm.opencl(0).exist and '__kernel' in add().imported_modules[0].get_source()\n"
        "tvm.nd.empty((1,), device=tvm.opencl(0))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, env=NO_DRIVER
    )
    assert "OpenCL cannot be used: no " in ran.stderr


@needs_opencl()
def test_a_forked_process_is_told() -> None:
    on_device()
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            on_device()
        except tvm.TVMError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert "OpenCL cannot be used in a process that was forked" in os.read(reader, 1000).decode()
