#include "retort/base/error.h"
#include "retort/recipe/bind_options.h"

namespace retort::recipe {

void require_one(Binder& b, const std::vector<const char*>& keys, const char* expected) {
  std::vector<const char*> given;
  for (const char* key : keys)
    if (b.given(key)) given.push_back(key);
  if (given.empty()) b.mistake("", base::join("expected ", expected, ", found none; give one"));
  if (given.size() > 1)
    b.mistake(given[1], base::join("found both ", given[0], " and ", given[1], "; give one"));
}

void bind_time(Binder& b, eval::TimeTarget& target) {
  b.number(
      "latency", target.latency,
      {.doc = "share of the time that the whole model, in a select stage the teacher, takes for a token, "
              "such as 80%",
       .above = 0,
       .below = 1,
       .unset = "none",
       .written = target.latency > 0});
  b.number(
      "milliseconds", target.milliseconds,
      {.doc = "instead: that time itself", .above = 0, .unset = "none", .written = target.milliseconds > 0});
  b.number("tokens_per_second", target.tokens_per_second,
           {.doc = "instead: of all texts of a batch",
            .above = 0,
            .unset = "none",
            .written = target.tokens_per_second > 0});
  b.count("batch", target.batch,
          {.doc = "of a time: texts that get a token together",
           .at_least = 1,
           .at_most = 4096,
           .written = target.is_given()});
  b.count("context", target.context,
          {.doc = "of a time: tokens that each text has by then",
           .at_least = 32,
           .at_most = 1 << 20,
           .written = target.is_given()});
  b.one_of("dtype", target.dtype, {"auto", "fp32", "bf16", "fp64"},
           {.doc = "of a time: the type that texts are made in; auto: as generate takes it",
            .written = target.is_given()});
  for (const char* key : {"batch", "context", "dtype"})
    if (b.given(key) && !target.is_given())
      b.mistake(key, "has no meaning without latency, milliseconds or tokens_per_second; leave it out");
}

void bind_target_of_select(Binder& b, eval::TimeTarget& target) {
  const bool is_given = b.given("target");
  b.group("target",
          [&](Binder& inner) {
            bind_time(inner, target);
            if (is_given)
              require_one(inner, {"latency", "milliseconds", "tokens_per_second"},
                          "latency, such as 80%, milliseconds or tokens_per_second");
          },
          {.doc = "how long the chosen model may take for a token", .written = target.is_given()});
}

}  // namespace retort::recipe
