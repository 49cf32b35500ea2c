#pragma once

// Requests become responses: who may ask, which route answers, what the browser is allowed to do
// with it. Thread-safe.

#include <memory>
#include <string>
#include <string_view>

#include "smd/server/http.h"
#include "smd/server/preparation.h"
#include "smd/server/query.h"
#include "smd/server/site.h"

namespace smd::server {

struct ServiceOptions {
  std::string token;        // empty: none is needed
  bool is_loopback = true;  // reached from this machine only, so that other host names are a trick
};

class Service final {
 public:
  // Borrows the site.
  Service(const Site& site, ServiceOptions options);

  HttpResponse answer(const HttpRequest& request) const;

 private:
  HttpResponse answer_route(const HttpRequest& request, std::string_view path, Query query) const;
  HttpResponse answer_events(Query query) const;
  HttpResponse page(bool sets_cookie) const;
  // The run that the page opens by itself; null: there is none.
  std::shared_ptr<ServedRun> newest_run() const;
  // Makes what the page asks for first, while the browser still reads it.
  void prepare() const;
  // Whether the request has the token; `from_query`: in its address.
  bool is_allowed(const HttpRequest& request, const Query& query, bool& from_query) const;

  const Site& site_;
  const ServiceOptions options_;
  mutable Preparation preparation_;  // last, as its thread uses the others
};

// An event as listeners get it.
std::string event_text(const News& news);
// The status that an error gets.
HttpResponse problem(const Error& error);
// Whether a Host header names this machine.
bool is_local_host(std::string_view host);

}  // namespace smd::server
