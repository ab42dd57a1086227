//! The system's allocator, but some large blocks that were freed are kept for the next of their kind. musl maps and unmaps what
//! has 128 kB or more each time: in a measurement of 1 Gbit/s 1700 calls and the faults of as many new pages, beside which trains
//! leave late.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::{Mutex, PoisonError};

/// Musl maps from here on, and what is larger than this is rare [byte].
const LEAST: usize = 128 << 10;
const MOST: usize = 4 << 20;
/// So many blocks are kept, and so much of all [byte].
const BLOCKS: usize = 8;
const KEPT: usize = 4 << 20;
/// Of every large block.
const ALIGN: usize = 16;

/// See the [module](self).
pub struct Keeping {
    /// Address and size; size 0: none.
    kept: Mutex<[(usize, usize); BLOCKS]>,
}

impl Keeping {
    pub const fn new() -> Keeping {
        Keeping { kept: Mutex::new([(0, 0); BLOCKS]) }
    }

    /// What a large block is rounded up to; none for all others.
    fn rounded(layout: Layout) -> Option<Layout> {
        let large = (LEAST..=MOST).contains(&layout.size()) && layout.align() <= ALIGN;
        large.then(|| Layout::from_size_align(layout.size().next_power_of_two(), ALIGN).ok()).flatten()
    }

    fn take(&self, size: usize) -> Option<*mut u8> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter_mut().find(|block| block.1 == size)?;
        Some(std::mem::take(found).0 as *mut u8)
    }

    fn keep(&self, address: *mut u8, size: usize) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = kept.iter().map(|block| block.1).sum();
        let free = kept.iter_mut().find(|block| block.1 == 0).filter(|_| all + size <= KEPT);
        free.map(|block| *block = (address as usize, size)).is_some()
    }
}

// SAFETY: every block is the system's, of the layout that `rounded` makes of its own, or of its own where that is none; one that is
// kept is nobody's
unsafe impl GlobalAlloc for Keeping {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let rounded = Keeping::rounded(layout);
        match rounded.and_then(|rounded| self.take(rounded.size())) {
            Some(block) => block,
            // SAFETY: as our caller's, whose size is not zero
            None => unsafe { System.alloc(rounded.unwrap_or(layout)) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let rounded = Keeping::rounded(layout);
        if !rounded.is_some_and(|rounded| self.keep(block, rounded.size())) {
            // SAFETY: allocated so above
            unsafe { System.dealloc(block, rounded.unwrap_or(layout)) }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: our caller's size is a layout's
        let to = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (Keeping::rounded(layout), Keeping::rounded(to)) {
            // SAFETY: the system's own block and layout
            (None, None) => unsafe { System.realloc(block, layout, size) },
            (before, after) if before == after => block,
            // SAFETY: the new block has room for the shorter of both, and is another one
            _ => unsafe {
                let new = self.alloc(to);
                if !new.is_null() {
                    std::ptr::copy_nonoverlapping(block, new, layout.size().min(size));
                    self.dealloc(block, layout);
                }
                new
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_block_comes_back_and_what_is_in_it_moves_with_it() {
        let keeping = Keeping::new();
        let of = |size| Layout::from_size_align(size, 8).unwrap();
        // SAFETY: each block is used within its layout and freed once
        unsafe {
            let small = keeping.alloc(of(1000));
            small.write_bytes(7, 1000);
            let large = keeping.realloc(small, of(1000), 200_000);
            assert_eq!((*large, *large.add(999)), (7, 7));
            assert_eq!(keeping.realloc(large, of(200_000), 250_000), large, "there is room");
            keeping.dealloc(large, of(250_000));
            assert_eq!(keeping.alloc(of(140_000)), large, "the same size rounded");
            let other = keeping.alloc(of(140_000));
            assert_ne!(other, large);
            let all: Vec<*mut u8> = (0..3 * BLOCKS).map(|_| keeping.alloc(of(MOST / 2))).collect();
            all.into_iter().chain([]).for_each(|block| keeping.dealloc(block, of(MOST / 2)));
            keeping.dealloc(large, of(140_000));
            keeping.dealloc(other, of(140_000));
            let kept: usize = keeping.kept.lock().unwrap().iter().map(|block| block.1).sum();
            assert_eq!(kept, KEPT);
            while let Some(block) = keeping.take(MOST / 2) {
                System.dealloc(block, Layout::from_size_align(MOST / 2, ALIGN).unwrap());
            }
        }
    }
}
