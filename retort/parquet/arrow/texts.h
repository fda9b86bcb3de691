#pragma once
#include <memory>

#include "retort/parquet/arrow/opened_file.h"

namespace retort::parquet {

/// As Table::texts.
std::unique_ptr<Texts> read_texts(std::shared_ptr<const OpenedFile> file, std::string_view column);

}  // namespace retort::parquet
