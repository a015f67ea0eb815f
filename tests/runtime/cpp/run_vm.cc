// A program of the virtual machine, exported as a library, run without Python: arrays of two sizes, then a wrong one.
#include <tvm/runtime/logging.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/ndarray.h>

#include <cstdio>
#include <string>
#include <vector>

using tvm::runtime::Module;
using tvm::runtime::NDArray;
using tvm::runtime::PackedFunc;

int main(int argc, char** argv) {
  DLDevice cpu{kDLCPU, 0};
  Module executable = Module::LoadFromFile(argv[1]);
  Module machine = executable.GetFunction("vm_load_executable")();
  constexpr int kPooled = 2;
  machine.GetFunction("init")(static_cast<int>(cpu.device_type), cpu.device_id, kPooled);
  PackedFunc set_input = machine.GetFunction("set_input");
  PackedFunc invoke = machine.GetFunction("invoke");
  for (int64_t rows : {1, 5}) {
    std::vector<float> values(rows * 3, 2.0f);
    NDArray x = NDArray::Empty({rows, 3}, DLDataType{kDLFloat, 32, 1}, cpu);
    x.CopyFromBytes(values.data(), values.size() * sizeof(float));
    set_input("main", x);
    NDArray y = invoke("main");
    ICHECK_EQ(y.Shape().size(), 1);
    ICHECK_EQ(y.Shape()[0], rows);
    for (int64_t i = 0; i < rows; ++i) ICHECK_EQ(static_cast<float*>(y->data)[i], 6.0f);
  }
  try {
    set_input("main", NDArray::Empty({2, 4}, DLDataType{kDLFloat, 32, 1}, cpu));
    invoke("main");
    std::puts("a wrong shape was taken");
  } catch (const tvm::Error& error) {
    std::puts("all is well");
  }
}
