// A stand-in for Metal on GNU's Objective-C runtime. As in the real one, classes are private, inherit
// from each other, and a method may call its superclass's or another of its own.
#import "tests/probes/metal_stand_in.h"

#include <objc/runtime.h>
#include <stdlib.h>
#include <string.h>

StandIn stand_in;
Class stand_in_compute_class;

static void add(uint64_t *to, uint64_t amount) { __atomic_fetch_add(to, amount, __ATOMIC_RELAXED); }

__attribute__((objc_root_class)) @interface Root <Released> {
  Class isa;
}
@end
@implementation Root
+ (id)alloc {
  return class_createInstance(self, 0);
}
- (void)release {
  object_dispose(self);
}
@end

@interface StandInText : Root <Text> {
 @public
  const char *bytes;
}
@end
@implementation StandInText
- (const char *)UTF8String {
  return bytes;
}
@end

static id text(const char *bytes) {
  if (bytes == NULL) return nil;
  StandInText *made = [StandInText alloc];
  made->bytes = bytes;
  return made;
}

@interface StandInFunction : Root {
 @public
  const char *name, *label;
  id function;
}
@end
@implementation StandInFunction
- (id)name {
  return text(name);
}
- (id)label {
  return text(label);
}
- (id)computeFunction {
  return function;
}
@end

// A pipeline has a label and no function to be asked for.
@interface StandInPipeline : Root {
 @public
  const char *label;
}
@end
@implementation StandInPipeline
- (id)label {
  return text(label);
}
@end

@interface StandInEvent : Root <Event> {
 @public
  uint64_t value;
}
@end
@implementation StandInEvent
- (uint64_t)signaledValue {
  return value;
}
- (BOOL)waitUntilSignaledValue:(uint64_t)wanted timeoutMS:(uint64_t)milliseconds {
  (void)milliseconds;
  return [self signaledValue] >= wanted;
}
@end

@interface StandInEncoder : Root <Encoder>
@end
@implementation StandInEncoder
- (void)endEncoding {
}
- (void)updateFence:(id)fence {
  (void)fence;
}
- (void)waitForFence:(id)fence {
  (void)fence;
}
@end

@interface StandInCompute : StandInEncoder <Compute>
@end
@implementation StandInCompute
- (void)setComputePipelineState:(id)pipeline {
  (void)pipeline;
}
- (void)setThreadgroupMemoryLength:(Number)bytes atIndex:(Number)index {
  (void)bytes, (void)index;
}
- (void)dispatchThreads:(Size)threads threadsPerThreadgroup:(Size)group {
  (void)group;
  add(&stand_in.dispatches, 1);
  add(&stand_in.threads, threads.width * threads.height * threads.depth);
}
// By way of another method that programs may call too.
- (void)dispatchThreadgroups:(Size)groups threadsPerThreadgroup:(Size)group {
  Size threads = {groups.width * group.width, groups.height * group.height,
                  groups.depth * group.depth};
  [self dispatchThreads:threads threadsPerThreadgroup:group];
}
- (void)dispatchThreadgroupsWithIndirectBuffer:(id)buffer
                          indirectBufferOffset:(Number)offset
                         threadsPerThreadgroup:(Size)group {
  (void)buffer, (void)group;
  add(&stand_in.dispatches, 1);
  add(&stand_in.threads, offset);
}
- (void)executeCommandsInBuffer:(id)commands withRange:(Range)range {
  (void)commands;
  add(&stand_in.dispatches, range.length);
}
- (void)memoryBarrierWithScope:(Number)scope {
  (void)scope;
}
- (void)memoryBarrierWithResources:(const id *)resources count:(Number)count {
  (void)resources, (void)count;
}
@end

// A driver's own, over the common one: overrides and calls its superclass.
@interface StandInDriverCompute : StandInCompute
@end
@implementation StandInDriverCompute
- (void)dispatchThreads:(Size)threads threadsPerThreadgroup:(Size)group {
  [super dispatchThreads:threads threadsPerThreadgroup:group];
}
- (void)memoryBarrierWithScope:(Number)scope {
  [super memoryBarrierWithScope:scope];
}
@end

@interface StandInBlit : StandInEncoder <Blit>
@end
@implementation StandInBlit
- (void)copyFromBuffer:(id)from
          sourceOffset:(Number)at
              toBuffer:(id)to
     destinationOffset:(Number)there
                  size:(Number)size {
  (void)from, (void)at, (void)to, (void)there;
  add(&stand_in.copied_bytes, size);
}
- (void)fillBuffer:(id)buffer range:(Range)range value:(uint8_t)value {
  (void)buffer;
  add(&stand_in.copied_bytes, range.length * value);
}
- (void)copyFromBuffer:(id)from
             sourceOffset:(Number)at
        sourceBytesPerRow:(Number)row
      sourceBytesPerImage:(Number)image
               sourceSize:(Size)size
                toTexture:(id)to
         destinationSlice:(Number)slice
         destinationLevel:(Number)level
        destinationOrigin:(Size)origin {
  (void)from, (void)at, (void)row, (void)image, (void)to, (void)slice, (void)level;
  add(&stand_in.copied_bytes, size.width * size.height * size.depth + origin.depth);
}
@end

@interface StandInBuffer : Root <Buffer> {
 @public
  id queue;
  Number status, asked;
  Block *handlers[4];
  Number handler_count;
  StandInEvent *signaled;
  uint64_t signaled_value;
}
@end
@implementation StandInBuffer
- (id)commandQueue {
  return queue;
}
- (id<Compute>)computeCommandEncoder {
  return [self computeCommandEncoderWithDispatchType:0];
}
- (id<Compute>)computeCommandEncoderWithDispatchType:(Number)type {
  (void)type;
  return [(stand_in_compute_class != Nil ? stand_in_compute_class : stand_in_usual_compute_class()) alloc];
}
- (id<Blit>)blitCommandEncoder {
  return [StandInBlit alloc];
}
- (void)encodeSignalEvent:(id<Event>)event value:(uint64_t)value {
  signaled = (StandInEvent *)event;
  signaled_value = value;
}
- (void)encodeWaitForEvent:(id<Event>)event value:(uint64_t)value {
  (void)event, (void)value;
}
- (void)addCompletedHandler:(Block *)block {
  if (handler_count < 4) handlers[handler_count++] = block;
}
- (void)commit {
  add(&stand_in.commits, 1);
  status = 2;
  if (signaled != nil) signaled->value = signaled_value;
}
- (void)finish {
  if (status == 4) return;
  status = 4;
  for (Number i = 0; i < handler_count; ++i) handlers[i]->invoke(handlers[i], self);
}
- (void)waitUntilScheduled {
  status = 3;
}
- (void)waitUntilCompleted {
  [self status];  // of its own affair
  [self finish];
}
// Asked by the program, the work is done at the third time.
- (Number)status {
  if (status == 2 && ++asked == 3) [self finish];
  return status;
}
- (double)GPUStartTime {
  return 100.0;
}
- (double)GPUEndTime {
  return 100.0 + 0x1p-10;
}
@end

// What a debug layer gives: stands in front of another object, with the same methods.
@interface StandInDebugBuffer : StandInBuffer {
 @public
  StandInBuffer *inner;
}
@end
@implementation StandInDebugBuffer
- (void)commit {
  [inner commit];
  status = 2;
}
- (void)waitUntilCompleted {
  [inner waitUntilCompleted];
  [super waitUntilCompleted];
}
@end

@interface StandInQueue : Root <Queue> {
 @public
  id device;
}
@end
@implementation StandInQueue
- (id)device {
  return device;
}
- (id<Buffer>)commandBuffer {
  StandInBuffer *made = [StandInBuffer alloc];
  made->queue = self;
  return made;
}
- (id<Buffer>)commandBufferWithUnretainedReferences {
  StandInDebugBuffer *made = [StandInDebugBuffer alloc];
  made->inner = (StandInBuffer *)[self commandBuffer];
  made->queue = self;
  return made;
}
@end

@interface StandInDevice : Root <Device> {
 @public
  const char *name;
  BOOL unified;
}
@end
@implementation StandInDevice
- (id)name {
  return text(name);
}
- (BOOL)hasUnifiedMemory {
  return unified;
}
- (BOOL)supportsFamily:(long)family {
  return family == 1007 || family == 5001;
}
- (Number)maxThreadgroupMemoryLength {
  return 32768;
}
- (id<Queue>)newCommandQueue {
  StandInQueue *made = [StandInQueue alloc];
  made->device = self;
  return made;
}
- (id)newMTL4CommandQueue {
  return [StandInQueue alloc];
}
- (id<Event>)newSharedEvent {
  return [StandInEvent alloc];
}
- (id)newComputePipelineStateWithFunction:(id)function error:(id *)error {
  (void)error;
  return function == nil ? nil : [StandInPipeline alloc];
}
- (id)newComputePipelineStateWithDescriptor:(id)descriptor
                                    options:(Number)options
                                 reflection:(id *)reflection
                                      error:(id *)error {
  (void)options, (void)reflection, (void)error;
  StandInPipeline *made = [StandInPipeline alloc];
  made->label = ((StandInFunction *)descriptor)->label;
  return made;
}
@end
@interface StandInDiscreteDevice : StandInDevice
@end
@implementation StandInDiscreteDevice
- (id<Queue>)newCommandQueue {
  return [super newCommandQueue];
}
@end

@interface StandInList : Root <List>
@end

static StandInDevice *device(int which) {
  static StandInDevice *all[2];
  if (all[which] == nil) {
    all[which] = which == 0 ? [StandInDevice alloc] : [StandInDiscreteDevice alloc];
    all[which]->name = which == 0 ? "Apple Stand-in" : "AMD Stand-in Pro";
    all[which]->unified = which == 0;
  }
  return all[which];
}

@implementation StandInList
- (Number)count {
  return 2;
}
- (id)objectAtIndex:(Number)index {
  return device((int)index);
}
@end

id<Device> MTLCreateSystemDefaultDevice(void) { return device(0); }
id<List> MTLCopyAllDevices(void) { return [StandInList alloc]; }

id stand_in_function(const char *name) {
  StandInFunction *made = [StandInFunction alloc];
  made->name = name;
  return made;
}
id stand_in_descriptor(const char *label, id function) {
  StandInFunction *made = [StandInFunction alloc];
  made->label = label;
  made->function = function;
  return made;
}
Class stand_in_usual_compute_class(void) { return objc_getClass("StandInCompute"); }
