#pragma once

// Makes tensor views from what C++ programs hold numbers in: vectors, spans, arrays, pointers and
// matrices with strides such as Eigen's. Nothing is copied but shape and strides, which a View
// holds itself. A View is valid as long as the memory it was made from; it is a parameter, not a
// member.

#include <array>
#include <bit>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "smd/base/result.h"
#include "smd/tensor/dtype.h"
#include "smd/tensor/tensor_view.h"

namespace smd {

// The element type of T. Specialise it for a type of your own that is stored like one of ours:
//   template <> struct smd::ElementType<my::bfloat16> {
//     static constexpr smd::DType value = smd::DType::bfloat16;
//   };
template <typename T>
struct ElementType {};

template <typename T>
concept Element = requires {
  { ElementType<std::remove_cv_t<T>>::value } -> std::convertible_to<DType>;
};

template <Element T>
constexpr DType dtype_of() {
  return ElementType<std::remove_cv_t<T>>::value;
}

// The numbers of C++, by kind and size; characters are text, not numbers.
template <typename T>
concept PlainInteger = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> &&
                       !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
                       !std::same_as<T, char16_t> && !std::same_as<T, char32_t> && sizeof(T) <= 8;

template <PlainInteger T>
struct ElementType<T> {
  static constexpr DType kSigned[4] = {DType::int8, DType::int16, DType::int32, DType::int64};
  static constexpr DType kUnsigned[4] = {DType::uint8, DType::uint16, DType::uint32, DType::uint64};
  static constexpr size_t kIndex = static_cast<size_t>(std::countr_zero(sizeof(T)));
  static constexpr DType value = std::is_signed_v<T> ? kSigned[kIndex] : kUnsigned[kIndex];
};
template <>
struct ElementType<bool> {
  static constexpr DType value = DType::boolean;
};
template <>
struct ElementType<float> {
  static constexpr DType value = DType::float32;
};
template <>
struct ElementType<double> {
  static constexpr DType value = DType::float64;
};
template <>
struct ElementType<std::complex<float>> {
  static constexpr DType value = DType::complex64;
};
template <>
struct ElementType<std::complex<double>> {
  static constexpr DType value = DType::complex128;
};

// A shape or strides: {rows, columns}, any integers, or a list of int64_t. At most kMostAxes
// numbers. Plain value.
class Extents final {
 public:
  static constexpr size_t kMostAxes = 8;

  Extents() = default;
  template <std::integral... I>
  requires(sizeof...(I) > 0 && sizeof...(I) <= kMostAxes)
      Extents(I... extents)  // NOLINT: implicit, for {rows, columns}
      : values_{static_cast<int64_t>(extents)...}, size_(sizeof...(I)) {}
  // One number too many is remembered: too_many().
  Extents(std::span<const int64_t> extents);    // NOLINT: implicit
  Extents(const std::vector<int64_t>& extents)  // NOLINT: implicit
      : Extents(std::span<const int64_t>(extents)) {}

  std::span<const int64_t> values() const { return {values_.data(), size_}; }
  size_t size() const { return size_; }
  bool too_many() const { return too_many_; }

 private:
  std::array<int64_t, kMostAxes> values_{};
  size_t size_ = 0;
  bool too_many_ = false;
};

// A TensorView with its own shape and strides.
class View final {
 public:
  // `strides` in elements, none for C order without gaps.
  View(DType dtype, const void* data, const Extents& shape, const Extents& strides = {});
  // The same over `available` elements, which the shape must not exceed.
  static View of(DType dtype, const void* data, size_t available, const Extents& shape);

  // A problem makes an unusable view, which nothing reads and every save refuses.
  const Status& status() const { return status_; }

  std::span<const int64_t> shape() const { return shape_.values(); }
  // Points into this object.
  TensorView tensor() const;
  operator TensorView() const { return tensor(); }  // NOLINT: implicit, for Hook::save

 private:
  DType dtype_;
  const void* data_;
  Extents shape_;
  std::array<int64_t, Extents::kMostAxes> strides_bytes_{};
  bool strided_ = false;
  Status status_;
};

// A dense matrix that says where its elements are, as Eigen's Matrix, Array, Map, Ref and Block do.
template <typename M>
concept StridedMatrix = requires(const M& matrix) {
  typename M::Scalar;
  requires Element<typename M::Scalar>;
  { matrix.data() } -> std::convertible_to<const typename M::Scalar*>;
  { matrix.rows() } -> std::convertible_to<int64_t>;
  { matrix.cols() } -> std::convertible_to<int64_t>;
  { matrix.rowStride() } -> std::convertible_to<int64_t>;
  { matrix.colStride() } -> std::convertible_to<int64_t>;
};

template <typename R>
concept ElementRange =
    std::ranges::contiguous_range<const R> && std::ranges::sized_range<const R> &&
    Element<std::ranges::range_value_t<const R>> && !StridedMatrix<R> &&
    !std::is_array_v<R>;

// A vector, std::array or span as one axis.
template <ElementRange R>
View view(const R& values) {
  return {dtype_of<std::ranges::range_value_t<const R>>(), std::ranges::data(values),
          static_cast<int64_t>(std::ranges::size(values))};
}

// The same numbers, row after row.
template <ElementRange R>
View view(const R& values, const Extents& shape) {
  return View::of(dtype_of<std::ranges::range_value_t<const R>>(), std::ranges::data(values),
                  std::ranges::size(values), shape);
}

// float a[3][4] has the shape [3, 4].
template <typename A>
requires std::is_array_v<A> && Element<std::remove_all_extents_t<A>> View view(const A& array) {
  return [&]<size_t... I>(std::index_sequence<I...>)->View {
    return {dtype_of<std::remove_all_extents_t<A>>(), &array, Extents(std::extent_v<A, I>...)};
  }
  (std::make_index_sequence<std::rank_v<A>>());
}

template <typename A>
requires std::is_array_v<A> && Element<std::remove_all_extents_t<A>> View
view(const A& array, const Extents& shape) {
  return View::of(dtype_of<std::remove_all_extents_t<A>>(), &array,
                  sizeof array / sizeof(std::remove_all_extents_t<A>), shape);
}

// `strides` in elements; they may be zero or negative.
template <Element T>
View view(T* const& data, const Extents& shape, const Extents& strides = {}) {
  return {dtype_of<T>(), data, shape, strides};
}

// In any storage order. A vector at compile time has one axis.
template <StridedMatrix M>
View view(const M& matrix) {
  constexpr DType dtype = dtype_of<typename M::Scalar>();
  if constexpr (requires { requires bool(M::IsVectorAtCompileTime); }) {
    const bool column = matrix.cols() == 1;
    return {dtype, matrix.data(), int64_t{matrix.rows()} * int64_t{matrix.cols()},
            int64_t{column ? matrix.rowStride() : matrix.colStride()}};
  } else {
    return {dtype,
            matrix.data(),
            {matrix.rows(), matrix.cols()},
            {matrix.rowStride(), matrix.colStride()}};
  }
}

// Takes over a vector, for saving without a copy. Error if it does not fill the shape.
template <Element T>
Result<OwnedTensor> own(std::vector<T> values, const Extents& shape) {
  const View checked = view(values, shape);
  if (!checked.status().ok()) return checked.status().error();
  const Shape extents(checked.shape().begin(), checked.shape().end());
  return own(std::move(values), dtype_of<T>(), extents);
}
template <Element T>
OwnedTensor own(std::vector<T> values) {
  const auto size = static_cast<int64_t>(values.size());
  return own(std::move(values), dtype_of<T>(), {size});
}

}  // namespace smd
