#include "smd/storage/backends/s3.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace smd::storage {
namespace {

// size() reads so much of the beginning, so that a small file costs one request in all.
constexpr size_t kFirstBytes = size_t{256} << 10;

class S3WriteFile final : public WriteFile {
 public:
  S3WriteFile(std::shared_ptr<S3Bucket> bucket, std::string key)
      : bucket_(std::move(bucket)), key_(std::move(key)) {}
  ~S3WriteFile() override {
    // What cannot be aborted is cleaned up by the bucket's life cycle rules, if it has any.
    if (!upload_.empty()) (void)bucket_->abort_upload(key_, upload_);
  }

  Status append(std::span<const ByteSpan> pieces) override {
    for (ByteSpan piece : pieces) {
      while (!piece.empty()) {
        if (buffer_.size() == bucket_->part_bytes()) SMD_RETURN_IF_ERROR(send_part());
        const size_t room = bucket_->part_bytes() - buffer_.size();
        const ByteSpan now = piece.first(std::min(room, piece.size()));
        buffer_.insert(buffer_.end(), now.begin(), now.end());
        piece = piece.subspan(now.size());
      }
    }
    return {};
  }

  void expect(uint64_t bytes) override {
    buffer_.reserve(std::min<uint64_t>(buffer_.size() + bytes, bucket_->part_bytes()));
  }

  Status commit() override {
    if (upload_.empty()) return bucket_->put(key_, buffer_);
    SMD_RETURN_IF_ERROR(send_part());
    SMD_RETURN_IF_ERROR(bucket_->end_upload(key_, upload_, etags_, sent_bytes_));
    upload_.clear();
    return {};
  }

 private:
  Status send_part() {
    if (upload_.empty()) {
      SMD_TRY(upload_, bucket_->begin_upload(key_));
    }
    SMD_TRY(std::string etag, bucket_->upload_part(key_, upload_, etags_.size() + 1, buffer_));
    etags_.push_back(std::move(etag));
    sent_bytes_ += buffer_.size();
    buffer_.clear();
    return {};
  }

  const std::shared_ptr<S3Bucket> bucket_;
  const std::string key_;
  Bytes buffer_;        // what no part holds yet
  std::string upload_;  // empty: not in parts
  std::vector<std::string> etags_;
  uint64_t sent_bytes_ = 0;
};

class S3ReadFile final : public ReadFile {
 public:
  S3ReadFile(std::shared_ptr<S3Bucket> bucket, std::string key)
      : bucket_(std::move(bucket)), key_(std::move(key)) {}

  Result<uint64_t> size() override {
    if (size_bytes_) return *size_bytes_;
    first_.resize(kFirstBytes);
    const auto piece = bucket_->get(key_, 0, first_);
    first_.resize(piece.ok() ? piece->got_bytes : 0);
    SMD_RETURN_IF_ERROR(piece);
    size_bytes_ = piece->object_bytes;
    return *size_bytes_;
  }

  Result<size_t> read_at(uint64_t offset, std::span<std::byte> out) override {
    if (out.empty() || (size_bytes_ && offset >= *size_bytes_)) return size_t{0};
    size_t got = 0;
    if (offset < first_.size()) {
      got = std::min<size_t>(out.size(), first_.size() - offset);
      std::copy_n(first_.begin() + static_cast<std::ptrdiff_t>(offset), got, out.begin());
      if (got == out.size() || offset + got == *size_bytes_) return got;
    }
    SMD_TRY(const auto piece, bucket_->get(key_, offset + got, out.subspan(got)));
    size_bytes_ = piece.object_bytes;
    return got + piece.got_bytes;
  }

 private:
  const std::shared_ptr<S3Bucket> bucket_;
  const std::string key_;
  std::optional<uint64_t> size_bytes_;
  Bytes first_;  // the beginning of the object, once size() was asked
};

class S3Storage final : public Storage {
 public:
  S3Storage(std::shared_ptr<S3Bucket> bucket, S3Uri place)
      : bucket_(std::move(bucket)), place_(std::move(place)) {}

  std::string name() const override { return place_.text(); }
  bool is_remote() const override { return true; }

  Result<std::unique_ptr<WriteFile>> create(std::string_view path, const CreateOptions&) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    return std::unique_ptr<WriteFile>(std::make_unique<S3WriteFile>(bucket_, key_of(path)));
  }

  Result<bool> put(std::string_view path, ByteSpan content, Put when,
                   const CreateOptions&) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    if (when == Put::if_absent) return bucket_->put_if_absent(key_of(path), content);
    SMD_RETURN_IF_ERROR(bucket_->put(key_of(path), content));
    return true;
  }

  Result<std::optional<VersionedFile>> read_version(std::string_view path, std::string_view known,
                                                    uint64_t most_bytes) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    return bucket_->get_if_changed(key_of(path), known, most_bytes);
  }

  Result<std::optional<std::string>> replace(std::string_view path, ByteSpan content,
                                             std::string_view version) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    return bucket_->put_if_version(key_of(path), content, version);
  }

  Result<std::unique_ptr<ReadFile>> open(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    return std::unique_ptr<ReadFile>(std::make_unique<S3ReadFile>(bucket_, key_of(path)));
  }

  Result<FileInfo> stat(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    SMD_TRY(FileInfo info, bucket_->head(key_of(path)));
    info.path = path;
    return info;
  }

  Result<std::vector<FileInfo>> list(std::string_view folder,
                                     std::string_view start_after) override {
    if (!folder.empty()) SMD_RETURN_IF_ERROR(check_path(folder));
    const std::string root = key_of("");
    const std::string prefix = folder.empty() ? root : root + std::string(folder) + "/";
    SMD_TRY(S3Listing listing,
            bucket_->list(prefix, start_after.empty() ? "" : root + std::string(start_after)));
    std::vector<FileInfo> files;
    files.reserve(listing.objects.size());
    for (FileInfo& object : listing.objects) {
      object.path.erase(0, root.size());
      // Folders that other tools made, and keys that no directory could hold.
      if (check_path(object.path).ok()) files.push_back(std::move(object));
    }
    return files;
  }

  Status remove(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    return bucket_->remove(key_of(path));
  }

  // An object is on stable storage when its request has been answered.
  Status sync() override { return {}; }

 private:
  std::string key_of(std::string_view path) const {
    return place_.prefix.empty() ? std::string(path) : fmt::format("{}/{}", place_.prefix, path);
  }

  const std::shared_ptr<S3Bucket> bucket_;
  const S3Uri place_;
};

}  // namespace

Result<std::shared_ptr<Storage>> s3_storage(std::string_view uri, S3Options options) {
  SMD_TRY(const S3Uri place, parse_s3_uri(uri));
  SMD_TRY(auto bucket, S3Bucket::open(place.bucket, std::move(options)));
  return s3_storage(std::move(bucket), place);
}

std::shared_ptr<Storage> s3_storage(std::shared_ptr<S3Bucket> bucket, const S3Uri& place) {
  return std::make_shared<S3Storage>(std::move(bucket), place);
}

}  // namespace smd::storage
