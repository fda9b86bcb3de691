#include "retort/pipeline/corpus.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <memory>
#include <optional>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/base/machine.h"
#include "retort/base/printable.h"
#include "retort/comm/lead.h"
#include "retort/eval/memory_plan.h"
#include "retort/io/model_directory.h"
#include "retort/pipeline/context.h"
#include "retort/pipeline/corpus_rows.h"
#include "retort/pipeline/pipeline.h"
#include "retort/pipeline/torch_errors.h"
#include "retort/record/keys.h"
#include "retort/record/stopped.h"

namespace retort::pipeline {
namespace {

namespace keys = record::keys;

constexpr std::int64_t kBatchesOfRound = 4;
constexpr double kTokensOfChat = 200;  // before any is known
constexpr double kMuchDropped = 1.0 / 3;

struct Enough {};  // a budget is reached within a round

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  char text[16];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", ::localtime_r(&now, &local))};
}

std::string checksum_of(const io::FileToCopy& file) {
  if (!file.source.empty()) return base::hash_file(file.source);
  base::Hasher hash;
  hash.update(file.content.data(), file.content.size());
  return hash.hex();
}

base::Json as_json(const CorpusRow& row) {
  return {row.number, static_cast<int>(row.fate), row.tokens, row.line};
}

CorpusRow row_of(const base::Json& json) {
  return {.number = json.at(0).get<std::int64_t>(),
          .fate = static_cast<Fate>(json.at(1).get<int>()),
          .tokens = json.at(2).get<std::int64_t>(),
          .line = json.at(3)};
}

class Maker {
 public:
  Maker(const CorpusWork& work, std::string date)
      : work_(work), date_(std::move(date)), rows_(work.model, work.asked, date_) {
    const auto plan = rows_.plan(work_.available_bytes);
    work_.observer.message(record::Level::debug, "memory plan\n" + shard::describe(plan));
    shard::require_fits(plan, work_.available_bytes);
  }

  CorpusResult make() {
    comm::lead(work_.group, [&] {
      file_.emplace(work_.out, work_.settings, date_, work_.asked.tokens, work_.asked.asks_itself());
      if (file_->counts().rows > 0 && !file_->finished())
        work_.observer.message(record::Level::info,
                               base::join(work_.name, ": goes on behind ", file_->counts().kept(),
                                          " texts with ", file_->counts().tokens, " tokens"));
    });
    share_state();
    const double start = base::monotonic_seconds();
    std::optional<eval::TextWeights> weights;
    while (!finished_) {
      if (!weights) work_.group.agree([&] { weights.emplace(work_.model.load()); });
      make_round(*weights);
    }
    CorpusResult result{.counts = counts_, .new_tokens = 0, .seconds = base::monotonic_seconds() - start};
    for (const auto tokens : work_.group.all_values(new_tokens_)) result.new_tokens += tokens;
    comm::lead(work_.group, [&] { judge_whole(); });
    return result;
  }

 private:
  // What rank 0 knows of the file.
  void share_state() {
    const auto said = comm::led(work_.group, [&] {
      const auto& counts = file_->counts();
      const bool stops = work_.observer.stop_requested();
      return base::Json{counts.rows, counts.tokens, counts.kept(), file_->finished(), stops}.dump();
    });
    const auto state = base::Json::parse(said);
    counts_.rows = state.at(0);
    counts_.tokens = state.at(1);
    counts_.of[0] = state.at(2);
    finished_ = state.at(3);
    if (work_.group.rank() == 0) counts_ = file_->counts();
    if (!finished_ && state.at(4)) work_.group.together([&] { stop(); });
  }

  [[noreturn]] void stop() const {
    throw record::StoppedError(base::join(work_.out.string(), ": stopped with ", counts_.tokens,
                                          " tokens, and the same command goes on."));
  }

  // Numbers that this rank makes.  How many a round has decides no text.
  std::vector<std::int64_t> numbers_of_round() const {
    const auto size = work_.group.size();
    const auto most = kBatchesOfRound * work_.asked.batch * size;
    const double guess = work_.asked.chat ? kTokensOfChat : static_cast<double>(work_.asked.max_new_tokens);
    const double of_row =
        counts_.rows == 0 ? guess : static_cast<double>(counts_.tokens) / static_cast<double>(counts_.rows);
    auto wanted = most;
    if (work_.asked.tokens > 0 && of_row >= 1)
      wanted = std::min<std::int64_t>(
          most, std::llround(1.1 * static_cast<double>(work_.asked.tokens - counts_.tokens) / of_row) + 2);
    auto end = counts_.rows + wanted;
    if (const auto count = rows_.count()) end = std::min(end, *count);
    std::vector<std::int64_t> own;
    for (auto number = counts_.rows; number < end; ++number)
      if (number % size == work_.group.rank()) own.push_back(number);
    return own;
  }

  void make_round(eval::TextWeights& weights) {
    const auto numbers = numbers_of_round();
    if (work_.group.size() == 1)
      make_alone(weights, numbers);
    else
      make_together(weights, numbers);
    comm::lead(work_.group, [&] {
      if (const auto count = rows_.count(); count && file_->counts().rows >= *count) file_->exhaust();
    });
    share_state();
  }

  // Each text is in the file as soon as those before it are.
  void make_alone(eval::TextWeights& weights, std::span<const std::int64_t> numbers) {
    try {
      rows_.make(weights, numbers,
                 {.done = [&](CorpusRow row) { take(std::move(row)); },
                  .token =
                      [&] {
                        ++new_tokens_;
                        if (file_->finished()) throw Enough();
                        if (work_.observer.stop_requested()) {
                          file_->save();
                          stop();
                        }
                      }});
    } catch (const Enough&) {
    }
  }

  void make_together(eval::TextWeights& weights, std::span<const std::int64_t> numbers) {
    auto own = base::Json::array();
    work_.group.agree([&] {
      rows_.make(weights, numbers,
                 {.done = [&](const CorpusRow& row) { own.push_back(as_json(row)); },
                  .token = [&] { ++new_tokens_; }});
    });
    const auto all = work_.group.all_texts(own.dump());
    comm::lead(work_.group, [&] {
      for (const auto& rows : all)
        for (const auto& row : base::Json::parse(rows)) take(row_of(row));
    });
  }

  void take(CorpusRow row) {
    file_->add(std::move(row));
    const auto& counts = file_->counts();
    if (work_.asked.tokens > 0)
      work_.observer.progress(work_.name + ": tokens", std::min(counts.tokens, work_.asked.tokens),
                              work_.asked.tokens);
    else
      work_.observer.progress(work_.name + ": texts", counts.rows, rows_.count().value_or(0));
  }

  // Of a whole text: what its user should know.
  void judge_whole() const {
    const auto& counts = file_->counts();
    base::require<base::ValidationError>(counts.kept() > 0, work_.out.string(),
                                         ": expected texts that are worth learning from, found none; of ",
                                         counts.rows, " there were ", describe_dropped(counts),
                                         "; try another temperature, more new tokens, or another model.");
    if (static_cast<double>(counts.dropped()) > kMuchDropped * static_cast<double>(counts.rows))
      work_.observer.message(
          record::Level::warning,
          base::join(work_.out.string(), ": of ", counts.rows, " texts ", counts.dropped(),
                     " were dropped: ", describe_dropped(counts),
                     "; look at some of those that were kept before a student learns from them."));
    if (work_.asked.tokens > counts.tokens)
      work_.observer.message(record::Level::warning,
                             base::join(work_.out.string(), ": expected ", work_.asked.tokens,
                                        " tokens, found no more questions behind ", counts.tokens,
                                        "; give more of them for more text."));
  }

  const CorpusWork& work_;
  std::string date_;
  CorpusRows rows_;
  std::optional<CorpusFile> file_;  // of rank 0
  CorpusCounts counts_;
  bool finished_ = false;
  std::int64_t new_tokens_ = 0;
};

}  // namespace

base::Json corpus_settings(const TextModel& model, const data::GeneratedText& asked) {
  auto files = base::Json::object();
  for (const auto& file : io::accompanying_files(model.path))
    files[base::as_utf8(file.name.native())] = checksum_of(file);
  base::Json settings{{"weights", weight_checksums(model.path)},
                      {"files", files},
                      {"dtype", c10::toString(model.dtype)},
                      {"device", model.device.is_cpu() ? "cpu" : "accelerator"},
                      {"chat", asked.chat},
                      {"max_new_tokens", asked.max_new_tokens},
                      {"temperature", asked.temperature},
                      {"top_p", asked.top_p},
                      {"top_k", asked.top_k},
                      {"min_p", asked.min_p},
                      {"seed", asked.seed}};
  if (asked.asks_itself()) {
    settings["max_question_tokens"] = asked.max_question_tokens;
    settings["question_temperature"] = asked.question_temperature;
    settings["question_top_p"] = asked.question_top_p;
  } else if (asked.chat) {
    settings["questions"] = base::hash_file(asked.questions);
  } else if (!asked.starts.empty()) {
    settings["starts"] = base::hash_file(asked.starts);
    settings["start_tokens"] = asked.start_tokens;
  }
  return settings;
}

CorpusResult make_corpus(const CorpusWork& work) {
  const auto date = comm::led(work.group, [&] {
    const auto about = CorpusFile::read_about(work.out);
    return about.is_object() ? about.value(keys::kDate, today()) : today();
  });
  std::optional<Maker> maker;
  work.group.agree([&] { maker.emplace(work, date); });
  return maker->make();
}

base::Json generate_corpus(const CorpusRequest& request, record::Observer& observer) {
  base::Json result;
  translate_torch_errors([&] {
    check(request.text);
    const TextModel model(request.model, {}, observer);
    const auto alone = comm::single_group();
    const auto made =
        make_corpus({.name = request.out.filename().string(),
                     .model = model,
                     .asked = request.text,
                     .out = request.out,
                     .settings = corpus_settings(model, request.text),
                     .available_bytes = available_bytes(request.model.available_memory, model.device),
                     .group = *alone,
                     .observer = observer});
    result = to_json(made.counts);
    result["new_tokens"] = made.new_tokens;
    result["seconds"] = made.seconds;
  });
  return result;
}

}  // namespace retort::pipeline
