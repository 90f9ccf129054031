//! One budget for everything that an instance allocates.

use wasmtime::ResourceLimiter;

use crate::config::limits;

/// Sums all memories and tables of a store: wasmtime's own limits are per memory and table.
#[derive(Default)]
pub(super) struct Limiter {
    memory: usize,
    elements: usize,
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(take(&mut self.memory, current, desired, limits::GUEST_BYTES_MAX))
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(take(&mut self.elements, current, desired, limits::GUEST_TABLE_ELEMENTS_MAX))
    }
}

fn take(used: &mut usize, current: usize, desired: usize, ceiling: usize) -> bool {
    let after = used.saturating_add(desired.saturating_sub(current));
    let granted = after <= ceiling;
    if granted {
        *used = after;
    }
    granted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_are_summed() {
        let mut limiter = Limiter::default();
        let half = limits::GUEST_BYTES_MAX / 2;
        assert!(limiter.memory_growing(0, half, None).expect("no trap"));
        assert!(limiter.memory_growing(0, half, None).expect("no trap"));
        assert!(!limiter.memory_growing(0, 1, None).expect("no trap"));
        assert!(!limiter.memory_growing(half, usize::MAX, None).expect("no trap"));
    }
}
