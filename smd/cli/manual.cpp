#include "smd/cli/manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "smd/cli/options.h"
#include "smd/picture/text_width.h"

namespace smd::cli {
namespace {

constexpr std::string_view kAbout = "looks at runs: the tensors that a training job has recorded";
constexpr std::string_view kRun =
    "RUN is the directory that a job records into, the out_dir of its hook.";
constexpr size_t kHelpWidth = 80;

std::string signature(const OptionHelp& option) {
  if (option.is_positional) return option.names[0];
  std::string out = fmt::format("{}", fmt::join(option.names, ", "));
  if (!option.value.empty()) out += " " + option.value;
  return out;
}

std::string about(const OptionHelp& option) {
  if (!option.is_positional || option.choices.empty()) return option.about;
  return fmt::format("{}: {}", option.about, fmt::join(option.choices, ", "));
}

// The text in lines of at most kHelpWidth columns, each after `indent` spaces; the first indent is
// left out.
std::string wrapped(std::string_view text, size_t indent) {
  std::string out;
  size_t column = indent;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (column > indent && column + 1 + word.size() > kHelpWidth) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// Two columns of text, the right one wrapped.
std::string pairs(const std::vector<std::pair<std::string, std::string>>& rows) {
  constexpr size_t kMostLeft = 26;
  size_t left = 0;
  for (const auto& row : rows) left = std::max(left, std::min(row.first.size(), kMostLeft));
  std::string out;
  for (const auto& [name, text] : rows) {
    out += fmt::format("  {:{}}  ", name, left);
    if (name.size() > left) out += fmt::format("\n{:{}}", "", left + 4);
    out += wrapped(text, left + 4) + "\n";
  }
  return out;
}

std::string options_text(const std::vector<OptionHelp>& options, bool positional) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const OptionHelp& option : options) {
    if (option.is_positional == positional) rows.emplace_back(signature(option), about(option));
  }
  return pairs(rows);
}

std::string exit_codes_text() {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const ExitCodeHelp& code : exit_codes()) {
    rows.emplace_back(fmt::format("{:3}", static_cast<int>(code.code)), std::string(code.about));
  }
  return pairs(rows);
}

// Text for roff: what it would take for a command of its own is made harmless.
std::string roff(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  if (out.starts_with('.') || out.starts_with('\'')) out.insert(0, "\\&");
  return out;
}

void append_roff_options(std::string& out, const std::vector<OptionHelp>& options) {
  for (const OptionHelp& option : options) {
    out += fmt::format(".TP\n.B {}\n{}\n", roff(signature(option)), roff(about(option)));
  }
}

void append_markdown_options(std::string& out, const std::vector<OptionHelp>& options) {
  const auto cell = [](std::string text) {
    for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
      text.insert(at, "\\");
    }
    return text;
  };
  out += "| argument | meaning |\n|---|---|\n";
  for (const OptionHelp& option : options) {
    out += fmt::format("| `{}` | {} |\n", cell(signature(option)), cell(about(option)));
  }
}

// One sentence per line.
std::string sentences(std::string_view text) {
  std::string out(text);
  for (size_t at = 0; (at = out.find(". ", at)) != std::string::npos; ++at) out[at + 1] = '\n';
  return out;
}

}  // namespace

std::string program_help() {
  std::string out =
      fmt::format("smdebug {} {}\n\nUsage: smdebug [options] COMMAND ...\n\nCommands:\n",
                  program_version(), kAbout);
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Command* command : commands()) {
    rows.emplace_back(command->name, command->summary);
  }
  out += pairs(rows);
  out += "\nOptions:\n" + options_text(describe_program_options(), false);
  out += "\nExit codes:\n" + exit_codes_text();
  out += fmt::format("\n{}\n'smdebug COMMAND --help' explains a command.\n", kRun);
  return out;
}

std::string command_help(const Command& command) {
  const auto options = describe_options(command);
  std::string out = fmt::format("Usage: {}\n\n{}.\n", usage_line(command), command.summary);
  if (!command.details.empty()) out += "\n" + wrapped(command.details, 0) + "\n";
  if (const std::string text = options_text(options, true); !text.empty()) {
    out += "\nArguments:\n" + text;
  }
  out += "\nOptions:\n" + options_text(options, false);
  if (!command.examples.empty()) out += "\nExamples:\n";
  for (const Example& example : command.examples) {
    out += fmt::format("  smdebug {}\n      {}\n", example.line, wrapped(example.about, 6));
  }
  out += "\nExit codes:\n" + exit_codes_text();
  return out;
}

std::string manual_page() {
  std::string out = fmt::format(".TH SMDEBUG 1 \"\" \"smdebug {}\"\n", roff(program_version()));
  out += fmt::format(".SH NAME\nsmdebug \\- {}\n", roff(kAbout));
  out += ".SH SYNOPSIS\n.B smdebug\n[options]\n.I COMMAND\n\\&...\n";
  out += fmt::format(".SH DESCRIPTION\n{}\n", roff(kRun));
  out += ".SH OPTIONS\n";
  append_roff_options(out, describe_program_options());
  out += ".SH COMMANDS\n";
  for (const Command* command : commands()) {
    out += fmt::format(".SS {}\n{}.\n", roff(usage_line(*command)), roff(command->summary));
    if (!command->details.empty()) out += fmt::format(".PP\n{}\n", roff(command->details));
    append_roff_options(out, describe_options(*command));
    for (const Example& example : command->examples) {
      out += fmt::format(".PP\n{}:\n.PP\n.RS\n.nf\nsmdebug {}\n.fi\n.RE\n", roff(example.about),
                         roff(example.line));
    }
  }
  out += ".SH EXIT STATUS\n";
  for (const ExitCodeHelp& code : exit_codes()) {
    out += fmt::format(".TP\n.B {}\n{}\n", static_cast<int>(code.code), roff(code.about));
  }
  return out;
}

std::string markdown_page() {
  std::string out = "# Command line\n\n<!-- Written by `smdebug help --markdown`. -->\n\n";
  out += fmt::format("`smdebug` {}.\n{}\n\n", kAbout, kRun);
  out += "| command | does |\n|---|---|\n";
  for (const Command* command : commands()) {
    out += fmt::format("| [`{0}`](#{0}) | {1} |\n", command->name, command->summary);
  }
  out += "\n## Options before the command\n\n";
  append_markdown_options(out, describe_program_options());
  out += "\n## Exit codes\n\n| code | meaning |\n|---|---|\n";
  for (const ExitCodeHelp& code : exit_codes()) {
    out += fmt::format("| {} | {} |\n", static_cast<int>(code.code), code.about);
  }
  out +=
      "\nA command that fails says why in one sentence on stderr, with `--json`, too.\n"
      "A reader that goes away, as in `smdebug ... | head`, ends a command quietly.\n";
  for (const Command* command : commands()) {
    out += fmt::format("\n## {}\n\n{}.\n", command->name, command->summary);
    if (!command->details.empty()) out += sentences(command->details) + "\n";
    out += fmt::format("\n```text\n{}\n```\n\n", usage_line(*command));
    append_markdown_options(out, describe_options(*command));
    if (!command->examples.empty()) out += "\n| example | does |\n|---|---|\n";
    for (const Example& example : command->examples) {
      out += fmt::format("| `smdebug {}` | {} |\n", example.line, example.about);
    }
  }
  return out;
}

}  // namespace smd::cli
