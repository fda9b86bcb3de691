#include "retort/eval/ends.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "retort/architecture/longest_context.h"
#include "retort/base/error.h"
#include "retort/base/index.h"
#include "retort/eval/text_tree.h"
#include "retort/ops/logit_scores.h"

namespace retort::eval {
namespace {

using base::to_size;

// All but the last token, which is never read.
std::span<const std::int32_t> read_of(const TextEnd& text) {
  return std::span(text.ids).first(text.ids.size() - 1);
}

void check_end(const architecture::Config& config, const TextEnd& text) {
  const auto length = std::ssize(text.ids), longest = architecture::longest_context(config);
  base::require<base::UsageError>(text.scored > 0 && text.scored < length, "evaluation: a text of ", length,
                                  " tokens has ", text.scored,
                                  " to score; expected at least one, and one before it.");
  base::require<base::UsageError>(length - 1 <= longest, "evaluation: a text has ", length,
                                  " tokens, but the model was made for at most ", longest, "; shorten it.");
  for (const auto id : text.ids)
    base::require<base::ModelError>(id >= 0 && id < config.vocab_size, "evaluation: a text holds token ", id,
                                    ", but the model knows only ", config.vocab_size,
                                    "; use the tokenizer that belongs to it.");
}

// Angles of a token are the same in every text that begins so.
bool may_share(const architecture::Config& config) {
  return std::ranges::none_of(config.ropes, [](const architecture::Rope& rope) {
    return rope.starts_anew || rope.kind == architecture::Rope::Kind::dynamic;
  });
}

// The tokens of a tree, as blocks take them.
class TreePass {
 public:
  TreePass(const architecture::Config& config, const TextTree& tree, at::Device device)
      : tree_(tree), ids_(model::index_tensor(tree.ids, device)) {
    model::RopeFrequencies frequencies;
    std::vector<model::TextPart> parts;
    for (std::size_t i = 0; i < tree.pieces.size(); ++i) {
      const auto& piece = tree.pieces[i];
      parts.push_back({piece.position, piece.tokens, piece.position + piece.tokens});
      if (piece.parent < 0)
        starts_.push_back(piece.first_row + piece.tokens);
      else
        paths_.push_back(tree.path_to(static_cast<std::int64_t>(i)));
    }
    layout_ = model::layout_of_parts(config, parts, device, frequencies);
  }

  /// Outputs of the last block.
  at::Tensor hidden(shard::Parameters& parameters) const {
    const double eps = parameters.config().rms_norm_eps;
    const auto through = [&](const model::BlockWeights& weights, const at::Tensor& hidden_ND) {
      const model::Attend attend = [&](const at::Tensor& qkv_NX, const ops::ScoreRule& rule) {
        const auto& shape = *weights.shape.attention;
        return attended(ops::split_heads(qkv_NX, shape.num_kv_heads, shape.head_dim), rule);
      };
      return model::block_of_texts(weights, eps, hidden_ND, layout_, attend);
    };
    return through_blocks(parameters, ids_, through);
  }

 private:
  at::Tensor attended(const ops::Heads& heads, const ops::ScoreRule& rule) const {
    const auto begun = starts_.back();
    const auto first = [begun](const at::Tensor& x) { return x.narrow(0, 0, begun); };
    const auto fresh_NHE =
        ops::attention(first(heads.q_NHE), first(heads.k_NKE), first(heads.v_NKE), starts_, rule).out_NHE;
    if (paths_.empty()) return fresh_NHE.flatten(1);
    std::vector<at::Tensor> parts{fresh_NHE};
    for (const auto& path : paths_)
      parts.push_back(ops::attention_of_end(rows_of(heads.q_NHE, std::span(path).last(1)),
                                            rows_of(heads.k_NKE, path), rows_of(heads.v_NKE, path), rule));
    return at::cat(parts).flatten(1);
  }

  at::Tensor rows_of(const at::Tensor& x_NHE, std::span<const std::int64_t> path) const {
    std::vector<at::Tensor> parts;
    for (const auto piece : path) {
      const auto& of = tree_.pieces[to_size(piece)];
      parts.push_back(x_NHE.narrow(0, of.first_row, of.tokens));
    }
    return parts.size() == 1 ? parts.front() : at::cat(parts);
  }

  const TextTree& tree_;
  at::Tensor ids_;
  std::vector<std::int64_t> starts_{0};           ///< of pieces that begin texts
  std::vector<std::vector<std::int64_t>> paths_;  ///< of the others
  model::TokenLayout layout_;
};

// Texts that go through the model together, in their order.
using TextsTogether = std::span<const std::size_t>;

class EndScorer {
 public:
  EndScorer(const Subject& model, std::span<const TextEnd> texts, const EndSettings& settings)
      : model_(model), texts_(texts), settings_(settings), scores_(texts.size()) {
    comm::agree(settings.group, [&] {
      for (const auto& text : texts) check_end(model.parameters.config(), text);
      put_in_batches();
    });
  }

  std::vector<EndScore> scored(const EndsProgress& progress) {
    const auto ranks = to_size(settings_.group ? settings_.group->size() : 1);
    const auto rank = to_size(settings_.group ? settings_.group->rank() : 0);
    std::int64_t done = 0;
    for (std::size_t round = 0; round < batches_.size(); round += ranks) {
      const auto end = std::min(round + ranks, batches_.size());
      const bool has_one = round + rank < end;
      score(batches_[std::min(round + rank, end - 1)], has_one);
      for (auto i = round; i < end; ++i) done += std::ssize(batches_[i]);
      if (progress) progress(done, std::ssize(texts_));
    }
    exchange();
    return std::move(scores_);
  }

 private:
  void put_in_batches() {
    order_.resize(texts_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::sort(order_, [&](std::size_t a, std::size_t b) {
      return std::ranges::lexicographical_compare(read_of(texts_[a]), read_of(texts_[b]));
    });
    std::size_t first = 0;
    std::int64_t tokens = 0;
    const auto end_batch = [&](std::size_t end) {
      if (end > first) batches_.push_back(std::span(order_).subspan(first, end - first));
      first = end;
      tokens = 0;
    };
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (i > first && tokens + new_tokens(i, first) > settings_.tokens) end_batch(i);
      tokens += new_tokens(i, first);
    }
    end_batch(order_.size());
  }

  // Of a text behind its neighbour in the batch.
  std::int64_t new_tokens(std::size_t i, std::size_t first) const {
    const auto text = read_of(texts_[order_[i]]);
    if (i == first || !shares_) return std::ssize(text);
    return text.end() - std::ranges::mismatch(text, read_of(texts_[order_[i - 1]])).in1;
  }

  // `counts`: the batch is this rank's; else it only passes the units along.
  void score(TextsTogether batch, bool counts) {
    const bool gathers = !model_.parameters.resident();
    if (!counts && !gathers) return comm::agree(settings_.group, [] {});
    std::vector<std::span<const std::int32_t>> read;
    for (const auto which : batch) read.push_back(read_of(texts_[which]));
    const auto tree = tree_of(read, shares_);
    at::Tensor hidden_ND;
    const auto pass = [&] {
      hidden_ND = TreePass(model_.parameters.config(), tree, model_.head.device()).hidden(model_.parameters);
    };
    if (gathers) pass();  // collective itself
    comm::agree(settings_.group, [&] {
      if (!gathers) pass();
      if (counts) read_scores(batch, tree, hidden_ND);
    });
  }

  void read_scores(TextsTogether batch, const TextTree& tree, const at::Tensor& hidden_ND) {
    std::vector<std::int64_t> rows, targets;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto& text = texts_[batch[i]];
      const auto of_text = tree.last_rows(i, text.scored);
      rows.insert(rows.end(), of_text.begin(), of_text.end());
      targets.insert(targets.end(), text.ids.end() - text.scored, text.ids.end());
    }
    std::vector<double> losses;
    std::vector<std::int64_t> likeliest;
    const auto all = std::ssize(rows);
    const auto rows_R = model::index_tensor(rows, hidden_ND.device()),
               targets_R = model::index_tensor(targets, hidden_ND.device());
    for (std::int64_t begin = 0; begin < all; begin += settings_.head_rows) {
      const auto count = std::min(settings_.head_rows, all - begin);
      const auto logits_RV = model_.head.logits(hidden_ND.index_select(0, rows_R.narrow(0, begin, count)));
      const auto chunk =
          ops::score_chunk(logits_RV, {}, targets_R.narrow(0, begin, count), model_.head.num_tokens());
      const auto nll = chunk.nll_N.to(at::kCPU, at::kDouble), top1 = chunk.top1_N.to(at::kCPU);
      losses.insert(losses.end(), nll.const_data_ptr<double>(), nll.const_data_ptr<double>() + count);
      likeliest.insert(likeliest.end(), top1.const_data_ptr<std::int64_t>(),
                       top1.const_data_ptr<std::int64_t>() + count);
    }
    add_up(batch, losses, likeliest);
  }

  void add_up(TextsTogether batch, std::span<const double> losses, std::span<const std::int64_t> likeliest) {
    std::size_t row = 0;
    for (const auto which : batch) {
      const auto& text = texts_[which];
      EndScore score{.log_likelihood = 0, .greedy = true};
      for (auto id = text.ids.end() - text.scored; id != text.ids.end(); ++id, ++row) {
        score.log_likelihood -= losses[row];
        score.greedy = score.greedy && likeliest[row] == *id;
      }
      base::require<base::ValidationError>(
          std::isfinite(score.log_likelihood), "evaluation: model ", model_.name,
          " gives a text no finite likelihood; its weights or its numeric type overflow.");
      scores_[which] = score;
    }
  }

  void exchange() {
    if (!settings_.group || settings_.group->size() == 1) return;
    std::vector<double> values;
    for (const auto& score : scores_) {
      values.push_back(score.log_likelihood);
      values.push_back(score.greedy ? 1 : 0);
    }
    settings_.group->all_sum(values);
    for (std::size_t i = 0; i < scores_.size(); ++i) scores_[i] = {values[2 * i], values[2 * i + 1] > 0};
  }

  const Subject& model_;
  std::span<const TextEnd> texts_;
  const EndSettings& settings_;
  const bool shares_ = may_share(model_.parameters.config());
  std::vector<std::size_t> order_;
  std::vector<TextsTogether> batches_;
  std::vector<EndScore> scores_;
};

}  // namespace

std::vector<EndScore> score_ends(const Subject& model, std::span<const TextEnd> texts,
                                 const EndSettings& settings, const EndsProgress& progress) {
  return EndScorer(model, texts, settings).scored(progress);
}

}  // namespace retort::eval
