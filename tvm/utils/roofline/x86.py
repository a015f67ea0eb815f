"""What a processor can do at most: multiplications and additions a second, bytes a second."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from tvm import te
from tvm._ffi.runtime_ctypes import Device
from tvm.driver.build_module import build
from tvm.runtime import ndarray as nd
from tvm.runtime.module import Module, num_threads
from tvm.support.dtype import dtype as as_dtype
from tvm.target import Target
from tvm.target.cpu import cpu_info

STEPS = 2048
BYTES = 128 << 20  # of an array that no cache holds
REPEAT = 15


def estimate_peak_fma_vector_flops(
    target: Target,
    dev: Device,
    remote: Any = None,
    dtype: str = "float32",
    vec_width: int | None = None,
    num_vector_registers: int | None = None,
) -> float:
    """Operations a second of fused multiply-adds whose operands are in registers or L1.

    Parameters
    ----------
    target : Target
        The processor.
    dev : Device
        Where it runs.
    remote : RPCSession, optional
        The machine; by default this one.
    dtype : str
        What is multiplied.
    vec_width : int, optional
        Elements of a vector; by default as many as the processor's vectors have.
    num_vector_registers : int, optional
        How many vectors there are; by default the processor's registers.
    """
    info = cpu_info(target)
    lanes = vec_width or info.vector_bits // as_dtype(dtype).bits
    vectors = ((num_vector_registers or info.vector_registers) - 3) // 3
    tasks = 200 * _threads(remote)
    x = te.placeholder((STEPS, 2), dtype, name="x")
    y = te.placeholder((vectors * lanes,), dtype, name="y")
    k = te.reduce_axis((0, STEPS), name="k")
    out = te.compute((tasks, 2, vectors * lanes), lambda t, h, v: te.sum(x[k, h] * y[v], axis=k))
    s = te.create_schedule(out.op)
    sums = s.cache_write(out, "global")
    task, _, v = s[out].op.axis
    s[out].parallel(task)
    s[sums].compute_at(s[out], task)
    _, h, v = s[sums].op.axis
    v, lane = s[sums].split(v, factor=lanes)
    s[sums].reorder(s[sums].op.reduce_axis[0], h, v, lane)
    s[sums].unroll(h)
    s[sums].unroll(v)
    s[sums].vectorize(lane)
    shapes = [(STEPS, 2), (vectors * lanes,), (tasks, 2, vectors * lanes)]
    arrays = [nd.array(np.ones(shape).astype(dtype), dev) for shape in shapes]
    seconds = shortest_run(build(s, [x, y, out], target), dev, arrays, remote)
    return 2.0 * tasks * 2 * vectors * lanes * STEPS / seconds


def estimate_peak_bandwidth_dram(
    target: Target, dev: Device, remote: Any = None, vec_width: int | None = None
) -> float:
    """Bytes a second, read and written, of a copy that no cache holds.

    Parameters
    ----------
    target, dev, remote :
        As of :func:`estimate_peak_fma_vector_flops`.
    vec_width : int, optional
        float32 elements of a vector.
    """
    count = BYTES // 4
    a = te.placeholder((count,), name="a")
    out = te.compute((count,), lambda i: a[i] + 1.0, name="out")
    s = te.create_schedule(out.op)
    task, inner = s[out].split(out.op.axis[0], nparts=_threads(remote))
    _, lane = s[out].split(inner, factor=vec_width or 16)
    s[out].parallel(task)
    s[out].vectorize(lane)
    arrays = [nd.array(np.zeros(count, "float32"), dev) for _ in range(2)]
    return 2.0 * BYTES / shortest_run(build(s, [a, out], target), dev, arrays, remote)


def shortest_run(lib: Module, dev: Device, arrays: Sequence[Any], remote: Any = None) -> float:
    """The seconds of the shortest of several calls.

    Parameters
    ----------
    lib : Module
        What is called.
    dev : Device
        Where it runs.
    arrays : list of NDArray
        The arguments, on the device.
    remote : RPCSession, optional
        The device's machine; by default this one.
    """
    module = lib if remote is None else loaded_there(lib, remote)
    evaluator = module.time_evaluator(lib.entry_name, dev, number=1, repeat=REPEAT)
    return float(min(evaluator(*arrays).results))


def loaded_there(lib: Any, remote: Any) -> Any:
    """A library on the machine of a session."""
    with tempfile.TemporaryDirectory(prefix="tvm-roofline-") as folder:
        path = Path(folder) / f"lib_{uuid4().hex[:8]}.so"
        lib.export_library(str(path))
        remote.upload(str(path))
        return remote.load_module(path.name)


def _threads(remote: Any) -> int:
    if remote is None:
        return num_threads()
    return int(remote.get_function("runtime.NumThreads")())
