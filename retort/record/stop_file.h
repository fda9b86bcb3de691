#pragma once
// A file named `stop` in the run directory asks a run to save and end, where no signal reaches it.

#include "retort/base/files.h"
#include "retort/record/observer.h"

namespace retort::record {

/// An observer that also asks to stop where the file is there; the file of an earlier run is removed first.
class StopFile final : public Observer {
 public:
  /// Throws StorageError where it cannot be removed.
  StopFile(base::Path file, Observer& inner);

  void message(Level level, std::string_view text) override { inner_.message(level, text); }
  void step(const StepReport& report) override { inner_.step(report); }
  void progress(std::string_view what, std::int64_t done, std::int64_t total) override {
    inner_.progress(what, done, total);
  }
  bool stop_requested() const override;

 private:
  base::Path file_;
  Observer& inner_;
};

}  // namespace retort::record
