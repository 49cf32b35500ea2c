#include "smd/cli/diagnosis_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ostream>

#include "smd/cli/step_text.h"
#include "smd/cli/table.h"
#include "smd/cli/units.h"
#include "smd/picture/text_width.h"

namespace smd::cli {
namespace {

constexpr size_t kMostTensors = 5;
constexpr size_t kLeastWidth = 40;

// The words in lines of at most `width` columns, each after `indent` blanks. 0: one line.
void print_wrapped(std::ostream& out, std::string_view text, size_t indent, int width) {
  const size_t columns =
      width <= 0 ? 0 : std::max(static_cast<size_t>(width), kLeastWidth) - indent;
  std::string line;
  const auto flush = [&] {
    if (!line.empty()) out << std::string(indent, ' ') << line << '\n';
    line.clear();
  };
  for (size_t first = 0; first < text.size();) {
    const size_t end = std::min(text.find(' ', first), text.size());
    const std::string_view word = text.substr(first, end - first);
    const auto needed = static_cast<size_t>(text_width(line) + text_width(word)) + 1;
    if (columns > 0 && !line.empty() && needed > columns) flush();
    if (!line.empty()) line += ' ';
    line += word;
    first = end + 1;
  }
  flush();
}

std::string tensors_of(const rules::Finding& finding) {
  std::vector<std::string> shown;
  for (const auto& one : finding.tensors) {
    if (shown.size() == kMostTensors) break;
    shown.push_back(printable(one.tensor));
  }
  std::string out = fmt::format("{}", fmt::join(shown, ", "));
  if (finding.tensors.size() > kMostTensors) {
    out += fmt::format(" and {} more", finding.tensors.size() - kMostTensors);
  }
  return out;
}

std::string painted(const Terminal& terminal, rules::Severity severity) {
  const Style style = severity == rules::Severity::error  ? Style::bad
                      : severity == rules::Severity::info ? Style::faint
                                                          : Style::strong;
  return terminal.paint(style, fmt::format("{:<7}", name_of(severity)));
}

void print(const Terminal& terminal, const rules::Finding& finding) {
  std::ostream& out = terminal.out;
  const int width = terminal.out_width();
  const std::string when =
      finding.hit_count == 1
          ? fmt::format("at {}", step_text(finding.first_step))
          : fmt::format("{} times, first at {}, last at {}", finding.hit_count,
                        step_text(finding.first_step), step_text(finding.last_step));
  out << fmt::format("\n{}  {}", painted(terminal, finding.severity),
                     terminal.paint(Style::strong, finding.kind->name));
  const int columns = text_width(fmt::format("{:<7}  {}  {}", "", finding.kind->name, when));
  if (width <= 0 || columns <= width) {
    out << "  " << when << '\n';
  } else {
    out << '\n';
    print_wrapped(out, when, 2, width);
  }
  print_wrapped(out, printable(finding.first_hit.message), 2, width);
  if (finding.tensors.size() > 1) print_wrapped(out, "Tensors: " + tensors_of(finding), 2, width);
  if (finding.workers.size() > 1) {
    print_wrapped(out, fmt::format("Workers: {}", fmt::join(finding.workers, ", ")), 2, width);
  }
  if (!finding.explained_by.empty()) {
    print_wrapped(out, fmt::format("Probably follows from {}.", finding.explained_by), 2, width);
  }
  print_wrapped(out, fmt::format("Why it matters: {}", finding.kind->why), 2, width);
  print_wrapped(out, fmt::format("What to do: {}", finding.kind->fix), 2, width);
  print_wrapped(out, fmt::format("Read more: {}", rules::docs_page(*finding.kind)), 2, width);
}

}  // namespace

void print_diagnosis(const Terminal& terminal, const rules::Diagnosis& diagnosis) {
  std::ostream& out = terminal.out;
  const int width = terminal.out_width();
  const size_t judged = diagnosis.findings.size() + diagnosis.silent.size();
  out << fmt::format(
      "{}: {}, {}, {}\n", terminal.paint(Style::strong, printable(diagnosis.run)),
      counted(diagnosis.step_count, "step"), counted(judged, "rule") + " evaluated",
      diagnosis.findings.empty()
          ? terminal.paint(Style::good, "no issues found")
          : terminal.paint(Style::bad, counted(diagnosis.findings.size(), "finding")));
  if (diagnosis.unreadable_steps > 0) {
    print_wrapped(
        out,
        fmt::format("{} could not be read: {}", counted(diagnosis.unreadable_steps, "step"),
                    printable(diagnosis.first_problem)),
        2, width);
  }
  for (const rules::Finding& finding : diagnosis.findings) print(terminal, finding);
  if (!diagnosis.remarks.empty() || !diagnosis.failed.empty() || !diagnosis.not_evaluated.empty()) {
    out << '\n';
  }
  for (const auto& note : diagnosis.remarks) {
    print_wrapped(out, fmt::format("{}: {}", note.kind->name, printable(note.message)), 0, width);
  }
  for (const auto& note : diagnosis.failed) {
    print_wrapped(out, fmt::format("{} failed: {}", note.kind->name, printable(note.message)), 0,
                  width);
  }
  for (const auto& note : diagnosis.not_evaluated) {
    print_wrapped(out,
                  fmt::format("{} not evaluated: {}", note.kind->name, printable(note.message)), 0,
                  width);
  }
}

void print_summary(const Terminal& terminal, std::span<const DiagnosedRun> runs) {
  Table table({{"run"}, {"steps", Align::right}, {"findings", Align::right}, {"first"}, {"since"}});
  for (const DiagnosedRun& run : runs) {
    if (run.error) {
      table.add_row({run.argument, "-", "-", "cannot be read", ""});
      continue;
    }
    const auto& findings = run.diagnosis.findings;
    const bool is_well = findings.empty();
    table.add_row({run.diagnosis.run, fmt::format("{}", run.diagnosis.step_count),
                   fmt::format("{}", findings.size()),
                   is_well ? "no issues found" : std::string(findings[0].kind->name),
                   is_well ? "" : step_text(findings[0].first_step)});
  }
  terminal.out << '\n' << table.text(terminal);
}

void print_hit(const Terminal& terminal, rules::Severity severity, const rules::Hit& hit) {
  terminal.out << fmt::format("{}  {}  {}  {}\n", step_text(hit.step), painted(terminal, severity),
                              terminal.paint(Style::strong, hit.rule), printable(hit.message))
               << std::flush;
}

}  // namespace smd::cli
