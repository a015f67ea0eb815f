// What the loader and the look-up of symbols rely on, table by table.
#if defined(__linux__)
#include "elf_check.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "elf_file.h"

namespace tvm {
namespace runtime {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kRelative = R_X86_64_RELATIVE;
constexpr uint32_t kIndirect = R_X86_64_IRELATIVE;
constexpr uint32_t kSlots[] = {R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT};
constexpr uint32_t kKnown[] = {R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT, R_X86_64_RELATIVE, R_X86_64_DTPMOD64,
                               R_X86_64_DTPOFF64, R_X86_64_TPOFF64, R_X86_64_TLSDESC, R_X86_64_IRELATIVE};
#elif defined(__aarch64__)
constexpr uint32_t kRelative = R_AARCH64_RELATIVE;
constexpr uint32_t kIndirect = R_AARCH64_IRELATIVE;
constexpr uint32_t kSlots[] = {R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT};
constexpr uint32_t kKnown[] = {R_AARCH64_ABS64, R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT, R_AARCH64_RELATIVE,
                               R_AARCH64_TLS_DTPMOD, R_AARCH64_TLS_DTPREL, R_AARCH64_TLS_TPREL, R_AARCH64_TLSDESC,
                               R_AARCH64_IRELATIVE};
#else
constexpr uint32_t kRelative = ~0u;
constexpr uint32_t kIndirect = ~0u;
constexpr uint32_t kSlots[] = {kRelative};
constexpr uint32_t kKnown[] = {kRelative};
#endif

constexpr bool kIsKnownMachine = kRelative != ~0u;
constexpr uint64_t kMostMemory = uint64_t{1} << 40;
constexpr uint64_t kPage = 1 << 12;
constexpr uint64_t kCommonAlignment = 16;  // of functions
constexpr int64_t kPackedTable = 36;  // DT_RELR and the like, which older system headers lack
constexpr int64_t kPackedSize = 35;
constexpr int64_t kPackedEntry = 37;

constexpr int64_t kMostCommonTags = 64;  // 38 are in use
constexpr const char* kStartImports[] = {"_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__cxa_finalize", "__gmon_start__"};

// The loader reads the second entry wherever there is the first.
constexpr int64_t kTogether[][2] = {
    {DT_INIT_ARRAY, DT_INIT_ARRAYSZ}, {DT_INIT_ARRAYSZ, DT_INIT_ARRAY}, {DT_FINI_ARRAY, DT_FINI_ARRAYSZ},
    {DT_FINI_ARRAYSZ, DT_FINI_ARRAY}, {DT_JMPREL, DT_PLTRELSZ},         {DT_PLTRELSZ, DT_JMPREL},
    {DT_JMPREL, DT_PLTREL},           {DT_PLTREL, DT_JMPREL},           {DT_RELA, DT_RELASZ},
    {DT_RELASZ, DT_RELA},             {DT_RELA, DT_RELAENT},            {DT_RELACOUNT, DT_RELA},
    {DT_STRTAB, DT_STRSZ},            {DT_SYMTAB, DT_SYMENT},           {DT_SYMTAB, DT_STRTAB},
    {DT_VERNEED, DT_VERNEEDNUM},      {DT_VERNEEDNUM, DT_VERNEED},      {DT_VERDEF, DT_VERDEFNUM},
    {DT_VERDEFNUM, DT_VERDEF},        {kPackedTable, kPackedSize},      {kPackedSize, kPackedTable},
    {kPackedTable, kPackedEntry},     {kPackedEntry, kPackedTable},
};

template <size_t N>
bool IsOneOf(uint32_t value, const uint32_t (&values)[N]) {
  return std::find(std::begin(values), std::end(values), value) != std::end(values);
}

bool IsPowerOfTwo(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

class ElfChecker {
 public:
  explicit ElfChecker(const ElfFile& file) : file_(file) {}

  void Check() {
    CheckLoadedSegments();
    for (const ElfSegment& segment : file_.segments()) CheckOtherSegment(segment);
    CheckSections();
    CheckSymbols();
    CheckDynamic();
    CheckVersions();
    CheckRelocations(DT_RELA, file_.Value(DT_RELASZ));
    CheckRelocations(DT_JMPREL, file_.Value(DT_PLTRELSZ));
    CheckStarters(DT_INIT_ARRAY, DT_INIT_ARRAYSZ);
    CheckStarters(DT_FINI_ARRAY, DT_FINI_ARRAYSZ);
    CheckImportsAreUsed();
  }

 private:
  void CheckLoadedSegments() {
    uint64_t end = 0;
    for (const ElfSegment& segment : file_.segments()) {
      if (segment.p_type != PT_LOAD) continue;
      file_.AtOffset(segment.p_offset, segment.p_filesz, "a segment");
      bool is_sound = segment.p_filesz <= segment.p_memsz && segment.p_memsz <= kMostMemory && segment.p_vaddr <= kMostMemory &&
                      segment.p_vaddr >= end && (segment.p_flags & PF_R) != 0 && IsPowerOfTwo(segment.p_align) &&
                      segment.p_align <= kMostMemory && (segment.p_vaddr - segment.p_offset) % segment.p_align == 0;
      if (!is_sound) ElfFile::Fail("the segment at address ", segment.p_vaddr, " cannot be loaded");
      end = segment.p_vaddr + segment.p_memsz;
    }
  }

  void CheckOtherSegment(const ElfSegment& segment) {
    switch (segment.p_type) {
      case PT_DYNAMIC:
        dynamic_begin_ = segment.p_vaddr;
        dynamic_end_ = segment.p_vaddr + segment.p_memsz;
        if ((segment.p_flags & PF_W) != 0 && !file_.IsWritable(segment.p_vaddr, segment.p_memsz)) {
          ElfFile::Fail("the dynamic section is not writable");
        }
        break;
      case PT_PHDR:
        if (file_.AtAddress(segment.p_vaddr, segment.p_filesz, "a segment") !=
            file_.AtOffset(file_.header().e_phoff, 0, "its program headers")) {
          ElfFile::Fail("the program headers are not where they should be");
        }
        break;
      case PT_TLS:
        if (segment.p_memsz > kMostThreadMemory || segment.p_filesz > segment.p_memsz ||
            (segment.p_align > 1 && !IsPowerOfTwo(segment.p_align)) || segment.p_align > kMostThreadMemory) {
          ElfFile::Fail("the variables of threads take ", segment.p_memsz, " bytes");
        }
        has_thread_memory_ = true;
        file_.AtAddress(segment.p_vaddr, segment.p_filesz, "a segment");
        break;
      case PT_GNU_RELRO:
        CheckProtected(segment);
        protected_begin_ = segment.p_vaddr;
        protected_end_ = segment.p_vaddr + segment.p_memsz;
        break;
      case PT_NOTE:
      case PT_GNU_EH_FRAME:
      case kPropertySegment: file_.AtAddress(segment.p_vaddr, segment.p_filesz, "a segment"); break;
      default: break;
    }
  }

  // Some linkers let it end with the page of its segment.
  void CheckProtected(const ElfSegment& segment) {
    const ElfSegment* loaded = file_.SegmentOf(segment.p_vaddr, 0);
    bool is_writable = loaded != nullptr && (loaded->p_flags & PF_W) != 0 && segment.p_memsz <= kMostMemory;
    if (is_writable) {
      uint64_t end = loaded->p_vaddr + loaded->p_memsz;
      is_writable = segment.p_vaddr + segment.p_memsz <= end + (-end & (kPage - 1));
    }
    if (!is_writable) ElfFile::Fail("what is to be protected is not loaded");
  }

  // Sections say once more where the segments' bytes belong, and what the dynamic entries tell.
  void CheckSections() {
    if (file_.sections().empty()) return;
    uint64_t relocations = 0;
    for (const ElfSection& section : file_.sections()) {
      if (section.sh_type == SHT_SYMTAB) NoteFunctions(section);
      if ((section.sh_flags & SHF_ALLOC) == 0 || section.sh_type == SHT_NOBITS || section.sh_size == 0) continue;
      if (file_.AtAddress(section.sh_addr, section.sh_size, "a section") !=
          file_.AtOffset(section.sh_offset, section.sh_size, "a section")) {
        ElfFile::Fail("the section at address ", section.sh_addr, " is not where its segment is");
      }
      relocations += section.sh_type == SHT_RELA ? section.sh_size : 0;
      if (section.sh_entsize == 0) section_starts_.insert(section.sh_addr);  // one of stubs has their size
    }
    CheckTables();
    if (relocations != file_.Value(DT_RELASZ) + file_.Value(DT_PLTRELSZ)) ElfFile::Fail("some relocations are missing");
  }

  // Names for debuggers, which say where functions begin, unless those of single files have been stripped.
  void NoteFunctions(const ElfSection& section) {
    const char* table = file_.AtOffset(section.sh_offset, section.sh_size, "a section");
    for (uint64_t i = 0; i < section.sh_size / sizeof(ElfSymbol); ++i) {
      ElfSymbol symbol;
      std::memcpy(&symbol, table + i * sizeof(symbol), sizeof(symbol));
      int type = symbol.st_info & 15;
      if (symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_NOTYPE && type != STT_GNU_IFUNC)) continue;
      function_starts_.insert(symbol.st_value);
      knows_functions_ |= type == STT_FUNC && symbol.st_info >> 4 == STB_LOCAL;
    }
  }

  // The sections and the dynamic entries name the same tables.
  void CheckTables() {
    static constexpr struct { uint32_t section; int64_t tag; } tables[] = {
        {SHT_DYNSYM, DT_SYMTAB}, {SHT_HASH, DT_HASH}, {SHT_GNU_HASH, DT_GNU_HASH}, {SHT_GNU_versym, DT_VERSYM},
        {SHT_GNU_verneed, DT_VERNEED}, {SHT_GNU_verdef, DT_VERDEF}, {SHT_INIT_ARRAY, DT_INIT_ARRAY}, {SHT_FINI_ARRAY, DT_FINI_ARRAY},
    };
    for (const auto& table : tables) {
      uint64_t where = file_.Value(table.tag);
      bool is_there = !file_.Has(table.tag);
      for (const ElfSection& section : file_.sections()) {
        if (section.sh_type != table.section || section.sh_size == 0) continue;
        if (section.sh_addr != where) ElfFile::Fail("the section at address ", section.sh_addr, " is not what the dynamic entry says");
        is_there = true;
      }
      if (!is_there) ElfFile::Fail("no section holds the table at address ", where);
    }
  }

  void CheckDynamic() {
    if (file_.Value(DT_SYMENT, sizeof(ElfSymbol)) != sizeof(ElfSymbol)) ElfFile::Fail("its symbols have another size");
    if (file_.Value(DT_REL) != 0 || file_.Value(kPackedSize) % sizeof(ElfW(Addr)) != 0) ElfFile::Fail("its relocations are of an unknown form");
    if (!file_.Has(DT_SYMTAB)) ElfFile::Fail("there is no table of symbols");
    for (const auto& [tag, other] : kTogether) {
      if (file_.Has(tag) && !file_.Has(other)) ElfFile::Fail("there is a dynamic entry ", tag, ", and none of the kind ", other);
    }
    if (file_.Value(kPackedEntry, sizeof(ElfW(Addr))) != sizeof(ElfW(Addr))) ElfFile::Fail("its relocations have another size");
    for (const ElfEntry& entry : file_.dynamic()) {
      uint64_t value = entry.d_un.d_val;
      bool has_meaning = (entry.d_tag >= 0 && entry.d_tag < kMostCommonTags) || (entry.d_tag >= DT_LOOS && entry.d_tag <= DT_HIPROC);
      if (!has_meaning) ElfFile::Fail("a dynamic entry is of the unknown kind ", entry.d_tag);
      switch (entry.d_tag) {
        case DT_NEEDED: needed_.insert(file_.Text(value, "a library that it needs")); break;
        case DT_SONAME:
        case DT_RPATH:
        case DT_RUNPATH:
        case DT_AUXILIARY:
        case DT_FILTER: file_.Text(value, "a dynamic entry"); break;
        case DT_INIT:
        case DT_FINI:
          CheckEntry(value);
          break;
        case DT_PLTGOT:
          if (!file_.IsWritable(value, 3 * sizeof(ElfW(Addr)))) ElfFile::Fail("the table of addresses is not writable");
          break;
        default: break;
      }
    }
    CheckPackedRelocations();
  }

  // Addresses, each followed by maps of which of the next words are relative too.
  void CheckPackedRelocations() {
    uint64_t table = file_.Value(kPackedTable);
    uint64_t where = 0;
    for (uint64_t i = 0; i < file_.Value(kPackedSize) / sizeof(ElfW(Addr)); ++i) {
      uint64_t entry = file_.Read<ElfW(Addr)>(table + i * sizeof(ElfW(Addr)), "a relocation");
      uint64_t bits = 8 * sizeof(ElfW(Addr)) - 1;
      if ((entry & 1) == 0) {
        CheckPackedRelocation(entry);
        where = entry + sizeof(ElfW(Addr));
        continue;
      }
      for (uint64_t bit = 0; bit < bits; ++bit) {
        if (entry >> (bit + 1) & 1) CheckPackedRelocation(where + bit * sizeof(ElfW(Addr)));
      }
      where += bits * sizeof(ElfW(Addr));
    }
  }

  void CheckPackedRelocation(uint64_t address) {
    if (!file_.IsWritable(address, sizeof(ElfW(Addr)))) ElfFile::Fail("a relocation changes what is not writable");
    uint64_t target = file_.Read<ElfW(Addr)>(address, "a relocation");
    if (file_.SegmentOf(target, 0) == nullptr) ElfFile::Fail("a relocation points to nothing");
    NoteRelocation(address, target);
  }

  // Each word is relocated once, and those that tell the loader what to do are not.
  void NoteRelocation(uint64_t address, uint64_t target) {
    auto next = relocated_.lower_bound(address);
    bool overlaps = next != relocated_.end() && next->first - address < sizeof(ElfW(Addr));
    if (next != relocated_.begin()) overlaps |= address - std::prev(next)->first < sizeof(ElfW(Addr));
    if (overlaps && kIsKnownMachine) ElfFile::Fail("two relocations change the same place");
    if (address + sizeof(ElfW(Addr)) > dynamic_begin_ && address < dynamic_end_) ElfFile::Fail("a relocation changes the dynamic section");
    relocated_.emplace_hint(next, address, target);
  }

  void CheckSymbols() {
    for (uint64_t i = 0; i < file_.num_symbols(); ++i) {
      ElfSymbol symbol = file_.Symbol(i);
      const char* name = file_.Text(symbol.st_name, "a symbol");
      int type = symbol.st_info & 15;
      if (symbol.st_shndx == SHN_UNDEF && i > 0) CheckImport(symbol, name);
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS) continue;
      if (type == STT_TLS ? !has_thread_memory_ : file_.SegmentOf(symbol.st_value, symbol.st_size) == nullptr) {
        ElfFile::Fail("the symbol '", name, "' is not loaded");
      }
      bool is_function = type == STT_FUNC || type == STT_GNU_IFUNC;
      if (is_function) function_starts_.insert(symbol.st_value);
      if (is_function && !file_.IsCode(symbol.st_value)) ElfFile::Fail("the function '", name, "' is no code");
      if (IsSlot(name)) CheckSlot(name, symbol.st_value);
    }
  }

  // One that only the library itself could see would not be looked for, and would be where the library begins.
  static void CheckImport(const ElfSymbol& symbol, const char* name) {
    int binding = symbol.st_info >> 4;
    bool is_sought = (binding == STB_GLOBAL || binding == STB_WEAK) && (symbol.st_other & 3) == STV_DEFAULT;
    if (kIsKnownMachine && (!is_sought || symbol.st_value != 0)) ElfFile::Fail("the symbol '", name, "' of another library has a place in this one");
  }

  // The code that compilers put into each library uses these, so a relocation refers to another symbol than it did.
  void CheckImportsAreUsed() const {
    for (uint64_t i = 1; kIsKnownMachine && i < file_.num_symbols(); ++i) {
      ElfSymbol symbol = file_.Symbol(i);
      std::string name = file_.Text(symbol.st_name, "a symbol");
      bool is_used_always = std::find(std::begin(kStartImports), std::end(kStartImports), name) != std::end(kStartImports);
      if (symbol.st_shndx == SHN_UNDEF && is_used_always && used_symbols_.count(i) == 0) {
        ElfFile::Fail("nothing uses the symbol '", name, "' of another library");
      }
    }
  }

  static bool IsSlot(const char* name) { return std::strncmp(name, "__TVM", 5) == 0 || std::strcmp(name, "__tvm_module_ctx") == 0; }

  // The runtime writes an address there.
  void CheckSlot(const char* name, uint64_t address) {
    bool is_protected = address < protected_end_ && address + sizeof(void*) > protected_begin_;
    if (is_protected || address % sizeof(void*) != 0 || !file_.IsWritable(address, sizeof(void*))) {
      ElfFile::Fail("the slot '", name, "' is not writable");
    }
  }

  void CheckVersions() {
    uint64_t of_symbols = file_.Value(DT_VERSYM);
    if (of_symbols == 0) return;
    std::set<unsigned> versions{0, 1};
    uint64_t at = file_.Value(DT_VERNEED);
    for (uint64_t i = 0; i < file_.Value(DT_VERNEEDNUM); ++i) {
      auto need = file_.Read<ElfW(Verneed)>(at, "a needed version");
      if (needed_.count(file_.Text(need.vn_file, "a needed version")) == 0) ElfFile::Fail("versions of a library that it does not need");
      uint64_t each = at + need.vn_aux;
      for (int k = 0; k < need.vn_cnt; ++k) {
        auto version = file_.Read<ElfW(Vernaux)>(each, "a needed version");
        file_.Text(version.vna_name, "a needed version");
        versions.insert(version.vna_other & 0x7fff);
        if ((version.vna_next == 0) != (k + 1 == need.vn_cnt)) ElfFile::Fail("the list of versions has no end");
        each += version.vna_next;
      }
      if ((need.vn_next == 0) != (i + 1 == file_.Value(DT_VERNEEDNUM))) ElfFile::Fail("the list of versions has no end");
      at += need.vn_next;
    }
    CheckDefinedVersions(&versions);
    for (uint64_t i = 0; i < file_.num_symbols(); ++i) {
      unsigned version = file_.Read<uint16_t>(of_symbols + 2 * i, "the versions of symbols") & 0x7fff;
      if (versions.count(version) == 0) ElfFile::Fail("symbol ", i, " has the version ", version, ", which does not exist");
    }
  }

  void CheckDefinedVersions(std::set<unsigned>* versions) {
    uint64_t at = file_.Value(DT_VERDEF);
    for (uint64_t i = 0; i < file_.Value(DT_VERDEFNUM); ++i) {
      auto defined = file_.Read<ElfW(Verdef)>(at, "a version");
      auto name = file_.Read<ElfW(Verdaux)>(at + defined.vd_aux, "a version");
      file_.Text(name.vda_name, "a version");
      versions->insert(defined.vd_ndx & 0x7fff);
      if ((defined.vd_next == 0) != (i + 1 == file_.Value(DT_VERDEFNUM))) ElfFile::Fail("the list of versions has no end");
      at += defined.vd_next;
    }
  }

  void CheckRelocations(int64_t tag, uint64_t size) {
    using Relocation = ElfW(Rela);
    uint64_t table = file_.Value(tag);
    if (size == 0) return;
    bool has_known_form = file_.Value(DT_RELAENT, sizeof(Relocation)) == sizeof(Relocation) && size % sizeof(Relocation) == 0 &&
                          (tag != DT_JMPREL || file_.Value(DT_PLTREL) == DT_RELA);
    if (!has_known_form) ElfFile::Fail("its relocations are of an unknown form");
    uint64_t count = size / sizeof(Relocation);
    uint64_t relative = tag == DT_RELA ? file_.Value(DT_RELACOUNT) : 0;
    if (relative > count) ElfFile::Fail("there are fewer relocations than it says");
    file_.AtAddress(table, size, "the table of relocations");
    for (uint64_t i = 0; i < count; ++i) {
      auto relocation = file_.Read<Relocation>(table + i * sizeof(Relocation), "a relocation");
      // the low half, or the low byte in 32-bit files
      uint32_t type = relocation.r_info & (sizeof(relocation.r_info) == 8 ? 0xffffffffu : 0xffu);
      if (i < relative && type != kRelative) ElfFile::Fail("a relocation is not of the kind it should be");
      if (type != 0) CheckRelocation(relocation, type);
    }
  }

  void CheckRelocation(const ElfW(Rela)& relocation, uint32_t type) {
    uint64_t symbol = relocation.r_info >> (sizeof(relocation.r_info) == 8 ? 32 : 8);
    uint64_t target = relocation.r_addend;
    if (!file_.IsWritable(relocation.r_offset, sizeof(ElfW(Addr)))) ElfFile::Fail("a relocation changes what is not writable");
    if (symbol != 0 && symbol >= file_.num_symbols()) ElfSymbolOutside(symbol);
    used_symbols_.insert(symbol);
    if (kIsKnownMachine && !IsOneOf(type, kKnown)) ElfFile::Fail("a relocation is of the unknown kind ", type);
    if (type == kIndirect && !file_.IsCode(target)) ElfFile::Fail("a function that the loader calls is no code");
    if (type == kRelative && file_.SegmentOf(target, 0) == nullptr) ElfFile::Fail("a relocation points to nothing");
    if (kIsKnownMachine && IsOneOf(type, kSlots)) CheckAddressSlot(relocation, type, symbol);
    NoteRelocation(relocation.r_offset, type == kRelative ? target : 0);
  }

  // The table of addresses has one entry a symbol, and perhaps one more for calls.
  void CheckAddressSlot(const ElfW(Rela)& relocation, uint32_t type, uint64_t symbol) {
    if (relocation.r_addend != 0) ElfFile::Fail("an entry of the table of addresses is off by ", relocation.r_addend);
    if (!in_address_table_.insert({type, symbol}).second) ElfFile::Fail("the table of addresses has two entries for symbol ", symbol);
  }

  // Symbols that are only referred to may come before those in the hash table, or, in none, after it.
  void ElfSymbolOutside(uint64_t index) {
    if (file_.Value(DT_HASH) != 0) ElfFile::Fail("a relocation refers to symbol ", index);
    file_.Text(file_.Symbol(index).st_name, "a symbol");
  }

  // Each function that runs at loading or unloading has an address, and is code.
  void CheckStarters(int64_t tag, int64_t size_tag) {
    uint64_t array = file_.Value(tag);
    uint64_t size = file_.Value(size_tag);
    if (size % sizeof(ElfW(Addr)) != 0 || (size != 0 && file_.SegmentOf(array, size) == nullptr)) {
      ElfFile::Fail("the functions that the loader calls are not loaded");
    }
    for (uint64_t at = array; at < array + size; at += sizeof(ElfW(Addr))) {
      auto found = relocated_.find(at);
      // address 0: of a symbol, which has been checked
      if (found == relocated_.end()) ElfFile::Fail("a function that the loader calls is no code");
      if (found->second != 0) CheckStarter(found->second);
    }
  }

  // One of the two functions that stand in sections of their own, where nothing says where functions begin.
  void CheckEntry(uint64_t address) const {
    CheckStarter(address);
    bool is_known = !kIsKnownMachine || knows_functions_ || file_.sections().empty() || section_starts_.count(address) != 0 ||
                    address % kCommonAlignment == 0;
    if (!is_known) ElfFile::Fail("what the loader calls at address ", address, " is no function");
  }

  // A function, as far as the library tells where functions begin.
  void CheckStarter(uint64_t address) const {
    if (!file_.IsCode(address)) ElfFile::Fail("a function that the loader calls is no code");
    if (kIsKnownMachine && knows_functions_ && function_starts_.count(address) == 0) ElfFile::Fail("what the loader calls at address ", address, " is no function");
  }

  static constexpr uint32_t kPropertySegment = 0x6474e553;
  static constexpr uint64_t kMostThreadMemory = 1 << 20;

  const ElfFile& file_;
  bool has_thread_memory_{false};
  bool knows_functions_{false};
  std::set<uint64_t> function_starts_;
  std::set<uint64_t> section_starts_;
  uint64_t protected_begin_{0};
  uint64_t protected_end_{0};
  uint64_t dynamic_begin_{0};
  uint64_t dynamic_end_{0};
  std::set<std::pair<uint32_t, uint64_t>> in_address_table_;  // kinds of entries, symbols
  std::set<uint64_t> used_symbols_;
  std::set<std::string> needed_;
  std::map<uint64_t, uint64_t> relocated_;  // address -> what it will point to, 0 if that is a symbol
};

}  // namespace

void CheckElf(const char* data, uint64_t size) {
  ElfFile file(data, size);
  ElfChecker(file).Check();
}

void CheckObjectSections(const char* data, uint64_t size) {
  auto has = [size](uint64_t offset, uint64_t bytes) { return offset <= size && bytes <= size - offset; };
  ElfHeader header;
  bool has_our_form = size > EI_DATA && data[EI_CLASS] == (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32) && data[EI_DATA] == ELFDATA2LSB;
  if (!has_our_form) return;  // another machine's
  if (!has(0, sizeof(header))) ElfFile::Fail("it is cut off after ", size, " bytes");
  std::memcpy(&header, data, sizeof(header));
  bool is_sound = header.e_type == ET_REL && header.e_shentsize == sizeof(ElfSection) &&
                  has(header.e_shoff, uint64_t{header.e_shnum} * sizeof(ElfSection));
  for (int i = 0; is_sound && i < header.e_shnum; ++i) {
    ElfSection section;
    std::memcpy(&section, data + header.e_shoff + i * sizeof(section), sizeof(section));
    is_sound = section.sh_type == SHT_NOBITS || has(section.sh_offset, section.sh_size);
  }
  if (!is_sound) ElfFile::Fail("its sections are not where they should be");
}

}  // namespace runtime
}  // namespace tvm
#endif  // defined(__linux__)
