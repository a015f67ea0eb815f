#include "processor.h"

#include <cstring>
#include <sstream>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace tvm {
namespace runtime {
namespace {

#if defined(__x86_64__)

constexpr const char* kArchitecture = "x86_64:";

struct Leaf {
  Leaf(unsigned leaf, unsigned subleaf) { is_there = __get_cpuid_count(leaf, subleaf, &a, &b, &c, &d) != 0; }
  bool is_there;
  unsigned a = 0, b = 0, c = 0, d = 0;
};

// Registers that the system saves for this process.
bool SavesState(unsigned mask) {
  if (!(Leaf(1, 0).c >> 27 & 1)) return false;  // OSXSAVE
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & mask) == mask;
}

bool Has(const std::string& name) {
  constexpr unsigned kVectors256 = 0x6, kVectors512 = 0xe6, kTiles = 0x60000;
  struct Row {
    const char* name;
    int leaf, subleaf, reg, bit;
    unsigned state;
  };
  static const Row rows[] = {
      {"sse4.1", 1, 0, 'c', 19, 0},
      {"sse4.2", 1, 0, 'c', 20, 0},
      {"popcnt", 1, 0, 'c', 23, 0},
      {"avx", 1, 0, 'c', 28, kVectors256},
      {"fma", 1, 0, 'c', 12, kVectors256},
      {"f16c", 1, 0, 'c', 29, kVectors256},
      {"bmi", 7, 0, 'b', 3, 0},
      {"avx2", 7, 0, 'b', 5, kVectors256},
      {"bmi2", 7, 0, 'b', 8, 0},
      {"avx512f", 7, 0, 'b', 16, kVectors512},
      {"avx512dq", 7, 0, 'b', 17, kVectors512},
      {"avx512cd", 7, 0, 'b', 28, kVectors512},
      {"avx512bw", 7, 0, 'b', 30, kVectors512},
      {"avx512vl", 7, 0, 'b', 31, kVectors512},
      {"avx512vnni", 7, 0, 'c', 11, kVectors512},
      {"avx512fp16", 7, 0, 'd', 23, kVectors512},
      {"amx-bf16", 7, 0, 'd', 22, kTiles},
      {"amx-tile", 7, 0, 'd', 24, kTiles},
      {"amx-int8", 7, 0, 'd', 25, kTiles},
      {"avxvnni", 7, 1, 'a', 4, kVectors256},
      {"avx512bf16", 7, 1, 'a', 5, kVectors512},
  };
  for (const Row& row : rows) {
    if (name != row.name) continue;
    Leaf leaf(row.leaf, row.subleaf);
    unsigned value = row.reg == 'a' ? leaf.a : row.reg == 'b' ? leaf.b : row.reg == 'c' ? leaf.c : leaf.d;
    return leaf.is_there && (value >> row.bit & 1) && (row.state == 0 || SavesState(row.state));
  }
  return true;  // a feature of a later compiler: the code may still run
}

#elif defined(__aarch64__) && defined(__linux__)

constexpr const char* kArchitecture = "aarch64:";

bool Has(const std::string& name) {
  struct Row {
    const char* name;
    int vector, bit;
  };
  static const Row rows[] = {
      {"fullfp16", AT_HWCAP, 10}, {"dotprod", AT_HWCAP, 20}, {"sve", AT_HWCAP, 22},
      {"sve2", AT_HWCAP2, 1},     {"i8mm", AT_HWCAP2, 13},   {"bf16", AT_HWCAP2, 14},
  };
  for (const Row& row : rows) {
    if (name == row.name) return getauxval(row.vector) >> row.bit & 1;
  }
  return true;
}

#else

constexpr const char* kArchitecture = "?";
bool Has(const std::string&) { return true; }

#endif

}  // namespace

std::string MissingFeatures(const std::string& note) {
  size_t length = std::strlen(kArchitecture);
  if (note.compare(0, length, kArchitecture) != 0) return "";
  std::istringstream names(note.substr(length));
  std::string missing;
  for (std::string name; std::getline(names, name, ',');) {
    if (!Has(name)) missing += (missing.empty() ? "" : ", ") + name;
  }
  return missing;
}

}  // namespace runtime
}  // namespace tvm
