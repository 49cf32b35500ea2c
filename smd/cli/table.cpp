#include "smd/cli/table.h"

#include <algorithm>
#include <numeric>

#include "smd/base/result.h"
#include "smd/picture/text_width.h"

namespace smd::cli {
namespace {

constexpr int kGap = 2;
constexpr int kLeastWidth = 8;

std::string padded(std::string_view text, int width, Align align) {
  std::string cut = cut_to_width(text, std::max(width, 1));
  const std::string spaces(static_cast<size_t>(std::max(0, width - text_width(cut))), ' ');
  return align == Align::right ? spaces + cut : cut + spaces;
}

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
  SMD_CHECK(cells.size() == columns_.size());
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::vector<int> Table::widths(int most) const {
  std::vector<int> widths;
  for (const Column& column : columns_) widths.push_back(text_width(column.title));
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], text_width(row[i]));
  }
  const int gaps = kGap * static_cast<int>(columns_.size() - 1);
  while (most > 0 && std::accumulate(widths.begin(), widths.end(), gaps) > most) {
    int* widest = nullptr;
    for (size_t i = 0; i < widths.size(); ++i) {
      if (columns_[i].align == Align::right || widths[i] <= kLeastWidth) continue;
      if (widest == nullptr || widths[i] > *widest) widest = &widths[i];
    }
    if (widest == nullptr) break;
    --*widest;
  }
  return widths;
}

std::string Table::text(const Terminal& terminal) const {
  const std::vector<int> columns = widths(terminal.out_width());
  std::string out;
  const auto add = [&](const auto& cell_at, bool is_title) {
    std::string line;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (i > 0) line.append(kGap, ' ');
      line += padded(cell_at(i), columns[i], columns_[i].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += is_title ? terminal.paint(Style::strong, line) : line;
    out += '\n';
  };
  add([&](size_t i) { return std::string_view(columns_[i].title); }, true);
  for (const auto& row : rows_) {
    add([&](size_t i) { return std::string_view(row[i]); }, false);
  }
  return out;
}

}  // namespace smd::cli
