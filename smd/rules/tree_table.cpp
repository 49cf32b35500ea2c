#include "smd/rules/tree_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

#include "smd/rules/elements.h"

namespace smd::rules {
namespace {

int64_t to_id(double number) {
  return number >= 0 && number < 9e15 ? static_cast<int64_t>(number) : -1;
}

// "0-3" and "3" are 3.
int64_t to_id(std::string_view text) {
  text.remove_prefix(text.rfind('-') + 1);
  int64_t out = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? out : -1;
}

Result<std::vector<int64_t>> to_ids(const TensorValue& column) {
  std::vector<int64_t> out;
  if (column.dtype == DType::string) {
    for (const std::string& text : column.strings) out.push_back(to_id(text));
    return out;
  }
  SMD_RETURN_IF_ERROR(for_each_block(column.view(), [&](int64_t, std::span<const double> block) {
    for (double number : block) out.push_back(to_id(number));
  }));
  return out;
}

}  // namespace

Result<TreeTable> TreeTable::create(const TensorValue* tree, const TensorValue& node,
                                    const TensorValue& yes, const TensorValue& no) {
  SMD_TRY(const auto nodes, to_ids(node));
  SMD_TRY(const auto yeses, to_ids(yes));
  SMD_TRY(const auto noes, to_ids(no));
  std::vector<int64_t> trees(nodes.size(), 0);
  if (tree != nullptr) {
    SMD_TRY(trees, to_ids(*tree));
  }
  if (trees.size() != nodes.size() || yeses.size() != nodes.size() || noes.size() != nodes.size()) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("The columns of the trees have {} trees, {} nodes, {} and {} links; "
                             "they must be as many.",
                             trees.size(), nodes.size(), yeses.size(), noes.size())};
  }
  TreeTable out;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i] < 0 || trees[i] < 0) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("Line {} of the trees has no number for its tree or node.", i)};
    }
    out.lines_.push_back({trees[i], nodes[i], yeses[i], noes[i]});
  }
  std::ranges::sort(out.lines_, {},
                    [](const Line& line) { return std::pair(line.tree, line.node); });
  return out;
}

TreeDepthFound TreeTable::deepest() const {
  TreeDepthFound out{.tree = lines_.empty() ? 0 : lines_.front().tree};
  const auto find = [&](int64_t tree, int64_t node) {
    const auto at = std::ranges::lower_bound(
        lines_, std::pair(tree, node), {}, [](const Line& l) { return std::pair(l.tree, l.node); });
    const bool is_there = at != lines_.end() && at->tree == tree && at->node == node;
    return is_there ? static_cast<size_t>(at - lines_.begin()) : lines_.size();
  };
  std::vector<bool> is_seen(lines_.size());
  std::vector<std::pair<size_t, int64_t>> pending;  // line, depth
  for (size_t i = 0; i < lines_.size(); ++i) {
    if (lines_[i].node == 0 && !is_seen[i]) pending.emplace_back(i, 0);
    while (!pending.empty()) {
      const auto [at, depth] = pending.back();
      pending.pop_back();
      if (is_seen[at]) continue;
      is_seen[at] = true;
      if (depth > out.depth) out = {lines_[at].tree, depth};
      for (int64_t next : {lines_[at].yes, lines_[at].no}) {
        const size_t line = next < 0 ? lines_.size() : find(lines_[at].tree, next);
        if (line < lines_.size()) pending.emplace_back(line, depth + 1);
      }
    }
  }
  return out;
}

}  // namespace smd::rules
