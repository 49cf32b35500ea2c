#pragma once

// The functions of XGBoost's C API that are used, taken from a shared library at run time: one
// program works with every version from 1.7 on. The prototypes are those of xgboost/c_api.h, where
// bst_ulong is a uint64_t and 0 means success. Immutable; the library stays loaded.

#include <dlfcn.h>

#include <cstdint>
#include <string>

#include "smd/smd.h"

namespace smdebug::xgb {

using Handle = void*;  // a booster or a matrix

class Library final {
 public:
  // `path` as dlopen() takes it. not_found: no such library. unsupported: a function is missing.
  static smd::Result<Library> open(const std::string& path) {
    Library found;
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      return smd::Error{smd::ErrorCode::not_found,
                        std::string("XGBoost cannot be loaded. ") + dlerror()};
    }
    std::string missing;
    const auto take = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      if (function == nullptr && missing.empty()) missing = name;
    };
    take(found.last_error, "XGBGetLastError");
    take(found.matrix_from_mat, "XGDMatrixCreateFromMat");
    take(found.set_float_info, "XGDMatrixSetFloatInfo");
    take(found.float_info, "XGDMatrixGetFloatInfo");
    take(found.free_matrix, "XGDMatrixFree");
    take(found.create, "XGBoosterCreate");
    take(found.free, "XGBoosterFree");
    take(found.set_param, "XGBoosterSetParam");
    take(found.update, "XGBoosterUpdateOneIter");
    take(found.evaluate, "XGBoosterEvalOneIter");
    take(found.predict, "XGBoosterPredictFromDMatrix");
    take(found.feature_score, "XGBoosterFeatureScore");
    take(found.feature_info, "XGBoosterGetStrFeatureInfo");
    take(found.feature_count, "XGBoosterGetNumFeature");
    take(found.boosted_rounds, "XGBoosterBoostedRounds");
    take(found.slice, "XGBoosterSlice");
    take(found.dump, "XGBoosterDumpModelEx");
    if (missing.empty()) return found;
    return smd::Error{smd::ErrorCode::unsupported,
                      "This XGBoost has no function " + missing + ": " + path};
  }

  // What the last function that failed in this thread says, in one line.
  std::string error() const {
    const std::string text = last_error();
    return text.substr(0, text.find('\n'));
  }

  const char* (*last_error)();
  int (*matrix_from_mat)(const float*, uint64_t rows, uint64_t columns, float missing, Handle*);
  int (*set_float_info)(Handle, const char* field, const float*, uint64_t count);
  int (*float_info)(Handle, const char* field, uint64_t* count, const float**);
  int (*free_matrix)(Handle);
  int (*create)(const Handle*, uint64_t count, Handle*);
  int (*free)(Handle);
  int (*set_param)(Handle, const char* name, const char* value);
  int (*update)(Handle, int iteration, Handle data);
  int (*evaluate)(Handle, int iteration, Handle*, const char**, uint64_t count, const char**);
  int (*predict)(Handle, Handle data, const char* config, const uint64_t** shape, uint64_t* rank,
                 const float**);
  int (*feature_score)(Handle, const char* config, uint64_t* count, const char*** features,
                       uint64_t* rank, const uint64_t** shape, const float** scores);
  int (*feature_info)(Handle, const char* field, uint64_t* count, const char***);
  int (*feature_count)(Handle, uint64_t*);
  int (*boosted_rounds)(Handle, int*);
  int (*slice)(Handle, int begin, int end, int step, Handle*);
  int (*dump)(Handle, const char* map, int statistics, const char* format, uint64_t* count,
              const char***);

 private:
  Library() = default;
};

}  // namespace smdebug::xgb
