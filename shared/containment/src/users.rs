//! Users for programs: one per attempt, so that programs of different attempts cannot signal or read each other.
//!
//! Processes on the same machine share the range of users: each reserves blocks of it by locks on files, which the system
//! releases when the process dies.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::ops::RangeInclusive;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};

/// The range that systems reserve for users that exist only while a service runs.
const RANGE: RangeInclusive<u32> = 61_184..=65_519;

/// How many users a process reserves at once.
const BLOCK: u32 = 16;

/// The folder of the locks, in the first of these folders where it can be.
const FOLDER: &str = "ebbflow-users";

/// The users that this process has reserved. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct TaskUsers(Arc<Mutex<Reserved>>);

/// The users that are free, of the blocks of this process.
#[derive(Debug, Default)]
struct Reserved {
    free: BTreeSet<u32>,
    /// The locks of the blocks.
    locks: Vec<File>,
}

impl TaskUsers {
    /// A user that no other attempt on this machine has; none unless this process is root. Fails if all are in use.
    pub fn acquire(&self) -> io::Result<Option<TaskUser>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let mut reserved = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if reserved.free.is_empty() {
            let (block, lock) = reserve(&folder()?)?;
            reserved.locks.push(lock);
            reserved.free.extend(block);
        }
        Ok(reserved.free.pop_first().map(|id| TaskUser { id, users: self.clone() }))
    }
}

/// A user that is free again after it is dropped.
#[derive(Debug)]
pub struct TaskUser {
    id: u32,
    users: TaskUsers,
}

impl TaskUser {
    /// The number of the user and of its group.
    pub fn id(&self) -> u32 {
        self.id
    }
}

impl Drop for TaskUser {
    fn drop(&mut self) {
        self.users.0.lock().unwrap_or_else(PoisonError::into_inner).free.insert(self.id);
    }
}

/// The folder of the locks. Nobody else may write to it, or hold the locks.
fn folder() -> io::Result<PathBuf> {
    let mut problem = io::Error::other("no folder for locks");
    for parent in [Path::new("/run"), &std::env::temp_dir()] {
        let folder = parent.join(FOLDER);
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => problem = error,
            _ => {
                let found = fs::symlink_metadata(&folder)?;
                if found.is_dir() && found.uid() == 0 && found.mode() & 0o077 == 0 {
                    return Ok(folder);
                }
                problem = io::Error::other(format!("{} belongs to others", folder.display()));
            }
        }
    }
    Err(io::Error::new(problem.kind(), format!("cannot reserve users for programs: {problem}")))
}

/// The first block that no process has reserved, and its lock.
fn reserve(folder: &Path) -> io::Result<(RangeInclusive<u32>, File)> {
    for first in RANGE.step_by(BLOCK as usize) {
        let file = File::create(folder.join(first.to_string()))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return Ok((first..=RANGE.end().min(&(first + BLOCK - 1)).to_owned(), file));
        }
    }
    Err(io::Error::other(
        "all users for programs are in use on this machine: run fewer tasks at the same time",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than a block of them.
    fn acquire_many(users: &TaskUsers) -> Vec<TaskUser> {
        (0..BLOCK + 4).filter_map(|_| users.acquire().unwrap()).collect()
    }

    fn ids(users: &[TaskUser]) -> BTreeSet<u32> {
        users.iter().map(TaskUser::id).collect()
    }

    #[test]
    fn attempts_of_all_workers_of_a_machine_have_different_users() {
        let (one, other) = (TaskUsers::default(), TaskUsers::default());
        let (mut ones, others) = (acquire_many(&one), acquire_many(&other));
        if !rustix::process::geteuid().is_root() {
            assert!(ones.is_empty(), "only root has users to give");
            return;
        }
        let (first, second) = (ids(&ones), ids(&others));
        assert_eq!(first.len() + second.len(), 2 * (BLOCK as usize + 4));
        assert!(first.is_disjoint(&second), "{first:?} {second:?}");
        assert!(first.union(&second).all(|id| RANGE.contains(id)));
        let freed = ones.remove(0).id();
        assert_eq!(one.acquire().unwrap().map(|user| user.id()), Some(freed));
    }

    #[test]
    fn the_block_of_a_dead_worker_is_free_again() {
        let folder = tempfile::tempdir().unwrap();
        let (block, lock) = reserve(folder.path()).unwrap();
        let (other, _other_lock) = reserve(folder.path()).unwrap();
        assert!(other.start() > block.end());
        drop(lock);
        assert_eq!(reserve(folder.path()).unwrap().0, block);
        assert_eq!(RANGE.step_by(BLOCK as usize).last().unwrap() + BLOCK - 1, *RANGE.end());
    }
}
