// Arrays for tests.
#ifndef TVM_TESTS_ARRAYS_H_
#define TVM_TESTS_ARRAYS_H_

#include <tvm/runtime/ndarray.h>

#include <vector>

constexpr DLDevice kCpu{kDLCPU, 0};
constexpr DLDataType kFloat32{kDLFloat, 32, 1};

inline tvm::runtime::NDArray Floats(const std::vector<float>& values) {
  auto array = tvm::runtime::NDArray::Empty({static_cast<int64_t>(values.size())}, kFloat32, kCpu);
  array.CopyFromBytes(values.data(), values.size() * sizeof(float));
  return array;
}

inline std::vector<float> ValuesOf(const tvm::runtime::NDArray& array) {
  std::vector<float> values(tvm::runtime::DataBytes(*array.tensor()) / sizeof(float));
  array.CopyToBytes(values.data(), values.size() * sizeof(float));
  return values;
}

#endif  // TVM_TESTS_ARRAYS_H_
