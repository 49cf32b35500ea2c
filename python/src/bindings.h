#pragma once

// One function per bind_<module>.cpp, called by module.cpp in this order.

#include <nanobind/nanobind.h>

namespace smdebug {

void bind_types(nanobind::module_& m);
void bind_config(nanobind::module_& m);
void bind_collection(nanobind::module_& m);
void bind_format(nanobind::module_& m);
void bind_storage(nanobind::module_& m);
void bind_output(nanobind::module_& m);
void bind_watch(nanobind::module_& m);
void bind_hook(nanobind::module_& m);
void bind_resume(nanobind::module_& m);
void bind_trial(nanobind::module_& m);
void bind_frame(nanobind::module_& m);
void bind_catalog(nanobind::module_& m);
void bind_matrix(nanobind::module_& m);
void bind_diff(nanobind::module_& m);
void bind_rules(nanobind::module_& m);
void bind_reduce(nanobind::module_& m);
void bind_torch(nanobind::module_& m);
void bind_tree(nanobind::module_& m);
void bind_direct(nanobind::module_& m);
void bind_gpu(nanobind::module_& m);
void bind_delivery(nanobind::module_& m);

}  // namespace smdebug
