#include "retort/pipeline/chat.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>

#include "retort/architecture/longest_context.h"
#include "retort/base/error.h"
#include "retort/chat/encode.h"
#include "retort/chat/template_files.h"
#include "retort/eval/generation_config.h"
#include "retort/eval/memory_plan.h"
#include "retort/eval/sampling.h"
#include "retort/model/dtype.h"
#include "retort/model/weights.h"
#include "retort/ops/path.h"
#include "retort/ops/tensor_allocator.h"
#include "retort/pipeline/context.h"
#include "retort/pipeline/float32_products.h"
#include "retort/pipeline/inspect_model.h"
#include "retort/pipeline/sampling.h"
#include "retort/pipeline/torch_errors.h"

namespace retort::pipeline {
namespace {

constexpr std::string_view kReset = "/reset", kSystem = "/system", kUnfinished = "\xEF\xBF\xBD";

// A model, and what was said with it.
class Conversation {
 public:
  Conversation(const ModelRequest& model, const ChatRequest& request, record::Observer& observer)
      : name_(model.model),
        request_(request),
        config_(inspect_model(model.model, observer)),
        text_(read_model_text(model.model, config_)),
        template_(chat::choose_template(chat::find_templates(model.model), false)),
        sampling_(sampling_of(request.text.sampling, model.model)),
        stop_ids_(eval::end_of_text_ids(model.model, config_)),
        no_token_(text_.ids_without_token(config_.vocab_size)),
        room_(std::min(request.context, architecture::longest_context(config_))),
        random_(sampling_.seed, base::stream_of("generation")) {
    const auto device = model::parse_device(model.device);
    const auto dtype = model::parse_scoring_dtype(model.dtype, device);
    const auto plan = eval::plan_chat(config_, static_cast<std::int64_t>(at::elementSize(dtype)), room_,
                                      ops::path_of(device));
    shard::require_fits(plan, available_bytes(model.available_memory, device));
    weights_ = std::make_unique<eval::TextWeights>(model::open_weights(model.model), dtype, device);
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
        chat::encode_conversation(template_, text_.tokenizer, said_, {.add_generation_prompt = true}).ids;
    partner.begin(name_);
    if (std::ssize(ids) >= room_) {
      said_.messages.erase(said_.messages.size() - 1);
      return partner.end(base::join("the conversation has more than ", room_, " tokens; /reset begins anew"));
    }
    take_up(ids);
    answer_.clear();
    shown_.clear();
    const std::string note = speak(partner);
    show_rest(partner);
    said_.add("assistant", spoken());
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
  std::string speak(ChatPartner& partner) {
    for (std::int64_t made = 0; made < request_.text.max_new_tokens; ++made) {
      if (std::ssize(text_so_far_.ids) >= room_) return base::join("the conversation has ", room_, " tokens");
      eval::GrowingText* const one[] = {&text_so_far_};
      const auto logits_NV = decoder_->pass(one);
      const std::span<const float> logits_V(logits_NV.const_data_ptr<float>(),
                                            static_cast<std::size_t>(logits_NV.size(1)));
      const auto id = eval::next_id(logits_V, text_so_far_.ids, sampling_, no_token_, random_);
      text_so_far_.ids.push_back(id);
      if (std::ranges::find(stop_ids_, id) != stop_ids_.end()) return "";
      answer_.push_back(id);
      show(partner);
      if (partner.stops()) return "stopped";
    }
    return base::join("more than ", request_.text.max_new_tokens, " tokens; --max-new-tokens allows more");
  }

  std::string spoken() const { return text_.tokenizer.decode(answer_); }

  // Whole characters that are new: what ends within a character waits.
  void show(ChatPartner& partner) {
    const auto all = spoken();
    if (all.ends_with(kUnfinished) || !all.starts_with(shown_)) return;
    partner.say(std::string_view(all).substr(shown_.size()));
    shown_ = all;
  }

  void show_rest(ChatPartner& partner) {
    const auto all = spoken();
    if (all.starts_with(shown_)) partner.say(std::string_view(all).substr(shown_.size()));
  }

  std::string name_;
  const ChatRequest& request_;
  architecture::Config config_;
  ModelText text_;
  chat::ChatTemplate template_;
  eval::Sampling sampling_;
  std::vector<std::int32_t> stop_ids_, no_token_;
  std::int64_t room_;
  base::Random random_;
  std::unique_ptr<eval::TextWeights> weights_;
  std::unique_ptr<eval::TextDecoder> decoder_;
  eval::GrowingText text_so_far_;
  chat::Conversation said_;
  std::vector<std::int32_t> answer_;
  std::string shown_;
};

std::string after_command(const std::string& message, std::string_view command) {
  const auto begin = message.find_first_not_of(' ', command.size());
  return begin == std::string::npos ? "" : message.substr(begin);
}

void converse(const ChatRequest& request, ChatPartner& partner, record::Observer& observer) {
  ops::install_tensor_allocator();
  std::vector<std::unique_ptr<Conversation>> conversations;
  for (const auto& model : request.models) {
    settle_float32_products(model::parse_device(model.device), observer);
    conversations.push_back(std::make_unique<Conversation>(model, request, observer));
  }
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
