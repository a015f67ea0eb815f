// The order of numbers as unsigned keys, and the first of a row of keys in order.
//
// A number becomes an unsigned key of its width that orders as the number does; a descending order is that of
// the keys' complements. So one code, without a branch on what the numbers are, sorts all of them.
#ifndef TVM_CONTRIB_SORT_ORDER_H_
#define TVM_CONTRIB_SORT_ORDER_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

namespace tvm {
namespace runtime {
namespace sort {

// Half precision, by its bits.
struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

// Zeros are equal, and NaN, whose magnitude is beyond infinity's, is the greatest.
template <class U>
U KeyOfFloat(U bits, U infinity) {
  constexpr U kSign = U(1) << (8 * sizeof(U) - 1), kAll = static_cast<U>(~U(0));
  bits = bits == kSign ? U(0) : bits;
  U key = bits & kSign ? U(~bits) : U(bits | kSign);
  return (bits & U(~kSign)) > infinity ? kAll : key;
}

inline uint16_t KeyOf(Float16 x) { return KeyOfFloat<uint16_t>(x.bits, 0x7c00); }
inline uint16_t KeyOf(BFloat16 x) { return KeyOfFloat<uint16_t>(x.bits, 0x7f80); }
inline uint32_t KeyOf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return KeyOfFloat<uint32_t>(bits, 0x7f800000);
}
inline uint64_t KeyOf(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return KeyOfFloat<uint64_t>(bits, uint64_t(0x7ff) << 52);
}
template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
std::make_unsigned_t<T> KeyOf(T x) {
  using U = std::make_unsigned_t<T>;
  return std::is_signed_v<T> ? U(x) ^ U(U(1) << (8 * sizeof(U) - 1)) : U(x);
}

// A key and its place, to which ties go. Of 32 bits each they are one number.
class NarrowItem {
 public:
  using Key = uint32_t;
  NarrowItem() = default;
  NarrowItem(Key key, int64_t index) : bits_(uint64_t(key) << 32 | static_cast<uint32_t>(index)) {}
  Key key() const { return static_cast<Key>(bits_ >> 32); }
  int64_t index() const { return static_cast<uint32_t>(bits_); }
  bool operator<(NarrowItem other) const { return bits_ < other.bits_; }

 private:
  uint64_t bits_;
};
class WideItem {
 public:
  using Key = uint64_t;
  WideItem() = default;
  WideItem(Key key, int64_t index) : key_(key), index_(index) {}
  Key key() const { return key_; }
  int64_t index() const { return index_; }
  bool operator<(const WideItem& other) const {
    return (key_ < other.key_) | ((key_ == other.key_) & (index_ < other.index_));
  }

 private:
  Key key_;
  int64_t index_;
};

// Calls body in code for AVX2, where the processor has it: only what is inlined into it becomes wider.
#if defined(__x86_64__) && defined(__GNUC__)
#define TVM_SORT_INLINE __attribute__((always_inline))
template <class F>
__attribute__((target("avx2"))) void InWideCode(F body) {
  body();
}
template <class F>
void InWidestCode(F body) {
  static const bool is_wide = __builtin_cpu_supports("avx2");
  is_wide ? InWideCode(body) : body();
}
#else
#define TVM_SORT_INLINE
template <class F>
void InWidestCode(F body) {
  body();
}
#endif

// The keys of a row's elements, complemented for a descending order.
template <class Key, class T>
struct RowKeys {
  const T* row;
  Key flipped;
  TVM_SORT_INLINE Key operator[](int64_t j) const { return Key(KeyOf(row[j])) ^ flipped; }
};

// Keys that are compared at a time.
constexpr int64_t kBlock = 16;
// From this many elements for each that is kept on, groups of elements bound the kept ones.
constexpr int64_t kFewKept = 16;
// Below, comparing sorts faster than distributing by digits.
constexpr int64_t kManyItems = 256;
constexpr int kDigitBits = 8, kDigits = 1 << kDigitBits;

// Orders rows of keys; keeps its memory from row to row.
template <class Item>
class Sorter {
 public:
  using Key = typename Item::Key;

  // Puts at least the first `kept` of a row in order.
  template <class T>
  const Item* Order(RowKeys<Key, T> keys, int64_t length, int64_t kept) {
    if (kept <= 0) return nullptr;
    count_ = 0;
    if (kept == length) {
      Collect(keys, 0, length, static_cast<Key>(~Key(0)));
    } else {
      CollectUpTo(keys, length, Bound(keys, length, kept));
    }
    count_ < kManyItems ? std::sort(items_.begin(), items_.begin() + count_) : SortByDigits();
    return items_.data();
  }

 private:
  // A key that at least `kept` of them do not exceed.
  template <class T>
  Key Bound(RowKeys<Key, T> keys, int64_t length, int64_t kept) {
    // one of each group is enough for a few
    int64_t groups = (4 * kept + kBlock - 1) / kBlock * kBlock;
    if (kept * kFewKept > length || 2 * groups > length) groups = length;
    least_.resize(groups);
    Key* least = least_.data();
    InWidestCode([=]() TVM_SORT_INLINE {
      for (int64_t j = 0; j < groups; ++j) least[j] = keys[j];
      for (int64_t from = groups; from + groups <= length; from += groups) {
        for (int64_t j = 0; j < groups; ++j) least[j] = std::min(least[j], keys[from + j]);
      }
    });
    std::nth_element(least, least + (kept - 1), least + groups);
    return least_[kept - 1];
  }

  template <class T>
  void CollectUpTo(RowKeys<Key, T> keys, int64_t length, Key bound) {
    InWidestCode([=]() TVM_SORT_INLINE {
      int64_t from = 0;
      for (; from + kBlock <= length; from += kBlock) {
        Key any = 0;
        for (int64_t j = 0; j < kBlock; ++j) any |= keys[from + j] <= bound;
        if (any) Collect(keys, from, from + kBlock, bound);
      }
      Collect(keys, from, length, bound);
    });
  }

  // Appends the elements of a part whose keys do not exceed the bound.
  template <class T>
  void Collect(RowKeys<Key, T> keys, int64_t from, int64_t to, Key bound) {
    int64_t count = count_, room = count + to - from;
    if (static_cast<int64_t>(items_.size()) < room) items_.resize(std::max<int64_t>(room, 2 * items_.size()));
    Item* items = items_.data();
    for (int64_t j = from; j < to; ++j) {
      Key key = keys[j];
      items[count] = Item(key, j);
      count += key <= bound;
    }
    count_ = count;
  }

  // Distributes the items, which lie in the order of their places, by each digit of their keys, the least first.
  void SortByDigits() {
    constexpr int kPasses = 8 * sizeof(Key) / kDigitBits;
    int64_t counts[kPasses][kDigits] = {};
    for (int64_t j = 0; j < count_; ++j) {
      for (int pass = 0; pass < kPasses; ++pass) ++counts[pass][Digit(items_[j], pass)];
    }
    others_.resize(items_.size());
    for (int pass = 0; pass < kPasses; ++pass) {
      int64_t* places = counts[pass];
      if (places[Digit(items_[0], pass)] == count_) continue;
      for (int64_t digit = 0, place = 0; digit < kDigits; ++digit) place += std::exchange(places[digit], place);
      for (int64_t j = 0; j < count_; ++j) others_[places[Digit(items_[j], pass)]++] = items_[j];
      items_.swap(others_);
    }
  }
  static int Digit(const Item& item, int pass) { return item.key() >> (pass * kDigitBits) & (kDigits - 1); }

  int64_t count_ = 0;  // of the items that are in use
  std::vector<Item> items_, others_;
  std::vector<Key> least_;
};

}  // namespace sort
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_CONTRIB_SORT_ORDER_H_
