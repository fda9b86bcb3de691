#include "retort/data/sequence_bytes.h"

namespace retort::data {

void put_bytes(std::string& bytes, const Sequence& sequence) {
  base::put_bytes(bytes, sequence.ids);
  base::put_bytes(bytes, sequence.targets);
  base::put_bytes(bytes, sequence.starts);
  base::put_bytes(bytes, sequence.number);
  base::put_bytes(bytes, sequence.goes_on);
}

void get_bytes(base::ByteReader& reader, Sequence& sequence) {
  reader.get(sequence.ids);
  reader.get(sequence.targets);
  reader.get(sequence.starts);
  reader.get(sequence.number);
  reader.get(sequence.goes_on);
}

std::string to_bytes(const std::vector<Sequence>& sequences) {
  std::string bytes;
  for (const auto& sequence : sequences) put_bytes(bytes, sequence);
  return bytes;
}

std::vector<Sequence> sequences_of(std::string_view bytes) {
  std::vector<Sequence> sequences;
  for (base::ByteReader reader(bytes); !reader.at_end();) get_bytes(reader, sequences.emplace_back());
  return sequences;
}

}  // namespace retort::data
