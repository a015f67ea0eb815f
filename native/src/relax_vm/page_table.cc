#include "page_table.h"

#include <tvm/runtime/error.h>

#include <algorithm>

namespace tvm {
namespace runtime {
namespace relax_vm {

PageTable::PageTable(int64_t pages, int64_t page_size, int64_t most_sequences)
    : page_size_(page_size), most_sequences_(most_sequences), users_(pages, 0) {
  Clear();
}

void PageTable::Clear() {
  sequences_.clear();
  std::fill(users_.begin(), users_.end(), 0);
  free_.clear();
  for (int64_t page = static_cast<int64_t>(users_.size()) - 1; page >= 0; --page) free_.push_back(static_cast<int32_t>(page));
}

void PageTable::Add(int64_t sequence) {
  if (sequences_.count(sequence) != 0) ThrowValueError("the cache has a sequence ", sequence, " already");
  if (static_cast<int64_t>(sequences_.size()) == most_sequences_) ThrowValueError("the cache was made for ", most_sequences_, " sequences, which it has");
  sequences_[sequence] = Sequence();
}

Sequence& PageTable::Find(int64_t sequence) {
  auto found = sequences_.find(sequence);
  if (found == sequences_.end()) ThrowValueError("the cache has no sequence ", sequence);
  return found->second;
}

const Sequence& PageTable::At(int64_t sequence) const { return const_cast<PageTable*>(this)->Find(sequence); }

int32_t PageTable::NewPage() {
  if (free_.empty()) ThrowValueError("the cache has no page left: all ", users_.size(), " pages of ", page_size_, " tokens are in use");
  int32_t page = free_.back();
  free_.pop_back();
  users_[page] = 1;
  return page;
}

void PageTable::Release(int32_t page) {
  if (--users_[page] == 0) free_.push_back(page);
}

void PageTable::Remove(int64_t sequence) {
  for (int32_t page : Find(sequence).pages) Release(page);
  sequences_.erase(sequence);
}

void PageTable::Fork(int64_t parent, int64_t child, int64_t position) {
  Sequence copy = Find(parent);
  if (position < -1 || position > copy.position) ThrowValueError("sequence ", parent, " has ", copy.position, " tokens, it cannot be forked at ", position);
  if (copy.window >= 0 && position >= 0) ThrowValueError("sequence ", parent, " has a sliding window: it can be forked at its end only");
  Add(child);
  for (int32_t page : copy.pages) ++users_[page];
  int64_t surplus = position < 0 ? 0 : copy.position - position;
  sequences_[child] = std::move(copy);
  Pop(child, surplus);
}

void PageTable::Pop(int64_t sequence, int64_t count) {
  Sequence& at = Find(sequence);
  int64_t most = at.window < 0 ? at.length : at.Visible() - std::min(at.sink, at.length);
  if (count < 0 || count > most) ThrowValueError("sequence ", sequence, " has ", most, " tokens to take away, got ", count);
  at.length -= count;
  at.position -= count;
  size_t needed = static_cast<size_t>((at.length + page_size_ - 1) / page_size_);
  for (; at.pages.size() > needed; at.pages.pop_back()) Release(at.pages.back());
}

void PageTable::Slide(int64_t sequence, int64_t window, int64_t sink) {
  Sequence& at = Find(sequence);
  if (window < 1 || sink < 0 || sink >= window) ThrowValueError("a sliding window needs a size above its ", sink, " first tokens, got ", window);
  if (at.window >= 0) ThrowValueError("sequence ", sequence, " has a sliding window already");
  at.window = window;
  at.sink = sink;
}

std::vector<int32_t> PageTable::Append(int64_t sequence, int64_t count, const CopyPage& copy) {
  Sequence& at = Find(sequence);
  if (at.window >= 0) SlideOn(&at);
  int64_t used = at.length % page_size_;
  if (count > 0 && used != 0 && users_[at.pages.back()] > 1) {
    int32_t own = NewPage();
    copy(at.pages.back(), own, used);
    Release(at.pages.back());
    at.pages.back() = own;
  }
  int64_t missing = (at.length + count + page_size_ - 1) / page_size_ - static_cast<int64_t>(at.pages.size());
  if (missing > FreePages()) {
    ThrowValueError("the cache has ", FreePages(), " pages of ", page_size_, " tokens left, sequence ", sequence, " needs ", missing, " more");
  }
  for (int64_t i = 0; i < missing; ++i) at.pages.push_back(NewPage());
  std::vector<int32_t> slots(count);
  for (int64_t i = 0; i < count; ++i) slots[i] = Slot(at, at.length + i);
  at.length += count;
  at.position += count;
  return slots;
}

int32_t PageTable::Slot(const Sequence& sequence, int64_t index) const {
  return static_cast<int32_t>(sequence.pages[index / page_size_] * page_size_ + index % page_size_);
}

void PageTable::SlideOn(Sequence* at) {
  at->hidden = std::max(at->hidden, at->length + 1 - at->window);
  // whole pages between those of the sink and the first that is seen
  int64_t first = (at->sink + page_size_ - 1) / page_size_;
  while ((first + 1) * page_size_ <= at->sink + at->hidden) {
    Release(at->pages[first]);
    at->pages.erase(at->pages.begin() + first);
    at->length -= page_size_;
    at->hidden -= page_size_;
  }
}

int64_t PageTable::TotalLength() const {
  int64_t total = 0;
  for (const auto& [sequence, at] : sequences_) total += at.length;
  return total;
}

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
