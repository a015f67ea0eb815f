// Arrays as bytes.
//
// array: u64 magic, u64 checksum, device (i32, i32), i32 ndim, dtype (u8, u8, u16), i64 shape[ndim], i64 bytes, data
// list:  u64 magic, u64 checksum, u64 count, names, u64 count, arrays
//
// The checksum of an array is that of all after it; the checksum of a list is that of all after it but the data of arrays,
// which theirs stand for. The classic release writes 0, which is no checksum, and does not read the word.
#ifndef TVM_SRC_PARAMS_H_
#define TVM_SRC_PARAMS_H_

#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/packed_func.h>

#include <string>
#include <utility>
#include <vector>

#include "bytes.h"

namespace tvm {
namespace runtime {

using NamedArrays = std::vector<std::pair<std::string, NDArray>>;

// An array of zeros that lets the data of the next one, of `next_ndim` dimensions, start at a multiple of kDataAlignment
// if the padding itself is written at `offset`.
void SavePadding(dmlc::Stream* stream, size_t offset, int next_ndim);
NDArray LoadArray(ByteReader* reader);
void SaveParams(dmlc::Stream* stream, const NamedArrays& params);
NamedArrays LoadParams(ByteReader* reader);
// Reads an argument that is bytes, or an array of them, whose memory is shared if `share` is set.
ByteReader ReaderOfParams(const TVMArgValue& blob, bool share = false);

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_PARAMS_H_
