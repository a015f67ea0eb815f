// The executor of models that are one function: tensors of its arguments, inputs and outputs.
#include "executor.h"

#include <tvm/runtime/device_api.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "../arguments.h"
#include "../interrupt.h"
#include "../json.h"
#include "../unset_inputs.h"

namespace tvm {
namespace runtime {
namespace {

constexpr const char* kGetMetadata = "get_c_metadata";
constexpr DLDataType kByte{kDLUInt, 8, 1};

const TVMMetadata& MetadataOf(const Module& library) {
  PackedFunc get = library.defined() ? library.GetFunction(kGetMetadata, true) : PackedFunc();
  if (!get.defined()) ThrowValueError("the library has no function '", kGetMetadata, "': it was not built for the AOT executor");
  void* found = get();
  if (found == nullptr) ThrowValueError("'", kGetMetadata, "' gives no description of the model");
  const auto& metadata = *static_cast<const TVMMetadata*>(found);
  if (metadata.version != TVM_METADATA_VERSION) {
    ThrowValueError("the model's description has version ", metadata.version, ", this runtime reads version ", TVM_METADATA_VERSION);
  }
  return metadata;
}

std::string MainName(const TVMMetadata& metadata) {
  std::string mod_name = metadata.mod_name;
  return (mod_name.empty() ? std::string("tvmgen_") : "tvmgen_" + mod_name + "_") + symbol::tvm_module_main;
}

char* DataOf(const DLTensor& tensor) { return static_cast<char*>(tensor.data) + tensor.byte_offset; }

// A name as C has it: input_0 for input:0.
std::string InC(std::string name) {
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

}  // namespace

AotExecutor::AotExecutor(Module library, std::vector<DLDevice> devices) : library_(std::move(library)) {
  if (devices.empty()) ThrowValueError("the AOT executor needs a device");
  device_ = devices[0];
  DeviceAPI::Get(device_);
  const TVMMetadata& metadata = MetadataOf(library_);
  main_ = library_.GetFunction(MainName(metadata), true);
  if (!main_.defined()) ThrowValueError("the library has no function '", MainName(metadata), "'");
  num_inputs_ = static_cast<size_t>(metadata.num_inputs);
  num_outputs_ = static_cast<size_t>(metadata.num_outputs);
  for (size_t i = 0; i < num_inputs_; ++i) {
    input_index_[metadata.inputs[i].name] = static_cast<int>(i);
    input_index_.emplace(InC(metadata.inputs[i].name), static_cast<int>(i));
    AddTensor(metadata.inputs[i]);
  }
  for (size_t i = 0; i < num_outputs_; ++i) AddTensor(metadata.outputs[i]);
  if (metadata.num_constant_pools > 0) AddConstantPool(metadata);
  for (int64_t i = 0; i < metadata.num_workspace_pools; ++i) AddTensor(metadata.workspace_pools[i]);
  size_t count = slots_.size();
  tensors_.resize(count);
  values_.resize(count);
  type_codes_.assign(count, kTVMDLTensorHandle);
  for (size_t i = 0; i < count; ++i) {
    values_[i].v_handle = &tensors_[i];
    Bind(i, slots_[i].array);
  }
}

void AotExecutor::AddTensor(const TVMTensorInfo& info) {
  std::vector<int64_t> shape(info.shape, info.shape + info.num_shape);
  NDArray array = NDArray::Empty(shape, info.dtype, device_);
  if (device_.device_type == kDLCPU) std::memset(array->data, 0, DataBytes(*array.tensor()));
  slots_.push_back(Slot{info.name, std::move(shape), info.dtype, array});
}

// The model reads its constants at their places in one block.
void AotExecutor::AddConstantPool(const TVMMetadata& metadata) {
  std::vector<std::pair<int64_t, NDArray>> constants;
  int64_t bytes = 0;
  for (int64_t i = 0; i < metadata.num_constant_pools; ++i) {
    const TVMConstantInfo& info = metadata.constant_pools[i];
    ByteReader reader(info.data_bytes, static_cast<size_t>(info.data_len), Cat("the constant '", info.name_hint, "'"));
    constants.emplace_back(info.byte_offset, LoadArray(&reader));
    bytes = std::max(bytes, info.byte_offset + static_cast<int64_t>(DataBytes(*constants.back().second.tensor())));
  }
  NDArray pool = NDArray::Empty({bytes}, kByte, DLDevice{kDLCPU, 0});
  for (const auto& item : constants) {
    item.second.CopyToBytes(static_cast<char*>(pool->data) + item.first, DataBytes(*item.second.tensor()));
  }
  slots_.push_back(Slot{"constants", {bytes}, kByte, device_.device_type == kDLCPU ? pool : pool.CopyTo(device_)});
}

void AotExecutor::Bind(size_t slot, const NDArray& array) {
  Slot& place = slots_[slot];
  place.array = array;
  DLTensor& tensor = tensors_[slot];
  tensor = *array.tensor();
  tensor.data = DataOf(tensor);
  tensor.byte_offset = 0;
  tensor.shape = place.shape.data();
  tensor.strides = nullptr;
}

void AotExecutor::SetParams(const NamedArrays& params) {
  for (const auto& param : params) {
    int index = InputIndex(param.first);
    if (index < 0) continue;
    CopyInto(static_cast<size_t>(index), param.second.tensor(), "parameter '" + param.first + "'");
    slots_[static_cast<size_t>(index)].is_param = true;
  }
}

void AotExecutor::ReportUnset() const {
  std::vector<UnsetInput> unset;
  for (size_t i = 0; i < num_inputs_; ++i) {
    if (!slots_[i].given) unset.push_back({slots_[i].name, slots_[i].shape, slots_[i].dtype});
  }
  ReportUnsetInputs(unset);
}

void AotExecutor::BeginRun() {
  auto name_of_slot = [&](size_t slot) { return slot < num_inputs_ ? TextOf(slot) : "the array of " + TextOf(slot); };
  if (use_.BeginRun(name_of_slot)) {
    for (size_t slot = num_inputs_; slot < num_inputs_ + num_outputs_; ++slot) {
      const Slot& output = slots_[slot];
      // what another thread has got stays as it is
      if (!output.given && output.array.use_count() > 1) Bind(slot, NDArray::Empty(output.shape, output.dtype, device_));
    }
  }
  if (is_unset_reported_) return;
  ReportUnset();
  is_unset_reported_ = true;
}

void AotExecutor::Run() {
  BeginRun();
  PollSignals();
  int count = static_cast<int>(values_.size());
  if (TVMBackendPackedCFunc direct = main_.func()->direct) {
    TVMValue ret;
    int ret_code = kTVMNullptr;
    if (direct(values_.data(), type_codes_.data(), count, &ret, &ret_code, nullptr) != 0) ThrowLastError();
    return;
  }
  TVMRetValue ignored;
  main_.CallPacked(TVMArgs(values_.data(), type_codes_.data(), count), &ignored);
}

void AotExecutor::RunWithInputs(TVMArgs args) {
  for (int i = 0; i + 1 < args.num_args; i += 2) {
    size_t slot = InputSlot(args[i]);
    CopyInto(slot, &TensorIn(args[i + 1]), TextOf(slot));
  }
  Run();
}

void AotExecutor::RunFromInputs(TVMArgs args) {
  DLDevice device{static_cast<DLDeviceType>(int(args[0])), int(args[1])};
  for (int i = 2; i + 1 < args.num_args; i += 2) {
    size_t slot = InputSlot(args[i]);
    CopyInto(slot, &TensorIn(args[i + 1]), TextOf(slot));
  }
  Run();
  output_copies_.resize(num_outputs_);
  for (size_t i = 0; i < num_outputs_; ++i) {
    const NDArray& output = slots_[num_inputs_ + i].array;
    NDArray& copy = output_copies_[i];
    bool fits = copy.defined() && copy->device.device_type == device.device_type && copy->device.device_id == device.device_id;
    if (!fits) copy = NDArray::Empty(output.Shape(), output.DataType(), device);
    output.CopyTo(copy);
  }
}

void AotExecutor::CopyInto(size_t slot, const DLTensor* value, const std::string& what) {
  CheckTensor(*value, slot, what);
  use_.Set(slot);
  slots_[slot].array.CopyFrom(value);
  slots_[slot].given = true;
}

void AotExecutor::SetZeroCopy(size_t slot, const TVMArgValue& value, const std::string& what) {
  const DLTensor& tensor = TensorIn(value);
  CheckTensor(tensor, slot, what);
  if (!IsContiguous(tensor)) ThrowValueError(what, " needs a compact array, got one with strides");
  if (tensor.device.device_type != device_.device_type) {
    ThrowValueError(what, " needs an array on ", DeviceText(device_), ", got one on ", DeviceText(tensor.device));
  }
  if (reinterpret_cast<uintptr_t>(DataOf(tensor)) % kDataAlignment != 0) {
    ThrowValueError(what, " needs memory aligned to ", kDataAlignment, " bytes; use an array made by this runtime");
  }
  use_.Set(slot);
  NDArray keep = value.type_code() == kTVMNDArrayHandle ? value.operator NDArray() : NDArray();
  Bind(slot, NDArray::FromMemory(DataOf(tensor), slots_[slot].shape, slots_[slot].dtype, tensor.device,
                                 ObjectPtr<Object>(keep.get_mutable())));
  slots_[slot].given = true;
}

void AotExecutor::CheckTensor(const DLTensor& value, size_t slot, const std::string& what) const {
  const Slot& wanted = slots_[slot];
  bool same_shape = value.ndim == static_cast<int>(wanted.shape.size()) &&
                    std::equal(wanted.shape.begin(), wanted.shape.end(), value.shape);
  if (same_shape && TypeEqual(value.dtype, wanted.dtype)) return;
  auto text = [](const int64_t* extents, int ndim, DLDataType dtype) {
    return ShapeText(extents, ndim) + " " + DLDataType2String(dtype);
  };
  ThrowValueError(what, " needs ", text(wanted.shape.data(), static_cast<int>(wanted.shape.size()), wanted.dtype), ", got ",
                  text(value.shape, value.ndim, value.dtype));
}

int AotExecutor::InputIndex(const std::string& name) const {
  auto it = input_index_.find(name);
  return it == input_index_.end() ? -1 : it->second;
}

size_t AotExecutor::InputSlot(const TVMArgValue& key) const {
  if (!key.is_str()) {
    int64_t index = key;
    if (index < 0 || index >= static_cast<int64_t>(num_inputs_)) {
      ThrowValueError("the model has ", num_inputs_, " inputs, got index ", index);
    }
    return static_cast<size_t>(index);
  }
  int index = InputIndex(key);
  if (index >= 0) return static_cast<size_t>(index);
  std::string names;
  for (size_t i = 0; i < num_inputs_; ++i) {
    if (!slots_[i].is_param) names += (names.empty() ? "'" : ", '") + slots_[i].name + "'";
  }
  ThrowValueError("the model has no input '", std::string(key), "'; its inputs are ", names.empty() ? "none" : names);
}

size_t AotExecutor::OutputSlot(const TVMArgValue& key) const {
  if (!key.is_str()) {
    int64_t index = key;
    if (index < 0 || index >= static_cast<int64_t>(num_outputs_)) {
      ThrowValueError("the model has ", num_outputs_, " outputs, got index ", index);
    }
    return num_inputs_ + static_cast<size_t>(index);
  }
  std::string name = key;
  for (size_t i = 0; i < num_outputs_; ++i) {
    if (slots_[num_inputs_ + i].name == name) return num_inputs_ + i;
  }
  std::string names;
  for (size_t i = 0; i < num_outputs_; ++i) names += (i ? ", '" : "'") + slots_[num_inputs_ + i].name + "'";
  ThrowValueError("the model has no output '", name, "'; its outputs are ", names.empty() ? "none" : names);
}

std::string AotExecutor::TextOf(size_t slot) const {
  bool is_input = slot < num_inputs_;
  return Cat(is_input ? "input " : "output ", is_input ? slot : slot - num_inputs_, " ('", slots_[slot].name, "')");
}

// {"shape": {"name": [extents], ...}, "dtype": {"name": "dtype", ...}}
std::string AotExecutor::InfoText(size_t first, size_t last, bool with_params) const {
  std::string shapes, dtypes;
  for (size_t i = first; i < last; ++i) {
    if (!with_params && slots_[i].is_param) continue;
    std::string name = (shapes.empty() ? "" : ", ") + Json::Quote(slots_[i].name) + ": ";
    std::string extents;
    for (int64_t extent : slots_[i].shape) extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
    shapes += name + "[" + extents + "]";
    dtypes += name + Json::Quote(DLDataType2String(slots_[i].dtype));
  }
  return "{\"shape\": {" + shapes + "}, \"dtype\": {" + dtypes + "}}";
}

std::string AotExecutor::InputInfoText(bool with_params) const { return InfoText(0, num_inputs_, with_params); }

std::string AotExecutor::OutputInfoText() const { return InfoText(num_inputs_, num_inputs_ + num_outputs_); }

// ["name", ...]
std::string AotExecutor::UnsetInputs() const {
  std::string text;
  for (size_t i = 0; i < num_inputs_; ++i) {
    if (!slots_[i].given) text += (text.empty() ? "" : ", ") + Json::Quote(slots_[i].name);
  }
  return "[" + text + "]";
}

PackedFunc AotExecutor::GetFunction(const String& function, const ObjectPtr<Object>& self) {
  const std::string name = function;
#define EXECUTOR_METHOD(...)                                     \
  return PackedFunc([this, self](TVMArgs args, TVMRetValue* rv) { \
    std::lock_guard<RunLock> lock(lock_);                        \
    __VA_ARGS__;                                                 \
  })
  if (name == "run") EXECUTOR_METHOD(Run());
  if (name == "set_input") {
    EXECUTOR_METHOD(size_t slot = InputSlot(args[0]); CopyInto(slot, &TensorIn(args[1]), TextOf(slot)));
  }
  if (name == "set_input_zero_copy") EXECUTOR_METHOD(size_t slot = InputSlot(args[0]); SetZeroCopy(slot, args[1], TextOf(slot)));
  if (name == "set_output_zero_copy") {
    EXECUTOR_METHOD(size_t slot = OutputSlot(args[0]); SetZeroCopy(slot, args[1], TextOf(slot)));
  }
  if (name == "get_input") {
    EXECUTOR_METHOD(if (args[0].is_str() && InputIndex(args[0]) < 0) return;
                    Slot& slot = slots_[InputSlot(args[0])];
                    if (args.num_args > 1) return slot.array.CopyTo(&TensorIn(args[1]));
                    slot.given = true; *rv = slot.array);
  }
  if (name == "get_output") {
    EXECUTOR_METHOD(size_t slot = OutputSlot(args[0]);
                    use_.Fetch(static_cast<int64_t>(slot - num_inputs_));
                    const NDArray& array = slots_[slot].array;
                    if (args.num_args > 1) array.CopyTo(&TensorIn(args[1])); else *rv = array);
  }
  if (name == "get_num_inputs") EXECUTOR_METHOD(*rv = static_cast<int64_t>(num_inputs_));
  if (name == "get_num_outputs") EXECUTOR_METHOD(*rv = static_cast<int64_t>(num_outputs_));
  if (name == "get_input_index") EXECUTOR_METHOD(*rv = static_cast<int64_t>(InputIndex(args[0])));
  if (name == "get_input_name") EXECUTOR_METHOD(*rv = slots_[InputSlot(args[0])].name);
  if (name == "get_output_name") EXECUTOR_METHOD(*rv = slots_[OutputSlot(args[0])].name);
  if (name == "run_with_inputs") EXECUTOR_METHOD(RunWithInputs(args));
  if (name == "run_from_inputs") EXECUTOR_METHOD(RunFromInputs(args));
  // (with_params): true if it is left out
  if (name == "get_input_info_json") EXECUTOR_METHOD(*rv = InputInfoText(args.num_args == 0 || bool(args[0])));
  if (name == "get_unset_inputs_json") EXECUTOR_METHOD(*rv = UnsetInputs());
  if (name == "get_output_info_json") EXECUTOR_METHOD(*rv = OutputInfoText());
#undef EXECUTOR_METHOD
  return PackedFunc();
}

Module CreateAotExecutor(Module library, std::vector<DLDevice> devices, const NamedArrays& params) {
  auto executor = make_object<AotExecutor>(std::move(library), std::move(devices));
  executor->SetParams(params);
  return Module(ObjectPtr<ModuleNode>(executor));
}

}  // namespace runtime
}  // namespace tvm
