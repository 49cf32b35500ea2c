#pragma once

// What C++ programs include to record tensors and to read them back; every name they may rely on
// comes from here.
// C programs and other languages include smd/c_api.h.
//
//   auto hook = smd::create_hook("run", R"({"HookParameters": {"save_all": true}})");
//   for (…) {
//     smd::StepScope step(**hook);
//     step.save("weight", smd::view(weight, {rows, columns}));
//     step.save_scalar("loss", loss);
//   }
//   smd::Status closed = (*hook)->close();
//
//   auto trial = smd::Trial::open("run");
//   auto loss = (*trial)->series("scalar/loss", {});
//
// Functions report failures through Result and Status and do not throw. A hook belongs to one
// thread, a trial to any number of them.

#include "smd/base/result.h"                // Result, Status, Error
#include "smd/collection/collection_set.h"  // groups of tensors, with their own rules
#include "smd/config/hook_config.h"         // what is saved, and when
#include "smd/hook/hook.h"                  // Hook, HookOptions, Kind
#include "smd/native/create_hook.h"         // create_hook()
#include "smd/native/step_scope.h"          // StepScope
#include "smd/native/view.h"                // view(), own(), dtype_of()
#include "smd/trial/trial.h"                // Trial, Snapshot, Series
#include "smd/types/mode.h"                 // Mode
