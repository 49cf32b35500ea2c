#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "smd/rules/elements.h"
#include "smd/rules/rule_kind.h"
#include "smd/rules/tree_table.h"

namespace smd::rules::builtin {
namespace {

constexpr std::string_view kColumns[] = {"Tree", "Node", "Yes", "No"};

// The columns of one worker at one step; nullptr: not saved.
struct Columns {
  const TensorRow* rows[4] = {};

  const TensorRow*& of(std::string_view name) {
    return rows[std::ranges::find(kColumns, name) - kColumns];
  }
};

class TreeDepth final : public Rule {
 public:
  TreeDepth(Selection nodes, Selection columns, int64_t depth, bool follows_links)
      : nodes_(std::move(nodes)),
        columns_(std::move(columns)),
        depth_(depth),
        follows_links_(follows_links) {}

  std::vector<Selection*> selections() override { return {&nodes_, &columns_}; }

  Status observe(const StepView& step, Hits& hits) override {
    std::map<uint32_t, Columns> by_worker;
    columns_.for_each(step, [&](const TensorRow& row) {
      const std::string& name = step.tensor(row);
      by_worker[row.worker].of(std::string_view(name).substr(name.rfind('/') + 1)) = &row;
    });
    return nodes_.for_each(step, [&](const TensorRow& row) -> Status {
      return judge(step, row, by_worker[row.worker], hits);
    });
  }

  std::optional<std::string> missing() const override {
    if (!follows_links_ || has_links_) return std::nullopt;
    return "With method=links it needs the values of trees/Node, trees/Yes and trees/No.";
  }

 private:
  Status judge(const StepView& step, const TensorRow& row, Columns& columns, Hits& hits) {
    const double largest = step.number(row, Statistic::max);
    const bool has_ids = largest >= 0 && largest < 9e15;
    const int64_t by_ids =
        has_ids && largest >= 1 ? std::bit_width(static_cast<uint64_t>(largest)) - 1 : 0;
    std::optional<TreeDepthFound> found;
    if (follows_links_) {
      SMD_TRY(found, true_depth(step, columns));
      if (!found) return {};
      has_links_ = true;
    } else if (!has_ids) {
      return {};
    }
    const int64_t depth = found ? found->depth : by_ids;
    if (depth <= depth_) return {};
    if (!found) {
      SMD_TRY(found, true_depth(step, columns));
    }
    std::optional<int64_t> tree;
    if (follows_links_) {
      tree = found->tree;
    } else {
      SMD_TRY(tree, tree_of_largest(step, columns, largest));
    }
    if (hits.empty()) {
      hits.say(fmt::format("{} {} levels deep; {} are accepted.",
                           tree ? fmt::format("Tree {} is", *tree) : "A tree is", depth, depth_));
    }
    Violation* hit = hits.add(step, row, "depth", static_cast<double>(depth), Op::above,
                              static_cast<double>(depth_));
    if (hit == nullptr) return {};
    hit->with("largest_node", largest);
    if (tree) hit->with("tree", Json(*tree));
    if (found) hit->with("true_depth", Json(found->depth));
    return {};
  }

  // nullopt: the links were not saved.
  static Result<std::optional<TreeDepthFound>> true_depth(const StepView& step, Columns& columns) {
    using Found = std::optional<TreeDepthFound>;
    for (std::string_view needed : {"Node", "Yes", "No"}) {
      if (columns.of(needed) == nullptr) return Found();
    }
    const TensorValue* tree = nullptr;
    if (columns.of("Tree") != nullptr) {
      SMD_TRY(tree, step.value(*columns.of("Tree")));
    }
    SMD_TRY(const TensorValue* node, step.value(*columns.of("Node")));
    SMD_TRY(const TensorValue* yes, step.value(*columns.of("Yes")));
    SMD_TRY(const TensorValue* no, step.value(*columns.of("No")));
    SMD_TRY(const TreeTable table, TreeTable::create(tree, *node, *yes, *no));
    return Found(table.deepest());
  }

  static Result<std::optional<int64_t>> tree_of_largest(const StepView& step, Columns& columns,
                                                        double largest) {
    using Tree = std::optional<int64_t>;
    if (columns.of("Tree") == nullptr || columns.of("Node") == nullptr) return Tree();
    SMD_TRY(const TensorValue* tree, step.value(*columns.of("Tree")));
    SMD_TRY(const TensorValue* node, step.value(*columns.of("Node")));
    if (tree->dtype == DType::string || node->dtype == DType::string) return Tree();
    SMD_TRY(const auto trees, to_doubles(tree->view()));
    SMD_TRY(const auto nodes, to_doubles(node->view()));
    const auto at = static_cast<size_t>(std::ranges::find(nodes, largest) - nodes.begin());
    return at < trees.size() ? Tree(static_cast<int64_t>(trees[at])) : Tree();
  }

  Selection nodes_;
  Selection columns_;
  int64_t depth_;
  bool follows_links_;
  bool has_links_ = false;
};

constexpr ParameterSpec kParameters[] = {
    {.name = "depth",
     .type = ParameterType::integer,
     .default_text = "4",
     .help = "Fires when a tree is deeper.",
     .range = "[0,]"},
    {.name = "method",
     .type = ParameterType::text,
     .default_text = "ids",
     .help = "'ids': the depth of a full tree with the largest node id; 'links': the true depth, "
             "from trees/Yes and trees/No.",
     .choices = "ids links",
     .is_extension = true},
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SMD_TRY(auto nodes, Selection::create({.what = "nodes of trees",
                                         .patterns = {"(^|/)trees?/Node$"},
                                         .statistics = {Statistic::max}},
                                        parameters));
  SMD_TRY(auto columns, Selection::create({.what = "columns of trees",
                                           .patterns = {"(^|/)trees?/(Tree|Node|Yes|No)$"},
                                           .values = true,
                                           .is_required = false},
                                          parameters));
  return make_rule<TreeDepth>(std::move(nodes), std::move(columns), parameters.integer("depth"),
                              parameters.text("method") == "links");
}

}  // namespace

extern const RuleKind tree_depth;
const RuleKind tree_depth = {
    .name = "TreeDepth",
    .group = RuleGroup::trees,
    .severity = Severity::warning,
    .summary = "Trees are deeper than expected.",
    .sees =
        "The largest node id of the trees of a round, from which the depth of a full tree "
        "follows, or the true depth with method=links; fires when it is above depth. The "
        "collection trees must be saved.",
    .why =
        "Each level doubles the leaves, so deep trees fit single samples and noise, and they "
        "take more time and memory, in training and in use.",
    .fix =
        "Lower max_depth or max_leaves, or raise min_child_weight or gamma. If the depth is "
        "what you want, give it as the parameter depth.",
    .parameters = kParameters,
    .create = create,
};

}  // namespace smd::rules::builtin
