#include "retort/chat/python_regex_program.h"

#include <utility>

namespace retort::chat {
namespace {

using Kind = RegexNode::Kind;
constexpr std::size_t kMostInstructions = 20'000;

class Compiler {
 public:
  explicit Compiler(const RegexSyntax& syntax) : num_slots_(2 * (syntax.num_groups + 1)) {
    compile(*syntax.root);
    add(RegexInstruction::Op::accept);
  }
  std::vector<RegexInstruction> program;
  std::size_t num_slots() const { return num_slots_; }

 private:
  using Op = RegexInstruction::Op;

  std::size_t add(Op op, const RegexNode* node = nullptr, std::size_t first = 0) {
    if (program.size() >= kMostInstructions) throw RegexFault{"is larger than Retort reads"};
    program.push_back({op, node, first, 0, 0});
    return program.size() - 1;
  }

  void compile(const RegexNode& node) {
    switch (node.kind) {
      case Kind::sequence:
        for (const auto& child : node.children) compile(*child);
        break;
      case Kind::group:
        if (node.group > 0) add(Op::keep, nullptr, 2 * node.group);
        compile(*node.children[0]);
        if (node.group > 0) add(Op::keep, nullptr, 2 * node.group + 1);
        break;
      case Kind::alternation:
        alternation(node);
        break;
      case Kind::repeat:
        repeat(node);
        break;
      case Kind::look: {
        const auto at = add(Op::look, &node);
        compile(*node.children[0]);
        program[at].first = add(Op::accept);
        break;
      }
      default:
        add(Op::test, &node);
    }
  }

  void alternation(const RegexNode& node) {
    std::vector<std::size_t> ends;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const bool last = i + 1 == node.children.size();
      const auto split = last ? 0 : add(Op::split);
      if (!last) program[split].first = split + 1;
      compile(*node.children[i]);
      if (last) break;
      ends.push_back(add(Op::jump));
      program[split].second = program.size();
    }
    for (const auto end : ends) program[end].first = program.size();
  }

  // Python leaves a loop whose body took nothing, whether it has a bound or not.
  void repeat(const RegexNode& node) {
    const RegexNode& body = *node.children[0];
    for (std::int64_t i = 0; i < node.least; ++i) compile(body);
    const auto slot = num_slots_++;
    add(Op::forget, nullptr, slot);
    std::vector<std::size_t> entries;
    const bool unbounded = node.most == RegexNode::kNoBound;
    for (std::int64_t i = node.least; unbounded ? entries.empty() : i < node.most; ++i) {
      entries.push_back(add(Op::loop, &node));
      add(Op::keep, nullptr, slot);
      compile(body);
    }
    if (unbounded) add(Op::jump, nullptr, entries.front());
    for (const auto entry : entries) {
      program[entry].first = entry + 1;
      program[entry].second = program.size();
      program[entry].slot = slot;
    }
  }

  std::size_t num_slots_;
};

}  // namespace

void compile_regex(std::vector<RegexInstruction>& instructions, std::size_t& num_slots,
                   const RegexSyntax& syntax) {
  Compiler compiler(syntax);
  num_slots = compiler.num_slots();
  instructions = std::move(compiler.program);
}

}  // namespace retort::chat
