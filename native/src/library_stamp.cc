// The stamps of libraries and objects: checksums by which damaged ones are refused.
//
// All that we write ends with one, after the last byte, where loaders and linkers do not look:
//
//     magic (16 bytes), u64 length before the stamp, u64 checksum
//
// In objects a byte of the header that nothing else uses tells that it is there. Libraries have another one within, under the name `__tvm_library_checksum`, of what is loaded of them. It holds where
// the first one is lost, as by `strip`, and cannot be lost itself:
//
//     magic (8 bytes), u64 checksum
//
// In libraries without either, `CheckElf` finds damage to what the system's loader follows; which bytes of code and data
// there should be, nobody can tell.
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>

#include "checksum.h"
#include "elf_check.h"
#if defined(__linux__)
#include "elf_file.h"
#endif

namespace tvm {
namespace runtime {
#if defined(__linux__)
namespace {

struct Stamp {
  char magic[16];
  uint64_t length;
  uint64_t checksum;
};
constexpr char kMagic[17] = "\x7fTVM checksum 2\n";
constexpr uint64_t kTail = 1 << 16;  // where a stamp is looked for that something was added to

constexpr int kMark = EI_NIDENT - 1;  // in the header of a stamped object
constexpr char kIsStamped = 'T';

struct InnerStamp {
  char magic[8];  // with the next field kUnset in a library for another kind of machine, which nobody could stamp
  uint64_t checksum;
};
constexpr char kInnerName[] = "__tvm_library_checksum";
constexpr char kInnerMagic[9] = "TVM sum2";
constexpr char kUnset[sizeof(InnerStamp) + 1] = "TVM no checksum\n";  // what compilers link; zeros would come from damage, too

uint64_t ChecksumOf(const char* data, uint64_t size) {
  Checksum checksum(size);
  checksum.Add(data, size);
  return checksum.Value();
}

// The stamp at the end of a file; false if it has none.
bool ReadStamp(const MappedFile& file, Stamp* stamp) {
  if (file.size() < sizeof(Stamp)) return false;
  std::memcpy(stamp, file.data() + file.size() - sizeof(Stamp), sizeof(Stamp));
  return std::memcmp(stamp->magic, kMagic, sizeof(stamp->magic)) == 0;
}

bool IsElf(const MappedFile& file) { return file.size() >= sizeof(ElfHeader) && std::memcmp(file.data(), ELFMAG, SELFMAG) == 0; }

// Where the stamp within a library is; null if it has none.
const char* FindInnerStamp(const ElfFile& elf) {
  for (uint64_t i = 0; i < elf.num_symbols(); ++i) {
    ElfSymbol symbol = elf.Symbol(i);
    if (std::strcmp(elf.Text(symbol.st_name, "a symbol"), kInnerName) != 0) continue;
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_size != sizeof(InnerStamp)) ElfFile::Fail("its checksum has another size");
    return elf.AtAddress(symbol.st_value, sizeof(InnerStamp), "the checksum");
  }
  if (uint64_t size = elf.Value(DT_STRSZ)) {  // a name that no symbol has any more
    const char* names = elf.AtAddress(elf.Value(DT_STRTAB), size, "the table of names");
    if (std::search(names, names + size, kInnerName, std::end(kInnerName)) != names + size) ElfFile::Fail("it has lost its checksum");
  }
  return nullptr;
}

// Of what is loaded, without the checksum itself and where the header says that the sections for debuggers are.
uint64_t InnerChecksum(const MappedFile& file, const ElfFile& elf, const char* stamp) {
  const uint64_t left_out[][2] = {
      {offsetof(ElfHeader, e_shoff), offsetof(ElfHeader, e_shoff) + sizeof(ElfHeader::e_shoff)},
      {offsetof(ElfHeader, e_shentsize), offsetof(ElfHeader, e_shstrndx) + sizeof(ElfHeader::e_shstrndx)},
      {static_cast<uint64_t>(stamp - file.data()), static_cast<uint64_t>(stamp - file.data()) + sizeof(InnerStamp)},
  };
  Checksum checksum;
  for (const ElfSegment& segment : elf.segments()) {
    if (segment.p_type != PT_LOAD) continue;
    elf.AtOffset(segment.p_offset, segment.p_filesz, "a segment");
    uint64_t at = segment.p_offset;
    uint64_t end = segment.p_offset + segment.p_filesz;
    for (const auto& [from, to] : left_out) {
      if (from < at || to > end) continue;
      checksum.Add(file.data() + at, from - at);
      at = to;
    }
    checksum.Add(file.data() + at, end - at);
  }
  return checksum.Value();
}

int TypeOf(const MappedFile& file) { return reinterpret_cast<const ElfHeader*>(file.data())->e_type; }

bool HasOurForm(const MappedFile& file) {
  return file.data()[EI_CLASS] == (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32) && file.data()[EI_DATA] == ELFDATA2LSB;
}

void WriteAt(const std::string& path, uint64_t offset, const void* data, size_t size) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(offset));
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  if (!file.flush()) ThrowError("cannot write ", path);
}

void WriteInnerStamp(const std::string& path) {
  InnerStamp stamp;
  uint64_t offset;
  {
    MappedFile file(path);
    ElfFile elf(file.data(), file.size());
    const char* place = FindInnerStamp(elf);
    if (place == nullptr) return;
    std::memcpy(stamp.magic, kInnerMagic, sizeof(stamp.magic));
    stamp.checksum = InnerChecksum(file, elf, place);
    offset = place - file.data();
  }
  WriteAt(path, offset, &stamp, sizeof(stamp));
}

std::string MachineName(int machine) {
  switch (machine) {
    case 3: return "x86";
    case 8: return "MIPS";
    case 21: return "PowerPC";
    case 40: return "Arm";
    case 62: return "x86-64";
    case 183: return "AArch64";
    case 243: return "RISC-V";
  }
  return Cat("ELF machine ", machine);
}

int MachineOf(const MappedFile& file) {
  auto* bytes = reinterpret_cast<const unsigned char*>(file.data());
  return bytes[EI_DATA] == ELFDATA2MSB ? bytes[19] | bytes[18] << 8 : bytes[18] | bytes[19] << 8;
}

// The loader's own text for a foreign library is that there is no such file.
void CheckMachine(const MappedFile& file) {
  int machine = MachineOf(file);
  int ours = MachineOf(MappedFile("/proc/self/exe"));
  if (machine != ours) ThrowError("it is for ", MachineName(machine), ", and this machine is ", MachineName(ours));
  auto* bytes = reinterpret_cast<const unsigned char*>(file.data());
  if (bytes[EI_CLASS] != (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32)) ElfFile::Fail("it has addresses of another size");
}

constexpr const char* kHint =
    " (write it anew; if a tool changed it on purpose, TVM_CHECKSUM=0 loads it all the same)";

// Whether the file ends with a stamp; raises if it is not that of the file.
bool CheckStamp(const MappedFile& file) {
  Stamp stamp;
  if (!AreChecksumsVerified()) return false;
  if (ReadStamp(file, &stamp)) {
    uint64_t length = file.size() - sizeof(Stamp);
    if (stamp.length != length || ChecksumOf(file.data(), length) != stamp.checksum) ElfFile::Fail("its checksum is wrong", kHint);
    return true;
  }
  const char* end = file.data() + file.size();
  const char* tail = end - std::min(file.size(), kTail);
  bool had_stamp = std::search(tail, end, kMagic, kMagic + sizeof(stamp.magic)) != end || (TypeOf(file) == ET_REL && file.data()[kMark] == kIsStamped);
  if (had_stamp) ElfFile::Fail("it does not end with its checksum", kHint);
  return false;
}

// Whether the library has a stamp within; raises if it is not that of the library.
bool CheckInnerStamp(const MappedFile& file) {
  if (!AreChecksumsVerified()) return false;
  ElfFile elf(file.data(), file.size());
  const char* place = FindInnerStamp(elf);
  InnerStamp stamp;
  if (place == nullptr) return false;
  std::memcpy(&stamp, place, sizeof(stamp));
  if (std::memcmp(&stamp, kUnset, sizeof(stamp)) == 0) return false;
  bool is_sound = std::memcmp(stamp.magic, kInnerMagic, sizeof(stamp.magic)) == 0 && InnerChecksum(file, elf, place) == stamp.checksum;
  if (!is_sound) ElfFile::Fail("its checksum is wrong", kHint);
  return true;
}

template <class Check>
void NameFile(const char* what, const std::string& path, Check check) {
  try {
    check();
  } catch (const Error& error) {
    std::string reason = error.what();
    ThrowError(what, path, ": ", reason.substr(reason.find(": ") + 2));
  }
}

}  // namespace

bool CheckLibrary(const std::string& path) {
  bool is_verified = false;
  NameFile("cannot load library ", path, [&] {
    MappedFile file(path);
    if (!IsElf(file)) return;  // the loader tells why
    is_verified = CheckStamp(file);
    CheckMachine(file);
    if (is_verified) return;
    CheckElf(file.data(), file.size());
    is_verified = CheckInnerStamp(file);
  });
  return is_verified;
}

// (path): raises if an object is not as it was when it was stamped, or is cut off.
TVM_REGISTER_GLOBAL("runtime.CheckObject").set_body_typed([](std::string path) {
  NameFile("cannot use object ", path, [&] {
    MappedFile file(path);
    if (!IsElf(file)) return;
    CheckStamp(file);
    CheckObjectSections(file.data(), file.size());
  });
});

// (path): stamps a library that has just been linked, or an object. Other files stay as they are.
TVM_REGISTER_GLOBAL("runtime.StampLibrary").set_body_typed([](std::string path) {
  int type;
  {
    MappedFile file(path);
    Stamp old;
    if (!IsElf(file) || ReadStamp(file, &old)) return;
    type = TypeOf(file);
    if (type != ET_DYN && type != ET_REL) return;
    if (type == ET_DYN && !HasOurForm(file)) type = ET_NONE;
  }
  if (type == ET_DYN) WriteInnerStamp(path);
  if (type == ET_REL) WriteAt(path, kMark, &kIsStamped, 1);
  Stamp stamp;
  {
    MappedFile file(path);
    std::memcpy(stamp.magic, kMagic, sizeof(stamp.magic));
    stamp.length = file.size();
    stamp.checksum = ChecksumOf(file.data(), file.size());
  }
  std::ofstream file(path, std::ios::binary | std::ios::app);
  file.write(reinterpret_cast<const char*>(&stamp), sizeof(stamp));
  if (!file.flush()) ThrowError("cannot write ", path);
});

#else  // libraries of other forms are the loader's business

void CheckLibrary(const std::string&) {}

TVM_REGISTER_GLOBAL("runtime.CheckObject").set_body_typed([](std::string) {});
TVM_REGISTER_GLOBAL("runtime.StampLibrary").set_body_typed([](std::string) {});

#endif
}  // namespace runtime
}  // namespace tvm
