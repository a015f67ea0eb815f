// Data types and their text.
#include <tvm/runtime/data_type.h>
#include <tvm/runtime/error.h>
#include <tvm/runtime/registry.h>

#include <array>
#include <cctype>
#include <cstdlib>
#include <mutex>

#include "fork.h"

namespace tvm {
namespace runtime {
namespace {

struct ElementKind {
  const char* name;
  uint8_t code;
  uint8_t default_bits;
};

constexpr ElementKind kKinds[] = {
    {"uint", kDLUInt, 32},           {"int", kDLInt, 32},   {"bfloat", kDLBfloat, 16},
    {"float", kDLFloat, 32},         {"bool", kDLUInt, 1},  {"handle", kDLOpaqueHandle, 64},
    {"e4m3_float", kE4M3Float, 8},   {"e5m2_float", kE5M2Float, 8},
};

// The names of users' types, by their codes; a name stays as it is once it is there.
class CustomTypes {
 public:
  static constexpr int kFirstCode = 129;

  void Register(const std::string& name, int code) {
    std::lock_guard<ForkMutex> lock(mutex_);
    names_.at(code) = "custom[" + name + "]";
  }
  const char* Name(int code) {
    std::lock_guard<ForkMutex> lock(mutex_);
    return names_[code].empty() ? nullptr : names_[code].c_str();
  }
  // The code of the type that the text begins with, or 0; `length` is that of its name.
  int Find(const std::string& text, size_t* length) {
    std::lock_guard<ForkMutex> lock(mutex_);
    for (int code = kFirstCode; code < static_cast<int>(names_.size()); ++code) {
      *length = names_[code].size();
      if (*length != 0 && text.compare(0, *length, names_[code]) == 0) return code;
    }
    return 0;
  }

 private:
  ForkMutex mutex_;
  std::array<std::string, 256> names_;
};

CustomTypes& Customs() {
  static CustomTypes types;
  return types;
}

const char* KindName(DLDataType type) {
  if (type.code == kDLUInt && type.bits == 1) return "bool";
  if (type.code >= CustomTypes::kFirstCode) return Customs().Name(type.code);
  for (const ElementKind& kind : kKinds) {
    if (kind.code == type.code) return kind.name;
  }
  return nullptr;
}

}  // namespace

std::string DLDataType2String(DLDataType type) {
  if (type.code == kDLOpaqueHandle && type.bits == 0) return "void";
  const char* name = KindName(type);
  if (name == nullptr) return Cat("unknown(", int(type.code), ",", int(type.bits), ")");
  std::string text = name;
  if (text != "bool" && text != "handle") text += std::to_string(type.bits);
  if (type.lanes != 1) text += "x" + std::to_string(type.lanes);
  return text;
}

namespace {

// Reads bits and lanes behind the name of a kind; false if the text goes on otherwise.
bool ReadSize(const char* rest, DLDataType* type) {
  char* end = const_cast<char*>(rest);
  if (std::isdigit(static_cast<unsigned char>(*rest))) {
    type->bits = static_cast<uint8_t>(std::strtoul(rest, &end, 10));
  }
  if (*end == 'x' && std::isdigit(static_cast<unsigned char>(end[1]))) {
    type->lanes = static_cast<uint16_t>(std::strtoul(end + 1, &end, 10));
  }
  return *end == '\0' && type->bits != 0 && type->lanes != 0;
}

}  // namespace

DLDataType String2DLDataType(const std::string& text) {
  if (text.empty() || text == "void") return DLDataType{kDLOpaqueHandle, 0, 0};
  size_t length = 0;
  if (int code = Customs().Find(text, &length)) {
    DLDataType type{static_cast<uint8_t>(code), 0, 1};
    if (ReadSize(text.c_str() + length, &type)) return type;
  }
  for (const ElementKind& kind : kKinds) {
    const std::string name = kind.name;
    if (text.compare(0, name.size(), name) != 0) continue;
    DLDataType type{kind.code, kind.default_bits, 1};
    if (ReadSize(text.c_str() + name.size(), &type)) return type;
    break;
  }
  ThrowValueError("dtype requires a name such as float32, int8x4 or bool, got '", text, "'");
}

TVM_REGISTER_GLOBAL("runtime._datatype_register").set_body_typed([](std::string name, int code) {
  if (code < CustomTypes::kFirstCode || code > 255) {
    ThrowValueError("a custom type requires a code from 129 to 255, got ", code);
  }
  Customs().Register(name, code);
});

}  // namespace runtime
}  // namespace tvm
