#pragma once
#include <memory>
#include <string>
#include <vector>

#include "retort/parquet/arrow/opened_file.h"

namespace retort::parquet {

/// As Table::read.
std::unique_ptr<Rows> read_rows(std::shared_ptr<const OpenedFile> file,
                                const std::vector<std::string>& columns);

}  // namespace retort::parquet
