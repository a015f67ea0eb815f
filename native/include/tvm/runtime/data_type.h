// Data types: their text, size and comparison.
#ifndef TVM_RUNTIME_DATA_TYPE_H_
#define TVM_RUNTIME_DATA_TYPE_H_

#include <tvm/runtime/c_runtime_api.h>

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

// Bytes of one element.
inline size_t ElementBytes(DLDataType type) {
  return (static_cast<size_t>(type.bits) * type.lanes + 7) / 8;
}

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_RUNTIME_DATA_TYPE_H_
