#include "smd/cli/diagnosis_junit.h"

#include <fmt/format.h>

#include <algorithm>

#include "smd/picture/markup.h"

namespace smd::cli {
namespace {

struct Counts {
  size_t tests = 0;
  size_t failures = 0;
  size_t errors = 0;
  size_t skipped = 0;

  void add(const Counts& other) {
    tests += other.tests;
    failures += other.failures;
    errors += other.errors;
    skipped += other.skipped;
  }
  std::string attributes() const {
    return fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"0\"",
                       tests, failures, errors, skipped);
  }
};

struct Case {
  std::string rule;
  std::string body;  // escaped; empty: it passed
};

std::string story(const rules::Finding& finding) {
  std::string out = fmt::format("{} hits, first at step {}, last at step {}.\n", finding.hit_count,
                                finding.first_step.step, finding.last_step.step);
  for (const auto& one : finding.tensors) {
    out += fmt::format("tensor: {} (first at step {}, {} hits)\n", escaped(one.tensor),
                       one.first_step, one.hits);
  }
  if (!finding.explained_by.empty()) {
    out += fmt::format("probably follows from: {}\n", finding.explained_by);
  }
  return out + fmt::format("why it matters: {}\nwhat to do: {}\nread: {}\n",
                           escaped(finding.kind->why), escaped(finding.kind->fix),
                           rules::docs_page(*finding.kind));
}

std::string suite(const DiagnosedRun& run, const RuleArguments& arguments, Counts& counts) {
  std::vector<Case> cases;
  if (run.error) {
    cases.push_back({"run", fmt::format("<error message=\"{}\" type=\"unreadable\"/>",
                                        escaped(run.error->message))});
    ++counts.errors;
  }
  const rules::Diagnosis& diagnosis = run.diagnosis;
  for (const rules::Finding& finding : diagnosis.findings) {
    const std::string message = escaped(finding.first_hit.message);
    if (arguments.fails_on(finding.severity)) {
      ++counts.failures;
      cases.push_back({std::string(finding.kind->name),
                       fmt::format("<failure message=\"{}\" type=\"{}\">{}</failure>", message,
                                   name_of(finding.severity), story(finding))});
    } else {
      cases.push_back({std::string(finding.kind->name),
                       fmt::format("<system-out>{}: {}\n{}</system-out>", name_of(finding.severity),
                                   message, story(finding))});
    }
  }
  for (const rules::RuleKind* kind : diagnosis.silent)
    cases.push_back({std::string(kind->name), ""});
  for (const auto& note : diagnosis.failed) {
    ++counts.errors;
    cases.push_back({std::string(note.kind->name),
                     fmt::format("<error message=\"{}\" type=\"rule\"/>", escaped(note.message))});
  }
  for (const auto& note : diagnosis.not_evaluated) {
    ++counts.skipped;
    cases.push_back({std::string(note.kind->name),
                     fmt::format("<skipped message=\"{}\"/>", escaped(note.message))});
  }
  // By name, so that two reports can be compared; the rank is for people.
  std::ranges::sort(cases, {}, &Case::rule);
  counts.tests = cases.size();
  const std::string name = escaped(run.name());
  std::string out = fmt::format("  <testsuite name=\"{}\" {}>\n", name, counts.attributes());
  for (const Case& one : cases) {
    out += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"0\"", name, one.rule);
    out += one.body.empty() ? "/>\n" : fmt::format(">{}</testcase>\n", one.body);
  }
  return out + "  </testsuite>\n";
}

}  // namespace

std::string junit_report(std::span<const DiagnosedRun> runs, const RuleArguments& arguments) {
  Counts total;
  std::string suites;
  for (const DiagnosedRun& run : runs) {
    Counts counts;
    suites += suite(run, arguments, counts);
    total.add(counts);
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"smdebug diagnose\" {}>\n{}"
      "</testsuites>\n",
      total.attributes(), suites);
}

}  // namespace smd::cli
