#include <fmt/format.h>

#include <array>
#include <iterator>

#include "smd/server/choice.h"
#include "smd/server/route.h"

namespace smd::server::route_list {
namespace {

// A list in brackets; `append` adds the text of one item, or nothing to leave it out.
void append_list(std::string& out, const auto& items, auto&& append) {
  out += '[';
  const size_t begin = out.size();
  for (const auto& item : items) {
    const size_t before = out.size();
    if (before > begin) out += ',';
    const size_t start = out.size();
    append(item);
    if (out.size() == start) out.resize(before);
  }
  out += ']';
}

// Documents of many thousand objects take ten times as long when they are built before they are
// written.
void append_tensor(std::string& out, const Model::Tensor& tensor, const ServedRun::Form& form,
                   const Snapshot& snapshot) {
  const auto to_out = std::back_inserter(out);
  const auto append_number = [&](auto number) { fmt::format_to(to_out, "{}", number); };
  fmt::format_to(to_out, R"({{"id":{},"name":)", tensor.id);
  append_json_string(out, snapshot.names().tensors[tensor.id]);
  fmt::format_to(to_out, R"(,"module":{},"role":"{}","collections":)", tensor.module,
                 name_of(tensor.role));
  append_list(out, tensor.collections, append_number);
  out += R"(,"dtype":)";
  out += form.dtype ? fmt::format("\"{}\"", name_of(*form.dtype)) : "null";
  out += R"(,"shape":)";
  if (form.shape) {
    append_list(out, *form.shape, append_number);
  } else {
    out += "null";
  }
  out += R"(,"statistics":)";
  append_list(out, tensor.slots, [&](uint32_t slot) {
    append_json_string(out, snapshot.slot_name(Slot::from_id(slot)));
  });
  fmt::format_to(to_out, R"(,"has_value":{},"modes":)", tensor.has_value);
  append_list(out, kModes, [&](Mode mode) {
    if ((tensor.modes >> index_of(mode) & 1) != 0) append_json_string(out, name_of(mode));
  });
  out += '}';
}

void append_module(std::string& out, const Model::Module& module) {
  out += R"({"path":)";
  append_json_string(out, module.path);
  out += R"(,"name":)";
  append_json_string(out, module.name);
  out += R"(,"parent":)";
  out += module.parent == kNone ? "null" : std::to_string(module.parent);
  fmt::format_to(std::back_inserter(out), R"(,"first":{},"count":{}}})", module.first,
                 module.count);
}

Result<std::string> body(const ChosenRun& chosen) {
  const RunFacts& facts = *chosen.facts;
  const Model& model = *facts.model;
  const auto forms = chosen.run->forms(facts);
  std::array<uint64_t, kRoleCount> counts{};
  for (const Model::Tensor& tensor : model.tensors) ++counts[static_cast<size_t>(tensor.role)];
  Json roles = Json::array();
  for (size_t i = 0; i < kRoleCount; ++i) {
    if (counts[i] > 0) roles.push_back({{"role", role_names()[i]}, {"tensors", counts[i]}});
  }
  std::string out = body_of({{"catalogue", facts.catalogue},
                             {"collections", facts.snapshot->collections().names()},
                             {"roles", std::move(roles)}});
  out.pop_back();  // the object goes on
  out += R"(,"tensors":)";
  append_list(out, model.tensors, [&](const Model::Tensor& tensor) {
    append_tensor(out, tensor, forms[facts.model->positions[tensor.id]], *facts.snapshot);
  });
  out += R"(,"modules":)";
  append_list(out, model.modules, [&](const Model::Module& module) { append_module(out, module); });
  out += '}';
  return out;
}

}  // namespace

extern const Route tensors;
const Route tensors = {
    .path = "/api/runs/{run}/tensors",
    .answer = [](const Question& question) -> Result<Answer> {
      SMD_TRY(ChosenRun chosen, choose_run(question.site, question.run));
      return Answer{.version = std::to_string(chosen.facts->catalogue),
                    .body = [chosen] { return body(chosen); }};
    },
};

}  // namespace smd::server::route_list
