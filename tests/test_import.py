import subprocess
import sys


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, tvm; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"torch", "onnx", "onnxruntime", "scipy", "rich", "llvmlite", "transformers", "pytest"}
    assert not heavy & set(done.stdout.split())


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
        "tvm.contrib.onnx_backend", "tvm.torch_compile", "tvm.verify", "tvm.testing.plugin",
        "tvm.contrib.torch",
    }  # fmt: skip
