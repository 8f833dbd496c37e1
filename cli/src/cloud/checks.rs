//! What `ebb doctor --cloud` checks of the database instance. Pure: the instance and its backups are given.

use api::doctor::CheckView;
use chrono::TimeDelta;
use google_cloud_sql_v1::model::database_instance::SqlInstanceState;
use google_cloud_sql_v1::model::database_instance::sql_out_of_disk_report::SqlOutOfDiskState;
use google_cloud_sql_v1::model::{
    BackupConfiguration, BackupRun, DatabaseInstance, Settings, SqlBackupRunStatus,
};
use google_cloud_wkt::Timestamp;
use model::Instant;

/// Backups are made daily, and take a while.
const MAX_BACKUP_AGE: TimeDelta = TimeDelta::hours(26);

/// Maintenance that begins within this time is worth a warning.
const NOTICE: TimeDelta = TimeDelta::days(1);

/// The checks of an instance.
pub fn checks(instance: &DatabaseInstance, backups: &[BackupRun], now: Instant) -> Vec<CheckView> {
    let settings = instance.settings.clone().unwrap_or_default();
    let configured = settings.backup_configuration.clone().unwrap_or_default();
    vec![
        state(instance, &settings),
        disk(instance, &settings),
        backup(&configured, backups, now),
        recovery(&configured),
        maintenance(instance, &settings, now),
    ]
}

fn state(instance: &DatabaseInstance, settings: &Settings) -> CheckView {
    let message = format!(
        "{} is {}: {} on {}, {}",
        instance.name, instance.state, instance.database_version, settings.tier, settings.availability_type
    );
    let advice = "start it (`gcloud sql instances patch NAME --activation-policy=ALWAYS`), or see its operations \
                  (`gcloud sql operations list --instance=NAME`)";
    CheckView::new("database instance", instance.state == SqlInstanceState::Runnable, message, advice)
}

fn disk(instance: &DatabaseInstance, settings: &Settings) -> CheckView {
    let report = instance.out_of_disk_report.clone().unwrap_or_default();
    let is_full = report.sql_out_of_disk_state == Some(SqlOutOfDiskState::SoftShutdown);
    let (size, limit) =
        (settings.data_disk_size_gb.unwrap_or(0), settings.storage_auto_resize_limit.unwrap_or(0));
    let grows = settings.storage_auto_resize.unwrap_or(false) && (limit == 0 || limit > size);
    let growth = match (is_full, grows, limit) {
        (true, ..) => "is full, so the instance has stopped".to_owned(),
        (_, true, 0) => "grows without a limit".to_owned(),
        (_, true, limit) => format!("grows up to {limit} GB"),
        (_, false, _) => "does not grow any more".to_owned(),
    };
    let advice = "raise `database.disk_limit_gb`, or shorten the retention";
    CheckView::new("database disk", grows && !is_full, format!("{size} GB, {growth}"), advice)
}

fn backup(configured: &BackupConfiguration, backups: &[BackupRun], now: Instant) -> CheckView {
    let advice = "see `gcloud sql backups list`, and apply terraform if backups are off";
    let is_good = |backup: &&BackupRun| backup.status == SqlBackupRunStatus::Successful;
    let last = backups.iter().filter(is_good).filter_map(|backup| instant(backup.end_time)).max();
    let message = match last {
        _ if !configured.enabled.unwrap_or(false) => "backups are off".to_owned(),
        None => "no backup has succeeded yet".to_owned(),
        Some(at) => format!("the last one succeeded at {}", at.format("%Y-%m-%d %H:%M UTC")),
    };
    let is_recent = last.is_some_and(|at| now - at <= MAX_BACKUP_AGE);
    CheckView::new("database backups", configured.enabled.unwrap_or(false) && is_recent, message, advice)
}

fn recovery(configured: &BackupConfiguration) -> CheckView {
    let is_on = configured.point_in_time_recovery_enabled.unwrap_or(false);
    let message = match is_on {
        true => format!("to any moment of the last {} days", window_days(configured)),
        false => "off: a restore loses everything since the last backup".to_owned(),
    };
    CheckView::new(
        "point-in-time recovery",
        is_on,
        message,
        "turn it on: the module does, so apply terraform",
    )
}

fn maintenance(instance: &DatabaseInstance, settings: &Settings, now: Instant) -> CheckView {
    let days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    let window = settings.maintenance_window.clone().unwrap_or_default();
    let day = window.day.and_then(|day| days.get(usize::try_from(day).ok()?.checked_sub(1)?));
    let scheduled =
        instance.scheduled_maintenance.as_ref().and_then(|maintenance| instant(maintenance.start_time));
    let message = match (scheduled, day) {
        (Some(at), _) => format!("scheduled for {}", at.format("%Y-%m-%d %H:%M UTC")),
        (None, Some(day)) => {
            format!("none scheduled; the window is {day}, {}:00 UTC", window.hour.unwrap_or(0))
        }
        (None, None) => "none scheduled, and Google chooses when: there is no window".to_owned(),
    };
    let is_soon = scheduled.is_some_and(|at| at > now && at < now + NOTICE);
    let advice = "the database restarts then, and functions answer 503 for a minute: reschedule it to a better time \
                  (`gcloud sql reschedule-maintenance`)";
    CheckView::new(
        "database maintenance",
        !is_soon && (day.is_some() || scheduled.is_some()),
        message,
        advice,
    )
}

/// For how many days transaction logs are kept.
pub(super) fn window_days(configured: &BackupConfiguration) -> i64 {
    configured.transaction_log_retention_days.unwrap_or(0).into()
}

fn instant(timestamp: Option<Timestamp>) -> Option<Instant> {
    let timestamp = timestamp?;
    Instant::from_timestamp(timestamp.seconds(), 0)
}
