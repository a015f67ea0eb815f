// Type keys of objects, and the C interface to references.
#include <tvm/runtime/error.h>
#include <tvm/runtime/object.h>
#include <tvm/runtime/registry.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "fork.h"

namespace tvm {
namespace runtime {
namespace {

struct TypeTable {
  ForkMutex mutex;
  std::vector<std::string> keys;
  std::vector<uint32_t> parents;  // of every index; a plain object's is its own
  std::map<std::string, uint32_t> indices;

  TypeTable() : keys(kStaticIndexEnd), parents(kStaticIndexEnd, kRuntimeObject) {
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
  uint32_t Find(const std::string& key) {
    auto [it, inserted] = indices.try_emplace(key, static_cast<uint32_t>(keys.size()));
    if (inserted) {
      keys.push_back(key);
      parents.push_back(kRuntimeObject);
    }
    return it->second;
  }
  static TypeTable& Global() {
    static auto* table = new TypeTable();
    return *table;
  }
};

}  // namespace

uint32_t Object::TypeKey2Index(const std::string& key) {
  TypeTable& table = TypeTable::Global();
  std::lock_guard<ForkMutex> lock(table.mutex);
  return table.Find(key);
}

uint32_t Object::DeclareType(const char* key, uint32_t parent) {
  TypeTable& table = TypeTable::Global();
  std::lock_guard<ForkMutex> lock(table.mutex);
  uint32_t index = table.Find(key);
  if (index != kRuntimeObject) table.parents[index] = parent;
  return index;
}

bool Object::IsDerived(uint32_t index, uint32_t ancestor) {
  TypeTable& table = TypeTable::Global();
  std::lock_guard<ForkMutex> lock(table.mutex);
  while (index != ancestor && index != kRuntimeObject && index < table.parents.size()) index = table.parents[index];
  return index == ancestor;
}

namespace {
std::atomic<const char* (*)(void*)> foreign_type_name{nullptr};
}

std::string ForeignTypeName(const Object* object) {
  if (object == nullptr) return "None";
  auto name = foreign_type_name.load();
  if (object->type_index() != kRuntimeForeign || name == nullptr) return object->GetTypeKey();
  return name(static_cast<const ForeignObj*>(object)->foreign);
}

void ThrowBadDowncast(const Object* found, uint32_t expected) {
  ThrowTypeError("expected ", Object::TypeIndex2Key(expected), ", got ", ForeignTypeName(found));
}

void ThrowNullReference(const char* expected) { ThrowTypeError("expected ", expected, ", got None"); }

std::string Object::TypeIndex2Key(uint32_t index) {
  TypeTable& table = TypeTable::Global();
  std::lock_guard<ForkMutex> lock(table.mutex);
  return index < table.keys.size() ? table.keys[index] : "";
}

}  // namespace runtime
}  // namespace tvm

using namespace tvm::runtime;

// One line on stderr for every kind that has at least `min_children` kinds right below it.
TVM_REGISTER_GLOBAL("runtime.DumpTypeTable").set_body_typed([](int64_t min_children) {
  TypeTable& table = TypeTable::Global();
  std::lock_guard<ForkMutex> lock(table.mutex);
  std::vector<int64_t> children(table.keys.size());
  for (size_t i = 0; i < table.keys.size(); ++i) {
    if (!table.keys[i].empty() && i != kRuntimeObject) ++children[table.parents[i]];
  }
  for (size_t i = 0; i < table.keys.size(); ++i) {
    if (table.keys[i].empty() || children[i] < min_children) continue;
    std::fprintf(stderr, "[%zu] %s parent=%s children=%lld\n", i, table.keys[i].c_str(),
                 table.keys[table.parents[i]].c_str(), static_cast<long long>(children[i]));
  }
});

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

int TVMObjectDerivedFrom(uint32_t child_type_index, uint32_t parent_type_index, int* is_derived) {
  TVM_API_BEGIN();
  *is_derived = child_type_index == parent_type_index || Object::IsDerived(child_type_index, parent_type_index);
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

int TVMObjectSetForeignNamer(const char* (*type_name)(void*)) {
  foreign_type_name = type_name;
  return 0;
}

void* TVMObjectUnwrapForeign(TVMObjectHandle obj, void (*fin)(void*)) {
  auto* object = static_cast<Object*>(obj);
  if (object == nullptr || object->type_index() != kRuntimeForeign) return nullptr;
  auto* foreign = static_cast<ForeignObj*>(object);
  return foreign->fin == fin ? foreign->foreign : nullptr;
}
