//! Containment, shown on every door.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::{PathError, Workspace};

struct Tree {
    folder: tempfile::TempDir,
    root: PathBuf,
}

fn tree() -> (Tree, Workspace) {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    let root = base.join("workspace");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(base.join("secret"), "outside").unwrap();
    let workspace = Workspace::open(&root).unwrap();
    (Tree { folder, root }, workspace)
}

fn outside<T: std::fmt::Debug>(result: Result<T, PathError>) {
    assert!(matches!(result, Err(PathError::Outside)), "{result:?}");
}

#[test]
fn a_way_out_is_refused_on_every_door() {
    let (tree, workspace) = tree();
    symlink(tree.folder.path(), tree.root.join("up")).unwrap();
    symlink("../secret", tree.root.join("file")).unwrap();
    symlink("/etc", tree.root.join("etc")).unwrap();
    symlink("../nowhere", tree.root.join("dangling")).unwrap();
    std::fs::create_dir(tree.root.join("a")).unwrap();
    for path in [
        "file",
        "up/secret",
        "etc/passwd",
        "a/../../secret",
        "/etc/passwd",
        "../x",
    ] {
        outside(workspace.read(path, 100));
        outside(workspace.write(path, b"x", 0o644));
    }
    outside(workspace.write("dangling", b"x", 0o644));
    outside(workspace.list("up", true));
    outside(workspace.list("..", true));
    outside(workspace.mkdir("up/new", true));
    outside(workspace.remove("up/secret", true));
    outside(workspace.rename("up/secret", "here"));
    outside(workspace.rename("a", "up/a"));
    assert_eq!(
        std::fs::read(tree.folder.path().join("secret")).unwrap(),
        b"outside"
    );
    assert!(!tree.folder.path().join("nowhere").exists());
    workspace.remove("up", true).unwrap(); // the link, not what it leads to
    assert!(tree.folder.path().join("secret").exists());
}

#[test]
fn links_that_stay_inside_are_followed() {
    let (tree, workspace) = tree();
    workspace.write("a/b/file", b"hi", 0o644).unwrap();
    symlink("a/b", tree.root.join("short")).unwrap();
    symlink(tree.root.join("a"), tree.root.join("absolute")).unwrap();
    symlink("../b/file", tree.root.join("a/b/around")).unwrap();
    for path in [
        "short/file",
        "absolute/b/file",
        "a/b/around",
        "short/../b/file",
    ] {
        assert_eq!(workspace.read(path, 100).unwrap(), b"hi", "{path}");
    }
    let whole = tree.root.join("a/b/file");
    assert_eq!(workspace.read(whole.to_str().unwrap(), 100).unwrap(), b"hi");
    symlink("round", tree.root.join("round")).unwrap();
    assert!(matches!(
        workspace.read("round", 100),
        Err(PathError::Io(_))
    ));
}

#[test]
fn what_is_no_file_is_refused_without_waiting() {
    let (tree, workspace) = tree();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        tree.root.join("pipe"),
        rustix::fs::Mode::from_raw_mode(0o600),
    )
    .unwrap();
    std::fs::create_dir(tree.root.join("folder")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(tree.root.join("socket")).unwrap();
    for path in ["pipe", "folder", "socket", "."] {
        assert!(
            matches!(workspace.read(path, 9), Err(PathError::NotAFile)),
            "{path}"
        );
        assert!(
            matches!(workspace.write(path, b"", 0o644), Err(PathError::NotAFile)),
            "{path}"
        );
    }
}

#[test]
fn malformed_paths_are_refused() {
    let (_tree, workspace) = tree();
    let long = "a/".repeat(2049);
    for path in ["", "a\0b", &long, &"n".repeat(300)] {
        assert!(matches!(
            workspace.write(path, b"", 0o644),
            Err(PathError::Malformed | PathError::NotAFile)
        ));
    }
}

#[test]
fn a_failed_write_leaves_the_old_file() {
    let (tree, workspace) = tree();
    workspace.write("a", b"old", 0o600).unwrap();
    assert!(workspace.write("a/b", b"new", 0o644).is_err());
    assert_eq!(workspace.read("a", 9).unwrap(), b"old");
    let names: Vec<_> = std::fs::read_dir(&tree.root).unwrap().collect();
    assert_eq!(names.len(), 1);
}

#[test]
fn a_link_that_is_swapped_meanwhile_never_leads_outside() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let (tree, workspace) = tree();
    std::fs::create_dir(tree.root.join("real")).unwrap();
    std::fs::write(tree.root.join("real/secret"), "inside").unwrap();
    symlink("real", tree.root.join("place")).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (place, spare) = (tree.root.join("place"), tree.root.join("spare"));
            while !stop.load(Ordering::Relaxed) {
                symlink("real", &spare).unwrap();
                std::fs::rename(&spare, &place).unwrap();
                symlink(tree.folder.path(), &spare).unwrap();
                std::fs::rename(&spare, &place).unwrap();
            }
        });
        let mut inside = 0;
        for _ in 0..3_000 {
            if let Ok(content) = workspace.read("place/secret", 100) {
                assert_eq!(content, b"inside");
                inside += 1;
            }
            let _ = workspace.write("place/new", b"x", 0o644);
        }
        stop.store(true, Ordering::Relaxed);
        assert!(inside > 0, "the swap never showed the inner folder");
    });
    assert!(!tree.folder.path().join("new").exists());
}
