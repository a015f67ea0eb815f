// The states of recurrent networks, a ring of the last ones for each sequence, so that steps can be taken back.
//
//     state = rnn_state_create(layers, sequences, history, getters, setters, initial values)
//     kv_state_begin_forward(state, sequences, lengths)
//     rnn_state_get(state, layer, i, out); rnn_state_set(state, layer, i, data)
//     kv_state_end_forward(state): what was set is now the state
#include <tvm/runtime/container/array.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <unordered_map>

#include "kv_state.h"

namespace tvm {
namespace runtime {
namespace relax_vm {
namespace {

class RNNStateObj : public KVState {
 public:
  RNNStateObj(int64_t layers, int64_t sequences, int64_t history, Array<ObjectRef> get, Array<ObjectRef> set, Array<NDArray> initial)
      : history_(history), initial_(std::move(initial)) {
    for (size_t i = 0; i < initial_.size(); ++i) {
      get_.push_back(AsFunction(get[i]));
      set_.push_back(AsFunction(set[i]));
    }
    for (int64_t layer = 0; layer < layers; ++layer) {
      storage_.emplace_back();
      for (const NDArray& value : initial_) {
        std::vector<int64_t> shape = value.extents();
        shape.insert(shape.begin(), {sequences, history});
        storage_.back().push_back(NDArray::Empty(shape, value.DataType(), value->device));
      }
    }
    most_sequences_ = sequences;
    Clear();
  }

  void Clear() final {
    sequences_.clear();
    free_.clear();
    for (int64_t slot = most_sequences_ - 1; slot >= 0; --slot) free_.push_back(slot);
    batch_.clear();
  }

  void AddSequence(int64_t sequence) final {
    const Entry& entry = NewEntry(sequence);
    for (const auto& layer : storage_) {
      for (size_t i = 0; i < layer.size(); ++i) At(layer[i], entry.slot, 0).CopyFrom(initial_[i]);
    }
  }

  void RemoveSequence(int64_t sequence) final {
    free_.push_back(Find(sequence).slot);
    sequences_.erase(sequence);
  }

  void ForkSequence(int64_t parent, int64_t child, int64_t position) final {
    Entry from = Find(parent);
    if (position >= 0) ThrowValueError("a recurrent state can be forked at its end only, position -1, got ", position);
    Entry& to = NewEntry(child);
    to.at = from.at;
    to.past = from.past;
    for (const auto& layer : storage_) {
      for (const NDArray& state : layer) Whole(state, to.slot).CopyFrom(Whole(state, from.slot));
    }
  }

  void PopN(int64_t sequence, int64_t count) final {
    Entry& entry = Find(sequence);
    if (count < 0 || count > entry.past) ThrowValueError("sequence ", sequence, " has ", entry.past, " states to go back to, got ", count);
    entry.past -= count;
    entry.at = (entry.at + history_ - count) % history_;
  }

  void BeginForward(const ShapeTuple& sequences, const ShapeTuple& lengths, const ShapeTuple& parents) final {
    if (!parents.empty()) ThrowValueError("a recurrent state takes no trees of tokens");
    std::vector<int32_t> slots, places;
    for (int64_t sequence : sequences) {
      const Entry& entry = Find(sequence);
      slots.push_back(static_cast<int32_t>(entry.slot));
      places.push_back(static_cast<int32_t>(entry.at));
    }
    batch_.assign(sequences.begin(), sequences.end());
    const NDArray first = storage_.at(0).at(0);
    slots_ = HostVector(slots).CopyTo(first->device);
    places_ = HostVector(places).CopyTo(first->device);
  }

  void EndForward() final {
    for (int64_t sequence : batch_) {
      Entry& entry = Find(sequence);
      entry.at = (entry.at + 1) % history_;
      entry.past = std::min(entry.past + 1, history_ - 1);
    }
    batch_.clear();
  }

  void Get(int64_t layer, int64_t state, const NDArray& out) const { Call(get_, layer, state, out); }
  void Set(int64_t layer, int64_t state, const NDArray& data) const { Call(set_, layer, state, data); }

  NDArray DebugGet(int64_t layer, int64_t state, int64_t sequence) {
    const NDArray& storage = Storage(layer, state);
    const Entry& entry = Find(sequence);
    return At(storage, entry.slot, entry.at).CopyTo(storage->device);
  }

  static constexpr const char* _type_key = "relax.vm.RNNState";
  TVM_DECLARE_FINAL_OBJECT_INFO(RNNStateObj, KVState);

 private:
  struct Entry {
    int64_t slot;
    int64_t at{0};    // the current state in its ring
    int64_t past{0};  // states before it that are there yet
  };

  static PackedFunc AsFunction(const ObjectRef& object) {
    TVMRetValue value;
    value = object;
    return value;
  }

  Entry& NewEntry(int64_t sequence) {
    if (sequences_.count(sequence) != 0) ThrowValueError("the state has a sequence ", sequence, " already");
    if (free_.empty()) ThrowValueError("the state was made for ", most_sequences_, " sequences, which it has");
    int64_t slot = free_.back();
    free_.pop_back();
    return sequences_[sequence] = Entry{slot};
  }

  Entry& Find(int64_t sequence) {
    auto found = sequences_.find(sequence);
    if (found == sequences_.end()) ThrowValueError("the state has no sequence ", sequence);
    return found->second;
  }

  const NDArray& Storage(int64_t layer, int64_t state) const {
    if (layer < 0 || layer >= static_cast<int64_t>(storage_.size()) || state < 0 || state >= static_cast<int64_t>(initial_.size())) {
      ThrowValueError("there are ", storage_.size(), " layers of ", initial_.size(), " states, got state ", state, " of layer ", layer);
    }
    return storage_[layer][state];
  }

  void Call(const std::vector<PackedFunc>& functions, int64_t layer, int64_t state, const NDArray& data) const {
    const NDArray& storage = Storage(layer, state);
    if (batch_.empty()) ThrowValueError("no forward pass has begun: call kv_state_begin_forward first");
    functions[state](storage, slots_, places_, data);
  }

  // All states of a sequence, or one of them.
  NDArray Whole(const NDArray& storage, int64_t slot) const {
    std::vector<int64_t> shape(storage.extents().begin() + 1, storage.extents().end());
    return storage.CreateView(shape, storage.DataType(), slot * DataBytes(*storage.tensor()) / most_sequences_);
  }
  NDArray At(const NDArray& storage, int64_t slot, int64_t place) const {
    std::vector<int64_t> shape(storage.extents().begin() + 2, storage.extents().end());
    return storage.CreateView(shape, storage.DataType(), (slot * history_ + place) * DataBytes(*storage.tensor()) / (most_sequences_ * history_));
  }

  int64_t history_;
  int64_t most_sequences_{0};
  Array<NDArray> initial_;
  std::vector<PackedFunc> get_, set_;
  std::vector<std::vector<NDArray>> storage_;  // of layers and states: (sequences, history, the state's shape)
  std::vector<int64_t> free_;
  std::unordered_map<int64_t, Entry> sequences_;
  std::vector<int64_t> batch_;
  NDArray slots_, places_;
};

TVM_REGISTER_OBJECT_TYPE(RNNStateObj);

RNNStateObj* RecurrentIn(const TVMArgValue& value) { return StateIn<RNNStateObj>(value, "a state of rnn_state_create"); }

}  // namespace

// (layers, sequences, history, functions that get each state, that set it, initial values)
TVM_REGISTER_GLOBAL("vm.builtin.rnn_state_create").set_body([](TVMArgs args, TVMRetValue* rv) {
  int64_t layers = args[0], sequences = args[1], history = args[2];
  Array<ObjectRef> get = args[3], set = args[4];
  Array<NDArray> initial = args[5];
  if (layers < 1 || sequences < 1 || history < 1) ThrowValueError("rnn_state_create needs positive sizes, got ", layers, ", ", sequences, " and ", history);
  if (initial.empty() || get.size() != initial.size() || set.size() != initial.size()) {
    ThrowValueError("rnn_state_create needs a getter and a setter for each initial value, got ", get.size(), ", ", set.size(), " and ", initial.size());
  }
  *rv = ObjectRef(ObjectPtr<Object>(make_object<RNNStateObj>(layers, sequences, history, get, set, initial)));
});
// (state, layer, which one, result)
TVM_REGISTER_GLOBAL("vm.builtin.rnn_state_get").set_body([](TVMArgs args, TVMRetValue* rv) {
  RecurrentIn(args[0])->Get(args[1], args[2], args[3]);
  *rv = args[3];
});
// (state, layer, which one, value): the state
TVM_REGISTER_GLOBAL("vm.builtin.rnn_state_set").set_body([](TVMArgs args, TVMRetValue* rv) {
  RecurrentIn(args[0])->Set(args[1], args[2], args[3]);
  *rv = args[0];
});
TVM_REGISTER_GLOBAL("vm.builtin.rnn_state_debug_get").set_body([](TVMArgs args, TVMRetValue* rv) {
  *rv = RecurrentIn(args[0])->DebugGet(args[1], args[2], args[3]);
});

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
