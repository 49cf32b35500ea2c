#include "smd/cli/array_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "smd/cli/json_output.h"
#include "smd/picture/text_width.h"
#include "smd/reduce/reduce.h"

namespace smd::cli {
namespace {

constexpr int64_t kEdge = 3;
constexpr int kMostText = 60;

// The element as a number of a type that C++ knows: the largest of one element is that element.
Number number_at(const TensorValue& value, size_t i) {
  ReductionRequest request;
  const auto max = parse_reduction("max");
  SMD_CHECK(max.ok());
  request.reductions.add(*max);
  ReductionResult result;
  const TensorView one{.data = value.elements.data() + i * size_of(value.dtype),
                       .dtype = value.dtype};
  SMD_CHECK(reduce(one, request, result).ok() && !result.values.empty());
  return result.values.front().second;
}

template <typename T>
T element_at(const TensorValue& value, size_t i) {
  return load_le<T>(value.elements.data() + i * sizeof(T));
}

template <typename T>
std::string complex_text(const TensorValue& value, size_t i) {
  return fmt::format("{}{:+}j", element_at<T>(value, 2 * i), element_at<T>(value, 2 * i + 1));
}

std::string number_text(const Number& number) {
  switch (info_of(number.dtype).kind) {
    case DTypeKind::boolean: return number.bits[0] != std::byte{0} ? "True" : "False";
    case DTypeKind::unsigned_integer:
      return fmt::format("{}", load_le<uint64_t>(number.bits.data()));
    case DTypeKind::signed_integer: break;
    default:
      return number.dtype == DType::float32
                 ? fmt::format("{}", load_le<float>(number.bits.data()))
                 : fmt::format("{}", load_le<double>(number.bits.data()));
  }
  // The bytes after the element are zeros, so that the sign has to be carried over.
  const size_t shift = 64 - 8 * size_of(number.dtype);
  const auto bits = load_le<uint64_t>(number.bits.data()) << shift;
  return fmt::format("{}", static_cast<int64_t>(bits) >> shift);
}

std::string element_text(const TensorValue& value, size_t i) {
  switch (value.dtype) {
    case DType::string:
      return fmt::format("'{}'", cut_to_width(printable(value.strings[i]), kMostText));
    case DType::complex64: return complex_text<float>(value, i);
    case DType::complex128: return complex_text<double>(value, i);
    default: return number_text(number_at(value, i));
  }
}

template <typename T>
Json complex_json(const TensorValue& value, size_t i) {
  return {json_number(static_cast<double>(element_at<T>(value, 2 * i))),
          json_number(static_cast<double>(element_at<T>(value, 2 * i + 1)))};
}

Json element_json(const TensorValue& value, size_t i) {
  switch (value.dtype) {
    case DType::string: return value.strings[i];
    case DType::complex64: return complex_json<float>(value, i);
    case DType::complex128: return complex_json<double>(value, i);
    default: break;
  }
  const Number number = number_at(value, i);
  switch (info_of(number.dtype).kind) {
    case DTypeKind::boolean: return number.bits[0] != std::byte{0};
    case DTypeKind::unsigned_integer: return load_le<uint64_t>(number.bits.data());
    case DTypeKind::signed_integer: return std::stoll(number_text(number));
    default: return json_number(number.to_double());
  }
}

int64_t count_of(const TensorValue& value) {
  return value.dtype == DType::string ? static_cast<int64_t>(value.strings.size())
                                      : value.view().size();
}

// As far as it is shown: a file may claim any number of axes.
Shape shown_shape(const TensorValue& value) {
  constexpr size_t kMostAxes = 64;
  return value.shape.size() <= kMostAxes ? value.shape : Shape{count_of(value)};
}

class ArrayWriter final {
 public:
  ArrayWriter(const TensorValue& value, const ArrayTextOptions& options)
      : value_(value), shape_(shown_shape(value)), options_(options) {
    abbreviated_ = count_of(value) > options.limit;
    // One width for all that is shown, so that columns stand below each other.
    visit(0, 0, [&](size_t i) { cell_ = std::max(cell_, text_width(element_text(value_, i))); });
  }

  std::string text() {
    write(0, 0);
    return std::move(out_);
  }

 private:
  int64_t extent(size_t axis) const { return shape_[axis]; }
  int64_t stride(size_t axis) const {
    int64_t product = 1;
    for (size_t i = axis + 1; i < shape_.size(); ++i) product *= shape_[i];
    return product;
  }
  bool cuts(size_t axis) const { return abbreviated_ && extent(axis) > 2 * kEdge; }

  template <typename F>
  void visit(size_t axis, int64_t first, F&& f) const {
    if (axis == shape_.size()) return f(static_cast<size_t>(first));
    for (int64_t i = 0; i < extent(axis); ++i) {
      if (cuts(axis) && i == kEdge) i = extent(axis) - kEdge;
      visit(axis + 1, first + i * stride(axis), f);
    }
  }

  void write(size_t axis, int64_t first) {
    const size_t rank = shape_.size();
    if (axis == rank) {
      out_ += fmt::format("{}", element_text(value_, static_cast<size_t>(first)));
      return;
    }
    out_ += '[';
    if (axis + 1 == rank) {
      write_line(axis, first);
    } else {
      for (int64_t i = 0; i < extent(axis); ++i) {
        if (i > 0) {
          out_ += std::string(rank - axis - 1, '\n') + std::string(axis + 1, ' ');
        }
        if (cuts(axis) && i == kEdge) {
          out_ += "..." + std::string(rank - axis - 1, '\n') + std::string(axis + 1, ' ');
          i = extent(axis) - kEdge;
        }
        write(axis + 1, first + i * stride(axis));
      }
    }
    out_ += ']';
  }

  void write_line(size_t axis, int64_t first) {
    const int indent = static_cast<int>(axis) + 1;
    int column = indent;
    const auto add = [&](const std::string& word, int width, bool is_first) {
      // The closing brackets need room, too.
      if (!is_first && column + 1 + width + indent > options_.width) {
        out_ += "\n" + std::string(static_cast<size_t>(indent), ' ');
        column = indent;
      } else if (!is_first) {
        out_ += ' ';
        ++column;
      }
      out_ += word;
      column += width;
    };
    for (int64_t i = 0; i < extent(axis); ++i) {
      if (cuts(axis) && i == kEdge) {
        add("...", 3, false);
        i = extent(axis) - kEdge;
      }
      const std::string text = element_text(value_, static_cast<size_t>(first + i));
      const auto spaces = static_cast<size_t>(std::max(0, cell_ - text_width(text)));
      add(value_.dtype == DType::string ? text : std::string(spaces, ' ') + text,
          value_.dtype == DType::string ? text_width(text) : cell_, i == 0);
    }
  }

  const TensorValue& value_;
  const Shape shape_;
  const ArrayTextOptions& options_;
  bool abbreviated_ = false;
  int cell_ = 0;
  std::string out_;
};

Json nested_json(const TensorValue& value, const Shape& shape, size_t axis, size_t& next) {
  if (axis == shape.size()) return element_json(value, next++);
  Json list = Json::array();
  for (int64_t i = 0; i < shape[axis]; ++i) {
    list.push_back(nested_json(value, shape, axis + 1, next));
  }
  return list;
}

}  // namespace

std::string array_text(const TensorValue& value, const ArrayTextOptions& options) {
  if (count_of(value) == 0) return "[]";
  return ArrayWriter(value, options).text();
}

Json array_json(const TensorValue& value) {
  if (count_of(value) == 0) return Json::array();
  size_t next = 0;
  return nested_json(value, shown_shape(value), 0, next);
}

std::string shape_text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string type_text(DType dtype, const Shape& shape) {
  return std::string(name_of(dtype)) + shape_text(shape);
}

}  // namespace smd::cli
