// Memory of the virtual machine: blocks that tensors are placed in, and who hands them out.
#ifndef TVM_SRC_VM_MEMORY_H_
#define TVM_SRC_VM_MEMORY_H_

#include <tvm/runtime/device_api.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace tvm {
namespace runtime {
namespace vm {

enum AllocatorType : int { kNaive = 1, kPooled = 2 };

struct Block {
  void* data{nullptr};
  size_t size{0};
};

class Allocator {
 public:
  explicit Allocator(DLDevice device) : device_(device) {}
  virtual ~Allocator() = default;
  virtual Block Alloc(size_t size) = 0;
  virtual void Free(Block block) = 0;
  virtual AllocatorType type() const = 0;
  // Bytes taken from the device, used or waiting to be used again.
  virtual size_t UsedMemory() = 0;
  DLDevice device() const { return device_; }

  // The allocator of a device; one of each kind a process, so that machines share memory that is free.
  static std::shared_ptr<Allocator> Get(DLDevice device, AllocatorType type);

 protected:
  DLDevice device_;
};

// A block in use: goes back to its allocator with the last tensor in it.
class StorageObj : public Object {
 public:
  StorageObj(std::shared_ptr<Allocator> allocator, size_t size) : block(allocator->Alloc(size)), allocator_(std::move(allocator)) {}
  ~StorageObj() { allocator_->Free(block); }
  DLDevice device() const { return allocator_->device(); }

  Block block;
  static constexpr const char* _type_key = "vm.Storage";
  TVM_DECLARE_FINAL_OBJECT_INFO(StorageObj, Object);

 private:
  std::shared_ptr<Allocator> allocator_;
};

}  // namespace vm
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_VM_MEMORY_H_
