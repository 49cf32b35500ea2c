#include "smd/hook/flight_run.h"

#include "smd/format/file_name.h"
#include "smd/storage/subfolder.h"
#include "smd/writer/sinks/original.h"

namespace smd {

FlightRun::FlightRun(const FlightRunOptions& options)
    : folder_(options.folder),
      worker_(options.worker),
      writer_(original_sink({.storage = storage::subfolder_storage(options.run, options.folder),
                             .worker = options.worker,
                             .exclusive = false,
                             .durable = options.durable}),
              options.writer) {}

void FlightRun::write(const FlightRecorder& recorder, std::span<const StepInfo> steps,
                      std::string_view collections_json) {
  writer_.put(format::collections_file_name(worker_), collections_json);
  for (const StepInfo& step : steps) {
    writer_.begin_step(step);
    recorder.write_step(step.step, writer_);
    writer_.end_step();
  }
}

Status FlightRun::close() {
  writer_.end_job({.num_workers = 1});
  return writer_.close();
}

}  // namespace smd
