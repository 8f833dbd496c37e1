//! What the clocks of a time zone show, and the instants at which they do.

use chrono::{
    DateTime, Days, MappedLocalTime, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeDelta, TimeZone,
};
use chrono_tz::Tz;
use model::{Instant, instant};

/// A longer look back than clocks were ever set forward in one go and zones are apart.
const MAX_GAP: TimeDelta = TimeDelta::hours(24);

/// The instants at which clocks show a time: none is ever lost. A time that is skipped in spring counts as it would
/// have, had the clocks not been set forward yet, so they show one as much later; one that comes twice in autumn
/// counts at first, and again where `twice` asks for it.
pub fn instants(zone: Tz, wall: NaiveDateTime, twice: bool) -> impl Iterator<Item = Instant> {
    let (first, second) = match zone.from_local_datetime(&wall) {
        MappedLocalTime::Single(one) => (one.to_utc(), None),
        MappedLocalTime::Ambiguous(first, second) => (first.to_utc(), twice.then(|| second.to_utc())),
        MappedLocalTime::None => (wall.and_utc() - offset_at(zone, wall - MAX_GAP), None),
    };
    [Some(first), second].into_iter().flatten()
}

/// The instant at which a day begins.
pub fn midnight(zone: Tz, date: NaiveDate) -> Instant {
    let wall = date.and_time(NaiveTime::MIN);
    instants(zone, wall, false).next().unwrap_or_else(|| wall.and_utc())
}

/// An instant as people write it: with an offset, or as local time of a zone; a day begins at midnight.
pub fn read(text: &str, zone: Tz) -> Option<Instant> {
    const FORMATS: [&str; 4] = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"];
    let text = text.trim();
    if let Ok(instant) = instant::parse(text) {
        return Some(instant);
    }
    let day = instant::parse_date(text).map(|day| day.and_time(NaiveTime::MIN));
    let local = day.or_else(|| instant::parse_local(text, &FORMATS))?;
    instants(zone, local, false).next().filter(instant::has_valid_year)
}

/// What clocks show at an instant, as far as they show it.
pub fn shown(zone: Tz, instant: Instant) -> DateTime<Tz> {
    instant.with_timezone(&zone)
}

/// How far clocks are ahead of UTC, on a day on which nobody sets them, and not on those beside it.
pub(crate) fn steady_offset(zone: Tz, date: NaiveDate) -> Option<TimeDelta> {
    let (before, after) = (date.checked_sub_days(Days::new(1))?, date.checked_add_days(Days::new(2))?);
    let [before, after] = [before, after].map(|date| offset_at(zone, date.and_time(NaiveTime::MIN)));
    (before == after).then_some(before)
}

fn offset_at(zone: Tz, utc: NaiveDateTime) -> TimeDelta {
    TimeDelta::seconds(i64::from(zone.offset_from_utc_datetime(&utc).fix().local_minus_utc()))
}
