//! The worker's side: starts supervisors.

use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use crate::zygote::{HANDED_OVER, SUPERVISE};

/// Starts supervisors, from a zygote that it starts when it needs one. Clones share it. It ends after the last of them.
#[derive(Clone, Debug, Default)]
pub struct Supervisors(Arc<Mutex<Option<Zygote>>>);

impl Supervisors {
    /// Starts a supervisor, whose program writes to these pipes. Returns its socket, which takes a request, then orders, and
    /// gives a report. Closing it, or one direction, kills the program.
    pub fn start(&self, output: OwnedFd, errors: OwnedFd) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        let handed_over = [theirs.as_fd(), output.as_fd(), errors.as_fd()];
        let mut zygote = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = zygote.as_ref().map(|zygote| hand_over(&zygote.socket, handed_over));
        // A zygote that was killed is replaced.
        if matches!(sent, None | Some(Err(Errno::PIPE | Errno::CONNRESET))) {
            if let Some(mut dead) = zygote.take() {
                dead.process.wait()?;
            }
            hand_over(&zygote.insert(Zygote::start()?).socket, handed_over)?;
        } else if let Some(Err(error)) = sent {
            return Err(error.into());
        }
        Ok(ours)
    }
}

/// The zygote, which ends when the socket closes.
#[derive(Debug)]
struct Zygote {
    socket: UnixStream,
    process: Child,
}

impl Zygote {
    /// Starts this executable again. The socket is its standard input.
    fn start() -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let process = Command::new(this_executable())
            .arg(SUPERVISE)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            // Not in the group of the terminal: Ctrl-C is for the worker, which then still runs what it has leased.
            .process_group(0)
            .spawn()?;
        Ok(Self { socket, process })
    }
}

/// This executable, even if a newer one has replaced its file.
fn this_executable() -> OsString {
    if cfg!(target_os = "linux") {
        return "/proc/self/exe".into();
    }
    std::env::current_exe().map_or_else(|_| "ebb".into(), PathBuf::into_os_string)
}

fn hand_over(zygote: &UnixStream, files: [BorrowedFd<'_>; HANDED_OVER]) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(HANDED_OVER))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    message.push(SendAncillaryMessage::ScmRights(&files));
    rustix::net::sendmsg(zygote, &[IoSlice::new(&[0])], &mut message, SendFlags::empty())?;
    Ok(())
}
