//! How much memory there is, and how much a model will take. A model that does not fit is refused: swapping would stop the
//! whole machine.

use crate::model::gguf::Gguf;

/// Compute buffers, logits and the process itself, in bytes.
const OVERHEAD: u64 = 350 << 20;

/// Memory of this machine or of the group that we may use, in bytes.
pub fn total() -> u64 {
    meminfo("MemTotal:").unwrap_or(u64::MAX).min(cgroup_limit())
}

/// Memory that a new process may take now, in bytes: what is free or can be freed, within the limits of the control group and the
/// address space.
pub fn available() -> u64 {
    let address_space = rustix::process::getrlimit(rustix::process::Resource::As).current.unwrap_or(u64::MAX);
    let group = cgroup_limit().saturating_sub(cgroup_used());
    meminfo("MemAvailable:").unwrap_or(u64::MAX).min(group).min(address_space)
}

/// What loading `gguf` with a context of `window` tokens takes, in bytes: the mapped file, the key-value cache in 16 bit, and buffers.
pub fn estimate(gguf: &Gguf, window: u32) -> u64 {
    let number = |key| gguf.own_number(key).unwrap_or(0);
    let heads = number("attention.head_count").max(1);
    let kv_heads = gguf.own_number("attention.head_count_kv").unwrap_or(heads);
    let head_dimension =
        gguf.own_number("attention.key_length").unwrap_or_else(|| number("embedding_length") / heads);
    // Hybrid models keep a cache in every n-th layer only.
    let layers = number("block_count") / gguf.own_number("full_attention_interval").unwrap_or(1).max(1);
    let cache = 2 * 2 * layers * kv_heads * head_dimension * u64::from(window);
    gguf.length + cache + OVERHEAD
}

/// Why a model that needs `needed` bytes is not loaded where `available` are; `None` if it fits.
pub fn refusal(name: &str, needed: u64, available: u64) -> Option<String> {
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    (needed > available).then(|| {
        format!(
            "{name} needs about {:.1} GiB of memory and {:.1} GiB are free; close other programs or choose a smaller model with \
             `tadpole models use`",
            gib(needed),
            gib(available)
        )
    })
}

fn meminfo(key: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}

fn number_in(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn cgroup_limit() -> u64 {
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    limits.iter().filter_map(|path| number_in(path)).min().unwrap_or(u64::MAX)
}

fn cgroup_used() -> u64 {
    let used = ["/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes"];
    used.iter().find_map(|path| number_in(path)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_with_both_figures() {
        let text = refusal("m", 5 << 30, 2 << 30).unwrap_or_default();
        assert!(text.contains("5.0 GiB") && text.contains("2.0 GiB"), "{text}");
        assert_eq!(refusal("m", 1, 2), None);
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(total() > 1 << 28 && available() > 1 << 20);
    }
}
