// An ELF shared library as bytes, read with every bound checked.
#ifndef TVM_SRC_ELF_FILE_H_
#define TVM_SRC_ELF_FILE_H_

#include <link.h>
#include <tvm/runtime/error.h>

#include <cstring>
#include <string>
#include <vector>

namespace tvm {
namespace runtime {

using ElfHeader = ElfW(Ehdr);
using ElfSegment = ElfW(Phdr);
using ElfSection = ElfW(Shdr);
using ElfSymbol = ElfW(Sym);
using ElfEntry = ElfW(Dyn);

// The bytes of a file, mapped.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();
  const char* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  const char* data_{nullptr};
  uint64_t size_{0};
};

class ElfFile {
 public:
  ElfFile(const char* data, uint64_t size);  // reads the header and the segments

  const ElfHeader& header() const { return header_; }
  const std::vector<ElfSegment>& segments() const { return segments_; }
  const std::vector<ElfSection>& sections() const { return sections_; }
  const std::vector<ElfEntry>& dynamic() const { return dynamic_; }
  uint64_t num_symbols() const { return num_symbols_; }

  // Raises that the file is damaged.
  template <class... Parts>
  [[noreturn]] static void Fail(const Parts&... parts) {
    ThrowError("the file is damaged: ", parts...);
  }

  bool Has(int64_t tag) const;  // whether there is such a dynamic entry
  // The value of a dynamic entry; `otherwise` if there is none.
  uint64_t Value(int64_t tag, uint64_t otherwise = 0) const;
  // The loaded segment that holds these addresses in memory; null if none does.
  const ElfSegment* SegmentOf(uint64_t address, uint64_t size) const;
  bool IsCode(uint64_t address) const;
  bool IsWritable(uint64_t address, uint64_t size) const;
  // The file's bytes that will be at an address; raises if the file has none.
  const char* AtAddress(uint64_t address, uint64_t size, const char* what) const;
  const char* AtOffset(uint64_t offset, uint64_t size, const char* what) const;
  template <class T>
  T Read(uint64_t address, const char* what) const {
    T value;
    std::memcpy(&value, AtAddress(address, sizeof(T), what), sizeof(T));
    return value;
  }
  const char* Text(uint64_t offset, const char* what) const;  // of the string table
  ElfSymbol Symbol(uint64_t index) const;

 private:
  void ReadSections();
  void ReadDynamic();
  const char* NameOf(uint64_t symbol) const;
  uint64_t CountSymbols() const;
  uint64_t CheckSysvHash(uint64_t table) const;
  uint64_t CheckGnuHash(uint64_t table) const;

  const char* data_;
  uint64_t size_;
  ElfHeader header_;
  std::vector<ElfSegment> segments_;
  std::vector<ElfSection> sections_;
  std::vector<ElfEntry> dynamic_;
  uint64_t num_symbols_{0};
};

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_ELF_FILE_H_
