// Reads a directory that a recorder wrote, as a reader would, and compares every value with the
// scenario.
//
//   smd_fault_checker DIR|s3://bucket/prefix
//
// Prints "steps=N first=A last=B ended=0|1 collections=0|1"; problems go to stderr, exit status 1.

#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <string>

#include "smd/collection/collection_set.h"
#include "smd/format/event.h"
#include "smd/format/file_name.h"
#include "smd/format/index.h"
#include "smd/format/packed_file_name.h"
#include "smd/format/tfrecord.h"
#include "smd/packed/delivery.h"
#include "smd/storage/storage.h"
#include "smd/trial/trial.h"
#include "smd/types/tensor_name.h"
#include "tests/fault/scenario.h"

namespace {

using namespace smd;
using fault::Expected;

Error wrong(std::string what) { return {ErrorCode::corrupt, std::move(what)}; }

// The tensors of one step by name.
using Stored = std::map<std::string, format::StoredTensor>;

Result<Stored> read_tensors(storage::Storage& storage, const format::Index& index, Step step) {
  Stored stored;
  if (index.event_file != format::event_file_name(step, "worker_0")) {
    return wrong(fmt::format("the index names another event file: {}", index.event_file));
  }
  SMD_TRY(const Bytes file, storage::read_all(storage, index.event_file));
  uint64_t end = 0;
  for (const auto& at : index.tensors) {
    if (at.offset != end) return wrong(fmt::format("'{}' does not follow the one before", at.name));
    end = at.offset + at.length;
    if (end > file.size())
      return wrong(fmt::format("'{}' lies behind the end of the file", at.name));
    SMD_TRY(const auto record,
            format::parse_record(ByteSpan(file).subspan(at.offset, at.length), at.offset));
    if (record.size_bytes != at.length)
      return wrong(fmt::format("'{}' has another length", at.name));
    SMD_TRY(auto event, format::parse_event(record.payload));
    if (event.name != at.name || !event.tensor)
      return wrong(fmt::format("'{}' is another tensor", at.name));
    if (event.step != fault::step_info(step))
      return wrong(fmt::format("'{}' is of another step", at.name));
    if (!stored.emplace(at.name, std::move(*event.tensor)).second) {
      return wrong(fmt::format("'{}' is there twice", at.name));
    }
  }
  if (end != file.size()) return wrong("the event file is longer than its records");
  return stored;
}

Status compare(const Expected& expected, Stored& stored) {
  const auto found = stored.find(expected.name);
  if (found == stored.end()) return wrong(fmt::format("'{}' is missing", expected.name));
  const format::StoredTensor& tensor = found->second;
  if (tensor.dtype != expected.dtype || tensor.shape != expected.shape ||
      tensor.elements != expected.elements || tensor.strings != expected.strings) {
    return wrong(fmt::format("'{}' has another value", expected.name));
  }
  stored.erase(found);
  return {};
}

// What must be there besides the tensors that were stored as they are.
Status check_rest(const StepInfo& info, Stored& stored,
                  const std::map<std::string, Shape>& shapes) {
  const auto run = stored.find(std::string(fault::kRunTensor));
  if (run == stored.end() || run->second.elements.size() < 16)
    return wrong("no tensor names the run");
  for (const auto& tensor : fault::tensors_of(fault::run_of(run->second.elements), info.step)) {
    for (const Expected& expected : fault::expected_of(tensor)) {
      SMD_RETURN_IF_ERROR(compare(expected, stored));
    }
    const bool with_shape =
        tensor.way == fault::Way::reduced || tensor.way == fault::Way::shape_only;
    const auto shape = shapes.find(tensor.name);
    if (with_shape && (shape == shapes.end() || shape->second != tensor.shape)) {
      return wrong(fmt::format("the shape of '{}' is wrong", tensor.name));
    }
  }
  if (!stored.empty()) return wrong(fmt::format("'{}' is not expected", stored.begin()->first));
  return {};
}

// A step of a packed run, through the trial.
Status check_row(const Trial& trial, const Snapshot& snapshot, const StepRow& row) {
  if (row.info != fault::step_info(row.info.step)) return wrong("another mode or mode step");
  Stored stored;
  std::map<std::string, Shape> shapes;
  const Part& part = snapshot.part(row.first_part);
  const Layout& layout = snapshot.layout_of(part);
  for (uint32_t i = 0; i < layout.entries().size(); ++i) {
    const Layout::Entry& entry = layout.entries()[i];
    const Slot slot = Slot::from_id(entry.slot);
    const std::string& tensor = snapshot.names().tensors[entry.tensor];
    SMD_TRY(TensorValue value, trial.read(snapshot, {row.first_part, i}));
    stored[slot.is_value()
               ? tensor
               : reduction_tensor_name(snapshot.names().ops[slot.op()], slot.abs(), tensor)] = {
        .dtype = value.dtype,
        .shape = value.shape,
        .elements = {value.elements.begin(), value.elements.end()},
        .strings = value.strings};
  }
  for (const auto& shape : layout.shapes()) {
    shapes[snapshot.names().tensors[shape.tensor]] = shape.shape;
  }
  return check_rest(row.info, stored, shapes);
}

Status check_step(storage::Storage& storage, const std::string& path) {
  const auto name = format::parse_step_file_name(path);
  if (!name || name->worker != "worker_0") return wrong("not the name of an index file");
  SMD_TRY(const Bytes text, storage::read_all(storage, path));
  SMD_TRY(const auto index, format::parse_index(as_text(text), path));
  const StepInfo info = fault::step_info(name->step);
  if (index.mode != info.mode || index.mode_step != info.mode_step)
    return wrong("another mode or mode step");
  SMD_TRY(Stored stored, read_tensors(storage, index, name->step));
  std::map<std::string, Shape> shapes;
  for (const auto& shape : index.shapes) shapes[shape.name] = shape.shape;
  return check_rest(info, stored, shapes);
}

int run(const std::string& dir) {
  const auto opened = storage::open_storage(dir);
  if (!opened.ok()) {
    fmt::print(stderr, "{}\n", opened.error().message);
    return 2;
  }
  const auto& storage = *opened;
  int problems = 0;
  auto note = [&](const std::string& path, const Error& error) {
    ++problems;
    fmt::print(stderr, "{}/{}: {}\n", dir, path, error.message);
  };
  Step first = -1;
  Step last = -1;
  int64_t steps = 0;
  const auto count = [&](Step step) {
    if (steps++ == 0) first = step;
    last = step;
  };
  const auto files = storage->list("index", "");
  if (!files.ok()) note("index", files.error());
  if (files.ok()) {
    for (const auto& file : *files) {
      const Status status = check_step(*storage, file.path);
      if (!status.ok()) note(file.path, status.error());
      if (const auto name = format::parse_step_file_name(file.path)) count(name->step);
    }
  }
  const auto logs = storage->list(format::kLogFolder, "");
  const std::string head = packed::journal_of(storage).head_path();
  if ((logs.ok() && !logs->empty()) || storage->stat(head).ok()) {
    const auto trial = Trial::open(storage, {.check = true, .log = stderr_log()});
    if (!trial.ok()) note("v2", trial.error());
    const auto snapshot = trial.ok() ? (*trial)->snapshot() : nullptr;
    for (size_t i = 0; snapshot && i < snapshot->row_count(); ++i) {
      const StepRow& row = snapshot->row(i);
      const Status status = check_row(**trial, *snapshot, row);
      if (!status.ok()) note(fmt::format("step {}", row.info.step), status.error());
      count(row.info.step);
    }
  }
  const std::string collections = format::collections_file_name("worker_0");
  const auto text = storage::read_all(*storage, collections);
  if (text.ok()) {
    const auto set = CollectionSet::from_json(as_text(*text), collections);
    if (!set.ok()) note(collections, set.error());
    if (set.ok() && set->find("reduced") == nullptr)
      note(collections, wrong("no collection 'reduced'"));
  } else if (steps > 0) {
    note(collections, wrong("steps without collections cannot be opened"));
  }
  fmt::print("steps={} first={} last={} ended={} collections={}\n", steps, first, last,
             storage->stat(format::kEndMarker).ok() ? 1 : 0, text.ok() ? 1 : 0);
  return problems == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: smd_fault_checker DIR\n");
    return 2;
  }
  return run(argv[1]);
}
