// Beginning sessions: over sockets, over pipes to a program, and serving on descriptors that are open already.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "client_session.h"
#include "folder.h"
#include "handshake.h"
#include "module.h"
#include "serve.h"

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

constexpr auto kConnectPatience = std::chrono::seconds(60);
// how long a program goes on that nobody listens to any more
constexpr auto kGrace = std::chrono::seconds(5);

Module Connect(const std::string& host, int port, const std::string& key, bool is_logged, const std::string& secret,
               TVMArgs constructor) {
  const std::string peer = Cat(host, ":", port);
  auto channel = std::make_unique<Channel>(ConnectTo(host, port, kConnectPatience));
  HandshakeAsClient(channel.get(), "client:" + key, secret, peer);
  return SessionModule(BeginClientSession(std::move(channel), peer, constructor, is_logged));
}

TVMArgs From(TVMArgs args, int first) {
  return TVMArgs(args.values + first, args.type_codes + first, args.num_args - first);
}

void CheckExecutable(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) ThrowError("PopenSession: there is no file ", path);
  // not access(): to the superuser everything may be executed
  if (!S_ISREG(info.st_mode) || (info.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0) {
    ThrowError("PopenSession: the file ", path, " is no program, or may not be executed");
  }
}

struct Ends {
  Descriptor reader;
  Descriptor writer;
  Ends() {
    int fds[2];
    if (pipe(fds) != 0) ThrowError("cannot make a pipe: ", std::strerror(errno));
    for (int fd : fds) fcntl(fd, F_SETFD, FD_CLOEXEC);
    reader = Descriptor(fds[0]);
    writer = Descriptor(fds[1]);
  }
};

// Starts a program that serves a session on the descriptors that its arguments tell, and begins that session.
Module ConnectToProgram(const std::string& path) {
  CheckExecutable(path);
  Ends to, from;
  const int reads = to.reader.get(), writes = from.writer.get();
  const std::string read_text = std::to_string(reads), write_text = std::to_string(writes);
  char* arguments[] = {const_cast<char*>(path.c_str()), const_cast<char*>(read_text.c_str()), const_cast<char*>(write_text.c_str()), nullptr};
  const pid_t pid = fork();
  if (pid < 0) ThrowError("cannot fork: ", std::strerror(errno));
  if (pid == 0) {
    // its ends alone stay open
    fcntl(reads, F_SETFD, 0);
    fcntl(writes, F_SETFD, 0);
    execv(path.c_str(), arguments);
    _exit(127);
  }
  std::thread([pid] { waitpid(pid, nullptr, 0); }).detach();
  to.reader.Close();
  from.writer.Close();
  signal(SIGPIPE, SIG_IGN);  // pipes have no other way to say that nobody reads
  auto channel = std::make_unique<Channel>(std::move(from.reader), std::move(to.writer));
  return SessionModule(BeginClientSession(std::move(channel), path, TVMArgs(nullptr, nullptr, 0), false));
}

// Ends this process if the other side has gone and what it asked for goes on.
void EndWithPeer(int fd) {
  std::thread([fd] {
    pollfd wanted{fd, 0, 0};
    while (poll(&wanted, 1, -1) <= 0 || (wanted.revents & (POLLHUP | POLLERR)) == 0) {
    }
    std::this_thread::sleep_for(kGrace);
    _exit(1);
  }).detach();
}

void RequireSocket(const char* who, int descriptor) {
  int kind = 0;
  socklen_t size = sizeof(kind);
  if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &kind, &size) != 0) {
    ThrowError(who, " requires a socket, got descriptor ", descriptor);
  }
}

}  // namespace

// (host, port, key, whether messages are logged, then name and arguments of the session's constructor there)
TVM_REGISTER_GLOBAL("rpc.Connect").set_body([](TVMArgs args, TVMRetValue* rv) {
  bool is_logged = args.num_args > 3 && bool(args[3]);
  *rv = Connect(args[0], args[1], args[2], is_logged, "", From(args, std::min(args.num_args, 4)));
});

// The same with the file of a secret before the constructor.
TVM_REGISTER_GLOBAL("rpc.ConnectWithSecret").set_body([](TVMArgs args, TVMRetValue* rv) {
  *rv = Connect(args[0], args[1], args[2], args[3], ReadSecret(args[4]), From(args, 5));
});

TVM_REGISTER_GLOBAL("rpc.CreatePipeClient").set_body_typed([](std::string path) { return ConnectToProgram(path); });

// A session with a program: its path, or its bytes, which are kept with the files of this session.
TVM_REGISTER_GLOBAL("rpc.PopenSession").set_body([](TVMArgs args, TVMRetValue* rv) {
  std::string path = args[0];
  if (args[0].type_code() == kTVMBytes) {
    const std::string name = "server.minrpc";
    Registry::Find("tvm.rpc.server.upload")(name, args[0]);
    path = Registry::Find("tvm.rpc.server.workpath")(name).operator std::string();
  }
  *rv = ConnectToProgram(path);
});

// Serves one session: for a socket both descriptors are the same.
TVM_REGISTER_GLOBAL("rpc.ServeDescriptors").set_body_typed([](int reader, int writer) {
  signal(SIGPIPE, SIG_IGN);
  const std::string folder = MakeSessionFolder();
  UseSessionFolder(folder);
  EndWithPeer(reader);
  Descriptor writes(reader == writer ? -1 : writer);
  if (writes) {
    Channel channel(Descriptor(reader), std::move(writes));
    ServeSession(&channel, ServeLimits());
  } else {
    Channel channel{Descriptor(reader)};
    ServeSession(&channel, ServeLimits());
  }
  RemoveFolder(folder);
});

// Serves a session on a socket whose handshake is done, in this process.
TVM_REGISTER_GLOBAL("rpc.ServerLoop").set_body_typed([](int socket) {
  RequireSocket("rpc.ServerLoop", socket);
  Channel channel{Descriptor(socket)};
  ServeSession(&channel, ServeLimits());
});

TVM_REGISTER_GLOBAL("rpc.ReturnException").set_body_typed([](int socket, std::string text) {
  RequireSocket("rpc.ReturnException", socket);
  Channel channel{Descriptor(dup(socket))};
  SendException(&channel, text);
});

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
