// Writing files whole.
#include "write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <tvm/runtime/error.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace tvm {
namespace runtime {
namespace {

constexpr mode_t kPermissions = 07777;

// A descriptor that is closed in the end.
class OpenFile {
 public:
  OpenFile(const std::string& path, int flags, mode_t mode = 0) : descriptor_(open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  int get() const { return descriptor_; }
  bool Write(const std::string& bytes) const {
    size_t at = 0;
    while (descriptor_ >= 0 && at < bytes.size()) {
      ssize_t written = write(descriptor_, bytes.data() + at, bytes.size() - at);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      at += static_cast<size_t>(written);
    }
    return descriptor_ >= 0;
  }

 private:
  int descriptor_;
};

std::string Resolved(const std::string& path) {
  char buffer[PATH_MAX];
  return realpath(path.c_str(), buffer) == nullptr ? path : buffer;
}

// A name beside the file's that no other writer uses.
std::string PartialName(const std::string& path) {
  static std::atomic<int> count{0};
  size_t name = path.rfind('/') + 1;  // 0 without a folder
  return path.substr(0, name) + "." + path.substr(name) + Cat(".", getpid(), ".", count++, ".part");
}

std::string FolderOf(const std::string& path) {
  size_t end = path.rfind('/');
  return end == std::string::npos ? "." : path.substr(0, end + 1);
}

}  // namespace

void WriteFile(const std::string& path, const std::string& bytes) {
  std::string target = Resolved(path);
  auto fail = [&](int reason) { throw Error(Cat("OSError: cannot write ", path, ": ", std::strerror(reason))); };
  struct stat old;
  bool is_there = stat(target.c_str(), &old) == 0;
  if (is_there && !S_ISREG(old.st_mode)) {  // a pipe, for example
    if (!OpenFile(target, O_WRONLY).Write(bytes)) fail(errno);
    return;
  }
  std::string partial = PartialName(target);
  {
    OpenFile file(partial, O_WRONLY | O_CREAT | O_EXCL, 0666);
    bool is_written = file.Write(bytes) && (!is_there || fchmod(file.get(), old.st_mode & kPermissions) == 0) && fsync(file.get()) == 0;
    if (is_written && rename(partial.c_str(), target.c_str()) == 0) {
      fsync(OpenFile(FolderOf(target), O_RDONLY | O_DIRECTORY).get());
      return;
    }
  }
  int reason = errno;
  unlink(partial.c_str());
  fail(reason);
}

}  // namespace runtime
}  // namespace tvm
