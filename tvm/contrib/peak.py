"""What a device can do at most: bytes and operations a second, by data type and vectors.

measure_peak_all("llvm", "llvm", "127.0.0.1", 9090)
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np

from tvm import te
from tvm.driver.build_module import build
from tvm.rpc import connect
from tvm.runtime import ndarray as nd
from tvm.target import Target
from tvm.utils.roofline.x86 import shortest_run

logger = logging.getLogger("tvm.contrib.peak")

_BITS = {"float": (16, 32, 64), "int": (16, 32, 64)}
_LANES = (1, 2, 4, 8, 16)
_THREADS = 256  # of a block, on GPUs


def measure_bandwidth_sum(
    total_item: int,
    item_per_thread: int,
    stride: int,
    base_type: str,
    bits: int,
    lanes: int,
    target: Any,
    target_host: Any,
    remote: Any,
    dev: Any,
    n_times: int,
) -> float:
    """The GB/s that are read where each thread sums elements of an array.

    Parameters
    ----------
    total_item : int
        The elements of the array, vectors among them counted once for each lane.
    item_per_thread : int
        The vectors that a thread sums.
    stride : int
        Vectors between two that a thread sums one after the other.
    base_type : str
        ``"float"`` or ``"int"``.
    bits, lanes : int
        Of an element, and elements of a vector.
    target, target_host : str or Target
        The device, and its host.
    remote : RPCSession or None
        The device's machine, or this one.
    dev : Device
        The device.
    n_times : int
        Measurements, of which the shortest counts.
    """
    target, _ = Target.canon_target_and_host(target, target_host)
    n = total_item // lanes
    outputs = n // item_per_thread
    dtype = f"{base_type}{bits}"
    k = te.reduce_axis((0, item_per_thread), name="k")
    x = te.placeholder((n, lanes), dtype, name="x")
    inner = min(stride, outputs)

    def element(i: Any, lane: Any) -> Any:
        return te.sum(x[i // inner * inner * item_per_thread + k * inner + i % inner, lane], axis=k)

    y = te.compute((outputs, lanes), element, name="y")
    func = _on_threads(te.create_schedule(y.op), y, [x, y], target)
    arrays = [nd.empty((n, lanes), dtype, dev), nd.empty((outputs, lanes), dtype, dev)]
    seconds = min([shortest_run(func, dev, arrays, remote) for _ in range(max(n_times // 15, 1))])
    return n * lanes * bits / 8 / seconds / 1e9


def measure_compute_mad(
    total_item: int,
    item_per_thread: int,
    base_type: str,
    bits: int,
    lanes: int,
    target: Any,
    target_host: Any,
    remote: Any,
    dev: Any,
    n_times: int,
) -> float:
    """The billions of operations a second of multiply-adds on registers.

    Parameters
    ----------
    total_item : int
        Elements of the result.
    item_per_thread : int
        Multiply-adds of each element.
    base_type, bits, lanes, target, target_host, remote, dev, n_times :
        As of :func:`measure_bandwidth_sum`.
    """
    target, _ = Target.canon_target_and_host(target, target_host)
    n = total_item // lanes
    dtype = f"{base_type}{bits}"
    k = te.reduce_axis((0, item_per_thread), name="k")
    x = te.placeholder((item_per_thread,), dtype, name="x")
    z = te.placeholder((lanes,), dtype, name="z")
    y = te.compute((n, lanes), lambda i, lane: te.sum(x[k] * z[lane], axis=k), name="y")
    func = _on_threads(te.create_schedule(y.op), y, [x, z, y], target)
    arrays = [
        nd.array(np.ones(shape, dtype), dev) for shape in ((item_per_thread,), (lanes,), (n, lanes))
    ]
    seconds = min([shortest_run(func, dev, arrays, remote) for _ in range(max(n_times // 15, 1))])
    return 2.0 * n * lanes * item_per_thread / seconds / 1e9


def _on_threads(schedule: te.Schedule, y: Any, args: list[Any], target: Target) -> Any:
    """The function, its vectors spread over all threads, sums in registers."""
    i, lane = schedule[y].op.axis
    (k,) = schedule[y].op.reduce_axis
    schedule[y].reorder(i, k, lane)
    if "gpu" in target.keys:
        block, thread = schedule[y].split(i, factor=_THREADS)
        schedule[y].bind(block, te.thread_axis("blockIdx.x"))
        schedule[y].bind(thread, te.thread_axis("threadIdx.x"))
        schedule[y].unroll(lane)
        return build(schedule, args, target)
    sums = schedule.cache_write(y, "global")
    i, lane = schedule[y].op.axis
    task, block = schedule[y].split(i, factor=8)
    schedule[y].parallel(task)
    schedule[sums].compute_at(schedule[y], task)
    rows, lanes = schedule[sums].op.axis
    schedule[sums].reorder(schedule[sums].op.reduce_axis[0], rows, lanes)
    schedule[sums].unroll(rows)
    schedule[sums].vectorize(lanes)
    schedule[y].vectorize(lane)
    return build(schedule, args, target)


def measure_bandwidth_all_types(
    total_item: int,
    item_per_thread: int,
    n_times: int,
    target: Any,
    target_host: Any,
    remote: Any,
    dev: Any,
    verbose: bool = True,
) -> list[list[Any]]:
    """The bandwidth for all data types and vectors: rows of a name and GB/s.

    Parameters
    ----------
    total_item, item_per_thread, n_times, target, target_host, remote, dev :
        As of :func:`measure_bandwidth_sum`.
    verbose : bool
        Whether each is logged.
    """

    def bandwidth(base_type: str, bits: int, lanes: int) -> float:
        return max(
            measure_bandwidth_sum(
                total_item, item_per_thread, stride, base_type, bits, lanes, target, target_host,
                remote, dev, n_times,
            )
            for stride in (1, 64)
        )  # fmt: skip

    return _of_all_types(bandwidth, lambda base_type: "GB/s", verbose)


def _of_all_types(
    measure: Callable[[str, int, int], float], unit_of: Callable[[str], str], verbose: bool
) -> list[list[Any]]:
    """What is measured of each data type and vector: rows of a name and a number."""
    rows: list[list[Any]] = []
    for base_type, sizes in _BITS.items():
        for bits in sizes:
            for lanes in _LANES:
                rows.append([f"{base_type}{bits}x{lanes}", measure(base_type, bits, lanes)])
                if verbose:
                    logger.info("\t%-10s %.2f %s", *rows[-1], unit_of(base_type))
    return rows


def measure_compute_all_types(
    total_item: int,
    item_per_thread: int,
    n_times: int,
    target: Any,
    target_host: Any,
    remote: Any,
    dev: Any,
    verbose: bool = True,
) -> list[list[Any]]:
    """The speed for all data types and vectors: rows of a name and GFLOPS or GIOPS.

    Parameters
    ----------
    total_item, item_per_thread, n_times, target, target_host, remote, dev :
        As of :func:`measure_compute_mad`.
    verbose : bool
        As of :func:`measure_bandwidth_all_types`.
    """

    def speed(base_type: str, bits: int, lanes: int) -> float:
        return measure_compute_mad(
            total_item, item_per_thread, base_type, bits, lanes, target, target_host, remote, dev,
            n_times,
        )  # fmt: skip

    return _of_all_types(speed, lambda base: "GFLOPS" if base == "float" else "GIOPS", verbose)


def measure_peak_all(target: Any, target_host: Any, host: str, port: int) -> None:
    """Measure the device of a server, and log what it reaches.

    Parameters
    ----------
    target, target_host : str or Target
        The device, and its host.
    host : str
        The server's address.
    port : int
        Its port.
    """
    target, target_host = Target.canon_target_and_host(target, target_host)
    remote = connect(host, port)
    dev = remote.device(target.kind.name, 0)
    items = 1 << 22
    logger.info("========== measure memory bandwidth of %s at %s:%d ==========", target, host, port)
    measure_bandwidth_all_types(items, 16, 15, target, target_host, remote, dev)
    logger.info("========== measure compute of %s at %s:%d ==========", target, host, port)
    measure_compute_all_types(1 << 16, 1024, 15, target, target_host, remote, dev)
