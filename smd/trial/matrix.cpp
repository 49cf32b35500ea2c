#include "smd/trial/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "smd/reduce/reduce.h"
#include "smd/trial/internal/matrix_plan.h"
#include "smd/trial/internal/stored_record.h"

namespace smd {
namespace {

using internal::Cell;
using internal::ColumnGroup;
using internal::Piece;
using internal::Run;

// Steps are turned into columns together: a cache line of the matrix holds many of them.
constexpr size_t kLeastTogether = 64;
constexpr size_t kStageBytes = size_t{1} << 20;
constexpr size_t kRemoteStageBytes = size_t{16} << 20;
// Remote numbers that lie this close are one request.
constexpr uint64_t kRemoteGapBytes = uint64_t{256} << 10;
constexpr uint64_t kMostRequestBytes = uint64_t{16} << 20;
// Records that are read at once.
constexpr size_t kMostRecords = size_t{1} << 18;

// Turns `count` lines of numbers into columns of the matrix.
template <typename T>
void scatter(const T* stage, size_t stride, std::span<const uint32_t> rows,
             std::span<const uint32_t> columns, T* out, size_t width) {
  const bool adjacent = columns.back() - columns.front() + 1 == columns.size();
  for (size_t k = 0; k < rows.size(); ++k) {
    T* const row = out + size_t{rows[k]} * width;
    const T* from = stage + k;
    if (adjacent) {
      T* const to = row + columns.front();
      for (size_t j = 0; j < columns.size(); ++j, from += stride) to[j] = *from;
    } else {
      for (size_t j = 0; j < columns.size(); ++j, from += stride) row[columns[j]] = *from;
    }
  }
}

template <typename T>
void convert(const std::byte* from, const Run& run, T* to) {
  if (run.wide) {
    for (size_t i = 0; i < run.count; ++i) {
      to[i] = static_cast<T>(load_le<double>(from + i * sizeof(double)));
    }
  } else if constexpr (std::is_same_v<T, float>) {
    std::memcpy(to, from, run.count * sizeof(float));
  } else {
    for (size_t i = 0; i < run.count; ++i) to[i] = load_le<float>(from + i * sizeof(float));
  }
}

class MatrixReader final {
 public:
  MatrixReader(const Trial& trial, const MatrixOptions& options)
      : trial_(trial), options_(options), snapshot_(trial.snapshot()) {}

  Result<Matrix> read() {
    SMD_TRY(plan_, internal::plan_matrix(*snapshot_, options_));
    SMD_RETURN_IF_ERROR(allocate());
    SMD_RETURN_IF_ERROR(matrix_.dtype == DType::float32 ? fill<float>() : fill<double>());
    drop_missing();
    return std::move(matrix_);
  }

 private:
  Status allocate() {
    for (uint32_t tensor : plan_.tensors)
      matrix_.names.push_back(snapshot_->names().tensors[tensor]);
    for (const auto& column : plan_.columns) matrix_.steps.push_back(column.step);
    bool whole_float32 = !plan_.columns.empty();
    uint64_t stored = 0;
    for (const ColumnGroup& group : plan_.groups) {
      whole_float32 = whole_float32 && group.whole_float32;
      stored += group.columns.size() * group.size();
      for (const Piece& piece : group.pieces) {
        sparse_ = sparse_ || !piece.records.empty() || !piece.computed.empty();
      }
    }
    matrix_.dtype = whole_float32 ? DType::float32 : DType::float64;
    const uint64_t count = uint64_t{matrix_.rows()} * matrix_.columns();
    sparse_ = sparse_ || stored < count;
    const uint64_t bytes = count * size_of(matrix_.dtype);
    if (count > std::numeric_limits<uint64_t>::max() / sizeof(double)) return no_memory();
    matrix_.memory = allocate_aligned(bytes, 0, 0);
    if (!matrix_.memory) return no_memory();
    matrix_.elements = {matrix_.memory.get(), bytes};
    if (!sparse_) return {};
    try {
      matrix_.present.assign(count, 0);
    } catch (const std::exception&) {  // there is no other way to be told
      return no_memory();
    }
    return {};
  }

  Error no_memory() const {
    return {ErrorCode::io,
            fmt::format("There is no memory for {} tensors at {} steps; choose fewer of them.",
                        matrix_.rows(), matrix_.columns())};
  }

  template <typename T>
  Status fill() {
    T* const out = reinterpret_cast<T*>(matrix_.memory.get());
    const size_t count = matrix_.rows() * matrix_.columns();
    if (sparse_) std::fill_n(out, count, std::numeric_limits<T>::quiet_NaN());
    for (const ColumnGroup& group : plan_.groups) {
      for (const Piece& piece : group.pieces) {
        if (!piece.rows.empty()) SMD_RETURN_IF_ERROR(fill_numbers(group, piece, out));
        if (!piece.records.empty()) SMD_RETURN_IF_ERROR(fill_records(group, piece, out));
        if (!piece.computed.empty()) SMD_RETURN_IF_ERROR(fill_computed(group, piece, out));
      }
    }
    return {};
  }

  template <typename T>
  Status fill_numbers(const ColumnGroup& group, const Piece& piece, T* out) {
    // Lines of other than a power of two: the lines of a column shall not share cache sets.
    const size_t stride = (piece.rows.size() + 16) | 1;
    const size_t stage_bytes = trial_.storage().is_remote() ? kRemoteStageBytes : kStageBytes;
    const size_t together = std::max(kLeastTogether, stage_bytes / (stride * sizeof(T)));
    std::vector<T> stage(std::min(together, group.columns.size()) * stride);
    std::span<const uint32_t> left = group.columns;
    while (!left.empty()) {
      const auto columns = left.first(std::min(together, left.size()));
      left = left.subspan(columns.size());
      SMD_RETURN_IF_ERROR(read_lines(piece, columns, stage.data(), stride));
      scatter(stage.data(), stride, piece.rows, columns, out, matrix_.columns());
      if (!sparse_) continue;
      for (uint32_t row : piece.rows) {
        for (uint32_t column : columns) mark(row, column);
      }
    }
    return {};
  }

  // Bytes of a file that one or several lines need.
  struct Request {
    uint32_t file = 0;  // any of its parts
    uint64_t begin = 0;
    uint64_t end = 0;
    size_t lines = 0;
  };

  // The numbers of one part after the other.
  template <typename T>
  Status read_lines(const Piece& piece, std::span<const uint32_t> columns, T* stage,
                    size_t stride) {
    for (size_t first = 0; first < columns.size();) {
      const Request request = request_of(piece, columns.subspan(first));
      SMD_RETURN_IF_ERROR(read_bytes(request));
      for (size_t line = first; line < first + request.lines; ++line) {
        const Part& part = snapshot_->part(plan_.part_of(columns[line], piece));
        const auto at = [&](uint64_t offset) {
          return bytes_.data() + (part.base + offset - request.begin);
        };
        if (part.checksums) {
          const Layout::Block& block = snapshot_->layout_of(part).block();
          SMD_RETURN_IF_ERROR(
              internal::check_block(*snapshot_, part, {at(block.offset), block.length}));
        }
        T* to = stage + line * stride;
        for (const Run& run : piece.runs) {
          convert(at(run.offset), run, to);
          to += run.count;
        }
      }
      first += request.lines;
    }
    return {};
  }

  Request request_of(const Piece& piece, std::span<const uint32_t> columns) const {
    Request request;
    for (uint32_t column : columns) {
      const uint32_t id = plan_.part_of(column, piece);
      const Part& part = snapshot_->part(id);
      uint64_t begin = part.base + piece.runs.front().offset;
      const Run& last = piece.runs.back();
      uint64_t end = part.base + last.offset + uint64_t{last.count} * (last.wide ? 8 : 4);
      if (part.checksums) {
        const Layout::Block& block = snapshot_->layout_of(part).block();
        begin = std::min(begin, part.base + block.offset);
        end = std::max(end, part.base + block.offset + block.length);
      }
      if (request.lines == 0) {
        request = {.file = id, .begin = begin, .end = end, .lines = 1};
        if (!trial_.storage().is_remote()) return request;
        continue;
      }
      if (part.file != snapshot_->part(request.file).file || begin < request.end ||
          begin - request.end > kRemoteGapBytes || end - request.begin > kMostRequestBytes) {
        break;
      }
      request.end = end;
      ++request.lines;
    }
    return request;
  }

  Status read_bytes(const Request& request) {
    const Part& part = snapshot_->part(request.file);
    if (!file_ || open_file_ != part.file) {
      path_ = snapshot_->file_of(part);
      SMD_TRY(file_, trial_.storage().open(path_));
      open_file_ = part.file;
    }
    const uint64_t length = request.end - request.begin;
    if (bytes_.size() < length) bytes_.resize(length);
    SMD_TRY(const size_t got, file_->read_at(request.begin, std::span(bytes_).first(length)));
    if (got == length) return {};
    return Error{ErrorCode::truncated,
                 fmt::format("The numbers of step {} up to offset {} end behind the file's {} "
                             "bytes: {}",
                             part.step, request.end, request.begin + got, path_)};
  }

  template <typename T>
  Status fill_records(const ColumnGroup& group, const Piece& piece, T* out) {
    std::vector<Location> at;
    std::vector<std::optional<double>> numbers;
    const size_t together = std::max(size_t{1}, kMostRecords / piece.records.size());
    std::span<const uint32_t> left = group.columns;
    while (!left.empty()) {
      const auto columns = left.first(std::min(together, left.size()));
      left = left.subspan(columns.size());
      at.clear();
      for (uint32_t column : columns) {
        for (const Cell& cell : piece.records)
          at.push_back({plan_.part_of(column, piece), cell.entry});
      }
      numbers.resize(at.size());
      SMD_RETURN_IF_ERROR(trial_.read_single_numbers(*snapshot_, at, numbers));
      auto next = numbers.begin();
      for (uint32_t column : columns) {
        for (const Cell& cell : piece.records) {
          if (*next) put(cell.row, column, **next, out);
          ++next;
        }
      }
    }
    return {};
  }

  template <typename T>
  Status fill_computed(const ColumnGroup& group, const Piece& piece, T* out) {
    ReductionRequest request;
    request.reductions.add(*plan_.reduction);
    ReductionResult result;
    for (uint32_t column : group.columns) {
      for (const Cell& cell : piece.computed) {
        SMD_TRY(const TensorValue value,
                trial_.read(*snapshot_, {plan_.part_of(column, piece), cell.entry}));
        if (value.dtype == DType::string) continue;
        SMD_RETURN_IF_ERROR(reduce(value.view(), request, result));
        const Number* found = result.find(*plan_.reduction);
        if (found != nullptr) put(cell.row, column, found->to_double(), out);
      }
    }
    return {};
  }

  template <typename T>
  void put(uint32_t row, uint32_t column, double number, T* out) {
    out[size_t{row} * matrix_.columns() + column] = static_cast<T>(number);
    mark(row, column);
  }

  void mark(uint32_t row, uint32_t column) {
    matrix_.present[size_t{row} * matrix_.columns() + column] = 1;
  }

  // Not every record turned out to hold a number: rows and columns without any go.
  void drop_missing() {
    if (!sparse_) return;
    const size_t rows = matrix_.rows();
    const size_t columns = matrix_.columns();
    std::vector<bool> row_kept(rows, options_.tensors.has_value());
    std::vector<bool> column_kept(columns, false);
    bool all = true;
    for (size_t i = 0; i < rows; ++i) {
      for (size_t j = 0; j < columns; ++j) {
        if (matrix_.present[i * columns + j] == 0) {
          all = false;
          continue;
        }
        row_kept[i] = true;
        column_kept[j] = true;
      }
    }
    const auto kept = [](const std::vector<bool>& which) {
      return static_cast<size_t>(std::count(which.begin(), which.end(), true));
    };
    if (kept(row_kept) < rows || kept(column_kept) < columns) {
      const size_t size = size_of(matrix_.dtype);
      size_t next = 0;
      for (size_t i = 0; i < rows; ++i) {
        for (size_t j = 0; row_kept[i] && j < columns; ++j) {
          if (!column_kept[j]) continue;
          const size_t from = i * columns + j;
          std::memmove(matrix_.memory.get() + next * size, matrix_.memory.get() + from * size,
                       size);
          matrix_.present[next++] = matrix_.present[from];
        }
      }
      matrix_.present.resize(next);
      matrix_.elements = {matrix_.memory.get(), next * size};
      keep(matrix_.names, row_kept);
      keep(matrix_.steps, column_kept);
      all = std::ranges::all_of(matrix_.present, [](uint8_t there) { return there != 0; });
    }
    if (all) matrix_.present = {};
  }

  template <typename T>
  static void keep(std::vector<T>& list, const std::vector<bool>& which) {
    size_t next = 0;
    for (size_t i = 0; i < list.size(); ++i) {
      if (!which[i]) continue;
      if (next != i) list[next] = std::move(list[i]);
      ++next;
    }
    list.resize(next);
  }

  const Trial& trial_;
  const MatrixOptions& options_;
  const std::shared_ptr<const Snapshot> snapshot_;
  internal::MatrixPlan plan_;
  bool sparse_ = false;  // numbers may be missing
  Matrix matrix_;
  // The file that was read last.
  uint32_t open_file_ = kNone;
  std::string path_;
  std::unique_ptr<storage::ReadFile> file_;
  Bytes bytes_;
};

}  // namespace

double Matrix::number(size_t row, size_t column) const {
  const std::byte* const at = elements.data() + (row * columns() + column) * size_of(dtype);
  return dtype == DType::float32 ? load_le<float>(at) : load_le<double>(at);
}

Result<Matrix> read_matrix(const Trial& trial, const MatrixOptions& options) {
  return MatrixReader(trial, options).read();
}

}  // namespace smd
