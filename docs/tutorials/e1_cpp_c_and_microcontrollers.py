"""
C++, C and microcontrollers
===========================

A model in a program without Python: in C++ through the runtime, and in C without anything, for processors that have
no operating system. Both programs are compiled and run here.
"""

import subprocess
import tarfile
import tempfile
from pathlib import Path

import numpy as np

import tvm
from tvm import relay
from tvm._ffi import libinfo
from tvm.relay.backend import Executor, Runtime

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
weight = rng.normal(size=(3, 4)).astype("float32")
x = relay.var("x", shape=(1, 4))
body = relay.nn.relu(relay.nn.dense(x, relay.const(weight)))
model = tvm.IRModule.from_expr(relay.Function([x], body))
expected = np.maximum(np.ones((1, 4), "float32") @ weight.T, 0)[0]


def shell(*command):
    """What a command prints."""
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


# %%
# C++
# ---
# The library is loaded by any program that links ``libtvm_runtime.so``.

lib = relay.build(model, target="llvm")
lib.export_library(folder / "model.so")

(folder / "run.cc").write_text("""
#include <tvm/runtime/module.h>
#include <tvm/runtime/ndarray.h>
#include <cstdio>

int main() {
  using namespace tvm::runtime;
  DLDevice cpu{kDLCPU, 0};
  Module model = Module::LoadFromFile("model.so").GetFunction("default")(cpu);
  NDArray x = NDArray::Empty({1, 4}, DLDataType{kDLFloat, 32, 1}, cpu);
  for (int i = 0; i < 4; ++i) static_cast<float*>(x->data)[i] = 1;
  model.GetFunction("set_input")("x", x);
  model.GetFunction("run")();
  NDArray y = model.GetFunction("get_output")(0);
  for (int i = 0; i < 3; ++i) std::printf("%f ", static_cast<float*>(y->data)[i]);
}
""")
headers = [f"-I{path}" for path in libinfo.find_include_path()]
library = Path(libinfo.find_lib_path()[0]).parent
link = [f"-L{library}", f"-Wl,-rpath,{library}", "-ltvm_runtime"]
shell("c++", "-std=c++17", *headers, "run.cc", "-o", "run", *link)
printed = shell("./run")
print(printed)
np.testing.assert_allclose(np.array(printed.split(), float), expected, rtol=1e-4, atol=1e-5)

# %%
# C
# -
# Target ``c`` writes portable C99; the archive has it with a header and a small runtime, and the program calls one function.

aot = Executor("aot", {"interface-api": "c", "unpacked-api": True})
lib = relay.build(model, target="c", executor=aot, runtime=Runtime("crt"))
tvm.micro.export_model_library_format(lib, folder / "model.tar")
with tarfile.open(folder / "model.tar") as archive:
    archive.extractall(folder, filter="data")

(folder / "main.c").write_text("""
#include <stdio.h>
#include <tvmgen_default.h>

static float x[4] = {1, 1, 1, 1}, output[3];

int main(void) {
  struct tvmgen_default_inputs inputs = {.x = x};
  struct tvmgen_default_outputs outputs = {.output = output};
  if (tvmgen_default_run(&inputs, &outputs)) return 1;
  for (int i = 0; i < 3; ++i) printf("%f ", output[i]);
  return 0;
}
""")
sources = [*folder.glob("codegen/host/src/*.c"), *folder.glob("runtime/src/*.c")]
headers = ["-Iruntime/include", "-Icodegen/host/include"]
shell("cc", "-std=c11", *headers, *map(str, sources), "main.c", "-o", "main", "-lm")
printed = shell("./main")
print(printed)
np.testing.assert_allclose(np.array(printed.split(), float), expected, rtol=1e-4, atol=1e-5)

# %%
# How much memory
# ---------------
# The archive says what the model needs: code, constants, workspace.

print((folder / "codegen/host/include/tvmgen_default.h").read_text())

# %%
# :doc:`/models_in_c` has memory in pools of yours, and inputs that lie in them.
