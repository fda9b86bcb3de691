// An evaluation as JSON, in the form that the report reads.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "retort/eval/evaluate.h"
#include "retort/record/keys.h"

namespace retort::eval {
namespace {

namespace keys = record::keys;

// Means with the same weight for every source.
struct Means {
  double nll = 0, teacher_nll = 0, bits_per_byte = 0, teacher_bits_per_byte = 0, kl = 0, top1 = 0,
         teacher_top1 = 0;
  double top1_agreement = 0, calibration_error = 0, confidence_gap = 0;
  bool has_teacher = false;
};

Means means_of(const std::vector<SourceScores>& sources) {
  Means means;
  const double share = 1.0 / static_cast<double>(sources.size());
  for (const auto& source : sources) {
    const double targets = static_cast<double>(std::max<std::int64_t>(source.sums.targets, 1));
    means.nll += share * source.nll();
    means.bits_per_byte += share * source.bits_per_byte();
    means.top1 += share * source.top1();
    means.calibration_error += share * source.sums.confidence.expected_calibration_error();
    means.confidence_gap += share * source.sums.confidence.gap();
    if (!source.has_teacher) continue;
    means.has_teacher = true;
    means.teacher_nll += share * source.teacher_nll();
    means.teacher_bits_per_byte +=
        share * (source.nll() > 0 ? source.bits_per_byte() * source.teacher_nll() / source.nll() : 0);
    means.teacher_top1 += share * static_cast<double>(source.sums.teacher_top1_correct) / targets;
    means.kl += share * source.kl();
    means.top1_agreement += share * source.top1_agreement();
  }
  return means;
}

// Says [low, high], or null and why.
void put_interval(const std::vector<std::vector<RatioTerm>>& groups, base::Json& json) {
  NoInterval why{};
  const auto interval = bootstrap_interval(groups, {}, &why);
  json[keys::kNllDifferenceInterval] = to_json(interval);
  if (!interval) json[keys::kNoInterval] = base::word(why);
}

// [targets, mean confidence, accuracy] of each bin; the means are null without targets.
base::Json bins_json(const ConfidenceBins& confidence) {
  auto json = base::Json::array();
  for (const auto& bin : confidence.bins) {
    const auto targets = static_cast<double>(bin.targets);
    const auto mean = [&](double sum) {
      return targets > 0 ? base::Json(sum / targets) : base::Json(nullptr);
    };
    json.push_back({bin.targets, mean(bin.confidence), mean(static_cast<double>(bin.correct))});
  }
  return json;
}

base::Json source_json(const SourceScores& source) {
  base::Json json = {{keys::kName, source.name},
                     {keys::kTokens, source.sums.targets},
                     {keys::kBytes, source.bytes},
                     {keys::kDocuments, source.documents.size()},
                     {keys::kNll, source.nll()},
                     {keys::kPerplexity, std::exp(source.nll())},
                     {keys::kBitsPerByte, source.bits_per_byte()},
                     {keys::kTop1, source.top1()},
                     {keys::kEce, source.sums.confidence.expected_calibration_error()},
                     {keys::kConfidenceGap, source.sums.confidence.gap()},
                     {keys::kConfidenceBins, bins_json(source.sums.confidence)}};
  if (source.has_teacher) {
    json[keys::kKl] = source.kl();
    json[keys::kTop1Agreement] = source.top1_agreement();
    json[keys::kRecovery] = std::exp(source.teacher_nll() - source.nll());
    json[keys::kNllDifference] = source.nll() - source.teacher_nll();
    put_interval({source.nll_differences()}, json);
  }
  return json;
}

base::Json mean_json(const std::vector<SourceScores>& sources) {
  if (sources.empty()) return base::Json::object();
  const auto means = means_of(sources);
  base::Json json = {{keys::kNll, means.nll},
                     {keys::kPerplexity, std::exp(means.nll)},
                     {keys::kBitsPerByte, means.bits_per_byte},
                     {keys::kTop1, means.top1},
                     {keys::kEce, means.calibration_error},
                     {keys::kConfidenceGap, means.confidence_gap}};
  if (!means.has_teacher) return json;
  const double recovery = std::exp(means.teacher_nll - means.nll);
  std::vector<std::vector<RatioTerm>> differences;
  for (const auto& source : sources) differences.push_back(source.nll_differences());
  json[keys::kKl] = means.kl;
  json[keys::kTop1Agreement] = means.top1_agreement;
  json[keys::kRecovery] = recovery;
  json[keys::kNllDifference] = means.nll - means.teacher_nll;
  put_interval(differences, json);
  json[keys::kRecoveryPerMetric] = {
      {keys::kPerplexity, recovery},
      {keys::kBitsPerByte, means.bits_per_byte > 0 ? means.teacher_bits_per_byte / means.bits_per_byte : 0.0},
      {keys::kTop1, means.teacher_top1 > 0 ? means.top1 / means.teacher_top1 : 0.0}};
  return json;
}

base::Json model_json(const ModelScores& model) {
  base::Json json = {{keys::kName, model.name},
                     {keys::kParameters, model.parameters},
                     {keys::kNonzeroParameters, model.nonzero_parameters},
                     {keys::kFileBytes, model.file_bytes},
                     {keys::kTokensPerSecond, model.tokens_per_second()},
                     {keys::kSources, base::Json::array()},
                     {keys::kMean, mean_json(model.sources)}};
  if (!model.dequantised_from.empty()) json[keys::kDequantisedFrom] = model.dequantised_from;
  for (const auto& source : model.sources) json[keys::kSources].push_back(source_json(source));
  for (const auto& generation : model.generations) {
    json[keys::kGenerations].push_back({{keys::kPrompt, generation.prompt}, {keys::kText, generation.text}});
    if (!generation.messages.is_null())
      json[keys::kGenerations].back()[keys::kMessages] = generation.messages;
  }
  return json;
}

std::string hex(std::uint64_t value) {
  char digits[17] = {};
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(value));
  return digits;
}

}  // namespace

std::string document_lines(const ModelScores& model) {
  std::string lines;
  for (const auto& source : model.sources)
    for (const auto& scores : source.documents) {
      base::Json line = {{"model", model.name},
                         {"source", source.name},
                         {"number", scores.document.number},
                         {"hash", hex(scores.document.hash)},
                         {"bytes", scores.document.bytes},
                         {"tokens", scores.targets},
                         {"nll", scores.nll}};
      if (source.has_teacher) {
        line["teacher_nll"] = scores.teacher_nll;
        line["kl"] = scores.kl;
      }
      lines += line.dump(-1, ' ', false, base::Json::error_handler_t::replace) + "\n";
    }
  return lines;
}

void write_documents(const base::Path& file, const std::vector<ModelScores>& models) {
  base::AtomicFile lines(file);
  for (const auto& model : models) lines.write(document_lines(model));
  lines.commit();
}

base::Json to_json(std::int64_t context, Windowing windowing, const std::string& teacher,
                   const std::vector<ModelScores>& models) {
  base::Json json = {{keys::kKind, "evaluate"},
                     {keys::kContext, context},
                     {keys::kWindows, base::word(windowing)},
                     {keys::kTeacher, teacher.empty() ? base::Json(nullptr) : base::Json(teacher)},
                     {keys::kModels, base::Json::array()}};
  for (const auto& model : models) json[keys::kModels].push_back(model_json(model));
  return json;
}

}  // namespace retort::eval
