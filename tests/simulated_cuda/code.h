#pragma once

// What functions of the driver return, as CUDA numbers it, and the count of those that no correct
// program gets. Thread-safe.

#include <string>

namespace simulated_cuda {

using Code = int;
inline constexpr Code kSuccess = 0;
inline constexpr Code kInvalidValue = 1;
inline constexpr Code kOutOfMemory = 2;
inline constexpr Code kNotInitialized = 3;
inline constexpr Code kInvalidDevice = 101;
inline constexpr Code kInvalidImage = 200;
inline constexpr Code kInvalidContext = 201;
inline constexpr Code kInvalidHandle = 400;
inline constexpr Code kNotFound = 500;
inline constexpr Code kNotReady = 600;
inline constexpr Code kIllegalAddress = 700;
inline constexpr Code kLaunchFailed = 719;
inline constexpr Code kNotSupported = 801;
inline constexpr Code kCaptureUnsupported = 900;

// nullptr: not one of these.
const char* name_of(Code code);

// Counts it, and gives the code back. `what` says it in words, the name of the function first.
Code violation(Code code, const std::string& what);

}  // namespace simulated_cuda
