import subprocess
import sys


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, tvm; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"torch", "onnx", "onnxruntime", "scipy", "rich", "llvmlite", "transformers", "pytest"}
    assert not heavy & set(done.stdout.split())
