#include "smd/trial/arrow_stream.h"

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace smd {
namespace {

// --- schema

struct SchemaNode {
  std::string format;
  std::string name;
  std::vector<std::unique_ptr<ArrowSchema>> owned;
  std::vector<ArrowSchema*> children;
  std::unique_ptr<ArrowSchema> dictionary;
};

// A consumer may have moved a child away, which leaves one without a release callback.
template <typename Struct>
void release_if_held(Struct* node) {
  if (node != nullptr && node->release != nullptr) node->release(node);
}

void release_schema(ArrowSchema* schema) {
  std::unique_ptr<SchemaNode> node(static_cast<SchemaNode*>(schema->private_data));
  for (ArrowSchema* child : node->children) release_if_held(child);
  release_if_held(node->dictionary.get());
  schema->release = nullptr;
}

struct SchemaSpec {
  std::string_view format;
  std::string_view name;
  int64_t flags = 0;
};

void make_schema(const SchemaSpec& spec, std::unique_ptr<SchemaNode> node, ArrowSchema* out) {
  node->format = spec.format;
  node->name = spec.name;
  for (const auto& child : node->owned) node->children.push_back(child.get());
  *out = {.format = node->format.c_str(),
          .name = node->name.c_str(),
          .metadata = nullptr,
          .flags = spec.flags,
          .n_children = static_cast<int64_t>(node->children.size()),
          .children = node->children.empty() ? nullptr : node->children.data(),
          .dictionary = node->dictionary.get(),
          .release = release_schema,
          .private_data = node.get()};
  (void)node.release();
}

// Formats of the specification.
constexpr std::string_view kStruct = "+s";
constexpr std::string_view kInt8 = "c";
constexpr std::string_view kInt32 = "i";
constexpr std::string_view kInt64 = "l";
constexpr std::string_view kFloat64 = "g";
constexpr std::string_view kUtf8 = "u";

void add_field(SchemaNode& parent, const SchemaSpec& spec, bool is_dictionary) {
  auto node = std::make_unique<SchemaNode>();
  if (is_dictionary) {
    node->dictionary = std::make_unique<ArrowSchema>();
    make_schema({kUtf8, ""}, std::make_unique<SchemaNode>(), node->dictionary.get());
  }
  parent.owned.push_back(std::make_unique<ArrowSchema>());
  make_schema(spec, std::move(node), parent.owned.back().get());
}

void make_frame_schema(const Frame& frame, ArrowSchema* out) {
  auto root = std::make_unique<SchemaNode>();
  constexpr std::array<std::string_view, 5> kFormats = {kInt32, kInt8, kInt64, kInt64, kInt32};
  const auto& keys = Frame::key_columns();
  for (size_t i = 0; i < keys.size(); ++i) {
    add_field(*root, {kFormats[i], keys[i]}, kFormats[i] != kInt64);
  }
  for (const std::string& name : frame.number_columns()) {
    add_field(*root, {kFloat64, name, ARROW_FLAG_NULLABLE}, false);
  }
  make_schema({kStruct, ""}, std::move(root), out);
}

// --- arrays

// The texts that codes of a dictionary column stand for; all batches share them.
struct Texts {
  std::vector<int32_t> offsets = {0};
  std::string bytes;

  explicit Texts(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) add(text);
  }
  void add(std::string_view text) {
    bytes += text;
    offsets.push_back(static_cast<int32_t>(bytes.size()));
  }
  int64_t size() const { return static_cast<int64_t>(offsets.size()) - 1; }
};

struct ArrayNode {
  std::shared_ptr<const void> memory;  // what the buffers point into
  std::vector<const void*> buffers;
  std::vector<std::unique_ptr<ArrowArray>> owned;
  std::vector<ArrowArray*> children;
  std::unique_ptr<ArrowArray> dictionary;
};

void release_array(ArrowArray* array) {
  std::unique_ptr<ArrayNode> node(static_cast<ArrayNode*>(array->private_data));
  for (ArrowArray* child : node->children) release_if_held(child);
  release_if_held(node->dictionary.get());
  array->release = nullptr;
}

struct ArraySpec {
  int64_t length = 0;
  int64_t null_count = 0;
};

void make_array(const ArraySpec& spec, std::unique_ptr<ArrayNode> node, ArrowArray* out) {
  for (const auto& child : node->owned) node->children.push_back(child.get());
  *out = {.length = spec.length,
          .null_count = spec.null_count,
          .offset = 0,
          .n_buffers = static_cast<int64_t>(node->buffers.size()),
          .n_children = static_cast<int64_t>(node->children.size()),
          .buffers = node->buffers.data(),
          .children = node->children.empty() ? nullptr : node->children.data(),
          .dictionary = node->dictionary.get(),
          .release = release_array,
          .private_data = node.get()};
  (void)node.release();
}

std::unique_ptr<ArrowArray> text_array(const std::shared_ptr<const Texts>& texts) {
  auto node = std::make_unique<ArrayNode>();
  node->memory = texts;
  node->buffers = {nullptr, texts->offsets.data(), texts->bytes.data()};
  auto array = std::make_unique<ArrowArray>();
  make_array({.length = texts->size()}, std::move(node), array.get());
  return array;
}

class BatchArray final {
 public:
  explicit BatchArray(FrameBatch batch)
      : batch_(std::make_shared<const FrameBatch>(std::move(batch))),
        root_(std::make_unique<ArrayNode>()) {
    root_->buffers = {nullptr};
  }
  BatchArray(const BatchArray&) = delete;
  BatchArray& operator=(const BatchArray&) = delete;
  // Of a batch that was not handed out.
  ~BatchArray() {
    if (!root_) return;
    for (const auto& child : root_->owned) release_if_held(child.get());
  }

  const FrameBatch& batch() const { return *batch_; }

  void add(const void* values, std::shared_ptr<const Texts> dictionary = nullptr) {
    add(nullptr, values, 0, std::move(dictionary));
  }
  void add(const FrameBatch::Numbers& numbers) {
    const void* validity = numbers.null_count > 0 ? numbers.validity.data() : nullptr;
    add(validity, numbers.values.data(), numbers.null_count, nullptr);
  }
  void hand_out(ArrowArray* out) { make_array({.length = batch_->rows()}, std::move(root_), out); }

 private:
  void add(const void* validity, const void* values, int64_t null_count,
           std::shared_ptr<const Texts> dictionary) {
    auto node = std::make_unique<ArrayNode>();
    node->memory = batch_;
    node->buffers = {validity, values};
    if (dictionary) node->dictionary = text_array(dictionary);
    root_->owned.push_back(std::make_unique<ArrowArray>());
    make_array({.length = batch_->rows(), .null_count = null_count}, std::move(node),
               root_->owned.back().get());
  }

  std::shared_ptr<const FrameBatch> batch_;
  std::unique_ptr<ArrayNode> root_;
};

// --- stream

class FrameStream final {
 public:
  explicit FrameStream(FrameReader reader)
      : reader_(std::move(reader)),
        tensors_(std::make_shared<const Texts>(reader_.frame().tensor_names())),
        workers_(std::make_shared<const Texts>(reader_.frame().worker_names())),
        modes_(std::make_shared<const Texts>(mode_names())) {}

  int schema(ArrowSchema* out) {
    make_frame_schema(reader_.frame(), out);
    return 0;
  }

  int next(ArrowArray* out) {
    auto batch = reader_.next();
    if (!batch.ok()) return fail(batch.error());
    if (!*batch) {
      *out = {};  // released: that was all
      return 0;
    }
    BatchArray array(std::move(**batch));
    const FrameBatch& rows = array.batch();
    array.add(rows.tensor.data(), tensors_);
    array.add(rows.mode.data(), modes_);
    array.add(rows.step.data());
    array.add(rows.mode_step.data());
    array.add(rows.worker.data(), workers_);
    for (const FrameBatch::Numbers& numbers : rows.numbers) array.add(numbers);
    array.hand_out(out);
    return 0;
  }

  const char* last_error() const { return error_.empty() ? nullptr : error_.c_str(); }

  static FrameStream& of(ArrowArrayStream* stream) {
    return *static_cast<FrameStream*>(stream->private_data);
  }

 private:
  static std::vector<std::string> mode_names() {
    std::vector<std::string> out;
    for (Mode mode : kModes) out.emplace_back(name_of(mode));
    return out;
  }

  int fail(const Error& error) {
    error_ = error.message;
    switch (error.code) {
      case ErrorCode::not_found: return ENOENT;
      case ErrorCode::unsupported: return ENOTSUP;
      case ErrorCode::invalid_argument: return EINVAL;
      default: return EIO;
    }
  }

  FrameReader reader_;
  const std::shared_ptr<const Texts> tensors_;
  const std::shared_ptr<const Texts> workers_;
  const std::shared_ptr<const Texts> modes_;
  std::string error_;
};

}  // namespace

void export_stream(FrameReader reader, ArrowArrayStream* out) {
  auto stream = std::make_unique<FrameStream>(std::move(reader));
  *out = {
      .get_schema = [](ArrowArrayStream* s,
                       ArrowSchema* to) { return FrameStream::of(s).schema(to); },
      .get_next = [](ArrowArrayStream* s, ArrowArray* to) { return FrameStream::of(s).next(to); },
      .get_last_error = [](ArrowArrayStream* s) { return FrameStream::of(s).last_error(); },
      .release =
          [](ArrowArrayStream* s) {
            delete &FrameStream::of(s);
            s->release = nullptr;
          },
      .private_data = stream.get()};
  (void)stream.release();
}

}  // namespace smd
