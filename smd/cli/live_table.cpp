#include "smd/cli/live_table.h"

#include <algorithm>
#include <ostream>

#include "smd/picture/text_width.h"

namespace smd::cli {
namespace {

constexpr int kGap = 2;
constexpr int kMostTitle = 24;
// Enough for the numbers that may follow the first one.
constexpr int kLeastWidth = 10;

std::string aligned(const std::string& text, int width) {
  return std::string(static_cast<size_t>(std::max(0, width - text_width(text))), ' ') + text;
}

}  // namespace

bool LiveTable::add_columns(const std::vector<Cell>& cells) {
  int used = 0;
  for (const Column& column : columns_) used += column.width + kGap;
  bool any = false;
  for (const Cell& cell : cells) {
    const auto same = [&](const Column& column) { return column.title == cell.title; };
    if (std::any_of(columns_.begin(), columns_.end(), same)) continue;
    Column column{.title = cell.title, .shown = cut_to_width(printable(cell.title), kMostTitle)};
    column.width = std::max({text_width(column.shown), text_width(printable(cell.text)),
                             columns_.empty() ? 0 : kLeastWidth});
    if (terminal_.out_width() > 0 && used + column.width > terminal_.out_width()) break;
    used += column.width + kGap;
    columns_.push_back(std::move(column));
    any = true;
  }
  return any;
}

void LiveTable::print_titles() {
  std::string line;
  for (const Column& column : columns_) {
    if (!line.empty()) line.append(kGap, ' ');
    line += aligned(column.shown, column.width);
  }
  terminal_.out << terminal_.paint(Style::strong, line) << '\n';
}

size_t LiveTable::add_row(const std::vector<Cell>& cells) {
  if (add_columns(cells)) print_titles();
  std::string line;
  size_t shown = 0;
  for (const Column& column : columns_) {
    const auto cell = std::find_if(cells.begin(), cells.end(),
                                   [&](const Cell& one) { return one.title == column.title; });
    if (&column != &columns_.front()) line.append(kGap, ' ');
    line += aligned(cell == cells.end() ? "-" : printable(cell->text), column.width);
    shown += cell == cells.end() ? 0 : 1;
  }
  terminal_.out << line << '\n' << std::flush;
  return cells.size() - shown;
}

}  // namespace smd::cli
