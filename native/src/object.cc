// Type keys of objects, and the C interface to references.
#include <tvm/runtime/error.h>
#include <tvm/runtime/object.h>

#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace tvm {
namespace runtime {
namespace {

struct TypeTable {
  std::mutex mutex;
  std::vector<std::string> keys;
  std::map<std::string, uint32_t> indices;

  TypeTable() : keys(kStaticIndexEnd) {
    Put(kRuntimeObject, "runtime.Object");
    Put(kRuntimeModule, "runtime.Module");
    Put(kRuntimeNDArray, "runtime.NDArray");
    Put(kRuntimeString, "runtime.String");
    Put(kRuntimeArray, "Array");
    Put(kRuntimeMap, "Map");
    Put(kRuntimeShapeTuple, "runtime.ShapeTuple");
    Put(kRuntimePackedFunc, "runtime.PackedFunc");
    Put(kRuntimeForeign, "runtime.ForeignObject");
  }
  void Put(uint32_t index, const char* key) {
    keys[index] = key;
    indices[key] = index;
  }
  static TypeTable& Global() {
    static auto* table = new TypeTable();
    return *table;
  }
};

}  // namespace

uint32_t Object::TypeKey2Index(const std::string& key) {
  TypeTable& table = TypeTable::Global();
  std::lock_guard<std::mutex> lock(table.mutex);
  auto [it, inserted] = table.indices.try_emplace(key, static_cast<uint32_t>(table.keys.size()));
  if (inserted) table.keys.push_back(key);
  return it->second;
}

std::string Object::TypeIndex2Key(uint32_t index) {
  TypeTable& table = TypeTable::Global();
  std::lock_guard<std::mutex> lock(table.mutex);
  return index < table.keys.size() ? table.keys[index] : "";
}

}  // namespace runtime
}  // namespace tvm

using namespace tvm::runtime;

int TVMObjectGetTypeIndex(TVMObjectHandle obj, unsigned* out_tindex) {
  TVM_API_BEGIN();
  if (obj == nullptr) ThrowValueError("the object is null");
  *out_tindex = static_cast<Object*>(obj)->type_index();
  TVM_API_END();
}

int TVMObjectTypeKey2Index(const char* type_key, unsigned* out_tindex) {
  TVM_API_BEGIN();
  *out_tindex = Object::TypeKey2Index(type_key);
  TVM_API_END();
}

int TVMObjectTypeIndex2Key(unsigned tindex, char** out_type_key) {
  TVM_API_BEGIN();
  std::string key = Object::TypeIndex2Key(tindex);
  if (key.empty()) ThrowValueError("no object type has index ", tindex);
  *out_type_key = strdup(key.c_str());
  TVM_API_END();
}

int TVMObjectRetain(TVMObjectHandle obj) {
  TVM_API_BEGIN();
  static_cast<Object*>(obj)->IncRef();
  TVM_API_END();
}

int TVMObjectFree(TVMObjectHandle obj) {
  TVM_API_BEGIN();
  if (obj != nullptr) static_cast<Object*>(obj)->DecRef();
  TVM_API_END();
}

int TVMObjectWrapForeign(void* foreign, void (*fin)(void*), TVMObjectHandle* out) {
  TVM_API_BEGIN();
  *out = ObjectPtr<Object>(make_object<ForeignObj>(foreign, fin)).release();
  TVM_API_END();
}

void* TVMObjectUnwrapForeign(TVMObjectHandle obj, void (*fin)(void*)) {
  auto* object = static_cast<Object*>(obj);
  if (object == nullptr || object->type_index() != kRuntimeForeign) return nullptr;
  auto* foreign = static_cast<ForeignObj*>(object);
  return foreign->fin == fin ? foreign->foreign : nullptr;
}
