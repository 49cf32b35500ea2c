#include "smd/cli/diagnosis_html.h"

#include <fmt/format.h>

#include "smd/cli/step_text.h"
#include "smd/cli/units.h"
#include "smd/picture/markup.h"

namespace smd::cli {
namespace {

constexpr size_t kOpenTensors = 5;

constexpr std::string_view kStyle = R"(:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;
 color:#1f2328;background:#fff}
h1{font-size:1.4rem}h2{font-size:1.15rem;margin:2rem 0 .5rem;overflow-wrap:anywhere}
table{border-collapse:collapse;margin:.5rem 0}
th,td{text-align:left;padding:.15rem .8rem .15rem 0;vertical-align:top;overflow-wrap:anywhere}
.card{border:1px solid #d1d9e0;border-left:6px solid #bf8700;border-radius:6px;
 padding:.6rem 1rem;margin:1rem 0}
.card.error{border-left-color:#cf222e}.card.info{border-left-color:#0969da}
.card h3{margin:0;font-size:1.05rem}.quiet{color:#59636e}.well{color:#1a7f37}
.tag{font-size:.8rem;border:1px solid;border-radius:1rem;padding:0 .5rem;margin-left:.4rem}
svg{max-width:100%;height:auto}code{overflow-wrap:anywhere}
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}
.card{border-color:#3d444d}.quiet{color:#9198a1}.well{color:#56d364}}
)";

std::string verdict(const DiagnosedRun& run) {
  if (run.error) return "cannot be read";
  if (run.diagnosis.findings.empty()) return "no issues found";
  return counted(run.diagnosis.findings.size(), "finding");
}

std::string summary(std::span<const DiagnosedRun> runs) {
  std::string out =
      "<table><thead><tr><th>run</th><th>steps</th><th>verdict</th><th>first cause</th></tr>"
      "</thead><tbody>\n";
  for (size_t i = 0; i < runs.size(); ++i) {
    const rules::Diagnosis& diagnosis = runs[i].diagnosis;
    out += fmt::format(
        "<tr><td><a href=\"#run{}\">{}</a></td><td>{}</td><td>{}</td><td>{}</td></tr>\n", i + 1,
        escaped(runs[i].name()), diagnosis.step_count, verdict(runs[i]),
        diagnosis.findings.empty() ? "" : diagnosis.findings[0].kind->name);
  }
  return out + "</tbody></table>\n";
}

std::string tensors(const rules::Finding& finding) {
  if (finding.tensors.empty()) return "";
  std::string first;
  std::string rest;
  for (size_t i = 0; i < finding.tensors.size(); ++i) {
    const auto& one = finding.tensors[i];
    (i < kOpenTensors ? first : rest) +=
        fmt::format("<tr><td><code>{}</code></td><td>since step {}</td><td>{}</td></tr>\n",
                    escaped(one.tensor), one.first_step, counted(one.hits, "hit"));
  }
  std::string out = "<table>" + first + "</table>\n";
  if (!rest.empty()) {
    out += fmt::format("<details><summary>{} more tensors</summary><table>{}</table></details>\n",
                       finding.tensors.size() - kOpenTensors, rest);
  }
  return out;
}

std::string evidence(const rules::Finding& finding) {
  if (finding.first_hit.violations.empty()) return "";
  const rules::Violation& first = finding.first_hit.violations[0];
  std::string out = fmt::format("<tr><td>{}</td><td>{} {} {}</td></tr>\n", escaped(first.metric),
                                number_text(first.value), escaped(name_of(first.op)),
                                number_text(first.threshold));
  for (const auto& [name, value] : first.context.items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : dump_json(value);
    out += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", escaped(name), escaped(text));
  }
  if (!first.worker.empty()) {
    out += fmt::format("<tr><td>worker</td><td>{}</td></tr>\n", escaped(first.worker));
  }
  return fmt::format(
      "<details><summary>Numbers of the first hit</summary><table>{}</table></details>\n", out);
}

std::string card(const rules::Finding& finding, size_t rank, const std::optional<Curve>& curve) {
  const std::string_view severity = name_of(finding.severity);
  std::string out = fmt::format(
      "<article class=\"card {0}\">\n<h3>{1}. {2}<span class=\"tag\">{0}</span></h3>\n"
      "<p class=\"quiet\">{3}, first at {4}, last at {5}</p>\n<p>{6}</p>\n",
      severity, rank, finding.kind->name, counted(finding.hit_count, "hit"),
      step_text(finding.first_step), step_text(finding.last_step),
      escaped(finding.first_hit.message));
  if (!finding.explained_by.empty()) {
    out += fmt::format("<p>Probably follows from {}.</p>\n", escaped(finding.explained_by));
  }
  if (curve) out += draw_svg(curve->series, curve->options);
  out += tensors(finding);
  if (finding.workers.size() > 1) {
    std::string names;
    for (const std::string& worker : finding.workers) {
      names += (names.empty() ? "" : ", ") + escaped(worker);
    }
    out += fmt::format("<p>Workers: {}</p>\n", names);
  }
  out += fmt::format(
      "<p><b>Why it matters.</b> {}</p>\n<p><b>What to do.</b> {}</p>\n"
      "<p class=\"quiet\">Read <code>{}</code></p>\n",
      escaped(finding.kind->why), escaped(finding.kind->fix), rules::docs_page(*finding.kind));
  return out + evidence(finding) + "</article>\n";
}

std::string notes(const rules::Diagnosis& diagnosis) {
  std::string out;
  for (const auto& note : diagnosis.failed) {
    out += fmt::format("<li>{} failed: {}</li>\n", note.kind->name, escaped(note.message));
  }
  for (const auto& note : diagnosis.not_evaluated) {
    out += fmt::format("<li>{} not evaluated: {}</li>\n", note.kind->name, escaped(note.message));
  }
  if (out.empty()) return "";
  return fmt::format(
      "<details><summary>{} could not judge this run</summary><ul>{}</ul></details>\n",
      counted(diagnosis.failed.size() + diagnosis.not_evaluated.size(), "rule"), out);
}

std::string section(const DiagnosedRun& run, size_t number) {
  std::string out =
      fmt::format("<section id=\"run{}\">\n<h2>{}</h2>\n", number, escaped(run.name()));
  if (run.error) return out + fmt::format("<p>{}</p>\n</section>\n", escaped(run.error->message));
  const rules::Diagnosis& diagnosis = run.diagnosis;
  out +=
      fmt::format("<p>{}, {} evaluated, <b{}>{}</b>.</p>\n", counted(diagnosis.step_count, "step"),
                  counted(diagnosis.findings.size() + diagnosis.silent.size(), "rule"),
                  diagnosis.findings.empty() ? " class=\"well\"" : "", verdict(run));
  if (diagnosis.unreadable_steps > 0) {
    out +=
        fmt::format("<p>{} could not be read: {}</p>\n",
                    counted(diagnosis.unreadable_steps, "step"), escaped(diagnosis.first_problem));
  }
  if (run.loss) out += draw_svg(run.loss->series, run.loss->options);
  for (size_t i = 0; i < diagnosis.findings.size(); ++i) {
    out += card(diagnosis.findings[i], i + 1, i < run.curves.size() ? run.curves[i] : std::nullopt);
  }
  return out + notes(diagnosis) + "</section>\n";
}

}  // namespace

std::string html_page(std::span<const DiagnosedRun> runs) {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<title>Diagnosis of {}</title>\n<style>{}{}</style>\n</head>\n<body>\n<h1>Diagnosis</h1>\n",
      runs.size() == 1 ? escaped(runs[0].name()) : counted(runs.size(), "run"), kStyle,
      svg_style());
  if (runs.size() > 1) out += summary(runs);
  for (size_t i = 0; i < runs.size(); ++i) out += section(runs[i], i + 1);
  return out + "</body>\n</html>\n";
}

}  // namespace smd::cli
