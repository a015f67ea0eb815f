"""lower and build: arguments of every kind, libraries, errors."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.driver import get_binds, schedule_to_module

ROOT = Path(__file__).resolve().parents[2]


def vector_add(n: int = 16) -> tuple[te.Schedule, list[te.Tensor]]:
    a, b = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    c = te.compute((n,), lambda i: a[i] + b[i], name="C")
    return te.create_schedule(c.op), [a, b, c]


def check_add(func: object, n: int = 16) -> None:
    a, b = [tvm.nd.array(np.random.rand(n).astype("float32")) for _ in range(2)]
    c = tvm.nd.array(np.zeros(n, "float32"))
    func(a, b, c)
    np.testing.assert_array_equal(c.numpy(), a.numpy() + b.numpy())


def test_build_of_a_schedule_a_function_and_a_module() -> None:
    schedule, args = vector_add()
    mod = tvm.lower(schedule, args, name="add")
    check_add(tvm.build(schedule, args))
    check_add(tvm.build(mod, target="llvm"))
    check_add(tvm.build(mod["add"], target="llvm"))
    check_add(tvm.build({"llvm": mod}))
    check_add(tvm.build(mod, target=tvm.target.Target("llvm", host="llvm")))
    check_add(tvm.build(te.create_prim_func(args), target="llvm"))


def test_functions_for_several_targets_are_called_by_name(tmp_path: Path) -> None:
    machines = [tvm.target.Target(text) for text in ("llvm", "llvm -mcpu=x86-64")]
    modules = [tvm.lower(*vector_add(), name=name) for name in ("first", "second")]
    built = tvm.build(dict(zip(machines, modules, strict=True)))
    library = tmp_path / "lib.so"
    built.export_library(library)
    for module in (built, tvm.runtime.load_module(library)):
        for name in ("first", "second"):
            assert module.implements_function(name)
            check_add(module[name])
    same = tvm.build({"llvm": modules[0], machines[0]: modules[1]})
    check_add(same["first"])
    check_add(same["second"])
    with pytest.raises(ValueError, match="different names, got two of 'first'"):
        tvm.build(dict(zip(machines, [modules[0]] * 2, strict=True)))


def test_current_target_is_taken() -> None:
    schedule, args = vector_add()
    with tvm.target.Target("llvm -mcpu=x86-64 -mtriple=x86_64-unknown-linux-gnu"):
        assert "ymm" not in tvm.build(schedule, args).get_source("asm")


def test_function_has_the_given_name() -> None:
    schedule, args = vector_add()
    assert [g.name_hint for g in tvm.lower(schedule, args, name="my_add").functions] == ["my_add"]
    check_add(tvm.build(schedule, args, "llvm", name="my_add")["my_add"])


def test_matrix_multiplication_with_all_primitives() -> None:
    n = 64
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    schedule = te.create_schedule(c.op)
    cached = schedule.cache_write(c, "local")
    outer_i, outer_j, _, inner_j = schedule[c].tile(*c.op.axis, 8, 32)
    schedule[c].parallel(outer_i)
    schedule[c].vectorize(inner_j)
    schedule[cached].compute_at(schedule[c], outer_j)
    i, j = schedule[cached].op.axis
    (k,) = schedule[cached].op.reduce_axis
    outer_k, inner_k = schedule[cached].split(k, factor=4)
    schedule[cached].reorder(outer_k, inner_k, i, j)
    schedule[cached].vectorize(j)
    schedule[cached].unroll(i)
    func = tvm.build(schedule, [a, b, c], "llvm")
    x, y = [np.random.rand(n, n).astype("float32") for _ in range(2)]
    out = tvm.nd.array(np.zeros((n, n), "float32"))
    func(tvm.nd.array(x), tvm.nd.array(y), out)
    np.testing.assert_allclose(out.numpy(), x @ y, rtol=1e-5)
    assert (
        "ymm" in func.get_source("asm")
        or "zmm" in func.get_source("asm")
        or "xmm" in func.get_source("asm")
    )


def test_scalar_arguments_and_symbolic_shapes() -> None:
    n, scale = te.var("n"), te.var("scale", "float32")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * scale, name="B")
    func = tvm.build(te.create_schedule(b.op), [scale, a, b], "llvm")
    for size in (0, 1, 17):
        x = np.random.rand(size).astype("float32")
        out = tvm.nd.array(x * 0)
        func(2.0, tvm.nd.array(x), out)
        np.testing.assert_array_equal(out.numpy(), x * 2)


def test_bound_buffer_with_strides() -> None:
    schedule, (a, b, c) = vector_add(8)
    stride = te.var("stride")
    strided = tir.decl_buffer((8,), "float32", "A", strides=[stride])
    func = tvm.build(schedule, [strided, b, c], "llvm", binds={a: strided})
    assert func is not None


def test_get_binds_makes_buffers_for_tensors() -> None:
    _, args = vector_add()
    binds, listed = get_binds(args)
    assert all(isinstance(arg, tir.Buffer) for arg in listed)
    assert [binds[arg] for arg in args] == listed
    with pytest.raises(ValueError, match="Tensor, Buffer or Var"):
        get_binds(["A"])


def test_schedule_to_module_has_no_pass_applied() -> None:
    schedule, args = vector_add()
    func = schedule_to_module(schedule, args, "f")["f"]
    assert func.get_attr("global_symbol") == "f" and func.get_attr("tir.noalias")


def test_library_is_loaded_by_a_fresh_process(tmp_path: Path) -> None:
    schedule, args = vector_add()
    path = tmp_path / "add.so"
    tvm.build(schedule, args, "llvm", name="add").export_library(str(path))
    check_add(tvm.runtime.load_module(str(path))["add"])
    program = (
        "import sys, numpy as np, tvm\n"
        "add = tvm.runtime.load_module(sys.argv[1])\n"
        "a = tvm.nd.array(np.arange(16, dtype='float32')); c = tvm.nd.array(np.zeros(16, 'float32'))\n"
        "add(a, a, c); add['add'](a, a, c)\n"
        "assert (c.numpy() == a.numpy() * 2).all()\n"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, cwd=ROOT)


def test_object_file_can_be_linked(tmp_path: Path) -> None:
    schedule, args = vector_add()
    func = tvm.build(schedule, args, "llvm", name="add")
    func.save(str(tmp_path / "add.o"))
    tvm.contrib.cc.create_shared(str(tmp_path / "add.so"), [str(tmp_path / "add.o")])
    check_add(tvm.runtime.load_module(str(tmp_path / "add.so"))["add"])
    func.save(str(tmp_path / "add.ll"))
    assert "define" in (tmp_path / "add.ll").read_text()


def test_parallel_library_uses_the_loading_process_threads(tmp_path: Path) -> None:
    schedule, args = vector_add(1024)
    schedule[args[-1]].parallel(args[-1].op.axis[0])
    path = tmp_path / "add.so"
    tvm.build(schedule, args, "llvm").export_library(str(path))
    check_add(tvm.runtime.load_module(str(path)), 1024)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda s, a: tvm.build(s, a, "llvmm"), ValueError, "did you mean 'llvm'"),
        (lambda s, a: tvm.build(s), ValueError, "arguments as a list of tensors"),
        (lambda s, a: tvm.build(s, a[0]), ValueError, "arguments as a list of tensors"),
        (lambda s, a: tvm.build("nonsense"), ValueError, "te.Schedule, PrimFunc or IRModule"),
        (lambda s, a: tvm.build({}), ValueError, "at least one module"),
        (lambda s, a: tvm.build(s, a[1:], "llvm"), Exception, "A"),
        (lambda s, a: tvm.lower(s, ["A"]), Exception, "tensors, buffers and variables"),
        (lambda s, a: tvm.build(s, a, "vulkan"), Exception, "no code generator"),
    ],
)
def test_wrong_input_is_rejected(call: object, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call(*vector_add())
