#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/cli/internal/program_test_case.h"
#include "tests/support/planted_run.h"

namespace smd::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TensorBoardCommand : public ProgramTestCase {
 protected:
  std::vector<std::string> files(const std::string& place) const {
    std::vector<std::string> paths;
    for (const auto& file : *storage::local_storage(place)->list("", ""))
      paths.push_back(file.path);
    return paths;
  }
  void step(Step number, Mode mode, const std::string& worker = "worker_0") const {
    PlantedStep(storage, {.step = number, .mode = mode, .mode_step = number}, worker)
        .scalar("loss", 0.5)
        .floats("weight", {1, 2, -1})
        .reduction("weight", "mean", 0.5)
        .strings("note", {"a"});
  }
  void collections(const std::string& worker, int count) const {
    CollectionSet set;
    ASSERT_TRUE(set.set_num_workers(count).ok());
    ASSERT_TRUE(storage
                    ->put(format::collections_file_name(worker), as_bytes(set.to_json()),
                          storage::Put::always, {})
                    .ok());
  }

  const std::string root = folder + "/run";
  const std::string out_dir = folder + "/board";
  const std::shared_ptr<storage::Storage> storage = storage::local_storage(root);
};

TEST_F(TensorBoardCommand, writes_one_file_per_mode) {
  collections("worker_0", 1);
  step(0, Mode::train);
  step(1, Mode::train);
  step(2, Mode::eval);
  EXPECT_EQ(run({"tensorboard", root, "--out", out_dir, "--json"}), 0) << err;
  EXPECT_THAT(files(out_dir), ElementsAre("EVAL/000000000002_worker_0.tfevents",
                                          "TRAIN/000000000000_worker_0.tfevents"));
  EXPECT_EQ(json()["steps"], 3);
  EXPECT_EQ(json()["scalars"], 6);
  EXPECT_EQ(json()["histograms"], 3);
  EXPECT_EQ(json()["left_out"], 3);
}

TEST_F(TensorBoardCommand, gives_each_of_several_workers_a_directory) {
  for (const char* worker : {"worker_0", "worker_1"}) {
    collections(worker, 2);
    step(0, Mode::train, worker);
  }
  EXPECT_EQ(run({"tensorboard", root, "--out", out_dir}), 0) << err;
  EXPECT_THAT(files(out_dir), ElementsAre("worker_0/TRAIN/000000000000_worker_0.tfevents",
                                          "worker_1/TRAIN/000000000000_worker_1.tfevents"));
  EXPECT_THAT(out, HasSubstr("tensorboard --logdir " + out_dir));
}

TEST_F(TensorBoardCommand, converts_what_was_chosen) {
  collections("worker_0", 1);
  step(0, Mode::train);
  step(1, Mode::eval);
  EXPECT_EQ(
      run({"tensorboard", root, "--out", out_dir, "--mode", "eval", "--regex", "loss", "--json"}),
      0);
  EXPECT_EQ(json()["scalars"], 1);
  EXPECT_THAT(files(out_dir), ElementsAre("EVAL/000000000001_worker_0.tfevents"));
}

TEST_F(TensorBoardCommand, never_mixes_two_conversions) {
  collections("worker_0", 1);
  step(0, Mode::train);
  EXPECT_EQ(run({"tensorboard", root, "--out", out_dir}), 0);
  EXPECT_NE(run({"tensorboard", root, "--out", out_dir}), 0);
  EXPECT_THAT(err, HasSubstr("holds files for TensorBoard already"));
  EXPECT_NE(run({"tensorboard", root}), 0);
  EXPECT_THAT(err, HasSubstr("--out"));
}

}  // namespace
}  // namespace smd::cli
