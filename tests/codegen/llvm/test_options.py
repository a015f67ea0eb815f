"""Every option of an llvm target acts on the code."""

import numpy as np
import pytest

import tvm
from tvm import te
from tvm.error import TVMError

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


def test_code_for_features_that_this_processor_lacks_is_refused_when_called() -> None:
    module = twice("-mcpu=sapphirerapids" if _is_x86() else "-mattr=+sve2")
    if not _is_x86() or "amx-tile" not in tvm.target.codegen.llvm_get_cpu_features():
        with pytest.raises(TVMError, match="it is for a processor with .*which this one lacks"):
            result_of(module)


def _is_x86() -> bool:
    return tvm.target.cpu_info().arch == "x86_64"
