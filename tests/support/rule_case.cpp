#include "tests/support/rule_case.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>

#include "smd/format/file_name.h"
#include "smd/rules/trial_feed.h"
#include "smd/tensor/widen.h"
#include "smd/writer/sinks/original.h"
#include "smd/writer/sinks/packed.h"

namespace smd::rules {
namespace {

// The entries of a run in the notation of the header.
class Script final {
 public:
  explicit Script(std::string_view text) {
    parse(text);
    number_mode_steps();
  }

  void write_to(const std::shared_ptr<storage::Storage>& storage,
                const CaseOptions& options) const {
    std::map<std::string, std::unique_ptr<Sink>> sinks;
    for (const Entry& entry : entries_) sinks.try_emplace(entry.worker);
    if (sinks.empty()) sinks.try_emplace("worker_0");
    for (auto& [worker, sink] : sinks) {
      put_collections(storage, worker, static_cast<int64_t>(sinks.size()), options);
      sink = options.packed ? packed_sink({.storage = storage, .worker = worker})
                            : original_sink({.storage = storage, .worker = worker});
      for (size_t i = 0; i < entries_.size();) {
        const StepInfo step = entries_[i].step;
        bool has_begun = false;
        for (; i < entries_.size() && entries_[i].step == step; ++i) {
          if (entries_[i].worker != worker) continue;
          if (!has_begun) {
            EXPECT_TRUE(sink->begin_step(step).ok());
          }
          has_begun = true;
          write(*sink, entries_[i]);
        }
        if (has_begun) {
          EXPECT_TRUE(sink->end_step().ok());
        }
      }
      EXPECT_TRUE(sink->close().ok());
    }
    if (options.has_ended) {
      EXPECT_TRUE(storage->put(format::kEndMarker, {}, storage::Put::always, {}).ok());
    }
  }

 private:
  struct Entry {
    std::string name;
    std::string part;  // after "~"
    StepInfo step;
    bool has_mode_step = false;
    std::string worker = "worker_0";
    DType dtype = DType::float64;
    Shape shape;
    std::vector<double> values;
    std::vector<std::string> texts;  // of the type string
  };

  static std::string_view trim(std::string_view text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
      text.remove_prefix(1);
    }
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
      text.remove_suffix(1);
    }
    return text;
  }
  // At separators outside of brackets.
  static std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> out(1);
    int depth = 0;
    for (char c : text) {
      depth += c == '[' ? 1 : c == ']' ? -1 : 0;
      if (c == separator && depth == 0) {
        out.emplace_back();
      } else {
        out.back().push_back(c);
      }
    }
    for (std::string& part : out) part = std::string(trim(part));
    return out;
  }

  void parse(std::string_view text) {
    for (const std::string& item : split(text, ';')) {
      if (!item.empty()) parse_entry(item);
    }
    std::ranges::stable_sort(entries_, {}, [](const Entry& e) { return e.step.step; });
  }

  void parse_entry(const std::string& item) {
    const size_t equals = item.find('=', item.find('@'));
    ASSERT_NE(equals, std::string::npos) << item;
    const size_t at = item.rfind('@', equals);
    ASSERT_NE(at, std::string::npos) << item;
    Entry base;
    base.name = std::string(trim(item.substr(0, at)));
    if (const size_t part = base.name.rfind('~'); part != std::string::npos) {
      base.part = base.name.substr(part + 1);
      base.name.resize(part);
    }
    std::string where(trim(item.substr(at + 1, equals - at - 1)));
    if (const size_t hash = where.find('#'); hash != std::string::npos) {
      base.worker = std::string(trim(where.substr(hash + 1)));
      where.resize(hash);
      if (const size_t colon = base.worker.find(':'); colon != std::string::npos) {
        where += base.worker.substr(colon);
        base.worker.resize(colon);
      }
    }
    if (const size_t colon = where.find(':'); colon != std::string::npos) {
      const auto dtype = dtype_from_name(trim(std::string_view(where).substr(colon + 1)));
      ASSERT_TRUE(dtype.has_value()) << item;
      base.dtype = *dtype;
      where.resize(colon);
    }
    const auto steps = split(where, ',');
    const auto values = split(item.substr(equals + 1), ',');
    ASSERT_EQ(steps.size(), values.size()) << item;
    for (size_t i = 0; i < steps.size(); ++i) {
      Entry entry = base;
      parse_step(steps[i], entry);
      parse_value(values[i], 0, entry);
      entries_.push_back(std::move(entry));
    }
  }

  static void parse_step(const std::string& text, Entry& entry) {
    std::string_view rest = text;
    switch (rest.empty() ? ' ' : rest.front()) {
      case 'T': entry.step.mode = Mode::train; break;
      case 'E': entry.step.mode = Mode::eval; break;
      case 'P': entry.step.mode = Mode::predict; break;
      default: entry.step.mode = Mode::global;
    }
    if (entry.step.mode != Mode::global) rest.remove_prefix(1);
    char* end = nullptr;
    entry.step.step = std::strtoll(std::string(rest).c_str(), &end, 10);
    entry.step.mode_step = entry.step.step;
    if (const size_t slash = rest.find('/'); slash != std::string_view::npos) {
      entry.has_mode_step = true;
      entry.step.mode_step = std::stoll(std::string(rest.substr(slash + 1)));
    }
  }

  // Nested lists, all of one length in each depth.
  static void parse_value(std::string_view text, size_t depth, Entry& entry) {
    text = trim(text);
    if (!text.starts_with('[')) {
      if (entry.dtype == DType::string) return entry.texts.emplace_back(text), void();
      char* end = nullptr;
      const std::string number(text);
      entry.values.push_back(std::strtod(number.c_str(), &end));
      ASSERT_EQ(*end, '\0') << "not a number: " << number;
      return;
    }
    ASSERT_TRUE(text.ends_with(']')) << text;
    const std::string_view inside = trim(text.substr(1, text.size() - 2));
    const auto items = inside.empty() ? std::vector<std::string>() : split(inside, ',');
    if (entry.shape.size() <= depth) entry.shape.push_back(static_cast<int64_t>(items.size()));
    ASSERT_EQ(entry.shape[depth], static_cast<int64_t>(items.size())) << "ragged: " << text;
    for (const std::string& item : items) parse_value(item, depth + 1, entry);
  }

  void number_mode_steps() {
    std::map<Step, Step> known;
    std::array<Step, 4> next{};
    for (Entry& entry : entries_) {
      if (entry.step.mode == Mode::global || entry.has_mode_step) continue;
      const auto [at, is_new] = known.try_emplace(entry.step.step, 0);
      if (is_new) at->second = next[index_of(entry.step.mode)]++;
      entry.step.mode_step = at->second;
    }
  }

  static void put_collections(const std::shared_ptr<storage::Storage>& storage,
                              const std::string& worker, int64_t count,
                              const CaseOptions& options) {
    CollectionSet set;
    EXPECT_TRUE(set.set_num_workers(count).ok());
    auto patterns = options.collections;
    patterns.insert(patterns.end(),
                    {{"losses", "loss"}, {"gradients", "gradient/"}, {"weights", "weight"}});
    for (const auto& [name, pattern] : patterns) {
      EXPECT_TRUE((*set.create(name))->include(pattern).ok());
    }
    const std::string path = format::collections_file_name(worker);
    EXPECT_TRUE(storage->put(path, as_bytes(set.to_json()), storage::Put::always, {}).ok());
  }

  template <typename T>
  static std::vector<std::byte> bytes_of(const std::vector<double>& values) {
    std::vector<std::byte> out(values.size() * sizeof(T));
    for (size_t i = 0; i < values.size(); ++i) {
      const T element = static_cast<T>(values[i]);
      std::memcpy(out.data() + i * sizeof(T), &element, sizeof(T));
    }
    return out;
  }
  // The half that is the value: tests give values that halves can hold.
  static uint16_t half_of(double value) {
    for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
      const float held = half_to_float(static_cast<uint16_t>(bits));
      if (held == value || (std::isnan(held) && std::isnan(value))) {
        return static_cast<uint16_t>(bits);
      }
    }
    ADD_FAILURE() << value << " is no float16";
    return 0;
  }
  static std::vector<std::byte> encode(DType dtype, std::vector<double> values) {
    switch (dtype) {
      case DType::float32:
      case DType::complex64: return bytes_of<float>(values);
      case DType::float64:
      case DType::complex128: return bytes_of<double>(values);
      case DType::float16:
        for (double& value : values) value = half_of(value);
        return bytes_of<uint16_t>(values);
      case DType::int8: return bytes_of<int8_t>(values);
      case DType::int16: return bytes_of<int16_t>(values);
      case DType::int32: return bytes_of<int32_t>(values);
      case DType::int64: return bytes_of<int64_t>(values);
      case DType::uint8:
      case DType::boolean: return bytes_of<uint8_t>(values);
      case DType::uint16: return bytes_of<uint16_t>(values);
      case DType::uint32: return bytes_of<uint32_t>(values);
      case DType::uint64: return bytes_of<uint64_t>(values);
      case DType::bfloat16:
      case DType::float8_e4m3fn:
      case DType::float8_e5m2: {
        const std::vector<float> wide(values.begin(), values.end());
        std::vector<std::byte> out(values.size() * size_of(dtype));
        narrow(dtype, wide, out);
        return out;
      }
      case DType::string: break;
    }
    ADD_FAILURE() << "no values of " << name_of(dtype);
    return {};
  }

  static void write(Sink& sink, const Entry& entry) {
    if (entry.part == "shape") {
      const Shape shape(entry.values.begin(), entry.values.end());
      EXPECT_TRUE(sink.shape(entry.name, entry.name, shape).ok());
    } else if (!entry.part.empty()) {
      StoredReduction stored{.name = entry.part};
      store_le(stored.bits.data(), entry.values.at(0));
      EXPECT_TRUE(sink.reductions(entry.name, 0, {&stored, 1}).ok());
    } else if (entry.dtype == DType::string) {
      const std::vector<std::string_view> texts(entry.texts.begin(), entry.texts.end());
      EXPECT_TRUE(sink.strings({.name = entry.name, .shape = entry.shape}, texts).ok());
    } else {
      Shape shape = entry.shape;
      // A complex number is a pair.
      if (info_of(entry.dtype).kind == DTypeKind::complex && !shape.empty()) shape.pop_back();
      const auto bytes = encode(entry.dtype, entry.values);
      EXPECT_TRUE(
          sink.tensor({.name = entry.name, .dtype = entry.dtype, .shape = shape}, bytes).ok());
    }
  }

  std::vector<Entry> entries_;
};

}  // namespace

RuleCase::RuleCase(std::string_view text, const CaseOptions& options) {
  Script(text).write_to(storage, options);
}

void RuleCase::grow(std::string_view text) { Script(text).write_to(storage, {.has_ended = false}); }

std::shared_ptr<Trial> RuleCase::trial() const {
  auto opened = Trial::open(storage, {.end_delay_secs = 0});
  EXPECT_TRUE(opened.ok()) << opened.error().message;
  return std::shared_ptr<Trial>(std::move(*opened));
}

Verdict judge(std::string_view rule, std::string_view run, const CaseOptions& options) {
  Verdict out;
  const auto kind = find_rule(rule);
  EXPECT_TRUE(kind.ok()) << kind.error().message;
  if (!kind.ok()) return out;
  const auto trial = RuleCase(run, options).trial();
  Runner runner({.context = {.log = options.log,
                             .clock = options.clock,
                             .other_trials = options.other_trials},
                 .on_hit = [&](const Evaluation&, const Hit& hit) { out.hits.push_back(hit); }});
  const Status added = runner.add(**kind, options.parameters);
  EXPECT_TRUE(added.ok()) << added.error().message;
  if (!added.ok()) return out;
  TrialFeed feed(trial);
  const Status read = feed.advance(runner);
  EXPECT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(feed.unreadable_steps(), 0u) << feed.first_problem();
  runner.finish();
  const Evaluation& done = *runner.evaluations().front();
  out.status = done.status();
  out.error = done.error();
  out.missing = done.missing();
  out.finding = done.finding();
  out.remark = done.remark();
  return out;
}

void expect_fires(std::string_view rule, std::string_view run, Step step, CaseOptions options) {
  for (const bool packed : {false, true}) {
    options.packed = packed;
    const Verdict verdict = judge(rule, run, options);
    EXPECT_EQ(verdict.status, RuleStatus::issues_found)
        << rule << " " << verdict.error << verdict.missing.value_or("");
    if (!verdict.hits.empty()) {
      EXPECT_EQ(verdict.hits.front().step.step, step) << rule;
    }
  }
}

void expect_silent(std::string_view rule, std::string_view run, CaseOptions options) {
  for (const bool packed : {false, true}) {
    options.packed = packed;
    const Verdict verdict = judge(rule, run, options);
    EXPECT_EQ(verdict.status, RuleStatus::no_issues_found) << rule << " " << verdict.error;
    EXPECT_EQ(verdict.missing, std::nullopt) << rule;
    for (const Hit& hit : verdict.hits) ADD_FAILURE() << hit.message;
  }
}

std::string creation_error(std::string_view rule, const Json& parameters) {
  const auto kind = find_rule(rule);
  EXPECT_TRUE(kind.ok());
  Runner runner({});
  const Status added = runner.add(**kind, parameters);
  EXPECT_FALSE(added.ok()) << rule << " accepts " << dump_json(parameters);
  return added.ok() ? "" : added.error().message;
}

}  // namespace smd::rules
