// One process accepts and watches; each session is a process that it forks, with a folder and a process group of its own.
// What a client does wrong ends its own process. If the accepting process is killed, the sessions notice and end.
#include "listener.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tvm/runtime/registry.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <list>
#include <memory>
#include <random>
#include <thread>

#include "../interrupt.h"
#include "../json.h"
#include "folder.h"
#include "handshake.h"
#include "tracker_client.h"

#ifndef POLLRDHUP
#define POLLRDHUP 0
#endif

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kMaxProcesses = 64;
constexpr auto kHandshakePatience = seconds(10);
// how long a session may go on whose client has gone, and how long a client may take to read why its session has ended
constexpr auto kGrace = seconds(5), kDrain = seconds(30);
constexpr auto kPingPeriod = seconds(2), kRetryPeriod = seconds(2);
// after so many looks at which a match key was taken and nobody came, another one is offered
constexpr int kMaxMissing = 3;
constexpr Clock::time_point kNever = Clock::time_point::max();

// What a session's process tells once a client is accepted.
struct Accepted {
  double timeout;
};

struct Process {
  pid_t pid;
  Descriptor connection;
  Descriptor status;  // ends with the process
  std::string folder;
  bool is_accepted{false};
  bool is_expired{false};
  double timeout{0};
  Clock::time_point deadline{kNever};
};

struct Draining {
  Descriptor connection;
  Clock::time_point deadline;
};

struct Pipe {
  Descriptor reader;
  Descriptor writer;
  Pipe() {
    int fds[2];
    if (pipe(fds) != 0) ThrowError("cannot make a pipe: ", std::strerror(errno));
    for (int fd : fds) fcntl(fd, F_SETFD, FD_CLOEXEC);
    reader = Descriptor(fds[0]);
    writer = Descriptor(fds[1]);
  }
};

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
}

void TryToSendException(int socket, const std::string& text) {
  try {
    Channel channel{Descriptor(dup(socket))};
    channel.set_stall_limit(milliseconds(100));
    SendException(&channel, text);
  } catch (const std::exception&) {  // nobody listens any more
  }
}

class Listener {
 public:
  Listener(const ListenerOptions& options, const ListenerHooks& hooks)
      : options_(options), hooks_(hooks), secret_(ReadSecret(options.key_file)) {
    if (!options.is_proxy && secret_.empty() && !options.is_open && !IsLoopback(options.host)) {
      ThrowValueError("an RPC server on ", options.host, " lets everybody run code here: give it a secret by --key-file, or say "
                      "--insecure-allow-any");
    }
    if (options.key.find_first_of(" \t\r\n") != std::string::npos) ThrowValueError("a key of RPC has no white space, got '", options.key, "'");
    match_key_ = options.key;
  }

  ~Listener() {
    for (Process& process : processes_) kill(-process.pid, SIGKILL);
    while (!processes_.empty()) Forget(processes_.begin());
  }

  void Run() {
    port_ = options_.port;
    if (!options_.is_proxy) listening_ = ListenOn(options_.host, options_.port, options_.port_end, options_.reuses_address, &port_);
    Log(Cat(options_.is_proxy ? "waiting at the proxy " : "listening on ", options_.host, ":", port_));
    if (has_tracker()) OfferNewKey();
    if (hooks_.ready.defined()) hooks_.ready(port_);
    while (Step()) {
    }
  }

 private:
  bool has_tracker() const { return options_.tracker_port != 0 && !options_.is_proxy; }
  bool is_exclusive() const { return has_tracker() || options_.is_proxy; }

  void Log(const std::string& text) const {
    if (!options_.is_silent) std::fprintf(stderr, "tvm_rpc[%d]: %s\n", static_cast<int>(getpid()), text.c_str());
  }

  // Waits for something to happen and does what it asks for; false at the end.
  bool Step() {
    if (options_.is_proxy && processes_.empty() && Clock::now() >= retry_) ConnectToProxy();
    std::vector<pollfd> wanted;
    auto want = [&](int fd, short events) { wanted.push_back({fd, events, 0}); };
    want(options_.control, POLLIN);
    want(processes_.size() < kMaxProcesses ? listening_.get() : -1, POLLIN);
    for (Process& process : processes_) {
      want(process.status.get(), POLLIN);
      want(process.connection.get(), POLLRDHUP);
    }
    for (Draining& draining : draining_) want(draining.connection.get(), POLLIN);
    if (poll(wanted.data(), wanted.size(), Patience()) < 0) {
      if (errno != EINTR) ThrowError("poll: ", std::strerror(errno));
      PollSignals();
      return true;
    }
    PollSignals();
    if (wanted[0].revents != 0) return false;
    size_t at = 2;
    for (auto it = processes_.begin(); it != processes_.end(); at += 2) Watch(it++, wanted[at].revents, wanted[at + 1].revents);
    for (auto it = draining_.begin(); it != draining_.end(); ++at) Drain(it++, wanted[at].revents);
    if (wanted[1].revents != 0) Accept();
    if (has_tracker()) AttendTracker();
    return true;
  }

  // Milliseconds until something is due.
  int Patience() const {
    auto due = is_exclusive() ? Clock::now() + seconds(1) : kNever;
    for (const Process& process : processes_) due = std::min(due, process.deadline);
    for (const Draining& draining : draining_) due = std::min(due, draining.deadline);
    if (due == kNever) return -1;
    auto left = std::chrono::duration_cast<milliseconds>(due - Clock::now()).count() + 1;
    return static_cast<int>(std::clamp<int64_t>(left, 0, 60000));
  }

  void Accept() {
    Descriptor connection(accept(listening_.get(), nullptr, nullptr));
    if (!connection) return;  // it has gone already
    fcntl(connection.get(), F_SETFD, FD_CLOEXEC);
    Start(std::move(connection));
  }

  void ConnectToProxy() {
    retry_ = Clock::now() + kRetryPeriod;
    try {
      Start(ConnectTo(options_.host, options_.port, seconds(5)));
    } catch (const ChannelClosed& error) {
      Log(error.what());
    }
  }

  void Start(Descriptor connection) {
    Process process;
    Pipe status;
    process.folder = MakeSessionFolder();
    process.pid = hooks_.fork.defined() ? static_cast<pid_t>(hooks_.fork().operator int64_t()) : fork();
    if (process.pid < 0) {
      RemoveFolder(process.folder);
      return Log(Cat("cannot fork: ", std::strerror(errno)));
    }
    if (process.pid == 0) ServeInChild(std::move(connection), status.writer.get(), process.folder);
    setpgid(process.pid, process.pid);
    process.connection = std::move(connection);
    process.status = std::move(status.reader);
    processes_.push_back(std::move(process));
  }

  // The life of a session's process.
  [[noreturn]] void ServeInChild(Descriptor connection, int status, const std::string& folder) {
    try {
      CloseInherited();
      std::thread(EndWithServer, life_.reader.get(), folder).detach();
      UseSessionFolder(folder);
      Channel channel(std::move(connection));
      channel.set_stall_limit(kHandshakePatience);
      KeyOptions client;
      if (ShakeHands(&channel, &client)) {
        Accepted accepted{client.timeout};
        if (write(status, &accepted, sizeof(accepted)) != sizeof(accepted)) _exit(1);
        channel.set_stall_limit(Clock::duration(0));
        if (hooks_.prepare.defined()) hooks_.prepare(folder);
        ServeSession(&channel, options_.limits);
        if (hooks_.finish.defined()) hooks_.finish();
      }
    } catch (const std::exception& error) {
      Log(error.what());
    }
    _exit(0);
  }

  bool ShakeHands(Channel* channel, KeyOptions* client) {
    const std::string own = "server:" + options_.key;
    if (!options_.is_proxy) return HandshakeAsServer(channel, match_key_, own, secret_, client);
    *client = ParseKey(HandshakeAsClient(channel, own, secret_, Cat("the proxy ", options_.host, ":", options_.port)));
    return true;
  }

  // What belongs to the accepting process and to other sessions, whose ends nobody would see otherwise.
  void CloseInherited() {
    setpgid(0, 0);
    life_.writer.Close();
    listening_.Close();
    tracker_.reset();
    for (Process& process : processes_) {
      process.connection.Close();
      process.status.Close();
    }
    for (Draining& draining : draining_) draining.connection.Close();
    if (options_.control >= 0) close(options_.control);
  }

  // Runs in a thread of a session's process: when the accepting process is gone, so is this one and what it has started.
  static void EndWithServer(int life, std::string folder) {
    char ignored;
    while (read(life, &ignored, 1) < 0 && errno == EINTR) {
    }
    RemoveFolder(folder);
    kill(0, SIGKILL);
  }

  using ProcessAt = std::list<Process>::iterator;

  void Watch(ProcessAt process, short status, short connection) {
    const auto now = Clock::now();
    if (status != 0) {
      Accepted accepted;
      if (read(process->status.get(), &accepted, sizeof(accepted)) == sizeof(accepted)) return Begin(process, accepted);
      return End(process);
    }
    if ((connection & (POLLRDHUP | POLLHUP | POLLERR)) != 0) process->deadline = std::min(process->deadline, now + kGrace);
    if (now < process->deadline) return;
    // of a client that has gone nobody waits for the reason
    process->is_expired = process->timeout > 0;
    kill(-process->pid, SIGKILL);
    kill(process->pid, SIGKILL);
    process->deadline = now + seconds(1);
  }

  void Begin(ProcessAt process, const Accepted& accepted) {
    if (is_exclusive() && !match_key_.empty() && has_tracker()) {
      match_key_.clear();
    } else if (has_tracker()) {
      kill(-process->pid, SIGKILL);  // a second client of one key
      return;
    }
    process->is_accepted = true;
    process->timeout = accepted.timeout;
    if (options_.session_seconds > 0 && (process->timeout == 0 || process->timeout > options_.session_seconds)) {
      process->timeout = options_.session_seconds;
    }
    if (process->timeout > 0) {
      const double longest = 3e7;
      process->deadline = Clock::now() + milliseconds(static_cast<int64_t>(1000 * std::min(process->timeout, longest)));
    }
    Log(Cat("session ", process->pid, " begins"));
  }

  void End(ProcessAt process) {
    int status = 0;
    while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (process->is_expired) {
      TryToSendException(process->connection.get(), Cat("RPCSessionTimeoutError: Your ", process->timeout,
                                                        "s session has expired, try to increase the 'session_timeout' value."));
    } else if (process->is_accepted && WIFSIGNALED(status)) {
      TryToSendException(process->connection.get(), Cat("RPCError: the process of this session was ended by signal ",
                                                        WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")"));
    }
    if (process->is_expired || WIFSIGNALED(status)) {
      shutdown(process->connection.get(), SHUT_WR);
      draining_.push_back({std::move(process->connection), Clock::now() + kDrain});
    }
    const bool was_accepted = process->is_accepted;
    if (was_accepted) Log(Cat("session ", process->pid, process->is_expired ? " has expired" : " ends"));
    Forget(process);
    if (was_accepted) retry_ = Clock::now();
    if (was_accepted && has_tracker()) OfferNewKey();
  }

  // Removes what a process leaves: those that it has started, its folder.
  void Forget(ProcessAt process) {
    kill(-process->pid, SIGKILL);
    while (waitpid(process->pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    RemoveFolder(process->folder);
    processes_.erase(process);
  }

  // Lets a client read why its session has ended before the connection does.
  void Drain(std::list<Draining>::iterator draining, short events) {
    char ignored[4096];
    bool has_ended = Clock::now() >= draining->deadline;
    if (events != 0 && recv(draining->connection.get(), ignored, sizeof(ignored), MSG_DONTWAIT) <= 0) has_ended = true;
    if (has_ended) draining_.erase(draining);
  }

  void OfferNewKey() {
    std::uniform_real_distribution<double> number(0, 1);
    char text[32];
    std::snprintf(text, sizeof(text), ":%.17g", number(random_));
    match_key_ = options_.key + text;
    num_missing_ = 0;
    next_ping_ = Clock::now() + kPingPeriod;
    WithTracker([&] { tracker_->Put(match_key_); });
  }

  void AttendTracker() {
    const auto now = Clock::now();
    if (tracker_ == nullptr) {
      if (now >= retry_ && !match_key_.empty()) OfferNewKey();
      return;
    }
    if (match_key_.empty() || now < next_ping_) return;
    next_ping_ = now + kPingPeriod;
    WithTracker([&] {
      std::vector<std::string> pending = tracker_->PendingKeys();
      bool is_pending = std::find(pending.begin(), pending.end(), match_key_) != pending.end();
      num_missing_ = is_pending ? 0 : num_missing_ + 1;
    });
    if (num_missing_ >= kMaxMissing) OfferNewKey();
  }

  // Trackers come and go: what fails now is tried again later.
  template <class F>
  void WithTracker(F run) {
    try {
      if (tracker_ == nullptr) {
        tracker_ = std::make_unique<TrackerClient>(options_.tracker_host, options_.tracker_port, secret_, options_.key,
                                                   options_.custom_address, port_);
      }
      run();
    } catch (const std::exception& error) {
      Log(Cat("the tracker ", options_.tracker_host, ":", options_.tracker_port, " cannot be used: ", error.what()));
      tracker_.reset();
      retry_ = Clock::now() + kRetryPeriod;
    }
  }

  const ListenerOptions options_;
  const ListenerHooks hooks_;
  const std::string secret_;
  Pipe life_;  // its writer is this process's alone
  Descriptor listening_;
  int port_{0};
  std::string match_key_;  // empty while a client that has used it is being served
  std::unique_ptr<TrackerClient> tracker_;
  std::list<Process> processes_;
  std::list<Draining> draining_;
  Clock::time_point retry_{Clock::now()};
  Clock::time_point next_ping_{Clock::now()};
  int num_missing_{0};
  std::random_device random_;
};

// More than the machine has no session can use.
uint64_t MemoryOfMachine() {
  const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && bytes > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(bytes) : 0;
}

// Reads options by name; what is not known is an error.
ListenerOptions OptionsOf(const std::string& text) {
  ListenerOptions options;
  options.limits.array_bytes = MemoryOfMachine();
  Json json = Json::Parse(text, "the server's options");
  for (const auto& [name, value] : json.Object("options")) {
    const std::string place = "option " + name;
    if (name == "host") options.host = value.String(place);
    else if (name == "port") options.port = static_cast<int>(value.Int(place));
    else if (name == "port_end") options.port_end = static_cast<int>(value.Int(place));
    else if (name == "key") options.key = value.String(place);
    else if (name == "is_proxy") options.is_proxy = value.Int(place) != 0;
    else if (name == "tracker_host") options.tracker_host = value.String(place);
    else if (name == "tracker_port") options.tracker_port = static_cast<int>(value.Int(place));
    else if (name == "custom_addr") options.custom_address = value.String(place);
    else if (name == "key_file") options.key_file = value.String(place);
    else if (name == "insecure_allow_any") options.is_open = value.Int(place) != 0;
    else if (name == "silent") options.is_silent = value.Int(place) != 0;
    else if (name == "session_timeout") options.session_seconds = value.Number(place);
    else if (name == "control") options.control = static_cast<int>(value.Int(place));
    else if (name == "max_message") options.limits.message_bytes = static_cast<uint64_t>(value.Int(place));
    else if (name == "max_memory") options.limits.array_bytes = static_cast<uint64_t>(value.Int(place));
    else if (name == "stall_timeout") options.limits.stall_seconds = static_cast<int>(std::ceil(value.Number(place)));
    else if (name == "reuse_addr") options.reuses_address = value.Int(place) != 0;
    else ThrowValueError("an RPC server has no option ", name);
  }
  return options;
}

}  // namespace

void Listen(const ListenerOptions& options, const ListenerHooks& hooks) { Listener(options, hooks).Run(); }

// (options as JSON, fork, ready, prepare, finish): the functions may be None
TVM_REGISTER_GLOBAL("rpc.Listen")
    .set_body_typed([](std::string options, PackedFunc fork, PackedFunc ready, PackedFunc prepare, PackedFunc finish) {
      Listen(OptionsOf(options), {fork, ready, prepare, finish});
    });

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
