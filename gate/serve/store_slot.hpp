// A connection to the store for one thread, opened when it is needed and again after it broke.
#pragma once

#include <exception>
#include <functional>
#include <memory>

#include "gate/history/service_store.hpp"

namespace weir::serve {

using OpenStore = std::function<Result<std::unique_ptr<history::ServiceStore>>()>;

class StoreSlot {
 public:
  explicit StoreSlot(OpenStore open) : open_(std::move(open)) {}

  // What `ask` answers of the store; Code::internal where it throws. After an Error that is not the
  // question's the next call opens another connection.
  template <class Ask>
  auto with(Ask ask) -> decltype(ask(std::declval<history::ServiceStore&>())) {
    try {
      if (!store_) {
        WEIR_TRY(store_, open_());
      }
      auto answer = ask(*store_);
      if (!answer && answer.error().code != Code::usage) store_.reset();
      return answer;
    } catch (const std::exception& error) {  // what it holds may be half of something
      store_.reset();
      return fail(Code::internal, "{}", error.what());
    }
  }

 private:
  OpenStore open_;
  std::unique_ptr<history::ServiceStore> store_;
};

}  // namespace weir::serve
