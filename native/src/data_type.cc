// Data types and their text.
#include <tvm/runtime/data_type.h>
#include <tvm/runtime/error.h>

#include <cctype>
#include <cstdlib>

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

const char* KindName(DLDataType type) {
  if (type.code == kDLUInt && type.bits == 1) return "bool";
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

DLDataType String2DLDataType(const std::string& text) {
  if (text.empty() || text == "void") return DLDataType{kDLOpaqueHandle, 0, 0};
  for (const ElementKind& kind : kKinds) {
    const std::string name = kind.name;
    if (text.compare(0, name.size(), name) != 0) continue;
    DLDataType type{kind.code, kind.default_bits, 1};
    const char* rest = text.c_str() + name.size();
    char* end = const_cast<char*>(rest);
    if (std::isdigit(static_cast<unsigned char>(*rest))) {
      type.bits = static_cast<uint8_t>(std::strtoul(rest, &end, 10));
    }
    if (*end == 'x' && std::isdigit(static_cast<unsigned char>(end[1]))) {
      type.lanes = static_cast<uint16_t>(std::strtoul(end + 1, &end, 10));
    }
    if (*end == '\0' && type.bits != 0 && type.lanes != 0) return type;
    break;
  }
  ThrowValueError("dtype requires a name such as float32, int8x4 or bool, got '", text, "'");
}

}  // namespace runtime
}  // namespace tvm
