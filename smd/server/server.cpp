#include "smd/server/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "smd/server/connection_loop.h"
#include "smd/server/service.h"
#include "smd/server/site.h"

namespace smd::server {
namespace {

constexpr size_t kLeastWorkers = 4;
constexpr size_t kMostWorkers = 16;
constexpr size_t kMostTokenBytes = 256;

Status check_token(const ServerOptions& options) {
  constexpr std::string_view kAllowed =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-._~";
  if (options.token.empty() && !is_loopback(options.host)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("The address '{}' can be reached by others, so a token is needed.",
                             options.host)};
  }
  if (options.token.size() > kMostTokenBytes ||
      options.token.find_first_not_of(kAllowed) != std::string::npos) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("A token has at most {} letters, digits and characters of '-._~'.",
                             kMostTokenBytes)};
  }
  return {};
}

}  // namespace

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos);
}

Server::Server(ServerOptions options) : options_(std::move(options)) {}

Server::~Server() {
  // News come from the site and go to the loop, requests the other way: first nobody asks any more,
  // then nobody tells.
  if (site_ && loop_) site_->stop();
  loop_.reset();
}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options) {
  SMD_RETURN_IF_ERROR(check_token(options));
  std::unique_ptr<Server> out(new Server(std::move(options)));
  SMD_TRY(out->site_, Site::open({.locations = out->options_.locations,
                                  .version = out->options_.version,
                                  .clock = out->options_.clock}));
  const Site& site = *out->site_;
  out->service_ = std::make_unique<Service>(
      site,
      ServiceOptions{.token = out->options_.token, .is_loopback = is_loopback(out->options_.host)});
  const Service& service = *out->service_;
  SMD_TRY(
      out->loop_,
      ConnectionLoop::start(
          {.host = out->options_.host,
           .port = out->options_.port,
           .workers =
               std::clamp<size_t>(std::thread::hardware_concurrency(), kLeastWorkers, kMostWorkers),
           .handler = [&service](const HttpRequest& request) { return service.answer(request); },
           .hello = [&site] { return event_text(site.hello()); }}));
  ConnectionLoop* const loop = out->loop_.get();
  out->site_->start([loop](const News& news) { loop->publish(news.run, event_text(news)); });
  return out;
}

uint16_t Server::port() const { return loop_->port(); }
size_t Server::listener_count() const { return loop_->listener_count(); }
size_t Server::run_count() const { return site_->runs().runs().size(); }

std::string Server::address() const {
  // Nobody can open the address that stands for all of them.
  const std::string& host = options_.host;
  const bool is_any = host == "0.0.0.0" || host == "::";
  const std::string shown = is_any                                ? "localhost"
                            : host.find(':') != std::string::npos ? fmt::format("[{}]", host)
                                                                  : host;
  return fmt::format("http://{}:{}/{}", shown, port(),
                     options_.token.empty() ? "" : "?token=" + options_.token);
}

}  // namespace smd::server
