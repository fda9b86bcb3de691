#include "retort/eval/text_decoder.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "retort/base/index.h"

namespace retort::eval {
namespace {

using base::to_size;

// Of a text that goes on, read in one pass.
constexpr std::int64_t kMostAddedTokens = 256;

std::int64_t window_of(const architecture::Block& block) {
  return block.attention ? block.attention->kind.window.value_or(0) : 0;
}

ops::KeyValuePages empty_pages(const architecture::Block& block, std::int64_t pages,
                               const at::TensorOptions& options) {
  if (!block.attention) return {};
  const std::vector<std::int64_t> size = {pages, ops::kPageTokens, block.attention->num_kv_heads,
                                          block.attention->head_dim};
  return {at::empty(size, options), at::empty(size, options)};
}

// Whether keys do not depend on what follows them, and all of a text's pages are held.
bool keys_need_no_more_than_their_beginning(const architecture::Config& config) {
  const auto sees_all = [](const architecture::Block& block) { return window_of(block) == 0; };
  const auto keeps_angles = [](const architecture::Rope& rope) {
    return !rope.starts_anew && rope.kind != architecture::Rope::Kind::dynamic;
  };
  return std::ranges::all_of(config.blocks, sees_all) && std::ranges::all_of(config.ropes, keeps_angles);
}

// Whole pages, behind which a token is left.
std::span<const std::int32_t> shareable(std::span<const std::int32_t> ids) {
  const auto pages = ids.empty() ? 0 : (ids.size() - 1) / ops::kPageTokens;
  return ids.first(pages * ops::kPageTokens);
}

at::Tensor attention_of_fresh(const at::Tensor& qkv_NX, const ops::KeyValuePages& pages,
                              const std::vector<std::int64_t>& starts, const ops::ScoreRule& rule) {
  const auto [q_NHE, k_NKE, v_NKE] = ops::split_heads(qkv_NX, pages.k_PTKE.size(2), pages.k_PTKE.size(3));
  return ops::attention(q_NHE, k_NKE, v_NKE, starts, rule).out_NHE.flatten(1);
}

}  // namespace

TextDecoder::TextDecoder(TextWeights& weights, const CacheRoom& room)
    : weights_(weights), device_(weights.options().device()) {
  for (const auto& block : weights.config().blocks) {
    const auto window = window_of(block);
    const auto known = std::ranges::find(pools_, window, &PagePool::window);
    pool_of_.push_back(to_size(known - pools_.begin()));
    if (known == pools_.end()) {
      unreserved_.push_back(pages_of(room, window));
      pools_.emplace_back(unreserved_.back(), window);
    }
    caches_.push_back(empty_pages(block, unreserved_[pool_of_.back()], weights.options()));
  }
  shares_beginnings_ = !pools_.empty() && keys_need_no_more_than_their_beginning(weights.config());
}

std::int64_t TextDecoder::pages_of(const CacheRoom& room, std::int64_t window) {
  const auto each = PagePool::pages_of(room.longest_tokens, window, kMostAddedTokens);
  const auto all = ops::pages_up_to(room.tokens) + room.texts;
  return std::min(all, room.texts * each);
}

bool TextDecoder::admit(GrowingText& text) {
  std::vector<std::int64_t> left;
  for (std::size_t pool = 0; pool < pools_.size(); ++pool)
    left.push_back(unreserved_[pool] -
                   PagePool::pages_of(text.most_tokens, pools_[pool].window(), kMostAddedTokens));
  if (std::ranges::any_of(left, [](std::int64_t pages) { return pages < 0; })) return false;
  unreserved_ = std::move(left);
  text.pages.assign(pools_.size(), {});
  text.seen = 0;
  text.begun = false;
  if (!shares_beginnings_) return true;
  text.pages[0] = pools_[0].beginning_of(shareable(text.ids));
  pools_[0].share(text.pages[0]);
  text.seen = std::ssize(text.pages[0]) * ops::kPageTokens;
  return true;
}

bool TextDecoder::gains_by_waiting(std::span<const std::int32_t> ids,
                                   std::span<GrowingText* const> texts) const {
  if (!shares_beginnings_ || texts.empty()) return false;
  const auto begins = shareable(ids);
  const auto known = std::ssize(pools_[0].beginning_of(begins)) * ops::kPageTokens;
  return std::ranges::any_of(texts, [&](const GrowingText* text) {
    const auto [end, other] = std::ranges::mismatch(begins, text->ids);
    return (end - begins.begin()) / ops::kPageTokens * ops::kPageTokens > known;
  });
}

void TextDecoder::release(GrowingText& text) {
  for (std::size_t pool = 0; pool < text.pages.size(); ++pool) {
    pools_[pool].release(text.pages[pool]);
    unreserved_[pool] += PagePool::pages_of(text.most_tokens, pools_[pool].window(), kMostAddedTokens);
  }
  text.pages.clear();
}

// Whether the text becomes so long that all of it is turned by other angles.
bool TextDecoder::outgrows(const GrowingText& text) const {
  const auto& ropes = weights_.config().ropes;
  return text.seen > 0 && std::ranges::any_of(ropes, [&](const architecture::Rope& rope) {
           return rope.starts_anew && text.seen <= rope.original_context &&
                  std::ssize(text.ids) > rope.original_context;
         });
}

void TextDecoder::lend(GrowingText& text) {
  const auto tokens = std::ssize(text.ids), first = text.seen > 0 ? text.seen : tokens - 1;
  for (std::size_t pool = 0; pool < pools_.size(); ++pool) pools_[pool].grow(text.pages[pool], first, tokens);
}

TextDecoder::Batch TextDecoder::batch_of(std::span<GrowingText* const> texts) {
  Batch batch;
  batch.last_rows.resize(texts.size());
  batch.rows.resize(pools_.size());
  std::vector<model::TextPart> parts;
  const auto take = [&](std::size_t which) {
    auto& text = *texts[which];
    lend(text);
    const auto tokens = std::ssize(text.ids);
    parts.push_back({text.seen, tokens - text.seen, tokens});
    for (auto token = text.seen; token < tokens; ++token) {
      batch.ids.push_back(text.ids[to_size(token)]);
      for (std::size_t pool = 0; pool < pools_.size(); ++pool)
        batch.rows[pool].push_back({text.pages[pool], token + 1});
    }
    batch.last_rows[which] = std::ssize(batch.ids) - 1;
  };
  for (std::size_t which = 0; which < texts.size(); ++which)
    if (texts[which]->seen == 0) {
      take(which);
      batch.fresh_starts.push_back(std::ssize(batch.ids));
    }
  // The last token of a prompt is read as others of it are.
  const auto adds = [](const GrowingText& text) {
    return text.seen > 0 && (!text.begun || std::ssize(text.ids) - text.seen > 1);
  };
  batch.added_starts = {std::ssize(batch.ids)};
  for (std::size_t which = 0; which < texts.size(); ++which)
    if (adds(*texts[which])) {
      take(which);
      batch.added_starts.push_back(std::ssize(batch.ids));
    }
  for (std::size_t which = 0; which < texts.size(); ++which)
    if (texts[which]->seen > 0 && !adds(*texts[which])) take(which);
  batch.layout = model::layout_of_parts(weights_.config(), parts, device_, frequencies_);
  return batch;
}

at::Tensor TextDecoder::attended(const Batch& batch, std::size_t block, const at::Tensor& qkv_NX,
                                 const ops::ScoreRule& rule) const {
  const auto& pages = caches_[block];
  const std::span<const ops::PagedText> rows = batch.rows[pool_of_[block]];
  const auto fresh = batch.fresh_starts.back(), single = batch.added_starts.back(), all = qkv_NX.size(0);
  ops::keep_in_pages(qkv_NX, rows, pages);
  std::vector<at::Tensor> parts;
  if (fresh > 0)
    parts.push_back(attention_of_fresh(qkv_NX.narrow(0, 0, fresh), pages, batch.fresh_starts, rule));
  for (std::size_t i = 0; i + 1 < batch.added_starts.size(); ++i) {
    const auto first = batch.added_starts[i], end = batch.added_starts[i + 1];
    parts.push_back(
        ops::attention_of_end(qkv_NX.narrow(0, first, end - first), rows[to_size(end - 1)], pages, rule));
  }
  if (single < all)
    parts.push_back(ops::attention_of_texts(qkv_NX.narrow(0, single, all - single),
                                            rows.subspan(to_size(single)), pages, rule));
  return parts.size() == 1 ? parts.front() : at::cat(parts);
}

at::Tensor TextDecoder::hidden_of(const Batch& batch) {
  const double eps = weights_.config().rms_norm_eps;
  auto hidden_ND = weights_.embedded(model::index_tensor(batch.ids, device_));
  for (std::size_t block = 0; block < caches_.size(); ++block) {
    const model::Attend attend = [&](const at::Tensor& qkv_NX, const ops::ScoreRule& rule) {
      return attended(batch, block, qkv_NX, rule);
    };
    weights_.with_block(block, [&](const model::BlockWeights& weights) {
      hidden_ND = model::block_of_texts(weights, eps, hidden_ND, batch.layout, attend);
    });
  }
  return hidden_ND.index_select(0, model::index_tensor(batch.last_rows, device_));
}

// Of texts that go on with many tokens all but the last ones.
void TextDecoder::read_up_to_the_last_tokens(std::span<GrowingText* const> texts) {
  for (auto* text : texts) {
    if (outgrows(*text)) {
      for (std::size_t pool = 0; pool < pools_.size(); ++pool) pools_[pool].release(text->pages[pool]);
      text->seen = 0;
    }
    while (text->seen > 0 && std::ssize(text->ids) - text->seen > kMostAddedTokens) {
      GrowingText piece = *text;
      piece.ids.resize(to_size(text->seen + kMostAddedTokens));
      GrowingText* const one[] = {&piece};
      (void)hidden_of(batch_of(one));
      text->pages = std::move(piece.pages);
      text->seen += kMostAddedTokens;
    }
  }
}

at::Tensor TextDecoder::pass(std::span<GrowingText* const> texts) {
  const c10::InferenceMode mode;  // each operation is found sooner
  read_up_to_the_last_tokens(texts);
  const auto logits_NV = weights_.logits(hidden_of(batch_of(texts))).to(at::kCPU, at::kFloat).contiguous();
  for (auto* text : texts) {
    if (shares_beginnings_ && std::ssize(text->ids) - text->seen > 1)
      pools_[0].remember(text->pages[0], text->ids);
    text->seen = std::ssize(text->ids);
    text->begun = true;
  }
  return logits_NV;
}

}  // namespace retort::eval
