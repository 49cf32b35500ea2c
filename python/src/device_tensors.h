#pragma once

// Tensors of CUDA devices on their way to a hook: statistics by the kernels of smd/gpu, elements by
// its copier, both queued on the stream that made them. Nothing here waits for a device. Of Python
// only builtins of tensors are called, and functions that were given, where something is unusual.
// The GIL is held.

#include <nanobind/nanobind.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "python/src/device_array.h"
#include "python/src/exchange_api.h"
#include "python/src/late_lists.h"
#include "python/src/seen_tensors.h"
#include "python/src/tickets.h"
#include "smd/gpu/device.h"
#include "smd/hook/hook.h"

namespace smdebug {

// The device with this ordinal, opened at the first call. They are never given up, as what runs on
// them may outlive us. Error: the reason why its kernels cannot be used.
smd::Result<smd::gpu::Device*> cuda_device(int ordinal);

// What kernels have to know of a tensor. Borrows shape and memory of the tensor.
struct DeviceView {
  ExchangedTensor exchanged;
  smd::Shape shape, strides_bytes;  // where there is no exchange API
  smd::TensorView view;
  int device = -1;
};

class DeviceTensors final {
 public:
  // `parts`: stream_of(ordinal) gives the current stream as an integer; usable is a dict of devices
  // whose kernels may be used; gave_up(ordinal, reason) is called when that ends; queue() has
  // release() called when backward ends, and fails outside of it; full() has it called at once;
  // held_bytes is how much may be held at most, a share of the memory of the device.
  DeviceTensors(std::shared_ptr<smd::Hook> hook, nb::handle exchange, const nb::dict& parts);

  // A name under which tensors come again and again, and what is known of them.
  struct Name {
    smd::Ticket ticket;
    std::optional<bool> may_wait = {};  // activations that were tried
  };
  // Stays where it is.
  Name& name_of(std::string_view name, smd::Kind kind = smd::Kind::automatic);

  enum class Wish { nothing, statistics, copy, other };
  struct Offered {
    Name* name = nullptr;
    nb::handle tensor;
    const smd::TensorView* view = nullptr;
    int device = -1;
    uintptr_t stream = 0;  // set by wish()
  };
  // What is wanted of a tensor, as far as it can be done here and now; other: it cannot.
  Wish wish(Offered& tensor);

  // Queues the statistics of tensors, where wish() is that. Those whose device has failed: nothing
  // was saved of them.
  std::vector<size_t> survey(std::span<const Offered> tensors);
  // Queues what is wanted of tensors, their elements too, where wish() is that. How many of them,
  // from the first on: the device has failed, or the next has gaps.
  size_t copy(std::span<const Offered> tensors);
  // Keeps a gradient until release(), which does what is wished; false: it cannot.
  bool hold_gradient(const Offered& gradient, Wish wish);
  // The same for statistics of what a module took or gave. False: it must be read now, as somebody
  // has changed the one of this name before it would have been read, or it is too large.
  bool hold_activation(const Offered& tensor);

  // For callers in Python: those that must be treated in another way.
  std::vector<size_t> save_list(const Tickets& names, const nb::list& tensors,
                                const nb::tuple& types);
  std::vector<size_t> survey_list(const nb::list& names, const nb::list& tensors);
  std::vector<size_t> copy_list(const nb::list& names, const nb::list& tensors, smd::Kind kind);
  bool hold_one(const std::string& name, nb::handle gradient);
  // (name, gradient) of those that must be treated in another way, and names of those that were
  // changed meanwhile.
  std::pair<nb::list, nb::list> release();
  bool has_held() const { return !held_.empty() || beside_; }
  // Has release() called if something is held: what comes now is seen after it.
  void release_before();
  // What comes from now on is saved only if this number of a device turns out to be zero; None:
  // always. False: it cannot be read without waiting, and everything is as before.
  bool set_veto(nb::handle number);
  // Lets go of arrays that were lent and are read. Waits while more than `most` bytes are left.
  void give_back_lent(size_t most);
  // The step has ended: its tensors are not met again.
  void forget();
  // Launches so far.
  int64_t launches() const { return launches_; }

  int traverse(visitproc visit, void* arg) const;
  void clear();

 private:
  struct Held {
    Name* name = nullptr;
    nb::object alias;  // shares the memory of the tensor
    int64_t version = 0;
    int device = 0;
    uintptr_t stream = 0;
    Wish wish = Wish::statistics;
    bool is_activation = false;
  };
  // Where the statistics of a tensor of this step will be.
  struct Surveyed {
    std::shared_ptr<SurveyedList> list;
    size_t index = 0;
    bool absolute_deviations = false;
  };

  // Activations that are being read beside what the program does. They are saved when it is sure
  // that nobody has changed them, from which on the program's stream waits for the reading.
  struct Beside {
    std::deque<Held> items;
    std::vector<size_t> views;  // the number in the survey, of each item
    std::shared_ptr<smd::gpu::LateSurvey> survey;
    std::shared_ptr<SurveyedList> list;
  };
  // A tensor that was read at once, to see whether it could have waited.
  struct OnTrial {
    Name* name = nullptr;
    nb::object alias;
    int64_t version = 0;
    size_t bytes = 0;
  };
  // An array of another framework, until the device has read it.
  struct Lent {
    nb::object array;
    size_t bytes = 0;
    std::shared_ptr<smd::gpu::LateSurvey> survey;  // one of the two
    std::shared_ptr<smd::gpu::LateCopy> copy;
  };

  bool look(nb::handle tensor, DeviceView& out) const;
  void note_lent(const Offered& tensor, std::shared_ptr<smd::gpu::LateSurvey> survey,
                 std::shared_ptr<smd::gpu::LateCopy> copy);
  uintptr_t stream_of(int device) const;
  bool is_usable(int device) const;
  void give_up(int device, const smd::Error& error);
  // An alias for those that are held: backward takes over a gradient that nobody else has.
  static nb::object alias_of(nb::handle tensor);
  // Those that are held, as tensors that are offered now, with views of the aliases. `gone` gets
  // the names of those without memory.
  std::vector<Offered> offered_again(std::span<const Held* const> held,
                                     std::deque<DeviceView>& views, nb::list& gone) const;
  void hold(const Offered& tensor, int64_t version, Wish wish, bool is_activation);
  size_t most_held(int device) const;
  void try_activation(const Offered& tensor, int64_t version);
  // The oldest on trial: whether it is as it was.
  void end_trial();
  // Whether it is as it was; if not, it does not wait from now on.
  bool is_unchanged(const Held& item);
  // Saves what was read beside the program; names of those that were changed.
  void settle_beside(nb::list& changed);
  // Begins to read activations beside the program; false: they must be read otherwise.
  bool read_beside(std::deque<Held>& held);
  // What is read of tensors in one launch.
  struct Launch {
    struct Wanted {
      const Offered* tensor;
      bool shape;
      size_t view;
    };
    std::vector<Wanted> wanted;
    std::vector<smd::TensorView> views;
    bool absolute = false;

    std::vector<smd::DType> dtypes() const;
  };
  Launch plan(int device, std::span<const Offered> tensors, bool remember);
  // nullptr: the device has failed.
  std::shared_ptr<smd::gpu::LateSurvey> start(const Launch& launch, int device, uintptr_t stream,
                                              bool beside);
  // All of one device.
  bool survey_on(int device, uintptr_t stream, std::span<const Offered> tensors, bool remember);
  // All of one device; as copy().
  size_t copy_on(int device, uintptr_t stream, std::span<const Offered> tensors);
  // Tensors without gaps; nullptr: the device has failed.
  std::shared_ptr<smd::gpu::LateCopy> start_copy(int device, uintptr_t stream,
                                                 std::span<const Offered> tensors);
  void save_copied(std::span<const Offered> tensors,
                   const std::shared_ptr<smd::gpu::LateCopy>& late);

  // Of the memory of a device: what a program can well do without.
  static constexpr size_t kHeldShare = 128;
  // Longer lists are those of all parameters, which no module gives.
  static constexpr size_t kFew = 8;

  std::shared_ptr<smd::Hook> hook_;
  std::optional<ExchangeApi> api_;
  nb::object stream_of_;
  nb::dict usable_;
  nb::object gave_up_;
  nb::object queue_;
  nb::object full_;
  size_t most_held_ = 0;

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Names = std::unordered_map<std::string, Name, Hash, std::equal_to<>>;
  std::map<smd::Kind, Names> names_;
  std::deque<Held> held_;
  size_t held_bytes_ = 0;
  std::optional<Beside> beside_;
  bool is_full_of_activations_ = false;
  bool is_queued_ = false;        // release() is called when backward ends
  bool may_hold_ = true;          // gradients
  std::deque<OnTrial> on_trial_;  // oldest first
  size_t on_trial_bytes_ = 0;
  std::deque<Lent> lent_;  // oldest first
  size_t lent_bytes_ = 0;
  SeenTensors<Surveyed> seen_;
  Permission permission_;  // of what comes now
  int64_t launches_ = 0;
};

}  // namespace smdebug
