// Modules of CUDA kernels: PTX, cubin or fatbin, which the driver loads for a device when a kernel is first launched there.
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>

#include "../gpu/kernel.h"
#include "device.h"

namespace tvm {
namespace runtime {
namespace cuda {
namespace {

using gpu::KernelInfo;
using gpu::KernelTable;
using gpu::Launch;
using gpu::LaunchReader;
using gpu::Scalar;

constexpr size_t kUsualDynamicBytes = 48 << 10;  // more has to be asked for

// The code of a module, loaded once for each device.
class LoadedCode {
 public:
  LoadedCode(std::string code, std::string format) : code_(std::move(code)), format_(std::move(format)) {}

  CUfunction Function(int device, const std::string& name) {
    std::lock_guard<std::mutex> lock(mutex_);
    CUmodule& module = modules_[device];
    if (module == nullptr) Load(device, &module);
    CUfunction function;
    Check(FindDriver()->ModuleGetFunction(&function, module, name.c_str()), "cuModuleGetFunction");
    return function;
  }

  const std::string& code() const { return code_; }
  const std::string& format() const { return format_; }

 private:
  void Load(int device, CUmodule* module) {
    if (format_ == "cu") {
      ThrowError("the module has the text of CUDA kernels and no code: it was built where neither NVRTC (pip install "
                 "nvidia-cuda-nvrtc-cu12) nor nvcc was");
    }
    CUresult code = FindDriver()->ModuleLoadData(module, code_.c_str());
    if (code == CUDA_ERROR_NO_BINARY_FOR_GPU || code == CUDA_ERROR_INVALID_PTX || code == CUDA_ERROR_UNSUPPORTED_PTX_VERSION) {
      ThrowError("cuda(", device, ") cannot run the kernels (", ErrorName(code),
                 "): build them for its architecture, Target(\"cuda -arch=sm_XX\"), or with an older CUDA");
    }
    Check(code, "cuModuleLoadData");
  }

  std::string code_;
  std::string format_;
  std::mutex mutex_;
  std::map<int, CUmodule> modules_;  // they live as long as the process
};

class Launcher {
 public:
  Launcher(KernelInfo info, std::shared_ptr<LoadedCode> code)
      : info_(std::move(info)), reader_(info_), code_(std::move(code)), functions_(kMaxDevices) {}

  void operator()(TVMArgs args, TVMRetValue*) const {
    Launch launch = reader_.Read(args);
    if (launch.is_empty()) return;
    int device = CUDADevices::Global()->Enter();
    CUfunction function = Function(device, launch.dynamic_bytes);
    size_t count = info_.arg_types.size();
    std::vector<Scalar> values(count);
    std::vector<void*> pointers(count);
    for (size_t i = 0; i < count; ++i) {
      values[i] = ReadArgument(args, static_cast<int>(i));
      pointers[i] = values[i].bytes;
    }
    auto extent = [](size_t value) { return static_cast<unsigned>(value); };
    CUresult code = FindDriver()->LaunchKernel(
        function, extent(launch.grid[0]), extent(launch.grid[1]), extent(launch.grid[2]), extent(launch.block[0]),
        extent(launch.block[1]), extent(launch.block[2]), extent(launch.dynamic_bytes), CUDADevices::CurrentStream(),
        pointers.data(), nullptr);
    if (code != CUDA_SUCCESS) {
      ThrowError("CUDA cannot launch kernel ", info_.name, " with ", launch.Text(), " on cuda(", device, "): ", ErrorName(code));
    }
  }

 private:
  static constexpr int kMaxDevices = 64;
  struct Known {
    CUfunction function{nullptr};
    size_t dynamic_bytes{kUsualDynamicBytes};
  };

  CUfunction Function(int device, size_t dynamic_bytes) const {
    std::lock_guard<std::mutex> lock(mutex_);
    Known& known = functions_.at(device);
    if (known.function == nullptr) known.function = code_->Function(device, info_.name);
    if (dynamic_bytes > known.dynamic_bytes) {
      CUresult code = FindDriver()->FuncSetAttribute(known.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                     static_cast<int>(dynamic_bytes));
      if (code != CUDA_SUCCESS) {
        ThrowError("kernel ", info_.name, " needs ", dynamic_bytes, " bytes of shared memory, which cuda(", device,
                   ") does not have: ", ErrorName(code));
      }
      known.dynamic_bytes = dynamic_bytes;
    }
    return known.function;
  }

  Scalar ReadArgument(const TVMArgs& args, int index) const {
    DLDataType type = info_.arg_types[index];
    if (!gpu::IsPointer(type)) return gpu::ReadScalar(args, index, type);
    Scalar scalar{};
    void* address = args[index];
    std::memcpy(scalar.bytes, &address, sizeof(address));
    scalar.size = sizeof(address);
    return scalar;
  }

  KernelInfo info_;
  LaunchReader reader_;
  std::shared_ptr<LoadedCode> code_;
  mutable std::mutex mutex_;
  mutable std::vector<Known> functions_;
};

class CUDAModule final : public ModuleNode {
 public:
  CUDAModule(std::string code, std::string format, std::string text, KernelTable kernels)
      : code_(std::make_shared<LoadedCode>(std::move(code), std::move(format))),
        text_(std::move(text)),
        kernels_(std::move(kernels)) {}

  const char* type_key() const final { return "cuda"; }
  int GetPropertyMask() const final { return kBinarySerializable | kRunnable; }
  String GetFormat() final { return code_->format(); }
  // The text that the code was made of, or the code by its format; a loaded module has the code alone.
  String GetSource(const String& format) final {
    bool is_text_wanted = format == "" || format == "cu";
    return is_text_wanted && !text_.empty() ? text_ : code_->code();
  }

  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final {
    auto it = kernels_.find(name);
    if (it == kernels_.end()) return PackedFunc();
    std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<Launcher>& launcher = launchers_[name];
    if (launcher == nullptr) launcher = std::make_shared<Launcher>(it->second, code_);
    return PackedFunc([launcher = launcher, self](TVMArgs args, TVMRetValue* rv) { (*launcher)(args, rv); });
  }

  void SaveToBinary(dmlc::Stream* stream) final {
    stream->Write(code_->format());
    stream->Write(kernels_);
    stream->Write(code_->code());
  }
  void SaveToFile(const String& path, const String& format) final {
    std::ofstream file(path, std::ios::binary);
    file << (format == "cu" ? text_ : code_->code());
    if (!file) ThrowError("cannot write ", std::string(path));
  }
  static Module LoadFromBinary(void* argument) {
    dmlc::Stream* stream = LoaderStream(argument);
    std::string format, code;
    KernelTable kernels;
    if (!stream->Read(&format) || !stream->Read(&kernels) || !stream->Read(&code)) {
      ThrowValueError("the library's module of CUDA kernels is truncated");
    }
    return Module(ObjectPtr<ModuleNode>(make_object<CUDAModule>(code, format, "", kernels)));
  }

 private:
  std::shared_ptr<LoadedCode> code_;
  std::string text_;
  KernelTable kernels_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Launcher>> launchers_;
};

}  // namespace

// (code, its format, text, kernel, its table row, kernel, ...)
TVM_REGISTER_GLOBAL("runtime.CUDAModuleCreate").set_body([](TVMArgs args, TVMRetValue* rv) {
  *rv = Module(ObjectPtr<ModuleNode>(
      make_object<CUDAModule>(args[0].operator std::string(), args[1].operator std::string(),
                              args[2].operator std::string(), gpu::ReadKernelTable(args, 3))));
});
TVM_REGISTER_GLOBAL("runtime.module.loadbinary_cuda").set_body_typed(CUDAModule::LoadFromBinary);

}  // namespace cuda
}  // namespace runtime
}  // namespace tvm
