#!/usr/bin/env python3
"""Writes instants.json: cron patterns in time zones, and the instants that they mean.

It shares no code and no method with the product: it goes through every minute that a zone's clocks show, one by one,
and asks `zoneinfo` which instants these are. Where `croniter` has the same rules, it is asked as well, and must agree.

    pip install croniter tzdata && python3 instants.py > instants.json
"""

import calendar
import json
import sys
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from croniter import croniter

NAMES = {name: number for number, name in enumerate("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(), 1)}
NAMES |= {name: number for number, name in enumerate("SUN MON TUE WED THU FRI SAT".split())}
ALIASES = {
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}


def value(text):
    return NAMES.get(text.upper(), None) if text.upper() in NAMES else int(text)


def numbers(text, low, high):
    """The numbers that a plain field means."""
    found = set()
    for entry in text.split(","):
        span, _, step = entry.partition("/")
        if span in "*?":
            first, last = low, high
        elif "-" in span:
            first, last = map(value, span.split("-"))
            if last == 0 and high == 7:
                last = 7
        else:
            first = value(span)
            last = high if step else first
        found |= set(range(first, last + 1, int(step or 1)))
    return found


def weekday(year, month, day):
    return (calendar.weekday(year, month, day) + 1) % 7


def near(year, month, day, last):
    """The weekday nearest to a day, in the same month."""
    for candidate in (day, day - 1, day + 1, day - 2, day + 2):
        if 1 <= candidate <= last and weekday(year, month, candidate) not in (0, 6):
            return candidate


def days_of_month(field, year, month):
    last = calendar.monthrange(year, month)[1]
    found = set()
    for entry in field.split(","):
        entry = entry.upper()
        if entry == "L":
            found.add(last)
        elif entry == "LW":
            found.add(near(year, month, last, last))
        elif entry.endswith("W"):
            day = int(entry[:-1])
            day = last if day == 31 else day
            if day <= last:
                found.add(near(year, month, day, last))
        else:
            found |= {day for day in numbers(entry, 1, 31) if day <= last}
            # The 31st, where it is named and not only stepped on, is the last day of a short month.
            if "/" not in entry and entry not in "*?" and 31 in numbers(entry, 1, 31):
                found.add(last)
    return found


def days_by_week(field, year, month):
    last = calendar.monthrange(year, month)[1]
    every = {day: weekday(year, month, day) for day in range(1, last + 1)}
    found = set()
    for entry in field.split(","):
        entry = entry.upper()
        if entry.endswith("L"):
            wanted = value(entry[:-1].rstrip("#")) % 7
            found.add(max(day for day in every if every[day] == wanted))
        elif "#" in entry:
            wanted, _, nth = entry.partition("#")
            matching = [day for day in every if every[day] == value(wanted) % 7]
            found |= set(matching[int(nth) - 1:int(nth)])
        else:
            wanted = {number % 7 for number in numbers(entry, 0, 7)}
            found |= {day for day in every if every[day] in wanted}
    return found


def days(fields, year, month):
    _, _, day, months, week = fields
    if month not in numbers(months, 1, 12):
        return set()
    free = ("*", "?")
    if day in free and week in free:
        return set(range(1, calendar.monthrange(year, month)[1] + 1))
    if week in free:
        return days_of_month(day, year, month)
    if day in free:
        return days_by_week(week, year, month)
    return days_of_month(day, year, month) | days_by_week(week, year, month)


def instants_of(wall, zone, hourly):
    """When clocks show that time. `zoneinfo` reads a time in a gap with the offset before it."""
    first = wall.replace(tzinfo=zone, fold=0)
    second = wall.replace(tzinfo=zone, fold=1)
    found = {first.astimezone(timezone.utc)}
    exists = first.astimezone(timezone.utc).astimezone(zone).replace(tzinfo=None) == wall
    if exists and hourly and first.utcoffset() != second.utcoffset():
        found.add(second.astimezone(timezone.utc))
    return found


def following(pattern, zone_name, start, count):
    fields = ALIASES.get(pattern, pattern).split()
    zone = ZoneInfo(zone_name)
    minutes, hours = numbers(fields[0], 0, 59), numbers(fields[1], 0, 23)
    found, extra = set(), 3
    day = start.astimezone(zone).date() - timedelta(days=2)
    last_month, month_days = None, set()
    while extra:
        if (day.year, day.month) != last_month:
            last_month, month_days = (day.year, day.month), days(fields, day.year, day.month)
            if not month_days:
                day = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
                continue
        if day.day in month_days:
            for minute in range(24 * 60):
                if minute // 60 in hours and minute % 60 in minutes:
                    wall = datetime(day.year, day.month, day.day, minute // 60, minute % 60)
                    found |= {one for one in instants_of(wall, zone, len(hours) == 24) if one > start}
        if len(found) >= count:
            extra -= 1
        day += timedelta(days=1)
    return sorted(found)[:count]


def second_opinion(pattern, zone_name, start, expected):
    """What croniter says, where it has the same rules: no 31st, no `W`, and no clock is set meanwhile."""
    fields = ALIASES.get(pattern, pattern).split()
    zone = ZoneInfo(zone_name)
    odd = any(letter in fields[2] for letter in "WL?") or "31" in fields[2] or "?" in fields[4] or "#L" in fields[4]
    odd = odd or any("#" in entry or "L" in entry.upper() for entry in fields[4].split(",")) and "," in fields[4]
    odd = odd or fields[2] == "1-31" or "L" in fields[4].upper().replace("JUL", "") or "SAT-SUN" in fields[4]
    odd = odd or ("-7" in fields[4]) or ("/" in fields[2] and fields[4] != "*")
    odd = odd or ("#" in fields[4] and fields[2] != "*")
    local = [one.astimezone(zone) for one in [start, *expected]]
    if odd or len({(one.utcoffset()) for one in local}) > 1:
        return False
    asked = croniter(" ".join(fields), local[0])
    theirs = [asked.get_next(datetime).astimezone(timezone.utc) for _ in expected]
    assert theirs == expected, (pattern, zone_name, start, theirs, expected)
    return True


ZONES = ["UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata", "America/Phoenix"]
CHANGES = {
    "America/New_York": ["2026-03-07", "2026-10-31"],
    "Europe/Berlin": ["2026-03-28", "2026-10-24"],
    "Australia/Lord_Howe": ["2026-10-03", "2026-04-04"],
    "Asia/Kolkata": ["2026-03-28", "2026-10-24"],
}


def cases():
    around = [
        "30 2 * * *", "15 2 * * *", "0 2 * * *", "0 3 * * *", "30 1 * * *", "45 1 * * *", "0 1 * * *", "0 0 * * *",
        "0 * * * *", "30 * * * *", "*/15 * * * *", "*/20 1-3 * * *", "0 */2 * * *", "15,45 2 * * 0", "*/30 0-3 * * SUN",
        "@hourly", "@daily",
    ]
    for zone, dates in CHANGES.items():
        for first in dates:
            for pattern in around:
                many = 120 if pattern in ("*/15 * * * *",) else 40 if "*" in pattern.split()[0] + pattern[2:4] else 6
                yield pattern, zone, f"{first}T00:00:00", many
    plain = [
        "0 18 * * 1-5", "*/15 9-17 * JAN,MAR-MAY MON-FRI", "5 4 * * sun", "0 0,12 1 */2 *", "0 4 8-14 * *",
        "15 14 1 * *", "0 22 * * 1-5", "23 0-20/2 * * *", "0 0 1,15 * 3", "0 0 13 * FRI", "0 0 */10 * *", "7 7 7 7 *",
        "0 0 * * 7", "0 0 * * 0", "0 6 * * SAT-SUN", "0 6 * * 5-7", "59 23 31 12 *", "0 0 ? * MON", "5/20 * * * *",
        "0 8-18/3 * * *", "@weekly", "@monthly", "@yearly", "@annually", "@midnight", "0 12 * 2 *", "0 12 30 * *",
        "0 0 1-7 * MON", "10-20/5 6 * 6-8 2,4",
    ]
    for place, pattern in enumerate(plain):
        for zone in (ZONES[place % 6], ZONES[(place + 3) % 6]):
            yield pattern, zone, "2026-01-30T11:22:33", 12
    month_ends = [
        "0 0 31 * *", "0 12 31 2 *", "0 12 31 4,6 *", "0 0 30,31 * *", "0 0 30 * *", "0 0 29-31 * *", "0 0 L * *",
        "0 6 L 2 *", "0 6 LW * *", "0 6 1W * *", "0 6 15W * *", "0 6 31W * *", "0 6 30W * *", "0 6 1W,15W,L * *",
        "0 0 L * MON", "0 0 */2 * *", "0 0 1-31 2 *", "30 5 25-31 * *",
    ]
    for place, pattern in enumerate(month_ends):
        yield pattern, ZONES[place % 6], "2027-12-30T00:00:00", 26
    weeks = [
        "0 0 * * FRI#2", "0 0 * * 5#2", "0 0 * * MON#1", "0 0 * * 0#5", "0 0 * * 7#1", "0 0 * 2 MON#5", "0 0 * * 5L",
        "0 0 * * FRIL", "0 0 * * FRI#L", "0 0 * * SUNL", "0 0 * * MON#1,WED#3", "0 0 15 * FRI#3", "0 9 * 11 THU#4",
    ]
    for place, pattern in enumerate(weeks):
        yield pattern, ZONES[place % 6], "2026-05-05T05:05:05", 4 if "2 MON#5" in pattern else 14
    for zone in ("UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe"):
        yield "0 0 29 2 *", zone, "1999-01-01T00:00:00", 25
        yield "30 2 29 2 *", zone, "1995-01-01T00:00:00", 25


def main():
    rows, agreed = [], 0
    for pattern, zone, start, count in cases():
        start = datetime.fromisoformat(start).replace(tzinfo=timezone.utc)
        expected = following(pattern, zone, start, count)
        agreed += second_opinion(pattern, zone, start, expected)
        write = lambda one: one.strftime("%Y-%m-%dT%H:%M:%SZ")
        rows.append({"cron": pattern, "zone": zone, "from": write(start), "next": [write(one) for one in expected]})
    print("[")
    print(",\n".join(json.dumps(row) for row in rows))
    print("]")
    print(f"{len(rows)} cases, croniter agrees about {agreed}", file=sys.stderr)


main()
