// A program of Metal's with known counts (ci/metal): each token is five dispatches in one encoder with
// two barriers between them, one copy, one commit and one wait.
//   counts TOKENS
#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

static NSString *const k_source =
    @"kernel void scale(device float *at [[buffer(0)]], uint i [[thread_position_in_grid]]) {"
     "  at[i] *= 2; }"
     "kernel void add(device float *at [[buffer(0)]], uint i [[thread_position_in_grid]]) {"
     "  at[i] += 1; }";

static void require(BOOL good, NSString *what, NSError *error) {
  if (good) return;
  fprintf(stderr, "counts: %s: %s\n", what.UTF8String, error.localizedDescription.UTF8String ?: "-");
  exit(3);
}

static id<MTLComputePipelineState> pipeline(id<MTLLibrary> library, NSString *name) {
  NSError *error = nil;
  id<MTLFunction> function = [library newFunctionWithName:name];
  id<MTLComputePipelineState> state = [library.device newComputePipelineStateWithFunction:function error:&error];
  require(state != nil, name, error);
  return state;
}

int main(int count, char **words) {
  @autoreleasepool {
    NSError *error = nil;
    const int tokens = count > 1 ? atoi(words[1]) : 1;
    id<MTLDevice> device = MTLCreateSystemDefaultDevice();
    require(device != nil, @"this machine has no Metal device", nil);
    id<MTLLibrary> library = [device newLibraryWithSource:k_source options:nil error:&error];
    require(library != nil, @"the kernels do not compile", error);
    id<MTLComputePipelineState> scale = pipeline(library, @"scale"), add = pipeline(library, @"add");
    id<MTLCommandQueue> queue = [device newCommandQueue];
    id<MTLBuffer> numbers = [device newBufferWithLength:4096 options:MTLResourceStorageModeShared];
    id<MTLBuffer> copied = [device newBufferWithLength:4096 options:MTLResourceStorageModeShared];
    for (int token = 0; token < tokens; ++token) {
      id<MTLCommandBuffer> buffer = [queue commandBuffer];
      id<MTLComputeCommandEncoder> encoder = [buffer computeCommandEncoder];
      [encoder setBuffer:numbers offset:0 atIndex:0];
      for (int i = 0; i < 5; ++i) {
        [encoder setComputePipelineState:i < 3 ? scale : add];
        [encoder dispatchThreadgroups:MTLSizeMake(4, 1, 1) threadsPerThreadgroup:MTLSizeMake(32, 1, 1)];
        if (i < 2) [encoder memoryBarrierWithScope:MTLBarrierScopeBuffers];
      }
      [encoder endEncoding];
      id<MTLBlitCommandEncoder> blit = [buffer blitCommandEncoder];
      [blit copyFromBuffer:numbers sourceOffset:0 toBuffer:copied destinationOffset:0 size:4096];
      [blit endEncoding];
      [buffer commit];
      [buffer waitUntilCompleted];
      require(buffer.status == MTLCommandBufferStatusCompleted, @"a command buffer failed", buffer.error);
    }
    printf("device: %s\ntokens: %d\n", device.name.UTF8String, tokens);
  }
  return 0;
}
