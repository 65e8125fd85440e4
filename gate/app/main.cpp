// weir: the only place that makes the real world.
#include <exception>

#include "gate/app/program.hpp"

int main(int argc, char** argv) {
  weir::sys::RealWorld real;
  try {
    return weir::app::Program(real.world()).run(argc, argv);
  } catch (const std::exception& error) {
    weir::flow::print_error(
        real.world(), {weir::Code::internal, fmt::format("a fault in weir: {}", error.what())});
  }
  return static_cast<int>(weir::verdict::ExitCode::unmeasured);
}
