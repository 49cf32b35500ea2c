#pragma once

// Records and numbers as a snapshot says they are stored: checked, and as values. Pure functions.

#include <memory>
#include <string_view>

#include "smd/base/result.h"
#include "smd/format/event.h"
#include "smd/trial/snapshot.h"
#include "smd/trial/tensor_value.h"

namespace smd::internal {

// The same error with the place where it was met.
Error in_file(const Error& error, std::string_view path);

// The whole record, checked as far as the snapshot tells how.
Result<format::EventView> parse_stored(const Snapshot& snapshot, const Location& at,
                                       ByteSpan record);
// Checks the numbers of a block, if the snapshot tells how.
Status check_block(const Snapshot& snapshot, const Part& part, ByteSpan numbers);

bool is_single_number(const format::TensorContent& tensor);
// corrupt: it is none.
Result<double> number_of(const format::TensorContent& tensor);
// `memory` is what the event's views point into; without it they are copied.
Result<TensorValue> value_of(format::EventView& event, std::shared_ptr<std::byte> memory);

}  // namespace smd::internal
