#pragma once

// A server of runs: what `smdebug serve` starts. Answers over HTTP until it is destroyed. One
// thread at a time may call it; what it does, it does on its own threads.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "smd/base/clock.h"
#include "smd/base/result.h"

namespace smd::server {

class ConnectionLoop;
class Service;
class Site;

struct ServerOptions {
  // Runs and folders of runs, which need not be there yet; URIs of runs.
  std::vector<std::string> locations;
  std::string host = "127.0.0.1";
  uint16_t port = 0;  // 0: any that is free
  // Must not be empty unless the host is this machine's own address. Letters, digits, "-._~".
  std::string token{};
  std::string version{};  // of the program
  std::shared_ptr<const Clock> clock = system_clock();
};

class Server final {
 public:
  // Answers when this returns. invalid_argument: of the options. io: the address cannot be had.
  static Result<std::unique_ptr<Server>> start(ServerOptions options);
  ~Server();

  uint16_t port() const;
  // "http://127.0.0.1:8420/", with the token if there is one.
  std::string address() const;
  size_t run_count() const;
  size_t listener_count() const;

 private:
  explicit Server(ServerOptions options);

  const ServerOptions options_;
  std::unique_ptr<Site> site_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<ConnectionLoop> loop_;
};

// Whether only this machine can reach the address.
bool is_loopback(const std::string& host);

}  // namespace smd::server
