"""The command line `tvmc`, and the same from Python.

tvmc compile resnet.onnx --target llvm -o resnet.tar
tvmc tune resnet.onnx --target llvm -o records.log
tvmc run resnet.tar --inputs image.npz --print-top 5
tvmc verify resnet.onnx

model = tvmc.load("resnet.onnx")
package = tvmc.compile(model, target="llvm")
result = tvmc.run(package, device="cpu")
"""

from . import autotuner, main
from .autotuner import tune_model as tune
from .compiler import compile_model as compile
from .errors import TVMCException, TVMCImportError
from .frontends import load_model as load
from .model import TVMCModel, TVMCPackage, TVMCResult
from .runner import run_module as run

__all__ = [
    "TVMCException", "TVMCImportError", "TVMCModel", "TVMCPackage", "TVMCResult", "compile",
    "load", "run", "tune",
]  # fmt: skip
