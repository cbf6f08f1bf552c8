//! Files, directories and commands (wire protocol, 13 and 14.1).

mod kit;

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::{Duration, Instant};

use kit::{Api, server, server_with};
use serde_json::{Value, json};

#[tokio::test]
async fn wire_13_1_a_write_outside_is_403_and_writes_nothing() {
    let server = server().await;
    let id = server.sandbox().await;
    let outside = server.folder.path().join("outside");
    symlink(server.folder.path(), server.workspace(&id).join("link")).unwrap();
    for path in [
        outside.to_str().unwrap(),
        "/tmp/x",
        "../x",
        "link/outside",
        "a/../../x",
        "/",
    ] {
        let write = server
            .api
            .run_post(&id, "files/write", json!({"path": path, "content": "x"}))
            .await;
        assert!(
            matches!(write.status, 403 | 400),
            "{path}: {}",
            write.json()
        );
        assert_eq!(write.json()["success"], false);
        let read = server
            .api
            .run_post(&id, "files/read", json!({"path": path}))
            .await;
        assert!(matches!(read.status, 403 | 400), "{path}: {}", read.json());
    }
    assert!(!outside.exists());
    for path in ["", "a\0b", &"n/".repeat(2049)] {
        let write = server
            .api
            .run_post(&id, "files/write", json!({"path": path, "content": "x"}))
            .await;
        assert_eq!(write.status, 400, "{path:?}");
    }
    let list = server.api.run_get(&id, "fs/list/link").await;
    assert_eq!(list.status, 403);
    server.local.stop().await;
}

#[tokio::test]
async fn wire_13_2_an_absent_file_is_404() {
    let server = server().await;
    let id = server.sandbox().await;
    let read = server
        .api
        .run_post(&id, "files/read", json!({"path": "none"}))
        .await;
    assert_eq!(read.fault(), (404, "NOT_FOUND".to_owned()));
    assert_eq!(read.json()["error"]["resourceType"], "file");
    server.local.stop().await;
}

#[tokio::test]
async fn content_survives_in_both_encodings_with_mode_and_hash() {
    let server = server().await;
    let id = server.sandbox().await;
    let write = json!({"path": "a/b/c", "content": "/wAB", "encoding": "base64", "mode": 0o755});
    let written = server
        .api
        .run_post(&id, "files/write", write)
        .await
        .expect(200);
    assert_eq!(written["data"]["size"], 3);
    let file = server.workspace(&id).join("a/b/c");
    assert_eq!(std::fs::read(&file).unwrap(), [0xff, 0, 1]);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    let read = server
        .api
        .run_post(
            &id,
            "files/read",
            json!({"path": "a/b/c", "encoding": "base64"}),
        )
        .await
        .expect(200);
    assert_eq!(
        (&read["data"]["content"], &read["data"]["hash"]),
        (&json!("/wAB"), &written["data"]["hash"])
    );
    let utf8 = server
        .api
        .run_post(&id, "files/read", json!({"path": "a/b/c"}))
        .await;
    assert_eq!(utf8.status, 400);
    assert!(utf8.json()["error"]["fields"]["encoding"].is_string());
    let bad = json!({"path": "x", "content": "***", "encoding": "base64"});
    assert_eq!(
        server.api.run_post(&id, "files/write", bad).await.status,
        400
    );
    let alias = format!("/v1/sandboxes/{id}/files/write");
    server
        .api
        .post(&alias, json!({"path": "alias", "content": "x"}))
        .await
        .expect(200);
    assert!(server.workspace(&id).join("alias").exists());
    let absolute = server.workspace(&id).join("alias");
    let read = server
        .api
        .run_post(&id, "files/read", json!({"path": absolute}))
        .await
        .expect(200);
    assert_eq!(read["data"]["content"], "x");
    server.local.stop().await;
}

#[tokio::test]
async fn a_file_above_the_limit_is_413() {
    let server = server_with(|builder| builder.read_limit(1000)).await;
    let id = server.sandbox().await;
    for (size, status) in [(1000, 200), (1001, 413)] {
        let content = "x".repeat(size);
        server
            .api
            .run_post(&id, "files/write", json!({"path": "f", "content": content}))
            .await
            .expect(200);
        let read = server
            .api
            .run_post(&id, "files/read", json!({"path": "f"}))
            .await;
        assert_eq!(read.status, status);
    }
    let read = server
        .api
        .run_post(&id, "files/read", json!({"path": "f"}))
        .await;
    assert_eq!(read.fault().1, "FILE_TOO_LARGE");
    server.local.stop().await;
}

#[tokio::test]
async fn wire_13_8_odd_names_survive_list_stat_and_read() {
    let server = server().await;
    let id = server.sandbox().await;
    let names = [
        "a b",
        "#c",
        "d%20e",
        "ü☃",
        "f:g",
        "new\nline",
        &"l".repeat(255),
        "-r",
        "q?r&s=t",
    ];
    for name in names {
        let path = format!("dir/{name}");
        server
            .api
            .run_post(&id, "files/write", json!({"path": path, "content": name}))
            .await
            .expect(200);
    }
    let list = server.api.run_get(&id, "fs/list/dir").await.expect(200);
    let entries = list["data"]["entries"].as_array().unwrap();
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    let listed: Vec<&str> = entries
        .iter()
        .map(|entry| entry["name"].as_str().unwrap())
        .collect();
    assert_eq!(listed, sorted);
    for entry in entries {
        let read = server
            .api
            .run_post(&id, "files/read", json!({"path": entry["path"]}))
            .await
            .expect(200);
        assert_eq!(read["data"]["content"], entry["name"]);
        let mut path = Api::runtime(&id, "fs/stat/dir/");
        tangle_sandbox::contract::routes::encode_component(
            &mut path,
            entry["name"].as_str().unwrap(),
        );
        let stat = server.api.get(&path).await.expect(200);
        assert_eq!(
            (&stat["data"]["name"], &stat["data"]["isFile"]),
            (&entry["name"], &json!(true))
        );
    }
    server.local.stop().await;
}

#[tokio::test]
async fn a_name_that_is_not_utf8_is_excluded_with_its_escaped_form() {
    let server = server().await;
    let id = server.sandbox().await;
    let workspace = server.workspace(&id);
    std::fs::write(
        workspace.join(std::ffi::OsStr::from_bytes(b"bad-\xff")),
        "x",
    )
    .unwrap();
    std::fs::write(workspace.join("good"), "x").unwrap();
    let list = server.api.run_get(&id, "fs/list/").await.expect(200);
    assert_eq!(list["data"]["entries"].as_array().unwrap().len(), 1);
    assert_eq!(list["data"]["excluded"][0]["name"], r"bad-\xff");
    server.local.stop().await;
}

#[tokio::test]
async fn directories_are_made_listed_renamed_and_removed() {
    let server = server().await;
    let id = server.sandbox().await;
    let path = |tail: &str| Api::runtime(&id, &format!("fs{tail}"));
    let post = async |tail: &str| server.api.call("POST", &path(tail), None).await.status;
    let delete = async |tail: &str| server.api.call("DELETE", &path(tail), None).await.status;
    assert_eq!(post("/mkdir/a/b").await, 404);
    assert_eq!(post("/mkdir/a/b?recursive=true").await, 200);
    assert_eq!(post("/mkdir/a/b?recursive=true").await, 200);
    assert_eq!(post("/mkdir/a/b").await, 409);
    let exists = async |tail: &str| {
        server
            .api
            .get(&path(&format!("/exists/{tail}")))
            .await
            .expect(200)["data"]["exists"]
            .clone()
    };
    assert_eq!(
        (exists("a/b").await, exists("a/c").await),
        (json!(true), json!(false))
    );
    assert_eq!(delete("/a").await, 409);
    let rename = server
        .api
        .run_post(&id, "fs/rename", json!({"from": "a", "to": "z"}))
        .await;
    rename.expect(200);
    assert_eq!(
        (exists("a").await, exists("z/b").await),
        (json!(false), json!(true))
    );
    assert_eq!(delete("/z?recursive=true").await, 200);
    assert_eq!(delete("/z").await, 404);
    // The words of the family are names of files for `DELETE`.
    std::fs::create_dir_all(server.workspace(&id).join("list/x")).unwrap();
    std::fs::write(server.workspace(&id).join("rename"), "").unwrap();
    assert_eq!(delete("/list/x").await, 200);
    assert_eq!(delete("/list").await, 200);
    assert_eq!(delete("/rename").await, 200);
    assert_eq!(delete("/").await, 404);
    std::fs::write(server.workspace(&id).join(".hidden"), "").unwrap();
    let count = async |query: &str| {
        let list = server
            .api
            .get(&path(&format!("/list/{query}")))
            .await
            .expect(200);
        list["data"]["entries"].as_array().unwrap().len()
    };
    assert_eq!((count("").await, count("?all=true").await), (0, 1));
    server.local.stop().await;
}

#[tokio::test]
async fn wire_13_1_a_second_slash_makes_a_path_of_a_route_absolute() {
    let server = server().await;
    let id = server.sandbox().await;
    let call = async |method: &str, tail: &str| {
        let path = Api::runtime(&id, &format!("fs/{tail}"));
        server.api.call(method, &path, None).await
    };
    call("POST", "mkdir/tmp/zz?recursive=true")
        .await
        .expect(200);
    assert!(server.workspace(&id).join("tmp/zz").exists());
    for (method, tail) in [
        ("GET", "list//etc"),
        ("GET", "stat//etc/passwd"),
        ("GET", "exists//etc/passwd"),
        ("POST", "mkdir//tmp/zz"),
        ("DELETE", "/tmp/zz?recursive=true"),
    ] {
        let answer = call(method, tail).await;
        assert_eq!(answer.fault(), (403, "FORBIDDEN".to_owned()), "{tail}");
    }
    assert_eq!(call("GET", "list/etc").await.status, 404);
    let root = server.workspace(&id).to_str().unwrap().to_owned();
    let list = call("GET", &format!("list/{root}")).await.expect(200);
    assert_eq!(list["data"]["entries"][0]["path"], format!("{root}/tmp"));
    let stat = call("GET", &format!("stat/{root}/tmp/zz"))
        .await
        .expect(200);
    assert_eq!(stat["data"]["path"], format!("{root}/tmp/zz"));
    call("DELETE", &format!("{root}/tmp?recursive=true"))
        .await
        .expect(200);
    assert!(!server.workspace(&id).join("tmp").exists());
    server.local.stop().await;
}

#[tokio::test]
async fn the_output_of_a_command_past_its_limit_fits_into_an_error() {
    let server = server().await;
    let id = server.sandbox().await;
    for command in [
        "yes é | head -c 3000000; head -c 3000000 /dev/zero >&2; sleep 30",
        "head -c 3000000 /dev/zero; sleep 30",
        "echo few >&2; yes '\"' | head -c 3000000; sleep 30",
    ] {
        let answer = exec(&server, &id, json!({"command": command, "timeout": 1500})).await;
        assert_eq!(answer.fault(), (504, "EXEC_TIMEOUT".to_owned()));
        let limit = tangle_sandbox::contract::limits::MAX_ERROR_BODY;
        let length = answer.body.len();
        assert!(length <= limit && length > limit / 2, "{length}");
        let error = &answer.json()["error"];
        assert_eq!(
            (&error["timeoutMs"], &error["truncated"]),
            (&json!(1500), &json!(true))
        );
    }
    server.local.stop().await;
}

#[tokio::test]
async fn a_refused_folder_of_a_command_is_named_cwd() {
    let server = server().await;
    let id = server.sandbox().await;
    std::fs::write(server.workspace(&id).join("file"), "").unwrap();
    for (cwd, status) in [("none", 400), ("file", 400), ("a\0b", 400), ("/etc", 403)] {
        let answer = exec(&server, &id, json!({"command": "true", "cwd": cwd})).await;
        assert_eq!(answer.status, status, "{cwd}");
        let error = &answer.json()["error"];
        assert!(error["fields"]["cwd"].is_string(), "{error}");
        assert!(
            !error["message"].as_str().unwrap().contains("path"),
            "{error}"
        );
    }
    server.local.stop().await;
}

async fn exec(server: &kit::Server, id: &str, request: Value) -> kit::Answer {
    server.api.run_post(id, "terminals/commands", request).await
}

#[tokio::test]
async fn a_command_gives_its_exit_code_output_and_directory() {
    let server = server().await;
    let id = server.sandbox().await;
    let failed = exec(
        &server,
        &id,
        json!({"command": "echo out; echo err >&2; exit 3"}),
    )
    .await
    .expect(200);
    let result = &failed["result"];
    assert_eq!(
        (&result["exitCode"], &result["stdout"], &result["stderr"]),
        (&json!(3), &json!("out\n"), &json!("err\n"))
    );
    assert!(result.get("truncated").is_none());
    let killed = exec(&server, &id, json!({"command": "kill -9 $$"}))
        .await
        .expect(200);
    assert_eq!(killed["result"]["exitCode"], 137);
    let root = server.workspace(&id);
    let pwd = exec(&server, &id, json!({"command": "pwd"}))
        .await
        .expect(200);
    assert_eq!(pwd["result"]["stdout"], format!("{}\n", root.display()));
    std::fs::create_dir(root.join("sub")).unwrap();
    for cwd in ["sub".to_owned(), root.join("sub").display().to_string()] {
        let pwd = exec(
            &server,
            &id,
            json!({"command": "pwd; echo $A", "cwd": cwd, "env": {"A": "b"}}),
        )
        .await
        .expect(200);
        assert_eq!(
            pwd["result"]["stdout"],
            format!("{}\nb\n", root.join("sub").display())
        );
    }
    for (request, status) in [
        (json!({"command": "true", "cwd": "none"}), 400),
        (json!({"command": "true", "cwd": "/etc"}), 403),
        (json!({"command": "true", "cwd": "../.."}), 403),
        (json!({"command": "a\u{0}b"}), 400),
        (json!({"command": "true", "env": {"A=B": "c"}}), 400),
        (
            json!({"command": "true", "env": {"TANGLE_RUN_MARKER": "c"}}),
            400,
        ),
        (json!({"command": "true", "sessionId": "none"}), 404),
        (json!({}), 400),
    ] {
        assert_eq!(
            exec(&server, &id, request.clone()).await.status,
            status,
            "{request}"
        );
    }
    server.local.stop().await;
}

#[tokio::test]
async fn a_command_past_its_limit_is_504_and_its_processes_are_gone() {
    let server = server().await;
    let id = server.sandbox().await;
    let begun = Instant::now();
    let answer = exec(&server, &id, json!({"command": "echo begun; setsid sh -c 'sleep 2; touch late' & sleep 30; touch X", "timeout": 300})).await;
    assert_eq!(answer.fault(), (504, "EXEC_TIMEOUT".to_owned()));
    let error = answer.json()["error"].clone();
    assert_eq!(
        (&error["timeoutMs"], &error["stdout"]),
        (&json!(300), &json!("begun\n"))
    );
    assert!(begun.elapsed() < Duration::from_secs(5));
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let root = server.workspace(&id);
    assert!(!root.join("X").exists() && !root.join("late").exists());
    server.local.stop().await;
}

#[tokio::test]
async fn output_above_the_bound_is_cut_and_said() {
    let server = server_with(|builder| builder.exec_output_limit(1001)).await;
    let id = server.sandbox().await;
    let answer = exec(
        &server,
        &id,
        json!({"command": "yes é | head -c 100000; yes b | head -c 50000 >&2"}),
    )
    .await
    .expect(200);
    let result = &answer["result"];
    assert_eq!(result["truncated"], true);
    let stdout = result["stdout"].as_str().unwrap();
    assert!(stdout.len() <= 1001 && stdout.starts_with("é\né\n") && !stdout.contains('\u{fffd}'));
    assert_eq!(result["stderr"].as_str().unwrap().len(), 1001);
    server.local.stop().await;
}

#[tokio::test]
async fn a_caller_that_leaves_ends_its_command() {
    let server = server().await;
    let id = server.sandbox().await;
    let request = json!({"command": "touch begun; sleep 2; touch late"});
    let call = exec(&server, &id, request);
    let left = tokio::time::timeout(Duration::from_millis(500), call).await;
    assert!(left.is_err());
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let root = server.workspace(&id);
    assert!(root.join("begun").exists() && !root.join("late").exists());
    server.local.stop().await;
}

#[tokio::test]
async fn a_circle_of_links_and_a_move_into_itself_are_the_callers_fault() {
    let server = server().await;
    let id = server.sandbox().await;
    let root = server.workspace(&id);
    symlink("loop", root.join("loop")).unwrap();
    symlink("dang/x", root.join("dang")).unwrap();
    std::fs::create_dir_all(root.join("d/e")).unwrap();
    for (route, body) in [
        ("files/read", json!({"path": "loop"})),
        ("files/read", json!({"path": "dang"})),
        ("files/write", json!({"path": "loop/x", "content": ""})),
        ("fs/rename", json!({"from": "d", "to": "d/e/g"})),
    ] {
        let answer = server.api.run_post(&id, route, body).await;
        assert_eq!(answer.status, 400, "{route}: {}", answer.json());
        let fields = &answer.json()["error"]["fields"];
        assert!(fields.get("path").is_some(), "{route}: {fields}");
    }
    server.local.stop().await;
}

#[tokio::test]
async fn a_command_longer_than_the_system_takes_is_the_callers_fault() {
    let server = server().await;
    let id = server.sandbox().await;
    let long = format!(": {}", "x".repeat(200_000));
    let answer = exec(&server, &id, json!({"command": long})).await;
    assert_eq!(answer.status, 400, "{}", answer.json());
    assert!(answer.json()["error"]["fields"].get("command").is_some());
    server.local.stop().await;
}
