"""Build and run a kernel where no two free ranges of this process's memory are near each other."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

import tvm
from tvm import te

GAP = 3 << 30  # bytes, more than an offset of 32 bits spans
NO_ACCESS = 0
FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)

_libc = ctypes.CDLL(None)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def _take(size: int) -> int:
    return int(_libc.mmap(None, size, NO_ACCESS, FLAGS, -1, 0))


def crowd() -> None:
    """Leave single pages on one side of a gap, and all larger ranges on the other."""
    gap = _take(GAP)
    for size in [mmap.PAGESIZE << bits for bits in range(18, -1, -1)]:
        while (start := _take(size)) > gap:
            pass
        _libc.munmap(start, size)
    for page in range(64):
        _libc.munmap(gap + GAP - (2 * page + 2) * mmap.PAGESIZE, mmap.PAGESIZE)


def main() -> None:
    """Print how far the kernel's results are from numpy's."""
    data = te.placeholder((100,), name="data")
    out = te.compute((100,), lambda i: te.exp(data[i]) + te.sin(data[i]) * te.tanh(data[i]))
    schedule = te.create_schedule(out.op)
    schedule[out].unroll(out.op.axis[0])  # code of more than a page, constants of less
    crowd()
    func = tvm.build(schedule, [data, out], "llvm")
    given = np.linspace(-1, 1, 100, dtype="float32")
    found = tvm.nd.empty((100,))
    func(tvm.nd.array(given), found)
    print(np.abs(found.numpy() - (np.exp(given) + np.sin(given) * np.tanh(given))).max() < 1e-6)


if __name__ == "__main__":
    main()
