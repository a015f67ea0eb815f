// Modules of OpenCL kernels: their text, which is compiled for a device when a kernel is first launched there.
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

#include <fstream>
#include <mutex>
#include <unordered_map>

#include "../gpu/kernel.h"
#include "device.h"

namespace tvm {
namespace runtime {
namespace opencl {
namespace {

using gpu::KernelInfo;
using gpu::KernelTable;
using gpu::Launch;
using gpu::LaunchReader;
using gpu::Scalar;

constexpr const char* kDelimiter = "// Function: ";

std::string BuildLog(cl_program program, cl_device_id device) {
  const Api& api = *FindApi();
  size_t size = 0;
  api.GetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  if (size != 0) api.GetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  return log.c_str();
}

cl_kernel Compile(const std::string& name, const std::string& text, const DeviceState& state) {
  const Api& api = *FindApi();
  const char* source = text.c_str();
  cl_int code = CL_SUCCESS;
  cl_program program = api.CreateProgramWithSource(state.context, 1, &source, nullptr, &code);
  Check(code, "clCreateProgramWithSource");
  code = api.BuildProgram(program, 1, &state.id, state.build_options.c_str(), nullptr, nullptr);
  if (code != CL_SUCCESS) {
    std::string log = BuildLog(program, state.id);
    api.ReleaseProgram(program);
    ThrowError("OpenCL cannot compile kernel ", name, " (", ErrorName(code), "):\n", log);
  }
  cl_kernel kernel = api.CreateKernel(program, name.c_str(), &code);
  api.ReleaseProgram(program);  // the kernel keeps it
  Check(code, "clCreateKernel");
  return kernel;
}

// One kernel as a packed function, whose arguments are set and which is launched under a lock.
class Launcher {
 public:
  Launcher(KernelInfo info, std::string text) : info_(std::move(info)), reader_(info_), text_(std::move(text)) {}

  void operator()(TVMArgs args, TVMRetValue*) const {
    Launch launch = reader_.Read(args);
    if (launch.is_empty()) return;
    int device = OpenCLDevices::Current();
    OpenCLDevices& devices = *OpenCLDevices::Global();
    cl_command_queue queue = devices.Queue(device);
    std::lock_guard<std::mutex> lock(mutex_);
    cl_kernel& kernel = kernels_[device];
    if (kernel == nullptr) kernel = Compile(info_.name, text_, devices.State(device));
    SetArguments(kernel, args, device, launch.dynamic_bytes);
    size_t total[3];
    for (int i = 0; i < 3; ++i) total[i] = launch.grid[i] * launch.block[i];
    cl_int code = FindApi()->EnqueueNDRangeKernel(queue, kernel, 3, nullptr, total, launch.block.data(), 0, nullptr, nullptr);
    if (code != CL_SUCCESS) {
      ThrowError("OpenCL cannot launch kernel ", info_.name, " with ", launch.Text(), " on opencl(", device, "): ",
                 ErrorName(code));
    }
  }

 private:
  void SetArguments(cl_kernel kernel, const TVMArgs& args, int device, size_t dynamic_bytes) const {
    const Api& api = *FindApi();
    int count = static_cast<int>(info_.arg_types.size());
    for (int i = 0; i < count; ++i) {
      DLDataType type = info_.arg_types[i];
      cl_int code;
      if (gpu::IsPointer(type)) {
        cl_mem memory = OpenCLDevices::Global()->MemoryAt(args[i].operator void*(), device, i);
        code = api.SetKernelArg(kernel, i, sizeof(memory), &memory);
      } else {
        Scalar scalar = gpu::ReadScalar(args, i, type);
        code = api.SetKernelArg(kernel, i, scalar.size, scalar.bytes);
      }
      Check(code, "clSetKernelArg");
    }
    if (dynamic_bytes != 0) Check(api.SetKernelArg(kernel, count, dynamic_bytes, nullptr), "clSetKernelArg");
  }

  KernelInfo info_;
  LaunchReader reader_;
  std::string text_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<int, cl_kernel> kernels_;  // by device; they live as long as the process
};

class OpenCLModule final : public ModuleNode {
 public:
  OpenCLModule(std::string text, std::string format, KernelTable kernels)
      : text_(std::move(text)), format_(std::move(format)), kernels_(std::move(kernels)) {}

  const char* type_key() const final { return "opencl"; }
  int GetPropertyMask() const final { return kBinarySerializable | kRunnable; }
  String GetFormat() final { return format_; }
  String GetSource(const String&) final { return text_; }

  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final {
    auto it = kernels_.find(name);
    if (it == kernels_.end()) return PackedFunc();
    std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<Launcher>& launcher = launchers_[name];
    if (launcher == nullptr) launcher = std::make_shared<Launcher>(it->second, TextOf(name));
    return PackedFunc([launcher = launcher, self](TVMArgs args, TVMRetValue* rv) { (*launcher)(args, rv); });
  }

  void SaveToBinary(dmlc::Stream* stream) final {
    stream->Write(format_);
    stream->Write(kernels_);
    stream->Write(text_);
  }
  void SaveToFile(const String& path, const String&) final {
    std::ofstream file(path, std::ios::binary);
    file << text_;
    if (!file) ThrowError("cannot write ", std::string(path));
  }
  static Module LoadFromBinary(void* argument) {
    dmlc::Stream* stream = LoaderStream(argument);
    std::string format, text;
    KernelTable kernels;
    if (!stream->Read(&format) || !stream->Read(&kernels) || !stream->Read(&text)) {
      ThrowValueError("the library's module of OpenCL kernels is truncated");
    }
    return Module(ObjectPtr<ModuleNode>(make_object<OpenCLModule>(text, format, kernels)));
  }

 private:
  // The part of the text that is one kernel's; all of it, where it has no parts.
  std::string TextOf(const std::string& name) const {
    std::string head = kDelimiter + name + "\n";
    size_t begin = text_.find(head);
    if (begin == std::string::npos) return text_;
    size_t end = text_.find(kDelimiter, begin + head.size());
    return text_.substr(begin, end == std::string::npos ? end : end - begin);
  }

  std::string text_;
  std::string format_;
  KernelTable kernels_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Launcher>> launchers_;
};

}  // namespace

// (text, format, kernel, its table row, kernel, ...)
TVM_REGISTER_GLOBAL("runtime.OpenCLModuleCreate").set_body([](TVMArgs args, TVMRetValue* rv) {
  *rv = Module(ObjectPtr<ModuleNode>(make_object<OpenCLModule>(args[0].operator std::string(), args[1].operator std::string(),
                                                               gpu::ReadKernelTable(args, 2))));
});
TVM_REGISTER_GLOBAL("runtime.module.loadbinary_opencl").set_body_typed(OpenCLModule::LoadFromBinary);

}  // namespace opencl
}  // namespace runtime
}  // namespace tvm
