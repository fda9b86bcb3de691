#include "retort/train/written_texts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "retort/base/bytes.h"
#include "retort/base/error.h"
#include "retort/base/index.h"
#include "retort/base/machine.h"
#include "retort/base/random.h"
#include "retort/comm/lead.h"
#include "retort/comm/share.h"

namespace retort::train {
namespace {

using base::to_size;
using Ids = std::vector<std::int32_t>;

// Documents of a packed sequence of prompts: few are cut by its end.
constexpr std::int64_t kPromptsOfSequence = 16;
// Sequences without a prompt in a row, after which none is expected.
constexpr int kMostBarren = 1000;

std::int64_t written_up_to(double share, std::int64_t sequences, std::int64_t step) {
  constexpr double kRounding = 1e-9;  // of shares such as 0.1
  return static_cast<std::int64_t>(
      std::floor(share * static_cast<double>(sequences) * static_cast<double>(step) + kRounding));
}

std::string bytes_of(const std::vector<eval::Generation>& texts) {
  std::string bytes;
  for (const auto& text : texts) {
    base::put_bytes(bytes, text.ids);
    base::put_bytes(bytes, text.prompt_tokens);
    base::put_bytes(bytes, text.reason);
  }
  return bytes;
}

void take_texts(const std::string& bytes, std::vector<eval::Generation>& texts) {
  for (base::ByteReader reader(bytes); !reader.at_end();) {
    auto& text = texts.emplace_back();
    reader.get(text.ids);
    reader.get(text.prompt_tokens);
    reader.get(text.reason);
  }
}

std::string bytes_of(const std::vector<Ids>& lists) {
  std::string bytes;
  for (const auto& ids : lists) base::put_bytes(bytes, ids);
  return bytes;
}

std::vector<Ids> lists_of(const std::string& bytes) {
  std::vector<Ids> lists;
  for (base::ByteReader reader(bytes); !reader.at_end();) reader.get(lists.emplace_back());
  return lists;
}

// The members of WrittenCounts by their names in files.
template <typename Counts, typename Act>
void for_each_count(Counts& counts, const Act& act) {
  act("texts", counts.texts);
  act("tokens", counts.tokens);
  act("ended", counts.ended);
  act("ended_at_once", counts.ended_at_once);
  act("repeating", counts.repeating);
  act("too_long_prompts", counts.too_long_prompts);
  act("seconds", counts.seconds);
}

}  // namespace

std::int64_t written_sequences(const OnPolicyOptions& options, std::int64_t sequences, std::int64_t step) {
  return written_up_to(options.share, sequences, step) - written_up_to(options.share, sequences, step - 1);
}

std::int64_t texts_of_sequence(const OnPolicyOptions& options, std::int64_t sequence_length) {
  // The last token of a text is no input.
  return sequence_length / (options.prompt_tokens + options.max_new_tokens - 1);
}

void check_on_policy(const std::string& stage, const TrainOptions& options,
                     const std::vector<loss::LossOptions>& losses) {
  const auto& written = options.on_policy;
  if (written.share <= 0) return;
  const auto tokens = written.prompt_tokens + written.max_new_tokens - 1;
  base::require<base::UsageError>(tokens <= options.packing.sequence_length, "stage '", stage,
                                  "': on_policy: expected a prompt and what is written after it to fit in "
                                  "packing.sequence_length, found ",
                                  written.prompt_tokens, " + ", written.max_new_tokens, " - 1 tokens and ",
                                  options.packing.sequence_length,
                                  "; lower prompt_tokens or max_new_tokens.");
  base::require<base::UsageError>(
      !loss::losses_on_written_text(losses).empty(), "stage '", stage,
      "': on_policy: expected a loss that compares distributions (kl_divergence, jensen_shannon or "
      "total_variation), found none, and the others do not count on what the student writes; add one to "
      "loss.");
}

data::PackingOptions packing_of_prompts(const TrainOptions& options) {
  auto packing = options.packing;
  packing.sequence_length = kPromptsOfSequence * options.on_policy.prompt_tokens;
  packing.eos = false;
  packing.attend_across_documents = false;
  packing.shuffle_sequences = 1;
  return packing;
}

data::Encode beginnings(data::Encode encode, std::int64_t tokens) {
  encode.text = [text_ids = std::move(encode.text), most = to_size(tokens)](std::string_view text) {
    auto ids = text_ids(text);
    if (ids.size() > most) ids.resize(most);
    return ids;
  };
  return encode;
}

std::uint64_t seed_of_prompts(std::uint64_t seed) {
  return base::Random(seed, base::stream_of("prompts")).next_u64();
}

Prompts prompts_of(const data::Sequence& sequence, std::int64_t most_tokens) {
  Prompts prompts;
  const auto& ids = sequence.ids;
  const auto most = to_size(most_tokens);
  for (std::size_t document = sequence.goes_on ? 1 : 0; document < sequence.starts.size(); ++document) {
    const auto begin = to_size(sequence.starts[document]);
    const bool is_last = document + 1 == sequence.starts.size();
    const auto end = is_last ? ids.size() : to_size(sequence.starts[document + 1]);
    const bool is_cut = is_last && sequence.targets.back() != data::kNoTarget;
    auto first_target = begin;
    while (first_target < end && sequence.targets[first_target] == data::kNoTarget) ++first_target;
    const bool answers = first_target > begin && first_target < end;
    if (first_target == end && end - begin > 1) continue;  // nothing is asked of it
    const auto length = answers ? first_target + 1 - begin : std::min(most, end - begin);
    if (length > most) {
      ++prompts.too_long;
      continue;
    }
    if (is_cut && !answers && length < most) continue;
    prompts.ids.emplace_back(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                             ids.begin() + static_cast<std::ptrdiff_t>(begin + length));
  }
  return prompts;
}

std::vector<data::Sequence> packed_texts(std::span<const eval::Generation> texts, std::int64_t length) {
  std::vector<data::Sequence> sequences;
  for (const auto& text : texts) {
    const auto tokens = std::ssize(text.ids) - 1;
    if (tokens < text.prompt_tokens) continue;
    if (sequences.empty() || std::ssize(sequences.back().ids) + tokens > length) {
      sequences.emplace_back();
      sequences.back().number = std::ssize(sequences) - 1;
    }
    auto& sequence = sequences.back();
    sequence.starts.push_back(static_cast<std::int32_t>(sequence.ids.size()));
    for (std::int64_t i = 0; i < tokens; ++i) {
      sequence.ids.push_back(text.ids[to_size(i)]);
      sequence.targets.push_back(i + 1 < text.prompt_tokens ? data::kNoTarget : text.ids[to_size(i + 1)]);
    }
  }
  return sequences;
}

bool repeats_itself(const eval::Generation& text) {
  constexpr std::ptrdiff_t kTokens = 32, kLongestPiece = 8;
  if (std::ssize(text.ids) - text.prompt_tokens < kTokens) return false;
  const std::span<const std::int32_t> end(text.ids.end() - kTokens, text.ids.end());
  for (std::ptrdiff_t piece = 1; piece <= kLongestPiece; ++piece)
    if (std::equal(end.begin() + piece, end.end(), end.begin())) return true;
  return false;
}

void WrittenCounts::add(const eval::Generation& text) {
  const auto written = std::ssize(text.ids) - text.prompt_tokens;
  const bool by_itself = text.reason == eval::StopReason::end_of_text;
  texts += 1;
  tokens += written;
  ended += by_itself ? 1 : 0;
  ended_at_once += by_itself && written == 1 ? 1 : 0;
  repeating += repeats_itself(text) ? 1 : 0;
}

WrittenCounts& WrittenCounts::operator+=(const WrittenCounts& other) {
  texts += other.texts;
  tokens += other.tokens;
  ended += other.ended;
  ended_at_once += other.ended_at_once;
  repeating += other.repeating;
  too_long_prompts += other.too_long_prompts;
  seconds += other.seconds;
  return *this;
}

base::Json to_json(const WrittenCounts& counts) {
  base::Json json;
  for_each_count(counts, [&](const char* name, auto value) { json[name] = value; });
  return json;
}

WrittenTexts::WrittenTexts(const TrainOptions& options, const Writing& writing, shard::Parameters& student,
                           comm::Group& group, std::int64_t texts_at_once)
    : options_(options), writing_(writing), student_(student), group_(group), texts_at_once_(texts_at_once) {
  if (writing_.prompts) place_ = writing_.prompts->cursor();
}

std::vector<data::Sequence> WrittenTexts::write(std::int64_t step, std::int64_t count) {
  const double begin = base::monotonic_seconds();
  const auto length = options_.packing.sequence_length;
  last_ = {};
  std::vector<data::Sequence> sequences;
  if (count > 0) {
    const auto prompts = next_prompts(count * texts_of_sequence(options_.on_policy, length));
    const auto texts = texts_of(prompts, step);
    for (const auto& text : texts) last_.add(text);
    sequences = packed_texts(texts, length);
  }
  last_.seconds = base::monotonic_seconds() - begin;
  all_ += last_;
  return sequences;
}

// Rank 0 reads them for all.
std::vector<Ids> WrittenTexts::next_prompts(std::int64_t count) {
  std::vector<Ids> prompts;
  const auto read = [&] {
    while (std::ssize(prompts) < count) {
      if (!loaded_ || given_ == prompts_.ids.size()) load_prompts();
      prompts.push_back(prompts_.ids[given_++]);
    }
  };
  if (group_.size() == 1) {
    read();
    return prompts;
  }
  const auto bytes = comm::led(group_, [&] {
    read();
    return bytes_of(prompts);
  });
  return lists_of(bytes);
}

void WrittenTexts::load_prompts() {
  const auto most = options_.on_policy.prompt_tokens;
  // Of a sequence in which a saved place lies, the first ones were given, and the rest was counted.
  if (!loaded_ && given_ > 0) {
    prompts_ = prompts_of(writing_.prompts->next(), most);
    loaded_ = true;
    if (given_ < prompts_.ids.size()) return;
  }
  for (int sequences = 0; sequences < kMostBarren; ++sequences) {
    place_ = writing_.prompts->cursor();
    prompts_ = prompts_of(writing_.prompts->next(), most);
    last_.too_long_prompts += prompts_.too_long;
    loaded_ = true;
    given_ = 0;
    if (!prompts_.ids.empty()) return;
  }
  throw base::DataError(base::join("on_policy: expected documents that begin with at most ", most,
                                   " tokens before what is to be learned, ", "found none in ", kMostBarren,
                                   " sequences; raise prompt_tokens, or give the stage other data."));
}

// Each rank's part of them, with all weights of its own.
std::vector<eval::Generation> WrittenTexts::texts_of(const std::vector<Ids>& prompts, std::int64_t step) {
  constexpr std::uint64_t kTextsOfStep = std::uint64_t{1} << 32;
  const auto& how = options_.on_policy;
  const auto own = comm::share_of(prompts.size(), group_.rank(), group_.size());
  std::vector<eval::Prompt> own_prompts;
  for (auto text = own.first; text < own.last; ++text)
    own_prompts.push_back({prompts[text], static_cast<std::uint64_t>(step) * kTextsOfStep + text});
  const eval::TextsOptions options{
      .sampling = {.temperature = how.temperature, .top_p = how.top_p, .seed = options_.seed},
      .max_new_tokens = how.max_new_tokens,
      .texts_at_once = texts_at_once_,
      .stop_ids = writing_.stop_ids,
      .ids_without_token = writing_.ids_without_token};
  std::vector<eval::Generation> texts(own_prompts.size());
  eval::TextWeights weights(student_, eval::GatheredUnits::held);
  group_.agree([&] {
    eval::generate_texts(
        weights, own_prompts, options,
        {.done = [&](std::size_t text, const eval::Generation& generation) { texts[text] = generation; }});
  });
  return exchanged(std::move(texts));
}

std::vector<eval::Generation> WrittenTexts::exchanged(std::vector<eval::Generation> own) const {
  if (group_.size() == 1) return own;
  std::vector<eval::Generation> all;
  for (const auto& bytes : group_.all_texts(bytes_of(own))) take_texts(bytes, all);
  return all;
}

base::Json WrittenTexts::state() const {
  if (!writing_.prompts) return nullptr;
  return {{"prompts", place_}, {"given", given_}, {"counts", to_json(all_)}};
}

void WrittenTexts::seek(const base::Json& state) {
  if (!writing_.prompts) return;
  try {
    place_ = state.at("prompts");
    given_ = state.at("given").get<std::size_t>();
    for_each_count(all_, [&](const char* name, auto& value) { state.at("counts").at(name).get_to(value); });
  } catch (const base::Json::exception& error) {
    throw base::DataError(base::join("on_policy: expected the saved place of prompts, found something else (",
                                     error.what(), "); the saved state is damaged."));
  }
  loaded_ = false;
  writing_.prompts->seek(place_);
}

}  // namespace retort::train
