//! Sandboxes, idempotency, lifecycle (wire protocol, 2 and 4).

mod kit;

use kit::{Api, server, server_with};
use serde_json::{Value, json};

#[tokio::test]
async fn wire_2_1_one_key_makes_one_sandbox() {
    let server = server().await;
    let request = json!({"name": "a", "idempotencyKey": "k"});
    let calls = (0..8).map(|_| server.api.post("/v1/sandboxes", request.clone()));
    let answers: Vec<Value> = futures_util::future::join_all(calls)
        .await
        .iter()
        .map(|answer| answer.json())
        .collect();
    assert!(
        answers
            .iter()
            .all(|answer| answer["id"] == answers[0]["id"])
    );
    let outcomes = |wanted: &str| {
        let receipts = answers.iter().map(|answer| &answer["createReceipt"]);
        receipts
            .filter(|receipt| receipt["outcome"] == wanted)
            .count()
    };
    assert_eq!((outcomes("created"), outcomes("idempotent_replay")), (1, 7));
    assert!(
        answers
            .iter()
            .all(|answer| answer["createReceipt"]["idempotencyKeyApplied"] == true)
    );
    let server = server.restart().await;
    let again = server.api.post("/v1/sandboxes", request).await.expect(200);
    assert_eq!(again["id"], answers[0]["id"]);
    assert_eq!(again["createReceipt"]["outcome"], "idempotent_replay");
    let list = server.api.get("/v1/sandboxes").await.expect(200);
    assert_eq!(list["sandboxes"].as_array().unwrap().len(), 1);
    server.local.stop().await;
}

#[tokio::test]
async fn wire_2_2_a_changed_request_under_one_key_is_a_conflict() {
    let server = server().await;
    let create = |name: &str| json!({"name": name, "idempotencyKey": "k"});
    server
        .api
        .post("/v1/sandboxes", create("a"))
        .await
        .expect(201);
    let changed = server.api.post("/v1/sandboxes", create("b")).await;
    assert_eq!(changed.fault(), (409, "IDEMPOTENCY_CONFLICT".to_owned()));
    let list = server.api.get("/v1/sandboxes").await.expect(200);
    assert_eq!(list["sandboxes"].as_array().unwrap().len(), 1);
    server.local.stop().await;
}

#[tokio::test]
async fn a_rotated_secret_is_the_same_request() {
    let server = server_with(|builder| builder.opencode("/bin/true")).await;
    let create = |key: &str| {
        json!({"idempotencyKey": "k", "backend": {"type": "opencode", "model": {
            "model": "m", "baseUrl": "http://127.0.0.1:9/v1", "apiKey": key
        }}})
    };
    let first = server
        .api
        .post("/v1/sandboxes", create("sk-one"))
        .await
        .expect(201);
    let second = server
        .api
        .post("/v1/sandboxes", create("sk-two"))
        .await
        .expect(200);
    assert_eq!(first["id"], second["id"]);
    assert!(
        !format!("{first}{second}").contains("sk-"),
        "{first}{second}"
    );
    let state = std::fs::read(server.local.data_dir().join("state.db-wal")).unwrap();
    assert!(
        !state.windows(6).any(|bytes| bytes == b"sk-one"),
        "the key was recorded"
    );
    server.local.stop().await;
}

#[tokio::test]
async fn wire_2_3_a_create_without_a_key_applied_none() {
    let server = server().await;
    let created = server
        .api
        .post("/v1/sandboxes", json!({}))
        .await
        .expect(201);
    assert_eq!(created["createReceipt"]["idempotencyKeyApplied"], false);
    assert_eq!(created["createReceipt"]["outcome"], "created");
    let read = server
        .api
        .get(&format!(
            "/v1/sandboxes/{}",
            created["id"].as_str().unwrap()
        ))
        .await
        .expect(200);
    assert!(read.get("createReceipt").is_none());
    server.local.stop().await;
}

#[tokio::test]
async fn wire_2_4_a_key_that_differs_between_header_and_body_is_refused() {
    let server = server().await;
    let bearer = format!("Bearer {}", server.api.key);
    let send = async |header: &str, body: Value| {
        let headers = [
            ("authorization", bearer.as_str()),
            ("idempotency-key", header),
        ];
        let body = body.to_string();
        server
            .api
            .raw("POST", "/v1/sandboxes", &headers, body.as_bytes())
            .await
    };
    let refused = send("a", json!({"idempotencyKey": "b"})).await;
    assert_eq!(refused.fault(), (400, "VALIDATION_ERROR".to_owned()));
    assert!(refused.json()["fields"]["idempotencyKey"].is_string());
    let by_header = send("a", json!({})).await.expect(201);
    assert_eq!(by_header["createReceipt"]["idempotencyKeyApplied"], true);
    let by_both = send("a", json!({"idempotencyKey": "a"})).await.expect(200);
    assert_eq!(by_both["id"], by_header["id"]);
    server.local.stop().await;
}

#[tokio::test]
async fn a_replayed_create_of_a_deleted_sandbox_makes_no_other() {
    let server = server().await;
    let request = json!({"idempotencyKey": "k", "backend": {"type": "scripted"}});
    let id = server.api.sandbox(request.clone()).await;
    server
        .api
        .call("DELETE", &format!("/v1/sandboxes/{id}"), None)
        .await
        .expect(200);
    let again = server.api.post("/v1/sandboxes", request).await;
    assert_eq!(again.fault(), (409, "INVALID_STATE".to_owned()));
    assert_eq!(again.json()["currentState"], "deleted");
    server.local.stop().await;
}

#[tokio::test]
async fn create_fields_that_cannot_be_honoured_are_named_and_make_nothing() {
    let server = server().await;
    let lacking = [
        ("environment", json!("ubuntu")),
        ("image", json!("ubuntu")),
        ("publicEdge", json!(true)),
        ("ephemeral", json!(true)),
        ("driver", json!({"type": "docker"})),
        ("git", json!({"url": "https://h/r"})),
        ("tools", json!({"node": "22"})),
        ("permissions", json!({"multiUser": true})),
        ("secrets", json!("all")),
        ("resources", json!({"cpuCores": 2})),
        ("sshEnabled", json!(true)),
        ("webTerminalEnabled", json!(true)),
        ("sshPublicKey", json!("ssh-ed25519 A")),
        ("sshPublicKeys", json!(["ssh-ed25519 A"])),
        ("sshKeyIds", json!(["a"])),
        (
            "storage",
            json!({"type": "s3", "bucket": "b", "credentials": {"accessKeyId": "a", "secretAccessKey": "s"}}),
        ),
        ("fromSnapshot", json!("s")),
        ("egressPolicy", json!({"mode": "strict"})),
        ("network", json!({"blockOutbound": true})),
        ("billingOwnerId", json!("o")),
        ("teamId", json!("t")),
        ("requireNativeSessionCapture", json!(true)),
        ("capabilities", json!(["computer_use"])),
        ("confidential", json!({"attestationNonce": "n"})),
        ("agentIdentifier", json!("other")),
    ];
    for (field, value) in lacking {
        let answer = server
            .api
            .post("/v1/sandboxes", json!({ field: value }))
            .await;
        assert_eq!(answer.fault(), (501, "NOT_SUPPORTED".to_owned()), "{field}");
        let field = if field == "image" {
            "environment"
        } else {
            field
        };
        let message = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(message.contains(&format!("`{field}`")), "{message}");
    }
    let profile = json!({"backend": {"type": "scripted", "profile": {"name": "p"}}});
    let answer = server.api.post("/v1/sandboxes", profile).await;
    assert_eq!(answer.fault(), (501, "PROFILE_UNSUPPORTED".to_owned()));
    let attached = json!({"backend": {"type": "scripted", "runtimeAttachments": {"mcp": {}}}});
    let answer = server.api.post("/v1/sandboxes", attached).await;
    assert_eq!(answer.fault(), (501, "NOT_SUPPORTED".to_owned()));
    let list = server.api.get("/v1/sandboxes").await.expect(200);
    assert_eq!(list["sandboxes"], json!([]));
    server.local.stop().await;
}

#[tokio::test]
async fn names_that_are_the_deployments_are_refused_in_a_create() {
    let server = server().await;
    let names = ["HOME", "TMPDIR", "XDG_CONFIG_HOME", "TANGLE_X"];
    for name in names {
        for (field, body) in [
            ("env", json!({"env": {name: "x"}})),
            (
                "backend.runtimeSecrets",
                json!({"backend": {"type": "scripted", "runtimeSecrets": {name: "x"}}}),
            ),
        ] {
            let answer = server.api.post("/v1/sandboxes", body).await;
            assert_eq!(answer.fault(), (400, "VALIDATION_ERROR".to_owned()));
            let fields = &answer.json()["fields"];
            assert!(fields[format!("{field}.{name}")].is_string(), "{fields}");
        }
    }
    let path = json!({"env": {"PATH": "/bin"}, "agent": false});
    server.api.post("/v1/sandboxes", path).await.expect(201);
    server.local.stop().await;
}

#[tokio::test]
async fn a_lifetime_without_an_end_expires_in_the_last_year() {
    let server = server().await;
    let request = json!({"maxLifetimeSeconds": 9_007_199_254_740_991_u64, "agent": false});
    let created = server.api.post("/v1/sandboxes", request).await.expect(201);
    let expires = created["expiresAt"].as_str().unwrap();
    assert!(expires.starts_with("9999-"), "{expires}");
    server.local.stop().await;
}

#[tokio::test]
async fn honoured_fields_do_what_they_say() {
    let server = server().await;
    let id = server
        .api
        .sandbox(json!({
            "name": "n", "env": {"GREETING": "hi"}, "metadata": {"owner": "me"}, "bare": true,
            "driver": {"type": "host-agent"}, "egressPolicy": {"mode": "open"}, "maxLifetimeSeconds": 600,
        }))
        .await;
    let record = server
        .api
        .get(&format!("/v1/sandboxes/{id}"))
        .await
        .expect(200);
    assert_eq!(record["name"], "n");
    assert_eq!(record["metadata"], json!({"owner": "me"}));
    assert_eq!(record["egressPolicy"], json!({"mode": "open"}));
    assert!(record["expiresAt"].is_string());
    let url = record["connection"]["runtimeUrl"].as_str().unwrap();
    assert!(url.ends_with(&format!("/v1/sandboxes/{id}/runtime")));
    let exec = server
        .api
        .run_post(
            &id,
            "terminals/commands",
            json!({"command": "echo $GREETING"}),
        )
        .await;
    assert_eq!(exec.expect(200)["result"]["stdout"], "hi\n");
    let driver = server
        .api
        .get(&format!("/v1/sandboxes/{id}/driver"))
        .await
        .expect(200);
    assert_eq!(driver["type"], "host-agent");
    assert_eq!(driver["capabilities"]["snapshots"], false);
    server.local.stop().await;
}

#[tokio::test]
async fn a_control_only_sandbox_runs_no_agent() {
    let server = server().await;
    let created = server
        .api
        .post("/v1/sandboxes", json!({"agent": false}))
        .await
        .expect(201);
    let id = created["id"].as_str().unwrap();
    assert_eq!(created["metadata"]["runtimeMode"], "control");
    server.api.ready(id).await;
    let run = server
        .api
        .run_post(id, "agents/run/stream", json!({"message": "say x"}))
        .await;
    assert_eq!(run.fault(), (501, "NOT_SUPPORTED".to_owned()));
    let capabilities = server.api.run_get(id, "capabilities").await.expect(200);
    assert_eq!(capabilities["dispatch"]["runControlRef"], false);
    let exec = server
        .api
        .run_post(id, "terminals/commands", json!({"command": "true"}))
        .await;
    assert_eq!(exec.status, 200);
    server.local.stop().await;
}

#[tokio::test]
async fn lists_are_paged_newest_first_and_filtered() {
    let server = server().await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.insert(0, server.sandbox().await);
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    server
        .api
        .call("POST", &format!("/v1/sandboxes/{}/stop", ids[1]), None)
        .await
        .expect(200);
    let list = async |query: &str| -> Vec<String> {
        let list = server
            .api
            .get(&format!("/v1/sandboxes?{query}"))
            .await
            .expect(200);
        let records = list["sandboxes"].as_array().unwrap().clone();
        records
            .iter()
            .map(|record| record["id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(list("").await, ids);
    assert_eq!(list("limit=2&offset=1").await, ids[1..3]);
    assert_eq!(list("offset=5").await, Vec::<String>::new());
    assert_eq!(list("status=stopped").await, [ids[1].clone()]);
    assert_eq!(list("status=stopped&status=running").await, ids);
    assert_eq!(list("status=stopped,running").await, ids);
    for query in [
        "limit=0",
        "limit=1001",
        "offset=-1",
        "limit=x",
        "colour=red",
    ] {
        assert_eq!(
            server
                .api
                .get(&format!("/v1/sandboxes?{query}"))
                .await
                .status,
            400,
            "{query}"
        );
    }
    server.local.stop().await;
}

#[tokio::test]
async fn backends_are_those_that_are_installed() {
    let server = server_with(|builder| {
        builder
            .opencode("/nowhere/opencode")
            .acp_agent("mine", "/bin/sh", ["-c", "true"])
    })
    .await;
    let catalogue = server.api.get("/v1/backends").await.expect(200);
    let types: Vec<&str> = catalogue["backends"]
        .as_array()
        .unwrap()
        .iter()
        .map(|backend| backend["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["scripted", "mine"]);
    let answer = server
        .api
        .post("/v1/sandboxes", json!({"backend": {"type": "opencode"}}))
        .await;
    assert_eq!(answer.fault(), (400, "VALIDATION_ERROR".to_owned()));
    server.local.stop().await;
}

#[tokio::test]
async fn wire_6_the_capability_document_claims_what_is_served() {
    let server = server().await;
    let id = server.sandbox().await;
    let document = server.api.run_get(&id, "capabilities").await.expect(200);
    assert_eq!(document["schema"], 1);
    assert_eq!(
        document["dispatch"],
        json!({"runControlRef": true, "executionIdOnAdmission": true})
    );
    assert_eq!(
        document["cancel"],
        json!({"canonicalRunCancellation": true, "digestBound": true, "idempotent": true})
    );
    assert_eq!(
        document["runs"],
        json!({"executionScopedStatus": true, "eventReplay": true})
    );
    assert_eq!(document["interactions"], json!({}));
    assert!(document.get("interactiveAgent").is_none());
    let unknown = server
        .api
        .get(&Api::runtime("sbx_none", "capabilities"))
        .await;
    assert_eq!(unknown.json()["error"]["resourceType"], "sandbox");
    server.local.stop().await;
}
