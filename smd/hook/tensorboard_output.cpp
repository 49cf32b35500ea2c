#include "smd/hook/tensorboard_output.h"

namespace smd {
namespace {

class TensorBoardOutput final : public Output {
 public:
  explicit TensorBoardOutput(SummaryFilesOptions options) : files_(std::move(options)) {}

  Status scalar(const StepInfo& step, const SavedScalar& scalar) override {
    if (!scalar.is_mean) files_.scalar(step, scalar.name, scalar.value, scalar.wall_secs);
    return {};
  }
  Status histogram(const StepInfo& step, const SavedHistogram& saved) override {
    files_.histogram(step, saved.name, saved.histogram, saved.wall_secs);
    return {};
  }
  Status text(const StepInfo& step, const SavedText& saved) override {
    files_.text(step, saved.name, saved.markdown, saved.wall_secs);
    return {};
  }
  Status end_step() override { return files_.flush(); }
  Status close() override { return files_.close(); }

 private:
  SummaryFiles files_;
};

}  // namespace

std::unique_ptr<Output> tensorboard_output(SummaryFilesOptions options) {
  return std::make_unique<TensorBoardOutput>(std::move(options));
}

}  // namespace smd
