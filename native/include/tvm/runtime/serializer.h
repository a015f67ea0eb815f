// Data types and devices in streams: as they lie in memory, which dmlc/io.h does for them as for all plain structures.
#ifndef TVM_RUNTIME_SERIALIZER_H_
#define TVM_RUNTIME_SERIALIZER_H_

#include <dmlc/io.h>
#include <tvm/runtime/data_type.h>

namespace dmlc {
namespace serializer {

template <>
struct Handler<tvm::runtime::DataType> {
  static void Write(Stream* stream, const tvm::runtime::DataType& type) { stream->Write<DLDataType>(type); }
  static bool Read(Stream* stream, tvm::runtime::DataType* type) {
    DLDataType plain;
    if (!stream->Read(&plain)) return false;
    *type = plain;
    return true;
  }
};

}  // namespace serializer
}  // namespace dmlc
#endif  // TVM_RUNTIME_SERIALIZER_H_
