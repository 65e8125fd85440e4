// The scenes that the CUDA probe is tested with: known numbers of calls of a stand-in.
#include <cstddef>
#include <cstdio>

extern "C" {
void stand_in_begin();
void stand_in_launch(void* stream);
void stand_in_driver_launch(void* stream, int result);
void stand_in_copy(size_t bytes);
void stand_in_graphs(int times, void* stream);
void stand_in_wait(void* stream);
void stand_in_poll(void* stream, int result);
}

int main() {
  stand_in_begin();
  int here = 0;
  void* const stream = &here;
  for (int i = 0; i < 5; ++i) stand_in_launch(stream);
  stand_in_driver_launch(stream, 1);  // refused
  stand_in_driver_launch(stream, 0);
  stand_in_wait(stream);  // sync 1
  stand_in_wait(stream);  // for nothing
  stand_in_graphs(10, stream);
  stand_in_poll(stream, 600);  // cudaErrorNotReady
  stand_in_poll(stream, 0);    // sync 2
  stand_in_copy(48);           // sync 1 of the null stream
  std::puts("done");
  return 0;
}
