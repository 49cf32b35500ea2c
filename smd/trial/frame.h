#pragma once

// The numbers of a run as a table: one row per step, worker and tensor, one column per reduction
// and one for tensors that are a single number. A Frame says which numbers and is immutable and
// thread-safe; a FrameReader reads them in batches, so memory does not grow with the run.
//
//   auto frame = Frame::create(trial, {.reductions = {"mean", "abs_max"}});
//   FrameReader reader(*frame);
//   while (auto batch = *reader.next()) …
//
// Rows are sorted by global step, worker and the order of the tensors. A row is there if at least
// one of its numbers is. Steps that some worker has not reached yet are part of the table.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "smd/base/result.h"
#include "smd/reduce/reduce.h"
#include "smd/trial/trial.h"

namespace smd {

struct FrameOptions {
  // Numbers of Names::tensors, each once, in the order of the rows; nullopt: all, by name.
  std::optional<std::vector<uint32_t>> tensors;
  // "min", "abs_mean", "l2_norm"; the column has the name of the files ("l2"). What is asked for
  // but not stored is computed where the tensor's value is. Empty: all that are stored, and nothing
  // is computed. The column "value" is always there and may be named to get no other.
  std::vector<std::string> reductions;
  // With Mode::global all modes.
  Mode mode = Mode::global;
  std::string worker;  // empty: all
  // Of the mode's steps, as in Snapshot.
  StepRange steps;
};

class Frame final {
 public:
  // Of what the trial knows now. invalid_argument: no such tensor, reduction or worker.
  static Result<Frame> create(std::shared_ptr<Trial> trial, FrameOptions options);

  // "tensor", "mode", "step", "mode_step", "worker".
  static const std::vector<std::string>& key_columns();
  // Of numbers, "value" last.
  std::vector<std::string> number_columns() const;
  const Trial& trial() const { return *trial_; }

  // What the key columns' codes stand for.
  const std::vector<std::string>& tensor_names() const { return tensor_names_; }
  const std::vector<std::string>& worker_names() const { return worker_names_; }

 private:
  friend class FrameReader;

  struct Column {
    std::string name;
    std::optional<Slot> slot;            // nothing like it is stored
    std::optional<Reduction> reduction;  // to be computed where it is not stored
  };

  Frame() = default;
  Status choose_tensors();
  Status choose_columns();
  void add_stored_columns();
  bool selects(const StepRow& row) const;
  bool selects(const Part& part) const { return !worker_ || part.worker == *worker_; }

  std::shared_ptr<Trial> trial_;
  std::shared_ptr<const Snapshot> snapshot_;
  FrameOptions options_;
  std::optional<uint32_t> worker_;
  std::vector<std::string> tensor_names_;
  std::vector<std::string> worker_names_;
  std::vector<uint32_t> tensors_;    // in the order of the rows
  std::vector<uint32_t> positions_;  // in tensors_, by tensor; kNone: not chosen
  std::vector<Column> columns_;      // without "value"
};

// Some rows, column by column.
struct FrameBatch {
  struct Numbers {
    std::vector<double> values;     // 0 where there is none
    std::vector<uint8_t> validity;  // bit i % 8 of byte i / 8: there is a number
    int64_t null_count = 0;
  };

  std::vector<int32_t> tensor;  // in Frame::tensor_names()
  std::vector<int8_t> mode;     // index_of(mode)
  std::vector<int64_t> step;
  std::vector<int64_t> mode_step;
  std::vector<int32_t> worker;   // in Frame::worker_names()
  std::vector<Numbers> numbers;  // as Frame::number_columns()

  int64_t rows() const { return static_cast<int64_t>(step.size()); }
};

// Goes through a frame once. One thread at a time.
class FrameReader final {
 public:
  static constexpr size_t kBatchRows = size_t{64} << 10;

  explicit FrameReader(Frame frame, size_t batch_rows = kBatchRows);

  const Frame& frame() const { return frame_; }
  // The next rows, about `batch_rows` and at least one; nullopt: that was all. After an error,
  // which tells of a damaged or removed file, the same rows are tried again.
  Result<std::optional<FrameBatch>> next();

 private:
  // How the rows of a part come from its layout.
  struct Plan {
    struct Row {
      uint32_t tensor = 0;            // position in the frame
      uint32_t raw = kNone;           // entry of the value
      std::vector<uint32_t> missing;  // columns to be computed from it
    };
    // A stored number.
    struct Cell {
      uint32_t entry = 0;
      uint32_t row = 0;
      uint32_t column = 0;
    };
    std::vector<Row> rows;    // at most these, in the order of the frame's tensors
    std::vector<Cell> cells;  // in the order of their places in the file
  };
  using Number = std::optional<double>;
  // Parts that make up one batch.
  struct Pending {
    struct Piece {
      StepInfo step;
      uint32_t part = 0;
      std::shared_ptr<const Plan> plan;
    };
    std::vector<Piece> pieces;
    size_t rows = 0;     // at most
    size_t numbers = 0;  // at most
  };

  std::shared_ptr<const Plan> plan_of(const Part& part);
  Plan make_plan(const Layout& layout) const;
  // Rows of the steps from `row` on, which is moved behind them.
  void gather(size_t& row, Pending& pending);
  Result<FrameBatch> read(const Pending& pending);
  // A row, unless it has no number.
  void append(const Pending::Piece& piece, const Plan::Row& row, std::span<const Number> numbers,
              FrameBatch& batch) const;
  // The missing columns of a row.
  Status compute(uint32_t part, const Plan::Row& row, std::span<Number> numbers);

  Frame frame_;
  size_t batch_rows_;
  size_t next_row_ = 0;
  std::unordered_map<uint32_t, std::shared_ptr<const Plan>> plans_;  // of recent layouts
  ReductionResult reduced_;
};

}  // namespace smd
