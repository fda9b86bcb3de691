// Prints the requests of task files, a line each: [task, document, number, [context, continuation]].
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "retort/tasks/requests.h"

int main(int count, char** arguments) try {
  using namespace retort;
  const std::int64_t shots = count > 2 ? std::stoll(arguments[2]) : 0;
  for (int i = 3; i < count; ++i) {
    auto task = tasks::read_task(arguments[i]);
    tasks::set_num_fewshot(task, shots);
    auto documents = tasks::read_documents(task, {.directory = arguments[1], .read_parquet = {}});
    const auto prepared = tasks::prepare(std::move(task), std::move(documents));
    for (const auto& document : prepared.documents)
      for (std::size_t j = 0; j < document.requests.size(); ++j) {
        const auto& request = document.requests[j];
        base::Json texts = base::Json::array({request.context, request.continuation});
        if (request.kind == tasks::RequestKind::loglikelihood_rolling) texts.erase(0);
        if (request.kind == tasks::RequestKind::generate_until) texts[1] = "KW";
        std::cout << base::Json::array({prepared.task.name, document.id, j, texts}).dump() << '\n';
      }
  }
  return EXIT_SUCCESS;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return EXIT_FAILURE;
}
