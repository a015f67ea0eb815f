// Threads beside the pool.
#include <tvm/runtime/threading_backend.h>

#include <thread>

#include "cpu_count.h"

namespace tvm {
namespace runtime {
namespace threading {

class ThreadGroup::Impl {
 public:
  Impl(int num_workers, std::function<void(int)> callback, int first) : callback_(std::move(callback)) {
    for (int i = first; i < num_workers; ++i) threads_.emplace_back([this, i] { callback_(i); });
  }

  void Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  // Worker 0 has the first of the places even if it is none of these threads.
  void Place(const std::vector<CpuSet>& places, size_t first) {
    for (size_t i = 0; i < threads_.size(); ++i) SetAffinity(threads_[i].native_handle(), places[(first + i) % places.size()]);
  }

 private:
  std::function<void(int)> callback_;
  std::vector<std::thread> threads_;
};

ThreadGroup::ThreadGroup(int num_workers, std::function<void(int)> worker_callback, bool exclude_worker0) {
  if (num_workers < 1 || num_workers > kMaxThreads) {
    ThrowValueError("a thread group needs between 1 and ", kMaxThreads, " workers, got ", num_workers);
  }
  impl_ = std::make_unique<Impl>(num_workers, std::move(worker_callback), exclude_worker0 ? 1 : 0);
}

ThreadGroup::~ThreadGroup() { Join(); }

void ThreadGroup::Join() { impl_->Join(); }

int ThreadGroup::Configure(AffinityMode mode, int nthreads, bool exclude_worker0, std::vector<unsigned int> cpus) {
  std::vector<CpuSet> places = PlacesOf(mode, CheckedCpus({cpus.begin(), cpus.end()}));
  const int enough = ThreadsFor(places);
  if (places.empty()) places.push_back(AllowedCpus());
  if (exclude_worker0) SetAffinity(pthread_self(), places[0]);
  impl_->Place(places, exclude_worker0 ? 1 : 0);
  return nthreads > 0 ? std::min(enough, nthreads) : enough;
}

void Yield() { std::this_thread::yield(); }

}  // namespace threading
}  // namespace runtime
}  // namespace tvm
