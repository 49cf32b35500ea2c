#pragma once

// Finds the tensors in what modules take and give: tensors, and tuples, optional values, lists and
// dictionaries of them, in order. Anything else holds none.

#include <torch/torch.h>

#include <optional>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <vector>

namespace smdebug::torch_adapter {

template <typename T>
concept TupleLike = requires {
  std::tuple_size<T>::value;
};
template <typename T>
concept OptionalLike = requires(const T& value) {
  value.has_value();
  *value;
};
template <typename T>
concept DictionaryItem = requires(const T& item) {
  item.key();
  item.value();
};

template <typename T>
void add_tensors(const T& value, std::vector<torch::Tensor>& found) {
  if constexpr (std::is_convertible_v<const T&, const torch::Tensor&>) {
    const torch::Tensor& tensor = value;
    if (tensor.defined()) found.push_back(tensor);
  } else if constexpr (OptionalLike<T>) {
    if (value.has_value()) add_tensors(*value, found);
  } else if constexpr (TupleLike<T>) {
    std::apply([&](const auto&... items) { (add_tensors(items, found), ...); }, value);
  } else if constexpr (DictionaryItem<T>) {
    add_tensors(value.value(), found);
  } else if constexpr (std::ranges::input_range<const T>) {
    using Item = std::remove_cvref_t<std::ranges::range_reference_t<const T>>;
    if constexpr (!std::is_same_v<Item, T> && !std::is_arithmetic_v<Item>) {
      for (const auto& item : value) add_tensors(item, found);
    }
  } else if constexpr (std::is_same_v<T, torch::nn::AnyValue>) {
    // What modules of libtorch return.
    using Recurrent = std::tuple<torch::Tensor, torch::Tensor>;
    using Lstm = std::tuple<torch::Tensor, Recurrent>;
    auto& any = const_cast<torch::nn::AnyValue&>(value);  // try_get() changes nothing
    if (const auto* tensor = any.try_get<torch::Tensor>()) add_tensors(*tensor, found);
    if (const auto* pair = any.try_get<Recurrent>()) add_tensors(*pair, found);
    if (const auto* lstm = any.try_get<Lstm>()) add_tensors(*lstm, found);
  }
}

template <typename... T>
std::vector<torch::Tensor> tensors_in(const T&... values) {
  std::vector<torch::Tensor> found;
  (add_tensors(values, found), ...);
  return found;
}

}  // namespace smdebug::torch_adapter
