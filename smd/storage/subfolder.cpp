#include "smd/storage/subfolder.h"

#include <utility>

namespace smd::storage {
namespace {

class SubfolderStorage final : public Storage {
 public:
  SubfolderStorage(std::shared_ptr<Storage> whole, std::string folder)
      : whole_(std::move(whole)), folder_(std::move(folder)) {}

  std::string name() const override { return whole_->name() + "/" + folder_; }

  Result<std::unique_ptr<WriteFile>> create(std::string_view path,
                                            const CreateOptions& options) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    return whole_->create(inside(path), options);
  }
  Result<std::unique_ptr<AppendFile>> append(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    return whole_->append(inside(path));
  }
  Result<bool> put(std::string_view path, ByteSpan content, Put when,
                   const CreateOptions& options) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    return whole_->put(inside(path), content, when, options);
  }
  Result<std::unique_ptr<ReadFile>> open(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    return whole_->open(inside(path));
  }
  Result<FileInfo> stat(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    SMD_TRY(FileInfo file, whole_->stat(inside(path)));
    file.path = path;
    return file;
  }
  Result<std::vector<FileInfo>> list(std::string_view folder,
                                     std::string_view start_after) override {
    const std::string after = start_after.empty() ? std::string() : inside(start_after);
    SMD_TRY(auto files, whole_->list(folder.empty() ? folder_ : inside(folder), after));
    for (FileInfo& file : files) file.path.erase(0, folder_.size() + 1);
    return files;
  }
  Result<std::optional<VersionedFile>> read_version(std::string_view path, std::string_view known,
                                                    uint64_t most_bytes) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    return whole_->read_version(inside(path), known, most_bytes);
  }
  Result<std::optional<std::string>> replace(std::string_view path, ByteSpan content,
                                             std::string_view version) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    return whole_->replace(inside(path), content, version);
  }
  Status remove(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    return whole_->remove(inside(path));
  }
  Status sync() override { return whole_->sync(); }
  bool is_remote() const override { return whole_->is_remote(); }

 private:
  std::string inside(std::string_view path) const {
    return std::string(folder_).append("/").append(path);
  }

  const std::shared_ptr<Storage> whole_;
  const std::string folder_;
};

}  // namespace

std::shared_ptr<Storage> subfolder_storage(std::shared_ptr<Storage> whole, std::string folder) {
  return std::make_shared<SubfolderStorage>(std::move(whole), std::move(folder));
}

}  // namespace smd::storage
