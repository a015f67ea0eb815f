// Copies of elements that may lie anywhere.
//
// The axes are brought into the order in which the target lies, and joined where both tensors go through them in one
// step. Of the two axes along which elements lie nearest, one in the source and one in the target, blocks are copied
// whose lines of memory stay in the cache.
#include "strided_copy.h"

#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/ndarray.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace tvm {
namespace runtime {
namespace {

// elements along each side of a block: in float32 four lines of a cache
constexpr int64_t kBlock = 64;
// those of a row that lies nearest in both
constexpr int64_t kRow = 1 << 12;
// below this many bytes a launch costs more than it saves
constexpr int64_t kParallelBytes = 1 << 18;

struct Axis {
  int64_t extent;
  int64_t from;  // bytes from one element to the next
  int64_t to;
};

class StridedCopy {
 public:
  StridedCopy(const DLTensor& from, const DLTensor& to) : item_(static_cast<int64_t>(ElementBytes(from.dtype))) {
    int64_t compact_from = item_, compact_to = item_;
    for (int i = from.ndim - 1; i >= 0; --i) {
      int64_t extent = from.shape[i];
      if (extent != 1) {
        axes_.push_back({extent, from.strides ? from.strides[i] * item_ : compact_from,
                         to.strides ? to.strides[i] * item_ : compact_to});
      }
      compact_from *= extent;
      compact_to *= extent;
    }
    std::stable_sort(axes_.begin(), axes_.end(),
                     [](const Axis& a, const Axis& b) { return std::abs(a.to) > std::abs(b.to); });
    Join();
    TakeRowsAsElements();
    ChooseBlocks();
  }

  void Run(const char* from, char* to) const {
    struct Closure {
      const StridedCopy* copy;
      const char* from;
      char* to;
    } closure{this, from, to};
    auto task = [](int id, TVMParallelGroupEnv* env, void* data) {
      auto* self = static_cast<Closure*>(data);
      int64_t count = self->copy->count_;
      self->copy->Blocks(self->from, self->to, count * id / env->num_task, count * (id + 1) / env->num_task);
      return 0;
    };
    if (count_ < 2 || bytes_ < kParallelBytes) return Blocks(from, to, 0, count_);
    if (TVMBackendParallelLaunch(task, &closure, 0) != 0) ThrowLastError();
  }

 private:
  // Neighbours that both tensors go through in one step become one axis.
  void Join() {
    std::vector<Axis> joined;
    for (const Axis& axis : axes_) {
      bool goes_on = !joined.empty() && joined.back().from == axis.from * axis.extent &&
                     joined.back().to == axis.to * axis.extent;
      if (goes_on) {
        joined.back() = {joined.back().extent * axis.extent, axis.from, axis.to};
      } else {
        joined.push_back(axis);
      }
    }
    axes_ = joined;
  }

  // Elements that lie side by side in both are copied as one.
  void TakeRowsAsElements() {
    if (axes_.empty() || axes_.back().from != item_ || axes_.back().to != item_) return;
    item_ *= axes_.back().extent;
    axes_.pop_back();
  }

  // The two axes of a block come last, that of the target behind that of the source.
  void ChooseBlocks() {
    while (axes_.size() < 2) axes_.insert(axes_.begin(), {1, 0, 0});
    auto inner = axes_.end() - 1;
    auto near = std::min_element(axes_.begin(), inner,
                                 [](const Axis& a, const Axis& b) { return std::abs(a.from) < std::abs(b.from); });
    std::rotate(near, near + 1, inner);
    outer_ = axes_[axes_.size() - 2];
    inner_ = axes_.back();
    axes_.resize(axes_.size() - 2);
    bool is_row = std::abs(inner_.from) <= std::abs(outer_.from);
    inner_block_ = std::min(inner_.extent, is_row ? kRow : kBlock);
    outer_blocks_ = (outer_.extent + kBlock - 1) / kBlock;
    inner_blocks_ = (inner_.extent + inner_block_ - 1) / inner_block_;
    count_ = outer_blocks_ * inner_blocks_;
    for (const Axis& axis : axes_) count_ *= axis.extent;
    bytes_ = count_ * std::min(outer_.extent, kBlock) * inner_block_ * item_;
  }

  void Blocks(const char* from, char* to, int64_t first, int64_t last) const {
    for (int64_t index = first; index < last; ++index) {
      int64_t rest = index;
      int64_t column = rest % inner_blocks_ * inner_block_;
      rest /= inner_blocks_;
      int64_t row = rest % outer_blocks_ * kBlock;
      rest /= outer_blocks_;
      int64_t source = row * outer_.from + column * inner_.from, target = row * outer_.to + column * inner_.to;
      for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
        source += rest % axis->extent * axis->from;
        target += rest % axis->extent * axis->to;
        rest /= axis->extent;
      }
      Block(from + source, to + target, std::min(kBlock, outer_.extent - row),
            std::min(inner_block_, inner_.extent - column));
    }
  }

  void Block(const char* from, char* to, int64_t rows, int64_t columns) const {
    switch (item_) {
      case 1: return Elements<1>(from, to, rows, columns);
      case 2: return Elements<2>(from, to, rows, columns);
      case 4: return Elements<4>(from, to, rows, columns);
      case 8: return Elements<8>(from, to, rows, columns);
      case 16: return Elements<16>(from, to, rows, columns);
    }
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        std::memcpy(to + i * outer_.to + j * inner_.to, from + i * outer_.from + j * inner_.from, item_);
      }
    }
  }

  template <size_t kItem>
  void Elements(const char* from, char* to, int64_t rows, int64_t columns) const {
    for (int64_t i = 0; i < rows; ++i) {
      const char* source = from + i * outer_.from;
      char* target = to + i * outer_.to;
      for (int64_t j = 0; j < columns; ++j) std::memcpy(target + j * inner_.to, source + j * inner_.from, kItem);
    }
  }

  int64_t item_;            // bytes that lie side by side
  std::vector<Axis> axes_;  // around the blocks
  Axis outer_, inner_;      // of the blocks
  int64_t inner_block_ = 1, outer_blocks_ = 1, inner_blocks_ = 1;
  int64_t count_ = 1;  // of the blocks
  int64_t bytes_ = 0;
};

char* DataOf(const DLTensor& tensor) { return static_cast<char*>(tensor.data) + tensor.byte_offset; }

}  // namespace

void CopyStrided(const DLTensor& from, const DLTensor& to) {
  bool is_same = from.ndim == to.ndim && TypeEqual(from.dtype, to.dtype) &&
                 std::equal(from.shape, from.shape + from.ndim, to.shape);
  if (!is_same) {
    ThrowValueError("a copy of an array with strides needs equal shapes and dtypes, got ", ShapeText(from.shape, from.ndim),
                    " ", DLDataType2String(from.dtype), " to ", ShapeText(to.shape, to.ndim), " ",
                    DLDataType2String(to.dtype));
  }
  if (from.device.device_type != kDLCPU || to.device.device_type != kDLCPU) {
    ThrowValueError("a copy between devices needs contiguous arrays, got one with strides");
  }
  if (DataBytes(from) != 0) StridedCopy(from, to).Run(DataOf(from), DataOf(to));
}

}  // namespace runtime
}  // namespace tvm
