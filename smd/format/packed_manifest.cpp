#include "smd/format/packed_manifest.h"

#include <fmt/format.h>

#include <protozero/pbf_builder.hpp>
#include <protozero/pbf_message.hpp>

#include "smd/base/protobuf_field.h"
#include "smd/format/packed_log.h"

namespace smd::format {
namespace {

using protozero::pbf_builder;
using protozero::pbf_message;

enum class Field : protozero::pbf_tag_type {
  version = 1,
  features = 2,
  writer = 3,
  segment = 4,
  segment_bytes = 5,
  log = 6,
  watermark = 7,
  file = 8,
  end = 9
};
enum class FileField : protozero::pbf_tag_type { path = 1, content = 2 };

Error bad_manifest(std::string_view what) {
  return {ErrorCode::corrupt, fmt::format("The manifest is not valid: {}.", what)};
}

PackedManifest::File read_file(pbf_message<FileField> message) {
  PackedManifest::File file;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case field(FileField::path, kText): file.path = message.get_string(); break;
      case field(FileField::content, kText): file.content = message.get_bytes(); break;
      default: message.skip();
    }
  }
  return file;
}

Result<PackedManifest> read_manifest(ByteSpan bytes) {
  const std::string_view text = as_text(bytes);
  pbf_message<Field> message(protozero::data_view(text.data(), text.size()));
  PackedManifest manifest;
  uint32_t version = 0;
  uint64_t features = 0;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case field(Field::version, kVarint): version = message.get_uint32(); break;
      case field(Field::features, kVarint): features = message.get_uint64(); break;
      case field(Field::writer, kText): manifest.writer = message.get_string(); break;
      case field(Field::segment, kText): manifest.segment = message.get_string(); break;
      case field(Field::segment_bytes, kVarint):
        manifest.segment_bytes = message.get_uint64();
        break;
      case field(Field::log, kText): manifest.log = message.get_bytes(); break;
      case field(Field::watermark, kVarint): manifest.watermark = message.get_int64(); break;
      case field(Field::file, kText):
        manifest.files.push_back(read_file(message.get_message()));
        break;
      case field(Field::end, kFixed64): manifest.end_secs = message.get_double(); break;
      default: message.skip();
    }
  }
  if (version == 0) return bad_manifest("it has no version");
  if (version > kPackedVersion || (features & ~kPackedFeatures) != 0) {
    return Error{ErrorCode::unsupported,
                 fmt::format("The run was written by a later release: its manifests have version "
                             "{} and features {:#x}, and this one reads up to {}; update smdebug.",
                             version, features, kPackedVersion)};
  }
  return manifest;
}

}  // namespace

std::string encode_manifest(const PackedManifest& manifest) {
  std::string text;
  pbf_builder<Field> out(text);
  out.add_uint32(Field::version, kPackedVersion);
  if (!manifest.writer.empty()) out.add_string(Field::writer, manifest.writer);
  if (!manifest.segment.empty()) {
    out.add_string(Field::segment, manifest.segment);
    out.add_uint64(Field::segment_bytes, manifest.segment_bytes);
    out.add_bytes(Field::log, manifest.log);
  }
  if (manifest.watermark >= 0) out.add_int64(Field::watermark, manifest.watermark);
  for (const PackedManifest::File& file : manifest.files) {
    pbf_builder<FileField> one(out, Field::file);
    one.add_string(FileField::path, file.path);
    one.add_bytes(FileField::content, file.content);
  }
  if (manifest.end_secs) out.add_double(Field::end, *manifest.end_secs);
  return text;
}

Result<PackedManifest> parse_manifest(ByteSpan bytes) {
  try {
    return read_manifest(bytes);
  } catch (const std::exception& e) {  // protozero reports malformed input by exceptions
    return bad_manifest(e.what());
  }
}

}  // namespace smd::format
