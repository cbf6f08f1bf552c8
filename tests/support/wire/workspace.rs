//! Files, directories and commands of a sandbox.

use tangle_sandbox::contract::routes;
use tangle_sandbox::sandbox::{Deadline, Exec, Running, Sandbox};

use super::stage::{Stage, json};

/// A text whose bytes need care in JSON, and a name that needs care in a URL.
const TEXT: &str = "Grüße, \"world\"\n\tand \\ more\n";
const NAME: &str = "docs/a b#c%é.txt";

/// Content of files.
pub async fn files(stage: &mut Stage, sandbox: &Sandbox<Running>) {
    stage
        .step((&routes::FILES_WRITE, ""), sandbox.write(NAME, TEXT))
        .await
        .unwrap();
    let read = stage
        .step((&routes::FILES_READ, ""), sandbox.read_text(NAME))
        .await;
    assert_eq!(read.unwrap(), TEXT);

    let bytes = [0, 159, 146, 150];
    let written = sandbox.write_with_mode("bin/tool", bytes, 0o755);
    stage
        .step((&routes::FILES_WRITE, "base64"), written)
        .await
        .unwrap();
    let read = stage
        .step((&routes::FILES_READ, "base64"), sandbox.read("bin/tool"))
        .await;
    assert_eq!(read.unwrap(), bytes);
}

/// Directories.
pub async fn directories(stage: &mut Stage, sandbox: &Sandbox<Running>) {
    let client = stage.client.clone();
    let at = |path: &str| format!("/v1/sandboxes/{}/runtime/fs/{path}", sandbox.id());
    let get = |path: &str| {
        let (client, path) = (client.clone(), at(path));
        async move { json(&client, "GET", &path, "").await }
    };
    let made = json(
        &client,
        "POST",
        &at("mkdir/docs/deep/er?recursive=true"),
        "",
    )
    .await;
    assert_eq!(made.status, 200);
    let listed = stage
        .step((&routes::FS_LIST, ""), sandbox.list("docs"))
        .await
        .unwrap();
    assert_eq!(listed.entries.len(), 2);
    stage.step((&routes::FS_LIST, "root"), get("list/")).await;

    let name = "docs/a%20b%23c%25%C3%A9.txt";
    stage
        .step((&routes::FS_STAT, ""), get(&format!("stat/{name}")))
        .await;
    stage
        .step((&routes::FS_EXISTS, ""), get(&format!("exists/{name}")))
        .await;
    stage
        .step((&routes::FS_EXISTS, "absent"), get("exists/nothing"))
        .await;

    let mkdir = at("mkdir/made");
    stage
        .step((&routes::FS_MKDIR, ""), json(&client, "POST", &mkdir, ""))
        .await;
    let (rename, body) = (at("rename"), r#"{"from":"made","to":"moved"}"#);
    stage
        .step(
            (&routes::FS_RENAME, ""),
            json(&client, "POST", &rename, body),
        )
        .await;
    let remove = at("moved?recursive=true");
    stage
        .step(
            (&routes::FS_REMOVE, ""),
            json(&client, "DELETE", &remove, ""),
        )
        .await;
}

/// Commands.
pub async fn commands(stage: &mut Stage, sandbox: &Sandbox<Running>) {
    let command = Exec::new("printf 'to %s' \"$WHOM\"; printf oops >&2; exit 3")
        .cwd("docs")
        .env("WHOM", "you")
        .deadline(Deadline::from_secs(20));
    let output = stage
        .step((&routes::EXEC, ""), sandbox.exec(command))
        .await
        .unwrap();
    assert_eq!((output.exit_code, output.stdout.as_str()), (3, "to you"));
}
