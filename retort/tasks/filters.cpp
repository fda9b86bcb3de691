#include "retort/tasks/filters.h"

#include "retort/base/error.h"
#include "retort/chat/code_points.h"
#include "retort/chat/template_limits.h"
#include "retort/io/quote.h"

namespace retort::tasks {
namespace {

using base::DataError;
using base::Json;
using base::require;

std::string stripped(std::string_view text) {
  return std::string(chat::strip(text, nullptr, chat::Ends::both));
}

// The chosen match as re.findall has it: the group where there is one, and of several the first not empty.
std::string first_group(const chat::PythonRegex& regex, const chat::PythonRegex::Match& match,
                        const std::string& text, const std::string& fallback) {
  const auto part = [&](std::size_t group) {
    return match[group] ? text.substr(match[group]->first, match[group]->second - match[group]->first)
                        : std::string();
  };
  if (regex.num_groups() == 0) return part(0);
  if (regex.num_groups() == 1) return part(1);
  for (std::size_t group = 1; group <= regex.num_groups(); ++group)
    if (auto found = part(group); !found.empty()) return found;
  return fallback;
}

std::string by_regex(const FilterStep& step, const std::string& text, const std::string& where) {
  std::vector<chat::PythonRegex::Match> matches;
  try {
    matches = step.regex->find_all(text);
  } catch (const chat::RegexFault& fault) {
    throw DataError(
        base::join(where, ": the pattern ", io::quote(step.regex->pattern()), " ", fault.reason, "."));
  }
  if (matches.empty()) return step.fallback;
  const auto count = static_cast<std::int64_t>(matches.size());
  const auto at = step.group_select < 0 ? step.group_select + count : step.group_select;
  require<DataError>(at >= 0 && at < count, where, ": group_select ", step.group_select, " of ", count,
                     " matches of ", io::quote(step.regex->pattern()), " does not exist; choose 0 or -1.");
  return stripped(first_group(*step.regex, matches[static_cast<std::size_t>(at)], text, step.fallback));
}

Json mapped(const FilterStep& step, const std::string& text) {
  for (const auto& [from, to] : step.mapping)
    if (from == text) return to;
  return step.default_value;
}

std::string in_case(FilterKind kind, const std::string& text, const std::string& where) {
  try {
    return kind == FilterKind::lowercase ? chat::to_lower(text) : chat::to_upper(text);
  } catch (const chat::TemplateFault& fault) {
    throw DataError(where + ": " + fault.reason + ".");
  }
}

}  // namespace

Json filtered(const FilterChain& chain, const std::string& text, const std::string& where) {
  Json answer = text;
  for (const FilterStep& step : chain.steps) {
    if (step.kind == FilterKind::take_first) continue;                       // there is one answer
    if (!answer.is_string() && step.kind == FilterKind::regex) answer = "";  // as RegexFilter
    require<DataError>(answer.is_string(), where, ": the filter ", io::quote(chain.name), " makes ",
                       io::shown(answer), " of an answer, which ", base::word(step.kind), " does not take.");
    const auto& now = answer.get_ref<const std::string&>();
    switch (step.kind) {
      case FilterKind::regex:
        answer = by_regex(step, now, where);
        break;
      case FilterKind::remove_whitespace:
        answer = stripped(now);
        break;
      case FilterKind::lowercase:
      case FilterKind::uppercase:
        answer = in_case(step.kind, now, where);
        break;
      case FilterKind::map:
        answer = mapped(step, now);
        break;
      case FilterKind::take_first:
        break;
    }
  }
  return answer;
}

}  // namespace retort::tasks
