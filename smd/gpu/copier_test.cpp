// The way of tensors to the host, with a driver that does what the test says.

#include "smd/gpu/copier.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

namespace smd::gpu {
namespace {

constexpr DriverResult kNotReady = 600;

// Its memory is that of the host. Copies to the host are done when drain() is called, in order;
// everything else at once. Shared with the functions of the driver, which know nothing else.
struct FakeDevice {
  struct Copy {
    void* to;
    Address from;
    size_t bytes;
    Stream stream;
  };
  std::vector<Copy> queued;
  std::deque<std::vector<std::byte>> memory;
  std::deque<int> events;
  std::map<Event, size_t> event_after;  // number of copies to the host that come before it
  size_t drained = 0;
  size_t all = 0;
  size_t host_allocations = 0;
  size_t questions = 0;  // whether an event has come
  int capturing = 0;
  bool has_memory = true;
  bool has_host_memory = true;

  void drain() {
    for (const Copy& copy : queued) {
      std::memcpy(copy.to, reinterpret_cast<const void*>(copy.from), copy.bytes);
    }
    queued.clear();
    drained = all;
  }
};

FakeDevice* device = nullptr;

Driver fake_driver() {
  Driver driver{};
  driver.error_name = [](DriverResult, const char** name) -> DriverResult {
    *name = "FAKE";
    return 0;
  };
  driver.push_context = [](Context) -> DriverResult { return 0; };
  driver.pop_context = [](Context*) -> DriverResult { return 0; };
  driver.exchange_capture_mode = [](int*) -> DriverResult { return 0; };
  driver.is_capturing = [](Stream, int* status) -> DriverResult {
    *status = device->capturing;
    return 0;
  };
  driver.allocate_host = [](void** memory, size_t bytes, unsigned) -> DriverResult {
    if (!device->has_host_memory) return 2;
    *memory = device->memory.emplace_back(bytes).data();
    ++device->host_allocations;
    return 0;
  };
  driver.allocate = [](Address* memory, size_t bytes) -> DriverResult {
    if (!device->has_memory) return 2;
    *memory = reinterpret_cast<Address>(device->memory.emplace_back(bytes).data());
    return 0;
  };
  driver.create_stream = [](Stream* stream, unsigned) -> DriverResult {
    *stream = device;
    return 0;
  };
  driver.make_stream_wait = [](Stream, Event, unsigned) -> DriverResult { return 0; };
  driver.create_event = [](Event* event, unsigned) -> DriverResult {
    *event = &device->events.emplace_back();
    return 0;
  };
  driver.record_event = [](Event event, Stream) -> DriverResult {
    device->event_after[event] = device->all;
    return 0;
  };
  driver.query_event = [](Event event) -> DriverResult {
    ++device->questions;
    return device->event_after[event] <= device->drained ? 0 : kNotReady;
  };
  driver.wait_for_event = [](Event) -> DriverResult {
    device->drain();
    return 0;
  };
  driver.copy_on_device = [](Address to, Address from, size_t bytes, Stream) -> DriverResult {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return 0;
  };
  driver.copy_to_host = [](void* to, Address from, size_t bytes, Stream stream) -> DriverResult {
    device->queued.push_back({to, from, bytes, stream});
    ++device->all;
    return 0;
  };
  return driver;
}

class CopierTest : public testing::Test {
 protected:
  CopierTest() { device = &fake_; }
  ~CopierTest() override { device = nullptr; }

  // Copies a tensor of this value, which the program overwrites at once.
  std::shared_ptr<LateCopy> copy(size_t size, int value) {
    tensor_.assign(size, static_cast<unsigned char>(value));
    const CopySource source{reinterpret_cast<Address>(tensor_.data()), size};
    auto late = copier_.copy({&source, 1}, nullptr);
    EXPECT_TRUE(late.ok());
    // What goes straight to the host is in the order of the program's stream.
    went_straight_ = fake_.queued.back().stream == nullptr;
    if (went_straight_) fake_.drain();
    std::fill(tensor_.begin(), tensor_.end(), static_cast<unsigned char>(255));
    return std::move(*late);
  }
  static bool holds(const LateCopy& late, size_t size, int value, size_t tensor = 0) {
    if (!late.wait().ok() || late.bytes(tensor).size() != size) return false;
    for (const std::byte byte : late.bytes(tensor)) {
      if (byte != static_cast<std::byte>(value)) return false;
    }
    return true;
  }

  FakeDevice fake_;
  const Driver driver_ = fake_driver();
  Copier copier_{driver_, nullptr, {.ring_bytes = 4096}};
  std::vector<unsigned char> tensor_;
  bool went_straight_ = false;
};

TEST_F(CopierTest, values_are_those_of_the_moment) {
  const auto first = copy(1000, 1);
  EXPECT_FALSE(went_straight_);
  const auto second = copy(1000, 2);
  EXPECT_TRUE(holds(*first, 1000, 1));
  EXPECT_TRUE(holds(*second, 1000, 2));
}

TEST_F(CopierTest, what_finds_no_room_goes_straight_to_the_host) {
  const auto large = copy(5000, 1);
  EXPECT_TRUE(went_straight_);
  const auto first = copy(3000, 2);
  EXPECT_FALSE(went_straight_);
  const auto second = copy(3000, 3);
  EXPECT_TRUE(went_straight_);
  EXPECT_TRUE(holds(*large, 5000, 1));
  EXPECT_TRUE(holds(*first, 3000, 2));
  EXPECT_TRUE(holds(*second, 3000, 3));
}

// Every part of the ring that is in use stays as it is, wherever the ring begins.
TEST_F(CopierTest, parts_of_the_ring_never_overlap) {
  std::vector<std::pair<std::shared_ptr<LateCopy>, std::pair<size_t, int>>> pending;
  unsigned random = 1;
  int straight = 0;
  for (int i = 0; i < 2000; ++i) {
    random = random * 1664525u + 1013904223u;
    const size_t size = 1 + (random >> 16) % 1500;
    pending.emplace_back(copy(size, i % 250), std::pair(size, i % 250));
    straight += went_straight_ ? 1 : 0;
    if ((random >> 8) % 5 == 0) {
      for (const auto& [late, expected] : pending) {
        ASSERT_TRUE(holds(*late, expected.first, expected.second)) << i;
      }
      pending.clear();
    }
  }
  EXPECT_GT(straight, 100);
  EXPECT_LT(straight, 1900);
}

TEST_F(CopierTest, tensors_of_a_list_share_one_way_to_the_host) {
  for (const size_t unit : {100, 1000}) {  // with the ring, and too large for it
    std::vector<std::vector<unsigned char>> tensors;
    std::vector<CopySource> sources;
    for (unsigned char i = 1; i < 6; ++i) tensors.emplace_back(i * unit, i);
    for (auto& tensor : tensors) {
      sources.push_back({reinterpret_cast<Address>(tensor.data()), tensor.size()});
    }
    const auto late = copier_.copy(sources, nullptr);
    ASSERT_TRUE(late.ok());
    EXPECT_EQ(fake_.queued.size(), unit == 100 ? 1u : tensors.size());
    if (unit == 1000) fake_.drain();  // in the order of the program's stream
    for (auto& tensor : tensors) std::fill(tensor.begin(), tensor.end(), 255);
    for (size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_TRUE(holds(**late, tensors[i].size(), static_cast<int>(i) + 1, i));
    }
  }
}

TEST_F(CopierTest, host_memory_is_used_again_when_it_is_given_back_and_filled) {
  const std::byte* memory = nullptr;
  for (int i = 0; i < 50; ++i) {
    const auto late = copy(1000, i);
    EXPECT_TRUE(holds(*late, 1000, i));
    if (i == 0) memory = late->bytes(0).data();
    EXPECT_EQ(late->bytes(0).data(), memory);
  }
  copy(1000, 7).reset();  // given up before it was filled
  EXPECT_FALSE(went_straight_);
  const auto next = copy(1000, 8);
  EXPECT_NE(next->bytes(0).data(), memory);
  EXPECT_TRUE(holds(*next, 1000, 8));
  EXPECT_EQ(copy(1000, 9)->bytes(0).data(), memory) << "it is filled now";
  EXPECT_EQ(fake_.host_allocations, 1u);
}

TEST_F(CopierTest, memory_that_somebody_has_read_is_used_again_without_a_question) {
  fake_.has_memory = false;  // no ring, of which parts are asked for
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(holds(*copy(1000, i), 1000, i));
  EXPECT_EQ(fake_.host_allocations, 1u);
  EXPECT_EQ(fake_.questions, 0u);
}

TEST_F(CopierTest, tensors_of_many_sizes_share_the_memory_of_the_host_and_the_events) {
  for (size_t size = 1; size < 600; ++size)
    EXPECT_TRUE(holds(*copy(size * 1000, 3), size * 1000, 3));
  EXPECT_EQ(fake_.host_allocations, 1u);
  EXPECT_LT(fake_.events.size(), 10u);
}

TEST_F(CopierTest, memory_that_cannot_be_locked_is_an_error_and_is_asked_for_again) {
  fake_.has_host_memory = false;
  const CopySource source{1, 1};
  const auto late = copier_.copy({&source, 1}, nullptr);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().message, "Could not lock memory: FAKE.");
  fake_.has_host_memory = true;
  EXPECT_TRUE(holds(*copy(100, 4), 100, 4));
}

TEST_F(CopierTest, a_device_without_memory_for_the_ring_copies_straight) {
  fake_.has_memory = false;
  const auto late = copy(100, 5);
  EXPECT_TRUE(went_straight_);
  EXPECT_TRUE(holds(*late, 100, 5));
}

TEST_F(CopierTest, nothing_is_queued_while_a_graph_is_captured) {
  fake_.capturing = 1;
  const CopySource source{1, 1};
  const auto late = copier_.copy({&source, 1}, nullptr);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().message, "A CUDA graph is being captured.");
  EXPECT_TRUE(fake_.queued.empty());
}

TEST(UsualRingBytes, is_a_share_of_the_memory_within_bounds) {
  constexpr size_t kMiB = size_t{1} << 20;
  EXPECT_EQ(usual_ring_bytes(8192 * kMiB), 256 * kMiB);
  EXPECT_EQ(usual_ring_bytes(65536 * kMiB), 512 * kMiB);
  EXPECT_EQ(usual_ring_bytes(size_t{1} << 40), 1024 * kMiB);
}

}  // namespace
}  // namespace smd::gpu
