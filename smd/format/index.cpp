#include "smd/format/index.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <simdjson.h>

#include <iterator>

#include "smd/base/json.h"

namespace smd::format {
namespace {

// The DOM parser picks the CPU's best instructions at run time; On-Demand would be fixed at build
// time.
namespace dom = simdjson::dom;

// A part of the document is missing or of another type.
struct Malformed {
  std::string what;
};

constexpr const char* kChecksumKey = "crc32c";

void append_uint(std::string& out, uint64_t value) {
  const fmt::format_int digits(value);
  out.append(digits.data(), digits.size());
}

template <typename T>
T require(simdjson::simdjson_result<T> value, const char* what) {
  T out;
  if (std::move(value).get(out) != simdjson::SUCCESS)
    throw Malformed{fmt::format("'{}' is missing or wrong", what)};
  return out;
}

std::string_view required_text(dom::object object, const char* field) {
  return require(object[field].get_string(), field);
}

void read_tensors(dom::array list, IndexView& index) {
  for (auto item : list) {
    dom::object entry = require(item.get_object(), "tensor_payload");
    TensorLocationOf<std::string_view> location;
    location.name = required_text(entry, "tensorname");
    location.offset = require(entry["start_idx"].get_uint64(), "start_idx");
    location.length = require(entry["length"].get_uint64(), "length");
    if (location.offset + location.length < location.offset) throw Malformed{"'length' is absurd"};
    uint64_t crc = 0;
    if (entry[kChecksumKey].get_uint64().get(crc) == simdjson::SUCCESS && crc <= UINT32_MAX) {
      location.crc32c = static_cast<uint32_t>(crc);
    }
    index.tensors.push_back(location);
  }
}

void read_shapes(dom::array list, IndexView& index) {
  for (auto item : list) {
    dom::object entry = require(item.get_object(), "shape_payload");
    ShapeEntryOf<std::string_view> shape;
    shape.name = required_text(entry, "tensorname");
    if (entry["originalname"].get_string().get(shape.original_name) != simdjson::SUCCESS) {
      shape.original_name = shape.name;
    }
    for (auto extent : require(entry["shape"].get_array(), "shape")) {
      shape.shape.push_back(require(extent.get_int64(), "shape"));
      if (shape.shape.back() < 0) throw Malformed{"'shape' has a negative extent"};
    }
    index.shapes.push_back(std::move(shape));
  }
}

void read_index(dom::element document, IndexView& index) {
  const dom::object root = require(document.get_object(), "document");
  dom::object meta = require(root["meta"].get_object(), "meta");
  auto mode = parse_mode(required_text(meta, "mode"));
  if (!mode.ok()) throw Malformed{mode.error().message};
  index.mode = *mode;
  index.mode_step = require(meta["mode_step"].get_int64(), "mode_step");
  if (index.mode_step < 0) throw Malformed{fmt::format("'mode_step' is {}", index.mode_step)};
  std::string_view file;
  if (meta["event_file_name"].get_string().get(file) == simdjson::SUCCESS) index.event_file = file;

  dom::array list;
  bool payload = false;
  if (root["tensor_payload"].get_array().get(list) == simdjson::SUCCESS) {
    read_tensors(list, index);
    payload = true;
  }
  if (root["shape_payload"].get_array().get(list) == simdjson::SUCCESS) {
    read_shapes(list, index);
    payload = true;
  }
  if (!payload) throw Malformed{"neither 'tensor_payload' nor 'shape_payload' is there"};
  if (!index.tensors.empty() && index.event_file.empty())
    throw Malformed{"'event_file_name' is missing"};
}

}  // namespace

void IndexBuilder::add_tensor(std::string_view name, uint64_t offset, uint64_t length,
                              std::optional<uint32_t> crc32c) {
  tensors_ += tensors_.empty() ? "{\"tensorname\": " : ", {\"tensorname\": ";
  append_json_string(tensors_, name);
  tensors_ += ", \"start_idx\": ";
  append_uint(tensors_, offset);
  tensors_ += ", \"length\": ";
  append_uint(tensors_, length);
  if (crc32c) {
    tensors_ += fmt::format(", \"{}\": ", kChecksumKey);
    append_uint(tensors_, *crc32c);
  }
  tensors_ += '}';
}

void IndexBuilder::add_shape(std::string_view name, std::string_view original_name,
                             std::span<const int64_t> shape) {
  shapes_ += shapes_.empty() ? "{\"tensorname\": " : ", {\"tensorname\": ";
  append_json_string(shapes_, name);
  shapes_ += ", \"originalname\": ";
  append_json_string(shapes_, original_name);
  fmt::format_to(std::back_inserter(shapes_), ", \"shape\": [{}]}}", fmt::join(shape, ", "));
}

std::string IndexBuilder::finish(const StepInfo& step, std::string_view event_file) {
  std::string out = fmt::format("{{\"meta\": {{\"mode\": \"{}\", \"mode_step\": {}",
                                name_of(step.mode), step.mode_step);
  if (!event_file.empty()) {
    out += ", \"event_file_name\": ";
    append_json_string(out, event_file);
  }
  out.reserve(out.size() + tensors_.size() + shapes_.size() + 64);
  out += "}, \"tensor_payload\": [";
  out += tensors_;
  out += "], \"shape_payload\": [";
  out += shapes_;
  out += "]}";
  tensors_.clear();
  shapes_.clear();
  return out;
}

struct IndexParser::Memory {
  dom::parser parser;
  IndexView index;
};

IndexParser::IndexParser() : memory_(std::make_unique<Memory>()) {}
IndexParser::~IndexParser() = default;

Result<const IndexView*> IndexParser::parse(std::string_view text, std::string_view source) {
  const auto corrupt = [&](std::string_view what) {
    return Error{ErrorCode::corrupt, fmt::format("The index is not valid: {}: {}", what, source)};
  };
  if (text.empty()) return corrupt("it is empty");
  IndexView& index = memory_->index;
  index.event_file = {};
  index.tensors.clear();
  index.shapes.clear();
  try {
    dom::element document;
    const auto error = memory_->parser.parse(text.data(), text.size()).get(document);
    if (error != simdjson::SUCCESS) return corrupt(simdjson::error_message(error));
    read_index(document, index);
  } catch (const Malformed& malformed) {
    return corrupt(malformed.what);
  } catch (const simdjson::simdjson_error& e) {
    return corrupt(e.what());
  }
  return static_cast<const IndexView*>(&index);
}

Result<Index> parse_index(std::string_view text, std::string_view source) {
  IndexParser parser;
  SMD_TRY(const IndexView* view, parser.parse(text, source));
  Index index{.mode = view->mode,
              .mode_step = view->mode_step,
              .event_file = std::string(view->event_file)};
  for (const auto& at : view->tensors) {
    index.tensors.push_back({std::string(at.name), at.offset, at.length, at.crc32c});
  }
  for (const auto& at : view->shapes) {
    index.shapes.push_back({std::string(at.name), std::string(at.original_name), at.shape});
  }
  return index;
}

}  // namespace smd::format
