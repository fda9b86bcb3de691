#include "retort/tasks/gold.h"

#include <algorithm>

#include "retort/base/error.h"
#include "retort/chat/python_text.h"
#include "retort/io/quote.h"

namespace retort::tasks {

using base::DataError;
using base::Json;
using base::require;

std::int64_t choice_of(const Json& gold, const std::vector<std::string>& choices, const std::string& where) {
  const auto count = std::ssize(choices);
  std::int64_t index = -1;
  if (gold.is_boolean())
    index = gold.get<bool>() ? 1 : 0;
  else if (gold.is_number_integer())
    index = gold.get<std::int64_t>();
  else if (gold.is_string())
    if (const auto found = std::find(choices.begin(), choices.end(), gold.get_ref<const std::string&>());
        found != choices.end())
      index = found - choices.begin();
  require<DataError>(index >= 0 && index < count, where, ": the right answer is ", io::shown(gold),
                     ", which is none of the ", count, " choices; give its number from 0, or its text.");
  return index;
}

Gold gold_choices(const Json& target, const std::vector<std::string>& choices, const std::string& where) {
  Gold gold;
  gold.several = target.is_array();
  if (!gold.several) {
    gold.indices = {choice_of(target, choices, where)};
    return gold;
  }
  for (const Json& one : target) gold.indices.push_back(choice_of(one, choices, where));
  require<DataError>(!gold.indices.empty(), where, ": the list of right answers is empty; give it one.");
  return gold;
}

Gold gold_texts(const Json& target, const std::vector<std::string>& choices, const std::string& where) {
  Gold gold;
  if (!choices.empty()) {
    gold.texts = {choices[static_cast<std::size_t>(choice_of(target, choices, where))]};
    return gold;
  }
  gold.several = target.is_array();
  if (!gold.several) {
    gold.texts = {python_text_of(target, where)};
    return gold;
  }
  for (const Json& one : target) {
    require<DataError>(one.is_string(), where, ": a right answer is ", io::shown(one), ", expected a text.");
    gold.texts.push_back(one.get<std::string>());
  }
  require<DataError>(!gold.texts.empty(), where, ": the list of right answers is empty; give it one.");
  return gold;
}

std::string python_text_of(const Json& value, const std::string& where) {
  try {
    chat::Budget budget;
    return chat::to_text(chat::from_json(value), budget);
  } catch (const chat::TemplateFault& fault) {
    throw DataError(where + ": " + fault.reason + ".");
  }
}

}  // namespace retort::tasks
