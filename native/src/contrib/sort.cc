// Sorting along an axis, for kernels that call it: tvm.contrib.sort.{sort,argsort,argsort_nms,topk}.
//
// All orders are stable; NaN counts as greater than every number, as in numpy and PyTorch.
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/data_type.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "../arguments.h"
#include "sort_order.h"

namespace tvm {
namespace runtime {
namespace {

// below this many steps, of a nanosecond or less, a launch costs more than it saves
constexpr int64_t kParallelSteps = 1 << 13;

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

// How long it takes to find the first `kept` elements of a row.
int64_t StepsOf(int64_t extent, int64_t kept) {
  int64_t steps = extent;
  for (; kept > 1; kept /= 2) steps += extent / 2;
  return steps;
}

// Calls body(first, last) for parts of [0, rows), on several threads if there is enough to do.
template <class F>
void ForRows(const Rows& rows, int64_t kept, F body) {
  bool is_short = rows.count() * StepsOf(rows.extent, kept) < kParallelSteps;
  if (rows.count() < 2 || is_short) return body(0, rows.count());
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
    if (is(kDLFloat, 16)) return body(sort::Float16());
    if (is(kDLBfloat, 16)) return body(sort::BFloat16());
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

// The elements of a row side by side; of neighbouring rows at once, whose elements lie between each other.
template <class T>
class GatheredRows {
 public:
  GatheredRows(const Rows& rows, const T* source) : rows_(rows), source_(source) {
    if (rows.inner > 1) gathered_.resize(rows.extent * kTogether);
  }

  const T* Row(int64_t row) {
    if (rows_.inner == 1) return source_ + rows_.Start(row);
    if (row < first_ || row >= last_) Gather(row);
    return gathered_.data() + (row - first_) * rows_.extent;
  }

 private:
  static constexpr int64_t kTogether = 8;

  void Gather(int64_t row) {
    int64_t together = std::min(kTogether, rows_.inner - row % rows_.inner);
    first_ = row, last_ = row + together;
    const T* from = source_ + rows_.Start(row);
    for (int64_t k = 0; k < rows_.extent; ++k, from += rows_.inner) {
      for (int64_t j = 0; j < together; ++j) gathered_[j * rows_.extent + k] = from[j];
    }
  }

  const Rows& rows_;
  const T* source_;
  std::vector<T> gathered_;
  int64_t first_ = 0, last_ = 0;
};

// Sorts each row of `data` (of `lengths` elements, if given) and keeps the first of them in `outputs`.
// What lies behind a row's length keeps its place.
template <class Item, class T, class Index>
void SortRows(const Rows& from, const Rows& to, const T* source, const int32_t* lengths, T* values, Index* indices,
              bool is_ascend) {
  using Key = typename Item::Key;
  const Key flipped = is_ascend ? Key(0) : static_cast<Key>(~Key(0));
  ForRows(from, to.extent, [&](int64_t first, int64_t last) {
    sort::Sorter<Item> sorter;
    GatheredRows<T> gathered(from, source);
    for (int64_t row = first; row < last; ++row) {
      int64_t length = lengths ? std::clamp<int64_t>(lengths[row], 0, from.extent) : from.extent;
      int64_t start = to.Start(row), kept = std::min(to.extent, length);
      const T* in = gathered.Row(row);
      const Item* items = sorter.Order(sort::RowKeys<Key, T>{in, flipped}, length, kept);
      for (int64_t k = 0; k < to.extent; ++k) {
        int64_t index = k < kept ? items[k].index() : k, place = start + k * to.inner;
        if (values) values[place] = in[index];
        if (indices) indices[place] = static_cast<Index>(index);
      }
    }
  });
}

bool IsReadable(const DLTensor& tensor) { return tensor.device.device_type == kDLCPU && IsContiguous(tensor); }

void CheckOutput(const DLTensor& data, const DLTensor& output, int axis, const char* who) {
  bool fits = output.ndim == data.ndim && IsReadable(output);
  for (int i = 0; fits && i < data.ndim; ++i) fits = i == axis || output.shape[i] == data.shape[i];
  if (fits) return;
  ThrowValueError(who, " requires compact outputs on the CPU of the shape ", ShapeText(data.shape, data.ndim), ", but for axis ", axis,
                  ", got ", ShapeText(output.shape, output.ndim));
}

void SortRows(const DLTensor& data, const DLTensor* lengths_of_rows, Outputs outputs, int axis, bool is_ascend, const char* who) {
  if (!IsReadable(data)) ThrowValueError(who, " requires compact data on the CPU");
  Rows from = SplitAt(data, axis);
  for (const DLTensor* output : {outputs.values, outputs.indices}) {
    if (output != nullptr) CheckOutput(data, *output, axis, who);
  }
  if (outputs.values && outputs.indices && SplitAt(*outputs.values, axis).extent != SplitAt(*outputs.indices, axis).extent) {
    ThrowValueError(who, " requires as many values as indices");
  }
  if (outputs.values && !TypeEqual(outputs.values->dtype, data.dtype)) {
    ThrowTypeError(who, " gives values as ", DLDataType2String(data.dtype), ", got ", DLDataType2String(outputs.values->dtype));
  }
  const int32_t* lengths = nullptr;
  if (lengths_of_rows != nullptr) {
    bool fits = IsReadable(*lengths_of_rows) && DataBytes(*lengths_of_rows) == from.count() * sizeof(int32_t);
    if (!fits) ThrowValueError(who, " requires a length for each of ", from.count(), " rows, got ", ShapeText(lengths_of_rows->shape, lengths_of_rows->ndim));
    lengths = DataOf<int32_t>(*lengths_of_rows);
  }
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
      if (sizeof(T) <= sizeof(uint32_t) && from.extent <= std::numeric_limits<uint32_t>::max()) {
        SortRows<sort::NarrowItem>(from, to, source, lengths, values, indices, is_ascend);
      } else {
        SortRows<sort::WideItem>(from, to, source, lengths, values, indices, is_ascend);
      }
    });
  });
}

TVM_REGISTER_GLOBAL("tvm.contrib.sort.sort").set_body([](TVMArgs args, TVMRetValue*) {
  DLTensor &data = TensorIn(args[0]), &out = TensorIn(args[1]);
  const char* who = "sort";
  SortRows(data, nullptr, {&out, nullptr}, CheckedAxis(data, args[2], who), args[3], who);
});

TVM_REGISTER_GLOBAL("tvm.contrib.sort.argsort").set_body([](TVMArgs args, TVMRetValue*) {
  DLTensor &data = TensorIn(args[0]), &out = TensorIn(args[1]);
  const char* who = "argsort";
  SortRows(data, nullptr, {nullptr, &out}, CheckedAxis(data, args[2], who), args[3], who);
});

// data, the number of elements to sort of each row (int32, the shape without the axis), the indices
TVM_REGISTER_GLOBAL("tvm.contrib.sort.argsort_nms").set_body([](TVMArgs args, TVMRetValue*) {
  DLTensor &data = TensorIn(args[0]), &lengths = TensorIn(args[1]), &out = TensorIn(args[2]);
  const char* who = "argsort_nms";
  if (!TypeEqual(lengths.dtype, DLDataType{kDLInt, 32, 1})) {
    ThrowTypeError(who, " requires lengths of type int32, got ", DLDataType2String(lengths.dtype));
  }
  SortRows(data, &lengths, {nullptr, &out}, CheckedAxis(data, args[3], who), args[4], who);
});

// data, the outputs that ret_type names, k, axis, ret_type, is_ascend
TVM_REGISTER_GLOBAL("tvm.contrib.sort.topk").set_body([](TVMArgs args, TVMRetValue*) {
  const char* who = "topk";
  int last = args.size();
  std::string ret_type = args[last - 2];
  DLTensor& data = TensorIn(args[0]);
  Outputs outputs;
  if (ret_type == "both") {
    outputs = {&TensorIn(args[1]), &TensorIn(args[2])};
  } else if (ret_type == "values") {
    outputs.values = &TensorIn(args[1]);
  } else if (ret_type == "indices") {
    outputs.indices = &TensorIn(args[1]);
  } else {
    ThrowValueError(who, " requires a ret_type of both, values or indices, got ", ret_type);
  }
  SortRows(data, nullptr, outputs, CheckedAxis(data, args[last - 3], who), args[last - 1], who);
});

}  // namespace
}  // namespace runtime
}  // namespace tvm
