// Allocators: one that asks the device each time, one that keeps what was freed.
#include "memory.h"

#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>

#include <atomic>
#include <unordered_map>

#include "../fork.h"

namespace tvm {
namespace runtime {
namespace vm {

TVM_REGISTER_OBJECT_TYPE(StorageObj);

namespace {

constexpr DLDataType kByte{kDLUInt, 8, 1};

class NaiveAllocator : public Allocator {
 public:
  using Allocator::Allocator;
  AllocatorType type() const final { return kNaive; }
  size_t UsedMemory() final { return used_; }
  Block Alloc(size_t size) final {
    Block block{DeviceAPI::Get(device_)->AllocDataSpace(device_, size, kAllocAlignment, kByte), size};
    used_ += size;
    return block;
  }
  void Free(Block block) final {
    used_ -= block.size;
    DeviceAPI::Get(device_)->FreeDataSpace(device_, block.data);
  }

 private:
  std::atomic<size_t> used_{0};
};

// Sizes are rounded up to one of eight steps between powers of two, so that tensors of changing shapes
// find blocks again at the cost of an eighth of the memory.
size_t BucketSize(size_t size) {
  size_t step = kAllocAlignment;
  while (size > 16 * step) step *= 2;
  return size <= step ? step : (size + step - 1) / step * step;
}

class PooledAllocator : public Allocator {
 public:
  using Allocator::Allocator;
  ~PooledAllocator() {
    for (auto& bucket : free_) Release(&bucket.second);
  }
  AllocatorType type() const final { return kPooled; }
  size_t UsedMemory() final {
    std::lock_guard<ForkMutex> lock(mutex_);
    return used_;
  }
  Block Alloc(size_t wanted) final {
    size_t size = BucketSize(wanted);
    {
      std::lock_guard<ForkMutex> lock(mutex_);
      std::vector<void*>& bucket = free_[size];
      if (!bucket.empty()) {
        Block block{bucket.back(), size};
        bucket.pop_back();
        return block;
      }
      used_ += size;
    }
    return Block{Fresh(size), size};
  }
  void Free(Block block) final {
    std::lock_guard<ForkMutex> lock(mutex_);
    free_[block.size].push_back(block.data);
  }

 private:
  void* Fresh(size_t size) {
    try {
      return DeviceAPI::Get(device_)->AllocDataSpace(device_, size, kAllocAlignment, kByte);
    } catch (const std::exception&) {
      // what is kept in other sizes may make room
      std::lock_guard<ForkMutex> lock(mutex_);
      for (auto& bucket : free_) {
        used_ -= bucket.first * bucket.second.size();
        Release(&bucket.second);
      }
    }
    return DeviceAPI::Get(device_)->AllocDataSpace(device_, size, kAllocAlignment, kByte);
  }
  void Release(std::vector<void*>* bucket) {
    for (void* data : *bucket) DeviceAPI::Get(device_)->FreeDataSpace(device_, data);
    bucket->clear();
  }

  ForkMutex mutex_;
  std::unordered_map<size_t, std::vector<void*>> free_;
  size_t used_{0};
};

struct Allocators {
  ForkMutex mutex;
  std::map<std::tuple<int, int, int>, std::shared_ptr<Allocator>> known;
  static Allocators& Global() {
    static auto* allocators = new Allocators();
    return *allocators;
  }
};

}  // namespace

std::shared_ptr<Allocator> Allocator::Get(DLDevice device, AllocatorType type) {
  Allocators& all = Allocators::Global();
  std::lock_guard<ForkMutex> lock(all.mutex);
  std::shared_ptr<Allocator>& found = all.known[{device.device_type, device.device_id, type}];
  if (found == nullptr) {
    DeviceAPI::Get(device);
    if (type == kNaive) found = std::make_shared<NaiveAllocator>(device);
    else if (type == kPooled) found = std::make_shared<PooledAllocator>(device);
    else ThrowValueError("the virtual machine has the allocators 1 (naive) and 2 (pooled), got ", static_cast<int>(type));
  }
  return found;
}

// (device, kind) -> bytes held
TVM_REGISTER_GLOBAL("vm.UsedMemory").set_body_typed([](DLDevice device, int64_t type) {
  return static_cast<int64_t>(Allocator::Get(device, static_cast<AllocatorType>(type))->UsedMemory());
});

// Gives back what no tensor uses: the allocators of machines yet to be made start empty.
TVM_REGISTER_GLOBAL("vm.builtin.memory_manager.clear").set_body_typed([]() {
  Allocators& all = Allocators::Global();
  std::lock_guard<ForkMutex> lock(all.mutex);
  all.known.clear();
});

}  // namespace vm
}  // namespace runtime
}  // namespace tvm
