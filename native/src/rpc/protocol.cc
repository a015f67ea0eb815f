// Packed arguments as bytes, and back.
#include "protocol.h"

#include <tvm/runtime/ndarray.h>

#include <algorithm>

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

constexpr size_t kBorrowBytes = size_t{16} << 10;
constexpr size_t kGrowthBytes = size_t{16} << 20;
constexpr int kMaxDimensions = 256;

[[noreturn]] void ThrowBadPacket(const std::string& what) { ThrowValueError("a message of RPC ", what); }

}  // namespace

void PacketWriter::PutText(const char* data, size_t size) {
  Put<uint64_t>(size);
  if (size < kBorrowBytes) return PutBytes(data, size);
  borrowed_.push_back({buffer_.size(), {data, size}});
  borrowed_bytes_ += size;
}

void PacketWriter::PutTensor(const DLTensor& tensor) {
  if (tensor.strides != nullptr && !IsContiguous(tensor)) {
    ThrowValueError("an array goes to a remote function only if it is compact, got one with strides");
  }
  Put(reinterpret_cast<uint64_t>(tensor.data));
  Put(tensor.device);
  Put<int32_t>(tensor.ndim);
  Put(tensor.dtype);
  PutBytes(tensor.shape, static_cast<size_t>(tensor.ndim) * sizeof(int64_t));
  Put<uint64_t>(tensor.byte_offset);
}

void PacketWriter::PutValue(TVMValue value, int code) {
  switch (code) {
    case kTVMArgInt:
    case kDLUInt:
    case kTVMArgFloat:
    case kTVMArgBool:
    case kTVMOpaqueHandle:
    case kTVMPackedFuncHandle:
    case kTVMModuleHandle: return Put<int64_t>(value.v_int64);
    case kTVMNullptr: return;
    case kTVMDataType:
      Put(value.v_type);
      return Put<int32_t>(0);
    case kDLDevice: return Put(value.v_device);
    case kTVMDLTensorHandle: return PutTensor(*static_cast<DLTensor*>(value.v_handle));
    case kTVMStr: return PutText(value.v_str, std::strlen(value.v_str));
    case kTVMBytes: {
      auto* bytes = static_cast<TVMByteArray*>(value.v_handle);
      return PutText(bytes->data, bytes->size);
    }
    case kTVMObjectHandle:
      Put<uint32_t>(kObjectRefIndex);
      return Put<int64_t>(value.v_int64);
    default: ThrowTypeError("RPC cannot pass a value of kind ", ArgTypeCode2Str(code));
  }
}

void PacketWriter::PutArgs(TVMArgs args) {
  Put<int32_t>(args.num_args);
  PutBytes(args.type_codes, static_cast<size_t>(args.num_args) * sizeof(int32_t));
  for (int i = 0; i < args.num_args; ++i) PutValue(args.values[i], args.type_codes[i]);
}

void PacketWriter::Send(Channel* channel, Piece tail) {
  uint64_t length = buffer_.size() - sizeof(uint64_t) + borrowed_bytes_ + tail.size;
  std::memcpy(buffer_.data(), &length, sizeof(length));
  std::vector<Piece> pieces;
  size_t from = 0;
  for (const Borrowed& each : borrowed_) {
    pieces.push_back({buffer_.data() + from, each.at - from});
    pieces.push_back(each.piece);
    from = each.at;
  }
  pieces.push_back({buffer_.data() + from, buffer_.size() - from});
  pieces.push_back(tail);
  channel->Write(pieces);
}

void PacketBody::ReadFrom(Channel* channel, uint64_t size) {
  size_ = 0;
  while (size_ < size) {
    size_t count = static_cast<size_t>(std::min<uint64_t>(size - size_, std::max(kGrowthBytes, size_)));
    if (size_ + count > capacity_) {
      void* grown = std::realloc(data_, size_ + count);
      if (grown == nullptr) ThrowError("out of memory for a message of ", size, " bytes");
      data_ = static_cast<char*>(grown);
      capacity_ = size_ + count;
    }
    channel->Read(data_ + size_, count);
    size_ += count;
  }
}

const char* PacketReader::Take(uint64_t size) {
  if (size > left()) ThrowBadPacket(Cat("is too short: ", size, " bytes wanted, ", left(), " left"));
  const char* start = pos_;
  pos_ += size;
  return start;
}

std::string PacketReader::ReadText() {
  uint64_t size = Read<uint64_t>();
  const char* data = Take(size);
  return std::string(data, size);
}

void PacketReader::CheckEnd() const {
  if (pos_ != end_) ThrowBadPacket(Cat("is too long by ", left(), " bytes"));
}

void PacketReader::ReadTensor(DLTensor* tensor, std::vector<int64_t>* shape) {
  tensor->data = reinterpret_cast<void*>(Read<uint64_t>());
  tensor->device = Read<DLDevice>();
  tensor->ndim = Read<int32_t>();
  tensor->dtype = Read<DLDataType>();
  if (tensor->ndim < 0 || tensor->ndim > kMaxDimensions) ThrowBadPacket(Cat("has an array of ", tensor->ndim, " dimensions"));
  const size_t bytes = static_cast<size_t>(tensor->ndim) * sizeof(int64_t);
  const char* extents = Take(bytes);
  shape->resize(static_cast<size_t>(tensor->ndim));
  if (bytes > 0) std::memcpy(shape->data(), extents, bytes);
  tensor->byte_offset = Read<uint64_t>();
  tensor->shape = shape->data();
  tensor->strides = nullptr;
  // the byte count must stay far from overflow, in any order of the factors
  double total = static_cast<double>(ElementBytes(tensor->dtype));
  for (int64_t extent : *shape) {
    if (extent < 0) ThrowBadPacket(Cat("has an array with the extent ", extent));
    total *= static_cast<double>(std::max<int64_t>(extent, 1));
  }
  if (total > 4e18) ThrowBadPacket("has an array that is too large");
}

void PacketReader::ReadValue(int code, TVMValue* value, DecodedArgs* into) {
  value->v_int64 = 0;
  switch (code) {
    case kTVMArgInt:
    case kDLUInt:
    case kTVMArgFloat:
    case kTVMArgBool:
    case kTVMOpaqueHandle:
    case kTVMPackedFuncHandle:
    case kTVMModuleHandle: value->v_int64 = Read<int64_t>(); return;
    case kTVMNullptr: return;
    case kTVMDataType:
      value->v_type = Read<DLDataType>();
      Take(sizeof(int32_t));
      return;
    case kDLDevice: value->v_device = Read<DLDevice>(); return;
    case kTVMDLTensorHandle: {
      into->tensors_.emplace_back();
      DecodedArgs::Tensor& decoded = into->tensors_.back();
      ReadTensor(&decoded.tensor, &decoded.shape);
      value->v_handle = &decoded.tensor;
      return;
    }
    case kTVMStr:
      into->texts_.push_back(ReadText());
      value->v_str = into->texts_.back().c_str();
      return;
    case kTVMBytes: {
      uint64_t size = Read<uint64_t>();
      into->bytes_.push_back({Take(size), static_cast<size_t>(size)});
      value->v_handle = &into->bytes_.back();
      return;
    }
    case kTVMObjectHandle: {
      uint32_t index = Read<uint32_t>();
      if (index != kObjectRefIndex) ThrowBadPacket(Cat("has an object of kind ", index, ", which RPC does not pass"));
      value->v_int64 = Read<int64_t>();
      return;
    }
    default: ThrowBadPacket(Cat("has a value of the unknown kind ", code));
  }
}

void PacketReader::ReadArgs(DecodedArgs* into) {
  const int32_t count = Read<int32_t>();
  if (count < 0 || static_cast<uint64_t>(count) > left() / sizeof(int32_t)) ThrowBadPacket(Cat("announces ", count, " arguments"));
  into->values_.resize(static_cast<size_t>(count));
  into->codes_.resize(static_cast<size_t>(count));
  const size_t bytes = static_cast<size_t>(count) * sizeof(int32_t);
  if (bytes > 0) std::memcpy(into->codes_.data(), Take(bytes), bytes);
  for (int32_t i = 0; i < count; ++i) ReadValue(into->codes_[i], &into->values_[i], into);
}

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
