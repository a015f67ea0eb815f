// Reading ELF shared libraries.
#if defined(__linux__)
#include "elf_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace tvm {
namespace runtime {

MappedFile::MappedFile(const std::string& path) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status;
  bool is_read = file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  if (is_read && status.st_size > 0) {
    void* memory = mmap(nullptr, status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    is_read = memory != MAP_FAILED;
    data_ = static_cast<const char*>(memory);
    size_ = status.st_size;
  }
  if (file >= 0) close(file);
  if (!is_read) {
    size_ = 0;
    ThrowError("it is no readable file");
  }
}

MappedFile::~MappedFile() {
  if (size_ != 0) munmap(const_cast<char*>(data_), size_);
}

ElfFile::ElfFile(const char* data, uint64_t size) : data_(data), size_(size) {
  std::memcpy(&header_, AtOffset(0, sizeof(header_), "its header"), sizeof(header_));
  if (header_.e_type != ET_DYN) ThrowError("it is no shared library");
  if (header_.e_phentsize != sizeof(ElfSegment)) Fail("the size of a program header is ", header_.e_phentsize);
  segments_.resize(header_.e_phnum);
  uint64_t bytes = segments_.size() * sizeof(ElfSegment);
  if (bytes > 0) std::memcpy(segments_.data(), AtOffset(header_.e_phoff, bytes, "its program headers"), bytes);
  ReadSections();
  ReadDynamic();
  num_symbols_ = CountSymbols();
}

void ElfFile::ReadSections() {
  if (header_.e_shoff == 0) return;
  if (header_.e_shentsize != sizeof(ElfSection)) Fail("the size of a section header is ", header_.e_shentsize);
  sections_.resize(header_.e_shnum);
  uint64_t bytes = sections_.size() * sizeof(ElfSection);
  if (bytes > 0) std::memcpy(sections_.data(), AtOffset(header_.e_shoff, bytes, "its section headers"), bytes);
}

void ElfFile::ReadDynamic() {
  for (const ElfSegment& segment : segments_) {
    if (segment.p_type != PT_DYNAMIC) continue;
    if (!dynamic_.empty()) Fail("there are two dynamic sections");
    for (uint64_t at = segment.p_vaddr;; at += sizeof(ElfEntry)) {
      ElfEntry entry = Read<ElfEntry>(at, "the dynamic section");
      if (entry.d_tag == DT_NULL) break;
      dynamic_.push_back(entry);
    }
  }
  if (dynamic_.empty()) Fail("there is no dynamic section");
}

bool ElfFile::Has(int64_t tag) const {
  return std::any_of(dynamic_.begin(), dynamic_.end(), [&](const ElfEntry& entry) { return entry.d_tag == tag; });
}

uint64_t ElfFile::Value(int64_t tag, uint64_t otherwise) const {
  // the loader uses the last one
  auto found = std::find_if(dynamic_.rbegin(), dynamic_.rend(), [&](const ElfEntry& entry) { return entry.d_tag == tag; });
  return found == dynamic_.rend() ? otherwise : found->d_un.d_val;
}

const ElfSegment* ElfFile::SegmentOf(uint64_t address, uint64_t size) const {
  for (const ElfSegment& segment : segments_) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
    uint64_t start = address - segment.p_vaddr;
    if (start <= segment.p_memsz && size <= segment.p_memsz - start) return &segment;
  }
  return nullptr;
}

bool ElfFile::IsCode(uint64_t address) const {
  const ElfSegment* segment = SegmentOf(address, 1);
  return segment != nullptr && (segment->p_flags & PF_X) != 0;
}

bool ElfFile::IsWritable(uint64_t address, uint64_t size) const {
  const ElfSegment* segment = SegmentOf(address, size);
  return segment != nullptr && (segment->p_flags & PF_W) != 0;
}

const char* ElfFile::AtOffset(uint64_t offset, uint64_t size, const char* what) const {
  if (offset > size_ || size > size_ - offset) Fail(what, " ends after the file, which is cut off after ", size_, " bytes");
  return data_ + offset;
}

const char* ElfFile::AtAddress(uint64_t address, uint64_t size, const char* what) const {
  const ElfSegment* segment = SegmentOf(address, size);
  uint64_t start = segment == nullptr ? 0 : address - segment->p_vaddr;
  if (segment == nullptr || start > segment->p_filesz || size > segment->p_filesz - start) {
    Fail(what, " is at address ", address, ", where nothing is loaded");
  }
  return AtOffset(segment->p_offset + start, size, what);
}

const char* ElfFile::Text(uint64_t offset, const char* what) const {
  uint64_t size = Value(DT_STRSZ);
  const char* table = AtAddress(Value(DT_STRTAB), size, "the table of names");
  if (size == 0 || table[size - 1] != '\0') Fail("the table of names does not end");
  if (offset >= size) Fail(what, " has no name");
  return table + offset;
}

ElfSymbol ElfFile::Symbol(uint64_t index) const {
  return Read<ElfSymbol>(Value(DT_SYMTAB) + index * sizeof(ElfSymbol), "the table of symbols");
}

const char* ElfFile::NameOf(uint64_t symbol) const { return Text(Symbol(symbol).st_name, "a symbol"); }

uint64_t ElfFile::CountSymbols() const {
  uint64_t count = 0;
  if (uint64_t table = Value(DT_HASH)) count = CheckSysvHash(table);
  if (uint64_t table = Value(DT_GNU_HASH)) count = std::max(count, CheckGnuHash(table));
  if (count > size_ / sizeof(ElfSymbol)) Fail("it says that it has ", count, " symbols");
  return count;
}

namespace {

uint32_t SysvHash(const char* name) {
  uint32_t hash = 0;
  for (; *name != '\0'; ++name) {
    hash = (hash << 4) + static_cast<unsigned char>(*name);
    uint32_t top = hash & 0xf0000000;
    hash = (hash ^ top >> 24) & ~top;
  }
  return hash;
}

uint32_t GnuHash(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

}  // namespace

// buckets, chains; buckets[], chains[]: symbols of one bucket are linked through the chains
uint64_t ElfFile::CheckSysvHash(uint64_t table) const {
  uint32_t sizes[2];
  std::memcpy(sizes, AtAddress(table, sizeof(sizes), "the hash table"), sizeof(sizes));
  uint64_t buckets = sizes[0];
  uint64_t chains = sizes[1];
  const char* at = AtAddress(table + 8, 4 * (buckets + chains), "the hash table");
  std::vector<uint32_t> links(buckets + chains);
  if (!links.empty()) std::memcpy(links.data(), at, 4 * links.size());
  std::vector<bool> seen(chains);
  for (uint64_t bucket = 0; bucket < buckets; ++bucket) {
    for (uint64_t symbol = links[bucket]; symbol != 0; symbol = links[buckets + symbol]) {
      if (symbol >= chains || seen[symbol]) Fail("the hash table has no end");
      seen[symbol] = true;
      if (SysvHash(NameOf(symbol)) % buckets != bucket) Fail("the hash table has a symbol of another name");
    }
  }
  return chains;
}

// buckets, first symbol, bloom words, shift; bloom[], buckets[], hashes of the symbols, odd where a bucket ends
uint64_t ElfFile::CheckGnuHash(uint64_t table) const {
  uint32_t sizes[4];
  std::memcpy(sizes, AtAddress(table, sizeof(sizes), "the hash table"), sizeof(sizes));
  uint64_t buckets = sizes[0];
  uint64_t first = sizes[1];
  uint64_t words = sizes[2];
  if (words == 0 || (words & (words - 1)) != 0 || sizes[3] >= 64) Fail("the hash table has a filter of ", words, " words");
  uint64_t bucket_table = table + sizeof(sizes) + words * sizeof(ElfW(Addr));
  uint64_t chain_table = bucket_table + 4 * buckets;
  AtAddress(table, chain_table - table, "the hash table");
  uint64_t count = first;
  for (uint64_t bucket = 0; bucket < buckets; ++bucket) {
    uint64_t symbol = Read<uint32_t>(bucket_table + 4 * bucket, "the hash table");
    if (symbol == 0) continue;
    if (symbol < first) Fail("the hash table refers to symbol ", symbol);
    for (bool is_last = false; !is_last; ++symbol) {
      uint32_t hash = Read<uint32_t>(chain_table + 4 * (symbol - first), "the hash table");
      if ((GnuHash(NameOf(symbol)) | 1) != (hash | 1)) Fail("the hash table has a symbol of another name");
      is_last = (hash & 1) != 0;
    }
    count = std::max(count, symbol);
  }
  return count;
}

}  // namespace runtime
}  // namespace tvm
#endif  // defined(__linux__)
