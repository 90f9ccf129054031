//! One budget for everything that an instance allocates, and one for what a call costs.

use wasmtime::{ResourceLimiter, Store, UpdateDeadline};

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

/// What a call is about, and with that how much it may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// One payment, or one message.
    One,
    /// A whole file.
    File,
}

impl Size {
    /// Bytes that cross between host and guest.
    pub(super) fn exchange_bytes_max(self) -> usize {
        match self {
            Self::One => limits::GUEST_EXCHANGE_BYTES_MAX,
            Self::File => limits::FILE_EXCHANGE_BYTES_MAX,
        }
    }

    /// Time on the processor, in ticks.
    fn ticks_max(self) -> u64 {
        match self {
            Self::One => limits::RAIL_TICKS_MAX,
            Self::File => limits::FILE_TICKS_MAX,
        }
    }

    /// Bytes of the body of a request to a simulated network.
    #[must_use]
    pub fn request_bytes_max(self) -> usize {
        match self {
            Self::One => limits::GUEST_EXCHANGE_BYTES_MAX / 4,
            Self::File => limits::FILE_BYTES_MAX,
        }
    }
}

/// What one call may cost: bytes across the border, and time on the processor.
pub(super) fn bound<T>(store: &mut Store<T>, size: Size) {
    let ticks_max = size.ticks_max();
    store.set_hostcall_fuel(size.exchange_bytes_max());
    // Epochs pass while a guest waits for the network as well. Only ticks that find it
    // running are counted, and each lets other tasks have the processor.
    let mut ticks = 0;
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(move |_| {
        ticks += 1;
        Ok(match ticks > ticks_max {
            true => UpdateDeadline::Interrupt,
            false => UpdateDeadline::Yield(1),
        })
    });
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
