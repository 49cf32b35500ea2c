#pragma once

// Runs a launch with the host's build of the kernels, over memory of the host. For tests: what it
// finds is, bit by bit, what a device finds. Pure functions.

#include "smd/gpu/survey_kernel.h"
#include "smd/gpu/work_list.h"

namespace smd::gpu {

template <class E>
void run_blocks(const Launch& launch, Partial* out) {
  if (const auto* list = std::get_if<ItemList>(&launch.arguments)) {
    ItemList placed = *list;
    placed.out = reinterpret_cast<U64>(out + launch.first_partial);
    for (U32 block = 0; block < launch.blocks; ++block) {
      if (launch.absolute_deviations) {
        survey_block<E, true>(placed, block);
      } else {
        survey_block<E, false>(placed, block);
      }
    }
    return;
  }
  StridedItem placed = std::get<StridedItem>(launch.arguments);
  placed.out = reinterpret_cast<U64>(out + launch.first_partial);
  for (U32 block = 0; block < launch.blocks; ++block) survey_strided_block<E, true>(placed, block);
}

// `out` has room for all partials of the list.
inline void run_on_host(const Launch& launch, Partial* out) {
  switch (launch.dtype) {
    case DType::float16: return run_blocks<Float16>(launch, out);
    case DType::float32: return run_blocks<Float32>(launch, out);
    case DType::float64: return run_blocks<Float64>(launch, out);
    case DType::bfloat16: return run_blocks<Bfloat16>(launch, out);
    case DType::float8_e4m3fn: return run_blocks<Float8E4m3fn>(launch, out);
    case DType::float8_e5m2: return run_blocks<Float8E5m2>(launch, out);
    case DType::int8: return run_blocks<Int8>(launch, out);
    case DType::int16: return run_blocks<Int16>(launch, out);
    case DType::int32: return run_blocks<Int32>(launch, out);
    case DType::int64: return run_blocks<Int64>(launch, out);
    case DType::uint8: return run_blocks<Uint8>(launch, out);
    case DType::uint16: return run_blocks<Uint16>(launch, out);
    case DType::uint32: return run_blocks<Uint32>(launch, out);
    case DType::uint64: return run_blocks<Uint64>(launch, out);
    case DType::boolean: return run_blocks<Boolean>(launch, out);
    default: return;
  }
}

}  // namespace smd::gpu
