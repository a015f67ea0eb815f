// Executables as bytes, in the form of the classic release.
//
// u64 magic, text version
// functions: u64 count, (i32 kind, text name, i64 first word, i64 last, i64 parameters, i64 registers, texts names)...
// constants: u64 count, (i32 kind, value)...
// code: i64s where instructions begin in the words, i64s the words
// u64 checksum of all before it, which the classic release does not read
#include <dmlc/memory_io.h>
#include <tvm/runtime/registry.h>

#include <fstream>
#include <iterator>

#include "../bytes.h"
#include "../checksum.h"
#include "../params.h"
#include "executable.h"

namespace tvm {
namespace runtime {
namespace relax_vm {
namespace {

constexpr uint64_t kMagic = 0xD225DE2F4214151D;

enum ConstantKind : int32_t { kArray = 0, kDataType = 1, kShape = 2, kText = 3, kInt = 4, kFloat = 5 };

uint64_t ChecksumOf(const char* data, size_t size) {
  Checksum checksum;
  checksum.Add(data, size);
  return checksum.Value();
}

void SaveConstant(dmlc::Stream* stream, const TVMRetValue& value) {
  auto kind = [stream](ConstantKind kind) { stream->Write<int32_t>(kind); };
  switch (value.type_code()) {
    case kTVMNDArrayHandle:
      kind(kArray);
      SaveDLTensor(stream, value);
      return;
    case kTVMDataType:
      kind(kDataType);
      stream->Write(value.operator DLDataType());
      return;
    case kTVMStr:
      kind(kText);
      stream->Write(value.operator std::string());
      return;
    case kTVMArgFloat:
      kind(kFloat);
      stream->Write<double>(value);
      return;
    case kTVMArgInt:
    case kTVMArgBool:
      kind(kInt);
      stream->Write<int64_t>(int64_t(value));
      return;
    default: {
      ShapeTuple shape = value;
      kind(kShape);
      stream->Write(std::vector<int64_t>(shape.begin(), shape.end()));
    }
  }
}

class Loader {
 public:
  Loader(const char* data, size_t size, bool is_verified)
      : data_(data), size_(size), is_verified_(is_verified), reader_(data, size, "the executable") {
    reader_.set_verified();  // in the end, as a whole
  }

  ObjectPtr<Executable> Run() {
    exec_ = make_object<Executable>();
    uint64_t magic = reader_.Read<uint64_t>();
    if (magic != kMagic) {
      ThrowValueError("the bytes are no executable of relax's virtual machine: they start with ", std::hex, "0x", magic, ", expected 0x", kMagic);
    }
    std::string version = reader_.ReadString();
    if (version.substr(0, 2) != "0.") ThrowValueError("the executable was saved by version '", version, "', which this runtime cannot read");
    Functions();
    Constants();
    Code();
    CheckAll();
    exec_->Finish();
    return exec_;
  }

 private:
  template <class... Parts>
  [[noreturn]] void Corrupt(const Parts&... parts) const {
    ThrowValueError("the executable is corrupt: ", parts...);
  }

  void Functions() {
    uint64_t count = reader_.Checked(reader_.Read<uint64_t>(), 52);
    for (uint64_t i = 0; i < count; ++i) {
      Function func;
      int32_t kind = reader_.Read<int32_t>();
      if (kind < 0 || kind > 2) Corrupt("a function of kind ", kind);
      func.kind = static_cast<FunctionKind>(kind);
      func.name = reader_.ReadString();
      first_.push_back(reader_.Read<int64_t>());
      last_.push_back(reader_.Read<int64_t>());
      func.num_args = reader_.Read<int64_t>();
      func.num_registers = reader_.Read<int64_t>();
      func.params = reader_.ReadStrings();
      bool has_names = func.kind == FunctionKind::kPacked || func.params.size() == static_cast<uint64_t>(func.num_args);
      if (!has_names) Corrupt("'", func.name, "' has ", func.num_args, " parameters and ", func.params.size(), " names of them");
      exec_->functions.push_back(std::move(func));
    }
  }

  void Constants() {
    uint64_t count = reader_.Checked(reader_.Read<uint64_t>(), 8);
    for (uint64_t i = 0; i < count; ++i) exec_->constants.push_back(Constant());
  }

  TVMRetValue Constant() {
    TVMRetValue value;
    switch (int32_t kind = reader_.Read<int32_t>()) {
      case kArray: value = LoadArray(&reader_); break;
      case kDataType: value = reader_.Read<DLDataType>(); break;
      case kShape: value = ObjectRef(ShapeTuple(reader_.ReadVector<int64_t>())); break;
      case kText: value = reader_.ReadString(); break;
      case kInt: value = reader_.Read<int64_t>(); break;
      case kFloat: value = reader_.Read<double>(); break;
      default: Corrupt("a constant of kind ", kind);
    }
    return value;
  }

  void Code() {
    std::vector<int64_t> offsets = reader_.ReadVector<int64_t>();
    std::vector<Word> words = reader_.ReadVector<Word>();
    auto place = [&](int64_t instruction) {
      if (instruction < 0 || instruction > static_cast<int64_t>(offsets.size())) Corrupt("there is no instruction ", instruction);
      int64_t at = instruction == static_cast<int64_t>(offsets.size()) ? static_cast<int64_t>(words.size()) : offsets[instruction];
      if (at < 0 || at > static_cast<int64_t>(words.size())) Corrupt("an instruction at word ", at, " of ", words.size());
      return at;
    };
    for (size_t i = 0; i < exec_->functions.size(); ++i) {
      Function& func = exec_->functions[i];
      if (func.kind != FunctionKind::kVM) continue;
      int64_t begin = place(first_[i]), end = place(last_[i]);
      if (begin > end) Corrupt("the code of '", func.name, "' ends before it begins");
      func.code = Decode(words.data() + begin, static_cast<size_t>(end - begin), func.name);
    }
  }

  // Executables of the classic release have none.
  void CheckAll() {
    size_t size = size_ - reader_.left();
    if (reader_.left() == 0) return;
    if (reader_.left() != sizeof(uint64_t)) Corrupt(reader_.left(), " bytes too many");
    uint64_t wanted = reader_.Read<uint64_t>();
    if (is_verified_ || !AreChecksumsVerified()) return;
    if (ChecksumOf(data_, size) != wanted) Corrupt("its checksum is wrong (TVM_CHECKSUM=0 loads it all the same)");
  }

  const char* data_;
  size_t size_;
  bool is_verified_;
  ByteReader reader_;
  ObjectPtr<Executable> exec_;
  std::vector<int64_t> first_, last_;
};

}  // namespace

std::string Executable::Save() const {
  std::string bytes;
  dmlc::MemoryStringStream memory(&bytes);
  dmlc::Stream* stream = &memory;
  stream->Write<uint64_t>(kMagic);
  stream->Write(std::string(TVM_VERSION));
  stream->Write<uint64_t>(functions.size());
  std::vector<int64_t> offsets;
  std::vector<Word> words;
  for (const Function& func : functions) {
    stream->Write<int32_t>(static_cast<int32_t>(func.kind));
    stream->Write(func.name);
    stream->Write<int64_t>(offsets.size());
    for (const Instruction& instruction : func.code) {
      offsets.push_back(static_cast<int64_t>(words.size()));
      instruction.AppendTo(&words);
    }
    stream->Write<int64_t>(offsets.size());
    stream->Write<int64_t>(func.num_args);
    stream->Write<int64_t>(func.num_registers);
    stream->Write(func.params);
  }
  stream->Write<uint64_t>(constants.size());
  for (const TVMRetValue& value : constants) SaveConstant(stream, value);
  stream->Write(offsets);
  stream->Write(words);
  stream->Write<uint64_t>(ChecksumOf(bytes.data(), bytes.size()));
  return bytes;
}

Module Executable::Load(const char* data, size_t size, bool is_verified) {
  return Module(ObjectPtr<ModuleNode>(Loader(data, size, is_verified).Run()));
}

TVM_REGISTER_GLOBAL("runtime.module.loadbinary_relax.Executable").set_body_typed([](void* stream) {
  ByteReader* reader = ByteReader::Of(stream);
  uint64_t size = reader->Read<uint64_t>();
  return Executable::Load(reader->Take(reader->Checked(size, 1)), size, reader->is_verified());
});

TVM_REGISTER_GLOBAL("runtime.module.loadfile_relax.Executable").set_body_typed([](std::string path, std::string) {
  std::ifstream file(path, std::ios::binary);
  if (!file) ThrowValueError("cannot read the executable: there is no readable file ", path);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return Executable::Load(bytes.data(), bytes.size(), false);
});

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
