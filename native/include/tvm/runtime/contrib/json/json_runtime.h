// A base for runtimes of one's own: modules that run a graph given as JSON.
//
//     class MyRuntime : public JSONRuntimeBase {
//      public:
//       MyRuntime(const std::string& symbol, const std::string& graph, const Array<String>& constants)
//           : JSONRuntimeBase(symbol, graph, constants) {}
//       const char* type_key() const final { return "my_json"; }
//       void Init(const Array<NDArray>& consts) final { SetupConstants(consts); }
//       void Run() final { ... data_entry_[EntryID(outputs_[0])]->data ... }
//     };
//     TVM_REGISTER_GLOBAL("runtime.MyJSONRuntimeCreate").set_body_typed(...);
//     TVM_REGISTER_GLOBAL("runtime.module.loadbinary_my_json").set_body_typed(JSONRuntimeBase::LoadFromBinary<MyRuntime>);
#ifndef TVM_RUNTIME_CONTRIB_JSON_JSON_RUNTIME_H_
#define TVM_RUNTIME_CONTRIB_JSON_JSON_RUNTIME_H_

#include <tvm/runtime/container/array.h>
#include <tvm/runtime/contrib/json/json_node.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>
#include <tvm/runtime/run_lock.h>

#include <memory>
#include <string>
#include <vector>

namespace tvm {
namespace runtime {
namespace json {

class TVM_DLL JSONRuntimeBase : public ModuleNode {
 public:
  // Raises if the text is no such graph.
  JSONRuntimeBase(const std::string& symbol_name, const std::string& graph_json, const Array<String>& const_names);

  const char* type_key() const override { return "json"; }
  int GetPropertyMask() const override { return ModulePropertyMask::kBinarySerializable | ModulePropertyMask::kRunnable; }

  // Prepares to run; `consts` in the order of `const_names_`. Called once, before the first Run.
  virtual void Init(const Array<NDArray>& consts) = 0;
  // Computes the outputs in `data_entry_` from what is there. One thread at a time calls it.
  virtual void Run() = 0;

  // Answers to the symbol's name, `__init_<symbol>`, `get_symbol` and `get_const_vars`.
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& sptr_to_self) override;
  void SaveToBinary(dmlc::Stream* stream) override;
  String GetSource(const String& /*format*/) override { return graph_json_; }

  template <class T>
  static Module LoadFromBinary(void* stream) {
    dmlc::Stream* bytes = LoaderStream(stream);
    std::string symbol, graph_json;
    std::vector<std::string> names;
    if (!bytes->Read(&symbol) || !bytes->Read(&graph_json) || !bytes->Read(&names)) {
      ThrowValueError("the bytes of a JSON runtime module are truncated");
    }
    return Module(ObjectPtr<ModuleNode>(make_object<T>(symbol, graph_json, Array<String>(names.begin(), names.end()))));
  }

 protected:
  // The place in `data_entry_` of one result of a node.
  uint32_t EntryID(uint32_t node, uint32_t index) const { return node_row_ptr_[node] + index; }
  uint32_t EntryID(const JSONGraphNodeEntry& entry) const { return EntryID(entry.id_, entry.index_); }
  uint32_t NumEntries() const { return node_row_ptr_.back(); }
  // Whether Run writes this output; those that are inputs, constants or earlier outputs are copied after it.
  bool IsComputed(size_t output) const;
  // Puts the constants into `data_entry_`.
  void SetupConstants(const Array<NDArray>& consts);

  std::string symbol_name_;
  std::string graph_json_;
  Array<String> const_names_;
  std::vector<JSONGraphNode> nodes_;
  std::vector<uint32_t> node_row_ptr_;
  std::vector<uint32_t> input_nodes_;     // inputs and constants
  std::vector<uint32_t> input_var_eid_;   // the entries of the inputs, in the order of the arguments
  std::vector<uint32_t> const_idx_;       // the nodes of the constants
  std::vector<JSONGraphNodeEntry> outputs_;
  std::vector<const DLTensor*> data_entry_;
  bool initialized_{false};

 private:
  void LoadGraph();
  void ReadNodes();
  void Check();
  void SetInputOutputBuffers(TVMArgs args);
  void CheckTensor(const DLTensor& argument, const JSONGraphNodeEntry& entry, const std::string& what) const;

  void CopyOthers() const;

  Array<NDArray> consts_;  // kept alive
  std::vector<const DLTensor*> output_buffers_;
  RunLock lock_;
};

}  // namespace json
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_RUNTIME_CONTRIB_JSON_JSON_RUNTIME_H_
