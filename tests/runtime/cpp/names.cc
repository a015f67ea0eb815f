// Functions, arrays, data types, devices and modules, used as programs for the classic release use them.
#include <dlpack/dlpack.h>
#include <dmlc/logging.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/data_type.h>
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>

#include <cstdio>
#include <cstring>
#include <sstream>

using tvm::Device;
using tvm::runtime::ADT;
using tvm::runtime::Array;
using tvm::runtime::DataType;
using tvm::runtime::DeviceAPI;
using tvm::runtime::Map;
using tvm::runtime::Module;
using tvm::runtime::ModuleNode;
using tvm::runtime::NDArray;
using tvm::runtime::NullOpt;
using tvm::runtime::ObjectPtr;
using tvm::runtime::ObjectRef;
using tvm::runtime::Optional;
using tvm::runtime::PackedFunc;
using tvm::runtime::Registry;
using tvm::runtime::ShapeTuple;
using tvm::runtime::String;
using tvm::runtime::TVMArgs;
using tvm::runtime::TVMArgValue;
using tvm::runtime::TVMRetValue;
using tvm::runtime::TypedPackedFunc;

template <class F>
std::string ErrorOf(F f) {
  try {
    f();
  } catch (const tvm::runtime::Error& e) {
    return e.what();
  }
  return "none";
}

void UseDataTypes() {
  DataType f32 = DataType::Float(32);
  DLDataType plain = f32;
  DataType back = plain, parsed = tvm::runtime::String2DLDataType("int8x4");
  ICHECK(f32.is_float() && f32.code() == DataType::kFloat && f32.bits() == 32 && f32.lanes() == 1 && f32.bytes() == 4 && f32.is_scalar());
  ICHECK(back == f32 && f32 == plain && f32 != parsed && !(f32 != plain));
  ICHECK(parsed.is_int() && parsed.is_vector() && parsed.is_fixed_length_vector() && parsed.lanes() == 4 && parsed.element_of() == DataType::Int(8));
  ICHECK(DataType::UInt(1).is_bool() && DataType::Bool(4).is_vector_bool() && DataType::UInt(8).is_uint());
  ICHECK(DataType::Float(16).is_float16() && DataType::BFloat(16).is_bfloat16());
  ICHECK(DataType::NVFloat8E4M3().is_float8() && DataType::NVFloat8E4M3().is_e4m3_float8() && DataType::NVFloat8E5M2().is_e5m2_float8());
  ICHECK(DataType::Handle().is_handle() && DataType::Void().is_void() && DataType().is_void() && !DataType::Void().is_handle());
  ICHECK(f32.with_lanes(8).with_bits(16) == DataType(kDLFloat, 16, 8) && DataType::ShapeIndex() == DataType::Int(64));
  DataType scalable = f32.with_scalable_vscale_factor(4);
  ICHECK(scalable.is_scalable_vector() && scalable.vscale_factor() == 4 && scalable.get_lanes_or_vscale_factor() == 4);
  ICHECK(scalable.is_scalable_or_fixed_length_vector() && !scalable.is_scalar());
  std::ostringstream os;
  os << parsed;
  ICHECK_EQ(os.str(), "int8x4");
  ICHECK_EQ(tvm::runtime::GetVectorBytes(parsed), 4);
  ICHECK(tvm::runtime::TypeMatch(f32, kDLFloat, 32) && tvm::runtime::TypeEqual(f32, plain));
  ICHECK_EQ(std::hash<DataType>()(f32), std::hash<DataType>()(back));
  ICHECK_EQ(tvm::runtime::DLDataType2String(DataType::BFloat(16)), "bfloat16");
}

void UseArrays() {
  Device cpu{kDLCPU, 0};
  NDArray a = NDArray::Empty({2, 3}, DataType::Float(32), cpu);
  NDArray b = NDArray::Empty(ShapeTuple({2, 3}), DLDataType{kDLFloat, 32, 1}, cpu, NullOpt);
  NDArray c = NDArray::Empty({6}, a.DataType(), a->device, String("global"));
  ICHECK(ErrorOf([&] { NDArray::Empty({6}, a->dtype, cpu, String("global.texture")); }).find("no memory of scope 'global.texture'") != std::string::npos);
  std::vector<float> values{0, 1, 2, 3, 4, 5};
  a.CopyFromBytes(values.data(), values.size() * sizeof(float));
  a.CopyTo(b);
  c = b.CreateView({6}, b.DataType());
  b.CopyFrom(a);
  ICHECK(a.Shape() == ShapeTuple({2, 3}) && a.Shape()->size == 2 && a.Shape()[1] == 3 && a->ndim == 2);
  ICHECK(a.DataType().is_float() && a.DataType() == DataType::Float(32) && a.IsContiguous());
  ICHECK_EQ(static_cast<float*>(c->data)[5], 5);
  NDArray view = a.CreateView(a.Shape(), a->dtype);
  ICHECK(view->data == a->data && a.use_count() == 2 && view.defined());
  NDArray copy = a.CopyTo(cpu);
  NDArray again = NDArray::NewFromDLTensor(const_cast<DLTensor*>(a.operator->()), cpu);
  NDArray external = NDArray::FromExternalDLTensor(*a.operator->());
  ICHECK(external->data == a->data && copy->data != a->data && static_cast<float*>(again->data)[4] == 4);
  DLManagedTensor* managed = a.ToDLPack();
  NDArray shared = NDArray::FromDLPack(managed);
  ICHECK(shared->data == a->data);
  copy.CopyFrom(const_cast<DLTensor*>(a.operator->()));
  copy.CopyTo(const_cast<DLTensor*>(b.operator->()));
  std::vector<float> out(6);
  copy.CopyToBytes(out.data(), out.size() * sizeof(float));
  ICHECK_EQ(out[3], 3);
  ObjectRef object = a;
  ICHECK(object.as<NDArray::ContainerType>() != nullptr && tvm::runtime::Downcast<NDArray>(object).same_as(a));
  ICHECK(!NDArray().defined() && !NDArray(nullptr).defined());
}

TVM_REGISTER_GLOBAL("names.values").set_body([](TVMArgs args, TVMRetValue* rv) {
  ICHECK_EQ(args.num_args, args.size());
  int64_t i = args[0];
  double f = args[1];
  bool flag = args[2];
  String text = args[3];
  std::string same = args[3];
  DataType dtype = args[4];
  DLDevice device = args[5];
  NDArray array = args[6];
  PackedFunc f7 = args[7];
  TypedPackedFunc<int64_t(int64_t)> typed = args[7];
  Array<int64_t> list = args[8];
  void* handle = args[9];
  Optional<String> none = args[10];
  DLTensor* tensor = args[6];
  ICHECK(args.At<int>(0) == i && args.At<String>(3) == text && args[3].IsObjectRef<String>() == false);
  ICHECK(text == same && flag && f == 2.5 && dtype.is_int() && device.device_type == kDLCPU && tensor == array.operator->());
  ICHECK(typed(1) == 2 && f7 != nullptr && list.size() == 2 && handle != nullptr && none == nullptr && args[10].is_null());
  *rv = i + list[1];
});

void UseFunctions() {
  const PackedFunc* values = Registry::Get("names.values");
  ICHECK(values != nullptr);
  PackedFunc next([](TVMArgs args, TVMRetValue* rv) { *rv = args[0].operator int64_t() + 1; });
  NDArray array = NDArray::Empty({1}, DataType::Int(32), {kDLCPU, 0});
  int storage = 0;
  int64_t result = (*values)(40, 2.5, true, "text", DataType::Int(8), Device{kDLCPU, 0}, array, next, Array<int64_t>{1, 2},
                             static_cast<void*>(&storage), nullptr);
  ICHECK_EQ(result, 42);
  TVMRetValue rv;
  rv = DataType::Float(16);
  ICHECK(rv.operator DataType().is_float16());
  rv = String("s");
  ICHECK_EQ(rv.operator std::string(), "s");
  rv = Optional<String>(NullOpt);
  ICHECK(rv.is_null() && rv.type_code() == kTVMNullptr);
  rv = ADT::Tuple(String("x"));
  ICHECK_EQ(rv.AsObjectRef<ADT>().size(), 1);
  TVMValue arg;
  int code = kTVMArgInt;
  arg.v_int64 = 4;
  TVMRetValue five;
  next.CallPacked(TVMArgs(&arg, &code, 1), &five);
  ICHECK_EQ(five.operator int(), 5);
  ICHECK_EQ(std::string(tvm::runtime::ArgTypeCode2Str(kTVMNDArrayHandle)), "NDArray");
  TypedPackedFunc<void(String)> print = [](String text) { ICHECK_EQ(text, "printed"); };
  print("printed");
  ICHECK(print.packed() != nullptr && PackedFunc(nullptr) == nullptr);
  Registry::Register("names.added", true).set_body([](TVMArgs, TVMRetValue* rv) { *rv = 1; });
  bool is_listed = false;
  for (const auto& name : Registry::ListNames()) is_listed |= name == "names.added";
  ICHECK(is_listed && Registry::Remove("names.added") && Registry::Get("names.added") == nullptr);
}

class Adder final : public ModuleNode {
 public:
  explicit Adder(int64_t amount) : amount_(amount) {}
  const char* type_key() const final { return "names.adder"; }
  int GetPropertyMask() const final { return tvm::runtime::ModulePropertyMask::kRunnable; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<tvm::runtime::Object>& self) final {
    if (name != "add") return PackedFunc();
    return PackedFunc([self, this](TVMArgs args, TVMRetValue* rv) { *rv = args[0].operator int64_t() + amount_; });
  }
  String GetFormat() override { return "adder"; }
  String GetSource(const String& format) override { return "source of " + format; }

 private:
  int64_t amount_;
};

void UseNullFunctions() {
  tvm::runtime::PackedFunc missing;
  ICHECK(ErrorOf([&] { missing(1); }).find("that is null was called") != std::string::npos);
  tvm::runtime::TypedPackedFunc<int(int)> typed(missing);
  ICHECK(ErrorOf([&] { typed(1); }).find("that is null was called") != std::string::npos);
  TVMValue result;
  int code;
  ICHECK_NE(TVMFuncCall(nullptr, nullptr, nullptr, 0, &result, &code), 0);
}

void UseModules() {
  Module adder(tvm::runtime::make_object<Adder>(3)), outer(tvm::runtime::make_object<Adder>(5));
  outer.Import(adder);
  outer->ClearImports();
  outer->Import(adder);
  ICHECK(outer->imports().size() == 1 && outer->imports()[0].same_as(adder));
  ICHECK_EQ(adder.GetFunction("add")(1).operator int(), 4);
  ICHECK_EQ(outer->GetFunction("add", true)(1).operator int(), 6);
  ICHECK(outer.GetFunction("none", true) == nullptr && outer->ImplementsFunction("add", false) && outer->IsRunnable());
  ICHECK(!outer->IsBinarySerializable() && !outer->IsDSOExportable() && outer->GetFormat() == "adder");
  ICHECK_EQ(outer->GetSource("c"), "source of c");
  ICHECK_EQ(std::string(outer->type_key()), "names.adder");
  ICHECK(outer.as<ModuleNode>() != nullptr);
  ICHECK(ErrorOf([&] { outer->SaveToFile("x", "y"); }) != "none");
  ICHECK_EQ(std::string(tvm::runtime::symbol::tvm_module_main), "__tvm_main__");
}

void UseDevices() {
  Device cpu{kDLCPU, 0};
  DeviceAPI* api = DeviceAPI::Get(cpu);
  TVMRetValue exists;
  api->SetDevice(cpu);
  api->GetAttr(cpu, tvm::runtime::kExist, &exists);
  ICHECK_EQ(exists.operator int(), 1);
  int64_t shape[] = {4, 4};
  void* memory = api->AllocDataSpace(cpu, 2, shape, DataType::Float(32), NullOpt);
  api->FreeDataSpace(cpu, memory);
  void* workspace = api->AllocWorkspace(cpu, 128);
  api->FreeWorkspace(cpu, workspace);
  TVMStreamHandle stream = api->CreateStream(cpu);
  api->SetStream(cpu, stream);
  api->StreamSync(cpu, stream);
  api->SyncStreamFromTo(cpu, stream, api->GetCurrentStream(cpu));
  api->FreeStream(cpu, stream);
  ICHECK(DeviceAPI::Get(Device{kDLMetal, 0}, true) == nullptr);
  Device remote = tvm::runtime::AddRPCSessionMask(cpu, 1);
  ICHECK(tvm::runtime::IsRPCSessionDevice(remote) && tvm::runtime::GetRPCSessionIndex(remote) == 1);
  ICHECK_EQ(tvm::runtime::RemoveRPCSessionMask(remote).device_type, kDLCPU);
  ICHECK_EQ(std::string(tvm::runtime::DeviceName(kDLCPU)), "cpu");
}

void UseChecks() {
  int three = 3;
  DCHECK(three == 3) << "not three";
  DCHECK_EQ(three, 3);
  DCHECK_NE(three, 4);
  DCHECK_LT(three, 4);
  DCHECK_LE(three, 3);
  DCHECK_GT(three, 2);
  DCHECK_GE(three, 3);
  CHECK(three) << "zero";
  CHECK_EQ(three, 3);
  CHECK_LT(three, 4);
  CHECK_LE(three, 3);
  CHECK_GT(three, 2);
  CHECK_GE(three, 3);
  ICHECK_NE(three, 2) << "two";
  ICHECK_GT(three, 2);
  ICHECK_LE(three, 3);
  ICHECK_EQ(*CHECK_NOTNULL(&three), 3);
  LOG_IF(FATAL, three == 4) << "unreachable";
  DLOG(INFO) << "a debug line";
  LOG_INFO << "a line";
  LOG(WARNING) << "a warning";
#ifndef NDEBUG
  ICHECK(ErrorOf([&] { DCHECK_EQ(three, 4) << "not four"; }).find("Check failed: (three == 4)") != std::string::npos);
#endif
  ICHECK(ErrorOf([] { LOG_FATAL << "ValueError: wrong"; }).find("ValueError: wrong (names.cc:") == 0);
  try {
    ICHECK(false) << "inner";
  } catch (const tvm::runtime::InternalError& error) {
    ICHECK(std::string(error.what()).find("inner") != std::string::npos);
  }
  TVMAPISetLastError("ValueError: from C");
  ICHECK_EQ(ErrorOf([] { TVMThrowLastError(); }), "ValueError: from C");
}

int main() {
  UseDataTypes();
  UseArrays();
  UseFunctions();
  UseNullFunctions();
  UseModules();
  UseDevices();
  UseChecks();
  std::puts("all is well");
}
