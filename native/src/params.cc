// Reading and writing arrays.
#include "params.h"

#include <dmlc/memory_io.h>
#include <tvm/runtime/registry.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>

#include "checksum.h"
#include "write_file.h"

namespace tvm {
namespace runtime {
namespace {

constexpr uint64_t kArrayMagic = kTVMNDArrayMagic;
constexpr uint64_t kListMagic = 0xF7E58D4F05049CB7;
constexpr int kMaxDims = 64;

// The checksum after the magic number; 0 if there is none.
template <class Reader>
uint64_t ReadMagic(Reader* reader, uint64_t magic, const char* item) {
  uint64_t found = reader->template Read<uint64_t>();
  if (found != magic) {
    ThrowValueError(reader->what(), " does not hold ", item, ": it starts with ", std::hex, "0x", found,
                    ", expected 0x", magic);
  }
  return reader->template Read<uint64_t>();
}

uint64_t ValueOf(const Checksum& checksum) { return std::max<uint64_t>(checksum.Value(), 1); }

[[noreturn]] void FailChecksum(const std::string& what) {
  ThrowValueError(what, " is damaged: its checksum is wrong (TVM_CHECKSUM=0 loads it all the same)");
}

bool IsKnownType(DLDataType dtype) {
  return dtype.lanes > 0 && dtype.bits > 0 && DLDataType2String(dtype).compare(0, 7, "unknown") != 0;
}

// Numbers of any stream.
class StreamReader {
 public:
  explicit StreamReader(dmlc::Stream* stream) : stream_(stream) {}
  const std::string& what() const { return what_; }
  template <class T>
  T Read() {
    T value;
    if (!stream_->Read(&value)) ThrowValueError(what_, " is truncated");
    return value;
  }

 private:
  dmlc::Stream* stream_;
  std::string what_{"the stream"};
};

class ChecksumStream : public dmlc::Stream {
 public:
  size_t Read(void*, size_t) override { return 0; }
  void Write(const void* data, size_t size) override { checksum_.Add(data, size); }
  const Checksum& checksum() const { return checksum_; }

 private:
  Checksum checksum_;
};

class FileStream : public dmlc::Stream {
 public:
  explicit FileStream(int descriptor) : descriptor_(descriptor) {}
  size_t Read(void*, size_t) override { return 0; }
  void Write(const void* data, size_t size) override {
    const char* at = static_cast<const char*>(data);
    while (size > 0) {
      ssize_t written = write(descriptor_, at, size);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) throw Error(Cat("OSError: cannot write the params: ", std::strerror(errno)));
      at += written;
      size -= static_cast<size_t>(written);
    }
  }

 private:
  int descriptor_;
};

// The arguments (name, array, name, array, ...), or a map of them, from number `first` on.
NamedArrays ReadNamedArrays(TVMArgs args, int first) {
  NamedArrays params;
  if (args.num_args == first + 1) {
    for (const auto& param : args[first].AsObjectRef<Map<String, NDArray>>()) params.emplace_back(param.first, param.second);
    return params;
  }
  for (int i = first; i + 1 < args.num_args; i += 2) {
    params.emplace_back(args[i].operator std::string(), args[i + 1].operator NDArray());
    if (!params.back().second.defined()) ThrowTypeError("parameter '", params.back().first, "' needs an NDArray, got None");
  }
  return params;
}

// What stands before the data of an array.
size_t HeaderBytes(int ndim) { return 40 + sizeof(int64_t) * static_cast<size_t>(ndim); }

bool IsAligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % kDataAlignment == 0; }

Map<String, NDArray> AsMap(const NamedArrays& params) {
  Map<String, NDArray> map;
  for (const auto& param : params) map.Set(param.first, param.second);
  return map;
}

struct ArrayHeader {
  uint64_t checksum{0};
  DLDevice device{kDLCPU, 0};
  DLDataType dtype;
  std::vector<int64_t> shape;
  size_t nbytes;
};

// What stands between the checksum and the data.
std::string FieldsOf(const ArrayHeader& header) {
  std::string bytes;
  dmlc::MemoryStringStream memory(&bytes);
  dmlc::Stream* stream = &memory;
  stream->Write<int32_t>(header.device.device_type);
  stream->Write<int32_t>(header.device.device_id);
  stream->Write<int32_t>(static_cast<int32_t>(header.shape.size()));
  stream->Write<uint8_t>(header.dtype.code);
  stream->Write<uint8_t>(header.dtype.bits);
  stream->Write<uint16_t>(header.dtype.lanes);
  stream->Write(header.shape.data(), sizeof(int64_t) * header.shape.size());
  stream->Write<int64_t>(static_cast<int64_t>(header.nbytes));
  return bytes;
}

// All before the data.
std::string HeaderOf(const ArrayHeader& header) {
  std::string fields = FieldsOf(header);
  std::string bytes(2 * sizeof(uint64_t), '\0');
  std::memcpy(&bytes[0], &kArrayMagic, sizeof(uint64_t));
  std::memcpy(&bytes[sizeof(uint64_t)], &header.checksum, sizeof(uint64_t));
  return bytes + fields;
}

// Compact and from the host, whatever device it comes from.
void WriteData(dmlc::Stream* stream, const DLTensor& tensor) {
  size_t nbytes = DataBytes(tensor);
  if (tensor.device.device_type == kDLCPU && IsContiguous(tensor)) {
    stream->Write(static_cast<char*>(tensor.data) + tensor.byte_offset, nbytes);
    return;
  }
  std::vector<int64_t> shape(tensor.shape, tensor.shape + tensor.ndim);
  NDArray host = NDArray::Empty(shape, tensor.dtype, DLDevice{kDLCPU, 0});
  host.CopyFrom(&tensor);
  stream->Write(host->data, nbytes);
}

std::string HeaderOf(const DLTensor& tensor) {
  ArrayHeader header;
  header.dtype = tensor.dtype;
  header.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  header.nbytes = DataBytes(tensor);
  std::string fields = FieldsOf(header);
  ChecksumStream stream;
  stream.Write(fields.data(), fields.size());
  WriteData(&stream, tensor);
  header.checksum = ValueOf(stream.checksum());
  return HeaderOf(header);
}

template <class Reader>
ArrayHeader ReadArrayHeader(Reader* reader) {
  ArrayHeader header;
  header.checksum = ReadMagic(reader, kArrayMagic, "an array here");
  int32_t device_type = reader->template Read<int32_t>();
  header.device.device_id = reader->template Read<int32_t>();
  if (device_type != kDLCPU) ThrowValueError(reader->what(), " holds an array of device type ", device_type, ", expected cpu");
  int32_t ndim = reader->template Read<int32_t>();
  if (ndim < 0 || ndim > kMaxDims) ThrowValueError(reader->what(), " is corrupt: an array with ", ndim, " dimensions");
  header.dtype = reader->template Read<DLDataType>();
  if (!IsKnownType(header.dtype)) ThrowValueError(reader->what(), " is corrupt: an array of an unknown dtype");
  header.shape.resize(ndim);
  double expected = static_cast<double>(ElementBytes(header.dtype));
  for (int64_t& extent : header.shape) {
    extent = reader->template Read<int64_t>();
    if (extent < 0) ThrowValueError(reader->what(), " is corrupt: an array with extent ", extent);
    expected *= static_cast<double>(extent);
  }
  int64_t nbytes = reader->template Read<int64_t>();
  if (nbytes < 0 || static_cast<double>(nbytes) != expected) {
    ThrowValueError(reader->what(), " is corrupt: an array of shape ", ShapeText(header.shape.data(), ndim), " and dtype ",
                    DLDataType2String(header.dtype), " with ", nbytes, " bytes");
  }
  header.nbytes = static_cast<size_t>(nbytes);
  return header;
}

void CheckArray(const ArrayHeader& header, const void* data, const std::string& what) {
  if (header.checksum == 0) return;
  std::string fields = FieldsOf(header);
  Checksum checksum;
  checksum.Add(fields.data(), fields.size());
  checksum.Add(data, header.nbytes);
  if (ValueOf(checksum) != header.checksum) FailChecksum(what);
}

}  // namespace

bool SaveDLTensor(dmlc::Stream* stream, const DLTensor* tensor) {
  std::string header = HeaderOf(*tensor);
  stream->Write(header.data(), header.size());
  WriteData(stream, *tensor);
  return true;
}

bool NDArray::Load(dmlc::Stream* stream) {
  if (auto* reader = dynamic_cast<ByteReader*>(stream)) {
    *this = LoadArray(reader);
    return true;
  }
  StreamReader reader(stream);
  ArrayHeader header = ReadArrayHeader(&reader);
  std::vector<char> data;
  if (!dmlc::serializer::ReadBytes(stream, &data, header.nbytes)) ThrowValueError(reader.what(), " is truncated");
  if (AreChecksumsVerified()) CheckArray(header, data.data(), reader.what());
  *this = Empty(header.shape, header.dtype, DLDevice{kDLCPU, 0});
  CopyFromBytes(data.data(), data.size());
  return true;
}

void SavePadding(dmlc::Stream* stream, size_t offset, int next_ndim) {
  size_t data = offset + HeaderBytes(1) + HeaderBytes(next_ndim);
  int64_t size = static_cast<int64_t>((kDataAlignment - data % kDataAlignment) % kDataAlignment);
  const char zeros[kDataAlignment] = {};
  DLTensor padding{};
  padding.data = const_cast<char*>(zeros);
  padding.device = DLDevice{kDLCPU, 0};
  padding.ndim = 1;
  padding.dtype = DLDataType{kDLUInt, 8, 1};
  padding.shape = &size;
  SaveDLTensor(stream, &padding);
}

NDArray LoadArray(ByteReader* reader) {
  ArrayHeader header = ReadArrayHeader(reader);
  const char* data = reader->Take(header.nbytes);
  if (!reader->is_verified()) CheckArray(header, data, reader->what());
  if (reader->owner() != nullptr && IsAligned(data)) {
    return NDArray::FromMemory(const_cast<char*>(data), header.shape, header.dtype, DLDevice{kDLCPU, 0}, reader->owner());
  }
  NDArray array = NDArray::Empty(header.shape, header.dtype, DLDevice{kDLCPU, 0});
  array.CopyFromBytes(data, header.nbytes);
  return array;
}

void SaveParams(dmlc::Stream* stream, const NamedArrays& params) {
  std::string contents;
  dmlc::MemoryStringStream memory(&contents);
  dmlc::Stream* names_stream = &memory;
  std::vector<std::string> names, headers;
  for (const auto& param : params) names.push_back(param.first);
  names_stream->Write(names);
  names_stream->Write<uint64_t>(params.size());
  Checksum checksum;
  checksum.Add(contents.data(), contents.size());
  for (const auto& param : params) {
    headers.push_back(HeaderOf(*param.second.tensor()));
    checksum.Add(headers.back().data(), headers.back().size());
  }
  stream->Write<uint64_t>(kListMagic);
  stream->Write<uint64_t>(ValueOf(checksum));
  stream->Write(contents.data(), contents.size());
  for (size_t i = 0; i < params.size(); ++i) {
    stream->Write(headers[i].data(), headers[i].size());
    WriteData(stream, *params[i].second.tensor());
  }
}

NamedArrays LoadParams(ByteReader* reader) {
  uint64_t expected = ReadMagic(reader, kListMagic, "parameters");
  const char* start = reader->pos();
  std::vector<std::string> names = reader->ReadStrings();
  uint64_t count = reader->Read<uint64_t>();
  if (count != names.size()) {
    ThrowValueError(reader->what(), " is corrupt: ", names.size(), " names for ", count, " arrays");
  }
  Checksum checksum;
  checksum.Add(start, reader->pos() - start);
  NamedArrays params;
  for (std::string& name : names) {
    start = reader->pos();
    NDArray array = LoadArray(reader);
    checksum.Add(start, HeaderBytes(array->ndim));
    params.emplace_back(std::move(name), std::move(array));
  }
  if (reader->is_verified()) return params;
  if (expected != 0 && ValueOf(checksum) != expected) FailChecksum(reader->what());
  bool is_all = expected != 0 || params.empty();
  if (is_all && reader->left() != 0) ThrowValueError(reader->what(), " is damaged: ", reader->left(), " bytes too many");
  return params;
}

ByteReader ReaderOfParams(const TVMArgValue& blob, bool share) {
  const char* what = "the params blob";
  if (blob.type_code() == kTVMBytes) {
    auto* bytes = static_cast<TVMByteArray*>(blob.value().v_handle);
    return ByteReader(bytes->data, bytes->size, what);
  }
  if (blob.type_code() != kTVMNDArrayHandle) ThrowTypeError("params must be bytes, got ", ArgTypeCode2Str(blob.type_code()));
  NDArray array = blob;
  bool is_bytes = array->device.device_type == kDLCPU && ElementBytes(array->dtype) == 1 && IsContiguous(*array.tensor());
  if (!is_bytes) ThrowTypeError("params must be a compact array of bytes, got one of ", DLDataType2String(array->dtype));
  ObjectPtr<Object> owner = share ? ObjectPtr<Object>(array.container()) : nullptr;
  return ByteReader(static_cast<char*>(array->data) + array->byte_offset, DataBytes(*array.tensor()), what, owner);
}

// A map, or (name, array, name, array, ...) -> bytes
TVM_REGISTER_GLOBAL("runtime.SaveParams").set_body([](TVMArgs args, TVMRetValue* rv) {
  std::string bytes;
  dmlc::MemoryStringStream stream(&bytes);
  SaveParams(&stream, ReadNamedArrays(args, 0));
  *rv = TVMByteArray{bytes.data(), bytes.size()};
});

// (name, array, name, array, ...) -> how many bytes they take
TVM_REGISTER_GLOBAL("runtime.ParamsSize").set_body([](TVMArgs args, TVMRetValue* rv) {
  size_t size = 4 * sizeof(uint64_t);
  for (const auto& [name, array] : ReadNamedArrays(args, 0)) {
    size += sizeof(uint64_t) + name.size() + HeaderBytes(array->ndim) + DataBytes(*array.tensor());
  }
  *rv = static_cast<int64_t>(size);
});

// (array of as many bytes, name, array, name, array, ...)
TVM_REGISTER_GLOBAL("runtime.SaveParamsTo").set_body([](TVMArgs args, TVMRetValue*) {
  NDArray target = args[0];
  if (target->device.device_type != kDLCPU || !target.IsContiguous()) ThrowValueError("SaveParamsTo needs a compact array on the CPU");
  dmlc::MemoryFixedSizeStream stream(target->data, DataBytes(*target.tensor()));
  SaveParams(&stream, ReadNamedArrays(args, 1));
});

// (descriptor of an open file, name, array, name, array, ...)
TVM_REGISTER_GLOBAL("runtime.WriteParams").set_body([](TVMArgs args, TVMRetValue*) {
  FileStream stream(args[0]);
  SaveParams(&stream, ReadNamedArrays(args, 1));
});

// (map, path)
TVM_REGISTER_GLOBAL("runtime.SaveParamsToFile").set_body_typed([](Map<String, NDArray> params, std::string path) {
  std::string bytes;
  dmlc::MemoryStringStream stream(&bytes);
  SaveParams(&stream, {params.begin(), params.end()});
  WriteFile(path, bytes);
});

TVM_REGISTER_GLOBAL("runtime.LoadParamsFromFile").set_body_typed([](std::string path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(Cat("FileNotFoundError: cannot read ", path));
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ByteReader reader(bytes.data(), bytes.size(), path);
  return AsMap(LoadParams(&reader));
});

// bytes -> map; (bytes, callback, share): calls back with each name and array; shares the memory of an array of bytes
TVM_REGISTER_GLOBAL("runtime.LoadParams").set_body([](TVMArgs args, TVMRetValue* rv) {
  if (args.num_args == 1) {
    ByteReader reader = ReaderOfParams(args[0]);
    *rv = AsMap(LoadParams(&reader));
    return;
  }
  PackedFunc add = args[1];
  ByteReader reader = ReaderOfParams(args[0], args.num_args > 2 && bool(args[2]));
  for (auto& param : LoadParams(&reader)) add(param.first, param.second);
});

TVM_REGISTER_GLOBAL("tvm.relay._save_param_dict").set_body_typed([](Map<String, NDArray> params) {
  return Registry::Find("runtime.SaveParams")(params);
});
TVM_REGISTER_GLOBAL("tvm.relay._load_param_dict").set_body([](TVMArgs args, TVMRetValue* rv) {
  *rv = Registry::Find("runtime.LoadParams")(args[0]);
});

}  // namespace runtime
}  // namespace tvm
