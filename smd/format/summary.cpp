#include "smd/format/summary.h"

#include <fmt/format.h>

#include <protozero/pbf_builder.hpp>

#include "smd/format/internal/event_fields.h"
#include "smd/format/tfrecord.h"

namespace smd::format {
namespace {

using internal::EventField;
using internal::MetadataField;
using internal::PluginField;
using internal::SummaryField;
using internal::TensorField;
using internal::ValueField;
using protozero::pbf_builder;

enum class HistogramField : protozero::pbf_tag_type {
  min = 1,
  max = 2,
  count = 3,
  sum = 4,
  sum_squares = 5,
  limits = 6,
  counts = 7
};
constexpr int32_t kStringType = 7;
constexpr std::string_view kTextPlugin = "text";

// One record with the value that `fill` completes.
template <typename Fill>
void append_value(std::string& out, const SummaryHead& head, Fill&& fill) {
  std::string value;
  pbf_builder<ValueField> fields(value);
  fields.add_string(ValueField::tag, head.tag.data(), head.tag.size());
  fill(fields);
  std::string summary;
  pbf_builder<SummaryField>(summary).add_message(SummaryField::value, value);
  std::string event;
  pbf_builder<EventField> all(event);
  all.add_double(EventField::wall_time, head.wall_secs);
  all.add_int64(EventField::step, head.step);
  all.add_message(EventField::summary, summary);
  append_checked_record(out, event);
}

}  // namespace

void append_scalar(std::string& out, const SummaryHead& head, float value) {
  append_value(out, head, [&](auto& fields) { fields.add_float(ValueField::simple_value, value); });
}

void append_histogram(std::string& out, const SummaryHead& head, const HistogramView& histogram) {
  append_value(out, head, [&](auto& fields) {
    pbf_builder<HistogramField> content(fields, ValueField::histogram);
    content.add_double(HistogramField::min, histogram.min);
    content.add_double(HistogramField::max, histogram.max);
    content.add_double(HistogramField::count, histogram.count);
    content.add_double(HistogramField::sum, histogram.sum);
    content.add_double(HistogramField::sum_squares, histogram.sum_squares);
    content.add_packed_double(HistogramField::limits, histogram.limits.begin(),
                              histogram.limits.end());
    content.add_packed_double(HistogramField::counts, histogram.counts.begin(),
                              histogram.counts.end());
  });
}

void append_text(std::string& out, const SummaryHead& head, std::string_view text) {
  append_value(out, head, [&](auto& fields) {
    {
      pbf_builder<TensorField> tensor(fields, ValueField::tensor);
      tensor.add_int32(TensorField::dtype, kStringType);
      tensor.add_message(TensorField::shape, "", 0);
      tensor.add_bytes(TensorField::string_val, text.data(), text.size());
    }
    pbf_builder<MetadataField> metadata(fields, ValueField::metadata);
    pbf_builder<PluginField> plugin(metadata, MetadataField::plugin_data);
    plugin.add_string(PluginField::name, kTextPlugin.data(), kTextPlugin.size());
  });
}

std::string summary_file_name(Mode mode, Step step, std::string_view writer) {
  return fmt::format("{}/{:012}_{}.tfevents", name_of(mode), step, writer);
}

}  // namespace smd::format
