#include "smd/rules/finding_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <cmath>

#include "smd/base/host_name.h"

namespace smd::rules {
namespace {

constexpr int kVersion = 1;
constexpr std::string_view kFolder = "findings";

// Safe as a part of a file name and of a key in an object store.
std::string file_part(std::string text) {
  for (char& c : text) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-';
    if (!is_plain) c = '-';
  }
  return text;
}

std::string line(const Json& record) { return dump_json(record) + "\n"; }

std::string begin_line(std::string_view writer, const std::string& run, double now) {
  return line({{"kind", "begin"},
               {"version", kVersion},
               {"writer", writer},
               {"run", run},
               {"host", host_name()},
               {"pid", ::getpid()},
               {"time", now}});
}

std::string closing_lines(const Diagnosis& diagnosis, double now) {
  std::string out;
  for (size_t i = 0; i < diagnosis.findings.size(); ++i) {
    Json record = {{"kind", "finding"}, {"rank", i + 1}};
    record.update(diagnosis.findings[i].to_json());
    out += line(record);
  }
  Json end = {{"kind", "end"}, {"time", now}};
  end.update(diagnosis.to_json());
  end.erase("findings");
  end.erase("run");
  return out + line(end);
}

}  // namespace

Json hit_record(const Evaluation& evaluation, const Hit& hit) {
  Json record = {{"kind", "hit"},
                 {"severity", name_of(hit.severity.value_or(evaluation.kind().severity))}};
  record.update(hit.to_json(evaluation.parameters().to_json()));
  return record;
}

FindingLog::FindingLog(std::shared_ptr<storage::Storage> storage, FindingLogOptions options)
    : storage_(std::move(storage)),
      options_(std::move(options)),
      began_secs_(options_.clock->unix_secs()),
      path_(fmt::format("{}/{}_{}_{}_{}.jsonl", kFolder, options_.writer, file_part(host_name()),
                        ::getpid(), static_cast<int64_t>(std::floor(began_secs_ * 1000)))) {}

FindingLog::~FindingLog() = default;

Status FindingLog::append(const std::string& lines) {
  std::string text = lines;
  if (!has_begun_) {
    text = begin_line(options_.writer, storage_->name(), began_secs_) + std::move(text);
    auto file = storage_->append(path_);
    if (file.ok()) {
      file_ = std::move(*file);
    } else if (file.error().code == ErrorCode::unsupported) {
      can_grow_ = false;
    } else {
      return file.error();
    }
    has_begun_ = true;
  }
  if (can_grow_) {
    const ByteSpan piece = as_bytes(text);
    return file_->append({&piece, 1});
  }
  const std::string whole = content_ + text;
  SMD_TRY(const bool written, storage_->put(path_, as_bytes(whole), storage::Put::always, {}));
  (void)written;
  content_ = whole;
  return {};
}

Status FindingLog::add(const Evaluation& evaluation, const Hit& hit) {
  return append(line(hit_record(evaluation, hit)));
}

Status FindingLog::finish(const Diagnosis& diagnosis) {
  SMD_RETURN_IF_ERROR(append(closing_lines(diagnosis, options_.clock->unix_secs())));
  if (file_ == nullptr) return {};
  return file_->finish();
}

Status save_diagnosis(storage::Storage& storage, const Diagnosis& diagnosis, const Clock& clock) {
  constexpr std::string_view kWriter = "diagnose";
  const double now = clock.unix_secs();
  const std::string text = begin_line(kWriter, diagnosis.run, now) + closing_lines(diagnosis, now);
  SMD_TRY(const bool written, storage.put(fmt::format("{}/{}.jsonl", kFolder, kWriter),
                                          as_bytes(text), storage::Put::always, {}));
  (void)written;
  return {};
}

}  // namespace smd::rules
