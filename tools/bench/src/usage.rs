//! Processor time and memory according to `/proc`; none on systems without `/proc`.

use std::{fs, io};

/// Clock ticks per second in `/proc`, the same on every Linux.
const TICKS: f64 = 100.0;

/// A megabyte in kilobytes.
const MEGABYTE: f64 = 1024.0;

/// Seconds of processor time so far.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Processors {
    /// Of this process: Ebbflow and the load generator.
    pub(crate) own: f64,
    /// Of the whole machine.
    pub(crate) all: f64,
}

impl Processors {
    pub(crate) fn now() -> Option<Self> {
        let own = fs::read_to_string("/proc/self/stat").ok()?;
        // The name of the program, in brackets, may contain spaces.
        let own = own.rsplit(')').next()?.split_whitespace().skip(11).take(2).filter_map(number).sum::<f64>();
        let all = fs::read_to_string("/proc/stat").ok()?;
        // User, nice, system; then idle and waiting; then interrupts.
        let all: Vec<f64> = all.lines().next()?.split_whitespace().skip(1).filter_map(number).collect();
        let busy = all.iter().take(3).chain(all.iter().skip(5).take(2)).sum::<f64>();
        Some(Self { own: own / TICKS, all: busy / TICKS })
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self { own: self.own - earlier.own, all: self.all - earlier.all }
    }

    pub(crate) fn per(self, count: f64) -> Self {
        Self { own: self.own / count, all: self.all / count }
    }
}

/// The resident memory of a process, in megabytes.
pub(crate) fn memory(process: &str) -> Option<f64> {
    megabytes(process, "VmRSS:")
}

/// The most resident memory that a process ever had, or had since [`forget_peak`], in megabytes.
pub(crate) fn peak_memory(process: &str) -> Option<f64> {
    megabytes(process, "VmHWM:")
}

/// Has the peak of a process begin with what it has now.
pub(crate) fn forget_peak(process: &str) -> io::Result<()> {
    fs::write(format!("/proc/{process}/clear_refs"), "5")
}

fn megabytes(process: &str, field: &str) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    Some(line.split_whitespace().next().and_then(number)? / MEGABYTE)
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_that_is_forgotten_begins_again() {
        if !cfg!(target_os = "linux") {
            return;
        }
        drop(std::hint::black_box(vec![1_u8; 200 << 20]));
        assert!(peak_memory("self").unwrap() >= 200.0);
        forget_peak("self").unwrap();
        let (now, peak) = (memory("self").unwrap(), peak_memory("self").unwrap());
        assert!(peak < 200.0, "{peak} MB, and {now} MB now");
    }
}
