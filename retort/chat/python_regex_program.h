#pragma once
// A regular expression as instructions of a backtracking matcher.

#include <cstddef>
#include <string>
#include <vector>

#include "retort/chat/python_regex_syntax.h"

namespace retort::chat {

struct RegexInstruction {
  enum class Op {
    test,    ///< the node's own kind: a character, a place or a reference
    split,   ///< tries `first`, then `second`
    jump,    ///< to `first`
    keep,    ///< the place in slot `first`
    forget,  ///< slot `first`
    loop,    ///< to `first`, then `second`; to `second` alone where nothing was taken since slot `slot`
    look,    ///< up to `first`, which is an `accept`
    accept
  };
  Op op = Op::test;
  const RegexNode* node = nullptr;
  std::size_t first = 0, second = 0, slot = 0;
};

struct PythonRegex::Program {
  std::string pattern;
  RegexSyntax syntax;
  std::vector<RegexInstruction> instructions;
  std::size_t num_slots = 0;  ///< two for each group, the whole match first; others are for loops
};

/// Fills the instructions of a program that has its syntax.  Throws RegexFault for one that is too large.
void compile_regex(std::vector<RegexInstruction>& instructions, std::size_t& num_slots,
                   const RegexSyntax& syntax);

}  // namespace retort::chat
