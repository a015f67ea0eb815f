"""Kernels of NVIDIA's devices on this processor: LLVM's text of nvptx with a thread of the system for each thread.

Registers with the indices of threads become calls back, shared memory becomes variables, and the barrier is one
of Python's. Blocks run one after the other.
"""

from __future__ import annotations

import ctypes
import re
import threading
from itertools import product

import numpy as np

import tvm
from tests.codegen.gpu.programs import Program
from tvm.codegen.gpu.build import functions_of
from tvm.codegen.llvm.loaded import LoadedObject
from tvm.codegen.llvm.machine import Machine
from tvm.codegen.llvm.options import CodegenOptions
from tvm.codegen.nvptx.module import KernelModuleWriter
from tvm.target import Target
from tvm.tir.function import PrimFunc
from tvm.tir.pipeline import is_launched, lower_for_host
from tvm.tir.stmt import AttrStmt
from tvm.tir.stmt_functor import post_order_visit

_SECONDS = 20
WARP = 32
KINDS = ("idx", "up", "down")
_TAGS = [f"{kind}.{axis}" for kind in ("blockIdx", "threadIdx") for axis in "xyz"]


class Grid:
    """The threads of one launch: where each is, and where those of a block meet."""

    def __init__(self) -> None:
        self.place = threading.local()
        self.barrier = threading.Barrier(1)
        self.callbacks = {tag: self._index(tag) for tag in _TAGS}
        self.warps: dict[int, Warp] = {}
        self.callbacks["shuffle"] = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_int32] * 4)(
            self._shuffle
        )
        self.callbacks["barrier"] = ctypes.CFUNCTYPE(None)(
            lambda: self.barrier.wait(_SECONDS) and None
        )

    def _index(self, tag: str) -> ctypes._FuncPointer:
        return ctypes.CFUNCTYPE(ctypes.c_int32)(lambda: self.place.of[tag])

    def _shuffle(self, kind: int, value: int, lane: int, bounds: int) -> int:
        return self.place.warp.shuffle(self.place.lane, kind, value, lane, bounds)

    def run(self, kernel: ctypes._FuncPointer, args: list[object], extents: dict[str, int]) -> None:
        """One call of the kernel for each thread."""
        sizes = [range(extents.get(tag, 1)) for tag in _TAGS]
        for block in product(*sizes[:3]):
            threads = list(product(*sizes[3:]))
            self.barrier = threading.Barrier(len(threads))
            # the first axis is the fastest
            threads.sort(key=lambda thread: thread[::-1])
            warps = [Warp(len(threads[k : k + WARP])) for k in range(0, len(threads), WARP)]
            running = [
                threading.Thread(
                    target=self._run_one,
                    args=(kernel, args, (*block, *thread), warps[n // WARP], n % WARP),
                )
                for n, thread in enumerate(threads)
            ]
            for one in running:
                one.start()
            for one in running:
                one.join(_SECONDS)
                assert not one.is_alive(), "the threads of a block wait for each other"

    def _run_one(
        self,
        kernel: ctypes._FuncPointer,
        args: list[object],
        place: tuple[int, ...],
        warp: Warp,
        lane: int,
    ) -> None:
        self.place.of = dict(zip(_TAGS, place, strict=True))
        self.place.warp, self.place.lane = warp, lane
        kernel(*args)


class Warp:
    """Threads that hand each other values; all of them come to each shuffle."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size)
        self.values = [0] * WARP

    def shuffle(self, lane: int, kind: int, value: int, other: int, bounds: int) -> int:
        """The value of a lane by its number, or by its distance up or down."""
        self.values[lane] = value
        self.barrier.wait(_SECONDS)
        clamp, first = bounds & 31, lane & (bounds >> 8)
        last = first | (clamp & ~(bounds >> 8))
        source = {
            "idx": first | (other & ~(bounds >> 8) & 31),
            "up": lane - other,
            "down": lane + other,
        }[KINDS[kind]]
        is_inside = source >= last if KINDS[kind] == "up" else source <= last
        found = self.values[source] if is_inside else value
        self.barrier.wait(_SECONDS)
        return found


def on_processor(text: str, grid: Grid, layout: str, triple: str) -> str:
    """The text of a module of kernels as one of this processor."""
    addresses = {
        name: ctypes.cast(call, ctypes.c_void_p).value for name, call in grid.callbacks.items()
    }
    text = re.sub(r'target datalayout = ".*"', f'target datalayout = "{layout}"', text)
    text = re.sub(r'target triple = ".*"', f'target triple = "{triple}"', text)
    text = re.sub(r' "(target-cpu|target-features|nvvm.maxntid)"="[^"]*"', "", text)
    text = text.replace("define ptx_kernel void", "define void")
    text = re.sub(
        r"internal addrspace\(3\) global (\[.*\]) undef",
        r"internal global \1 zeroinitializer",
        text,
    )
    text = re.sub(
        r"external addrspace\(3\) global \[0 x i8\]",
        "internal global [65536 x i8] zeroinitializer",
        text,
    )
    text = re.sub(r"addrspacecast \(ptr addrspace\(3\) (\S+) to ptr\)", r"\1", text)
    for tag in _TAGS:
        register = tag.replace("blockIdx", "ctaid").replace("threadIdx", "tid")
        call = f"call i32 inttoptr (i64 {addresses[tag]} to ptr)()"
        text = text.replace(f"call i32 @llvm.nvvm.read.ptx.sreg.{register}()", call)
    for kind, name in enumerate(KINDS):
        text = re.sub(
            rf"call i32 @llvm\.nvvm\.shfl\.sync\.{name}\.i32\(i32 \S+, ",
            f"call i32 inttoptr (i64 {addresses['shuffle']} to ptr)(i32 {kind}, ",
            text,
        )
    text = re.sub(r'call i32 asm sideeffect "activemask.b32 \$0;", "=r"\(\)', "add i32 0, -1", text)
    barrier = f"call void inttoptr (i64 {addresses['barrier']} to ptr)()"
    return text.replace("call void @llvm.nvvm.barrier0()", barrier)


def run(program: Program, target: str = "nvptx -mcpu=sm_80") -> np.ndarray:
    """What the kernels of a program with known shapes make of its inputs."""
    kind = Target(target).hosted()
    lowered = lower_for_host(tvm.lower(program.schedule, program.args), kind)
    kernels = {gvar: func for gvar, func in lowered.functions.items() if is_launched(func)}
    writer = KernelModuleWriter(CodegenOptions.of(kind), 80)
    found = functions_of(lowered.with_functions(kernels))
    for name, func in found:
        writer.add_function(name, func)
    host = Target("llvm")
    options = CodegenOptions.of(host)
    machine = Machine(host, options.cpu, options.opt_level)
    grid = Grid()
    text = on_processor(writer.text("layout"), grid, machine.layout, options.cpu.triple)
    code = machine.object_code(machine.optimized(text))
    loaded = LoadedObject([code], [name for name, _ in found], options.jit)
    result = np.zeros(program.expected.shape, program.args[-1].dtype)
    arrays = dict(
        zip([arg.op.name for arg in program.args], [*program.inputs, result], strict=True)
    )
    for name, func in found:
        kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(func.params))(loaded.address(name))
        args = [arrays[param.name].ctypes.data for param in func.params]
        grid.run(kernel, args, _extents(func))
    return result


def _extents(func: PrimFunc) -> dict[str, int]:
    found: dict[str, int] = {}

    def visit(node: object) -> None:
        if isinstance(node, AttrStmt) and node.attr_key == "thread_extent":
            found[node.node.thread_tag] = int(node.value)

    post_order_visit(func.body, visit)
    return found
