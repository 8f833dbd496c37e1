//! Tries case after case until the time is over, and says how to see a failure again.

use std::env;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{LazyLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::random::Random;
use crate::shrink;

/// What a case may take. The densest texts of [`MAX_BYTES`] take about a second, since the build is a slow one, most cases are
/// tried twice to see that the answer is the same, and a busy machine halves the speed of a processor; quadratic work on them
/// takes far longer than this.
const SLOWEST: Duration = Duration::from_secs(4);
/// A case that is at work for longer will not end, or is too long in being made smaller.
const HANGS: Duration = Duration::from_secs(60);
/// What the process may have held at any time, in KiB.
const MAX_MEMORY: u64 = 256 * 1024;
/// The variable of a process that tries one target.
const ALONE: &str = "EBB_TEST_ALONE";
/// No text is longer.
pub(crate) const MAX_BYTES: usize = 64 * 1024;
/// What servers give a thread.
const STACK: usize = 2 * 1024 * 1024;

/// A function of the language that is fuzzed.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// Its part of the time, in percent.
    pub(crate) share: u32,
    /// Makes the texts of a case.
    pub(crate) make: fn(&mut Random) -> Vec<String>,
    /// Tries them and panics if something does not hold. Whatever else it needs comes from the numbers.
    pub(crate) check: fn(&[String], &mut Random),
}

/// Tries a target in a process of its own: the memory of others does not count, and one that overflows the stack or runs out
/// of memory ends alone. `test` is the name of the calling test.
pub(crate) fn fuzz(test: &str, target: &'static Target) {
    if env::var_os(ALONE).is_some() {
        return try_for_its_time(target);
    }
    let mut process = Command::new(env::current_exe().unwrap());
    let output = process.args(["--exact", test, "--nocapture"]).env(ALONE, "1").output().unwrap();
    let (printed, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && printed.contains("1 passed"), "{}\n{printed}{error}", output.status);
    println!("{printed}");
}

/// Tries a target for as long as it is to be tried.
fn try_for_its_time(target: &'static Target) {
    let seconds: f64 = setting("EBB_FUZZ_SECONDS").unwrap_or(3.0);
    let time = Duration::from_secs_f64(seconds * f64::from(target.share) / 100.0);
    let first = setting("EBB_SEED").unwrap_or(0);
    let (begun, statistics) = mpsc::channel();
    let (done, ended) = mpsc::channel();
    let worker = move || {
        let _ = begun.send(fs::read_link("/proc/thread-self").ok());
        done.send(catch_unwind(|| run(target, first, time)))
    };
    thread::Builder::new().stack_size(STACK).spawn(worker).unwrap();
    let thread = statistics.recv().unwrap().map(|thread| Path::new("/proc").join(thread).join("schedstat"));
    let mut result = ended.recv_timeout(time);
    let until = busy_of(thread.as_deref()) + HANGS;
    while matches!(result, Err(RecvTimeoutError::Timeout)) && busy_of(thread.as_deref()) < until {
        result = ended.recv_timeout(Duration::from_secs(1));
    }
    match result {
        Ok(Ok(())) => {}
        Ok(Err(_)) => panic!("{}: a case failed, see above", target.name),
        Err(_) => {
            let seed = fs::read_to_string(note(target)).unwrap().trim().parse().unwrap();
            panic!(
                "{}: case {seed} does not end\n{:#?}\n{}",
                target.name,
                texts(target, seed),
                again(target, seed)
            );
        }
    }
}

fn setting<T: std::str::FromStr>(name: &str) -> Option<T> {
    env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

fn again(target: &Target, seed: u64) -> String {
    let name = target.name;
    format!("again: EBB_FUZZ_SECONDS=0 EBB_SEED={seed} cargo test -p ebbflow-language --test fuzz {name}")
}

fn run(target: &Target, first: u64, time: Duration) {
    let notes = File::create(note(target)).unwrap();
    let begin = Instant::now();
    let (mut cases, mut slowest) = (0, Duration::ZERO);
    for seed in first.. {
        notes.write_all_at(format!("{seed:<20}\n").as_bytes(), 0).unwrap();
        slowest = slowest.max(one(target, seed));
        cases += 1;
        if begin.elapsed() >= time {
            break;
        }
    }
    let rate = f64::from(cases) / begin.elapsed().as_secs_f64();
    let memory = peak().unwrap_or_default() / 1024;
    println!(
        "{}: {cases} cases, {rate:.0} a second, the slowest took {slowest:?}, at most {memory} MiB",
        target.name
    );
}

/// The file with the number of the present case.
fn note(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{}.seed", target.name))
}

/// Tries one case, and tells how long it took.
fn one(target: &Target, seed: u64) -> Duration {
    let texts = texts(target, seed);
    match failure(target, seed, &texts) {
        Ok(took) => took,
        Err(reason) => {
            let small = shrink::shrink(texts, |texts| failure(target, seed, texts).is_err());
            let shown: Vec<&str> = small.iter().map(String::as_str).collect();
            panic!("{}: case {seed}: {reason}\n{shown:#?}\n{}", target.name, again(target, seed));
        }
    }
}

/// The texts of a case.
fn texts(target: &Target, seed: u64) -> Vec<String> {
    let mut texts = (target.make)(&mut Random::new(seed));
    texts.iter_mut().for_each(cut);
    texts
}

fn cut(text: &mut String) {
    let end = (0..=MAX_BYTES.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.truncate(end.unwrap_or_default());
}

/// Why the texts fail. A slow one has two more chances, for what is done only once.
fn failure(target: &Target, seed: u64, texts: &[String]) -> Result<Duration, String> {
    let mut fastest = Duration::MAX;
    for _ in 0..3 {
        let begin = busy();
        let check = || (target.check)(texts, &mut Random::new(!seed));
        catch_unwind(AssertUnwindSafe(check)).map_err(|_| "it panics".to_owned())?;
        fastest = fastest.min(busy() - begin);
        if fastest <= SLOWEST {
            break;
        }
    }
    match (fastest > SLOWEST, peak().filter(|peak| *peak > MAX_MEMORY)) {
        (true, _) => Err(format!("it takes {fastest:?}")),
        (_, Some(peak)) => Err(format!("it, or one tried before, took {peak} KiB of memory")),
        _ => Ok(fastest),
    }
}

/// How long this thread has been at work.
fn busy() -> Duration {
    busy_of(Some(Path::new("/proc/thread-self/schedstat")))
}

/// How long a thread has been at work, where the system tells: others use the machine too. Elsewhere, the time.
fn busy_of(statistics: Option<&Path>) -> Duration {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let statistics = statistics.and_then(|path| fs::read_to_string(path).ok());
    let busy = statistics
        .as_deref()
        .and_then(|statistics| statistics.split(' ').next()?.parse().ok())
        .map(Duration::from_nanos);
    busy.unwrap_or_else(|| BEGIN.elapsed())
}

/// The most memory that the process has ever held, in KiB, where the system tells.
fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}
