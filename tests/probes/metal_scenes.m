// What the Metal probe is tested with: known numbers of calls of a stand-in.
#import "tests/probes/metal_stand_in.h"

#include <objc/runtime.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const Size k_groups = {4, 2, 1}, k_group = {32, 1, 1}, k_threads = {1000, 1, 1};
static const uint64_t k_in_groups = 4 * 2 * 32;

static void require(int good, const char *what) {
  if (good) return;
  fprintf(stderr, "scene: %s\n", what);
  _exit(3);
}

static id pipeline(id<Device> device, const char *function) {
  return [device newComputePipelineStateWithFunction:stand_in_function(function) error:NULL];
}
static id<Compute> encode(id<Buffer> buffer, id with) {
  id<Compute> made = [buffer computeCommandEncoder];
  [made setComputePipelineState:with];
  return made;
}
static void dispatch(id<Compute> encoder, int times) {
  for (int i = 0; i < times; ++i) {
    [encoder dispatchThreadgroups:k_groups threadsPerThreadgroup:k_group];
  }
}
static void end(id<Encoder> encoder) {
  [encoder endEncoding];
  [encoder release];
}
static void handler(Block *block, id buffer) { (void)block, (void)buffer; }

// Queue a: a buffer of 5 + 2 + 1 dispatches and 3 barriers, one of 3 copies, an empty one. Queue b:
// 3 dispatches.
static int all(void) {
  id<Device> device = MTLCreateSystemDefaultDevice();
  id<Queue> a = [device newCommandQueue], b = [device newCommandQueue];
  id one = pipeline(device, "kernel_one");
  id two = [device newComputePipelineStateWithDescriptor:stand_in_descriptor(
                                                             "label_two",
                                                             stand_in_function("kernel_two"))
                                                 options:0
                                              reflection:NULL
                                                   error:NULL];
  id three = [device newComputePipelineStateWithDescriptor:stand_in_descriptor(
                                                               NULL,
                                                               stand_in_function("kernel_three"))
                                                   options:0
                                                reflection:NULL
                                                     error:NULL];
  require(pipeline(device, "x") != nil, "pipeline");
  require([device newComputePipelineStateWithFunction:nil error:NULL] == nil, "refused");

  id<Buffer> first = [a commandBuffer];
  id<Compute> compute = encode(first, one);
  [compute setThreadgroupMemoryLength:96 atIndex:0];
  [compute setThreadgroupMemoryLength:32 atIndex:1];
  dispatch(compute, 5);
  [compute memoryBarrierWithScope:1];
  [compute setComputePipelineState:two];
  [compute dispatchThreads:k_threads threadsPerThreadgroup:k_group];
  [compute dispatchThreads:k_threads threadsPerThreadgroup:k_group];
  [compute memoryBarrierWithScope:1];
  id resources[2] = {nil, nil};
  [compute memoryBarrierWithResources:resources count:2];
  [compute setComputePipelineState:three];
  [compute dispatchThreadgroupsWithIndirectBuffer:nil
                             indirectBufferOffset:7
                            threadsPerThreadgroup:k_group];
  [compute updateFence:nil];
  end(compute);
  Block block = {NULL, 0, 0, handler};
  [first addCompletedHandler:&block];
  [first commit];
  [first waitUntilScheduled];  // a wait, no sync
  [first waitUntilCompleted];  // sync 1 of a
  require([first status] == 4, "done");
  [first waitUntilCompleted];  // a wait for what was seen done

  id<Buffer> second = [a commandBuffer];
  id<Blit> blit = [second blitCommandEncoder];
  [blit waitForFence:nil];
  [blit copyFromBuffer:nil sourceOffset:1 toBuffer:nil destinationOffset:2 size:640];
  Range range = {3, 5};
  [blit fillBuffer:nil range:range value:200];
  Size size = {2, 3, 4}, origin = {0, 0, 9};
  [blit copyFromBuffer:nil
             sourceOffset:1
        sourceBytesPerRow:2
      sourceBytesPerImage:3
               sourceSize:size
                toTexture:nil
         destinationSlice:4
         destinationLevel:5
        destinationOrigin:origin];
  end(blit);
  [second commit];
  while ([second status] != 4) {
  }  // 3 polls; sync 2 of a
  require([second status] == 4, "still done");

  id<Buffer> empty = [a commandBuffer];
  [empty commit];
  id<Buffer> left = [a commandBuffer];  // recorded, never committed: counts nothing
  compute = encode(left, one);
  dispatch(compute, 100);
  end(compute);
  [left release];

  id<Event> event = [device newSharedEvent];
  id<Buffer> third = [b commandBuffer];
  compute = encode(third, one);
  dispatch(compute, 3);
  end(compute);
  [third encodeSignalEvent:event value:2];
  [third commit];
  id<Buffer> fourth = [b commandBuffer];
  [fourth encodeWaitForEvent:event value:2];
  [fourth commit];
  require([event signaledValue] == 2, "value");  // a poll that shows it: sync 1 of b
  require([event signaledValue] == 2, "value");  // nothing new
  require([event waitUntilSignaledValue:3 timeoutMS:1] == NO, "not yet");      // a poll
  require([event waitUntilSignaledValue:2 timeoutMS:1000] == YES, "signaled");  // a wait

  require(stand_in.dispatches == 111 && stand_in.commits == 5, "what arrived");
  require(stand_in.threads == 108 * k_in_groups + 2 * 1000 + 7, "sizes that arrived");
  require(stand_in.copied_bytes == 640 + 5 * 200 + 24 + 9, "bytes that arrived");
  return 0;
}

// The driver's encoder first, then the common one that it inherits from: both are hooked, and the
// one calls the other. A debug layer's buffer commits the one that it stands in front of.
static int inherited(void) {
  id<Device> device = MTLCreateSystemDefaultDevice();
  id<Queue> queue = [device newCommandQueue];
  id one = pipeline(device, "kernel_one");
  const char *const classes[] = {"StandInDriverCompute", "StandInCompute", "StandInDriverCompute"};
  for (int i = 0; i < 3; ++i) {
    stand_in_compute_class = objc_getClass(classes[i]);
    id<Buffer> buffer = i == 1 ? [queue commandBuffer] : [queue commandBufferWithUnretainedReferences];
    id<Compute> compute = encode(buffer, one);
    dispatch(compute, 10);
    [compute dispatchThreads:k_threads threadsPerThreadgroup:k_group];
    [compute memoryBarrierWithScope:1];
    end(compute);
    [buffer commit];
    [buffer waitUntilCompleted];
    [buffer release];
  }
  return 0;
}

static int two_devices(void) {
  id<List> devices = MTLCopyAllDevices();
  for (Number i = 0; i < [devices count]; ++i) {
    id<Device> device = [devices objectAtIndex:i];
    id<Queue> queue = [device newCommandQueue];
    id<Buffer> buffer = [queue commandBuffer];
    id<Compute> compute = encode(buffer, pipeline(device, "kernel_one"));
    dispatch(compute, i == 0 ? 2 : 3);
    end(compute);
    [buffer commit];
    [buffer waitUntilCompleted];
  }
  return 0;
}

static void rounds(id<Device> device, int count) {
  id<Queue> queue = [device newCommandQueue];
  id one = pipeline(device, "kernel_one"), two = pipeline(device, "kernel_two");
  for (int n = 0; n < count; ++n) {
    id<Buffer> buffer = [queue commandBuffer];
    id<Compute> compute = encode(buffer, n % 2 == 0 ? one : two);
    dispatch(compute, 10);
    end(compute);
    [buffer commit];
    [buffer waitUntilCompleted];
    [buffer release];  // the next one may have its address
  }
}
static void *work(void *device) {
  rounds((id<Device>)device, 100);
  return NULL;
}

static int threads(void) {
  id<Device> device = MTLCreateSystemDefaultDevice();
  // One round alone: GNU's runtime cannot change classes under running threads, as Apple's can.
  rounds(device, 1);
  pthread_t all_threads[16];
  for (int i = 0; i < 16; ++i) {
    require(pthread_create(&all_threads[i], NULL, work, device) == 0, "thread");
  }
  for (int i = 0; i < 16; ++i) pthread_join(all_threads[i], NULL);
  return 0;
}

static int killed(void) {
  id<Device> device = MTLCreateSystemDefaultDevice();
  id<Buffer> buffer = [[device newCommandQueue] commandBuffer];
  id<Compute> compute = encode(buffer, pipeline(device, "kernel_one"));
  dispatch(compute, 10);
  end(compute);
  [buffer commit];
  return raise(SIGKILL);
}

// What the probe cannot see: it says so.
static int unseen(void) {
  id<Device> device = MTLCreateSystemDefaultDevice();
  [device newMTL4CommandQueue];
  [device newMTL4CommandQueue];
  id<Buffer> buffer = [[device newCommandQueue] commandBuffer];
  id<Compute> compute = encode(buffer, pipeline(device, "kernel_one"));
  Range range = {0, 5};
  [compute executeCommandsInBuffer:nil withRange:range];
  [compute executeCommandsInBuffer:nil withRange:range];
  dispatch(compute, 1);
  end(compute);
  [buffer commit];
  require(stand_in.dispatches == 11, "what arrived");
  return 0;
}

// More classes than the probe has room for, each with a method of its own.
static void own_dispatch(id self, SEL selector, Size groups, Size group) {
  (void)self, (void)selector, (void)groups, (void)group;
  ++stand_in.dispatches;
}
static int many_classes(void) {
  id<Device> device = MTLCreateSystemDefaultDevice();
  id<Queue> queue = [device newCommandQueue];
  id one = pipeline(device, "kernel_one");
  for (int i = 0; i < 10; ++i) {
    char name[32];
    snprintf(name, sizeof name, "StandInCompute%d", i);
    stand_in_compute_class = objc_allocateClassPair(stand_in_usual_compute_class(), name, 0);
    SEL selector = @selector(dispatchThreadgroups:threadsPerThreadgroup:);
    class_addMethod(stand_in_compute_class, selector, (IMP)(void (*)(void))own_dispatch, "v@:");
    objc_registerClassPair(stand_in_compute_class);
    id<Buffer> buffer = [queue commandBuffer];
    id<Compute> compute = encode(buffer, one);
    dispatch(compute, 1);
    end(compute);
    [buffer commit];
  }
  require(stand_in.dispatches == 10, "what arrived");
  return 0;
}

int main(int count, char **arguments) {
  const char *name = count > 1 ? arguments[1] : "";
  if (strcmp(name, "all") == 0) return all();
  if (strcmp(name, "inherited") == 0) return inherited();
  if (strcmp(name, "two_devices") == 0) return two_devices();
  if (strcmp(name, "threads") == 0) return threads();
  if (strcmp(name, "killed") == 0) return killed();
  if (strcmp(name, "unseen") == 0) return unseen();
  if (strcmp(name, "many_classes") == 0) return many_classes();
  return 2;
}
