#pragma once

// Writes the records of TensorBoard files: one protobuf Event with one Summary.Value, framed as a
// TFRecord with its true checksum. Pure functions over bytes.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "smd/types/step.h"

namespace smd::format {

struct SummaryHead {
  std::string_view tag;  // as it will stand in the file; see smd/summary/tag.h
  Step step = 0;
  double wall_secs = 0;
};

// What TensorBoard shows of many numbers. Views are read during the call.
struct HistogramView {
  double min = 0;
  double max = 0;
  double count = 0;
  double sum = 0;
  double sum_squares = 0;
  std::span<const double> limits;  // right ends of the buckets
  std::span<const double> counts;  // as many
};

void append_scalar(std::string& out, const SummaryHead& head, float value);
void append_histogram(std::string& out, const SummaryHead& head, const HistogramView& histogram);
// Markdown, for the page of texts.
void append_text(std::string& out, const SummaryHead& head, std::string_view text);

// The name of a file of summaries: `{mode}/{step:012}_{writer}.tfevents`, where `mode` is in upper
// case and `writer` tells processes apart.
std::string summary_file_name(Mode mode, Step step, std::string_view writer);

}  // namespace smd::format
