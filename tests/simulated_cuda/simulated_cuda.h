#pragma once

// A test double: CUDA's driver without a device. This is what tests say to it, and what the
// programs in tests call of CUDA besides what smd/gpu calls. All functions are thread-safe.
//
// Memory of a device is memory of the host. Each stream is a queue with a thread of its own, the
// null stream of each device too, which waits for no other stream (CUDA's does). Work is done in
// the order of its stream, and streams wait for each other by events alone. What CUDA forbids gives
// CUDA's error and is counted as a violation: no current context, handles of another device,
// addresses that the device cannot reach or that were freed, work that would disturb a capture. In
// one thing it is stricter: copies to the host go to page-locked memory.
//
// Environment, read when the driver starts:
//   SIMULATED_CUDA_DEVICES        how many devices there are; 2
//   SIMULATED_CUDA_DELAY_US       each operation begins up to so many microseconds late; 0
//   SIMULATED_CUDA_SEED           of these delays; 1
//   SIMULATED_CUDA_LOCKED_BYTES   how much memory can be page-locked; no limit
//   SIMULATED_CUDA_FAIL           DEVICE:COUNT, as simulated_cuda_fail()

#include <cstddef>

#define SIMULATED_CUDA_EXPORT extern "C" __attribute__((visibility("default")))

// ---- what tests say to it

SIMULATED_CUDA_EXPORT long simulated_cuda_violations();
// What the newest violation was, in words; empty: there was none. Valid until the next call of this
// function by this thread.
SIMULATED_CUDA_EXPORT const char* simulated_cuda_last_violation();
SIMULATED_CUDA_EXPORT void simulated_cuda_forget_violations();

// Makes memory of the host memory of a device, until it is freed with cuMemFreeAsync().
SIMULATED_CUDA_EXPORT void simulated_cuda_register(void* memory, size_t bytes, int device);

// Memory of a device that nobody else uses yet, and memory that nothing is queued for any more.
SIMULATED_CUDA_EXPORT void simulated_cuda_fill(unsigned long long to, const void* from,
                                               size_t bytes, void* stream);
SIMULATED_CUDA_EXPORT void simulated_cuda_read(void* to, unsigned long long from, size_t bytes);

// Lets a device fail (CUDA_ERROR_LAUNCH_FAILED) instead of doing a kernel or copy, after `count`
// more of them. From then on it does nothing, and calls in its context give this error.
SIMULATED_CUDA_EXPORT void simulated_cuda_fail(int device, unsigned long count);
// Waits until nothing is queued, and ends the failure.
SIMULATED_CUDA_EXPORT void simulated_cuda_repair(int device);

// As if a graph of this stream were being captured; nullptr: the null stream of the current
// context.
SIMULATED_CUDA_EXPORT void simulated_cuda_set_capturing(void* stream, int capturing);
// 0: as a driver that cannot tell the ids of streams.
SIMULATED_CUDA_EXPORT void simulated_cuda_set_stream_ids(int known);
SIMULATED_CUDA_EXPORT void simulated_cuda_set_delay(unsigned microseconds, unsigned seed);

// ---- of CUDA, for programs in tests

SIMULATED_CUDA_EXPORT int cuInit(unsigned flags);
SIMULATED_CUDA_EXPORT int cuDeviceGet(int* device, int ordinal);
SIMULATED_CUDA_EXPORT int cuDevicePrimaryCtxRetain(void** context, int device);
SIMULATED_CUDA_EXPORT int cuCtxPushCurrent_v2(void* context);
SIMULATED_CUDA_EXPORT int cuCtxPopCurrent_v2(void** context);
SIMULATED_CUDA_EXPORT int cuCtxGetCurrent(void** context);
SIMULATED_CUDA_EXPORT int cuCtxSynchronize();
SIMULATED_CUDA_EXPORT int cuMemAlloc_v2(unsigned long long* memory, size_t bytes);
// In the order of the stream. What was freed is overwritten and never used again.
SIMULATED_CUDA_EXPORT int cuMemFreeAsync(unsigned long long memory, void* stream);
SIMULATED_CUDA_EXPORT int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from,
                                               size_t bytes, void* stream);
SIMULATED_CUDA_EXPORT int cuStreamCreate(void** stream, unsigned flags);
SIMULATED_CUDA_EXPORT int cuStreamSynchronize(void* stream);
SIMULATED_CUDA_EXPORT int cuStreamWaitEvent(void* stream, void* event, unsigned flags);
SIMULATED_CUDA_EXPORT int cuEventCreate(void** event, unsigned flags);
SIMULATED_CUDA_EXPORT int cuEventRecord(void* event, void* stream);
SIMULATED_CUDA_EXPORT int cuEventQuery(void* event);
SIMULATED_CUDA_EXPORT int cuEventSynchronize(void* event);
// May read and write memory of the device, as that is memory of the host.
SIMULATED_CUDA_EXPORT int cuLaunchHostFunc(void* stream, void (*function)(void*), void* argument);
