#include "smd/rules/boosting_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "smd/picture/bar_chart.h"
#include "smd/picture/markup.h"
#include "smd/picture/svg_chart.h"

namespace smd::rules {
namespace {

constexpr size_t kMostFeatures = 20;

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 860px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; }
h2 { font-size: 1.15rem; margin-top: 2.2rem; border-bottom: 1px solid #8884; }
svg { width: 100%; height: auto; display: block; margin: .6rem 0; }
table { border-collapse: collapse; margin: .6rem 0; font-variant-numeric: tabular-nums; }
td, th { padding: .2rem .6rem; text-align: right; border: 1px solid #8883; }
th:first-child { text-align: left; }
p.missing { color: #a60; }
p.about { margin-top: 0; opacity: .75; }
)";

double number(const Json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

// As long as the shorter of both lists.
PlotLine line_of(std::string name, const Json& x, const Json& y) {
  PlotLine line{.name = std::move(name)};
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    line.points.emplace_back(number(x[i]), number(y[i]));
  }
  return line;
}

std::string drawn(const std::vector<PlotLine>& lines, SvgOptions options) {
  options.is_file = false;
  return draw_svg(lines, options);
}

std::string text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return fmt::format("{}", value.get<int64_t>());
  if (value.is_number()) return fmt::format("{:.6g}", value.get<double>());
  return value.is_null() ? "" : dump_json(value);
}

std::string paragraph(std::string_view words) { return fmt::format("<p>{}</p>\n", escaped(words)); }

std::string heading(std::string_view words) { return fmt::format("<h2>{}</h2>\n", escaped(words)); }

// The sentence of a section that has no inputs; empty: it has.
std::string shortage(const Json& section) {
  if (!section.contains("missing")) return "";
  return fmt::format("<p class=\"missing\">{}</p>\n", escaped(text(section["missing"])));
}

std::string histogram(const Json& section, std::string_view title, std::string_view what) {
  BarChart chart{.title = std::string(title), .value_label = std::string(what), .bars = {}};
  const Json& edges = section["edges"];
  for (size_t i = 0; i + 1 < edges.size(); ++i) {
    chart.bars.push_back({fmt::format("{:.4g} to {:.4g}", number(edges[i]), number(edges[i + 1])),
                          number(section["counts"][i])});
  }
  return draw_svg(chart);
}

std::string label_part(const Json& section) {
  if (section.contains("histogram")) {
    return histogram(section["histogram"], "Labels", "samples");
  }
  BarChart chart{.title = "Labels", .value_label = "samples", .bars = {}};
  for (const Json& one : section["classes"]) {
    chart.bars.push_back({"class " + text(one["label"]), number(one["count"])});
  }
  return draw_svg(chart);
}

std::string loss_part(const Json& section) {
  std::string out;
  for (const Json& metric : section["metrics"]) {
    std::vector<PlotLine> lines;
    for (const Json& series : metric["series"]) {
      lines.push_back(line_of(text(series["tensor"]), series["steps"], series["values"]));
    }
    out += drawn(lines, {.title = text(metric["metric"])}) + paragraph(text(metric["remark"]));
  }
  return out;
}

std::string importance_part(const Json& section) {
  std::string out;
  for (const auto& [kind, importances] : section.items()) {
    if (importances.contains("missing")) {
      out += shortage(importances);
      continue;
    }
    BarChart chart{.title = fmt::format("By {} at step {}", kind, text(importances["step"])),
                   .value_label = kind,
                   .bars = {}};
    const Json& features = importances["features"];
    for (size_t i = 0; i < std::min(features.size(), kMostFeatures); ++i) {
      chart.bars.push_back({text(features[i]["feature"]), number(features[i]["importance"])});
    }
    out += draw_svg(chart);
    if (features.size() > kMostFeatures) {
      out += paragraph(fmt::format("The first {} of {} features.", kMostFeatures, features.size()));
    }
  }
  return out;
}

std::string confusion_part(const Json& section) {
  const Json& labels = section["labels"];
  const Json& matrix = section["matrix"];
  std::string out = "<table><tr><th>label \\ prediction</th>";
  for (const Json& label : labels) out += fmt::format("<th>{}</th>", escaped(text(label)));
  out += "</tr>\n";
  for (size_t i = 0; i < matrix.size(); ++i) {
    double total = 0;
    for (const Json& count : matrix[i]) total += number(count);
    out += fmt::format("<tr><th>{}</th>", escaped(text(labels[i])));
    for (size_t j = 0; j < matrix[i].size(); ++j) {
      const double part = total > 0 ? number(matrix[i][j]) / total : 0;
      out += fmt::format("<td style=\"background:rgba({},{:.2f})\">{}</td>",
                         i == j ? "44,160,44" : "214,39,40", 0.6 * part, text(matrix[i][j]));
    }
    out += "</tr>\n";
  }
  out += "</table>\n";
  const Json& scores = section["scores"];
  out += paragraph(fmt::format("Accuracy {:.4f} at step {}.", number(scores["accuracy"]),
                               text(section["step"])));
  out += "<table><tr><th></th><th>precision</th><th>recall</th><th>F1</th><th>labels</th></tr>\n";
  const auto line = [&](std::string_view name, const Json& one) {
    out += fmt::format(
        "<tr><th>{}</th><td>{:.4f}</td><td>{:.4f}</td><td>{:.4f}</td><td>{}</td></tr>\n",
        escaped(name), number(one["precision"]), number(one["recall"]), number(one["f1"]),
        one.contains("support") ? text(one["support"]) : "");
  };
  for (const Json& one : scores["classes"]) line("class " + text(one["label"]), one);
  for (std::string_view mean : {"micro", "macro", "weighted"})
    line(mean, scores[std::string(mean)]);
  return out + "</table>\n";
}

std::string class_accuracy_part(const Json& section) {
  std::vector<PlotLine> lines;
  for (const Json& one : section["classes"]) {
    lines.push_back(line_of("class " + text(one["label"]), one["steps"], one["accuracy"]));
  }
  return drawn(lines, {.title = "Accuracy of each class", .y_label = "accuracy"});
}

std::string roc_part(const Json& section) {
  PlotLine curve{.name = fmt::format("AUC {:.4f}", number(section["auc"]))};
  for (const Json& point : section["points"]) {
    curve.points.emplace_back(number(point["false_positive_rate"]),
                              number(point["true_positive_rate"]));
  }
  const PlotLine chance{.name = "chance", .points = {{0, 0}, {1, 1}}};
  return drawn({curve, chance}, {.title = fmt::format("ROC at step {}", text(section["step"])),
                                 .x_label = "false positive rate",
                                 .y_label = "true positive rate",
                                 .whole_steps = false});
}

std::string residual_part(const Json& section) {
  return histogram(section["histogram"],
                   fmt::format("Label less prediction at step {}", text(section["step"])),
                   "samples") +
         paragraph(fmt::format(
             "Mean {:.6g}, standard deviation {:.6g}, mean absolute error {:.6g}, "
             "root mean squared error {:.6g}.",
             number(section["mean"]), number(section["std"]),
             number(section["mean_absolute_error"]), number(section["root_mean_squared_error"])));
}

std::string target_error_part(const Json& section) {
  const Json& edges = section["edges"];
  std::vector<PlotLine> lines;
  for (size_t bin = 0; bin + 1 < edges.size(); ++bin) {
    Json errors = Json::array();
    for (const Json& row : section["mean_absolute_error"]) errors.push_back(row[bin]);
    lines.push_back(
        line_of(fmt::format("{:.4g} to {:.4g}", number(edges[bin]), number(edges[bin + 1])),
                section["steps"], errors));
  }
  return drawn(lines, {.title = "Mean absolute error by the size of the target",
                       .y_label = "mean absolute error"});
}

std::string parameter_table(const Json& parameters) {
  if (parameters.empty()) {
    return shortage({{"missing",
                      "The hyperparameters were not saved (collection "
                      "'hyperparameters')."}});
  }
  std::string out = "<table>";
  for (const auto& [name, value] : parameters.items()) {
    out += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", escaped(name), escaped(text(value)));
  }
  return out + "</table>\n";
}

struct Part {
  const char* name;
  std::string_view title;
  std::string (*show)(const Json& section);
};
constexpr Part kParts[] = {
    {"label_distribution", "Distribution of the labels", label_part},
    {"loss", "Loss and metrics by step", loss_part},
    {"feature_importance", "Importance of the features", importance_part},
    {"confusion_matrix", "Confusion matrix", confusion_part},
    {"class_accuracy", "Accuracy of each class by step", class_accuracy_part},
    {"roc", "ROC curve", roc_part},
    {"residuals", "Residuals", residual_part},
    {"target_error", "Validation error by target", target_error_part},
    {"quality", "Quality of the predictions", nullptr},
};

}  // namespace

std::string boosting_page(const Json& report) {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n"
      "<title>Training report</title>\n<style>{}{}</style></head><body>\n"
      "<h1>Training report of boosted trees</h1>\n<p class=\"about\">{}, task: {}, up to step {}"
      "</p>\n",
      kStyle, svg_style(), escaped(text(report["run"])), escaped(text(report["task"])),
      text(report["step"]));
  const Json& sections = report["sections"];
  for (const Part& part : kParts) {
    if (!sections.contains(part.name)) continue;
    const Json& section = sections[part.name];
    out += heading(part.title);
    const std::string lacking = shortage(section);
    out += lacking.empty() && part.show != nullptr ? part.show(section) : lacking;
  }
  out += heading("Hyperparameters") + parameter_table(report["hyperparameters"]);
  return out + "</body></html>\n";
}

}  // namespace smd::rules
