//! Directories (wire protocol, 13.3).
//!
//! The path is the tail of the route, relative to the workspace: `fs/list/src` lists its folder `src`, and `fs/list/tmp` its
//! folder `tmp`. A tail that begins with a second slash is an absolute path: `fs/list//etc` means `/etc`. One below the
//! workspace is taken, any other is refused with 403.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use axum::response::Response;
use rustix::fs::{FileType, Stat};
use tangle_sandbox::contract::types::{
    Count, DirectoryEntry, DirectoryListing, ExcludedEntry, PathExists, RenameRequest,
};

use super::answer::{Fault, data, success};
use super::call::Call;
use super::files::blocking;
use super::request::{document, flag, query};
use crate::ids::rfc3339;
use crate::workspace::{Entry, PathError, Workspace};

/// A path of the route, as one that the workspace takes.
fn tail(call: &Call) -> String {
    match call.parameter("path") {
        "" => ".".to_owned(),
        path => path.to_owned(),
    }
}

/// `GET R/fs/list{path}`.
pub(super) async fn list(call: Call) -> Result<Response, Fault> {
    let (sandbox, stay) = call.running().await?;
    let query = query(&call.request)?;
    let (all, _long) = (flag(&query, "all")?, flag(&query, "long")?);
    let root = call.deployment.places.workspace(&sandbox.id);
    let path = tail(&call);
    let base = whole(&root, &path);
    let entries = blocking(move || {
        let entries = Workspace::open(&root)?.list(&path, all);
        drop(stay);
        entries
    })
    .await?;
    let (mut listed, mut excluded) = (Vec::new(), Vec::new());
    for entry in &entries {
        match entry.name.to_str() {
            Some(name) => listed.push(described(name, &format!("{base}/{name}"), entry)?),
            // No request could name it, so that it is told apart from what can be read.
            None => excluded.push(ExcludedEntry {
                name: entry.name.as_bytes().escape_ascii().to_string(),
                reason: "the name is not UTF-8".to_owned(),
            }),
        }
    }
    let listing = DirectoryListing {
        entries: listed,
        excluded: (!excluded.is_empty()).then_some(excluded),
    };
    Ok(data(&listing))
}

/// `GET R/fs/stat{path}`.
pub(super) async fn stat(call: Call) -> Result<Response, Fault> {
    let (sandbox, stay) = call.running().await?;
    let root = call.deployment.places.workspace(&sandbox.id);
    let path = tail(&call);
    let place = whole(&root, &path);
    let entry = blocking(move || {
        let entry = Workspace::open(&root)?.stat(&path);
        drop(stay);
        entry
    })
    .await?;
    let name = place.rsplit('/').next().unwrap_or_default();
    Ok(data(&described(name, &place, &entry)?))
}

/// `GET R/fs/exists{path}`.
pub(super) async fn exists(call: Call) -> Result<Response, Fault> {
    let (sandbox, stay) = call.running().await?;
    let root = call.deployment.places.workspace(&sandbox.id);
    let path = tail(&call);
    let exists = blocking(move || {
        let found = Workspace::open(&root)?.stat(&path);
        drop(stay);
        match found {
            Ok(_) => Ok(true),
            Err(PathError::Absent | PathError::NotADirectory) => Ok(false),
            Err(error) => Err(error),
        }
    })
    .await?;
    Ok(data(&PathExists { exists }))
}

/// `POST R/fs/mkdir{path}`.
pub(super) async fn mkdir(call: Call) -> Result<Response, Fault> {
    let (sandbox, stay) = call.running().await?;
    let recursive = flag(&query(&call.request)?, "recursive")?;
    let root = call.deployment.places.workspace(&sandbox.id);
    let path = tail(&call);
    blocking(move || {
        let made = Workspace::open(&root)?.mkdir(&path, recursive);
        drop(stay);
        made
    })
    .await?;
    Ok(success())
}

/// `DELETE R/fs{path}`.
pub(super) async fn remove(call: Call) -> Result<Response, Fault> {
    let (sandbox, stay) = call.running().await?;
    let recursive = flag(&query(&call.request)?, "recursive")?;
    let root = call.deployment.places.workspace(&sandbox.id);
    // The words of this family are names of files here, so the path is what follows `fs` in the URL.
    let word = call
        .request
        .uri()
        .path()
        .split_once("/runtime/fs/")
        .map(|(_, rest)| rest.split('/').next().unwrap_or_default())
        .filter(|word| super::table::is_fs_word(word))
        .map(str::to_owned);
    let path = match word {
        Some(word) => format!("{word}/{}", call.parameter("path")),
        None => tail(&call),
    };
    blocking(move || {
        let removed = Workspace::open(&root)?.remove(&path, recursive);
        drop(stay);
        removed
    })
    .await?;
    Ok(success())
}

/// `POST R/fs/rename`.
pub(super) async fn rename(call: Call) -> Result<Response, Fault> {
    let (deployment, running) = (call.deployment.clone(), call.running());
    let limit = deployment.settings.other_body;
    let wanted: RenameRequest = document(call.request, limit).await?;
    let (sandbox, stay) = running.await?;
    let root = deployment.places.workspace(&sandbox.id);
    blocking(move || {
        let renamed = Workspace::open(&root)?.rename(&wanted.from, &wanted.to);
        drop(stay);
        renamed
    })
    .await?;
    Ok(success())
}

/// The absolute path, without a slash at the end.
fn whole(root: &Path, path: &str) -> String {
    let root = root.to_string_lossy();
    match path.trim_end_matches('/') {
        "." => root.into_owned(),
        path if path.starts_with('/') => path.to_owned(),
        path => format!("{root}/{path}"),
    }
}

fn described(name: &str, path: &str, entry: &Entry) -> Result<DirectoryEntry, Fault> {
    let stat = &entry.stat;
    let kind = FileType::from_raw_mode(stat.st_mode);
    Ok(DirectoryEntry {
        name: name.to_owned(),
        path: path.to_owned(),
        size: Count::try_from(u64::try_from(stat.st_size).unwrap_or(0))?,
        is_dir: kind == FileType::Directory,
        is_file: kind == FileType::RegularFile,
        is_symlink: kind == FileType::Symlink,
        permissions: Some(i64::from(stat.st_mode & 0o7777)),
        owner: Some(stat.st_uid.to_string()),
        group: Some(stat.st_gid.to_string()),
        mod_time: Some(modified(stat)),
        access_time: Some(accessed(stat)),
    })
}

fn modified(stat: &Stat) -> String {
    milliseconds(stat.st_mtime, stat.st_mtime_nsec as i64)
}

fn accessed(stat: &Stat) -> String {
    milliseconds(stat.st_atime, stat.st_atime_nsec as i64)
}

fn milliseconds(seconds: i64, nanoseconds: i64) -> String {
    rfc3339(seconds.saturating_mul(1000) + nanoseconds / 1_000_000)
}
