// Kernels of devices as packed functions: what compiled host code says of them, and how their arguments are read.
#ifndef TVM_SRC_GPU_KERNEL_H_
#define TVM_SRC_GPU_KERNEL_H_

#include <dmlc/io.h>
#include <tvm/runtime/packed_func.h>

#include <array>
#include <map>
#include <string>
#include <vector>

namespace tvm {
namespace runtime {
namespace gpu {

// A kernel's name, the types of its parameters, and what is passed behind them at each launch: "blockIdx.x", ...
struct KernelInfo {
  std::string name;
  std::vector<DLDataType> arg_types;
  std::vector<std::string> launch_params;

  void Save(dmlc::Stream* stream) const;
  bool Load(dmlc::Stream* stream);
};

using KernelTable = std::map<std::string, KernelInfo>;

// (number of parameters, type, ..., number of launch parameters, name, ...) of each kernel, after its name.
KernelTable ReadKernelTable(TVMArgs args, int first);

// How many threads a launch starts, and the dynamic shared memory of each block.
struct Launch {
  std::array<size_t, 3> grid{1, 1, 1};
  std::array<size_t, 3> block{1, 1, 1};
  size_t dynamic_bytes{0};

  bool is_empty() const { return grid[0] * grid[1] * grid[2] * block[0] * block[1] * block[2] == 0; }
  size_t threads() const { return block[0] * block[1] * block[2]; }
  std::string Text() const;
};

// Where each launch parameter of a kernel goes.
class LaunchReader {
 public:
  explicit LaunchReader(const KernelInfo& info);
  // The launch that the arguments behind the kernel's own describe.
  Launch Read(const TVMArgs& args) const;

 private:
  static constexpr int kDynamicMemory = 6;
  int first_;
  std::vector<int> places_;  // 0 to 2: the grid, 3 to 5: the block
};

// A number in the form in which a kernel takes it.
struct Scalar {
  alignas(8) unsigned char bytes[8];
  size_t size;
};
Scalar ReadScalar(const TVMArgs& args, int index, DLDataType type);

inline bool IsPointer(DLDataType type) { return type.code == kTVMOpaqueHandle; }

}  // namespace gpu
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_GPU_KERNEL_H_
