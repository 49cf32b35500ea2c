#include "smd/c_api.h"
#include "tests/support/recorded_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace smd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr char kSaveAll[] = R"({"HookParameters": {"save_all": true, "save_interval": 1}})";

class CApiTest : public testing::Test {
 protected:
  CApiTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "smd_c_api_XXXXXX").string();
    root = mkdtemp(pattern.data());
    run_dir = root + "/run";
  }
  ~CApiTest() override { std::filesystem::remove_all(root); }

  smdebug_hook* create(const char* json = kSaveAll) {
    smdebug_hook* hook = smdebug_hook_create(run_dir.c_str(), json);
    EXPECT_NE(hook, nullptr) << smdebug_last_error();
    return hook;
  }
  RecordedRun run() const { return RecordedRun(storage::local_storage(run_dir)); }

  std::string root;
  std::string run_dir;
  const float values[6] = {1, 2, 3, 4, 5, 6};
  const int64_t shape[2] = {2, 3};
};

smdebug_dl_tensor dl_tensor(const void* data, uint8_t code, uint8_t bits, int32_t ndim,
                            const int64_t* shape, const int64_t* strides) {
  return {.data = const_cast<void*>(data),
          .device_type = 1,
          .device_id = 0,
          .ndim = ndim,
          .dtype_code = code,
          .dtype_bits = bits,
          .dtype_lanes = 1,
          .shape = shape,
          .strides = strides,
          .byte_offset = 0};
}

TEST_F(CApiTest, records_steps_that_can_be_read_back) {
  smdebug_hook* hook = create();
  const char* labels[] = {"cat", "dog"};
  EXPECT_EQ(smdebug_set_mode(hook, SMDEBUG_TRAIN), SMDEBUG_OK);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(smdebug_begin_step(hook), SMDEBUG_OK);
    EXPECT_EQ(smdebug_wants(hook, "w"), 1);
    EXPECT_EQ(smdebug_save(hook, "w", values, SMDEBUG_FLOAT32, 2, shape, nullptr), SMDEBUG_OK);
    EXPECT_EQ(smdebug_save_scalar(hook, "loss", i), SMDEBUG_OK);
    EXPECT_EQ(smdebug_save_strings(hook, "labels", labels, 2), SMDEBUG_OK);
    EXPECT_EQ(smdebug_end_step(hook), SMDEBUG_OK);
    EXPECT_EQ(smdebug_wants(hook, "w"), 0);
  }
  EXPECT_EQ(smdebug_begin_step_at(hook, 7), SMDEBUG_OK);
  EXPECT_EQ(smdebug_save_scalar(hook, "loss", 7), SMDEBUG_OK);
  EXPECT_EQ(smdebug_close(hook), SMDEBUG_OK);
  EXPECT_EQ(smdebug_close(hook), SMDEBUG_OK);
  smdebug_hook_free(hook);

  const RecordedRun run = this->run();
  EXPECT_THAT(run.steps(), ElementsAre(0, 1, 7));
  EXPECT_EQ(run.index(1).mode, Mode::train);
  EXPECT_EQ(run.index(1).mode_step, 1);
  EXPECT_THAT(run.names(1), UnorderedElementsAre("w", "labels", "scalar/loss"));
  EXPECT_THAT(run.values<float>(0, "w"), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(run.event(0, "w").tensor->shape, ElementsAre(2, 3));
  EXPECT_THAT(run.event(1, "labels").tensor->strings, ElementsAre("cat", "dog"));
  EXPECT_TRUE(run.ended());
}

TEST_F(CApiTest, freeing_a_hook_closes_it) {
  smdebug_hook* hook = create();
  EXPECT_EQ(smdebug_begin_step(hook), SMDEBUG_OK);
  EXPECT_EQ(smdebug_save(hook, "w", values, SMDEBUG_FLOAT32, 2, shape, nullptr), SMDEBUG_OK);
  smdebug_hook_free(hook);
  EXPECT_THAT(run().names(0), ElementsAre("w"));
  EXPECT_TRUE(run().ended());
}

TEST_F(CApiTest, reads_strides_of_elements) {
  smdebug_hook* hook = create();
  const int64_t transposed[2] = {3, 2};
  const int64_t strides[2] = {1, 3};
  EXPECT_EQ(smdebug_begin_step(hook), SMDEBUG_OK);
  EXPECT_EQ(smdebug_save(hook, "t", values, SMDEBUG_FLOAT32, 2, transposed, strides), SMDEBUG_OK);
  EXPECT_EQ(smdebug_save(hook, "zero_axes", values, SMDEBUG_FLOAT32, 0, nullptr, nullptr),
            SMDEBUG_OK);
  smdebug_hook_free(hook);
  const RecordedRun run = this->run();
  EXPECT_THAT(run.values<float>(0, "t"), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(run.values<float>(0, "zero_axes"), ElementsAre(1));
}

TEST_F(CApiTest, reads_dlpack_tensors_with_strides_offset_and_bfloat16) {
  smdebug_hook* hook = create();
  EXPECT_EQ(smdebug_begin_step(hook), SMDEBUG_OK);
  const int64_t two[] = {2};
  const int64_t backwards[] = {-2};
  auto strided = dl_tensor(values, 2, 32, 1, two, backwards);
  strided.byte_offset = 5 * sizeof(float);
  EXPECT_EQ(smdebug_save_dlpack(hook, "strided", &strided), SMDEBUG_OK);
  const uint16_t halves[] = {0x3f80, 0xc000};
  const auto brain = dl_tensor(halves, 4, 16, 1, two, nullptr);
  EXPECT_EQ(smdebug_save_dlpack(hook, "brain", &brain), SMDEBUG_OK);
  const uint8_t flags[] = {1, 0};
  const auto boolean = dl_tensor(flags, 6, 8, 1, two, nullptr);
  EXPECT_EQ(smdebug_save_dlpack(hook, "boolean", &boolean), SMDEBUG_OK);
  smdebug_hook_free(hook);
  const RecordedRun run = this->run();
  EXPECT_THAT(run.values<float>(0, "strided"), ElementsAre(6, 4));
  EXPECT_EQ(run.event(0, "brain").tensor->dtype, DType::bfloat16);
  EXPECT_THAT(run.values<uint16_t>(0, "brain"), ElementsAre(0x3f80, 0xc000));
  EXPECT_THAT(run.values<uint8_t>(0, "boolean"), ElementsAre(1, 0));
}

TEST_F(CApiTest, refuses_dlpack_tensors_that_it_cannot_read) {
  smdebug_hook* hook = create();
  EXPECT_EQ(smdebug_begin_step(hook), SMDEBUG_OK);
  auto tensor = dl_tensor(values, 2, 32, 2, shape, nullptr);
  tensor.device_type = 2;
  EXPECT_EQ(smdebug_save_dlpack(hook, "w", &tensor), SMDEBUG_UNSUPPORTED);
  EXPECT_THAT(smdebug_last_error(), HasSubstr("device of type 2"));
  tensor = dl_tensor(values, 2, 24, 2, shape, nullptr);
  EXPECT_EQ(smdebug_save_dlpack(hook, "w", &tensor), SMDEBUG_UNSUPPORTED);
  tensor = dl_tensor(values, 2, 32, 2, shape, nullptr);
  tensor.dtype_lanes = 4;
  EXPECT_EQ(smdebug_save_dlpack(hook, "w", &tensor), SMDEBUG_UNSUPPORTED);
  tensor = dl_tensor(values, 2, 32, -1, shape, nullptr);
  EXPECT_EQ(smdebug_save_dlpack(hook, "w", &tensor), SMDEBUG_INVALID_ARGUMENT);
  tensor = dl_tensor(values, 2, 32, 2, nullptr, nullptr);
  EXPECT_EQ(smdebug_save_dlpack(hook, "w", &tensor), SMDEBUG_INVALID_ARGUMENT);
  tensor = dl_tensor(nullptr, 2, 32, 2, shape, nullptr);
  tensor.byte_offset = 8;
  EXPECT_EQ(smdebug_save_dlpack(hook, "w", &tensor), SMDEBUG_INVALID_ARGUMENT);
  EXPECT_THAT(smdebug_last_error(), HasSubstr("without data"));
  EXPECT_EQ(smdebug_save_dlpack(hook, "w", nullptr), SMDEBUG_INVALID_ARGUMENT);
  smdebug_hook_free(hook);
}

TEST_F(CApiTest, refuses_wrong_arguments_with_a_sentence) {
  smdebug_hook* hook = create();
  EXPECT_EQ(smdebug_begin_step(hook), SMDEBUG_OK);
  const auto save = [&](int dtype, int ndim, const int64_t* extents,
                        const int64_t* strides = nullptr) {
    return smdebug_save(hook, "w", values, dtype, ndim, extents, strides);
  };
  EXPECT_EQ(save(99, 2, shape), SMDEBUG_INVALID_ARGUMENT);
  EXPECT_STREQ(smdebug_last_error(), "99 is no smdebug_dtype.");
  EXPECT_EQ(save(-1, 2, shape), SMDEBUG_INVALID_ARGUMENT);
  EXPECT_EQ(save(17, 2, shape), SMDEBUG_INVALID_ARGUMENT);
  EXPECT_EQ(save(SMDEBUG_FLOAT32, -1, shape), SMDEBUG_INVALID_ARGUMENT);
  EXPECT_EQ(save(SMDEBUG_FLOAT32, 65, shape), SMDEBUG_INVALID_ARGUMENT);
  EXPECT_STREQ(smdebug_last_error(), "A tensor has 0 to 64 axes, not 65.");
  EXPECT_EQ(save(SMDEBUG_FLOAT32, 2, nullptr), SMDEBUG_INVALID_ARGUMENT);
  EXPECT_STREQ(smdebug_last_error(), "The shape is NULL.");
  const int64_t negative[] = {2, -3};
  EXPECT_EQ(save(SMDEBUG_FLOAT32, 2, negative), SMDEBUG_INVALID_ARGUMENT);
  const int64_t huge[] = {INT64_MAX, INT64_MAX};
  EXPECT_EQ(save(SMDEBUG_FLOAT32, 2, huge), SMDEBUG_INVALID_ARGUMENT);
  EXPECT_EQ(save(SMDEBUG_FLOAT32, 2, shape, huge), SMDEBUG_INVALID_ARGUMENT);
  EXPECT_EQ(smdebug_save(hook, "w", nullptr, SMDEBUG_FLOAT32, 2, shape, nullptr),
            SMDEBUG_INVALID_ARGUMENT);
  EXPECT_EQ(smdebug_save(hook, "", values, SMDEBUG_FLOAT32, 2, shape, nullptr),
            SMDEBUG_INVALID_ARGUMENT);
  EXPECT_EQ(smdebug_save(hook, "\xff", values, SMDEBUG_FLOAT32, 2, shape, nullptr),
            SMDEBUG_INVALID_ARGUMENT);
  EXPECT_EQ(smdebug_set_mode(hook, 0), SMDEBUG_INVALID_ARGUMENT);
  EXPECT_EQ(smdebug_set_mode(hook, 5), SMDEBUG_INVALID_ARGUMENT);
  EXPECT_EQ(smdebug_begin_step_at(hook, -5), SMDEBUG_INVALID_ARGUMENT);
  const char* strings[] = {"a", nullptr};
  EXPECT_EQ(smdebug_save_strings(hook, "s", strings, 2), SMDEBUG_INVALID_ARGUMENT);
  EXPECT_STREQ(smdebug_last_error(), "The string 1 is NULL.");
  EXPECT_EQ(smdebug_save_strings(hook, "s", nullptr, 1), SMDEBUG_INVALID_ARGUMENT);
  smdebug_hook_free(hook);
}

TEST_F(CApiTest, refuses_null_everywhere) {
  EXPECT_EQ(smdebug_set_mode(nullptr, SMDEBUG_TRAIN), SMDEBUG_INVALID_ARGUMENT);
  EXPECT_STREQ(smdebug_last_error(), "The hook is NULL.");
  EXPECT_EQ(smdebug_begin_step(nullptr), SMDEBUG_INVALID_ARGUMENT);
  EXPECT_EQ(smdebug_begin_step_at(nullptr, 1), SMDEBUG_INVALID_ARGUMENT);
  EXPECT_EQ(smdebug_end_step(nullptr), SMDEBUG_INVALID_ARGUMENT);
  EXPECT_EQ(smdebug_wants(nullptr, "w"), 0);
  EXPECT_EQ(smdebug_save(nullptr, "w", values, SMDEBUG_FLOAT32, 2, shape, nullptr),
            SMDEBUG_INVALID_ARGUMENT);
  EXPECT_EQ(smdebug_save_dlpack(nullptr, "w", nullptr), SMDEBUG_INVALID_ARGUMENT);
  EXPECT_EQ(smdebug_save_scalar(nullptr, "w", 1), SMDEBUG_INVALID_ARGUMENT);
  EXPECT_EQ(smdebug_save_strings(nullptr, "w", nullptr, 0), SMDEBUG_INVALID_ARGUMENT);
  EXPECT_EQ(smdebug_close(nullptr), SMDEBUG_INVALID_ARGUMENT);
  smdebug_hook_free(nullptr);

  smdebug_hook* hook = create();
  EXPECT_EQ(smdebug_wants(hook, nullptr), 0);
  EXPECT_EQ(smdebug_save(hook, nullptr, values, SMDEBUG_FLOAT32, 2, shape, nullptr),
            SMDEBUG_INVALID_ARGUMENT);
  EXPECT_STREQ(smdebug_last_error(), "The name is NULL.");
  EXPECT_EQ(smdebug_save_scalar(hook, nullptr, 1), SMDEBUG_INVALID_ARGUMENT);
  smdebug_hook_free(hook);
}

TEST_F(CApiTest, says_why_there_is_no_hook) {
  EXPECT_EQ(smdebug_hook_create(nullptr, nullptr), nullptr);
  EXPECT_STREQ(smdebug_last_error(), "The output directory is NULL.");
  EXPECT_EQ(smdebug_hook_create("", nullptr), nullptr);
  EXPECT_EQ(smdebug_hook_create(run_dir.c_str(), "{"), nullptr);
  EXPECT_EQ(smdebug_hook_create_json((root + "/absent.json").c_str()), nullptr);
  EXPECT_THAT(smdebug_last_error(), HasSubstr("absent.json"));
  smdebug_hook_free(create());
  EXPECT_EQ(smdebug_hook_create(run_dir.c_str(), nullptr), nullptr);
  EXPECT_THAT(smdebug_last_error(), HasSubstr("finished job"));
}

TEST_F(CApiTest, reads_its_configuration_from_a_file) {
  std::ofstream(root + "/config.json")
      << R"({"LocalPath": ")" << run_dir << R"(", "HookParameters": {"save_interval": "2"},
      "CollectionConfigurations": [{"CollectionName": "weights"}]})";
  smdebug_hook* hook = smdebug_hook_create_json((root + "/config.json").c_str());
  ASSERT_NE(hook, nullptr) << smdebug_last_error();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(smdebug_begin_step(hook), SMDEBUG_OK);
    EXPECT_EQ(smdebug_save(hook, "weight", values, SMDEBUG_FLOAT32, 2, shape, nullptr), SMDEBUG_OK);
  }
  smdebug_hook_free(hook);
  EXPECT_THAT(run().steps(), ElementsAre(0, 2));
}

TEST_F(CApiTest, reports_a_closed_hook) {
  smdebug_hook* hook = create();
  EXPECT_EQ(smdebug_close(hook), SMDEBUG_OK);
  EXPECT_EQ(smdebug_begin_step(hook), SMDEBUG_CLOSED);
  EXPECT_EQ(smdebug_save_scalar(hook, "loss", 1), SMDEBUG_CLOSED);
  EXPECT_EQ(smdebug_wants(hook, "w"), 0);
  smdebug_hook_free(hook);
}

TEST_F(CApiTest, keeps_the_last_error_of_each_thread) {
  EXPECT_EQ(smdebug_close(nullptr), SMDEBUG_INVALID_ARGUMENT);
  std::thread([] { EXPECT_STREQ(smdebug_last_error(), ""); }).join();
  EXPECT_STREQ(smdebug_last_error(), "The hook is NULL.");
}

}  // namespace
}  // namespace smd
