"""A C++ program on the runtime alone: registry, typed functions, arrays, errors, modules."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tvm._ffi import libinfo
from tvm.contrib import cc

PROGRAM = r"""
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>
#include <cassert>
#include <cstdio>
#include <cstring>

using namespace tvm::runtime;

TVM_REGISTER_GLOBAL("demo.add").set_body_typed([](int64_t a, int64_t b) { return a + b; });
TVM_REGISTER_GLOBAL("demo.describe").set_body([](TVMArgs args, TVMRetValue *rv) {
  std::string text;
  for (int i = 0; i < args.size(); ++i) text += std::string(ArgTypeCode2Str(args[i].type_code())) + " ";
  *rv = text;
});

template <class F> std::string error_of(F f) {
  try { f(); } catch (const Error &e) { return e.what(); }
  return "none";
}

int main(int argc, char **argv) {
  PackedFunc add = Registry::Find("demo.add");
  assert(int64_t(add(2, 40)) == 42);
  assert(error_of([&] { add(1); }) == "TypeError: demo.add takes 2 arguments, got 1");
  assert(error_of([&] { add(1, "x"); }) == "TypeError: demo.add: argument 1: expected int, got str");
  assert(!Registry::Find("demo.none").defined());

  NDArray array = NDArray::Empty({2, 2}, DLDataType{kDLFloat, 32, 1}, DLDevice{kDLCPU, 0});
  std::string kinds = Registry::Find("demo.describe")(1, 2.5, true, "s", nullptr, array, add, array->device);
  assert(kinds == "int float bool str None NDArray PackedFunc Device ");
  float values[4] = {1, 2, 3, 4};
  array.CopyFromBytes(values, sizeof(values));

  PackedFunc closure([array](TVMArgs, TVMRetValue *rv) { *rv = array; });
  NDArray same = closure();
  assert(same.same_as(array) && static_cast<float *>(same->data)[3] == 4);

  Module library = Module::LoadFromFile(argv[1]);
  NDArray twice = NDArray::Empty({2, 2}, array->dtype, array->device);
  library.GetFunction("add")(array, array, twice);
  assert(static_cast<float *>(twice->data)[3] == 8);
  assert(!library.GetFunction("nothing").defined());
  assert(error_of([&] { library.GetFunction("fail")(); }).find("TypeError: fail") == 0);
  assert(error_of([&] { Module::LoadFromFile("/no/such.so"); }).find("ValueError: cannot load") == 0);
  std::puts("all is well");
}
"""


def test_a_program_in_cpp(tmp_path: Path, library_path: str) -> None:
    (tmp_path / "main.cc").write_text(PROGRAM)
    (library,) = libinfo.find_lib_path()[:1]
    program = str(tmp_path / "main")
    folder = str(Path(library).parent)
    options = ["-std=c++17", "-O0", *(f"-I{path}" for path in libinfo.find_include_path())]
    options += [f"-L{folder}", f"-Wl,-rpath,{folder}", "-ltvm_runtime"]
    cc.create_executable(program, str(tmp_path / "main.cc"), options=options)
    done = subprocess.run([program, library_path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "all is well\n"), done.stderr
