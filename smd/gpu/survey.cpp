#include "smd/gpu/survey.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "smd/reduce/result_types.h"

namespace smd::gpu {
namespace {

using Long = long double;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Σx, Σx² and Σ(x − mean)², joined by the formula of Chan, Golub and LeVeque (1983). The exponent
// of a long double holds the square of every float64.
class Moments final {
 public:
  void add(Long n, Long shift, Long first, Long second, int exponent) {
    const Long spread = std::max(second - first * first / n, Long{0});
    const Long total = n * shift + first;
    const Long squares = second + shift * (first + total);
    const Long scale = exponent == 0 ? 1 : std::ldexp(Long{1}, -exponent);
    total_ += total * scale;
    squares_ += squares * scale * scale;
    const Long delta = (shift + first / n) * scale - mean_;
    const Long all = count_ + n;
    deviations_ += spread * scale * scale + delta * delta * (count_ * n / all);
    mean_ += delta * (n / all);
    count_ = all;
  }
  Long total() const { return total_; }
  Long squares() const { return squares_; }
  Long deviations() const { return deviations_; }

 private:
  Long count_ = 0;
  Long mean_ = 0;
  Long total_ = 0;
  Long squares_ = 0;
  Long deviations_ = 0;
};

struct Joined {
  int64_t count = 0;
  NonFinite nonfinite;
  int64_t zero = 0;
  Moments plain, abs;
  uint64_t sum = 0, abs_sum = 0;
  uint64_t least = 0, most = 0, abs_least = 0;  // as in a Partial
};

enum class Order { real, whole, natural };

Order order_of(DType dtype) {
  switch (info_of(dtype).kind) {
    case DTypeKind::floating: return Order::real;
    case DTypeKind::unsigned_integer: return dtype == DType::uint64 ? Order::natural : Order::whole;
    default: return Order::whole;
  }
}

bool is_below(Order order, uint64_t a, uint64_t b) {
  switch (order) {
    case Order::real: return std::bit_cast<double>(a) < std::bit_cast<double>(b);
    case Order::whole: return std::bit_cast<int64_t>(a) < std::bit_cast<int64_t>(b);
    default: return a < b;
  }
}

Joined join(DType dtype, std::span<const Partial> partials) {
  const Order order = order_of(dtype);
  const Order abs_order = order == Order::real ? order : Order::natural;
  Joined out{
      .least = partials[0].least, .most = partials[0].most, .abs_least = partials[0].abs_least};
  for (const Partial& partial : partials) {
    const auto n = static_cast<Long>(partial.count);
    out.count += partial.count;
    out.zero += partial.zero;
    out.plain.add(n, partial.shift, partial.first, partial.second, partial.exponent);
    out.abs.add(n, partial.abs_shift, partial.abs_first, partial.abs_second, partial.exponent);
    out.sum += partial.sum;
    out.abs_sum += partial.abs_sum;
    if (is_below(order, partial.least, out.least)) out.least = partial.least;
    if (is_below(order, out.most, partial.most)) out.most = partial.most;
    if (is_below(abs_order, partial.abs_least, out.abs_least)) out.abs_least = partial.abs_least;
  }
  out.nonfinite = nonfinite_in(partials);
  return out;
}

void take_real_ends(const Joined& joined, bool abs, Totals& out) {
  const auto least = std::bit_cast<double>(joined.least);
  const auto most = std::bit_cast<double>(joined.most);
  double low = abs ? std::bit_cast<double>(joined.abs_least) : least;
  double high = abs ? std::max(std::fabs(least), std::fabs(most)) : most;
  if (joined.nonfinite.nan > 0) low = high = kNan;
  out.min = Number::real(out.real_type, low);
  out.max = Number::real(out.real_type, high);
}

uint64_t greatest_magnitude(DType dtype, const Joined& joined) {
  if (order_of(dtype) == Order::natural) return joined.most;
  const auto magnitude = [](uint64_t x) {
    return std::bit_cast<int64_t>(x) < 0 ? uint64_t{0} - x : x;
  };
  return std::max(magnitude(joined.least), magnitude(joined.most));
}

void take_whole_ends(DType dtype, const Joined& joined, bool abs, Totals& out) {
  const DType type = abs ? magnitude_type(dtype) : dtype;
  out.min = Number::integer(type, abs ? joined.abs_least : joined.least);
  out.max = Number::integer(type, abs ? greatest_magnitude(dtype, joined) : joined.most);
  out.sum = Number::integer(sum_type(type), abs ? joined.abs_sum : joined.sum);
}

// Sums that hold what is not a number depend on what that is, and on nothing else.
void take_special_sums(const NonFinite& special, bool abs, Totals& out) {
  const bool nan = special.nan > 0;
  const bool both = special.positive_inf > 0 && special.negative_inf > 0;
  const double total = special.positive_inf > 0 ? kInf : -kInf;
  out.magnitude = out.squares = nan ? kNan : kInf;
  out.total = nan ? kNan : abs ? kInf : both ? kNan : total;
  out.squared_deviations = kNan;
}

void take_sums(const Joined& joined, bool abs, Totals& out) {
  if (joined.nonfinite.total() > 0) return take_special_sums(joined.nonfinite, abs, out);
  const Moments& own = abs ? joined.abs : joined.plain;
  // Between these bounds the squares fit into float64, and what underflows is not seen.
  constexpr int kBound = 400;
  const auto least = std::bit_cast<double>(joined.least);
  const auto most = std::bit_cast<double>(joined.most);
  if (out.real_type == DType::float64 && info_of(out.min.dtype).kind == DTypeKind::floating) {
    const double greatest = std::max(std::fabs(least), std::fabs(most));
    const int magnitude = greatest > 0 ? std::ilogb(greatest) : 0;
    if (std::abs(magnitude) > kBound) out.exponent = -magnitude;
  }
  const auto scaled = [&](Long x, int power) {
    return static_cast<double>(std::ldexp(x, power * out.exponent));
  };
  out.total = scaled(own.total(), 1);
  out.magnitude = scaled(joined.abs.total(), 1);
  out.squares = scaled(joined.plain.squares(), 2);
  out.squared_deviations = scaled(own.deviations(), 2);
}

Totals totals_of(DType dtype, const Joined& joined, bool abs) {
  Totals out;
  out.real_type = real_type(dtype);
  out.count = joined.count;
  if (info_of(dtype).kind == DTypeKind::floating) {
    take_real_ends(joined, abs, out);
    take_sums(joined, abs, out);
    out.sum = out.real(out.total, 1);
  } else {
    take_whole_ends(dtype, joined, abs, out);
    take_sums(joined, abs, out);
  }
  return out;
}

}  // namespace

bool can_survey(DType dtype) {
  const DTypeKind kind = info_of(dtype).kind;
  return kind != DTypeKind::complex && kind != DTypeKind::string;
}

bool can_survey(const ReductionSet& reductions) {
  bool can = true;
  reductions.for_each([&](Reduction r) {
    can = can && !has(r.kind().needs, Needs::product) && !has(r.kind().needs, Needs::middle);
  });
  return can;
}

bool needs_absolute_deviations(const ReductionSet& reductions) {
  bool needs = false;
  reductions.for_each(
      [&](Reduction r) { needs = needs || (r.abs() && has(r.kind().needs, Needs::deviations)); });
  return needs;
}

void finish_survey(DType dtype, std::span<const Partial> partials, const ReductionRequest& request,
                   ReductionResult& out) {
  out.values.clear();
  out.nan_count = out.inf_count = out.zero_count = 0;
  if (partials.empty()) return;
  const Joined joined = join(dtype, partials);
  out.nan_count = joined.nonfinite.nan;
  out.inf_count = joined.nonfinite.positive_inf + joined.nonfinite.negative_inf;
  out.zero_count = joined.zero;
  const Totals plain = totals_of(dtype, joined, false);
  const Totals abs = totals_of(dtype, joined, true);
  request.reductions.for_each(
      [&](Reduction r) { out.values.emplace_back(r, r.kind().finish(r.abs() ? abs : plain)); });
}

NonFinite nonfinite_in(std::span<const Partial> partials) {
  NonFinite out;
  for (const Partial& partial : partials) {
    out.nan += partial.nan;
    out.positive_inf += partial.positive_inf;
    out.negative_inf += partial.negative_inf;
  }
  return out;
}

}  // namespace smd::gpu
