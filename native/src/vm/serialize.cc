// Executables as bytes, in the form of the classic release.
//
// header: u64 magic, text version
// devices: u64 count, (i32 kind, i32 number, text scope)...; i32 the host's
// globals: texts | constants: u64 count, (u32 0, array | u32 1, text name)...; i64s devices
// kernels: texts, map of attributes | code: u64 count, functions
//
// The attributes of two kernels that cannot be are what the classic release does not read: the functions' signatures, and
// the checksum of all but its own digits.
#include <dmlc/memory_io.h>
#include <tvm/runtime/registry.h>

#include <cstdio>
#include <fstream>
#include <iterator>

#include "../checksum.h"
#include "../write_file.h"
#include "executable.h"

namespace tvm {
namespace runtime {
namespace vm {
namespace {

constexpr uint64_t kMagic = 0xD225DE2F4214151E;
constexpr uint32_t kImmediateConstant = 0;
constexpr uint32_t kLateBoundConstant = 1;

constexpr uint64_t kNoKernel = ~uint64_t{0};  // the last in the map of attributes, so that its digits end the map
constexpr uint64_t kSignatures = kNoKernel - 1;
constexpr char kChecksumKey[] = "checksum";
constexpr size_t kDigits = 16;

// As text: of the bytes without the digits of the checksum, which begin at `place`.
std::string ChecksumOf(const char* data, size_t size, size_t place) {
  Checksum checksum;
  checksum.Add(data, place);
  checksum.Add(data + place + kDigits, size - place - kDigits);
  char digits[kDigits + 1];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(checksum.Value()));
  return digits;
}

// What each instruction carries, so that damage shows.
int64_t HashOf(const Instruction& instruction) {
  auto combine = [](size_t key, size_t value) { return key ^ (value + 0x9e3779b9 + (key << 6) + (key >> 2)); };
  size_t key = static_cast<size_t>(instruction.op);
  for (int64_t field : instruction.fields) key = combine(key, static_cast<size_t>(field));
  return static_cast<int64_t>(key);
}

void SaveFunction(dmlc::Stream* stream, const Function& func) {
  stream->Write(std::vector<std::string>{func.name, std::to_string(func.num_registers), std::to_string(func.code.size())});
  stream->Write(func.params);
  stream->Write(func.param_devices);
  for (const Instruction& instruction : func.code) {
    std::vector<int64_t> words{HashOf(instruction), instruction.op};
    words.insert(words.end(), instruction.fields.begin(), instruction.fields.end());
    stream->Write(words);
  }
}

class Loader {
 public:
  Loader(const char* data, size_t size, bool is_verified)
      : begin_(data), size_(size), is_verified_(is_verified), reader_(data, size, "the executable") {
    reader_.set_verified();  // in the end, as a whole
  }

  ObjectPtr<Executable> Run() {
    exec_ = make_object<Executable>();
    uint64_t magic = reader_.Read<uint64_t>();
    if (magic != kMagic) {
      ThrowValueError("the bytes are no executable of the virtual machine: they start with ", std::hex, "0x", magic, ", expected 0x", kMagic);
    }
    std::string version = reader_.ReadString();
    if (version.substr(0, 2) != "0.") ThrowValueError("the executable was saved by version '", version, "', which this runtime cannot read");
    Devices();
    std::vector<std::string> globals = reader_.ReadStrings();
    Constants();
    exec_->kernels = reader_.ReadStrings();
    KernelAttrs();
    Functions();
    for (size_t i = 0; i < globals.size(); ++i) {
      if (i >= exec_->functions.size()) Corrupt("there are ", globals.size(), " names for ", exec_->functions.size(), " functions");
    }
    if (reader_.left() != 0) Corrupt(reader_.left(), " bytes too many");
    CheckAll();
    exec_->Finish();
    return exec_;
  }

 private:
  template <class... Parts>
  [[noreturn]] void Corrupt(const Parts&... parts) const {
    ThrowValueError("the executable is corrupt: ", parts...);
  }

  void Devices() {
    uint64_t count = reader_.Checked(reader_.Read<uint64_t>(), 16);
    for (uint64_t i = 0; i < count; ++i) {
      int32_t kind = reader_.Read<int32_t>();
      int32_t number = reader_.Read<int32_t>();
      exec_->devices.emplace_back(DLDevice{static_cast<DLDeviceType>(kind), number}, reader_.ReadString());
    }
    exec_->host_device = reader_.Read<int32_t>();
    SkipWideHost();
    if (exec_->host_device < 0 || exec_->host_device >= static_cast<int64_t>(count)) Corrupt("the host is device ", exec_->host_device, " of ", count);
  }

  // Earlier versions of this package wrote the number of the host as i64. Its upper half is then what the count of the
  // globals begins with, which lies four bytes further on; read in its place the count would be beyond the file.
  void SkipWideHost() {
    ByteReader ahead = reader_;
    uint64_t globals = ahead.Read<uint64_t>();
    if (globals != 0 && static_cast<uint32_t>(globals) == 0) reader_.Read<int32_t>();
  }

  void Constants() {
    uint64_t count = reader_.Checked(reader_.Read<uint64_t>(), 12);
    for (uint64_t i = 0; i < count; ++i) {
      uint32_t tag = reader_.Read<uint32_t>();
      if (tag == kImmediateConstant) {
        exec_->constants.push_back(LoadArray(&reader_));
      } else if (tag == kLateBoundConstant) {
        exec_->late_bound_names[i] = reader_.ReadString();
        exec_->constants.emplace_back();
      } else {
        Corrupt("a constant of kind ", tag);
      }
    }
    exec_->constant_devices = reader_.ReadVector<int64_t>();
    if (exec_->constant_devices.size() != count) Corrupt(exec_->constant_devices.size(), " devices for ", count, " constants");
    for (int64_t device : exec_->constant_devices) {
      if (device < 0 || device >= static_cast<int64_t>(exec_->devices.size())) Corrupt("a constant on device ", device);
    }
  }

  void KernelAttrs() {
    uint64_t count = reader_.Checked(reader_.Read<uint64_t>(), 16);
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t kernel = reader_.Read<uint64_t>();
      if (kernel == kNoKernel) {
        ReadChecksum();
        continue;
      }
      bool is_kernel = kernel < exec_->kernels.size();
      if (!is_kernel && kernel != kSignatures) Corrupt("attributes of kernel ", kernel, " of ", exec_->kernels.size());
      auto& attrs = is_kernel ? exec_->kernel_attrs[kernel] : exec_->signatures;
      uint64_t members = reader_.Checked(reader_.Read<uint64_t>(), 16);
      for (uint64_t j = 0; j < members; ++j) {
        std::string key = reader_.ReadString();
        attrs[key] = reader_.ReadString();
      }
    }
  }

  void ReadChecksum() {
    bool has_form = reader_.Read<uint64_t>() == 1 && reader_.ReadString() == kChecksumKey && reader_.Read<uint64_t>() == kDigits;
    if (!has_form) Corrupt("a checksum of another form");
    place_ = reader_.Take(kDigits) - begin_;
  }

  void CheckAll() const {
    if (place_ == 0 || is_verified_ || !AreChecksumsVerified()) return;
    if (ChecksumOf(begin_, size_, place_) != std::string(begin_ + place_, kDigits)) {
      Corrupt("its checksum is wrong (TVM_CHECKSUM=0 loads it all the same)");
    }
  }

  int64_t Number(const std::string& text) const {
    bool is_number = !text.empty() && text.size() < 12 && text.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number) Corrupt("'", text, "' is no number");
    return std::stoll(text);
  }

  void Functions() {
    uint64_t count = reader_.Checked(reader_.Read<uint64_t>(), 24);
    for (uint64_t i = 0; i < count; ++i) {
      Function func;
      std::vector<std::string> info = reader_.ReadStrings();
      if (info.size() != 3) Corrupt("a function with ", info.size(), " entries instead of name, registers and instructions");
      func.name = info[0];
      func.num_registers = Number(info[1]);
      func.params = reader_.ReadStrings();
      func.param_devices = reader_.ReadVector<int64_t>();
      int64_t instructions = static_cast<int64_t>(reader_.Checked(static_cast<uint64_t>(Number(info[2])), 24));
      for (int64_t j = 0; j < instructions; ++j) {
        std::vector<int64_t> words = reader_.ReadVector<int64_t>();
        if (words.size() < 2) Corrupt("an instruction of ", words.size(), " words");
        Instruction instruction{words[1], std::vector<int64_t>(words.begin() + 2, words.end())};
        if (HashOf(instruction) != words[0]) Corrupt("instruction ", j, " of '", func.name, "' does not fit its hash");
        func.code.push_back(std::move(instruction));
      }
      exec_->functions.push_back(std::move(func));
    }
  }

  const char* begin_;
  size_t size_;
  bool is_verified_;  // before it was read
  size_t place_{0};   // of the checksum, if there is one
  ByteReader reader_;
  ObjectPtr<Executable> exec_;
};

}  // namespace

std::string Executable::Save() const {
  std::string bytes;
  dmlc::MemoryStringStream memory(&bytes);
  dmlc::Stream* stream = &memory;
  stream->Write<uint64_t>(kMagic);
  stream->Write(std::string(TVM_VERSION));
  stream->Write<uint64_t>(devices.size());
  for (const VirtualDevice& device : devices) {
    stream->Write<int32_t>(device.first.device_type);
    stream->Write<int32_t>(device.first.device_id);
    stream->Write(device.second);
  }
  stream->Write<int32_t>(static_cast<int32_t>(host_device));
  std::vector<std::string> globals;
  for (const Function& func : functions) globals.push_back(func.name);
  stream->Write(globals);
  stream->Write<uint64_t>(constants.size());
  for (size_t i = 0; i < constants.size(); ++i) {
    stream->Write<uint32_t>(constants[i].defined() ? kImmediateConstant : kLateBoundConstant);
    if (constants[i].defined()) constants[i].Save(stream);
    else stream->Write(late_bound_names.at(i));
  }
  stream->Write(constant_devices);
  stream->Write(kernels);
  auto attrs = kernel_attrs;
  if (!signatures.empty()) attrs[kSignatures] = signatures;
  attrs[kNoKernel][kChecksumKey] = std::string(kDigits, '0');
  stream->Write(attrs);
  size_t place = bytes.size() - kDigits;
  stream->Write<uint64_t>(functions.size());
  for (const Function& func : functions) SaveFunction(stream, func);
  bytes.replace(place, kDigits, ChecksumOf(bytes.data(), bytes.size(), place));
  return bytes;
}

Module Executable::Load(const char* data, size_t size, const Module& library, bool is_verified) {
  ObjectPtr<Executable> exec = Loader(data, size, is_verified).Run();
  if (library.defined()) exec->Import(library);
  return Module(ObjectPtr<ModuleNode>(exec));
}

void Executable::SaveToBinary(dmlc::Stream* stream) { stream->Write(Save()); }

void Executable::SaveToFile(const String& path, const String&) {
  std::string bytes = Save();
  WriteFile(path, bytes);
}

TVM_REGISTER_GLOBAL("runtime.module.loadbinary_VMExecutable").set_body_typed([](void* stream) {
  ByteReader* reader = ByteReader::Of(stream);
  uint64_t size = reader->Read<uint64_t>();
  return Executable::Load(reader->Take(reader->Checked(size, 1)), size, Module(), reader->is_verified());
});

TVM_REGISTER_GLOBAL("runtime.module.loadfile_VMExecutable").set_body_typed([](std::string path, std::string) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return Executable::Load(bytes.data(), bytes.size(), Module());
});

// (bytes, library)
TVM_REGISTER_GLOBAL("runtime.Load_Executable").set_body([](TVMArgs args, TVMRetValue* rv) {
  if (args[0].type_code() == kTVMBytes) {
    auto* bytes = static_cast<TVMByteArray*>(args[0].value().v_handle);
    *rv = Executable::Load(bytes->data, bytes->size, args[1]);
    return;
  }
  std::string bytes = args[0];
  *rv = Executable::Load(bytes.data(), bytes.size(), args[1]);
});

}  // namespace vm
}  // namespace runtime
}  // namespace tvm
