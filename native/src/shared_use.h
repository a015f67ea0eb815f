// Executors that several threads use.
//
// Calls are serialised, yet set_input, run and get_output are three of them: between two of one thread another thread
// may set other inputs, or run. Who would then compute with inputs, or read outputs, that are another thread's gets an
// error; the thread that came last is right.
#ifndef TVM_SRC_SHARED_USE_H_
#define TVM_SRC_SHARED_USE_H_

#include <tvm/runtime/run_lock.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tvm {
namespace runtime {

class SharedUse {
 public:
  // The calling thread has set a slot: an input, or the memory of an output.
  void Set(size_t slot);
  // The calling thread is about to run: raises if another one has meanwhile set a slot that this one had set. Whether
  // the arrays of outputs that were handed out since the last run are another thread's.
  bool BeginRun(const std::function<std::string(size_t)>& name_of_slot);
  // The calling thread reads an output: raises if another one has run since this one did.
  void Fetch(int64_t output);

 private:
  struct Loss {
    std::set<size_t> slots;  // set by another thread after this one
    uint64_t run{0};         // the run whose outputs another thread's run has replaced, or 0
    std::vector<int64_t> fetched;  // those that had been read before
  };
  static constexpr size_t kMaxThreads = 1024;

  Loss& LossOf(uint64_t thread);

  std::vector<uint64_t> setters_;  // by slot; 0: nobody
  uint64_t runner_{0};             // whose run was the last
  uint64_t runs_{0};
  bool is_handed_out_{false};      // an output of the last run, to the thread that ran
  std::vector<int64_t> fetched_;   // outputs of the last run that its thread has read
  std::map<uint64_t, Loss> losses_;
};

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_SHARED_USE_H_
