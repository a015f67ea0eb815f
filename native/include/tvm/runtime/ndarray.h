// Arrays that own or share their memory, in DLPack layout.
#ifndef TVM_RUNTIME_NDARRAY_H_
#define TVM_RUNTIME_NDARRAY_H_

#include <tvm/runtime/container/optional.h>
#include <tvm/runtime/container/shape_tuple.h>
#include <tvm/runtime/container/string.h>
#include <tvm/runtime/data_type.h>
#include <tvm/runtime/object.h>
#include <tvm/runtime/serializer.h>

#include <vector>

namespace tvm {
namespace runtime {

// Every array that we allocate starts at a multiple of this.
constexpr size_t kAllocAlignment = 128;
// What compiled code may rely on.
constexpr size_t kDataAlignment = 64;

TVM_DLL size_t DataBytes(const DLTensor& tensor);
TVM_DLL bool IsContiguous(const DLTensor& tensor);
TVM_DLL std::string ShapeText(const int64_t* shape, int ndim);

class TVM_DLL NDArrayObj : public Object {
 public:
  static constexpr uint32_t kTypeIndex = kRuntimeNDArray;
  ~NDArrayObj();

  DLTensor dl_tensor{};
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  ObjectPtr<Object> base;              // the array or object that owns the memory of a view
  DLManagedTensor* managed{nullptr};   // the foreign tensor that owns it
  bool owns_data{false};
};

class TVM_DLL NDArray : public ObjectRef {
 public:
  using ContainerType = NDArrayObj;
  using Container = NDArrayObj;
  NDArray() = default;
  NDArray(std::nullptr_t) {}  // NOLINT(*)
  explicit NDArray(ObjectPtr<Object> data) : ObjectRef(std::move(data)) {}

  // `mem_scope` names one of the device's kinds of memory, none its usual one.
  static NDArray Empty(const ShapeTuple& shape, DLDataType dtype, DLDevice device, const Optional<String>& mem_scope = NullOpt);
  // An array over memory that `base` keeps alive.
  static NDArray FromMemory(void* data, const std::vector<int64_t>& shape, DLDataType dtype,
                            DLDevice device, ObjectPtr<Object> base);
  // An array over the tensor's memory, which must live as long.
  static NDArray FromExternalDLTensor(const DLTensor& tensor);
  // A copy of the tensor on a device.
  static NDArray NewFromDLTensor(DLTensor* tensor, DLDevice device);
  static NDArray FromDLPack(DLManagedTensor* tensor);
  DLManagedTensor* ToDLPack() const;

  NDArray CreateView(const ShapeTuple& shape, DLDataType dtype, uint64_t relative_byte_offset = 0) const;
  void CopyFromBytes(const void* data, size_t nbytes);
  void CopyToBytes(void* data, size_t nbytes) const;
  void CopyFrom(const DLTensor* other);
  void CopyFrom(const NDArray& other) { CopyFrom(other.operator->()); }
  void CopyTo(DLTensor* other) const;
  void CopyTo(const NDArray& other) const { CopyTo(other.tensor()); }
  NDArray CopyTo(DLDevice device, const Optional<String>& mem_scope = NullOpt) const;
  bool IsContiguous() const { return ::tvm::runtime::IsContiguous(*tensor()); }

  DLTensor* tensor() const {
    if (!defined()) ThrowNullReference("NDArray");
    return &container()->dl_tensor;
  }
  const DLTensor* operator->() const { return tensor(); }
  // As files of parameters hold arrays. Load raises if the stream holds none.
  void Save(dmlc::Stream* stream) const;
  bool Load(dmlc::Stream* stream);

  ShapeTuple Shape() const { return container()->shape; }
  const std::vector<int64_t>& extents() const { return container()->shape; }
  runtime::DataType DataType() const { return tensor()->dtype; }
  NDArrayObj* container() const { return static_cast<NDArrayObj*>(data_.get()); }

  // Handles are pointers to the DLTensor inside, so compiled code takes arrays and plain tensors alike.
  static NDArrayObj* ContainerOf(TVMArrayHandle handle);
  static NDArray FromHandle(TVMArrayHandle handle) {
    return NDArray(ObjectPtr<NDArrayObj>(ContainerOf(handle)));
  }
  static TVMArrayHandle ReleaseHandle(NDArray array);

  static void CopyFromTo(const DLTensor* from, DLTensor* to);
};

// What a saved array starts with.
constexpr uint64_t kTVMNDArrayMagic = 0xDD5E40F096B4A13F;
TVM_DLL bool SaveDLTensor(dmlc::Stream* stream, const DLTensor* tensor);
inline void NDArray::Save(dmlc::Stream* stream) const { SaveDLTensor(stream, operator->()); }

}  // namespace runtime

using Device = DLDevice;
using runtime::NDArray;

}  // namespace tvm
#endif  // TVM_RUNTIME_NDARRAY_H_
