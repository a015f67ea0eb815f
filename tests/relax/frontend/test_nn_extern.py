"""Functions of other languages in models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
from tests.system_tools import needs
from tvm import relax
from tvm.contrib import cc
from tvm.relax.frontend import nn
from tvm.relax.transform import AttachExternModules

SOURCE = """
#include <dlpack/dlpack.h>
#include <tvm/runtime/packed_func.h>

int Halve(DLTensor* x, DLTensor* y) {
  for (int64_t i = 0; i < x->shape[0]; ++i)
    static_cast<float*>(y->data)[i] = static_cast<float*>(x->data)[i] / 2;
  return 0;
}
TVM_DLL_EXPORT_TYPED_FUNC(ext_halve, Halve);
"""


def _infer(x: nn.Tensor) -> nn.Tensor:
    return nn.Tensor.placeholder(x.shape, x.dtype)


class _Model(nn.Module):
    def __init__(self, module: nn.ExternModule) -> None:
        self.module = module

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        nn.add_extern(self.module)
        return nn.op.relu(self.module["ext_halve"](x))


def _run(module: nn.ExternModule) -> Any:
    spec = {"forward": {"x": nn.spec.Tensor(("n",), "float32")}}
    mod, _, externals = _Model(module).export_tvm(spec, allow_extern=True)
    executable = relax.build(AttachExternModules(externals)(mod), "llvm")
    x = np.array([-2, 3, 8], "float32")
    return relax.VirtualMachine(executable, tvm.cpu())["forward"](tvm.nd.array(x)).numpy()


@needs("a C++ compiler", cc.get_cc() is not None)
def test_sources_and_objects_are_linked_with_a_model(tmp_path: Path) -> None:
    source = nn.SourceModule({"ext_halve": _infer}, SOURCE, "cpp")
    source.compile(tmp_path / "halve.o")
    compiled = nn.ObjectModule({"ext_halve": _infer}, tmp_path / "halve.o")
    for module in (source, compiled):
        np.testing.assert_array_equal(_run(module), [0, 1.5, 4])


def test_what_is_no_module_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="requires a file"):
        nn.ObjectModule({}, tmp_path / "none.o")
    with pytest.raises(ValueError, match="compile it with nvcc"):
        nn.SourceModule({}, SOURCE, "cu")
    with pytest.raises(ValueError, match="'wasm' requires a compiler"):
        nn.SourceModule({}, SOURCE, "cpp", output_format="wasm")
    with pytest.raises(ValueError, match=r"no function 'other', there are \['ext_halve'\]"):
        nn.SourceModule({"ext_halve": _infer}, SOURCE, "cpp")["other"]
