// OpenCL's devices, memory, copies and queues.
#include "device.h"

#include <sys/mman.h>
#include <tvm/runtime/registry.h>

#include <sstream>

#include "../fork.h"

namespace tvm {
namespace runtime {
namespace opencl {
namespace {

thread_local int current_device = 0;
thread_local std::map<int, cl_command_queue> current_streams;

const Api& Functions() { return *FindApi(); }

std::vector<cl_device_id> DevicesOfKind(const Api& api, cl_bitfield kind) {
  std::vector<cl_device_id> found;
  cl_uint count = 0;
  if (api.GetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) return found;
  std::vector<cl_platform_id> platforms(count);
  if (count != 0) api.GetPlatformIDs(count, platforms.data(), nullptr);
  for (cl_platform_id platform : platforms) {
    cl_uint number = 0;
    if (api.GetDeviceIDs(platform, kind, 0, nullptr, &number) != CL_SUCCESS) continue;
    size_t first = found.size();
    found.resize(first + number);
    api.GetDeviceIDs(platform, kind, number, &found[first], nullptr);
  }
  return found;
}

template <class T>
T Info(cl_device_id device, DeviceInfo what) {
  T value{};
  Check(Functions().GetDeviceInfo(device, what, sizeof(value), &value, nullptr), "clGetDeviceInfo");
  return value;
}

std::string InfoText(cl_device_id device, DeviceInfo what) {
  size_t size = 0;
  Check(Functions().GetDeviceInfo(device, what, 0, nullptr, &size), "clGetDeviceInfo");
  std::string text(size, '\0');
  Check(Functions().GetDeviceInfo(device, what, size, text.data(), nullptr), "clGetDeviceInfo");
  text.resize(text.find('\0') == std::string::npos ? size : text.find('\0'));
  return text;
}

DeviceState Open(cl_device_id id) {
  DeviceState state{};
  cl_int code = CL_SUCCESS;
  state.id = id;
  state.context = Functions().CreateContext(nullptr, 1, &id, nullptr, nullptr, &code);
  Check(code, "clCreateContext");
  state.queue = Functions().CreateCommandQueue(state.context, id, 0, &code);
  Check(code, "clCreateCommandQueue");
  state.part_alignment = Info<cl_uint>(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
  bool is_exact = (Info<cl_bitfield>(id, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  if (is_exact) state.build_options = "-cl-fp32-correctly-rounded-divide-sqrt";
  // PoCL's optimizations before it makes loops of threads move code across barriers, and leave it wrong; later ones run
  bool is_pocl = InfoText(id, CL_DEVICE_VERSION).find("PoCL") != std::string::npos;
  if (is_pocl) state.build_options += " -cl-opt-disable";
  return state;
}

std::string Dimensions(cl_device_id id) {
  size_t sizes[16] = {};
  Check(Functions().GetDeviceInfo(id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof(sizes), sizes, nullptr), "clGetDeviceInfo");
  return Cat("[", sizes[0], ", ", sizes[1], ", ", sizes[2], "]");
}

constexpr size_t kPage = 4096;

void* Reserve(size_t size) {
  void* range = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) ThrowError("out of memory: cannot reserve addresses for ", size, " bytes on opencl");
  return range;
}

bool IsOutOfMemory(cl_int code) {
  return code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES || code == CL_OUT_OF_HOST_MEMORY ||
         code == CL_INVALID_BUFFER_SIZE;
}

}  // namespace

// Devices are GPUs, or accelerators where there are none, or else processors.
OpenCLDevices::OpenCLDevices() {
  const Api* api = FindApi();
  if (api == nullptr) {
    missing_ = "no library libOpenCL.so.1 can be loaded (Debian's ocl-icd-libopencl1 and a driver bring it)";
    return;
  }
  std::vector<cl_device_id> ids;
  for (cl_bitfield kind : {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_CPU}) {
    if (ids.empty()) ids = DevicesOfKind(*api, kind);
  }
  for (cl_device_id id : ids) devices_.push_back(Open(id));
  if (ids.empty()) missing_ = "no driver offers a device (clinfo lists those that there are)";
}

OpenCLDevices* OpenCLDevices::Global() {
  static auto* devices = new OpenCLDevices();
  return devices;
}

DeviceState& OpenCLDevices::State(int device) {
  if (devices_.empty()) ThrowError("OpenCL cannot be used: ", missing_);
  if (device < 0 || device >= static_cast<int>(devices_.size())) {
    ThrowValueError("there are ", devices_.size(), " OpenCL devices, got opencl(", device, ")");
  }
  static const uint32_t own_generation = ForkGeneration();
  if (ForkGeneration() != own_generation) {
    ThrowError("OpenCL cannot be used in a process that was forked from one that uses it; start it anew (spawn)");
  }
  return devices_[device];
}

int OpenCLDevices::Current() { return current_device; }

void OpenCLDevices::SetDevice(Device dev) {
  State(dev.device_id);
  current_device = dev.device_id;
}

void OpenCLDevices::GetAttr(Device dev, DeviceAttrKind kind, TVMRetValue* rv) {
  if (kind == kExist) {
    *rv = static_cast<int>(dev.device_id >= 0 && dev.device_id < static_cast<int>(devices_.size()));
    return;
  }
  cl_device_id id = State(dev.device_id).id;
  switch (kind) {
    case kMaxThreadsPerBlock: *rv = static_cast<int64_t>(Info<size_t>(id, CL_DEVICE_MAX_WORK_GROUP_SIZE)); break;
    case kWarpSize: *rv = 1; break;
    case kMaxSharedMemoryPerBlock: *rv = static_cast<int64_t>(Info<cl_ulong>(id, CL_DEVICE_LOCAL_MEM_SIZE)); break;
    case kComputeVersion: {
      // "OpenCL 3.0 ..."
      std::istringstream text(InfoText(id, CL_DEVICE_VERSION));
      std::string word, version;
      text >> word >> version;
      *rv = version;
      break;
    }
    case kDeviceName: *rv = InfoText(id, CL_DEVICE_NAME); break;
    case kMaxClockRate: *rv = static_cast<int64_t>(Info<cl_uint>(id, CL_DEVICE_MAX_CLOCK_FREQUENCY)) * 1000; break;
    case kMultiProcessorCount: *rv = static_cast<int64_t>(Info<cl_uint>(id, CL_DEVICE_MAX_COMPUTE_UNITS)); break;
    case kMaxThreadDimensions: *rv = Dimensions(id); break;
    case kDriverVersion: *rv = InfoText(id, CL_DRIVER_VERSION); break;
    case kL2CacheSizeBytes: *rv = static_cast<int64_t>(Info<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE)); break;
    case kTotalGlobalMemory: *rv = static_cast<int64_t>(Info<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE)); break;
    default: break;
  }
}

void* OpenCLDevices::AllocDataSpace(Device dev, size_t nbytes, size_t, DLDataType) {
  DeviceState& state = State(dev.device_id);
  Allocation allocation{std::max<size_t>(nbytes, 1), 0, dev.device_id, nullptr, {}};
  allocation.reserved = (allocation.size + kPage - 1) / kPage * kPage;
  cl_int code = CL_SUCCESS;
  allocation.memory = Functions().CreateBuffer(state.context, CL_MEM_READ_WRITE, allocation.size, nullptr, &code);
  if (IsOutOfMemory(code)) ThrowError("out of memory: cannot allocate ", nbytes, " bytes on opencl(", dev.device_id, ")");
  Check(code, "clCreateBuffer");
  void* address = Reserve(allocation.reserved);
  std::unique_lock<std::shared_mutex> lock(mutex_);
  allocations_.emplace(reinterpret_cast<uintptr_t>(address), std::move(allocation));
  return address;
}

void OpenCLDevices::FreeDataSpace(Device, void* ptr) {
  std::unique_lock<std::shared_mutex> lock(mutex_);
  auto it = allocations_.find(reinterpret_cast<uintptr_t>(ptr));
  if (it == allocations_.end()) return;
  Allocation allocation = std::move(it->second);
  allocations_.erase(it);
  munmap(ptr, allocation.reserved);
  lock.unlock();
  // what was enqueued keeps them until it is done
  for (auto& part : allocation.parts) Functions().ReleaseMemObject(part.second);
  Functions().ReleaseMemObject(allocation.memory);
}

OpenCLDevices::Place OpenCLDevices::Find(const void* address) {
  auto at = reinterpret_cast<uintptr_t>(address);
  std::shared_lock<std::shared_mutex> lock(mutex_);
  auto it = allocations_.upper_bound(at);
  if (it == allocations_.begin()) ThrowValueError("the address ", address, " is of no array on an OpenCL device");
  --it;
  size_t offset = at - it->first;
  if (offset >= it->second.reserved) ThrowValueError("the address ", address, " is of no array on an OpenCL device");
  return {&it->second, offset};
}

cl_mem OpenCLDevices::MemoryAt(const void* address, int device, int argument) {
  if (address == nullptr) return nullptr;
  Place place = Find(address);
  Allocation& allocation = *place.allocation;
  if (allocation.device != device) {
    ThrowValueError("argument ", argument, " of the kernel is on opencl(", allocation.device, "), the kernel runs on opencl(",
                    device, ")");
  }
  if (place.offset == 0) return allocation.memory;
  size_t alignment = devices_[device].part_alignment;
  if (place.offset % alignment != 0 || place.offset >= allocation.size) {
    ThrowValueError("argument ", argument, " of the kernel begins ", place.offset, " bytes inside of an array of ",
                    allocation.size, ", opencl(", device, ") needs multiples of ", alignment);
  }
  std::unique_lock<std::shared_mutex> lock(mutex_);
  cl_mem& part = allocation.parts[place.offset];
  if (part == nullptr) {
    cl_buffer_region region{place.offset, allocation.size - place.offset};
    cl_int code = CL_SUCCESS;
    part = Functions().CreateSubBuffer(allocation.memory, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    Check(code, "clCreateSubBuffer");
  }
  return part;
}

cl_command_queue OpenCLDevices::Queue(int device) {
  DeviceState& state = State(device);
  if (current_streams.empty()) return state.queue;
  auto it = current_streams.find(device);
  return it == current_streams.end() ? state.queue : it->second;
}

TVMStreamHandle OpenCLDevices::CreateStream(Device dev) {
  DeviceState& state = State(dev.device_id);
  cl_int code = CL_SUCCESS;
  cl_command_queue queue = Functions().CreateCommandQueue(state.context, state.id, 0, &code);
  Check(code, "clCreateCommandQueue");
  return queue;
}

void OpenCLDevices::FreeStream(Device dev, TVMStreamHandle stream) {
  if (stream == nullptr) return;
  auto it = current_streams.find(dev.device_id);
  if (it != current_streams.end() && it->second == stream) current_streams.erase(it);
  StreamSync(dev, stream);
  Functions().ReleaseCommandQueue(static_cast<cl_command_queue>(stream));
}

void OpenCLDevices::SetStream(Device dev, TVMStreamHandle stream) {
  if (stream == nullptr) {
    current_streams.erase(dev.device_id);
  } else {
    current_streams[dev.device_id] = static_cast<cl_command_queue>(stream);
  }
}

TVMStreamHandle OpenCLDevices::GetCurrentStream(Device dev) {
  auto it = current_streams.find(dev.device_id);
  return it == current_streams.end() ? nullptr : it->second;
}

void OpenCLDevices::StreamSync(Device dev, TVMStreamHandle stream) {
  cl_command_queue queue = stream == nullptr ? Queue(dev.device_id) : static_cast<cl_command_queue>(stream);
  Check(Functions().Finish(queue), "clFinish");
}

void OpenCLDevices::CopyDataFromTo(const void* from, size_t from_offset, void* to, size_t to_offset, size_t num_bytes,
                                   Device dev_from, Device dev_to, DLDataType, TVMStreamHandle) {
  if (num_bytes == 0) return;
  constexpr cl_uint kBlocking = 1;
  auto* source = static_cast<const char*>(from) + from_offset;
  auto* target = static_cast<char*>(to) + to_offset;
  bool is_read = dev_from.device_type == kDLOpenCL && dev_to.device_type == kDLCPU;
  bool is_write = dev_from.device_type == kDLCPU && dev_to.device_type == kDLOpenCL;
  if (is_read) {
    Place place = Find(source);
    Check(Functions().EnqueueReadBuffer(Queue(dev_from.device_id), place.allocation->memory, kBlocking, place.offset, num_bytes,
                                        target, 0, nullptr, nullptr),
          "clEnqueueReadBuffer");
  } else if (is_write) {
    Place place = Find(target);
    Check(Functions().EnqueueWriteBuffer(Queue(dev_to.device_id), place.allocation->memory, kBlocking, place.offset, num_bytes,
                                         source, 0, nullptr, nullptr),
          "clEnqueueWriteBuffer");
  } else if (dev_from.device_type != kDLOpenCL || dev_to.device_type != kDLOpenCL) {
    ThrowError("OpenCL cannot copy from ", DeviceText(dev_from), " to ", DeviceText(dev_to));
  } else if (Place first = Find(source), second = Find(target);
             dev_from.device_id == dev_to.device_id && first.allocation != second.allocation) {
    Check(Functions().EnqueueCopyBuffer(Queue(dev_to.device_id), first.allocation->memory, second.allocation->memory,
                                        first.offset, second.offset, num_bytes, 0, nullptr, nullptr),
          "clEnqueueCopyBuffer");
  } else {  // between devices, or inside of an array, where the parts may overlap
    std::vector<char> bytes(num_bytes);
    Device host{kDLCPU, 0};
    CopyDataFromTo(source, 0, bytes.data(), 0, num_bytes, dev_from, host, {}, nullptr);
    CopyDataFromTo(bytes.data(), 0, target, 0, num_bytes, host, dev_to, {}, nullptr);
  }
}

TVM_REGISTER_GLOBAL("device_api.opencl").set_body([](TVMArgs, TVMRetValue* rv) {
  *rv = static_cast<void*>(static_cast<DeviceAPI*>(OpenCLDevices::Global()));
});

}  // namespace opencl
}  // namespace runtime
}  // namespace tvm
