import subprocess
import sys

import pytest

import tvm


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, tvm; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"torch", "onnx", "onnxruntime", "scipy", "rich", "llvmlite", "transformers", "pytest"}
    assert not heavy & set(done.stdout.split())


@pytest.mark.parametrize("name", ["auto_scheduler", "meta_schedule"])
def test_tuners_that_are_absent_are_named_with_what_there_is_instead(name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"tvm.{name} is not in this release.*autotvm"):
        getattr(tvm, name)


@pytest.mark.parametrize(("name", "instead"), [
    ("rpc", "cross_compiler"), ("relax", "relay"),
])  # fmt: skip
def test_other_parts_that_are_absent_are_named_with_what_there_is_instead(
    name: str, instead: str
) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"tvm.{name} is not in this release.*{instead}"):
        getattr(tvm, name)


_WITHOUT_EXTRAS = """
import importlib, pkgutil, sys
for extra in ("torch", "onnx", "onnxruntime", "scipy", "graphviz", "IPython", "pytest"):
    sys.modules[extra] = None
import tvm
for module in pkgutil.walk_packages(tvm.__path__, "tvm.", onerror=lambda name: None):
    if not module.name.startswith("tvm.lib"):
        try:
            importlib.import_module(module.name)
        except ImportError:
            print(module.name)
"""


def test_only_what_is_made_of_an_extra_requires_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_EXTRAS], capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == {
        "tvm.contrib.onnx_backend", "tvm.contrib.torch_backend", "tvm.contrib.torch_graph",
        "tvm.contrib.torch_program", "tvm.contrib.verify", "tvm.testing.plugin",
    }  # fmt: skip
