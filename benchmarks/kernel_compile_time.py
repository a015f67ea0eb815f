"""What lowering and code generation of single kernels take, without the object cache.

usage: python -m benchmarks.kernel_compile_time
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from rich.console import Console
from rich.table import Table

import tvm
from tvm import knobs, te, topi

TARGET = "llvm"
CHAINS = (50, 100, 200, 400)
PRODUCTS = (512, 1000, 1024, 2048)
ROUNDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernel", nargs="?", choices=["chain", "matmul"], help="print one time")
    parser.add_argument("size", nargs="?", type=int)
    arguments = parser.parse_args()
    if arguments.kernel is None:
        compile_table(Console())
        return
    print(compile_seconds(arguments.kernel, arguments.size))


def compile_table(console: Console) -> None:
    """The first build of a fresh process, the best of a few."""
    table = Table("program", "seconds", "milliseconds a stage")
    for size in PRODUCTS:
        table.add_row(f"matmul {size}", f"{in_fresh_process('matmul', size):.2f}", "")
    for stages in CHAINS:
        seconds = in_fresh_process("chain", stages)
        table.add_row(f"chain of {stages}", f"{seconds:.2f}", f"{1e3 * seconds / stages:.1f}")
    console.print(table)


def in_fresh_process(kernel: str, size: int) -> float:
    """The shortest time of several processes that compile this and nothing before."""
    command = [sys.executable, "-m", "benchmarks.kernel_compile_time", kernel, str(size)]
    runs = [subprocess.run(command, check=True, capture_output=True) for _ in range(ROUNDS)]
    return min([float(run.stdout) for run in runs])


def compile_seconds(kernel: str, size: int) -> float:
    """Seconds from the schedule to machine code."""
    with knobs.CACHE.scope(False), tvm.target.Target(TARGET):
        s, args = chain(size) if kernel == "chain" else matmul(size)
        start = time.perf_counter()
        tvm.build(s, args)
        return time.perf_counter() - start


def matmul(size: int) -> tuple[te.Schedule, list[te.Tensor]]:
    """A product of two square matrices."""
    a, b = [te.placeholder((size, size), name=name) for name in ("a", "b")]
    out = topi.x86.matmul_pack(a, b)
    return topi.x86.schedule_matmul_pack(out), [a, b, out]


def chain(stages: int) -> tuple[te.Schedule, list[te.Tensor]]:
    """Element-wise operations, one after the other, each a stage with loops of its own."""
    data = value = te.placeholder((4096,), name="data")
    for number in range(stages):
        value = affine(value, number)
    return te.create_schedule(value.op), [data, value]


def affine(value: te.Tensor, number: int) -> te.Tensor:
    return te.compute(value.shape, lambda i: value[i] * 0.5 + float(number), name=f"s{number}")


if __name__ == "__main__":
    main()
