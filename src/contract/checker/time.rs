//! A time as text (interactions, 1): a date of the calendar, `T`, hours and minutes, perhaps seconds with a fraction of
//! any length, and a zone.

/// Whether `text` is a time in UTC with `Z`.
pub(super) fn is_utc(text: &str) -> bool {
    text.strip_suffix('Z').is_some_and(is_local)
}

/// Whether `text` is a time with `Z`, or with an offset of hours and minutes.
pub(super) fn has_zone(text: &str) -> bool {
    let with_offset = || {
        let (local, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
        let hours_and_minutes = offset.strip_prefix(['+', '-'])?;
        Some(is_clock(hours_and_minutes) && is_local(local))
    };
    is_utc(text) || with_offset().unwrap_or(false)
}

/// A date and a time of day. There is no hour 24 and no leap second.
fn is_local(text: &str) -> bool {
    let Some((date, time)) = text.split_once('T') else {
        return false;
    };
    let Some((clock, seconds)) = time.split_at_checked(5) else {
        return false;
    };
    is_date(date) && is_clock(clock) && (seconds.is_empty() || are_seconds(seconds))
}

fn is_date(text: &str) -> bool {
    let [year, month, day] = numbers(text, '-', [4, 2, 2]).unwrap_or_default();
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

fn is_clock(text: &str) -> bool {
    numbers(text, ':', [2, 2]).is_some_and(|[hour, minute]| hour < 24 && minute < 60)
}

/// `:` and the seconds, perhaps a point and at least one digit.
fn are_seconds(text: &str) -> bool {
    let Some(text) = text.strip_prefix(':') else {
        return false;
    };
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, fraction),
        None => (text, "0"),
    };
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    is_fraction && number(whole, 2).is_some_and(|seconds| seconds < 60)
}

/// The numbers that `separator` separates, each of so many digits.
fn numbers<const N: usize>(text: &str, separator: char, digits: [usize; N]) -> Option<[u32; N]> {
    let mut found = [0; N];
    let mut parts = text.split(separator);
    for (number, digits) in found.iter_mut().zip(digits) {
        *number = self::number(parts.next()?, digits)?;
    }
    parts.next().is_none().then_some(found)
}

fn number(text: &str, digits: usize) -> Option<u32> {
    let fits = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::{has_zone, is_utc};

    #[test]
    fn interactions_1_a_time_in_utc_has_an_upper_case_z() {
        for fine in [
            "2031-02-03T04:05Z",
            "2031-02-03T04:05:06Z",
            "2031-02-03T04:05:06.1Z",
            "2031-02-03T04:05:06.12345678901234567890Z",
            "2028-02-29T00:00:00Z",
            "2000-02-29T00:00:00Z",
            "0000-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
        ] {
            assert!(is_utc(fine) && has_zone(fine), "{fine}");
        }
        for wrong in [
            "",
            "Z",
            "2031-02-03",
            "2031-02-03T04:05:06",
            "2031-02-03T04:05:06z",
            "2031-02-03t04:05:06Z",
            "2031-02-03 04:05:06Z",
            " 2031-02-03T04:05:06Z",
            "2031-02-03T04:05:06Z\n",
            "2031-02-03T04:05:06.Z",
            "2031-02-03T04:05:06,5Z",
            "2031-02-03T04:05.5Z",
            "2031-02-03T04:05:6Z",
            "2031-02-03T04:05:60Z",
            "2031-02-03T04:60:06Z",
            "2031-02-03T24:00:00Z",
            "2031-02-03T04Z",
            "20310203T040506Z",
            "+002031-02-03T04:05:06Z",
            "2031-2-3T04:05:06Z",
            "2031-00-03T04:05:06Z",
            "2031-13-03T04:05:06Z",
            "2031-02-00T04:05:06Z",
            "2031-02-30T04:05:06Z",
            "2031-04-31T04:05:06Z",
            "1900-02-29T04:05:06Z",
            "2031-02-03T04:05:06Z[UTC]",
            "２031-02-03T04:05:06Z",
        ] {
            assert!(!is_utc(wrong) && !has_zone(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn interactions_1_an_offset_has_hours_and_minutes() {
        for fine in [
            "2031-02-03T04:05:06+00:00",
            "2031-02-03T04:05-23:59",
            "9999-12-31T23:59:59.9-23:59",
        ] {
            assert!(has_zone(fine) && !is_utc(fine), "{fine}");
        }
        for wrong in [
            "2031-02-03T04:05:06+0200",
            "2031-02-03T04:05:06+02",
            "2031-02-03T04:05:06+24:00",
            "2031-02-03T04:05:06+02:60",
            "2031-02-03T04:05:06+02:00:00",
            "2031-02-03T04:05:06+02:00Z",
            "2031-02-03T04:05:06\u{2212}02:00",
            "é+02:00",
            "+02:00",
        ] {
            assert!(!has_zone(wrong), "{wrong:?}");
        }
    }
}
