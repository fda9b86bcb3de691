#include "retort/calibrate/profile.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/base/units.h"
#include "retort/calibrate/histogram.h"
#include "retort/calibrate/profile_file.h"
#include "retort/calibrate/state_bytes.h"
#include "retort/calibrate/sums_over_ranks.h"
#include "retort/comm/lead.h"
#include "retort/comm/share.h"
#include "retort/io/background_writer.h"
#include "retort/model/forward.h"
#include "retort/record/scratch.h"
#include "retort/record/stopped.h"

namespace retort::calibrate {
namespace {

using model::Tap;

constexpr std::size_t kQueue = 4;  // panels that wait to be written
constexpr const char* kWho = "profile";

// 0 where the block lacks the layer.
std::int64_t features(const architecture::Config& config, const architecture::Block& block, Tap tap) {
  const auto& attention = block.attention;
  const auto width = mlp_width(block);
  switch (tap) {
    case Tap::qkv_input:
      return attention ? config.hidden_size : 0;
    case Tap::output_input:
      return attention ? attention->num_heads * attention->head_dim : 0;
    case Tap::gate_up_input:
      return width > 0 ? config.hidden_size : 0;
    case Tap::down_input:
      return width;
  }
  return 0;
}

std::int64_t hessian_bytes(std::int64_t count) {
  return count * count * (count <= kDoubleColumns ? 8 : 4);
}
std::int64_t vector_bytes(std::int64_t count) {
  return count * (kBuckets * 8 + 6 * 8);
}

std::int64_t statistics_bytes(const architecture::Config& config, const architecture::Block& block) {
  std::int64_t sum = 0;
  for (const auto tap : kTaps) {
    const auto count = features(config, block, tap);
    sum += hessian_bytes(count) + vector_bytes(count);
  }
  return sum;
}

// Of a token and its target.
constexpr std::int64_t kTextBytes = 2 * sizeof(std::int32_t);

std::string bytes(std::int64_t count) {
  return base::human_bytes(static_cast<std::uint64_t>(count));
}

// Hidden states of all panels, one after the other, as they stood in memory.
class HiddenFile {
 public:
  explicit HiddenFile(const base::Path& path) : path_(path), file_(path, std::ios::binary) {}
  at::Tensor next(std::int64_t tokens, std::int64_t hidden, at::ScalarType type, at::Device device) {
    auto panel_ND = at::empty({tokens, hidden}, type);
    file_.read(static_cast<char*>(panel_ND.mutable_data_ptr()),
               static_cast<std::streamsize>(panel_ND.nbytes()));
    base::require<base::StorageError>(file_.good(), path_.string(),
                                      ": cannot be read as long as it was written; remove its directory and "
                                      "run the stage again.");
    return panel_ND.to(device);
  }

 private:
  base::Path path_;
  std::ifstream file_;
};

// A walk of its own beside calibrate::Walk.  It goes on from hidden states on disk, which is why they have a
// name, and it makes each panel's ids and layout anew for every block: a Walk holds those of all text.
class Pass {
 public:
  Pass(const model::Weights& weights, const std::vector<SourceText>& sources, const ProfilePlace& place,
       record::Observer& observer)
      : weights_(weights),
        sources_(sources),
        place_(place),
        observer_(observer),
        alone_(place.group ? nullptr : comm::single_group()),
        group_(place.group ? *place.group : *alone_),
        panels_(batch_places(sources, weights.config.vocab_size, kPanelTokens)),
        own_panels_(comm::share_of(panels_.size(), group_.rank(), group_.size())),
        blocks_(std::ssize(weights.config.blocks)) {}

  ProfileResult run();

 private:
  void state_plan();
  base::Path hidden_path(std::int64_t block) const;
  std::int64_t first_unfinished() const;
  void forget(std::int64_t blocks) const;
  void profile_block(std::int64_t block, io::BackgroundWriter& writer);
  void pass_panels(std::int64_t block, BlockStatistics& taps, io::BackgroundWriter& writer);
  at::Tensor panel_output(std::int64_t block, const Batch& batch, const at::Tensor& hidden_ND,
                          BlockStatistics& taps) const;
  ProfiledBlock profiled(std::int64_t block) const;
  base::Json described_layers() const;
  ProfileResult read_back() const;
  void finish(const ProfileResult& result) const;

  const model::Weights& weights_;
  const std::vector<SourceText>& sources_;
  const ProfilePlace& place_;
  record::Observer& observer_;
  std::unique_ptr<comm::Group> alone_;
  comm::Group& group_;
  std::vector<BatchPlace> panels_;
  comm::Share own_panels_;
  std::int64_t blocks_;
  shard::MemoryPlan plan_;
};

void Pass::state_plan() {
  const auto& config = weights_.config;
  const auto item = weights_.item_bytes();
  std::int64_t longest = 0, tokens = 0, result = 0;
  for (const auto& panel : panels_) longest = std::max(longest, panel.tokens), tokens += panel.tokens;
  for (const auto& block : config.blocks) result += statistics_bytes(config, block);
  plan_ = plan_profile(config, item, tokens, longest, weights_.offload != nullptr,
                       ops::path_of(weights_.options().device()));
  observer_.message(record::Level::info, base::join("profile: memory:\n", shard::describe(plan_)));
  observer_.message(record::Level::info,
                    base::join("profile: on disk ", bytes(result), ", and hidden states of ",
                               bytes(3 * tokens * config.hidden_size * item), " while it works"));
  if (place_.memory > 0) shard::require_fits(plan_, place_.memory);
}

// Another number of ranks has other files.
base::Path Pass::hidden_path(std::int64_t block) const {
  const auto part = group_.size() > 1 ? base::join("-", group_.rank(), "-of-", group_.size()) : std::string();
  return place_.scratch / base::join("hidden-", block, part, ".raw");
}

std::int64_t Pass::first_unfinished() const {
  double found[1] = {0};  // by rank 0
  if (group_.rank() == 0)
    while (found[0] < static_cast<double>(blocks_) &&
           std::filesystem::is_regular_file(place_.directory /
                                            profile_file_name(static_cast<std::int64_t>(found[0]))))
      ++found[0];
  group_.all_sum(found);
  const auto block = static_cast<std::int64_t>(found[0]);
  const bool has_inputs = block == blocks_ || block == 0 || std::filesystem::exists(hidden_path(block));
  double lacking[1] = {has_inputs ? 0.0 : 1.0};
  group_.all_sum(lacking);
  if (lacking[0] == 0) return block;
  comm::lead(group_, [&] { forget(block); });
  return 0;
}

// Blocks that cannot be gone on from, so that a pass which is stopped again does not take them for its own.
void Pass::forget(std::int64_t blocks) const {
  for (std::int64_t block = 0; block < blocks; ++block)
    base::remove_all(place_.directory / profile_file_name(block));
  for (const auto& entry : std::filesystem::directory_iterator(place_.scratch))
    if (entry.path().filename().string().starts_with("hidden-")) base::remove_all(entry.path());
}

at::Tensor Pass::panel_output(std::int64_t block, const Batch& batch, const at::Tensor& hidden_ND,
                              BlockStatistics& taps) const {
  return model::forward_block(
      weights_, block, hidden_ND, batch.layout, {.tap = [&](Tap tap, const at::Tensor& x_NC) {
        taps[tap].add(x_NC, base::join("block ", block, ", ", name(tap)), batch.sequence_starts());
      }});
}

// The rank's panels, whose outputs are on disk when it returns.
void Pass::pass_panels(std::int64_t block, BlockStatistics& taps, io::BackgroundWriter& writer) {
  const auto device = weights_.options().device();
  const auto type = weights_.units.front().scalar_type();
  std::optional<HiddenFile> inputs;
  if (block > 0) inputs.emplace(hidden_path(block));
  std::shared_ptr<base::AtomicFile> outputs;
  if (block + 1 < blocks_) outputs = std::make_shared<base::AtomicFile>(hidden_path(block + 1));
  const auto [first, last] = own_panels_;
  const auto own = static_cast<std::int64_t>(last - first);
  for (auto i = first; i < last; ++i) {
    record::stop_if_asked(observer_, kWho, block);
    const auto batch = make_batch(weights_.config, sources_, panels_[i], device);
    const auto hidden_ND = inputs ? inputs->next(panels_[i].tokens, weights_.config.hidden_size, type, device)
                                  : model::embedded(weights_, batch.ids_N);
    auto out_ND = panel_output(block, batch, hidden_ND, taps);
    if (outputs)
      writer.push([outputs, out_ND = std::move(out_ND)] {
        const auto on_host = out_ND.to(at::kCPU).contiguous();
        outputs->write(on_host.const_data_ptr(), on_host.nbytes());
      });
    observer_.progress("profile: panels", block * own + static_cast<std::int64_t>(i - first) + 1,
                       blocks_ * own);
  }
  if (outputs) writer.push([outputs = std::move(outputs)] { outputs->commit(); });
  writer.wait();
}

// What a resume relies on: the next block's inputs are complete on all ranks before this block counts as
// done. This block's inputs stay until its statistics are on disk, which is when the next block has passed.
void Pass::profile_block(std::int64_t block, io::BackgroundWriter& writer) {
  auto taps = std::make_shared<BlockStatistics>(empty_statistics(model::weights_of_block(weights_, block)));
  for (const auto tap : kTaps) (*taps)[tap].with_products = true;
  group_.agree([&] { pass_panels(block, *taps, writer); });
  for (const auto tap : kTaps) sum_over_ranks(group_, (*taps)[tap], weights_.options());
  if (group_.rank() == 0)
    writer.push([path = place_.directory / profile_file_name(block), taps = std::move(taps)] {
      write_block_profile(path, *taps);
    });
  if (block > 1) base::remove_all(hidden_path(block - 1));
}

ProfiledBlock Pass::profiled(std::int64_t block) const {
  return profiled_block(
      block, model::weights_of_block(weights_, block),
      read_block_profile(place_.directory / profile_file_name(block), {.ranking = ChannelRanking::wanda}));
}

base::Json Pass::described_layers() const {
  base::Json layers = base::Json::array();
  for (std::int64_t block = 0; block < blocks_; ++block)
    for (const auto tap : kTaps)
      if (const auto count =
              features(weights_.config, weights_.config.blocks[static_cast<std::size_t>(block)], tap);
          count > 0)
        layers.push_back({{"block", block},
                          {"tap", name(tap)},
                          {"expert", nullptr},
                          {"features", count},
                          {"file", profile_file_name(block)}});
  return layers;
}

void Pass::finish(const ProfileResult& result) const {
  base::Json description = {
      {"format", 1},
      {"identity", place_.identity},
      {"tokens", result.tokens()},
      {"domains", sources_json(result)},
      {"panel_tokens", kPanelTokens},
      {"histogram",
       {{"buckets_per_octave", kBucketsPerOctave}, {"lowest_octave", kLowestOctave}, {"octaves", kOctaves}}},
      {"layers", described_layers()}};
  for (std::int64_t block = 0; block < blocks_; ++block)
    description["files"][profile_file_name(block)] =
        base::hash_file(place_.directory / profile_file_name(block));
  base::write_file_atomically(place_.directory / kProfileDescription, description.dump(1) + "\n");
  record::remove_scratch(place_.scratch);
}

ProfileResult Pass::run() {
  group_.agree([&] {
    state_plan();
    if (group_.rank() == 0) record::enter_scratch(place_.scratch, place_.identity, {place_.directory});
  });
  {
    io::BackgroundWriter writer(kQueue);
    try {
      for (auto block = first_unfinished(); block < blocks_; ++block) profile_block(block, writer);
    } catch (const std::exception&) {
      writer.wait();  // the block before is finished too, whatever ended this one
      throw;
    }
    group_.agree([&] { writer.wait(); });
  }
  ProfileResult result;
  comm::lead(group_, [&] { result = read_back(); });
  return result;
}

// From the files, so that a resumed pass says the same.
ProfileResult Pass::read_back() const {
  ProfileResult result{.sources = {}, .planned_bytes = plan_.total_bytes(), .blocks = {}};
  for (const auto& source : sources_) result.sources.emplace_back(source.name, 0);
  for (const auto& panel : panels_) result.sources[panel.source].second += panel.tokens;
  for (std::int64_t block = 0; block < blocks_; ++block) result.blocks.push_back(profiled(block));
  finish(result);
  return result;
}

}  // namespace

shard::MemoryPlan plan_profile(const architecture::Config& config, std::int64_t item_bytes,
                               std::int64_t text_tokens, std::int64_t panel_tokens, bool offloaded,
                               ops::Path path) {
  // On accelerators the buckets of magnitudes and the places of these, beside the magnitudes.
  const std::int64_t of_value = path == ops::Path::cpu ? 2 * item_bytes : 28;
  std::int64_t largest = 0, added = 0, widest_of_all = 0;
  for (const auto& block : config.blocks) {
    largest = std::max(largest, statistics_bytes(config, block));
    std::int64_t widest = 0;
    for (const auto tap : kTaps) widest = std::max(widest, features(config, block, tap));
    // A panel's product, and its histogram beside the sum of both.
    added = std::max(added, widest * widest * item_bytes + 2 * widest * kBuckets * 8);
    widest_of_all = std::max(widest_of_all, widest);
  }
  // What the block computes, and of the inputs of a layer their magnitudes and the squares of these.
  const auto activations = shard::block_forward_bytes(config, panel_tokens, panel_tokens, item_bytes, path) +
                           panel_tokens * widest_of_all * of_value;
  const auto hidden = panel_tokens * config.hidden_size * item_bytes;
  return {{planned_weights(kProfiledWeights, config, item_bytes, offloaded ? OnDevice::block : OnDevice::all),
           {"statistics of two blocks", 2 * largest},
           {"what a panel adds", added},
           {"activations of a panel", activations + hidden},
           {"panels to be written", static_cast<std::int64_t>(kQueue) * hidden},
           {"the text", text_tokens * kTextBytes}},
          "use a machine with more, or prune without a profile"};
}

ProfileResult profile(const model::Weights& weights, const std::vector<SourceText>& sources,
                      const ProfilePlace& place, record::Observer& observer) {
  return Pass(weights, sources, place, observer).run();
}

}  // namespace retort::calibrate
