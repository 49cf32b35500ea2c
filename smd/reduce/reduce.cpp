#include "smd/reduce/reduce.h"

#include <algorithm>
#include <memory>

#include "smd/reduce/internal/element_reader.h"
#include "smd/reduce/internal/histogram_counter.h"
#include "smd/reduce/internal/median.h"
#include "smd/reduce/internal/pass.h"
#include "smd/reduce/internal/reduce_with.h"

namespace smd {
namespace internal {
namespace {

// Totals of the values and of their absolute values.
struct TotalsPair {
  Totals plain;
  Totals abs;
};

bool is_complex(DType dtype) { return info_of(dtype).kind == DTypeKind::complex; }

// A complex number has no order and no real sum: only its absolute value is reduced.
bool applies(Reduction r, DType dtype) { return r.abs() || r.kind().is_norm || !is_complex(dtype); }

PassOptions plan(DType dtype, const ReductionRequest& request) {
  PassOptions options{.dtype = dtype, .count_special = request.count_special};
  request.reductions.for_each([&](Reduction r) {
    if (!applies(r, dtype)) return;
    Needs& needs = r.abs() ? options.abs : options.plain;
    needs = needs | r.kind().needs;
  });
  return options;
}

// Also feeds `histogram`, if there is one.
template <typename T>
Pass<T> run(const Kernels& kernels, const TensorView& tensor, const PassOptions& options,
            HistogramCounter* histogram = nullptr) {
  const size_t most = histogram == nullptr ? Pass<T>::kMostElements : kBlockElements;
  Pass<T> pass(kernels, options);
  ElementReader<T> elements(kernels, tensor, options.exponent);
  for (auto block = elements.next(most); !block.empty(); block = elements.next(most)) {
    pass.add(block);
    if (histogram != nullptr) histogram->add(block);
  }
  return pass;
}

void take_sums(const Totals& from, Totals& to) {
  to.exponent = from.exponent;
  to.total = from.total;
  to.magnitude = from.magnitude;
  to.squares = from.squares;
  to.squared_deviations = from.squared_deviations;
  to.sum = from.sum;
}

template <typename T>
TotalsPair fused(const Kernels& kernels, const TensorView& tensor, PassOptions options,
                 HistogramCounter* histogram, ReductionResult& out) {
  const Pass<T> pass = run<T>(kernels, tensor, options, histogram);
  out.nan_count = pass.special().nan;
  out.inf_count = pass.special().inf;
  out.zero_count = pass.special().zero;
  TotalsPair totals{pass.totals(false), pass.totals(true)};
  options.exponent = pass.needed_exponent();
  if (options.exponent == 0) return totals;

  options.count_special = false;
  const Pass<T> scaled = run<T>(kernels, tensor, options);
  take_sums(scaled.totals(false), totals.plain);
  take_sums(scaled.totals(true), totals.abs);
  return totals;
}

template <typename T>
void add_medians(const Kernels& kernels, const TensorView& tensor, const PassOptions& options,
                 TotalsPair& totals) {
  if (!has(options.plain | options.abs, Needs::middle)) return;
  std::vector<T> values;
  values.reserve(static_cast<size_t>(tensor.size()));
  ElementReader<T> elements(kernels, tensor);
  for (auto block = elements.next(); !block.empty(); block = elements.next()) {
    values.insert(values.end(), block.begin(), block.end());
  }
  if (has(options.abs, Needs::middle)) {
    std::vector<Magnitude<T>> magnitudes(values.size());
    std::transform(values.begin(), values.end(), magnitudes.begin(), magnitude_of<T>);
    totals.abs.middle = median(magnitudes);
  }
  if (has(options.plain, Needs::middle)) totals.plain.middle = median(values);
}

}  // namespace

Status reduce_with(const Kernels& kernels, const TensorView& tensor,
                   const ReductionRequest& request, ReductionResult& out) {
  out.values.clear();
  out.nan_count = out.inf_count = out.zero_count = 0;
  out.histogram.count = out.histogram.finite_count = 0;
  out.histogram.limits.clear();
  out.histogram.counts.clear();
  SMD_RETURN_IF_ERROR(check(tensor));
  if (tensor.size() == 0) return {};

  const PassOptions options = plan(tensor.dtype, request);
  // On the heap: it is too large for the stacks of small calls.
  std::unique_ptr<HistogramCounter> histogram;
  if (request.histogram) histogram = std::make_unique<HistogramCounter>(kernels);
  TotalsPair totals;
  for_computing_type(tensor.dtype, [&]<typename T>(std::type_identity<T>) {
    totals = fused<T>(kernels, tensor, options, histogram.get(), out);
    add_medians<T>(kernels, tensor, options, totals);
  });
  request.reductions.for_each([&](Reduction r) {
    if (!applies(r, tensor.dtype)) return;
    out.values.emplace_back(r, r.kind().finish(r.abs() ? totals.abs : totals.plain));
  });
  if (histogram) histogram->finish(out.histogram);
  return {};
}

}  // namespace internal

const Number* ReductionResult::find(Reduction r) const {
  for (const auto& [reduction, number] : values) {
    if (reduction == r) return &number;
  }
  return nullptr;
}

Status reduce(const TensorView& tensor, const ReductionRequest& request, ReductionResult& out) {
  return internal::reduce_with(internal::best_kernels(), tensor, request, out);
}

}  // namespace smd
