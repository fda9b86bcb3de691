// The scores as aligned text for the terminal.
#include <algorithm>

#include "retort/report/differences.h"
#include "retort/report/fields.h"
#include "retort/report/html.h"
#include "retort/report/numbers.h"
#include "retort/report/report.h"
#include "retort/report/task_scores.h"

namespace retort::report {
namespace {

using base::Json;

constexpr std::size_t kMaxColumns = 110;
constexpr std::size_t kGap = 2;
using Rows = std::vector<std::vector<std::string>>;  // the first holds the titles
const std::vector<std::string> kHeader = {"model", "perplexity", "recovery", "parameters", "KL",
                                          "top-1", "bits/byte",  "non-zero", "file",       "tokens/s"};
const std::vector<std::string> kSecondHeader = {"model",         "documents", "NLL - teacher's",
                                                "95 % interval", "ECE",       "confidence - accuracy"};

/// Terminal cells, one per code point; wide scripts in a model's name only cost alignment.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string cut(const std::string& text, std::size_t columns) {
  if (width(text) <= columns) return text;
  std::size_t seen = 0, end = 0;
  for (; end < text.size(); ++end)
    if ((text[end] & 0xC0) != 0x80 && ++seen == columns) break;
  return text.substr(0, end) + "\u2026";
}

/// The end of a name tells models of one run apart.
std::string cut_front(const std::string& text, std::size_t columns) {
  auto left = width(text);
  if (left <= columns) return text;
  std::size_t begin = 0;
  for (; begin < text.size(); ++begin)
    if ((text[begin] & 0xC0) != 0x80 && left-- < columns) break;
  return "\u2026" + text.substr(begin);
}

/// One line, nothing that a terminal obeys.
std::string one_line(const std::string& text) {
  std::string line = clean_text(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return line;
}

std::string plain_name(const Json& model) {
  return one_line(label_of(model));
}

std::string share(const Json& model) {
  const auto all = number(model, keys::kParameters), nonzero = number(model, keys::kNonzeroParameters);
  return all && nonzero && *all > 0 ? percent(*nonzero / *all, 0) : kMissing;
}

std::vector<std::string> cells_of(const Json& model) {
  const Json& mean = field(model, keys::kMean);
  return {plain_name(model),
          fixed(number(mean, keys::kPerplexity), 2),
          percent(number(mean, keys::kRecovery)),
          count(number(model, keys::kParameters)),
          fixed(number(mean, keys::kKl), 4),
          percent(number(mean, keys::kTop1Agreement)),
          fixed(number(mean, keys::kBitsPerByte), 3),
          share(model),
          bytes(number(model, keys::kFileBytes)),
          significant(number(model, keys::kTokensPerSecond))};
}

std::vector<std::string> second_cells_of(const Json& model, bool is_teacher) {
  const Difference difference = nll_difference(model, is_teacher);
  const Json& mean = field(model, keys::kMean);
  return {plain_name(model),
          count(documents(model)),
          difference.value,
          difference.interval,
          fixed(number(mean, keys::kEce), 4),
          signed_fixed(number(mean, keys::kConfidenceGap), 4)};
}

std::string line_of(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) {
  std::string line = cells[0] + std::string(widths[0] - width(cells[0]), ' ');
  for (std::size_t i = 1; i < cells.size(); ++i)
    line += std::string(kGap + widths[i] - width(cells[i]), ' ') + cells[i];
  return line + "\n";
}

std::string aligned(Rows rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  std::size_t numbers = 0;
  for (std::size_t i = 1; i < widths.size(); ++i) numbers += kGap + widths[i];
  const std::size_t room = numbers + 8 < kMaxColumns ? kMaxColumns - numbers : 8;
  widths[0] = std::min(widths[0], room);
  std::string table;
  for (auto& row : rows) {
    row[0] = cut_front(row[0], widths[0]);
    table += line_of(row, widths);
    if (&row == &rows.front()) table += std::string(widths[0] + numbers, '-') + "\n";
  }
  return table;
}

const std::vector<std::string> kTaskHeader = {"model", "task",     "metric",       "shots", "score",
                                              "+-",    "recovery", "above chance", "p"};

std::vector<std::string> task_cells_of(const Json& model, const TaskScore& score) {
  const auto shots = number(entry(entry(field(model, keys::kTasks), "n-shot"), score.task));
  return {plain_name(model),
          one_line(score.task),
          one_line(score.filter == "none" ? score.metric : score.metric + "," + score.filter),
          fixed(shots, 0),
          value_of(score),
          error_of(score),
          ratio_of(score, "recovery"),
          ratio_of(score, "recovery_above_chance"),
          p_value_of(score)};
}

constexpr const char* kTaskLegend =
    "+-: standard error; recovery: share of the teacher's accuracy, above chance: of what it has above\n"
    "guessing, with 95 % intervals of a paired bootstrap over documents; p: McNemar's exact test\n";

constexpr const char* kSecondLegend =
    "NLL in nats/token on the same documents, drawn anew for the interval; ECE: expected calibration error\n"
    "where a few documents lose far more than the others, up to 2 of 10 intervals end below the truth\n";

std::string legend(const Json& result) {
  const std::string teacher = clean_text(text(result, keys::kTeacher));
  std::string line = "means over sources";
  if (const auto context = number(result, keys::kContext)) line += ", context " + fixed(context, 0);
  if (!teacher.empty())
    line += "; KL (nats/token), top-1 and recovery (perplexity) against " + cut_front(teacher, 20);
  return line + "\n";
}

// The prompt, and what the model made of it.  Of a long prompt the end is shown, so that there is room for
// the answer: the form of a chat is mostly prompt.
std::string prompt_and_answer(const Json& generation, std::size_t columns) {
  const auto prompt = one_line(text(generation, keys::kPrompt)),
             all = generation.contains(std::string(keys::kMessages))
                       ? prompt + " \u2192 " + one_line(text(generation, keys::kText))
                       : one_line(text(generation, keys::kText));
  if (width(all) <= columns || !all.starts_with(prompt)) return cut(all, columns);
  const auto answer = all.substr(prompt.size());
  const auto beside = columns - std::min(columns, width(answer));
  return cut(cut_front(prompt, std::max(columns / 3, beside)) + answer, columns);
}

}  // namespace

std::string scores_table(const Json& evaluate_result) {
  Rows rows = {kHeader}, second = {kSecondHeader};
  const std::string teacher = text(evaluate_result, keys::kTeacher);
  for (const Json& model : elements(field(evaluate_result, keys::kModels))) {
    rows.push_back(cells_of(model));
    if (documents(model)) second.push_back(second_cells_of(model, text(model, keys::kName) == teacher));
  }
  if (rows.size() == 1) return "no models were evaluated\n";
  std::string table = aligned(std::move(rows)) + legend(evaluate_result);
  for (const auto& note : dequantised_notes(evaluate_result))
    table += cut(cut_front(one_line(note.model), kMaxColumns / 4) + ": " + one_line(note.text), kMaxColumns) +
             "\n";
  if (second.size() > 1) table.append("\n").append(aligned(std::move(second))).append(kSecondLegend);
  return table;
}

std::string tasks_table(const Json& evaluate_result) {
  Rows rows = {kTaskHeader};
  bool compared = false;
  for (const Json& model : elements(field(evaluate_result, keys::kModels)))
    for (const auto& score : task_scores(model)) {
      rows.push_back(task_cells_of(model, score));
      compared = compared || score.comparison;
    }
  if (rows.size() == 1) return {};
  if (!compared)
    for (auto& row : rows) row.resize(6);
  return "\n" + aligned(std::move(rows)) + (compared ? kTaskLegend : "+-: standard error\n");
}

std::string generated_texts(const Json& evaluate_result) {
  std::string lines;
  for (const Json& model : elements(field(evaluate_result, keys::kModels)))
    for (const Json& generation : elements(field(model, keys::kGenerations)))
      if (!text(generation, keys::kText).empty()) {
        const auto name = cut_front(plain_name(model), kMaxColumns / 3) + ": ";
        lines += name + prompt_and_answer(generation, kMaxColumns - width(name)) + "\n";
      }
  return lines;
}

}  // namespace retort::report
