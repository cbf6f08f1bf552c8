//! Containment, shown on every door.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::{PathError, Workspace};

struct Tree {
    folder: tempfile::TempDir,
    root: PathBuf,
}

fn tree() -> (Tree, Workspace) {
    tree_in(tempfile::tempdir().unwrap())
}

fn tree_in(folder: tempfile::TempDir) -> (Tree, Workspace) {
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
        Err(PathError::Links)
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
        let begun = std::time::Instant::now();
        for count in 0.. {
            let enough = count >= 3_000 && inside > 0;
            if enough || begun.elapsed() > std::time::Duration::from_secs(60) {
                break;
            }
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

#[test]
fn a_tree_of_any_depth_is_removed() {
    // In memory where there is such a place, since a disk takes milliseconds for each folder.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let (tree, workspace) = tree_in(folder.unwrap());
    deep(&tree.root, 5_000);
    workspace.remove("deep", true).unwrap();
    assert!(std::fs::read_dir(&tree.root).unwrap().next().is_none());
    deep(&tree.root, 5_000);
    super::remove_folder(&tree.root).unwrap();
    assert!(!tree.root.exists());
    super::remove_folder(&tree.root).unwrap();
}

/// `deep/d/d/…` with a file in each folder.
fn deep(root: &std::path::Path, levels: usize) {
    use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut here = open(root, flags, Mode::empty()).unwrap();
    for level in 0..levels {
        let name = if level == 0 { "deep" } else { "d" };
        mkdirat(&here, name, Mode::RWXU).unwrap();
        here = openat(&here, name, flags, Mode::empty()).unwrap();
        let file = OFlags::CREATE | OFlags::WRONLY;
        openat(&here, "file", file, Mode::RUSR).unwrap();
    }
}

#[test]
fn the_longest_path_can_be_walked_down_and_up() {
    let (tree, workspace) = tree();
    let down = "d/".repeat(800);
    workspace.mkdir(&down, true).unwrap();
    let up = format!("{down}{}file", "../".repeat(800));
    workspace.write(&up, b"x", 0o644).unwrap();
    assert!(tree.root.join("file").exists());
    outside(workspace.write(&format!("{down}{}file", "../".repeat(801)), b"x", 0o644));
}

#[test]
fn a_refused_write_makes_no_folder() {
    let (tree, workspace) = tree();
    outside(workspace.write("new/../../x", b"x", 0o644));
    outside(workspace.mkdir("new/a/../../../x", true));
    assert!(std::fs::read_dir(&tree.root).unwrap().next().is_none());
    workspace.write("a/../b/c/file", b"x", 0o644).unwrap();
    assert!(tree.root.join("b/c/file").exists() && !tree.root.join("a").exists());
    workspace.mkdir("e/f/..", true).unwrap();
    assert!(tree.root.join("e").exists() && !tree.root.join("e/f").exists());
    let up = workspace.write("g/h/..", b"x", 0o644);
    assert!(matches!(up, Err(PathError::NotAFile)), "{up:?}");
}
