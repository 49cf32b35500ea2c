#include "smd/storage/s3/profile.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace smd::storage {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string path_of(const Variables& variables, std::string_view name, std::string_view fallback) {
  std::string path = variables(name);
  if (path.empty()) path = "~/.aws/" + std::string(fallback);
  if (path.starts_with("~/")) path.replace(0, 1, variables("HOME"));
  return path;
}

void merge(std::map<std::string, std::string>& into, const IniFile& file,
           const std::string& section) {
  const auto found = file.find(section);
  if (found == file.end()) return;
  for (const auto& [key, value] : found->second) into[key] = value;
}

}  // namespace

Variables process_variables() {
  return [](std::string_view name) {
    const char* value = std::getenv(std::string(name).c_str());
    return std::string(value == nullptr ? "" : value);
  };
}

IniFile parse_ini(std::string_view text) {
  IniFile file;
  std::map<std::string, std::string>* section = nullptr;
  std::string outer;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const std::string_view content = trimmed(line);
    if (content.empty() || content.front() == '#' || content.front() == ';') continue;
    if (content.front() == '[') {
      const size_t close = content.find(']');
      section = close == std::string_view::npos
                    ? nullptr
                    : &file[std::string(trimmed(content.substr(1, close - 1)))];
      outer.clear();
      continue;
    }
    const size_t equals = content.find('=');
    if (section == nullptr || equals == std::string_view::npos) continue;
    const std::string key(trimmed(content.substr(0, equals)));
    const std::string value(trimmed(content.substr(equals + 1)));
    const bool nested = kBlanks.find(line.front()) != std::string_view::npos && !outer.empty();
    if (!nested) outer = value.empty() ? key : "";
    (*section)[nested ? outer + "." + key : key] = value;
  }
  return file;
}

std::string Profile::get(const std::string& key) const {
  const auto found = values.find(key);
  return found == values.end() ? std::string() : found->second;
}

Profile load_profile(const Variables& variables) {
  Profile profile;
  profile.name = variables("AWS_PROFILE");
  if (profile.name.empty()) profile.name = "default";
  profile.credentials_path = path_of(variables, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
  profile.config_path = path_of(variables, "AWS_CONFIG_FILE", "config");
  const IniFile config = parse_ini(read_text(profile.config_path));
  if (profile.name == "default") merge(profile.values, config, "default");
  merge(profile.values, config, "profile " + profile.name);
  merge(profile.values, parse_ini(read_text(profile.credentials_path)), profile.name);
  if (const auto services = config.find("services " + profile.get("services"));
      services != config.end()) {
    const auto found = services->second.find("s3.endpoint_url");
    if (found != services->second.end()) profile.s3_endpoint_url = found->second;
  }
  return profile;
}

}  // namespace smd::storage
