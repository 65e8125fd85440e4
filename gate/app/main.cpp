// weir: the only place that makes the real world.
#include <exception>

#include "gate/app/program.hpp"

// Runs the program and returns its exit code. Exceptions, and output that cannot be written, exit
// with the code for "could not measure".
int main(int argc, char** argv) {
  weir::sys::RealWorld real;
  try {
    const int code = weir::app::Program(real.world()).run(argc, argv);
    const auto error = real.output_error();
    if (!error) return code;
    weir::flow::print_error(real.world(),
                            {weir::Code::io, "standard output cannot be written: " + *error});
  } catch (const std::exception& error) {
    weir::flow::print_error(
        real.world(), {weir::Code::internal, fmt::format("a fault in weir: {}", error.what())});
  }
  return static_cast<int>(weir::verdict::ExitCode::unmeasured);
}
