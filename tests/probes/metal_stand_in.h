// The part of Metal that the stand-in has and the scenes use. Classes are hidden, as Metal's are: a
// program has protocols alone.
#pragma once

#include <objc/objc.h>
#include <stdint.h>

typedef unsigned long Number;
typedef struct {
  Number width, height, depth;
} Size;
typedef struct {
  Number location, length;
} Range;

// A block, as a compiler of blocks lays it out.
typedef struct Block {
  const void *isa;
  int flags, reserved;
  void (*invoke)(struct Block *, id buffer);
} Block;

@protocol Released
- (void)release;
@end

@protocol Text <Released>
- (const char *)UTF8String;
@end

@protocol Event <Released>
- (uint64_t)signaledValue;
- (BOOL)waitUntilSignaledValue:(uint64_t)value timeoutMS:(uint64_t)milliseconds;
@end

@protocol Encoder <Released>
- (void)endEncoding;
- (void)updateFence:(id)fence;
- (void)waitForFence:(id)fence;
@end

@protocol Compute <Encoder>
- (void)setComputePipelineState:(id)pipeline;
- (void)setThreadgroupMemoryLength:(Number)bytes atIndex:(Number)index;
- (void)dispatchThreads:(Size)threads threadsPerThreadgroup:(Size)group;
- (void)dispatchThreadgroups:(Size)groups threadsPerThreadgroup:(Size)group;
- (void)dispatchThreadgroupsWithIndirectBuffer:(id)buffer
                          indirectBufferOffset:(Number)offset
                         threadsPerThreadgroup:(Size)group;
- (void)executeCommandsInBuffer:(id)commands withRange:(Range)range;
- (void)memoryBarrierWithScope:(Number)scope;
- (void)memoryBarrierWithResources:(const id *)resources count:(Number)count;
@end

@protocol Blit <Encoder>
- (void)copyFromBuffer:(id)from
          sourceOffset:(Number)at
              toBuffer:(id)to
     destinationOffset:(Number)there
                  size:(Number)size;
- (void)fillBuffer:(id)buffer range:(Range)range value:(uint8_t)value;
- (void)copyFromBuffer:(id)from
             sourceOffset:(Number)at
        sourceBytesPerRow:(Number)row
      sourceBytesPerImage:(Number)image
               sourceSize:(Size)size
                toTexture:(id)to
         destinationSlice:(Number)slice
         destinationLevel:(Number)level
        destinationOrigin:(Size)origin;
@end

@protocol Buffer <Released>
- (id<Compute>)computeCommandEncoder;
- (id<Compute>)computeCommandEncoderWithDispatchType:(Number)type;
- (id<Blit>)blitCommandEncoder;
- (void)encodeSignalEvent:(id<Event>)event value:(uint64_t)value;
- (void)encodeWaitForEvent:(id<Event>)event value:(uint64_t)value;
- (void)addCompletedHandler:(Block *)block;
- (void)commit;
- (void)waitUntilScheduled;
- (void)waitUntilCompleted;
- (Number)status;
@end

@protocol Queue <Released>
- (id<Buffer>)commandBuffer;
- (id<Buffer>)commandBufferWithUnretainedReferences;
@end

@protocol Device
- (id<Queue>)newCommandQueue;
- (id)newMTL4CommandQueue;
- (id<Event>)newSharedEvent;
- (id)newComputePipelineStateWithFunction:(id)function error:(id *)error;
- (id)newComputePipelineStateWithDescriptor:(id)descriptor
                                    options:(Number)options
                                 reflection:(id *)reflection
                                      error:(id *)error;
@end

@protocol List <Released>
- (Number)count;
- (id)objectAtIndex:(Number)index;
@end

id<Device> MTLCreateSystemDefaultDevice(void);
id<List> MTLCopyAllDevices(void);

// Not Metal's: a function or a descriptor of a pipeline, either name may be null.
id stand_in_function(const char *name);
id stand_in_descriptor(const char *label, id function);
// The class of the compute encoders made from here on; 0: the usual one.
extern Class stand_in_compute_class;
// The usual one, for others to inherit from.
Class stand_in_usual_compute_class(void);

// The stand-in's own count of calls. `threads` counts the threads of all dispatches.
typedef struct {
  uint64_t dispatches, threads, copied_bytes, commits;
} StandIn;
extern StandIn stand_in;
