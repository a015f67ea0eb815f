// Who set and who ran, and what that took from others.
#include "shared_use.h"

#include <tvm/runtime/error.h>

#include <algorithm>

namespace tvm {
namespace runtime {
namespace {

constexpr const char* kHint =
    "; give each thread an executor of its own, which shares the weights, or let one thread set the inputs, run and read the outputs";

bool Contains(const std::vector<int64_t>& values, int64_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

SharedUse::Loss& SharedUse::LossOf(uint64_t thread) {
  if (losses_.size() >= kMaxThreads) losses_.clear();  // threads that come, run once and end
  return losses_[thread];
}

void SharedUse::Set(size_t slot) {
  const uint64_t me = ThisThread();
  if (slot >= setters_.size()) setters_.resize(slot + 1, 0);
  uint64_t& setter = setters_[slot];
  if (setter != me && setter != 0) LossOf(setter).slots.insert(slot);
  setter = me;
  if (losses_.empty()) return;
  auto mine = losses_.find(me);
  if (mine != losses_.end()) mine->second.slots.erase(slot);
}

bool SharedUse::BeginRun(const std::function<std::string(size_t)>& name_of_slot) {
  const uint64_t me = ThisThread();
  if (!losses_.empty()) {
    auto mine = losses_.find(me);
    if (mine != losses_.end()) {
      Loss loss = std::move(mine->second);
      losses_.erase(mine);
      if (!loss.slots.empty()) {
        ThrowError("another thread has set ", name_of_slot(*loss.slots.begin()), " after this one did, and before this run", kHint);
      }
    }
  }
  bool is_anothers = false;
  if (runner_ != me) {
    if (runner_ != 0) {
      Loss& loss = LossOf(runner_);
      loss.run = runs_;
      loss.fetched = std::move(fetched_);
    }
    is_anothers = is_handed_out_;
    runner_ = me;
  }
  ++runs_;
  fetched_.clear();
  is_handed_out_ = false;
  return is_anothers;
}

void SharedUse::Fetch(int64_t output) {
  const uint64_t me = ThisThread();
  if (runner_ == me) {
    is_handed_out_ = true;
    if (!Contains(fetched_, output)) fetched_.push_back(output);
    return;
  }
  auto mine = losses_.find(me);
  if (mine == losses_.end() || mine->second.run == 0) return;
  if (Contains(mine->second.fetched, output)) return;
  mine->second.run = 0;
  ThrowError("another thread has run the model since this thread's run: output ", output, " of it is gone", kHint);
}

}  // namespace runtime
}  // namespace tvm
