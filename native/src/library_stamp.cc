// The stamp of a library or an object: a checksum after its last byte, where loaders and linkers do not look.
//
//     magic (16 bytes), u64 length before the stamp, u64 start and u64 end of what is left out, u64 checksum
//
// Every library that we link has one. In others, `CheckElf` finds damage to what the system's loader follows; which bytes
// of code and data there should be, nobody can tell.
//
// Left out are the bytes of embedded modules, except their length: their readers check them, and they may be large.
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <fstream>

#include "elf_check.h"
#include "elf_file.h"

namespace tvm {
namespace runtime {
namespace {

struct Stamp {
  char magic[16];
  uint64_t length;
  uint64_t skip_begin;
  uint64_t skip_end;
  uint64_t checksum;
};
constexpr char kMagic[17] = "\x7fTVM checksum 1\n";

uint64_t Mix(uint64_t state, uint64_t word) {
  state ^= word;
  return (state << 29 | state >> 35) * 0x9E3779B97F4A7C15u;
}

// A word that differs changes the result for sure, since each step is reversible.
uint64_t HashOf(const char* data, uint64_t size, uint64_t seed) {
  uint64_t lanes[4] = {seed, seed + 1, seed + 2, seed + 3};
  uint64_t words[4];
  for (; size >= sizeof(words); data += sizeof(words), size -= sizeof(words)) {
    std::memcpy(words, data, sizeof(words));
    for (int i = 0; i < 4; ++i) lanes[i] = Mix(lanes[i], words[i]);
  }
  std::memset(words, 0, sizeof(words));
  if (size > 0) std::memcpy(words, data, size);
  for (int i = 0; i < 4; ++i) lanes[i] = Mix(lanes[i], words[i]);
  uint64_t hash = seed;
  for (uint64_t lane : lanes) hash = Mix(hash, lane);
  return Mix(hash, size);
}

uint64_t Checksum(const char* data, const Stamp& stamp) {
  uint64_t hash = Mix(Mix(Mix(1, stamp.length), stamp.skip_begin), stamp.skip_end);
  hash = HashOf(data, stamp.skip_begin, hash);
  return HashOf(data + stamp.skip_end, stamp.length - stamp.skip_end, hash);
}

// The stamp at the end of a file; false if it has none.
bool ReadStamp(const MappedFile& file, Stamp* stamp) {
  if (file.size() < sizeof(Stamp)) return false;
  std::memcpy(stamp, file.data() + file.size() - sizeof(Stamp), sizeof(Stamp));
  return std::memcmp(stamp->magic, kMagic, sizeof(stamp->magic)) == 0;
}

bool IsElf(const MappedFile& file) { return file.size() >= sizeof(ElfHeader) && std::memcmp(file.data(), ELFMAG, SELFMAG) == 0; }

// The file's bytes of the embedded modules, without their length.
void LeaveOutModules(const MappedFile& file, Stamp* stamp) {
  ElfFile elf(file.data(), file.size());
  for (uint64_t i = 0; i < elf.num_symbols(); ++i) {
    ElfSymbol symbol = elf.Symbol(i);
    if (symbol.st_size <= 8 || std::strcmp(elf.Text(symbol.st_name, "a symbol"), "__tvm_dev_mblob") != 0) continue;
    stamp->skip_begin = elf.AtAddress(symbol.st_value, symbol.st_size, "the embedded modules") + 8 - file.data();
    stamp->skip_end = stamp->skip_begin + symbol.st_size - 8;
  }
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

void CheckStamp(const MappedFile& file, const Stamp& stamp) {
  bool is_sound = stamp.length == file.size() - sizeof(Stamp) && stamp.skip_begin <= stamp.skip_end &&
                  stamp.skip_end <= stamp.length && Checksum(file.data(), stamp) == stamp.checksum;
  if (!is_sound) ElfFile::Fail("its checksum is wrong (a tool that changes it on purpose should have removed that, as strip does)");
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

void CheckLibrary(const std::string& path) {
  NameFile("cannot load library ", path, [&] {
    MappedFile file(path);
    if (!IsElf(file)) return;  // the loader tells why
    Stamp stamp;
    bool is_stamped = ReadStamp(file, &stamp);
    if (is_stamped) CheckStamp(file, stamp);
    CheckMachine(file);
    if (!is_stamped) CheckElf(file.data(), file.size());
  });
}

// (path): raises if an object is not as it was when it was stamped, or is cut off.
TVM_REGISTER_GLOBAL("runtime.CheckObject").set_body_typed([](std::string path) {
  NameFile("cannot use object ", path, [&] {
    MappedFile file(path);
    Stamp stamp;
    if (!IsElf(file)) return;
    if (ReadStamp(file, &stamp)) CheckStamp(file, stamp);
    CheckObjectSections(file.data(), file.size());
  });
});

// (path): stamps a library that has just been linked, or an object. Other files stay as they are.
TVM_REGISTER_GLOBAL("runtime.StampLibrary").set_body_typed([](std::string path) {
  Stamp stamp{};
  {
    MappedFile file(path);
    Stamp old;
    if (!IsElf(file) || ReadStamp(file, &old)) return;
    int type = reinterpret_cast<const ElfHeader*>(file.data())->e_type;
    if (type != ET_DYN && type != ET_REL) return;
    std::memcpy(stamp.magic, kMagic, sizeof(stamp.magic));
    stamp.length = file.size();
    bool has_our_form = file.data()[EI_CLASS] == (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32) && file.data()[EI_DATA] == ELFDATA2LSB;
    if (type == ET_DYN && has_our_form) LeaveOutModules(file, &stamp);
    stamp.checksum = Checksum(file.data(), stamp);
  }
  std::ofstream file(path, std::ios::binary | std::ios::app);
  file.write(reinterpret_cast<const char*>(&stamp), sizeof(stamp));
  if (!file.flush()) ThrowError("cannot write ", path);
});

}  // namespace runtime
}  // namespace tvm
