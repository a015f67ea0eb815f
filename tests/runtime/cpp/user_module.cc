// A user's own kinds of modules, as a runtime for an accelerator brings them: saved to bytes and loaded again.
#include <dmlc/memory_io.h>
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace user {

using namespace tvm;
using namespace tvm::runtime;

// Multiplies by a factor that was chosen when the model was compiled.
class ScaleModule : public ModuleNode {
 public:
  ScaleModule(std::string symbol, double factor, std::map<std::string, int> options, std::vector<float> table)
      : symbol_(symbol), factor_(factor), options_(options), table_(table) {}

  const char* type_key() const final { return "user_scale"; }
  int GetPropertyMask() const final { return ModulePropertyMask::kBinarySerializable | ModulePropertyMask::kRunnable; }

  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& sptr_to_self) final {
    if (name == symbol_) {
      return PackedFunc([sptr_to_self, this](TVMArgs args, TVMRetValue* rv) {
        ICHECK_EQ(args.size(), 2U) << "one input, one output";
        DLTensor* from = args[0];
        DLTensor* to = args[1];
        for (int64_t i = 0; i < from->shape[0]; ++i) {
          static_cast<float*>(to->data)[i] = static_cast<float>(static_cast<float*>(from->data)[i] * factor_ + table_[0]);
        }
      });
    } else if (name == "get_option") {
      return TypedPackedFunc<int(std::string)>([sptr_to_self, this](std::string key) { return options_.at(key); });
    } else if (name == "get_symbol") {
      return PackedFunc([sptr_to_self, this](TVMArgs args, TVMRetValue* rv) { *rv = this->symbol_; });
    }
    return PackedFunc(nullptr);
  }

  void SaveToBinary(dmlc::Stream* stream) final {
    stream->Write(symbol_);
    stream->Write(factor_);
    stream->Write(options_);
    stream->Write(table_);
  }

  static Module LoadFromBinary(void* strm) {
    dmlc::Stream* stream = static_cast<dmlc::Stream*>(strm);
    std::string symbol;
    double factor;
    std::map<std::string, int> options;
    std::vector<float> table;
    ICHECK(stream->Read(&symbol)) << "Loading symbol failed";
    ICHECK(stream->Read(&factor)) << "Loading factor failed";
    ICHECK(stream->Read(&options)) << "Loading options failed";
    ICHECK(stream->Read(&table)) << "Loading table failed";
    return Module(make_object<ScaleModule>(symbol, factor, options, table));
  }

  String GetSource(const String& format) override { return "scale by " + std::to_string(static_cast<int>(factor_)); }

  void SaveToFile(const String& file_name, const String& format) override { LOG(FATAL) << "ValueError: no file of format " << format; }

 private:
  std::string symbol_;
  double factor_;
  std::map<std::string, int> options_;
  std::vector<float> table_;
};

TVM_REGISTER_GLOBAL("runtime.module.loadbinary_user_scale").set_body_typed(ScaleModule::LoadFromBinary);
TVM_REGISTER_GLOBAL("user.scale").set_body_typed([](String symbol, double factor) {
  return Module(make_object<ScaleModule>(symbol, factor, std::map<std::string, int>{{"lanes", 4}, {"ways", 2}},
                                         std::vector<float>{0.5f, 1}));
});

// A module with a table of functions.
class CountModule : public ModuleNode {
 public:
  TVM_MODULE_VTABLE_BEGIN("user_count");
  TVM_MODULE_VTABLE_ENTRY("next", &CountModule::Next);
  TVM_MODULE_VTABLE_ENTRY("add", &CountModule::Add);
  TVM_MODULE_VTABLE_ENTRY("all", &CountModule::All);
  TVM_MODULE_VTABLE_END();

  int Next() { return ++count_; }
  void Add(int64_t value) { count_ += static_cast<int>(value); }
  void All(TVMArgs args, TVMRetValue* rv) { *rv = args.size(); }

 private:
  int count_ = 0;
};

TVM_REGISTER_GLOBAL("user.count").set_body([](TVMArgs args, TVMRetValue* rv) {
  auto n = make_object<CountModule>();
  *rv = Module(n);
});

// A module whose bytes go through streams of its own.
class NestedModule : public ModuleNode {
 public:
  explicit NestedModule(std::vector<std::pair<std::string, uint64_t>> entries) : entries_(entries) {}
  const char* type_key() const final { return "user_nested"; }
  int GetPropertyMask() const final { return kBinarySerializable; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& sptr_to_self) final {
    for (const auto& entry : entries_) {
      if (name == entry.first) {
        uint64_t value = entry.second;
        return PackedFunc([value](TVMArgs, TVMRetValue* rv) { *rv = static_cast<int64_t>(value); });
      }
    }
    return PackedFunc();
  }
  void SaveToBinary(dmlc::Stream* stream) final {
    std::string bytes;
    dmlc::MemoryStringStream inner(&bytes);
    inner.Write(entries_);
    stream->Write(bytes);
  }
  static Module LoadFromBinary(void* strm) {
    std::string bytes;
    std::vector<std::pair<std::string, uint64_t>> entries;
    ICHECK(static_cast<dmlc::Stream*>(strm)->Read(&bytes));
    dmlc::MemoryFixedSizeStream inner(&bytes[0], bytes.size());
    ICHECK(inner.Read(&entries));
    return Module(make_object<NestedModule>(entries));
  }

 private:
  std::vector<std::pair<std::string, uint64_t>> entries_;
};

TVM_REGISTER_GLOBAL("runtime.module.loadbinary_user_nested").set_body_typed(NestedModule::LoadFromBinary);
TVM_REGISTER_GLOBAL("user.nested").set_body_typed([](String name, int64_t value) {
  return Module(make_object<NestedModule>(std::vector<std::pair<std::string, uint64_t>>{{name, value}, {"zero", 0}}));
});

// A kind of device: memory of the host, of which it counts what is in use.
class CountingDevice final : public DeviceAPI {
 public:
  void SetDevice(Device dev) final {}
  void GetAttr(Device dev, DeviceAttrKind kind, TVMRetValue* rv) final {
    if (kind == kExist) *rv = dev.device_id < 2 ? 1 : 0;
    if (kind == kDeviceName) *rv = "counting " + std::to_string(dev.device_id);
  }
  void* AllocDataSpace(Device dev, size_t nbytes, size_t alignment, DLDataType type_hint) final {
    ++in_use;
    return std::malloc(nbytes + 1);
  }
  void FreeDataSpace(Device dev, void* ptr) final {
    --in_use;
    std::free(ptr);
  }
  void StreamSync(Device dev, TVMStreamHandle stream) final {}
  int in_use = 0;
  int copied = 0;

  static CountingDevice* Global() {
    static CountingDevice inst;
    return &inst;
  }

 protected:
  void CopyDataFromTo(const void* from, size_t from_offset, void* to, size_t to_offset, size_t num_bytes, Device dev_from,
                      Device dev_to, DLDataType type_hint, TVMStreamHandle stream) final {
    copied += static_cast<int>(num_bytes);
    std::memcpy(static_cast<char*>(to) + to_offset, static_cast<const char*>(from) + from_offset, num_bytes);
  }
};

TVM_REGISTER_GLOBAL("device_api.vpi").set_body([](TVMArgs args, TVMRetValue* rv) {
  DeviceAPI* ptr = CountingDevice::Global();
  *rv = static_cast<void*>(ptr);
});
TVM_REGISTER_GLOBAL("user.in_use").set_body_typed([]() { return CountingDevice::Global()->in_use; });
TVM_REGISTER_GLOBAL("user.copied").set_body_typed([]() { return CountingDevice::Global()->copied; });

int SubOne(int x) { return x - 1; }
void Describe(TVMArgs args, TVMRetValue* rv) {
  std::string text = "got " + std::to_string(args.size());
  *rv = text;
}
int Fail(int) {
  CHECK(false) << "ValueError: as wished";
  return 0;
}

}  // namespace user

TVM_DLL_EXPORT_TYPED_FUNC(sub_one, user::SubOne);
TVM_DLL_EXPORT_PACKED_FUNC(describe, user::Describe);
TVM_DLL_EXPORT_TYPED_FUNC(fail, user::Fail);
