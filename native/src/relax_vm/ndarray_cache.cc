// Parameters by name, kept for programs: loaded from a folder with ndarray-cache.json and its shards, or set.
#include <tvm/runtime/container/array.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>

#include "../json.h"

namespace tvm {
namespace runtime {
namespace relax_vm {
namespace {

constexpr const char* kList = "ndarray-cache.json";
constexpr DLDevice kHost{kDLCPU, 0};

class Cache {
 public:
  static Cache& Global() {
    static Cache* cache = new Cache();  // arrays may outlive static objects
    return *cache;
  }

  void Update(const std::string& name, NDArray array, bool override_it) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!override_it && arrays_.count(name) != 0) ThrowValueError("the cache of arrays has '", name, "' already");
    arrays_[name] = std::move(array);
  }
  NDArray Find(const std::string& name) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = arrays_.find(name);
    return found == arrays_.end() ? NDArray() : found->second;
  }
  NDArray Get(const std::string& name) {
    NDArray found = Find(name);
    if (!found.defined()) ThrowValueError("the cache of arrays has no '", name, "'");
    return found;
  }
  void Remove(const std::string& name) {
    std::lock_guard<std::mutex> lock(mutex_);
    arrays_.erase(name);
  }
  void Clear() {
    std::lock_guard<std::mutex> lock(mutex_);
    arrays_.clear();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, NDArray> arrays_;
};

std::string ContentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) ThrowValueError("there is no file ", path, ", which a cache of arrays needs");
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

// bfloat16 as the upper half of float32
std::vector<uint32_t> Widened(const char* data, size_t count) {
  std::vector<uint32_t> wide(count);
  for (size_t i = 0; i < count; ++i) {
    uint16_t half;
    std::memcpy(&half, data + 2 * i, sizeof(half));
    wide[i] = static_cast<uint32_t>(half) << 16;
  }
  return wide;
}

NDArray ArrayOf(const Json& record, const std::string& content, const std::string& path, DLDevice device) {
  std::vector<int64_t> shape;
  for (const Json& extent : record.At("shape", path).Array(path)) shape.push_back(extent.Int(path));
  const std::string dtype = record.At("dtype", path).String(path), format = record.At("format", path).String(path);
  const int64_t offset = record.At("byteOffset", path).Int(path), bytes = record.At("nbytes", path).Int(path);
  if (std::any_of(shape.begin(), shape.end(), [](int64_t extent) { return extent < 0; })) ThrowValueError(path, ": an extent is negative");
  NDArray array = NDArray::Empty(shape, String2DLDataType(dtype), kHost);
  const int64_t wanted = static_cast<int64_t>(DataBytes(*array.tensor()));
  const bool is_narrow = format == "f32-to-bf16" && dtype == "float32";
  const int64_t size = static_cast<int64_t>(content.size());
  if (offset < 0 || bytes < 0 || offset > size || bytes > size - offset || bytes != (is_narrow ? wanted / 2 : wanted)) {
    ThrowValueError(path, ": array '", record.At("name", path).String(path), "' needs ", is_narrow ? wanted / 2 : wanted, " bytes of ", dtype,
                    " within ", size, ", got ", bytes, " from ", offset);
  }
  const char* data = content.data() + offset;
  if (is_narrow) {
    std::vector<uint32_t> wide = Widened(data, bytes / 2);
    array.CopyFromBytes(wide.data(), wanted);
  } else {
    array.CopyFromBytes(data, wanted);
  }
  return device.device_type == kDLCPU ? array : array.CopyTo(device);
}

void Load(const std::string& folder, int device_type, int device_id) {
  const std::string path = folder + "/" + kList;
  Json list = Json::Parse(ContentOf(path), path);
  for (const Json& shard : list.At("records", path).Array(path)) {
    const std::string form = shard.At("format", path).String(path);
    if (form != "raw-shard") ThrowValueError(path, ": shards are of the format raw-shard, got ", form);
    const std::string content = ContentOf(folder + "/" + shard.At("dataPath", path).String(path));
    for (const Json& record : shard.At("records", path).Array(path)) {
      DLDevice device{static_cast<DLDeviceType>(device_type), device_id};
      Cache::Global().Update(record.At("name", path).String(path), ArrayOf(record, content, path, device), true);
    }
  }
}

// prefix_0, prefix_1 and so on: `count` of them, or with -1 as many as there are
Array<NDArray> Numbered(const std::string& prefix, int64_t count) {
  Array<NDArray> found;
  for (int64_t i = 0; count < 0 || i < count; ++i) {
    const std::string name = prefix + "_" + std::to_string(i);
    NDArray array = count < 0 ? Cache::Global().Find(name) : Cache::Global().Get(name);
    if (!array.defined()) break;
    found.push_back(array);
  }
  return found;
}

}  // namespace

TVM_REGISTER_GLOBAL("vm.builtin.ndarray_cache.load").set_body_typed(Load);
TVM_REGISTER_GLOBAL("vm.builtin.ndarray_cache.clear").set_body_typed([] { Cache::Global().Clear(); });
TVM_REGISTER_GLOBAL("vm.builtin.ndarray_cache.remove").set_body_typed([](std::string name) { Cache::Global().Remove(name); });
// (name, array, whether it may replace one)
TVM_REGISTER_GLOBAL("vm.builtin.ndarray_cache.update").set_body([](TVMArgs args, TVMRetValue*) {
  Cache::Global().Update(args[0], args[1], args.size() > 2 && bool(args[2]));
});
TVM_REGISTER_GLOBAL("vm.builtin.ndarray_cache.get").set_body([](TVMArgs args, TVMRetValue* rv) {
  NDArray found = Cache::Global().Find(args[0]);
  if (found.defined()) {
    *rv = found;
  } else {
    *rv = nullptr;
  }
});
TVM_REGISTER_GLOBAL("vm.builtin.param_array_from_cache").set_body_typed(Numbered);
TVM_REGISTER_GLOBAL("vm.builtin.param_array_from_cache_by_name").set_body_typed([](Array<String> names) {
  Array<NDArray> found;
  for (const String& name : names) found.push_back(Cache::Global().Get(name));
  return found;
});
TVM_REGISTER_GLOBAL("vm.builtin.param_array_from_cache_by_name_unpacked").set_body([](TVMArgs args, TVMRetValue* rv) {
  Array<NDArray> found;
  for (int i = 0; i < args.size(); ++i) found.push_back(Cache::Global().Get(args[i]));
  *rv = found;
});

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
