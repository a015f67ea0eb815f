// Packed functions: checked conversions of values, ownership of results, calls into compiled code.
#include <tvm/runtime/module.h>
#include <tvm/runtime/packed_func.h>

#include <climits>

namespace tvm {
namespace runtime {

const char* ArgTypeCode2Str(int type_code) {
  switch (type_code) {
    case kTVMArgInt: return "int";
    case kDLUInt: return "uint";
    case kTVMArgFloat: return "float";
    case kTVMOpaqueHandle: return "handle";
    case kTVMNullptr: return "None";
    case kTVMDataType: return "dtype";
    case kDLDevice: return "Device";
    case kTVMDLTensorHandle: return "DLTensor";
    case kTVMObjectHandle: return "Object";
    case kTVMModuleHandle: return "Module";
    case kTVMPackedFuncHandle: return "PackedFunc";
    case kTVMStr: return "str";
    case kTVMBytes: return "bytes";
    case kTVMNDArrayHandle: return "NDArray";
    case kTVMObjectRValueRefArg: return "Object&&";
    case kTVMArgBool: return "bool";
    default: return "unknown";
  }
}

void TVMArgValue::ThrowMismatch(const std::string& expected) const {
  std::string found = ArgTypeCode2Str(type_code_);
  if (type_code_ == kTVMObjectHandle) found = ForeignTypeName(static_cast<Object*>(value_.v_handle));
  throw ArgumentError(index_, Cat("expected ", expected, ", got ", found));
}

void PackedFunc::ThrowNoBody() { ThrowTypeError("a PackedFunc that is null was called: defined() tells whether there is a function"); }

TVMArgValue::operator int64_t() const {
  if (type_code_ != kTVMArgInt && type_code_ != kTVMArgBool) ThrowMismatch("int");
  return value_.v_int64;
}

TVMArgValue::operator int() const {
  int64_t value = operator int64_t();
  if (value < INT_MIN || value > INT_MAX) {
    ThrowValueError(index_ < 0 ? "" : Cat("argument ", index_, ": "), "expected a 32-bit integer, got ", value);
  }
  return static_cast<int>(value);
}

TVMArgValue::operator bool() const {
  if (type_code_ != kTVMArgInt && type_code_ != kTVMArgBool) ThrowMismatch("bool");
  return value_.v_int64 != 0;
}

TVMArgValue::operator double() const {
  if (type_code_ == kTVMArgInt || type_code_ == kTVMArgBool) return static_cast<double>(value_.v_int64);
  if (type_code_ != kTVMArgFloat) ThrowMismatch("float");
  return value_.v_float64;
}

TVMArgValue::operator void*() const {
  if (type_code_ == kTVMNullptr) return nullptr;
  if (type_code_ != kTVMOpaqueHandle && type_code_ != kTVMDLTensorHandle && type_code_ != kTVMNDArrayHandle) {
    ThrowMismatch("handle");
  }
  return value_.v_handle;
}

TVMArgValue::operator DLTensor*() const {
  if (type_code_ == kTVMNullptr) return nullptr;
  if (type_code_ != kTVMDLTensorHandle && type_code_ != kTVMNDArrayHandle) ThrowMismatch("NDArray");
  return static_cast<DLTensor*>(value_.v_handle);
}

TVMArgValue::operator std::string() const {
  if (type_code_ == kTVMStr) return value_.v_str;
  if (type_code_ == kTVMDataType) return DLDataType2String(value_.v_type);
  if (type_code_ != kTVMBytes) ThrowMismatch("str");
  auto* bytes = static_cast<TVMByteArray*>(value_.v_handle);
  return std::string(bytes->data, bytes->size);
}

TVMArgValue::operator String() const {
  if (type_code_ == kTVMObjectHandle || type_code_ == kTVMObjectRValueRefArg) {
    ObjectRef object = operator ObjectRef();
    if (object.as<StringObj>() != nullptr) return String(ObjectPtr<Object>(object.get_mutable()));
  }
  return operator std::string();
}

TVMArgValue::operator DLDataType() const {
  if (type_code_ == kTVMStr) return String2DLDataType(operator std::string());
  if (type_code_ == kTVMNullptr) return DLDataType{kDLOpaqueHandle, 0, 0};
  if (type_code_ != kTVMDataType) ThrowMismatch("dtype");
  return value_.v_type;
}

TVMArgValue::operator DLDevice() const {
  if (type_code_ != kDLDevice) ThrowMismatch("Device");
  return value_.v_device;
}

TVMArgValue::operator NDArray() const {
  if (type_code_ == kTVMNullptr) return NDArray();
  if (type_code_ != kTVMNDArrayHandle) ThrowMismatch("NDArray");
  return NDArray::FromHandle(static_cast<TVMArrayHandle>(value_.v_handle));
}

TVMArgValue::operator ObjectRef() const {
  switch (type_code_) {
    case kTVMNullptr: return ObjectRef();
    case kTVMStr:
    case kTVMBytes: return String(operator std::string());
    case kTVMNDArrayHandle: return operator NDArray();
    case kTVMObjectRValueRefArg: return ObjectRef(ObjectPtr<Object>(*static_cast<Object**>(value_.v_handle)));
    case kTVMObjectHandle:
    case kTVMModuleHandle:
    case kTVMPackedFuncHandle: return ObjectRef(ObjectPtr<Object>(static_cast<Object*>(value_.v_handle)));
    case kTVMArgInt: return Int(value_.v_int64);
    case kTVMArgBool: return Bool(value_.v_int64 != 0);
    case kTVMArgFloat: return Float(value_.v_float64);
    default: ThrowMismatch("Object");
  }
}

TVMArgValue::operator PackedFunc() const {
  if (type_code_ == kTVMNullptr) return PackedFunc();
  if (type_code_ != kTVMPackedFuncHandle) ThrowMismatch("PackedFunc");
  return PackedFunc(ObjectPtr<PackedFuncObj>(FromHandle<PackedFuncObj>(value_.v_handle)));
}

TVMArgValue::operator Module() const {
  if (type_code_ == kTVMNullptr) return Module();
  if (type_code_ != kTVMModuleHandle) ThrowMismatch("Module");
  return Module(ObjectPtr<ModuleNode>(FromHandle<ModuleNode>(value_.v_handle)));
}

TVMArgValue TVMArgs::operator[](int i) const {
  if (i < 0 || i >= num_args) throw ArgumentError(i, Cat("it is missing, got ", num_args, " arguments"));
  return TVMArgValue(values[i], type_codes[i], i);
}

namespace {

// The code of a value that is some object, other than an array.
int ObjectTypeCode(const Object* object) {
  if (object == nullptr) return kTVMNullptr;
  if (object->type_index() == kRuntimeModule) return kTVMModuleHandle;
  return object->type_index() == kRuntimePackedFunc ? kTVMPackedFuncHandle : kTVMObjectHandle;
}

// Calls `take` with the number or truth value if the object is a box; whether it is one.
template <class F>
bool Unbox(const Object* object, F take) {
  if (object == nullptr || object->type_index() < kStaticIndexEnd) return false;
  if (object->type_index() == TypeIndexOf<PrimitiveNode<int64_t>>()) {
    take(static_cast<const PrimitiveNode<int64_t>*>(object)->value);
  } else if (object->type_index() == TypeIndexOf<PrimitiveNode<bool>>()) {
    take(static_cast<const PrimitiveNode<bool>*>(object)->value);
  } else if (object->type_index() == TypeIndexOf<PrimitiveNode<double>>()) {
    take(static_cast<const PrimitiveNode<double>*>(object)->value);
  } else {
    return false;
  }
  return true;
}

}  // namespace

void TVMArgsSetter::operator()(size_t i, const ObjectRef& value) const {
  const Object* object = value.get();
  if (Unbox(object, [&](auto number) { (*this)(i, number); })) return;
  if (object != nullptr && object->type_index() == kRuntimeNDArray) {
    Handle(i, &static_cast<NDArrayObj*>(value.get_mutable())->dl_tensor, kTVMNDArrayHandle);
  } else if (object != nullptr && object->type_index() == kRuntimeString) {
    (*this)(i, static_cast<const StringObj*>(object)->data);
  } else {
    Ref(i, value, ObjectTypeCode(object));
  }
}

void TVMArgsSetter::operator()(size_t i, const Module& value) const { Ref(i, value, kTVMModuleHandle); }

TVMRetValue& TVMRetValue::operator=(std::string value) {
  SetText(kTVMStr, std::move(value));
  return *this;
}

TVMRetValue& TVMRetValue::operator=(const TVMByteArray& value) {
  SetText(kTVMBytes, std::string(value.data, value.size));
  return *this;
}

TVMRetValue& TVMRetValue::operator=(NDArray value) {
  Clear();
  if (value.defined()) {
    value_.v_handle = NDArray::ReleaseHandle(std::move(value));
    type_code_ = kTVMNDArrayHandle;
  }
  return *this;
}

TVMRetValue& TVMRetValue::operator=(Module value) {
  SetObject(kTVMModuleHandle, ObjectPtr<Object>(value.get_mutable()));
  return *this;
}

TVMRetValue& TVMRetValue::operator=(PackedFunc value) {
  SetObject(kTVMPackedFuncHandle, ObjectPtr<Object>(value.get_mutable()));
  return *this;
}

TVMRetValue& TVMRetValue::operator=(const ObjectRef& value) {
  const Object* object = value.get();
  if (Unbox(object, [&](auto number) { *this = number; })) return *this;
  if (object != nullptr && object->type_index() == kRuntimeNDArray) {
    return *this = NDArray(ObjectPtr<NDArrayObj>(static_cast<NDArrayObj*>(value.get_mutable())));
  }
  if (object != nullptr && object->type_index() == kRuntimeString) {
    return *this = static_cast<const StringObj*>(object)->text();
  }
  SetObject(ObjectTypeCode(object), ObjectPtr<Object>(value.get_mutable()));
  return *this;
}

void TVMRetValue::SetObject(int type_code, ObjectPtr<Object> object) {
  Clear();
  if (object == nullptr) return;
  value_.v_handle = object.release();
  type_code_ = type_code;
}

void TVMRetValue::SetText(int type_code, std::string text) {
  Clear();
  text_ = new Text{std::move(text), {}};
  text_->view = TVMByteArray{text_->data.data(), text_->data.size()};
  type_code_ = type_code;
  if (type_code == kTVMStr) {
    value_.v_str = text_->data.c_str();
  } else {
    value_.v_handle = &text_->view;
  }
}

void TVMRetValue::Clear() {
  switch (type_code_) {
    case kTVMStr:
    case kTVMBytes: delete text_; break;
    case kTVMNDArrayHandle: NDArray::ContainerOf(static_cast<TVMArrayHandle>(value_.v_handle))->DecRef(); break;
    case kTVMObjectHandle:
    case kTVMModuleHandle:
    case kTVMPackedFuncHandle: static_cast<Object*>(value_.v_handle)->DecRef(); break;
    default: break;
  }
  text_ = nullptr;
  type_code_ = kTVMNullptr;
  value_.v_handle = nullptr;
}

void TVMRetValue::Assign(TVMValue value, int type_code) {
  TVMArgValue source(value, type_code);
  switch (type_code) {
    case kTVMStr:
    case kTVMBytes: SetText(type_code, source); break;
    case kTVMNDArrayHandle: *this = NDArray(source); break;
    case kTVMObjectRValueRefArg: *this = ObjectRef(source); break;
    case kTVMObjectHandle:
    case kTVMModuleHandle:
    case kTVMPackedFuncHandle: SetObject(type_code, ObjectPtr<Object>(static_cast<Object*>(value.v_handle))); break;
    default:
      Clear();
      value_ = value;
      type_code_ = type_code;
  }
}

void TVMRetValue::MoveToCHost(TVMValue* value, int* type_code) {
  *value = value_;
  *type_code = type_code_;
  if (text_ == nullptr) type_code_ = kTVMNullptr;
}

TVMRetValue TVMRetValue::MoveFromCHost(TVMValue value, int type_code) {
  TVMRetValue result;
  if (type_code == kTVMStr || type_code == kTVMBytes) {
    result.Assign(value, type_code);  // the text stays with compiled code
  } else {
    result.value_ = value;
    result.type_code_ = type_code;
  }
  return result;
}

namespace {

class CompiledFunc : public PackedFuncObj {
 public:
  CompiledFunc(TVMBackendPackedCFunc address, ObjectPtr<Object> owner) : owner_(std::move(owner)) {
    direct = address;
    caller = [](PackedFuncObj* self, TVMArgs args, TVMRetValue* rv) {
      TVMValue value;
      value.v_handle = nullptr;
      int type_code = kTVMNullptr;
      int rc = self->direct(const_cast<TVMValue*>(args.values), const_cast<int*>(args.type_codes), args.num_args,
                            &value, &type_code, nullptr);
      if (rc != 0) ThrowLastError();
      if (type_code != kTVMNullptr) *rv = TVMRetValue::MoveFromCHost(value, type_code);
    };
  }

 private:
  ObjectPtr<Object> owner_;
};

}  // namespace

PackedFunc WrapPackedCFunc(TVMBackendPackedCFunc address, ObjectPtr<Object> owner) {
  return PackedFunc(ObjectPtr<PackedFuncObj>(make_object<CompiledFunc>(address, std::move(owner))));
}

}  // namespace runtime
}  // namespace tvm
