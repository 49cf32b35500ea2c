#include "smd/rules/closeness.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "smd/rules/elements.h"

namespace smd::rules {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargest = std::numeric_limits<double>::max();

bool is_integer(DType dtype) {
  const DTypeKind kind = info_of(dtype).kind;
  return kind == DTypeKind::signed_integer || kind == DTypeKind::unsigned_integer ||
         kind == DTypeKind::boolean;
}

class Comparison final {
 public:
  Comparison(const Tolerance& tolerance, bool is_exact)
      : rtol_(is_exact ? 0 : tolerance.relative),
        atol_(is_exact ? 0 : tolerance.absolute),
        equal_nan_(tolerance.equal_nan) {}

  // Real numbers. The first loop has no branches, so that it becomes vector instructions; blocks
  // with something odd, which are few, are gone through again.
  void add(int64_t first, std::span<const double> x, std::span<const double> r) {
    int64_t odd = 0;
    double largest = 0;
    const double rtol = rtol_;
    const double atol = atol_;
    for (size_t i = 0; i < x.size(); ++i) {
      const double d = std::fabs(x[i] - r[i]);
      // False for NaN, and for a difference to infinity, which would be below its own tolerance.
      const bool is_close = (d <= atol + rtol * std::fabs(r[i])) & (d <= kLargest);
      odd += !is_close;
      largest = d > largest ? d : largest;
    }
    if (odd == 0 && largest == 0) return;
    for (size_t i = 0; i < x.size(); ++i) {
      const double d = std::fabs(x[i] - r[i]);
      add_one(first + static_cast<int64_t>(i), x[i], r[i], d,
              x[i] == r[i] || (equal_nan_ && std::isnan(x[i]) && std::isnan(r[i])));
    }
  }

  // Real and imaginary parts in turn.
  void add_complex(int64_t first, std::span<const double> x, std::span<const double> r) {
    const auto is_nan = [](std::span<const double> z, size_t i) {
      return std::isnan(z[i]) || std::isnan(z[i + 1]);
    };
    for (size_t i = 0; i < x.size(); i += 2) {
      const bool same =
          (x[i] == r[i] && x[i + 1] == r[i + 1]) || (equal_nan_ && is_nan(x, i) && is_nan(r, i));
      add_one((first + static_cast<int64_t>(i)) / 2, std::hypot(x[i], x[i + 1]),
              std::hypot(r[i], r[i + 1]), std::hypot(x[i] - r[i], x[i + 1] - r[i + 1]), same);
    }
  }

  void add_one(int64_t at, double x, double r, double difference, bool is_same) {
    if (is_same) return;
    if (!(difference <= kLargest)) difference = kInfinity;
    const double relative = difference / std::fabs(r);
    out_.max_absolute = std::max(out_.max_absolute, difference);
    out_.max_relative = std::max(out_.max_relative, std::isfinite(relative) ? relative : kInfinity);
    const double allowed = atol_ + rtol_ * std::fabs(r);
    if (difference <= allowed && difference <= kLargest) return;
    ++out_.differing;
    const double beyond = difference == kInfinity ? kInfinity : difference - allowed;
    if (out_.worst >= 0 && beyond <= worst_beyond_) return;
    worst_beyond_ = beyond;
    out_.worst = at;
    out_.value = x;
    out_.reference = r;
    out_.difference = difference;
    out_.allowed = allowed;
  }

  const Closeness& result() const { return out_; }

 private:
  const double rtol_;
  const double atol_;
  const bool equal_nan_;
  double worst_beyond_ = 0;
  Closeness out_;
};

// Where doubles of different numbers may be equal.
template <typename T>
void compare_integers(const TensorView& x, const TensorView& reference, Comparison& into) {
  const ByteSpan left = x.bytes();
  const ByteSpan right = reference.bytes();
  for (size_t at = 0; at < left.size(); at += sizeof(T)) {
    const T a = load_le<T>(left.data() + at);
    const T b = load_le<T>(right.data() + at);
    if (a == b) continue;
    const auto gap = static_cast<uint64_t>(std::max(a, b)) - static_cast<uint64_t>(std::min(a, b));
    into.add_one(static_cast<int64_t>(at / sizeof(T)), static_cast<double>(a),
                 static_cast<double>(b), static_cast<double>(gap), false);
  }
}

}  // namespace

Result<Closeness> compare(const TensorView& x, const TensorView& reference,
                          const Tolerance& tolerance, Thoroughness thoroughness) {
  const bool is_exact =
      tolerance.exact_integers && is_integer(x.dtype) && is_integer(reference.dtype);
  Comparison into(tolerance, is_exact);
  if (x.dtype == reference.dtype && x.is_contiguous() && reference.is_contiguous()) {
    if (x.dtype == DType::int64)
      return compare_integers<int64_t>(x, reference, into), into.result();
    if (x.dtype == DType::uint64) {
      return compare_integers<uint64_t>(x, reference, into), into.result();
    }
  }
  const bool is_complex = info_of(x.dtype).kind == DTypeKind::complex ||
                          info_of(reference.dtype).kind == DTypeKind::complex;
  SMD_RETURN_IF_ERROR(for_each_pair(
      x, reference, [&](int64_t first, std::span<const double> a, std::span<const double> b) {
        if (is_complex) {
          into.add_complex(first, a, b);
        } else {
          into.add(first, a, b);
        }
        return thoroughness == Thoroughness::all || into.result().all_close();
      }));
  return into.result();
}

Tolerance tolerance_of(const Parameters& parameters) {
  return {.relative = parameters.real(kRtol.name),
          .absolute = parameters.real(kAtol.name),
          .equal_nan = parameters.boolean("equal_nan"),
          .exact_integers = !parameters.is_given(kRtol.name) && !parameters.is_given(kAtol.name)};
}

}  // namespace smd::rules
