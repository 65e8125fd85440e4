// A stand-in of mlx-native's public interface (crate mlx_native), as far as docs/how-to/mlx-native.md uses
// it: types and names as of its commit 3293ac7, numbers made up here.
pub mod kernel_profile {
    #[derive(Clone, Debug, Default)]
    pub struct ProfileEntry {
        pub count: u64,
        pub total_ns: u64,
        pub min_ns: u64,
        pub max_ns: u64,
    }

    #[derive(Clone, Debug)]
    pub struct DispatchEntry {
        pub cb_label: String,
        pub op_kind: &'static str,
        pub dispatch_index: u32,
        pub gpu_ns: u64,
        pub start_gpu_ns: u64,
        pub end_gpu_ns: u64,
    }

    pub fn reset() {}

    pub fn is_enabled() -> bool {
        std::env::var("MLX_PROFILE_CB").is_ok()
    }

    pub fn is_dispatch_enabled() -> bool {
        std::env::var("MLX_PROFILE_DISPATCH").is_ok()
    }

    // By time, longest first.
    pub fn dump() -> Vec<(String, ProfileEntry)> {
        if !is_enabled() {
            return Vec::new();
        }
        let entry = |count, total_ns, min_ns, max_ns| ProfileEntry { count, total_ns, min_ns, max_ns };
        vec![
            ("layer.ffn \"moe\"".into(), entry(4, 800_000, 150_000, 250_000)),
            ("layer.attn".into(), entry(4, 400_000, 90_000, 120_000)),
        ]
    }

    pub fn dump_dispatches() -> Vec<(String, Vec<DispatchEntry>)> {
        // Hardware that can: an Intel Mac's.
        if !is_dispatch_enabled() || std::env::var("STAND_IN_APPLE_SILICON").is_ok() {
            return Vec::new();
        }
        let entry = |label: &str, op_kind, dispatch_index, gpu_ns| DispatchEntry {
            cb_label: label.into(),
            op_kind,
            dispatch_index,
            gpu_ns,
            start_gpu_ns: 0,
            end_gpu_ns: gpu_ns,
        };
        vec![
            ("layer.attn".into(),
             vec![entry("layer.attn", "RmsNorm", 0, 100_000), entry("layer.attn", "Sdpa", 1, 310_000)]),
            ("layer.ffn \"moe\"".into(), vec![entry("layer.ffn \"moe\"", "Other", 0, 820_000)]),
        ]
    }
}

use std::sync::atomic::{AtomicU64, Ordering};
static TOKENS: AtomicU64 = AtomicU64::new(0);

// Of this stand-in alone: a token is done.
pub fn work() {
    TOKENS.fetch_add(1, Ordering::Relaxed);
}
pub fn dispatch_count() -> u64 {
    7 + 1350 * TOKENS.load(Ordering::Relaxed)
}
pub fn barrier_count() -> u64 {
    440 * TOKENS.load(Ordering::Relaxed)
}
pub fn sync_count() -> u64 {
    1 + TOKENS.load(Ordering::Relaxed)
}
pub fn cmd_buf_count() -> u64 {
    102 * TOKENS.load(Ordering::Relaxed)
}
