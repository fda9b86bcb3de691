// What `retort verify` does with a directory that `retort export` wrote.
#include <ATen/ATen.h>

#include "retort/base/error.h"
#include "retort/pipeline/behaviour.h"
#include "retort/pipeline/context.h"
#include "retort/pipeline/pipeline.h"
#include "retort/pipeline/torch_errors.h"
#include "retort/publish/certificate.h"

namespace retort::pipeline {
namespace {

using base::Json;

// Whether the model that an export was made from is where it was.
bool source_is_there(const Json& source) try {
  return source.contains("xxh128") &&
         weight_checksums(source.at("directory").get<std::string>()) == source.at("xxh128");
} catch (const base::Error&) {
  return false;
}

Json verify_export(const VerifyRequest& request, record::Observer& observer) {
  const base::Path directory = request.model.model;
  Json certificate = publish::read_certificate(directory);
  publish::require_unchanged(certificate, directory);
  ModelRequest written = request.model, source = request.model;
  written.model = (directory / base::Path(certificate["model"].get<std::string>())).string();
  const bool with_source = source_is_there(certificate["source"]);
  source.model = certificate["source"]["directory"];
  const auto texts = recorded_texts(certificate["recorded"]);
  const auto first = with_source ? behaviour_of(source, &texts, observer) : Behaviour{};
  record::Observer silent;
  const auto own = behaviour_of(written, with_source ? &first : &texts, silent);
  require_as_recorded(own, certificate["recorded"], directory.string());
  if (with_source) certificate["checks"] = compared(first, own);
  certificate["source"]["compared"] = with_source;
  return certificate;
}

}  // namespace

Json verify(const VerifyRequest& request, record::Observer& observer) {
  Json certificate;
  translate_torch_errors([&] { certificate = verify_export(request, observer); });
  return certificate;
}

}  // namespace retort::pipeline
