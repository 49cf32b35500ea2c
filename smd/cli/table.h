#pragma once

// Rows of text in aligned columns. One thread at a time.

#include <string>
#include <vector>

#include "smd/cli/terminal.h"

namespace smd::cli {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
};

class Table final {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // As many cells as there are columns. What could steer a terminal is replaced.
  void add_row(std::vector<std::string> cells);
  size_t row_count() const { return rows_.size(); }

  // Titles and rows, each line with a newline and without spaces at its end. On a terminal the
  // widest left-aligned columns are cut until lines fit, though never below a few characters.
  std::string text(const Terminal& terminal) const;

 private:
  std::vector<int> widths(int most) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace smd::cli
