//! Files through the client.

use std::time::Duration;

use serde_json::Value;
use tangle_sandbox::sandbox::Error;

use crate::support::deployed::Deployed;
use crate::within;

pub fn wire_13_1_a_write_outside_the_workspace_is_refused() {
    within(Duration::from_secs(30), async {
        let deployed = Deployed::start().await;
        let sandbox = deployed.sandbox().await;
        let outside = deployed.local.data_dir().join("outside.txt");
        let absolute = outside.to_str().unwrap().to_owned();
        sandbox
            .exec("ln -s ../../.. up; ln -s /etc etc")
            .await
            .unwrap();
        for path in [
            "../outside.txt",
            "a/../../x",
            &absolute,
            "up/outside.txt",
            "/tmp/tangle-outside.txt",
        ] {
            let refused = sandbox.write(path, "x").await.unwrap_err();
            assert_eq!(refused.code().as_str(), "FORBIDDEN", "{path}: {refused:?}");
        }
        assert!(!outside.exists() && !std::path::Path::new("/tmp/tangle-outside.txt").exists());
        for path in ["etc/passwd", "../../../state.db"] {
            let refused = sandbox.read(path).await.unwrap_err();
            assert_eq!(refused.code().as_str(), "FORBIDDEN", "{path}");
        }
        let body = r#"{"path":"../outside.txt","content":"x"}"#;
        let path = format!("/v1/sandboxes/{}/runtime/files/write", sandbox.id());
        let answer = deployed
            .client
            .fetch("POST", &path, &[], Some(body.into()))
            .await
            .unwrap();
        let answer: (u16, Value) = (answer.status, serde_json::from_slice(&answer.body).unwrap());
        assert_eq!((answer.0, &answer.1["success"]), (403, &Value::Bool(false)));
        deployed.stop().await;
    });
}

pub fn wire_13_2_an_absent_file_is_not_found() {
    within(Duration::from_secs(30), async {
        let deployed = Deployed::start().await;
        let sandbox = deployed.sandbox().await;
        for refused in [
            sandbox.read("absent").await.unwrap_err(),
            sandbox.read_text("a/b/c").await.unwrap_err(),
            sandbox.list("absent").await.unwrap_err(),
        ] {
            assert_eq!(refused.code().as_str(), "NOT_FOUND", "{refused:?}");
            assert!(matches!(refused, Error::Call(_)));
        }
        deployed.stop().await;
    });
}

pub fn wire_13_8_odd_names_and_bytes_survive_a_round_trip() {
    within(Duration::from_secs(30), async {
        let deployed = Deployed::start().await;
        let sandbox = deployed.sandbox().await;
        let odd = [
            "with space",
            "hash#mark",
            "per%cent %41",
            "ünïcode-日本-😀",
            "a?b&c=d",
            "plus+and;semi",
            "-dash",
            "list",
        ];
        let content: Vec<u8> = (0..=255).collect();
        for name in odd {
            let path = format!("folder {name}/{name}");
            let written = sandbox.write(&path, &content).await.unwrap();
            assert_eq!(written.size.get(), 256);
            assert_eq!(sandbox.read(&path).await.unwrap(), content, "{name}");
            let listing = sandbox.list(&format!("folder {name}")).await.unwrap();
            let entries = listing.entries;
            let names: Vec<_> = entries.iter().map(|entry| &*entry.name).collect();
            assert_eq!(names, [name]);
            assert_eq!((entries[0].size.get(), entries[0].is_file), (256, true));
            let whole = encoded(&entries[0].path);
            let stat = deployed
                .data(sandbox.id(), &format!("/fs/stat/{whole}"))
                .await;
            assert_eq!((&stat["name"], &stat["size"]), (&name.into(), &256.into()));
        }
        let mut names: Vec<_> = odd.iter().map(|name| format!("folder {name}")).collect();
        names.sort();
        let listed = sandbox.list(".").await.unwrap().entries;
        let listed: Vec<_> = listed.into_iter().map(|entry| entry.name).collect();
        assert_eq!(listed, names);

        sandbox
            .write_with_mode("run.sh", "#!/bin/sh\necho ran\n", 0o755)
            .await
            .unwrap();
        let output = sandbox.exec("./run.sh; stat -c %a run.sh").await.unwrap();
        assert_eq!(output.stdout, "ran\n755\n");
        let text = sandbox
            .read_text("folder with space/with space")
            .await
            .unwrap_err();
        assert_eq!(text.code().as_str(), "VALIDATION_ERROR");
        deployed.stop().await;
    });
}

/// A path percent-encoded by segment.
fn encoded(path: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(byte);
    path.bytes()
        .map(|byte| match plain(&byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

pub fn files_commands_and_the_agent_see_one_workspace() {
    within(Duration::from_secs(30), async {
        let deployed = Deployed::start().await;
        let sandbox = deployed.sandbox().await;
        sandbox.write("from-client.txt", "one").await.unwrap();
        let result = sandbox
            .prompt("run cat from-client.txt; pwd > where.txt\nwrite by-agent.txt two")
            .await;
        assert!(result.unwrap().success());
        let output = sandbox
            .exec("cat by-agent.txt; pwd | cmp - where.txt")
            .await
            .unwrap();
        assert_eq!(
            (&*output.stdout, output.exit_code),
            ("two", 0),
            "{}",
            output.stderr
        );
        let place = sandbox.read_text("where.txt").await.unwrap();
        let absolute = format!("{}/by-agent.txt", place.trim_end());
        assert_eq!(sandbox.read_text(&absolute).await.unwrap(), "two");
        deployed.stop().await;
    });
}
