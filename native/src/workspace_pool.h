// Temporary memory of compiled code: each thread re-uses what it has freed.
#ifndef TVM_SRC_WORKSPACE_POOL_H_
#define TVM_SRC_WORKSPACE_POOL_H_

#include <cstddef>
#include <vector>

namespace tvm {
namespace runtime {

class WorkspacePool {
 public:
  static WorkspacePool& ThreadLocal();
  ~WorkspacePool();
  void* Alloc(size_t nbytes);
  void Free(void* ptr);

 private:
  struct Block {
    void* data;
    size_t size;
  };
  std::vector<Block> free_;  // by ascending size
  std::vector<Block> used_;  // in order of allocation
};

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_WORKSPACE_POOL_H_
