#pragma once
// The names of what runs write as JSON and the report reads.  Each is a constant, so that a misspelt one does
// not compile.  docs/formats/ says what they mean.

#include <string_view>

namespace retort::record {

/// The key of a JSON object.  A string literal does not become one.
struct Key : std::string_view {
  explicit constexpr Key(const char* name) : std::string_view(name) {}
};

namespace keys {

// Recipe and provenance.
inline constexpr Key kStages{"stages"};
inline constexpr Key kData{"data"};
inline constexpr Key kKind{"kind"};
inline constexpr Key kFrom{"from"};
inline constexpr Key kTeacher{"teacher"};
inline constexpr Key kSearch{"search"};
inline constexpr Key kMethod{"method"};
inline constexpr Key kDevice{"device"};
inline constexpr Key kStarts{"starts"};
inline constexpr Key kStarted{"started"};
inline constexpr Key kHost{"host"};
inline constexpr Key kProcessor{"processor"};
inline constexpr Key kRetort{"retort"};
inline constexpr Key kTorch{"torch"};

// Metrics, and the result of a training stage.
inline constexpr Key kStage{"stage"};
inline constexpr Key kStep{"step"};
inline constexpr Key kTokens{"tokens"};
inline constexpr Key kLoss{"loss"};
inline constexpr Key kParts{"parts"};
inline constexpr Key kWrittenParts{"written_parts"};
inline constexpr Key kWritten{"written"};
inline constexpr Key kTexts{"texts"};
inline constexpr Key kMeanTokens{"mean_tokens"};
inline constexpr Key kEndedShare{"ended_share"};
inline constexpr Key kRepeatingShare{"repeating_share"};
inline constexpr Key kGradientNorm{"gradient_norm"};
inline constexpr Key kLr{"lr"};
inline constexpr Key kBeginOfText{"begin_of_text"};
inline constexpr Key kTokensPerSecond{"tokens_per_second"};
inline constexpr Key kPeakFraction{"peak_fraction"};
inline constexpr Key kPhaseSeconds{"phase_seconds"};
inline constexpr Key kOperationSeconds{"operation_seconds"};
inline constexpr Key kPhaseFlopsPerToken{"phase_flops_per_token"};
inline constexpr Key kOperationFlopsPerToken{"operation_flops_per_token"};
inline constexpr Key kSeconds{"seconds"};
inline constexpr Key kInputFiles{"input_files"};
inline constexpr Key kHeldOut{"held_out"};
inline constexpr Key kSteps{"steps"};
inline constexpr Key kFinal{"final"};
inline constexpr Key kMatrixProductFlops{"matrix_product_flops"};
inline constexpr Key kFlopsPerToken{"flops_per_token"};
inline constexpr Key kKeepActivations{"keep_activations"};
inline constexpr Key kStartedFrom{"started_from"};
inline constexpr Key kRanks{"ranks"};
inline constexpr Key kCollectives{"collectives"};
inline constexpr Key kCollectivesSteps{"collectives_steps"};
inline constexpr Key kGroup{"group"};
inline constexpr Key kOperation{"operation"};
inline constexpr Key kCalls{"calls"};
inline constexpr Key kMovedBytes{"moved_bytes"};
inline constexpr Key kRingBytes{"ring_bytes"};
inline constexpr Key kExposedSeconds{"exposed_seconds"};

// Texts that a model wrote, and what is said beside them.
inline constexpr Key kMessages{"messages"};
inline constexpr Key kDropped{"dropped"};
inline constexpr Key kSinceKept{"since_kept"};
inline constexpr Key kSettings{"settings"};
inline constexpr Key kBudgetTokens{"budget_tokens"};
inline constexpr Key kExhausted{"exhausted"};
inline constexpr Key kDate{"date"};
inline constexpr Key kXxh128{"xxh128"};

// What every stage costs.
inline constexpr Key kParameters{"parameters"};
inline constexpr Key kMemoryPlannedBytes{"memory_planned_bytes"};
inline constexpr Key kMemoryPlan{"memory_plan"};
inline constexpr Key kWhat{"what"};
inline constexpr Key kBytes{"bytes"};
inline constexpr Key kPeakTensorBytes{"peak_tensor_bytes"};
inline constexpr Key kProcessPeakBytes{"process_peak_bytes"};
inline constexpr Key kProcessPlannedBytes{"process_planned_bytes"};
inline constexpr Key kMemoryUnusedBytes{"memory_unused_bytes"};

// Loss increase and what is said beside it.
inline constexpr Key kObjective{"objective"};
inline constexpr Key kDeltaLogPerplexity{"delta_log_perplexity"};
inline constexpr Key kKl{"kl"};
inline constexpr Key kDomains{"domains"};
inline constexpr Key kWorstDomain{"worst_domain"};
inline constexpr Key kInterval{"interval"};

// Evaluate.
inline constexpr Key kTasks{"tasks"};
inline constexpr Key kComparisons{"comparisons"};
inline constexpr Key kModelName{"model_name"};
inline constexpr Key kModels{"models"};
inline constexpr Key kName{"name"};
inline constexpr Key kLabel{"label"};
inline constexpr Key kContext{"context"};
inline constexpr Key kWindows{"windows"};
inline constexpr Key kNonzeroParameters{"nonzero_parameters"};
inline constexpr Key kProgram{"program"};
inline constexpr Key kType{"type"};
inline constexpr Key kFile{"file"};
inline constexpr Key kChecks{"checks"};
inline constexpr Key kFileBytes{"file_bytes"};
inline constexpr Key kDequantisedFrom{"dequantised_from"};
inline constexpr Key kSources{"sources"};
inline constexpr Key kMean{"mean"};
inline constexpr Key kDocuments{"documents"};
inline constexpr Key kNll{"nll"};
inline constexpr Key kPerplexity{"perplexity"};
inline constexpr Key kBitsPerByte{"bits_per_byte"};
inline constexpr Key kTop1{"top1"};
inline constexpr Key kTop1Agreement{"top1_agreement"};
inline constexpr Key kRecovery{"recovery"};
inline constexpr Key kRecoveryPerMetric{"recovery_per_metric"};
inline constexpr Key kNllDifference{"nll_difference"};
inline constexpr Key kNllDifferenceInterval{"nll_difference_interval"};
inline constexpr Key kNoInterval{"no_interval"};
inline constexpr Key kEce{"ece"};
inline constexpr Key kConfidenceGap{"confidence_gap"};
inline constexpr Key kConfidenceBins{"confidence_bins"};
inline constexpr Key kGenerations{"generations"};
inline constexpr Key kPrompt{"prompt"};
inline constexpr Key kText{"text"};
inline constexpr Key kSparsity{"sparsity"};
inline constexpr Key kModel{"model"};
inline constexpr Key kBefore{"before"};

// Select, and the cost of a model.
inline constexpr Key kChosen{"chosen"};
inline constexpr Key kDirectory{"directory"};
inline constexpr Key kStudent{"student"};
inline constexpr Key kBehind{"behind"};
inline constexpr Key kTied{"tied"};
inline constexpr Key kActiveParameters{"active_parameters"};
inline constexpr Key kSpeed{"speed"};
inline constexpr Key kConditions{"conditions"};
inline constexpr Key kDtype{"dtype"};
inline constexpr Key kBatch{"batch"};
inline constexpr Key kCost{"cost"};
inline constexpr Key kCostBefore{"cost_before"};

// Prune.
inline constexpr Key kParametersBefore{"parameters_before"};
inline constexpr Key kParametersTarget{"parameters_target"};
inline constexpr Key kLatency{"latency"};
inline constexpr Key kTargetSeconds{"target_seconds"};
inline constexpr Key kSecondsBefore{"seconds_before"};
inline constexpr Key kSecondsAfter{"seconds_after"};
inline constexpr Key kTimes{"times"};
inline constexpr Key kTeacherSeconds{"teacher_seconds"};
inline constexpr Key kMeetsTarget{"meets_target"};
inline constexpr Key kParametersAfter{"parameters_after"};
inline constexpr Key kBlocksBefore{"blocks_before"};
inline constexpr Key kWidthBefore{"width_before"};
inline constexpr Key kKvGroupsBefore{"kv_groups_before"};
inline constexpr Key kHiddenBefore{"hidden_before"};
inline constexpr Key kKept{"kept"};
inline constexpr Key kLoads{"loads"};
inline constexpr Key kBlocks{"blocks"};
inline constexpr Key kChannels{"channels"};
inline constexpr Key kKvGroups{"kv_groups"};
inline constexpr Key kHidden{"hidden"};
inline constexpr Key kSlicedOutputDifference{"sliced_output_difference"};
inline constexpr Key kCalibration{"calibration"};
inline constexpr Key kDecisions{"decisions"};
inline constexpr Key kAction{"action"};
inline constexpr Key kBlock{"block"};
inline constexpr Key kWidth{"width"};
inline constexpr Key kParametersRemoved{"parameters_removed"};
inline constexpr Key kScore{"score"};
inline constexpr Key kKlGap{"kl_gap"};
inline constexpr Key kExact{"exact"};
inline constexpr Key kCandidate{"candidate"};
inline constexpr Key kCandidates{"candidates"};
inline constexpr Key kFinalists{"finalists"};
inline constexpr Key kCompensation{"compensation"};
inline constexpr Key kLayers{"layers"};
inline constexpr Key kSingular{"singular"};
inline constexpr Key kEachAlone{"each_alone"};
inline constexpr Key kHeldOutGain{"held_out_gain"};
inline constexpr Key kHeldOutObjectiveBefore{"held_out_objective_before"};
inline constexpr Key kHeldOutObjectiveAfter{"held_out_objective_after"};
inline constexpr Key kObjectiveUncompensated{"objective_uncompensated"};
inline constexpr Key kSearchedObjective{"searched_objective"};
inline constexpr Key kBelieved{"believed"};
inline constexpr Key kSaved{"saved"};
inline constexpr Key kComparedAfterCompensation{"compared_after_compensation"};
inline constexpr Key kUnits{"units"};
inline constexpr Key kEvaluations{"evaluations"};
inline constexpr Key kEvaluationsNotFinite{"evaluations_not_finite"};
inline constexpr Key kTokensSpent{"tokens_spent"};
inline constexpr Key kTokensBudget{"tokens_budget"};
inline constexpr Key kCurve{"curve"};

// Sparsify.
inline constexpr Key kPattern{"pattern"};
inline constexpr Key kZerosFraction{"zeros_fraction"};
inline constexpr Key kDamage{"damage"};
inline constexpr Key kSingleDamages{"single_damages"};
inline constexpr Key kCumulativeDamages{"cumulative_damages"};
inline constexpr Key kUpToBlock{"up_to_block"};
inline constexpr Key kSparse{"sparse"};
inline constexpr Key kRows{"rows"};
inline constexpr Key kCols{"cols"};
inline constexpr Key kDampening{"dampening"};
inline constexpr Key kIdentityResidual{"identity_residual"};
inline constexpr Key kKeptShareBefore{"kept_share_before"};
inline constexpr Key kKeptShareAfter{"kept_share_after"};
inline constexpr Key kRelativeError{"relative_error"};

// Profile.
inline constexpr Key kTaps{"taps"};
inline constexpr Key kDownInput{"down_input"};
inline constexpr Key kFeatures{"features"};
inline constexpr Key kMaximum{"maximum"};
inline constexpr Key kQuantiles{"quantiles"};
inline constexpr Key kInactiveChannels{"inactive_channels"};
inline constexpr Key kMassiveChannels{"massive_channels"};
inline constexpr Key kChannel{"channel"};
inline constexpr Key kOverMedian{"over_median"};

}  // namespace keys
}  // namespace retort::record
