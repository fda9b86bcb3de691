#include "retort/eval/windows.h"

#include <algorithm>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/data/document_reader.h"
#include "retort/data/held_out_part.h"

namespace retort::eval {
namespace {

class FixedWindows final : public Windows {
 public:
  FixedWindows(const data::SourceOptions& source, data::Split split, const WindowSettings& s,
               data::Encode encode, const data::SpecialTokens& special)
      : reader_(source, split,
                {.context = s.context,
                 .overlap_tokens = s.overlap_tokens,
                 .tokens = s.tokens,
                 .bos = s.bos,
                 .eos = s.eos,
                 .attend_across_documents = s.attend_across_documents},
                std::move(encode), special) {}
  bool next(Window& window) override {
    if (!reader_.next(window)) return false;
    window.target_documents = reader_.target_documents(window);
    return true;
  }
  std::int64_t skipped_lines() const override { return reader_.skipped_lines(); }
  const std::vector<data::TextDocument>& documents() const override { return reader_.documents(); }

 private:
  data::WindowReader reader_;
};

class RollingWindows final : public Windows {
 public:
  RollingWindows(const data::SourceOptions& source, data::Split split, const WindowSettings& settings,
                 data::Encode encode, const data::SpecialTokens& special)
      : reader_(source, split),
        split_(split),
        settings_(settings),
        encode_(std::move(encode)),
        prefix_(special.bos >= 0 ? special.bos : special.eos) {
    base::require<base::UsageError>(
        prefix_ >= 0,
        "rolling windows: expected a begin-of-text or end-of-text token to predict "
        "the first token from, found a tokenizer without either; use fixed windows.");
    base::require<base::UsageError>(settings.context >= 1,
                                    "windows: expected a context of at least 1 token, found ",
                                    settings.context, ".");
  }

  bool next(Window& window) override {
    while (windows_.empty() && pull()) {
    }
    if (windows_.empty()) return false;
    window = std::move(windows_.front());
    windows_.pop_front();
    window.number = number_++;
    window.target_documents.assign(window.ids.size(), static_cast<std::int32_t>(documents_.size()) - 1);
    return true;
  }
  std::int64_t skipped_lines() const override { return reader_.skipped_lines(); }
  const std::vector<data::TextDocument>& documents() const override { return documents_; }

 private:
  bool pull() {
    if (settings_.tokens > 0 && tokens_ >= settings_.tokens) return false;
    data::Document document;
    if (!reader_.next(document)) {
      const auto advice = [&] {
        return split_ == data::Split::held_out ? data::held_out_advice(reader_.source(), 1) : "add text";
      };
      if (tokens_ == 0)
        throw base::DataError(base::join("source '", reader_.source().name,
                                         "': expected documents with text to evaluate on, found none among ",
                                         reader_.documents_passed(), "; ", advice(), "."));
      return false;
    }
    const auto ids = encode_(document.text);
    if (ids.empty()) return true;
    documents_.push_back(
        {document.number, base::hash64(document.text), static_cast<std::int64_t>(document.text.size())});
    tokens_ += static_cast<std::int64_t>(ids.size());
    windows_ = rolling_windows(ids, prefix_, settings_.context);
    return true;
  }

  data::DocumentReader reader_;
  data::Split split_;
  WindowSettings settings_;
  data::Encode encode_;
  std::int32_t prefix_;
  std::deque<Window> windows_;
  std::vector<data::TextDocument> documents_;
  std::int64_t number_ = 0, tokens_ = 0;
};

}  // namespace

std::deque<Window> rolling_windows(const std::vector<std::int32_t>& ids, std::int32_t prefix,
                                   std::int64_t context) {
  std::vector<std::int32_t> text = {prefix};
  text.insert(text.end(), ids.begin(), ids.end());
  const auto count = static_cast<std::int64_t>(ids.size());
  std::deque<Window> windows;
  for (std::int64_t done = 0; done < count;) {
    const auto end = std::min(done + context, count);             // targets are ids[done, end)
    const auto begin = std::max<std::int64_t>(0, end - context);  // inputs are text[begin, end)
    Window window;
    window.ids.assign(text.begin() + begin, text.begin() + end);
    window.targets.assign(text.begin() + begin + 1, text.begin() + end + 1);
    std::fill(window.targets.begin(), window.targets.begin() + (done - begin), data::kNoTarget);
    window.starts = {0};
    windows.push_back(std::move(window));
    done = end;
  }
  return windows;
}

std::unique_ptr<Windows> open_windows(const data::SourceOptions& source, data::Split split,
                                      const WindowSettings& settings, data::Encode encode,
                                      const data::SpecialTokens& special) {
  if (settings.windowing == Windowing::rolling && !source.chat)
    return std::make_unique<RollingWindows>(source, split, settings, std::move(encode), special);
  return std::make_unique<FixedWindows>(source, split, settings, std::move(encode), special);
}

}  // namespace retort::eval
