"""The runtime's side of CUDA, on a made-up driver: memory, copies, streams, launches and errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.system_tools import needs_tool
from tvm.contrib import cc

PROGRAM = """
import numpy as np
import tvm
from tests.codegen.gpu.programs import vector_add

dev = tvm.cuda(0)
assert dev.exist and not tvm.cuda(1).exist and tvm.runtime.enabled("cuda")
assert dev.compute_version == "8.6" and dev.device_name == "no device" and dev.api_version == 12040
ptx = bytearray(b"// PTX\\n.version 8.0\\n")
tvm.register_func("tvm_callback_cuda_compile", lambda code, target: ptx)
program = vector_add()
func = tvm.build(program.schedule, program.args, "cuda -arch=sm_80", name="add")
arrays = [tvm.nd.array(np.arange(1000, dtype="float32"), dev) for _ in range(3)]
func["add"](*arrays)
np.testing.assert_array_equal(arrays[2].numpy(), 2 * np.arange(1000))
copy = tvm.nd.empty((1000,), device=dev)
arrays[2].copyto(copy)
view = copy._create_view((8,), relative_byte_offset=256)
np.testing.assert_array_equal(view.numpy(), 2 * np.arange(64, 72))
stream = dev.create_raw_stream()
dev.set_raw_stream(stream)
func["add"](*arrays)
dev.sync(stream)
dev.set_raw_stream(None)
dev.free_raw_stream(stream)
assert func.time_evaluator("add", dev, number=3)(*arrays).mean > 0


def told(use):
    try:
        use()
    except tvm.TVMError as error:
        print(error)


told(lambda: tvm.nd.empty((1 << 20,), device=dev))
told(lambda: tvm.nd.empty((1,), device=tvm.cuda(3)))
ptx[:] = b"// nothing"
other = tvm.build(program.schedule, program.args, "cuda -arch=sm_80", name="add")
told(lambda: other["add"](*arrays))
"""


@needs_tool("g++")
def test_programs_on_a_driver(tmp_path: Path) -> None:
    source = str(Path(__file__).parent / "cpp" / "fake_cuda.cc")
    library = str(tmp_path / "libcuda.so.1")
    cc.create_shared(library, [source], options=["-O0", "-Wall", "-Werror", "-fPIC"], cc="g++")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment
    )
    assert ran.returncode == 0, ran.stderr
    memory, number, wrong = ran.stdout.splitlines()
    assert memory == (
        "out of memory: cannot allocate 4194304 bytes on cuda(0), which has 1048576 of 1073741824 free"
    )
    assert number == "there are 1 CUDA devices, got cuda(3)"
    assert wrong.startswith("cuda(0) cannot run the kernels (CUDA_ERROR): build them for its")
