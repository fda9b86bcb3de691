#include "retort/pipeline/export.h"

#include <filesystem>
#include <functional>
#include <memory>

#include "retort/architecture/counts.h"
#include "retort/base/as_errors.h"
#include "retort/base/error.h"
#include "retort/base/printable.h"
#include "retort/model/lineage.h"
#include "retort/pipeline/behaviour.h"
#include "retort/pipeline/context.h"
#include "retort/pipeline/inspect_model.h"
#include "retort/pipeline/measured.h"
#include "retort/pipeline/pipeline.h"
#include "retort/pipeline/torch_errors.h"
#include "retort/publish/card.h"
#include "retort/publish/certificate.h"
#include "retort/publish/form.h"
#include "retort/record/provenance.h"

namespace retort::pipeline {
namespace {

namespace fs = std::filesystem;
using base::Json;
using base::require;
using base::UsageError;
using base::ValidationError;

// Of logits in float32, where the written type holds every value of the source.
constexpr double kLogitTolerance = 1e-3;

// Nothing of the user's is replaced.
void require_place(const base::Path& out) {
  std::error_code ignored;
  const bool taken =
      fs::exists(out, ignored) && !(fs::is_directory(out, ignored) && fs::is_empty(out, ignored));
  require<UsageError>(!taken, "export: ", out.string(),
                      " is there, expected a new or empty directory; name another.");
}

// What is written, and from what.
std::unique_ptr<const publish::Form> form_of(const ExportRequest& request, record::Observer& observer) {
  const base::Path model = request.model.model;
  record::Observer silent;  // what is to be said of the model is said when it is loaded
  const auto config = inspect_model(model, silent);
  auto form = std::make_unique<publish::Form>(request.options, model,
                                              model::read_lineage(model, config).kept.numbers());
  if (form->zeros() > 0)
    observer.message(record::Level::info,
                     base::join("blocks differ, so ", form->zeros(), " zeros make them alike, beside ",
                                architecture::num_parameters(config), " parameters"));
  return form;
}

// Errors name the files where they will be, and not where they lie until then.
void naming(const base::Path& out, const base::Path& temporary, const std::function<void()>& act) try {
  base::as_errors(act);
} catch (const base::Error& error) {
  std::string sentence = error.what();
  const std::string shown = out.string(), hidden = temporary.string();
  for (std::size_t at = sentence.find(hidden); at != sentence.npos;
       at = sentence.find(hidden, at + shown.size()))
    sentence.replace(at, hidden.size(), shown);
  base::throw_error(error.code(), sentence);
}

// What has to be so of a form that loses nothing, and the ids in any form.
void require_same(const Json& checks, const std::string& other, bool exact) {
  require<ValidationError>(
      other.empty(), "export: what would be written changes ", other,
      ", expected the same as the model's tokenizer and chat template give; nothing was written, use "
      "--for transformers.");
  const double difference = checks["logits"]["largest_difference"];
  require<ValidationError>(!exact || difference <= kLogitTolerance,
                           "export: logits of what was written differ by ", difference, ", expected ",
                           kLogitTolerance, " at most; nothing was written.");
}

}  // namespace

Json export_to(const ExportRequest& request, record::Observer& observer) {
  const auto form = form_of(request, observer);
  Json certificate;
  const auto source = behaviour_of(request.model, nullptr, observer);
  base::write_directory_atomically(request.out, [&](const base::Path& directory) {
    naming(request.out, directory, [&] {
      const auto made = form->write(directory);
      const auto& main = made.model;
      ModelRequest written = request.model;
      written.model = main.string();
      record::Observer silent;  // what there is to say was said of the model that it was made from
      const auto own = behaviour_of(written, &source, silent);
      certificate = {
          {"format", publish::kCertificateFormat},
          {"retort", record::long_version()},
          {"program", base::word(request.options.program)},
          {"type", form->type()},
          {"seen", form->seen()},
          {"model", base::as_utf8(fs::relative(main, directory).native())},
          {"source", {{"directory", request.model.model}, {"xxh128", weight_checksums(request.model.model)}}},
          {"checks", compared(source, own)},
          {"recorded", recorded(own)}};
      if (!request.options.like.empty())
        certificate["like"] = {{"quantised", made.values->all}, {"kept", made.values->kept}};
      require_same(certificate["checks"], first_difference(source, own), form->is_exact());
      publish::write_card(certificate, form->config(), form->name(), request.model.model, request.measured,
                          directory);
      certificate["files"] = publish::hashed_files(directory);
      base::write_file_atomically(directory / publish::kCertificateFile, certificate.dump(1) + "\n");
    });
  });
  return certificate;
}

Json export_model(const ExportRequest& request, record::Observer& observer) {
  Json certificate;
  translate_torch_errors([&] {
    require_place(request.out);
    ExportRequest own = request;
    if (own.measured.empty()) own.measured = measured_in_run(request.model.model);
    certificate = export_to(own, observer);
  });
  return certificate;
}

}  // namespace retort::pipeline
