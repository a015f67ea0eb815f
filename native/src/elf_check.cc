// What the loader and the look-up of symbols rely on, table by table.
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
constexpr uint32_t kKnown[] = {R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT, R_X86_64_RELATIVE, R_X86_64_DTPMOD64,
                               R_X86_64_DTPOFF64, R_X86_64_TPOFF64, R_X86_64_TLSDESC, R_X86_64_IRELATIVE};
#elif defined(__aarch64__)
constexpr uint32_t kRelative = R_AARCH64_RELATIVE;
constexpr uint32_t kIndirect = R_AARCH64_IRELATIVE;
constexpr uint32_t kKnown[] = {R_AARCH64_ABS64, R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT, R_AARCH64_RELATIVE,
                               R_AARCH64_TLS_DTPMOD, R_AARCH64_TLS_DTPREL, R_AARCH64_TLS_TPREL, R_AARCH64_TLSDESC,
                               R_AARCH64_IRELATIVE};
#else
constexpr uint32_t kRelative = ~0u;
constexpr uint32_t kIndirect = ~0u;
constexpr uint32_t kKnown[] = {kRelative};
#endif

constexpr uint64_t kMostMemory = uint64_t{1} << 40;

bool IsPowerOfTwo(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

class ElfChecker {
 public:
  explicit ElfChecker(const ElfFile& file) : file_(file) {}

  void Check() {
    CheckLoadedSegments();
    for (const ElfSegment& segment : file_.segments()) CheckOtherSegment(segment);
    CheckSections();
    CheckDynamic();
    CheckSymbols();
    CheckVersions();
    CheckRelocations(DT_RELA, file_.Value(DT_RELASZ));
    CheckRelocations(DT_JMPREL, file_.Value(DT_PLTRELSZ));
    CheckStarters(DT_INIT_ARRAY, DT_INIT_ARRAYSZ);
    CheckStarters(DT_FINI_ARRAY, DT_FINI_ARRAYSZ);
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
        if (!file_.IsWritable(segment.p_vaddr, segment.p_memsz)) ElfFile::Fail("what is to be protected is not loaded");
        protected_begin_ = segment.p_vaddr;
        protected_end_ = segment.p_vaddr + segment.p_memsz;
        break;
      case PT_NOTE:
      case PT_GNU_EH_FRAME:
      case kPropertySegment: file_.AtAddress(segment.p_vaddr, segment.p_filesz, "a segment"); break;
      default: break;
    }
  }

  // Sections say once more where the segments' bytes belong, and what the dynamic entries tell.
  void CheckSections() {
    const ElfHeader& header = file_.header();
    if (header.e_shoff == 0 || header.e_shentsize != sizeof(ElfW(Shdr))) return;
    const char* table = file_.AtOffset(header.e_shoff, uint64_t{header.e_shnum} * sizeof(ElfW(Shdr)), "its section headers");
    uint64_t relocations = 0;
    for (int i = 0; i < header.e_shnum; ++i) {
      ElfW(Shdr) section;
      std::memcpy(&section, table + i * sizeof(section), sizeof(section));
      if ((section.sh_flags & SHF_ALLOC) == 0 || section.sh_type == SHT_NOBITS || section.sh_size == 0) continue;
      if (file_.AtAddress(section.sh_addr, section.sh_size, "a section") !=
          file_.AtOffset(section.sh_offset, section.sh_size, "a section")) {
        ElfFile::Fail("the section at address ", section.sh_addr, " is not where its segment is");
      }
      relocations += section.sh_type == SHT_RELA ? section.sh_size : 0;
      CheckSection(section);
    }
    if (relocations != file_.Value(DT_RELASZ) + file_.Value(DT_PLTRELSZ)) ElfFile::Fail("some relocations are missing");
  }

  void CheckSection(const ElfW(Shdr)& section) {
    static const std::map<uint32_t, int64_t> tags = {
        {SHT_DYNSYM, DT_SYMTAB}, {SHT_HASH, DT_HASH}, {SHT_GNU_HASH, DT_GNU_HASH}, {SHT_GNU_versym, DT_VERSYM},
        {SHT_GNU_verneed, DT_VERNEED}, {SHT_GNU_verdef, DT_VERDEF}, {SHT_INIT_ARRAY, DT_INIT_ARRAY}, {SHT_FINI_ARRAY, DT_FINI_ARRAY},
    };
    auto found = tags.find(section.sh_type);
    if (found != tags.end() && file_.Value(found->second) != section.sh_addr) {
      ElfFile::Fail("the section at address ", section.sh_addr, " is not what the dynamic entry says");
    }
  }

  void CheckDynamic() {
    if (file_.Value(DT_SYMENT, sizeof(ElfSymbol)) != sizeof(ElfSymbol)) ElfFile::Fail("its symbols have another size");
    if (file_.Value(DT_REL) != 0 || file_.Value(DT_RELRSZ_) % sizeof(ElfW(Addr)) != 0) ElfFile::Fail("its relocations are of an unknown form");
    for (const ElfEntry& entry : file_.dynamic()) {
      uint64_t value = entry.d_un.d_val;
      if (entry.d_tag < 0 || entry.d_tag > DT_HIPROC) ElfFile::Fail("a dynamic entry is of the unknown kind ", entry.d_tag);
      switch (entry.d_tag) {
        case DT_NEEDED: needed_.insert(file_.Text(value, "a library that it needs")); break;
        case DT_SONAME:
        case DT_RPATH:
        case DT_RUNPATH:
        case DT_AUXILIARY:
        case DT_FILTER: file_.Text(value, "a dynamic entry"); break;
        case DT_INIT:
        case DT_FINI:
          if (!file_.IsCode(value)) ElfFile::Fail("a function that the loader calls is no code");
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
    uint64_t table = file_.Value(DT_RELR_);
    uint64_t where = 0;
    for (uint64_t i = 0; i < file_.Value(DT_RELRSZ_) / sizeof(ElfW(Addr)); ++i) {
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
    relocated_[address] = file_.Read<ElfW(Addr)>(address, "a relocation");
  }

  void CheckSymbols() {
    for (uint64_t i = 0; i < file_.num_symbols(); ++i) {
      ElfSymbol symbol = file_.Symbol(i);
      const char* name = file_.Text(symbol.st_name, "a symbol");
      int type = symbol.st_info & 15;
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS) continue;
      if (type == STT_TLS ? !has_thread_memory_ : file_.SegmentOf(symbol.st_value, symbol.st_size) == nullptr) {
        ElfFile::Fail("the symbol '", name, "' is not loaded");
      }
      bool is_function = type == STT_FUNC || type == STT_GNU_IFUNC;
      if (is_function && !file_.IsCode(symbol.st_value)) ElfFile::Fail("the function '", name, "' is no code");
      if (IsSlot(name)) CheckSlot(name, symbol.st_value);
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
    bool is_known = kRelative == ~0u || std::find(std::begin(kKnown), std::end(kKnown), type) != std::end(kKnown);
    if (!is_known) ElfFile::Fail("a relocation is of the unknown kind ", type);
    if (type == kIndirect && !file_.IsCode(target)) ElfFile::Fail("a function that the loader calls is no code");
    if (type == kRelative && file_.SegmentOf(target, 0) == nullptr) ElfFile::Fail("a relocation points to nothing");
    relocated_[relocation.r_offset] = type == kRelative ? target : 0;
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
      bool is_code = found != relocated_.end() && (found->second == 0 || file_.IsCode(found->second));
      if (!is_code) ElfFile::Fail("a function that the loader calls is no code");
    }
  }

  static constexpr uint32_t kPropertySegment = 0x6474e553;
  static constexpr int64_t DT_RELRSZ_ = 35;
  static constexpr int64_t DT_RELR_ = 36;
  static constexpr uint64_t kMostThreadMemory = 1 << 20;

  const ElfFile& file_;
  bool has_thread_memory_{false};
  uint64_t protected_begin_{0};
  uint64_t protected_end_{0};
  std::set<std::string> needed_;
  std::map<uint64_t, uint64_t> relocated_;  // address -> what it will point to, 0 if that is a symbol
};

}  // namespace

void CheckElf(const char* data, uint64_t size) {
  ElfFile file(data, size);
  ElfChecker(file).Check();
}

}  // namespace runtime
}  // namespace tvm
