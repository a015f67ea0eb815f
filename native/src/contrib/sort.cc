// Sorting along an axis, for kernels that call it: tvm.contrib.sort.{sort,argsort,argsort_nms,topk}.
//
// All orders are stable; NaN counts as greater than every number, as in numpy and PyTorch.
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/data_type.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace tvm {
namespace runtime {
namespace {

// below this many elements a launch costs more than it saves
constexpr int64_t kParallelElements = 1 << 14;

// A tensor as rows along one axis.
struct Rows {
  int64_t outer = 1, extent = 1, inner = 1;
  int64_t count() const { return outer * inner; }
  int64_t Start(int64_t row) const { return row / inner * extent * inner + row % inner; }
};

Rows SplitAt(const DLTensor& tensor, int axis) {
  Rows rows;
  for (int i = 0; i < axis; ++i) rows.outer *= tensor.shape[i];
  if (tensor.ndim) rows.extent = tensor.shape[axis];
  for (int i = axis + 1; i < tensor.ndim; ++i) rows.inner *= tensor.shape[i];
  return rows;
}

int CheckedAxis(const DLTensor& tensor, int axis, const char* who) {
  int rank = std::max(tensor.ndim, 1);
  if (axis < -rank || axis >= rank) {
    ThrowValueError(who, " requires an axis in [", -rank, ", ", rank, "), got ", axis);
  }
  return axis < 0 ? axis + rank : axis;
}

template <class T>
T* DataOf(const DLTensor& tensor) {
  return reinterpret_cast<T*>(static_cast<char*>(tensor.data) + tensor.byte_offset);
}

// Half precision by its bits: a key that orders as the number does, NaN last.
struct HalfKey {
  uint16_t bits;
  int32_t order(int mantissa_bits) const {
    int32_t magnitude = bits & 0x7fff;
    bool is_nan = magnitude > (0x7fff & ~((1 << mantissa_bits) - 1));
    if (is_nan) return 1 << 16;
    return bits & 0x8000 ? -magnitude : magnitude;
  }
};
struct Float16 : HalfKey {
  bool operator<(Float16 other) const { return order(10) < other.order(10); }
};
struct BFloat16 : HalfKey {
  bool operator<(BFloat16 other) const { return order(7) < other.order(7); }
};

template <class T>
bool Before(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a < b || (b != b && a == a);
  } else {
    return a < b;
  }
}

template <class T>
struct Item {
  T value;
  int64_t index;
};

// Ties go to the smaller index, so that any sort is stable.
template <class T>
struct Ascending {
  bool operator()(const Item<T>& a, const Item<T>& b) const {
    if (Before(a.value, b.value)) return true;
    return !Before(b.value, a.value) && a.index < b.index;
  }
};
template <class T>
struct Descending {
  bool operator()(const Item<T>& a, const Item<T>& b) const {
    if (Before(b.value, a.value)) return true;
    return !Before(a.value, b.value) && a.index < b.index;
  }
};

// Puts the first `kept` of the items in order.
template <class T>
void Order(std::vector<Item<T>>* items, int64_t kept, bool is_ascend) {
  auto by = [&](auto before) {
    if (kept < static_cast<int64_t>(items->size())) {
      std::nth_element(items->begin(), items->begin() + kept, items->end(), before);
    }
    std::sort(items->begin(), items->begin() + kept, before);
  };
  is_ascend ? by(Ascending<T>()) : by(Descending<T>());
}

// From this many elements for each that is kept on, the best are kept while passing over the others.
constexpr int64_t kFewKept = 16;
// As many stay in order; more are a heap.
constexpr int64_t kShortList = 16;
// Elements that are compared with the last of the best at a time.
constexpr int64_t kBlock = 32;

// Whether one of a block of numbers may come before the last of the best, which all of them come behind.
template <class T>
bool MayEnter(const T* block, T worst, bool is_ascend) {
  if constexpr (std::is_arithmetic_v<T>) {
    unsigned any = 0;
    // negated, so that NaN is looked at
    if (is_ascend) {
      for (int64_t j = 0; j < kBlock; ++j) any |= !(block[j] >= worst);
    } else {
      for (int64_t j = 0; j < kBlock; ++j) any |= !(block[j] <= worst);
    }
    return any;
  } else {
    return true;
  }
}

// Puts the first `kept` of a row in order, without a place for each of the others.
template <class T>
void OrderFew(const T* row, int64_t length, int64_t kept, bool is_ascend, std::vector<Item<T>>* items) {
  items->resize(kept);
  auto pass = [&](auto enter, const Item<T>& worst, int64_t from) {
    for (int64_t k = from; k < length; k += kBlock) {
      int64_t end = std::min(k + kBlock, length);
      if (end == k + kBlock && !MayEnter(row + k, worst.value, is_ascend)) continue;
      for (int64_t j = k; j < end; ++j) enter(Item<T>{row[j], j});
    }
  };
  auto insert = [&](const Item<T>& item, int64_t count, auto before) {
    int64_t place = count;
    for (; place > 0 && before(item, (*items)[place - 1]); --place) (*items)[place] = (*items)[place - 1];
    (*items)[place] = item;
  };
  auto by = [&](auto before) {
    if (kept <= kShortList) {
      for (int64_t k = 0; k < kept; ++k) insert({row[k], k}, k, before);
      auto enter = [&](const Item<T>& item) {
        if (before(item, items->back())) insert(item, kept - 1, before);
      };
      return pass(enter, items->back(), kept);
    }
    for (int64_t k = 0; k < kept; ++k) (*items)[k] = {row[k], k};
    std::make_heap(items->begin(), items->end(), before);
    auto enter = [&](const Item<T>& item) {
      if (!before(item, items->front())) return;
      std::pop_heap(items->begin(), items->end(), before);
      items->back() = item;
      std::push_heap(items->begin(), items->end(), before);
    };
    pass(enter, items->front(), kept);
    std::sort_heap(items->begin(), items->end(), before);
  };
  is_ascend ? by(Ascending<T>()) : by(Descending<T>());
}

// Calls body(first, last) for parts of [0, rows), on several threads if there is enough to do.
template <class F>
void ForRows(const Rows& rows, F body) {
  if (rows.count() < 2 || rows.count() * rows.extent < kParallelElements) return body(0, rows.count());
  struct Closure {
    F* body;
    int64_t rows;
  } closure{&body, rows.count()};
  auto task = [](int id, TVMParallelGroupEnv* env, void* data) {
    TVM_API_BEGIN();
    auto* self = static_cast<Closure*>(data);
    int64_t first = self->rows * id / env->num_task, last = self->rows * (id + 1) / env->num_task;
    (*self->body)(first, last);
    TVM_API_END();
  };
  if (TVMBackendParallelLaunch(task, &closure, 0) != 0) ThrowLastError();
}

template <class F>
void WithType(DLDataType dtype, const char* who, F body) {
  auto is = [&](uint8_t code, uint8_t bits) { return dtype.code == code && dtype.bits == bits; };
  if (dtype.lanes == 1) {
    if (is(kDLFloat, 32)) return body(float());
    if (is(kDLFloat, 64)) return body(double());
    if (is(kDLFloat, 16)) return body(Float16());
    if (is(kDLBfloat, 16)) return body(BFloat16());
    if (is(kDLInt, 8)) return body(int8_t());
    if (is(kDLInt, 16)) return body(int16_t());
    if (is(kDLInt, 32)) return body(int32_t());
    if (is(kDLInt, 64)) return body(int64_t());
    if (is(kDLUInt, 1) || is(kDLUInt, 8)) return body(uint8_t());
    if (is(kDLUInt, 16)) return body(uint16_t());
    if (is(kDLUInt, 32)) return body(uint32_t());
    if (is(kDLUInt, 64)) return body(uint64_t());
  }
  ThrowTypeError(who, " does not sort elements of type ", DLDataType2String(dtype));
}

// Writes indices in any of the number types that classic programs ask for.
template <class F>
void WithIndexType(DLDataType dtype, const char* who, F body) {
  auto is = [&](uint8_t code, uint8_t bits) { return dtype.code == code && dtype.bits == bits; };
  if (is(kDLInt, 32)) return body(int32_t());
  if (is(kDLInt, 64)) return body(int64_t());
  if (is(kDLFloat, 32)) return body(float());
  if (is(kDLFloat, 64)) return body(double());
  ThrowTypeError(who, " gives indices as int32, int64, float32 or float64, got ", DLDataType2String(dtype));
}

struct Outputs {
  DLTensor* values = nullptr;
  DLTensor* indices = nullptr;
};

// Sorts each row of `data` (of `lengths` elements, if given) and keeps the first of them in `outputs`.
// What lies behind a row's length keeps its place.
void SortRows(const DLTensor& data, const int32_t* lengths, Outputs outputs, int axis, bool is_ascend, const char* who) {
  Rows from = SplitAt(data, axis);
  Rows to = SplitAt(*(outputs.values ? outputs.values : outputs.indices), axis);
  if (to.extent > from.extent) {
    ThrowValueError(who, " requires k of at most the axis' extent ", from.extent, ", got ", to.extent);
  }
  auto write_indices = [&](auto write) {
    if (!outputs.indices) return write(static_cast<int64_t*>(nullptr));
    WithIndexType(outputs.indices->dtype, who, [&](auto index) { write(DataOf<decltype(index)>(*outputs.indices)); });
  };
  WithType(data.dtype, who, [&](auto element) {
    using T = decltype(element);
    const T* source = DataOf<T>(data);
    T* values = outputs.values ? DataOf<T>(*outputs.values) : nullptr;
    write_indices([&](auto* indices) {
      ForRows(from, [&](int64_t first, int64_t last) {
        std::vector<Item<T>> items;
        std::vector<T> gathered(from.inner > 1 ? from.extent : 0);
        for (int64_t row = first; row < last; ++row) {
          int64_t length = lengths ? std::clamp<int64_t>(lengths[row], 0, from.extent) : from.extent;
          const T* in = source + from.Start(row);
          if (from.inner > 1) {
            for (int64_t k = 0; k < from.extent; ++k) gathered[k] = in[k * from.inner];
            in = gathered.data();
          }
          bool are_few = to.extent <= kShortList || to.extent * kFewKept <= length;
          if (are_few && to.extent > 0 && to.extent <= length) {
            OrderFew(in, length, to.extent, is_ascend, &items);
          } else {
            items.resize(length);
            for (int64_t k = 0; k < length; ++k) items[k] = {in[k], k};
            Order(&items, std::min(to.extent, length), is_ascend);
          }
          for (int64_t k = 0; k < to.extent; ++k) {
            Item<T> item = k < length ? items[k] : Item<T>{in[k], k};
            int64_t place = to.Start(row) + k * to.inner;
            if (values) values[place] = item.value;
            if (indices) indices[place] = static_cast<std::decay_t<decltype(*indices)>>(item.index);
          }
        }
      });
    });
  });
}

TVM_REGISTER_GLOBAL("tvm.contrib.sort.sort").set_body([](TVMArgs args, TVMRetValue*) {
  DLTensor *data = args[0], *out = args[1];
  const char* who = "sort";
  SortRows(*data, nullptr, {out, nullptr}, CheckedAxis(*data, args[2], who), args[3], who);
});

TVM_REGISTER_GLOBAL("tvm.contrib.sort.argsort").set_body([](TVMArgs args, TVMRetValue*) {
  DLTensor *data = args[0], *out = args[1];
  const char* who = "argsort";
  SortRows(*data, nullptr, {nullptr, out}, CheckedAxis(*data, args[2], who), args[3], who);
});

// data, the number of elements to sort of each row (int32, the shape without the axis), the indices
TVM_REGISTER_GLOBAL("tvm.contrib.sort.argsort_nms").set_body([](TVMArgs args, TVMRetValue*) {
  DLTensor *data = args[0], *lengths = args[1], *out = args[2];
  const char* who = "argsort_nms";
  if (!TypeEqual(lengths->dtype, DLDataType{kDLInt, 32, 1})) {
    ThrowTypeError(who, " requires lengths of type int32, got ", DLDataType2String(lengths->dtype));
  }
  SortRows(*data, DataOf<int32_t>(*lengths), {nullptr, out}, CheckedAxis(*data, args[3], who), args[4], who);
});

// data, the outputs that ret_type names, k, axis, ret_type, is_ascend
TVM_REGISTER_GLOBAL("tvm.contrib.sort.topk").set_body([](TVMArgs args, TVMRetValue*) {
  const char* who = "topk";
  int last = args.size();
  std::string ret_type = args[last - 2];
  DLTensor* data = args[0];
  Outputs outputs;
  if (ret_type == "both") {
    outputs = {args[1], args[2]};
  } else if (ret_type == "values") {
    outputs.values = args[1];
  } else if (ret_type == "indices") {
    outputs.indices = args[1];
  } else {
    ThrowValueError(who, " requires a ret_type of both, values or indices, got ", ret_type);
  }
  SortRows(*data, nullptr, outputs, CheckedAxis(*data, args[last - 3], who), args[last - 1], who);
});

}  // namespace
}  // namespace runtime
}  // namespace tvm
