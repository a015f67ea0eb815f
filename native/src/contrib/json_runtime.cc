// What all runtimes of JSON graphs share.
#include <tvm/runtime/contrib/json/json_runtime.h>

#include <algorithm>
#include <mutex>

#include "../arguments.h"
#include "../json.h"

namespace tvm {
namespace runtime {
namespace json {
namespace {

constexpr const char* kGraph = "the graph";

// Strings and numbers, however deeply nested, in order.
void Flatten(const Json& value, JSONGraphNode::Values* values) {
  if (value.kind() == Json::Kind::kArray) {
    for (const Json& item : value.Array(kGraph)) Flatten(item, values);
  } else {
    values->push_back(value.Text(kGraph));
  }
}

std::vector<std::vector<int64_t>> Shapes(const Json& value) {
  std::vector<std::vector<int64_t>> shapes;
  for (const Json& group : value.Array(kGraph)) {
    for (const Json& shape : group.Array(kGraph)) {
      std::vector<int64_t>& extents = shapes.emplace_back();
      for (const Json& extent : shape.Array(kGraph)) extents.push_back(extent.Int(kGraph));
    }
  }
  return shapes;
}

JSONGraphNodeEntry Entry(const Json& value) {
  const auto& parts = value.Array(kGraph);
  if (parts.size() < 2) ThrowValueError("an entry of the graph needs a node and an index");
  return {static_cast<uint32_t>(parts[0].Int(kGraph)), static_cast<uint32_t>(parts[1].Int(kGraph)),
          parts.size() > 2 ? static_cast<uint32_t>(parts[2].Int(kGraph)) : 0};
}

std::vector<JSONGraphNodeEntry> Entries(const Json& value) {
  std::vector<JSONGraphNodeEntry> entries;
  for (const Json& entry : value.Array(kGraph)) entries.push_back(Entry(entry));
  return entries;
}

std::vector<uint32_t> Numbers(const Json& value) {
  std::vector<uint32_t> numbers;
  for (const Json& number : value.Array(kGraph)) numbers.push_back(static_cast<uint32_t>(number.Int(kGraph)));
  return numbers;
}

JSONGraphNode Node(const Json& value) {
  const Json* inputs = value.Find("inputs");
  JSONGraphNode node(value.At("name", kGraph).String(kGraph), value.At("op", kGraph).String(kGraph),
                     inputs == nullptr ? std::vector<JSONGraphNodeEntry>() : Entries(*inputs));
  const Json* attrs = value.Find("attrs");
  if (attrs == nullptr) return node;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<DLDataType> dtypes;
  for (const auto& [key, attr] : attrs->Object(kGraph)) {
    if (key == "shape") {
      shapes = Shapes(attr);
      continue;
    }
    JSONGraphNode::Values values;
    Flatten(attr, &values);
    if (key == "dtype") {
      for (const std::string& dtype : values) dtypes.push_back(String2DLDataType(dtype));
    } else if (key == "num_outputs") {
      node.SetNumOutput(static_cast<uint32_t>(std::stoul(values.at(0))));
    } else {
      node.SetAttr(key, std::move(values));
    }
  }
  node.SetOpTypes(std::move(shapes), std::move(dtypes));
  return node;
}

}  // namespace

JSONRuntimeBase::JSONRuntimeBase(const std::string& symbol_name, const std::string& graph_json, const Array<String>& const_names)
    : symbol_name_(symbol_name), graph_json_(graph_json), const_names_(const_names) {
  LoadGraph();
}

void JSONRuntimeBase::LoadGraph() {
  try {
    ReadNodes();
  } catch (const std::logic_error&) {  // what text of digits alone would not raise
    ThrowValueError("the graph of '", symbol_name_, "' has a wrong number of results");
  }
  Check();
}

void JSONRuntimeBase::ReadNodes() {
  Json graph = Json::Parse(graph_json_, Cat("the graph of '", symbol_name_, "'"));
  for (const Json& node : graph.At("nodes", kGraph).Array(kGraph)) nodes_.push_back(Node(node));
  input_nodes_ = Numbers(graph.At("arg_nodes", kGraph));
  node_row_ptr_ = Numbers(graph.At("node_row_ptr", kGraph));
  outputs_ = Entries(graph.At("heads", kGraph));
}

void JSONRuntimeBase::Check() {
  if (node_row_ptr_.size() != nodes_.size() + 1) ThrowValueError("the graph of '", symbol_name_, "' has a wrong node_row_ptr");
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (node_row_ptr_[i + 1] - node_row_ptr_[i] != nodes_[i].GetNumOutput() || nodes_[i].GetOpShape().size() != nodes_[i].GetNumOutput() ||
        nodes_[i].GetOpDataType().size() != nodes_[i].GetNumOutput()) {
      ThrowValueError("the graph of '", symbol_name_, "' is corrupt: node ", i, " has ", nodes_[i].GetNumOutput(), " results");
    }
    for (const JSONGraphNodeEntry& entry : nodes_[i].GetInputs()) {
      if (entry.id_ >= i || entry.index_ >= nodes_[entry.id_].GetNumOutput()) {
        ThrowValueError("the graph of '", symbol_name_, "' is corrupt: node ", i, " takes what is not before it");
      }
    }
  }
  for (const JSONGraphNodeEntry& entry : outputs_) {
    if (entry.id_ >= nodes_.size() || entry.index_ >= nodes_[entry.id_].GetNumOutput()) {
      ThrowValueError("the graph of '", symbol_name_, "' is corrupt: it returns what it has not");
    }
  }
  std::vector<uint32_t> given;
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    const std::string& kind = nodes_[i].GetOpType();
    if (kind == "input" || kind == "const") {
      given.push_back(i);
    } else if (kind != "kernel") {
      ThrowValueError("the graph of '", symbol_name_, "' has a node of the kind '", kind, "'; there are input, const and kernel");
    }
  }
  if (!std::is_permutation(given.begin(), given.end(), input_nodes_.begin(), input_nodes_.end())) {
    ThrowValueError("the graph of '", symbol_name_, "' is corrupt: arg_nodes are not its inputs and constants");
  }
  for (uint32_t node : input_nodes_) {
    const std::string& kind = nodes_[node].GetOpType();
    if (kind == "const") {
      const_idx_.push_back(node);
    } else {
      for (uint32_t i = 0; i < nodes_[node].GetNumOutput(); ++i) input_var_eid_.push_back(EntryID(node, i));
    }
  }
  if (const_idx_.size() != const_names_.size()) {
    ThrowValueError("the graph of '", symbol_name_, "' has ", const_idx_.size(), " constants, got names of ", const_names_.size());
  }
  data_entry_.resize(NumEntries());
}

PackedFunc JSONRuntimeBase::GetFunction(const String& name, const ObjectPtr<Object>& sptr_to_self) {
  if (name == "get_symbol") {
    return PackedFunc([this, sptr_to_self](TVMArgs, TVMRetValue* rv) { *rv = symbol_name_; });
  }
  if (name == "get_const_vars") {
    return PackedFunc([this, sptr_to_self](TVMArgs, TVMRetValue* rv) { *rv = const_names_; });
  }
  if (symbol_name_ == std::string(name)) {
    return PackedFunc([this, sptr_to_self](TVMArgs args, TVMRetValue*) {
      std::lock_guard<RunLock> lock(lock_);
      if (!initialized_) ThrowError("'", symbol_name_, "' was called before __init_", symbol_name_, " gave it its constants");
      SetInputOutputBuffers(args);
      Run();
      CopyOthers();
    });
  }
  if ("__init_" + symbol_name_ == std::string(name)) {
    return PackedFunc([this, sptr_to_self](TVMArgs args, TVMRetValue* rv) {
      std::lock_guard<RunLock> lock(lock_);
      if (!initialized_) {
        consts_ = args[0].operator Array<NDArray>();
        Init(consts_);
        initialized_ = true;
      }
      *rv = 0;
    });
  }
  return PackedFunc();
}

void JSONRuntimeBase::SaveToBinary(dmlc::Stream* stream) {
  stream->Write(symbol_name_);
  stream->Write(graph_json_);
  std::vector<std::string> names;
  for (const String& name : const_names_) names.push_back(name);
  stream->Write(names);
}

void JSONRuntimeBase::SetupConstants(const Array<NDArray>& consts) {
  if (consts.size() != const_idx_.size()) {
    ThrowValueError("'", symbol_name_, "' has ", const_idx_.size(), " constants, got ", consts.size());
  }
  for (size_t i = 0; i < const_idx_.size(); ++i) {
    NDArray value = consts[i];
    if (!value.defined() || nodes_[const_idx_[i]].GetNumOutput() != 1) ThrowValueError("'", symbol_name_, "' has no constant ", i);
    CheckTensor(*value.operator->(), {const_idx_[i], 0}, Cat("constant ", std::string(const_names_[i])));
    data_entry_[EntryID(const_idx_[i], 0)] = value.operator->();
  }
}

void JSONRuntimeBase::SetInputOutputBuffers(TVMArgs args) {
  size_t count = input_var_eid_.size() + outputs_.size();
  if (static_cast<size_t>(args.size()) != count) {
    ThrowTypeError("'", symbol_name_, "' takes ", input_var_eid_.size(), " inputs and ", outputs_.size(), " outputs, got ", args.size(),
                   " arguments");
  }
  int position = 0;
  for (uint32_t node : input_nodes_) {
    if (nodes_[node].GetOpType() == "const") continue;
    for (uint32_t i = 0; i < nodes_[node].GetNumOutput(); ++i, ++position) {
      const DLTensor* argument = &TensorIn(args[position]);
      CheckTensor(*argument, {node, i}, Cat("argument ", position));
      data_entry_[EntryID(node, i)] = argument;
    }
  }
  output_buffers_.clear();
  for (const JSONGraphNodeEntry& output : outputs_) {
    const DLTensor* argument = &TensorIn(args[position]);
    CheckTensor(*argument, output, Cat("argument ", position++));
    output_buffers_.push_back(argument);
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (IsComputed(i)) data_entry_[EntryID(outputs_[i])] = output_buffers_[i];
  }
}

bool JSONRuntimeBase::IsComputed(size_t output) const {
  uint32_t entry = EntryID(outputs_[output]);
  auto is_same = [&](const JSONGraphNodeEntry& other) { return EntryID(other) == entry; };
  bool is_first = std::none_of(outputs_.begin(), outputs_.begin() + output, is_same);
  return is_first && nodes_[outputs_[output].id_].GetOpType() == "kernel";
}

void JSONRuntimeBase::CopyOthers() const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!IsComputed(i)) NDArray::CopyFromTo(data_entry_[EntryID(outputs_[i])], const_cast<DLTensor*>(output_buffers_[i]));
  }
}

void JSONRuntimeBase::CheckTensor(const DLTensor& argument, const JSONGraphNodeEntry& entry, const std::string& what) const {
  const std::vector<int64_t>& shape = nodes_[entry.id_].GetOpShape()[entry.index_];
  DLDataType dtype = nodes_[entry.id_].GetOpDataType()[entry.index_];
  bool has_shape = static_cast<size_t>(argument.ndim) == shape.size() && std::equal(shape.begin(), shape.end(), argument.shape);
  if (has_shape && TypeEqual(argument.dtype, dtype) && IsContiguous(argument)) return;
  ThrowValueError("'", symbol_name_, "': ", what, " must be contiguous ", DLDataType2String(dtype), " of shape ",
                  ShapeText(shape.data(), static_cast<int>(shape.size())), ", got ", DLDataType2String(argument.dtype), " of shape ",
                  ShapeText(argument.shape, argument.ndim));
}

}  // namespace json
}  // namespace runtime
}  // namespace tvm
