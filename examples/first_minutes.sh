#!/usr/bin/env bash
# The first minutes with the package: a kernel, a model, the command line, PyTorch.
# usage: examples/first_minutes.sh [FOLDER]   (PYTHON names another interpreter; needs the extras onnx and torch)
set -euo pipefail
PYTHON=${PYTHON:-python3}
folder=${1:-$(mktemp -d)}
mkdir -p "$folder"
cd "$folder"

step() { printf '\n== %s\n' "$*"; }
tvmc() { "$PYTHON" -m tvm.driver.tvmc "$@"; }

step "a kernel: te.compute, build, call with numpy arrays"
cat >kernel.py <<'PY'
import numpy as np

import tvm
from tvm import te

n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: A[i] * 2.0 + 1.0, name="B")
func = tvm.build(te.create_schedule(B.op), [A, B], target="llvm")
a, b = np.arange(5, dtype="float32"), np.empty(5, "float32")
func(a, b)
print(b)
assert (b == a * 2 + 1).all()
PY
"$PYTHON" kernel.py

step "a model: one with known shapes, one whose batch and length are open"
cat >models.py <<'PY'
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(0)


def save(path, dims):
    weights = {
        "filters": rng.normal(size=(8, 3, 3, 3)).astype("float32"),
        "classes": rng.normal(size=(8, 10)).astype("float32"),
    }
    nodes = [
        helper.make_node("Conv", ["image", "filters"], ["conv"], name="first", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["conv"], ["relu"], name="act"),
        helper.make_node("GlobalAveragePool", ["relu"], ["mean"], name="pool"),
        helper.make_node("Flatten", ["mean"], ["flat"], name="flat"),
        helper.make_node("MatMul", ["flat", "classes"], ["logits"], name="head"),
    ]
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [dims[0], 10])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


save("model.onnx", [1, 3, 32, 32])
save("open.onnx", ["batch", 3, "height", "width"])
np.savez("in.npz", image=rng.normal(size=(1, 3, 32, 32)).astype("float32"))
PY
"$PYTHON" models.py

step "the model from Python, without any option"
cat >run.py <<'PY'
import numpy as np
import onnx

import tvm
from tvm import relay
from tvm.contrib import graph_executor

mod, params = relay.frontend.from_onnx(onnx.load("model.onnx"))
lib = relay.build(mod, "llvm", params=params)
module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
module.run(image=np.load("in.npz")["image"])
print(module.get_output("logits").numpy())
np.save("scores.npy", module.get_output(0).numpy())
lib.export_library("python.so")
PY
"$PYTHON" run.py

step "the model on the command line: one library, run and loaded"
tvmc compile model.onnx --target llvm -o model.so
tvmc run model.so --inputs in.npz --outputs out.npz --print-time --print-top 3
tvmc run python.so --inputs in.npz
"$PYTHON" - <<'PY'
import numpy as np

scores = np.load("scores.npy")
np.testing.assert_allclose(np.load("out.npz")["output_0"], scores, rtol=1e-5, atol=1e-5)
PY

step "open shapes: one archive, any size"
tvmc compile open.onnx --target llvm -o open.tar
tvmc run open.tar --inputs in.npz
tvmc verify model.onnx --against reference

step "a mistake, and what is said about it"
if tvmc compile model.onnx --target lvm -o never.tar; then exit 1; fi

if "$PYTHON" -c "import torch" 2>/dev/null; then
    step "torch.compile, inference and training"
    cat >compiled.py <<'PY'
import torch

net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
fast = torch.compile(net, backend="classic_tvm")
x = torch.randn(16, 4)
with torch.no_grad():
    assert torch.allclose(fast(x), net(x), atol=1e-5)
loss = fast(x).square().mean()
loss.backward()
print("loss", float(loss), "gradient", float(net[0].weight.grad.norm()))
PY
    "$PYTHON" compiled.py
fi

step "all done in $PWD"
