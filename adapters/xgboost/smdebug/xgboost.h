#pragma once

// What C++ programs include that train with the C API of XGBoost and record it.
//
//   const auto library = smdebug::xgb::Library::open("libxgboost.so");
//   const auto hook = smdebug::xgb::create_hook("run");
//   smdebug::xgb::TrainHook recorder(**hook, *library, {.train_data = dtrain});
//   for (int i = 0; i < rounds; ++i) {
//     XGBoosterUpdateOneIter(booster, i, dtrain);
//     recorder.after_iteration(booster, i, {{dtrain, "train"}});
//   }
//
// No header of XGBoost is needed, and none of its libraries at link time.

#include "smdebug/xgboost/create_hook.h"  // create_hook()
#include "smdebug/xgboost/library.h"      // Library
#include "smdebug/xgboost/train_hook.h"   // TrainHook
