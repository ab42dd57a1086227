//! The system's allocator, but blocks that were freed are kept for the next of their kind. musl maps and unmaps memory whenever
//! a group of blocks comes and goes: 3000 times in a measurement of 1 Gbit/s, with the faults of as many new pages, and each time
//! it waits for what other threads do with the memory; beside that trains leave late.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::Mutex;

/// Smaller ones come from groups that last; larger ones are rare [byte]. Powers of two, as the next.
const LEAST: usize = 256;
const MOST: usize = 4 << 20;
/// From here on a kind is all between one power of two and the next; of smaller ones four are.
const LARGE: usize = 128 << 10;
/// Most that is kept [byte].
const KEPT: usize = 3 << 20;
/// Of every block.
const ALIGN: usize = 16;
const SMALL_KINDS: usize = 4 * (LARGE.ilog2() - LEAST.ilog2()) as usize;
const KINDS: usize = SMALL_KINDS + (MOST.ilog2() - LARGE.ilog2()) as usize;

/// See the [module](self).
pub struct Keeping {
    kept: Mutex<Kept>,
}

struct Kept {
    /// Of each kind the block freed last, in which the address of the one before is, and so on to null.
    last: [*mut u8; KINDS],
    bytes: usize,
}

// SAFETY: the blocks are nobody's
unsafe impl Send for Kept {}

/// A kind of blocks, and their size.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind {
    number: usize,
    layout: Layout,
}

impl Kind {
    /// None for blocks that are the system's alone.
    fn of(layout: Layout) -> Option<Kind> {
        if !(LEAST + 1..=MOST).contains(&layout.size()) || layout.align() > ALIGN {
            return None;
        }
        let last = layout.size() - 1;
        let power = last.ilog2();
        let (number, size) = if last < LARGE {
            let quarter = last >> (power - 2);
            (4 * (power - LEAST.ilog2()) as usize + quarter - 4, (quarter + 1) << (power - 2))
        } else {
            (SMALL_KINDS + (power - LARGE.ilog2()) as usize, 2 << power)
        };
        Some(Kind { number, layout: Layout::from_size_align(size, ALIGN).ok()? })
    }
}

impl Keeping {
    pub const fn new() -> Keeping {
        Keeping { kept: Mutex::new(Kept { last: [ptr::null_mut(); KINDS], bytes: 0 }) }
    }

    /// Null where there is none; who is kept from its work by another thread asks the system.
    fn take(&self, kind: Kind) -> *mut u8 {
        let Ok(mut kept) = self.kept.try_lock() else { return ptr::null_mut() };
        let block = kept.last[kind.number];
        if !block.is_null() {
            // SAFETY: a kept block begins with an address
            kept.last[kind.number] = unsafe { block.cast::<*mut u8>().read() };
            kept.bytes -= kind.layout.size();
        }
        block
    }

    fn keep(&self, block: *mut u8, kind: Kind) -> bool {
        let Ok(mut kept) = self.kept.try_lock() else { return false };
        let fits = kept.bytes + kind.layout.size() <= KEPT;
        if fits {
            // SAFETY: the block is nobody's by now, and has room for an address
            unsafe { block.cast::<*mut u8>().write(kept.last[kind.number]) };
            kept.last[kind.number] = block;
            kept.bytes += kind.layout.size();
        }
        fits
    }
}

// SAFETY: every block is the system's, of its kind's layout, or of its own where it has no kind; one that is kept is nobody's
unsafe impl GlobalAlloc for Keeping {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(kind) = Kind::of(layout) else {
            // SAFETY: as our caller's
            return unsafe { System.alloc(layout) };
        };
        let block = self.take(kind);
        // SAFETY: its size is not zero
        if block.is_null() { unsafe { System.alloc(kind.layout) } } else { block }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let kind = Kind::of(layout);
        if !kind.is_some_and(|kind| self.keep(block, kind)) {
            // SAFETY: allocated so above
            unsafe { System.dealloc(block, kind.map_or(layout, |kind| kind.layout)) }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: our caller's size is a layout's
        let to = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (Kind::of(layout), Kind::of(to)) {
            // SAFETY: the system's own block and layout
            (None, None) => unsafe { System.realloc(block, layout, size) },
            (before, after) if before == after => block,
            // SAFETY: the new block has room for the shorter of both, and is another one
            _ => unsafe {
                let new = self.alloc(to);
                if !new.is_null() {
                    ptr::copy_nonoverlapping(block, new, layout.size().min(size));
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

    fn of(size: usize) -> Layout {
        Layout::from_size_align(size, 8).unwrap()
    }

    #[test]
    fn every_size_has_a_kind_that_holds_it_and_small_ones_waste_a_fifth_at_most() {
        assert!(Kind::of(of(LEAST)).is_none() && Kind::of(of(MOST + 1)).is_none());
        let mut before = 0;
        for size in (LEAST + 1..2 * LARGE).chain((2 * LARGE..=MOST).step_by(511)) {
            let kind = Kind::of(of(size)).unwrap();
            assert!(kind.number == before || kind.number == before + 1);
            let most = if size <= LARGE { size + size / 4 } else { 2 * size };
            assert!((size..=most).contains(&kind.layout.size()), "{size}: {:?}", kind.layout);
            assert!(Kind::of(kind.layout) == Some(kind));
            before = kind.number;
        }
        assert_eq!(before, KINDS - 1);
    }

    #[test]
    fn a_block_comes_back_and_what_is_in_it_moves_with_it() {
        let keeping = Keeping::new();
        // SAFETY: each block is used within its layout and freed once
        unsafe {
            let small = keeping.alloc(of(200));
            small.write_bytes(7, 200);
            let large = keeping.realloc(small, of(200), 200_000);
            assert_eq!((*large, *large.add(199)), (7, 7));
            assert_eq!(keeping.realloc(large, of(200_000), 220_000), large, "there is room");
            let two = [(); 2].map(|()| keeping.alloc(of(3000)));
            for block in two {
                keeping.dealloc(block, of(3000));
            }
            keeping.dealloc(large, of(220_000));
            assert_eq!(keeping.alloc(of(3050)), two[1], "the one freed last of this kind");
            assert_eq!(keeping.alloc(of(210_000)), large);
            assert_eq!(keeping.alloc(of(3000)), two[0]);
            let other = keeping.alloc(of(3000));
            assert!(!two.contains(&other));
            for (block, size) in [(large, 210_000), (two[0], 3000), (two[1], 3050), (other, 3000)] {
                keeping.dealloc(block, of(size));
            }
            for size in [MOST, 3000, 210_000] {
                let all: Vec<*mut u8> = (0..40).map(|_| keeping.alloc(of(size))).collect();
                all.into_iter().for_each(|block| keeping.dealloc(block, of(size)));
                assert!(keeping.kept.lock().unwrap().bytes <= KEPT);
            }
            for size in [MOST, 3000, 210_000] {
                let kind = Kind::of(of(size)).unwrap();
                while let block @ 1.. = keeping.take(kind) as usize {
                    System.dealloc(block as *mut u8, kind.layout);
                }
            }
            assert_eq!(keeping.kept.lock().unwrap().bytes, 0);
        }
    }
}
