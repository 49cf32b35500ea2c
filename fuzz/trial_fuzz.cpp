// Any two files in the places of an index and an event file give steps and values or errors, with
// and without checksums, and never memory beyond their own size.

#include <string>

#include "fuzz/property.h"
#include "smd/format/file_name.h"
#include "smd/trial/trial.h"

namespace {

using namespace smd;

void put(storage::Storage& storage, const std::string& path, std::string_view content) {
  SMD_FUZZ_REQUIRE(storage.put(path, as_bytes(content), storage::Put::always, {}).ok());
}

bool is_expected(const Error& error) {
  return error.code != ErrorCode::internal && !error.message.empty();
}

void read_everything(Trial& trial) {
  const auto now = trial.snapshot();
  for (size_t i = 0; i < now->row_count(); ++i) {
    const StepRow& row = now->row(i);
    SMD_FUZZ_REQUIRE(now->find_row(row.info.step) == &row);
    for (uint32_t tensor : now->tensors(row)) {
      const std::string& name = now->names().tensors[tensor];
      SMD_FUZZ_REQUIRE(now->holds(row, tensor) && !now->workers_of(row, tensor).empty());
      if (const auto at = now->find(row, tensor, Slot::value(), std::nullopt)) {
        const auto value = trial.read(*now, *at);
        SMD_FUZZ_REQUIRE(value.ok() || is_expected(value.error()));
      }
      const auto mean = trial.reduction(name, "mean", {.step = row.info.step});
      SMD_FUZZ_REQUIRE(mean.ok() || is_expected(mean.error()));
      const auto series = trial.series(name, {.incomplete = true});
      SMD_FUZZ_REQUIRE(series.ok() || is_expected(series.error()));
    }
  }
}

}  // namespace

// The index, a zero byte, the events.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = as_text(fuzz::input_bytes(data, size));
  const size_t split = std::min(input.find('\0'), input.size());
  const auto storage = storage::memory_storage();
  put(*storage, format::index_file_name(0, "worker_0"), input.substr(0, split));
  put(*storage, format::event_file_name(0, "worker_0"),
      split < input.size() ? input.substr(split + 1) : std::string_view());
  put(*storage, format::collections_file_name("worker_0"), CollectionSet().to_json());
  for (bool check : {false, true}) {
    auto trial = Trial::open(storage, {.check = check, .end_delay_secs = 0});
    SMD_FUZZ_REQUIRE(trial.ok());
    read_everything(**trial);
  }
  return 0;
}
