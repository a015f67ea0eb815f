"""Every option of an llvm target acts on the code."""

import gc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import te
from tvm.codegen.llvm.machine import Machine
from tvm.error import TVMError
from tvm.target import Target
from tvm.target.cpu import cpu_info

SIZE = 64


def twice(options: str, dtype: str = "float32") -> tvm.runtime.Module:
    a = te.placeholder((SIZE,), name="a", dtype=dtype)
    b = te.compute((SIZE,), lambda i: a[i] * 3 + a[i], name="b")
    return tvm.build(te.create_schedule(b.op), [a, b], f"llvm {options}", name="twice")


def result_of(module: tvm.runtime.Module) -> np.ndarray:
    x = np.arange(SIZE, dtype="float32")
    out = tvm.nd.array(np.zeros_like(x))
    module(tvm.nd.array(x), out)
    return out.numpy()


def test_loaders_of_code_agree() -> None:
    assert (result_of(twice("-jit=mcjit")) == result_of(twice("-jit=orcjit"))).all()


@pytest.mark.skipif(sys.platform != "linux", reason="fills the address space by mmap")
def test_sections_are_near_each_other_in_crowded_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.codegen.llvm.crowded_memory"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_optimisation_level_is_followed() -> None:
    plain, fast = twice("-opt-level=0"), twice("-opt-level=3")
    assert (result_of(plain) == result_of(fast)).all()
    assert plain.get_source("asm").count("\n") > fast.get_source("asm").count("\n")


def test_option_of_llvm_is_set_for_this_code_alone() -> None:
    intel = twice("-cl-opt=-x86-asm-syntax:string=intel -mtriple=x86_64-linux-gnu")
    assert "dword ptr" in intel.get_source("asm")
    assert "dword ptr" not in twice("-mtriple=x86_64-linux-gnu -mcpu=x86-64").get_source("asm")
    assert "define" in intel.get_source()
    np.testing.assert_array_equal(result_of(intel), np.arange(SIZE) * 4)


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ("", "contract"),
        ("-fast-math", "fast"),
        ("-fast-math-nnan -fast-math-reassoc", "nnan contract reassoc"),
        ("-fast-math-contract=0 -fast-math-ninf -fast-math-nsz -fast-math-arcp", "ninf nsz arcp"),
    ],
)
def test_fast_math_flags_are_those_asked_for(options: str, flags: str) -> None:
    expected = f"fmul {'reassoc nnan ninf nsz arcp contract afn' if flags == 'fast' else flags} "
    assert expected in twice(options).get_source("unoptimized").replace(
        "fmul fast", "fmul reassoc nnan ninf nsz arcp contract afn"
    )


def test_vector_width_is_that_asked_for() -> None:
    wide = "-mtriple=x86_64-linux-gnu -mcpu=skylake-avx512"
    assert "zmm" in twice(f"{wide} -vector-width=512").get_source("asm")
    assert "zmm" not in twice(f"{wide} -vector-width=256").get_source("asm")


# of the processors that have all of this there is hardly one; where there is, its code must run
RARE = "llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids"


def is_lacking() -> bool:
    return not tvm.target.codegen.llvm_cpu_has_features(["amx-tile", "avx512fp16"], Target("llvm"))


def test_code_for_features_that_this_processor_lacks_is_rejected_when_called() -> None:
    module = twice(RARE.removeprefix("llvm "))
    assert "zmm" in module.get_source("asm") or "ymm" in module.get_source("asm")
    if is_lacking():
        with pytest.raises(TVMError, match="it is for a processor with .*which this one lacks"):
            result_of(module)
    else:
        np.testing.assert_array_equal(result_of(module), np.arange(SIZE) * 4)


def test_library_for_features_that_this_processor_lacks_is_rejected_by_the_loader(
    tmp_path: Path,
) -> None:
    path = tmp_path / "twice.so"
    twice(RARE.removeprefix("llvm ")).export_library(str(path))
    if is_lacking():
        with pytest.raises(TVMError, match="cannot load library .*a processor with .*amx-tile"):
            tvm.runtime.load_module(str(path))
    else:
        assert result_of(tvm.runtime.load_module(str(path)))[1] == 4


def test_object_names_the_features_it_uses(tmp_path: Path) -> None:
    for mcpu, note in (("haswell", b"x86_64:sse4.1,sse4.2,popcnt,avx,avx2,fma"), ("x86-64", b"")):
        path = tmp_path / f"{mcpu}.o"
        twice(f"-mtriple=x86_64-linux-gnu -mcpu={mcpu}").save(str(path))
        data = path.read_bytes()
        assert (b"__tvm_required_features" in data) == bool(note) and note in data


def test_source_does_not_change_when_code_is_generated(tmp_path: Path) -> None:
    a = te.placeholder((64,), name="a")
    b = te.compute((64,), lambda i: te.exp(a[i]) / te.floor(a[i]), name="b")
    module = tvm.build(te.create_schedule(b.op), [a, b], "llvm", name="is_its_own_source")
    before = module.get_source("ll")
    module.get_source("asm")
    module.export_library(str(tmp_path / "code.so"))
    assert module.get_source("ll") == before


def test_modules_of_llvm_may_be_cyclic_garbage() -> None:
    machine = Machine(Target("llvm"), cpu_info(Target("llvm")), 3)
    for _ in range(50):
        module = machine.parse("define i32 @f(i32 %x) {\n  ret i32 %x\n}\n")
        holder: list[object] = [module._context, module]
        holder.append(holder)
        del module, holder
        assert gc.collect() > 0
