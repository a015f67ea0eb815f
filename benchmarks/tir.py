"""Time of what programs of the loop level go through: text, primitives, traces, passes, hashes.

usage: python -m benchmarks.tir [--repeat 3] [--without-network]

CPU seconds of this process, the best of some runs: other work on the machine does not count. The last rows compare a
matrix product that is scheduled by `tir.Schedule` with the same schedule in te, both running alternately.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

import tvm
from benchmarks.timing import shortest
from tvm import relay, te, tir
from tvm.ir import structural_hash
from tvm.relay import testing
from tvm.relay.backend.graph_executor_codegen import GraphExecutorCodegen
from tvm.testing import te_workload

STATEMENTS = 1000
SIZE = 512
TILE = 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--without-network", action="store_true")
    args = parser.parse_args()
    rows: dict[str, Callable[[], object]] = {
        f"print {STATEMENTS} statements": printing(),
        f"parse {STATEMENTS} statements": parsing(),
        "50 primitives on conv2d": lambda: scheduled(50),
        "replay of 100 steps": replaying(),
        "pipeline of conv2d": lowering(),
    }
    if not args.without_network:
        rows["structural_hash of ResNet-50"] = hashing()
    table = Table("what", "CPU ms")
    for name, function in rows.items():
        table.add_row(name, f"{1e3 * cpu_seconds(function, args.repeat):.1f}")
    for name, seconds in products().items():
        table.add_row(f"product of {SIZE} by {name}", f"{1e3 * seconds:.2f}")
    Console().print(table)


def cpu_seconds(function: Callable[[], object], repeat: int) -> float:
    """The best of some runs."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


# ---- text


def long_program() -> tir.PrimFunc:
    """Stores, one after the other, in loops of their own."""
    a, b = [tir.decl_buffer((STATEMENTS, 16), name=name) for name in "AB"]
    stmts = []
    for row in range(STATEMENTS):
        i = tir.Var("i", "int32")
        value = tir.exp(a[row, i] * 2.0) + tir.if_then_else(i < 4, b[row, 15 - i], 0.5)
        store = tir.BufferStore(b, value, [row, i])
        stmts.append(tir.For(i, 0, 16, tir.ForKind.SERIAL, store))
    params = [tir.Var(name, "handle") for name in "ab"]
    return tir.PrimFunc(
        params, tir.SeqStmt(stmts), buffer_map=dict(zip(params, (a, b), strict=True))
    )


def printing() -> Callable[[], object]:
    func = long_program()
    return lambda: func.script()


def parsing() -> Callable[[], object]:
    text = long_program().script()
    return lambda: tvm.script.from_source(text)


# ---- schedules


def conv2d() -> tir.PrimFunc:
    return te.create_prim_func(te_workload.conv2d_nhwc(1, 56, 56, 64, 64, 3, 1, 1))


def scheduled(steps: int) -> tir.Schedule:
    """A convolution after so many primitives."""
    sch = tir.Schedule(conv2d())
    block = sch.get_block("conv2d_nhwc")
    sch.cache_write(block, 0, "global")
    sch.compute_inline(sch.get_block("PadInput"))
    sch.cache_read(block, 1, "global")
    while len(sch.trace.insts) < steps:
        loops = sch.get_loops(block)
        outer, inner = sch.split(loops[len(sch.trace.insts) % len(loops)], [None, 2])
        sch.reorder(outer, inner)
        sch.fuse(outer, inner)
        sch.annotate(block, f"step{len(sch.trace.insts)}", 1)
    return sch


def replaying() -> Callable[[], object]:
    trace, func = scheduled(100).trace, conv2d()
    return lambda: trace.apply_to_schedule(tir.Schedule(func), remove_postproc=False)


def lowering() -> Callable[[], object]:
    mod = tvm.IRModule({"main": conv2d()})
    return lambda: tvm.lower(mod)


# ---- whole networks


def hashing() -> Callable[[], object]:
    """Of the loop programs of a network; the memory of hashes is as in a new process."""
    mod, params = testing.resnet.get_workload(num_layers=50)
    mod, _ = relay.optimize(mod, "llvm", params)
    codegen = GraphExecutorCodegen(None, tvm.target.Target("llvm"))
    _, lowered, _ = codegen.codegen(mod, mod["main"])
    [kernels] = lowered.values()
    return lambda: structural_hash(kernels)


# ---- speed of what is compiled


def products() -> dict[str, float]:
    """Seconds of one product, by each way to schedule it."""
    rng = np.random.default_rng(0)
    x, y = [rng.random((SIZE, SIZE), dtype="float32") for _ in range(2)]
    functions = {}
    for name, build in (("tir.Schedule", built_by_tir), ("te", built_by_te)):
        compiled, out = build(), tvm.nd.empty((SIZE, SIZE))
        arrays = [tvm.nd.array(x), tvm.nd.array(y), out]
        compiled(*arrays)
        np.testing.assert_allclose(out.numpy(), x @ y, rtol=1e-4)
        functions[name] = lambda compiled=compiled, arrays=arrays: compiled(*arrays)
    return shortest(functions, rounds=20)


def product() -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    a, b = [te.placeholder((SIZE, SIZE), name=name) for name in "AB"]
    k = te.reduce_axis((0, SIZE), name="k")
    return a, b, te.compute((SIZE, SIZE), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")


def built_by_tir() -> tvm.runtime.Module:
    sch = tir.Schedule(te.create_prim_func(product()))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    (io, ii), (jo, ji), (ko, ki) = [
        sch.split(loop, [None, factor]) for loop, factor in ((i, TILE), (j, TILE), (k, 4))
    ]
    sch.reorder(io, jo, ko, ii, ki, ji)
    sch.vectorize(ji)
    sch.decompose_reduction(block, ko)
    return tvm.build(sch.mod, target="llvm")


def built_by_te() -> tvm.runtime.Module:
    a, b, c = product()
    s = te.create_schedule(c.op)
    io, jo, ii, ji = s[c].tile(*c.op.axis, TILE, TILE)
    ko, ki = s[c].split(c.op.reduce_axis[0], 4)
    s[c].reorder(io, jo, ko, ii, ki, ji)
    s[c].vectorize(ji)
    return tvm.build(s, [a, b, c], target="llvm")


if __name__ == "__main__":
    main()
