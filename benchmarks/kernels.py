"""Single kernels beside torch's, the classic steps of a matrix product, and what compiling them takes.

usage: python -m benchmarks.kernels [ROW ...] [--repeat N]

A row is a program written for this package and what torch does for the same; the two take turns in one
process, so that the ratio is worth more than the times. Below 1.00 this package is faster.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import tvm
from benchmarks.kernel_compile_time import compile_table
from benchmarks.matmul_steps import steps_table
from benchmarks.timing import alternate, alternate_stretches
from tvm import te, tir, topi

COUNT = 1 << 20
LANES = 64
TARGET = "llvm"
# a row is measured for about this long
SECONDS = 2.0
# runs of one side on several threads, and the seconds before them
STRETCH = 5
PAUSE = 0.1


@dataclass(frozen=True)
class Pair:
    """Two functions that compute the same, and a check that they do."""

    ours: Callable[[], object]
    peer: Callable[[], object]
    check: Callable[[], None]
    threads: int = 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ", ".join([*ROWS, *SECTIONS])
    parser.add_argument("rows", nargs="*", help=f"of {names} (default: all)")
    parser.add_argument("--repeat", type=int, default=60, help="measurements of each side at most")
    arguments = parser.parse_args()
    wanted = arguments.rows or [*ROWS, *SECTIONS]
    if unknown := set(wanted) - set(ROWS) - set(SECTIONS):
        parser.error(f"no rows {', '.join(sorted(unknown))}: there are {names}")
    console = Console()
    if rows := [name for name in wanted if name in ROWS]:
        pairs_table(console, rows, arguments.repeat)
    for name in wanted:
        if name in SECTIONS:
            SECTIONS[name](console)


def pairs_table(console: Console, names: list[str], repeat: int) -> None:
    """Both sides of each row, in turns."""
    table = Table("kernel", "threads", "ours, us", "torch, us", "ratio")
    for name in names:
        pair = ROWS[name]()
        torch.set_num_threads(pair.threads)
        # mode 1: any cores
        tvm.get_global_func("runtime.config_threadpool")(1, pair.threads)
        pair.ours(), pair.peer()
        pair.check()
        once = alternate({"peer": pair.peer}, 3)["peer"]
        sides = {"ours": pair.ours, "peer": pair.peer}
        rounds = max(10, min(repeat, int(SECONDS / once)))
        if pair.threads == 1:
            times = alternate(sides, rounds)
        else:
            times = alternate_stretches(sides, rounds // STRETCH, STRETCH, PAUSE)
        ours, peer = times["ours"], times["peer"]
        table.add_row(
            name, str(pair.threads), f"{ours * 1e6:.0f}", f"{peer * 1e6:.0f}", f"{ours / peer:.2f}"
        )
    console.print(table)


def elementwise(
    compute: Callable[[tir.PrimExpr], tir.PrimExpr], peer: Callable[..., torch.Tensor]
) -> Pair:
    """A function of each of a million floats, in wide vectors."""
    a = te.placeholder((COUNT,), name="a")
    out = te.compute((COUNT,), lambda i: compute(a[i]), name="out")
    s = te.create_schedule(out.op)
    _, inner = s[out].split(out.op.axis[0], factor=LANES)
    s[out].vectorize(inner)
    return pair_of(tvm.build(s, [a, out], TARGET), peer, [(COUNT,)], (COUNT,))


def softmax(rows: int) -> Pair:
    """Softmax along the rows of a million floats."""
    shape = (rows, COUNT // rows)
    with tvm.target.Target(TARGET):
        a = te.placeholder(shape, name="a")
        out = topi.nn.softmax(a)
        s = topi.x86.schedule_softmax(out)
        func = tvm.build(s, [a, out])
    return pair_of(func, lambda x, out: torch.softmax(x, -1, out=out), [shape], shape)


def matmul(size: int, threads: int) -> Pair:
    """A product of two square matrices, both given at run time."""
    with tvm.target.Target(f"{TARGET} -num-cores={threads}"):
        a, b = [te.placeholder((size, size), name=name) for name in ("a", "b")]
        out = topi.x86.matmul_pack(a, b)
        func = tvm.build(topi.x86.schedule_matmul_pack(out), [a, b, out])
    return pair_of(func, torch.mm, [(size, size)] * 2, (size, size), threads, 1e-3)


def pair_of(
    func: tvm.runtime.Module,
    peer: Callable[..., torch.Tensor],
    shapes: list[tuple[int, ...]],
    result_shape: tuple[int, ...],
    threads: int = 1,
    tolerance: float = 1e-7,
) -> Pair:
    """Both sides on the same numbers."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype("float32") for shape in shapes]
    given, result = [tvm.nd.array(x) for x in arrays], tvm.nd.empty(result_shape)
    tensors, output = [torch.from_numpy(x) for x in arrays], torch.empty(result_shape)
    entry = func.entry_func

    def check() -> None:
        np.testing.assert_allclose(result.numpy(), output.numpy(), rtol=2e-6, atol=tolerance)

    return Pair(lambda: entry(*given, result), lambda: peer(*tensors, out=output), check, threads)


ROWS: dict[str, Callable[[], Pair]] = {
    "exp": lambda: elementwise(te.exp, torch.exp),
    "tanh": lambda: elementwise(te.tanh, torch.tanh),
    "erf": lambda: elementwise(te.erf, torch.special.erf),
    "sigmoid": lambda: elementwise(te.sigmoid, torch.sigmoid),
    "softmax 1024 rows": lambda: softmax(1024),
    "softmax 1 row": lambda: softmax(1),
} | {
    f"matmul {size}" + ("" if threads == 1 else f", {threads} threads"): (
        lambda size=size, threads=threads: matmul(size, threads)
    )
    for threads in (1, 2)
    for size in (512, 1000, 1024, 2048)
}  # fmt: skip
SECTIONS: dict[str, Callable[[Console], None]] = {
    "steps": steps_table,
    "compile": compile_table,
}


if __name__ == "__main__":
    main()
