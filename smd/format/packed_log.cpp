#include "smd/format/packed_log.h"

#include <fmt/format.h>

#include <limits>
#include <protozero/pbf_builder.hpp>
#include <protozero/pbf_message.hpp>

#include "smd/base/protobuf_field.h"
#include "smd/format/internal/text_of.h"
#include "smd/format/tfrecord.h"

namespace smd::format {
namespace {

using internal::text_of;
using protozero::pbf_builder;
using protozero::pbf_message;

enum class EntryField : protozero::pbf_tag_type {
  header = 1,
  names = 2,
  schema = 3,
  step = 4,
  end = 5
};
enum class HeaderField : protozero::pbf_tag_type {
  version = 1,
  features = 2,
  worker = 3,
  writer = 4,
  segment = 5,
  created = 6
};
enum class NamesField : protozero::pbf_tag_type { first_id = 1, name = 2 };
enum class SchemaField : protozero::pbf_tag_type {
  id = 1,
  tensors = 2,
  op = 3,
  ops = 4,
  dtypes = 5,
  ranks = 6  // absent: all are 1
};
enum class StepField : protozero::pbf_tag_type {
  step = 1,
  mode = 2,
  mode_step = 3,
  wall_time = 4,
  base = 5,
  length = 6,
  schema = 7,
  block_offset = 8,
  block_crc32c = 9,
  raw = 10,
  shape = 11
};
enum class RawField : protozero::pbf_tag_type {
  tensor = 1,
  offset = 2,
  length = 3,
  crc32c = 4,
  dtype = 5,
  dims = 6,
  first = 7,
  count = 8
};
enum class PackedShapeField : protozero::pbf_tag_type { tensor = 1, original_name = 2, dims = 3 };

Error bad_entry(std::string_view what) {
  return {ErrorCode::corrupt, fmt::format("The entry of the log is not valid: {}.", what)};
}

protozero::data_view view_of(std::string_view text) { return {text.data(), text.size()}; }

// --- writing

struct EntryWriter {
  std::string& payload;

  void operator()(const PackedUnknown&) const {}

  void operator()(const PackedHeader& header) const {
    pbf_builder<EntryField> entry(payload);
    pbf_builder<HeaderField> out(entry, EntryField::header);
    out.add_uint32(HeaderField::version, header.version);
    if (header.features != 0) out.add_uint64(HeaderField::features, header.features);
    out.add_string(HeaderField::worker, view_of(header.worker));
    out.add_string(HeaderField::writer, view_of(header.writer));
    out.add_string(HeaderField::segment, view_of(header.segment));
    out.add_double(HeaderField::created, header.created_secs);
  }

  void operator()(const PackedNames& names) const {
    pbf_builder<EntryField> entry(payload);
    pbf_builder<NamesField> out(entry, EntryField::names);
    out.add_uint32(NamesField::first_id, names.first_id);
    for (std::string_view name : names.names) out.add_string(NamesField::name, view_of(name));
  }

  void operator()(const PackedSchema& schema) const {
    std::vector<uint32_t> tensors;
    std::vector<uint32_t> ops;
    std::vector<uint32_t> dtypes;
    std::vector<uint32_t> ranks;
    bool plain = true;
    for (const PackedValue& value : schema.values) {
      tensors.push_back(value.tensor);
      ops.push_back(value.op);
      dtypes.push_back(static_cast<uint32_t>(info_of(value.dtype).code));
      ranks.push_back(value.rank);
      plain = plain && value.rank == 1;
    }
    pbf_builder<EntryField> entry(payload);
    pbf_builder<SchemaField> out(entry, EntryField::schema);
    out.add_uint32(SchemaField::id, schema.id);
    out.add_packed_uint32(SchemaField::tensors, tensors.begin(), tensors.end());
    for (std::string_view op : schema.ops) out.add_string(SchemaField::op, view_of(op));
    out.add_packed_uint32(SchemaField::ops, ops.begin(), ops.end());
    out.add_packed_uint32(SchemaField::dtypes, dtypes.begin(), dtypes.end());
    if (!plain) out.add_packed_uint32(SchemaField::ranks, ranks.begin(), ranks.end());
  }

  void operator()(const PackedStep& step) const {
    pbf_builder<EntryField> entry(payload);
    pbf_builder<StepField> out(entry, EntryField::step);
    out.add_int64(StepField::step, step.info.step);
    out.add_uint32(StepField::mode, static_cast<uint32_t>(step.info.mode));
    out.add_int64(StepField::mode_step, step.info.mode_step);
    out.add_double(StepField::wall_time, step.wall_secs);
    out.add_fixed64(StepField::base, step.base);
    out.add_fixed64(StepField::length, step.length);
    out.add_uint32(StepField::schema, step.schema);
    out.add_fixed64(StepField::block_offset, step.block_offset);
    out.add_fixed32(StepField::block_crc32c, step.block_crc32c);
    for (const PackedRaw& raw : step.raws) {
      pbf_builder<RawField> one(out, StepField::raw);
      one.add_uint32(RawField::tensor, raw.tensor);
      one.add_uint64(RawField::offset, raw.offset);
      one.add_uint64(RawField::length, raw.length);
      one.add_fixed32(RawField::crc32c, raw.crc32c);
      one.add_uint32(RawField::dtype, static_cast<uint32_t>(info_of(raw.dtype).code));
      one.add_packed_int64(RawField::dims, raw.shape.begin(), raw.shape.end());
      if (raw.count == 0) continue;
      one.add_uint64(RawField::first, raw.first);
      one.add_uint64(RawField::count, raw.count);
    }
    for (const PackedShape& shape : step.shapes) {
      pbf_builder<PackedShapeField> one(out, StepField::shape);
      one.add_uint32(PackedShapeField::tensor, shape.tensor);
      one.add_uint32(PackedShapeField::original_name, shape.original_name);
      one.add_packed_int64(PackedShapeField::dims, shape.shape.begin(), shape.shape.end());
    }
  }

  void operator()(const PackedEnd&) const {
    pbf_builder<EntryField> entry(payload);
    entry.add_bytes(EntryField::end, view_of(""));  // a message without fields
  }
};

// --- reading

Result<DType> dtype_of(uint32_t code) {
  constexpr uint32_t kMost = 1000;
  const auto dtype = dtype_from_code(static_cast<int>(std::min(code, kMost)));
  if (dtype) return *dtype;
  return Error{ErrorCode::unsupported,
               fmt::format("The element type number {} is not known.", code)};
}

Result<PackedHeader> read_header(pbf_message<HeaderField> message) {
  PackedHeader header{.version = 0};
  while (message.next()) {
    switch (message.tag_and_type()) {
      case field(HeaderField::version, kVarint): header.version = message.get_uint32(); break;
      case field(HeaderField::features, kVarint): header.features = message.get_uint64(); break;
      case field(HeaderField::worker, kText): header.worker = text_of(message.get_view()); break;
      case field(HeaderField::writer, kText): header.writer = text_of(message.get_view()); break;
      case field(HeaderField::segment, kText): header.segment = text_of(message.get_view()); break;
      case field(HeaderField::created, kFixed64): header.created_secs = message.get_double(); break;
      default: message.skip();
    }
  }
  if (header.version == 0) return bad_entry("the header has no version");
  if (header.version > kPackedVersion) {
    return Error{ErrorCode::unsupported,
                 fmt::format("The run was written by a later release: its packed files have "
                             "version {}, and this one reads up to {}.",
                             header.version, kPackedVersion)};
  }
  if (const uint64_t unknown = header.features & ~kPackedFeatures; unknown != 0) {
    return Error{ErrorCode::unsupported,
                 fmt::format("The run was written by a later release: its packed files need the "
                             "features {:#x}, which this one does not know.",
                             unknown)};
  }
  return header;
}

PackedNames read_names(pbf_message<NamesField> message) {
  PackedNames names;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case field(NamesField::first_id, kVarint): names.first_id = message.get_uint32(); break;
      case field(NamesField::name, kText):
        names.names.push_back(text_of(message.get_view()));
        break;
      default: message.skip();
    }
  }
  return names;
}

template <typename Range>
std::vector<uint32_t> numbers(const Range& range) {
  return {range.begin(), range.end()};
}

Result<PackedSchema> read_schema(pbf_message<SchemaField> message) {
  PackedSchema schema;
  std::vector<uint32_t> tensors;
  std::vector<uint32_t> ops;
  std::vector<uint32_t> dtypes;
  std::vector<uint32_t> ranks;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case field(SchemaField::id, kVarint): schema.id = message.get_uint32(); break;
      case field(SchemaField::tensors, kText):
        tensors = numbers(message.get_packed_uint32());
        break;
      case field(SchemaField::op, kText): schema.ops.push_back(text_of(message.get_view())); break;
      case field(SchemaField::ops, kText): ops = numbers(message.get_packed_uint32()); break;
      case field(SchemaField::dtypes, kText): dtypes = numbers(message.get_packed_uint32()); break;
      case field(SchemaField::ranks, kText): ranks = numbers(message.get_packed_uint32()); break;
      default: message.skip();
    }
  }
  const size_t count = tensors.size();
  if (ops.size() != count || dtypes.size() != count || (!ranks.empty() && ranks.size() != count)) {
    return bad_entry(fmt::format("the schema {} has lists of different lengths", schema.id));
  }
  schema.values.reserve(count);
  bool wide = false;
  for (size_t i = 0; i < count; ++i) {
    SMD_TRY(const DType dtype, dtype_of(dtypes[i]));
    const size_t size = size_of(dtype);
    if (size == 0 || size > 8 || info_of(dtype).kind == DTypeKind::complex) {
      return bad_entry(fmt::format("a block holds no numbers of {}", name_of(dtype)));
    }
    if (wide && size <= 4) {
      return bad_entry(fmt::format("the schema {} has short numbers after long ones", schema.id));
    }
    wide = size > 4;
    if (ops[i] > schema.ops.size()) {
      return bad_entry(fmt::format("the schema {} has no reduction {}", schema.id, ops[i]));
    }
    const uint32_t rank = ranks.empty() ? 1 : ranks[i];
    if (rank > 1) return bad_entry(fmt::format("a number has no rank of {}", rank));
    schema.values.push_back(
        {.tensor = tensors[i], .op = ops[i], .dtype = dtype, .rank = static_cast<uint8_t>(rank)});
  }
  return schema;
}

template <typename Message>
Result<Shape> read_dims(Message& message) {
  const auto range = message.get_packed_int64();
  Shape shape(range.begin(), range.end());
  const auto count = element_count(shape);
  if (!count.ok()) return bad_entry(count.error().message);
  return shape;
}

Result<PackedRaw> read_raw(pbf_message<RawField> message) {
  PackedRaw raw;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case field(RawField::tensor, kVarint): raw.tensor = message.get_uint32(); break;
      case field(RawField::offset, kVarint): raw.offset = message.get_uint64(); break;
      case field(RawField::length, kVarint): raw.length = message.get_uint64(); break;
      case field(RawField::crc32c, kFixed32): raw.crc32c = message.get_fixed32(); break;
      case field(RawField::first, kVarint): raw.first = message.get_uint64(); break;
      case field(RawField::count, kVarint): raw.count = message.get_uint64(); break;
      case field(RawField::dtype, kVarint): {
        SMD_TRY(raw.dtype, dtype_of(message.get_uint32()));
        break;
      }
      case field(RawField::dims, kText): {
        SMD_TRY(raw.shape, read_dims(message));
        break;
      }
      default: message.skip();
    }
  }
  return raw;
}

Result<PackedShape> read_packed_shape(pbf_message<PackedShapeField> message) {
  PackedShape shape;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case field(PackedShapeField::tensor, kVarint): shape.tensor = message.get_uint32(); break;
      case field(PackedShapeField::original_name, kVarint):
        shape.original_name = message.get_uint32();
        break;
      case field(PackedShapeField::dims, kText): {
        SMD_TRY(shape.shape, read_dims(message));
        break;
      }
      default: message.skip();
    }
  }
  return shape;
}

Result<PackedStep> read_step(pbf_message<StepField> message) {
  PackedStep step;
  uint32_t mode = 0;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case field(StepField::step, kVarint): step.info.step = message.get_int64(); break;
      case field(StepField::mode, kVarint): mode = message.get_uint32(); break;
      case field(StepField::mode_step, kVarint): step.info.mode_step = message.get_int64(); break;
      case field(StepField::wall_time, kFixed64): step.wall_secs = message.get_double(); break;
      case field(StepField::base, kFixed64): step.base = message.get_fixed64(); break;
      case field(StepField::length, kFixed64): step.length = message.get_fixed64(); break;
      case field(StepField::schema, kVarint): step.schema = message.get_uint32(); break;
      case field(StepField::block_offset, kFixed64):
        step.block_offset = message.get_fixed64();
        break;
      case field(StepField::block_crc32c, kFixed32):
        step.block_crc32c = message.get_fixed32();
        break;
      case field(StepField::raw, kText): {
        SMD_TRY(auto raw, read_raw(pbf_message<RawField>(message.get_message())));
        step.raws.push_back(std::move(raw));
        break;
      }
      case field(StepField::shape, kText): {
        SMD_TRY(auto shape,
                read_packed_shape(pbf_message<PackedShapeField>(message.get_message())));
        step.shapes.push_back(std::move(shape));
        break;
      }
      default: message.skip();
    }
  }
  if (mode < 1 || mode > 4) return bad_entry(fmt::format("there is no mode {}", mode));
  if (step.info.step < 0 || step.info.mode_step < 0) return bad_entry("a step is negative");
  step.info.mode = static_cast<Mode>(mode);
  // Sums of these stay far from overflowing.
  constexpr uint64_t kMost = uint64_t{1} << 60;
  bool far = step.base > kMost || step.length > kMost || step.block_offset > step.length;
  for (const PackedRaw& raw : step.raws) {
    far = far || raw.offset > step.length || raw.length > step.length - raw.offset;
  }
  if (far) return bad_entry(fmt::format("parts of step {} lie outside of it", step.info.step));
  return step;
}

template <typename T>
Result<PackedEntry> as_entry(Result<T> result) {
  if (!result.ok()) return std::move(result.error());
  return PackedEntry(std::move(*result));
}

Result<PackedEntry> read_entry(ByteSpan payload) {
  pbf_message<EntryField> message(view_of(as_text(payload)));
  while (message.next()) {
    switch (message.tag_and_type()) {
      case field(EntryField::header, kText):
        return as_entry(read_header(pbf_message<HeaderField>(message.get_message())));
      case field(EntryField::names, kText):
        return PackedEntry(read_names(pbf_message<NamesField>(message.get_message())));
      case field(EntryField::schema, kText):
        return as_entry(read_schema(pbf_message<SchemaField>(message.get_message())));
      case field(EntryField::step, kText):
        return as_entry(read_step(pbf_message<StepField>(message.get_message())));
      case field(EntryField::end, kText): return PackedEntry(PackedEnd());
      default: message.skip();
    }
  }
  return PackedEntry(PackedUnknown());
}

}  // namespace

void append_log_entry(std::string& out, const PackedEntry& entry) {
  std::string payload;
  std::visit(EntryWriter{payload}, entry);
  append_checked_record(out, payload);
}

Result<PackedEntry> parse_log_entry(ByteSpan payload) {
  try {
    return read_entry(payload);
  } catch (const std::exception& e) {  // protozero reports malformed input by exceptions
    return bad_entry(e.what());
  }
}

}  // namespace smd::format
