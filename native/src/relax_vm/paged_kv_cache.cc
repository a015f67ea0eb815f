// Keys and values of many sequences in pages, and attention over them. The kernels are the program's.
//
//     kv_state_add_sequence(cache, 7)
//     kv_state_begin_forward(cache, sequences (7), lengths (5))
//     each layer: out = attention_kv_cache_attention_with_fused_qkv(cache, layer, scale, qkv)
//     kv_state_end_forward(cache)
#include <tvm/runtime/registry.h>

#include <algorithm>

#include "builtin.h"
#include "kv_state.h"
#include "page_table.h"

namespace tvm {
namespace runtime {
namespace relax_vm {
namespace {

constexpr DLDevice kHost{kDLCPU, 0};
enum RopeMode { kNone = 0, kNormal = 1, kInline = 2 };

// The program's kernels.
struct Kernels {
  PackedFunc append, prefill, decode, prefill_window, decode_window, prefill_ragged, split_rotary, copy_page, debug_get;
};

struct CacheConfig {
  int64_t most_sequences, most_tokens, chunk, page_size;
  bool has_windows;
  int64_t first_layer, layers, heads, kv_heads, depth, rope_mode;
  double rope_scale, rope_theta;
  DLDataType dtype;
  NDArray rope_factors;
};

// What the kernels are told about the sequences of a forward pass.
struct Batch {
  std::vector<int64_t> sequences;
  int64_t tokens{0};
  bool is_decode{false}, has_history{false}, has_window{false};
  NDArray query_start, query_positions, query_rope_positions, slots;
  // the pages that hold what the queries attend to
  NDArray page_start, pages, lengths, key_rope_offsets;
};

class PagedCacheObj : public KVState {
 public:
  PagedCacheObj(CacheConfig config, Kernels kernels)
      : config_(std::move(config)), kernels_(std::move(kernels)), table_(PageCount(), config_.page_size, config_.most_sequences) {
    for (int64_t i = 0; i < config_.layers; ++i) {
      pages_.push_back(NDArray::Empty({PageCount(), 2, config_.kv_heads, config_.page_size, config_.depth}, config_.dtype, kHost));
    }
    query_ = Scratch({config_.chunk, config_.heads, config_.depth}, config_.dtype);
    key_ = Scratch({config_.chunk, config_.kv_heads, config_.depth}, config_.dtype);
    value_ = Scratch({config_.chunk, config_.kv_heads, config_.depth}, config_.dtype);
    DLDataType f32{kDLFloat, 32, 1};
    sums_ = Scratch({config_.chunk, config_.heads}, f32);
  }

  void Clear() final {
    table_.Clear();
    batch_ = Batch();
  }
  void AddSequence(int64_t sequence) final { table_.Add(sequence); }
  void RemoveSequence(int64_t sequence) final { table_.Remove(sequence); }
  void ForkSequence(int64_t parent, int64_t child, int64_t position) final { table_.Fork(parent, child, position); }
  void PopN(int64_t sequence, int64_t count) final { table_.Pop(sequence, count); }
  void EndForward() final { batch_ = Batch(); }

  void SlideSequence(int64_t sequence, int64_t window, int64_t sink) {
    if (!config_.has_windows) ThrowValueError("the cache was made without sliding windows: support_sliding_window is 0");
    table_.Slide(sequence, window, sink);
  }

  void BeginForward(const ShapeTuple& sequences, const ShapeTuple& lengths, const ShapeTuple& parents) final {
    CheckForward(sequences, lengths, parents);
    Batch batch;
    batch.sequences.assign(sequences.begin(), sequences.end());
    std::vector<int32_t> query_start{0}, positions, rope_positions, slots;
    batch.is_decode = std::all_of(lengths.begin(), lengths.end(), [](int64_t n) { return n == 1; });
    AppendAll(sequences, lengths, &slots);
    for (size_t i = 0; i < sequences.size(); ++i) {
      const Sequence& at = table_.At(sequences[i]);
      for (int64_t k = lengths[i]; k > 0; --k) {
        positions.push_back(static_cast<int32_t>(at.position - k));
        rope_positions.push_back(static_cast<int32_t>(at.Visible() - k));
      }
      query_start.push_back(static_cast<int32_t>(positions.size()));
      batch.has_history |= at.length > lengths[i];
      batch.has_window |= at.window >= 0;
    }
    batch.tokens = static_cast<int64_t>(positions.size());
    batch.query_start = HostVector(query_start);
    batch.query_positions = HostVector(positions);
    batch.query_rope_positions = HostVector(rope_positions);
    batch.slots = HostVector(slots);
    DescribePages(&batch, lengths);
    batch_ = std::move(batch);
  }

  NDArray QueryPositions() const {
    CheckBegun();
    return batch_.query_positions;
  }
  int64_t AvailablePages() const { return table_.FreePages(); }
  int64_t TotalLength() const { return table_.TotalLength(); }
  bool Empty() const { return table_.Empty(); }

  // qkv: (tokens, heads + 2 * kv_heads, depth) and out: (tokens, heads, depth)
  void Attend(int64_t layer, double scale, const NDArray& qkv, const NDArray& out) {
    CheckBegun();
    CheckTensor(qkv, {batch_.tokens, config_.heads + 2 * config_.kv_heads, config_.depth}, "qkv");
    CheckTensor(out, {batch_.tokens, config_.heads, config_.depth}, "the result");
    const NDArray& pages = pages_[LocalLayer(layer)];
    NDArray query = Rows(query_), key = Rows(key_), value = Rows(value_), sums = Rows(sums_);
    if (config_.rope_factors.defined()) {
      kernels_.split_rotary(qkv, batch_.query_positions, query, key, value, config_.rope_factors);
    } else {
      kernels_.split_rotary(qkv, batch_.query_positions, query, key, value, int(config_.rope_mode == kNormal));
    }
    kernels_.append(pages, key, value, batch_.slots);
    int rope = config_.rope_mode == kInline;
    if (batch_.is_decode) {
      const PackedFunc& decode = batch_.has_window ? kernels_.decode_window : kernels_.decode;
      decode(query, pages, batch_.page_start, batch_.pages, batch_.lengths, batch_.key_rope_offsets, batch_.query_rope_positions, out, sums,
             rope, config_.rope_scale, config_.rope_theta, scale);
      return;
    }
    if (!batch_.has_history && !batch_.has_window) {
      kernels_.prefill_ragged(query, batch_.query_start, key, value, batch_.query_start, batch_.query_rope_positions, batch_.key_rope_offsets,
                              out, sums, 1, rope, config_.rope_scale, config_.rope_theta, scale);
      return;
    }
    const PackedFunc& prefill = batch_.has_window ? kernels_.prefill_window : kernels_.prefill;
    prefill(query, batch_.query_start, pages, batch_.page_start, batch_.pages, batch_.lengths, batch_.key_rope_offsets,
            batch_.query_rope_positions, out, sums, 1, rope, config_.rope_scale, config_.rope_theta, scale);
  }

  // keys and values: (layers, end - start, kv_heads, depth)
  void DebugGet(int64_t sequence, int64_t start, int64_t end, const NDArray& keys, const NDArray& values) const {
    if (!kernels_.debug_get.defined()) ThrowValueError("the cache was made without a function that reads it: f_debug_get_kv");
    const Sequence& at = table_.At(sequence);
    if (start < 0 || end <= start || end > at.length) ThrowValueError("sequence ", sequence, " has ", at.length, " tokens, got the range ", start, " to ", end);
    std::vector<int32_t> slots;
    for (int64_t i = start; i < end; ++i) slots.push_back(table_.Slot(at, i));
    NDArray places = HostVector(slots);
    for (int64_t i = 0; i < config_.layers; ++i) kernels_.debug_get(pages_[i], places, keys, values, i);
  }

  static constexpr const char* _type_key = "relax.vm.PagedAttentionKVCache";
  TVM_DECLARE_FINAL_OBJECT_INFO(PagedCacheObj, KVState);

 private:
  int64_t PageCount() const {
    int64_t spare = config_.has_windows ? 2 * config_.most_sequences : 0;
    return (config_.most_tokens + config_.page_size - 1) / config_.page_size + 1 + spare;
  }

  static NDArray Scratch(const ShapeTuple& shape, DLDataType dtype) { return NDArray::Empty(shape, dtype, kHost); }

  // The part of a scratch tensor that the batch's tokens take.
  NDArray Rows(const NDArray& scratch) const {
    std::vector<int64_t> shape = scratch.extents();
    shape[0] = batch_.tokens;
    return scratch.CreateView(shape, scratch.DataType());
  }

  void CheckBegun() const {
    if (batch_.sequences.empty()) ThrowValueError("no forward pass has begun: call kv_state_begin_forward first");
  }

  void CheckForward(const ShapeTuple& sequences, const ShapeTuple& lengths, const ShapeTuple& parents) const {
    if (sequences.empty()) ThrowValueError("begin_forward needs a sequence");
    int64_t total = 0;
    for (int64_t length : lengths) {
      if (length < 1) ThrowValueError("begin_forward needs lengths of at least 1, got ", lengths);
      total += length;
    }
    if (total > config_.chunk) ThrowValueError("the cache was made for ", config_.chunk, " tokens a pass (prefill_chunk_size), got ", total);
    for (size_t i = 0; i < sequences.size(); ++i) {
      if (std::count(sequences.begin(), sequences.begin() + i, sequences[i]) != 0) ThrowValueError("begin_forward was given sequence ", sequences[i], " twice");
      table_.At(sequences[i]);
    }
    int64_t first = 0;
    for (size_t i = 0; i < sequences.size() && !parents.empty(); first += lengths[i++]) {
      for (int64_t k = 0; k < lengths[i]; ++k) {
        if (first + k >= static_cast<int64_t>(parents.size()) || parents[first + k] != k - 1) {
          ThrowValueError("the cache takes tokens one after the other, got a tree of tokens with the parents ", parents);
        }
      }
    }
  }

  // All of them or, if there is no room, none.
  void AppendAll(const ShapeTuple& sequences, const ShapeTuple& lengths, std::vector<int32_t>* slots) {
    size_t done = 0;
    try {
      for (; done < sequences.size(); ++done) {
        std::vector<int32_t> own = table_.Append(sequences[done], lengths[done], [this](int32_t a, int32_t b, int64_t n) { CopyPage(a, b, n); });
        slots->insert(slots->end(), own.begin(), own.end());
      }
    } catch (...) {
      for (size_t i = 0; i < done; ++i) table_.Pop(sequences[i], lengths[i]);
      throw;
    }
  }

  int64_t LocalLayer(int64_t layer) const {
    int64_t local = layer - config_.first_layer;
    if (local < 0 || local >= config_.layers) {
      ThrowValueError("the cache has the layers ", config_.first_layer, " to ", config_.first_layer + config_.layers - 1, ", got ", layer);
    }
    return local;
  }

  void CheckTensor(const NDArray& tensor, const std::vector<int64_t>& shape, const char* what) const {
    bool fits = tensor.defined() && TypeEqual(tensor.DataType(), config_.dtype) && tensor.extents() == shape && tensor->device.device_type == kDLCPU;
    if (fits) return;
    std::string found = tensor.defined() ? DLDataType2String(tensor.DataType()) + " of shape " + ShapeText(tensor->shape, tensor->ndim) : "None";
    ThrowValueError("attention needs ", what, " of ", DLDataType2String(config_.dtype), " of shape ", ShapeText(shape.data(), static_cast<int>(shape.size())),
                    " on the host, got ", found);
  }

  void CopyPage(int32_t from, int32_t to, int64_t slots) const {
    for (const NDArray& pages : pages_) kernels_.copy_page(pages, int64_t(from), int64_t(to), slots);
  }

  void DescribePages(Batch* batch, const ShapeTuple& lengths) const {
    std::vector<int32_t> start{0}, pages, last, hidden, sink;
    for (int64_t sequence : batch->sequences) {
      const Sequence& at = table_.At(sequence);
      pages.insert(pages.end(), at.pages.begin(), at.pages.end());
      start.push_back(static_cast<int32_t>(pages.size()));
      last.push_back(static_cast<int32_t>(at.length - (static_cast<int64_t>(at.pages.size()) - 1) * config_.page_size));
      // with nothing hidden, slots are read as they stand
      int64_t first = at.window >= 0 ? std::min(at.sink, at.length) : 0;
      sink.push_back(static_cast<int32_t>(first));
      hidden.push_back(static_cast<int32_t>(first + at.hidden));
    }
    const int64_t count = static_cast<int64_t>(batch->sequences.size());
    batch->page_start = HostVector(start);
    batch->pages = HostVector(pages);
    batch->key_rope_offsets = HostVector(std::vector<int32_t>(count, 0));
    if (!batch->has_window) {
      batch->lengths = HostVector(last);
      return;
    }
    last.insert(last.end(), hidden.begin(), hidden.end());
    last.insert(last.end(), sink.begin(), sink.end());
    batch->lengths = HostVector(last).CreateView({3, count}, DLDataType{kDLInt, 32, 1});
  }

  CacheConfig config_;
  Kernels kernels_;
  PageTable table_;
  Batch batch_;
  std::vector<NDArray> pages_;  // of each layer: (pages, keys and values, kv_heads, page_size, depth)
  NDArray query_, key_, value_, sums_;
};

TVM_REGISTER_OBJECT_TYPE(PagedCacheObj);

PagedCacheObj* CacheIn(const TVMArgValue& value) {
  return StateIn<PagedCacheObj>(value, "a cache of paged_attention_kv_cache_create_reduced");
}

int64_t Positive(int64_t value, const char* what) {
  if (value < 1) ThrowValueError("a paged cache needs a positive ", what, ", got ", value);
  return value;
}

PackedFunc OptionalFunction(const TVMArgValue& value) {
  return value.type_code() == kTVMNullptr ? PackedFunc() : value.operator PackedFunc();
}

ObjectRef Create(TVMArgs args) {
  ShapeTuple sizes = args[0], layers = args[1];
  if (sizes.size() != 5 || layers.size() < 2) {
    ThrowValueError("a paged cache needs (sequences, tokens, tokens a pass, page size, sliding windows) and the bounds of layers, got ", sizes, " and ", layers);
  }
  NDArray init = args[8];
  if (init->device.device_type != kDLCPU) ThrowValueError("a paged cache is on the host, got device kind ", init->device.device_type);
  CacheConfig config{Positive(sizes[0], "number of sequences"), Positive(sizes[1], "number of tokens"), Positive(sizes[2], "prefill chunk"),
                     Positive(sizes[3], "page size"), sizes[4] != 0, layers[0], Positive(layers[1] - layers[0], "number of layers"),
                     Positive(args[2], "number of heads"), Positive(args[3], "number of kv heads"), Positive(args[4], "depth of heads"),
                     args[5], args[6], args[7], init.DataType(), NDArray()};
  if (config.rope_mode < kNone || config.rope_mode > kInline) ThrowValueError("the rope mode is 0, 1 or 2, got ", config.rope_mode);
  if (config.heads % config.kv_heads != 0) ThrowValueError("the ", config.heads, " heads are no multiple of the ", config.kv_heads, " kv heads");
  if (args.size() > 22 && args[22].type_code() != kTVMNullptr) config.rope_factors = args[22];
  Kernels kernels{args[9], args[10], args[11], args[12], args[13], args[14], args[16], args[17], OptionalFunction(args[18])};
  return ObjectRef(ObjectPtr<Object>(make_object<PagedCacheObj>(std::move(config), std::move(kernels))));
}

}  // namespace

// (sizes, layers, heads, kv heads, depth, rope mode, rope scale, rope theta, a tensor of the data type, functions: append, prefill, decode,
//  the two of sliding windows, ragged prefill, merge, split with rotary embedding, copy of a page, debug get, compact copy, two of trees; factors)
TVM_REGISTER_GLOBAL("vm.builtin.paged_attention_kv_cache_create_reduced").set_body([](TVMArgs args, TVMRetValue* rv) {
  if (args.size() < 19) ThrowTypeError("paged_attention_kv_cache_create_reduced takes at least 19 arguments, got ", args.size());
  *rv = Create(args);
});
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_attention_with_fused_qkv").set_body([](TVMArgs args, TVMRetValue*) {
  if (args.size() != 5) ThrowTypeError("attention_with_fused_qkv takes a cache, a layer, a scale, qkv and the result, got ", args.size(), " arguments");
  CacheIn(args[0])->Attend(args[1], args[2], args[3], args[4]);
});
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_get_query_positions").set_body([](TVMArgs args, TVMRetValue* rv) {
  *rv = CacheIn(args[0])->QueryPositions();
});
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_enable_sliding_window_for_seq").set_body([](TVMArgs args, TVMRetValue*) {
  CacheIn(args[0])->SlideSequence(args[1], args[2], args[3]);
});
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_empty").set_body([](TVMArgs args, TVMRetValue* rv) { *rv = CacheIn(args[0])->Empty(); });
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_get_num_available_pages").set_body([](TVMArgs args, TVMRetValue* rv) {
  *rv = CacheIn(args[0])->AvailablePages();
});
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_get_total_sequence_length").set_body([](TVMArgs args, TVMRetValue* rv) {
  *rv = CacheIn(args[0])->TotalLength();
});
// (cache, sequence, start, end, keys, values)
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_debug_get_kv").set_body([](TVMArgs args, TVMRetValue*) {
  CacheIn(args[0])->DebugGet(args[1], args[2], args[3], args[4], args[5]);
});

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
