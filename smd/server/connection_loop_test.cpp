#include "smd/server/connection_loop.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>

namespace smd::server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// More than the kernel keeps for a connection.
constexpr size_t kLarge = size_t{12} << 20;

// A client with a real socket, whose reads end after some seconds.
class Client final {
 public:
  explicit Client(uint16_t port, int receive_bytes = 0) {
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (receive_bytes > 0) {
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(std::string_view text) {
    ASSERT_EQ(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL), ssize_t(text.size()));
  }
  void get(std::string_view target) {
    send("GET " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  // Until the text is there, or nothing more comes.
  std::string read_until(std::string_view text) {
    while (received_.find(text) == std::string::npos && receive()) {
    }
    return std::exchange(received_, {});
  }
  // Until the other side ends the connection.
  std::string read_all() {
    while (receive()) {
    }
    return std::exchange(received_, {});
  }

 private:
  bool receive() {
    char buffer[65536];
    const ssize_t count = ::recv(socket_, buffer, sizeof buffer, 0);
    if (count > 0) received_.append(buffer, static_cast<size_t>(count));
    return count > 0;
  }

  int socket_ = -1;
  std::string received_;
};

class ConnectionLoopTest : public testing::Test {
 protected:
  ConnectionLoopTest() {
    options.host = "127.0.0.1";
    options.workers = 2;
    options.hello = [] { return std::string("event: hello\ndata: {}\n\n"); };
    options.handler = [](const HttpRequest& request) {
      HttpResponse out{.content_type = "text/plain", .body = request.method + " " + request.target};
      out.is_event_stream = request.target.starts_with("/events");
      if (request.target == "/events/a") out.event_run = "a";
      if (request.target == "/large") out.body = std::string(kLarge, 'x');
      return out;
    };
  }
  void start() {
    auto started = ConnectionLoop::start(options);
    ASSERT_TRUE(started.ok()) << started.error().message;
    loop = std::move(*started);
  }
  ConnectionLoopOptions options;
  std::unique_ptr<ConnectionLoop> loop;
};

TEST_F(ConnectionLoopTest, requests_follow_each_other_on_one_connection) {
  start();
  Client client(loop->port());
  client.get("/one");
  EXPECT_THAT(client.read_until("GET /one"), StartsWith("HTTP/1.1 200"));
  // Two at once, the second in pieces.
  client.send("GET /two HTTP/1.1\r\nHost: localhost\r\n\r\nGET /thr");
  EXPECT_THAT(client.read_until("GET /two"), HasSubstr("nosniff"));
  client.send("ee HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(client.read_until("GET /three"), HasSubstr("GET /three"));
}

TEST_F(ConnectionLoopTest, a_body_is_refused_without_being_read) {
  start();
  Client client(loop->port());
  client.send("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999\r\n\r\nabc");
  EXPECT_THAT(client.read_all(), HasSubstr("Connection: close"));
}

TEST_F(ConnectionLoopTest, nonsense_and_long_heads_end_the_connection_with_a_word) {
  start();
  Client nonsense(loop->port());
  nonsense.send("hello\r\n\r\n");
  EXPECT_THAT(nonsense.read_all(), StartsWith("HTTP/1.1 400"));
  Client endless(loop->port());
  endless.send("GET / HTTP/1.1\r\nX: " + std::string(kMostHeadBytes, 'x'));
  EXPECT_THAT(endless.read_all(), StartsWith("HTTP/1.1 431"));
  Client ranges(loop->port());
  std::string bytes = "bytes=";
  for (int i = 0; i < 2000; ++i) bytes += "0-1,";
  ranges.send("GET /r HTTP/1.1\r\nHost: localhost\r\nRange: " + bytes +
              "\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(ranges.read_all(), StartsWith("HTTP/1.1 200"));
}

TEST_F(ConnectionLoopTest, a_request_that_never_ends_is_ended) {
  options.head_time = std::chrono::milliseconds(100);
  start();
  Client client(loop->port());
  client.send("GET / HT");
  EXPECT_EQ(client.read_all(), "");
}

TEST_F(ConnectionLoopTest, clients_that_do_not_read_keep_nobody_waiting) {
  start();
  std::vector<std::unique_ptr<Client>> lazy;
  for (int i = 0; i < 8; ++i) {
    lazy.push_back(std::make_unique<Client>(loop->port(), 65536));
    lazy.back()->get("/large");
  }
  std::vector<std::unique_ptr<Client>> slow;
  for (int i = 0; i < 8; ++i) {
    slow.push_back(std::make_unique<Client>(loop->port()));
    slow.back()->send("GET /slow");
  }
  Client client(loop->port());
  for (int i = 0; i < 20; ++i) {
    client.get("/quick");
    EXPECT_THAT(client.read_until("GET /quick"), HasSubstr("GET /quick"));
  }
  // And whoever reads at last gets everything.
  lazy[0]->send("GET /end HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_GT(lazy[0]->read_all().size(), kLarge);
}

TEST_F(ConnectionLoopTest, clients_that_stop_reading_are_ended) {
  options.stall_time = std::chrono::milliseconds(100);
  options.beat_time = std::chrono::milliseconds(200);
  start();
  Client client(loop->port(), 4096);
  client.get("/large");
  // Signs of life tell that the loop has looked at the clock.
  Client other(loop->port());
  other.get("/events");
  for (int i = 0; i < 3; ++i) other.read_until("\n\n:\n\n");
  EXPECT_LT(client.read_all().size(), kLarge);
}

TEST_F(ConnectionLoopTest, listeners_hear_what_is_published_about_their_run) {
  start();
  Client all(loop->port());
  Client one(loop->port());
  all.get("/events");
  one.get("/events/a");
  EXPECT_THAT(all.read_until("event: hello\ndata: {}\n\n"), HasSubstr("text/event-stream"));
  EXPECT_THAT(one.read_until("event: hello\ndata: {}\n\n"), HasSubstr("200 OK"));
  loop->publish("b", "data: b\n\n");
  loop->publish("a", "data: a\n\n");
  loop->publish("", "data: all\n\n");
  EXPECT_EQ(all.read_until("all\n\n"), "data: b\n\ndata: a\n\ndata: all\n\n");
  EXPECT_EQ(one.read_until("all\n\n"), "data: a\n\ndata: all\n\n");
}

TEST_F(ConnectionLoopTest, hundreds_of_listeners_cost_no_thread_and_leave_no_trace) {
  start();
  std::vector<std::unique_ptr<Client>> listeners;
  for (int i = 0; i < 300; ++i) {
    listeners.push_back(std::make_unique<Client>(loop->port()));
    listeners.back()->get("/events");
  }
  for (const auto& one : listeners) EXPECT_THAT(one->read_until("hello"), HasSubstr("hello"));
  EXPECT_EQ(loop->listener_count(), 300u);
  loop->publish("", "data: 1\n\n");
  for (const auto& one : listeners)
    EXPECT_THAT(one->read_until("data: 1\n\n"), HasSubstr("data: 1"));
  listeners.clear();
  while (loop->listener_count() > 0) std::this_thread::yield();
}

TEST_F(ConnectionLoopTest, listeners_beyond_the_limit_and_deaf_ones_are_let_go) {
  options.most_listeners = 1;
  options.most_waiting_bytes = 1000;
  start();
  Client deaf(loop->port(), 4096);
  deaf.get("/events");
  while (loop->listener_count() == 0) std::this_thread::yield();
  Client late(loop->port());
  late.get("/events");
  EXPECT_THAT(late.read_all(), StartsWith("HTTP/1.1 503"));
  const std::string much(100'000, 'x');
  while (loop->listener_count() > 0) loop->publish("", much);
}

TEST_F(ConnectionLoopTest, listeners_get_signs_of_life) {
  options.beat_time = std::chrono::milliseconds(10);
  start();
  Client client(loop->port());
  client.get("/events");
  EXPECT_THAT(client.read_until("\n\n:\n\n"), HasSubstr("\n\n:\n\n"));
}

TEST_F(ConnectionLoopTest, an_address_that_somebody_has_is_an_error) {
  start();
  options.port = loop->port();
  const auto second = ConnectionLoop::start(options);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::io);
}

}  // namespace
}  // namespace smd::server
