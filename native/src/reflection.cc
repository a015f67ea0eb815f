// Attributes of native objects for other languages: list, read, and objects from their attributes.
#include <tvm/node/reflection.h>
#include <tvm/runtime/registry.h>

#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "fork.h"

namespace tvm {
namespace {

using namespace runtime;

struct Kind {
  ReflectionVTable::VisitAttrs visit;
  ReflectionVTable::Create create;
};

struct Kinds {
  ForkMutex mutex;
  std::map<uint32_t, Kind> by_index;
  static Kinds& Global() {
    static auto* kinds = new Kinds();
    return *kinds;
  }
};

Kind KindOf(uint32_t index) {
  Kinds& kinds = Kinds::Global();
  std::lock_guard<ForkMutex> lock(kinds.mutex);
  auto it = kinds.by_index.find(index);
  return it == kinds.by_index.end() ? Kind{nullptr, nullptr} : it->second;
}

// Calls a function with each name, and with the value if it is that of `wanted`.
class Reader : public AttrVisitor {
 public:
  explicit Reader(std::string wanted) : wanted_(std::move(wanted)) {}
  void Visit(const char* key, double* value) final { Take(key, *value); }
  void Visit(const char* key, int64_t* value) final { Take(key, *value); }
  void Visit(const char* key, uint64_t* value) final { Take(key, *value); }
  void Visit(const char* key, int* value) final { Take(key, *value); }
  void Visit(const char* key, bool* value) final { Take(key, *value); }
  void Visit(const char* key, std::string* value) final { Take(key, *value); }
  void Visit(const char* key, void** value) final { Take(key, *value); }
  void Visit(const char* key, DLDataType* value) final { Take(key, *value); }
  void Visit(const char* key, NDArray* value) final { Take(key, *value); }
  void Visit(const char* key, ObjectRef* value) final { Take(key, *value); }

  std::vector<std::string> names;
  TVMRetValue value;
  bool found{false};

 private:
  template <class T>
  void Take(const char* key, const T& field) {
    names.push_back(key);
    if (wanted_ != key) return;
    value = field;
    found = true;
  }
  std::string wanted_;
};

class Writer : public AttrVisitor {
 public:
  explicit Writer(std::map<std::string, TVMRetValue> values) : values_(std::move(values)) {}
  void Visit(const char* key, double* value) final { *value = Give(key); }
  void Visit(const char* key, int64_t* value) final { *value = Give(key); }
  void Visit(const char* key, uint64_t* value) final { *value = Give(key); }
  void Visit(const char* key, int* value) final { *value = Give(key); }
  void Visit(const char* key, bool* value) final { *value = Give(key); }
  void Visit(const char* key, std::string* value) final { *value = Give(key).operator std::string(); }
  void Visit(const char* key, void** value) final { *value = Give(key); }
  void Visit(const char* key, DLDataType* value) final { *value = Give(key); }
  void Visit(const char* key, NDArray* value) final { *value = Give(key).operator NDArray(); }
  void Visit(const char* key, ObjectRef* value) final {
    ObjectRef given = Give(key);
    if (expected_ == kRuntimeArray || expected_ == kRuntimeMap) given = AsNativeContainer(given);
    if (given.defined() && !Object::IsDerived(given.get()->type_index(), expected_)) {
      ThrowBadDowncast(given.get(), expected_);
    }
    *value = given;
  }
  void CheckAllUsed(const std::string& type_key) const {
    if (!values_.empty()) ThrowTypeError(type_key, " has no attribute '", values_.begin()->first, "'");
  }

 private:
  TVMRetValue Give(const char* key) {
    auto it = values_.find(key);
    if (it == values_.end()) ThrowTypeError("attribute '", key, "' is missing");
    TVMRetValue value = std::move(it->second);
    values_.erase(it);
    return value;
  }
  std::map<std::string, TVMRetValue> values_;
};

Reader Read(const ObjectRef& object, const std::string& wanted) {
  if (!object.defined()) ThrowTypeError("None has no attributes");
  Reader reader(wanted);
  Kind kind = KindOf(object.get()->type_index());
  if (kind.visit != nullptr) kind.visit(object.get_mutable(), &reader);
  return reader;
}

TVM_REGISTER_GLOBAL("runtime.NodeGetAttr").set_body([](TVMArgs args, TVMRetValue* rv) {
  ObjectRef object = args[0];
  std::string name = args[1];
  Reader reader = Read(object, name);
  if (name == "type_key") {
    *rv = object.get()->GetTypeKey();
  } else if (reader.found) {
    *rv = std::move(reader.value);
  } else {
    throw Error(Cat("AttributeError: ", ForeignTypeName(object.get()), " has no attribute '", name, "'"));
  }
});

// A function of the index of a name; of -1: how many there are.
TVM_REGISTER_GLOBAL("runtime.NodeListAttrNames").set_body_typed([](ObjectRef object) {
  std::vector<std::string> names = Read(object, "").names;
  return PackedFunc([names](TVMArgs args, TVMRetValue* rv) {
    int64_t index = args[0];
    if (index < 0) {
      *rv = static_cast<int64_t>(names.size());
    } else {
      if (index >= static_cast<int64_t>(names.size())) throw Error(Cat("IndexError: there are ", names.size(), " attributes"));
      *rv = names[index];
    }
  });
});

// (type_key, name, value, name, value, ...)
TVM_REGISTER_GLOBAL("runtime.MakeNode").set_body([](TVMArgs args, TVMRetValue* rv) {
  std::string type_key = args[0];
  Kind kind = KindOf(Object::TypeKey2Index(type_key));
  if (kind.create == nullptr) ThrowTypeError(type_key, " cannot be made from its attributes");
  std::map<std::string, TVMRetValue> values;
  for (int i = 1; i + 1 < args.size(); i += 2) values[args[i]] = args[i + 1];
  Writer writer(std::move(values));
  ObjectPtr<Object> object = kind.create();
  kind.visit(object.get(), &writer);
  writer.CheckAllUsed(type_key);
  *rv = ObjectRef(object);
});

}  // namespace

uint32_t ReflectionVTable::Register(uint32_t type_index, VisitAttrs visit, Create create) {
  Kinds& kinds = Kinds::Global();
  std::lock_guard<ForkMutex> lock(kinds.mutex);
  kinds.by_index[type_index] = Kind{visit, create};
  return type_index;
}

}  // namespace tvm
