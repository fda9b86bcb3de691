#pragma once
// Reading JSON that may be incomplete or of another shape: what is missing is empty, nothing throws.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "retort/base/json.h"
#include "retort/record/keys.h"

namespace retort::report {

namespace keys = record::keys;

/// The value under `key`, or a null when there is none or `object` is no object.
const base::Json& field(const base::Json& object, record::Key key);
/// The same under a name that is no key of ours: of a source, of a tap.
const base::Json& entry(const base::Json& object, std::string_view name);
/// A finite number, else empty.
std::optional<double> number(const base::Json& value);
std::optional<double> number(const base::Json& object, record::Key key);
/// The number under "seconds", in milliseconds.
std::optional<double> milliseconds(const base::Json& object);
/// A string as it is, a number or truth value as JSON spells it, else "".
std::string text(const base::Json& value);
std::string text(const base::Json& object, record::Key key);
/// What a model of an evaluate stage is called in tables: its label, or else its name.
std::string label_of(const base::Json& model);
/// "kl_divergence" as "kl divergence".
std::string title_of_part(std::string name);
/// Whether the value under `key` is true.
bool is_true(const base::Json& object, record::Key key);
/// The elements of an array, else nothing.
const std::vector<base::Json>& elements(const base::Json& value);
/// The two numbers under "interval", "0.0101 to 0.0150", else kMissing.
std::string interval_of(const base::Json& object);
/// "tied" or "worse" than the best, as an interval tells; kMissing where there is none.
std::string standing_of(const base::Json& object);
/// How the times of a stage's models came about: "put together from the blocks, in fp32".
std::string timing_of(const base::Json& result);
/// The elements that are whole numbers in [0, limit), at most `limit` of them; a pair is its first to its
/// last number.
std::vector<std::size_t> indices(const base::Json& value, std::size_t limit);

}  // namespace retort::report
