"""PTX by LLVM: run on this processor with a thread for each thread, and assembled by ptxas."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tvm
from tests.codegen.gpu.on_processor import run
from tests.codegen.gpu.programs import PROGRAMS, drawn, matmul, unary, vector_add, words_of_a_warp
from tests.codegen.gpu.test_cuda import assemble, assembler
from tests.system_tools import needs
from tvm.codegen.llvm.loaded import LoadedObject
from tvm.codegen.llvm.machine import Machine
from tvm.codegen.llvm.options import CodegenOptions
from tvm.codegen.nvptx.library import two_over_pi
from tvm.codegen.nvptx.module import KernelModuleWriter
from tvm.script import tir as T

needs_assembler = needs("ptxas (nvidia-cuda-nvcc-cu12)", assembler() is not None)
KNOWN_SHAPES = [
    name for name in PROGRAMS if not name.startswith("vector_add_") and name != "vector_add"
]


def kernels(program, target: str = "nvptx -mcpu=sm_80") -> tvm.runtime.Module:
    return tvm.build(program.schedule, program.args, target).imported_modules[0]


@pytest.mark.parametrize("name", ["vector_add_closed", *KNOWN_SHAPES])
def test_threads_on_a_processor(name: str) -> None:
    program = PROGRAMS[name]()
    result = run(program)
    tolerance = 2e-3 if result.dtype == np.float16 else 1e-5
    np.testing.assert_allclose(result, program.expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("seed", range(5))
def test_schedules_drawn_at_random(seed: int) -> None:
    program = drawn(seed)
    np.testing.assert_allclose(run(program), program.expected, rtol=1e-5, atol=1e-5)


@needs_assembler
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_assembled(name: str, tmp_path: Path) -> None:
    report = assemble(kernels(PROGRAMS[name]()), "sm_80", tmp_path)
    assert "0 bytes spill stores" in report


@needs_assembler
@pytest.mark.parametrize("arch", ["sm_70", "sm_80", "sm_90"])
def test_a_matrix_product_needs_no_memory_for_registers(arch: str, tmp_path: Path) -> None:
    module = kernels(matmul(256), f"nvptx -mcpu={arch}")
    assert f".target {arch}" in module.get_source("ptx")
    assert "0 bytes stack frame, 0 bytes spill stores" in assemble(module, arch, tmp_path)


def test_the_texts_of_a_kernel() -> None:
    module = kernels(matmul())
    assert module.type_key == "cuda" and module.format == "ptx"
    text, ptx = module.get_source(), module.get_source("ptx")
    assert "define ptx_kernel void @default_function_kernel(" in text
    assert "@A.shared = internal addrspace(3) global [256 x float]" in text
    # tiles are loaded once, four numbers at a time, between two barriers
    assert ptx.count("bar.sync") == 2 and ".maxntid 64" in ptx
    assert ptx.count("ld.global.nc.v4.b32") + ptx.count("ld.global.v4.b32") == 2


@needs_assembler
def test_warp_shuffles_atomics_and_products_of_bytes(tmp_path: Path) -> None:
    module = tvm.build(words_of_a_warp, target="nvptx -mcpu=sm_80").imported_modules[0]
    text = module.get_source("ptx")
    for word in ("shfl.sync.down.b32", "dp4a.s32.s32", "activemask.b32", ".global.add.u32"):
        assert word in text
    assemble(module, "sm_80", tmp_path)


@needs_assembler
def test_words_of_64_bits_are_shuffled_by_halves(tmp_path: Path) -> None:
    @T.prim_func
    def func(d: T.handle) -> None:
        D = T.match_buffer(d, (32,), "float64")
        tx = T.launch_thread("threadIdx.x", 32)
        D[tx] = T.tvm_warp_shuffle(T.tvm_warp_activemask(), D[tx], 0, 32, 32, dtype="float64")

    module = tvm.build(func, target="nvptx -mcpu=sm_80").imported_modules[0]
    assert module.get_source("ptx").count("shfl.sync.idx.b32") == 2
    assemble(module, "sm_80", tmp_path)


@T.prim_func
def product_of_tiles(a: T.handle, b: T.handle, c: T.handle) -> None:
    """One warp: rows by asynchronous copies to shared memory, from there to registers, and a product."""
    A = T.match_buffer(a, (16, 16), "float16")
    B = T.match_buffer(b, (8, 16), "float16")
    C = T.match_buffer(c, (16, 8), "float32")
    tx = T.launch_thread("threadIdx.x", 32)
    tile = T.allocate([256], "float16", "shared")
    left = T.allocate([8], "float16", "local")
    right = T.allocate([4], "float16", "local")
    total = T.allocate([4], "float32", "local")
    T.ptx_cp_async(tile, tx * 8, A.data, tx * 8, 16, dtype="float16")
    T.ptx_commit_group(dtype="")
    T.ptx_wait_group(0, dtype="")
    T.tvm_storage_sync("shared")
    T.ptx_ldmatrix(False, 4, ".b16", left, 0, tile, (tx % 16) * 16 + tx // 16 * 8, dtype="float16")
    taken = T.Buffer((4,), "float16", data=right, scope="local")
    sums = T.Buffer((4,), "float32", data=total, scope="local")
    for i in range(4):
        taken[i] = B[tx // 4, tx % 4 * 2 + i // 2 * 8 + i % 2]
        sums[i] = T.float32(0)
    T.ptx_mma(
        "m16n8k16",
        "row",
        "col",
        "fp16",
        "fp16",
        "fp32",
        left,
        0,
        right,
        0,
        total,
        0,
        False,
        dtype="float32",
    )
    for i in range(4):
        C[i // 2 * 8 + tx // 4, tx % 4 * 2 + i % 2] = sums[i]


@needs_assembler
@pytest.mark.parametrize("kind", ["cuda -arch=sm_80", "nvptx -mcpu=sm_80"])
def test_matrix_units(kind: str, tmp_path: Path) -> None:
    module = tvm.build(product_of_tiles, target=kind).imported_modules[0]
    text = module.get_source("ptx")
    for word in (
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
        "cp.async.cg.shared.global", "cp.async.commit_group", "cp.async.wait_group 0",
    ):  # fmt: skip
        assert word in text
    assemble(module, "sm_80", tmp_path)


# ---- functions that devices have no library for


def library_function(name: str, arity: int, kind: type) -> Callable[..., float]:
    """A function of the library as one of this processor."""
    host = tvm.target.Target("llvm")
    options = CodegenOptions.of(host)
    machine = Machine(host, options.cpu, options.opt_level)
    writer = KernelModuleWriter(options, 80)
    scalar = {ctypes.c_float: "float", ctypes.c_double: "double"}[kind]
    writer.declare_math(name, scalar, arity, "kernel")
    text = writer.text(machine.layout)
    text = text.replace(f"define internal {scalar} @{name}(", f"define {scalar} @{name}(")
    loaded = LoadedObject([machine.object_code(machine.optimized(text))], [name], options.jit)
    function = ctypes.CFUNCTYPE(kind, *[kind] * arity)(loaded.address(name))
    return lambda *args: (loaded, function(*args))[1]


def exact_turns(x: float) -> tuple[int, float]:
    """Quadrant and rest of x / (pi/2), by integers."""
    bits = 2300
    numerator, denominator = abs(x).as_integer_ratio()
    quarters = numerator * two_over_pi(bits) // denominator
    nearest = (quarters + (1 << (bits - 1))) >> bits
    rest = (quarters - (nearest << bits)) / (1 << bits)
    return nearest % 4, rest * math.pi / 2


def expected(name: str, x: float) -> float:
    quadrant, rest = exact_turns(x)
    sine, cosine = [
        (math.sin(rest), math.cos(rest)), (math.cos(rest), -math.sin(rest)),
        (-math.sin(rest), -math.cos(rest)), (-math.cos(rest), math.sin(rest)),
    ][quadrant]  # fmt: skip
    sine = math.copysign(1, x) * sine
    return {"sin": sine, "cos": cosine, "tan": sine / cosine}[name]


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize(
    ("kind", "dtype", "exponents"),
    [(ctypes.c_float, np.float32, (16, 128)), (ctypes.c_double, np.float64, (31, 1024))],
)
def test_large_angles(name: str, kind: type, dtype: type, exponents: tuple[int, int]) -> None:
    function = library_function(name + ("f" if kind is ctypes.c_float else ""), 1, kind)
    rng = np.random.default_rng(0)
    mantissas = rng.uniform(0.5, 1, 300) * rng.choice([-1, 1], 300)
    for x in np.ldexp(mantissas, rng.integers(*exponents, 300)).astype(dtype):
        want = expected(name, float(x))
        assert abs(function(float(x)) - want) <= 4 * np.spacing(dtype(abs(want)))
    assert math.isnan(function(math.inf)) and math.isnan(function(math.nan))


@pytest.mark.parametrize("kind", [ctypes.c_float, ctypes.c_double])
@pytest.mark.parametrize(("name", "reference"), [("fmod", np.fmod), ("nextafter", np.nextafter)])
def test_remainders_and_neighbours(name: str, reference: np.ufunc, kind: type) -> None:
    dtype, bits = (np.float32, np.uint32) if kind is ctypes.c_float else (np.float64, np.uint64)
    function = library_function(name + ("f" if kind is ctypes.c_float else ""), 2, kind)
    limits = np.finfo(dtype)
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 3.5, limits.tiny, limits.max,
               limits.smallest_subnormal]  # fmt: skip
    drawn = np.random.default_rng(0).integers(0, np.iinfo(bits).max, (300, 2), bits).view(dtype)
    pairs = np.array([*[(a, b) for a in special for b in special], *drawn], dtype)
    found = np.array([function(float(a), float(b)) for a, b in pairs], dtype)
    with np.errstate(all="ignore"):
        wanted = reference(pairs[:, 0], pairs[:, 1])
    np.testing.assert_array_equal(found, wanted)
    is_number = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found)[is_number], np.signbit(wanted)[is_number])


# ---- what is rejected


def test_a_function_that_devices_do_not_have() -> None:
    @T.prim_func
    def func(a: T.handle) -> None:
        A = T.match_buffer(a, (32,), "float32")
        tx = T.launch_thread("threadIdx.x", 32)
        A[tx] = T.call_pure_extern("float32", "bessel", A[tx])

    with pytest.raises(tvm.TVMError, match="target nvptx has no function bessel"):
        tvm.build(func, target="nvptx")


def test_devices_are_named_by_their_capability() -> None:
    with pytest.raises(tvm.TVMError, match=r"requires -mcpu=sm_<compute capability>, got 'gpu'"):
        kernels(unary("exp"), "nvptx -mcpu=gpu")
    with pytest.raises(tvm.TVMError, match="-mcpu requires a processor of nvptx64-nvidia-cuda"):
        kernels(vector_add(), "nvptx -mcpu=sm_777")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_atomic_additions_of_narrow_floats_are_rejected(dtype: str) -> None:
    @T.prim_func
    def func(a: T.handle) -> None:
        A = T.match_buffer(a, (32,), dtype)
        tx = T.launch_thread("threadIdx.x", 32)
        T.evaluate(T.call_intrin(dtype, "tir.atomic_add", T.address_of(A[0]), A[tx]))

    with pytest.raises(tvm.TVMError, match="atomic additions of integers and floats of 32 and 64"):
        tvm.build(func, target="nvptx")
