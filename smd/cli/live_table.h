#pragma once

// A table whose rows appear one by one, such as the steps of a job that runs. Columns keep their
// place; when new ones come, the titles are printed again. One thread at a time.

#include <string>
#include <utility>
#include <vector>

#include "smd/cli/terminal.h"

namespace smd::cli {

class LiveTable final {
 public:
  // Borrows the terminal.
  explicit LiveTable(Terminal& terminal) : terminal_(terminal) {}

  struct Cell {
    std::string title;
    std::string text;
  };
  // Prints and flushes a row. On a terminal only as many columns are made as fit; returns how many
  // cells have none.
  size_t add_row(const std::vector<Cell>& cells);

 private:
  struct Column {
    std::string title;
    std::string shown;  // printable, and cut
    int width = 0;
  };

  bool add_columns(const std::vector<Cell>& cells);
  void print_titles();

  Terminal& terminal_;
  std::vector<Column> columns_;
};

}  // namespace smd::cli
