//! Sensors of files in a folder and objects in a bucket.

use std::path::Path;

use host::secrets::Secrets;
use host::storage::{Object, Storage};
use language::config::FileSensor;
use model::{CloudEvent, Failure, Instant, trigger::matches};
use runtime::{Find, Poll};
use serde_json::{Map, Value, json};

/// The maximum number of files that match a sensor's path.
const MAX_FILES: usize = 1_000;

/// A file or an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) size: u64,
    pub(super) changed_at: Instant,
    /// Differs after each change.
    pub(super) version: String,
}

impl File {
    pub(super) fn to_json(&self) -> Value {
        json!({"path": self.path, "size": self.size, "changed_at": self.changed_at, "version": self.version})
    }
}

/// The files that match a path, in the order of their names.
pub(super) async fn list(path: &str, storage: &Storage, secrets: &Secrets) -> Result<Vec<File>, Failure> {
    let mut found = match path.strip_prefix("gs://") {
        Some(location) => {
            let (bucket, object) =
                location.split_once('/').filter(|(_, object)| !object.is_empty()).ok_or_else(|| {
                    Failure::permanent(format!("`{path}` has no object name: expected `gs://BUCKET/OBJECT`"))
                })?;
            in_bucket(storage, bucket, object).await?
        }
        None => in_folder(Path::new(path), secrets).await?,
    };
    if found.len() > MAX_FILES {
        let message = format!(
            "more than {MAX_FILES} files match `{path}`: narrow the path, or move processed files away"
        );
        return Err(Failure::permanent(message));
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// The objects whose names match a pattern, up to one more than the limit.
async fn in_bucket(storage: &Storage, bucket: &str, pattern: &str) -> Result<Vec<File>, Failure> {
    let prefix = pattern.split('*').next().unwrap_or_default();
    let (mut found, mut page_token) = (Vec::new(), None::<String>);
    loop {
        let page = storage.list(bucket, prefix, page_token.as_deref()).await.map_err(|error| {
            let message = error.to_string();
            if error.is_transient { Failure::transient(message) } else { Failure::permanent(message) }
        })?;
        let matching = page.items.into_iter().filter(|object| matches(pattern, &object.name));
        found.extend(matching.map(|object| stored(bucket, &object)));
        page_token = page.next_page_token;
        if page_token.is_none() || found.len() > MAX_FILES {
            return Ok(found);
        }
    }
}

fn stored(bucket: &str, object: &Object) -> File {
    File {
        path: format!("gs://{bucket}/{}", object.name),
        size: object.size.parse().unwrap_or_default(),
        changed_at: object.updated,
        version: format!("{}.{}", object.generation, object.metageneration),
    }
}

async fn in_folder(path: &Path, secrets: &Secrets) -> Result<Vec<File>, Failure> {
    let cannot = |what: &Path, error: &std::io::Error| {
        Failure::transient(format!("cannot read `{}`: {error}", what.display()))
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Some(pattern) = path.file_name().and_then(|name| name.to_str()) else {
        return Err(Failure::permanent(format!("`{}` has no file name", path.display())));
    };
    let searched = if pattern.contains('*') { folder } else { path };
    // Their names and sizes are other tenants' too.
    if secrets.are_reached_by(searched).await {
        let message =
            format!("`{}` leads into the folder of secrets, where sensors find no files", path.display());
        return Err(Failure::permanent(message));
    }
    if !pattern.contains('*') {
        return match tokio::fs::metadata(path).await {
            Ok(metadata) => Ok(vec![file(path, &metadata)]),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(cannot(path, &error)),
        };
    }
    let mut entries = tokio::fs::read_dir(folder).await.map_err(|error| cannot(folder, &error))?;
    let mut found = Vec::new();
    while let Some(entry) = entries.next_entry().await.map_err(|error| cannot(folder, &error))? {
        if !entry.file_name().to_str().is_some_and(|name| matches(pattern, name)) {
            continue;
        }
        // It may have been deleted meanwhile.
        if let Ok(metadata) = entry.metadata().await
            && metadata.is_file()
        {
            found.push(file(&entry.path(), &metadata));
        }
        if found.len() > MAX_FILES {
            break;
        }
    }
    Ok(found)
}

fn file(path: &Path, metadata: &std::fs::Metadata) -> File {
    let changed_at: Instant = metadata.modified().map(Instant::from).unwrap_or_default();
    let version = format!("{}-{}", changed_at.timestamp_nanos_opt().unwrap_or_default(), metadata.len());
    File { path: path.display().to_string(), size: metadata.len(), changed_at, version }
}

/// Finds files that are new or have changed. The watermark is the versions of the existing files.
pub(super) async fn poll(
    sensor: &FileSensor,
    watermark: &Value,
    storage: &Storage,
    secrets: &Secrets,
) -> Result<Poll, Failure> {
    let mut found = list(&sensor.path, storage, secrets).await?;
    found.retain(|file| sensor.changed_since.is_none_or(|earliest| file.changed_at > earliest));
    let versions = |files: &[File]| -> Map<String, Value> {
        files.iter().map(|file| (file.path.clone(), json!(file.version))).collect()
    };
    let known = watermark.as_object();
    let watermark = Value::Object(versions(&found));
    let Some(known) = known else {
        // The first poll: a sensor for changes starts from here.
        let new = if sensor.changed { Vec::new() } else { found };
        return Ok(Poll { finds: finds(sensor, Map::new(), new), watermark });
    };
    let is_new = |file: &&File| match known.get(&file.path) {
        None => true,
        Some(version) => sensor.changed && *version != file.version,
    };
    let new: Vec<File> = found.iter().filter(is_new).cloned().collect();
    Ok(Poll { finds: finds(sensor, known.clone(), new), watermark })
}

fn finds(sensor: &FileSensor, mut known: Map<String, Value>, new: Vec<File>) -> Vec<Find> {
    let find = |file: File| {
        known.insert(file.path.clone(), json!(file.version));
        let id = format!("{}#{}", file.path, file.version);
        let event = super::event("file", &source(sensor), id, file.to_json());
        let event = CloudEvent { subject: Some(file.path), time: Some(file.changed_at), ..event };
        Find { event, watermark: Value::Object(known.clone()) }
    };
    new.into_iter().map(find).collect()
}

fn source(sensor: &FileSensor) -> String {
    match sensor.path.strip_prefix("gs://") {
        Some(location) => {
            format!("//storage.googleapis.com/{}", location.split('/').next().unwrap_or_default())
        }
        None => format!("file://{}", Path::new(&sensor.path).parent().unwrap_or(Path::new("")).display()),
    }
}
