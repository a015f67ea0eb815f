// Arrays: allocation, views, copies, exchange through DLPack.
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/ndarray.h>

#include <algorithm>
#include <cstring>

#include "strided_copy.h"

namespace tvm {
namespace runtime {
namespace {

// This runtime's codes are older than DLPack's for bool (uint1 here, a byte an element) and 8-bit floats.
struct CodePair {
  DLDataType here;
  DLDataType dlpack;
};
constexpr CodePair kCodePairs[] = {
    {{kDLUInt, 1, 1}, {kDLBool, 8, 1}},
    {{kE4M3Float, 8, 1}, {kDLFloat8_e4m3fn, 8, 1}},
    {{kE5M2Float, 8, 1}, {kDLFloat8_e5m2, 8, 1}},
};

// DLPack packs elements of less than a byte, which take a byte each here. Bool of old runtimes is no such type.
bool IsPacked(DLDataType type) {
  bool is_bool = type.code == kDLUInt && type.bits == 1;
  return type.bits < 8 && !is_bool;
}

DLDataType FromDLPackType(DLDataType type) {
  for (const CodePair& pair : kCodePairs) {
    if (type.code == pair.dlpack.code && type.bits == 8) return {pair.here.code, pair.here.bits, type.lanes};
  }
  if (IsPacked(type)) {
    ThrowValueError("from_dlpack needs elements of whole bytes, got ", DLDataType2String(type),
                    "; an array of that dtype is made by copyfrom, from a byte for each element");
  }
  if (type.code > kDLBfloat) {
    ThrowValueError("from_dlpack needs numbers of a known kind, got DLPack type code ", static_cast<int>(type.code));
  }
  return type;
}

DLDataType ToDLPackType(DLDataType type) {
  for (const CodePair& pair : kCodePairs) {
    if (type.code == pair.here.code && type.bits == pair.here.bits) {
      return {pair.dlpack.code, pair.dlpack.bits, type.lanes};
    }
  }
  if (IsPacked(type)) {
    ThrowValueError("to_dlpack needs elements of whole bytes, got ", DLDataType2String(type),
                    ", which takes a byte for each element here and less in DLPack; numpy() gives the values");
  }
  return type;
}

int64_t CountElements(const int64_t* shape, int ndim) {
  int64_t count = 1;
  for (int i = 0; i < ndim; ++i) count *= shape[i];
  return count;
}

void CheckShape(const std::vector<int64_t>& shape, DLDataType dtype) {
  // the byte count must stay far from overflow
  double bytes = static_cast<double>(ElementBytes(dtype));
  for (int64_t extent : shape) {
    if (extent < 0) ThrowValueError("a shape needs extents of at least 0, got ", ShapeText(shape.data(), shape.size()));
    bytes *= static_cast<double>(extent);
  }
  if (bytes > 4e18) ThrowValueError("an array of shape ", ShapeText(shape.data(), shape.size()), " is too large");
}

ObjectPtr<NDArrayObj> NewArray(const std::vector<int64_t>& shape, DLDataType dtype, DLDevice device) {
  CheckShape(shape, dtype);
  auto array = make_object<NDArrayObj>();
  array->shape = shape;
  array->dl_tensor.shape = array->shape.data();
  array->dl_tensor.ndim = static_cast<int>(shape.size());
  array->dl_tensor.dtype = dtype;
  array->dl_tensor.device = device;
  return array;
}

NDArray Allocate(const std::vector<int64_t>& shape, DLDataType dtype, DLDevice device, const Optional<String>& mem_scope) {
  auto array = NewArray(shape, dtype, device);
  DLTensor& tensor = array->dl_tensor;
  DeviceAPI* api = DeviceAPI::Get(device);
  tensor.data = mem_scope.has_value() ? api->AllocDataSpace(device, tensor.ndim, tensor.shape, dtype, mem_scope)
                                      : api->AllocDataSpace(device, DataBytes(tensor), kAllocAlignment, dtype);
  array->owns_data = true;
  return NDArray(array);
}

void CheckContiguous(const DLTensor& tensor, const char* what) {
  if (!IsContiguous(tensor)) ThrowValueError(what, " needs a contiguous array, got one with strides");
}

char* DataOf(const DLTensor& tensor) { return static_cast<char*>(tensor.data) + tensor.byte_offset; }

// The bytes as a compact tensor on the host with the extents of `like`.
DLTensor HostTensor(const DLTensor& like, const void* data, size_t nbytes) {
  if (nbytes != DataBytes(like)) ThrowValueError("the array holds ", DataBytes(like), " bytes, got ", nbytes);
  DLTensor host = like;
  host.data = const_cast<void*>(data);
  host.byte_offset = 0;
  host.strides = nullptr;
  host.device = DLDevice{kDLCPU, 0};
  return host;
}

void CopyBytesToTensor(const void* data, size_t nbytes, DLTensor* to) {
  DLTensor from = HostTensor(*to, data, nbytes);
  NDArray::CopyFromTo(&from, to);
}

void CopyTensorToBytes(const DLTensor& from, void* data, size_t nbytes) {
  DLTensor to = HostTensor(from, data, nbytes);
  NDArray::CopyFromTo(&from, &to);
  DeviceAPI::Get(from.device)->StreamSync(from.device, nullptr);
}

}  // namespace

size_t DataBytes(const DLTensor& tensor) {
  return static_cast<size_t>(CountElements(tensor.shape, tensor.ndim)) * ElementBytes(tensor.dtype);
}

bool IsContiguous(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  int64_t expected = 1;
  bool compact = true;
  for (int i = tensor.ndim - 1; i >= 0; --i) {
    if (tensor.shape[i] == 0) return true;
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) compact = false;
    expected *= tensor.shape[i];
  }
  return compact;
}

std::string ShapeText(const int64_t* shape, int ndim) {
  std::string text = "(";
  for (int i = 0; i < ndim; ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + (ndim == 1 ? ",)" : ")");
}

NDArrayObj::~NDArrayObj() {
  if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
  if (owns_data) DeviceAPI::Get(dl_tensor.device)->FreeDataSpace(dl_tensor.device, dl_tensor.data);
}

NDArray NDArray::Empty(const ShapeTuple& shape, DLDataType dtype, DLDevice device, const Optional<String>& mem_scope) {
  return Allocate({shape.begin(), shape.end()}, dtype, device, mem_scope);
}

NDArray NDArray::FromMemory(void* data, const std::vector<int64_t>& shape, DLDataType dtype, DLDevice device,
                            ObjectPtr<Object> base) {
  auto array = NewArray(shape, dtype, device);
  array->dl_tensor.data = data;
  array->base = std::move(base);
  return NDArray(array);
}

NDArray NDArray::FromDLPack(DLManagedTensor* tensor) {
  const DLTensor& source = tensor->dl_tensor;
  if (source.ndim < 0 || (source.ndim > 0 && source.shape == nullptr)) {
    ThrowValueError("from_dlpack needs a tensor with a shape, got ", source.ndim, " dimensions and none");
  }
  auto array = make_object<NDArrayObj>();
  array->shape.assign(source.shape, source.shape + source.ndim);
  array->dl_tensor = source;
  array->dl_tensor.shape = array->shape.data();
  array->dl_tensor.dtype = FromDLPackType(source.dtype);
  array->dl_tensor.strides = nullptr;
  if (!runtime::IsContiguous(source)) {
    array->strides.assign(source.strides, source.strides + source.ndim);
    array->dl_tensor.strides = array->strides.data();
  }
  // frameworks disagree on whether views use the offset; compiled code is given none
  array->dl_tensor.data = static_cast<char*>(source.data) + source.byte_offset;
  array->dl_tensor.byte_offset = 0;
  array->managed = tensor;
  return NDArray(array);
}

DLManagedTensor* NDArray::ToDLPack() const {
  DLDataType type = ToDLPackType(tensor()->dtype);
  auto* managed = new DLManagedTensor();
  managed->dl_tensor = *tensor();
  managed->dl_tensor.dtype = type;
  managed->manager_ctx = ObjectPtr<NDArrayObj>(container()).release();
  managed->deleter = [](DLManagedTensor* self) {
    static_cast<NDArrayObj*>(self->manager_ctx)->DecRef();
    delete self;
  };
  return managed;
}

NDArray NDArray::FromExternalDLTensor(const DLTensor& tensor) {
  CheckContiguous(tensor, "an array over external memory");
  return FromMemory(DataOf(tensor), {tensor.shape, tensor.shape + tensor.ndim}, tensor.dtype, tensor.device, nullptr);
}

NDArray NDArray::NewFromDLTensor(DLTensor* tensor, DLDevice device) {
  NDArray copy = Allocate({tensor->shape, tensor->shape + tensor->ndim}, tensor->dtype, device, NullOpt);
  copy.CopyFrom(tensor);
  return copy;
}

NDArray NDArray::CreateView(const ShapeTuple& shape, DLDataType dtype, uint64_t relative_byte_offset) const {
  CheckContiguous(*tensor(), "a view");
  auto view = NewArray({shape.begin(), shape.end()}, dtype, tensor()->device);
  size_t available = DataBytes(*tensor());
  if (relative_byte_offset > available || DataBytes(view->dl_tensor) > available - relative_byte_offset) {
    ThrowValueError("a view of shape ", ShapeText(shape.data(), shape.size()), " and dtype ", DLDataType2String(dtype),
                    " would occupy bytes ", relative_byte_offset, " <= i_byte < ",
                    relative_byte_offset + DataBytes(view->dl_tensor), ", but the NDArray being viewed only contains ",
                    available, " bytes, of shape ", ShapeText(tensor()->shape, tensor()->ndim), " and dtype ",
                    DLDataType2String(tensor()->dtype));
  }
  const uint64_t offset = tensor()->byte_offset + relative_byte_offset;
  if (IsRPCSessionDevice(tensor()->device)) {  // whose data is no address here
    view->dl_tensor.data = tensor()->data;
    view->dl_tensor.byte_offset = offset;
  } else {
    view->dl_tensor.data = static_cast<char*>(tensor()->data) + offset;
  }
  view->base = ObjectPtr<Object>(container());
  return NDArray(view);
}

void NDArray::CopyFromTo(const DLTensor* from, DLTensor* to) {
  if (DataBytes(*from) != DataBytes(*to)) {
    ThrowValueError("a copy needs equal sizes, got ", ShapeText(from->shape, from->ndim), " ",
                    DLDataType2String(from->dtype), " to ", ShapeText(to->shape, to->ndim), " ",
                    DLDataType2String(to->dtype));
  }
  if (!runtime::IsContiguous(*from) || !runtime::IsContiguous(*to)) return CopyStrided(*from, *to);
  DLDevice device = from->device.device_type != kDLCPU ? from->device : to->device;
  DeviceAPI::Get(device)->CopyDataFromTo(const_cast<DLTensor*>(from), to, nullptr);
}

void NDArray::CopyFromBytes(const void* data, size_t nbytes) { CopyBytesToTensor(data, nbytes, tensor()); }
void NDArray::CopyToBytes(void* data, size_t nbytes) const { CopyTensorToBytes(*tensor(), data, nbytes); }
void NDArray::CopyFrom(const DLTensor* other) { CopyFromTo(other, tensor()); }
void NDArray::CopyTo(DLTensor* other) const { CopyFromTo(tensor(), other); }

NDArray NDArray::CopyTo(DLDevice device, const Optional<String>& mem_scope) const {
  NDArray copy = Allocate(extents(), tensor()->dtype, device, mem_scope);
  CopyTo(copy);
  return copy;
}

NDArrayObj* NDArray::ContainerOf(TVMArrayHandle handle) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
  constexpr size_t offset = offsetof(NDArrayObj, dl_tensor);
#pragma GCC diagnostic pop
  return reinterpret_cast<NDArrayObj*>(reinterpret_cast<char*>(handle) - offset);
}

TVMArrayHandle NDArray::ReleaseHandle(NDArray array) {
  TVMArrayHandle handle = array.tensor();
  array.data_.release();
  return handle;
}

}  // namespace runtime
}  // namespace tvm

using namespace tvm::runtime;

int TVMArrayAlloc(const tvm_index_t* shape, int ndim, int dtype_code, int dtype_bits, int dtype_lanes, int device_type,
                  int device_id, TVMArrayHandle* out) {
  TVM_API_BEGIN();
  DLDataType dtype{static_cast<uint8_t>(dtype_code), static_cast<uint8_t>(dtype_bits), static_cast<uint16_t>(dtype_lanes)};
  DLDevice device{static_cast<DLDeviceType>(device_type), device_id};
  *out = NDArray::ReleaseHandle(Allocate({shape, shape + ndim}, dtype, device, NullOpt));
  TVM_API_END();
}

int TVMArrayFree(TVMArrayHandle handle) {
  TVM_API_BEGIN();
  if (handle != nullptr) NDArray::ContainerOf(handle)->DecRef();
  TVM_API_END();
}

int TVMArrayRetain(TVMArrayHandle handle) {
  TVM_API_BEGIN();
  NDArray::ContainerOf(handle)->IncRef();
  TVM_API_END();
}

int TVMArrayCopyFromBytes(TVMArrayHandle handle, void* data, size_t nbytes) {
  TVM_API_BEGIN();
  CopyBytesToTensor(data, nbytes, handle);
  TVM_API_END();
}

int TVMArrayCopyToBytes(TVMArrayHandle handle, void* data, size_t nbytes) {
  TVM_API_BEGIN();
  CopyTensorToBytes(*handle, data, nbytes);
  TVM_API_END();
}

int TVMArrayCopyFromTo(TVMArrayHandle from, TVMArrayHandle to, TVMStreamHandle) {
  TVM_API_BEGIN();
  NDArray::CopyFromTo(from, to);
  TVM_API_END();
}

int TVMArrayCreateView(TVMArrayHandle handle, const tvm_index_t* shape, int ndim, DLDataType dtype,
                       uint64_t relative_byte_offset, TVMArrayHandle* out) {
  TVM_API_BEGIN();
  NDArray array = NDArray::FromHandle(handle);
  *out = NDArray::ReleaseHandle(
      array.CreateView(ShapeTuple(shape, shape + ndim), dtype, relative_byte_offset));
  TVM_API_END();
}

int TVMArrayFromDLPack(DLManagedTensor* from, TVMArrayHandle* out) {
  TVM_API_BEGIN();
  *out = NDArray::ReleaseHandle(NDArray::FromDLPack(from));
  TVM_API_END();
}

int TVMArrayToDLPack(TVMArrayHandle from, DLManagedTensor** out) {
  TVM_API_BEGIN();
  *out = NDArray::FromHandle(from).ToDLPack();
  TVM_API_END();
}

void TVMDLManagedTensorCallDeleter(DLManagedTensor* dltensor) { dltensor->deleter(dltensor); }
