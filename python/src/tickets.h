#pragma once

// Names of tensors that come in the same list again and again. One thread at a time.

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "smd/hook/ticket.h"

namespace smdebug {

class Tickets final {
 public:
  explicit Tickets(std::vector<std::string> names) {
    for (std::string& name : names) tickets_.emplace_back(std::move(name));
  }
  size_t size() const { return tickets_.size(); }
  smd::Ticket& operator[](size_t i) { return tickets_[i]; }
  const smd::Ticket& operator[](size_t i) const { return tickets_[i]; }

 private:
  std::deque<smd::Ticket> tickets_;
};

}  // namespace smdebug
