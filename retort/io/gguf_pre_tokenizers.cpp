#include "retort/io/gguf_pre_tokenizers.h"

#include <array>

namespace retort::io {
namespace {

// How text is cut before BPE; the expressions are those of the models' own tokenizer.json.
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Each of a list cuts further what the one before has left.
constexpr std::array kLlama3s = {kLlama3}, kQwen2s = {kQwen2}, kO200ks = {kO200k};
constexpr std::string_view kLineBreak = "[\r\n]", kCjk = "[一-龥ࠀ-一가-퟿]+";
constexpr std::array<std::string_view, 5> kDeepSeekLlm = {
    kLineBreak,
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶ-ͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃ-ↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲ-ⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)",
    R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)", R"(\s+$)", kCjk};
constexpr std::array<std::string_view, 4> kDeepSeekCoder = {kLineBreak, R"(\s?\p{L}+)", R"(\s?\p{P}+)", kCjk};

const std::array kPreTokenizers{
    PreTokenizer{.name = "gpt-2", .patterns = {}},
    PreTokenizer{.name = "olmo", .patterns = {}, .composed = true},
    PreTokenizer{.name = "smollm", .patterns = {}, .digits = SingleDigits::first},
    PreTokenizer{.name = "starcoder", .patterns = {}, .digits = SingleDigits::first},
    PreTokenizer{.name = "refact", .patterns = {}, .digits = SingleDigits::first},
    PreTokenizer{.name = "command-r", .patterns = {}, .digits = SingleDigits::first},
    PreTokenizer{.name = "llama-bpe", .patterns = kLlama3s, .ignore_merges = true, .bos = true},
    PreTokenizer{.name = "llama3", .patterns = kLlama3s, .ignore_merges = true, .bos = true},
    PreTokenizer{.name = "llama-v3", .patterns = kLlama3s, .ignore_merges = true, .bos = true},
    PreTokenizer{.name = "dbrx", .patterns = kLlama3s},
    PreTokenizer{.name = "smaug-bpe", .patterns = kLlama3s},
    PreTokenizer{.name = "gpt-4o", .patterns = kO200ks},
    PreTokenizer{.name = "qwen2", .patterns = kQwen2s, .composed = true},
    PreTokenizer{.name = "deepseek-r1-qwen", .patterns = kQwen2s},
    PreTokenizer{.name = "deepseek-llm", .patterns = kDeepSeekLlm, .digits = SingleDigits::last, .bos = true},
    PreTokenizer{
        .name = "deepseek-coder", .patterns = kDeepSeekCoder, .digits = SingleDigits::last, .bos = true},
    PreTokenizer{.name = "tekken", .patterns = {&kTekkenPattern, 1}, .ignore_merges = true, .bos = true},
};

}  // namespace

std::span<const PreTokenizer> pre_tokenizers() {
  return kPreTokenizers;
}

}  // namespace retort::io
