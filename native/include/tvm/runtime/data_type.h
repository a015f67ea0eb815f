// Data types: their text, size and comparison.
#ifndef TVM_RUNTIME_DATA_TYPE_H_
#define TVM_RUNTIME_DATA_TYPE_H_

#include <tvm/runtime/c_runtime_api.h>

#include <functional>
#include <ostream>
#include <string>

namespace tvm {
namespace runtime {

// Element kinds beyond DLPack's, numbered as in the classic runtime.
enum ExtraTypeCode : uint8_t { kE4M3Float = 6, kE5M2Float = 7 };

TVM_DLL std::string DLDataType2String(DLDataType type);
TVM_DLL DLDataType String2DLDataType(const std::string& text);

inline bool TypeEqual(DLDataType a, DLDataType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}
inline bool TypeMatch(DLDataType type, int code, int bits, int lanes = 1) {
  return type.code == code && type.bits == bits && type.lanes == lanes;
}

// Bytes of one element.
inline size_t ElementBytes(DLDataType type) {
  return (static_cast<size_t>(type.bits) * type.lanes + 7) / 8;
}

// A DLDataType that answers questions.
class DataType {
 public:
  enum TypeCode {
    kInt = kDLInt,
    kUInt = kDLUInt,
    kFloat = kDLFloat,
    kHandle = kTVMOpaqueHandle,
    kBFloat = kDLBfloat,
    kE4M3Float = ::tvm::runtime::kE4M3Float,
    kE5M2Float = ::tvm::runtime::kE5M2Float,
    kCustomBegin = 129,
  };

  DataType() : type_(Void()) {}
  DataType(DLDataType type) : type_(type) {}  // NOLINT(*)
  // Negative lanes: -lanes times the machine's scale.
  DataType(int code, int bits, int lanes, bool is_scalable = false)
      : type_{static_cast<uint8_t>(code), static_cast<uint8_t>(bits), static_cast<uint16_t>(is_scalable ? -lanes : lanes)} {}
  operator DLDataType() const { return type_; }

  int code() const { return type_.code; }
  int bits() const { return type_.bits; }
  int bytes() const { return (bits() + 7) / 8; }
  int lanes() const { return static_cast<int16_t>(type_.lanes); }
  int vscale_factor() const { return -lanes(); }
  int get_lanes_or_vscale_factor() const { return is_scalable_vector() ? vscale_factor() : lanes(); }

  bool is_int() const { return code() == kInt; }
  bool is_uint() const { return code() == kUInt; }
  bool is_bool() const { return is_uint() && bits() == 1; }
  bool is_float() const { return code() == kFloat; }
  bool is_float16() const { return is_float() && bits() == 16; }
  bool is_bfloat16() const { return code() == kBFloat && bits() == 16; }
  bool is_e4m3_float8() const { return code() == kE4M3Float && bits() == 8; }
  bool is_e5m2_float8() const { return code() == kE5M2Float && bits() == 8; }
  bool is_float8() const { return is_e4m3_float8() || is_e5m2_float8(); }
  bool is_handle() const { return code() == kHandle && !is_void(); }
  bool is_void() const { return code() == kHandle && bits() == 0 && lanes() == 0; }
  bool is_scalar() const { return !is_scalable_vector() && lanes() == 1; }
  bool is_scalable_vector() const { return lanes() < -1; }
  bool is_fixed_length_vector() const { return lanes() > 1; }
  bool is_scalable_or_fixed_length_vector() const { return lanes() < -1 || lanes() > 1; }
  bool is_vector() const { return lanes() > 1; }
  bool is_vector_bool() const { return is_scalable_or_fixed_length_vector() && bits() == 1; }

  DataType with_lanes(int lanes) const { return DataType(code(), bits(), lanes); }
  DataType with_scalable_vscale_factor(int factor) const { return DataType(code(), bits(), factor, true); }
  DataType with_bits(int bits) const { return DataType(DLDataType{type_.code, static_cast<uint8_t>(bits), type_.lanes}); }
  DataType element_of() const { return with_lanes(1); }

  bool operator==(const DataType& other) const { return TypeEqual(type_, other.type_); }
  bool operator!=(const DataType& other) const { return !(*this == other); }
  bool operator==(const DLDataType& other) const { return TypeEqual(type_, other); }
  bool operator!=(const DLDataType& other) const { return !(*this == other); }

  static DataType Int(int bits, int lanes = 1) { return DataType(kInt, bits, lanes); }
  static DataType UInt(int bits, int lanes = 1, bool is_scalable = false) { return DataType(kUInt, bits, lanes, is_scalable); }
  static DataType Float(int bits, int lanes = 1) { return DataType(kFloat, bits, lanes); }
  static DataType BFloat(int bits, int lanes = 1) { return DataType(kBFloat, bits, lanes); }
  static DataType NVFloat8E4M3(int lanes = 1) { return DataType(kE4M3Float, 8, lanes); }
  static DataType NVFloat8E5M2(int lanes = 1) { return DataType(kE5M2Float, 8, lanes); }
  static DataType Bool(int lanes = 1, bool is_scalable = false) { return UInt(1, lanes, is_scalable); }
  static DataType Handle(int bits = 64, int lanes = 1) { return DataType(kHandle, bits, lanes); }
  static DataType Void() { return DataType(kHandle, 0, 0); }
  static DataType ShapeIndex() { return Int(64); }

 private:
  DLDataType type_;
};

inline std::ostream& operator<<(std::ostream& os, const DataType& type) { return os << DLDataType2String(type); }

// Bytes of one element; a vector of bools takes whole bytes.
inline int GetVectorBytes(DataType type) {
  if (type.is_bool() || TypeMatch(type, kDLInt, 4) || TypeMatch(type, kDLUInt, 4)) return 1;
  return static_cast<int>(ElementBytes(type));
}

}  // namespace runtime
using runtime::DataType;
}  // namespace tvm

template <>
struct std::hash<tvm::runtime::DataType> {
  size_t operator()(const tvm::runtime::DataType& type) const {
    return static_cast<size_t>(type.code()) << 24 | static_cast<size_t>(type.bits()) << 16 | static_cast<uint16_t>(type.lanes());
  }
};
#endif  // TVM_RUNTIME_DATA_TYPE_H_
