#pragma once

// Statistics of many tensors, each cut into chunks: one block of threads reads one chunk and leaves
// one Partial. Compiled twice from this text: at run time for the device, where SMD_ELEMENT names
// the element type, and by the host's compiler, which runs the threads of a block one after the
// other and gives the same bits. The order of all sums is fixed. No includes on the device.

#if defined(__CUDACC_RTC__)
#define SMD_ANYWHERE __device__ __forceinline__
#define SMD_UNROLL _Pragma("unroll")
#define SMD_ROLLED _Pragma("unroll 1")
#if __CUDA_ARCH__ >= 800
#define SMD_PAIRS  // instructions for two elements of 16 bits, and for the integers of a warp
#endif
#else
#include <bit>
#include <cmath>
#include <cstring>
#define SMD_ANYWHERE inline
#define SMD_UNROLL
#define SMD_ROLLED
#endif

namespace smd::gpu {

using U8 = unsigned char;
using U16 = unsigned short;
using U32 = unsigned int;
using U64 = unsigned long long;
using I64 = long long;

constexpr U32 kThreads = 256;
constexpr U32 kWarp = 32;
// A chunk has a power of two of bytes between these.
constexpr U32 kLeastChunkBytes = 64 << 10;
constexpr U32 kMostChunkBytes = 256 << 10;
// What a launch can be told of; together at most 4 KB, the size of a kernel's arguments.
constexpr U32 kMostItems = 160;
// Short lists have kernels of their own: arguments cost time, too.
constexpr U32 kFewItems = 8;
constexpr U32 kMostSurveyedAxes = 8;

// What a block found. Values of floats are the bits of a float64, those of integers the bits of an
// int64 or, of uint64 elements, a uint64; magnitudes of integers are uint64.
struct Partial {
  double shift, first, second;              // Σ(x − shift), Σ(x − shift)²
  double abs_shift, abs_first, abs_second;  // the same of |x|; abs_second only if asked for
  U64 sum, abs_sum;                         // of integers, wrapping
  U64 least, most, abs_least;               // of what is not NaN
  U32 count, nan, positive_inf, negative_inf, zero;
  int exponent;  // the sums are those of the elements times two to this power
};

// A tensor without gaps.
struct Item {
  U64 data;
  U64 count;
  U32 first_block;
  U32 unused;
};

template <U32 kItems>
struct Items {
  U64 out;  // Partials, one per block
  U32 count;
  U32 chunk_bytes;
  Item items[kItems];
};
using ItemList = Items<kMostItems>;
// How an ItemList of so few tensors begins.
using ShortItemList = Items<kFewItems>;

// One tensor with gaps; strides count elements.
struct StridedItem {
  U64 out;
  U64 data;
  U64 count;
  U32 axes;
  U32 chunk_bytes;
  I64 extent[kMostSurveyedAxes];
  I64 stride[kMostSurveyedAxes];
};

// ---- numbers

#if defined(__CUDACC_RTC__)
SMD_ANYWHERE float as_float(U32 bits) { return __uint_as_float(bits); }
SMD_ANYWHERE U32 bits_of(float x) { return __float_as_uint(x); }
SMD_ANYWHERE U64 bits_of(double x) { return (U64)__double_as_longlong(x); }
SMD_ANYWHERE double as_double(U64 bits) { return __longlong_as_double((I64)bits); }
SMD_ANYWHERE float half_as_float(U16 bits) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(bits));
  return wide;
}
SMD_ANYWHERE float least_of(float a, float b) { return fminf(a, b); }
SMD_ANYWHERE float most_of(float a, float b) { return fmaxf(a, b); }
SMD_ANYWHERE double least_of(double a, double b) { return fmin(a, b); }
SMD_ANYWHERE double most_of(double a, double b) { return fmax(a, b); }
#else
SMD_ANYWHERE float as_float(U32 bits) { return std::bit_cast<float>(bits); }
SMD_ANYWHERE U32 bits_of(float x) { return std::bit_cast<U32>(x); }
SMD_ANYWHERE U64 bits_of(double x) { return std::bit_cast<U64>(x); }
SMD_ANYWHERE double as_double(U64 bits) { return std::bit_cast<double>(bits); }
// Scaling by a power of two moves the exponent, of subnormal numbers too.
SMD_ANYWHERE float half_as_float(U16 bits) {
  const U32 sign = (U32)(bits & 0x8000u) << 16;
  const U32 rest = bits & 0x7fffu;
  if (rest >= 0x7c00u) return as_float(sign | 0x7f800000u | rest << 13);
  return as_float(sign | bits_of(as_float(rest << 13) * 0x1p112f));
}
// NaN is passed over, as on the device.
SMD_ANYWHERE float least_of(float a, float b) { return std::fmin(a, b); }
SMD_ANYWHERE float most_of(float a, float b) { return std::fmax(a, b); }
SMD_ANYWHERE double least_of(double a, double b) { return std::fmin(a, b); }
SMD_ANYWHERE double most_of(double a, double b) { return std::fmax(a, b); }
using std::fabs;
using std::fma;
using std::ilogb;
using std::ldexp;
#endif

SMD_ANYWHERE I64 least_of(I64 a, I64 b) { return b < a ? b : a; }
SMD_ANYWHERE I64 most_of(I64 a, I64 b) { return b > a ? b : a; }
SMD_ANYWHERE U64 least_of(U64 a, U64 b) { return b < a ? b : a; }
SMD_ANYWHERE U64 most_of(U64 a, U64 b) { return b > a ? b : a; }
SMD_ANYWHERE U32 least_of(U32 a, U32 b) { return b < a ? b : a; }
SMD_ANYWHERE U32 most_of(U32 a, U32 b) { return b > a ? b : a; }

// ---- element types: the bits in memory, and the value that computes

// Without the sign, floats order like the integers with the same bits, and NaN lies above infinity.
struct Single {
  using Value = float;
  using Magnitude = U32;
  static constexpr bool kFloating = true;
  static constexpr U32 kInfinity = 0x7f800000u;
  static constexpr U32 kNoMagnitude = 0xffffffffu;
  static SMD_ANYWHERE U32 magnitude(float x) { return bits_of(x) & 0x7fffffffu; }
  static SMD_ANYWHERE float no_least() { return as_float(0x7f800000u); }
  static SMD_ANYWHERE float no_most() { return as_float(0xff800000u); }
  static SMD_ANYWHERE U64 stored(float x) { return bits_of((double)x); }
  static SMD_ANYWHERE U64 stored_magnitude(U32 m) { return bits_of((double)as_float(m)); }
};

struct Whole {
  using Value = I64;
  using Magnitude = U64;
  static constexpr bool kFloating = false;
  static constexpr U64 kNoMagnitude = ~0ull;
  static SMD_ANYWHERE U64 magnitude(I64 x) { return x < 0 ? 0 - (U64)x : (U64)x; }
  static SMD_ANYWHERE I64 no_least() { return 0x7fffffffffffffffll; }
  static SMD_ANYWHERE I64 no_most() { return -0x7fffffffffffffffll - 1; }
  static SMD_ANYWHERE U64 stored(I64 x) { return (U64)x; }
  static SMD_ANYWHERE U64 stored_magnitude(U64 m) { return m; }
};

struct Float32 : Single {
  using Bits = U32;
  static constexpr bool kPairs = false;
  static SMD_ANYWHERE float value(U32 bits) { return as_float(bits); }
};
struct Float16 : Single {
  using Bits = U16;
  static constexpr bool kPairs = true;
  static constexpr U32 kShortInfinity = 0x7c00u;
  static SMD_ANYWHERE float value(U16 bits) { return half_as_float(bits); }
#if defined(SMD_PAIRS)
  static SMD_ANYWHERE U32 least_pair(U32 a, U32 b) {
    asm("min.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    return a;
  }
  static SMD_ANYWHERE U32 most_pair(U32 a, U32 b) {
    asm("max.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    return a;
  }
  static SMD_ANYWHERE U32 most_pair_or_nan(U32 a, U32 b) {
    asm("max.NaN.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    return a;
  }
#endif
};
struct Bfloat16 : Single {
  using Bits = U16;
  static constexpr bool kPairs = true;
  static constexpr U32 kShortInfinity = 0x7f80u;
  static SMD_ANYWHERE float value(U16 bits) { return as_float((U32)bits << 16); }
#if defined(SMD_PAIRS)
  static SMD_ANYWHERE U32 least_pair(U32 a, U32 b) {
    asm("min.bf16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    return a;
  }
  static SMD_ANYWHERE U32 most_pair(U32 a, U32 b) {
    asm("max.bf16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    return a;
  }
  static SMD_ANYWHERE U32 most_pair_or_nan(U32 a, U32 b) {
    asm("max.NaN.bf16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    return a;
  }
#endif
};
struct Float8E5m2 : Single {
  using Bits = U8;
  static constexpr bool kPairs = false;
  static SMD_ANYWHERE float value(U8 bits) { return half_as_float((U16)(bits << 8)); }
};
struct Float8E4m3fn : Single {
  using Bits = U8;
  static constexpr bool kPairs = false;
  static SMD_ANYWHERE float value(U8 bits) {
    const U32 sign = (U32)(bits & 0x80u) << 24;
    const U32 rest = bits & 0x7fu;
    if (rest == 0x7fu) return as_float(sign | 0x7fc00000u);
    return as_float(sign | bits_of(as_float(rest << 20) * 0x1p120f));
  }
};
struct Float64 {
  using Bits = U64;
  static constexpr bool kPairs = false;
  using Value = double;
  using Magnitude = U64;
  static constexpr bool kFloating = true;
  static constexpr U64 kInfinity = 0x7ff0000000000000ull;
  static constexpr U64 kNoMagnitude = ~0ull;
  static SMD_ANYWHERE double value(U64 bits) { return as_double(bits); }
  static SMD_ANYWHERE U64 magnitude(double x) { return bits_of(x) & 0x7fffffffffffffffull; }
  static SMD_ANYWHERE double no_least() { return as_double(0x7ff0000000000000ull); }
  static SMD_ANYWHERE double no_most() { return as_double(0xfff0000000000000ull); }
  static SMD_ANYWHERE U64 stored(double x) { return bits_of(x); }
  static SMD_ANYWHERE U64 stored_magnitude(U64 m) { return m; }
};

template <typename Memory, typename Signed>
struct Integer : Whole {
  using Bits = Memory;
  static constexpr bool kPairs = false;
  static SMD_ANYWHERE I64 value(Bits bits) { return (I64)(Signed)bits; }
};
using Int8 = Integer<U8, signed char>;
using Int16 = Integer<U16, short>;
using Int32 = Integer<U32, int>;
using Int64 = Integer<U64, I64>;
using Uint8 = Integer<U8, U8>;
using Uint16 = Integer<U16, U16>;
using Uint32 = Integer<U32, U32>;
struct Boolean : Whole {
  using Bits = U8;
  static constexpr bool kPairs = false;
  static SMD_ANYWHERE I64 value(U8 bits) { return bits != 0 ? 1 : 0; }
};
struct Uint64 {
  using Bits = U64;
  static constexpr bool kPairs = false;
  using Value = U64;
  using Magnitude = U64;
  static constexpr bool kFloating = false;
  static constexpr U64 kNoMagnitude = ~0ull;
  static SMD_ANYWHERE U64 value(U64 bits) { return bits; }
  static SMD_ANYWHERE U64 magnitude(U64 x) { return x; }
  static SMD_ANYWHERE U64 no_least() { return ~0ull; }
  static SMD_ANYWHERE U64 no_most() { return 0; }
  static SMD_ANYWHERE U64 stored(U64 x) { return x; }
  static SMD_ANYWHERE U64 stored_magnitude(U64 m) { return m; }
};

// ---- one thread

// What is subtracted before squaring. An element of the chunk lies so near the mean that the
// squares lose at most as many bits as the number of elements has.
struct Centre {
  double shift;
  double abs_shift;
  int exponent;
};

template <class E, bool kAbs>
SMD_ANYWHERE Centre centre_of(typename E::Bits element, int exponent) {
  const typename E::Value x = E::value(element);
  double shift = (double)x;
  if constexpr (E::kFloating) {
    if (E::magnitude(x) >= E::kInfinity) shift = 0;
  }
  if (exponent != 0) shift = ldexp(shift, exponent);
  return {shift, kAbs ? fabs(shift) : 0, exponent};
}

template <class E>
struct Lane {
  double first = 0, second = 0, abs_first = 0, abs_second = 0;
  U64 sum = 0, abs_sum = 0;
  typename E::Value least = E::no_least(), most = E::no_most();
  typename E::Magnitude abs_least = E::kNoMagnitude;
  U32 nan = 0, positive_inf = 0, negative_inf = 0, zero = 0;
};

template <class E, bool kAbs>
SMD_ANYWHERE void merge(Lane<E>& lane, const Lane<E>& other) {
  lane.first += other.first;
  lane.second += other.second;
  lane.abs_first += other.abs_first;
  if constexpr (kAbs) lane.abs_second += other.abs_second;
  if constexpr (!E::kFloating) {
    lane.sum += other.sum;
    lane.abs_sum += other.abs_sum;
  }
  lane.least = least_of(lane.least, other.least);
  lane.most = most_of(lane.most, other.most);
  lane.abs_least = least_of(lane.abs_least, other.abs_least);
  lane.nan += other.nan;
  lane.positive_inf += other.positive_inf;
  lane.negative_inf += other.negative_inf;
  lane.zero += other.zero;
}

template <class E, bool kAbs>
SMD_ANYWHERE void add_sums(Lane<E>& lane, typename E::Value x, Centre centre) {
  double wide, abs_wide;
  if constexpr (E::kFloating) {
    wide = (double)x;
    if constexpr (sizeof(typename E::Bits) == 8) {
      if (centre.exponent != 0) wide = ldexp(wide, centre.exponent);
    }
    abs_wide = fabs(wide);
  } else {
    const typename E::Magnitude m = E::magnitude(x);
    lane.sum += (U64)x;
    lane.abs_sum += m;
    wide = (double)x;
    abs_wide = (double)m;
  }
  const double d = wide - centre.shift;
  lane.first += d;
  lane.second = fma(d, d, lane.second);
  if constexpr (kAbs) {
    const double e = abs_wide - centre.abs_shift;
    lane.abs_first += e;
    lane.abs_second = fma(e, e, lane.abs_second);
  } else {
    lane.abs_first += abs_wide;
  }
}

template <class E>
SMD_ANYWHERE void count_specials(Lane<E>& lane, typename E::Value x) {
  const typename E::Magnitude m = E::magnitude(x);
  lane.nan += m > E::kInfinity ? 1 : 0;
  lane.positive_inf += m == E::kInfinity && x > 0 ? 1 : 0;
  lane.negative_inf += m == E::kInfinity && x < 0 ? 1 : 0;
}

// Adds elements that are in registers. Special values are counted apart, only where there are any.
template <class E, bool kAbs, U32 kCount>
SMD_ANYWHERE void add(Lane<E>& lane, const typename E::Bits (&elements)[kCount], Centre centre) {
  typename E::Magnitude group_least = E::kNoMagnitude;
  typename E::Magnitude group_most = 0;
  SMD_UNROLL
  for (U32 i = 0; i < kCount; ++i) {
    const typename E::Value x = E::value(elements[i]);
    const typename E::Magnitude m = E::magnitude(x);
    lane.least = least_of(lane.least, x);
    lane.most = most_of(lane.most, x);
    group_least = least_of(group_least, m);
    if constexpr (E::kFloating) group_most = most_of(group_most, m);
    add_sums<E, kAbs>(lane, x, centre);
  }
  lane.abs_least = least_of(lane.abs_least, group_least);
  if (group_least == 0) {
    SMD_UNROLL
    for (U32 i = 0; i < kCount; ++i) lane.zero += E::magnitude(E::value(elements[i])) == 0 ? 1 : 0;
  }
  if constexpr (E::kFloating) {
    if (group_most < E::kInfinity) return;
    for (U32 i = 0; i < kCount; ++i) count_specials<E>(lane, E::value(elements[i]));
  }
}

// Where the elements of a chunk are.
template <class E>
struct Dense {
  const typename E::Bits* data;
  SMD_ANYWHERE typename E::Bits at(U64 i) const { return data[i]; }
};

template <class E>
struct Strided {
  const StridedItem* item;
  U64 first;
  SMD_ANYWHERE typename E::Bits at(U64 i) const {
    I64 rest = (I64)(first + i);
    I64 offset = 0;
    for (U32 axis = item->axes; axis-- > 0;) {
      offset += rest % item->extent[axis] * item->stride[axis];
      rest /= item->extent[axis];
    }
    return ((const typename E::Bits*)item->data)[offset];
  }
};

template <class E, bool kAbs, class Source>
SMD_ANYWHERE void add_apart(Lane<E>& lane, const Source& source, U64 from, U64 count, U32 thread,
                            Centre centre) {
  for (U64 i = from + thread; i < count; i += kThreads) {
    const typename E::Bits element[1] = {source.at(i)};
    add<E, kAbs>(lane, element, centre);
  }
}

struct alignas(16) Words {
  U32 word[4];
};

template <typename Bits>
SMD_ANYWHERE Bits element(const Words& words, U32 i) {
  if constexpr (sizeof(Bits) == 8) {
    return words.word[2 * i] | (U64)words.word[2 * i + 1] << 32;
  } else {
    constexpr U32 kPerWord = 4 / sizeof(Bits);
    return (Bits)(words.word[i / kPerWord] >> 8 * sizeof(Bits) * (i % kPerWord));
  }
}

#if defined(SMD_PAIRS)
// The ends of a chunk of elements with 16 bits, in both halves of a word.
template <class E>
struct PairEnds {
  U32 least = E::kShortInfinity * 0x10001u;
  U32 most = least | 0x80008000u;
  U32 abs_least = least;

  __device__ __forceinline__ void give(Lane<E>& lane) const {
    SMD_UNROLL
    for (U32 shift = 0; shift < 32; shift += 16) {
      lane.least = least_of(lane.least, E::value((U16)(least >> shift)));
      lane.most = most_of(lane.most, E::value((U16)(most >> shift)));
      const U32 m = E::magnitude(E::value((U16)(abs_least >> shift)));
      lane.abs_least = least_of(lane.abs_least, m);
    }
  }
};

// As add(), with half the instructions for the ends.
template <class E, bool kAbs, U32 kCount>
SMD_ANYWHERE void add_pairs(Lane<E>& lane, PairEnds<E>& ends, const U32 (&pairs)[kCount],
                            Centre centre) {
  U32 group_least = E::kShortInfinity * 0x10001u;
  U32 group_most = 0;
  SMD_UNROLL
  for (U32 i = 0; i < kCount; ++i) {
    const U32 magnitudes = pairs[i] & 0x7fff7fffu;
    ends.least = E::least_pair(ends.least, pairs[i]);
    ends.most = E::most_pair(ends.most, pairs[i]);
    group_least = E::least_pair(group_least, magnitudes);
    group_most = E::most_pair_or_nan(group_most, magnitudes);
    add_sums<E, kAbs>(lane, E::value((U16)pairs[i]), centre);
    add_sums<E, kAbs>(lane, E::value((U16)(pairs[i] >> 16)), centre);
  }
  ends.abs_least = E::least_pair(ends.abs_least, group_least);
  if ((group_least & 0xffffu) == 0 || group_least >> 16 == 0) {
    SMD_UNROLL
    for (U32 i = 0; i < kCount; ++i) {
      lane.zero += (pairs[i] & 0x7fffu) == 0 ? 1 : 0;
      lane.zero += (pairs[i] & 0x7fff0000u) == 0 ? 1 : 0;
    }
  }
  if ((group_most & 0xffffu) < E::kShortInfinity && group_most >> 16 < E::kShortInfinity) return;
  for (U32 i = 0; i < kCount; ++i) {
    count_specials<E>(lane, E::value((U16)pairs[i]));
    count_specials<E>(lane, E::value((U16)(pairs[i] >> 16)));
  }
}

#endif

// Adds what one thread has loaded: 16 elements at a time, or as many as there are.
template <class E, bool kAbs, bool kPairs>
struct Adder {
  template <U32 kVectors>
  SMD_ANYWHERE void add_all(Lane<E>& lane, const Words (&loaded)[kVectors], Centre centre) {
    using Bits = typename E::Bits;
    constexpr U32 kPerVector = sizeof(Words) / sizeof(Bits);
    constexpr U32 kLoaded = kVectors * kPerVector;
    constexpr U32 kGroup = kLoaded < 16 ? kLoaded : 16;
    SMD_UNROLL
    for (U32 from = 0; from < kLoaded; from += kGroup) {
      Bits group[kGroup];
      SMD_UNROLL
      for (U32 i = 0; i < kGroup; ++i) {
        group[i] = element<Bits>(loaded[(from + i) / kPerVector], (from + i) % kPerVector);
      }
      add<E, kAbs>(lane, group, centre);
    }
  }
  SMD_ANYWHERE void end(Lane<E>&) const {}
};

#if defined(SMD_PAIRS)
template <class E, bool kAbs>
struct Adder<E, kAbs, true> {
  PairEnds<E> ends;

  template <U32 kVectors>
  SMD_ANYWHERE void add_all(Lane<E>& lane, const Words (&loaded)[kVectors], Centre centre) {
    SMD_UNROLL
    for (U32 from = 0; from < kVectors; from += 2) {
      U32 pairs[8];
      SMD_UNROLL
      for (U32 i = 0; i < 8; ++i) pairs[i] = loaded[from + i / 4].word[i % 4];
      add_pairs<E, kAbs>(lane, ends, pairs, centre);
    }
  }
  SMD_ANYWHERE void end(Lane<E>& lane) const { ends.give(lane); }
};
template <class E>
constexpr bool kInPairs = E::kPairs;
#else
template <class E>
constexpr bool kInPairs = false;
#endif

template <U32 kVectors>
SMD_ANYWHERE void load(Words (&to)[kVectors], const Words* from) {
  SMD_UNROLL
  for (U32 v = 0; v < kVectors; ++v) to[v] = from[v * kThreads];
}

// What one thread of a block adds of its chunk; the centre that it used. Loads are one round ahead
// of the sums, and the first are on their way before the centre is there.
template <class E, bool kAbs>
SMD_ANYWHERE Centre pass(Lane<E>& lane, const Dense<E>& source, U64 count, U32 thread,
                         int exponent) {
  using Bits = typename E::Bits;
  constexpr U32 kVectors = sizeof(Bits) == 1 ? 2 : 4;
  constexpr U32 kRound = kVectors * sizeof(Words) / sizeof(Bits) * kThreads;
  const Bits first = source.at(0);
  const U64 rounds = (U64)source.data % sizeof(Words) == 0 ? count / kRound : 0;
  const Words* words = (const Words*)source.data + thread;
  Words next[kVectors] = {};
  if (rounds > 0) load(next, words);
  const Centre centre = centre_of<E, kAbs>(first, exponent);
  Adder<E, kAbs, kInPairs<E>> adder;
  SMD_ROLLED
  for (U64 round = 0; round < rounds; ++round) {
    Words loaded[kVectors];
    SMD_UNROLL
    for (U32 v = 0; v < kVectors; ++v) loaded[v] = next[v];
    words += kVectors * kThreads;
    if (round + 1 < rounds) load(next, words);
    adder.add_all(lane, loaded, centre);
  }
  adder.end(lane);
  add_apart<E, kAbs>(lane, source, rounds * kRound, count, thread, centre);
  return centre;
}

template <class E, bool kAbs>
SMD_ANYWHERE Centre pass(Lane<E>& lane, const Strided<E>& source, U64 count, U32 thread,
                         int exponent) {
  const Centre centre = centre_of<E, kAbs>(source.at(0), exponent);
  add_apart<E, kAbs>(lane, source, 0, count, thread, centre);
  return centre;
}

// ---- one block

// Not zero where squares of float64 elements would leave the range of float64.
template <class E>
SMD_ANYWHERE int needed_exponent(const Lane<E>& total) {
  if constexpr (E::kFloating && sizeof(typename E::Bits) == 8) {
    constexpr int kBound = 400;
    const double greatest = most_of(fabs(total.least), fabs(total.most));
    if (!(greatest > 0) || E::magnitude(greatest) >= E::kInfinity) return 0;
    const int magnitude = ilogb(greatest);
    return magnitude > kBound || magnitude < -kBound ? -magnitude : 0;
  }
  return 0;
}

template <class E>
SMD_ANYWHERE void store_sums(const Lane<E>& total, Centre centre, Partial& out) {
  out.shift = centre.shift;
  out.first = total.first;
  out.second = total.second;
  out.abs_shift = centre.abs_shift;
  out.abs_first = total.abs_first;
  out.abs_second = total.abs_second;
  out.exponent = centre.exponent;
}

template <class E>
SMD_ANYWHERE void store_rest(const Lane<E>& total, U64 count, Partial& out) {
  out.sum = total.sum;
  out.abs_sum = total.abs_sum;
  out.least = E::stored(total.least);
  out.most = E::stored(total.most);
  out.abs_least = E::stored_magnitude(total.abs_least);
  out.count = (U32)count;
  out.nan = total.nan;
  out.positive_inf = total.positive_inf;
  out.negative_inf = total.negative_inf;
  out.zero = total.zero;
}

#if defined(__CUDACC_RTC__)

template <typename T>
__device__ __forceinline__ T from_lane(T x, U32 ahead) {
  return __shfl_down_sync(0xffffffffu, x, ahead);
}

// Adds what the lane `ahead` lanes further has.
template <class E, bool kAbs>
__device__ __forceinline__ void merge_from(Lane<E>& lane, U32 ahead) {
  Lane<E> other;
  other.first = from_lane(lane.first, ahead);
  other.second = from_lane(lane.second, ahead);
  other.abs_first = from_lane(lane.abs_first, ahead);
  if constexpr (kAbs) other.abs_second = from_lane(lane.abs_second, ahead);
  if constexpr (!E::kFloating) {
    other.sum = from_lane(lane.sum, ahead);
    other.abs_sum = from_lane(lane.abs_sum, ahead);
  }
  other.least = from_lane(lane.least, ahead);
  other.most = from_lane(lane.most, ahead);
  other.abs_least = from_lane(lane.abs_least, ahead);
  merge<E, kAbs>(lane, other);
}

__device__ __forceinline__ U32 warp_sum(U32 x) {
#if defined(SMD_PAIRS)
  return __reduce_add_sync(0xffffffffu, x);
#else
  for (U32 ahead = kWarp / 2; ahead > 0; ahead /= 2) x += from_lane(x, ahead);
  return x;
#endif
}

// What all threads of the block added; valid in thread 0.
template <class E, bool kAbs>
__device__ __forceinline__ Lane<E> total_of(Lane<E> lane) {
  __shared__ Lane<E> warps[kThreads / kWarp];
  // Counts in one instruction each; those of what is not finite are nearly always zero.
  const U32 zero = warp_sum(lane.zero);
  U32 nan = 0, positive_inf = 0, negative_inf = 0;
  if (__any_sync(0xffffffffu, (lane.nan | lane.positive_inf | lane.negative_inf) != 0)) {
    nan = warp_sum(lane.nan);
    positive_inf = warp_sum(lane.positive_inf);
    negative_inf = warp_sum(lane.negative_inf);
  }
  for (U32 ahead = kWarp / 2; ahead > 0; ahead /= 2) merge_from<E, kAbs>(lane, ahead);
  lane.zero = zero;
  lane.nan = nan;
  lane.positive_inf = positive_inf;
  lane.negative_inf = negative_inf;
  if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = lane;
  __syncthreads();
  if (threadIdx.x == 0) {
    SMD_UNROLL
    for (U32 warp = 1; warp < kThreads / kWarp; ++warp) merge<E, kAbs>(lane, warps[warp]);
  }
  return lane;
}

template <class E, bool kAbs, class Source>
__device__ __forceinline__ void survey_chunk(const Source& source, U64 count, Partial* out) {
  __shared__ int exponent;
  Lane<E> lane;
  Centre centre = pass<E, kAbs>(lane, source, count, threadIdx.x, 0);
  Lane<E> total = total_of<E, kAbs>(lane);
  if (threadIdx.x == 0) {
    store_rest(total, count, *out);
    store_sums(total, centre, *out);
    exponent = needed_exponent(total);
  }
  if constexpr (E::kFloating && sizeof(typename E::Bits) == 8) {
    __syncthreads();
    if (exponent == 0) return;
    Lane<E> scaled;
    centre = pass<E, kAbs>(scaled, source, count, threadIdx.x, exponent);
    total = total_of<E, kAbs>(scaled);
    if (threadIdx.x == 0) store_sums(total, centre, *out);
  }
}

#else

template <class E, bool kAbs>
Lane<E> total_of(Lane<E> (&lanes)[kThreads]) {
  for (U32 warp = 0; warp < kThreads; warp += kWarp) {
    for (U32 ahead = kWarp / 2; ahead > 0; ahead /= 2) {
      for (U32 i = 0; i < ahead; ++i) {
        merge<E, kAbs>(lanes[warp + i], lanes[warp + i + ahead]);
      }
    }
  }
  Lane<E> total = lanes[0];
  for (U32 warp = 1; warp < kThreads / kWarp; ++warp) {
    merge<E, kAbs>(total, lanes[warp * kWarp]);
  }
  return total;
}

template <class E, bool kAbs, class Source>
Lane<E> block_pass(const Source& source, U64 count, int exponent, Centre& centre) {
  Lane<E> lanes[kThreads];
  for (U32 thread = 0; thread < kThreads; ++thread) {
    centre = pass<E, kAbs>(lanes[thread], source, count, thread, exponent);
  }
  return total_of<E, kAbs>(lanes);
}

template <class E, bool kAbs, class Source>
void survey_chunk(const Source& source, U64 count, Partial* out) {
  Centre centre;
  const Lane<E> total = block_pass<E, kAbs>(source, count, 0, centre);
  store_rest(total, count, *out);
  store_sums(total, centre, *out);
  if (const int exponent = needed_exponent(total); exponent != 0) {
    const Lane<E> scaled = block_pass<E, kAbs>(source, count, exponent, centre);
    store_sums(scaled, centre, *out);
  }
}

#endif

template <class E, bool kAbs, U32 kItems>
SMD_ANYWHERE void survey_block(const Items<kItems>& list, U32 block) {
  U32 low = 0;
  U32 high = list.count - 1;
  while (low < high) {
    const U32 middle = (low + high + 1) / 2;
    if (list.items[middle].first_block <= block) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const Item& item = list.items[low];
  const U64 chunk = list.chunk_bytes / sizeof(typename E::Bits);
  const U64 first = (block - item.first_block) * chunk;
  const Dense<E> source{(const typename E::Bits*)item.data + first};
  survey_chunk<E, kAbs>(source, least_of(chunk, item.count - first), (Partial*)list.out + block);
}

template <class E, bool kAbs>
SMD_ANYWHERE void survey_strided_block(const StridedItem& item, U32 block) {
  const U64 chunk = item.chunk_bytes / sizeof(typename E::Bits);
  const U64 first = block * chunk;
  const Strided<E> source{&item, first};
  survey_chunk<E, kAbs>(source, least_of(chunk, item.count - first), (Partial*)item.out + block);
}

}  // namespace smd::gpu

#if defined(__CUDACC_RTC__)
// The last chunk first: what was written last is still in the cache, and who reads the tensor next
// begins where this ends.
#define SMD_BLOCK (gridDim.x - 1 - blockIdx.x)
extern "C" __global__ void __launch_bounds__(256, 3)
    smd_survey(const __grid_constant__ smd::gpu::ItemList list) {
  smd::gpu::survey_block<smd::gpu::SMD_ELEMENT, false>(list, SMD_BLOCK);
}
extern "C" __global__ void __launch_bounds__(256, 3)
    smd_survey_abs(const __grid_constant__ smd::gpu::ItemList list) {
  smd::gpu::survey_block<smd::gpu::SMD_ELEMENT, true>(list, SMD_BLOCK);
}
extern "C" __global__ void __launch_bounds__(256, 3)
    smd_survey_few(const __grid_constant__ smd::gpu::ShortItemList list) {
  smd::gpu::survey_block<smd::gpu::SMD_ELEMENT, false>(list, SMD_BLOCK);
}
extern "C" __global__ void __launch_bounds__(256, 3)
    smd_survey_few_abs(const __grid_constant__ smd::gpu::ShortItemList list) {
  smd::gpu::survey_block<smd::gpu::SMD_ELEMENT, true>(list, SMD_BLOCK);
}
extern "C" __global__ void __launch_bounds__(256)
    smd_survey_strided(const __grid_constant__ smd::gpu::StridedItem item) {
  smd::gpu::survey_strided_block<smd::gpu::SMD_ELEMENT, true>(item, SMD_BLOCK);
}
#endif
