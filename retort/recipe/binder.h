#pragma once
// One description of the recipe's keys, three uses: a Binder visits every field of an Options struct and
// reads it from YAML, writes it to JSON, or lists it for the documentation.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "retort/base/json.h"

namespace retort::recipe {

/// A word that a recipe may have for a number.
struct NamedCount {
  std::string_view word;
  std::int64_t count;
};

/// What is said about a key beside its name and type.
struct Field {
  const char* doc;
  bool required = false;
  double above = -std::numeric_limits<double>::infinity();     ///< value > above
  double at_least = -std::numeric_limits<double>::infinity();  ///< value >= at_least
  double below = std::numeric_limits<double>::infinity();      ///< value < below
  double at_most = std::numeric_limits<double>::infinity();    ///< value <= at_most
  bool may_be_empty = false;                                   ///< texts and lists
  const char* unset = nullptr;         ///< what it means to leave the key out, where the default is no value
  std::vector<NamedCount> names = {};  ///< of counts that mean something else than so many
  bool written = true;                 ///< false: the value stands for "not set" and is not written
};

using Words = std::vector<std::string_view>;

class Binder {
 public:
  virtual ~Binder() = default;

  virtual void number(const char* key, double& value, const Field& field) = 0;
  virtual void count(const char* key, std::int64_t& value, const Field& field) = 0;
  virtual void seed(const char* key, std::uint64_t& value, const Field& field) = 0;
  virtual void flag(const char* key, bool& value, const Field& field) = 0;
  virtual void text(const char* key, std::string& value, const Field& field) = 0;
  /// A list of texts; a single text is a list of one.
  virtual void texts(const char* key, std::vector<std::string>& value, const Field& field) = 0;
  virtual void counts(const char* key, std::vector<std::int64_t>& value, const Field& field) = 0;
  /// A list of conversations: each a text, which a user says, or a list of messages with `role` and
  /// `content`.
  virtual void chats(const char* key, std::vector<base::Json>& value, const Field& field) = 0;
  /// One of `words`, by its index.
  virtual void word(const char* key, std::size_t& value, const Words& words, const Field& field) = 0;
  /// Either a fraction (60%, 0.6) or a whole number (3.3M); the other is set to 0.
  virtual void share(const char* key, double& fraction, std::int64_t& count, const Field& field) = 0;

  using Body = std::function<void(Binder&)>;
  /// A map of its own.
  virtual void group(const char* key, const Body& body, const Field& field) = 0;

  using KindBody = std::function<void(Binder&, std::size_t)>;
  /// A word that decides which other keys this map has.
  virtual void kind(const char* key, std::size_t& value, const Words& words, const Field& field,
                    const KindBody& body) = 0;

  /// How items look in a recipe: a list, a list of maps that have a `name`, or a map from name to item.
  enum class Shape { list, named_list, map };
  struct Items {
    Shape shape = Shape::list;
    std::function<std::size_t()> size;
    std::function<void()> add;                      ///< appends a default item
    std::function<std::string&(std::size_t)> name;  ///< of an item; not for Shape::list
    std::function<void(Binder&, std::size_t)> body;
  };
  virtual void items(const char* key, const Items& items, const Field& field) = 0;

  /// True when values are being filled in, so that defaults that depend on other keys have to be set.
  virtual bool fills() const { return false; }
  /// Whether the text that is read has this key.
  virtual bool given(const char* /*key*/) const { return false; }
  /// Reports what is wrong with a key, or with the map when it lacks the key; only reading listens.
  virtual void mistake(const char* /*key*/, const std::string& /*what*/) {}

  /// An enum by the words that stand beside it, see base/words.h.
  template <typename Enum>
  void choice(const char* key, Enum& value, const Field& field) {
    const auto words = words_of(value);
    auto index = static_cast<std::size_t>(value);
    word(key, index, Words(words.begin(), words.end()), field);
    value = static_cast<Enum>(index);
  }
  /// A text that has to be one of `words`.
  void one_of(const char* key, std::string& value, const Words& words, const Field& field);
};

}  // namespace retort::recipe
