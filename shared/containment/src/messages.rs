//! What a worker and a supervisor send each other over the attempt's socket.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::ExitStatus;

use rustix::process::WaitStatus;
use serde::{Deserialize, Serialize};

use crate::plan::Plan;

/// The program that a supervisor starts. It is not among anybody's arguments, which everyone can read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// What the program may do.
    pub plan: Plan,
    /// The folder that it starts in.
    pub folder: PathBuf,
    /// Its file: a path, or a name that is looked up on the `PATH` of its own environment.
    pub program: OsString,
    /// The arguments after the program's name.
    pub arguments: Vec<OsString>,
    /// All of its environment.
    pub environment: BTreeMap<OsString, OsString>,
}

/// The parts of a request before its arguments.
const FIXED_PARTS: usize = 4;

impl Request {
    /// The request as it is sent: its size, then its parts, each after its own size. Arguments and variables are not JSON,
    /// because they need not be text.
    pub fn to_bytes(&self) -> Vec<u8> {
        let plan = serde_json::to_vec(&self.plan).expect("a plan contains only paths in UTF-8 and numbers");
        let count = self.arguments.len().to_string();
        let fixed: [&[u8]; FIXED_PARTS] =
            [&plan, self.folder.as_os_str().as_bytes(), self.program.as_bytes(), count.as_bytes()];
        let arguments = self.arguments.iter().map(|argument| argument.as_bytes());
        let variables = self.environment.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
        let mut parts = Vec::new();
        for part in fixed.into_iter().chain(arguments).chain(variables) {
            parts.extend(size(part));
            parts.extend(part);
        }
        [&size(&parts)[..], &parts].concat()
    }

    /// Reads one request, and nothing of what follows it.
    pub(crate) fn read_from(mut source: impl Read) -> io::Result<Self> {
        let mut total = [0; 8];
        source.read_exact(&mut total)?;
        let mut bytes = Vec::new();
        source.take(u64::from_le_bytes(total)).read_to_end(&mut bytes)?;
        Self::parse(&bytes).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a whole request"))
    }

    fn parse(mut bytes: &[u8]) -> Option<Self> {
        let mut parts = Vec::new();
        while !bytes.is_empty() {
            let (length, rest) = bytes.split_first_chunk()?;
            let (part, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
            parts.push(part);
            bytes = rest;
        }
        let (&[plan, folder, program, count], rest) = parts.split_first_chunk()?;
        let count: usize = std::str::from_utf8(count).ok()?.parse().ok()?;
        let (arguments, variables) = rest.split_at_checked(count)?;
        let owned = |part: &&[u8]| OsString::from_vec(part.to_vec());
        Some(Self {
            plan: serde_json::from_slice(plan).ok()?,
            folder: OsStr::from_bytes(folder).into(),
            program: owned(&program),
            arguments: arguments.iter().map(owned).collect(),
            environment: variables.chunks_exact(2).map(|pair| (owned(&pair[0]), owned(&pair[1]))).collect(),
        })
    }
}

fn size(bytes: &[u8]) -> [u8; 8] {
    (bytes.len() as u64).to_le_bytes()
}

/// How a program ended, as its supervisor reports it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// It ran, and everything that it started is dead.
    Ended {
        /// Its exit code or signal, as the system encodes them.
        status: i32,
        /// What it and its descendants used.
        usage: Usage,
        /// The limit for which all of them were killed, if they were.
        excess: Option<Excess>,
    },
    /// It was not started.
    NotStarted {
        /// The system's error, if it is one; otherwise this worker cannot do what the plan says.
        errno: Option<i32>,
        /// What the system refused, for people.
        message: String,
    },
}

/// A limit for which a program and everything that it started were killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Excess {
    /// They used more memory than the plan allows.
    Memory,
    /// The memory of their machine or container was used up.
    MachineMemory,
    /// Their scratch folder became larger than the plan allows.
    Disk,
}

/// What a program and everything that it started used.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Usage {
    /// The processor time of all of them.
    pub cpu_seconds: f64,
    /// The memory of all of them together, files that the system keeps in memory for them included, if they had a control
    /// group. Otherwise the resident memory of the largest; that of a small one includes what its supervisor had before it.
    pub peak_memory_bytes: u64,
}

impl Report {
    pub(crate) fn ended(status: WaitStatus, usage: Usage, excess: Option<Excess>) -> Self {
        Self::Ended { status: status.as_raw(), usage, excess }
    }

    pub(crate) fn not_started(error: &io::Error) -> Self {
        let errno = match error.kind() {
            io::ErrorKind::NotFound => Some(libc::ENOENT),
            io::ErrorKind::InvalidInput => Some(libc::EINVAL),
            _ => error.raw_os_error(),
        };
        Self::NotStarted { errno, message: error.to_string() }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a report contains only numbers and text")
    }

    /// What the worker read until the end of the socket; none if the supervisor ended without a report, because it was killed.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// What the program used, if it ran.
    pub fn usage(&self) -> Option<Usage> {
        match self {
            Self::Ended { usage, .. } => Some(*usage),
            Self::NotStarted { .. } => None,
        }
    }

    /// The limit for which the program was killed, if it was.
    pub fn excess(&self) -> Option<Excess> {
        match self {
            Self::Ended { excess, .. } => *excess,
            Self::NotStarted { .. } => None,
        }
    }

    /// The program's exit status, or why it was not started.
    pub fn status(self) -> io::Result<ExitStatus> {
        match self {
            Self::Ended { status, .. } => Ok(std::os::unix::process::ExitStatusExt::from_raw(status)),
            Self::NotStarted { errno: Some(errno), .. } => Err(io::Error::from_raw_os_error(errno)),
            Self::NotStarted { message, .. } => Err(io::Error::new(io::ErrorKind::Unsupported, message)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_arrives_as_it_was_sent() {
        let request = Request {
            plan: Plan { user: Some(7), scratch: "/scratch".into(), ..Plan::default() },
            folder: "/scratch".into(),
            program: "bash".into(),
            arguments: vec!["-c".into(), OsString::from_vec(vec![0xff, b' ']), "".into()],
            environment: [("A".into(), OsString::from_vec(vec![0xfe])), ("EMPTY".into(), "".into())].into(),
        };
        let bytes = request.to_bytes();
        let followed = [&bytes[..], b"t"].concat();
        let mut source = &followed[..];
        assert_eq!(Request::read_from(&mut source).unwrap(), request);
        assert_eq!(source, b"t", "what follows a request is left for its reader");
        assert!(Request::read_from(&bytes[..bytes.len() - 1]).is_err());
        assert!(Request::read_from(&[][..]).is_err());
    }

    #[test]
    fn a_supervisor_that_was_killed_reports_nothing() {
        let usage = Usage { cpu_seconds: 0.25, peak_memory_bytes: 1 << 20 };
        let excess = Some(Excess::Disk);
        let report = Report::Ended { status: 7 << 8, usage, excess };
        assert_eq!(Report::parse(&report.to_bytes()), Some(report.clone()));
        assert_eq!(report.excess(), excess);
        assert_eq!((report.usage(), report.status().unwrap().code()), (Some(usage), Some(7)));
        assert_eq!(Report::parse(b""), None);
    }
}
