#include "retort/pipeline/chat.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>

#include "retort/architecture/longest_context.h"
#include "retort/base/error.h"
#include "retort/chat/encode.h"
#include "retort/chat/template_files.h"
#include "retort/eval/memory_plan.h"
#include "retort/eval/sampling.h"
#include "retort/ops/path.h"
#include "retort/pipeline/text_model.h"
#include "retort/pipeline/torch_errors.h"
#include "retort/text/decoded_text.h"

namespace retort::pipeline {
namespace {

constexpr std::string_view kReset = "/reset", kSystem = "/system", kUnfinished = "\xEF\xBF\xBD";

// A model, and what was said with it.
class Conversation {
 public:
  Conversation(const ModelRequest& model, const ChatRequest& request, record::Observer& observer)
      : name_(model.model),
        request_(request),
        model_(model, request.text.sampling, observer),
        template_(chat::choose_template(chat::find_templates(model.model), false)),
        room_(std::min(request.context, architecture::longest_context(model_.config))),
        random_(model_.sampling.seed, base::stream_of("generation")) {
    const auto plan = eval::plan_chat(model_.config, model_.item_bytes(), room_, ops::path_of(model_.device));
    shard::require_fits(plan, available_bytes(model.available_memory, model_.device));
    weights_ = std::make_unique<eval::TextWeights>(model_.load());
    decoder_ = std::make_unique<eval::TextDecoder>(
        *weights_, eval::CacheRoom{.texts = 1, .longest_tokens = room_, .tokens = room_});
    text_so_far_.most_tokens = room_;
    base::ensure(decoder_->admit(text_so_far_), "a decoder has room for its one text");
    reset(request.system);
  }

  const std::string& name() const { return name_; }

  void reset(const std::string& system) {
    said_ = {};
    if (!system.empty()) said_.add("system", system);
  }

  void answer(const std::string& message, ChatPartner& partner) {
    said_.add("user", message);
    const auto ids =
        chat::encode_conversation(template_, model_.text.tokenizer, said_, {.add_generation_prompt = true})
            .ids;
    partner.begin(name_);
    if (std::ssize(ids) >= room_) {
      said_.messages.erase(said_.messages.size() - 1);
      return partner.end(base::join("the conversation has more than ", room_, " tokens; /reset begins anew"));
    }
    take_up(ids);
    text::DecodedText spoken(model_.text.tokenizer);
    shown_.clear();
    const std::string note = speak(spoken, partner);
    show(spoken.text(), partner);
    said_.add("assistant", spoken.text());
    partner.end(note);
  }

 private:
  // Keeps the keys and values of what is still so: all, or nothing.
  void take_up(const std::vector<std::int32_t>& ids) {
    const bool goes_on =
        std::ssize(ids) > text_so_far_.seen &&
        std::equal(text_so_far_.ids.begin(), text_so_far_.ids.begin() + text_so_far_.seen, ids.begin());
    text_so_far_.ids = ids;
    if (goes_on) return;
    decoder_->release(text_so_far_);
    base::ensure(decoder_->admit(text_so_far_), "a decoder has room for its one text");
  }

  // Why the answer ended early.
  std::string speak(text::DecodedText& spoken, ChatPartner& partner) {
    for (std::int64_t made = 0; made < request_.text.max_new_tokens; ++made) {
      if (std::ssize(text_so_far_.ids) >= room_) return base::join("the conversation has ", room_, " tokens");
      eval::GrowingText* const one[] = {&text_so_far_};
      const auto logits_NV = decoder_->pass(one);
      const std::span<const float> logits_V(logits_NV.const_data_ptr<float>(),
                                            static_cast<std::size_t>(logits_NV.size(1)));
      const auto id =
          eval::next_id(logits_V, text_so_far_.ids, model_.sampling, model_.ids_without_token, random_);
      text_so_far_.ids.push_back(id);
      if (std::ranges::find(model_.stop_ids, id) != model_.stop_ids.end()) return "";
      spoken.add(id);
      // What ends within a character waits.
      if (!spoken.text().ends_with(kUnfinished)) show(spoken.text(), partner);
      if (partner.stops()) return "stopped";
    }
    return base::join("more than ", request_.text.max_new_tokens, " tokens; --max-new-tokens allows more");
  }

  // What is new.
  void show(std::string_view all, ChatPartner& partner) {
    if (!all.starts_with(shown_)) return;
    partner.say(all.substr(shown_.size()));
    shown_ += all.substr(shown_.size());
  }

  std::string name_;
  const ChatRequest& request_;
  TextModel model_;
  chat::ChatTemplate template_;
  std::int64_t room_;
  base::Random random_;
  std::unique_ptr<eval::TextWeights> weights_;
  std::unique_ptr<eval::TextDecoder> decoder_;
  eval::GrowingText text_so_far_;
  chat::Conversation said_;
  std::string shown_;
};

std::string after_command(const std::string& message, std::string_view command) {
  const auto begin = message.find_first_not_of(' ', command.size());
  return begin == std::string::npos ? "" : message.substr(begin);
}

void converse(const ChatRequest& request, ChatPartner& partner, record::Observer& observer) {
  std::vector<std::unique_ptr<Conversation>> conversations;
  for (const auto& model : request.models)
    conversations.push_back(std::make_unique<Conversation>(model, request, observer));
  auto system = request.system;
  while (const auto message = partner.ask()) {
    const bool resets = *message == kReset, replaces = message->starts_with(kSystem);
    if (replaces) system = after_command(*message, kSystem);
    for (const auto& conversation : conversations)
      if (resets || replaces)
        conversation->reset(system);
      else
        conversation->answer(*message, partner);
  }
}

}  // namespace

void chat(const ChatRequest& request, ChatPartner& partner, record::Observer& observer) {
  translate_torch_errors([&] { converse(request, partner, observer); });
}

}  // namespace retort::pipeline
