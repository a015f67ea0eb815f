// Arrays as bytes.
//
// array: u64 magic, u64 0, device (i32, i32), i32 ndim, dtype (u8, u8, u16), i64 shape[ndim], i64 bytes, data
// list:  u64 magic, u64 0, u64 count, names, u64 count, arrays
#ifndef TVM_SRC_PARAMS_H_
#define TVM_SRC_PARAMS_H_

#include <tvm/runtime/ndarray.h>

#include <string>
#include <utility>
#include <vector>

#include "bytes.h"

namespace tvm {
namespace runtime {

using NamedArrays = std::vector<std::pair<std::string, NDArray>>;

void SaveArray(dmlc::Stream* stream, const DLTensor& tensor);
NDArray LoadArray(ByteReader* reader);
void SaveParams(dmlc::Stream* stream, const NamedArrays& params);
NamedArrays LoadParams(ByteReader* reader);

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_PARAMS_H_
