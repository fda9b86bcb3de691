#include "retort/pipeline/text_model.h"

#include "retort/eval/generation_config.h"
#include "retort/model/dtype.h"
#include "retort/model/weights.h"
#include "retort/ops/tensor_allocator.h"
#include "retort/pipeline/float32_products.h"
#include "retort/pipeline/inspect_model.h"
#include "retort/pipeline/sampling.h"

namespace retort::pipeline {

TextModel::TextModel(const ModelRequest& request, const SamplingRequest& asked, record::Observer& observer)
    : path(request.model),
      device(model::parse_device(request.device)),
      config(inspect_model(request.model, observer)),
      dtype(model::parse_scoring_dtype(request.dtype, device)),
      text(read_model_text(request.model, config)),
      sampling(sampling_of(asked, request.model)),
      stop_ids(eval::end_of_text_ids(request.model, config)),
      ids_without_token(text.ids_without_token(config.vocab_size)) {
  ops::install_tensor_allocator();
  settle_float32_products(device, observer);
}

TextModel::TextModel(const base::Path& model, at::Device where, at::ScalarType type,
                     record::Observer& observer)
    : path(model),
      device(where),
      config(inspect_model(model, observer)),
      dtype(type),
      text(read_model_text(model, config)),
      stop_ids(eval::end_of_text_ids(model, config)),
      ids_without_token(text.ids_without_token(config.vocab_size)) {}

eval::TextWeights TextModel::load() const {
  return {model::open_weights(path), dtype, device};
}

}  // namespace retort::pipeline
