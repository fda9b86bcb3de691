#include "retort/tasks/task_metrics.h"

#include <algorithm>
#include <optional>

#include "retort/io/quote.h"

namespace retort::tasks {
namespace {

using base::Json;
using io::YamlValue;

struct MetricTraits {
  Metric metric;
  Aggregation aggregation;  ///< lm-eval's default
  bool higher_is_better;
  std::vector<OutputType> types;  ///< that give it
  std::vector<Aggregation> others;
};

const std::vector<MetricTraits>& traits() {
  using enum OutputType;
  using A = Aggregation;
  static const std::vector<A> kOfNumbers{A::mean, A::nanmean, A::median};
  static const std::vector<MetricTraits> kTraits{
      {Metric::acc, A::mean, true, {loglikelihood, multiple_choice}, kOfNumbers},
      {Metric::acc_norm, A::mean, true, {multiple_choice}, kOfNumbers},
      {Metric::acc_bytes, A::mean, true, {multiple_choice}, kOfNumbers},
      {Metric::acc_mutual_info, A::mean, true, {multiple_choice}, kOfNumbers},
      {Metric::exact_match, A::mean, true, {multiple_choice, generate_until}, kOfNumbers},
      {Metric::perplexity, A::perplexity, false, {loglikelihood}, kOfNumbers},
      {Metric::word_perplexity, A::weighted_perplexity, false, {loglikelihood_rolling}, {A::bits_per_byte}},
      {Metric::byte_perplexity, A::weighted_perplexity, false, {loglikelihood_rolling}, {A::bits_per_byte}},
      {Metric::bits_per_byte, A::bits_per_byte, false, {loglikelihood_rolling}, {A::weighted_perplexity}},
      {Metric::f1, A::f1, true, {multiple_choice}, {}},
      {Metric::mcc, A::matthews_corrcoef, true, {multiple_choice}, {}},
      {Metric::brier_score, A::brier_score, false, {multiple_choice}, {}},
  };
  return kTraits;
}

template <typename Words>
std::string listed(const Words& words) {
  std::string text;
  for (const auto word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

template <typename Enum>
std::optional<Enum> named(std::string_view word) {
  const auto words = words_of(Enum{});
  const auto found = std::find(words.begin(), words.end(), word);
  return found == words.end() ? std::nullopt : std::optional(static_cast<Enum>(found - words.begin()));
}

MetricOptions default_of(const MetricTraits& one) {
  return {one.metric, one.aggregation, one.higher_is_better, {}};
}

void read_truth(const YamlValue& map, const char* key, bool& truth, Mistakes& mistakes) {
  const auto* value = map.find(key);
  if (value == nullptr) return;
  const Json read = resolved(*value);
  if (read.is_boolean())
    truth = read.get<bool>();
  else
    mistakes.add(*value, std::string(key) + " is " + io::shown(read) + ", expected true or false");
}

std::optional<chat::PythonRegex> read_regex(const YamlValue& value, Mistakes& mistakes) {
  if (value.kind != YamlValue::Kind::scalar) {
    mistakes.add(value, "expected a pattern");
    return std::nullopt;
  }
  try {
    return chat::PythonRegex::parse(value.text);
  } catch (const chat::RegexFault& fault) {
    mistakes.add(value, "the pattern " + io::quote(value.text) + " " + fault.reason);
    return std::nullopt;
  }
}

class MetricReader {
 public:
  MetricReader(const YamlValue& map, OutputType type, Mistakes& mistakes)
      : map_(map), type_(type), mistakes_(mistakes) {}

  std::optional<MetricOptions> run() {
    const auto* name = map_.find("metric");
    if (name == nullptr || name->kind != YamlValue::Kind::scalar) {
      mistakes_.add(map_, "an entry of metric_list has no metric; name one of " + listed(words_of(Metric{})));
      return std::nullopt;
    }
    const auto metric = named<Metric>(name->text);
    if (!metric) {
      mistakes_.add(
          *name, "Retort has no metric " + io::quote(name->text) + "; it has " + listed(words_of(Metric{})));
      return std::nullopt;
    }
    const auto& of = traits()[static_cast<std::size_t>(*metric)];
    if (std::find(of.types.begin(), of.types.end(), type_) == of.types.end())
      mistakes_.add(*name, "a task of output_type " + std::string(base::word(type_)) + " gives no " +
                               name->text + "; leave it out");
    auto options = default_of(of);
    read_keys(options, of);
    return options;
  }

 private:
  void read_keys(MetricOptions& options, const MetricTraits& of) {
    std::vector<std::string> known{"metric", "aggregation", "higher_is_better", "hf_evaluate"};
    if (options.metric != Metric::exact_match)
      known.emplace_back("weight_by_size");  // of a group of tasks; nothing in a single one
    else
      known.insert(known.end(), {"ignore_case", "ignore_punctuation", "ignore_numbers", "regexes_to_ignore"});
    require_known(map_, known, mistakes_);
    read_aggregation(options, of);
    read_truth(map_, "higher_is_better", options.higher_is_better, mistakes_);
    bool hf_evaluate = false;
    read_truth(map_, "hf_evaluate", hf_evaluate, mistakes_);
    if (hf_evaluate)
      mistakes_.add(*map_.find("hf_evaluate"),
                    "Retort has no metrics of Hugging Face's evaluate; leave it out");
    auto& exact = options.exact_match;
    read_truth(map_, "ignore_case", exact.ignore_case, mistakes_);
    read_truth(map_, "ignore_punctuation", exact.ignore_punctuation, mistakes_);
    read_truth(map_, "ignore_numbers", exact.ignore_numbers, mistakes_);
    if (const auto* regexes = map_.find("regexes_to_ignore"))
      for (const auto& item : regexes->items)
        if (auto regex = read_regex(item, mistakes_)) exact.regexes_to_ignore.push_back(*std::move(regex));
  }

  void read_aggregation(MetricOptions& options, const MetricTraits& of) {
    const auto* value = map_.find("aggregation");
    if (value == nullptr) return;
    const auto aggregation = named<Aggregation>(value->text);
    const bool fits =
        aggregation && (*aggregation == of.aggregation ||
                        std::find(of.others.begin(), of.others.end(), *aggregation) != of.others.end());
    if (fits)
      options.aggregation = *aggregation;
    else
      mistakes_.add(*value, "Retort has no aggregation " + io::quote(value->text) + " of " +
                                std::string(base::word(of.metric)) + "; write " +
                                std::string(base::word(of.aggregation)));
  }

  const YamlValue& map_;
  OutputType type_;
  Mistakes& mistakes_;
};

class FilterReader {
 public:
  FilterReader(const YamlValue& map, Mistakes& mistakes) : map_(map), mistakes_(mistakes) {}

  std::optional<FilterStep> run() {
    const auto* name = map_.find("function");
    const auto kind = name != nullptr ? named<FilterKind>(name->text) : std::nullopt;
    if (!kind) {
      mistakes_.add(name != nullptr ? *name : map_, name == nullptr
                                                        ? "a step of a filter has no function"
                                                        : "Retort has no filter " + io::quote(name->text) +
                                                              "; it has " + listed(words_of(FilterKind{})));
      return std::nullopt;
    }
    FilterStep step;
    step.kind = *kind;
    if (step.kind == FilterKind::regex)
      read_regex_step(step);
    else if (step.kind == FilterKind::map)
      read_map_step(step);
    else
      require_known(map_, {"function"}, mistakes_);
    return step;
  }

 private:
  void read_regex_step(FilterStep& step) {
    require_known(map_, {"function", "regex_pattern", "group_select", "fallback"}, mistakes_);
    if (const auto* pattern = map_.find("regex_pattern"))
      step.regex = read_regex(*pattern, mistakes_);
    else
      step.regex = chat::PythonRegex::parse(R"(#### (\-?[0-9\.\,]+))");
    if (const auto* select = map_.find("group_select")) {
      const Json number = resolved(*select);
      if (number.is_number_integer())
        step.group_select = number.get<std::int64_t>();
      else
        mistakes_.add(*select, "group_select is " + io::shown(number) + ", expected a whole number");
    }
    if (const auto* fallback = map_.find("fallback")) {
      const Json text = resolved(*fallback);
      if (text.is_string())
        step.fallback = text.get<std::string>();
      else
        mistakes_.add(*fallback, "fallback is " + io::shown(text) + ", expected a text; quote it");
    }
  }

  void read_map_step(FilterStep& step) {
    require_known(map_, {"function", "mapping_dict", "default_value"}, mistakes_);
    if (const auto* mapping = map_.find("mapping_dict"))
      for (const auto& [from, to] : mapping->entries) step.mapping.emplace_back(from, resolved(to));
    if (const auto* otherwise = map_.find("default_value")) step.default_value = resolved(*otherwise);
  }

  const YamlValue& map_;
  Mistakes& mistakes_;
};

std::optional<FilterChain> read_chain(const YamlValue& map, Mistakes& mistakes) {
  require_known(map, {"name", "filter"}, mistakes);
  const auto *name = map.find("name"), *steps = map.find("filter");
  if (name == nullptr || steps == nullptr || steps->kind != YamlValue::Kind::list) {
    mistakes.add(map, "an entry of filter_list needs a name and a list, filter");
    return std::nullopt;
  }
  FilterChain chain{name->text, {}};
  for (const auto& item : steps->items)
    if (auto step = FilterReader(item, mistakes).run()) chain.steps.push_back(*std::move(step));
  const bool takes_first = std::any_of(chain.steps.begin(), chain.steps.end(),
                                       [](const auto& step) { return step.kind == FilterKind::take_first; });
  if (!takes_first) mistakes.add(*steps, "the filter " + io::quote(chain.name) + " lacks take_first; add it");
  return chain;
}

}  // namespace

std::vector<MetricOptions> read_metrics(const YamlValue* list, OutputType type, Mistakes& mistakes) {
  std::vector<MetricOptions> metrics;
  if (list == nullptr) {
    const bool choice = type == OutputType::multiple_choice,
               rolling = type == OutputType::loglikelihood_rolling;
    const auto wanted =
        rolling  ? std::vector{Metric::word_perplexity, Metric::byte_perplexity, Metric::bits_per_byte}
        : choice ? std::vector{Metric::acc, Metric::acc_norm}
        : type == OutputType::loglikelihood ? std::vector{Metric::perplexity, Metric::acc}
                                            : std::vector{Metric::exact_match};
    for (const auto metric : wanted)
      metrics.push_back(default_of(traits()[static_cast<std::size_t>(metric)]));
    return metrics;
  }
  if (list->kind != YamlValue::Kind::list || list->items.empty())
    mistakes.add(*list, "metric_list: expected a list of metrics");
  for (const auto& item : list->items) {
    auto metric = MetricReader(item, type, mistakes).run();
    if (!metric) continue;
    const bool twice = std::any_of(metrics.begin(), metrics.end(),
                                   [&](const auto& other) { return other.metric == metric->metric; });
    if (twice) mistakes.add(item, "the metric stands twice in metric_list; keep one");
    metrics.push_back(*std::move(metric));
  }
  return metrics;
}

std::vector<FilterChain> read_filters(const YamlValue* list, Mistakes& mistakes) {
  if (list == nullptr) return {{"none", {FilterStep{}}}};
  std::vector<FilterChain> chains;
  if (list->kind != YamlValue::Kind::list || list->items.empty())
    mistakes.add(*list, "filter_list: expected a list of filters");
  for (const auto& item : list->items) {
    auto chain = read_chain(item, mistakes);
    if (!chain) continue;
    const bool twice = std::any_of(chains.begin(), chains.end(),
                                   [&](const auto& other) { return other.name == chain->name; });
    if (twice) mistakes.add(item, "two filters have the name " + io::quote(chain->name) + "; rename one");
    chains.push_back(*std::move(chain));
  }
  return chains;
}

}  // namespace retort::tasks
