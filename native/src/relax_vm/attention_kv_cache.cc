// A cache of one sequence's keys or values: an array that grows at its first axis.
//
//     cache = attention_kv_cache_create(first, reserved shape, rows in use)
//     cache = attention_kv_cache_append(cache, rows)
//     all = attention_kv_cache_view(cache, shape)
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <vector>

namespace tvm {
namespace runtime {
namespace relax_vm {
namespace {

class CacheObj : public Object {
 public:
  NDArray data;       // has as many rows as are reserved
  int64_t filled{0};  // rows in use
  int64_t next{0};    // the row that a sliding window overwrites next

  int64_t Reserved() const { return data->shape[0]; }

  void Append(const NDArray& rows) {
    CheckRows(rows);
    Reserve(filled + rows->shape[0]);
    Copy(rows, 0, filled, rows->shape[0]);
    filled += rows->shape[0];
  }

  // The oldest rows make room: at most `window` rows stay, of which the first `sinks` are never overwritten.
  void Override(const NDArray& rows, int64_t window, int64_t sinks) {
    CheckRows(rows);
    const int64_t count = rows->shape[0];
    if (window < 1 || window > Reserved()) ThrowValueError("the cache has ", Reserved(), " rows, the window is ", window);
    if (count > window) ThrowValueError("the window has ", window, " rows, got ", count);
    if (sinks < 0 || sinks >= window) ThrowValueError("a window of ", window, " rows cannot keep the first ", sinks);
    for (int64_t i = 0; i < count; ++i) {
      Copy(rows, i, next, 1);
      filled = std::max(filled, next + 1);
      if (++next == window) next = sinks;
    }
  }

  NDArray View(const ShapeTuple& shape) const {
    if (shape.size() != data.extents().size()) ThrowValueError("the cache has ", data.extents().size(), " axes, a view of ", shape, " is asked for");
    if (shape[0] != filled) ThrowValueError("the cache has ", filled, " rows, a view of ", shape[0], " is asked for");
    for (size_t i = 1; i < shape.size(); ++i) {
      if (shape[i] != data->shape[i]) ThrowValueError("axis ", i, " of the cache is ", data->shape[i], ", a view of ", shape[i], " is asked for");
    }
    return data.CreateView(shape, data.DataType());
  }

  static constexpr const char* _type_key = "relax.vm.AttentionKVCacheLegacy";
  TVM_DECLARE_FINAL_OBJECT_INFO(CacheObj, Object);

 private:
  void CheckRows(const NDArray& rows) const {
    bool fits = rows.defined() && rows->ndim == data->ndim && TypeEqual(rows.DataType(), data.DataType()) &&
                std::equal(rows->shape + 1, rows->shape + rows->ndim, data->shape + 1);
    if (!fits) ThrowValueError("the cache needs rows of ", DLDataType2String(data.DataType()), " of shape ", ShapeText(data->shape + 1, data->ndim - 1));
  }

  size_t RowBytes() const { return DataBytes(*data.tensor()) / std::max<int64_t>(Reserved(), 1); }

  void Reserve(int64_t rows) {
    if (rows <= Reserved()) return;
    std::vector<int64_t> shape = data.extents();
    shape[0] = std::max(rows, 2 * Reserved());
    NDArray larger = NDArray::Empty(shape, data.DataType(), data->device);
    NDArray old = data;
    data = larger;
    Copy(old, 0, 0, filled);
  }

  void Copy(const NDArray& from, int64_t first, int64_t to, int64_t count) {
    if (count == 0) return;
    std::vector<int64_t> shape = data.extents();
    shape[0] = count;
    NDArray target = data.CreateView(shape, data.DataType(), to * RowBytes());
    target.CopyFrom(NDArray(from).CreateView(shape, data.DataType(), first * RowBytes()));
  }
};

TVM_REGISTER_OBJECT_TYPE(CacheObj);

CacheObj* CacheIn(const TVMArgValue& value) {
  auto* cache = value.type_code() == kTVMObjectHandle ? value.operator ObjectRef().as<CacheObj>() : nullptr;
  if (cache == nullptr) ThrowTypeError("expected a cache of attention_kv_cache_create, got ", ArgTypeCode2Str(value.type_code()));
  return cache;
}

// (first rows, reserved shape, rows in use); below 0, the first ones are in use
ObjectRef Create(NDArray first, ShapeTuple reserved, int64_t fill) {
  auto cache = make_object<CacheObj>();
  cache->data = NDArray::Empty(reserved, first.DataType(), first->device);
  if (fill > reserved[0]) ThrowValueError("a cache of ", reserved[0], " rows cannot have ", fill, " in use");
  cache->Append(first);
  if (fill >= 0) cache->filled = fill;
  cache->next = cache->filled;
  return ObjectRef(ObjectPtr<Object>(cache));
}

}  // namespace

TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_create").set_body_typed(Create);
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_append").set_body([](TVMArgs args, TVMRetValue* rv) {
  CacheIn(args[0])->Append(args[1]);
  *rv = args[0];
});
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_update").set_body([](TVMArgs args, TVMRetValue* rv) {
  CacheObj* cache = CacheIn(args[0]);
  cache->filled = 0;
  cache->Append(args[1]);
  *rv = args[0];
});
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_window_override").set_body([](TVMArgs args, TVMRetValue* rv) {
  CacheIn(args[0])->Override(args[1], args[2], 0);
  *rv = args[0];
});
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_window_override_with_sinks").set_body([](TVMArgs args, TVMRetValue* rv) {
  CacheIn(args[0])->Override(args[1], args[2], args[3]);
  *rv = args[0];
});
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_view").set_body([](TVMArgs args, TVMRetValue* rv) {
  CacheObj* cache = CacheIn(args[0]);
  if (args.size() > 1) {
    *rv = cache->View(args[1]);
    return;
  }
  std::vector<int64_t> shape = cache->data.extents();
  shape[0] = cache->filled;
  *rv = cache->data.CreateView(shape, cache->data.DataType());
});
// A tuple of caches: all emptied, or with the last rows forgotten.
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_array_clear").set_body_typed([](Array<ObjectRef> caches) {
  for (const ObjectRef& each : caches) {
    TVMRetValue value;
    value = each;
    CacheObj* cache = CacheIn(value);
    cache->filled = cache->next = 0;
  }
});
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_array_popn").set_body_typed([](Array<ObjectRef> caches, int64_t count) {
  for (const ObjectRef& each : caches) {
    TVMRetValue value;
    value = each;
    CacheObj* cache = CacheIn(value);
    if (count < 0 || count > cache->filled) ThrowValueError("the cache has ", cache->filled, " rows, ", count, " cannot be taken away");
    cache->filled -= count;
  }
});

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
