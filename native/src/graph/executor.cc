// The graph executor: memory plan, prepared calls, inputs and outputs.
#include "executor.h"

#include <tvm/runtime/device_api.h>

#include <algorithm>
#include <cstring>

#include "../arguments.h"
#include "../interrupt.h"
#include "../json.h"
#include "../unset_inputs.h"

namespace tvm {
namespace runtime {
namespace {

constexpr DLDataType kByte{kDLUInt, 8, 1};

constexpr size_t kPartAlignment = 512;  // of memory that kernels of devices are given from inside of an array

size_t EntryBytes(const Graph& graph, uint32_t entry) {
  size_t count = 1;
  for (int64_t extent : graph.shapes[entry]) count *= static_cast<size_t>(extent);
  return count * ElementBytes(graph.dtypes[entry]);
}

char* DataOf(const DLTensor& tensor) { return static_cast<char*>(tensor.data) + tensor.byte_offset; }

}  // namespace

GraphExecutor::GraphExecutor(const std::string& json, Module library, std::vector<DLDevice> devices, bool reuse_storage)
    : graph_(Graph::Parse(json)), library_(std::move(library)), devices_(std::move(devices)) {
  if (devices_.empty()) ThrowValueError("the graph executor needs a device");
  for (DLDevice device : devices_) DeviceAPI::Get(device);
  uint32_t entries = graph_.num_entries();
  arrays_.resize(entries);
  uses_.resize(entries);
  aliases_.resize(entries);
  is_given_.resize(entries);
  size_t inputs = graph_.arg_nodes.size();
  input_states_.resize(inputs, InputState::kUnset);
  owned_inputs_.resize(inputs);
  is_param_.resize(inputs);
  for (size_t i = 0; i < inputs; ++i) input_index_[graph_.nodes[graph_.arg_nodes[i]].name] = static_cast<int>(i);
  if (!reuse_storage) {
    for (uint32_t entry = 0; entry < entries; ++entry) graph_.storage_ids[entry] = entry;
  }
  FindAliases();
  PlanStorage();
  ClearOutputs();
  PrepareCalls();
}

DLDevice GraphExecutor::DeviceOf(uint32_t entry) const {
  if (graph_.device_types.empty()) return devices_[0];
  for (DLDevice device : devices_) {
    if (device.device_type == graph_.device_types[entry]) return device;
  }
  if (devices_.size() == 1 && graph_.device_types[entry] <= 0) return devices_[0];
  ThrowValueError("the graph needs a device of kind ", DeviceName(graph_.device_types[entry]), ", which was not given");
}

void GraphExecutor::FindAliases() {
  for (uint32_t n = 0; n < graph_.nodes.size(); ++n) {
    const GraphNode& node = graph_.nodes[n];
    if (node.is_nop()) aliases_[graph_.entry_id(node.inputs[0])].push_back(graph_.row_ptr[n]);
  }
}

// What operators write lies in one block a device, re-used as the storage numbers say. Inputs get memory of their own
// when they are first needed, since most are bound to arrays that exist already.
void GraphExecutor::PlanStorage() {
  struct Slot {
    size_t bytes{0};
    size_t offset{0};
    DLDevice device{};
  };
  std::map<int64_t, Slot> slots;
  for (uint32_t n = 0; n < graph_.nodes.size(); ++n) {
    const GraphNode& node = graph_.nodes[n];
    if (!node.is_op || node.is_nop()) continue;
    for (uint32_t entry = graph_.row_ptr[n]; entry < graph_.row_ptr[n + 1]; ++entry) {
      Slot& slot = slots[graph_.storage_ids[entry]];
      slot.bytes = std::max(slot.bytes, EntryBytes(graph_, entry));
      slot.device = DeviceOf(entry);
    }
  }
  std::map<std::pair<int, int>, size_t> totals;
  for (auto& item : slots) {
    DLDevice device = item.second.device;
    size_t& total = totals[{device.device_type, device.device_id}];
    item.second.offset = total;
    // the kernels of devices may begin at fewer places inside of memory
    size_t unit = device.device_type == kDLCPU ? kAllocAlignment : kPartAlignment;
    total += (item.second.bytes + unit - 1) / unit * unit;
  }
  std::map<std::pair<int, int>, NDArray> blocks;
  for (auto& item : totals) {
    DLDevice device{static_cast<DLDeviceType>(item.first.first), item.first.second};
    blocks[item.first] = NDArray::Empty({static_cast<int64_t>(item.second)}, kByte, device);
  }
  for (uint32_t n = 0; n < graph_.nodes.size(); ++n) {
    if (!graph_.nodes[n].is_op || graph_.nodes[n].is_nop()) continue;
    for (uint32_t entry = graph_.row_ptr[n]; entry < graph_.row_ptr[n + 1]; ++entry) {
      if (is_given_[entry]) continue;
      const Slot& slot = slots[graph_.storage_ids[entry]];
      const NDArray& block = blocks[{slot.device.device_type, slot.device.device_id}];
      Bind(entry, block.CreateView(graph_.shapes[entry], graph_.dtypes[entry], slot.offset));
    }
  }
}

// What is read before the first run is no memory of others.
void GraphExecutor::ClearOutputs() {
  for (GraphEntry head : graph_.heads) {
    const NDArray& array = arrays_[graph_.entry_id(head)];
    if (!array.defined()) continue;
    NDArray zeros = array->device.device_type == kDLCPU ? array : NDArray::Empty(array.Shape(), array.DataType(), DLDevice{kDLCPU, 0});
    std::memset(DataOf(*zeros.tensor()), 0, DataBytes(*zeros.tensor()));
    if (!zeros.same_as(array)) zeros.CopyTo(array);
  }
}

void GraphExecutor::PrepareCalls() {
  for (uint32_t n = 0; n < graph_.nodes.size(); ++n) {
    const GraphNode& node = graph_.nodes[n];
    if (node.is_op && !node.is_nop()) calls_.push_back(PrepareCall(node, n));
  }
  size_t next = 0;
  for (uint32_t n = 0; n < graph_.nodes.size(); ++n) {
    const GraphNode& node = graph_.nodes[n];
    if (!node.is_op || node.is_nop()) continue;
    OpCall& call = calls_[next++];
    // addresses are stable from here on
    for (size_t i = 0; i < call.tensors.size(); ++i) {
      uint32_t entry = i < node.inputs.size() ? graph_.entry_id(node.inputs[i])
                                              : graph_.row_ptr[n] + static_cast<uint32_t>(i - node.inputs.size());
      uses_[entry].push_back(&call.tensors[i]);
      call.values[i].v_handle = &call.tensors[i];
      if (node.flatten_data) call.tensors[i].shape = &call.flat_extents[i];
    }
  }
}

GraphExecutor::OpCall GraphExecutor::PrepareCall(const GraphNode& node, uint32_t node_id) {
  OpCall call;
  call.func = FindFunction(node);
  call.direct = call.func.func()->direct;
  auto add = [&](uint32_t entry) {
    DLTensor tensor{};
    tensor.device = DeviceOf(entry);
    tensor.ndim = static_cast<int>(graph_.shapes[entry].size());
    tensor.dtype = graph_.dtypes[entry];
    tensor.shape = graph_.shapes[entry].data();
    if (arrays_[entry].defined()) tensor.data = DataOf(*arrays_[entry].tensor());
    int64_t count = 1;
    for (int64_t extent : graph_.shapes[entry]) count *= extent;
    call.flat_extents.push_back(count);
    if (node.flatten_data) tensor.ndim = 1;
    call.tensors.push_back(tensor);
  };
  for (GraphEntry input : node.inputs) add(graph_.entry_id(input));
  for (uint32_t entry = graph_.row_ptr[node_id]; entry < graph_.row_ptr[node_id + 1]; ++entry) add(entry);
  call.values.resize(call.tensors.size());
  call.type_codes.assign(call.tensors.size(), kTVMDLTensorHandle);
  return call;
}

PackedFunc GraphExecutor::FindFunction(const GraphNode& node) const {
  if (node.is_copy()) {
    return PackedFunc([](TVMArgs args, TVMRetValue*) { NDArray::CopyFromTo(args[0], args[1]); });
  }
  PackedFunc func = library_.defined() ? library_.GetFunction(node.func_name, true) : PackedFunc();
  if (!func.defined()) {
    ThrowValueError("the library has no function '", node.func_name, "', which the graph's node '", node.name, "' calls");
  }
  return func;
}

void GraphExecutor::Bind(uint32_t entry, const NDArray& array) {
  arrays_[entry] = array;
  for (DLTensor* use : uses_[entry]) use->data = DataOf(*array.tensor());
  for (uint32_t alias : aliases_[entry]) {
    Bind(alias, NDArray::FromMemory(DataOf(*array.tensor()), graph_.shapes[alias], graph_.dtypes[alias],
                                    array->device, ObjectPtr<Object>(array.get_mutable())));
  }
}

void GraphExecutor::EnsureOwned(int index, bool keep_values) {
  if (input_states_[index] == InputState::kOwned) return;
  uint32_t entry = InputEntry(index);
  NDArray& owned = owned_inputs_[index];
  if (!owned.defined()) owned = NDArray::Empty(graph_.shapes[entry], graph_.dtypes[entry], DeviceOf(entry));
  if (keep_values && input_states_[index] == InputState::kShared) {
    owned.CopyFrom(arrays_[entry]);
  } else if (keep_values && owned->device.device_type == kDLCPU) {
    std::memset(owned->data, 0, DataBytes(*owned.tensor()));
  }
  input_states_[index] = InputState::kOwned;
  Bind(entry, owned);
}

void GraphExecutor::ReportUnset() const {
  std::vector<UnsetInput> unset;
  for (size_t i = 0; i < input_states_.size(); ++i) {
    if (input_states_[i] != InputState::kUnset) continue;
    uint32_t entry = InputEntry(static_cast<int>(i));
    unset.push_back({graph_.nodes[graph_.arg_nodes[i]].name, graph_.shapes[entry], graph_.dtypes[entry]});
  }
  ReportUnsetInputs(unset);
}

void GraphExecutor::FillUnsetInputs() {
  for (size_t i = 0; i < input_states_.size(); ++i) {
    if (input_states_[i] == InputState::kUnset) EnsureOwned(static_cast<int>(i), true);
  }
  all_inputs_set_ = true;
}

std::string GraphExecutor::OwnParams(const NamedArrays& params) {
  std::string ignored;
  for (const auto& param : params) {
    int index = InputIndex(param.first);
    if (index < 0) {
      ignored += (ignored.empty() ? "" : ", ") + Json::Quote(param.first);
      continue;
    }
    is_param_[index] = true;
    CheckTensor(*param.second.tensor(), InputEntry(index), "parameter '" + param.first + "'");
    if (DeviceOf(InputEntry(index)).device_type != kDLCPU) {
      SetInput(index, param.second.tensor());
      continue;
    }
    owned_inputs_[index] = param.second;
    input_states_[index] = InputState::kOwned;
    Bind(InputEntry(index), param.second);
  }
  return "[" + ignored + "]";
}

void GraphExecutor::ShareParams(const NamedArrays& params) {
  for (const auto& param : params) {
    int index = InputIndex(param.first);
    if (index < 0) continue;
    is_param_[index] = true;
    const DLTensor& value = *param.second.tensor();
    uint32_t entry = InputEntry(index);
    CheckTensor(value, entry, "parameter '" + param.first + "'");
    bool usable = reinterpret_cast<uintptr_t>(DataOf(value)) % kDataAlignment == 0 && IsContiguous(value) &&
                  value.device.device_type == DeviceOf(entry).device_type;
    if (usable) {
      input_states_[index] = InputState::kShared;
      Bind(entry, param.second);
    } else {
      SetInput(index, &value);
    }
  }
}

void GraphExecutor::ShareParams(const GraphExecutor& other, const NamedArrays& params) {
  NamedArrays shared;
  for (const auto& param : params) {
    int index = other.InputIndex(param.first);
    if (index < 0) ThrowValueError("share_params: the other executor has no input '", param.first, "'");
    const NDArray& array = other.arrays_[other.InputEntry(index)];
    if (!array.defined()) ThrowValueError("share_params: the other executor's input '", param.first, "' is not set");
    shared.emplace_back(param.first, array);
  }
  ShareParams(shared);
}

void GraphExecutor::SetInput(int index, const DLTensor* value) {
  CheckTensor(*value, InputEntry(index), InputText(index));
  use_.Set(index);
  EnsureOwned(index, false);
  arrays_[InputEntry(index)].CopyFrom(value);
}

void GraphExecutor::SetInputZeroCopy(int index, const NDArray& keep, const DLTensor* value) {
  uint32_t entry = InputEntry(index);
  CheckZeroCopy(*value, entry, InputText(index));
  use_.Set(index);
  input_states_[index] = InputState::kShared;
  Bind(entry, NDArray::FromMemory(DataOf(*value), graph_.shapes[entry], graph_.dtypes[entry], value->device,
                                  ObjectPtr<Object>(keep.get_mutable())));
}

void GraphExecutor::SetOutputZeroCopy(int index, const NDArray& keep, const DLTensor* value) {
  uint32_t entry = OutputEntry(index);
  std::string what = Cat("output ", index);
  const GraphNode& node = graph_.nodes[graph_.heads[index].node];
  if (!node.is_op || node.is_nop()) ThrowValueError(what, " is an input under another name: it cannot be set without a copy");
  CheckZeroCopy(*value, entry, what);
  use_.Set(graph_.arg_nodes.size() + index);
  is_given_[entry] = true;
  Bind(entry, NDArray::FromMemory(DataOf(*value), graph_.shapes[entry], graph_.dtypes[entry], value->device,
                                  ObjectPtr<Object>(keep.get_mutable())));
}

NDArray GraphExecutor::GetInput(int index) {
  uint32_t entry = InputEntry(index);
  // programs write into what they get, and must not change arrays that others share
  EnsureOwned(index, true);
  return arrays_[entry];
}

NDArray GraphExecutor::GetOutput(int index) {
  uint32_t entry = OutputEntry(index);
  if (!arrays_[entry].defined()) FillUnsetInputs();
  use_.Fetch(index);
  return arrays_[entry];
}

void GraphExecutor::CopyInput(int index, DLTensor* to) {
  CheckTensor(*to, InputEntry(index), "the array for " + InputText(index));
  GetInput(index).CopyTo(to);
}

void GraphExecutor::CopyOutput(int index, DLTensor* to) {
  CheckTensor(*to, OutputEntry(index), Cat("the array for output ", index));
  GetOutput(index).CopyTo(to);
}

void GraphExecutor::RunFromInputs(TVMArgs args) {
  DLDevice device{static_cast<DLDeviceType>(int(args[0])), int(args[1])};
  for (int i = 2; i + 1 < args.num_args; i += 2) SetInput(ParseIndex(args[i]), &TensorIn(args[i + 1]));
  Run();
  output_copies_.resize(graph_.heads.size());
  for (size_t i = 0; i < graph_.heads.size(); ++i) {
    NDArray output = GetOutput(static_cast<int>(i));
    NDArray& copy = output_copies_[i];
    bool fits = copy.defined() && copy->device.device_type == device.device_type && copy->device.device_id == device.device_id;
    if (!fits) copy = NDArray::Empty(output.Shape(), output.DataType(), device);
    output.CopyTo(copy);
  }
}

bool GraphExecutor::IsHandedOut() const {
  for (uint32_t n = 0; n < graph_.nodes.size(); ++n) {
    if (!graph_.nodes[n].is_op) continue;
    for (uint32_t entry = graph_.row_ptr[n]; entry < graph_.row_ptr[n + 1]; ++entry) {
      // the executor itself holds it, and each alias does
      const size_t own = 1 + aliases_[entry].size();
      if (arrays_[entry].defined() && static_cast<size_t>(arrays_[entry].use_count()) > own) return true;
    }
  }
  return false;
}

void GraphExecutor::BeginRun() {
  const size_t inputs = graph_.arg_nodes.size();
  auto name_of_slot = [&](size_t slot) { return slot < inputs ? InputText(static_cast<int>(slot)) : Cat("the array of output ", slot - inputs); };
  // what another thread has got stays as it is
  if (use_.BeginRun(name_of_slot) && IsHandedOut()) PlanStorage();
  if (all_inputs_set_) return;
  ReportUnset();
  FillUnsetInputs();
}

void GraphExecutor::Run() {
  BeginRun();
  for (OpCall& call : calls_) {
    PollSignals();
    Call(&call);
  }
}

void GraphExecutor::RunWithInputs(TVMArgs args) {
  for (int i = 0; i + 1 < args.num_args; i += 2) SetInput(ParseIndex(args[i]), &TensorIn(args[i + 1]));
  Run();
}

void GraphExecutor::Call(OpCall* call) {
  int count = static_cast<int>(call->values.size());
  if (call->direct != nullptr) {
    TVMValue ret;
    int ret_code = kTVMNullptr;
    if (call->direct(call->values.data(), call->type_codes.data(), count, &ret, &ret_code, nullptr) != 0) {
      ThrowLastError();
    }
    return;
  }
  TVMRetValue ignored;
  call->func.CallPacked(TVMArgs(call->values.data(), call->type_codes.data(), count), &ignored);
}

int GraphExecutor::InputIndex(const std::string& name) const {
  auto it = input_index_.find(name);
  return it == input_index_.end() ? -1 : it->second;
}

uint32_t GraphExecutor::InputEntry(int index) const {
  int count = static_cast<int>(graph_.arg_nodes.size());
  if (index < 0 || index >= count) ThrowValueError("the graph has ", count, " inputs, got index ", index);
  return graph_.row_ptr[graph_.arg_nodes[index]];
}

uint32_t GraphExecutor::OutputEntry(int index) const {
  int count = static_cast<int>(graph_.heads.size());
  if (index < 0 || index >= count) ThrowValueError("the graph has ", count, " outputs, got index ", index);
  return graph_.entry_id(graph_.heads[index]);
}

std::string GraphExecutor::InputText(int index) const {
  return Cat("input ", index, " ('", graph_.nodes[graph_.arg_nodes[index]].name, "')");
}

int GraphExecutor::ParseIndex(const TVMArgValue& key) const {
  if (!key.is_str()) {
    InputEntry(key);
    return key;
  }
  std::string name = key;
  int index = InputIndex(name);
  if (index >= 0) return index;
  std::string names;
  for (size_t i = 0; i < graph_.arg_nodes.size(); ++i) {
    if (!is_param_[i]) names += (names.empty() ? "'" : ", '") + graph_.nodes[graph_.arg_nodes[i]].name + "'";
  }
  ThrowValueError("the graph has no input '", name, "'; its inputs are ", names.empty() ? "none" : names);
}

const std::string& GraphExecutor::OutputName(size_t index) const {
  return graph_.output_names.empty() ? graph_.nodes[graph_.heads[index].node].name : graph_.output_names[index];
}

int GraphExecutor::OutputIndex(const std::string& name) const {
  for (size_t i = 0; i < graph_.heads.size(); ++i) {
    if (OutputName(i) == name) return static_cast<int>(i);
  }
  // programs that know the graph name its nodes
  for (size_t i = 0; i < graph_.heads.size(); ++i) {
    if (graph_.nodes[graph_.heads[i].node].name == name) return static_cast<int>(i);
  }
  return -1;
}

int GraphExecutor::ParseOutputIndex(const TVMArgValue& key) const {
  if (!key.is_str()) return key;
  std::string name = key;
  int index = OutputIndex(name);
  if (index >= 0) return index;
  std::string names;
  for (size_t i = 0; i < graph_.heads.size(); ++i) names += (i ? ", '" : "'") + OutputName(i) + "'";
  ThrowValueError("the graph has no output '", name, "'; its outputs are ", names.empty() ? "none" : names);
}

void GraphExecutor::CheckTensor(const DLTensor& value, uint32_t entry, const std::string& what) const {
  const std::vector<int64_t>& shape = graph_.shapes[entry];
  bool same_shape = value.ndim == static_cast<int>(shape.size()) && std::equal(shape.begin(), shape.end(), value.shape);
  if (same_shape && TypeEqual(value.dtype, graph_.dtypes[entry])) return;
  auto text = [](const int64_t* extents, int ndim, DLDataType dtype) {
    return ShapeText(extents, ndim) + " " + DLDataType2String(dtype);
  };
  ThrowValueError(what, " needs ", text(shape.data(), static_cast<int>(shape.size()), graph_.dtypes[entry]), ", got ",
                  text(value.shape, value.ndim, value.dtype));
}

void GraphExecutor::CheckZeroCopy(const DLTensor& value, uint32_t entry, const std::string& what) const {
  CheckTensor(value, entry, what);
  if (!IsContiguous(value)) ThrowValueError(what, " needs a compact array, got one with strides");
  DLDevice device = DeviceOf(entry);
  if (value.device.device_type != device.device_type) {
    ThrowValueError(what, " needs an array on ", DeviceText(device), ", got one on ", DeviceText(value.device));
  }
  if (reinterpret_cast<uintptr_t>(DataOf(value)) % kDataAlignment != 0) {
    ThrowValueError(what, " needs memory aligned to ", kDataAlignment, " bytes; use an array made by this runtime");
  }
}

Map<std::string, ObjectRef> GraphExecutor::InputInfo() const {
  Map<std::string, Array<int64_t>> shapes;
  Map<std::string, std::string> dtypes;
  for (size_t i = 0; i < graph_.arg_nodes.size(); ++i) {
    if (is_param_[i]) continue;
    uint32_t entry = InputEntry(static_cast<int>(i));
    const std::string& name = graph_.nodes[graph_.arg_nodes[i]].name;
    shapes.Set(name, Array<int64_t>(graph_.shapes[entry]));
    dtypes.Set(name, DLDataType2String(graph_.dtypes[entry]));
  }
  return {{"shape", shapes}, {"dtype", dtypes}};
}

// {"shape": {"name": [extents], ...}, "dtype": {"name": "dtype", ...}}
std::string GraphExecutor::InfoText(const std::vector<std::pair<std::string, uint32_t>>& tensors) const {
  std::string shapes, dtypes;
  for (const auto& tensor : tensors) {
    std::string name = (shapes.empty() ? "" : ", ") + Json::Quote(tensor.first) + ": ";
    std::string extents;
    for (int64_t extent : graph_.shapes[tensor.second]) extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
    shapes += name + "[" + extents + "]";
    dtypes += name + Json::Quote(DLDataType2String(graph_.dtypes[tensor.second]));
  }
  return "{\"shape\": {" + shapes + "}, \"dtype\": {" + dtypes + "}}";
}

std::string GraphExecutor::InputInfoText(bool with_params) const {
  std::vector<std::pair<std::string, uint32_t>> tensors;
  for (size_t i = 0; i < graph_.arg_nodes.size(); ++i) {
    if (!with_params && is_param_[i]) continue;
    tensors.emplace_back(graph_.nodes[graph_.arg_nodes[i]].name, InputEntry(static_cast<int>(i)));
  }
  return InfoText(tensors);
}

std::string GraphExecutor::OutputInfoText() const {
  std::vector<std::pair<std::string, uint32_t>> tensors;
  for (size_t i = 0; i < graph_.heads.size(); ++i) tensors.emplace_back(OutputName(i), OutputEntry(static_cast<int>(i)));
  return InfoText(tensors);
}

// ["name", ...]
std::string GraphExecutor::UnsetInputs() const {
  std::string text;
  for (size_t i = 0; i < graph_.arg_nodes.size(); ++i) {
    if (input_states_[i] != InputState::kUnset) continue;
    text += (text.empty() ? "" : ", ") + Json::Quote(graph_.nodes[graph_.arg_nodes[i]].name);
  }
  return "[" + text + "]";
}


PackedFunc GraphExecutor::GetFunction(const String& name, const ObjectPtr<Object>& self) {
  auto keep_array = [](const TVMArgValue& value) {
    return value.type_code() == kTVMNDArrayHandle ? value.operator NDArray() : NDArray();
  };
  auto tensor = [](const TVMArgValue& value) { return &TensorIn(value); };
#define EXECUTOR_METHOD(...) \
  return Exclusive(self, [this, keep_array, tensor](TVMArgs args, TVMRetValue* rv) { __VA_ARGS__; })
  if (name == "run") EXECUTOR_METHOD(Run());
  if (name == "set_input") EXECUTOR_METHOD(int index = ParseIndex(args[0]); SetInput(index, tensor(args[1])));
  if (name == "get_output") {
    EXECUTOR_METHOD(int index = ParseOutputIndex(args[0]);
                    if (args.num_args > 1) CopyOutput(index, tensor(args[1])); else *rv = GetOutput(index));
  }
  if (name == "get_input") {
    EXECUTOR_METHOD(if (args[0].is_str() && InputIndex(args[0]) < 0) return;
                    int index = ParseIndex(args[0]);
                    if (args.num_args > 1) CopyInput(index, tensor(args[1])); else *rv = GetInput(index));
  }
  if (name == "set_input_zero_copy") {
    EXECUTOR_METHOD(int index = ParseIndex(args[0]); SetInputZeroCopy(index, keep_array(args[1]), tensor(args[1])));
  }
  if (name == "set_output_zero_copy") {
    EXECUTOR_METHOD(SetOutputZeroCopy(ParseOutputIndex(args[0]), keep_array(args[1]), tensor(args[1])));
  }
  if (name == "get_num_outputs") EXECUTOR_METHOD(*rv = static_cast<int64_t>(graph_.heads.size()));
  if (name == "get_num_inputs") EXECUTOR_METHOD(*rv = static_cast<int64_t>(graph_.arg_nodes.size()));
  if (name == "get_input_index") EXECUTOR_METHOD(*rv = static_cast<int64_t>(InputIndex(args[0])));
  if (name == "get_output_index") EXECUTOR_METHOD(*rv = static_cast<int64_t>(OutputIndex(args[0])));
  if (name == "run_with_inputs") EXECUTOR_METHOD(RunWithInputs(args));
  if (name == "run_from_inputs") EXECUTOR_METHOD(RunFromInputs(args));
  if (name == "get_input_info") EXECUTOR_METHOD(*rv = InputInfo());
  // (with_params): true if it is left out
  if (name == "get_input_info_json") EXECUTOR_METHOD(*rv = InputInfoText(args.num_args == 0 || bool(args[0])));
  if (name == "get_output_info_json") EXECUTOR_METHOD(*rv = OutputInfoText());
  if (name == "get_output_name") EXECUTOR_METHOD(int index = ParseOutputIndex(args[0]); OutputEntry(index); *rv = OutputName(index));
  if (name == "get_unset_inputs_json") EXECUTOR_METHOD(*rv = UnsetInputs());
  if (name == "load_params") {
    EXECUTOR_METHOD(ByteReader reader = ReaderOfParams(args[0]); *rv = OwnParams(LoadParams(&reader)));
  }
  if (name == "share_params") {
    EXECUTOR_METHOD(Module module = args[0]; auto* other = dynamic_cast<GraphExecutor*>(module.node());
                    if (other == nullptr) ThrowTypeError("share_params needs a GraphExecutor");
                    ByteReader reader = ReaderOfParams(args[1]);
                    ShareParams(*other, LoadParams(&reader)));
  }
#undef EXECUTOR_METHOD
  return PackedFunc();
}

Module CreateGraphExecutor(const std::string& json, Module library, std::vector<DLDevice> devices, const NamedArrays& params) {
  auto executor = make_object<GraphExecutor>(json, std::move(library), std::move(devices));
  executor->ShareParams(params);
  return Module(ObjectPtr<ModuleNode>(executor));
}

}  // namespace runtime
}  // namespace tvm
