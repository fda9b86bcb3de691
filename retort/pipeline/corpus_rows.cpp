#include "retort/pipeline/corpus_rows.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <utility>

#include "retort/architecture/longest_context.h"
#include "retort/base/error.h"
#include "retort/base/index.h"
#include "retort/chat/encode.h"
#include "retort/chat/template_files.h"
#include "retort/eval/memory_plan.h"
#include "retort/eval/repetition.h"
#include "retort/eval/sampling.h"
#include "retort/ops/path.h"
#include "retort/pipeline/corpus_inputs.h"
#include "retort/pipeline/stop_texts.h"
#include "retort/record/keys.h"

namespace retort::pipeline {
namespace {

namespace keys = record::keys;
using base::to_size;

constexpr std::string_view kWhite = " \t\r\n", kNoText = "\xEF\xBF\xBD";
// Of 4-grams that stand earlier in a text: what is above says too often the same.
constexpr double kMostRepeated = 0.3;
constexpr std::size_t kRepeatedGram = 4;

std::string trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(kWhite);
  if (begin == text.npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(kWhite) + 1 - begin));
}

std::tm noon_of(const std::string& date) {
  std::tm day{};
  if (std::sscanf(date.c_str(), "%d-%d-%d", &day.tm_year, &day.tm_mon, &day.tm_mday) != 3) return day;
  day.tm_year -= 1900;
  day.tm_mon -= 1;
  day.tm_hour = 12;
  day.tm_isdst = -1;
  std::mktime(&day);  // the day of the week
  return day;
}

// Ends texts that fell into a loop: what follows would be dropped.
class LoopWatch {
 public:
  bool ends(std::size_t prompt, std::int32_t id) {
    constexpr std::size_t kLook = 16;
    auto& ids = ids_[prompt];
    ids.push_back(id);
    return ids.size() % kLook == 0 && eval::ends_in_loop(ids);
  }
  void forget(std::size_t prompt) { ids_.erase(prompt); }

 private:
  std::map<std::size_t, std::vector<std::int32_t>> ids_;
};

bool is_repetitive(std::span<const std::int32_t> ids) {
  return eval::ends_in_loop(ids) || eval::repeated_share(ids, kRepeatedGram) > kMostRepeated;
}

// What a text came to; `ids` without the one that ended it.
struct Made {
  std::span<const std::int32_t> ids;
  bool ended = false, looped = false;
};

Made made_of(const eval::Generation& generation) {
  Made made{.ids = std::span(generation.ids).subspan(to_size(generation.prompt_tokens)),
            .ended = generation.reason == eval::StopReason::end_of_text,
            .looped = false};
  if (made.ended) made.ids = made.ids.first(made.ids.size() - 1);
  made.looped = is_repetitive(made.ids);
  return made;
}

Fate fate_of(const Made& made, const std::string& text, bool needs_end) {
  if (made.looped) return Fate::repetitive;
  if (needs_end && !made.ended) return Fate::unended;
  if (text.empty()) return Fate::empty;
  return text.find(kNoText) == std::string::npos ? Fate::kept : Fate::broken;
}

CorpusRow dropped(std::int64_t number, Fate fate) {
  return {.number = number, .fate = fate, .tokens = 0, .line = {}};
}

std::uint64_t random_number(std::int64_t row, bool of_answer) {
  return 2 * static_cast<std::uint64_t>(row) + (of_answer ? 1 : 0);
}

}  // namespace

void check(const data::GeneratedText& asked) {
  const auto require = [](bool good, const auto&... parts) {
    base::require<base::UsageError>(good, "generate: ", parts...);
  };
  const bool counted = asked.tokens > 0 || (asked.chat && !asked.asks_itself() && asked.tokens == 0);
  require(counted, "expected a number of tokens to keep above 0, found ", asked.tokens,
          "; give one, such as 1M.");
  require(asked.chat || asked.questions == data::GeneratedText::kSelf,
          "questions are asked in a conversation; ask for chats, or leave the questions out.");
  require(!asked.chat || asked.starts.empty(),
          "beginnings are of documents, not of chats; leave out one of the two.");
  const bool one_text = asked.asks_itself() ? asked.question_temperature == 0
                                            : !asked.chat && asked.starts.empty() && asked.temperature == 0;
  require(!one_text, "at temperature 0 every text would be the same; take one above 0, such as 1.");
}

CorpusRows::CorpusRows(const TextModel& model, const data::GeneratedText& asked, const std::string& date)
    : model_(model), options_(asked) {
  check(asked);
  eval::check(answer_options().sampling);
  eval::check(question_options().sampling);
  rendering_.now = noon_of(date);
  if (options_.chat) {
    const auto sources = chat::find_templates(model_.path);
    base::require<base::ModelError>(
        !sources.named.empty(), model_.path.string(),
        ": expected a chat template, found none; ask for documents instead of chats, or put the template "
        "into chat_template.jinja beside the model's tokenizer.");
    template_ = chat::choose_template(sources, false);
  }
  read_inputs();
}

void CorpusRows::read_inputs() {
  const auto context = architecture::longest_context(model_.config);
  if (options_.asks_itself()) {
    turn_ = chat::user_turn(*template_, model_.text.tokenizer, rendering_);
    chat::Conversation shortest;
    shortest.add("user", "?");
    longest_prompt_ = std::ssize(ids_of(shortest)) + options_.max_question_tokens;
  } else if (options_.chat) {
    questions_ = read_questions(options_.questions);
    for (const auto& question : questions_)
      longest_prompt_ = std::max(longest_prompt_, std::ssize(ids_of(question)));
  } else {
    base::require<base::UsageError>(!options_.starts.empty() || model_.text.special.bos >= 0,
                                    model_.path.string(),
                                    ": expected a model with a begin-of-text token, from which it writes a "
                                    "document, found none; give a file of beginnings, or ask for chats.");
    if (!options_.starts.empty()) starts_ = read_starts(options_.starts);
    longest_prompt_ = 1 + (starts_.empty() ? 0 : options_.start_tokens);
  }
  longest_prompt_ = std::min(longest_prompt_, context - 1);
}

std::optional<std::int64_t> CorpusRows::count() const {
  if (!questions_.empty()) return std::ssize(questions_);
  if (!starts_.empty() && options_.temperature == 0) return std::ssize(starts_);
  return {};
}

eval::TextsOptions CorpusRows::answer_options() const {
  return {.sampling = {.temperature = options_.temperature,
                       .top_k = options_.top_k,
                       .top_p = options_.top_p,
                       .min_p = options_.min_p,
                       .repetition_penalty = 1,
                       .seed = options_.seed},
          .max_new_tokens = options_.max_new_tokens,
          .texts_at_once = options_.batch,
          .stop_ids = model_.stop_ids,
          .ids_without_token = model_.ids_without_token};
}

eval::TextsOptions CorpusRows::question_options() const {
  auto options = answer_options();
  options.sampling.temperature = options_.question_temperature;
  options.sampling.top_p = options_.question_top_p;
  options.sampling.top_k = 0;
  options.sampling.min_p = 0;
  options.max_new_tokens = options_.max_question_tokens;
  options.stop_ids.insert(options.stop_ids.end(), turn_.end_ids.begin(), turn_.end_ids.end());
  return options;
}

std::vector<std::int32_t> CorpusRows::ids_of(const chat::Conversation& conversation) const {
  auto rendering = rendering_;
  rendering.add_generation_prompt = true;
  return chat::encode_conversation(*template_, model_.text.tokenizer, conversation, rendering).ids;
}

shard::MemoryPlan CorpusRows::plan(std::int64_t available_bytes) const {
  const auto planned = [&](std::int64_t prompt_tokens, const eval::TextsOptions& options) {
    const std::vector<eval::Prompt> prompts(to_size(options.texts_at_once),
                                            {std::vector<std::int32_t>(to_size(prompt_tokens)), 0});
    return eval::plan_texts_within(available_bytes, model_.config, model_.item_bytes(), prompts, options,
                                   ops::path_of(model_.device), eval::WeightsFrom::file);
  };
  auto plan = planned(longest_prompt_, answer_options());
  if (!options_.asks_itself()) return plan;
  auto asking = planned(std::ssize(turn_.before), question_options());
  return asking.total_bytes() > plan.total_bytes() ? asking : plan;
}

void CorpusRows::make(eval::TextWeights& weights, std::span<const std::int64_t> numbers,
                      const Listener& listener) {
  if (!options_.chat) return make_documents(weights, numbers, listener);
  make_conversations(weights,
                     options_.asks_itself() ? questions_by_model(weights, numbers, listener)
                                            : questions_of_file(numbers, listener),
                     listener);
}

std::vector<CorpusRows::Asked> CorpusRows::questions_of_file(std::span<const std::int64_t> numbers,
                                                             const Listener& listener) const {
  std::vector<Asked> all;
  for (const auto number : numbers) {
    const auto& question = questions_.at(to_size(number));
    auto ids = ids_of(question);
    if (std::ssize(ids) > longest_prompt_)
      listener.done(dropped(number, Fate::too_long));
    else
      all.push_back({number, question, std::move(ids)});
  }
  return all;
}

std::vector<CorpusRows::Asked> CorpusRows::questions_by_model(eval::TextWeights& weights,
                                                              std::span<const std::int64_t> numbers,
                                                              const Listener& listener) const {
  std::vector<eval::Prompt> prompts;
  for (const auto number : numbers) prompts.push_back({turn_.before, random_number(number, false)});
  const std::vector<std::string> stops(turn_.end.empty() ? 0 : 1, turn_.end);
  std::vector<Asked> all;
  eval::TextsListener made;
  made.token = [&](std::size_t) { listener.token(); };
  made.done = [&](std::size_t prompt, const eval::Generation& generation) {
    const auto number = numbers[prompt];
    auto text = made_of(generation);
    const bool stopped = generation.reason == eval::StopReason::asked;
    text.ended = text.ended || stopped;
    auto question = model_.text.tokenizer.decode(text.ids);
    if (stopped) question = question.substr(0, question.find(turn_.end));
    question = trimmed(question);
    const auto fate = fate_of(text, question, true);
    if (fate != Fate::kept) return listener.done(dropped(number, fate));
    Asked asked{.number = number};
    asked.conversation.add("user", question);
    asked.ids = ids_of(asked.conversation);
    if (std::ssize(asked.ids) > longest_prompt_) return listener.done(dropped(number, Fate::too_long));
    all.push_back(std::move(asked));
  };
  StopTexts ends(model_.text.tokenizer, stops);
  ends.end_texts_of(made);
  eval::generate_texts(weights, prompts, question_options(), made);
  std::ranges::sort(all, {}, &Asked::number);
  return all;
}

CorpusRow CorpusRows::conversation_row(const Asked& asked, const eval::Generation& generation) const {
  const auto made = made_of(generation);
  const auto answer = trimmed(model_.text.tokenizer.decode(made.ids));
  const auto fate = fate_of(made, answer, true);
  if (fate != Fate::kept) return dropped(asked.number, fate);
  auto conversation = asked.conversation;
  conversation.add("assistant", answer);
  const auto text = template_->render(conversation, rendering_).text;
  const auto tokens = std::ssize(model_.text.tokenizer.encode(text, false));
  return {.number = asked.number,
          .fate = fate,
          .tokens = tokens,
          .line = {{keys::kMessages, conversation.messages}, {keys::kText, text}}};
}

// What is made in a loop ends early.
void CorpusRows::make_rows(eval::TextWeights& weights, const std::vector<eval::Prompt>& prompts,
                           const Listener& listener, const RowOf& row_of) const {
  LoopWatch loops;
  const eval::TextsListener made{
      .token = [&](std::size_t) { listener.token(); },
      .ends = [&](std::size_t prompt, std::int32_t id) { return loops.ends(prompt, id); },
      .done =
          [&](std::size_t prompt, const eval::Generation& generation) {
            loops.forget(prompt);
            listener.done(row_of(prompt, generation));
          }};
  eval::generate_texts(weights, prompts, answer_options(), made);
}

void CorpusRows::make_conversations(eval::TextWeights& weights, const std::vector<Asked>& asked,
                                    const Listener& listener) const {
  std::vector<eval::Prompt> prompts;
  for (const auto& one : asked) prompts.push_back({one.ids, random_number(one.number, true)});
  make_rows(weights, prompts, listener, [&](std::size_t prompt, const eval::Generation& generation) {
    return conversation_row(asked[prompt], generation);
  });
}

std::vector<std::int32_t> CorpusRows::ids_of_start(std::int64_t number) const {
  std::vector<std::int32_t> ids;
  if (!starts_.empty()) {
    ids = model_.text.tokenizer.encode(starts_[to_size(number) % starts_.size()], false);
    ids.resize(std::min(ids.size(), to_size(longest_prompt_ - 1)));
  }
  const auto bos = model_.text.special.bos;
  if (bos >= 0 && (ids.empty() || ids.front() != bos)) ids.insert(ids.begin(), bos);
  return ids;
}

CorpusRow CorpusRows::document_row(std::int64_t number, const eval::Generation& generation) const {
  const auto made = made_of(generation);
  auto ids = generation.ids;
  if (made.ended) ids.pop_back();
  auto text = model_.text.tokenizer.decode(ids);
  // A document that came to its limit ends there, but for a character that is not whole.
  while (!made.ended && text.ends_with(kNoText)) text.resize(text.size() - kNoText.size());
  const auto fate = fate_of(made, trimmed(text), false);
  if (fate != Fate::kept) return dropped(number, fate);
  const auto tokens = std::ssize(model_.text.tokenizer.encode(text, false));
  return {.number = number, .fate = fate, .tokens = tokens, .line = {{keys::kText, text}}};
}

void CorpusRows::make_documents(eval::TextWeights& weights, std::span<const std::int64_t> numbers,
                                const Listener& listener) const {
  std::vector<eval::Prompt> prompts;
  for (const auto number : numbers) prompts.push_back({ids_of_start(number), random_number(number, true)});
  make_rows(weights, prompts, listener, [&](std::size_t prompt, const eval::Generation& generation) {
    return document_row(numbers[prompt], generation);
  });
}

}  // namespace retort::pipeline
