"""Single kernels beside torch's, on one thread.

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
from benchmarks.timing import alternate
from tvm import te, tir, topi

COUNT = 1 << 20
LANES = 64
TARGET = "llvm"


@dataclass(frozen=True)
class Pair:
    """Two functions that compute the same, and a check that they do."""

    ours: Callable[[], object]
    peer: Callable[[], object]
    check: Callable[[], None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help=f"of {', '.join(ROWS)} (default: all)")
    parser.add_argument("--repeat", type=int, default=60, help="measurements of each side")
    arguments = parser.parse_args()
    if unknown := set(arguments.rows) - set(ROWS):
        parser.error(f"no rows {', '.join(sorted(unknown))}: there are {', '.join(ROWS)}")
    torch.set_num_threads(1)
    tvm.get_global_func("runtime.config_threadpool")(1, 1)  # mode 1: any cores; one thread
    table = Table("kernel", "ours, us", "torch, us", "ratio")
    for name in arguments.rows or ROWS:
        pair = ROWS[name]()
        pair.ours(), pair.peer()
        pair.check()
        times = alternate({"ours": pair.ours, "peer": pair.peer}, arguments.repeat)
        ours, peer = times["ours"], times["peer"]
        table.add_row(name, f"{ours * 1e6:.0f}", f"{peer * 1e6:.0f}", f"{ours / peer:.2f}")
    Console().print(table)


def elementwise(
    compute: Callable[[tir.PrimExpr], tir.PrimExpr], peer: Callable[..., torch.Tensor]
) -> Pair:
    """A function of each of a million floats, in wide vectors."""
    a = te.placeholder((COUNT,), name="a")
    out = te.compute((COUNT,), lambda i: compute(a[i]), name="out")
    s = te.create_schedule(out.op)
    _, inner = s[out].split(out.op.axis[0], factor=LANES)
    s[out].vectorize(inner)
    return pair_of(tvm.build(s, [a, out], TARGET), peer, (COUNT,))


def softmax(rows: int) -> Pair:
    """Softmax along the rows of a million floats."""
    shape = (rows, COUNT // rows)
    with tvm.target.Target(TARGET):
        a = te.placeholder(shape, name="a")
        out = topi.nn.softmax(a)
        s = topi.x86.schedule_softmax(out)
        func = tvm.build(s, [a, out])
    return pair_of(func, lambda x, out: torch.softmax(x, -1, out=out), shape)


def pair_of(
    func: tvm.runtime.Module, peer: Callable[..., torch.Tensor], shape: tuple[int, ...]
) -> Pair:
    """Both sides on the same numbers."""
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    given, result = tvm.nd.array(x), tvm.nd.array(np.zeros_like(x))
    tensor, output = torch.from_numpy(x), torch.empty(shape)
    entry = func.entry_func

    def check() -> None:
        np.testing.assert_allclose(result.numpy(), output.numpy(), rtol=2e-6, atol=1e-7)

    return Pair(lambda: entry(given, result), lambda: peer(tensor, out=output), check)


ROWS: dict[str, Callable[[], Pair]] = {
    "exp": lambda: elementwise(te.exp, torch.exp),
    "tanh": lambda: elementwise(te.tanh, torch.tanh),
    "erf": lambda: elementwise(te.erf, torch.special.erf),
    "sigmoid": lambda: elementwise(te.sigmoid, torch.sigmoid),
    "softmax 1024 rows": lambda: softmax(1024),
    "softmax 1 row": lambda: softmax(1),
}  # fmt: skip


if __name__ == "__main__":
    main()
