#include "retort/io/compressed.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/regular_file.h"

namespace retort::io {
namespace {

using base::DataError;
using base::require;
using base::StorageError;

constexpr std::size_t kInputBytes = std::size_t{1} << 17;
constexpr int kMaxWindowLog = 27;  // 128 MiB, the limit of the zstd program too
constexpr const char* kAdvice = "; fetch or compress the file again.";

// The compressed bytes of a file, with their position.
class Input {
 public:
  explicit Input(const base::Path& path) : path_(path), buffer_(kInputBytes) {
    const auto why = base::why_no_text(path);
    require<DataError>(why.empty(), path.string(), ": ", why, ".");
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    require<StorageError>(descriptor_ >= 0, path.string(),
                          ": cannot be opened: ", base::system_message(errno), ".");
  }
  ~Input() { ::close(descriptor_); }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  /// What is read but not yet taken; reads on when that is nothing.  Empty only at the end of the file.
  std::string_view peek() {
    if (begin_ == end_) {
      begin_ = 0;
      end_ = read_some(buffer_.data(), buffer_.size());
    }
    return {buffer_.data() + begin_, end_ - begin_};
  }
  void take(std::size_t count) {
    begin_ += count;
    position_ += count;
  }
  /// At least `count` bytes unless the file is shorter; only before anything was taken.
  std::string_view first(std::size_t count) {
    while (end_ < count) {
      const std::size_t more = read_some(buffer_.data() + end_, buffer_.size() - end_);
      if (more == 0) break;
      end_ += more;
    }
    return {buffer_.data(), end_};
  }

  const base::Path& path() const { return path_; }
  [[noreturn]] void corrupt(const std::string& reason) const {
    throw DataError(
        base::join(path_.string(), ": ", reason, " at byte ", position_, " of the file", kAdvice));
  }

 private:
  std::size_t read_some(char* target, std::size_t capacity) {
    ssize_t count = 0;
    do count = ::read(descriptor_, target, capacity);
    while (count < 0 && errno == EINTR);
    require<StorageError>(count >= 0, path_.string(), ": cannot be read: ", base::system_message(errno), ".");
    return static_cast<std::size_t>(count);
  }

  base::Path path_;
  std::vector<char> buffer_;
  int descriptor_ = -1;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t position_ = 0;
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual std::size_t read(std::span<char> buffer) = 0;
};

class PlainDecoder : public Decoder {
 public:
  explicit PlainDecoder(Input& input) : input_(input) {}
  std::size_t read(std::span<char> buffer) override {
    const std::string_view available = input_.peek();
    const std::size_t count = std::min(available.size(), buffer.size());
    std::copy_n(available.begin(), count, buffer.begin());
    input_.take(count);
    return count;
  }

 private:
  Input& input_;
};

class GzipDecoder : public Decoder {
 public:
  explicit GzipDecoder(Input& input) : input_(input) {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    base::ensure(::inflateInit2(&stream_, kGzipOnly) == Z_OK, "inflateInit2");
  }
  ~GzipDecoder() override { ::inflateEnd(&stream_); }
  GzipDecoder(const GzipDecoder&) = delete;
  GzipDecoder& operator=(const GzipDecoder&) = delete;

  std::size_t read(std::span<char> buffer) override {
    for (;;) {
      if (between_members_ && input_.peek().empty()) return 0;
      between_members_ = false;
      const std::size_t count = step(buffer);
      if (count > 0) return count;
    }
  }

 private:
  // One call of inflate; it may give nothing while it still reads headers.
  std::size_t step(std::span<char> buffer) {
    const std::string_view available = input_.peek();
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(available.data()));
    stream_.avail_in = static_cast<uInt>(available.size());
    stream_.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(buffer.size(), UINT_MAX));
    const uInt capacity = stream_.avail_out;
    const int status = ::inflate(&stream_, Z_NO_FLUSH);
    input_.take(available.size() - stream_.avail_in);
    const std::size_t produced = capacity - stream_.avail_out;
    if (status == Z_STREAM_END) {
      between_members_ = ::inflateReset(&stream_) == Z_OK;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      input_.corrupt(
          base::join("corrupt gzip data (", stream_.msg != nullptr ? stream_.msg : "not gzip", ")"));
    } else if (available.empty() && produced == 0) {
      input_.corrupt("gzip data ends in the middle");
    }
    return produced;
  }

  Input& input_;
  z_stream stream_{};
  bool between_members_ = true;
};

class ZstdDecoder : public Decoder {
 public:
  explicit ZstdDecoder(Input& input) : input_(input), context_(::ZSTD_createDCtx()) {
    base::ensure(context_ != nullptr, "ZSTD_createDCtx");
    ::ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax, kMaxWindowLog);
  }
  ~ZstdDecoder() override { ::ZSTD_freeDCtx(context_); }
  ZstdDecoder(const ZstdDecoder&) = delete;
  ZstdDecoder& operator=(const ZstdDecoder&) = delete;

  std::size_t read(std::span<char> buffer) override {
    for (;;) {
      const std::string_view available = input_.peek();
      if (between_frames_ && available.empty()) return 0;
      ZSTD_inBuffer in{available.data(), available.size(), 0};
      ZSTD_outBuffer out{buffer.data(), buffer.size(), 0};
      const std::size_t status = ::ZSTD_decompressStream(context_, &out, &in);
      if (::ZSTD_isError(status) != 0)
        input_.corrupt(base::join("corrupt zstd data (", ::ZSTD_getErrorName(status), ")"));
      input_.take(in.pos);
      between_frames_ = status == 0;
      if (out.pos > 0) return out.pos;
      if (available.empty() && !between_frames_) input_.corrupt("zstd data ends in the middle");
    }
  }

 private:
  Input& input_;
  ZSTD_DCtx* context_;
  bool between_frames_ = true;
};

std::unique_ptr<Decoder> make_decoder(Input& input) {
  const std::string_view start = input.first(4);
  const auto byte = [&](std::size_t i) {
    return i < start.size() ? static_cast<unsigned char>(start[i]) : 0U;
  };
  if (byte(0) == 0x1F && byte(1) == 0x8B) return std::make_unique<GzipDecoder>(input);
  const bool frame = byte(0) == 0x28 && byte(1) == 0xB5 && byte(2) == 0x2F && byte(3) == 0xFD;
  const bool skippable = (byte(0) & 0xF0U) == 0x50 && byte(1) == 0x2A && byte(2) == 0x4D && byte(3) == 0x18;
  if (frame || skippable) return std::make_unique<ZstdDecoder>(input);
  // Taken as text, a damaged start would be learnt.
  const std::string promised = input.path().extension().string();
  if (promised == ".gz" || promised == ".zst")
    input.corrupt(base::join("expected ", promised == ".gz" ? "gzip" : "zstd",
                             " data as the name says, found other bytes"));
  return std::make_unique<PlainDecoder>(input);
}

}  // namespace

struct ByteReader::State {
  explicit State(const base::Path& path) : input(path), decoder(make_decoder(input)) {}
  Input input;
  std::unique_ptr<Decoder> decoder;
};

ByteReader::ByteReader(const base::Path& path) : state_(std::make_unique<State>(path)) {}
ByteReader::~ByteReader() = default;
ByteReader::ByteReader(ByteReader&&) noexcept = default;
ByteReader& ByteReader::operator=(ByteReader&&) noexcept = default;

std::size_t ByteReader::read(std::span<char> buffer) {
  return buffer.empty() ? 0 : state_->decoder->read(buffer);
}
const base::Path& ByteReader::path() const {
  return state_->input.path();
}

LineReader::LineReader(ByteReader reader, std::size_t max_line_bytes)
    : reader_(std::move(reader)), max_line_bytes_(max_line_bytes), buffer_(kInputBytes) {}

bool LineReader::fill() {
  position_ = 0;
  size_ = reader_.read(buffer_);
  return size_ > 0;
}

bool LineReader::next(std::string& line) {
  line.clear();
  line_start_ = consumed_;
  bool any = false;
  while (position_ < size_ || fill()) {
    if (!any) ++line_number_;
    any = true;
    const char* begin = buffer_.data() + position_;
    const auto* end = static_cast<const char*>(std::memchr(begin, '\n', size_ - position_));
    const std::size_t count = end != nullptr ? static_cast<std::size_t>(end - begin) : size_ - position_;
    require<DataError>(count <= max_line_bytes_ - line.size(), path().string(), ": line ", line_number_,
                       " is longer than ", max_line_bytes_,
                       " bytes; is this a text file with one document per line?");
    line.append(begin, count);
    const std::size_t used = count + (end != nullptr ? 1 : 0);
    position_ += used;
    consumed_ += used;
    if (end != nullptr) return true;
  }
  return any;
}

}  // namespace retort::io
