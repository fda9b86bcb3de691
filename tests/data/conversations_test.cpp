// Conversations as text to learn: ids, answers, packing.
#include "retort/data/conversations.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>

#include "data/corpus.h"
#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/chat/answers.h"
#include "retort/chat/encode.h"
#include "retort/chat/template_files.h"
#include "retort/data/chat_encoder.h"
#include "retort/data/countable_text.h"
#include "retort/data/file_form.h"
#include "retort/data/inspection.h"
#include "retort/data/overlap.h"
#include "retort/data/sequence_stream.h"
#include "retort/data/tokenized.h"
#include "retort/data/whole_documents.h"
#include "retort/data/windows.h"
#include "support/outside_data.h"

namespace retort::data {
namespace {

using base::DataError;
using base::Json;
using test::encode_bytes;
using test::kFirstByteId;
using test::kSpecial;
using test::message_of;
using Ids = std::vector<std::int32_t>;

// Q, A and the ends of both are single ids: "Q" text "q" "A" text "a".
constexpr std::int32_t kQuestion = 3, kAnswer = 4, kEnd = 5;

Encode chat_bytes() {
  Encode encode = encode_bytes;
  encode.chat = [](const chat::Conversation& conversation) {
    ChatTokens tokens;
    for (const Json& message : conversation.messages) {
      const bool answer = message.at("role") == "assistant";
      const auto text = message.at("content").get<std::string>();
      base::require<DataError>(text != "refuse me", "the template refuses");
      tokens.ids.push_back(answer ? kAnswer : kQuestion);
      tokens.is_answer.push_back(0);
      for (const auto id : encode_bytes(text)) tokens.ids.push_back(id), tokens.is_answer.push_back(answer);
      tokens.ids.push_back(kEnd);
      tokens.is_answer.push_back(answer);
      tokens.bytes += std::ssize(text);
      tokens.answer_bytes += answer ? std::ssize(text) : 0;
    }
    return tokens;
  };
  return encode;
}

std::string chat_line(const std::string& question, const std::string& answer) {
  Json messages = Json::array({{{"role", "user"}, {"content", question}}});
  if (!answer.empty()) messages.push_back({{"role", "assistant"}, {"content", answer}});
  return Json{{"messages", messages}}.dump() + "\n";
}

class Conversations : public test::Corpus {
 protected:
  SourceOptions chats(const std::string& name, const std::string& lines) const {
    auto options = source({write(name + ".jsonl", lines)}, name);
    options.chat = true;
    return options;
  }
  // Answers of 1 to `longest` letters that name themselves.
  static std::string lines(int count, int longest, const std::string& prefix = "c") {
    std::string all;
    for (const auto& text : test::numbered_texts(prefix, count, static_cast<std::uint64_t>(longest)))
      all += chat_line("?" + text.substr(0, text.find(' ')), text);
    return all;
  }
};

// What the targets of sequences spell.
std::string spelled(const Sequence& sequence) {
  std::string text;
  for (const auto target : sequence.targets)
    if (target >= kFirstByteId) text += static_cast<char>(target - kFirstByteId);
  return text;
}

TEST(ConversationOracle, IdsAndAnswersAreThoseOfTransformers) {
  const auto folder = test::oracles("answers");
  const std::string content = base::read_file(folder / "cases.jsonl", std::size_t{1} << 28);
  std::map<std::string, text::Tokenizer> tokenizers;
  std::size_t cases = 0;
  for (std::size_t start = 0; start < content.size();) {
    const auto end = content.find('\n', start);
    const Json line = base::parse_json(std::string_view(content).substr(start, end - start));
    start = end + 1;
    SCOPED_TRACE(line.at("name").get<std::string>());
    const auto name = line.at("tokenizer").get<std::string>();
    auto tokenizer = tokenizers.find(name);
    if (tokenizer == tokenizers.end())
      tokenizer =
          tokenizers
              .emplace(name, text::Tokenizer::from_file(folder / "tokenizers" / name / "tokenizer.json"))
              .first;
    chat::TemplateVariables variables;
    for (const auto& [key, value] : line.at("variables").items())
      variables.emplace_back(key, value.get<std::string>());
    const auto chosen =
        chat::ChatTemplate::parse(line.at("template").get<std::string>(), "template", variables);
    chat::AnsweredConversation got;
    ASSERT_NO_THROW(got =
                        chat::encode_answers(chosen, tokenizer->second,
                                             conversation_of(conversation_text(line.at("record"), "text"))));
    EXPECT_EQ(got.ids, line.at("ids").get<Ids>());
    Ids mask(got.is_answer.begin(), got.is_answer.end());
    EXPECT_EQ(mask, line.at("mask").get<Ids>()) << got.text;
    ++cases;
  }
  EXPECT_GE(cases, 150U);
}

TEST(ConversationText, IsTheSameHoweverAFileWritesIt) {
  const auto text = [](const char* json, std::string_view field = "text") {
    return conversation_text(Json::parse(json), field);
  };
  const auto expected = R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]})";
  for (
      const char* json :
      {R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})",
       R"({"id": 3, "conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]})",
       R"({"conversations": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})",
       R"({"prompt": "a", "completion": "b"})",
       R"({"prompt": [{"role": "user", "content": "a"}], "completion": [{"role": "assistant", "content": "b"}]})",
       R"({"instruction": "a", "input": "", "output": "b"})", R"({"instruction": "a", "output": "b"})"})
    EXPECT_EQ(text(json), expected) << json;
  EXPECT_EQ(text(R"({"turns": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})",
                 "turns"),
            expected);
  EXPECT_EQ(text(R"({"instruction": "a", "input": "c", "output": "b"})"),
            R"({"messages":[{"role":"user","content":"a\n\nc"},{"role":"assistant","content":"b"}]})");
  const auto tools = text(
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": null, "tool_calls": [{"id": "1"}]}], "tools": "[{\"name\": \"f\"}]"})");
  EXPECT_NE(tools.find(R"("tools":[{"name":"f"}])"), tools.npos) << tools;
  EXPECT_NE(tools.find(R"("tool_calls":[{"id":"1"}])"), tools.npos) << tools;
}

TEST(ConversationText, SaysWhatIsNoConversation) {
  const auto refused = [](const char* json) {
    try {
      return conversation_text(Json::parse(json), "text");
    } catch (const base::JsonFault& fault) {
      return fault.reason;
    }
  };
  EXPECT_SAYS(refused(R"({"text": "a"})"),
              "found the keys \"text\"; a source of plain text has no chat: true");
  EXPECT_SAYS(refused(R"([1])"), "expected an object with a conversation");
  EXPECT_SAYS(refused(R"({"messages": []})"), "expected a list of messages as \"messages\"");
  EXPECT_SAYS(refused(R"({"messages": ["a"]})"), "expected message 1 as an object");
  EXPECT_SAYS(refused(R"({"messages": [{"content": "a"}]})"), "message 1 has no role");
  EXPECT_SAYS(refused(R"({"messages": [{"role": "narrator", "content": "a"}]})"),
              "message 1 has the unknown role \"narrator\", expected system, user, assistant or tool");
  EXPECT_SAYS(refused(R"({"messages": [{"role": "user"}]})"), "message 1 has no text as \"content\"");
  EXPECT_SAYS(
      refused(R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": " "}]})"),
      "message 2 is an empty answer");
  EXPECT_SAYS(refused(R"({"instruction": "a", "output": ""})"), "\"output\" is an empty answer");
  EXPECT_SAYS(refused(R"({"prompt": 1, "completion": "b"})"), "expected a text as \"prompt\"");
  EXPECT_SAYS(refused(R"({"messages": [{"role": "user", "content": "a"}], "tools": [1]})"),
              "expected a list of objects as \"tools\"");
}

TEST_F(Conversations, LearnTheAnswersAloneAndAreNotCut) {
  SequenceStream stream({chats("c", lines(200, 60))}, {.sequence_length = 100, .shuffle_sequences = 4},
                        chat_bytes(), kSpecial, 3);
  std::map<std::string, int> seen;
  for (int count = 0; count < 256; ++count) {
    const auto sequence = stream.next();
    ASSERT_EQ(sequence.ids.size(), 100U);
    ASSERT_EQ(sequence.targets.size(), 100U);
    EXPECT_FALSE(sequence.goes_on);
    EXPECT_EQ(sequence.ids.front(), kQuestion);  // no begin-of-text token is put in front
    for (std::size_t k = 0; k < sequence.starts.size(); ++k) {
      const auto begin = static_cast<std::size_t>(sequence.starts[k]);
      const auto end = k + 1 < sequence.starts.size() ? static_cast<std::size_t>(sequence.starts[k + 1])
                                                      : sequence.ids.size();
      const bool padding = sequence.ids[begin] == kSpecial.eos;
      if (padding) {
        EXPECT_EQ(k + 1, sequence.starts.size());
        EXPECT_TRUE(std::all_of(sequence.targets.begin() + sequence.starts[k], sequence.targets.end(),
                                [](auto target) { return target == kNoTarget; }));
        break;
      }
      EXPECT_EQ(sequence.ids[begin], kQuestion);
      EXPECT_EQ(sequence.ids[end - 1], kEnd);
      bool answers = false;
      std::string answer;
      for (auto i = begin; i < end; ++i) {
        answers |= sequence.ids[i] == kAnswer;
        const bool last = i + 1 == end;
        EXPECT_EQ(sequence.targets[i], answers && !last ? sequence.ids[i + 1] : kNoTarget);
        if (answers && !last && sequence.targets[i] >= kFirstByteId)
          answer += static_cast<char>(sequence.targets[i] - kFirstByteId);
      }
      ++seen[answer];
    }
  }
  EXPECT_EQ(seen.size(), 200U);
  EXPECT_GT(stream.padding_share(), 0);
  EXPECT_LT(stream.padding_share(), 0.1);
  const auto statistics = stream.statistics().front();
  EXPECT_EQ(statistics.too_long + statistics.unanswered + statistics.refused, 0);
  EXPECT_LT(statistics.targets, statistics.tokens);
}

TEST_F(Conversations, LearnAllWhereTheRecipeSaysSo) {
  auto options = chats("c", chat_line("who", "me"));
  options.loss_on = LossOn::all;
  SequenceStream stream({options}, {.sequence_length = 9, .shuffle_sequences = 1}, chat_bytes(), kSpecial, 3);
  EXPECT_EQ(spelled(stream.next()), "whome");
}

TEST_F(Conversations, AreGoneOnWithFromEveryPlaceBesideTextThatIsCut) {
  auto text = source({write("t.jsonl", test::jsonl(test::numbered_texts("t", 90, 300)))}, "t");
  text.weight = 0.5;
  const std::vector<SourceOptions> sources{chats("c", lines(120, 60)), text};
  const PackingOptions packing{.sequence_length = 80, .shuffle_documents = 16, .shuffle_sequences = 8};
  SequenceStream whole(sources, packing, chat_bytes(), kSpecial, 5);
  std::vector<Sequence> expected;
  std::vector<Json> cursors{whole.cursor()};
  for (int i = 0; i < 150; ++i) {
    expected.push_back(whole.next());
    cursors.push_back(whole.cursor());
  }
  const double share = whole.padding_share();
  for (const int at : {0, 1, 7, 8, 63, 64, 65, 66, 97, 128, 149}) {
    SequenceStream again(sources, packing, chat_bytes(), kSpecial, 5);
    again.seek(Json::parse(cursors[static_cast<std::size_t>(at)].dump()));
    for (int i = at; i < 150; ++i) {
      const auto sequence = again.next();
      ASSERT_EQ(sequence.ids, expected[static_cast<std::size_t>(i)].ids) << at << " " << i;
      ASSERT_EQ(sequence.targets, expected[static_cast<std::size_t>(i)].targets);
      ASSERT_EQ(sequence.number, i);
    }
    EXPECT_EQ(again.padding_share(), share);
    EXPECT_EQ(again.cursor(), cursors.back());
  }
  // Weights are shares of tokens, and no token of the text is lost where it is cut.
  const auto statistics = whole.statistics();
  EXPECT_NEAR(static_cast<double>(statistics[1].tokens) / static_cast<double>(statistics[0].tokens), 0.5,
              0.02);
  EXPECT_EQ(statistics[1].targets, statistics[1].tokens - statistics[1].documents);
}

TEST_F(Conversations, ThatAreTooLongAreLeftOutAndCountedOrAnError) {
  const std::string long_answer(90, 'y');
  auto options = chats("c", chat_line("a", "b") + chat_line("long", long_answer) + chat_line("c", ""));
  PackingOptions packing{.sequence_length = 50, .shuffle_documents = 1, .shuffle_sequences = 1};
  SequencePacker packer({options}, packing, chat_bytes(), kSpecial, 1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(spelled(packer.next()).find('y'), std::string::npos);
  const auto statistics = packer.statistics().front();
  EXPECT_NEAR(static_cast<double>(statistics.too_long), static_cast<double>(statistics.documents), 1);
  EXPECT_NEAR(static_cast<double>(statistics.unanswered), static_cast<double>(statistics.documents), 1);
  packing.too_long = TooLong::error;
  SequencePacker strict({options}, packing, chat_bytes(), kSpecial, 1);
  EXPECT_SAYS(message_of<DataError>([&] { (void)strict.next(); }),
              "c.jsonl, line 2: has 98 tokens, a sequence has 50");
}

TEST_F(Conversations, WithNothingToLearnAreRefusedBeforeARun) {
  const auto refused = [&](const SourceOptions& options, const PackingOptions& packing) {
    return message_of<DataError>([&] {
      require_targets(options, Split::training, packing, Targets::learned, chat_bytes(), kSpecial);
    });
  };
  const auto unanswered = chats("u", chat_line("a", "") + chat_line("b", ""));
  EXPECT_SAYS(
      refused(unanswered, {.sequence_length = 50}),
      "source 'u': expected conversations with an answer in at most 50 tokens, found none, but 2 without "
      "an answer; give it conversations with messages of the assistant.");
  const auto long_ones = chats("l", chat_line("a", std::string(90, 'y')) + chat_line("b", ""));
  EXPECT_SAYS(refused(long_ones, {.sequence_length = 50}), "1 longer than that, 1 without an answer; raise");
  for (const PackingOptions& packing :
       {PackingOptions{.sequence_length = 100}, PackingOptions{.sequence_length = 50, .cut = Cut::anywhere}})
    EXPECT_NO_THROW(
        require_targets(long_ones, Split::training, packing, Targets::learned, chat_bytes(), kSpecial));
  SequencePacker packer({unanswered}, {.sequence_length = 50}, chat_bytes(), kSpecial, 1);
  EXPECT_SAYS(message_of<DataError>([&] { (void)packer.next(); }), "without an answer");
}

TEST_F(Conversations, ThatAreBadAreAnErrorWithTheirLineOrSkippedAndCounted) {
  const std::string bad = R"({"messages": [{"role": "narrator", "content": "x"}]})";
  auto options =
      chats("c", chat_line("a", "b") + "\n" + bad + "\n" + chat_line("c", "refuse me") + chat_line("d", "e"));
  const auto read = [&] {
    SequencePacker packer({options}, {.sequence_length = 20, .shuffle_documents = 1}, chat_bytes(), kSpecial,
                          1);
    (void)packer.next();
    return packer.statistics().front();
  };
  EXPECT_SAYS(message_of<DataError>(read), "c.jsonl, line 3, byte ");
  EXPECT_SAYS(message_of<DataError>(read), "unknown role \"narrator\"");
  options.skip_bad_lines = true;
  EXPECT_EQ(read().skipped_lines, 1);
  EXPECT_GE(read().refused, 1);
  options = chats("c2", chat_line("a", "b") + "\n" + chat_line("c", "refuse me"));
  EXPECT_SAYS(message_of<DataError>(read), "c2.jsonl, line 3: the template refuses");
}

TEST_F(Conversations, AreNoPlainText) {
  auto options = source({write("c.txt", "words\n")}, "c");
  options.chat = true;
  EXPECT_SAYS(message_of<DataError>([&] { check_files(options); }),
              "expected conversations in JSON lines or Parquet, found plain text in");
}

TEST_F(Conversations, AreHeldOutTheSameHoweverAFileWritesThem) {
  std::string alpaca;
  for (const auto& text : test::numbered_texts("c", 300, 60))
    alpaca += Json{{"instruction", "?" + text.substr(0, text.find(' '))}, {"output", text}}.dump() + "\n";
  auto a = chats("a", lines(300, 60)), b = chats("b", alpaca);
  a.held_out.fraction = b.held_out.fraction = 0.2;
  EXPECT_EQ(texts(a, Split::held_out), texts(b, Split::held_out));
  EXPECT_GT(texts(a, Split::held_out).size(), 30U);
}

TEST_F(Conversations, AreMeasuredEachInAWindowOfItsOwn) {
  auto options = chats("c", chat_line("who", "me") + chat_line("x", "") + chat_line("a", "0123456789"));
  options.held_out.every = 1;
  WindowReader reader(options, Split::all, {.context = 8}, chat_bytes(), kSpecial);
  std::vector<Sequence> windows;
  std::vector<std::vector<std::int32_t>> documents;
  for (Sequence window; reader.next(window);) {
    documents.push_back(reader.target_documents(window));
    windows.push_back(window);
  }
  ASSERT_EQ(windows.size(), 3U);
  EXPECT_EQ(spelled(windows[0]), "me");
  EXPECT_EQ(spelled(windows[1]) + spelled(windows[2]), "0123456789");
  for (const auto& window : windows) EXPECT_LE(window.ids.size(), 8U);
  EXPECT_EQ(documents[0].front(), 0);
  EXPECT_EQ(documents[2].front(), 1);
  EXPECT_EQ(reader.documents().size(), 2U);
  EXPECT_EQ(reader.bytes(), 12);
  EXPECT_EQ(reader.unanswered(), 1);
}

TEST_F(Conversations, CalibrateWholeAndWithoutPadding) {
  const auto options = chats("c", lines(100, 60));
  const auto sequences =
      calibration_sequences(options, {.sequence_length = 128}, chat_bytes(), kSpecial, 1, 8);
  std::int64_t tokens = 0;
  for (const auto& sequence : sequences) {
    EXPECT_LE(sequence.ids.size(), 128U);
    EXPECT_EQ(std::count(sequence.ids.begin(), sequence.ids.end(), kSpecial.eos), 0);
    tokens += std::ssize(sequence.ids);
  }
  EXPECT_LE(tokens, 8 * 128);
  EXPECT_GT(tokens, 7 * 128);
  // A source is not repeated.
  EXPECT_LT(calibration_sequences(options, {.sequence_length = 128}, chat_bytes(), kSpecial, 1, 1000).size(),
            100U);
}

TEST_F(Conversations, AreFoundInTextThatQuotesThem) {
  std::string sentence;
  for (int i = 0; i < 60; ++i) sentence += base::join("The word number ", i * i, " stands here; ");
  auto chat = chats("c", chat_line("Say it.", sentence) + chat_line("b", "c"));
  chat.held_out.fraction = 0;
  chat.held_out.every = 2;  // the second
  auto first = chats("d", chat_line("b", "c") + chat_line("Say it.", sentence));
  first.held_out.fraction = 0;
  first.held_out.every = 2;
  const auto text = source({write("t.jsonl", test::jsonl({"Before. " + sentence + " Behind."}))}, "t");
  EXPECT_EQ(overlaps({text}, Split::training, {first}).found.size(), 1U);
  EXPECT_EQ(overlaps({text}, Split::training, {chat}).found.size(), 0U);
}

TEST(WholeDocuments, GoWhereTheLeastRoomIsEnough) {
  std::vector<DocumentTokens> documents;
  for (const std::size_t size : {3U, 7U, 5U, 4U, 6U, 2U}) {
    DocumentTokens tokens{.ids = Ids(size, static_cast<std::int32_t>(size))};
    tokens.text_end = size;
    documents.push_back(tokens);
  }
  auto sequences = packed_whole(documents, 10, false, Targets::learned);
  std::vector<std::vector<std::int32_t>> found;
  for (const auto& sequence : sequences) {
    found.emplace_back();
    for (const auto start : sequence.starts)
      found.back().push_back(sequence.ids[static_cast<std::size_t>(start)]);
  }
  EXPECT_EQ(found, (std::vector<std::vector<std::int32_t>>{{7, 3}, {6, 4}, {5, 2}}));
  EXPECT_EQ(pad(sequences[2], 10, 2), 3);
  EXPECT_EQ(sequences[2].starts, (std::vector<std::int32_t>{0, 5, 7}));
  EXPECT_EQ(pad(sequences[0], 10, 2), 0);
}

TEST_F(Conversations, AreWrittenByTheTemplateOfTheirModel) {
  const auto model = directory_ / "model";
  std::filesystem::create_directories(model);
  const auto tokenizer = test::oracles("answers") / "tokenizers/byte_level/tokenizer.json";
  std::filesystem::copy_file(tokenizer, model / "tokenizer.json");
  const ChatEncoder encode(model, text::Tokenizer::from_file(model));
  const auto conversation =
      conversation_of(conversation_text(Json::parse(R"({"prompt": "a", "completion": "b"})"), "text"));
  EXPECT_SAYS(message_of<base::ModelError>([&] { (void)encode(conversation); }),
              "expected a chat template to write the conversations of the text, found none; put a");
  base::write_file_atomically(
      model / "chat_template.jinja",
      "{{ strftime_now('%d %b %Y') }}{% for m in messages %}<|im_start|>{{ m.content }}"
      "<|im_end|>{% endfor %}");
  const auto tokens = encode(conversation);
  EXPECT_EQ(tokens.text, "26 Jul 2024<|im_start|>a<|im_end|><|im_start|>b<|im_end|>");
  EXPECT_EQ(tokens.answer_bytes, 23);
  EXPECT_EQ(tokens.bytes, std::ssize(tokens.text));
}

TEST_F(Conversations, MustFillABudgetInSoManyPasses) {
  auto options = chats("c", lines(20, 40) + chat_line("x", ""));
  std::int64_t tokens = 0;
  DocumentReader reader(options, Split::training);
  for (Document document; reader.next(document);)
    if (const auto read = tokenized(document, options, {}, chat_bytes(), kSpecial);
        read->counts != std::vector<char>(read->counts.size(), 0))
      tokens += std::ssize(read->ids);
  options.epochs = 3;
  EXPECT_NO_THROW(require_tokens(options, 3 * tokens, {}, chat_bytes(), kSpecial));
  EXPECT_SAYS(
      message_of<DataError>([&] { require_tokens(options, 3 * tokens + 1, {}, chat_bytes(), kSpecial); }),
      base::join("source 'c': has ", tokens, " tokens to learn from, which are ", 3 * tokens,
                 " in 3 passes, and the stage asks for ", 3 * tokens + 1));
}

// recipes/smollm2.yaml once had these texts by hand.
TEST(ChatQuestions, AreWhatTheRecipesOfSmolLM2HadByHand) {
  RETORT_GGUF_OR_SKIP(gguf);
  const auto tokenizer = text::Tokenizer::from_file(gguf);
  const auto chosen = chat::choose_template(chat::find_templates(gguf), false);
  for (const std::string question :
       {"What is the capital of France?", "How do I list the files of a directory?", "Name three animals."}) {
    chat::Conversation conversation;
    conversation.add("user", question);
    const auto encoded =
        chat::encode_conversation(chosen, tokenizer, conversation, {.add_generation_prompt = true});
    const std::string by_hand =
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\n" +
        question + "<|im_end|>\n<|im_start|>assistant\n";
    EXPECT_EQ(encoded.rendered.text, by_hand);
    EXPECT_EQ(encoded.ids, tokenizer.encode(by_hand, false));
  }
  EXPECT_EQ(chat::end_of_turn(chosen, tokenizer), tokenizer.token_to_id("<|im_end|>"));
}

TEST_F(Conversations, AreCountedByAnInspection) {
  auto options = chats("c", lines(50, 60) + lines(5, 60) + chat_line("x", "") + "{bad\n" +
                                chat_line("long", std::string(200, 'y')) + chat_line("no", "refuse me"));
  options.held_out.fraction = 0;
  const InspectionOptions how{.packing = {.sequence_length = 100}};
  const auto json = inspect(options, chat_bytes(), kSpecial, how);
  EXPECT_EQ(json.at("documents"), 58);
  EXPECT_EQ(json.at("duplicates"), 5);
  EXPECT_EQ(json.at("bad_lines"), 1);
  EXPECT_SAYS(json.at("first_bad").get<std::string>(), "c.jsonl, line 57, byte");
  EXPECT_EQ(json.at("too_long"), 1);
  EXPECT_EQ(json.at("unanswered"), 1);
  EXPECT_EQ(json.at("refused"), 1);
  EXPECT_SAYS(json.at("first_refused").get<std::string>(), "c.jsonl, line 59: the template refuses");
  EXPECT_EQ(json.at("lengths").at("most"), 208);
  EXPECT_EQ(json.at("samples").size(), 3U);
  EXPECT_GT(json.at("without_target").get<double>(), 0);
  EXPECT_LT(json.at("padding").get<double>(), 0.2);
  // What a packer makes of it: every document once.
  std::int64_t used = 0;
  SequencePacker packer({options}, how.packing, chat_bytes(), kSpecial, 1);
  EXPECT_THROW((void)packer.next(), DataError);  // the bad line
  options.skip_bad_lines = true;
  SequencePacker lenient({options}, how.packing, chat_bytes(), kSpecial, 1);
  (void)lenient.next();
  used = lenient.statistics().front().tokens;
  EXPECT_GE(used, 64 * 100);
  // Without a tokenizer lengths are bytes.
  EXPECT_FALSE(inspect(options, {}, kSpecial, how).contains("tokens"));
}

}  // namespace
}  // namespace retort::data
