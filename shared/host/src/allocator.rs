//! How much memory the allocator keeps.

/// The maximum number of glibc's arenas in a process.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAX_ARENAS: i32 = 2;

/// Limits the arenas of the allocator, before the first thread is started. By default a thread that finds all arenas in use
/// creates another one, up to eight for each core, and every arena keeps the peak of what was ever allocated in it: the memory
/// of a process then depends on how its threads were scheduled, and an instance of 512 MiB may exceed its limit by chance.
/// Small allocations come from a cache of each thread, so two arenas are enough for the few cores of an instance.
pub fn limit_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "the C library's call has no safe wrapper in the crates that we use")]
    // SAFETY: it only sets a number in the allocator, under the allocator's own lock.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, MAX_ARENAS);
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use std::sync::Barrier;
    use std::{fs, hint, thread};

    use super::*;

    /// The size and the alignment of the memory that glibc reserves for an arena.
    const ARENA_BYTES: u64 = 64 << 20;

    /// The number of arenas, without the main one, of a process that has allocated little from each.
    fn arenas() -> usize {
        let maps = fs::read_to_string("/proc/self/maps").expect("Linux has it");
        let starts = maps.lines().filter(|line| line.split_whitespace().count() == 5).filter_map(|line| {
            let (start, rest) = line.split_once('-')?;
            rest.contains(" rw-p ").then(|| u64::from_str_radix(start, 16).ok())?
        });
        starts.filter(|start| start.is_multiple_of(ARENA_BYTES)).count()
    }

    #[test]
    fn threads_that_allocate_at_the_same_time_share_two_arenas() {
        if !testkit::runs_alone("allocator::tests::threads_that_allocate_at_the_same_time_share_two_arenas") {
            return;
        }
        limit_arenas();
        let all_hold = Barrier::new(17);
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    let held = hint::black_box(vec![1_u8; 10_000]);
                    all_hold.wait();
                    drop(held);
                });
            }
            all_hold.wait();
        });
        assert!(arenas() < MAX_ARENAS as usize, "{} besides the main arena", arenas());
    }
}
