#include "retort/calibrate/split_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "retort/base/error.h"
#include "support/models_for_tests.h"
#include "support/random_text.h"

namespace retort {
namespace {

using calibrate::split_by_document;

// Documents of these lengths, packed into sequences of `length`.  The ids of document d begin with d.
calibrate::SourceText packed(const std::string& name, const std::vector<std::size_t>& lengths,
                             std::size_t length) {
  calibrate::SourceText domain{name, {}};
  std::int32_t number = 0;
  for (const auto tokens : lengths) {
    for (std::size_t i = 0; i < tokens; ++i) {
      if (domain.sequences.empty() || domain.sequences.back().ids.size() == length) {
        domain.sequences.emplace_back().goes_on = i > 0;
        domain.sequences.back().starts = {0};
      } else if (i == 0) {
        domain.sequences.back().starts.push_back(
            static_cast<std::int32_t>(domain.sequences.back().ids.size()));
      }
      auto& sequence = domain.sequences.back();
      sequence.ids.push_back(static_cast<std::int32_t>(100 * number + static_cast<std::int32_t>(i)));
      sequence.targets.push_back(i + 1 < tokens ? sequence.ids.back() + 1 : data::kNoTarget);
    }
    ++number;
  }
  return domain;
}

// The documents of a domain as they stand there, parts of one joined.
std::vector<std::vector<std::int32_t>> documents_of(const calibrate::SourceText& domain) {
  std::vector<std::vector<std::int32_t>> documents;
  for (const auto& sequence : domain.sequences)
    for (std::size_t k = 0; k < sequence.starts.size(); ++k) {
      if (k > 0 || !sequence.goes_on) documents.emplace_back();
      const auto end = k + 1 < sequence.starts.size() ? sequence.starts[k + 1] : std::ssize(sequence.ids);
      documents.back().insert(documents.back().end(), sequence.ids.begin() + sequence.starts[k],
                              sequence.ids.begin() + end);
      for (auto i = static_cast<std::size_t>(sequence.starts[k]); i < static_cast<std::size_t>(end); ++i)
        EXPECT_TRUE(sequence.targets[i] == data::kNoTarget || sequence.targets[i] == sequence.ids[i] + 1);
    }
  return documents;
}

std::size_t tokens_of(const calibrate::SourceText& domain) {
  std::size_t tokens = 0;
  for (const auto& sequence : domain.sequences) tokens += sequence.ids.size();
  return tokens;
}

TEST(TextSplit, HoldWholeDocumentsThatNoOtherSideHas) {
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < 60; ++i) lengths.push_back(5 + (i * 7) % 60);  // over two and three sequences
  const std::vector domains = {packed("first", lengths, 24), packed("second", {9, 9, 9, 9, 9, 9}, 24)};
  const auto text = split_by_document(domains);
  for (std::size_t d = 0; d < domains.size(); ++d) {
    auto all = documents_of(domains[d]);
    std::vector<std::vector<std::int32_t>> found;
    for (const auto* side : {&text.fitted, &text.choosing, &text.judging}) {
      ASSERT_EQ(side->size(), 2U);
      EXPECT_EQ((*side)[d].name, domains[d].name);
      const auto documents = documents_of((*side)[d]);
      EXPECT_TRUE(std::is_sorted(documents.begin(), documents.end())) << "not in the order of the text";
      found.insert(found.end(), documents.begin(), documents.end());
    }
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, all);
  }
  const auto all = static_cast<double>(tokens_of(domains[0]));
  EXPECT_NEAR(static_cast<double>(tokens_of(text.fitted[0])) / all, 0.75, 0.04);
  EXPECT_NEAR(static_cast<double>(tokens_of(text.choosing[0])) / all, 0.125, 0.03);
  EXPECT_NEAR(static_cast<double>(tokens_of(text.judging[0])) / all, 0.125, 0.03);
}

TEST(TextSplit, CountTokensAndDocumentsByDomain) {
  const auto json = calibrate::describe(split_by_document({packed("a", {30, 9, 9, 9, 9, 9}, 24)}));
  EXPECT_EQ(json.at("a").at("fitted"), (base::Json{{"tokens", 57}, {"documents", 4}}));
  EXPECT_EQ(json.at("a").at("choosing"), (base::Json{{"tokens", 9}, {"documents", 1}}));
  EXPECT_EQ(json.at("a").at("judging"), (base::Json{{"tokens", 9}, {"documents", 1}}));
}

// A document of more than a quarter of the text is fitted to, wherever it stands.
TEST(TextSplit, LeaveLongDocumentsToTheFit) {
  const auto text = split_by_document({packed("a", {8, 90, 8, 8, 8, 8}, 24)});
  EXPECT_GE(tokens_of(text.fitted[0]), 90U);
  EXPECT_EQ(tokens_of(text.choosing[0]), 16U);
}

TEST(TextSplit, KeepEqualDocumentsTogether) {
  auto domain = packed("a", {10, 10, 10, 10, 10, 10, 10, 10}, 10);
  domain.sequences[4] = domain.sequences[0];
  domain.sequences[5] = domain.sequences[1];
  domain.sequences[6] = domain.sequences[2];
  const auto text = split_by_document({domain});
  for (const auto* side : {&text.fitted, &text.choosing, &text.judging})
    for (const auto* other : {&text.fitted, &text.choosing, &text.judging})
      for (const auto& document : documents_of(side->front()))
        if (side != other) {
          const auto others = documents_of(other->front());
          EXPECT_EQ(std::count(others.begin(), others.end(), document), 0);
        }
}

TEST(TextSplit, CutADomainOfFewDocumentsByItsSequences) {
  for (const std::vector<std::size_t>& lengths :
       {std::vector<std::size_t>{300}, {150, 150}, {280, 10}, {100, 100, 100}}) {
    const auto text =
        split_by_document({packed("good", {9, 9, 9, 9, 9, 9}, 24), packed("book", lengths, 24)});
    EXPECT_EQ(text.cut, std::set<std::string>{"book"});
    EXPECT_EQ(calibrate::describe(text).at("book").at("whole_documents"), false);
    EXPECT_EQ(calibrate::describe(text).at("good").at("whole_documents"), true);
    std::size_t tokens = 0;
    for (const auto* side : {&text.fitted, &text.choosing, &text.judging}) {
      ASSERT_EQ(side->size(), 2U);
      EXPECT_FALSE((*side)[1].sequences.empty());
      for (const auto& sequence : (*side)[1].sequences) {
        EXPECT_FALSE(sequence.goes_on) << "counts as a document of its own";
        tokens += sequence.ids.size();
      }
    }
    EXPECT_EQ(tokens, std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}));
  }
}

TEST(TextSplit, RefuseADomainWithTooLittleToCut) {
  for (const std::vector<std::size_t>& lengths : {std::vector<std::size_t>{24}, {48}, {20, 1, 1}}) {
    const auto message = test::message_of<base::DataError>([&] {
      split_by_document({packed("good", {9, 9, 9, 9, 9, 9}, 24), packed("bad", lengths, 24)});
    });
    EXPECT_SAYS(message, "calibration text 'bad': found ");
    EXPECT_SAYS(message, "raise calibration_tokens");
  }
}

// What stays of a sequence computes what it did among the others.
TEST(TextSplit, ChangeNothingThatAModelComputes) {
  const auto weights = test::tiny_model(test::tiny_config());
  const auto domains = test::random_domains(40, 12);
  const auto text = split_by_document(domains);
  const auto norms = [&](const std::vector<calibrate::SourceText>& of) {
    std::vector<double> sums;
    for (const auto& batch : calibrate::calibration_batches(of, weights.config, at::kCPU)) {
      const auto logits_NV = test::plain_logits(weights, batch);
      for (std::size_t i = 0; i + 1 < batch.layout.starts.size(); ++i)
        sums.push_back(
            logits_NV.narrow(0, batch.layout.starts[i], batch.layout.starts[i + 1] - batch.layout.starts[i])
                .abs()
                .sum()
                .item<double>());
    }
    std::sort(sums.begin(), sums.end());
    return sums;
  };
  auto sides = norms(text.fitted);
  for (const auto& side : {text.choosing, text.judging})
    for (const double sum : norms(side)) sides.push_back(sum);
  std::sort(sides.begin(), sides.end());
  const auto whole = norms(domains);
  ASSERT_EQ(sides.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(sides[i], whole[i], 1e-9 * whole[i]);
}

}  // namespace
}  // namespace retort
