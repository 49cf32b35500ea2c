#include "smd/trial/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include "smd/base/crc32c.h"
#include "smd/base/nearest.h"
#include "smd/reduce/reduce.h"
#include "smd/trial/internal/single_number.h"

namespace smd {
namespace {

constexpr std::string_view kValue = "value";
// Steps are turned into columns together: a cache line of the matrix holds many of them.
constexpr size_t kLeastTogether = 64;
constexpr size_t kStageBytes = size_t{1} << 20;
constexpr size_t kRemoteStageBytes = size_t{16} << 20;
// Remote numbers that lie this close are one request.
constexpr uint64_t kRemoteGapBytes = uint64_t{256} << 10;
constexpr uint64_t kMostRequestBytes = uint64_t{16} << 20;
// Records that are read at once.
constexpr size_t kMostRecords = size_t{1} << 18;

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
struct Plan {
  std::vector<Piece> pieces;
  std::vector<uint32_t> columns;
  bool whole_float32 = true;

  size_t size() const {
    size_t sum = 0;
    for (const Piece& piece : pieces) sum += piece.size();
    return sum;
  }
};

struct Column {
  Step step = 0;
  uint32_t first_part = 0;  // in MatrixReader::parts_
};

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
    SMD_RETURN_IF_ERROR(choose_number());
    SMD_RETURN_IF_ERROR(choose_worker());
    SMD_RETURN_IF_ERROR(choose_tensors());
    choose_columns();
    if (!options_.tensors) drop_unused_rows();
    SMD_RETURN_IF_ERROR(allocate());
    SMD_RETURN_IF_ERROR(matrix_.dtype == DType::float32 ? fill<float>() : fill<double>());
    drop_missing();
    return std::move(matrix_);
  }

 private:
  Status choose_number() {
    if (options_.reduction.empty() || options_.reduction == kValue) {
      slot_ = Slot::value();
      return {};
    }
    slot_ = snapshot_->find_slot(options_.reduction, false);
    const auto known = parse_reduction(options_.reduction);
    if (known.ok() && options_.compute) reduction_ = *known;
    if (!slot_ && !known.ok()) return known.error();
    return {};
  }

  Status choose_worker() {
    if (options_.worker.empty()) return {};
    worker_ = snapshot_->names().workers.find(options_.worker);
    if (worker_) return {};
    return Error{ErrorCode::invalid_argument,
                 fmt::format("There is no worker '{}'.{}", options_.worker,
                             did_you_mean(options_.worker, snapshot_->names().workers.all()))};
  }

  Status choose_tensors() {
    const NameList& names = snapshot_->names().tensors;
    tensors_ = options_.tensors ? *options_.tensors : snapshot_->tensors(options_.mode);
    rows_.assign(names.size(), kNone);
    for (uint32_t i = 0; i < tensors_.size(); ++i) {
      const uint32_t tensor = tensors_[i];
      if (tensor >= names.size()) {
        return Error{ErrorCode::invalid_argument,
                     fmt::format("There is no tensor number {}; the run has {} tensors.", tensor,
                                 names.size())};
      }
      if (rows_[tensor] != kNone) {
        return Error{ErrorCode::invalid_argument,
                     fmt::format("The tensor '{}' is listed twice.", names[tensor])};
      }
      rows_[tensor] = i;
    }
    return {};
  }

  // The steps, each with its parts and its plan.
  void choose_columns() {
    struct Numbered {
      Step step;
      uint32_t row;
    };
    std::vector<Numbered> chosen;
    for (uint32_t i = 0; i < snapshot_->row_count(); ++i) {
      const StepRow& row = snapshot_->row(i);
      if (options_.mode != Mode::global && row.info.mode != options_.mode) continue;
      if (!options_.incomplete && !snapshot_->is_complete(row)) continue;
      const Step step = options_.mode == Mode::global ? row.info.step : row.info.mode_step;
      if (options_.steps.contains(step)) chosen.push_back({step, i});
    }
    // A resumed job may repeat a mode step: as everywhere, the first one counts.
    std::ranges::stable_sort(chosen, {}, &Numbered::step);
    std::map<std::vector<uint32_t>, uint32_t> known;
    std::vector<uint32_t> key;
    std::vector<uint32_t> last_key;
    uint32_t plan = kNone;
    for (size_t first = 0; first < chosen.size();) {
      const auto first_part = static_cast<uint32_t>(parts_.size());
      const Step step = chosen[first].step;
      key.clear();
      for (; first < chosen.size() && chosen[first].step == step; ++first) {
        key.push_back(kNone);
        snapshot_->for_each_part(snapshot_->row(chosen[first].row),
                                 [&](uint32_t id, const Part& part) {
                                   if (worker_ && part.worker != *worker_) return;
                                   key.push_back(part.layout);
                                   parts_.push_back(id);
                                 });
      }
      if (plan == kNone || key != last_key) {
        const auto [at, is_new] = known.try_emplace(key, static_cast<uint32_t>(plans_.size()));
        if (is_new) plans_.push_back(make_plan(key, first_part));
        plan = at->second;
        last_key = key;
      }
      if (plans_[plan].pieces.empty()) {
        parts_.resize(first_part);
        continue;
      }
      plans_[plan].columns.push_back(static_cast<uint32_t>(columns_.size()));
      columns_.push_back({step, first_part});
    }
  }

  // `key`: the layouts of the parts from `first_part` on, kNone before those of each step.
  Plan make_plan(const std::vector<uint32_t>& key, uint32_t first_part) {
    Plan plan;
    taken_.assign(tensors_.size(), false);
    uint32_t nth = 0;
    for (size_t i = 0; i < key.size();) {
      const size_t count =
          static_cast<size_t>(
              std::find(key.begin() + static_cast<std::ptrdiff_t>(i) + 1, key.end(), kNone) -
              key.begin()) -
          i - 1;
      const size_t begin = plan.pieces.size();
      for (uint32_t part = nth; part < nth + count; ++part) {
        plan.pieces.push_back({.nth = part});
        add_stored(snapshot_->layout_of(snapshot_->part(parts_[first_part + part])), plan,
                   plan.pieces.back());
      }
      for (size_t p = begin; reduction_ && p < plan.pieces.size(); ++p) {
        const uint32_t part = parts_[first_part + plan.pieces[p].nth];
        add_computed(snapshot_->layout_of(snapshot_->part(part)), plan, plan.pieces[p]);
      }
      nth += static_cast<uint32_t>(count);
      i += count + 1;
    }
    std::erase_if(plan.pieces, [](const Piece& piece) { return piece.size() == 0; });
    return plan;
  }

  // Whether the entry gives a number that nobody gave before.
  bool takes(const Layout::Entry& entry, Slot slot) {
    if (entry.slot != slot.id() || rows_[entry.tensor] == kNone) return false;
    if (taken_[rows_[entry.tensor]]) return false;
    if (slot_ == Slot::value() && entry.form == Layout::Form::record &&
        entry.length > internal::most_bytes_of_single(snapshot_->names().tensors[entry.tensor])) {
      return false;
    }
    taken_[rows_[entry.tensor]] = true;
    return true;
  }

  void add_stored(const Layout& layout, Plan& plan, Piece& piece) {
    if (!slot_) return;
    const auto entries = layout.entries();
    std::vector<Cell> numbers;  // of the block
    for (uint32_t i = 0; i < entries.size(); ++i) {
      const Layout::Entry& entry = entries[i];
      if (!takes(entry, *slot_)) continue;
      const bool plain = entry.dtype == DType::float32 || entry.dtype == DType::float64;
      const bool in_block = entry.form != Layout::Form::record && plain;
      (in_block ? numbers : piece.records).push_back({i, rows_[entry.tensor]});
      if (!in_block || entry.dtype == DType::float64) plan.whole_float32 = false;
    }
    const auto place = [&](const Cell& cell) { return entries[cell.entry].offset; };
    std::ranges::sort(numbers, {}, place);
    std::ranges::sort(piece.records, {}, place);
    for (const Cell& cell : numbers) {
      const Layout::Entry& entry = entries[cell.entry];
      const bool wide = entry.dtype == DType::float64;
      const bool follows =
          !piece.runs.empty() && piece.runs.back().wide == wide &&
          piece.runs.back().offset + piece.runs.back().count * entry.length == entry.offset;
      if (!follows) piece.runs.push_back({entry.offset, 0, wide});
      ++piece.runs.back().count;
      piece.rows.push_back(cell.row);
    }
  }

  void add_computed(const Layout& layout, Plan& plan, Piece& piece) {
    const auto entries = layout.entries();
    for (uint32_t i = 0; i < entries.size(); ++i) {
      if (!takes(entries[i], Slot::value())) continue;
      piece.computed.push_back({i, rows_[entries[i].tensor]});
      plan.whole_float32 = false;
    }
  }

  void drop_unused_rows() {
    std::vector<uint32_t> places(tensors_.size(), kNone);
    for_each_row([&](uint32_t& row) { places[row] = 0; });
    uint32_t count = 0;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (places[i] == kNone) continue;
      tensors_[count] = tensors_[i];
      places[i] = count++;
    }
    tensors_.resize(count);
    for_each_row([&](uint32_t& row) { row = places[row]; });
  }

  template <typename F>
  void for_each_row(F&& f) {
    for (Plan& plan : plans_) {
      for (Piece& piece : plan.pieces) {
        for (uint32_t& row : piece.rows) f(row);
        for (Cell& cell : piece.records) f(cell.row);
        for (Cell& cell : piece.computed) f(cell.row);
      }
    }
  }

  Status allocate() {
    for (uint32_t tensor : tensors_) matrix_.names.push_back(snapshot_->names().tensors[tensor]);
    for (const Column& column : columns_) matrix_.steps.push_back(column.step);
    bool whole_float32 = !columns_.empty();
    uint64_t stored = 0;
    for (const Plan& plan : plans_) {
      whole_float32 = whole_float32 && plan.whole_float32;
      stored += plan.columns.size() * plan.size();
      for (const Piece& piece : plan.pieces) {
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
    for (const Plan& plan : plans_) {
      for (const Piece& piece : plan.pieces) {
        if (!piece.rows.empty()) SMD_RETURN_IF_ERROR(fill_numbers(plan, piece, out));
        if (!piece.records.empty()) SMD_RETURN_IF_ERROR(fill_records(plan, piece, out));
        if (!piece.computed.empty()) SMD_RETURN_IF_ERROR(fill_computed(plan, piece, out));
      }
    }
    return {};
  }

  uint32_t part_of(uint32_t column, const Piece& piece) const {
    return parts_[columns_[column].first_part + piece.nth];
  }

  template <typename T>
  Status fill_numbers(const Plan& plan, const Piece& piece, T* out) {
    // Lines of other than a power of two: the lines of a column shall not share cache sets.
    const size_t stride = (piece.rows.size() + 16) | 1;
    const size_t stage_bytes = trial_.storage().is_remote() ? kRemoteStageBytes : kStageBytes;
    const size_t together = std::max(kLeastTogether, stage_bytes / (stride * sizeof(T)));
    std::vector<T> stage(std::min(together, plan.columns.size()) * stride);
    std::span<const uint32_t> left = plan.columns;
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
        const Part& part = snapshot_->part(part_of(columns[line], piece));
        const auto at = [&](uint64_t offset) {
          return bytes_.data() + (part.base + offset - request.begin);
        };
        if (part.checksums) {
          const Layout::Block& block = snapshot_->layout_of(part).block();
          SMD_RETURN_IF_ERROR(check_block(part, {at(block.offset), block.length}));
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
      const uint32_t id = part_of(column, piece);
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

  Status check_block(const Part& part, ByteSpan numbers) const {
    if (!part.checksums->block) return {};
    const uint32_t found = crc32c(numbers);
    if (found == *part.checksums->block) return {};
    return Error{ErrorCode::corrupt,
                 fmt::format("The numbers of step {} at offset {} do not have the checksum "
                             "{:#010x} that the log says, but {:#010x}: {}",
                             part.step, part.base + snapshot_->layout_of(part).block().offset,
                             *part.checksums->block, found, path_)};
  }

  template <typename T>
  Status fill_records(const Plan& plan, const Piece& piece, T* out) {
    std::vector<Location> at;
    std::vector<std::optional<double>> numbers;
    const size_t together = std::max(size_t{1}, kMostRecords / piece.records.size());
    std::span<const uint32_t> left = plan.columns;
    while (!left.empty()) {
      const auto columns = left.first(std::min(together, left.size()));
      left = left.subspan(columns.size());
      at.clear();
      for (uint32_t column : columns) {
        for (const Cell& cell : piece.records) at.push_back({part_of(column, piece), cell.entry});
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
  Status fill_computed(const Plan& plan, const Piece& piece, T* out) {
    ReductionRequest request;
    request.reductions.add(*reduction_);
    ReductionResult result;
    for (uint32_t column : plan.columns) {
      for (const Cell& cell : piece.computed) {
        SMD_TRY(const TensorValue value,
                trial_.read(*snapshot_, {part_of(column, piece), cell.entry}));
        if (value.dtype == DType::string) continue;
        SMD_RETURN_IF_ERROR(reduce(value.view(), request, result));
        const Number* found = result.find(*reduction_);
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
  std::optional<Slot> slot_;            // nothing like it is stored
  std::optional<Reduction> reduction_;  // to be computed where it is not stored
  std::optional<uint32_t> worker_;
  std::vector<uint32_t> tensors_;  // of the rows
  std::vector<uint32_t> rows_;     // by tensor; kNone: not chosen
  std::vector<bool> taken_;        // rows that have their number, while a plan is made
  std::vector<uint32_t> parts_;    // of all columns
  std::vector<Column> columns_;
  std::vector<Plan> plans_;
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
