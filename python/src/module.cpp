// The extension module: everything of the core that Python needs.

#include <nanobind/nanobind.h>

#include "python/src/bindings.h"

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of smdebug.";
  m.attr("VERSION") = SMDEBUG_VERSION;
  // Hooks may live until the interpreter is gone; that is no leak.
  nanobind::set_leak_warnings(false);
  smdebug::bind_types(m);
  smdebug::bind_config(m);
  smdebug::bind_collection(m);
  smdebug::bind_format(m);
  smdebug::bind_storage(m);
  smdebug::bind_output(m);
  smdebug::bind_watch(m);
  smdebug::bind_hook(m);
  smdebug::bind_resume(m);
  smdebug::bind_trial(m);
  smdebug::bind_frame(m);
  smdebug::bind_catalog(m);
  smdebug::bind_matrix(m);
  smdebug::bind_diff(m);
  smdebug::bind_rules(m);
  smdebug::bind_reduce(m);
  smdebug::bind_torch(m);
  smdebug::bind_tree(m);
  smdebug::bind_direct(m);
  smdebug::bind_gpu(m);
  smdebug::bind_delivery(m);
}
