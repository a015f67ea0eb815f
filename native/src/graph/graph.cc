// Reading graph JSON.
#include "graph.h"

#include <tvm/runtime/error.h>

#include "../checksum.h"
#include "../json.h"

namespace tvm {
namespace runtime {
namespace {

constexpr int64_t kMaxCount = int64_t{1} << 31;

uint32_t Count(const Json& value, const std::string& place) {
  int64_t count = value.Int(place);
  if (count < 0 || count >= kMaxCount) ThrowValueError(place, " must be a small natural number, got ", count);
  return static_cast<uint32_t>(count);
}

std::vector<GraphEntry> ReadEntries(const Json& value, const std::string& place) {
  std::vector<GraphEntry> entries;
  for (const Json& item : value.Array(place)) {
    const std::vector<Json>& parts = item.Array(place);
    if (parts.size() < 2) ThrowValueError(place, " must be lists of node, index and version");
    entries.push_back({Count(parts[0], place), Count(parts[1], place)});
  }
  return entries;
}

GraphNode ReadNode(const Json& value, size_t number) {
  std::string place = Cat("graph JSON: node ", number);
  value.Object(place);
  GraphNode node;
  const std::string& op = value.At("op", place).String(place + " op");
  node.name = value.At("name", place).String(place + " name");
  node.inputs = ReadEntries(value.At("inputs", place), place + " inputs");
  if (op == "null") return node;
  if (op != "tvm_op") ThrowValueError(place, " op must be null or tvm_op, got '", op, "'");
  node.is_op = true;
  const Json* attrs = value.Find("attrs");
  if (attrs == nullptr) attrs = value.Find("attr");
  if (attrs == nullptr) ThrowValueError(place, " has no 'attrs'");
  node.func_name = attrs->At("func_name", place + " attrs").String(place + " func_name");
  if (const Json* count = attrs->Find("num_outputs")) node.num_outputs = Count(*count, place + " num_outputs");
  if (const Json* count = attrs->Find("num_inputs")) {
    if (Count(*count, place + " num_inputs") != node.inputs.size()) {
      ThrowValueError(place, " says ", count->Text(place), " inputs and lists ", node.inputs.size());
    }
  }
  if (const Json* hash = attrs->Find("hash")) node.hash = hash->Text(place + " hash");
  if (const Json* sources = attrs->Find("sources")) node.sources = sources->Text(place + " sources");
  if (const Json* flatten = attrs->Find("flatten_data")) node.flatten_data = flatten->Text(place) == "1";
  return node;
}

// The list in an attribute ["list_kind", [...]].
const std::vector<Json>& ListAttribute(const Json& attrs, const std::string& key, size_t entries) {
  std::string place = "graph JSON: attrs " + key;
  const std::vector<Json>& tagged = attrs.At(key, "graph JSON: attrs").Array(place);
  if (tagged.size() != 2) ThrowValueError(place, " must be a kind and a list");
  const std::vector<Json>& list = tagged[1].Array(place);
  if (list.size() != entries) ThrowValueError(place, " has ", list.size(), " items for ", entries, " tensors");
  return list;
}

void ReadEntryAttributes(const Json& attrs, Graph* graph) {
  size_t entries = graph->num_entries();
  for (const Json& item : ListAttribute(attrs, "dltype", entries)) {
    graph->dtypes.push_back(String2DLDataType(item.String("graph JSON: attrs dltype")));
  }
  for (const Json& item : ListAttribute(attrs, "storage_id", entries)) {
    int64_t id = item.Int("graph JSON: attrs storage_id");
    if (id < 0 || id >= kMaxCount) ThrowValueError("graph JSON: attrs storage_id must be natural numbers, got ", id);
    graph->storage_ids.push_back(id);
  }
  for (const Json& item : ListAttribute(attrs, "shape", entries)) {
    std::vector<int64_t> shape;
    for (const Json& extent : item.Array("graph JSON: attrs shape")) {
      shape.push_back(extent.Int("graph JSON: attrs shape"));
      if (shape.back() < 0) ThrowValueError("graph JSON: attrs shape has a negative extent ", shape.back());
    }
    graph->shapes.push_back(std::move(shape));
  }
  if (attrs.Find("device_index") == nullptr) return;
  for (const Json& item : ListAttribute(attrs, "device_index", entries)) {
    graph->device_types.push_back(static_cast<int>(item.Int("graph JSON: attrs device_index")));
  }
}

// The last member, which runtimes that do not know names of outputs skip.
void ReadMetadata(const Json& metadata, Graph* graph) {
  const std::string place = "graph JSON: metadata";
  metadata.Object(place);
  const Json* names = metadata.Find("output_names");
  if (names == nullptr) return;
  for (const Json& name : names->Array(place + " output_names")) {
    graph->output_names.push_back(name.String(place + " output_names"));
  }
  if (graph->output_names.size() != graph->heads.size()) {
    ThrowValueError(place, " output_names has ", graph->output_names.size(), " items for ", graph->heads.size(), " outputs");
  }
}

double EntrySize(const Graph& graph, uint32_t entry) {
  double size = static_cast<double>(ElementBytes(graph.dtypes[entry]));
  for (int64_t extent : graph.shapes[entry]) size *= static_cast<double>(extent);
  return size;
}

void CheckReshapes(const Graph& graph) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!graph.nodes[i].is_nop()) continue;
    if (EntrySize(graph, graph.row_ptr[i]) != EntrySize(graph, graph.entry_id(graph.nodes[i].inputs[0]))) {
      ThrowValueError("graph JSON: node ", i, " (__nop) changes the size of its input");
    }
  }
}

void CheckEntry(const Graph& graph, GraphEntry entry, size_t before, const std::string& place) {
  if (entry.node >= before || entry.index >= graph.nodes[entry.node].num_outputs) {
    ThrowValueError(place, " refers to output ", entry.index, " of node ", entry.node, ", which does not exist before it");
  }
}

void Check(const Graph& graph) {
  size_t count = graph.nodes.size();
  for (size_t i = 0; i < count; ++i) {
    for (GraphEntry input : graph.nodes[i].inputs) CheckEntry(graph, input, i, Cat("graph JSON: node ", i));
    if (graph.nodes[i].is_nop() && (graph.nodes[i].inputs.size() < 1 || graph.nodes[i].num_outputs != 1)) {
      ThrowValueError("graph JSON: node ", i, " (__nop) needs an input and one output");
    }
  }
  for (GraphEntry head : graph.heads) CheckEntry(graph, head, count, "graph JSON: heads");
  for (uint32_t arg : graph.arg_nodes) {
    if (arg >= count || graph.nodes[arg].is_op) ThrowValueError("graph JSON: arg_nodes refers to ", arg, ", which is no input");
  }
  if (graph.row_ptr.size() != count + 1) {
    ThrowValueError("graph JSON: node_row_ptr has ", graph.row_ptr.size(), " items for ", count, " nodes");
  }
  for (size_t i = 0; i < count; ++i) {
    if (graph.row_ptr[0] != 0 || graph.row_ptr[i + 1] != graph.row_ptr[i] + graph.nodes[i].num_outputs) {
      ThrowValueError("graph JSON: node_row_ptr does not fit the nodes' outputs");
    }
  }
}

}  // namespace

Graph Graph::Parse(const std::string& json) {
  const std::string place = "graph JSON";
  CheckText(json, place);
  Json root = Json::Parse(json, place);
  root.Object(place);
  Graph graph;
  for (const Json& node : root.At("nodes", place).Array("graph JSON: nodes")) {
    graph.nodes.push_back(ReadNode(node, graph.nodes.size()));
  }
  for (const Json& node : root.At("arg_nodes", place).Array("graph JSON: arg_nodes")) {
    graph.arg_nodes.push_back(Count(node, "graph JSON: arg_nodes"));
  }
  graph.heads = ReadEntries(root.At("heads", place), "graph JSON: heads");
  for (const Json& item : root.At("node_row_ptr", place).Array("graph JSON: node_row_ptr")) {
    graph.row_ptr.push_back(Count(item, "graph JSON: node_row_ptr"));
  }
  Check(graph);
  const Json& attrs = root.At("attrs", place);
  attrs.Object("graph JSON: attrs");
  ReadEntryAttributes(attrs, &graph);
  CheckReshapes(graph);
  if (const Json* metadata = root.Find("metadata")) ReadMetadata(*metadata, &graph);
  return graph;
}

}  // namespace runtime
}  // namespace tvm
