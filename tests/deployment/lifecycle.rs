//! The life of a sandbox through the client.

use std::time::Duration;

use serde_json::json;
use tangle_sandbox::contract::types::{CreateSandbox, IdempotencyKey, SandboxId};
use tangle_sandbox::sandbox::{
    AnySandbox, Client, Deleted, Error, Lifetime, ListOptions, NewSandbox, Status,
};
use tangle_sandbox_local::Local;

use crate::support::deployed::{Deployed, alive, finish, gone, pid_in, until};
use crate::within;

fn scripted() -> NewSandbox {
    NewSandbox::new().backend("scripted")
}

async fn count(client: &Client) -> usize {
    client.inventory(ListOptions::new()).await.unwrap().len()
}

pub fn a_create_field_that_cannot_be_honoured_is_refused_by_name() {
    within(Duration::from_secs(30), async {
        let deployed = Deployed::start().await;
        for (field, value) in [
            ("git", json!({ "url": "https://host/repository.git" })),
            ("environment", json!("python:3.14")),
            ("resources", json!({ "cpuCores": 2 })),
            ("egressPolicy", json!({ "mode": "blocked" })),
            ("secrets", json!("all")),
            ("sshEnabled", json!(true)),
            ("fromSnapshot", json!("snap-1")),
            ("tools", json!({ "node": "24" })),
        ] {
            let request: CreateSandbox = serde_json::from_value(json!({ field: value })).unwrap();
            let refused = deployed.client.create(request).await.unwrap_err();
            assert_eq!(
                refused.code().as_str(),
                "NOT_SUPPORTED",
                "{field}: {refused:?}"
            );
            assert!(
                refused.to_string().contains(&format!("`{field}`")),
                "{refused}"
            );
        }
        assert_eq!(count(&deployed.client).await, 0);
        deployed.stop().await;
    });
}

pub fn a_backend_that_is_not_installed_is_refused_before_anything_is_made() {
    within(Duration::from_secs(30), async {
        let deployed = Deployed::start().await;
        let refused = deployed.client.create("no-such-agent").await.unwrap_err();
        assert_eq!(refused.code().as_str(), "VALIDATION_ERROR");
        assert!(refused.to_string().contains("backend.type"), "{refused}");
        assert!(!refused.to_string().contains("no-such-agent"), "{refused}");
        assert_eq!(count(&deployed.client).await, 0);
        assert!(
            deployed
                .client
                .backend("no-such-agent")
                .await
                .unwrap()
                .is_none()
        );
        assert!(deployed.client.backend("scripted").await.unwrap().is_some());
        deployed.stop().await;
    });
}

pub fn wire_2_1_a_replayed_create_makes_no_second_sandbox() {
    within(Duration::from_secs(30), async {
        let deployed = Deployed::start().await;
        let key = IdempotencyKey::new("create-once").unwrap();
        let request = || scripted().idempotency_key(key.clone());
        let first = deployed.client.create(request()).await.unwrap();
        let second = deployed.client.create(request()).await.unwrap();
        assert_eq!(first.id(), second.id());
        assert_eq!(first.receipt().unwrap().outcome, "created");
        assert_eq!(second.receipt().unwrap().outcome, "idempotent_replay");
        let changed = request().name("another");
        let refused = deployed.client.create(changed).await.unwrap_err();
        assert_eq!(refused.code().as_str(), "IDEMPOTENCY_CONFLICT");
        assert_eq!(count(&deployed.client).await, 1);
        deployed.stop().await;
    });
}

pub fn a_sandbox_that_fails_gives_its_handle_back_and_is_not_deleted() {
    within(Duration::from_secs(30), async {
        let folder = tempfile::tempdir().unwrap();
        // A file stands where the folders of sandboxes should be made.
        std::fs::write(folder.path().join("sandboxes"), "").unwrap();
        let local = Local::builder()
            .data_dir(folder.path())
            .start()
            .await
            .unwrap();
        let client = Client::builder(local.base_url(), local.api_key().clone());
        let client = client.build().unwrap();
        let made = client.create(scripted()).await.unwrap();
        let (handle, error) = made.wait_ready().await.unwrap_err().into_parts();
        let Error::Over { status, reason } = error else {
            panic!("{error:?}")
        };
        assert_eq!(status, Status::Failed);
        assert!(reason.unwrap().contains("folders"));
        let found = client.get(handle.id()).await.unwrap().unwrap();
        assert!(matches!(found, AnySandbox::Ended(_)), "{found:?}");
        assert_eq!(handle.delete().await.unwrap(), Deleted::Destroyed);
        assert_eq!(count(&client).await, 0);
        local.stop().await;
    });
}

pub fn a_lifetime_that_is_over_retires_the_sandbox_and_its_run() {
    within(Duration::from_secs(60), async {
        let deployed = Deployed::start().await;
        let request = scripted().lifetime(Lifetime::from_secs(2));
        let made = deployed.client.create(request).await.unwrap();
        let sandbox = made.wait_ready().await.unwrap();
        let id = sandbox.id().clone();
        assert!(sandbox.record().expires_at.is_some());
        let run = sandbox
            .stream("run echo $$ > shell.pid; sleep 300")
            .await
            .unwrap();
        let pid = pid_in(&deployed.file(&sandbox, "shell.pid")).await;
        assert!(alive(pid));
        let (_, result) = finish(run).await;
        assert!(!result.success(), "{result:?}");
        let ended = until("the end of the lifetime", async || {
            match deployed.client.get(&id).await.unwrap() {
                Some(AnySandbox::Ended(ended)) => Some(ended),
                _ => None,
            }
        })
        .await;
        assert_eq!(ended.record().status, "expired");
        gone(&[pid]).await;
        let refused = sandbox.exec("true").await.unwrap_err();
        assert_eq!(refused.code().as_str(), "INVALID_STATE", "{refused:?}");
        let refused = AnySandbox::Ended(ended).into_running().await.unwrap_err();
        assert!(matches!(
            refused.error,
            Error::Over {
                status: Status::Expired,
                ..
            }
        ));
        let folder = deployed
            .local
            .data_dir()
            .join("sandboxes")
            .join(id.as_str());
        until("the end of the files", async || {
            (!folder.exists()).then_some(())
        })
        .await;
        deployed.stop().await;
    });
}

pub fn listings_are_newest_first_and_a_handle_has_the_type_of_its_state() {
    within(Duration::from_secs(60), async {
        let deployed = Deployed::start().await;
        let client = &deployed.client;
        let mut made = Vec::new();
        for name in ["one", "two", "three"] {
            let sandbox = client.create(scripted().name(name)).await.unwrap();
            made.push(sandbox.wait_ready().await.unwrap());
        }
        let names = async |options: ListOptions| {
            let records = client.inventory(options).await.unwrap();
            records
                .into_iter()
                .filter_map(|record| record.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(ListOptions::new()).await, ["three", "two", "one"]);
        assert_eq!(
            names(ListOptions::new().page(1)).await,
            ["three", "two", "one"]
        );
        let mut listing = client.list(ListOptions::new().page(2));
        let newest = listing.next().await.unwrap().unwrap();
        assert_eq!(newest.name.as_deref(), Some("three"));

        let three = made.pop().unwrap();
        let two = made.pop().unwrap();
        let stopped = two.stop().await.unwrap();
        let of = |status| ListOptions::new().status(status);
        assert_eq!(names(of(Status::Stopped)).await, ["two"]);
        assert_eq!(names(of(Status::Running)).await, ["three", "one"]);
        let found = client.get(stopped.id()).await.unwrap().unwrap();
        assert!(matches!(found, AnySandbox::Stopped(_)), "{found:?}");
        let found = client.get(three.id()).await.unwrap().unwrap();
        assert!(matches!(found, AnySandbox::Running(_)), "{found:?}");

        let id = three.id().clone();
        assert_eq!(three.delete().await.unwrap(), Deleted::Destroyed);
        assert!(client.get(&id).await.unwrap().is_none());
        let unknown = SandboxId::new("sbx_unknown/../x").unwrap();
        assert!(client.get(&unknown).await.unwrap().is_none());
        assert_eq!(names(ListOptions::new()).await, ["two", "one"]);

        let found = client.get(stopped.id()).await.unwrap().unwrap();
        let running = found.into_running().await.unwrap();
        assert!(running.prompt("say back").await.unwrap().success());
        assert_eq!(stopped.delete().await.unwrap(), Deleted::Destroyed);
        assert_eq!(running.delete().await.unwrap(), Deleted::AlreadyAbsent);
        deployed.stop().await;
    });
}
