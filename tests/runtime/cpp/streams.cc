// Arrays and plain values in streams; references of several kinds; closures; boxes.
#include <dmlc/io.h>
#include <dmlc/memory_io.h>
#include <tvm/runtime/container/base.h>
#include <tvm/runtime/container/boxed_primitive.h>
#include <tvm/runtime/container/closure.h>
#include <tvm/runtime/container/variant.h>
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/executor_info.h>
#include <tvm/runtime/memory.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>
#include <tvm/runtime/serializer.h>

#include <cstdio>
#include <cstring>
#include <sstream>

using namespace tvm::runtime;

template <class F>
std::string ErrorOf(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "none";
}

// A stream that cannot tell how many bytes are left.
class Pipe : public dmlc::Stream {
 public:
  using dmlc::Stream::Read;
  using dmlc::Stream::Write;
  std::string data;
  size_t at = 0;
  size_t Read(void* ptr, size_t size) override {
    size_t count = std::min(size, data.size() - at);
    std::memcpy(ptr, data.data() + at, count);
    at += count;
    return count;
  }
  void Write(const void* ptr, size_t size) override { data.append(static_cast<const char*>(ptr), size); }
};

void SaveAndLoadArrays() {
  NDArray array = NDArray::Empty({2, 3}, DataType::Int(16), {kDLCPU, 0});
  const int16_t values[] = {1, 2, 3, 4, 5, 6};
  array.CopyFromBytes(values, sizeof(values));
  NDArray scalar = NDArray::Empty({}, DataType::Float(64), {kDLCPU, 0});
  NDArray none = NDArray::Empty({0, 4}, DataType::Bool(), {kDLCPU, 0});
  Pipe stream;
  array.Save(&stream);
  scalar.Save(&stream);
  ICHECK(SaveDLTensor(&stream, none.operator->()));
  ICHECK_EQ(stream.data.size(), (40 + 16 + 12) + (40 + 8) + (40 + 16));
  uint64_t magic = 0;
  std::memcpy(&magic, stream.data.data(), sizeof(magic));
  ICHECK_EQ(magic, kTVMNDArrayMagic);
  NDArray loaded, second, third;
  ICHECK(loaded.Load(&stream) && second.Load(&stream) && third.Load(&stream));
  ICHECK(loaded.Shape() == array.Shape() && loaded.DataType() == DataType::Int(16));
  ICHECK_EQ(std::memcmp(loaded->data, values, sizeof(values)), 0);
  ICHECK(second->ndim == 0 && third.Shape() == ShapeTuple({0, 4}) && third.DataType().is_bool());
}

void RejectWhatIsNoArray() {
  NDArray array = NDArray::Empty({4}, DataType::Float(32), {kDLCPU, 0}), loaded;
  std::string whole;
  dmlc::MemoryStringStream writer(&whole);
  array.Save(&writer);
  for (size_t size = 0; size < whole.size(); ++size) {
    std::string part = whole.substr(0, size);
    dmlc::MemoryStringStream stream(&part);
    ICHECK_EQ(ErrorOf([&] { loaded.Load(&stream); }), "ValueError: the stream is truncated");
  }
  std::string text(100, 'x'), huge = whole;
  dmlc::MemoryFixedSizeStream wrong(&text[0], text.size());
  ICHECK(ErrorOf([&] { loaded.Load(&wrong); }).find("ValueError: the stream does not hold an array here") == 0);
  const int64_t extent = int64_t{1} << 44, nbytes = extent * 4;
  std::memcpy(&huge[32], &extent, 8);
  std::memcpy(&huge[40], &nbytes, 8);
  dmlc::MemoryStringStream announced(&huge);
  ICHECK_EQ(ErrorOf([&] { loaded.Load(&announced); }), "ValueError: the stream is truncated");
  ICHECK(!loaded.defined());
}

void SaveAndLoadValues() {
  Pipe stream;
  DLDevice device{kDLCUDA, 3}, device_again{kDLCPU, 0};
  DLDataType dtype = DataType::Int(8, 4);
  DataType type = DataType::Float(16), type_again;
  std::vector<std::pair<std::string, int>> pairs{{"a", 1}, {"b", 2}}, pairs_again;
  std::unordered_map<std::string, std::vector<double>> table{{"x", {0.5, 2}}}, table_again;
  stream.Write(device);
  stream.Write(dtype);
  stream.Write(type);
  stream.Write(pairs);
  stream.Write(table);
  ICHECK_EQ(stream.data.substr(0, 12), std::string("\2\0\0\0\3\0\0\0\0\10\4\0", 12));
  ICHECK(stream.Read(&device_again) && stream.Read(&dtype) && stream.Read(&type_again) && stream.Read(&pairs_again));
  ICHECK(stream.Read(&table_again) && !stream.Read(&dtype));
  ICHECK(device_again.device_type == kDLCUDA && device_again.device_id == 3 && type_again == type);
  ICHECK(pairs_again == pairs && table_again == table);
}

using TextOrList = Variant<String, Array<ObjectRef>>;

TVM_REGISTER_GLOBAL("streams.size").set_body_typed([](TextOrList value) {
  if (auto text = value.as<String>()) return static_cast<int64_t>(text.value().size());
  return static_cast<int64_t>(value.get<Array<ObjectRef>>().size());
});

void UseVariants() {
  TextOrList text = String("abc"), list = Array<ObjectRef>{String("x"), String("y")};
  ICHECK(text.as<String>().value() == "abc" && !text.as<Array<ObjectRef>>().defined() && text.as<StringObj>() != nullptr);
  ICHECK_EQ(list.get<Array<ObjectRef>>().size(), 2);
  ICHECK(ErrorOf([&] { list.get<String>(); }).find("TypeError") == 0);
  ICHECK(ErrorOf([] { TextOrList wrong(make_object<ShapeTupleObj>(std::vector<int64_t>{1})); }).find(
             "TypeError: a variant expected runtime.String or Array, got runtime.ShapeTuple") == 0);
  const PackedFunc& size = *Registry::Get("streams.size");
  ICHECK(size("four").operator int() == 4 && size(list).operator int() == 2 && size(String("ab")).operator int() == 2);
  ICHECK(ErrorOf([&] { size(ShapeTuple({1})); }).find("runtime.String or Array, got runtime.ShapeTuple") != std::string::npos);
  ICHECK(ErrorOf([&] { size(1); }).find("TypeError: streams.size: argument 0: expected") == 0);
  ObjectRef any = String("s");
  ICHECK(any.as<String>().has_value() && !any.as<ShapeTuple>().has_value());
}

void UseBoxes() {
  Array<Int> sizes = {1, 2};
  sizes.push_back(3);
  int64_t total = 0;
  for (Int size : sizes) total += size;
  Map<String, ObjectRef> options{{"depth", Int(4)}, {"fast", Bool(true)}, {"rate", Float(0.5)}, {"name", String("x")}};
  ICHECK(total == 6 && sizes[1] == Int(2) && sizes[1] != Int(3) && sizes[0]->value == 1);
  ICHECK_EQ(Downcast<Int>(options["depth"])->value, 4);
  ICHECK(Downcast<Bool>(options["fast"]) && options["rate"].as<Float>().value() == Float(0.5));
  ICHECK(ErrorOf([&] { Downcast<Int>(options["name"]); }).find("TypeError") == 0);
  TVMRetValue value;
  value = Int(7);
  ICHECK(value.type_code() == kTVMArgInt && value.operator int() == 7);
  ObjectRef object = value;
  ICHECK_EQ(object->GetTypeKey(), "runtime.BoxInt");
  PackedFunc kind([](TVMArgs args, TVMRetValue* rv) { *rv = ArgTypeCode2Str(args[0].type_code()); });
  ICHECK(kind(Bool(true)).operator std::string() == "bool" && kind(options["rate"]).operator std::string() == "float");
  TypedPackedFunc<Int(Int, Float)> scaled([](Int x, Float y) { return Int(x * static_cast<int64_t>(y)); });
  ICHECK_EQ(scaled(3, 2.0)->value, 6);
}

void ShowDevices() {
  std::ostringstream os;
  os << tvm::Device{kDLCUDA, 1} << " " << AddRPCSessionMask(tvm::Device{kDLCPU, 0}, 2);
  ICHECK_EQ(os.str(), "cuda:1 remote[2]-cpu:0");
  ICHECK_EQ(std::string(DLDeviceType2Str(kDLCPU)) + kTvmExecutorGraph, "cpugraph");
}

class CountingObj : public ClosureObj {
 public:
  int64_t captured{0};
  static constexpr const char* _type_key = "streams.Counting";
  TVM_DECLARE_FINAL_OBJECT_INFO(CountingObj, ClosureObj);
};

void UseClosures() {
  auto counting = make_object<CountingObj>();
  counting->captured = 5;
  Closure closure(counting);
  ICHECK(closure.defined() && closure->IsInstance<ClosureObj>() && closure.as<CountingObj>()->captured == 5);
  ICHECK_EQ(closure->GetTypeKey(), "streams.Counting");
}

int main() {
  SaveAndLoadArrays();
  RejectWhatIsNoArray();
  SaveAndLoadValues();
  UseVariants();
  UseClosures();
  UseBoxes();
  ShowDevices();
  std::puts("all is well");
}
