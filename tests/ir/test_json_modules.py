"""Modules of C text in JSON."""

from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm.error import TVMError
from tvm.runtime.csource import csource_module

TEXT = "extern int answer(void);\n"


def test_modules_of_c_text_are_saved() -> None:
    inner = csource_module(TEXT, "cc", ["f"], ["weight"])
    outer = csource_module("", "c")
    outer.import_module(inner)
    loaded = tvm.ir.load_json(tvm.ir.save_json({"library": outer}))["library"]
    assert (loaded.type_key, loaded.format, loaded.get_source()) == ("c", "c", "")
    (found,) = loaded.imported_modules
    assert (found.type_key, found.format, found.get_source()) == ("c", "cc", TEXT)
    assert list(found["get_func_names"]()) == ["f"]
    assert list(found["get_const_vars"]()) == ["weight"]


def test_generated_text_runs_after_it_was_saved(tmp_path: Path) -> None:
    a = tvm.te.placeholder((2,), name="a")
    b = tvm.te.compute((2,), lambda i: a[i] + 1.0, name="b")
    built = tvm.build(tvm.te.create_schedule(b.op), [a, b], "c", name="f")
    library = tmp_path / "f.so"
    tvm.ir.load_json(tvm.ir.save_json(built)).export_library(library)
    out = tvm.nd.empty((2,))
    tvm.runtime.load_module(library)["f"](tvm.nd.array(np.array([1, 2], "float32")), out)
    assert out.numpy().tolist() == [2, 3]


def test_modules_of_machine_code_are_rejected() -> None:
    a = tvm.te.placeholder((2,), name="a")
    b = tvm.te.compute((2,), lambda i: a[i] + 1.0, name="b")
    with pytest.raises(TVMError, match="save_json requires nodes and plain values"):
        tvm.ir.save_json(tvm.build(tvm.te.create_schedule(b.op), [a, b], "llvm"))
