#pragma once

// Steps of a flight recorder that cannot become steps of the run itself, because later ones are
// there or other workers have none, as a run of their own in a folder below it. Written in the
// original layout, whatever the run's is. One thread at a time.

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "smd/hook/flight_recorder.h"
#include "smd/storage/storage.h"
#include "smd/types/durability.h"
#include "smd/types/step.h"
#include "smd/writer/writer.h"

namespace smd {

struct FlightRunOptions {
  std::shared_ptr<storage::Storage> run;
  std::string folder;  // below the run
  std::string worker;  // as it stands in file names
  Durability durable = Durability::off;
  WriterOptions writer;
};

class FlightRun final {
 public:
  explicit FlightRun(const FlightRunOptions& options);

  const std::string& folder() const { return folder_; }
  // `collections_json` is the content of the collections file.
  void write(const FlightRecorder& recorder, std::span<const StepInfo> steps,
             std::string_view collections_json);
  bool wait_until_written(std::chrono::milliseconds most) {
    return writer_.wait_until_written(most);
  }
  // Ends the run for readers. The first error of its life.
  Status close();

 private:
  const std::string folder_;
  const std::string worker_;
  Writer writer_;
};

}  // namespace smd
