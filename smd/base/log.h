#pragma once

// Where messages for people go. Injected: C++ programs default to stderr, the Python package
// forwards to the logger `smdebug`. Only caller threads log; the writer thread returns errors.

#include <memory>
#include <string_view>

namespace smd {

enum class LogLevel { debug, info, warning, error };

class Log {
 public:
  virtual ~Log() = default;
  // Must not throw and may be called from any thread that calls into the core.
  virtual void write(LogLevel level, std::string_view message) = 0;

  void info(std::string_view message) { write(LogLevel::info, message); }
  void warning(std::string_view message) { write(LogLevel::warning, message); }
  void error(std::string_view message) { write(LogLevel::error, message); }
};

// Timestamped lines on stderr.
std::shared_ptr<Log> stderr_log();
// Says nothing.
std::shared_ptr<Log> null_log();

}  // namespace smd
