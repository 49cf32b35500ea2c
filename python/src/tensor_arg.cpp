#include "python/src/tensor_arg.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "python/src/errors.h"
#include "python/src/values.h"
#include "smd/tensor/widen.h"

namespace smdebug {
namespace {

using smd::DType;
using smd::DTypeKind;

nb::object numpy() { return nb::module_::import_("numpy"); }

// The element type of a kind and size; nullopt: none of ours.
std::optional<DType> find_dtype(DTypeKind kind, size_t size) {
  for (size_t i = 0; i < smd::kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (smd::info_of(dtype).kind == kind && smd::size_of(dtype) == size &&
        !smd::is_stored_widened(dtype)) {
      return dtype;
    }
  }
  return std::nullopt;
}

// One character of the buffer protocol's format, after the byte order.
std::optional<DType> dtype_of_format(std::string_view format, size_t item_bytes) {
  if (format == "?") return DType::boolean;
  if (format.size() == 2 && format[0] == 'Z') return find_dtype(DTypeKind::complex, item_bytes);
  if (format.size() != 1) return std::nullopt;
  if (std::strchr("efd", format[0]) != nullptr) return find_dtype(DTypeKind::floating, item_bytes);
  if (std::strchr("bhilq", format[0]) != nullptr)
    return find_dtype(DTypeKind::signed_integer, item_bytes);
  if (std::strchr("BHILQ", format[0]) != nullptr)
    return find_dtype(DTypeKind::unsigned_integer, item_bytes);
  return std::nullopt;
}

std::optional<DType> dtype_of_dlpack(nb::dlpack::dtype dtype) {
  if (dtype.lanes != 1) return std::nullopt;
  using Code = nb::dlpack::dtype_code;
  const size_t bytes = dtype.bits / 8;
  switch (static_cast<Code>(dtype.code)) {
    case Code::Int: return find_dtype(DTypeKind::signed_integer, bytes);
    case Code::UInt: return find_dtype(DTypeKind::unsigned_integer, bytes);
    case Code::Float: return find_dtype(DTypeKind::floating, bytes);
    case Code::Complex: return find_dtype(DTypeKind::complex, bytes);
    case Code::Bool: return DType::boolean;
    case Code::Bfloat: return DType::bfloat16;
    default: break;
  }
  constexpr int kFloat8E4m3fn = 10;
  constexpr int kFloat8E5m2 = 12;
  if (dtype.code == kFloat8E4m3fn) return DType::float8_e4m3fn;
  if (dtype.code == kFloat8E5m2) return DType::float8_e5m2;
  return std::nullopt;
}

bool is_plain_number(nb::handle value) {
  return PyFloat_CheckExact(value.ptr()) || PyLong_CheckExact(value.ptr()) ||
         PyBool_Check(value.ptr()) || PyComplex_CheckExact(value.ptr());
}

nb::dlpack::dtype dlpack_of(DType dtype) {
  using Code = nb::dlpack::dtype_code;
  Code code = Code::Float;
  switch (smd::info_of(dtype).kind) {
    case DTypeKind::floating: code = Code::Float; break;
    case DTypeKind::signed_integer: code = Code::Int; break;
    case DTypeKind::unsigned_integer: code = Code::UInt; break;
    case DTypeKind::boolean: code = Code::Bool; break;
    case DTypeKind::complex: code = Code::Complex; break;
    case DTypeKind::string: break;
  }
  return {.code = static_cast<uint8_t>(code),
          .bits = static_cast<uint8_t>(8 * smd::size_of(dtype)),
          .lanes = 1};
}

}  // namespace

TensorArg::TensorArg(nb::handle value, std::string_view name) {
  if (value.is_none() || nb::isinstance<nb::dict>(value)) {
    raise("SMDebugTypeError",
          fmt::format(
              "'{}' cannot be saved: expected an array, a number, strings or a list of these, not "
              "{}.",
              name, describe(value)));
  }
  if (take_buffer(value) || take_dlpack(value)) return;
  take_array(value, name);
}

TensorArg::~TensorArg() {
  if (buffer_) PyBuffer_Release(&*buffer_);
}

smd::TensorView TensorArg::view() const {
  return {.data = data_,
          .dtype = dtype_,
          .shape = shape_,
          .strides_bytes = strides_,
          .swapped = swapped_};
}

bool TensorArg::take_buffer(nb::handle value) {
  if (PyObject_CheckBuffer(value.ptr()) == 0 || nb::isinstance<nb::bytes>(value)) return false;
  Py_buffer buffer;
  if (PyObject_GetBuffer(value.ptr(), &buffer, PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();  // an element type without a format, such as bfloat16
    return false;
  }
  std::string_view format = buffer.format != nullptr ? buffer.format : "B";
  const bool ordered = !format.empty() && std::strchr("@=<>!^", format[0]) != nullptr;
  const bool big = ordered && (format[0] == '>' || format[0] == '!');
  if (ordered) format.remove_prefix(1);
  const auto dtype = dtype_of_format(format, static_cast<size_t>(buffer.itemsize));
  if (!dtype) {
    PyBuffer_Release(&buffer);
    return false;
  }
  buffer_ = buffer;
  data_ = buffer.buf;
  dtype_ = *dtype;
  swapped_ = big && buffer.itemsize > 1;
  shape_.assign(buffer.shape, buffer.shape + buffer.ndim);
  strides_.assign(buffer.strides, buffer.strides + buffer.ndim);
  // A NumPy scalar is a number: shape (1), as for Python's own.
  if (buffer.ndim == 0 && !nb::hasattr(value, "__setitem__")) {
    shape_ = {1};
    strides_ = {};
  }
  return true;
}

bool TensorArg::take_dlpack(nb::handle value) {
  // Elements that a buffer does not show are no simple ones. NumPy knows them; asked for DLPack,
  // TensorFlow 2.21 ends the process if they are texts.
  if (!nb::hasattr(value, "__dlpack__") || PyObject_CheckBuffer(value.ptr()) != 0) return false;
  nb::ndarray<nb::ro> array;
  try {
    if (!nb::try_cast(value, array)) return false;
  } catch (const nb::python_error&) {
    return false;
  }
  const auto dtype = dtype_of_dlpack(array.dtype());
  if (!dtype || array.device_type() != nb::device::cpu::value) return false;
  dtype_ = *dtype;
  const auto item = static_cast<int64_t>(smd::size_of(dtype_));
  for (size_t axis = 0; axis < array.ndim(); ++axis) {
    shape_.push_back(static_cast<int64_t>(array.shape(axis)));
    strides_.push_back(array.stride(axis) * item);
  }
  data_ = array.data();
  dlpack_ = std::move(array);
  return true;
}

// Everything else goes through NumPy's own conversion.
void TensorArg::take_array(nb::handle value, std::string_view name) {
  const nb::object np = numpy();
  nb::object array;
  try {
    array = np.attr("asarray")(value);
  } catch (const nb::python_error& e) {
    raise("SMDebugTypeError", fmt::format("'{}' cannot be saved as a tensor: {}", name, e.what()));
  }
  // Python's own numbers and texts are tensors of one element.
  if (is_plain_number(value) || nb::isinstance<nb::str>(value) ||
      nb::isinstance<nb::bytes>(value)) {
    array = array.attr("reshape")(1);
  }
  const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  if (kind == "U" || kind == "S") return take_strings(array, name);
  if (kind == "O") {
    for (nb::handle item : nb::borrow<nb::iterable>(array.attr("ravel")())) {
      if (!nb::isinstance<nb::str>(item) && !nb::isinstance<nb::bytes>(item)) {
        raise("SMDebugTypeError",
              fmt::format("'{}' cannot be saved as a tensor: {} is neither a number nor a string.",
                          name, describe(item)));
      }
    }
    return take_strings(array, name);
  }
  const auto dtype_name = nb::cast<std::string>(array.attr("dtype").attr("name"));
  const auto dtype = smd::dtype_from_name(dtype_name);
  if (dtype && smd::is_stored_widened(*dtype)) {  // NumPy knows only the size: read the bits
    const nb::object bits = array.attr("view")(smd::size_of(*dtype) == 2 ? "uint16" : "uint8");
    if (take_buffer(bits)) {
      owner_ = bits;
      dtype_ = *dtype;
      return;
    }
  }
  if (take_buffer(array)) {
    owner_ = array;
    return;
  }
  raise("SMDebugTypeError",
        fmt::format("'{}' has the element type {}, which cannot be saved.", name, dtype_name));
}

void TensorArg::take_strings(nb::handle array, std::string_view name) {
  strings_.emplace();
  for (nb::handle item : nb::borrow<nb::iterable>(array.attr("ravel")())) {
    try {
      nb::object bytes = nb::borrow(item);
      if (nb::isinstance<nb::str>(item)) {
        bytes = item.attr("encode")("utf-8");
      } else {
        (void)item.attr("decode")("utf-8");
      }
      const auto text = nb::cast<nb::bytes>(bytes);
      strings_->emplace_back(text.c_str(), text.size());
    } catch (const nb::python_error&) {
      raise("SMDebugTypeError",
            fmt::format("'{}' cannot be saved: {} is no valid text.", name, describe(item)));
    }
  }
  shape_ = nb::cast<std::vector<int64_t>>(nb::list(array.attr("shape")));
  if (shape_.empty()) shape_ = {1};
}

smd::Number to_number(nb::handle value, std::string_view name) {
  PyObject* object = value.ptr();
  if (PyFloat_CheckExact(object))
    return smd::Number::real(DType::float64, PyFloat_AsDouble(object));
  if (PyBool_Check(object)) return smd::Number::integer(DType::boolean, object == Py_True ? 1 : 0);
  if (PyLong_CheckExact(object)) {
    int64_t whole = 0;
    if (nb::try_cast(value, whole)) {
      return smd::Number::integer(DType::int64, static_cast<uint64_t>(whole));
    }
    PyErr_Clear();
    return smd::Number::real(DType::float64, nb::cast<double>(value));
  }
  const TensorArg tensor(value, name);
  const auto count =
      tensor.holds_strings() ? smd::Result<int64_t>(0) : smd::element_count(tensor.shape());
  if (!count.ok() || *count != 1) {
    raise("SMDebugTypeError",
          fmt::format("The scalar '{}' must be a single number, not {}.", name, describe(value)));
  }
  const smd::TensorView view = tensor.view();
  smd::Number number{.dtype = view.dtype};
  std::array<std::byte, 16> element{};
  smd::gather(view, 0, std::span(element).first(smd::size_of(view.dtype)));
  if (smd::is_stored_widened(view.dtype)) {
    float wide = 0;
    smd::widen(view.dtype, smd::ByteSpan(element).first(smd::size_of(view.dtype)), {&wide, 1});
    return smd::Number::real(DType::float32, wide);
  }
  if (smd::size_of(view.dtype) > number.bits.size()) {
    raise("SMDebugTypeError", fmt::format("The scalar '{}' must be a real number.", name));
  }
  std::copy_n(element.begin(), smd::size_of(view.dtype), number.bits.begin());
  return number;
}

// NumPy counts the bytes of empty arrays, too, as if their empty extents were 1.
static void check_rank(const smd::Shape& shape) {
  constexpr size_t kMostDimensions = 64;
  constexpr int64_t kMostElements = INT64_MAX / 16;
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent > 1 && count > kMostElements / extent) {
      raise("SMDebugNotImplementedError",
            "A tensor with such extents is too large for NumPy, though it is empty.");
    }
    if (extent > 1) count *= extent;
  }
  if (shape.size() <= kMostDimensions) return;
  raise("SMDebugNotImplementedError",
        fmt::format("A tensor of {} dimensions cannot become an array: NumPy has at most {}.",
                    shape.size(), kMostDimensions));
}

nb::object to_numpy(DType dtype, const smd::Shape& shape, smd::Bytes elements) {
  check_rank(shape);
  if (smd::is_stored_widened(dtype)) {
    std::vector<float> wide(elements.size() / smd::size_of(dtype));
    smd::widen(dtype, elements, wide);
    elements.resize(wide.size() * sizeof(float));
    if (!wide.empty()) std::memcpy(elements.data(), wide.data(), elements.size());
    dtype = DType::float32;
  }
  auto* held = new smd::Bytes(std::move(elements));
  const nb::capsule owner(held, [](void* p) noexcept { delete static_cast<smd::Bytes*>(p); });
  std::vector<size_t> extents(shape.begin(), shape.end());
  return nb::cast(nb::ndarray<nb::numpy>(held->data(), extents.size(), extents.data(), owner,
                                         nullptr, dlpack_of(dtype)));
}

nb::object to_numpy(smd::TensorValue value) {
  check_rank(value.shape);
  if (value.dtype == DType::string) {
    const nb::object np = nb::module_::import_("numpy");
    nb::list strings;
    for (const std::string& text : value.strings) {
      strings.append(nb::steal(
          PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace")));
    }
    try {
      // Each element takes as much room as the longest.
      return np.attr("array")(strings, nb::arg("dtype") = "U").attr("reshape")(value.shape);
    } catch (const nb::python_error& error) {
      if (!error.matches(PyExc_MemoryError)) throw;
    }
    raise("SMDebugRuntimeError",
          fmt::format("There is no memory for an array of {} strings.", value.strings.size()));
  }
  if (smd::is_stored_widened(value.dtype) || !value.memory) {
    return to_numpy(value.dtype, value.shape,
                    smd::Bytes(value.elements.begin(), value.elements.end()));
  }
  auto* held = new std::shared_ptr<std::byte>(std::move(value.memory));
  const nb::capsule owner(
      held, [](void* p) noexcept { delete static_cast<std::shared_ptr<std::byte>*>(p); });
  std::vector<size_t> extents(value.shape.begin(), value.shape.end());
  return nb::cast(nb::ndarray<nb::numpy>(const_cast<std::byte*>(value.elements.data()),
                                         extents.size(), extents.data(), owner, nullptr,
                                         dlpack_of(value.dtype)));
}

}  // namespace smdebug
