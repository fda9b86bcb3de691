#pragma once
// Which answers of a document are right.

#include <string>
#include <vector>

#include "retort/base/json.h"
#include "retort/tasks/requests.h"

namespace retort::tasks {

/// The place of a right choice: a whole number, a truth value that counts as one, or a choice's text.  Throws
/// DataError where it is none of `choices`.
std::int64_t choice_of(const base::Json& gold, const std::vector<std::string>& choices,
                       const std::string& where);

/// Of a multiple-choice document; `target` may be a list.  Throws likewise.
Gold gold_choices(const base::Json& target, const std::vector<std::string>& choices,
                  const std::string& where);

/// Of a document whose answer is generated.  Throws DataError for a target that is no text.
Gold gold_texts(const base::Json& target, const std::vector<std::string>& choices, const std::string& where);

/// str() of Python.  Throws DataError for a number beyond 64 bits, with `where`.
std::string python_text_of(const base::Json& value, const std::string& where);

}  // namespace retort::tasks
