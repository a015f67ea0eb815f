// Files of a session. Each part of a path is opened within the folder before it, links refused, so that nobody can be
// led out of it by a link that appears meanwhile.
#include "folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <vector>

#include "../fork.h"
#include "channel.h"

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

struct Place {
  ForkMutex mutex;
  std::string path;
  static Place& Global() {
    static auto* place = new Place();
    return *place;
  }
};

std::string CurrentFolder() {
  Place& place = Place::Global();
  std::lock_guard<ForkMutex> lock(place.mutex);
  if (place.path.empty()) ThrowError("this process has no folder for files of an RPC session");
  return place.path;
}

[[noreturn]] void ThrowPath(const std::string& path, const std::string& reason) {
  ThrowValueError("RPC: the path '", path, "' ", reason, "; files of a session are named relative to its folder");
}

std::vector<std::string> PartsOf(const std::string& path) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= path.size()) {
    size_t end = std::min(path.find('/', begin), path.size());
    std::string part = path.substr(begin, end - begin);
    if (part.empty() && begin == 0) ThrowPath(path, path.empty() ? "is empty" : "is absolute");
    if (part == ".." || part.find('\0') != std::string::npos) ThrowPath(path, "leads out of the session's folder");
    if (!part.empty() && part != ".") parts.push_back(part);
    begin = end + 1;
  }
  return parts;
}

// The descriptor of the folder that holds the last part of the path.
Descriptor OpenParent(const std::string& path, const std::vector<std::string>& parts, bool is_made) {
  Descriptor folder(open(CurrentFolder().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) ThrowError("RPC: the session's folder is gone");
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    const char* name = parts[i].c_str();
    if (is_made) mkdirat(folder.get(), name, 0700);
    Descriptor next(openat(folder.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next) ThrowPath(path, errno == ENOENT ? "does not exist" : "has a part that is no folder");
    folder = std::move(next);
  }
  return folder;
}

// An open plain file within the folder; of a link or a device nothing is opened.
Descriptor OpenFile(const std::string& path, int flags) {
  std::vector<std::string> parts = PartsOf(path);
  if (parts.empty()) ThrowPath(path, "names no file");
  const bool is_written = (flags & O_ACCMODE) != O_RDONLY;
  Descriptor folder = OpenParent(path, parts, is_written);
  Descriptor file(openat(folder.get(), parts.back().c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0700));
  if (!file) ThrowPath(path, errno == ENOENT ? "does not exist" : errno == ELOOP ? "is a link" : std::strerror(errno));
  struct stat info;
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) ThrowPath(path, "is no plain file");
  if (info.st_nlink != 1) ThrowPath(path, "is a file that has another name elsewhere");
  return file;
}

void Upload(const std::string& path, const char* data, size_t size) {
  std::vector<std::string> parts = PartsOf(path);
  if (parts.empty()) ThrowPath(path, "names no file");
  // a library that is in use keeps its old file
  unlinkat(OpenParent(path, parts, true).get(), parts.back().c_str(), 0);
  Descriptor file = OpenFile(path, O_WRONLY | O_CREAT | O_EXCL);
  while (size > 0) {
    ssize_t count = write(file.get(), data, size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) ThrowError("RPC: cannot write ", path, ": ", std::strerror(errno));
    data += count;
    size -= static_cast<size_t>(count);
  }
}

std::string Download(const std::string& path) {
  Descriptor file = OpenFile(path, O_RDONLY);
  struct stat info;
  fstat(file.get(), &info);
  std::string content(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < content.size()) {
    ssize_t count = read(file.get(), &content[done], content.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) ThrowError("RPC: cannot read ", path, ": ", std::strerror(errno));
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  content.resize(done);
  return content;
}

void RemovePath(const std::string& path) {
  std::vector<std::string> parts = PartsOf(path);
  if (parts.empty()) ThrowPath(path, "is the session's folder itself");
  Descriptor folder = OpenParent(path, parts, false);
  if (unlinkat(folder.get(), parts.back().c_str(), 0) != 0) ThrowPath(path, std::strerror(errno));
}

// The names in a folder, separated by commas.
std::string List(const std::string& path) {
  std::vector<std::string> parts = PartsOf(path);
  parts.push_back("");
  DIR* folder = fdopendir(OpenParent(path, parts, false).Release());
  if (folder == nullptr) ThrowPath(path, std::strerror(errno));
  std::string names;
  while (dirent* entry = readdir(folder)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names += (names.empty() ? "" : ",") + name;
  }
  closedir(folder);
  return names;
}

// The path of a file for functions that take paths; it is there and no link.
std::string WorkPath(const std::string& path) {
  std::string full = CurrentFolder();
  for (const std::string& part : PartsOf(path)) full += "/" + part;
  return full;
}

}  // namespace

std::string MakeSessionFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "tvm_rpc_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) ThrowError("cannot make a folder ", pattern, ": ", std::strerror(errno));
  return pattern;
}

void UseSessionFolder(const std::string& path) {
  Place& place = Place::Global();
  std::lock_guard<ForkMutex> lock(place.mutex);
  place.path = path;
}

void RemoveFolder(const std::string& path) {
  std::error_code ignored;  // what cannot be removed belongs to somebody else by now
  std::filesystem::remove_all(path, ignored);
}

TVM_REGISTER_GLOBAL("rpc.UseSessionFolder").set_body_typed([](std::string path) { UseSessionFolder(path); });

TVM_REGISTER_GLOBAL("tvm.rpc.server.workpath").set_body_typed([](std::string path) { return WorkPath(path); });

TVM_REGISTER_GLOBAL("tvm.rpc.server.upload").set_body([](TVMArgs args, TVMRetValue*) {
  std::string path = args[0];
  if (args[1].type_code() == kTVMBytes) {
    auto* bytes = static_cast<TVMByteArray*>(args[1].value().v_handle);
    return Upload(path, bytes->data, bytes->size);
  }
  std::string text = args[1];
  Upload(path, text.data(), text.size());
});

TVM_REGISTER_GLOBAL("tvm.rpc.server.download").set_body([](TVMArgs args, TVMRetValue* rv) {
  std::string content = Download(args[0]);
  *rv = TVMByteArray{content.data(), content.size()};
});

TVM_REGISTER_GLOBAL("tvm.rpc.server.remove").set_body_typed([](std::string path) { RemovePath(path); });
TVM_REGISTER_GLOBAL("tvm.rpc.server.listdir").set_body_typed([](std::string path) { return List(path); });

TVM_REGISTER_GLOBAL("tvm.rpc.server.load_module").set_body_typed([](std::string path) {
  OpenFile(path, O_RDONLY);  // it is within the folder, and no link
  return Module::LoadFromFile(WorkPath(path));
});

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
