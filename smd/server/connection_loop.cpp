#include "smd/server/connection_loop.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "smd/base/signals_blocked.h"

namespace smd::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr uint64_t kListenerId = 0;
constexpr uint64_t kWakeId = 1;
constexpr int kBacklog = 512;
constexpr int kMostEvents = 256;
constexpr size_t kReadBytes = 16384;
constexpr int kMostReads = 16;
constexpr milliseconds kTick{500};
// For a client that still sends, to read what it was told.
constexpr milliseconds kDrainTime{2000};
// What is published while nobody takes it; the loop takes it at once unless something is wrong.
constexpr uint64_t kMostMessageBytes = uint64_t{64} << 20;

Error failed(std::string_view what) {
  return {ErrorCode::io, fmt::format("{}: {}.", what, std::strerror(errno))};  // NOLINT
}

}  // namespace

Result<std::unique_ptr<ConnectionLoop>> ConnectionLoop::start(ConnectionLoopOptions options) {
  std::unique_ptr<ConnectionLoop> out(new ConnectionLoop(std::move(options)));
  SMD_RETURN_IF_ERROR(out->listen());
  const SignalsBlocked none;
  ConnectionLoop* const self = out.get();
  out->thread_ = std::thread([self] { self->loop(); });
  for (size_t i = 0; i < out->options_.workers; ++i) {
    out->workers_.emplace_back([self] { self->work(); });
  }
  return out;
}

ConnectionLoop::~ConnectionLoop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    jobs_.clear();
  }
  has_work_.notify_all();
  if (thread_.joinable()) {
    wake();
    thread_.join();
  }
  for (std::thread& worker : workers_) worker.join();
  for (const auto& [id, connection] : connections_) ::close(connection.socket);
  for (const int file : {listener_, epoll_, wake_}) {
    if (file >= 0) ::close(file);
  }
}

Status ConnectionLoop::listen() {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int problem = ::getaddrinfo(options_.host.c_str(), fmt::format("{}", options_.port).c_str(),
                                    &hints, &found);
  if (problem != 0) {
    return Error{ErrorCode::invalid_argument, fmt::format("'{}' is no address to serve at: {}.",
                                                          options_.host, ::gai_strerror(problem))};
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> held(found, ::freeaddrinfo);
  listener_ = ::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener_ < 0) return failed("There is no socket to be had");
  const int yes = 1;
  ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(listener_, found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(listener_, kBacklog) != 0) {
    return failed(fmt::format("Nothing can be served at {} port {}", options_.host, options_.port));
  }
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return failed("The socket has no address");
  }
  port_ = ntohs(address.ss_family == AF_INET6
                    ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                    : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  wake_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (epoll_ < 0 || wake_ < 0) return failed("The system has no more files to give");
  for (const auto& [file, id] : {std::pair{listener_, kListenerId}, {wake_, kWakeId}}) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = id}};
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, file, &event) != 0) return failed("epoll");
  }
  return {};
}

void ConnectionLoop::wake() {
  const uint64_t one = 1;
  // A full counter is awake already.
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
}

void ConnectionLoop::publish(std::string run, std::string text) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_ || message_bytes_ > kMostMessageBytes) return;
    message_bytes_ += text.size();
    messages_.push_back({std::move(run), std::move(text)});
  }
  wake();
}

void ConnectionLoop::work() {
  HttpParser parser(options_.handler);
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      has_work_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
      if (stop_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    HttpParser::Outcome outcome = parser.answer(job.head);
    {
      const std::lock_guard lock(mutex_);
      done_.push_back({job.id, std::move(outcome)});
    }
    wake();
  }
}

void ConnectionLoop::loop() {
  epoll_event events[kMostEvents];
  Time next_check = steady_clock::now() + kTick;
  for (;;) {
    const int count = ::epoll_wait(epoll_, events, kMostEvents, static_cast<int>(kTick.count()));
    const Time now = steady_clock::now();
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
    }
    for (int i = 0; i < count; ++i) {
      const uint64_t id = events[i].data.u64;
      if (id == kListenerId) {
        accept_all(now);
      } else if (id == kWakeId) {
        take_news(now);
      } else {
        handle(id, events[i].events, now);
      }
    }
    if (now < next_check) continue;
    next_check = now + kTick;
    check_deadlines(now);
    if (!is_accepting_) {
      epoll_event event{.events = EPOLLIN, .data = {.u64 = kListenerId}};
      is_accepting_ = ::epoll_ctl(epoll_, EPOLL_CTL_MOD, listener_, &event) == 0;
    }
  }
}

void ConnectionLoop::accept_all(Time now) {
  for (;;) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) {
        // No files left: others must end first, so look again after a while.
        epoll_event event{.events = 0, .data = {.u64 = kListenerId}};
        is_accepting_ = ::epoll_ctl(epoll_, EPOLL_CTL_MOD, listener_, &event) != 0;
      }
      return;
    }
    const int yes = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const uint64_t id = next_id_++;
    Connection& connection = connections_[id];
    connection.socket = socket;
    connection.deadline = now + options_.head_time;
    epoll_event event{.events = EPOLLIN, .data = {.u64 = id}};
    connection.watched = EPOLLIN;
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event) != 0) {
      end(id);
      continue;
    }
    if (connections_.size() > options_.most_connections) {
      respond(connection, plain_response(503, "busy", "There are too many connections."), true,
              now);
      if (!send_pending(connection, now)) {
        end(id);
      } else {
        watch(id, connection, connection.phase == Phase::writing ? EPOLLOUT : EPOLLIN);
      }
    }
  }
}

void ConnectionLoop::watch(uint64_t id, Connection& connection, uint32_t events) {
  if (connection.watched == events) return;
  epoll_event event{.events = events, .data = {.u64 = id}};
  if (::epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.socket, &event) == 0)
    connection.watched = events;
}

void ConnectionLoop::end(uint64_t id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  if (found->second.phase == Phase::listening) --listener_count_;
  pending_bytes_ -= found->second.output.size();
  ::close(found->second.socket);
  connections_.erase(found);
}

void ConnectionLoop::respond(Connection& connection, std::string bytes, bool is_closing, Time now) {
  pending_bytes_ += bytes.size();
  connection.output = std::move(bytes);
  connection.sent = 0;
  connection.is_closing = is_closing;
  connection.phase = Phase::writing;
  connection.deadline = now + options_.stall_time;
}

void ConnectionLoop::take_news(Time now) {
  uint64_t ignored = 0;
  [[maybe_unused]] const ssize_t got = ::read(wake_, &ignored, sizeof ignored);
  std::vector<Done> done;
  std::vector<Message> messages;
  {
    const std::lock_guard lock(mutex_);
    done.swap(done_);
    messages.swap(messages_);
    message_bytes_ = 0;
  }
  for (Done& one : done) take_done(std::move(one), now);
  if (messages.empty()) return;
  std::vector<uint64_t> ended;
  for (auto& [id, connection] : connections_) {
    if (connection.phase != Phase::listening) continue;
    for (const Message& message : messages) {
      const bool is_for_it =
          message.run.empty() || connection.run.empty() || message.run == connection.run;
      if (!is_for_it) continue;
      connection.output += message.text;
      pending_bytes_ += message.text.size();
      connection.beat = now + options_.beat_time;
    }
    if (!send_pending(connection, now)) {
      ended.push_back(id);
    } else {
      watch(id, connection, EPOLLIN | (connection.output.empty() ? 0u : uint32_t{EPOLLOUT}));
    }
  }
  for (const uint64_t id : ended) end(id);
}

void ConnectionLoop::take_done(Done done, Time now) {
  const auto found = connections_.find(done.id);
  // The client did not wait.
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if (done.outcome.is_event_stream) {
    if (listener_count_ >= options_.most_listeners) {
      respond(connection, plain_response(503, "busy", "There are too many listeners."), true, now);
    } else {
      connection.phase = Phase::listening;
      ++listener_count_;
      connection.run = std::move(done.outcome.event_run);
      connection.output = event_stream_head() + options_.hello();
      connection.sent = 0;
      connection.input.clear();
      pending_bytes_ += connection.output.size();
      connection.deadline = now + options_.stall_time;
      connection.beat = now + options_.beat_time;
    }
  } else if (pending_bytes_ + done.outcome.bytes.size() > options_.most_pending_bytes) {
    respond(connection, plain_response(503, "busy", "Too many answers wait for their clients."),
            true, now);
  } else {
    respond(connection, std::move(done.outcome.bytes), done.outcome.is_closed, now);
  }
  handle(done.id, EPOLLOUT, now);
}

void ConnectionLoop::handle(uint64_t id, uint32_t events, Time now) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
    end(id);
    return;
  }
  if ((events & EPOLLIN) != 0 && !receive(id, connection, now)) {
    end(id);
    return;
  }
  if (!connection.output.empty() && !send_pending(connection, now)) {
    end(id);
    return;
  }
  // What a response left behind may hold the next request.
  if (connection.phase == Phase::reading && !dispatch(id, connection, now)) {
    end(id);
    return;
  }
  uint32_t wanted = 0;
  switch (connection.phase) {
    case Phase::reading:
    case Phase::draining: wanted = EPOLLIN; break;
    case Phase::working: wanted = EPOLLRDHUP; break;
    case Phase::writing: wanted = EPOLLOUT; break;
    case Phase::listening:
      wanted = EPOLLIN | (connection.output.empty() ? 0u : uint32_t{EPOLLOUT});
      break;
  }
  // Nobody asks a client that has gone while its answer is being made; it shows when it is sent.
  if (connection.phase == Phase::working && (events & EPOLLRDHUP) != 0) wanted = 0;
  watch(id, connection, wanted);
}

bool ConnectionLoop::receive(uint64_t id, Connection& connection, Time now) {
  char buffer[kReadBytes];
  // Whoever sends without end gets its turn again after the others.
  for (int turn = 0; turn < kMostReads; ++turn) {
    const ssize_t count = ::recv(connection.socket, buffer, sizeof buffer, 0);
    if (count == 0) return false;
    if (count < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
    if (connection.phase != Phase::reading) continue;  // listeners have nothing to say
    if (!connection.is_started) {
      connection.is_started = true;
      connection.deadline = now + options_.head_time;
    }
    connection.input.append(buffer, static_cast<size_t>(count));
    if (!dispatch(id, connection, now)) return false;
    if (connection.phase != Phase::reading) return true;
  }
  return true;
}

bool ConnectionLoop::dispatch(uint64_t id, Connection& connection, Time now) {
  // Empty lines between requests are allowed.
  const size_t begin = connection.input.find_first_not_of("\r\n");
  connection.input.erase(0, std::min(begin, connection.input.size()));
  const size_t size = head_size(connection.input);
  if (size > kMostHeadBytes || (size == 0 && connection.input.size() > kMostHeadBytes)) {
    respond(connection, plain_response(431, "too_large", "The head of the request is too long."),
            true, now);
    return true;
  }
  if (size == 0) return true;
  Job job{.id = id, .head = connection.input.substr(0, size)};
  connection.input.erase(0, size);
  connection.is_started = false;
  connection.phase = Phase::working;
  connection.deadline = Time::max();
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  has_work_.notify_one();
  return true;
}

bool ConnectionLoop::send_pending(Connection& connection, Time now) {
  while (connection.sent < connection.output.size()) {
    const ssize_t count = ::send(connection.socket, connection.output.data() + connection.sent,
                                 connection.output.size() - connection.sent, MSG_NOSIGNAL);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) return false;
      if (connection.phase != Phase::listening) return true;
      pending_bytes_ -= connection.sent;
      connection.output.erase(0, connection.sent);
      connection.sent = 0;
      return connection.output.size() <= options_.most_waiting_bytes;
    }
    connection.sent += static_cast<size_t>(count);
    connection.deadline = now + options_.stall_time;
  }
  pending_bytes_ -= connection.output.size();
  connection.output = {};
  connection.sent = 0;
  if (connection.phase != Phase::writing) return true;
  if (connection.is_closing) {
    // Closing a socket with bytes that nobody read would tear the response out of the client's
    // hands.
    ::shutdown(connection.socket, SHUT_WR);
    connection.phase = Phase::draining;
    connection.deadline = now + kDrainTime;
    return true;
  }
  connection.phase = Phase::reading;
  connection.deadline = now + options_.idle_time;
  return true;
}

void ConnectionLoop::check_deadlines(Time now) {
  std::vector<uint64_t> ended;
  for (auto& [id, connection] : connections_) {
    if (connection.phase == Phase::listening) {
      if (connection.output.empty() && now >= connection.beat) {
        connection.output = ":\n\n";
        pending_bytes_ += connection.output.size();
        connection.beat = now + options_.beat_time;
        connection.deadline = now + options_.stall_time;
        if (!send_pending(connection, now)) {
          ended.push_back(id);
          continue;
        }
        watch(id, connection, EPOLLIN | (connection.output.empty() ? 0u : uint32_t{EPOLLOUT}));
      }
      if (!connection.output.empty() && now >= connection.deadline) ended.push_back(id);
    } else if (now >= connection.deadline) {
      ended.push_back(id);
    }
  }
  for (const uint64_t id : ended) end(id);
}

}  // namespace smd::server
