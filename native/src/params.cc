// Reading and writing arrays.
#include "params.h"

#include <dmlc/memory_io.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace runtime {
namespace {

constexpr uint64_t kArrayMagic = 0xDD5E40F096B4A13F;
constexpr uint64_t kListMagic = 0xF7E58D4F05049CB7;
constexpr int kMaxDims = 64;

void CheckMagic(ByteReader* reader, uint64_t magic, const char* item) {
  uint64_t found = reader->Read<uint64_t>();
  if (found != magic) {
    ThrowValueError(reader->what(), " does not hold ", item, ": it starts with ", std::hex, "0x", found,
                    ", expected 0x", magic);
  }
  reader->Read<uint64_t>();  // reserved
}

bool IsKnownType(DLDataType dtype) {
  return dtype.lanes > 0 && dtype.bits > 0 && DLDataType2String(dtype).compare(0, 7, "unknown") != 0;
}

}  // namespace

void SaveArray(dmlc::Stream* stream, const DLTensor& tensor) {
  if (!IsContiguous(tensor)) ThrowValueError("only compact arrays can be saved, got one with strides");
  stream->Write<uint64_t>(kArrayMagic);
  stream->Write<uint64_t>(0);
  // the data is written from the host, whatever device it comes from
  stream->Write<int32_t>(kDLCPU);
  stream->Write<int32_t>(0);
  stream->Write<int32_t>(tensor.ndim);
  stream->Write<uint8_t>(tensor.dtype.code);
  stream->Write<uint8_t>(tensor.dtype.bits);
  stream->Write<uint16_t>(tensor.dtype.lanes);
  stream->Write(tensor.shape, sizeof(int64_t) * tensor.ndim);
  size_t nbytes = DataBytes(tensor);
  stream->Write<int64_t>(static_cast<int64_t>(nbytes));
  if (tensor.device.device_type == kDLCPU) {
    stream->Write(static_cast<char*>(tensor.data) + tensor.byte_offset, nbytes);
    return;
  }
  std::vector<int64_t> shape(tensor.shape, tensor.shape + tensor.ndim);
  NDArray host = NDArray::Empty(shape, tensor.dtype, DLDevice{kDLCPU, 0});
  host.CopyFrom(&tensor);
  stream->Write(host->data, nbytes);
}

NDArray LoadArray(ByteReader* reader) {
  CheckMagic(reader, kArrayMagic, "an array here");
  int32_t device_type = reader->Read<int32_t>();
  reader->Read<int32_t>();
  if (device_type != kDLCPU) ThrowValueError(reader->what(), " holds an array of device type ", device_type, ", expected cpu");
  int32_t ndim = reader->Read<int32_t>();
  if (ndim < 0 || ndim > kMaxDims) ThrowValueError(reader->what(), " is corrupt: an array with ", ndim, " dimensions");
  DLDataType dtype;
  dtype.code = reader->Read<uint8_t>();
  dtype.bits = reader->Read<uint8_t>();
  dtype.lanes = reader->Read<uint16_t>();
  if (!IsKnownType(dtype)) ThrowValueError(reader->what(), " is corrupt: an array of an unknown dtype");
  std::vector<int64_t> shape(ndim);
  double expected = static_cast<double>(ElementBytes(dtype));
  for (int64_t& extent : shape) {
    extent = reader->Read<int64_t>();
    if (extent < 0) ThrowValueError(reader->what(), " is corrupt: an array with extent ", extent);
    expected *= static_cast<double>(extent);
  }
  int64_t nbytes = reader->Read<int64_t>();
  if (nbytes < 0 || static_cast<double>(nbytes) != expected) {
    ThrowValueError(reader->what(), " is corrupt: an array of shape ", ShapeText(shape.data(), ndim), " and dtype ",
                    DLDataType2String(dtype), " with ", nbytes, " bytes");
  }
  const char* data = reader->Take(static_cast<size_t>(nbytes));
  NDArray array = NDArray::Empty(shape, dtype, DLDevice{kDLCPU, 0});
  array.CopyFromBytes(data, static_cast<size_t>(nbytes));
  return array;
}

void SaveParams(dmlc::Stream* stream, const NamedArrays& params) {
  stream->Write<uint64_t>(kListMagic);
  stream->Write<uint64_t>(0);
  std::vector<std::string> names;
  for (const auto& param : params) names.push_back(param.first);
  stream->Write(names);
  stream->Write<uint64_t>(params.size());
  for (const auto& param : params) SaveArray(stream, *param.second.operator->());
}

NamedArrays LoadParams(ByteReader* reader) {
  CheckMagic(reader, kListMagic, "parameters");
  std::vector<std::string> names = reader->ReadStrings();
  uint64_t count = reader->Read<uint64_t>();
  if (count != names.size()) {
    ThrowValueError(reader->what(), " is corrupt: ", names.size(), " names for ", count, " arrays");
  }
  NamedArrays params;
  for (std::string& name : names) params.emplace_back(std::move(name), LoadArray(reader));
  return params;
}

// (name, array, name, array, ...) -> bytes
TVM_REGISTER_GLOBAL("runtime.SaveParams").set_body([](TVMArgs args, TVMRetValue* rv) {
  NamedArrays params;
  for (int i = 0; i + 1 < args.num_args; i += 2) params.emplace_back(args[i].operator std::string(), args[i + 1].operator NDArray());
  std::string bytes;
  dmlc::MemoryStringStream stream(&bytes);
  SaveParams(&stream, params);
  *rv = TVMByteArray{bytes.data(), bytes.size()};
});

// (bytes, callback): calls back with each name and array
TVM_REGISTER_GLOBAL("runtime.LoadParams").set_body([](TVMArgs args, TVMRetValue*) {
  if (args[0].type_code() != kTVMBytes) ThrowTypeError("params must be bytes, got ", ArgTypeCode2Str(args[0].type_code()));
  auto* bytes = static_cast<TVMByteArray*>(args[0].value().v_handle);
  PackedFunc add = args[1];
  ByteReader reader(bytes->data, bytes->size, "the params blob");
  for (auto& param : LoadParams(&reader)) add(param.first, param.second);
});

}  // namespace runtime
}  // namespace tvm
