"""Module paths of the classic release that are no files today."""

from __future__ import annotations

import importlib
import sys
import warnings
from types import ModuleType

import numpy as np
import pytest

import tvm
from tvm import te, topi
from tvm.compat.paths import CLASSIC, RENAMED

PATHS = [(package, name) for package, names in CLASSIC.items() for name in names.split()]


@pytest.mark.parametrize(("package", "name"), PATHS)
def test_a_path_gives_the_names_of_its_package(package: str, name: str) -> None:
    module = importlib.import_module(f"{package}.{name}")
    parent = importlib.import_module(package)
    names = [n for n in dir(parent) if not n.startswith("_") and n != name]
    assert all(getattr(module, n) is getattr(parent, n) for n in names)


@pytest.mark.parametrize(
    ("package", "name"),
    # those of topi have a function's name, which stands first
    [path for path in PATHS if not path[0].startswith("tvm.topi") and not path[1].startswith("_")],
)
def test_a_module_that_a_package_had_is_its_attribute(
    package: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = importlib.import_module(package)
    if isinstance(getattr(parent, name, None), ModuleType):
        monkeypatch.delattr(parent, name)  # an import has set it
    assert isinstance(getattr(parent, name), ModuleType)


def test_names_are_imported_from_old_modules() -> None:
    from tvm.ir.tensor_type import TensorType
    from tvm.relay.transform.transform import FoldConstant
    from tvm.tir.transform.transform import Simplify
    from tvm.topi.nn.layer_norm import layer_norm
    from tvm.topi.testing.softmax_python import softmax_python

    assert TensorType is tvm.ir.TensorType
    assert FoldConstant is tvm.relay.transform.FoldConstant
    assert Simplify is tvm.tir.transform.Simplify
    assert softmax_python(np.zeros((1, 2))).tolist() == [[0.5, 0.5]]
    x, scale = te.placeholder((2, 3)), te.placeholder((3,))
    for normalise in (layer_norm, topi.nn.layer_norm):
        assert normalise(x, scale, scale, axis=[1]).shape[1] == 3


def test_a_moved_package_keeps_its_modules() -> None:
    import tvm.relay.op.contrib.dnnl as by_classic_path
    from tvm.relay.op.contrib import register
    from tvm.relay.op.contrib.ethosu import partition_for_ethosu

    from tvm.relay.op import contrib

    assert by_classic_path is tvm.relay.contrib.dnnl is contrib.dnnl
    assert register.register_pattern_table is contrib.register_pattern_table
    with pytest.raises(tvm.error.TVMError, match="not in this release"):
        partition_for_ethosu()
    names: dict[str, object] = {}
    exec("from tvm.relay.op.contrib import *", names)
    assert names["dnnl"] is by_classic_path


def test_unknown_names_and_paths_fail_as_usual() -> None:
    with pytest.raises(ImportError, match="nonsense"):
        from tvm.topi.nn.layer_norm import nonsense  # noqa: F401
    with pytest.raises(ModuleNotFoundError, match="never_there"):
        importlib.import_module("tvm.topi.nn.never_there")


@pytest.mark.parametrize("path", RENAMED)
def test_modules_of_older_releases_are_imported_with_a_warning(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, path, raising=False)
    with pytest.warns(DeprecationWarning, match=f"{path} is deprecated: use "):
        module = importlib.import_module(path)
    assert module is importlib.import_module(RENAMED[path])


def test_programs_of_older_releases_find_names_in_renamed_modules() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tvm.autotvm.util import get_const_tuple
        from tvm.relay.testing.config import ctx_list
        from tvm.tensor import Tensor

        assert get_const_tuple(te.placeholder((1, 2)).shape) == (1, 2)
        assert topi.util.get_const_tuple is topi.utils.get_const_tuple
        assert Tensor is te.Tensor
        assert isinstance(te.placeholder((1,)).shape, tvm.container.Array)
        assert ctx_list() and tvm.relay.backend.compile_engine.get()
        with tvm.target.create("llvm") as target:
            assert tvm.target.current_target() is target


def test_names_that_classic_modules_imported_are_found_in_them() -> None:
    from tvm.relay.expr_functor import Call
    from tvm.tir.op import Op

    assert Call is tvm.relay.Call and Op is tvm.ir.Op
    assert tvm.relay.op.const is tvm.relay.const
    assert tvm.relay.nn.Constant is tvm.relay.Constant
