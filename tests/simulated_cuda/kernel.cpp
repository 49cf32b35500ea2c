#include "tests/simulated_cuda/kernel.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "smd/gpu/survey_kernel.h"
#include "tests/simulated_cuda/device.h"
#include "tests/simulated_cuda/memory.h"

namespace simulated_cuda {

namespace gpu = smd::gpu;
using gpu::ItemList;
using gpu::StridedItem;

struct Element {
  const char* name;
  size_t bytes;
  void (*dense)(const ItemList&, uint32_t block);
  void (*dense_absolute)(const ItemList&, uint32_t block);
  void (*strided)(const StridedItem&, uint32_t block);
};

struct Kernel {
  const char* name;
  size_t argument_bytes;
  bool is_strided;
  bool is_absolute;
};

namespace {

constexpr std::string_view kCode = "simulated code for ";

template <class E>
constexpr Element element(const char* name) {
  return {.name = name,
          .bytes = sizeof(typename E::Bits),
          .dense = gpu::survey_block<E, false>,
          .dense_absolute = gpu::survey_block<E, true>,
          .strided = gpu::survey_strided_block<E, true>};
}

constexpr Element kElements[] = {
    element<gpu::Float16>("Float16"),
    element<gpu::Float32>("Float32"),
    element<gpu::Float64>("Float64"),
    element<gpu::Bfloat16>("Bfloat16"),
    element<gpu::Float8E4m3fn>("Float8E4m3fn"),
    element<gpu::Float8E5m2>("Float8E5m2"),
    element<gpu::Int8>("Int8"),
    element<gpu::Int16>("Int16"),
    element<gpu::Int32>("Int32"),
    element<gpu::Int64>("Int64"),
    element<gpu::Uint8>("Uint8"),
    element<gpu::Uint16>("Uint16"),
    element<gpu::Uint32>("Uint32"),
    element<gpu::Uint64>("Uint64"),
    element<gpu::Boolean>("Boolean"),
};

constexpr Kernel kKernels[] = {
    {"smd_survey", sizeof(ItemList), false, false},
    {"smd_survey_abs", sizeof(ItemList), false, true},
    {"smd_survey_few", sizeof(gpu::ShortItemList), false, false},
    {"smd_survey_few_abs", sizeof(gpu::ShortItemList), false, true},
    {"smd_survey_strided", sizeof(StridedItem), true, false},
};

template <class T, size_t kCount>
const T* named(const T (&all)[kCount], std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(all), std::end(all), [&](const T& one) { return one.name == name; });
  return found != std::end(all) ? found : nullptr;
}

struct Range {
  uint64_t address;
  size_t bytes;
};

Range range_of(const gpu::Item& item, const Element& element) {
  return {item.data, item.count * element.bytes};
}

Range range_of(const StridedItem& item, const Element& element) {
  int64_t last = 0;
  for (uint32_t axis = 0; axis < item.axes; ++axis) {
    last += (item.extent[axis] - 1) * item.stride[axis];
  }
  return {item.data, (static_cast<size_t>(last) + 1) * element.bytes};
}

Code check_reached(const Device& device, const char* kernel, Range range) {
  if (Memory::all().is_reached(range.address, range.bytes, device.ordinal())) return kSuccess;
  return violation(kIllegalAddress, std::string(kernel) + " on device " +
                                        std::to_string(device.ordinal()) +
                                        " uses memory that is not its own");
}

// What a kernel was given, at a launch.
template <class Argument>
struct Work {
  const Kernel& kernel;
  const Element& element;
  const Device& device;
  uint32_t blocks;
  Argument argument;

  Code check() const {
    Code code = check_reached(device, kernel.name, {argument.out, blocks * sizeof(gpu::Partial)});
    if constexpr (std::is_same_v<Argument, ItemList>) {
      for (uint32_t i = 0; i < argument.count && code == kSuccess; ++i) {
        code = check_reached(device, kernel.name, range_of(argument.items[i], element));
      }
    } else if (code == kSuccess) {
      code = check_reached(device, kernel.name, range_of(argument, element));
    }
    return code;
  }

  Code operator()() const {
    if (const Code code = check(); code != kSuccess) return code;
    for (uint32_t block = 0; block < blocks; ++block) {
      if constexpr (std::is_same_v<Argument, ItemList>) {
        (kernel.is_absolute ? element.dense_absolute : element.dense)(argument, block);
      } else {
        element.strided(argument, block);
      }
    }
    return kSuccess;
  }
};

}  // namespace

std::string code_for(std::string_view element) {
  if (named(kElements, element) == nullptr) return {};
  std::string out(kCode);
  out += element;
  out += '\0';
  return out;
}

const Element* Module::read(const char* code) {
  if (std::strncmp(code, kCode.data(), kCode.size()) != 0) return nullptr;
  return named(kElements, code + kCode.size());
}

const Kernel* Function::find(std::string_view name) { return named(kKernels, name); }

std::function<Code()> Function::launch(uint32_t blocks, const void* argument) const {
  const auto work = [&]<class Argument>(Argument copied) {
    std::memcpy(&copied, argument, kernel_.argument_bytes);
    return Work<Argument>{kernel_, module_.element(), device(), blocks, copied};
  };
  if (kernel_.is_strided) return work(StridedItem{});
  return work(ItemList{});
}

}  // namespace simulated_cuda
