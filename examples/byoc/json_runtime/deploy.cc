// Runs model.so without Python: deploy model.so input.bin expected.bin
#include <tvm/runtime/module.h>
#include <tvm/runtime/ndarray.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <vector>

static std::vector<float> ReadFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<float> values(4 * 16);
  file.read(reinterpret_cast<char*>(values.data()), values.size() * sizeof(float));
  return values;
}

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: deploy model.so input.bin expected.bin\n"), 2;
  tvm::Device device{kDLCPU, 0};
  tvm::runtime::Module library = tvm::runtime::Module::LoadFromFile(argv[1]);
  tvm::runtime::Module executor = library.GetFunction("default")(device);
  std::vector<float> values = ReadFile(argv[2]), expected = ReadFile(argv[3]);
  tvm::runtime::NDArray x = tvm::runtime::NDArray::Empty({4, 16}, DLDataType{kDLFloat, 32, 1}, device);
  x.CopyFromBytes(values.data(), values.size() * sizeof(float));
  executor.GetFunction("set_input")("x", x);
  executor.GetFunction("run")();
  tvm::runtime::NDArray result = executor.GetFunction("get_output")(0);
  result.CopyToBytes(values.data(), values.size() * sizeof(float));
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::fabs(values[i] - expected[i]) > 1e-5f) return std::fprintf(stderr, "value %zu differs\n", i), 1;
  }
  std::printf("the results agree without Python\n");
  return 0;
}
