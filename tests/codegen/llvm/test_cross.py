"""Code for other processors: what its object files hold, and its numbers under an emulator."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tvm
from tests.system_tools import needs_tool
from tvm import te, tir
from tvm.target.cpu_features import X86_CPUS, missing_here
from tvm.target.triple import runs_here

from .cross import PLATFORMS, run_calls

SIZE = 96
MATHS = (
    "exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "tanh", "sigmoid",
    "erf", "sin", "cos", "tan", "atan", "asin", "acos", "sinh", "cosh", "asinh", "atanh",
)  # fmt: skip


def lowered(name: str, out: te.Tensor, inputs: list[te.Tensor], schedule: Any = None) -> Any:
    s = schedule or te.create_schedule(out.op)
    return tvm.lower(s, [*inputs, out], name=name)[name]


def matmul() -> Any:
    a, b = te.placeholder((24, 40), name="a"), te.placeholder((40, 32), name="b")
    k = te.reduce_axis((0, 40), name="k")
    c = te.compute((24, 32), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    s = te.create_schedule(c.op)
    y, x = s[c].op.axis
    s[c].vectorize(s[c].split(x, factor=8)[1])
    s[c].parallel(y)
    return lowered("matmul", c, [a, b], s)


def convolution() -> Any:
    data, kernel = te.placeholder((1, 3, 9, 9), name="d"), te.placeholder((4, 3, 3, 3), name="k")
    padded = te.compute(
        (1, 3, 11, 11),
        lambda n, c, y, x: tir.if_then_else(
            tir.all(y >= 1, y < 10, x >= 1, x < 10), data[n, c, y - 1, x - 1], 0.0
        ),
        name="padded",
    )
    axes = [te.reduce_axis((0, extent)) for extent in (3, 3, 3)]
    c, v, u = axes
    out = te.compute(
        (1, 4, 9, 9),
        lambda n, f, y, x: te.sum(padded[n, c, y + v, x + u] * kernel[f, c, v, u], axis=axes),
        name="out",
    )
    return lowered("convolution", out, [data, kernel])


def elementwise(name: str, compute: Callable[..., Any], *dtypes: str, lanes: int = 8) -> Any:
    inputs = [te.placeholder((SIZE,), name=f"a{i}", dtype=d) for i, d in enumerate(dtypes)]
    out = te.compute((SIZE,), lambda i: compute(*[t[i] for t in inputs]), name="out")
    s = te.create_schedule(out.op)
    s[out].vectorize(s[out].split(out.op.axis[0], factor=lanes)[1])
    return lowered(name, out, inputs, s)


def byte_products() -> Any:
    a, b = [te.placeholder((16, 64), name=n, dtype="int8") for n in "ab"]
    k = te.reduce_axis((0, 64), name="k")
    out = te.compute(
        (16,),
        lambda i: te.sum(a[i, k].astype("int32") * b[i, k].astype("int32"), axis=k),
        name="out",
    )
    return lowered("byte_products", out, [a, b])


def partial_sums() -> Any:
    a = te.placeholder((1024,), name="a")
    k = te.reduce_axis((0, 1024), name="k")
    total = te.compute((1,), lambda i: te.sum(a[k], axis=k), name="total")
    s = te.create_schedule(total.op)
    _, inner = s[total].split(total.op.reduce_axis[0], factor=16)
    s.rfactor(total, inner)
    return lowered("partial_sums", total, [a], s)


def kernels() -> tvm.IRModule:
    functions = {
        "matmul": matmul(),
        "convolution": convolution(),
        "byte_products": byte_products(),
        "partial_sums": partial_sums(),
        "halves": elementwise("halves", lambda x, y: te.exp(x) * y, "float16", "float16"),
        "brain": elementwise("brain", lambda x, y: te.tanh(x) + y, "bfloat16", "bfloat16"),
        "doubles": elementwise("doubles", lambda x: te.exp(x) + te.tanh(x), "float64", lanes=4),
        "longs": elementwise("longs", lambda x, y: te.floordiv(x, y) * te.floormod(x, y), "int64", "int64"),
        "narrowed": elementwise("narrowed", lambda x: (x * 50).astype("int8"), "float32"),
        **{f"f_{name}": elementwise(f"f_{name}", getattr(tir, name), "float32") for name in MATHS},
        "f_power": elementwise("f_power", te.power, "float32", "float32"),
    }  # fmt: skip
    return tvm.IRModule(functions)


def arguments() -> dict[str, list[np.ndarray]]:
    """Inputs of each kernel, and a place for its output."""
    source = np.random.default_rng(0)

    def normal(*shape: int, dtype: Any = "float32") -> np.ndarray:
        return source.normal(size=shape).astype(dtype)

    def integers(*shape: int, dtype: str, low: int = -100) -> np.ndarray:
        return source.integers(low, 100, shape).astype(dtype)

    unit = source.uniform(0.01, 0.99, SIZE).astype("float32")
    zeros, bfloat16 = np.zeros(SIZE, "float32"), ml_dtypes.bfloat16
    return {
        "matmul": [normal(24, 40), normal(40, 32), np.zeros((24, 32), "float32")],
        "convolution": [normal(1, 3, 9, 9), normal(4, 3, 3, 3), np.zeros((1, 4, 9, 9), "float32")],
        "byte_products": [
            integers(16, 64, dtype="int8"), integers(16, 64, dtype="int8"), np.zeros(16, "int32"),
        ],
        "partial_sums": [normal(1024), np.zeros(1, "float32")],
        "halves": [normal(SIZE, dtype="float16"), normal(SIZE, dtype="float16"), zeros.astype("float16")],
        "brain": [normal(SIZE, dtype=bfloat16), normal(SIZE, dtype=bfloat16), zeros.astype(bfloat16)],
        "doubles": [normal(SIZE, dtype="float64"), zeros.astype("float64")],
        "longs": [
            integers(SIZE, dtype="int64"), integers(SIZE, dtype="int64", low=1),
            np.zeros(SIZE, "int64"),
        ],
        "narrowed": [unit, np.zeros(SIZE, "int8")],
        **{f"f_{name}": [unit, zeros] for name in MATHS},
        "f_power": [unit, normal(SIZE), zeros],
    }  # fmt: skip


@pytest.fixture(scope="module")
def mod() -> tvm.IRModule:
    return kernels()


@pytest.fixture(scope="module")
def expected(mod: tvm.IRModule) -> dict[str, np.ndarray]:
    """What this machine computes."""
    library, results = tvm.build(mod, target="llvm"), {}
    for name, arrays in arguments().items():
        given = [tvm.nd.array(a) for a in arrays]
        library[name](*given)
        results[name] = given[-1].numpy()
    return results


def require_close(kernel: str, found: np.ndarray, expected: np.ndarray) -> None:
    tolerance = {2: 1e-2, 4: 4e-6}.get(found.itemsize, 1e-12)
    np.testing.assert_allclose(
        found.astype("float64"), expected.astype("float64"),
        rtol=tolerance, atol=tolerance, err_msg=kernel,
    )  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=needs_tool(platform.compiler, platform.emulator))
        for name, platform in PLATFORMS.items()
    ],
)
def test_kernels_give_the_same_numbers_on(
    name: str, mod: tvm.IRModule, expected: dict[str, np.ndarray], tmp_path: Path
) -> None:
    calls = list(arguments().items())
    wrong = [arguments()["matmul"][0], *arguments()["matmul"][:2]]
    results, printed = run_calls(PLATFORMS[name], mod, [*calls, ("matmul", wrong)], tmp_path)
    for (kernel, _), (status, after) in zip(calls, results, strict=False):
        assert status == 0, (kernel, printed)
        require_close(kernel, after[-1], expected[kernel])
    assert results[-1][0] == -1
    assert "matmul: argument 1 (buffer b) needs shape[0] == 40, got 24" in printed


@pytest.mark.parametrize("mcpu", ["x86-64", "x86-64-v2", "haswell", "skylake-avx512"])
def test_generations_of_x86_give_the_same_numbers(
    mcpu: str, mod: tvm.IRModule, expected: dict[str, np.ndarray]
) -> None:
    library = tvm.build(mod, target=f"llvm -mtriple=x86_64-linux-gnu -mcpu={mcpu}")
    if runs_here("x86_64-linux-gnu") and not missing_here(X86_CPUS.get(mcpu, "").split()):
        for name, arrays in arguments().items():
            given = [tvm.nd.array(a) for a in arrays]
            library[name](*given)
            require_close(name, given[-1].numpy(), expected[name])


@pytest.mark.parametrize(
    ("target", "bits", "machine"),
    [
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64", 64, 62),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell", 64, 62),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512", 64, 62),
        ("llvm -mtriple=i686-linux-gnu", 32, 3),
        ("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v1", 64, 183),
        ("llvm -mtriple=armv7l-linux-gnueabihf -mattr=+neon", 32, 40),
        ("llvm -mtriple=riscv64-linux-gnu -mattr=+m,+a,+f,+d,+v -mabi=lp64d", 64, 243),
    ],
)
def test_object_is_for_the_processor(target: str, bits: int, machine: int, tmp_path: Path) -> None:
    path = tmp_path / "matmul.o"
    tvm.build(tvm.IRModule({"matmul": matmul()}), target=target).save(str(path))
    data = path.read_bytes()
    assert data[:4] == b"\x7fELF" and data[4] == bits // 32
    assert int.from_bytes(data[18:20], "little") == machine
    assert b"\0matmul\0" in data and b"__TVMBackendParallelLaunch\0" in data


def test_object_for_wasm_exports_its_functions(tmp_path: Path) -> None:
    path = tmp_path / "matmul.o"
    target = "llvm -mtriple=wasm32-unknown-unknown -mattr=+simd128"
    tvm.build(tvm.IRModule({"matmul": matmul()}), target=target).save(str(path))
    data = path.read_bytes()
    assert data[:8] == b"\0asm\1\0\0\0"
    assert b"\x06matmul" in data and b"linking" in data and b"\x07simd128" in data


@pytest.mark.parametrize(
    ("triple", "abi", "hard"),
    [
        ("armv7a-linux-gnueabi", "hard", True),
        ("armv7a-linux-gnueabihf", "soft", False),
        ("armv7a-none-eabi", "hard", True),
    ],
)
def test_float_abi_of_arm(triple: str, abi: str, hard: bool) -> None:
    x = tir.Var("x", "float32")
    func = tir.PrimFunc(
        [x], tir.Evaluate(tir.call_extern("int32", "use", x * x)), attrs={"global_symbol": "f"}
    )
    target = f"llvm -mtriple={triple} -mfloat-abi={abi} -mattr=+vfp3"
    text = tvm.build(tvm.IRModule({"f": func}), target=target).get_source("asm")
    # the argument of a function is in s0 or in r0
    assert ("vmov\tr0, s" not in text) == hard


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-mtriple=armv7a-linux-gnueabihf -mfloat-abi=hrad", "hard or soft"),
        ("-mtriple=x86_64-linux-gnu -mfloat-abi=soft", "32-bit Arm"),
        ("-mtriple=armv7a-apple-ios -mfloat-abi=soft", "ends in eabi"),
        ("-mcpu=native -mtriple=aarch64-linux-gnu", "triple of this machine"),
    ],
)
def test_impossible_combination_is_rejected(options: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tvm.build(tvm.IRModule({"matmul": matmul()}), target=f"llvm {options}")


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("mcpu", ["x86-64", "haswell"])
def test_float16_is_rounded_once_with_and_without_instructions(mcpu: str, source: str) -> None:
    halves = np.arange(65536, dtype="uint16").view("float16").astype(source)
    with np.errstate(all="ignore"):
        between = (halves + np.roll(halves, 1)) / 2
        near = [np.nextafter(halves, np.array(side, source)) for side in (np.inf, -np.inf)]
        values = np.concatenate([halves, between, *near])
        expected = values.astype("float16")
    a = te.placeholder(values.shape, name="a", dtype=source)
    half = te.compute(values.shape, lambda i: a[i].astype("float16"), name="half")
    back = te.compute(values.shape, lambda i: half[i].astype("float32"), name="back")
    func = tvm.build(te.create_schedule(back.op), [a, half, back], f"llvm -mcpu={mcpu}")
    got = [tvm.nd.array(np.zeros_like(values, dtype)) for dtype in ("float16", "float32")]
    func(tvm.nd.array(values), *got)
    np.testing.assert_array_equal(got[0].numpy(), expected)
    np.testing.assert_array_equal(got[1].numpy(), expected.astype("float32"))
    np.testing.assert_array_equal(np.signbit(got[0].numpy()), np.signbit(values))


CPU_TAGS = [name for name, config in tvm.target.list_tags().items() if config["kind"] == "llvm"]
BOARDS = (
    "unknown",
    "pixel2",
    "rasp3b",
    "rasp4b",
    "rasp4b64",
    "rk3399",
    "pynq",
    "beagleai",
    "graviton3",
)


@pytest.mark.parametrize(
    "target",
    [
        *[tvm.target.Target(tag) for tag in CPU_TAGS],
        *[tvm.target.arm_cpu(board) for board in BOARDS],
        tvm.target.riscv_cpu(),
        tvm.target.rasp(),
        tvm.target.Target.from_device("cpu"),
    ],
    ids=str,
)  # fmt: skip
def test_code_can_be_made_for_every_board_and_tag(target: tvm.target.Target) -> None:
    func = elementwise("vector_exp", te.exp, "float32", lanes=4)
    code = tvm.build(tvm.IRModule({"vector_exp": func}), target=target)
    assert "vector_exp" in code.get_source("asm")
