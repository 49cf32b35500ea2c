#pragma once

// Requests and responses as plain values, and the parser between them and bytes, which is
// cpp-httplib's. Knows no sockets.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace smd::server {

// Larger heads get 431.
inline constexpr size_t kMostHeadBytes = size_t{32} << 10;

struct HttpRequest {
  std::string method;
  std::string target;  // not decoded
  // The first one of that name, in any case; empty: none.
  std::function<std::string(const std::string& name)> header;
};

struct HttpResponse {
  int status = 200;
  std::string content_type;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  // Nothing of this is sent as it is: the connection becomes that of a listener.
  bool is_event_stream = false;
  std::string event_run;  // that the listener wants to hear of; empty: all
};

// Where the head of a request ends: the bytes up to and with the empty line; 0: not there yet.
size_t head_size(std::string_view bytes);

// One per thread.
class HttpParser final {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  explicit HttpParser(Handler handler);
  ~HttpParser();

  struct Outcome {
    std::string bytes;      // to be sent
    bool is_closed = true;  // the connection ends after them
    bool is_event_stream = false;
    std::string event_run;
  };
  // `head`: a whole one, with its empty line. Whatever it holds, there is an outcome.
  Outcome answer(std::string_view head);

 private:
  class Server;
  const std::unique_ptr<Server> server_;
};

// The bytes of a response that the loop itself gives, for connections it refuses.
std::string plain_response(int status, std::string_view code, std::string_view message);
// The head of a stream of events.
std::string event_stream_head();
// Headers that every response has.
const std::vector<std::pair<std::string, std::string>>& security_headers();

}  // namespace smd::server
