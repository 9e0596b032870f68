#include "prism/data/text_source.h"

#include <atomic>
#include <utility>

namespace prism {

class TextSource::Impl {
 public:
  Impl(std::vector<TextFile> files, TextOptions options)
      : files_(std::move(files)), options_(std::move(options)), separator_(parse_separator(options_.separator)) {}

  std::optional<Document> next() {
    for (;;) {
      if (reader_ == nullptr) {
        if (next_file_ == files_.size()) return std::nullopt;
        reader_ = open_documents(files_[next_file_++], options_, separator_, &cancelled_);
      }
      if (auto document = reader_->next()) return document;
      bytes_before_ += reader_->consumed();
      empty_before_ += reader_->empty_documents();
      reader_.reset();
    }
  }

  int64_t bytes_total() const {
    int64_t total = 0;
    for (const TextFile& file : files_) {
      if (file.path == "-") return 0;
      total += file.bytes;
    }
    return total;
  }

  void cancel() { cancelled_ = true; }
  int64_t bytes_read() const { return bytes_before_ + (reader_ ? reader_->consumed() : 0); }
  int64_t empty_documents() const { return empty_before_ + (reader_ ? reader_->empty_documents() : 0); }

 private:
  std::vector<TextFile> files_;
  TextOptions options_;
  std::string separator_;
  std::atomic<bool> cancelled_ = false;
  std::unique_ptr<DocumentReader> reader_;
  size_t next_file_ = 0;
  int64_t bytes_before_ = 0, empty_before_ = 0;
};

TextSource::TextSource(const std::vector<std::string>& inputs, TextOptions options)
    : TextSource(list_text_files(inputs, options), options) {}
TextSource::TextSource(std::vector<TextFile> files, TextOptions options)
    : impl_(std::make_unique<Impl>(std::move(files), std::move(options))) {}
TextSource::~TextSource() = default;
TextSource::TextSource(TextSource&&) noexcept = default;
TextSource& TextSource::operator=(TextSource&&) noexcept = default;

std::optional<Document> TextSource::next() {
  return impl_->next();
}

void TextSource::cancel() {
  impl_->cancel();
}

int64_t TextSource::bytes_total() const {
  return impl_->bytes_total();
}

int64_t TextSource::bytes_read() const {
  return impl_->bytes_read();
}

int64_t TextSource::empty_documents() const {
  return impl_->empty_documents();
}

}  // namespace prism
