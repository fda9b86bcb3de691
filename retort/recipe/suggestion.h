#pragma once
// What somebody may have meant by a word that a recipe does not know: the word of the same meaning that other
// tools use, or the nearest in spelling.

#include <string>
#include <string_view>
#include <vector>

namespace retort::recipe {

/// Returns the word of `known` that was probably meant, or nothing when none is near.  `known` are the words
/// that are allowed here, with dots where they stand in a map of their own ("optim.lr").
std::string meant(std::string_view written, const std::vector<std::string>& known);

/// Returns "; did you mean 'lr'?", or nothing.
std::string did_you_mean(std::string_view written, const std::vector<std::string>& known);

}  // namespace retort::recipe
