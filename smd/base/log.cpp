#include "smd/base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace smd {
namespace {

class StderrLog final : public Log {
 public:
  StderrLog() : logger_("smdebug", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger_.set_pattern("[%Y-%m-%d %H:%M:%S.%e %P %^%l%$] %v");
  }
  void write(LogLevel level, std::string_view message) override {
    static constexpr spdlog::level::level_enum kLevels[] = {
        spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err};
    logger_.log(kLevels[static_cast<int>(level)],
                spdlog::string_view_t(message.data(), message.size()));
  }

 private:
  spdlog::logger logger_;
};

class NullLog final : public Log {
 public:
  void write(LogLevel, std::string_view) override {}
};

}  // namespace

std::shared_ptr<Log> stderr_log() { return std::make_shared<StderrLog>(); }
std::shared_ptr<Log> null_log() { return std::make_shared<NullLog>(); }

}  // namespace smd
