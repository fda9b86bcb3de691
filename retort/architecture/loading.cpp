#include "retort/architecture/loading.h"

#include "retort/architecture/families.h"
#include "retort/architecture/hf_layers.h"
#include "retort/base/error.h"

namespace retort::architecture {
namespace {

std::string of_class(const Family& family) {
  return base::join("in transformers, as ", family.architecture, "; elsewhere as retort export writes it");
}

std::string of_own_form() {
  return base::join("in transformers with trust_remote_code=True, by the code beside it (", kModelingFile,
                    "); elsewhere, and without that code, as retort export writes it");
}

}  // namespace

std::string where_it_loads(const Config& config) try {
  const WrittenForm form = written_form(config);
  return form.is_own ? of_own_form() : of_class(*form.family);
} catch (const base::ModelError&) {
  return "nowhere once it is written again: no family says all that it computes";
}

std::string where_it_will_load(const Config& input, bool alike) {
  return alike && input.uniform() ? where_it_loads(input) : of_own_form();
}

}  // namespace retort::architecture
