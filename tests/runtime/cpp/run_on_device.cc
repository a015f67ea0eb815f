// Loads a library of kernels and adds two vectors on a device, without Python: run_on_device LIBRARY DEVICE_TYPE
#include <tvm/runtime/module.h>
#include <tvm/runtime/ndarray.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace tvm::runtime;

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    Module library = Module::LoadFromFile(argv[1]);
    DLDevice device{static_cast<DLDeviceType>(std::atoi(argv[2])), 0};
    std::vector<float> a(1000), b(1000), c(1000);
    for (int i = 0; i < 1000; ++i) a[i] = i, b[i] = 2 * i;
    DLDataType dtype{kDLFloat, 32, 1};
    auto on_device = [&](const std::vector<float>& values) {
      NDArray array = NDArray::Empty({1000}, dtype, device);
      array.CopyFromBytes(values.data(), values.size() * sizeof(float));
      return array;
    };
    NDArray result = on_device(c);
    library.GetFunction("add")(on_device(a), on_device(b), result);
    result.CopyToBytes(c.data(), c.size() * sizeof(float));
    for (int i = 0; i < 1000; ++i) {
      if (c[i] != 3 * i) return std::printf("wrong at %d: %f\n", i, c[i]), 1;
    }
    std::printf("right\n");
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
