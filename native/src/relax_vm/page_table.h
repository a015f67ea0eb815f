// Which pages hold the tokens of which sequence. A page that several sequences share is copied when one writes to it.
#ifndef TVM_SRC_RELAX_VM_PAGE_TABLE_H_
#define TVM_SRC_RELAX_VM_PAGE_TABLE_H_

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

namespace tvm {
namespace runtime {
namespace relax_vm {

struct Sequence {
  std::vector<int32_t> pages;
  int64_t length{0};    // slots in use: of a sliding window, those that were not given back
  int64_t position{0};  // tokens so far, those that left a sliding window too
  int64_t window{-1};   // the last tokens that are seen; below 0, all are
  int64_t sink{0};      // the first tokens, which are seen for ever
  int64_t hidden{0};    // slots behind those of the sink that are not seen any more

  int64_t Visible() const { return length - hidden; }
};

class PageTable {
 public:
  // Copies the first slots of one page to another.
  using CopyPage = std::function<void(int32_t from, int32_t to, int64_t slots)>;

  PageTable(int64_t pages, int64_t page_size, int64_t most_sequences);

  void Clear();
  void Add(int64_t sequence);
  void Remove(int64_t sequence);
  void Fork(int64_t parent, int64_t child, int64_t position);
  void Pop(int64_t sequence, int64_t count);
  void Slide(int64_t sequence, int64_t window, int64_t sink);
  // Slots for new tokens of a sequence: page * page size + place.
  std::vector<int32_t> Append(int64_t sequence, int64_t count, const CopyPage& copy);

  const Sequence& At(int64_t sequence) const;
  int32_t Slot(const Sequence& sequence, int64_t index) const;
  int64_t FreePages() const { return static_cast<int64_t>(free_.size()); }
  int64_t TotalLength() const;
  bool Empty() const { return sequences_.empty(); }

 private:
  Sequence& Find(int64_t sequence);
  // Hides what the next token does not see, and gives back the pages without anything that is seen.
  void SlideOn(Sequence* sequence);
  int32_t NewPage();
  void Release(int32_t page);

  int64_t page_size_;
  int64_t most_sequences_;
  std::vector<int32_t> free_;
  std::vector<int32_t> users_;  // of each page
  std::unordered_map<int64_t, Sequence> sequences_;
};

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_RELAX_VM_PAGE_TABLE_H_
