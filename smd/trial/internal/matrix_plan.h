#pragma once

// What a matrix is made of: which numbers of which files go to which row and column. Plain values
// and one function, which any thread may call.

#include <cstdint>
#include <optional>
#include <vector>

#include "smd/base/result.h"
#include "smd/reduce/reduce.h"
#include "smd/trial/matrix.h"
#include "smd/trial/snapshot.h"

namespace smd::internal {

// A number that is read by itself.
struct Cell {
  uint32_t entry = 0;
  uint32_t row = 0;
};

// Numbers of a block that stand together.
struct Run {
  uint64_t offset = 0;  // from the beginning of the part
  uint32_t count = 0;
  bool wide = false;  // float64
};

// What one part gives to its column.
struct Piece {
  uint32_t nth = 0;  // of the column's parts
  std::vector<Run> runs;
  std::vector<uint32_t> rows;  // of the numbers of the runs, one after the other
  std::vector<Cell> records;   // everything else that is stored, in the order of the file
  std::vector<Cell> computed;  // values to compute the reduction from

  size_t size() const { return rows.size() + records.size() + computed.size(); }
};

// Columns whose parts have the same layouts come about in the same way.
struct ColumnGroup {
  std::vector<Piece> pieces;
  std::vector<uint32_t> columns;
  bool whole_float32 = true;

  size_t size() const {
    size_t sum = 0;
    for (const Piece& piece : pieces) sum += piece.size();
    return sum;
  }
};

struct MatrixPlan {
  struct Column {
    Step step = 0;
    uint32_t first_part = 0;  // in `parts`
  };

  std::optional<Reduction> reduction;  // to be computed where it is not stored
  std::vector<uint32_t> tensors;       // of the rows
  std::vector<uint32_t> parts;         // of all columns
  std::vector<Column> columns;
  std::vector<ColumnGroup> groups;

  uint32_t part_of(uint32_t column, const Piece& piece) const {
    return parts[columns[column].first_part + piece.nth];
  }
};

// invalid_argument: no such tensor, reduction or worker.
Result<MatrixPlan> plan_matrix(const Snapshot& snapshot, const MatrixOptions& options);

}  // namespace smd::internal
