#pragma once

// Records models of libtorch, the C++ frontend of PyTorch, under the names that the Python package
// gives them, so that readers and rules need not know which of the two wrote a run.
//
//   auto hook = smdebug::torch_adapter::create_hook("run", R"({"HookParameters": {…}})");
//   smdebug::torch_adapter::ModuleHook mh(**hook, *net, "Net");
//   for (auto& batch : *loader) {
//     auto step = mh.begin_step();
//     auto y = mh.call(net, batch.data);
//     auto loss = mh.loss("CrossEntropyLoss", F::cross_entropy(y, batch.target));
//     optimizer.zero_grad();
//     loss.backward();
//     optimizer.step();
//   }
//   smd::Status closed = (*hook)->close();
//
// Header only: a program links smd::smd and its own libtorch, both with the same setting of
// _GLIBCXX_USE_CXX11_ABI. Nothing here throws; only what the model itself throws comes out of
// call(). One thread at a time, except for backward, whose threads may be several.

#include "smdebug/libtorch/create_hook.h"          // create_hook(), hook_options()
#include "smdebug/libtorch/module_hook.h"          // ModuleHook, SMDEBUG_CALL
#include "smdebug/libtorch/observed_sequential.h"  // ObservedSequential
