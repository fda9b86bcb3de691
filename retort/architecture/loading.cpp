#include "retort/architecture/loading.h"

#include "retort/architecture/families.h"
#include "retort/architecture/hf_layers.h"
#include "retort/base/error.h"

namespace retort::architecture {
namespace {

std::string of_class(const Family& family) {
  return base::join("in transformers, as ", family.architecture,
                    family.converted ? "; in llama.cpp by its convert_hf_to_gguf.py, where that knows the "
                                       "tokenizer; vLLM was not tried"
                                     : "; llama.cpp and vLLM were not tried with this class");
}

std::string of_own_form(const char* why_not_elsewhere) {
  return base::join("in transformers with trust_remote_code=True, by the code beside it (", kModelingFile,
                    "); not in llama.cpp or vLLM, ", why_not_elsewhere);
}

constexpr const char* kOneSize = "whose blocks have one size: units: uniform or blocks makes such models";

}  // namespace

std::string where_it_loads(const Config& config) try {
  const WrittenForm form = written_form(config);
  if (!form.is_own) return of_class(*form.family);
  return of_own_form(config.uniform() ? "because its class in transformers refuses this number of heads"
                                      : kOneSize);
} catch (const base::ModelError&) {
  return "nowhere once it is written again: no family says all that it computes";
}

std::string where_it_will_load(const Config& input, bool alike) {
  return alike && input.uniform() ? where_it_loads(input) : of_own_form(kOneSize);
}

}  // namespace retort::architecture
