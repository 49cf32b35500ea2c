#pragma once

// The trees of a round as a table of nodes, read from the JSON that XGBoost dumps. Pure functions.

#include <charconv>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "smd/smd.h"

namespace smdebug::xgb {

// Columns in the order of XGBoost's own table; a leaf has "Leaf" as feature and its value as gain.
struct TreeTable {
  std::vector<int64_t> tree, node;
  std::vector<std::string> id, feature, yes, no, missing, category;
  std::vector<double> split, gain, cover;
};

namespace internal {

// Reads as much of JSON as a dump has: objects, arrays, numbers and strings.
class DumpReader final {
 public:
  explicit DumpReader(std::string_view text) : text_(text) {}

  // A node with those below it, by number.
  bool read_node() {
    Node node;
    if (!take('{')) return false;
    do {
      std::string key;
      if (!read_string(key) || !take(':')) return false;
      if (key == "children") {
        if (!take('[')) return false;
        do {
          if (!read_node()) return false;
        } while (take(','));
        if (!take(']')) return false;
      } else if (!read_field(key, node)) {
        return false;
      }
    } while (take(','));
    if (!take('}')) return false;
    nodes_[node.number] = std::move(node);
    return true;
  }

  struct Node {
    int64_t number = 0;
    std::string feature = "Leaf", category = "nan";
    double split = std::numeric_limits<double>::quiet_NaN();
    double gain = split, cover = split, leaf = split;
    int64_t yes = -1, no = -1, missing = -1;
    bool is_leaf = false;
  };
  const std::map<int64_t, Node>& nodes() const { return nodes_; }

 private:
  char peek() {
    at_ = std::min(text_.find_first_not_of(" \n\t\r", at_), text_.size());
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  bool read_number(double& out) {
    peek();
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), out);
    at_ += static_cast<size_t>(end - begin);
    return error == std::errc();
  }
  bool read_string(std::string& out) {
    if (!take('"')) return false;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      out += text_[at_];
    }
    return take('"');
  }
  bool read_field(std::string_view key, Node& node) {
    if (key == "split") {
      node.feature.clear();
      return read_string(node.feature);
    }
    if (key == "split_condition" && take('[')) return read_codes(node.category);
    double number = 0;
    if (!read_number(number)) return false;
    if (key == "nodeid") node.number = static_cast<int64_t>(number);
    if (key == "yes") node.yes = static_cast<int64_t>(number);
    if (key == "no") node.no = static_cast<int64_t>(number);
    if (key == "missing") node.missing = static_cast<int64_t>(number);
    if (key == "split_condition") node.split = number;
    if (key == "gain") node.gain = number;
    if (key == "cover") node.cover = number;
    if (key == "leaf") node.leaf = number;
    node.is_leaf = node.is_leaf || key == "leaf";
    return true;
  }
  // Codes of categories.
  bool read_codes(std::string& out) {
    out.clear();
    do {
      double code = 0;
      if (!read_number(code)) return false;
      if (!out.empty()) out += ',';
      out += std::to_string(static_cast<int64_t>(code));
    } while (take(','));
    return take(']');
  }

  std::string_view text_;
  size_t at_ = 0;
  std::map<int64_t, Node> nodes_;
};

}  // namespace internal

// Adds the nodes of a tree. corrupt: the dump cannot be read.
inline smd::Status add_tree(TreeTable& table, int64_t tree, std::string_view dump) {
  internal::DumpReader reader(dump);
  if (!reader.read_node()) {
    return smd::Error{smd::ErrorCode::corrupt, "The dump of tree " + std::to_string(tree) +
                                                   " is not the JSON that was expected."};
  }
  const auto label = [&](int64_t node) {
    return node < 0 ? std::string("nan") : std::to_string(tree) + "-" + std::to_string(node);
  };
  for (const auto& [number, node] : reader.nodes()) {
    table.tree.push_back(tree);
    table.node.push_back(number);
    table.id.push_back(label(number));
    table.feature.push_back(node.feature);
    table.split.push_back(node.split);
    table.yes.push_back(label(node.yes));
    table.no.push_back(label(node.no));
    table.missing.push_back(label(node.missing));
    table.gain.push_back(node.is_leaf ? node.leaf : node.gain);
    table.cover.push_back(node.cover);
    table.category.push_back(node.category);
  }
  return {};
}

}  // namespace smdebug::xgb
