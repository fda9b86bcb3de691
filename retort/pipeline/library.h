#pragma once
// The door of libretort.so for a program that loads it only when something is computed.  The program itself
// links the layers that need no torch, so that its help and its error messages need not wait for torch.

#include "retort/pipeline/chat.h"
#include "retort/pipeline/pipeline.h"

namespace retort::pipeline {

/// The functions of pipeline.h.
struct Library {
  RunOutcome (*run)(recipe::Recipe recipe, const RunRequest& request, record::Observer& observer);
  base::Json (*evaluate)(const EvalRequest& request, record::Observer& observer);
  base::Json (*evaluate_tasks)(const TasksRequest& request, record::Observer& observer);
  base::Json (*generate)(const GenerateRequest& request, record::Observer& observer);
  base::Json (*generate_file)(const GenerateFileRequest& request, record::Observer& observer);
  base::Json (*generate_corpus)(const CorpusRequest& request, record::Observer& observer);
  void (*chat)(const ChatRequest& request, ChatPartner& partner, record::Observer& observer);
  base::Json (*bench_gemm)(const BenchRequest& request, record::Observer& observer);
  base::Json (*bench_kernels)(const BenchRequest& request, record::Observer& observer);
  base::Json (*bench_generation)(const BenchGenerationRequest& request, record::Observer& observer);
  base::Json (*export_model)(const ExportRequest& request, record::Observer& observer);
  base::Json (*foresee)(const recipe::Recipe& recipe, const publish::ExportOptions& options);
  base::Json (*verify)(const VerifyRequest& request, record::Observer& observer);
};

}  // namespace retort::pipeline

/// What dlsym() finds in a libretort.so of the same release.
extern "C" const retort::pipeline::Library* retort_library();
