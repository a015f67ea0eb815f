"""Modules of target c: their text, what exports them, what they call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tvm
from tests.codegen.llvm.helpers import flat_function
from tests.golden import Golden
from tests.system_tools import needs_tool
from tvm import te, tir
from tvm.error import TVMError
from tvm.script import tir as T

from .compiled import STRICT, build_c, compiled


def doubling(name: str = "double_it", size: int = 8) -> tuple[te.Schedule, list[te.Tensor]]:
    a = te.placeholder((size,), name="A")
    b = te.compute((size,), lambda i: a[i] * 2.0, name="B")
    schedule = te.create_schedule(b.op)
    outer, inner = schedule[b].split(b.op.axis[0], factor=4)
    schedule[b].parallel(outer)
    schedule[b].vectorize(inner)
    return schedule, [a, b]


def built(name: str = "double_it", target: str = "c") -> tvm.runtime.Module:
    return tvm.build(*doubling(), target, name=name)


def check_doubles(func: object, size: int = 8) -> None:
    x, y = [tvm.nd.array(np.arange(size, dtype="float32")) for _ in range(2)]
    func(x, y)  # type: ignore[operator]
    np.testing.assert_array_equal(y.numpy(), x.numpy() * 2)


def test_text_of_a_scheduled_loop(golden: Golden) -> None:
    source = built().get_source()
    begin = source.index("static int double_it_task(")
    golden("double_it_task.c", source[begin : source.index("\n}\n", begin) + 3])


def test_same_program_gives_the_same_text() -> None:
    assert built().get_source() == built().get_source("c")


def test_first_line_tells_the_target() -> None:
    text = built(target="c -mcpu=cortex-m7 -march=armv7e-m").get_source()
    first = text.splitlines()[0]
    assert first.startswith("// tvm target: c ")
    assert "-mcpu=cortex-m7" in first and "-march=armv7e-m" in first


@pytest.mark.parametrize("suffix", ["so", "o", "tar"])
def test_exported_code_runs(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"lib.{suffix}"
    built().export_library(path)
    check_doubles(tvm.runtime.load_module(path)["double_it"])
    check_doubles(tvm.runtime.load_module(path))


def test_text_is_cplusplus_too(tmp_path: Path) -> None:
    source = tmp_path / "lib.cpp"
    built().save(str(source))
    include = [f"-I{path}" for path in tvm._ffi.libinfo.find_include_path()]
    options = ["-Wall", "-Wextra", "-Werror", *include]
    tvm.contrib.cc.create_shared(str(tmp_path / "lib.so"), str(source), options, cc="g++")
    check_doubles(tvm.runtime.load_module(tmp_path / "lib.so"))


@needs_tool("arm-linux-gnueabihf-gcc")
def test_text_is_compiled_for_a_32_bit_processor(tmp_path: Path) -> None:
    compile_ = tvm.contrib.cc.cross_compiler("arm-linux-gnueabihf-gcc", options=STRICT)
    built().export_library(tmp_path / "lib.so", fcompile=compile_)
    assert (tmp_path / "lib.so").read_bytes()[18:20] == bytes([40, 0])  # Arm


def test_text_does_not_run_before_it_is_compiled() -> None:
    module = built()
    assert module.type_key == "c" and module.format == "c" and not module.is_runnable
    assert module.is_dso_exportable and module.implements_function("double_it")
    with pytest.raises(TVMError, match="'double_it' is C text, .*: export_library and load_module"):
        check_doubles(module["double_it"])
    with pytest.raises(AttributeError, match="no function 'other'"):
        module["other"]


def test_export_without_a_compiler_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError, match=r"needs a C\+\+ compiler: install g\+\+"):
        built().export_library(tmp_path / "lib.so")


def test_text_of_others_becomes_a_module(tmp_path: Path) -> None:
    text = """
    #include <tvm/runtime/c_backend_api.h>
    #ifdef __cplusplus
    extern "C"
    #endif
    TVM_DLL int32_t twice(TVMValue* args, int* codes, int n, TVMValue* ret, int* ret_code, void* r) {
      (void)codes; (void)n; (void)r;
      ret->v_int64 = 2 * args[0].v_int64;
      *ret_code = kTVMArgInt;
      return 0;
    }
    """
    create = tvm.get_global_func("runtime.CSourceModuleCreate")
    module = create(text, "c", ["twice"], ["weight"])
    assert module.get_function("get_symbol")() == "twice"
    assert compiled(module)["twice"](21) == 42
    assert compiled(create(text, "c", [], None))["twice"](21) == 42


@pytest.mark.parametrize(("main", "imported"), [("llvm", "c"), ("c", "llvm"), ("c", "c")])
def test_modules_of_two_targets_become_one_library(
    main: str, imported: str, tmp_path: Path
) -> None:
    module = built("first", main)
    module.import_module(built("second", imported))
    module.export_library(tmp_path / "lib.so")
    library = tvm.runtime.load_module(tmp_path / "lib.so")
    check_doubles(library["first"])
    check_doubles(library["second"])


@pytest.mark.parametrize("name", ["a-b", "tvm_report"])
def test_name_that_c_cannot_give_is_rejected(name: str) -> None:
    with pytest.raises(TVMError, match=f"cannot give a function the name '{name}'"):
        built(name)


# ---- calls


def test_results_and_arguments_of_packed_functions() -> None:
    seen = []

    @tvm.register_func("test.codegen.c.observe", override=True)
    def observe(*args: object) -> object:
        seen.append(args)
        return len(seen) if len(seen) < 4 else "text"

    @T.prim_func
    def main(out: T.Buffer((4,), "int32")):
        for i in range(4):
            out[i] = T.call_packed(
                "test.codegen.c.observe", i, T.float32(0.5), 'hel"lo?', T.bool(True)
            )

    func = build_c(main)
    result = tvm.nd.array(np.zeros(4, "int32"))
    with pytest.raises(TypeError, match="default_function needs int32 from test.codegen.c.observe"):
        func(result)
    assert result.numpy().tolist() == [1, 2, 3, 0]
    assert seen[1] == (1, 0.5, 'hel"lo?', 1)


def test_exception_in_python_reaches_the_caller() -> None:
    @tvm.register_func("test.codegen.c.fail", override=True)
    def fail() -> None:
        raise ValueError("no luck today")

    func = build_c(tir.PrimFunc([], tir.Evaluate(tir.call_packed("test.codegen.c.fail"))))
    with pytest.raises(ValueError, match="no luck today"):
        func()


def test_wrong_arguments_become_python_exceptions() -> None:
    func = build_c(tvm.lower(*doubling(), name="double_it"))["double_it"]
    good, long, ints = [
        tvm.nd.array(np.zeros(n, d)) for n, d in ((8, "float32"), (9, "float32"), (8, "int32"))
    ]
    for args, error, text in (
        ((good,), TypeError, "double_it: needs 2 arguments, got 1"),
        ((good, long), ValueError, r"argument 1 \(buffer B\) needs shape\[0\] == 8, got 9"),
        ((ints, good), TypeError, "argument 0 .* needs dtype float32, got int32"),
        ((3, good), TypeError, "argument 0 .* needs to be a tensor or a pointer, got int"),
    ):  # fmt: skip
        with pytest.raises(error, match=text):
            func(*args)


@pytest.mark.parametrize(
    "name", ["main", "double", "a.b", "exp", "I", "tvm_name", "TVMFuncCall", "lane"]
)
def test_function_of_any_name(name: str) -> None:
    lowered = tvm.lower(*doubling(), name=name)
    check_doubles(build_c(lowered)[name])


def test_function_that_hides_one_of_the_c_library_is_rejected() -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: te.exp(a[i]), name="B")
    with pytest.raises(TVMError, match="function expf hides the C library's"):
        tvm.build(te.create_schedule(b.op), [a, b], "c", name="expf")


def test_variables_of_any_name() -> None:
    names = ["int", "expf", "lane", "NULL", "a.b", "3d", "I", "task_id"]
    values = [tir.Var(name, "float32") for name in names]
    total = sum(values[1:], values[0]) + tir.exp(values[0]) - 1.0

    def body(a: tir.Buffer, b: tir.Buffer) -> tir.Stmt:
        stmt = tir.BufferStore(b, total, [0])
        for number, var in enumerate(values):
            stmt = tir.LetStmt(var, tir.BufferLoad(a, [number]), stmt)
        return stmt

    buffers = [tir.decl_buffer((8,), "float32", name) for name in ("for", "static")]
    func = build_c(flat_function(body, *buffers))
    x, y = tvm.nd.array(np.eye(1, 8, 3, "float32")[0]), tvm.nd.array(np.zeros(8, "float32"))
    func(x, y)
    assert y.numpy()[0] == 1


def test_threads_add_atomically() -> None:
    i = tir.Var("i", "int32")
    sums = [tir.decl_buffer((1,), dtype, dtype) for dtype in ("int32", "float32", "int64")]

    def body(*buffers: tir.Buffer) -> tir.Stmt:
        adds = [
            tir.Evaluate(tir.call_intrin(b.dtype, "tir.atomic_add", tir.address_of(b[0]), tir.const(1, b.dtype)))
            for b in buffers
        ]  # fmt: skip
        return tir.For(i, 0, 1000, tir.ForKind.PARALLEL, tir.SeqStmt(adds))

    func = build_c(flat_function(body, *sums))
    given = [tvm.nd.array(np.zeros(1, b.dtype)) for b in sums]
    func(*given)
    assert [g.numpy()[0] for g in given] == [1000] * 3


# ---- code of the user


def test_pragma_brings_c_code_of_the_user() -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: tir.call_pure_extern("float32", "add_seven", a[i]), name="B")
    schedule = te.create_schedule(b.op)
    code = "static float add_seven(float x) { return x + 7; }"
    schedule[b].pragma(b.op.axis[0], "import_c", code)
    func = build_c(tvm.lower(schedule, [a, b], name="seven"))
    x, y = [tvm.nd.array(np.arange(8, dtype="float32")) for _ in range(2)]
    func(x, y)
    np.testing.assert_array_equal(y.numpy(), x.numpy() + 7)


def test_variables_do_not_hide_functions_that_are_called() -> None:
    schedule, args = doubling()
    a = args[0]
    b = te.compute((8,), lambda twice: tir.call_pure_extern("float32", "twice", a[twice]), name="B")
    schedule = te.create_schedule(b.op)
    schedule[b].parallel(b.op.axis[0])
    schedule[b].pragma(b.op.axis[0], "import_c", "static float twice(float x) { return 2 * x; }")
    check_doubles(build_c(tvm.lower(schedule, [a, b], name="call")))


@pytest.mark.parametrize("name", ["fabsf", "labs", "cbrtf"])
def test_functions_of_the_c_library_are_called(name: str) -> None:
    dtype = "int64" if name == "labs" else "float32"
    a = te.placeholder((8,), dtype, name="A")
    b = te.compute((8,), lambda i: tir.call_pure_extern(dtype, name, a[i]), name="B")
    x, y = [tvm.nd.array(np.arange(-4, 4, dtype=dtype)) for _ in range(2)]
    build_c(tvm.lower(te.create_schedule(b.op), [a, b], name="call"))(x, y)
    expected = np.cbrt(x.numpy()) if name == "cbrtf" else np.abs(x.numpy())
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-6)


# ---- what C cannot express


def rejected(value: tir.PrimExpr) -> str:
    def body(b: tir.Buffer) -> tir.Stmt:
        lanes = value.dtype.lanes
        index = 0 if lanes == 1 else tir.Ramp(tir.const(0, "int32"), tir.const(1, "int32"), lanes)
        return tir.BufferStore(b, tir.Cast(b.dtype.with_lanes(lanes), value), [index])

    with pytest.raises(TVMError) as caught:
        tvm.build(flat_function(body, tir.decl_buffer((4,), "float32", "B")), target="c")
    return str(caught.value)


def test_what_c_cannot_express_is_rejected() -> None:
    one, vector = tir.const(1.0, "float32"), tir.Broadcast(tir.const(1.0, "float32"), 4)
    for value, text in (
        (tir.call_intrin("int32", "tir.vscale"), "target c has no scalable vectors"),
        (tir.call_llvm_intrin("float32", "llvm.sqrt", tir.const(1, "uint32"), one), "no LLVM intrinsics"),
        (tir.call_extern("float32x4", "f", vector), "cannot pass vectors to the function f"),
        (tir.call_intrin("float32", "tir.tvm_mma_sync", *[one] * 8), "no code for the intrinsic tir.tvm_mma_sync"),
        (tir.Cast("int24", tir.call_pure_extern("float32", "f")), "got int24"),
    ):  # fmt: skip
        assert text in rejected(value)


def test_gpu_thread_axis_is_rejected() -> None:
    schedule, args = doubling()
    b = args[1]
    schedule = te.create_schedule(b.op)
    schedule[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    with pytest.raises(TVMError, match="threadIdx.x"):
        tvm.build(schedule, args, "c")


def test_llvm_code_is_rejected() -> None:
    schedule, args = doubling()
    schedule[args[1]].pragma(schedule[args[1]].leaf_iter_vars[0], "import_llvm", "define void @f()")
    with pytest.raises(TVMError, match="target c cannot take LLVM code"):
        tvm.build(schedule, args, "c")


def test_system_libraries_are_rejected() -> None:
    mod = tvm.lower(*doubling()).with_attr("system_lib_prefix", "model_")
    with pytest.raises(TVMError, match="target c makes no system libraries"):
        tvm.build(mod, target="c")


@needs_tool("clang")
def test_deep_expressions_are_computed_in_steps() -> None:
    def body(a: tir.Buffer, b: tir.Buffer) -> tir.Stmt:
        value: tir.PrimExpr = a[0]
        for number in range(1000):
            value = tir.Mul(value, a[0]) if number % 2 else tir.Add(a[1], value)
        return tir.BufferStore(b, value, [0])

    func = build_c(flat_function(body, *[tir.decl_buffer((2,), "int32", n) for n in "AB"]), "clang")
    x, y = tvm.nd.array(np.array([3, 2], "int32")), tvm.nd.array(np.zeros(2, "int32"))
    func(x, y)
    expected = 3
    for number in range(1000):
        expected = expected * 3 if number % 2 else expected + 2
    assert y.numpy()[0] == np.array(expected % 2**32, "uint32").view("int32")


def test_bad_alignment_is_rejected() -> None:
    with pytest.raises(TVMError, match="power of two as -constants-byte-alignment, got 24"):
        built(target="c -constants-byte-alignment=24")


def test_constants_are_aligned_as_the_target_says() -> None:
    data = tir.Var("data", tvm.ir.PointerType(tvm.ir.PrimType("float32")))
    table = tir.decl_buffer((2,), "float32", "table", data=data)

    def body(b: tir.Buffer) -> tir.Stmt:
        store = tir.BufferStore(b, tir.BufferLoad(table, [1]), [0])
        return tir.AllocateConst(data, "float32", [2], tvm.nd.array(np.ones(2, "float32")), store)

    func = flat_function(body, tir.decl_buffer((4,), "float32", "B"))
    text = tvm.build(func, target="c -constants-byte-alignment=32").get_source()
    assert "aligned(32))) tvm_constant_0[2] = {\n  0x1p+0f, 0x1p+0f\n};" in text


def test_data_wraps_around_in_conditions_and_bindings() -> None:
    x = tir.Var("x", "int32")

    def body(a: tir.Buffer, b: tir.Buffer) -> tir.Stmt:
        store = tir.IfThenElse(
            tir.BufferLoad(a, [0]) + tir.BufferLoad(a, [1]) < 0, tir.BufferStore(b, x, [0])
        )
        return tir.LetStmt(x, tir.BufferLoad(a, [0]) * 3, store)

    buffers = [tir.decl_buffer((2,), "int32", name) for name in "AB"]
    trap = ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
    func = build_c(flat_function(body, *buffers), options=trap)
    given = [tvm.nd.array(np.array(v, "int32")) for v in ([2**31 - 1, 1], [0, 0])]
    func(*given)
    assert given[1].numpy()[0] == 2**31 - 3


def test_text_of_repeated_divisions_is_written_once() -> None:
    @T.prim_func
    def divide(B: T.Buffer((64,), "int32"), n: T.int32, m: T.int32):
        T.func_attr({"global_symbol": "divide"})
        for i in range(8):
            B[i * 2] = ((i - n) // m // m % m * m + (i - n) // m // m % m) // m
            B[i * 2 + 1] = (i - n) // m // m % m

    text = tvm.build(divide, target="c", name="divide").get_source()
    assert text.count(" / ") + text.count(" % ") <= 40
    given = tvm.nd.array(np.zeros(64, "int32"))
    compiled(tvm.build(divide, target="c", name="divide"))["divide"](given, 5, -2)
    i = np.arange(8)
    inner = (i - 5) // -2 // -2 % -2
    np.testing.assert_array_equal(given.numpy()[0:16:2], (inner * -2 + inner) // -2)
    np.testing.assert_array_equal(given.numpy()[1:16:2], inner)


@pytest.mark.parametrize(
    "dtype", ["int8", "int32", "int64", "uint32", "uint64", "float32", "float64"]
)
def test_constants_keep_every_bit(dtype: str) -> None:
    limits = np.iinfo(dtype) if "int" in dtype else np.finfo(dtype)
    values = np.array([limits.min, limits.max, 0, 1], dtype)
    if "float" in dtype:
        values = np.append(values, np.array([np.nan, np.inf, -np.inf, -0.0, limits.tiny], dtype))
    data = tir.Var("data", tvm.ir.PointerType(tvm.ir.PrimType(dtype)))
    table = tir.decl_buffer(values.shape, dtype, "table", data=data)

    def body(b: tir.Buffer) -> tir.Stmt:
        i = tir.Var("i", "int32")
        copy = tir.BufferStore(b, tir.BufferLoad(table, [i]), [i])
        loop = tir.For(i, 0, len(values), tir.ForKind.SERIAL, copy)
        return tir.AllocateConst(data, dtype, values.shape, tvm.nd.array(values), loop)

    flat = flat_function(body, tir.decl_buffer(values.shape, dtype, "B"))
    text = tvm.build(flat, target="c").get_source()
    assert '__attribute__((section(".rodata.tvm"), aligned(16)))' in text
    out = tvm.nd.empty(values.shape, dtype)
    build_c(flat)(out)
    np.testing.assert_array_equal(out.numpy().view("uint8"), values.view("uint8"))
