// Tensors in the memory of a device, by the kernels of smd/gpu.

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <vector>

#include "python/src/bindings.h"
#include "python/src/callback_type.h"
#include "python/src/device_tensors.h"
#include "python/src/errors.h"
#include "smd/gpu/compiler.h"
#include "smd/gpu/survey.h"

namespace smdebug {

namespace gpu = smd::gpu;

void bind_gpu(nb::module_& m) {
  m.def(
      "prepare_device", [](int ordinal) { (void)check(cuda_device(ordinal)); }, nb::arg("ordinal"),
      "Raises with the reason if the kernels cannot be used on this CUDA device.");
  m.def(
      "device_stream",
      [](int ordinal) {
        return reinterpret_cast<uintptr_t>(check(check(cuda_device(ordinal))->own_stream()));
      },
      nb::arg("ordinal"), "A stream of ours on this device, for who makes it wait for arrays.");
  nb::class_<DeviceArray>(m, "DeviceArray", "An array of a CUDA device, lent by DLPack.")
      .def(nb::init<nb::object>(), nb::arg("capsule"))
      .def_prop_ro("device", &DeviceArray::device, "The ordinal of its device, as CUDA counts.");
  nb::class_<DeviceTensors>(m, "DeviceTensors", nb::type_slots(kSharedSlots<DeviceTensors>),
                            "Tensors of CUDA devices on their way to a hook.")
      .def(nb::init<std::shared_ptr<smd::Hook>, nb::handle, const nb::dict&>(), nb::arg("hook"),
           nb::arg("exchange").none(), nb::arg("parts"))
      .def("save", &DeviceTensors::save_list, nb::arg("names"), nb::arg("tensors"),
           nb::arg("types"),
           "Queues what is wanted of tensors of these types; indices of those that cannot be read "
           "here.")
      .def("survey", &DeviceTensors::survey_list, nb::arg("names"), nb::arg("tensors"),
           "Queues the statistics of tensors; indices of those that no kernel can do.")
      .def("copy", &DeviceTensors::copy_list, nb::arg("names"), nb::arg("tensors"), nb::arg("kind"),
           "Queues what is wanted of tensors without gaps, their elements too; indices of those "
           "that must be waited for.")
      .def("hold", &DeviceTensors::hold_one, nb::arg("name"), nb::arg("gradient"),
           "Keeps a gradient until release(); False: it cannot wait.")
      .def("release", &DeviceTensors::release,
           "Queues the statistics of what was held; (name, gradient) of those that no kernel can "
           "do, and names of those that were changed meanwhile.")
      .def("set_veto", &DeviceTensors::set_veto, nb::arg("number").none(),
           "What comes next is saved only if this number of a device turns out to be zero; False: "
           "it cannot be read without waiting.")
      .def("give_back_lent", &DeviceTensors::give_back_lent, nb::arg("most"),
           "Lets go of arrays that are read; waits while more than so many bytes are left.")
      .def("forget", &DeviceTensors::forget, "The step has ended.")
      .def_prop_ro("has_held", &DeviceTensors::has_held)
      .def_prop_ro("launches", &DeviceTensors::launches, "Lists of tensors that were read so far.");
  m.def(
      "compile_kernels",
      [](const std::string& library, int capability) {
        std::vector<std::tuple<std::string, size_t>> sizes;
        const gpu::Compiler compiler = check(gpu::Compiler::open(library));
        for (size_t i = 0; i < smd::kDTypeCount; ++i) {
          const auto dtype = static_cast<smd::DType>(i);
          if (!gpu::can_survey(dtype)) continue;
          const auto code = check(compiler.compile(dtype, capability));
          sizes.emplace_back(std::string(smd::name_of(dtype)), code.size());
        }
        return sizes;
      },
      nb::arg("library"), nb::arg("capability"),
      "Compiles the kernels of all element types with the NVRTC at this path; their sizes.");
}

}  // namespace smdebug
