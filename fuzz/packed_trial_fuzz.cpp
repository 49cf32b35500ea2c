// Any entries of a log beside any segment give steps and values or errors, with and without
// checksums, and never memory beyond their own size; verify and repair survive them, too.
//
// The input is a list of entries, each after its length in two bytes; from an entry on that would
// end outside, the rest is the segment. Frames of entries are made here, as no mutation would find
// a checksum.

#include <string>

#include "fuzz/property.h"
#include "smd/format/file_name.h"
#include "smd/format/packed_file_name.h"
#include "smd/format/tfrecord.h"
#include "smd/trial/trial.h"
#include "smd/trial/verify.h"

namespace {

using namespace smd;

constexpr std::string_view kWriter = "worker_0.00000000000001deadbeef";

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
    for (uint32_t tensor : now->tensors(row)) {
      const std::string& name = now->names().tensors[tensor];
      SMD_FUZZ_REQUIRE(now->holds(row, tensor) && !now->workers_of(row, tensor).empty());
      if (const auto at = now->find(row, tensor, Slot::value(), std::nullopt)) {
        const auto value = trial.read(*now, *at);
        SMD_FUZZ_REQUIRE(value.ok() || is_expected(value.error()));
        const auto about = trial.describe(*now, *at);
        SMD_FUZZ_REQUIRE(about.ok() || is_expected(about.error()));
      }
      const auto mean = trial.reduction(name, "mean", {.step = row.info.step});
      SMD_FUZZ_REQUIRE(mean.ok() || is_expected(mean.error()));
      const auto series = trial.series(name, {.incomplete = true});
      SMD_FUZZ_REQUIRE(series.ok() || is_expected(series.error()));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input = fuzz::input_text(data, size);
  std::string log;
  while (input.size() >= 2) {
    const size_t length = load_le<uint16_t>(as_bytes(input).data());
    if (length > input.size() - 2) {
      input.remove_prefix(2);
      break;
    }
    format::append_checked_record(log, input.substr(2, length));
    input.remove_prefix(2 + length);
  }
  const auto storage = storage::memory_storage();
  put(*storage, format::log_file_name(kWriter, 0), log);
  put(*storage, format::segment_file_name(kWriter, 0), input);
  put(*storage, format::collections_file_name("worker_0"), CollectionSet().to_json());
  for (bool check : {false, true}) {
    auto trial = Trial::open(storage, {.check = check, .end_delay_secs = 0});
    SMD_FUZZ_REQUIRE(trial.ok() || trial.error().code == ErrorCode::unsupported);
    if (trial.ok()) read_everything(**trial);
  }
  const auto plain = verify_run(*storage, {});
  SMD_FUZZ_REQUIRE(plain.ok() || is_expected(plain.error()));
  if (!plain.ok()) return 0;
  SMD_FUZZ_REQUIRE(plain->repairs.empty());
  const auto repaired = verify_run(*storage, {.repair = true, .deep = true, .stopped = true});
  SMD_FUZZ_REQUIRE(repaired.ok() || is_expected(repaired.error()));
  const auto again = verify_run(*storage, {.repair = true, .stopped = true});
  SMD_FUZZ_REQUIRE(again.ok() && again->repairs.empty());
  return 0;
}
