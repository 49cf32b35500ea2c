#pragma once

// The contract of storage.h as a test suite. A backend's test instantiates it with a factory:
// INSTANTIATE_TEST_SUITE_P(Local, StorageConformance, testing::Values(&make_local));

#include <gtest/gtest.h>

#include <memory>

#include "smd/storage/storage.h"

namespace smd::storage {

using StorageFactory = std::shared_ptr<Storage> (*)();

class StorageConformance : public testing::TestWithParam<StorageFactory> {
 protected:
  std::shared_ptr<Storage> storage = GetParam()();

  std::string text(std::string_view path) {
    auto bytes = read_all(*storage, path);
    return bytes.ok() ? std::string(as_text(*bytes)) : bytes.error().message;
  }
  std::vector<std::string> paths(std::string_view folder, std::string_view after = "") {
    std::vector<std::string> out;
    auto files = storage->list(folder, after);
    EXPECT_TRUE(files.ok());
    if (files.ok()) {
      for (const FileInfo& file : *files) out.push_back(file.path);
    }
    return out;
  }
};

}  // namespace smd::storage
