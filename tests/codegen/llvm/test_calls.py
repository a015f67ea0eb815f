"""Packed calls from compiled code, checks of arguments, sources."""

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.error import TVMError


def vector_add(name: str = "fadd", target: str = "llvm") -> object:
    n = te.var("n")
    a, b = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    c = te.compute((n,), lambda i: a[i] + b[i], name="C")
    return tvm.build(te.create_schedule(c.op), [a, b, c], target, name=name)


def arrays(*shapes: tuple[int, ...], dtype: str = "float32") -> list[tvm.nd.NDArray]:
    return [tvm.nd.array(np.random.rand(*shape).astype(dtype)) for shape in shapes]


def test_compiled_code_calls_registered_python_function() -> None:
    seen = []

    @tvm.register_func("test.codegen.observe", override=True)
    def observe(x: int, y: float, text: str) -> int:
        seen.append((x, y, text))
        return x + 1

    out = tir.decl_buffer((4,), "int32", "B")
    i = tir.Var("i", "int32")
    call = tir.call_packed("test.codegen.observe", i, tir.const(0.5, "float32"), "hello")
    body = tir.For(i, 0, 4, tir.ForKind.SERIAL, tir.BufferStore(out, call, [i]))
    func = tvm.build(tir.PrimFunc([out], body), target="llvm")
    result = tvm.nd.array(np.zeros(4, "int32"))
    func(result)
    assert result.numpy().tolist() == [1, 2, 3, 4]
    assert seen == [(i, 0.5, "hello") for i in range(4)]


def test_compiled_code_passes_arrays_to_python() -> None:
    @tvm.register_func("test.codegen.double", override=True)
    def double(x: tvm.nd.NDArray, y: tvm.nd.NDArray) -> None:
        tvm.nd.array(x.numpy() * 2).copyto(y)

    a = te.placeholder((4, 3), name="A")
    b = te.extern(
        (4, 3), [a], lambda ins, outs: tir.call_packed("test.codegen.double", ins[0], outs[0]),
        name="B", dtype="float32",
    )  # fmt: skip
    func = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
    x, y = arrays((4, 3), (4, 3))
    func(x, y)
    np.testing.assert_array_equal(y.numpy(), x.numpy() * 2)


def test_exception_in_python_reaches_the_caller() -> None:
    @tvm.register_func("test.codegen.fail", override=True)
    def fail() -> None:
        raise ValueError("no luck today")

    body = tir.Evaluate(tir.call_packed("test.codegen.fail"))
    func = tvm.build(tir.PrimFunc([], body), target="llvm")
    with pytest.raises(ValueError, match="no luck today"):
        func()


def test_call_of_an_unknown_function_is_an_error() -> None:
    body = tir.Evaluate(tir.call_packed("test.codegen.nobody_has_this"))
    func = tvm.build(tir.PrimFunc([], body), target="llvm")
    with pytest.raises(Exception, match="nobody_has_this"):
        func()


def test_function_returns_a_value() -> None:
    x = tir.Var("x", "int32")
    func = tvm.build(tir.PrimFunc([x], tir.Evaluate(tir.ret(x * 2 + 1))), target="llvm")
    assert func(20) == 41


def test_functions_of_one_module_call_each_other() -> None:
    x = tir.Var("x", "int32")
    double = tir.PrimFunc([x], tir.Evaluate(tir.ret(x * 2)), ret_type=tvm.ir.PrimType("int32"))
    y = tir.Var("y", "int32")
    gvar = tvm.ir.GlobalVar("double")
    call = tir.Call("int32", gvar, [y + 1])
    main = tir.PrimFunc([y], tir.Evaluate(tir.ret(call)), attrs={"global_symbol": "main"})
    mod = tvm.IRModule({gvar: double, tvm.ir.GlobalVar("main"): main})
    assert tvm.build(mod, target="llvm")["main"](4) == 10


@pytest.mark.parametrize(
    ("args", "kind", "message"),
    [
        (lambda a, b, c: (a, b), TypeError, "fadd: needs 3 arguments, got 2"),
        (lambda a, b, c: (a, b, 1), TypeError, r"argument 2 \(buffer C\)"),
        (
            lambda a, b, c: (a, b, arrays((8,), dtype="float64")[0]),
            TypeError,
            "dtype float32, got float64",
        ),
        (lambda a, b, c: (a, b, arrays((8, 1))[0]), ValueError, "1 dimension"),
        (lambda a, b, c: (a, b, arrays((9,))[0]), ValueError, r"shape\[0\]"),
        (lambda a, b, c: (a, b, None), Exception, r"argument 2 \(buffer C\)"),
    ],
)
def test_wrong_arguments_become_python_exceptions(
    args: object, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        vector_add()(*args(*arrays((8,), (8,), (8,))))


def test_source_in_several_forms() -> None:
    func = vector_add()
    assert "define" in func.get_source() and "@fadd" in func.get_source("ll")
    assert "fadd:" in func.get_source("asm")
    assert "fadd" in func.get_source("unoptimized")
    with pytest.raises(Exception, match="no format 'nonsense'"):
        func.get_source("nonsense")


def test_same_input_gives_the_same_text() -> None:
    assert vector_add().get_source("unoptimized") == vector_add().get_source("unoptimized")


def test_entry_function_is_called_by_the_module() -> None:
    func = vector_add("some_name")
    a, b, c = arrays((8,), (8,), (8,))
    func(a, b, c)
    np.testing.assert_array_equal(c.numpy(), a.numpy() + b.numpy())
    func["some_name"](a, b, c)
    assert func.type_key == "llvm" and func.imported_modules == []


def test_code_for_another_processor_can_be_made() -> None:
    func = vector_add(target="llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")
    assert "ret" in func.get_source("asm")
    with pytest.raises(TVMError, match="it is for aarch64-unknown-linux-gnu"):
        func["fadd"](*arrays((8,), (8,), (8,)))


def test_generic_x86_code_has_no_avx() -> None:
    plain = vector_add(target="llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64")
    assert "ymm" not in plain.get_source("asm") and "zmm" not in plain.get_source("asm")


def test_unknown_processor_triple_is_an_error() -> None:
    with pytest.raises(TVMError, match="triple"):
        vector_add(target="llvm -mtriple=nothing-like-this")


def returned(dtype: str, value: object) -> object:
    """What compiled code sees when a Python function that it calls returns ``value``."""
    tvm.register_func("test.codegen.answer", lambda: value, override=True)
    out = tir.decl_buffer((1,), dtype, "out")
    call = tir.Call(dtype, "tir.tvm_call_packed", ["test.codegen.answer"])
    func = tvm.build(tir.PrimFunc([out], tir.BufferStore(out, call, [0])), target="llvm")
    result = tvm.nd.array(np.zeros(1, dtype))
    func(result)
    return result.numpy()[0]


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float32", 2.5),
        ("float16", 3),
        ("int8", -3),
        ("uint64", 7),
        ("bool", True),
        ("int32", True),
    ],
)
def test_result_of_a_packed_call_is_converted(dtype: str, value: object) -> None:
    assert returned(dtype, value) == value


@pytest.mark.parametrize("value", [3.7, "text"])
def test_result_of_another_kind_is_an_error(value: object) -> None:
    with pytest.raises(TypeError, match="needs int32 from test.codegen.answer"):
        returned("int32", value)


def test_every_kind_of_argument_reaches_a_packed_function() -> None:
    seen = []

    @tvm.register_func("test.codegen.kinds", override=True)
    def kinds(*args: object) -> str:
        *plain, array, pointer = args
        seen.extend([*plain, (array.shape, array.dtype), pointer])  # the array ends with the call
        return "ignored"

    handle, n = tir.Var("handle", "handle"), tir.Var("n", "int64")
    data = tir.decl_buffer((2, 3), "float16", "data")
    call = tir.call_packed(
        "test.codegen.kinds", True, tir.const(3, "uint8"), n, tir.const(1.5, "float16"),
        tir.const(2.5, "bfloat16"), "text", data, handle,
    )  # fmt: skip
    func = tvm.build(tir.PrimFunc([handle, n, data], tir.Evaluate(call)), target="llvm")
    func(None, 1 << 40, tvm.nd.array(np.ones((2, 3), "float16")))
    *plain, array, pointer = seen
    assert plain == [1, 3, 1 << 40, 1.5, 2.5, "text"]
    assert array == ((2, 3), "float16")
    assert pointer is None or not pointer.value


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "float32", "float64"])
def test_threads_add_atomically(dtype: str) -> None:
    total = tir.decl_buffer((1,), dtype, "total")
    i = tir.Var("i", "int32")
    address = tir.address_of(tir.BufferLoad(total, [0]))
    add = tir.Evaluate(tir.call_intrin(dtype, "tir.atomic_add", address, tir.const(1, dtype)))
    body = tir.For(i, 0, 1000, tir.ForKind.PARALLEL, add)
    func = tvm.build(tir.PrimFunc([total], body), target="llvm")
    result = tvm.nd.array(np.zeros(1, dtype))
    func(result)
    assert result.numpy()[0] == 1000


def test_c_function_gets_pointers() -> None:
    a, b = [tir.decl_buffer((16,), "float32", name) for name in "ab"]
    call = tir.call_extern("handle", "memmove", b.data, a.data, tir.const(64, "uint64"))
    func = tvm.build(tir.PrimFunc([a, b], tir.Evaluate(call)), target="llvm")
    x, y = arrays((16,), (16,))
    func(x, y)
    np.testing.assert_array_equal(y.numpy(), x.numpy())
