#pragma once

// All connections of a server. One thread waits for all sockets at once; requests that are there as
// a whole go to a few workers, and what they answer is sent as fast as each client reads. So no
// client, however slow, holds anything that another one needs, and a listener costs a few hundred
// bytes. publish() may be called by any thread; the rest by the one that made it.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "smd/base/result.h"
#include "smd/server/http.h"

namespace smd::server {

struct ConnectionLoopOptions {
  std::string host;
  uint16_t port = 0;  // 0: any that is free
  size_t workers = 4;
  HttpParser::Handler handler;
  // What a listener gets first; called by the thread of the loop.
  std::function<std::string()> hello;

  size_t most_connections = 1000;
  size_t most_listeners = 600;
  // A listener that so much waits for is let go.
  size_t most_waiting_bytes = size_t{1} << 20;
  // Of all responses that wait for their clients.
  uint64_t most_pending_bytes = uint64_t{1} << 30;
  std::chrono::milliseconds head_time{10'000};   // for a request to arrive
  std::chrono::milliseconds idle_time{60'000};   // between two of them
  std::chrono::milliseconds stall_time{30'000};  // without a byte being taken
  std::chrono::milliseconds beat_time{15'000};   // between two signs of life to listeners
};

class ConnectionLoop final {
 public:
  // Listens when this returns. io: the address cannot be had. invalid_argument: it is none.
  static Result<std::unique_ptr<ConnectionLoop>> start(ConnectionLoopOptions options);
  // Ends all connections.
  ~ConnectionLoop();

  uint16_t port() const { return port_; }
  // Sends the text to all listeners of the run, and to those of all runs; empty: to everybody.
  void publish(std::string run, std::string text);
  size_t listener_count() const { return listener_count_; }

 private:
  using Time = std::chrono::steady_clock::time_point;

  enum class Phase : uint8_t { reading, working, writing, listening, draining };
  struct Connection {
    int socket = -1;
    Phase phase = Phase::reading;
    uint32_t watched = 0;  // events that the kernel reports
    bool is_closing = false;
    bool is_started = false;  // some byte of the request is there
    std::string input;
    std::string output;
    size_t sent = 0;
    std::string run;  // of a listener
    Time deadline;
    Time beat;
  };
  struct Job {
    uint64_t id = 0;
    std::string head;
  };
  struct Done {
    uint64_t id = 0;
    HttpParser::Outcome outcome;
  };
  struct Message {
    std::string run;
    std::string text;
  };

  explicit ConnectionLoop(ConnectionLoopOptions options) : options_(std::move(options)) {}
  Status listen();

  void loop();
  void work();
  void accept_all(Time now);
  void take_news(Time now);
  void take_done(Done done, Time now);
  void handle(uint64_t id, uint32_t events, Time now);
  // Each returns false if the connection has ended.
  bool receive(uint64_t id, Connection& connection, Time now);
  bool send_pending(Connection& connection, Time now);
  bool dispatch(uint64_t id, Connection& connection, Time now);
  void respond(Connection& connection, std::string bytes, bool is_closing, Time now);
  void watch(uint64_t id, Connection& connection, uint32_t events);
  void end(uint64_t id);
  void check_deadlines(Time now);
  void wake();

  const ConnectionLoopOptions options_;
  uint16_t port_ = 0;
  int listener_ = -1;
  int epoll_ = -1;
  int wake_ = -1;

  // --- of the thread of the loop
  std::unordered_map<uint64_t, Connection> connections_;
  uint64_t next_id_ = 2;
  uint64_t pending_bytes_ = 0;
  bool is_accepting_ = true;

  std::atomic<size_t> listener_count_ = 0;
  std::mutex mutex_;
  std::condition_variable has_work_;
  bool stop_ = false;  // guarded by mutex_, like all below
  std::deque<Job> jobs_;
  std::vector<Done> done_;
  std::vector<Message> messages_;
  uint64_t message_bytes_ = 0;
  std::vector<std::thread> workers_;  // not guarded
  std::thread thread_;
};

}  // namespace smd::server
