#pragma once

// Trees of a boosted model as the table that boosting libraries give: one line for each node, with
// the tree it belongs to and the nodes that follow it. Plain value.

#include <cstdint>
#include <string>
#include <vector>

#include "smd/base/result.h"
#include "smd/trial/tensor_value.h"

namespace smd::rules {

struct TreeDepthFound {
  int64_t tree = 0;
  int64_t depth = 0;
};

class TreeTable final {
 public:
  // Columns of the same length. `tree`: nullptr, all nodes belong to tree 0. Nodes that follow are
  // numbers or texts such as "0-3", which is node 3 of tree 0; negative, NaN and other texts: none.
  // invalid_argument: the lengths differ or node ids are not numbers.
  static Result<TreeTable> create(const TensorValue* tree, const TensorValue& node,
                                  const TensorValue& yes, const TensorValue& no);

  // The deepest tree, following the links from node 0; a tree of one node has depth 0. Links to
  // nodes that are not there, and those that lead back, are not followed.
  TreeDepthFound deepest() const;

 private:
  struct Line {
    int64_t tree = 0;
    int64_t node = 0;
    int64_t yes = -1;
    int64_t no = -1;
  };
  std::vector<Line> lines_;  // sorted by tree and node
};

}  // namespace smd::rules
